//! What a report says, apart from how it is written: a subject builds one [`Document`], and each format has one writer.
//!
//! Words and cells come in as they are: each writer makes them plain and escapes them in its own way.

mod chart;
mod html;
mod json;
mod markdown;
mod text;

pub(crate) use chart::{Chart, Curve, Scale, short};
pub(crate) use html::fragment;
pub use json::write_json;
pub(crate) use markdown::{escaped, markdown_of};
pub(crate) use text::{text_of, write_text};

use crate::render::layout::Page;
use crate::render::{RenderError, Styles};

/// A report.
#[derive(Debug)]
pub struct Document {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug)]
pub(crate) enum Block {
    Heading(String),
    /// The title of what follows, where that has no room for one.
    Subheading(String),
    /// One that ends in a colon belongs to what follows.
    Paragraph(String),
    /// What is said beside the point.
    Note(String),
    List(Vec<String>),
    Facts(Vec<Fact>),
    Table(Table),
    /// Pages only.
    Plot(Plot),
    /// A drawing of another kind, as HTML. Pages only.
    Drawing(String),
}

/// A fact and its name.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// Charts with one key.
#[derive(Debug)]
pub(crate) struct Plot {
    /// What lines of the first colour show, of the second, and so on.
    pub(crate) key: Vec<String>,
    pub(crate) charts: Vec<Chart>,
}

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<String>,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    /// In two lines; the second is often empty.
    pub(crate) head: [String; 2],
    pub(crate) kind: Kind,
    pub(crate) width: Width,
}

/// What is in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// At the left, to be read as it is.
    Name,
    /// At the left.
    Words,
    /// At the right.
    Number,
}

/// How wide a column of text is. Names are cut to fit; numbers never are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    Fixed(usize),
    /// As wide as the widest cell, but no more than this.
    Fit(usize),
    /// An equal part of what others leave, but at least and at most this; without changes, which have room of their own.
    Share(usize, usize),
}

/// A row.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) weight: Weight,
}

/// How much a row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Normal,
    Faint,
    /// Below a line.
    Total,
}

/// A cell.
#[derive(Debug)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) change: Option<Change>,
}

/// How much better a value is than the base's.
#[derive(Debug)]
pub(crate) struct Change {
    /// Percent with two decimals, without the sign of percent.
    pub(crate) percent: String,
    /// Whether MMTests would put stars.
    pub(crate) starred: bool,
    /// `better` or `worse` of a change that has stars, else nothing: a colour is a judgement.
    pub(crate) word: &'static str,
}

impl Document {
    /// Writes it as text, in 80 columns.
    #[must_use]
    pub fn text(&self, styles: &Styles) -> String {
        let mut page = Page::default();
        page.words(0, &self.title);
        write_text(&mut page, &self.blocks, styles);
        page.finish()
    }

    /// Writes it as markdown, for issue trackers.
    #[must_use]
    pub fn markdown(&self) -> String {
        format!("# {}\n\n{}", escaped(&self.title), markdown_of(&self.blocks))
    }

    /// Writes it as a page that needs nothing else: no network, no foreign script.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html(&self) -> Result<String, RenderError> {
        html::page(self)
    }
}

impl Column {
    pub(crate) fn new(head: &str, kind: Kind, width: Width) -> Self {
        Self { head: [head.to_owned(), String::new()], kind, width }
    }

    /// Both lines of the head in one.
    pub(crate) fn title(&self) -> String {
        self.head.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("-")
    }
}

impl Row {
    pub(crate) fn new(weight: Weight, cells: impl IntoIterator<Item = String>) -> Self {
        Self { cells: cells.into_iter().map(|text| Cell { text, change: None }).collect(), weight }
    }
}
