//! A series as text: a row for each commit, a column for each workload that a commit changed, as
//! far as the line's width allows.

use std::fmt::Write;

use crate::commit_lines::PatchedLines;
pub use crate::commit_lines::Reached;
pub use crate::commit_origin::{RowOrigin, SameCode};
use crate::not_executed::NotExecuted;

/// Characters of a line. Workloads without a column are listed below their commit.
const LINE: usize = 80;
/// Characters of a commit.
const COMMIT: usize = 12;
/// Characters of a subject.
const SUBJECT: usize = 32;
/// Files and functions of a commit that are named.
pub(crate) const FILES_SHOWN: usize = 4;
/// Workloads of a commit of which the table says where the difference comes from.
const ORIGINS_SHOWN: usize = 2;
const GAP: usize = 2;

/// A commit of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitRow {
    /// The abbreviated hash.
    pub commit: String,
    /// The first line of its message.
    pub subject: String,
    /// How it compares with its parent.
    pub state: State,
    /// Code that it changes and that this config does not compile: nothing measures it.
    pub not_compiled: Vec<String>,
    /// The functions that it changes, as far as its diff names them.
    pub functions: Vec<ChangedFunction>,
    /// The lines that it changes and that have code, as far as that is known.
    pub lines: Vec<PatchedLines>,
    /// Whether workloads execute changed code that none of these lines has, such as a macro's.
    pub executes_more: bool,
    /// Whether it changes code that is compiled, and no workload executes a function whose source
    /// or code differs.
    pub executes_the_same: bool,
    /// Where the differences of the workloads come from, as far as that is known.
    pub origins: Vec<RowOrigin>,
    /// The workloads that execute the same code as before it.
    pub same_code: SameCode,
}

/// A function that a commit changes.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedFunction {
    /// Its name.
    pub name: String,
    /// Whether the workloads execute it.
    pub entered: Entered,
}

impl ChangedFunction {
    pub(crate) fn is_entered(&self) -> bool {
        matches!(self.entered, Entered::By { .. } | Entered::Within { .. })
    }
}

/// Whether workloads execute a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Entered {
    /// They do; of several, this one spends the largest part in it.
    By {
        /// The workload.
        workload: String,
        /// Executions of its first instruction, per operation.
        calls: f64,
        /// Its own instructions per operation.
        instructions: f64,
        /// The same before the commit; `None` if the workload did not execute it.
        before: Option<f64>,
    },
    /// None does.
    Never(Reached),
    /// It is inlined, and workloads execute functions that it is inlined into; this one most.
    Within {
        /// The function.
        host: String,
        /// The workload that spends the largest part in it.
        workload: String,
        /// Executions of the host's first instruction, per operation.
        calls: f64,
    },
    /// It has no code: `#if` or the compiler leaves it out.
    NotCompiled,
    /// It has no code of its own: it is inlined or not compiled, or its name is another one.
    NoOwnCode,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// The baseline of the first commit.
    Base,
    /// Its image equals the one before it: equal if all changed code is compiled, else not
    /// measured.
    Equal,
    /// A patch whose change the tree has already.
    AppliedBefore,
    /// A patch that does not apply, for this reason.
    NotApplied(String),
    /// It does not build.
    Failed(String),
    /// A cell for each workload.
    Compared(Vec<CommitCell>),
}

/// A workload on a commit, compared with the one before it; positive is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CommitCell {
    /// The difference is within the margin.
    Same,
    /// Better by so many percent.
    Better(f64),
    /// Worse by so many percent.
    Worse(f64),
    /// By so many percent, only as the compiler made other code of functions whose source is the
    /// same.
    CompiledDifferently(f64),
    /// The measurements do not decide.
    Unclear,
}

