//! The content of a report, independent of the format: each subject builds one [`Document`], and each format has one
//! writer.
//!
//! Words and cells come in unescaped: each writer makes them plain and escapes them for its format.

mod chart;
mod html;
mod json;
mod markdown;
mod text;

pub(crate) use chart::{Chart, Curve, Scale, short};
pub use html::{DOCUMENT_STYLES, SCRIPT, SCRIPT_STYLES, SITE_POLICY, page_head, page_script};
pub use json::write_json;
pub(crate) use markdown::{escaped, markdown_of};
pub(crate) use text::{text_of, write_text};

use crate::render::layout::{Page, WIDTH, wrap};
use crate::render::{RenderError, Styles};

/// A report.
#[derive(Debug, Default)]
pub struct Document {
    /// Reasons to doubt the report: they come before the title.
    pub(crate) warnings: Vec<String>,
    /// One line, or several.
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug)]
pub(crate) enum Block {
    Heading(String),
    /// The title of what follows, for blocks without a title of their own.
    Subheading(String),
    /// A paragraph; one that ends in a colon belongs to what follows.
    Paragraph(String),
    /// A side note.
    Note(String),
    List(Vec<String>),
    Facts(Vec<Fact>),
    Table(Table),
    /// Preformatted lines, such as a console's.
    Console(Vec<String>),
    /// A shell command to paste.
    Command(String),
    /// A block that pages and issue trackers fold; text omits it.
    Details(Details),
    /// Pages only.
    Plot(Plot),
    /// Another drawing, as HTML. Pages only.
    Drawing(String),
}

/// A fact and its name.
#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The parts of the value, which a page links to rows.
    pub(crate) links: Vec<Link>,
}

/// A part of a fact that links to a row.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) anchor: String,
    pub(crate) name: String,
    pub(crate) rest: String,
}

/// Blocks below a summary line.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) summary: String,
    pub(crate) blocks: Vec<Block>,
    /// Whether only pages show them.
    pub(crate) pages_only: bool,
}

/// Charts with a common legend.
#[derive(Debug)]
pub(crate) struct Plot {
    /// The names of the first colour's lines, the second colour's, and so on.
    pub(crate) key: Vec<String>,
    pub(crate) charts: Vec<Chart>,
}

/// A table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<String>,
    /// The leading columns that every part repeats if a table is cut to fit 80 columns; 0 if it is never cut.
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
    /// The group that it belongs to. A table is cut between groups, as long as each of them fits.
    pub(crate) group: Option<Group>,
}

/// A group of neighbouring columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) name: String,
    /// What text writes beside the name.
    pub(crate) about: String,
}

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Left-aligned, preformatted.
    Name,
    /// Left-aligned.
    Words,
    /// Right-aligned.
    Number,
    /// A verdict's letter and word; text only has space for the letter.
    Verdict,
    /// Drawings as HTML, the head included. Pages only.
    Drawing,
}

/// The width of a column in text. Names are cut to fit; numbers never are.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Width {
    Fixed(usize),
    /// The width of the widest cell, up to this maximum.
    Fit(usize),
    /// The same, but wider cells stand whole on a separate line.
    Whole(usize),
    /// An equal share of the remaining width, within these limits; without changes, which have separate space.
    Share(usize, usize),
}

/// A row.
#[derive(Debug, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) weight: Weight,
    /// The id for links; empty for none.
    pub(crate) anchor: String,
    /// The heading above the row and those that follow, on pages.
    pub(crate) group: String,
    /// The note below the row, on pages.
    pub(crate) about: String,
}

/// The emphasis of a row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    #[default]
    Normal,
    Faint,
    /// Below a rule.
    Total,
}

/// A cell.
#[derive(Debug, Default)]
pub(crate) struct Cell {
    pub(crate) text: String,
    pub(crate) change: Option<Change>,
    /// A verdict's word, which colours the cell.
    pub(crate) tone: &'static str,
    /// The tooltip.
    pub(crate) hint: String,
}

/// The improvement over the base.
#[derive(Debug)]
pub(crate) struct Change {
    /// Percent with two decimals, without the percent sign.
    pub(crate) percent: String,
    /// Whether MMTests would mark it with stars.
    pub(crate) starred: bool,
    /// A verdict's word, or empty: a colour is a judgement.
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

    /// Writes it as a standalone page: no network, only Marvin's inline script.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html(&self) -> Result<String, RenderError> {
        html::page(self, None)
    }

    /// Writes it as a page of a site: `root` is the path to the site's top, where `script.js` is [`SCRIPT`] and
    /// `document.css` is [`DOCUMENT_STYLES`].
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html_of_site(&self, root: &str) -> Result<String, RenderError> {
        html::page(self, Some(root))
    }
}

impl Column {
    pub(crate) fn new(head: &str, kind: Kind, width: Width) -> Self {
        Self { head: [head.to_owned(), String::new()], kind, width, starts: false, group: None }
    }

    /// Joins both lines of the head, after the group's name.
    pub(crate) fn title(&self) -> String {
        let head = self.head.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("-");
        match &self.group {
            Some(group) if head.is_empty() => group.name.clone(),
            Some(group) => format!("{} {head}", group.name),
            None => head,
        }
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
