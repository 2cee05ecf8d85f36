//! The content of a report, independent of the format: each subject builds one [`Document`], and
//! each format has one writer. Also what every subject needs beside it: numbers, labels of kernels,
//! styles and views, JSON schemas, mails. Knows no run and no comparison: `compare`, `monitors`,
//! `profile` and others build the documents.
//!
//! Words and cells come in unescaped: each writer makes them plain and escapes them for its format.

#![warn(missing_docs)]

mod chart;
mod cut;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
mod html;
mod json;
pub mod label;
pub mod layout;
pub mod mail;
mod markdown;
pub mod number;
mod schema;
mod style;
mod styles;
mod text;
mod view;

pub use chart::{Chart, Curve, Scale, short};
pub use cut::{cut_middle, distinct_width};
pub use html::{DOCUMENT_STYLES, SCRIPT, SCRIPT_STYLES, SITE_POLICY, page_head, page_script};
pub use json::write_json;
pub use markdown::{escaped, markdown_of};
pub use schema::{SCHEMA_VERSION, schema_of};
pub use style::{Style, StyleError};
pub use styles::Styles;
pub use text::{text_of, write_text};
pub use view::{Only, Sort, View, ViewError};

use crate::layout::{Page, WIDTH, wrap};

/// A rendering that could not be written: a bug of Marvin, as everything is in memory.
#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    /// The page could not be rendered.
    #[error("failed to fill in the page: {0}")]
    Template(#[from] askama::Error),
    /// The document could not be written as JSON.
    #[error("failed to write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// A report that is rendered as text, markdown and HTML.
#[derive(Debug, Default)]
pub struct Document {
    /// Reasons to doubt the report: they come before the title.
    pub warnings: Vec<String>,
    /// One line, or several.
    pub title: String,
    /// Its parts, from top to bottom.
    pub blocks: Vec<Block>,
}

/// A part of a report.
#[derive(Debug)]
pub enum Block {
    /// The title of a part.
    Heading(String),
    /// The title of what follows, for blocks without a title of their own.
    Subheading(String),
    /// A paragraph; one that ends in a colon belongs to what follows.
    Paragraph(String),
    /// A remark in smaller type.
    Note(String),
    /// A list with one item each.
    List(Vec<String>),
    /// Names beside their values.
    Facts(Vec<Fact>),
    /// A table with columns of fixed meaning.
    Table(Table),
    /// Preformatted lines, such as a console's.
    Console(Vec<String>),
    /// A shell command to paste.
    Command(String),
    /// A block that pages and issue trackers fold; text omits it.
    Details(Details),
    /// Charts, on web pages only.
    Plot(Plot),
    /// Another drawing, as HTML. Pages only.
    Drawing(String),
}

/// A fact and its name.
#[derive(Debug)]
pub struct Fact {
    /// What the value is of.
    pub name: String,
    /// The value, as text.
    pub value: String,
    /// The parts of the value, which a page links to rows.
    pub links: Vec<Link>,
}

/// A part of a fact that links to a row.
#[derive(Debug)]
pub struct Link {
    /// The id of the row.
    pub anchor: String,
    /// The text of the link.
    pub name: String,
    /// The text after it.
    pub rest: String,
}

/// Blocks below a summary line.
#[derive(Debug)]
pub struct Details {
    /// The line that is shown while it is folded.
    pub summary: String,
    /// What it folds away.
    pub blocks: Vec<Block>,
    /// Whether only pages show them.
    pub pages_only: bool,
}

/// Charts with a common legend.
#[derive(Debug)]
pub struct Plot {
    /// The names of the first colour's lines, the second colour's, and so on.
    pub key: Vec<String>,
    /// The charts, side by side.
    pub charts: Vec<Chart>,
}

/// Rows under common heads.
#[derive(Debug, Default)]
pub struct Table {
    /// The columns, from left to right.
    pub columns: Vec<Column>,
    /// The rows; each has a cell for each column.
    pub rows: Vec<TableRow>,
    /// Notes below the table.
    pub notes: Vec<String>,
    /// The leading columns that every part repeats if a table is cut to fit 80 columns; 0 if it is
    /// never cut.
    pub fixed: usize,
}

/// A column: its head, and how its cells are set.
#[derive(Debug)]
pub struct Column {
    /// In two lines; the second is often empty.
    pub head: [String; 2],
    /// How its cells are aligned and escaped.
    pub kind: ColumnKind,
    /// Its width in text.
    pub width: Width,
    /// Whether a part of a cut table may begin here.
    pub starts: bool,
    /// The group that it belongs to. A table is cut between groups, as long as each of them fits.
    pub group: Option<Group>,
}

/// A group of neighbouring columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// What the columns have in common.
    pub name: String,
    /// What text writes beside the name.
    pub about: String,
}

