//! Parses a tool's output into samples according to its manifest, or returns an error that names
//! the line.

use model::{Column, Find, Pick, Reader, Source, Table, ToolMetric, ToolWorkload};

use super::json;
use super::pattern::Pattern;

/// Largest parsed output, in bytes.
pub const OUTPUT_MAX: usize = 1 << 20;
/// Longest parsed line, in bytes.
const LINE_MAX: usize = 16 << 10;
/// Most samples of one metric.
const SAMPLES_MAX: usize = 10_000;
/// Largest number: sums and products with a factor stay finite.
const NUMBER_MAX: f64 = 1e100;
/// Longest quote of a line in an error, in characters.
const QUOTED_MAX: usize = 60;

/// The output of a tool.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolOutput<'a> {
    pub stdout: &'a [u8],
    pub stderr: &'a [u8],
    /// The files that its manifest names, by path.
    pub files: &'a [(String, Vec<u8>)],
}

/// Why a tool's output gives no samples.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// A line reports a failure.
    #[error("the tool failed: line {line} of its {place}: {quoted}")]
    Refused {
        place: String,
        /// The line, from 1.
        line: usize,
        /// The beginning of it.
        quoted: String,
    },
    /// The manifest knows no version with this output.
    #[error("unknown output: line {line}, {quoted}, is of no version that the manifest knows")]
    UnknownVersion {
        /// The first line that is not empty, from 1.
        line: usize,
        /// The beginning of it.
        quoted: String,
    },
    #[error("unknown output: nothing was printed")]
    Nothing,
    /// The manifest's value is missing.
    #[error(
        "unknown output: line {line} is the last of its {place}, and `{metric}` was not there: {sought}"
    )]
    NotFound {
        metric: String,
        place: String,
        /// The last line, from 1; 0 for an empty output.
        line: usize,
        /// The missing pattern or path.
        sought: String,
    },
    /// There are several values, but the manifest wants one.
    #[error("unknown output: line {line} has a second value of `{metric}`")]
    Several {
        metric: String,
        /// The line, from 1.
        line: usize,
    },
    /// The value is no number.
    #[error("unknown output: line {line} has {quoted} for `{metric}`, which is no number")]
    NotANumber {
        metric: String,
        /// The line, from 1.
        line: usize,
        quoted: String,
    },
    /// The output is no valid JSON.
    #[error("unknown output: line {line} is not JSON: {why}")]
    NotJson {
        /// The line, from 1.
        line: usize,
        why: String,
    },
    /// The output exceeds the limit.
    #[error("unknown output: more than {OUTPUT_MAX} bytes on its {place}")]
    TooLong { place: String },
    /// A pattern or path of the manifest is invalid; reading the manifest would have refused it.
    #[error("bad manifest: {0}")]
    BadManifest(String),
}

/// Parses a tool's output: for each metric of the workload, in order, its samples.
///
/// # Errors
/// If the tool reports a failure, or a metric is not where the manifest says.
pub fn tool_samples(
    workload: &ToolWorkload,
    output: &ToolOutput<'_>,
) -> Result<Vec<Vec<f64>>, OutputError> {
    refuse(workload, output)?;
    check_version(workload, output)?;
    workload
        .metrics
        .iter()
        .map(|metric| samples(metric, output))
        .collect()
}

fn compile(written: &str) -> Result<Pattern, OutputError> {
    Pattern::new(written).map_err(OutputError::BadManifest)
}

/// A line of a tool's output.
#[derive(Debug, Clone, Copy)]
struct Line<'a> {
    /// From 1.
    number: usize,
    text: &'a str,
}

/// Splits text into lines; a carriage return begins a new line with the same number.
fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.split('\n').enumerate().flat_map(|(index, line)| {
        let whole = line.trim_end();
        let end = (0..=LINE_MAX.min(whole.len()))
            .rev()
            .find(|&end| whole.is_char_boundary(end))
            .unwrap_or(0);
        whole[..end].split('\r').map(move |part| Line {
            number: index + 1,
            text: part.trim_end(),
        })
    })
}

