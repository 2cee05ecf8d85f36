//! What a report says, apart from how it is written: a subject builds one [`Document`], and each format has one writer.
//!
//! Words and cells come in as they are: each writer makes them plain and escapes them in its own way.

mod chart;
mod html;
mod json;
mod markdown;
mod text;

pub(crate) use chart::{Chart, Curve, Scale, short};
pub use html::{SCRIPT, SCRIPT_STYLES, page_head, page_script};
pub use json::write_json;
pub(crate) use markdown::{escaped, markdown_of};
pub(crate) use text::{text_of, write_text};

use crate::render::layout::{Page, WIDTH, wrap};
use crate::render::{RenderError, Styles};

/// A report.
#[derive(Debug, Default)]
pub struct Document {
    /// Reasons to doubt all that follows: they stand above the title.
    pub(crate) warnings: Vec<String>,
    /// One line, or several.
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
    /// Lines as they came, such as a console's.
    Console(Vec<String>),
    /// A shell command that is to be pasted.
    Command(String),
    /// What a page and an issue tracker fold away; text leaves it out.
    Details(Details),
    /// Pages only.
    Plot(Plot),
    /// A drawing of another kind, as HTML. Pages only.
    Drawing(String),
}

/// A fact and its name.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
    /// What the value consists of, where a page links its parts to rows.
    pub(crate) links: Vec<Link>,
}

/// A part of a fact that leads to a row.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) anchor: String,
    pub(crate) name: String,
    pub(crate) rest: String,
}

/// Blocks below a line that says what they are.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) summary: String,
    pub(crate) blocks: Vec<Block>,
    /// Whether only a page has room for them.
    pub(crate) pages_only: bool,
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
    /// The first columns, which every part of a table has that is cut to fit 80 columns; 0 where it is never cut.
    pub(crate) fixed: usize,
}

/// A column.
#[derive(Debug)]
pub(crate) struct Column {
    /// In two lines; the second is often empty.
    pub(crate) head: [String; 2],
    pub(crate) kind: Kind,
    pub(crate) width: Width,
    /// Whether a part of a cut table may begin here.
    pub(crate) starts: bool,
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
    /// A verdict's letter and word; text has room for the letter.
    Verdict,
    /// Drawings as HTML, the head included. Pages only.
    Drawing,
}

/// How wide a column of text is. Names are cut to fit; numbers never are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    Fixed(usize),
    /// As wide as the widest cell, but no more than this.
    Fit(usize),
    /// The same, but what is wider stands whole on a line of its own.
    Whole(usize),
    /// An equal part of what others leave, but at least and at most this; without changes, which have room of their own.
    Share(usize, usize),
}

/// A row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) weight: Weight,
    /// What a page links to; empty for nothing.
    pub(crate) anchor: String,
    /// What a page says above the row, of it and those that follow.
    pub(crate) group: String,
    /// What a page says below the row.
    pub(crate) about: String,
}

/// How much a row says.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    #[default]
    Normal,
    Faint,
    /// Below a line.
    Total,
}

/// A cell.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) change: Option<Change>,
    /// A verdict's word, which colours the cell.
    pub(crate) tone: &'static str,
    /// What a page says when one points at the cell.
    pub(crate) hint: String,
}

/// How much better a value is than the base's.
#[derive(Debug)]
pub(crate) struct Change {
    /// Percent with two decimals, without the sign of percent.
    pub(crate) percent: String,
    /// Whether MMTests would put stars.
    pub(crate) starred: bool,
    /// A verdict's word, or nothing: a colour is a judgement.
    pub(crate) word: &'static str,
}

impl Document {
    /// Writes it as text, in 80 columns.
    #[must_use]
    pub fn text(&self, styles: &Styles) -> String {
        let mut page = Page::default();
        for warning in &self.warnings {
            wrap(warning, WIDTH).iter().for_each(|line| page.line(styles.alarm(line)));
            page.blank();
        }
        for line in self.title.lines().flat_map(|line| wrap(line, WIDTH)) {
            page.line(styles.strong(&line));
        }
        write_text(&mut page, &self.blocks, styles);
        page.finish()
    }

    /// Writes it as markdown, for issue trackers.
    #[must_use]
    pub fn markdown(&self) -> String {
        let warnings = self.warnings.iter().map(|warning| format!("> **{}**\n\n", escaped(warning)));
        let title = self.title.lines().map(|line| format!("# {}\n\n", escaped(line)));
        warnings.chain(title).chain([markdown_of(&self.blocks)]).collect()
    }

    /// Writes it as a page that needs nothing else: no network, one script of our own in it.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html(&self) -> Result<String, RenderError> {
        html::page(self, None)
    }

    /// Writes it as a page of a site: `root` is the way to the site's top, where `script.js` is [`SCRIPT`].
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html_of_site(&self, root: &str) -> Result<String, RenderError> {
        html::page(self, Some(root))
    }
}

impl Column {
    pub(crate) fn new(head: &str, kind: Kind, width: Width) -> Self {
        Self { head: [head.to_owned(), String::new()], kind, width, starts: false }
    }

    /// Both lines of the head in one.
    pub(crate) fn title(&self) -> String {
        self.head.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("-")
    }
}

impl Row {
    pub(crate) fn new(weight: Weight, cells: impl IntoIterator<Item = String>) -> Self {
        Self { cells: cells.into_iter().map(Cell::new).collect(), weight, ..Self::default() }
    }
}

impl Cell {
    pub(crate) fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl Fact {
    pub(crate) fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self { name: name.into(), value: value.into(), links: Vec::new() }
    }
}