/// What a series says of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitVerdict {
    /// It is before the series.
    Base,
    /// The image is the same, and all that it changes is compiled.
    Equal,
    /// No workload changed.
    Same,
    /// Some workloads differ, only as the compiler made other code of the same source.
    CompiledDifferently,
    /// Some workloads are better, none is worse.
    Better,
    /// A workload is worse.
    Worse,
    /// No workload is worse, and of one the measurements do not decide.
    Unclear,
    /// It is not compiled, or no workload executes it, or the tree has it already.
    NotMeasured,
    /// It does not apply, build or boot.
    Failed,
}

impl CommitVerdict {
    /// Returns its word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Equal => "equal",
            Self::Same => "same",
            Self::CompiledDifferently => "compiled differently",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Unclear => "unclear",
            Self::NotMeasured => "not measured",
            Self::Failed => "failed",
        }
    }
}

impl CommitCell {
    pub(crate) fn format(self) -> String {
        match self {
            Self::Same => ".".to_owned(),
            Self::Better(percent) | Self::Worse(percent) => format!("{percent:+.2} %"),
            Self::CompiledDifferently(percent) => format!("{percent:+.2} % C"),
            Self::Unclear => "unclear".to_owned(),
        }
    }
}

/// Returns the table; columns have the workloads of `names` that a commit changed, those with the
/// largest effect first.
#[must_use]
pub fn table(title: &str, rows: &[CommitRow], names: &[&str]) -> String {
    let columns = changed_columns(rows, names);
    let (shown, more) = columns.split_at(count_fitting(&columns, names));
    let mut text = format!("{title}\neach compared with its parent, positive is better\n\n");
    let mut head = format!("{:<COMMIT$}  {:<SUBJECT$}", "commit", "subject");
    let mut second = " ".repeat(head.chars().count());
    for column in shown {
        let (workload, machine) = split_machine(names[*column]);
        let width = width(names[*column]);
        add(&mut head, &format!("  {workload:>width$}"));
        add(&mut second, &format!("  {:>width$}", machine.unwrap_or("")));
    }
    add(&mut text, &format!("{}\n", head.trim_end()));
    if !second.trim().is_empty() {
        add(&mut text, &format!("{}\n", second.trim_end()));
    }
    for row in rows {
        let line = format!(
            "{:<COMMIT$}  {:<SUBJECT$}{}",
            row.commit,
            cut(&row.subject),
            row.describe_result(shown, names)
        );
        add(&mut text, &format!("{}\n", line.trim_end()));
        match &row.state {
            State::Failed(why) | State::NotApplied(why) => text.push_str(&wrap(why)),
            _ => {}
        }
        if !row.not_compiled.is_empty() {
            text.push_str(&wrap(&format!(
                "not compiled: {}",
                shorten(&row.not_compiled)
            )));
        }
        for line in row.describe_functions() {
            text.push_str(&wrap(&line));
        }
        for line in row.describe_lines() {
            text.push_str(&wrap(&line));
        }
        if let Some(same) = row.same_code.sentence(names.len()) {
            text.push_str(&wrap(&same));
        }
        let origins = row.origins.iter().filter(|origin| origin.is_known());
        for origin in origins.take(ORIGINS_SHOWN) {
            text.push_str(&wrap(&origin.sentence()));
        }
    }
    add(
        &mut text,
        &format!("\n{}", fill(&summary(rows, columns.len(), names.len()), 0)),
    );
    if rows.iter().any(CommitRow::is_compiled_differently) {
        add(
            &mut text,
            &fill(
                "C: only compiled differently: the source of the functions that differ is the same",
                0,
            ),
        );
    }
    for column in more {
        let mut all = Vec::new();
        for row in rows {
            if let State::Compared(cells) = &row.state
                && cells[*column] != CommitCell::Same
            {
                all.push(format!("{} {}", row.commit, cells[*column].format()));
            }
        }
        add(
            &mut text,
            &format!("also {}:\n{}", names[*column], wrap(&all.join(", "))),
        );
    }
    text
}

impl CommitRow {
    /// Returns whether there is a kernel of it.
    #[must_use]
    pub fn is_built(&self) -> bool {
        matches!(self.state, State::Base | State::Equal | State::Compared(_))
    }

