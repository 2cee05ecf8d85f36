//! Renderings of ledgers: text, markdown, JSON and one HTML page over one value.

mod flame;
mod html;
mod json;
mod markdown;
mod modelled;
mod text;

pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use text::{brief, text};

use model::{CostModel, Share};

use crate::calls::CallDifference;
use crate::ledger::{Ledger, LedgerLine, Sources, label, share_words};
use crate::modelled::ModelDifference;

/// The profiles of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct Profiled {
    /// The base: what it is called, and where it comes from.
    pub base: (String, String),
    /// The new kernel.
    pub new: (String, String),
    /// The machine, in words.
    pub machine: String,
    /// Seeds whose profiles are added up.
    pub seeds: Vec<u64>,
    /// One ledger per workload.
    pub ledgers: Vec<Ledger>,
    /// Workloads without one, and why.
    pub missing: Vec<(String, String)>,
    /// The ledgers with inlined functions apart, where both kernels have debug information.
    pub expanded: Vec<Ledger>,
    /// Where functions are in the source, if anything is known of that.
    pub sources: Sources,
    /// Their calls, where they were followed.
    pub calls: Vec<CallDifference>,
    /// Workloads whose calls could not be followed, and why.
    pub without_calls: Vec<(String, String)>,
    /// The cost model, where one was asked for, with all its parameters.
    pub model: Option<CostModel>,
    /// What it said.
    pub modelled: Vec<ModelDifference>,
    /// Workloads of which it says nothing, and why.
    pub without_model: Vec<(String, String)>,
    /// The command that gives the same.
    pub command: String,
    /// Most functions that tables show for a workload; the others are one line.
    pub lines_max: usize,
}

/// What stands over a ledger with inlined functions apart.
const EXPANDED: &str = "The same with inlined functions apart";

/// Most entry points or folders, and most shifts, that are told.
const ROLLED_UP: usize = 8;
const SHIFTS: usize = 5;

impl Profiled {
    /// The calls of a workload.
    fn calls_of(&self, workload: &str) -> Option<&CallDifference> {
        self.calls.iter().find(|calls| calls.workload == workload)
    }

    /// What the model says of a workload.
    fn modelled_of(&self, workload: &str) -> Option<&ModelDifference> {
        self.modelled.iter().find(|difference| difference.workload == workload)
    }

    /// Workloads that lack something, under what they lack.
    fn lacking(&self) -> impl Iterator<Item = (&'static str, &[(String, String)])> {
        let lists = [
            ("Without a profile", &self.missing),
            ("Calls were not followed", &self.without_calls),
            ("The model says nothing", &self.without_model),
        ];
        lists.into_iter().filter(|(_, list)| !list.is_empty()).map(|(what, list)| (what, list.as_slice()))
    }

    /// The ledger of a workload with inlined functions apart, if it has other lines to show than the one without.
    fn expanded_of(&self, ledger: &Ledger) -> Option<&Ledger> {
        let expanded = self.expanded.iter().find(|expanded| expanded.workload == ledger.workload)?;
        let names = |ledger: &Ledger| -> Vec<String> {
            ledger.lines.iter().filter(|line| ledger.is_visible(line)).map(|line| line.function.clone()).collect()
        };
        (names(expanded) != names(ledger)).then_some(expanded)
    }
}

/// The entry points of a workload as rows of a table: those that differ to the eye, and one row for the others.
fn entries(calls: &CallDifference) -> Vec<TableRow> {
    let entries = calls.entries().into_iter().map(|entry| (entry.name, entry.all)).collect();
    summed(entries, calls.operations)
}

/// The source folders of a workload in the same way; none where nothing is known.
fn folders(ledger: &Ledger, sources: &Sources) -> Vec<TableRow> {
    if sources.is_empty() {
        return Vec::new();
    }
    summed(ledger.folders(sources).into_iter().map(|sum| (sum.folder, sum.all)).collect(), ledger.operations)
}

/// Sums of instructions, the largest difference first, as rows that add up.
fn summed(sums: Vec<(String, [u64; 2])>, operations: [u64; 2]) -> Vec<TableRow> {
    let row = |name: String, all: [u64; 2]| {
        let [base, new] = [0, 1].map(|side| all[side] as f64 / operations[side] as f64);
        let added =
            crate::ledger::scaled(operations, all[0], all[1]) as f64 / operations[0] as f64 / operations[1] as f64;
        TableRow { name, base, new, added, ratio: ratio(base, new), calls: None, note: "" }
    };
    let rows: Vec<TableRow> = sums.iter().map(|(name, all)| row(name.clone(), *all)).collect();
    let shown = rows.iter().take(ROLLED_UP).take_while(|row| row.added.abs() >= 0.05).count();
    let others = sums[shown..].iter().fold([0, 0], |sum: [u64; 2], (_, all)| [sum[0] + all[0], sum[1] + all[1]]);
    let count = sums.len() - shown;
    let rest = (shown > 0 && count > 0).then(|| row(format!("{count} others"), others));
    rows.into_iter().take(shown).chain(rest).collect()
}

