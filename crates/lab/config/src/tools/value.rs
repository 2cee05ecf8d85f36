//! The numbers of a user's own program: `--value` as metrics. A manifest says the same in TOML.

use model::{Direction, Find, Pick, Reader, Source, ToolMetric};

use super::json;
use super::pattern::Pattern;

/// Differences of a printed number up to this count as same (%): a program prints few digits.
const MARGIN_PERCENT: f64 = 1.0;
/// Longest name of a row.
const NAME_MAX: usize = 24;
/// The name of a number without one.
const UNNAMED: &str = "value";
/// What follows a number of which more is better: a rate.
const RATES: [&str; 6] = ["/s", "per sec", "iops", "ps", "per_second", "fps"];

/// Why `--value` is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// Nothing is left behind the prefixes.
    #[error("it has no pattern")]
    Empty,
    /// The regular expression is wrong.
    #[error("{why}")]
    Pattern { why: String },
    /// No group says which part of the line is the number.
    #[error("put the number into brackets, such as 'time: ([0-9.]+)', or write json:PATH")]
    NoGroup,
    /// The path into JSON is wrong.
    #[error("{why}")]
    Path { why: String },
}

/// Returns the metrics of one `--value`: `[higher:|lower:][first:|last:|sum:|all:]` and a regular
/// expression or `json:PATH`. Each named group of the expression is a metric of that name; without
/// names the first group is the number.
///
/// Without `higher:` or `lower:`, more is better if the text behind the group is a rate (`/s`).
///
/// # Errors
/// If the expression or the path is wrong, or no group has the number.
pub fn program_values(written: &str) -> Result<Vec<ToolMetric>, ValueError> {
    let mut rest = written;
    let mut direction = None;
    let mut pick = Pick::Only;
    loop {
        rest = if let Some(rest) = rest.strip_prefix("higher:") {
            direction = Some(Direction::HigherIsBetter);
            rest
        } else if let Some(rest) = rest.strip_prefix("lower:") {
            direction = Some(Direction::LowerIsBetter);
            rest
        } else if let Some((found, rest)) = strip_pick(rest) {
            pick = found;
            rest
        } else {
            break;
        };
    }
    if rest.is_empty() {
        return Err(ValueError::Empty);
    }
    if let Some(path) = rest.strip_prefix("json:") {
        json::steps(path).map_err(|why| ValueError::Path { why })?;
        let name = path.rsplit(['.', ']']).find(|part| !part.is_empty());
        let name = name_of(name.unwrap_or(UNNAMED));
        let direction = direction.unwrap_or_else(|| guess_direction(path));
        return Ok(vec![metric(
            name,
            direction,
            Find::Json(path.to_owned()),
            pick,
        )]);
    }
    Pattern::new(rest).map_err(|why| ValueError::Pattern { why })?;
    let groups = find_groups(rest);
    let named: Vec<&Group> = groups.iter().filter(|group| group.name.is_some()).collect();
    let chosen = if named.is_empty() {
        groups.first().into_iter().collect()
    } else {
        named
    };
    if chosen.is_empty() {
        return Err(ValueError::NoGroup);
    }
    let metrics = chosen.into_iter().map(|group| {
        let name = name_of(group.name.as_deref().unwrap_or(UNNAMED));
        let behind = &rest[group.end..];
        let direction = direction.unwrap_or_else(|| guess_direction(behind));
        let pattern = only_group(rest, &groups, group);
        metric(name, direction, Find::Line(pattern), pick)
    });
    Ok(metrics.collect())
}

fn strip_pick(written: &str) -> Option<(Pick, &str)> {
    [
        ("first:", Pick::First),
        ("last:", Pick::Last),
        ("sum:", Pick::Sum),
        ("all:", Pick::All),
    ]
    .into_iter()
    .find_map(|(prefix, pick)| Some((pick, written.strip_prefix(prefix)?)))
}

