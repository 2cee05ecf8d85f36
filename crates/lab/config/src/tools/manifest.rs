//! Parses a manifest in TOML into a tool. docs/tools.md has every key; a test reads its examples.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use model::{
    Column, Direction, Find, Pick, Reader, Server, Source, Steadiness, Table, Tool, ToolMetric,
    ToolWorkload,
};
use toml::de::DeTable;

use super::pattern::Pattern;
use crate::toml_document::{
    ManifestError, Mistake, Section, Shape, Value, did_you_mean, expected, list, text,
};

/// Largest manifest, in bytes.
const MANIFEST_MAX: usize = 64 << 10;
/// Longest name of a workload, which must fit a row of a report.
const NAME_MAX: usize = 18;
/// Longest name of a metric.
const METRIC_NAME_MAX: usize = 24;
/// Largest factor of a metric.
const FACTOR_MAX: f64 = 1e12;
/// Memory of a guest in MiB: default and maximum.
const MEMORY_MIB: u64 = 512;
const MEMORY_MIB_MAX: u64 = 4096;
/// Runs of the command: default and maximum. The first is not reported, as with every workload.
const RUNS: u64 = 4;
const RUNS_MAX: u64 = 100;
/// Seconds of guest time: default and maximum.
const LIMIT_S: u64 = 60;
const LIMIT_S_MAX: u64 = 3600;

const STEADINESS: [(&str, Steadiness); 2] = [
    ("steady", Steadiness::Steady),
    ("chaotic", Steadiness::Chaotic),
];

const TOOL: Shape<'static> = Shape {
    what: "the manifest",
    keys: &[
        "name",
        "about",
        "packages",
        "files",
        "environment",
        "workload",
    ],
};
const WORKLOAD: Shape<'static> = Shape {
    what: "workload",
    keys: &[
        "name",
        "stresses",
        "memory_mib",
        "parameters",
        "setup",
        "server",
        "prepare",
        "command",
        "runs",
        "limit_s",
        "steadiness",
        "known",
        "refuse",
        "metric",
    ],
};
const SERVER: Shape<'static> = Shape {
    what: "server",
    keys: &["command", "port"],
};
const METRIC: Shape<'static> = Shape {
    what: "metric",
    keys: &[
        "name",
        "unit",
        "better",
        "margin_percent",
        "line",
        "table",
        "json",
        "key",
        "from",
        "file",
        "after",
        "pick",
        "factor",
    ],
};
const TABLE: Shape<'static> = Shape {
    what: "table",
    keys: &["separator", "column", "row_column", "row"],
};

/// Returns all keys of manifests.
#[cfg(test)]
pub(crate) fn keys() -> impl Iterator<Item = &'static str> {
    [TOOL, WORKLOAD, SERVER, METRIC, TABLE]
        .into_iter()
        .flat_map(|shape| shape.keys.iter().copied())
}

/// Parses a manifest.
///
/// # Errors
/// If it is no TOML, has an unknown key, lacks one, or a value is invalid; with line and column.
pub fn tool(manifest: &str) -> Result<Tool, ManifestError> {
    let read = || {
        if manifest.len() > MANIFEST_MAX {
            return Err(Mistake::new(
                &(0..0),
                format!("a manifest has at most {MANIFEST_MAX} bytes"),
            ));
        }
        let document = DeTable::parse(manifest).map_err(|error| {
            Mistake::new(
                &error.span().unwrap_or_default(),
                format!("not TOML: {}", one_line(error.message())),
            )
        })?;
        whole(document.get_ref())
    };
    read().map_err(|fault| fault.in_text(manifest))
}

fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn whole(document: &DeTable<'_>) -> Result<Tool, Mistake> {
    let section = Section::new(document, 0..0, TOOL)?;
    let tool = Tool {
        name: section.name("name", NAME_MAX)?,
        about: section.text("about")?.to_owned(),
        packages: packages(&section)?,
        files: paths(&section, "files")?,
        environment: environment(&section)?,
        workloads: section
            .list("workload")?
            .into_iter()
            .map(workload)
            .collect::<Result<_, _>>()?,
        own: None,
    };
    let mut seen = BTreeSet::new();
    if let Some(twice) = tool
        .workloads
        .iter()
        .find(|workload| !seen.insert(&workload.name))
    {
        return Err(Mistake::new(
            section.span(),
            format!("two workloads `{}`", twice.name),
        ));
    }
    if tool.workloads.is_empty() {
        return Err(Mistake::new(
            section.span(),
            "a manifest without a [[workload]]",
        ));
    }
    Ok(tool)
}

