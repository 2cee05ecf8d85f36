//! Reads published reports: mails of the kernel test robot (0-day, LKP-tests), also quoted in a
//! reply. It says what changed, by how much, in which counters and functions. Decoding the mail and
//! running a workload are left to the caller; which one is on that path is `paths.rs`'s.

mod paths;

pub use paths::workloads_on_path;

use std::iter::Peekable;
use std::str::SplitWhitespace;

/// The line above the numbers of a test.
const TABLE: &str = "%stddev     %change         %stddev";
/// The names before a function's share of the profile: itself, and with what it calls.
const SELF: &str = "perf-profile.self.cycles-pp.";
const WITH_CALLEES: &str = "perf-profile.children.cycles-pp.";

/// Instructions of an operation, and all.
const PATH_LENGTH: &str = "perf-stat.overall.path-length";
const INSTRUCTIONS: &str = "perf-stat.total.instructions";

/// How a line of the report changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Moved {
    /// By so many percent.
    Percent(f64),
    /// By so many points: the line is a share.
    Points(f64),
}

/// One line of the report's first table.
#[derive(Debug, Clone, PartialEq)]
pub struct Stat {
    /// Its name: `perf-stat.overall.cpi`.
    pub name: String,
    /// The mean before the commit.
    pub base: f64,
    /// The mean with it.
    pub new: f64,
    /// How it changed, as the report says.
    pub moved: Moved,
}

/// A report on one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedReport {
    /// The whole id of the commit.
    pub commit: String,
    /// Its title.
    pub title: String,
    /// The abbreviated id of its parent, if the report has a table.
    pub parent: Option<String>,
    /// The suite: `will-it-scale`.
    pub testcase: String,
    /// Its parameters, in the report's order: `test`, `lseek1`.
    pub parameters: Vec<(String, String)>,
    /// What changed: `will-it-scale.per_thread_ops`.
    pub metric: String,
    /// By how much, in percent, never negative: mails write a regression with and without a sign.
    pub change_percent: f64,
    /// Whether the robot calls it a regression.
    pub is_regression: bool,
    /// The lines of its first table.
    pub stats: Vec<Stat>,
}

/// Why a mail is no report.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAReport {
    /// A part of it is missing.
    #[error("no report of the kernel test robot: it has no line `{0}`")]
    Lacks(&'static str),
}

impl PublishedReport {
    /// Reads the text of a mail, which may quote the report.
    ///
    /// # Errors
    /// If it is no report of the robot on a change of performance.
    pub fn read(text: &str) -> Result<Self, NotAReport> {
        Self::read_text(text).or_else(|why| {
            let unquoted: String = text.lines().map(unquote).collect();
            Self::read_text(&unquoted).map_err(|_| why)
        })
    }

    fn read_text(text: &str) -> Result<Self, NotAReport> {
        const NOTICED: &str = "noticed a -7.7% regression of METRIC";
        let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let noticed = noticed(&joined).ok_or(NotAReport::Lacks(NOTICED))?;
        let (commit, title) = commit(&joined).ok_or(NotAReport::Lacks("commit: ID (\"TITLE\")"))?;
        let testcase = text
            .lines()
            .find_map(|line| {
                let line = line.trim();
                let word = line.strip_prefix("in ").unwrap_or(line);
                word.strip_prefix("testcase:").map(str::trim)
            })
            .ok_or(NotAReport::Lacks("testcase: NAME"))?;
        let table = text.split_once(TABLE).map(|(_, table)| table);
        Ok(Self {
            commit,
            title,
            parent: text.split_once(TABLE).and_then(|(head, _)| parent(head)),
            testcase: testcase.to_owned(),
            parameters: parameters(text),
            metric: noticed.metric,
            change_percent: noticed.percent.abs(),
            is_regression: noticed.is_regression,
            stats: table.map(stats).unwrap_or_default(),
        })
    }

    /// Returns a parameter's value.
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.parameters.iter();
        let (_, value) = parameters.find(|(known, _)| known == name)?;
        Some(value)
    }

    /// Returns how much a line of perf-stat changed, in percent.
    #[must_use]
    pub fn counter_percent(&self, name: &str) -> Option<f64> {
        let stat = self.stats.iter().find(|stat| stat.name == name)?;
        match stat.moved {
            Moved::Percent(percent) => Some(percent),
            Moved::Points(_) => None,
        }
    }

    /// Returns how much the instructions of one operation changed, in percent: the path length, or all
    /// instructions by the work that was done. A test whose time changed does the same work in
    /// each run; one of fixed time does as much as its metric says.
    #[must_use]
    pub fn instructions_percent(&self) -> Option<f64> {
        if let Some(percent) = self.counter_percent(PATH_LENGTH) {
            return Some(percent);
        }
        let all = self.counter_percent(INSTRUCTIONS)?;
        let time = format!("{}.time.elapsed_time", self.testcase);
        if self.counter_percent(&time).is_some() {
            return Some(all);
        }
        let is_rate = ["ops", "/s", "per_", "per-", "_iops", "throughput"]
            .iter()
            .any(|part| self.metric.contains(part));
        let sign = if self.is_regression { -1.0 } else { 1.0 };
        let work = 1.0 + sign * self.change_percent / 100.0;
        (is_rate && work > 0.0).then(|| 100.0 * ((1.0 + all / 100.0) / work - 1.0))
    }

    /// Returns how much the cycles of one operation changed, in percent: instructions by cycles of
    /// an instruction. The robot lists only what changed: without the line, the latter did not.
    #[must_use]
    pub fn cycles_percent(&self) -> Option<f64> {
        let instructions = self.instructions_percent()?;
        let per_instruction = self
            .counter_percent("perf-stat.overall.cpi")
            .unwrap_or_default();
        let factor = (1.0 + instructions / 100.0) * (1.0 + per_instruction / 100.0);
        Some(100.0 * (factor - 1.0))
    }

    /// Returns the functions whose share of the profile changed, with by how many points, the largest
    /// change first: of their own shares or, in a report without these, of those with what they call.
    #[must_use]
    pub fn functions(&self) -> Vec<(&str, f64)> {
        let own = self.shares(SELF);
        if own.is_empty() {
            self.shares(WITH_CALLEES)
        } else {
            own
        }
    }

    fn shares(&self, prefix: &str) -> Vec<(&str, f64)> {
        let mut functions = Vec::new();
        for stat in &self.stats {
            if let (Some(function), Moved::Points(points)) =
                (stat.name.strip_prefix(prefix), stat.moved)
            {
                functions.push((function, points));
            }
        }
        functions.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
        functions
    }
}

