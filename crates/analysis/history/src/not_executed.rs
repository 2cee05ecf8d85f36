//! Why the workloads of a series say nothing of a commit although its kernel was measured: they
//! execute nothing that it changes.

use crate::commit_lines::PatchedLines;
use crate::commit_table::{ChangedFunction, CommitRow, Entered, State, is_unmoved};

/// What the workloads do not execute of a commit that moved none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotExecuted {
    /// Any of its functions with code.
    Functions,
    /// Any of its lines.
    Lines,
    /// Any function whose source or code differs: it changes data, or what no diff names.
    Code,
}

impl NotExecuted {
    pub(crate) const ALL: [Self; 3] = [Self::Functions, Self::Lines, Self::Code];

    /// Says it in a column of the table.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Functions => "never entered",
            Self::Lines => "lines never run",
            Self::Code => "the same code runs",
        }
    }

    /// Says it of `commits`, such as `it` and `1 commit`, with the verb's ending.
    pub(crate) fn sentence(self, commits: &str, ending: &str) -> String {
        let what = match self {
            Self::Functions => "no workload enters what",
            Self::Lines => "no workload executes the lines that",
            Self::Code => {
                return format!("the workloads execute the same code with and without {commits}");
            }
        };
        format!("{what} {commits} change{ending}")
    }
}

impl CommitRow {
    /// Returns what the workloads do not execute, if they all stayed and that is why.
    #[must_use]
    pub fn not_executed(&self) -> Option<NotExecuted> {
        let State::Compared(cells) = &self.state else {
            return None;
        };
        if !cells.iter().all(is_unmoved) {
            return None;
        }
        if self.is_never_entered() {
            Some(NotExecuted::Functions)
        } else if self.is_never_executed() {
            Some(NotExecuted::Lines)
        } else {
            let is_any_entered = self.functions.iter().any(ChangedFunction::is_entered);
            (self.executes_the_same && !is_any_entered).then_some(NotExecuted::Code)
        }
    }

    /// Returns whether none of its functions with code was executed.
    fn is_never_entered(&self) -> bool {
        let mut functions = self.functions.iter();
        let is_left = |function: &ChangedFunction| {
            matches!(function.entered, Entered::Never(_) | Entered::NotCompiled)
        };
        functions.clone().any(is_left) && !functions.any(ChangedFunction::is_entered)
    }

    /// Returns whether none of the changed lines was executed, and each entered function has lines.
    fn is_never_executed(&self) -> bool {
        let entered = self.functions.iter();
        let mut entered = entered.filter(|function| function.is_entered());
        let has_lines = |function: &ChangedFunction| {
            let mut lines = self.lines.iter();
            lines.any(|lines| lines.function == function.name)
        };
        let is_executed = |lines: &PatchedLines| lines.executed() > 0;
        !self.executes_more
            && !self.lines.is_empty()
            && !self.lines.iter().any(is_executed)
            && entered.all(has_lines)
    }
}

#[cfg(test)]
mod tests {
    use super::NotExecuted;
    use crate::commit_table::tests::row;
    use crate::commit_table::{ChangedFunction, CommitCell, CommitVerdict, Entered, State, table};

    #[test]
    fn commits_of_data_alone_are_not_measured() {
        let mut changed = row(
            '1',
            "sysctl: another default",
            State::Compared(vec![CommitCell::Same]),
        );
        assert_eq!(changed.verdict(), CommitVerdict::Same);
        changed.executes_the_same = true;
        assert_eq!(changed.not_executed(), Some(NotExecuted::Code));
        assert_eq!(changed.verdict(), CommitVerdict::NotMeasured);
        let rows = [row('0', "base", State::Base), changed.clone()];
        insta::assert_snapshot!("data_alone", table("a..b, 1 commit", &rows, &["getppid"]));
        changed.functions = vec![ChangedFunction {
            name: "renamed_inside".to_owned(),
            entered: Entered::By {
                workload: "getppid".to_owned(),
                calls: 1.0,
                instructions: 9.0,
                before: Some(9.0),
            },
        }];
        assert_eq!(changed.verdict(), CommitVerdict::Same);
        changed.functions.clear();
        changed.state = State::Compared(vec![CommitCell::Better(3.0)]);
        assert_eq!(changed.verdict(), CommitVerdict::Better);
    }
}