fn quote(line: &str) -> String {
    let mut quoted: String = line.trim().chars().take(QUOTED_MAX).collect();
    if quoted.len() < line.trim().len() {
        quoted.push('…');
    }
    format!("`{}`", quoted.escape_debug())
}

/// The text of one output.
fn content<'a>(
    output: &ToolOutput<'a>,
    source: &Source,
) -> Result<std::borrow::Cow<'a, str>, OutputError> {
    let bytes = match source {
        Source::Stdout | Source::Printed => output.stdout,
        Source::Stderr => output.stderr,
        Source::File(path) => output
            .files
            .iter()
            .find(|(name, _)| name == path)
            .map_or(&[][..], |(_, bytes)| bytes.as_slice()),
    };
    if bytes.len() > OUTPUT_MAX {
        return Err(OutputError::TooLong {
            place: place(source),
        });
    }
    Ok(String::from_utf8_lossy(bytes))
}

fn place(source: &Source) -> String {
    match source {
        Source::Stdout => "standard output".to_owned(),
        Source::Stderr => "standard error".to_owned(),
        Source::Printed => "standard output or standard error".to_owned(),
        Source::File(path) => format!("file {path}"),
    }
}

fn refuse(workload: &ToolWorkload, output: &ToolOutput<'_>) -> Result<(), OutputError> {
    for written in &workload.refuse {
        let pattern = compile(written)?;
        for source in [Source::Stdout, Source::Stderr] {
            let text = content(output, &source)?;
            if let Some(line) = lines(&text).find(|line| pattern.is_in(line.text)) {
                return Err(OutputError::Refused {
                    place: place(&source),
                    line: line.number,
                    quoted: quote(line.text),
                });
            }
        }
    }
    Ok(())
}

fn check_version(workload: &ToolWorkload, output: &ToolOutput<'_>) -> Result<(), OutputError> {
    if workload.known.is_empty() {
        return Ok(());
    }
    let patterns = workload
        .known
        .iter()
        .map(|written| compile(written))
        .collect::<Result<Vec<_>, _>>()?;
    let mut first = None;
    for source in [Source::Stdout, Source::Stderr] {
        let text = content(output, &source)?;
        if lines(&text).any(|line| patterns.iter().any(|pattern| pattern.is_in(line.text))) {
            return Ok(());
        }
        first = first.or_else(|| {
            let line = lines(&text).find(|line| !line.text.is_empty())?;
            Some((line.number, quote(line.text)))
        });
    }
    Err(first.map_or(OutputError::Nothing, |(line, quoted)| {
        OutputError::UnknownVersion { line, quoted }
    }))
}

fn samples(metric: &ToolMetric, output: &ToolOutput<'_>) -> Result<Vec<f64>, OutputError> {
    // The machine measures it.
    let Some(reader) = &metric.reader else {
        return Ok(Vec::new());
    };
    if reader.source != Source::Printed {
        return samples_in(&reader.source, metric, reader, output);
    }
    match samples_in(&Source::Printed, metric, reader, output) {
        Err(error @ (OutputError::NotFound { .. } | OutputError::NotJson { .. })) => {
            samples_in(&Source::Stderr, metric, reader, output).map_err(|on_stderr| {
                match on_stderr {
                    OutputError::NotFound { .. } | OutputError::NotJson { .. } => error,
                    // It is there, and is no single number.
                    other => other,
                }
            })
        }
        result => result,
    }
}