/// Names of Debian packages: Debian Policy 5.6.1. They are looked up in signed lists, and all others are
/// refused.
fn packages(section: &Section<'_>) -> Result<Vec<String>, Mistake> {
    let mut packages = Vec::new();
    for value in section.list("packages")? {
        let name = text(value)?;
        if name.len() < 2
            || !name
                .chars()
                .all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c))
            || !name.starts_with(|c: char| c.is_ascii_alphanumeric())
        {
            return Err(expected(value, "the name of a Debian package"));
        }
        packages.push(name.to_owned());
    }
    if packages.is_empty() {
        return Err(Mistake::new(
            section.span(),
            "the manifest without `packages`",
        ));
    }
    Ok(packages)
}

/// Paths in the guest: absolute, without `..`.
fn paths(section: &Section<'_>, key: &str) -> Result<Vec<String>, Mistake> {
    section.list(key)?.into_iter().map(path).collect()
}

fn path(value: &Value<'_>) -> Result<String, Mistake> {
    let path = text(value)?;
    let upwards = path.split('/').any(|part| part == ".." || part == ".");
    if !path.starts_with('/') || path.ends_with('/') || path.contains("//") || upwards {
        return Err(expected(value, "a path from / on"));
    }
    Ok(path.to_owned())
}

fn environment(section: &Section<'_>) -> Result<Vec<(String, String)>, Mistake> {
    let Some(value) = section.get("environment") else {
        return Ok(Vec::new());
    };
    let table = value
        .get_ref()
        .as_table()
        .ok_or_else(|| expected(value, "a table"))?;
    Section::all(table)
        .map(|(name, span, value)| {
            if name.is_empty() || name.contains(['=', '\0']) || name.chars().any(char::is_control) {
                return Err(Mistake::new(
                    &span,
                    "not the name of an environment variable",
                ));
            }
            Ok((name.to_owned(), text(value)?.to_owned()))
        })
        .collect()
}

fn workload(value: &Value<'_>) -> Result<ToolWorkload, Mistake> {
    let section = Section::from_value(value, WORKLOAD)?;
    let mut parameters = Parameters::read(&section)?;
    let integer = |key, range, default| Ok(section.integer(key, range)?.unwrap_or(default) as u32);
    let command = section
        .get("command")
        .ok_or_else(|| Mistake::new(section.span(), "workload without `command`"))?;
    let workload = ToolWorkload {
        name: section.name("name", NAME_MAX)?,
        stresses: section.text("stresses")?.to_owned(),
        memory_mib: integer("memory_mib", 64..=MEMORY_MIB_MAX, MEMORY_MIB)?,
        setup: parameters.commands(&section, "setup")?,
        server: server(&section, &mut parameters)?,
        prepare: parameters.commands(&section, "prepare")?,
        command: parameters.command(command)?,
        runs: integer("runs", 2..=RUNS_MAX, RUNS)?,
        limit_s: integer("limit_s", 1..=LIMIT_S_MAX, LIMIT_S)?,
        steadiness: section
            .choice("steadiness", &STEADINESS)?
            .unwrap_or(Steadiness::Steady),
        known: patterns(&section, "known")?,
        refuse: patterns(&section, "refuse")?,
        metrics: section
            .list("metric")?
            .into_iter()
            .map(metric)
            .collect::<Result<_, _>>()?,
    };
    parameters.all_used()?;
    let mut seen = BTreeSet::new();
    if let Some(twice) = workload
        .metrics
        .iter()
        .find(|metric| !seen.insert(&metric.name))
    {
        return Err(Mistake::new(
            section.span(),
            format!("two metrics `{}`", twice.name),
        ));
    }
    if workload.metrics.is_empty() {
        return Err(Mistake::new(
            section.span(),
            "workload without a [[workload.metric]]",
        ));
    }
    Ok(workload)
}

