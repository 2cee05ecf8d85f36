//! Ledgers as documents and as JSON.

mod drawings;
mod flame;
mod json;

pub use drawings::{Heads, draw_bars, draw_calls};
pub use json::json;
pub(crate) use json::schema;

use model::{CostModel, Share};

use crate::calls::CallDifference;
use crate::ledger::{Ledger, LedgerLine, Sources, label, share_words};
use crate::modelled::{Figure, Finding, ModelDifference, ModelRow};
use crate::render::{RenderError, Styles, number};
use document::{Block, Column, Document, Fact, Kind, Row, Table, Weight, Width, text_of};

/// The profiles of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct Profiled {
    /// The base: its label and its origin.
    pub base: (String, String),
    /// The new kernel.
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
    /// Its results.
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
/// Most suggested pairs.
const PAIRS: usize = 8;

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
        let names = |ledger: &Ledger| -> Vec<String> {
            ledger
                .lines
                .iter()
                .filter(|line| ledger.is_visible(line))
                .map(|line| line.function.clone())
                .collect()
        };
        (names(expanded) != names(ledger)).then_some(expanded)
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
    let apart = profiled.expanded_of(ledger).map(|expanded| {
        let (rows, others) = rows(expanded, profiled.lines_max);
        rows.into_iter().chain(others).collect()
    });
    let roll_ups: [(&str, Vec<TableRow>); 3] = [
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
        let number = |head, width| Column::new(head, Kind::Number, Width::Fixed(width));
        let columns = vec![
            Column::new(head, Kind::Name, Width::Fixed(30)),
            number("base", 11),
            number("new", 11),
            number("ratio", 7),
            Column::new("over seeds", Kind::Words, Width::Fixed(19)),
        ];
        let rows: Vec<Row> = rows.iter().map(model_row).collect();
        blocks.extend((!rows.is_empty()).then_some(Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        })));
    }
}

fn model_row(row: &ModelRow) -> Row {
    let [base, new] = row.figures;
    let mean = |figure: Figure| number::value(figure.mean, MODEL_WIDTH);
    let ratio = match row.finding {
        Finding::Unstable | Finding::FewSeeds => String::new(),
        Finding::Same if base.mean.max(new.mean) < 0.01 => String::new(),
        _ if base.mean <= 0.0 => String::new(),
        _ => number::ratio(new.mean / base.mean, 6),
    };
    let finding = match row.finding {
        Finding::Unstable => {
            let half = |figure: Figure| {
                50.0 * (figure.most - figure.least) / figure.mean.max(f64::MIN_POSITIVE)
            };
            let part = |percent: f64| format!("±{percent:.*}%", usize::from(percent < 1.0));
            format!("unstable {} {}", part(half(base)), part(half(new)))
        }
        finding => finding.word().to_owned(),
    };
    Row::new(
        Weight::Normal,
        [row.name.clone(), mean(base), mean(new), ratio, finding],
    )
}