fn samples_in(
    source: &Source,
    metric: &ToolMetric,
    reader: &Reader,
    output: &ToolOutput<'_>,
) -> Result<Vec<f64>, OutputError> {
    let Reader {
        after,
        find,
        pick,
        factor,
        ..
    } = reader;
    let text = content(output, source)?;
    let mut rest: Vec<Line<'_>> = lines(&text).collect();
    if let Some(after) = after {
        let pattern = compile(after)?;
        let from = rest
            .iter()
            .position(|line| pattern.is_in(line.text))
            .map_or(rest.len(), |at| at + 1);
        rest.drain(..from);
    }
    let found = match find {
        Find::Line(written) => in_lines(&compile(written)?, &rest, metric)?,
        Find::Key(key) => behind_key(key, &rest, metric)?,
        Find::Table(table) => in_table(table, &rest, metric)?,
        Find::Json(path) => in_json(path, &text, &rest, metric)?,
        // `printed_values` reads them.
        Find::Printed => return Ok(Vec::new()),
    };
    let values = pick_values(*pick, found, metric)?;
    if values.is_empty() {
        let line = text.trim_end().lines().count();
        let sought = describe_search(reader);
        return Err(OutputError::NotFound {
            metric: metric.name.clone(),
            place: place(source),
            line,
            sought,
        });
    }
    Ok(values.into_iter().map(|value| value * factor).collect())
}

fn describe_search(reader: &Reader) -> String {
    let what = match &reader.find {
        Find::Line(pattern) => format!("a line with `{pattern}`"),
        Find::Key(key) => format!("a line `{key}: …`"),
        Find::Json(path) => format!("a number at {path}"),
        Find::Printed => "a number with a unit".to_owned(),
        Find::Table(table) => {
            format!(
                "column {} of row `{}` of column {}",
                describe_column(&table.column),
                table.row,
                describe_column(&table.row_column)
            )
        }
    };
    match &reader.after {
        Some(after) => format!("{what}, after one with `{after}`"),
        None => what,
    }
}

fn describe_column(column: &Column) -> String {
    match column {
        Column::Named(name) => format!("`{name}`"),
        Column::Number(number) => number.to_string(),
    }
}

/// Values with their line numbers.
type LineValues = Vec<(usize, f64)>;

fn number(word: &str, line: usize, metric: &ToolMetric) -> Result<(usize, f64), OutputError> {
    let word = word.trim();
    let ungrouped = without_separators(word);
    match ungrouped.as_deref().unwrap_or(word).parse::<f64>() {
        Ok(number) if number.abs() <= NUMBER_MAX => Ok((line, number)),
        _ => Err(OutputError::NotANumber {
            metric: metric.name.clone(),
            line,
            quoted: quote(word),
        }),
    }
}

/// Returns a number such as `1,234,567.8` without the commas between its thousands. `3,472` may be
/// a decimal comma: it stays, and is no number.
pub(crate) fn without_separators(word: &str) -> Option<String> {
    let (whole, has_fraction) = match word.split_once('.') {
        Some((whole, _)) => (whole, true),
        None => (word, false),
    };
    let mut groups = whole.trim_start_matches('-').split(',');
    let first = groups.next()?;
    let groups: Vec<&str> = groups.collect();
    let is_grouped = (1..=3).contains(&first.len())
        && groups.iter().all(|group| group.len() == 3)
        && (groups.len() > 1 || groups.len() == 1 && has_fraction);
    is_grouped.then(|| word.replace(',', ""))
}

