//! The dashboard: pages and JSON documents about what a store holds, served or written as files.
//!
//! Everything shown is a value from `report`; here it gets an address and a page. One pure function answers
//! ([`Site::answer`]), whether a server asks or [`publish()`] does. Nothing is written, neither to the store nor for anybody.

mod address;
mod api;
#[cfg(test)]
mod browser;
#[cfg(test)]
mod colours;
mod compared;
mod kept;
mod metrics;
mod openapi;
mod pages;
mod publish;
#[cfg(test)]
mod seen;
mod server;
mod site;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use pages::history_page;
pub use publish::{PublishError, Published, publish};
pub use server::{Limits, ServeError, serve};
pub use site::{Kind, Reply, Site};
pub use source::{Snapshot, Source, SourceError};
