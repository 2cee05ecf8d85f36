//! Ledgers as documents and as JSON.

mod drawings;
mod flame;
mod json;
mod table;
#[cfg(test)]
mod tests;

pub use drawings::{Heads, draw_bars, draw_calls};
pub use json::{json, schema};
use table::{CostRow, entries, folders, functions, rows, table};

use model::CostModel;

use crate::calls::CallDifference;
use crate::ledger::{Ledger, Sources, label};
use crate::modelled::{Figure, Finding, ModelDifference, ModelRow};
use document::{
    Block, Column, ColumnKind, Document, Fact, RenderError, Styles, Table, TableRow, Weight, Width,
    number, text_of,
};

/// The profiles of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct Profiled {
    /// The base: its label and its origin.
    pub base: (String, String),
    /// The new kernel's title and origin.
    pub new: (String, String),
    /// The machine, described in words.
    pub machine: String,
    /// Seeds whose profiles are summed.
    pub seeds: Vec<u64>,
    /// One ledger per workload.
    pub ledgers: Vec<Ledger>,
    /// Workloads without one, with the reason.
    pub missing: Vec<(String, String)>,
    /// The ledgers with inlined functions separate, if both kernels have debug information.
    pub expanded: Vec<Ledger>,
    /// Source locations of functions, as far as known.
    pub sources: Sources,
    /// Their call trees, if calls were followed.
    pub calls: Vec<CallDifference>,
    /// Workloads without a call tree, with the reason.
    pub without_calls: Vec<(String, String)>,
    /// The cost model with all its parameters, if requested.
    pub model: Option<CostModel>,
    /// What the model says of each workload.
    pub modelled: Vec<ModelDifference>,
    /// Workloads without results, with the reason.
    pub without_model: Vec<(String, String)>,
    /// The command that reproduces it.
    pub command: String,
    /// Most functions in the tables of a workload; one line sums up the others.
    pub lines_max: usize,
}

/// The warning above a model's results: they must not be taken for measurements.
const MODEL_SAYS: &str = "What the model says, per operation of the workload's processes:";
/// The note on a model, in every format.
const OF_MODELS: &str = "The model is no measurement: no prefetching, no speculation, one thing after the other. \
Seeds move data and what the branch predictor mixes up, but not the kernel's code in the caches.";
/// Most functions in a model's table, and the width of its numbers.
const MODELLED: usize = 8;
const MODEL_WIDTH: usize = 10;
const PAIRS: usize = 8;
const COSTLY: usize = 8;

/// Most entry points or directories, and most shifts.
const ROLLED_UP: usize = 8;
const SHIFTS: usize = 5;

impl Profiled {
    /// The calls of a workload.
    fn calls_of(&self, workload: &str) -> Option<&CallDifference> {
        self.calls.iter().find(|calls| calls.workload == workload)
    }

    /// The model's results for a workload.
    fn modelled_of(&self, workload: &str) -> Option<&ModelDifference> {
        self.modelled
            .iter()
            .find(|difference| difference.workload == workload)
    }

    /// Workloads with missing parts, by part.
    fn lacking(&self) -> impl Iterator<Item = (&'static str, &[(String, String)])> {
        let lists = [
            ("Without a profile", &self.missing),
            ("Calls were not followed", &self.without_calls),
            ("The model says nothing", &self.without_model),
        ];
        lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(what, list)| (what, list.as_slice()))
    }

    /// The ledger of a workload with inlined functions separate, if its visible lines differ from
    /// the other one's.
    fn expanded_of(&self, ledger: &Ledger) -> Option<&Ledger> {
        let expanded = self
            .expanded
            .iter()
            .find(|expanded| expanded.workload == ledger.workload)?;
        (visible_functions(expanded) != visible_functions(ledger)).then_some(expanded)
    }
}

