//! Parses the manifest of a format. docs/import.md has every key; a test reads its examples.

use model::Pick;
use toml::de::DeTable;

use super::number::Form;
use super::template::{Template, is_own};
use crate::toml_document::{ManifestError, Mistake, Section, Shape, Value, expected, text};
use crate::tools::json::{Step, steps};
use crate::tools::pattern::Pattern;

/// Largest manifest, in bytes.
const MANIFEST_MAX: usize = 64 << 10;
/// Longest name of a format.
const NAME_MAX: usize = 24;
/// Largest factor of a metric.
const FACTOR_MAX: f64 = 1e12;

const FORMAT: Shape<'static> = Shape {
    what: "the manifest",
    keys: &[
        "name",
        "about",
        "source",
        "tests",
        "layout",
        "separator",
        "headings",
        "file",
        "known",
        "context",
        "later",
        "failed",
        "runs",
        "numbers",
        "facts",
        "join",
        "metric",
    ],
};
const METRIC: Shape<'static> = Shape {
    what: "metric",
    keys: &[
        "name", "unit", "better", "each", "value", "per", "split", "line", "after", "until",
        "only", "except", "refuse", "pick", "part", "form", "factor", "zero", "instead", "kernel",
        "apart", "remark",
    ],
};

/// Returns all keys of manifests.
#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    [FORMAT, METRIC]
        .into_iter()
        .flat_map(|shape| shape.keys.iter().copied())
}

/// How a file of a format is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Lines of text, each matched with patterns.
    Lines,
    /// Rows of cells.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document a line.
    JsonLines,
    Xml,
}

impl Layout {
    /// Returns whether it is read into a tree of values.
    pub(super) fn is_tree(self) -> bool {
        matches!(self, Self::Json | Self::JsonLines | Self::Xml)
    }
}

/// A format of result files.
#[derive(Debug)]
pub struct Format {
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Where the layout is documented; empty if not said.
    pub source: String,
    /// Tests of MMTests that write its files; empty if programs do.
    pub(super) tests: Vec<String>,
    pub(super) layout: Layout,
    /// The character between cells; white space if `None`.
    pub(super) separator: Option<char>,
    pub(super) has_headings: bool,
    pub(super) file: Option<Pattern>,
    pub(super) known: Vec<Known>,
    pub(super) contexts: Vec<Pattern>,
    /// Lines whose groups are fields of those before them, up to a context's.
    pub(super) later: Vec<Pattern>,
    /// Lines of a failed run: of the values that have the line's groups, or of the whole file.
    pub(super) failed: Vec<Pattern>,
    /// Lines that begin another run if they come again with the same groups.
    pub(super) again: Option<Pattern>,
    /// Whether numbers are written as the user's language has them.
    pub(super) are_numbers_local: bool,
    pub(super) facts: Vec<(String, Fact)>,
    pub(super) metrics: Vec<FormatMetric>,
    pub(super) is_joined: bool,
}

impl Format {
    /// Returns whether its files of one kernel are one run: it writes a file for each row.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Returns whether its files say when they were measured.
    #[must_use]
    pub fn has_start(&self) -> bool {
        self.facts.iter().any(|(name, _)| name == "started")
    }

    /// Returns whether tests of MMTests write its files, and not programs.
    #[must_use]
    pub fn is_of_mmtests(&self) -> bool {
        !self.tests.is_empty()
    }

    /// Returns the number of tests of MMTests that write its files.
    #[must_use]
    pub fn test_count(&self) -> usize {
        self.tests.len()
    }

    /// Returns how much of a test's name of MMTests the format knows: `redis-memtier` is more of
    /// `redis-memtier-small` than `redis`. `None` if it does not read that test.
    #[must_use]
    pub fn known_of_test(&self, test: &str) -> Option<usize> {
        let is_variant = |rest: &str| {
            rest.is_empty() || rest.starts_with(|c: char| c == '-' || c.is_ascii_digit())
        };
        let known = self
            .tests
            .iter()
            .filter(|name| test.strip_prefix(name.as_str()).is_some_and(is_variant));
        known.map(String::len).max()
    }
}

/// A sign that a file has the format.
#[derive(Debug)]
pub(super) enum Known {
    /// A line matches.
    Line(Pattern),
    /// There is a column with this heading.
    Heading(String),
    /// The path leads to a value.
    Path(Vec<Step>),
}