/// The work that moved, as sentences.
fn shifts(calls: &CallDifference) -> Vec<String> {
    calls.shifts().iter().take(SHIFTS).map(crate::calls::Shift::sentence).collect()
}

/// What every rendering says about its numbers.
const LEGEND: &str = "Instructions per operation, counted one by one, not sampled. Added: new minus base, + is more \
work; all lines together are the whole difference. Iterations of repeated string instructions (rep movs, rep stos) \
count one each. Instructions are not cycles.";

/// One line of a table.
struct TableRow {
    name: String,
    base: f64,
    new: f64,
    added: f64,
    ratio: String,
    /// Calls per operation of both sides; nothing where calls make no sense.
    calls: Option<[f64; 2]>,
    note: &'static str,
}

/// The lines of a ledger that tables show, and one for those that they do not.
fn rows(ledger: &Ledger, max: usize) -> (Vec<TableRow>, Option<TableRow>) {
    let changed = ledger.lines.iter().filter(|line| ledger.is_visible(line)).count();
    let shown = changed.min(max);
    let rows = ledger.lines[..shown].iter().map(|line| row(ledger, line)).collect();
    let others = &ledger.lines[shown..];
    if others.is_empty() {
        return (rows, None);
    }
    let sum = |side: fn(&LedgerLine) -> u64| others.iter().map(side).sum::<u64>();
    let (base, new) = (sum(|line| line.base.instructions), sum(|line| line.new.instructions));
    let [base, new] = [ledger.per_operation(0, base), ledger.per_operation(1, new)];
    let added = others.iter().map(|line| ledger.line_added(line)).sum();
    let name = format!("{} others", others.len());
    (rows, Some(TableRow { name, base, new, added, ratio: ratio(base, new), calls: None, note: "" }))
}

fn row(ledger: &Ledger, line: &LedgerLine) -> TableRow {
    use crate::ledger::Match;
    let [base, new] =
        [(0, line.base), (1, line.new)].map(|(side, count)| ledger.per_operation(side, count.instructions));
    let note = match line.matched {
        Match::Exact => "",
        Match::Suffix => "suffix",
        Match::Renamed => "renamed",
        Match::OnlyBase => "gone",
        Match::OnlyNew => "new",
    };
    let calls = Some([ledger.per_operation(0, line.base.calls), ledger.per_operation(1, line.new.calls)]);
    TableRow { name: label(line), base, new, added: ledger.line_added(line), ratio: ratio(base, new), calls, note }
}

/// The totals of a ledger: each share that is not empty, and all of it.
fn totals(ledger: &Ledger) -> Vec<TableRow> {
    let of = |name: &str, share: Option<Share>| {
        let (count_base, count_new) = ledger.total(share);
        let base = ledger.per_operation(0, count_base.instructions);
        let new = ledger.per_operation(1, count_new.instructions);
        let added = ledger.added(count_base, count_new);
        TableRow { name: name.to_owned(), base, new, added, ratio: ratio(base, new), calls: None, note: "" }
    };
    let shares = Share::ALL.into_iter().map(|share| of(share_words(share), Some(share)));
    shares.filter(|row| row.base > 0.0 || row.new > 0.0).chain([of("total", None)]).collect()
}

fn ratio(base: f64, new: f64) -> String {
    if base > 0.0 && new > 0.0 && new / base < 100.0 { format!("{:.3}", new / base) } else { String::new() }
}

/// Returns a difference with its sign; what rounds to nothing has none.
fn signed(value: f64) -> String {
    let text = format!("{value:+.2}");
    if matches!(text.as_str(), "+0.00" | "-0.00") { "0.00".to_owned() } else { text }
}

