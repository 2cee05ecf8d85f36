//! The lines that a commit changes, and how often workloads execute them, in words; how near they
//! come to functions that none of them enters.

use crate::commit_table::{ChangedFunction, CommitRow, FILES_SHOWN};

/// Groups of lines of a function that are named.
const GROUPS_SHOWN: usize = 3;
/// Lines that are executed as often as this have the same number in a sentence.
const SAME: f64 = 0.005;

/// The changed lines of a function that have code.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchedLines {
    /// The function.
    pub function: String,
    /// Its file, from the top of the source.
    pub file: String,
    /// The lines, in order; those that only the kernel before the commit has come last.
    pub lines: Vec<PatchedLine>,
}

/// A changed line.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchedLine {
    /// Its number in the file.
    pub line: u32,
    /// Whether the commit removes it: number and executions are those before.
    pub is_removed: bool,
    /// Its executions by the workload that executes it most; `None` if none does.
    pub executed: Option<LineExecution>,
}

/// Executions of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct LineExecution {
    /// The workload.
    pub workload: String,
    /// Executions per operation.
    pub per_operation: f64,
}

impl PatchedLines {
    /// Returns how many of its lines are executed.
    #[must_use]
    pub fn executed(&self) -> usize {
        let executed = self.lines.iter().filter(|line| line.executed.is_some());
        executed.count()
    }

    /// Says it in a line.
    #[must_use]
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} {}: {} of {} changed lines executed",
            self.file,
            self.function,
            self.executed(),
            self.lines.len()
        );
        let mut parts = self.describe_executed();
        let never: Vec<&PatchedLine> = self.never().collect();
        if !never.is_empty() {
            parts.push(format!("never: {}", name(&never)));
        }
        if !parts.is_empty() {
            text.push_str(&[" (", &parts.join("; "), ")"].concat());
        }
        text
    }

    /// Returns the lines that no workload executes.
    pub fn never(&self) -> impl Iterator<Item = &PatchedLine> {
        self.lines.iter().filter(|line| line.executed.is_none())
    }

    /// Describes lines that are executed, those with the same number together.
    fn describe_executed(&self) -> Vec<String> {
        let mut groups: Vec<(&LineExecution, Vec<&PatchedLine>)> = Vec::new();
        for line in &self.lines {
            let Some(executed) = &line.executed else {
                continue;
            };
            let group = groups.iter_mut().find(|(of, lines)| {
                of.workload == executed.workload
                    && (of.per_operation - executed.per_operation).abs() < SAME
                    && lines[0].is_removed == line.is_removed
            });
            match group {
                Some((_, lines)) => lines.push(line),
                None => groups.push((executed, vec![line])),
            }
        }
        groups.sort_by(|(one, _), (other, _)| other.per_operation.total_cmp(&one.per_operation));
        let more = groups.len().saturating_sub(GROUPS_SHOWN);
        let mut before = "";
        let mut parts = Vec::new();
        for (executed, lines) in groups.into_iter().take(GROUPS_SHOWN) {
            let plural = if lines.len() == 1 { "" } else { "s" };
            let by = if executed.workload == before {
                String::new()
            } else {
                format!(" by {}", executed.workload)
            };
            before = &executed.workload;
            let number = match executed.per_operation {
                small if small < SAME => "less than 0.01".to_owned(),
                number => format!("{number:.2}"),
            };
            parts.push(format!("line{plural} {}: {number}/op{by}", name(&lines)));
        }
        if more > 0 {
            parts.push(format!("{more} more numbers"));
        }
        parts
    }
}

/// How near workloads come to a function that none enters.
#[derive(Debug, Clone, PartialEq)]
pub enum Reached {
    /// A function that they execute calls it, or calls one that calls it.
    Caller {
        /// The nearest.
        caller: String,
        /// The function between them.
        over: Option<String>,
        /// The workload that spends the largest part in the caller.
        workload: String,
    },
    /// They execute none of its callers, nor of theirs.
    NoCaller,
    /// They do not make this system call.
    SystemCall,
    /// Nothing calls it directly; this data has its address.
    Pointer(String),
    /// Its callers are not known.
    Unknown,
}

impl Reached {
    /// Says it in a few words; nothing if it is not known.
    pub(crate) fn words(&self) -> Option<String> {
        Some(match self {
            Self::Caller {
                caller,
                over: None,
                workload,
            } => format!("its caller {caller} is, by {workload}"),
            Self::Caller {
                caller,
                over: Some(over),
                workload,
            } => format!("{caller} is, by {workload}, and calls {over}, which calls it"),
            Self::NoCaller => "no caller is entered either".to_owned(),
            Self::SystemCall => "none makes this system call".to_owned(),
            Self::Pointer(data) => format!("called through {data}"),
            Self::Unknown => return None,
        })
    }
}