/// Where a fact about host or kernel is.
#[derive(Debug)]
pub(super) enum Fact {
    /// In the group `value` of the first matching line.
    Line(Pattern),
    /// In fields of the document, or of the first row.
    Fields(Template),
}

/// How one kind of rows is read.
#[derive(Debug)]
pub(super) struct FormatMetric {
    pub(super) name: Template,
    pub(super) unit: Template,
    /// `lower`, `higher`, `none`, a field with such a word; by the unit if `None`.
    pub(super) better: Option<Template>,
    pub(super) kernel: Option<Template>,
    pub(super) find: FindValue,
    /// The character between several values in one text.
    pub(super) split: Option<char>,
    pub(super) only: Vec<(FieldPath, Pattern)>,
    pub(super) except: Vec<(FieldPath, Pattern)>,
    pub(super) refuse: Vec<(FieldPath, Pattern)>,
    pub(super) pick: Pick,
    /// Whether the mean of the values is the sample: those of jobs that ran side by side.
    pub(super) is_mean: bool,
    /// The part of the file that a value is of; the field `part` if `None`.
    pub(super) part: Option<Template>,
    pub(super) form: Form,
    pub(super) factor: f64,
    pub(super) is_zero_unmeasured: bool,
    pub(super) instead: Instead,
    /// What is said of a value if all of its fields are there.
    pub(super) remark: Option<Template>,
    /// Whether a name with several units is a row of each.
    pub(super) are_units_rows: bool,
}

/// When a metric is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instead {
    Always,
    /// If no other metric has a row.
    OfRows,
    /// For rows that no other metric has.
    OfRow,
}

/// Where the values of a metric are.
#[derive(Debug)]
pub(super) enum FindValue {
    /// In the group `value` of matching lines, between two other lines.
    Line {
        pattern: Pattern,
        after: Option<Pattern>,
        until: Option<Pattern>,
    },
    /// In a column.
    Column(String),
    /// Below each value that the paths select, one below the other.
    Tree {
        each: Vec<Vec<Step>>,
        /// The first of these that has values.
        values: Vec<Vec<Step>>,
        /// Divisors, one for each value.
        per: Option<Vec<Step>>,
    },
}

/// A field of a record: as written, and as a path for trees.
#[derive(Debug)]
pub(super) struct FieldPath {
    pub(super) written: String,
    pub(super) steps: Option<Vec<Step>>,
}

impl FieldPath {
    /// Returns the path of a field that is a word, such as a named group.
    pub(super) fn word(name: &str) -> Self {
        Self {
            written: name.to_owned(),
            steps: None,
        }
    }
}

/// Parses the manifest of a format.
///
/// # Errors
/// If it is no TOML, has an unknown key, lacks one, or a value is invalid; with line and column.
pub fn format(manifest: &str) -> Result<Format, ManifestError> {
    let read = || {
        if manifest.len() > MANIFEST_MAX {
            let what = format!("a manifest has at most {MANIFEST_MAX} bytes");
            return Err(Mistake::new(&(0..0), what));
        }
        let document = DeTable::parse(manifest).map_err(|error| {
            let message: Vec<&str> = error.message().split_whitespace().collect();
            let what = format!("not TOML: {}", message.join(" "));
            Mistake::new(&error.span().unwrap_or_default(), what)
        })?;
        whole(document.get_ref())
    };
    read().map_err(|mistake| mistake.in_text(manifest))
}

