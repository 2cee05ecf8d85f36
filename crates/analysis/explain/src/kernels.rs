//! Where a workload's instructions go on a kernel, and why another kernel needs more or fewer:
//! budget, entry points, functions, counters, settings and commits, as a document and as JSON.

use document::{
    Block, Column, ColumnKind, Document, Fact, RenderError, SCHEMA_VERSION, Table, TableRow,
    Weight, Width, cut_middle, schema_of, write_json,
};
use model::{Counted, Share, WATCHED};
use profile::calls::CallDifference;
use profile::ledger::{Ledger, LedgerLine, share_words};
use profile::modelled::{Finding, ModelDifference};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::config_hypotheses::hypotheses;
use crate::differing_settings::{Setting, Touching};
use crate::finding::percent;

/// Rows that a table has at most.
const ROWS: usize = 8;
/// Width of a setting's value.
const VALUE: usize = 20;
/// Functions that a sentence names.
const NAMED: usize = 3;

/// A number of both kernels, with its name; both are the same with one kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Sides {
    /// Its name.
    pub name: String,
    /// On the base.
    pub base: f64,
    /// On the new kernel.
    pub new: f64,
}

/// A whole, taken apart in one way.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Part {
    /// By what: `function`, `entry point`.
    pub by: &'static str,
    /// The rows, the largest difference or share first.
    pub rows: Vec<Sides>,
}

/// The part that hypotheses and commits are looked for in.
const FUNCTION: &str = "function";

/// A workload on one kernel or two.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct WorkloadExplained {
    /// The workload.
    pub workload: String,
    /// The answer.
    pub sentence: String,
    /// What the numbers of the parts are, per operation: instructions, transfers, or what was
    /// sampled.
    pub unit: String,
    /// The whole by who does it, by entry point, by function and such; the first part adds up to
    /// the total.
    pub parts: Vec<Part>,
    /// Work that moved within a function.
    pub moved: Vec<String>,
    /// Settings that differ and whose functions differ.
    pub hypotheses: Vec<String>,
    /// Of two kernels, what the kernel did that is not equally often: events per operation, then
    /// counters of the whole workload. Of one, its events per operation.
    pub counters: Vec<Sides>,
    /// Estimated cycles per operation of a modelled processor, by what takes them, the sum at the
    /// end; empty without a model. Of two kernels, what differs.
    pub modelled: Vec<Sides>,
    /// Commits that touch the functions with the largest differences: hypotheses for a bisection.
    pub commits: Vec<Touching>,
}

impl WorkloadExplained {
    /// Takes a ledger apart; with one kernel both sides of the ledger are that kernel.
    #[must_use]
    pub fn new(ledger: &Ledger, calls: Option<&CallDifference>, is_one: bool) -> Self {
        let sides = |name: String, base: u64, new: u64| Sides {
            name,
            base: ledger.per_operation(0, base),
            new: ledger.per_operation(1, new),
        };
        let mut shares = Vec::new();
        for share in Share::ALL {
            let (base, new) = ledger.total(Some(share));
            let name = share_words(share).to_owned();
            shares.push(sides(name, base.instructions, new.instructions));
        }
        let entries: Vec<Sides> = calls.map_or_else(Vec::new, |calls| {
            calls
                .entries()
                .into_iter()
                .map(|entry| sides(entry.name, entry.all[0], entry.all[1]))
                .collect()
        });
        let mut lines: Vec<&LedgerLine> = ledger.lines.iter().collect();
        lines.retain(|line| is_one || ledger.is_visible(line));
        let mut functions = Vec::new();
        for line in lines {
            let name = match line.share {
                Share::Kernel | Share::User => line.function.clone(),
                share => format!("{} ({})", line.function, share_words(share)),
            };
            functions.push(sides(name, line.base.instructions, line.new.instructions));
        }
        let parts = [
            ("who", shares),
            ("entry point", entries),
            (FUNCTION, functions),
        ];
        let explained = Self {
            workload: ledger.workload.clone(),
            sentence: ledger.sentence(),
            unit: "instructions".into(),
            parts: parts
                .into_iter()
                .map(|(by, rows)| Part { by, rows })
                .collect(),
            moved: calls.map_or_else(Vec::new, |calls| {
                calls
                    .shifts()
                    .iter()
                    .map(profile::calls::Shift::sentence)
                    .collect()
            }),
            hypotheses: Vec::new(),
            counters: events(ledger, is_one),
            modelled: Vec::new(),
            commits: Vec::new(),
        };
        if is_one {
            explained.of_one()
        } else {
            explained
        }
    }