fn server(
    section: &Section<'_>,
    parameters: &mut Parameters<'_>,
) -> Result<Option<Server>, Mistake> {
    let Some(value) = section.get("server") else {
        return Ok(None);
    };
    let section = Section::from_value(value, SERVER)?;
    let command = section
        .get("command")
        .ok_or_else(|| Mistake::new(section.span(), "server without `command`"))?;
    let port = section.integer("port", 1..=65_535)?;
    let port = port.ok_or_else(|| Mistake::new(section.span(), "server without `port`"))?;
    Ok(Some(Server {
        command: parameters.command(command)?,
        port: port as u16,
    }))
}

fn patterns(section: &Section<'_>, key: &str) -> Result<Vec<String>, Mistake> {
    section
        .list(key)?
        .into_iter()
        .map(|value| pattern(value, None))
        .collect()
}

/// Checks that a pattern compiles, and has the required group.
fn pattern(value: &Value<'_>, group: Option<&str>) -> Result<String, Mistake> {
    let written = text(value)?;
    let pattern = Pattern::new(written)
        .map_err(|why| Mistake::new(&value.span(), format!("bad pattern: {why}")))?;
    match group {
        Some(group) if !pattern.has_group(group) => Err(Mistake::new(
            &value.span(),
            format!("the pattern has no group `(?<{group}>…)`"),
        )),
        _ => Ok(written.to_owned()),
    }
}

fn metric(value: &Value<'_>) -> Result<ToolMetric, Mistake> {
    let section = Section::from_value(value, METRIC)?;
    let directions = [
        ("lower", Direction::LowerIsBetter),
        ("higher", Direction::HigherIsBetter),
    ];
    let better = section.choice("better", &directions)?;
    let margin_percent = section.number("margin_percent")?.unwrap_or(1.0);
    if margin_percent >= 100.0 {
        return Err(Mistake::new(
            section.span(),
            "`margin_percent` is less than 100",
        ));
    }
    Ok(ToolMetric {
        name: section.name("name", METRIC_NAME_MAX)?,
        unit: section.text("unit")?.to_owned(),
        direction: better.ok_or_else(|| Mistake::new(section.span(), "metric without `better`"))?,
        margin_percent,
        reader: Some(reader(&section)?),
    })
}

fn reader(section: &Section<'_>) -> Result<Reader, Mistake> {
    let picks = [
        ("only", Pick::Only),
        ("first", Pick::First),
        ("last", Pick::Last),
        ("all", Pick::All),
        ("sum", Pick::Sum),
    ];
    let factor = section.number("factor")?.unwrap_or(1.0);
    if factor <= 0.0 || factor > FACTOR_MAX {
        return Err(Mistake::new(
            section.span(),
            format!("`factor` is above 0, and at most {FACTOR_MAX}"),
        ));
    }
    Ok(Reader {
        source: source(section)?,
        after: section
            .get("after")
            .map(|value| pattern(value, None))
            .transpose()?,
        find: find(section)?,
        pick: section.choice("pick", &picks)?.unwrap_or(Pick::Only),
        factor,
    })
}

fn source(section: &Section<'_>) -> Result<Source, Mistake> {
    match (
        section.choice("from", &[("stdout", false), ("stderr", true)])?,
        section.get("file"),
    ) {
        (None, Some(value)) => Ok(Source::File(path(value)?)),
        (Some(_), Some(value)) => Err(Mistake::new(&value.span(), "either `from` or `file`")),
        (Some(true), None) => Ok(Source::Stderr),
        (Some(false) | None, None) => Ok(Source::Stdout),
    }
}

fn find(section: &Section<'_>) -> Result<Find, Mistake> {
    let mut found = Vec::new();
    if let Some(value) = section.get("line") {
        found.push(Find::Line(pattern(value, Some("value"))?));
    }
    if let Some(value) = section.get("table") {
        found.push(Find::Table(table(value)?));
    }
    if let Some(value) = section.get("json") {
        let path = text(value)?;
        super::json::steps(path).map_err(|why| Mistake::new(&value.span(), why))?;
        found.push(Find::Json(path.to_owned()));
    }
    if let Some(key) = section.text_if_any("key")? {
        found.push(Find::Key(key.to_owned()));
    }
    match found.pop() {
        Some(find) if found.is_empty() => Ok(find),
        _ => Err(Mistake::new(
            section.span(),
            "metric with exactly one of `line`, `table`, `json`, `key`",
        )),
    }
}