fn whole(document: &DeTable<'_>) -> Result<Format, Mistake> {
    let section = Section::new(document, 0..0, FORMAT)?;
    let layouts = [
        ("lines", Layout::Lines),
        ("table", Layout::Table),
        ("json", Layout::Json),
        ("json-lines", Layout::JsonLines),
        ("xml", Layout::Xml),
    ];
    let layout = section
        .choice("layout", &layouts)?
        .ok_or_else(|| Mistake::new(section.span(), "the manifest without `layout`"))?;
    let has_headings = section
        .choice("headings", &[("first", true), ("none", false)])?
        .unwrap_or(true);
    let known = section.list("known")?.into_iter();
    let metrics = section.list("metric")?.into_iter();
    let format = Format {
        name: section.name("name", NAME_MAX)?,
        about: section.text("about")?.to_owned(),
        source: section
            .text_if_any("source")?
            .unwrap_or_default()
            .to_owned(),
        tests: section
            .list("tests")?
            .into_iter()
            .map(|value| Ok(text(value)?.to_owned()))
            .collect::<Result<_, _>>()?,
        layout,
        separator: letter(&section, "separator")?,
        has_headings,
        file: optional_pattern(&section, "file")?,
        known: known
            .map(|value| sign(value, layout, has_headings))
            .collect::<Result<_, _>>()?,
        contexts: section
            .list("context")?
            .into_iter()
            .map(|value| pattern(value, None))
            .collect::<Result<_, _>>()?,
        later: section
            .list("later")?
            .into_iter()
            .map(|value| pattern(value, None))
            .collect::<Result<_, _>>()?,
        failed: section
            .list("failed")?
            .into_iter()
            .map(|value| pattern(value, None))
            .collect::<Result<_, _>>()?,
        again: optional_pattern(&section, "runs")?,
        are_numbers_local: section
            .choice("numbers", &[("local", true)])?
            .unwrap_or(false),
        facts: facts(&section, layout)?,
        metrics: metrics
            .map(|value| metric(value, layout))
            .collect::<Result<_, _>>()?,
        is_joined: section.choice("join", &[("files", true)])?.unwrap_or(false),
    };
    if format.known.is_empty() && format.file.is_none() {
        let what = "the manifest without `known` and `file`: Marvin could not recognise a file";
        return Err(Mistake::new(section.span(), what));
    }
    if format.metrics.is_empty() {
        return Err(Mistake::new(
            section.span(),
            "a manifest without a [[metric]]",
        ));
    }
    Ok(format)
}

fn sign(value: &Value<'_>, layout: Layout, has_headings: bool) -> Result<Known, Mistake> {
    Ok(match layout {
        Layout::Table if has_headings => Known::Heading(text(value)?.to_owned()),
        Layout::Lines | Layout::Table => Known::Line(pattern(value, None)?),
        Layout::Json | Layout::JsonLines | Layout::Xml => Known::Path(path(value)?),
    })
}

fn facts(section: &Section<'_>, layout: Layout) -> Result<Vec<(String, Fact)>, Mistake> {
    members(section, "facts")?
        .into_iter()
        .map(|(name, value)| {
            let fact = if layout == Layout::Lines {
                Fact::Line(pattern(value, Some("value"))?)
            } else {
                Fact::Fields(template(value, layout)?)
            };
            Ok((name.to_owned(), fact))
        })
        .collect()
}

/// Returns the members of a table with texts; none if the key is missing.
fn members<'a>(section: &Section<'a>, key: &str) -> Result<Vec<(&'a str, &'a Value<'a>)>, Mistake> {
    let Some(value) = section.get(key) else {
        return Ok(Vec::new());
    };
    let table = value.get_ref().as_table();
    let table = table.ok_or_else(|| expected(value, "a table"))?;
    Ok(Section::all(table)
        .map(|(name, _, value)| (name, value))
        .collect())
}

fn metric(value: &Value<'_>, layout: Layout) -> Result<FormatMetric, Mistake> {
    let section = Section::from_value(value, METRIC)?;
    let picks = [
        ("all", Pick::All),
        ("first", Pick::First),
        ("last", Pick::Last),
        ("sum", Pick::Sum),
        ("mean", Pick::All),
    ];
    let forms = [
        ("clock", Form::Clock),
        ("grouped", Form::Grouped),
        ("duration", Form::Duration),
    ];
    let factor = section.number("factor")?.unwrap_or(1.0);
    if factor <= 0.0 || factor > FACTOR_MAX {
        let what = format!("`factor` is above 0, and at most {FACTOR_MAX}");
        return Err(Mistake::new(section.span(), what));
    }
    let optional = |key: &str| {
        section
            .get(key)
            .map(|value| template(value, layout))
            .transpose()
    };
    Ok(FormatMetric {
        name: optional("name")?
            .ok_or_else(|| Mistake::new(section.span(), "metric without `name`"))?,
        unit: optional("unit")?.unwrap_or_default(),
        better: optional("better")?,
        kernel: optional("kernel")?,
        find: find(&section, layout)?,
        split: letter(&section, "split")?,
        only: conditions(&section, "only", layout)?,
        except: conditions(&section, "except", layout)?,
        refuse: conditions(&section, "refuse", layout)?,
        pick: section.choice("pick", &picks)?.unwrap_or(Pick::All),
        is_mean: section
            .get("pick")
            .is_some_and(|value| value.get_ref().as_str() == Some("mean")),
        part: optional("part")?,
        form: section.choice("form", &forms)?.unwrap_or(Form::Plain),
        factor,
        is_zero_unmeasured: section
            .choice("zero", &[("unmeasured", true)])?
            .unwrap_or(false),
        instead: section
            .choice(
                "instead",
                &[("rows", Instead::OfRows), ("row", Instead::OfRow)],
            )?
            .unwrap_or(Instead::Always),
        remark: optional("remark")?,
        are_units_rows: section
            .choice("apart", &[("units", true)])?
            .unwrap_or(false),
    })
}