    /// Turns it into the answer for one kernel: the largest first, and where it spends.
    #[must_use]
    pub fn of_one(mut self) -> Self {
        for part in &mut self.parts {
            part.rows
                .sort_by(|one, other| other.base.total_cmp(&one.base));
        }
        self.sentence = self.spending();
        self
    }

    /// Returns the rows by function, largest difference first.
    #[must_use]
    pub fn functions(&self) -> &[Sides] {
        self.parts
            .iter()
            .find(|part| part.by == FUNCTION)
            .map_or(&[], |part| &part.rows)
    }

    /// Adds what a model says: of one kernel all that takes cycles, of two what differs with every
    /// seed.
    pub fn add_model(&mut self, difference: &ModelDifference, is_one: bool) {
        self.modelled.clear();
        for row in &difference.rows {
            if is_one || matches!(row.finding, Finding::More | Finding::Less) {
                self.modelled.push(Sides {
                    name: row.name.clone(),
                    base: row.cycles[0],
                    new: row.cycles[1],
                });
            }
        }
    }

    /// Looks for settings whose functions differ.
    pub fn suspect(&mut self, settings: &[Setting]) {
        self.hypotheses = hypotheses(settings, self.functions(), self.decimals());
    }

    /// Returns the decimals of its numbers: operations move few lines, and execute many
    /// instructions.
    fn decimals(&self) -> usize {
        if self.total() < 100.0 { 3 } else { 1 }
    }

    /// Returns the whole on the base, per operation.
    fn total(&self) -> f64 {
        self.parts
            .first()
            .map_or(0.0, |part| part.rows.iter().map(|row| row.base).sum())
    }

    /// Returns the sentence of one kernel: the first row of each part, and the first functions.
    fn spending(&self) -> String {
        let total = self.total();
        let decimals = self.decimals();
        let share = |row: &Sides| percent(row.base / total.max(f64::MIN_POSITIVE));
        let firsts = self
            .parts
            .iter()
            .filter(|part| part.by != FUNCTION)
            .filter_map(|part| part.rows.first());
        let firsts: String = firsts
            .map(|row| format!(", {} {}", row.name, share(row)))
            .collect();
        let functions: Vec<String> = self
            .functions()
            .iter()
            .take(NAMED)
            .map(|row| format!("{} {}", row.name, share(row)))
            .collect();
        format!(
            "{}: {total:.decimals$} {} per operation{firsts}; most in {}",
            self.workload,
            self.unit,
            functions.join(", ")
        )
    }
}

/// One kernel or two, explained.
#[derive(Debug, Clone)]
pub struct KernelsExplained {
    /// Label and origin of each.
    pub kernels: Vec<(String, String)>,
    /// The machine, described in words.
    pub machine: String,
    /// Each workload that both kernels executed.
    pub workloads: Vec<WorkloadExplained>,
    /// Workloads without an answer, with the reason.
    pub missing: Vec<(String, String)>,
    /// Settings that differ.
    pub settings: Vec<Setting>,
    /// Options of the kernel config that differ beside them.
    pub other_options: usize,
    /// Why no commits are named; empty if they were looked for.
    pub without_commits: String,
    /// The command that repeats it.
    pub command: String,
}

#[derive(Serialize, JsonSchema)]
struct MissingDocument {
    workload: String,
    why: String,
}

