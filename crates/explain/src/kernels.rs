//! Where a workload's instructions go on a kernel, and why another kernel needs more or fewer: budget, entry points, functions,
//! counters, settings and commits, as a document and as JSON.

use document::{Block, Column, Document, Fact, Kind, Row, Table, Weight, Width, cut_middle};
use model::Share;
use report::calls::CallDifference;
use report::ledger::{Ledger, LedgerLine, share_words};
use report::render::{RenderError, SCHEMA_VERSION, schema_of, write_json};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

use crate::finding::percent;
use crate::known::hypotheses;
use crate::suspects::{Setting, Touching};

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
    /// What the numbers of the parts are, per operation: instructions, transfers, or what was sampled.
    pub unit: String,
    /// The whole by who does it, by entry point, by function and such; the first part adds up to the total.
    pub parts: Vec<Part>,
    /// Work that moved within a function.
    pub moved: Vec<String>,
    /// Settings that differ and whose functions differ.
    pub hypotheses: Vec<String>,
    /// Counters of the kernel that moved.
    pub counters: Vec<Sides>,
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
        let of_share = |share: Share| {
            let (base, new) = ledger.total(Some(share));
            sides(share_words(share).to_owned(), base.instructions, new.instructions)
        };
        let mut entries: Vec<Sides> = calls.map_or_else(Vec::new, |calls| {
            calls.entries().into_iter().map(|entry| sides(entry.name, entry.all[0], entry.all[1])).collect()
        });
        let mut lines: Vec<&LedgerLine> = ledger.lines.iter().collect();
        if is_one {
            lines.sort_by_key(|line| std::cmp::Reverse(line.base.instructions));
            entries.sort_by(|one, other| other.base.total_cmp(&one.base));
        } else {
            lines.retain(|line| ledger.is_visible(line));
        }
        let function = |line: &&LedgerLine| {
            let of = if matches!(line.share, Share::Kernel | Share::User) { "" } else { share_words(line.share) };
            let name = if of.is_empty() { line.function.clone() } else { format!("{} ({of})", line.function) };
            sides(name, line.base.instructions, line.new.instructions)
        };
        let parts = [
            ("who", Share::ALL.into_iter().map(of_share).collect()),
            ("entry point", entries),
            (FUNCTION, lines.iter().map(function).collect()),
        ];
        let mut explained = Self {
            workload: ledger.workload.clone(),
            sentence: ledger.sentence(),
            unit: "instructions".into(),
            parts: parts.into_iter().map(|(by, rows)| Part { by, rows }).collect(),
            moved: calls
                .map_or_else(Vec::new, |calls| calls.shifts().iter().map(report::calls::Shift::sentence).collect()),
            hypotheses: Vec::new(),
            counters: Vec::new(),
            commits: Vec::new(),
        };
        if is_one {
            explained.sentence = explained.spending();
        }
        explained
    }

    /// Returns the functions.
    #[must_use]
    pub fn functions(&self) -> &[Sides] {
        self.parts.iter().find(|part| part.by == FUNCTION).map_or(&[], |part| &part.rows)
    }

    /// Looks for settings whose functions differ.
    pub fn suspect(&mut self, settings: &[Setting]) {
        self.hypotheses = hypotheses(settings, self.functions(), self.decimals());
    }

    /// Returns the decimals of its numbers: operations move few lines, and execute many instructions.
    fn decimals(&self) -> usize {
        if self.total() < 100.0 { 3 } else { 1 }
    }

    /// Returns the whole on the base, per operation.
    fn total(&self) -> f64 {
        self.parts.first().map_or(0.0, |part| part.rows.iter().map(|row| row.base).sum())
    }

    /// Returns the sentence of one kernel: the first row of each part, and the first functions.
    #[must_use]
    pub fn spending(&self) -> String {
        let (total, decimals) = (self.total(), self.decimals());
        let share = |row: &Sides| percent(row.base / total.max(f64::MIN_POSITIVE));
        let firsts = self.parts.iter().filter(|part| part.by != FUNCTION).filter_map(|part| part.rows.first());
        let firsts: String = firsts.map(|row| format!(", {} {}", row.name, share(row))).collect();
        let functions: Vec<String> =
            self.functions().iter().take(NAMED).map(|row| format!("{} {}", row.name, share(row))).collect();
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
    /// The workloads.
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

/// Returns the JSON document.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn kernels_json(explained: &KernelsExplained) -> Result<String, RenderError> {
    let missing = explained.missing.iter();
    write_json(&KernelsDocument {
        schema_version: SCHEMA_VERSION,
        kernels: explained.kernels.iter().map(|(_, origin)| origin.clone()).collect(),
        machine: explained.machine.clone(),
        workloads: explained.workloads.clone(),
        missing: missing
            .map(|(workload, why)| MissingDocument { workload: workload.clone(), why: why.clone() })
            .collect(),
        settings: explained.settings.clone(),
        other_options: explained.other_options,
        command: explained.command.clone(),
    })
}

/// Returns its schema.
#[must_use]
pub fn kernels_schema() -> Schema {
    schema_of::<KernelsDocument>("marvin explain KERNEL")
}

