//! Documents as HTML. How it looks is in `templates/document.html`, `blocks.html` and `document.css`.

use askama::Template;

use super::chart::{HEIGHT, LEFT, WIDTH};
use super::{Block, Document, Kind, Table, Weight};
use crate::plain::printable;
use crate::render::RenderError;

#[derive(Template)]
#[template(path = "document.html")]
struct PageOf<'a> {
    document: &'a Document,
    blocks: String,
}

#[derive(Template)]
#[template(path = "blocks.html")]
struct Blocks<'a> {
    blocks: &'a [Block],
}

/// Writes a page.
pub(super) fn page(document: &Document) -> Result<String, RenderError> {
    let page = PageOf { document, blocks: inner(&document.blocks)? };
    Ok(printable(&page.render()?))
}

/// Writes blocks, those inside of others too.
fn inner(blocks: &[Block]) -> askama::Result<String> {
    Blocks { blocks }.render()
}

impl Table {
    /// Whether it has drawings, which need a page's whole width.
    fn is_drawn(&self) -> bool {
        self.columns.iter().any(|column| column.kind == Kind::Drawing)
    }
}