    /// Returns what the series says of it.
    #[must_use]
    pub fn verdict(&self) -> CommitVerdict {
        let any = |is: fn(&CommitCell) -> bool| match &self.state {
            State::Compared(cells) => cells.iter().any(is),
            _ => false,
        };
        match &self.state {
            State::Base => CommitVerdict::Base,
            State::Failed(_) | State::NotApplied(_) => CommitVerdict::Failed,
            State::Compared(_) if any(|cell| matches!(cell, CommitCell::Worse(_))) => {
                CommitVerdict::Worse
            }
            State::Compared(_) if any(|cell| *cell == CommitCell::Unclear) => {
                CommitVerdict::Unclear
            }
            State::AppliedBefore => CommitVerdict::NotMeasured,
            _ if !self.not_compiled.is_empty() || self.not_executed().is_some() => {
                CommitVerdict::NotMeasured
            }
            State::Equal => CommitVerdict::Equal,
            State::Compared(_) if any(|cell| matches!(cell, CommitCell::Better(_))) => {
                CommitVerdict::Better
            }
            State::Compared(_)
                if any(|cell| matches!(cell, CommitCell::CompiledDifferently(_))) =>
            {
                CommitVerdict::CompiledDifferently
            }
            State::Compared(_) => CommitVerdict::Same,
        }
    }

    fn is_compiled_differently(&self) -> bool {
        let is = |cell: &CommitCell| matches!(cell, CommitCell::CompiledDifferently(_));
        matches!(&self.state, State::Compared(cells) if cells.iter().any(is))
    }

    /// Says which of its functions workloads execute, a line for each answer.
    pub(crate) fn describe_functions(&self) -> Vec<String> {
        if !matches!(self.state, State::Compared(_)) {
            return Vec::new();
        }
        let mut entered = Vec::new();
        let mut never = Vec::new();
        let mut not_compiled = Vec::new();
        let mut without_code = Vec::new();
        for ChangedFunction { name, entered: how } in &self.functions {
            match how {
                Entered::By {
                    workload,
                    calls,
                    instructions,
                    before,
                } => {
                    let change = match before {
                        Some(before) if format!("{before:.2}") == format!("{instructions:.2}") => {
                            format!("{instructions:.2} instructions as before")
                        }
                        Some(before) => format!("{before:.2} -> {instructions:.2} instructions"),
                        None => format!("{instructions:.2} instructions, before none"),
                    };
                    entered.push(format!(
                        "{name} by {workload} ({calls:.2} calls, {change} an operation)"
                    ));
                }
                Entered::Within {
                    host,
                    workload,
                    calls,
                } => entered.push(format!(
                    "{name} within {host} by {workload} ({calls:.2} calls)"
                )),
                Entered::Never(reached) => never.push(match reached.words() {
                    Some(words) => format!("{name} ({words})"),
                    None => name.clone(),
                }),
                Entered::NotCompiled => not_compiled.push(name.clone()),
                Entered::NoOwnCode => without_code.push(name.clone()),
            }
        }
        [
            ("executes", entered),
            ("not entered by these workloads", never),
            ("without code in this config", not_compiled),
            ("inlined or renamed, so not looked for", without_code),
        ]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what}: {}", shorten(&names)))
        .collect()
    }

    /// Returns whether the commit changed a workload, or may have.
    fn changed(&self, column: usize) -> bool {
        match &self.state {
            State::Compared(cells) => cells
                .get(column)
                .is_some_and(|cell| *cell != CommitCell::Same),
            _ => false,
        }
    }

    /// Describes the result of the commit, after its subject.
    fn describe_result(&self, shown: &[usize], names: &[&str]) -> String {
        if let Some(not_executed) = self.not_executed() {
            return format!("  not measured: {}", not_executed.words());
        }
        match &self.state {
            State::Base => "  (before the series)".to_owned(),
            State::Equal if self.not_compiled.is_empty() => "  equal: the same image".to_owned(),
            State::Equal => "  not measured: the same image".to_owned(),
            State::Failed(_) => "  does not build:".to_owned(),
            State::AppliedBefore => "  not measured: the tree has it already".to_owned(),
            State::NotApplied(_) => "  does not apply:".to_owned(),
            State::Compared(_) if !(0..names.len()).any(|column| self.changed(column)) => {
                if self.not_compiled.is_empty() {
                    "  another image, no change".to_owned()
                } else {
                    "  not measured: not compiled".to_owned()
                }
            }
            State::Compared(cells) => shown
                .iter()
                .map(|column| format!("  {:>1$}", cells[*column].format(), width(names[*column])))
                .collect(),
        }
    }
}