#[derive(Serialize, JsonSchema)]
struct KernelsDocument {
    schema_version: u32,
    /// One kernel, or the base and the new one.
    kernels: Vec<String>,
    machine: String,
    workloads: Vec<WorkloadExplained>,
    missing: Vec<MissingDocument>,
    settings: Vec<Setting>,
    /// Options of the kernel config that differ beside those of `settings`.
    other_options: usize,
    command: String,
}

/// Returns what the kernel did per operation, of [`WATCHED`]: of two kernels, what one did more
/// often.
fn events(ledger: &Ledger, is_one: bool) -> Vec<Sides> {
    let mut events: Vec<Sides> = Vec::new();
    for (function, _, about) in WATCHED
        .into_iter()
        .filter(|(_, counted, _)| *counted == Counted::Times)
    {
        let lines = ledger.lines.iter().filter(|line| line.function == function);
        let base = lines.clone().map(|line| line.base.calls).sum();
        let new = lines.map(|line| line.new.calls).sum();
        let [base, new] = [ledger.per_operation(0, base), ledger.per_operation(1, new)];
        let name = format!("{about} per operation");
        match events.iter_mut().find(|event| event.name == name) {
            // The function has several names.
            Some(event) => (event.base, event.new) = (event.base + base, event.new + new),
            None => events.push(Sides { name, base, new }),
        }
    }
    events.retain(|event| {
        is_visible(
            if is_one {
                event.base
            } else {
                event.new - event.base
            },
            2,
        )
    });
    events
}

/// Returns the JSON document.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn kernels_json(explained: &KernelsExplained) -> Result<String, RenderError> {
    let missing = explained.missing.iter();
    write_json(&KernelsDocument {
        schema_version: SCHEMA_VERSION,
        kernels: explained
            .kernels
            .iter()
            .map(|(_, origin)| origin.clone())
            .collect(),
        machine: explained.machine.clone(),
        workloads: explained.workloads.clone(),
        missing: missing
            .map(|(workload, why)| MissingDocument {
                workload: workload.clone(),
                why: why.clone(),
            })
            .collect(),
        settings: explained.settings.clone(),
        other_options: explained.other_options,
        command: explained.command.clone(),
    })
}

/// Returns the schema of its JSON.
#[must_use]
pub fn kernels_schema() -> Schema {
    schema_of::<KernelsDocument>("marvin explain KERNEL")
}

/// Returns the document that answers why the kernels differ.
#[must_use]
pub fn kernels_document(explained: &KernelsExplained) -> Document {
    let is_one = explained.kernels.len() == 1;
    let mut blocks = Vec::new();
    for workload in &explained.workloads {
        blocks.extend(workload_blocks(workload, is_one));
    }
    if !explained.missing.is_empty() {
        blocks.push(Block::Paragraph("Without an answer:".into()));
        blocks.push(Block::List(
            explained
                .missing
                .iter()
                .map(|(workload, why)| format!("{workload}: {why}"))
                .collect(),
        ));
    }
    if !explained.settings.is_empty() {
        blocks.push(Block::Heading("Settings that differ".into()));
        blocks.push(settings(explained));
    }
    if !explained.without_commits.is_empty() {
        blocks.push(Block::Note(explained.without_commits.clone()));
    }
    let kernels = explained.kernels.iter();
    let mut facts: Vec<Fact> = kernels
        .map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}")))
        .collect();
    facts.push(Fact::new("Machine", explained.machine.clone()));
    blocks.extend([
        Block::Facts(facts),
        Block::Command(explained.command.clone()),
    ]);
    let titles: Vec<&str> = explained
        .kernels
        .iter()
        .map(|(title, _)| title.as_str())
        .collect();
    let title = match titles.as_slice() {
        [base, new] => format!("Why {new} differs from {base}"),
        _ => format!("Where the time goes on {}", titles.join(", ")),
    };
    Document {
        title,
        blocks,
        ..Document::default()
    }
}