/// Returns a line without the marks of a reply.
fn unquote(line: &str) -> String {
    let text = line.trim_start_matches(['>', ' ']);
    let has_tab = text.starts_with('\t');
    format!("{}{}\n", if has_tab { "" } else { " " }, text)
}

/// What the robot noticed.
struct Noticed {
    metric: String,
    percent: f64,
    is_regression: bool,
}

/// Reads `noticed a -7.7% regression of METRIC` from text in one line.
fn noticed(text: &str) -> Option<Noticed> {
    let (_, rest) = text.split_once("noticed a")?;
    let mut words = rest
        .trim_start_matches('n')
        .split(' ')
        .filter(|word| !word.is_empty());
    let percent = words.next()?.strip_suffix('%')?;
    let percent = finite(percent)?;
    let kind = words.next()?;
    let is_regression = match kind {
        "regression" => true,
        "improvement" => false,
        _ => return None,
    };
    let metric = words.nth(1)?;
    Some(Noticed {
        metric: metric.to_owned(),
        percent,
        is_regression,
    })
}

/// Reads `commit: ID ("TITLE")` from text in one line.
fn commit(text: &str) -> Option<(String, String)> {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once("commit: ") {
        rest = after;
        let (id, title) = after.split_once(" (\"")?;
        let is_id = (7..=40).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_id {
            let (title, _) = title.split_once("\")")?;
            return Some((id.to_owned(), title.to_owned()));
        }
    }
    None
}

/// Returns the first abbreviated id below the last `commit:` above a table.
fn parent(head: &str) -> Option<String> {
    let (_, commits) = head.rsplit_once("commit:")?;
    let id = commits.split_whitespace().next()?;
    let is_id = id.len() >= 7 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| id.to_owned())
}

/// Returns the indented `NAME: VALUE` below `parameters:`.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut lines = text.lines();
    let mut parameters = Vec::new();
    if !lines.any(|line| line.trim_end().ends_with("parameters:")) {
        return parameters;
    }
    for line in lines.skip_while(|line| line.trim().is_empty()) {
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        if !line.starts_with(char::is_whitespace) || name.contains(' ') {
            break;
        }
        parameters.push((name.to_owned(), value.trim().to_owned()));
    }
    parameters
}

/// Returns the lines of a table, up to the next one.
fn stats(table: &str) -> Vec<Stat> {
    table
        .lines()
        .skip(2)
        .take_while(|line| {
            !line.trim_start().starts_with("===") && !line.trim_start().starts_with("***")
        })
        .filter_map(stat)
        .collect()
}

/// Largest number that a report may have: more are no measurements, and their products overflow.
const NUMBER_MAX: f64 = 1e18;

fn finite(word: &str) -> Option<f64> {
    let number: f64 = word.parse().ok()?;
    (number.abs() <= NUMBER_MAX).then_some(number)
}

/// Takes a number and the spread that may follow it: `1234 ± 2%`. A mail that names no charset or
/// the wrong one has other characters beside the sign or for it.
fn number(words: &mut Peekable<SplitWhitespace<'_>>) -> Option<f64> {
    let number = finite(words.next()?)?;
    let is_sign = |word: &&str| !word.starts_with(|first: char| first.is_ascii());
    if let Some(sign) = words.next_if(is_sign)
        && !sign.ends_with('%')
    {
        words.next()?;
    }
    Some(number)
}

/// Reads `1234 ± 2%     +7.7%    1330 ± 3%  NAME`; `None` if it is anything else.
fn stat(line: &str) -> Option<Stat> {
    let mut words = line.split_whitespace().peekable();
    let base = number(&mut words)?;
    let moved = words.next()?;
    let moved = match moved.strip_suffix('%') {
        Some(percent) => Moved::Percent(finite(percent)?),
        None if moved.starts_with(['+', '-']) => Moved::Points(finite(moved)?),
        None => return None,
    };
    let new = number(&mut words)?;
    let name = words.next()?.to_owned();
    Some(Stat {
        name,
        base,
        new,
        moved,
    })
}

#[cfg(test)]
mod tests;