impl CommitRow {
    /// Says which of its lines workloads execute, a line for each function that they enter.
    pub(crate) fn describe_lines(&self) -> Vec<String> {
        let is_entered = |lines: &&PatchedLines| {
            let mut named = self.functions.iter();
            let named = named.find(|function| function.name == lines.function);
            named.is_none_or(ChangedFunction::is_entered)
        };
        let mut said: Vec<String> = self
            .lines
            .iter()
            .filter(is_entered)
            .map(PatchedLines::sentence)
            .collect();
        if said.len() > FILES_SHOWN {
            let more = said.len() - FILES_SHOWN;
            said.truncate(FILES_SHOWN);
            said.push(format!("changed lines of {more} more functions"));
        }
        said
    }
}

/// Names lines: `7-9, 12, removed 14`.
fn name(lines: &[&PatchedLine]) -> String {
    let mut ranges: Vec<(bool, u32, u32)> = Vec::new();
    for line in lines {
        match ranges.last_mut() {
            Some((is_removed, _, last))
                if *is_removed == line.is_removed && *last + 1 == line.line =>
            {
                *last = line.line;
            }
            _ => ranges.push((line.is_removed, line.line, line.line)),
        }
    }
    let more = ranges.len().saturating_sub(GROUPS_SHOWN + 1);
    let shown = ranges.iter().take(GROUPS_SHOWN + 1);
    let mut names: Vec<String> = shown
        .map(|(is_removed, first, last)| {
            let removed = if *is_removed { "removed " } else { "" };
            if first == last {
                format!("{removed}{first}")
            } else {
                format!("{removed}{first}-{last}")
            }
        })
        .collect();
    if more > 0 {
        names.push(format!("{more} more"));
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::{LineExecution, PatchedLine, PatchedLines};
    use crate::commit_table::tests::row;
    use crate::commit_table::{
        ChangedFunction, CommitCell, CommitRow, CommitVerdict, Entered, State, table,
    };

    fn line(line: u32, per_operation: Option<f64>) -> PatchedLine {
        PatchedLine {
            line,
            is_removed: false,
            executed: per_operation.map(|per_operation| LineExecution {
                workload: "fork-exit".to_owned(),
                per_operation,
            }),
        }
    }

    #[test]
    fn lines_are_said_in_one_sentence() {
        let mut lines = PatchedLines {
            function: "copy_fs".to_owned(),
            file: "kernel/fork.c".to_owned(),
            lines: vec![
                line(10, Some(1.0)),
                line(11, Some(1.0)),
                line(12, None),
                line(14, Some(50.0)),
                line(20, None),
            ],
        };
        assert_eq!(
            lines.sentence(),
            "kernel/fork.c copy_fs: 3 of 5 changed lines executed (line 14: 50.00/op by fork-exit; \
             lines 10-11: 1.00/op; never: 12, 20)"
        );
        lines.lines = vec![PatchedLine {
            is_removed: true,
            ..line(7, Some(0.0001))
        }];
        assert_eq!(
            lines.sentence(),
            "kernel/fork.c copy_fs: 1 of 1 changed lines executed (line removed 7: less than 0.01/op by fork-exit)"
        );
        lines.lines = (1..20)
            .step_by(2)
            .map(|number| line(number, None))
            .collect();
        assert!(lines.sentence().ends_with("(never: 1, 3, 5, 7, 6 more)"));
    }

    #[test]
    fn lines_that_nothing_executes_are_not_measured() {
        let within = Entered::Within {
            host: "copy_process".to_owned(),
            workload: "fork-exit".to_owned(),
            calls: 1.0,
        };
        let same = State::Compared(vec![CommitCell::Same; 2]);
        let mut changed = row('2', "fork: refuse flags", same);
        changed.functions = vec![ChangedFunction {
            name: "copy_fs".to_owned(),
            entered: within,
        }];
        changed.lines = vec![PatchedLines {
            function: "copy_fs".to_owned(),
            file: "kernel/fork.c".to_owned(),
            lines: vec![line(7, None), line(8, None)],
        }];
        let verdict = |row: &CommitRow| row.verdict();
        assert_eq!(verdict(&changed), CommitVerdict::NotMeasured);
        let rows = [row('0', "base", State::Base), changed.clone()];
        let names = ["getppid", "fork-exit"];
        insta::assert_snapshot!("never_executed", table("a..b, 1 commit", &rows, &names));
        let mut other = changed.clone();
        other.executes_more = true;
        assert_eq!(verdict(&other), CommitVerdict::Same);
        let mut elsewhere = changed.clone();
        elsewhere.functions[0].name = "copy_mm".to_owned();
        assert_eq!(verdict(&elsewhere), CommitVerdict::Same);
        changed.lines[0].lines[1] = line(8, Some(1.0));
        assert_eq!(verdict(&changed), CommitVerdict::Same);
    }
}
