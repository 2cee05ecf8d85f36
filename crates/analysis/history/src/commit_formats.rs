//! A series for programs and mails: JSON, markdown, a note below `---`, trailers, b4's checks,
//! JUnit. `commit_table` has the table and the verdicts.

use document::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use model::sanitize_line;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::commit_lines::{PatchedLine, PatchedLines};
use crate::commit_table::{
    CommitCell, CommitRow, CommitVerdict, Entered, State, shorten, split_machine, workloads,
};
use crate::hunks_alone::HunksAlone;

/// Lines of a note: a cover letter has no room for more.
const NOTE_LINES: usize = 20;
/// Characters of a line of a note.
const NOTE_LINE: usize = 72;
/// Workloads of a commit that are named in one line.
const WORKLOADS_SHOWN: usize = 3;

/// The answer of a series.
#[derive(Debug, Clone)]
pub struct SeriesAnswer<'a> {
    /// What was measured, in a line.
    pub title: String,
    /// The command that measures it again.
    pub reproduce: String,
    /// The base, and each commit or patch.
    pub rows: &'a [CommitRow],
    /// The workloads, in the order of the rows' cells.
    pub workloads: &'a [&'a str],
    /// Each hunk alone, if they were measured.
    pub alone: Option<&'a HunksAlone>,
}

/// A series of commits or patches, each compared with the one before it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CommitsDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// What was measured, in a line.
    title: String,
    /// The command that measures it again.
    reproduce: String,
    /// How many workloads were measured.
    workloads: usize,
    /// The base, and each commit or patch.
    commits: Vec<CommitDocument>,
    /// Each hunk alone on the base; null without --hunks.
    hunks_alone: Option<HunksAlone>,
}

/// A commit or patch.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct CommitDocument {
    /// The abbreviated hash, or the number of the patch.
    commit: String,
    /// The first line of its message.
    subject: String,
    /// base, equal, same, compiled differently, better, worse, unclear, not measured, or failed.
    verdict: &'static str,
    /// Why it does not apply or build; null if it does.
    failure: Option<String>,
    /// Code that it changes and that this config does not compile.
    not_compiled: Vec<String>,
    /// The functions that it changes, as far as its diff names them.
    functions: Vec<FunctionDocument>,
    /// The lines that it changes and that have code, as far as that is known.
    lines: Vec<LinesDocument>,
    /// Workloads that execute the same code as before it, so that they are expected equal.
    same_code: usize,
    /// Those of them with other values.
    same_code_differing: usize,
    /// Each of them.
    expected_equal: Vec<ExpectedEqual>,
    /// The workloads that it changes.
    changes: Vec<WorkloadChange>,
}

/// A function that a commit changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct FunctionDocument {
    /// Its name.
    function: String,
    /// entered, never entered, not compiled, or no code of its own.
    entered: &'static str,
    /// The function that workloads enter and that it is inlined into; null if it has code of its
    /// own.
    within: Option<String>,
    /// The workload that spends the largest part in it; null if none executes it.
    workload: Option<String>,
    /// Executions per operation of that workload; of an inlined function, of the one around it.
    calls: Option<f64>,
    /// Its own instructions per operation.
    instructions: Option<f64>,
    /// The same before the commit; null if the workload did not execute it.
    instructions_before: Option<f64>,
    /// How near workloads come to a function that none enters; null if that is not known.
    reached: Option<String>,
}

/// The changed lines of a function.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct LinesDocument {
    /// The function.
    function: String,
    /// Its file, from the top of the source.
    file: String,
    /// The lines.
    lines: Vec<LineDocument>,
}

/// A changed line with code.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct LineDocument {
    /// Its number in the file.
    line: u32,
    /// Whether the commit removes it: number and executions are those before.
    removed: bool,
    /// The workload that executes it most; null if none does.
    workload: Option<String>,
    /// Executions per operation of that workload.
    executions: Option<f64>,
}

/// A workload that executes the same code as before a commit.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ExpectedEqual {
    /// The workload.
    workload: String,
    /// The difference in percent, positive is better; null if it has no value.
    difference_percent: Option<f64>,
}