/// Returns whether a workload did not change by what a commit does.
pub(crate) fn is_unmoved(cell: &CommitCell) -> bool {
    matches!(cell, CommitCell::Same | CommitCell::CompiledDifferently(_))
}

/// Returns the workloads that a commit changed, or may have, those with the largest effect first.
pub(crate) fn changed_columns(rows: &[CommitRow], names: &[&str]) -> Vec<usize> {
    let mut columns: Vec<usize> = (0..names.len())
        .filter(|column| rows.iter().any(|row| row.changed(*column)))
        .collect();
    // Stable: equal effects keep the suite's order.
    columns.sort_by(|one, other| effect(rows, *other).total_cmp(&effect(rows, *one)));
    // A workload that executes the same code says least of a commit.
    columns.sort_by_key(|column| {
        let mut changed = rows.iter().filter(|row| row.changed(*column));
        names
            .get(*column)
            .is_some_and(|name| changed.all(|row| row.same_code.has(name)))
    });
    columns
}

/// Returns the largest difference of a workload in percent, without its sign.
fn effect(rows: &[CommitRow], column: usize) -> f64 {
    let cells = rows.iter().filter_map(|row| match &row.state {
        State::Compared(cells) => cells.get(column),
        _ => None,
    });
    cells
        .map(|cell| match cell {
            CommitCell::Better(percent)
            | CommitCell::Worse(percent)
            | CommitCell::CompiledDifferently(percent) => percent.abs(),
            CommitCell::Same | CommitCell::Unclear => 0.0,
        })
        .fold(0.0, f64::max)
}

/// Characters of a column: the workload, and the machine below it if it is not exact.
fn width(name: &str) -> usize {
    let (workload, machine) = split_machine(name);
    workload.len().max(machine.map_or(0, str::len)).max(9)
}

/// Splits the name of a column: `share-fault on exact-smp` is another machine's.
pub(crate) fn split_machine(name: &str) -> (&str, Option<&str>) {
    match name.split_once(" on ") {
        Some((workload, machine)) => (workload, Some(machine)),
        None => (name, None),
    }
}

/// Returns how many columns fit beside the subjects.
fn count_fitting(columns: &[usize], names: &[&str]) -> usize {
    let mut left = LINE - COMMIT - GAP - SUBJECT;
    for (place, column) in columns.iter().enumerate() {
        match left.checked_sub(GAP + width(names[*column])) {
            Some(rest) => left = rest,
            None => return place,
        }
    }
    columns.len()
}

/// Counts workloads in words.
pub(crate) fn workloads(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} workload{plural}")
}

