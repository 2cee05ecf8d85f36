//! Lines of ledgers as rows of tables: functions, their sums, entry points, source directories.

use document::{Column, ColumnKind, Table, TableRow, Weight, Width};
use model::Share;

use super::ROLLED_UP;
use crate::calls::CallDifference;
use crate::ledger::{Ledger, LedgerLine, Sources, label, share_words};

/// One line of a table.
pub(super) struct CostRow {
    pub(super) name: String,
    pub(super) base: f64,
    pub(super) new: f64,
    added: f64,
    ratio: String,
    /// Calls per operation of both sides; `None` for lines without calls.
    calls: Option<[f64; 2]>,
    /// How lines were matched; replaces the ratio if there is none.
    note: &'static str,
}

impl CostRow {
    pub(super) fn cells(&self, weight: Weight) -> TableRow {
        let ratio = if self.ratio.is_empty() {
            self.note
        } else {
            &self.ratio
        };
        let numbers = [
            format!("{:.2}", self.base),
            format!("{:.2}", self.new),
            format_signed(self.added),
            ratio.to_owned(),
            calls(self),
        ];
        let has_both = !self.ratio.is_empty() && !self.note.is_empty();
        let name = if has_both {
            format!("{} ({})", self.name, self.note)
        } else {
            self.name.clone()
        };
        TableRow::new(weight, std::iter::once(name).chain(numbers))
    }
}

/// The displayed lines of a ledger, and one for the others.
pub(super) fn rows(ledger: &Ledger, max: usize) -> (Vec<CostRow>, Option<CostRow>) {
    let changed = ledger
        .lines
        .iter()
        .filter(|line| ledger.is_visible(line))
        .count();
    let shown = changed.min(max);
    let rows = ledger.lines[..shown]
        .iter()
        .map(|line| row(ledger, line))
        .collect();
    let others = &ledger.lines[shown..];
    if others.is_empty() {
        return (rows, None);
    }
    let base = others.iter().map(|line| line.base.instructions).sum();
    let new = others.iter().map(|line| line.new.instructions).sum();
    let [base, new] = [ledger.per_operation(0, base), ledger.per_operation(1, new)];
    let added = others.iter().map(|line| ledger.line_added(line)).sum();
    let name = format!("{} others", others.len());
    (rows, Some(CostRow::without_calls(name, [base, new], added)))
}

fn row(ledger: &Ledger, line: &LedgerLine) -> CostRow {
    use crate::ledger::Match;
    let [base, new] = [(0, line.base), (1, line.new)]
        .map(|(side, count)| ledger.per_operation(side, count.instructions));
    let note = match line.matched {
        Match::Exact => "",
        Match::Suffix => "suffix",
        Match::Renamed => "renamed",
        Match::OnlyBase => "gone",
        Match::OnlyNew => "new",
    };
    let calls = Some([
        ledger.per_operation(0, line.base.calls),
        ledger.per_operation(1, line.new.calls),
    ]);
    CostRow {
        name: label(line),
        base,
        new,
        added: ledger.line_added(line),
        ratio: ratio(base, new),
        calls,
        note,
    }
}

/// The totals of a ledger: each share that is not empty, their sum, and its relation to the
/// comparison's row.
pub(super) fn totals(ledger: &Ledger) -> Vec<CostRow> {
    let mut rows = Vec::new();
    for share in Share::ALL {
        let row = sum_of_share(ledger, share_words(share).to_owned(), Some(share));
        if row.base > 0.0 || row.new > 0.0 {
            rows.push(row);
        }
    }
    let (Some(row), Some(differ)) = (ledger.row, ledger.iterations_differ()) else {
        rows.push(sum_of_share(ledger, "total".to_owned(), None));
        return rows;
    };
    let mean = format!("ledger: mean of {} iterations", row.iterations);
    rows.push(sum_of_share(ledger, mean, None));
    let elsewhere = [Share::Interrupt, Share::Other]
        .map(|share| sum_of_share(ledger, String::new(), Some(share)));
    let not_in_row = [
        elsewhere[0].base + elsewhere[1].base,
        elsewhere[0].new + elsewhere[1].new,
    ]
    .map(|sum| 0.0 - sum);
    if not_in_row.iter().any(|sum| *sum < 0.0) {
        let name = "interrupts, tasks: not in row".to_owned();
        rows.push(without_ratio(name, not_in_row));
    }
    rows.push(without_ratio("iterations differ".to_owned(), differ));
    let [base, new] = row.values;
    rows.push(CostRow {
        ratio: ratio(base, new),
        ..without_ratio("row: median without the first".to_owned(), row.values)
    });
    rows
}

fn without_ratio(name: String, [base, new]: [f64; 2]) -> CostRow {
    CostRow {
        name,
        base,
        new,
        added: new - base,
        ratio: String::new(),
        calls: None,
        note: "",
    }
}