/// Returns the document.
#[must_use]
pub fn kernels_document(explained: &KernelsExplained) -> Document {
    let is_one = explained.kernels.len() == 1;
    let mut blocks = Vec::new();
    for workload in &explained.workloads {
        blocks.extend(workload_blocks(workload, is_one));
    }
    if !explained.missing.is_empty() {
        blocks.push(Block::Paragraph("Without an answer:".into()));
        blocks
            .push(Block::List(explained.missing.iter().map(|(workload, why)| format!("{workload}: {why}")).collect()));
    }
    if !explained.settings.is_empty() {
        blocks.push(Block::Heading("Settings that differ".into()));
        blocks.push(settings(explained));
    }
    if !explained.without_commits.is_empty() {
        blocks.push(Block::Note(explained.without_commits.clone()));
    }
    let kernels = explained.kernels.iter();
    let mut facts: Vec<Fact> =
        kernels.map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}"))).collect();
    facts.push(Fact::new("Machine", explained.machine.clone()));
    blocks.extend([Block::Facts(facts), Block::Command(explained.command.clone())]);
    let titles: Vec<&str> = explained.kernels.iter().map(|(title, _)| title.as_str()).collect();
    let title = match titles.as_slice() {
        [base, new] => format!("Why {new} differs from {base}"),
        _ => format!("Where the time goes on {}", titles.join(", ")),
    };
    Document { title, blocks, ..Document::default() }
}

fn workload_blocks(workload: &WorkloadExplained, is_one: bool) -> Vec<Block> {
    let mut blocks = vec![Block::Heading(workload.workload.clone()), Block::Paragraph(workload.sentence.clone())];
    let decimals = workload.decimals();
    let changed = |sides: &&Sides| if is_one { is_visible(sides.base, decimals) } else { visible(sides, decimals) };
    if !workload.hypotheses.is_empty() {
        blocks.push(Block::List(workload.hypotheses.clone()));
    }
    for part in &workload.parts {
        if part.rows.iter().any(|row| changed(&row)) {
            blocks.push(table(part.by, part.rows.iter().filter(changed).take(ROWS), workload, is_one));
        }
    }
    if is_one {
        return blocks;
    }
    if !workload.moved.is_empty() {
        blocks.push(Block::List(workload.moved.iter().take(NAMED).cloned().collect()));
    }
    if !workload.counters.is_empty() {
        blocks.push(counters(&workload.counters));
    }
    for touching in &workload.commits {
        blocks.push(Block::Paragraph(touching.sentence()));
        blocks.push(Block::List(touching.commits.iter().take(ROWS).cloned().collect()));
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

fn table<'a>(head: &str, rows: impl Iterator<Item = &'a Sides>, workload: &WorkloadExplained, is_one: bool) -> Block {
    let (total, decimals) = (workload.total(), workload.decimals());
    let heads = if is_one { vec!["per op", "share"] } else { vec!["base", "new", "more +"] };
    let columns = std::iter::once(Column::new(head, Kind::Name, Width::Fixed(40)))
        .chain(heads.into_iter().map(|head| Column::new(head, Kind::Number, Width::Fixed(13))));
    let cells = |sides: &Sides| {
        let mut cells = vec![sides.name.clone(), format!("{:.decimals$}", sides.base)];
        if is_one {
            cells.push(percent(sides.base / total.max(f64::MIN_POSITIVE)));
        } else {
            cells.extend([format!("{:.decimals$}", sides.new), signed(sides.new - sides.base, decimals)]);
        }
        cells
    };
    let rows = rows.map(|sides| Row::new(Weight::Normal, cells(sides))).collect();
    Block::Table(Table { columns: columns.collect(), rows, ..Table::default() })
}

fn signed(difference: f64, decimals: usize) -> String {
    if is_visible(difference, decimals) { format!("{difference:+.decimals$}") } else { "0".to_owned() }
}

fn counters(rows: &[Sides]) -> Block {
    let columns = std::iter::once(Column::new("counter of the kernel", Kind::Name, Width::Fixed(40)))
        .chain(["base", "new"].map(|head| Column::new(head, Kind::Number, Width::Fixed(13))));
    let cells = |sides: &Sides| [sides.name.clone(), short(sides.base), short(sides.new)];
    let rows = rows.iter().take(ROWS).map(|sides| Row::new(Weight::Normal, cells(sides))).collect();
    Block::Table(Table { columns: columns.collect(), rows, ..Table::default() })
}

fn short(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}

fn settings(explained: &KernelsExplained) -> Block {
    let columns = [("setting", 38), ("base", VALUE + 1), ("new", VALUE)]
        .map(|(head, width)| Column::new(head, Kind::Name, Width::Fixed(width)));
    let cells =
        |setting: &Setting| [setting.name.clone(), cut_middle(&setting.base, VALUE), cut_middle(&setting.new, VALUE)];
    let rows = explained.settings.iter().map(|setting| Row::new(Weight::Normal, cells(setting))).collect();
    let notes = vec![format!("{} other options of the kernel config differ.", explained.other_options)];
    Block::Table(Table { columns: columns.into_iter().collect(), rows, notes, ..Table::default() })
}
