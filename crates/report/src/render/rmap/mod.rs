//! Renderings of the experiment on reverse mappings: text, markdown, JSON, HTML. All but JSON go through one set of tables
//! of texts, so that a number is written in one place.

mod html;
mod json;
mod markdown;
mod plot;
mod tables;
#[cfg(test)]
mod tests;
mod text;

pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use text::text;