fn workload_blocks(workload: &WorkloadExplained, is_one: bool) -> Vec<Block> {
    let mut blocks = vec![
        Block::Heading(workload.workload.clone()),
        Block::Paragraph(workload.sentence.clone()),
    ];
    let decimals = workload.decimals();
    if !workload.hypotheses.is_empty() {
        blocks.push(Block::List(workload.hypotheses.clone()));
    }
    let shown = Shown {
        total: workload.total(),
        decimals,
        is_one,
    };
    for part in &workload.parts {
        let rows = part.rows.iter().filter(|sides| {
            if is_one {
                is_visible(sides.base, decimals)
            } else {
                visible(sides, decimals)
            }
        });
        if rows.clone().next().is_some() {
            blocks.push(table(part.by, rows.take(ROWS), shown));
        }
    }
    if let Some(whole) = workload.modelled.last() {
        let shown = Shown {
            total: whole.base,
            decimals: 1,
            is_one,
        };
        blocks.push(table(
            "estimated cycles, modelled",
            workload.modelled.iter(),
            shown,
        ));
    }
    if !workload.counters.is_empty() {
        blocks.push(counters(&workload.counters, is_one));
    }
    if is_one {
        return blocks;
    }
    if !workload.moved.is_empty() {
        blocks.push(Block::List(
            workload.moved.iter().take(NAMED).cloned().collect(),
        ));
    }
    for touching in &workload.commits {
        blocks.push(Block::Paragraph(touching.sentence()));
        blocks.push(Block::List(
            touching.commits.iter().take(ROWS).cloned().collect(),
        ));
    }
    blocks
}

fn visible(sides: &Sides, decimals: usize) -> bool {
    is_visible(sides.new - sides.base, decimals)
}

/// Whether a number is more than zero with that many decimals.
fn is_visible(number: f64, decimals: usize) -> bool {
    number.abs() >= 0.5 / 10_f64.powi(i32::try_from(decimals).unwrap_or_default())
}

/// How numbers are shown.
#[derive(Clone, Copy)]
struct Shown {
    /// The whole, on the base.
    total: f64,
    decimals: usize,
    is_one: bool,
}

fn table<'a>(head: &str, rows: impl Iterator<Item = &'a Sides>, shown: Shown) -> Block {
    let Shown {
        total,
        decimals,
        is_one,
    } = shown;
    let heads: &[&str] = if is_one {
        &["per op", "share"]
    } else {
        &["base", "new", "more +"]
    };
    let rows = rows.map(|sides| {
        let mut cells = vec![sides.name.clone(), format!("{:.decimals$}", sides.base)];
        if is_one {
            cells.push(percent(sides.base / total.max(f64::MIN_POSITIVE)));
        } else {
            cells.extend([
                format!("{:.decimals$}", sides.new),
                signed(sides.new - sides.base, decimals),
            ]);
        }
        TableRow::new(Weight::Normal, cells)
    });
    let rows = rows.collect();
    Block::Table(Table {
        columns: columns(head, heads),
        rows,
        ..Table::default()
    })
}

fn signed(difference: f64, decimals: usize) -> String {
    if is_visible(difference, decimals) {
        format!("{difference:+.decimals$}")
    } else {
        "0".to_owned()
    }
}

fn counters(rows: &[Sides], is_one: bool) -> Block {
    let heads: &[&str] = if is_one {
        &["number"]
    } else {
        &["base", "new"]
    };
    let rows = rows.iter().take(ROWS).map(|sides| {
        let cells = [sides.name.clone(), short(sides.base), short(sides.new)];
        TableRow::new(Weight::Normal, cells.into_iter().take(1 + heads.len()))
    });
    let rows = rows.collect();
    let columns = columns("what the kernel did", heads);
    Block::Table(Table {
        columns,
        rows,
        ..Table::default()
    })
}