/// Counts the workloads that changed, and the commits that nothing measures.
fn summary(rows: &[CommitRow], changed: usize, measured: usize) -> String {
    let mut compared = rows
        .iter()
        .filter(|row| matches!(row.state, State::Compared(_) | State::Equal))
        .peekable();
    let unseen = rows
        .iter()
        .filter(|row| !row.not_compiled.is_empty())
        .count();
    let verb = if unseen == 1 {
        "commit changes"
    } else {
        "commits change"
    };
    let unseen_text =
        format!("not measured: {unseen} {verb} code that this config does not compile");
    let changes = if compared.peek().is_none() {
        "no comparison: no two commits build".to_owned()
    } else if changed > 0 {
        format!("{changed} of {} changed", workloads(measured))
    } else if compared.any(|row| row.not_compiled.is_empty() || !matches!(row.state, State::Equal))
    {
        format!("no change in {}", workloads(measured))
    } else {
        return unseen_text;
    };
    let mut executed_text = String::new();
    for kind in NotExecuted::ALL {
        let of_kind = rows.iter().filter(|row| row.not_executed() == Some(kind));
        let sentence = match of_kind.count() {
            0 => continue,
            1 => kind.sentence("1 commit", "s"),
            count => kind.sentence(&format!("{count} commits"), ""),
        };
        executed_text.push_str("; not measured: ");
        executed_text.push_str(&sentence);
    }
    let refused = rows
        .iter()
        .filter(|row| matches!(row.state, State::NotApplied(_)));
    let refused_text = match refused.count() {
        0 => String::new(),
        1 => "; 1 patch does not apply: those behind are without it".to_owned(),
        count => format!("; {count} patches do not apply: those behind are without them"),
    };
    if unseen == 0 {
        format!("{changes}{executed_text}{refused_text}")
    } else {
        format!("{changes}; {unseen_text}{executed_text}{refused_text}")
    }
}

/// Names files; of many, only the first ones.
pub(crate) fn shorten(files: &[String]) -> String {
    let shown = files[..files.len().min(FILES_SHOWN)].join(", ");
    let more = files.len().saturating_sub(FILES_SHOWN);
    if more == 0 {
        shown
    } else {
        format!("{shown} and {more} more")
    }
}

/// Wraps words into lines that begin below the subjects. A word longer than a line stays whole.
fn wrap(text: &str) -> String {
    fill(text, COMMIT + GAP)
}

/// Wraps words into lines behind so many blanks.
fn fill(text: &str, indent: usize) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && indent + line.chars().count() + 1 + word.chars().count() > LINE {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
        .iter()
        .map(|line| format!("{:indent$}{line}\n", ""))
        .collect()
}

/// Appends to a text.
fn add(text: &mut String, more: &str) {
    // Writing to a string cannot fail.
    text.write_str(more).ok();
}