fn in_lines(
    pattern: &Pattern,
    lines: &[Line<'_>],
    metric: &ToolMetric,
) -> Result<LineValues, OutputError> {
    lines
        .iter()
        .filter_map(|line| Some(number(pattern.value(line.text)?, line.number, metric)))
        .collect()
}

fn behind_key(
    key: &str,
    lines: &[Line<'_>],
    metric: &ToolMetric,
) -> Result<LineValues, OutputError> {
    let value = |text: &str| {
        let text = text.trim_start();
        let text = text.strip_prefix("- ").unwrap_or(text);
        let behind = text.strip_prefix(key)?.trim_start().strip_prefix(':')?;
        // The unit may follow the number without a space.
        let word = behind.split_whitespace().next().unwrap_or_default();
        let unit = word
            .rfind(|c: char| c.is_ascii_digit())
            .map_or(word.len(), |last| last + 1);
        Some(word[..unit].to_owned())
    };
    lines
        .iter()
        .filter_map(|line| Some(number(&value(line.text)?, line.number, metric)))
        .collect()
}

fn in_table(
    table: &Table,
    lines: &[Line<'_>],
    metric: &ToolMetric,
) -> Result<LineValues, OutputError> {
    let cells = |text: &str| -> Vec<String> {
        match table.separator {
            Some(separator) => text
                .split(separator)
                .map(|cell: &str| cell.trim().trim_matches('"').to_owned())
                .collect(),
            None => text.split_whitespace().map(str::to_owned).collect(),
        }
    };
    let mut places = match (&table.column, &table.row_column) {
        (Column::Number(column), Column::Number(row)) => Some((column - 1, row - 1)),
        _ => None,
    };
    let mut found = LineValues::new();
    for line in lines {
        let cells = cells(line.text);
        let Some((column, row)) = places else {
            places = headings(table, &cells);
            continue;
        };
        if cells.get(row).is_some_and(|cell| *cell == table.row)
            && let Some(cell) = cells.get(column)
        {
            found.push(number(cell, line.number, metric)?);
        }
    }
    Ok(found)
}

/// Returns the positions of the columns, if these are the headings.
fn headings(table: &Table, cells: &[String]) -> Option<(usize, usize)> {
    let position = |column: &Column| match column {
        Column::Named(name) => cells.iter().position(|cell| cell == name),
        Column::Number(number) => number.checked_sub(1),
    };
    Some((position(&table.column)?, position(&table.row_column)?))
}

/// JSON begins at the first line that looks like it: some tools print warnings before.
fn in_json(
    path: &str,
    text: &str,
    lines: &[Line<'_>],
    metric: &ToolMetric,
) -> Result<LineValues, OutputError> {
    let steps = json::steps(path).map_err(OutputError::BadManifest)?;
    let Some(line) = lines.iter().find(|line| line.text.starts_with(['{', '['])) else {
        return Ok(LineValues::new());
    };
    let first = line.number;
    let end_of = |line: usize| {
        text.match_indices('\n')
            .nth(line - 1)
            .map_or(0, |(at, _)| at + 1)
    };
    let begin = if first == 1 { 0 } else { end_of(first - 1) };
    let document = serde_json::Deserializer::from_str(&text[begin..])
        .into_iter()
        .next();
    let document: serde_json::Value = document
        .transpose()
        .map_err(|error: serde_json::Error| OutputError::NotJson {
            line: first - 1 + error.line(),
            why: error
                .to_string()
                .split(" at line")
                .next()
                .unwrap_or_default()
                .to_owned(),
        })?
        .unwrap_or_default();
    json::select(&document, &steps)
        .into_iter()
        .map(|value| match value.as_f64() {
            Some(number) if number.abs() <= NUMBER_MAX => Ok((first, number)),
            _ => Err(OutputError::NotANumber {
                metric: metric.name.clone(),
                line: first,
                quoted: quote(&value.to_string()),
            }),
        })
        .collect()
}

fn pick_values(
    pick: Pick,
    found: LineValues,
    metric: &ToolMetric,
) -> Result<Vec<f64>, OutputError> {
    let line = found.get(1).map(|(line, _)| *line);
    let mut values = found.into_iter().map(|(_, value)| value);
    Ok(match (pick, line) {
        (Pick::Only, Some(line)) => {
            return Err(OutputError::Several {
                metric: metric.name.clone(),
                line,
            });
        }
        (Pick::Only | Pick::First, _) => values.take(1).collect(),
        (Pick::Last, _) => values.next_back().into_iter().collect(),
        (Pick::All, _) => values.take(SAMPLES_MAX).collect(),
        (Pick::Sum, _) => {
            let values: Vec<f64> = values.collect();
            if values.is_empty() {
                Vec::new()
            } else {
                vec![values.iter().sum()]
            }
        }
    })
}