/// Returns the document of the profiles of two kernels.
///
/// # Errors
/// Never in practice: everything is in memory.
pub fn document(profiled: &Profiled) -> Result<Document, RenderError> {
    let mut blocks = Vec::new();
    for ledger in &profiled.ledgers {
        blocks.push(Block::Heading(ledger.workload.clone()));
        blocks.push(Block::Paragraph(ledger.sentence()));
        if !ledger.is_unchanged() {
            push_changed(&mut blocks, ledger, profiled)?;
        }
        model_says(&mut blocks, profiled, &ledger.workload);
    }
    for (what, workloads) in profiled.lacking() {
        blocks.push(Block::Paragraph(format!("{what}:")));
        blocks.push(Block::List(
            workloads
                .iter()
                .map(|(workload, why)| format!("{workload}: {why}"))
                .collect(),
        ));
    }
    blocks.push(Block::Note(LEGEND.to_owned()));
    blocks.extend(
        profiled
            .model
            .as_ref()
            .map(|_| Block::Note(OF_MODELS.to_owned())),
    );
    let kernels = [&profiled.base, &profiled.new];
    let mut facts: Vec<Fact> = kernels
        .into_iter()
        .map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}")))
        .collect();
    facts.push(Fact::new("Machine", profiled.machine.clone()));
    facts.extend(
        profiled
            .model
            .as_ref()
            .map(|model| Fact::new("Model", model.to_string())),
    );
    facts.push(Fact::new("Seeds", number::seed_list(&profiled.seeds)));
    blocks.extend([
        Block::Facts(facts),
        Block::Command(profiled.command.clone()),
    ]);
    let title = format!("Profile: {} against {}", profiled.new.0, profiled.base.0);
    Ok(Document {
        title,
        blocks,
        ..Document::default()
    })
}

/// Renders one ledger for a report on another subject, in 80 columns: its sentence, the functions
/// and their sums.
#[must_use]
pub fn brief(ledger: &Ledger, lines_max: usize) -> String {
    let table = (!ledger.is_unchanged()).then(|| Block::Table(functions(ledger, lines_max)));
    let blocks: Vec<Block> = std::iter::once(Block::Paragraph(ledger.sentence()))
        .chain(table)
        .collect();
    text_of(&blocks, &Styles::plain())
}

/// The blocks of a workload that changed.
fn push_changed(
    blocks: &mut Vec<Block>,
    ledger: &Ledger,
    profiled: &Profiled,
) -> Result<(), RenderError> {
    let calls = profiled.calls_of(&ledger.workload);
    blocks.extend(drawings::bars(ledger, profiled)?);
    blocks.push(Block::Table(functions(ledger, profiled.lines_max)));
    push_list(
        blocks,
        "Perhaps the same under another name, or inlined (suggested, never merged):",
        suggestions(ledger, PAIRS),
    );
    push_list(
        blocks,
        "Costly instructions of kernel and user code, per operation:",
        ledger
            .costly
            .iter()
            .take(COSTLY)
            .map(crate::ledger::CostlyLine::sentence)
            .collect(),
    );
    let apart = profiled.expanded_of(ledger).map(|expanded| {
        let (rows, others) = rows(expanded, profiled.lines_max);
        rows.into_iter().chain(others).collect()
    });
    let roll_ups: [(&str, Vec<CostRow>); 3] = [
        ("with inlined functions apart", apart.unwrap_or_default()),
        ("by source folder", folders(ledger, &profiled.sources)),
        ("by entry point", calls.map(entries).unwrap_or_default()),
    ];
    blocks.extend(
        roll_ups
            .iter()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(head, rows)| {
                Block::Table(table(
                    head,
                    rows.iter().map(|row| row.cells(Weight::Normal)).collect(),
                ))
            }),
    );
    let shifts = calls.map(shifts).unwrap_or_default();
    push_list(
        blocks,
        "Cost shifts, from one call to another below the same function:",
        shifts,
    );
    blocks.extend(
        calls
            .map(|calls| draw_calls(&ledger.workload, calls))
            .transpose()?,
    );
    Ok(())
}