fn table(value: &Value<'_>) -> Result<Table, Mistake> {
    let section = Section::from_value(value, TABLE)?;
    let separator = section.text_if_any("separator")?;
    let value_column = column(&section, "column")?;
    let row_column = column(&section, "row_column")?;
    if matches!(value_column, Column::Named(_)) != matches!(row_column, Column::Named(_)) {
        return Err(Mistake::new(
            section.span(),
            "`column` and `row_column` are both headings or both numbers",
        ));
    }
    let mut letters = separator.unwrap_or_default().chars();
    Ok(Table {
        separator: match (letters.next(), letters.next()) {
            (letter, None) => letter,
            _ => return Err(Mistake::new(section.span(), "`separator` is one character")),
        },
        column: value_column,
        row_column,
        row: section.text("row")?.to_owned(),
    })
}

fn column(section: &Section<'_>, key: &str) -> Result<Column, Mistake> {
    if section
        .get(key)
        .is_some_and(|value| value.get_ref().is_integer())
    {
        let number = section.integer(key, 1..=1000)?.unwrap_or(1);
        return Ok(Column::Number(number as usize));
    }
    Ok(Column::Named(section.text(key)?.to_owned()))
}

/// Parameters of a workload: `{NAME}` in an argument is replaced.
struct Parameters<'a> {
    values: BTreeMap<&'a str, (Range<usize>, String)>,
    used: BTreeSet<&'a str>,
}

impl<'a> Parameters<'a> {
    fn read(section: &Section<'a>) -> Result<Self, Mistake> {
        let mut values = BTreeMap::new();
        if let Some(value) = section.get("parameters") {
            let table = value
                .get_ref()
                .as_table()
                .ok_or_else(|| expected(value, "a table"))?;
            for (name, span, value) in Section::all(table) {
                let number = value
                    .get_ref()
                    .as_integer()
                    .map(|number| Ok(number.as_str()));
                let filled = number.unwrap_or_else(|| text(value))?;
                values.insert(name, (span, filled.to_owned()));
            }
        }
        Ok(Self {
            values,
            used: BTreeSet::new(),
        })
    }

    /// Returns the programs of a list, each with its arguments.
    fn commands(&mut self, section: &Section<'_>, key: &str) -> Result<Vec<Vec<String>>, Mistake> {
        section
            .list(key)?
            .into_iter()
            .map(|value| self.command(value))
            .collect()
    }

    /// Returns a program with its arguments, parameters filled in.
    fn command(&mut self, value: &Value<'_>) -> Result<Vec<String>, Mistake> {
        let list = list(value)?
            .map(|value| self.fill(value))
            .collect::<Result<Vec<_>, _>>()?;
        match list.first() {
            Some(program) if program.starts_with('/') => Ok(list),
            _ => Err(expected(
                value,
                "a program by its path from / on, and its arguments",
            )),
        }
    }

    fn fill(&mut self, value: &Value<'_>) -> Result<String, Mistake> {
        let mut filled = String::new();
        let mut rest = text(value)?;
        while let Some((before, behind)) = rest.split_once('{') {
            filled.push_str(before);
            let (name, behind) = behind.split_once('}').unwrap_or((behind, ""));
            let known: Vec<&str> = self.values.keys().copied().collect();
            let Some((known_name, (_, filling))) = self.values.get_key_value(name) else {
                let guess = did_you_mean(&known, name);
                return Err(Mistake::new(
                    &value.span(),
                    format!("no parameter `{}`{guess}", name.escape_debug()),
                ));
            };
            filled.push_str(filling);
            self.used.insert(known_name);
            rest = behind;
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Checks that each parameter is used.
    fn all_used(&self) -> Result<(), Mistake> {
        match self
            .values
            .iter()
            .find(|(name, _)| !self.used.contains(*name))
        {
            Some((name, (span, _))) => Err(Mistake::new(
                span,
                format!(
                    "no argument has the parameter `{{{}}}`",
                    name.escape_debug()
                ),
            )),
            None => Ok(()),
        }
    }
}
