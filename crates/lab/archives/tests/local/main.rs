//! Archives in the layouts of distributions, made and signed here and served on the loopback
//! interface.

#![expect(clippy::unwrap_used, reason = "a test: what fails here is to fail")]

mod arch;
mod debian;
mod fedora;
mod kernel_org;
mod lists;
mod mirror;
mod outside;
