//! The dashboard: pages and JSON documents about a store, served or written as files.
//!
//! Every value shown comes from `compare` and `history`; this crate gives it an address and a page.
//! One pure function answers ([`Site::answer`]), for a server and for [`publish()`]. It writes
//! neither to the store nor for clients.

mod address;
mod api;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod colours;
mod compared;
#[cfg(test)]
mod controls_seen;
mod jobs;
mod metrics;
mod openapi;
mod page_cache;
mod pages;
mod publish;
#[cfg(test)]
mod seen;
mod sending;
mod server;
#[cfg(test)]
mod silent;
mod site;
#[cfg(test)]
mod sizes;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use pages::history_page;
pub use publish::{PublishError, Published, publish};
pub use server::{Limits, ServeError, serve};
pub use site::{Explain, Kind, Reply, Site};
