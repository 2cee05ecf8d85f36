//! Archives in the layouts of distributions, made and signed here and served on the loopback
//! interface.

#![expect(clippy::unwrap_used, reason = "a test: what fails here is to fail")]

mod debian;
mod mirror;
mod outside;
