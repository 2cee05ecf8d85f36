//! Documents as HTML. How it looks is in `templates/document.html`, `blocks.html` and `document.css`.

use askama::Template;

use super::chart::{HEIGHT, LEFT, WIDTH};
use super::{Block, Document, Kind, Weight};
use crate::plain::printable;
use crate::render::RenderError;

#[derive(Template)]
#[template(path = "document.html")]
struct PageOf<'a> {
    title: &'a str,
    blocks: String,
}

#[derive(Template)]
#[template(path = "blocks.html")]
struct Blocks<'a> {
    blocks: &'a [Block],
}

/// Writes a page.
pub(super) fn page(document: &Document) -> Result<String, RenderError> {
    let page = PageOf { title: &document.title, blocks: fragment(&document.blocks)? };
    Ok(printable(&page.render()?))
}

/// Writes blocks, to be put into a page that has `document.css`.
pub(crate) fn fragment(blocks: &[Block]) -> Result<String, RenderError> {
    Ok(printable(&Blocks { blocks }.render()?))
}