/// Returns the sum of a share's lines, or of all.
fn sum_of_share(ledger: &Ledger, name: String, share: Option<Share>) -> CostRow {
    let (count_base, count_new) = ledger.total(share);
    let base = ledger.per_operation(0, count_base.instructions);
    let new = ledger.per_operation(1, count_new.instructions);
    CostRow {
        added: ledger.added(count_base, count_new),
        ratio: ratio(base, new),
        ..without_ratio(name, [base, new])
    }
}

/// Returns the ratio as in comparisons: above 1 is better.
fn ratio(base: f64, new: f64) -> String {
    if base > 0.0 && new > 0.0 && base / new < 100.0 {
        format!("{:.3}", base / new)
    } else {
        String::new()
    }
}

/// Returns a difference with its sign; a difference that rounds to zero has none.
fn format_signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if matches!(text.as_str(), "+0.00" | "-0.00") {
        "0.00".to_owned()
    } else {
        text
    }
}

/// Calls per operation of both sides: one number if they are equal.
fn calls(row: &CostRow) -> String {
    let Some([base, new]) = row.calls else {
        return String::new();
    };
    let [base, new] = [base, new].map(|value| {
        if value == 0.0 || value >= 99.5 {
            format!("{value:.0}")
        } else {
            format!("{value:.2}")
        }
    });
    if base != new {
        format!("{base}>{new}")
    } else if base == "0" {
        String::new()
    } else {
        base
    }
}

/// The table of functions, and their sums.
pub(super) fn functions(ledger: &Ledger, max: usize) -> Table {
    let (rows, others) = rows(ledger, max);
    let rows = rows
        .iter()
        .chain(&others)
        .map(|row| row.cells(Weight::Normal));
    let totals = totals(ledger)
        .into_iter()
        .map(|row| row.cells(Weight::Total));
    table("function", rows.chain(totals).collect())
}

pub(super) fn table(head: &str, rows: Vec<TableRow>) -> Table {
    let numbers = [
        ("base", 11),
        ("new", 11),
        ("more work +", 12),
        ("ratio", 7),
        ("calls", 10),
    ];
    let numbers =
        numbers.map(|(head, width)| Column::new(head, ColumnKind::Number, Width::Fixed(width)));
    // Sums of functions have no calls.
    let has_calls = rows
        .iter()
        .any(|row| row.cells.last().is_some_and(|calls| !calls.text.is_empty()));
    let numbers = numbers.into_iter().take(if has_calls { 5 } else { 4 });
    let columns = std::iter::once(Column::new(head, ColumnKind::Name, Width::Fixed(29)))
        .chain(numbers)
        .collect();
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

/// The entry points of a workload as rows of a table: those with a visible difference, and one row
/// for the others.
pub(super) fn entries(calls: &CallDifference) -> Vec<CostRow> {
    let entries = calls
        .entries()
        .into_iter()
        .map(|entry| (entry.name, entry.all))
        .collect();
    sum_rows(entries, calls.operations)
}

/// The source directories of a workload in the same way; empty if no location is known.
pub(super) fn folders(ledger: &Ledger, sources: &Sources) -> Vec<CostRow> {
    if sources.is_empty() {
        return Vec::new();
    }
    sum_rows(
        ledger
            .folders(sources)
            .into_iter()
            .map(|sum| (sum.folder, sum.all))
            .collect(),
        ledger.operations,
    )
}

/// Sums of instructions, largest difference first, as rows that add up.
pub(super) fn sum_rows(sums: Vec<(String, [u64; 2])>, operations: [u64; 2]) -> Vec<CostRow> {
    let rows: Vec<CostRow> = sums
        .iter()
        .map(|(name, all)| sum_row(name.clone(), *all, operations))
        .collect();
    let shown = rows
        .iter()
        .take(ROLLED_UP)
        .take_while(|row| row.added.abs() >= 0.05)
        .count();
    let others = sums[shown..]
        .iter()
        .fold([0, 0], |sum: [u64; 2], (_, all)| {
            [sum[0] + all[0], sum[1] + all[1]]
        });
    let count = sums.len() - shown;
    let rest =
        (shown > 0 && count > 0).then(|| sum_row(format!("{count} others"), others, operations));
    rows.into_iter().take(shown).chain(rest).collect()
}

fn sum_row(name: String, all: [u64; 2], operations: [u64; 2]) -> CostRow {
    let [base, new] = [0, 1].map(|side| all[side] as f64 / operations[side] as f64);
    let added = crate::ledger::scaled(operations, all[0], all[1]) as f64
        / operations[0] as f64
        / operations[1] as f64;
    CostRow::without_calls(name, [base, new], added)
}

impl CostRow {
    /// Returns a row of several functions, whose calls do not add up.
    fn without_calls(name: String, [base, new]: [f64; 2], added: f64) -> Self {
        Self {
            name,
            base,
            new,
            added,
            ratio: ratio(base, new),
            calls: None,
            note: "",
        }
    }
}