fn metric(name: String, direction: Direction, find: Find, pick: Pick) -> ToolMetric {
    ToolMetric {
        name,
        unit: "as printed".to_owned(),
        direction,
        margin_percent: MARGIN_PERCENT,
        reader: Some(Reader {
            source: Source::Printed,
            after: None,
            find,
            pick,
            factor: 1.0,
        }),
    }
}

/// Returns a row's name of a word: letters, digits, `_` and `-`.
fn name_of(word: &str) -> String {
    let name: String = word
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c))
        .take(NAME_MAX)
        .collect();
    if name.is_empty() {
        UNNAMED.to_owned()
    } else {
        name
    }
}

/// Guesses by the unit which direction is better: more of a rate, less of all else.
fn guess_direction(text: &str) -> Direction {
    let text = text.to_ascii_lowercase().replace('\\', "");
    let unit: String = text
        .trim_start_matches([' ', ')', '+', '*', '?', 's'])
        .chars()
        .take(16)
        .collect();
    let is_rate = |text: &str| RATES.iter().any(|rate| text.contains(rate));
    if is_rate(&unit) || is_rate(&text) && text.contains("per_second") {
        Direction::HigherIsBetter
    } else {
        Direction::LowerIsBetter
    }
}

/// A capturing group of a regular expression.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: Option<String>,
    /// Where its content begins, and where the group ends, in bytes.
    content: usize,
    begin: usize,
    end: usize,
}