/// A workload that a commit changes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct WorkloadChange {
    /// The workload.
    workload: String,
    /// The machine; null: exact.
    machine: Option<String>,
    /// better, worse, compiled differently or unclear.
    verdict: &'static str,
    /// The difference in percent, positive is better; null if it is unclear.
    difference_percent: Option<f64>,
    /// Where the difference comes from; null if that is not known.
    origin: Option<OriginDocument>,
}

/// Additional instructions per operation by where they come from.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct OriginDocument {
    /// In functions that the commit changes, itself or what is inlined into them.
    changed: f64,
    /// In others that do more or less with the same code.
    others: f64,
    /// In functions of the same source that the compiler made other code of.
    compiled_differently: f64,
    /// In functions of which that is not known.
    unknown: f64,
}

impl WorkloadChange {
    /// Names it with its machine, unless that is exact.
    fn name(&self) -> String {
        match &self.machine {
            Some(machine) => format!("{} on {machine}", self.workload),
            None => self.workload.clone(),
        }
    }
}

/// A result as `b4 review` reads it from a check (b4, docs/maintainer/review.rst).
#[derive(Debug, Serialize)]
struct Check<'a> {
    tool: &'static str,
    status: &'static str,
    summary: String,
    details: &'a str,
}

/// Returns the schema of the JSON document.
#[must_use]
pub fn series_schema() -> Schema {
    schema_of::<CommitsDocument>("marvin series")
}

fn lines_document(lines: &PatchedLines) -> LinesDocument {
    let of_line = |line: &PatchedLine| LineDocument {
        line: line.line,
        removed: line.is_removed,
        workload: line.executed.as_ref().map(|by| by.workload.clone()),
        executions: line.executed.as_ref().map(|by| by.per_operation),
    };
    LinesDocument {
        function: lines.function.clone(),
        file: lines.file.clone(),
        lines: lines.lines.iter().map(of_line).collect(),
    }
}

fn expected_equal(row: &CommitRow) -> Vec<ExpectedEqual> {
    let rows = row.same_code.rows.iter();
    rows.map(|(workload, difference_percent)| ExpectedEqual {
        workload: workload.clone(),
        difference_percent: *difference_percent,
    })
    .collect()
}