/// Returns the columns of a table: names, then numbers.
fn columns(head: &str, heads: &[&str]) -> Vec<Column> {
    std::iter::once(Column::new(head, ColumnKind::Name, Width::Fixed(40)))
        .chain(
            heads
                .iter()
                .map(|head| Column::new(head, ColumnKind::Number, Width::Fixed(13))),
        )
        .collect()
}

fn short(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number:.0}")
    } else {
        format!("{number:.2}")
    }
}

fn settings(explained: &KernelsExplained) -> Block {
    let columns = [("setting", 38), ("base", VALUE + 1), ("new", VALUE)]
        .map(|(head, width)| Column::new(head, ColumnKind::Name, Width::Fixed(width)));
    let rows = explained.settings.iter().map(|setting| {
        let cells = [
            setting.name.clone(),
            cut_middle(&setting.base, VALUE),
            cut_middle(&setting.new, VALUE),
        ];
        TableRow::new(Weight::Normal, cells)
    });
    let rows = rows.collect();
    let notes = vec![format!(
        "{} other options of the kernel config differ.",
        explained.other_options
    )];
    Block::Table(Table {
        columns: columns.into_iter().collect(),
        rows,
        notes,
        ..Table::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CostEvent, Modelled, ModelledLine, Profile, ProfileLine};

    fn ledger(base: u64, new: u64) -> Ledger {
        let [base, new] = [base, new].map(|calls| {
            let lines = [
                ("__switch_to_asm", 10 * calls, calls),
                ("pipe_read", 5000, 100),
            ];
            let lines = lines.map(|(symbol, instructions, calls)| ProfileLine {
                share: Share::Kernel,
                symbol: symbol.into(),
                instructions,
                repeated: 0,
                calls,
                costly: model::CostlyCounts::default(),
            });
            Profile {
                operations: 100,
                regions: Vec::new(),
                lines: lines.into(),
            }
        });
        Ledger::new("pipe", &[base], &[new]).unwrap()
    }

    #[test]
    fn events_are_told_where_they_differ() {
        let switches = |ledger: &Ledger, is_one| -> Vec<(f64, f64)> {
            events(ledger, is_one)
                .iter()
                .map(|event| (event.base, event.new))
                .collect()
        };
        assert_eq!(switches(&ledger(200, 300), false), [(2.0, 3.0)]);
        assert_eq!(switches(&ledger(200, 200), false), []);
        assert_eq!(switches(&ledger(200, 200), true), [(2.0, 2.0)]);
        assert_eq!(
            events(&ledger(200, 300), false)[0].name,
            "context switches per operation"
        );
    }

    #[test]
    fn model_tells_what_takes_cycles() {
        let [base, new] = [50, 90].map(|misses| {
            let mut events = [0; CostEvent::ALL.len()];
            events[CostEvent::L1i as usize] = misses;
            let line = ModelledLine {
                share: Share::Kernel,
                symbol: "f".into(),
                instructions: 4000,
                events,
            };
            let seed = Modelled {
                operations: 10,
                lines: vec![line],
            };
            vec![seed; 3]
        });
        let model = model::CostModel::default();
        let difference = ModelDifference::new("pipe", &model, [&base, &new]).unwrap();
        let mut explained = WorkloadExplained::new(&ledger(1, 1), None, false);
        explained.add_model(&difference, false);
        let modelled: Vec<(&str, f64, f64)> = explained
            .modelled
            .iter()
            .map(|sides| (&*sides.name, sides.base, sides.new))
            .collect();
        // 4 instructions per cycle, 10 cycles for a miss.
        assert_eq!(
            modelled,
            [
                ("L1I misses", 50.0, 90.0),
                ("estimated cycles", 150.0, 190.0)
            ]
        );
        explained.add_model(&difference, true);
        let parts: f64 = explained
            .modelled
            .iter()
            .rev()
            .skip(1)
            .map(|sides| sides.base)
            .sum();
        assert!(
            (parts - 150.0).abs() < 1e-9,
            "the parts are the whole: {:?}",
            explained.modelled
        );
    }
}
