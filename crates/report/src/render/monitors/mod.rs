//! Renderings of what monitors saw: text, markdown, JSON, HTML. All but JSON go through one grid of texts, so that a
//! number is written in one place.

mod dictionary;
mod grid;
mod html;
mod json;
mod markdown;
mod plot;
#[cfg(test)]
mod tests;
mod text;

pub use dictionary::dictionary;
pub use html::html;
pub(crate) use html::{WatchedView, view};
pub use json::json;
pub(crate) use json::{MonitorsDocument, document};
pub use markdown::markdown;
pub(crate) use text::sample_table;
pub use text::{relative_text, text};