impl SeriesAnswer<'_> {
    pub(crate) fn commits(&self) -> impl Iterator<Item = &CommitRow> {
        self.rows.iter().skip(1)
    }

    /// Returns the workloads that a commit changed, the largest difference first.
    fn changes(&self, row: &CommitRow) -> Vec<WorkloadChange> {
        let State::Compared(cells) = &row.state else {
            return Vec::new();
        };
        let mut changes: Vec<WorkloadChange> = cells
            .iter()
            .zip(self.workloads)
            .filter_map(|(cell, workload)| {
                let (verdict, difference_percent) = match cell {
                    CommitCell::Same => return None,
                    CommitCell::Better(percent) => ("better", Some(*percent)),
                    CommitCell::Worse(percent) => ("worse", Some(*percent)),
                    CommitCell::CompiledDifferently(percent) => {
                        ("compiled differently", Some(*percent))
                    }
                    CommitCell::Unclear => ("unclear", None),
                };
                let origin = row.origins.iter().find(|one| one.workload == **workload);
                let (workload, machine) = split_machine(workload);
                Some(WorkloadChange {
                    workload: workload.to_owned(),
                    machine: machine.map(str::to_owned),
                    verdict,
                    difference_percent,
                    origin: origin.map(|origin| OriginDocument {
                        changed: origin.changed,
                        others: origin.others,
                        compiled_differently: origin.compiler,
                        unknown: origin.unknown,
                    }),
                })
            })
            .collect();
        changes.sort_by(|one, other| {
            let size = |change: &WorkloadChange| change.difference_percent.unwrap_or(0.0).abs();
            size(other).total_cmp(&size(one))
        });
        changes
    }

    /// Names the workloads that a commit changed most.
    fn name_changes(&self, row: &CommitRow) -> String {
        let changes = self.changes(row);
        let mut named: Vec<String> = changes
            .iter()
            .take(WORKLOADS_SHOWN)
            .map(|change| match change.difference_percent {
                Some(percent) => format!("{} {percent:+.2} %", change.name()),
                None => format!("{} unclear", change.name()),
            })
            .collect();
        if changes.len() > WORKLOADS_SHOWN {
            named.push(format!("{} more", changes.len() - WORKLOADS_SHOWN));
        }
        named.join(", ")
    }

    /// Says what became of a commit, in a line.
    pub(crate) fn describe(&self, row: &CommitRow) -> String {
        let verdict = row.verdict();
        let word = verdict.word();
        match verdict {
            CommitVerdict::Failed => match &row.state {
                State::NotApplied(why) => format!("does not apply: {why}"),
                State::Failed(why) => format!("does not build: {why}"),
                _ => word.to_owned(),
            },
            CommitVerdict::NotMeasured if !row.not_compiled.is_empty() => {
                let changed = self.name_changes(row);
                let also = if changed.is_empty() {
                    String::new()
                } else {
                    format!("{changed}; ")
                };
                format!("{also}{word}: not compiled: {}", shorten(&row.not_compiled))
            }
            CommitVerdict::NotMeasured if row.state == State::AppliedBefore => {
                format!("{word}: the tree has it already")
            }
            CommitVerdict::NotMeasured => match row.not_executed() {
                Some(not_executed) => format!("{word}: {}", not_executed.sentence("it", "s")),
                None => word.to_owned(),
            },
            CommitVerdict::Equal => format!("{word}: the same image"),
            CommitVerdict::Same => format!("{word} in {}", workloads(self.workloads.len())),
            CommitVerdict::Base => word.to_owned(),
            CommitVerdict::Better
            | CommitVerdict::Worse
            | CommitVerdict::CompiledDifferently
            | CommitVerdict::Unclear => {
                format!("{word}: {}", self.name_changes(row))
            }
        }
    }

    /// Returns the JSON document.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn json(&self) -> Result<String, RenderError> {
        let commits = self.rows.iter().map(|row| CommitDocument {
            commit: row.commit.clone(),
            subject: sanitize_line(&row.subject),
            verdict: row.verdict().word(),
            failure: match &row.state {
                State::Failed(why) | State::NotApplied(why) => Some(why.clone()),
                _ => None,
            },
            not_compiled: row.not_compiled.clone(),
            functions: row.functions.iter().map(function).collect(),
            lines: row.lines.iter().map(lines_document).collect(),
            same_code: row.same_code.workloads,
            same_code_differing: row.same_code.differing,
            expected_equal: expected_equal(row),
            changes: self.changes(row),
        });
        write_json(&CommitsDocument {
            schema_version: SCHEMA_VERSION,
            kind: "series",
            title: self.title.clone(),
            reproduce: self.reproduce.clone(),
            workloads: self.workloads.len(),
            commits: commits.collect(),
            hunks_alone: self.alone.cloned(),
        })
    }

    /// Returns a table in markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "{}; each compared with the one before it, positive is better\n\n| commit | subject | result |\n|---|---|---|\n",
            escape_markdown(&self.title)
        );
        for row in self.commits() {
            let cells = [&row.commit, &row.subject, &self.describe(row)];
            let cells = cells.map(|cell| escape_markdown(cell));
            text.push_str(&["| ", &cells.join(" | "), " |\n"].concat());
        }
        text + &format!("\n`{}`\n", self.reproduce.replace('`', "'"))
    }

    /// Returns plain text for below `---` of a patch or for a cover letter: at most 20 lines of 72
    /// characters.
    #[must_use]
    pub fn note(&self) -> String {
        let mut lines = vec![
            format!(
                "Marvin, {} counted in QEMU:",
                workloads(self.workloads.len())
            ),
            self.title.clone(),
            "each compared with the one before it, positive is better".to_owned(),
            String::new(),
        ];
        let room = NOTE_LINES - lines.len() - 3;
        let said: Vec<String> = self
            .commits()
            .filter(|row| !matches!(row.verdict(), CommitVerdict::Equal | CommitVerdict::Same))
            .map(|row| format!("{} {}", row.commit, self.describe(row)))
            .collect();
        let silent = self.commits().count() - said.len();
        let left_out = said.len().saturating_sub(room);
        lines.extend(said.into_iter().take(room));
        match (silent, left_out) {
            (0, 0) => {}
            (silent, 0) => lines.push(format!(
                "no change in {silent} of {}",
                self.commits().count()
            )),
            (silent, left_out) => {
                lines.push(format!("no change in {silent}; {left_out} more not shown"));
            }
        }
        let cut = |line: &String| -> String {
            if line.chars().count() <= NOTE_LINE {
                return line.clone();
            }
            // Between workloads, if it names some: half a number is another one.
            let whole: String = line.chars().take(NOTE_LINE - 3).collect();
            match whole.rsplit_once(", ") {
                Some((before, _)) => format!("{before}, …"),
                None => line.chars().take(NOTE_LINE - 1).chain(['…']).collect(),
            }
        };
        let text = lines.iter().map(cut).collect::<Vec<_>>().join("\n");
        // A command that is cut is none.
        format!("{text}\n\n{}\n", self.reproduce)
    }

    /// Returns one line for the trailers of each commit.
    #[must_use]
    pub fn trailers(&self) -> String {
        self.commits()
            .map(|row| format!("{}\tPerformance: {}\n", row.commit, self.describe(row)))
            .collect()
    }

    /// Returns one result for each commit as b4 reads it from a check: an array of JSON.
    ///
    /// # Errors
    /// Never in practice: everything is in memory.
    pub fn checks(&self) -> Result<String, RenderError> {
        let checks: Vec<Check<'_>> = self
            .commits()
            .map(|row| Check {
                tool: "marvin",
                status: match row.verdict() {
                    CommitVerdict::Worse | CommitVerdict::Failed => "fail",
                    CommitVerdict::Unclear | CommitVerdict::NotMeasured => "warn",
                    _ => "pass",
                },
                summary: format!("{} {}", row.commit, self.describe(row)),
                details: &self.reproduce,
            })
            .collect();
        write_json(&checks)
    }

    /// Returns JUnit's XML: a test for each commit, which fails if the commit is worse, does not
    /// build or does not apply, and is skipped if nothing decides.
    #[must_use]
    pub fn junit(&self) -> String {
        let verdicts: Vec<CommitVerdict> = self.commits().map(CommitRow::verdict).collect();
        let fails = |verdict: &&CommitVerdict| {
            matches!(verdict, CommitVerdict::Worse | CommitVerdict::Failed)
        };
        let skips = |verdict: &&CommitVerdict| {
            matches!(verdict, CommitVerdict::Unclear | CommitVerdict::NotMeasured)
        };
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"marvin series\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">\n",
            verdicts.len(),
            verdicts.iter().filter(fails).count(),
            verdicts.iter().filter(skips).count(),
        );
        for (row, verdict) in self.commits().zip(&verdicts) {
            let what = escape_xml(&self.describe(row));
            let inner = if fails(&verdict) {
                format!("<failure message=\"{what}\"/>")
            } else if skips(&verdict) {
                format!("<skipped message=\"{what}\"/>")
            } else {
                format!("<system-out>{what}</system-out>")
            };
            let name = escape_xml(&format!("{} {}", row.commit, row.subject));
            text.push_str(
                &[
                    "  <testcase classname=\"series\" name=\"",
                    &name,
                    "\">",
                    &inner,
                    "</testcase>\n",
                ]
                .concat(),
            );
        }
        text + "</testsuite>\n"
    }
}