/// The kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// A name: left-aligned, preformatted on pages.
    Name,
    /// Prose: left-aligned.
    Words,
    /// A number: right-aligned.
    Number,
    /// A verdict's letter and word; text only has space for the letter.
    Verdict,
    /// Drawings as HTML, the head included. Pages only.
    Drawing,
}

/// The width of a column in text. Names are cut to fit; numbers never are.
#[derive(Debug, Clone, Copy)]
pub enum Width {
    /// This many characters.
    Fixed(usize),
    /// The width of the widest cell, up to this maximum.
    Fit(usize),
    /// The same, but wider cells stand whole on a separate line.
    Whole(usize),
    /// An equal share of the remaining width, within these limits; without changes, which have
    /// separate space.
    Share(usize, usize),
}

/// A row: one cell for each column.
#[derive(Debug, Default)]
pub struct TableRow {
    /// The cells, from left to right.
    pub cells: Vec<TableCell>,
    /// How much it stands out.
    pub weight: Weight,
    /// The id for links; empty for none.
    pub anchor: String,
    /// The heading above the row and those that follow, on pages.
    pub group: String,
    /// The note below the row, on pages.
    pub about: String,
}

/// The emphasis of a row.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// As most rows.
    #[default]
    Normal,
    /// Fainter than others.
    Faint,
    /// A sum, below a rule.
    Total,
}

/// The content of a row under one column.
#[derive(Debug, Default)]
pub struct TableCell {
    /// What is shown in every rendering.
    pub text: String,
    /// The improvement beside the text.
    pub change: Option<Change>,
    /// A verdict's word, which colours the cell.
    pub tone: &'static str,
    /// The tooltip on web pages; none if empty.
    pub hint: String,
}

/// The improvement over the base.
#[derive(Debug)]
pub struct Change {
    /// Percent with two decimals, without the percent sign.
    pub percent: String,
    /// Whether MMTests would mark it with stars.
    pub starred: bool,
    /// A verdict's word, or empty: a colour is a judgement.
    pub word: &'static str,
}

impl Document {
    /// Writes it as text, in 80 columns.
    #[must_use]
    pub fn text(&self, styles: &Styles) -> String {
        let mut page = Page::default();
        for warning in &self.warnings {
            wrap(warning, WIDTH)
                .iter()
                .for_each(|line| page.line(styles.alarm(line)));
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
        let warnings = self
            .warnings
            .iter()
            .map(|warning| format!("> **{}**\n\n", escaped(warning)));
        let title = self
            .title
            .lines()
            .map(|line| format!("# {}\n\n", escaped(line)));
        warnings
            .chain(title)
            .chain([markdown_of(&self.blocks)])
            .collect()
    }

    /// Writes it as a standalone page: no network, only Marvin's inline script.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html(&self) -> Result<String, RenderError> {
        html::page(self, None)
    }

    /// Writes it as a page of a site: `root` is the path to the site's top, where `script.js` is
    /// [`SCRIPT`] and `document.css` is [`DOCUMENT_STYLES`].
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn html_of_site(&self, root: &str) -> Result<String, RenderError> {
        html::page(self, Some(root))
    }
}

impl Column {
    /// Returns a column with a head of one line.
    pub fn new(head: &str, kind: ColumnKind, width: Width) -> Self {
        Self {
            head: [head.to_owned(), String::new()],
            kind,
            width,
            starts: false,
            group: None,
        }
    }

    /// Joins both lines of the head, after the group's name.
    pub fn title(&self) -> String {
        let head = self
            .head
            .iter()
            .filter(|line| !line.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join("-");
        match &self.group {
            Some(group) if head.is_empty() => group.name.clone(),
            Some(group) => format!("{} {head}", group.name),
            None => head,
        }
    }
}

impl TableRow {
    /// Returns a row of texts.
    pub fn new(weight: Weight, cells: impl IntoIterator<Item = String>) -> Self {
        Self {
            cells: cells.into_iter().map(TableCell::new).collect(),
            weight,
            ..Self::default()
        }
    }
}

impl TableCell {
    /// Returns a cell of a text.
    pub fn new(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

impl Fact {
    /// Returns a fact without links.
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            links: Vec::new(),
        }
    }
}