fn find(section: &Section<'_>, layout: Layout) -> Result<FindValue, Mistake> {
    let need = |key: &str| {
        let what = format!("metric without `{key}`");
        section
            .get(key)
            .ok_or_else(|| Mistake::new(section.span(), what))
    };
    let refuse = |keys: &[&str]| match keys.iter().find_map(|key| Some((key, section.get(key)?))) {
        Some((key, value)) => {
            let what = format!("`{key}` has no meaning in this layout");
            Err(Mistake::new(&value.span(), what))
        }
        None => Ok(()),
    };
    match layout {
        Layout::Lines => {
            refuse(&["each", "value", "per"])?;
            Ok(FindValue::Line {
                pattern: pattern(need("line")?, Some("value"))?,
                after: optional_pattern(section, "after")?,
                until: optional_pattern(section, "until")?,
            })
        }
        Layout::Table => {
            refuse(&["each", "line", "after", "until", "per"])?;
            Ok(FindValue::Column(text(need("value")?)?.to_owned()))
        }
        Layout::Json | Layout::JsonLines | Layout::Xml => {
            refuse(&["line", "after", "until"])?;
            let value = need("value")?;
            let alternatives = text(value)?.split('|');
            let values = alternatives
                .map(|written| steps(written).map_err(|why| Mistake::new(&value.span(), why)));
            Ok(FindValue::Tree {
                each: section
                    .list("each")?
                    .into_iter()
                    .map(path)
                    .collect::<Result<_, _>>()?,
                values: values.collect::<Result<_, _>>()?,
                per: section.get("per").map(path).transpose()?,
            })
        }
    }
}

fn conditions(
    section: &Section<'_>,
    key: &str,
    layout: Layout,
) -> Result<Vec<(FieldPath, Pattern)>, Mistake> {
    members(section, key)?
        .into_iter()
        .map(|(written, value)| {
            let field = FieldPath::new(written, layout.is_tree() && !is_own(written))
                .map_err(|why| Mistake::new(&value.span(), why))?;
            Ok((field, pattern(value, None)?))
        })
        .collect()
}

impl FieldPath {
    pub(super) fn new(written: &str, is_tree: bool) -> Result<Self, String> {
        let steps = if is_tree { Some(steps(written)?) } else { None };
        Ok(Self {
            written: written.to_owned(),
            steps,
        })
    }
}

fn template(value: &Value<'_>, layout: Layout) -> Result<Template, Mistake> {
    Template::new(text(value)?, layout.is_tree()).map_err(|why| Mistake::new(&value.span(), why))
}

fn path(value: &Value<'_>) -> Result<Vec<Step>, Mistake> {
    steps(text(value)?).map_err(|why| Mistake::new(&value.span(), why))
}

fn letter(section: &Section<'_>, key: &str) -> Result<Option<char>, Mistake> {
    let Some(value) = section.get(key) else {
        return Ok(None);
    };
    // A tab is a control character, which `text` refuses.
    let written = value.get_ref().as_str().unwrap_or_default();
    let mut letters = written.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(Some(letter)),
        _ => Err(Mistake::new(
            &value.span(),
            format!("`{key}` is one character"),
        )),
    }
}

fn optional_pattern(section: &Section<'_>, key: &str) -> Result<Option<Pattern>, Mistake> {
    section
        .get(key)
        .map(|value| pattern(value, None))
        .transpose()
}

/// Compiles a pattern, and checks that it has the required group.
fn pattern(value: &Value<'_>, group: Option<&str>) -> Result<Pattern, Mistake> {
    let pattern = Pattern::new(text(value)?)
        .map_err(|why| Mistake::new(&value.span(), format!("bad pattern: {why}")))?;
    match group {
        Some(group) if !pattern.has_group(group) => Err(Mistake::new(
            &value.span(),
            format!("the pattern has no group `(?<{group}>…)`"),
        )),
        _ => Ok(pattern),
    }
}