/// Calls per operation of both sides: one number where they are the same.
fn calls(row: &TableRow) -> String {
    let Some([base, new]) = row.calls else { return String::new() };
    let number = |value: f64| {
        if value == 0.0 || value >= 99.5 { format!("{value:.0}") } else { format!("{value:.2}") }
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
        format!("{} {before:+.1} -> {} {after:+.1}, net {:+.1}", label(gone), label(new), before + after)
    };
    let is_visible = |pair: &&crate::ledger::Pair| {
        ledger.is_visible(&ledger.lines[pair.gone]) || ledger.is_visible(&ledger.lines[pair.new])
    };
    ledger.pairs.iter().filter(is_visible).take(max).map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::{Profiled, brief, html, json, markdown, text};
    use crate::calls::CallDifference;
    use crate::calls::tests::tree;
    use crate::ledger::tests::profile;
    use crate::ledger::{Ledger, Sources};
    use crate::modelled::ModelDifference;
    use crate::render::Styles;
    use model::{CostModel, SourcePlace};

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
                ("a_function_with_a_very_long_name_that_does_not_fit_into_any_table", 900, 100),
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
        let ledger =
            |name, base, new| Ledger::new(name, std::slice::from_ref(base), std::slice::from_ref(new)).unwrap();
        Profiled {
            base: ("6.1.192".into(), "linux-image-6.1.0-56-cloud-amd64 6.1.192-2".into()),
            new: ("6.12.117".into(), "linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1".into()),
            machine: "QEMU 7.2.22, microvm, -cpu max, 256 MiB, -icount shift=0".into(),
            seeds: vec![1],
            ledgers: vec![ledger("fault-anon", &base, &new), ledger("getppid", &same, &same)],
            missing: vec![("fault-huge".into(), "unsupported: no huge pages".into())],
            expanded: vec![expanded()],
            sources: sources(),
            calls: vec![calls()],
            without_calls: vec![(
                "getppid".into(),
                "the tracer's call tree is cut: QEMU ended before it was written".into(),
            )],
            model: Some(CostModel::default()),
            modelled: vec![modelled()],
            without_model: vec![("getppid".into(), "the same job executed something else this time".into())],
            command: "marvin profile deb:6.1 deb:6.12 --workload fault,getppid".into(),
            lines_max: 6,
        }
    }

    /// The first profile with a function apart that was inlined.
    fn expanded() -> Ledger {
        let base =
            profile(100, &[("[user]", 500, 0), ("__handle_mm_fault", 14_999, 100), ("do_anonymous_page", 20_000, 0)]);
        let new =
            profile(100, &[("[user]", 500, 0), ("__handle_mm_fault", 14_002, 100), ("do_anonymous_page", 7000, 0)]);
        Ledger::new("fault-anon", &[base], &[new]).unwrap()
    }

    /// What a model says of it.
    fn modelled() -> ModelDifference {
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
        ModelDifference::new("fault-anon", &CostModel::default(), [&side(5002, 34_999), &side(7770, 21_002)]).unwrap()
    }

    /// Where two of its functions are.
    fn sources() -> Sources {
        let place = |file: &str, line| SourcePlace { file: file.to_owned(), line };
        let places = [("mas_walk", "lib/maple_tree.c", 4950), ("__handle_mm_fault", "mm/memory.c", 5700)];
        let places = places.map(|(name, file, line)| (name.to_owned(), place(file, line)));
        Sources::new(&std::collections::BTreeMap::new(), &places.into())
    }

    /// The calls of that profile's first workload, one operation of it.
    fn calls() -> CallDifference {
        use model::Share::{Kernel, User};
        let fault = "asm_exc_page_fault;exc_page_fault;do_user_addr_fault";
        let chain = |rest: &str| format!("{fault}{rest}");
        let tree = |rows: &[(&str, u64)]| {
            let paths: Vec<(model::Share, String, u64, u64)> =
                rows.iter().map(|(rest, n)| (Kernel, chain(rest), *n, 1)).collect();
            let mut paths: Vec<_> = paths.iter().map(|(share, c, n, calls)| (*share, c.as_str(), *n, *calls)).collect();
            paths.push((User, "[user]", 5, 0));
            tree(&paths)
        };
        let base =
            tree(&[(";handle;__handle_mm_fault", 350), (";mtree_range_walk", 138), (";handle;clear_page_rep", 517)]);
        let new = tree(&[
            (";handle;__handle_mm_fault", 210),
            (";mas_walk", 171),
            (";handle;clear_page_rep", 517),
            (";handle;<script>alert(1)</script>", 20),
        ]);
        CallDifference::new("fault-anon", &[base], &[new]).unwrap()
    }

    #[test]
    fn all_renderings() {
        let text = text(&profiled(), &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!("text", text);
        insta::assert_snapshot!(
            "brief",
            profiled().ledgers.iter().map(|ledger| brief(ledger, 3)).collect::<Vec<_>>().join("\n")
        );
        insta::assert_snapshot!("markdown", markdown(&profiled()));
        insta::assert_snapshot!("json", json(&profiled()).unwrap());
        let page = html(&profiled()).unwrap();
        assert!(!page.contains("<script>alert"), "names of a kernel are not to be trusted");
        insta::assert_snapshot!("html", page);
    }
}
