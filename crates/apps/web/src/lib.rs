//! The dashboard: pages and JSON documents about a store, served or written as files.
//!
//! Every value shown comes from `compare` and `history`; this crate gives it an address and a page.
//! One pure function answers ([`Site::answer`]), for a server and for [`publish()`]. It writes
//! neither to the store nor for clients.

mod address;
mod api;
#[cfg(test)]
mod browser_tests;
mod care;
#[cfg(test)]
mod colour_tests;
mod compared;
mod jobs;
mod metrics;
mod openapi;
mod page_cache;
mod pages;
mod publish;
#[cfg(test)]
mod reader_tests;
#[cfg(test)]
mod restored_store_tests;
mod sending;
mod server;
#[cfg(test)]
mod silent_store_tests;
mod site;
#[cfg(test)]
mod size_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use pages::history_page;
pub use publish::{PublishError, Published, publish};
pub use server::{Limits, ServeError, serve};
pub use site::{ContentKind, Explain, Reply, Site};