fn function(changed: &crate::commit_table::ChangedFunction) -> FunctionDocument {
    let document = FunctionDocument {
        function: changed.name.clone(),
        entered: "entered",
        within: None,
        workload: None,
        calls: None,
        instructions: None,
        instructions_before: None,
        reached: None,
    };
    match &changed.entered {
        Entered::By {
            workload,
            calls,
            instructions,
            before,
        } => FunctionDocument {
            workload: Some(workload.clone()),
            calls: Some(*calls),
            instructions: Some(*instructions),
            instructions_before: *before,
            ..document
        },
        Entered::Never(reached) => FunctionDocument {
            entered: "never entered",
            reached: reached.words(),
            ..document
        },
        Entered::Within {
            host,
            workload,
            calls,
        } => FunctionDocument {
            within: Some(host.clone()),
            workload: Some(workload.clone()),
            calls: Some(*calls),
            ..document
        },
        Entered::NotCompiled => FunctionDocument {
            entered: "not compiled",
            ..document
        },
        Entered::NoOwnCode => FunctionDocument {
            entered: "no code of its own",
            ..document
        },
    }
}

/// Escapes what would be markup: subjects are of anyone.
fn escape_markdown(text: &str) -> String {
    let mut safe = String::new();
    for letter in sanitize_line(text).chars() {
        match letter {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '@' | '#' => {
                safe.push('\\');
                safe.push(letter);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

fn escape_xml(text: &str) -> String {
    sanitize_line(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{NOTE_LINE, NOTE_LINES, SeriesAnswer};
    use crate::commit_table::{
        ChangedFunction, CommitCell, CommitRow, Entered, Reached, RowOrigin, SameCode, State,
    };

    fn row(commit: &str, subject: &str, state: State) -> CommitRow {
        CommitRow {
            commit: commit.to_owned(),
            subject: subject.to_owned(),
            state,
            not_compiled: Vec::new(),
            functions: Vec::new(),
            lines: Vec::new(),
            executes_more: false,
            executes_the_same: false,
            origins: Vec::new(),
            same_code: SameCode::default(),
        }
    }

    pub(crate) fn rows() -> Vec<CommitRow> {
        let same = State::Compared(vec![CommitCell::Same; 3]);
        let mut rows = vec![
            row("0123456789ab", "Linux 6.12", State::Base),
            row("1/6", "mm: words only", State::Equal),
            row("2/6", "mm: <b>&\"fast\" | `x`", same.clone()),
            row(
                "3/6",
                "mm: slower",
                State::Compared(vec![
                    CommitCell::Better(1.5),
                    CommitCell::Worse(-8.421),
                    CommitCell::Unclear,
                ]),
            ),
            row("4/6", "mm: away", State::NotApplied("mm/x.c".to_owned())),
            row("5/6", "mm: not taken", same),
            row("6/6", "mm: here", State::AppliedBefore),
        ];
        rows[5].functions = vec![ChangedFunction {
            name: "never".to_owned(),
            entered: Entered::Never(Reached::SystemCall),
        }];
        rows[3].same_code.workloads = 1;
        rows[3].origins = vec![RowOrigin {
            workload: "fork-exit".to_owned(),
            changed: 36.0,
            others: 4.0,
            compiler: 1.5,
            unknown: 0.0,
            compiled: vec![("copy_mm".to_owned(), 1.5)],
        }];
        rows
    }

    pub(crate) fn answer(rows: &[CommitRow]) -> SeriesAnswer<'_> {
        SeriesAnswer {
            alone: None,
            title: "6 patches of v2.mbox on 0123456789ab".to_owned(),
            reproduce: "marvin series v2.mbox --base 0123456789ab".to_owned(),
            rows,
            workloads: &["getppid", "fork-exit", "pipe"],
        }
    }

    #[test]
    fn each_format_says_the_same() {
        let rows = rows();
        let answer = answer(&rows);
        insta::assert_snapshot!("note", answer.note());
        insta::assert_snapshot!("markdown", answer.markdown());
        insta::assert_snapshot!("trailers", answer.trailers());
        insta::assert_snapshot!("checks", answer.checks().unwrap());
        insta::assert_snapshot!("junit", answer.junit());
        insta::assert_snapshot!("json", answer.json().unwrap());
    }

    #[test]
    fn note_fits_a_cover_letter() {
        let worse = State::Compared(vec![CommitCell::Worse(-5.0); 3]);
        let mut rows = vec![row("0123456789ab", "base", State::Base)];
        let subject = "mm: a long subject ".repeat(9);
        rows.extend((1..=60).map(|number| row(&format!("{number}/60"), &subject, worse.clone())));
        let note = answer(&rows).note();
        assert!(note.lines().count() <= NOTE_LINES, "{note}");
        let mut said = note.lines().filter(|line| !line.starts_with("marvin "));
        assert!(said.all(|line| line.chars().count() <= NOTE_LINE));
        assert!(note.contains("more not shown"), "{note}");
    }
}