fn cut(subject: &str) -> String {
    if subject.chars().count() <= SUBJECT {
        return subject.to_owned();
    }
    subject.chars().take(SUBJECT - 1).chain(['…']).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{
        ChangedFunction, CommitCell, CommitRow, Entered, NotExecuted, Reached, SameCode, State,
        table,
    };

    pub(crate) fn row(digit: char, subject: &str, state: State) -> CommitRow {
        let commit = digit.to_string().repeat(12);
        CommitRow {
            commit,
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

    #[test]
    fn a_series_is_one_table() {
        let names = ["getppid", "fault-anon", "fault-file-private", "pipe"];
        let rows = [
            row('0', "Linux 6.12.117", State::Base),
            row('1', "mm: words only", State::Equal),
            row(
                '2',
                "mm: make faults faster for those who have many of them",
                State::Compared(vec![
                    CommitCell::Same,
                    CommitCell::Better(12.5),
                    CommitCell::Worse(-0.8),
                    CommitCell::Same,
                ]),
            ),
            row(
                '3',
                "mm: break it",
                State::Failed("mm/memory.c:7:1: error: expected ';'".to_owned()),
            ),
            row(
                '4',
                "mm: mend it",
                State::Compared(vec![CommitCell::Same; 4]),
            ),
            row(
                '5',
                "fs: something",
                State::Compared(vec![
                    CommitCell::Same,
                    CommitCell::Same,
                    CommitCell::Unclear,
                    CommitCell::Same,
                ]),
            ),
        ];
        insta::assert_snapshot!(
            "table",
            table("000000000000..555555555555, 5 commits", &rows, &names)
        );
        assert!(
            table("a..b, 1 commit", &rows[..2], &names).ends_with("no change in 4 workloads\n")
        );
        let mut unseen = rows[..2].to_vec();
        unseen[1].not_compiled = vec!["mm/memcontrol.c (needs CONFIG_MEMCG)".to_owned()];
        insta::assert_snapshot!(table("a..b, 1 commit", &unseen, &names), @"
        a..b, 1 commit
        each compared with its parent, positive is better

        commit        subject
        000000000000  Linux 6.12.117                    (before the series)
        111111111111  mm: words only                    not measured: the same image
                      not compiled: mm/memcontrol.c (needs CONFIG_MEMCG)

        not measured: 1 commit changes code that this config does not compile
        ");
        let described = table(
            "a..b, 1 commit",
            &[rows[0].clone(), rows[3].clone()],
            &names,
        );
        assert!(
            described.ends_with("no comparison: no two commits build\n"),
            "{described}"
        );
    }

    #[test]
    fn lines_fit_a_terminal() {
        let names = ["fault-anon", "fault-file-private", "fork-exit", "fork-exec"];
        let all = State::Compared(vec![CommitCell::Worse(-104.5); 4]);
        let why =
            "mm/memory.c:7:1: error: implicit declaration of function 'x'; did you mean 'xx'?"
                .repeat(3);
        let subject = "mm: a subject that is longer than any table has room for";
        let mut rows: Vec<CommitRow> = "12345678"
            .chars()
            .map(|digit| row(digit, subject, all.clone()))
            .collect();
        rows.insert(0, row('0', subject, State::Base));
        rows.push(row('9', subject, State::Failed(why)));
        let described = table("000000000000..999999999999, 9 commits", &rows, &names);
        assert!(
            described.lines().all(|line| line.chars().count() <= 80),
            "{described}"
        );
        assert_eq!(described.matches("also fork-e").count(), 2, "{described}");
    }

    #[test]
    fn code_that_no_workload_enters_is_not_measured() {
        let same = State::Compared(vec![CommitCell::Same; 2]);
        let function = |name: &str, entered| ChangedFunction {
            name: name.to_owned(),
            entered,
        };
        let by = Entered::By {
            workload: "fork-exit".to_owned(),
            calls: 2.0,
            instructions: 412.5,
            before: Some(398.0),
        };
        let mut rows = [
            row('0', "Linux 6.12.117", State::Base),
            row('1', "mm: a path that nothing takes", same.clone()),
            row('2', "mm: a path that is taken", same.clone()),
            row('3', "mm: an inlined one", same),
        ];
        rows[1].functions = vec![
            function(
                "a",
                Entered::Never(Reached::Caller {
                    caller: "do_mmap".to_owned(),
                    over: None,
                    workload: "mmap-file".to_owned(),
                }),
            ),
            function("b", Entered::NoOwnCode),
        ];
        rows[2].functions = vec![
            function("c", by),
            function("a", Entered::Never(Reached::NoCaller)),
        ];
        rows[3].functions = vec![function("b", Entered::NoOwnCode)];
        let not_executed = rows.clone().map(|row| row.not_executed());
        assert_eq!(
            not_executed,
            [None, Some(NotExecuted::Functions), None, None]
        );
        insta::assert_snapshot!(
            "functions",
            table("a..b, 3 commits", &rows, &["getppid", "fork-exit"])
        );
    }

    #[test]
    fn another_machine_stands_below_its_workload() {
        let names = ["fork-exit", "share-fault on exact-smp"];
        let cells = vec![CommitCell::Same, CommitCell::Worse(-12.5)];
        let rows = [
            row('0', "base", State::Base),
            row('1', "mm: a lock for all", State::Compared(cells)),
        ];
        insta::assert_snapshot!("machines", table("a..b, 1 commit", &rows, &names));
    }

    #[test]
    fn columns_beyond_the_width_are_listed_below() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let rows = [
            row('0', "base", State::Base),
            row(
                '1',
                "all",
                State::Compared(vec![CommitCell::Worse(-1.5); 10]),
            ),
        ];
        let described = table("x", &rows, &names);
        assert!(described.ends_with("also j:\n              111111111111 -1.50 %\n"));
    }
}