/// Adds a list below its heading, unless it is empty.
fn push_list(blocks: &mut Vec<Block>, head: &str, items: Vec<String>) {
    if !items.is_empty() {
        blocks.extend([Block::Paragraph(head.to_owned()), Block::List(items)]);
    }
}

fn visible_functions(ledger: &Ledger) -> Vec<&str> {
    let visible = ledger.lines.iter().filter(|line| ledger.is_visible(line));
    visible.map(|line| line.function.as_str()).collect()
}

/// Adds the model's results, if there are some.
fn model_says(blocks: &mut Vec<Block>, profiled: &Profiled, workload: &str) {
    let Some(difference) = profiled.modelled_of(workload) else {
        return;
    };
    let functions = &difference.functions[..difference.functions.len().min(MODELLED)];
    blocks.push(Block::Paragraph(MODEL_SAYS.to_owned()));
    for (head, rows) in [
        ("", &*difference.rows),
        ("estimated cycles by function", functions),
    ] {
        let columns = vec![
            Column::new(head, ColumnKind::Name, Width::Fixed(30)),
            Column::new("base", ColumnKind::Number, Width::Fixed(11)),
            Column::new("new", ColumnKind::Number, Width::Fixed(11)),
            Column::new("ratio", ColumnKind::Number, Width::Fixed(7)),
            Column::new("over seeds", ColumnKind::Words, Width::Fixed(19)),
        ];
        let rows: Vec<TableRow> = rows.iter().map(model_row).collect();
        blocks.extend((!rows.is_empty()).then_some(Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        })));
    }
}

fn model_row(row: &ModelRow) -> TableRow {
    let [base, new] = row.figures;
    let mean = |figure: Figure| number::value(figure.mean, MODEL_WIDTH);
    let ratio = match row.finding {
        Finding::Unstable | Finding::FewSeeds => String::new(),
        Finding::Same if base.mean.max(new.mean) < 0.01 => String::new(),
        _ if base.mean <= 0.0 || new.mean <= 0.0 => String::new(),
        _ => number::ratio(base.mean / new.mean, 6),
    };
    let finding = match row.finding {
        Finding::Unstable => {
            let [base, new] = row.figures.map(|figure| {
                let half = figure.most - figure.least;
                let percent = 50.0 * half / figure.mean.max(f64::MIN_POSITIVE);
                format!("±{percent:.*}%", usize::from(percent < 1.0))
            });
            format!("unstable {base} {new}")
        }
        finding => finding.name().to_owned(),
    };
    TableRow::new(
        Weight::Normal,
        [row.name.clone(), mean(base), mean(new), ratio, finding],
    )
}

/// The shifts, as sentences.
fn shifts(calls: &CallDifference) -> Vec<String> {
    calls
        .shifts()
        .iter()
        .take(SHIFTS)
        .map(crate::calls::Shift::sentence)
        .collect()
}

/// The note on its numbers, in every format.
const LEGEND: &str = "Instructions per operation, counted one by one, not sampled. More work +: new minus base, so + is \
worse here; percent and ratio (base / new) are a comparison's, so -5% and 0.95 are worse; all lines together are the ledger, and the last lines say how it becomes the value of a comparison's row. Iterations of repeated string instructions (rep movs, rep stos) \
count one each. Instructions are not cycles.";

/// The suggestions as sentences.
fn suggestions(ledger: &Ledger, max: usize) -> Vec<String> {
    let mut sentences = Vec::new();
    for pair in &ledger.pairs {
        let gone = &ledger.lines[pair.gone];
        let new = &ledger.lines[pair.new];
        if !ledger.is_visible(gone) && !ledger.is_visible(new) {
            continue;
        }
        let before = ledger.line_added(gone);
        let after = ledger.line_added(new);
        sentences.push(format!(
            "{} {before:+.1} -> {} {after:+.1}, net {:+.1}",
            label(gone),
            label(new),
            before + after
        ));
    }
    sentences.truncate(max);
    sentences
}
