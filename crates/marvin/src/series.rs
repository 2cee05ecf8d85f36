//! A series in words: a row for each commit, a column for each workload that some commit changed.

use std::fmt::Write;

/// Columns with names; what changed besides is told below.
const COLUMNS_MAX: usize = 8;
/// Characters of a subject.
const SUBJECT: usize = 40;

/// A commit of a series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row {
    pub(crate) commit: String,
    pub(crate) subject: String,
    pub(crate) state: State,
}

/// What came of a commit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum State {
    /// What the first commit is compared with.
    Base,
    /// Its image is the one before it.
    Equal,
    /// It does not build.
    Failed(String),
    /// A cell for each workload.
    Compared(Vec<Cell>),
}

/// A workload on a commit, against the one before it; positive is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell {
    Same,
    Better(f64),
    Worse(f64),
    Unclear,
}

impl Cell {
    fn text(self) -> String {
        match self {
            Self::Same => ".".to_owned(),
            Self::Better(percent) | Self::Worse(percent) => format!("{percent:+.2} %"),
            Self::Unclear => "unclear".to_owned(),
        }
    }
}

/// Returns the table.
pub(crate) fn table(title: &str, rows: &[Row], names: &[&str]) -> String {
    let changed = |column: &usize| {
        rows.iter().any(|row| match &row.state {
            State::Compared(cells) => cells.get(*column).is_some_and(|cell| *cell != Cell::Same),
            State::Base | State::Equal | State::Failed(_) => false,
        })
    };
    let columns: Vec<usize> = (0..names.len()).filter(changed).collect();
    let (shown, more) = columns.split_at(columns.len().min(COLUMNS_MAX));
    let width = |column: &usize| names[*column].len().max(9);
    let mut text = format!(
        "{title}; each against the one before it, positive is better\n\n{:<12}  {:<SUBJECT$}",
        "commit", "subject"
    );
    shown.iter().for_each(|column| add(&mut text, &format!("  {:>1$}", names[*column], width(column))));
    text.push('\n');
    for row in rows {
        add(&mut text, &format!("{:<12}  {:<SUBJECT$}", row.commit, cut(&row.subject)));
        match &row.state {
            State::Base => text.push_str("  (before the series)"),
            State::Equal => text.push_str("  the same image"),
            State::Failed(why) => add(&mut text, &format!("  does not build: {why}")),
            State::Compared(cells) if shown.iter().all(|column| cells[*column] == Cell::Same) => {
                text.push_str("  another image, nothing changed");
            }
            State::Compared(cells) => {
                shown
                    .iter()
                    .for_each(|column| add(&mut text, &format!("  {:>1$}", cells[*column].text(), width(column))));
            }
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    if columns.is_empty() {
        add(&mut text, &format!("\nnothing changed in any of {} workloads\n", names.len()));
    } else {
        add(&mut text, &format!("\n{} of {} workloads changed\n", columns.len(), names.len()));
    }
    for column in more {
        let of_row = |row: &Row| match &row.state {
            State::Compared(cells) if cells[*column] != Cell::Same => {
                Some(format!("{} {}", row.commit, cells[*column].text()))
            }
            _ => None,
        };
        let all: Vec<String> = rows.iter().filter_map(of_row).collect();
        add(&mut text, &format!("also {}: {}\n", names[*column], all.join(", ")));
    }
    text
}

/// Adds to a text.
fn add(text: &mut String, more: &str) {
    // Only a writer other than a string may fail.
    text.write_str(more).ok();
}

fn cut(subject: &str) -> String {
    if subject.chars().count() <= SUBJECT {
        return subject.to_owned();
    }
    subject.chars().take(SUBJECT - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::{Cell, Row, State, table};

    fn row(digit: char, subject: &str, state: State) -> Row {
        Row { commit: digit.to_string().repeat(12), subject: subject.to_owned(), state }
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
                State::Compared(vec![Cell::Same, Cell::Better(12.5), Cell::Worse(-0.8), Cell::Same]),
            ),
            row('3', "mm: break it", State::Failed("mm/memory.c:7:1: error: expected ';'".to_owned())),
            row('4', "mm: mend it", State::Compared(vec![Cell::Same; 4])),
            row('5', "fs: something", State::Compared(vec![Cell::Same, Cell::Same, Cell::Unclear, Cell::Same])),
        ];
        insta::assert_snapshot!("table", table("000000000000..555555555555, 5 commits", &rows, &names));
        assert!(table("a..b, 1 commit", &rows[..2], &names).ends_with("nothing changed in any of 4 workloads\n"));
    }

    #[test]
    fn many_columns_are_told_below() {
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
        let rows = [row('0', "base", State::Base), row('1', "all", State::Compared(vec![Cell::Worse(-1.5); 10]))];
        assert!(table("x", &rows, &names).ends_with("also i: 111111111111 -1.50 %\nalso j: 111111111111 -1.50 %\n"));
    }
}