/// Returns the capturing groups of a valid regular expression, in the order of their beginnings.
fn find_groups(pattern: &str) -> Vec<Group> {
    let bytes = pattern.as_bytes();
    let mut groups: Vec<Group> = Vec::new();
    // The groups that are open, `None` for those that capture nothing.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut is_class = false;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'[' => is_class = true,
            b']' => is_class = false,
            b'(' if !is_class => {
                let rest = &pattern[at..];
                let named = ["(?<", "(?P<"].into_iter().find_map(|prefix| {
                    let name = rest.strip_prefix(prefix)?;
                    let (name, _) = name.split_once('>')?;
                    Some((name.to_owned(), prefix.len() + name.len() + 1))
                });
                let (name, head) = match named {
                    Some((name, head)) => (Some(name), head),
                    None => (None, 1),
                };
                if name.is_none() && rest.starts_with("(?") {
                    open.push(None);
                } else {
                    open.push(Some(groups.len()));
                    groups.push(Group {
                        name,
                        content: at + head,
                        begin: at,
                        end: pattern.len(),
                    });
                }
            }
            b')' if !is_class => {
                if let Some(Some(group)) = open.pop() {
                    groups[group].end = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    groups
}

/// Returns the expression with one group, which is called `value`.
fn only_group(pattern: &str, groups: &[Group], wanted: &Group) -> String {
    let mut written = String::new();
    let mut at = 0;
    for group in groups {
        written.push_str(&pattern[at..group.begin]);
        written.push_str(if group == wanted { "(?<value>" } else { "(?:" });
        at = group.content;
    }
    written.push_str(&pattern[at..]);
    written
}

#[cfg(test)]
mod tests {
    use model::{Direction, Find, ToolMetric};
    use proptest::prelude::*;

    use super::{ValueError, program_values};
    use crate::tools::output::{ToolOutput, tool_samples};

    fn show(metric: &ToolMetric) -> String {
        let find = match &metric.reader.as_ref().unwrap().find {
            Find::Line(pattern) => pattern.clone(),
            Find::Json(path) => format!("json:{path}"),
            other => format!("{other:?}"),
        };
        let better = match metric.direction {
            Direction::HigherIsBetter => "higher",
            _ => "lower",
        };
        format!("{} {better} {find}", metric.name)
    }

    fn shown(written: &str) -> Vec<String> {
        program_values(written).unwrap().iter().map(show).collect()
    }

    #[test]
    fn first_group_is_the_number() {
        assert_eq!(
            shown(r"TOTAL\.+\s+([\d.]+)s"),
            [r"value lower TOTAL\.+\s+(?<value>[\d.]+)s"]
        );
        assert_eq!(
            shown(r"(\d+) records/s"),
            [r"value higher (?<value>\d+) records/s"]
        );
    }

    #[test]
    fn named_groups_are_rows() {
        assert_eq!(
            shown(r"\(for (\d+)\) f= *(?<f>[\d]+)us [(] f2= *(?P<f2>\d+)us"),
            [
                r"f lower \(for (?:\d+)\) f= *(?<value>[\d]+)us [(] f2= *(?:\d+)us",
                r"f2 lower \(for (?:\d+)\) f= *(?:[\d]+)us [(] f2= *(?<value>\d+)us"
            ]
        );
    }

    #[test]
    fn prefixes_say_direction_and_choice() {
        assert_eq!(
            shown("higher:last:score (\\d+)"),
            ["value higher score (?<value>\\d+)"]
        );
        assert_eq!(
            shown("json:end.sum_sent.bits_per_second"),
            ["bits_per_second higher json:end.sum_sent.bits_per_second"]
        );
        assert_eq!(
            shown("lower:json:jobs[0].lat"),
            ["lat lower json:jobs[0].lat"]
        );
    }

    #[test]
    fn values_on_standard_error_are_found() {
        let workload = model::ToolWorkload {
            metrics: program_values(r"copied, ([\d.]+) s").unwrap(),
            ..crate::tool(TOOL).unwrap().workloads.remove(0)
        };
        let read = |stdout: &str, stderr: &str| {
            let output = ToolOutput {
                stdout: stdout.as_bytes(),
                stderr: stderr.as_bytes(),
                ..ToolOutput::default()
            };
            tool_samples(&workload, &output).map_err(|error| error.to_string())
        };
        let of_dd = "1 byte copied, 0.5 s\n";
        assert_eq!(read("words\n", of_dd), Ok(vec![vec![0.5]]));
        assert_eq!(read("2 bytes copied, 2 s\n", of_dd), Ok(vec![vec![2.0]]));
        insta::assert_snapshot!(read("words\n", "").unwrap_err(), @r"unknown output: line 1 is the last of its standard output or standard error, and `value` was not there: a line with `copied, (?<value>[\d.]+) s`");
        assert!(
            read("", &of_dd.repeat(2))
                .unwrap_err()
                .contains("second value")
        );
    }

    #[test]
    fn unusable_values_are_refused() {
        let refused = |written: &str| program_values(written).unwrap_err().to_string();
        insta::assert_snapshot!(refused("last:"), @"it has no pattern");
        insta::assert_snapshot!(refused("time: \\d+"), @"put the number into brackets, such as 'time: ([0-9.]+)', or write json:PATH");
        assert!(matches!(
            program_values("(a"),
            Err(ValueError::Pattern { .. })
        ));
        assert!(matches!(
            program_values("json:a["),
            Err(ValueError::Path { .. })
        ));
    }

    proptest! {
        #[test]
        fn any_text_is_a_value_or_refused(written in "\\PC{0,40}") {
            for metric in program_values(&written).into_iter().flatten() {
                let workload = model::ToolWorkload {
                    metrics: vec![metric],
                    ..crate::tool(TOOL).unwrap().workloads.remove(0)
                };
                let output = ToolOutput { stdout: b"12", ..ToolOutput::default() };
                // The pattern that was made of it is valid, too.
                let read = tool_samples(&workload, &output);
                prop_assert!(!matches!(read, Err(crate::OutputError::BadManifest(_))), "{read:?}");
            }
        }
    }

    const TOOL: &str = "name = 'x'\nabout = 'x'\npackages = ['xx']\n[[workload]]\nname = 'x'\nstresses = 'x'\n\
        command = ['/x']\n[[workload.metric]]\nname = 'a'\nunit = 's'\nbetter = 'lower'\nkey = 'a'\n";
}