/// The table of functions, and their sums.
fn functions(ledger: &Ledger, max: usize) -> Table {
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

fn table(head: &str, rows: Vec<Row>) -> Table {
    let numbers = [
        ("base", 11),
        ("new", 11),
        ("more work +", 12),
        ("ratio", 7),
        ("calls", 10),
    ];
    let numbers = numbers.map(|(head, width)| Column::new(head, Kind::Number, Width::Fixed(width)));
    // Sums of functions have no calls.
    let has_calls = rows
        .iter()
        .any(|row| row.cells.last().is_some_and(|calls| !calls.text.is_empty()));
    let numbers = numbers.into_iter().take(if has_calls { 5 } else { 4 });
    let columns = std::iter::once(Column::new(head, Kind::Name, Width::Fixed(29)))
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
fn entries(calls: &CallDifference) -> Vec<TableRow> {
    let entries = calls
        .entries()
        .into_iter()
        .map(|entry| (entry.name, entry.all))
        .collect();
    sum_rows(entries, calls.operations)
}

/// The source directories of a workload in the same way; empty if no location is known.
fn folders(ledger: &Ledger, sources: &Sources) -> Vec<TableRow> {
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
fn sum_rows(sums: Vec<(String, [u64; 2])>, operations: [u64; 2]) -> Vec<TableRow> {
    let row = |name: String, all: [u64; 2]| {
        let [base, new] = [0, 1].map(|side| all[side] as f64 / operations[side] as f64);
        let added = crate::ledger::scaled(operations, all[0], all[1]) as f64
            / operations[0] as f64
            / operations[1] as f64;
        TableRow {
            name,
            base,
            new,
            added,
            ratio: ratio(base, new),
            calls: None,
            note: "",
        }
    };
    let rows: Vec<TableRow> = sums
        .iter()
        .map(|(name, all)| row(name.clone(), *all))
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
    let rest = (shown > 0 && count > 0).then(|| row(format!("{count} others"), others));
    rows.into_iter().take(shown).chain(rest).collect()
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
worse here; all lines together are the ledger, and the last lines say how it becomes the value of a comparison's row. Iterations of repeated string instructions (rep movs, rep stos) \
count one each. Instructions are not cycles.";

/// One line of a table.
struct TableRow {
    name: String,
    base: f64,
    new: f64,
    added: f64,
    ratio: String,
    /// Calls per operation of both sides; `None` for lines without calls.
    calls: Option<[f64; 2]>,
    /// How lines were matched; replaces the ratio if there is none.
    note: &'static str,
}

impl TableRow {
    fn cells(&self, weight: Weight) -> Row {
        let number = |value: f64| format!("{value:.2}");
        let ratio = if self.ratio.is_empty() {
            self.note
        } else {
            &self.ratio
        };
        let numbers = [
            number(self.base),
            number(self.new),
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
        Row::new(weight, std::iter::once(name).chain(numbers))
    }
}

/// The displayed lines of a ledger, and one for the others.
fn rows(ledger: &Ledger, max: usize) -> (Vec<TableRow>, Option<TableRow>) {
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
    let sum = |side: fn(&LedgerLine) -> u64| others.iter().map(side).sum::<u64>();
    let (base, new) = (
        sum(|line| line.base.instructions),
        sum(|line| line.new.instructions),
    );
    let [base, new] = [ledger.per_operation(0, base), ledger.per_operation(1, new)];
    let added = others.iter().map(|line| ledger.line_added(line)).sum();
    let name = format!("{} others", others.len());
    (
        rows,
        Some(TableRow {
            name,
            base,
            new,
            added,
            ratio: ratio(base, new),
            calls: None,
            note: "",
        }),
    )
}

fn row(ledger: &Ledger, line: &LedgerLine) -> TableRow {
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
    TableRow {
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
fn totals(ledger: &Ledger) -> Vec<TableRow> {
    let plain = |name: String, [base, new]: [f64; 2]| TableRow {
        name,
        base,
        new,
        added: new - base,
        ratio: String::new(),
        calls: None,
        note: "",
    };
    let of = |name: String, share: Option<Share>| {
        let (count_base, count_new) = ledger.total(share);
        let base = ledger.per_operation(0, count_base.instructions);
        let new = ledger.per_operation(1, count_new.instructions);
        let added = ledger.added(count_base, count_new);
        TableRow {
            added,
            ratio: ratio(base, new),
            ..plain(name, [base, new])
        }
    };
    let is_there = |row: &TableRow| row.base > 0.0 || row.new > 0.0;
    let shares = Share::ALL
        .into_iter()
        .map(|share| of(share_words(share).to_owned(), Some(share)));
    let mut rows: Vec<TableRow> = shares.filter(is_there).collect();
    let (Some(row), Some(differ)) = (ledger.row, ledger.iterations_differ()) else {
        rows.push(of("total".to_owned(), None));
        return rows;
    };
    rows.push(of(
        format!("ledger: mean of {} iterations", row.iterations),
        None,
    ));
    let elsewhere = [Share::Interrupt, Share::Other].map(|share| of(String::new(), Some(share)));
    let not_in_row = [
        elsewhere[0].base + elsewhere[1].base,
        elsewhere[0].new + elsewhere[1].new,
    ]
    .map(|sum| 0.0 - sum);
    if not_in_row.iter().any(|sum| *sum < 0.0) {
        rows.push(plain(
            "interrupts, tasks: not in row".to_owned(),
            not_in_row,
        ));
    }
    rows.push(plain("iterations differ".to_owned(), differ));
    let [base, new] = row.values;
    rows.push(TableRow {
        ratio: ratio(base, new),
        ..plain("row: median without the first".to_owned(), row.values)
    });
    rows
}

fn ratio(base: f64, new: f64) -> String {
    if base > 0.0 && new > 0.0 && new / base < 100.0 {
        format!("{:.3}", new / base)
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
fn calls(row: &TableRow) -> String {
    let Some([base, new]) = row.calls else {
        return String::new();
    };
    let number = |value: f64| {
        if value == 0.0 || value >= 99.5 {
            format!("{value:.0}")
        } else {
            format!("{value:.2}")
        }
    };
    let (base, new) = (number(base), number(new));
    if base != new {
        format!("{base}>{new}")
    } else if base == "0" {
        String::new()
    } else {
        base
    }
}

/// The suggestions as sentences.
fn suggestions(ledger: &Ledger, max: usize) -> Vec<String> {
    let sentence = |pair: &crate::ledger::Pair| {
        let (gone, new) = (&ledger.lines[pair.gone], &ledger.lines[pair.new]);
        let (before, after) = (ledger.line_added(gone), ledger.line_added(new));
        format!(
            "{} {before:+.1} -> {} {after:+.1}, net {:+.1}",
            label(gone),
            label(new),
            before + after
        )
    };
    let is_visible = |pair: &&crate::ledger::Pair| {
        ledger.is_visible(&ledger.lines[pair.gone]) || ledger.is_visible(&ledger.lines[pair.new])
    };
    ledger
        .pairs
        .iter()
        .filter(is_visible)
        .take(max)
        .map(sentence)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Profiled, brief, document, json};
    use crate::calls::CallDifference;
    use crate::calls::tests::tree;
    use crate::ledger::tests::profile;
    use crate::ledger::{Ledger, Sources};
    use crate::modelled::ModelDifference;
    use crate::render::Styles;
    use model::{CostModel, SourceLocation};

    fn profiled() -> Profiled {
        let base = profile(
            100,
            &[
                ("[user]", 500, 0),
                ("__handle_mm_fault", 34_999, 100),
                ("mtree_range_walk", 13_809, 100),
                ("__alloc_pages", 10_516, 100),
                ("rmqueue_bulk.isra.0", 10_494, 3),
                ("clear_page_rep", 51_700, 100),
                (
                    "a_function_with_a_very_long_name_that_does_not_fit_into_any_table",
                    900,
                    100,
                ),
            ],
        );
        let new = profile(
            100,
            &[
                ("[user]", 500, 0),
                ("__handle_mm_fault", 21_002, 100),
                ("mas_walk", 17_111, 100),
                ("__alloc_pages_noprof", 10_115, 100),
                ("rmqueue_bulk", 9_000, 3),
                ("clear_page_rep", 51_700, 100),
                ("<script>alert(1)</script>", 2_000, 250),
            ],
        );
        let same = profile(10, &[("[user]", 50, 0), ("sys_getppid", 3000, 10)]);
        let ledger = |name, base, new| {
            Ledger::new(name, std::slice::from_ref(base), std::slice::from_ref(new)).unwrap()
        };
        Profiled {
            base: (
                "6.1.192".into(),
                "linux-image-6.1.0-56-cloud-amd64 6.1.192-2".into(),
            ),
            new: (
                "6.12.117".into(),
                "linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1".into(),
            ),
            machine: "QEMU 7.2.22, microvm, -cpu max, 256 MiB, -icount shift=0".into(),
            seeds: vec![1],
            ledgers: vec![
                ledger("fault-anon", &base, &new),
                ledger("getppid", &same, &same),
            ],
            missing: vec![("fault-huge".into(), "unsupported: no huge pages".into())],
            expanded: vec![expanded()],
            sources: sources(),
            calls: vec![calls()],
            without_calls: vec![(
                "getppid".into(),
                "the tracer's call tree is cut: QEMU ended before it was written".into(),
            )],
            model: Some(CostModel::default()),
            modelled: vec![model_row()],
            without_model: vec![(
                "getppid".into(),
                "the same job executed something else this time".into(),
            )],
            command: "marvin profile deb:6.1 deb:6.12 --workload fault,getppid".into(),
            lines_max: 6,
        }
    }

    /// The first profile with an inlined function separate.
    fn expanded() -> Ledger {
        let base = profile(
            100,
            &[
                ("[user]", 500, 0),
                ("__handle_mm_fault", 14_999, 100),
                ("do_anonymous_page", 20_000, 0),
            ],
        );
        let new = profile(
            100,
            &[
                ("[user]", 500, 0),
                ("__handle_mm_fault", 14_002, 100),
                ("do_anonymous_page", 7000, 0),
            ],
        );
        Ledger::new("fault-anon", &[base], &[new]).unwrap()
    }

    /// Cost model results for it.
    fn model_row() -> ModelDifference {
        use crate::modelled::tests::seed;
        let side = |l1i: u64, fault: u64| {
            [0, 1, 2, 3].map(|number| {
                let lines = [
                    ("__handle_mm_fault", fault, l1i + number, 900),
                    ("clear_page_rep", 51_700, 0, 8000 + 900 * number),
                ];
                seed(100, &lines)
            })
        };
        ModelDifference::new(
            "fault-anon",
            &CostModel::default(),
            [&side(5002, 34_999), &side(7770, 21_002)],
        )
        .unwrap()
    }

    /// The source locations of two of its functions.
    fn sources() -> Sources {
        let place = |file: &str, line| SourceLocation {
            file: file.to_owned(),
            line,
        };
        let places = [
            ("mas_walk", "lib/maple_tree.c", 4950),
            ("__handle_mm_fault", "mm/memory.c", 5700),
        ];
        let places = places.map(|(name, file, line)| (name.to_owned(), place(file, line)));
        Sources::new(&std::collections::BTreeMap::new(), &places.into())
    }

    /// The calls of that profile's first workload, one operation of it.
    fn calls() -> CallDifference {
        use model::Share::{Kernel, User};
        let fault = "asm_exc_page_fault;exc_page_fault;do_user_addr_fault";
        let chain = |rest: &str| format!("{fault}{rest}");
        let tree = |rows: &[(&str, u64)]| {
            let paths: Vec<(model::Share, String, u64, u64)> = rows
                .iter()
                .map(|(rest, n)| (Kernel, chain(rest), *n, 1))
                .collect();
            let mut paths: Vec<_> = paths
                .iter()
                .map(|(share, c, n, calls)| (*share, c.as_str(), *n, *calls))
                .collect();
            paths.push((User, "[user]", 5, 0));
            tree(&paths)
        };
        let base = tree(&[
            (";handle;__handle_mm_fault", 350),
            (";mtree_range_walk", 138),
            (";handle;clear_page_rep", 517),
        ]);
        let new = tree(&[
            (";handle;__handle_mm_fault", 210),
            (";mas_walk", 171),
            (";handle;clear_page_rep", 517),
            (";handle;<script>alert(1)</script>", 20),
        ]);
        CallDifference::new("fault-anon", &[base], &[new]).unwrap()
    }

    #[test]
    fn totals_lead_from_the_ledger_to_the_row() {
        insta::assert_snapshot!("uneven", brief(&crate::ledger::tests::uneven(), 3));
    }

    #[test]
    fn all_renderings() {
        let document = document(&profiled()).unwrap();
        let text = document.text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!("text", text);
        insta::assert_snapshot!(
            "brief",
            profiled()
                .ledgers
                .iter()
                .map(|ledger| brief(ledger, 3))
                .collect::<Vec<_>>()
                .join("\n")
        );
        insta::assert_snapshot!("markdown", document.markdown());
        insta::assert_snapshot!("json", json(&profiled()).unwrap());
        crate::fixtures::assert_fits("profile", &json(&profiled()).unwrap());
        let page = crate::fixtures::without_script(&document.html().unwrap());
        assert!(
            !page.contains("<script>alert"),
            "names of a kernel are not to be trusted"
        );
        insta::assert_snapshot!("html", page);
    }
}
