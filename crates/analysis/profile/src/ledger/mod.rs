//! The ledger: the functions that cause the difference between two kernels, exact to one
//! instruction. Its lines add up to the whole difference; a test checks this.
//!
//! Counts are exact, so no line has an error bar. `names.rs` matches names; `pairs.rs` suggests
//! pairs that look like one function with two names, which are never merged; `causes.rs` nets lines
//! that replace one another, for the sentence.

mod causes;
mod costly;
pub mod names;
mod origin;
mod pairs;
mod sources;

use std::collections::{BTreeMap, BTreeSet};

use model::{Profile, Share};

use compare::{count_work, per_operation};
use document::number::signed_percent;

pub use causes::{CallersOfSides, Cause, CauseKind};
pub use costly::CostlyLine;
pub use origin::{CodeChange, FunctionChange, Origin, SourceChange};
pub use pairs::Pair;
pub use sources::{FolderSum, Sources};

/// Smaller differences are zero with one decimal.
const VISIBLE: f64 = 0.05;
/// Most causes in a sentence, and of how many they are taken.
const NAMED: usize = 3;
const LEADING: usize = 5;

/// How the functions of the two sides were matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// By the same symbol.
    Exact,
    /// By the same name without the compiler's suffixes (`.isra`, `.constprop`, `.part`, `.cold`).
    Suffix,
    /// By a known renaming (`x` became `x_noprof` in Linux 6.10).
    Renamed,
    /// Only the base executes it.
    OnlyBase,
    /// Only the new kernel executes it.
    OnlyNew,
}

impl Match {
    /// Returns the name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "same symbol",
            Self::Suffix => "same but for the compiler's suffix",
            Self::Renamed => "known renaming",
            Self::OnlyBase => "gone",
            Self::OnlyNew => "new",
        }
    }
}

/// Executed instructions of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// All of them, iterations of repeated string instructions included.
    pub instructions: u64,
    /// Of these, iterations of repeated string instructions.
    pub repeated: u64,
    /// Executions of the function's first instruction.
    pub calls: u64,
}

/// One function, or one share where it is a total.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerLine {
    /// Who executed these instructions.
    pub share: Share,
    /// The function's name without suffixes.
    pub function: String,
    /// What the base executed.
    pub base: Count,
    /// What the new kernel executed.
    pub new: Count,
    /// How it was matched.
    pub matched: Match,
}

/// A workload's profile on two kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct Ledger {
    /// The workload that both kernels executed.
    pub workload: String,
    /// Operations of the base and of the new kernel.
    pub operations: [u64; 2],
    /// The values of the comparison's row; `None` if a side has too few iterations.
    pub row: Option<RowValue>,
    /// Functions, largest difference first.
    pub lines: Vec<LedgerLine>,
    /// Pairs of lines that may be one function with two names.
    pub pairs: Vec<Pair>,
    /// Kinds of costly instructions that differ.
    pub costly: Vec<CostlyLine>,
    /// Who calls the functions that only one side executes.
    pub callers: CallersOfSides,
}

/// The values of the comparison's row: kernel and user code, the median of the iterations without
/// the first and of the seeds, per operation. The ledger is the mean of all iterations and all
/// shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowValue {
    /// Of the base and of the new kernel.
    pub values: [f64; 2],
    /// Number of iterations in the ledger's mean.
    pub iterations: usize,
}

impl RowValue {
    fn compute(sides: [&[Profile]; 2]) -> Option<Self> {
        let iterations = sides[0].first()?.regions.len();
        Some(Self {
            values: [row_value(sides[0])?, row_value(sides[1])?],
            iterations,
        })
    }

    /// Returns the difference of the values.
    #[must_use]
    pub fn added(&self) -> f64 {
        self.values[1] - self.values[0]
    }
}

impl Ledger {
    /// Matches the profiles of all seeds of both sides; `None` if a side has none.
    #[must_use]
    pub fn new(workload: &str, base: &[Profile], new: &[Profile]) -> Option<Self> {
        let operations =
            [base, new].map(|side| side.iter().map(|profile| profile.operations).sum::<u64>());
        if operations.contains(&0) {
            return None;
        }
        // Files distinguish functions of one name if both sides know them.
        let all = base.iter().chain(new).flat_map(|profile| &profile.lines);
        let plain = names::Plain::new(all.map(|line| line.symbol.as_str()));
        let mut merged: BTreeMap<(Share, String), Sides> = BTreeMap::new();
        for (side, profiles) in [base, new].into_iter().enumerate() {
            for line in profiles.iter().flat_map(|profile| &profile.lines) {
                let symbol = plain.displayed_name(&line.symbol);
                let sides = merged.entry((line.share, names::key(symbol))).or_default();
                let count = &mut sides.counts[side];
                count.instructions += line.total();
                count.repeated += line.repeated;
                // A split-off part is entered from its function, not called.
                count.calls += if names::is_split_off(&line.symbol) {
                    0
                } else {
                    line.calls
                };
                if !sides.symbols[side].iter().any(|known| known == symbol) {
                    sides.symbols[side].push(symbol.to_owned());
                }
            }
        }
        let mut lines: Vec<LedgerLine> = merged
            .into_iter()
            .map(|((share, function), sides)| sides.line(share, function))
            .collect();
        let difference =
            |line: &LedgerLine| scaled(operations, line.base.instructions, line.new.instructions);
        lines.sort_by_key(|line| std::cmp::Reverse(difference(line).unsigned_abs()));
        let pairs = pairs::suggest(&lines, operations);
        let row = RowValue::compute([base, new]);
        Some(Self {
            workload: workload.to_owned(),
            operations,
            row,
            lines,
            pairs,
            costly: costly::compare([base, new], operations),
            callers: CallersOfSides::default(),
        })
    }

    /// Returns the total, or one share of it.
    #[must_use]
    pub fn total(&self, share: Option<Share>) -> (Count, Count) {
        let mut total = (Count::default(), Count::default());
        for line in self
            .lines
            .iter()
            .filter(|line| share.is_none_or(|share| line.share == share))
        {
            for (sum, count) in [(&mut total.0, line.base), (&mut total.1, line.new)] {
                sum.instructions += count.instructions;
                sum.repeated += count.repeated;
                sum.calls += count.calls;
            }
        }
        total
    }

    /// Returns a number of one side (0 the base, 1 the new kernel) per operation.
    #[must_use]
    pub fn per_operation(&self, side: usize, number: u64) -> f64 {
        number as f64 / self.operations[side] as f64
    }

    /// Returns the additional instructions per operation of the new kernel.
    #[must_use]
    pub fn added(&self, base: Count, new: Count) -> f64 {
        let [of_base, of_new] = self.operations;
        scaled(self.operations, base.instructions, new.instructions) as f64
            / (of_base as f64 * of_new as f64)
    }

    /// Returns whether every function executes the same number of instructions.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        self.lines.iter().all(|line| {
            scaled(
                self.operations,
                line.base.instructions,
                line.new.instructions,
            ) == 0
        })
    }

    /// Returns whether a line's difference is visible with one decimal.
    #[must_use]
    pub fn is_visible(&self, line: &LedgerLine) -> bool {
        self.line_added(line).abs() >= VISIBLE
    }

    /// Returns the contribution of the iterations other than the row's median: the gap between the
    /// ledger's kernel and user code and the row, on the base and on the new kernel.
    #[must_use]
    pub fn iterations_differ(&self) -> Option<[f64; 2]> {
        let [kernel, user] = [Share::Kernel, Share::User].map(|share| self.total(Some(share)));
        let mean = [
            kernel.0.instructions + user.0.instructions,
            kernel.1.instructions + user.1.instructions,
        ];
        let row = self.row?.values;
        Some([0, 1].map(|side| row[side] - self.per_operation(side, mean[side])))
    }

    /// Describes the difference of the ledger, which is `difference` of the base, and that of the
    /// row if it looks different: then the percentage is the row's, as in the table.
    fn difference_words(&self, added: f64, difference: &str) -> String {
        match self.row {
            Some(row) if (row.added() - added).abs() >= 0.05 => format!(
                "{:+.1} instructions per operation in the row ({}; median iteration), {added:+.1} in the ledger (mean of all {})",
                row.added(),
                as_compared(row.added(), row.values[0]),
                row.iterations
            ),
            _ => format!("{added:+.1} instructions per operation ({difference})"),
        }
    }

    /// Returns the functions that only the base or only the new kernel executes, visibly: their
    /// callers tell what took their place.
    #[must_use]
    pub fn one_sided(&self) -> [BTreeSet<String>; 2] {
        let mut sides = [BTreeSet::new(), BTreeSet::new()];
        for line in self.lines.iter().filter(|line| self.is_visible(line)) {
            if let Some(side) = pairs::only_side(line) {
                sides[side].insert(names::without_file(&line.function).to_owned());
            }
        }
        sides
    }

    /// Returns one sentence: the largest causes in the direction of the difference, functions of
    /// the workload's path first, and their share of it.
    #[must_use]
    pub fn sentence(&self) -> String {
        let (base, new) = self.total(None);
        let added = self.added(base, new);
        let difference = as_compared(added, self.per_operation(0, base.instructions));
        if self.is_unchanged() {
            return format!("{}: not one instruction more or less", self.workload);
        }
        let mut causes = self.causes();
        causes.retain(|cause| self.cause_added(cause).abs() >= VISIBLE);
        if causes.is_empty() {
            return format!(
                "{}: {added:+.2} instructions per operation ({difference}), in many small pieces",
                self.workload
            );
        }
        if added == 0.0 {
            causes.truncate(NAMED);
            return format!(
                "{}: the same number of instructions, in other functions: {}",
                self.workload,
                self.list(&causes)
            );
        }
        let (named, against, whole) = self.divide(causes, added);
        let mut parts = vec![format!(
            "{}: {}",
            self.workload,
            self.difference_words(added, &difference)
        )];
        if !named.is_empty() {
            let together: f64 = named.iter().map(|cause| self.cause_added(cause)).sum();
            let share = 100.0 * together / whole;
            let explained = if share <= 120.0 {
                format!("{share:.0}% of it")
            } else {
                // Where functions only replace one another, a share would be meaningless.
                "others make up for it".to_owned()
            };
            parts.push(format!(
                "most in {}: together {together:+.1}, {explained}",
                self.list(&named)
            ));
        }
        let largest = named.iter().map(|cause| self.cause_added(cause).abs());
        let largest = largest.fold(0.0, f64::max);
        if let Some(first) = against.first()
            && self.cause_added(first).abs() > largest
        {
            parts.push(format!("against it {}", self.cause_words(first)));
        }
        parts.join("; ")
    }

    /// Returns the cause that leads the sentence, as words; `None` if no cause is visible.
    #[must_use]
    pub fn leading_cause(&self) -> Option<String> {
        let (base, new) = self.total(None);
        let mut causes = self.causes();
        causes.retain(|cause| self.cause_added(cause).abs() >= VISIBLE);
        let (named, against, _) = self.divide(causes, self.added(base, new));
        let first = named.first().or(against.first());
        first.map(|cause| self.cause_words(cause))
    }

    /// Divides causes into those to name, in the direction of the difference, and the others;
    /// returns the difference too: that of the row, or else of the ledger.
    fn divide(&self, causes: Vec<Cause>, added: f64) -> (Vec<Cause>, Vec<Cause>, f64) {
        let whole = self.row.map_or(added, |row| row.added());
        let whole = if whole == 0.0 { added } else { whole };
        let (mut named, against): (Vec<Cause>, Vec<Cause>) = causes
            .into_iter()
            .partition(|cause| self.cause_added(cause) * whole > 0.0);
        self.lead(&mut named, whole);
        (named, against, whole)
    }

    /// Leaves the causes to name: functions of the workload's path first. Helpers and other tasks
    /// lead only if they are most of the difference.
    fn lead(&self, causes: &mut Vec<Cause>, whole: f64) {
        let is_most = |cause: &Cause| {
            let is_own = matches!(cause.share, Share::Kernel | Share::User);
            is_own && self.cause_added(cause).abs() * 2.0 >= whole.abs()
        };
        causes.truncate(LEADING);
        causes.sort_by_key(|cause| !(cause.is_on_path() || is_most(cause)));
        causes.truncate(NAMED);
    }

    /// Lists causes.
    fn list(&self, causes: &[Cause]) -> String {
        let words: Vec<String> = causes.iter().map(|cause| self.cause_words(cause)).collect();
        words.join(", ")
    }

    /// Returns the additional instructions per operation of a line.
    #[must_use]
    pub fn line_added(&self, line: &LedgerLine) -> f64 {
        self.added(line.base, line.new)
    }
}

/// Returns a difference as a comparison shows it, and says so: it is beside one whose + is more.
fn as_compared(added: f64, base: f64) -> String {
    format!("{}, + is better", signed_percent(-100.0 * added / base))
}

/// Returns a line's name for people, with the share unless it is the kernel's work for the
/// workload.
pub(crate) fn label(line: &LedgerLine) -> String {
    match line.share {
        Share::Kernel | Share::User => line.function.clone(),
        Share::Interrupt => format!("{} (irq)", line.function),
        Share::Other => format!("{} (other)", line.function),
    }
}

/// Returns a share's name in tables.
#[must_use]
pub fn share_words(share: Share) -> &'static str {
    match share {
        Share::Kernel => "kernel",
        Share::User => "user code",
        Share::Interrupt => "interrupts",
        Share::Other => "other tasks",
    }
}

/// The difference of two numbers per operation, times both numbers of operations: an integer, so
/// that sums are exact.
pub(crate) fn scaled([of_base, of_new]: [u64; 2], base: u64, new: u64) -> i128 {
    i128::from(new) * i128::from(of_base) - i128::from(base) * i128::from(of_new)
}

#[derive(Default)]
struct Sides {
    counts: [Count; 2],
    symbols: [Vec<String>; 2],
}

impl Sides {
    fn line(mut self, share: Share, function: String) -> LedgerLine {
        self.symbols.iter_mut().for_each(|symbols| symbols.sort());
        let [base, new] = &self.symbols;
        let matched = match (base.is_empty(), new.is_empty()) {
            (false, true) => Match::OnlyBase,
            (true, _) => Match::OnlyNew,
            _ if base == new => Match::Exact,
            _ if without_suffixes(base) == without_suffixes(new) => Match::Suffix,
            _ => Match::Renamed,
        };
        let [base, new] = self.counts;
        LedgerLine {
            share,
            function,
            base,
            new,
            matched,
        }
    }
}

/// Returns the value of a comparison's row: the median over the runs of each run's value.
fn row_value(profiles: &[Profile]) -> Option<f64> {
    let mut values = Vec::new();
    for profile in profiles {
        let operations = profile.operations / (profile.regions.len() as u64).max(1);
        let per_operation = per_operation(&profile.regions, operations, count_work);
        values.push(stats::median_without_first(&per_operation)?);
    }
    stats::median(&values)
}

/// Returns the names without the compiler's suffixes, each once.
fn without_suffixes(symbols: &[String]) -> Vec<String> {
    let names = symbols.iter().map(|symbol| names::without_suffix(symbol));
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Ledger, Match, scaled};
    use model::{Profile, ProfileLine, Region, Share};

    /// A profile of one operation with these functions: symbol, instructions, calls.
    pub(crate) fn profile(operations: u64, lines: &[(&str, u64, u64)]) -> Profile {
        let lines = lines
            .iter()
            .map(|&(symbol, instructions, calls)| ProfileLine {
                share: if symbol == "[user]" {
                    Share::User
                } else {
                    Share::Kernel
                },
                symbol: symbol.to_owned(),
                instructions,
                repeated: 0,
                calls,
                costly: model::CostlyCounts::default(),
            });
        let lines: Vec<ProfileLine> = lines.collect();
        let kernel = lines.iter().map(ProfileLine::total).sum();
        Profile {
            operations,
            regions: vec![Region {
                kernel,
                ..Region::default()
            }],
            lines,
        }
    }

    /// The differential profile of the rmap thread of 2003: additive and multiplicative.
    /// Returns a profile of functions by number, with their instructions.
    fn numbered_profile(counts: &[(u64, usize)], operations: u64) -> Profile {
        let names = ["a", "b.isra.1", "b", "c_noprof", "c", "[user]"];
        let counts: Vec<_> = counts
            .iter()
            .map(|&(n, name)| (names[name], n, 0))
            .collect();
        profile(operations, &counts)
    }

    #[test]
    fn files_distinguish_functions_of_one_name() {
        let with_files = profile(
            1,
            &[
                ("init_once (fs/inode.c)", 10, 1),
                ("init_once (mm/shmem.c)", 20, 1),
            ],
        );
        let without = profile(1, &[("init_once", 33, 2)]);
        assert_eq!(
            matches(&without, &with_files),
            [("init_once".to_owned(), Match::Exact)]
        );
        let both = matches(&with_files, &with_files);
        assert_eq!(both.len(), 2);
        // A name that is unique on one side is one function there, regardless of other names.
        let unique = profile(1, &[("probe", 10, 1), ("init_once (fs/inode.c)", 10, 1)]);
        let shared = profile(
            1,
            &[
                ("probe (mm/a.c)", 10, 1),
                ("probe (mm/b.c)", 4, 1),
                ("init_once (fs/inode.c)", 10, 1),
            ],
        );
        let named = matches(&unique, &shared);
        assert_eq!(named.len(), 2, "{named:?}");
        assert!(
            named.iter().all(|(_, matched)| *matched == Match::Exact),
            "{named:?}"
        );
        assert!(both.contains(&("init_once (mm/shmem.c)".to_owned(), Match::Exact)));
    }

    /// Returns the functions of the ledger of two profiles, and how each was matched.
    fn matches(base: &Profile, new: &Profile) -> Vec<(String, Match)> {
        let ledger =
            Ledger::new("w", std::slice::from_ref(base), std::slice::from_ref(new)).unwrap();
        let lines = ledger.lines.into_iter();
        lines.map(|line| (line.function, line.matched)).collect()
    }

    #[test]
    fn the_figures_of_2003() {
        let before = profile(
            1,
            &[
                ("page_remove_rmap", 15525, 0),
                ("page_add_rmap", 6415, 0),
                ("others", 165_316, 0),
            ],
        );
        let after = profile(
            1,
            &[
                ("page_remove_rmap", 1983, 0),
                ("page_add_rmap", 2055, 0),
                ("others", 166_158, 0),
            ],
        );
        let ledger = Ledger::new("sdet", &[before], &[after]).unwrap();
        let (base, new) = ledger.total(None);
        assert_eq!((base.instructions, new.instructions), (187_256, 170_196));
        assert_eq!(
            scaled(ledger.operations, base.instructions, new.instructions),
            -17_060
        );
        for (name, added, ratio, of_fractions) in [
            ("page_remove_rmap", -13_542.0, 0.128, 0.141),
            ("page_add_rmap", -4_360.0, 0.320, 0.352),
        ] {
            let mut lines = ledger.lines.iter();
            let line = lines.find(|line| line.function == name).unwrap();
            assert_eq!(ledger.line_added(line).to_bits(), f64::to_bits(added));
            let raw = line.new.instructions as f64 / line.base.instructions as f64;
            assert!((raw - ratio).abs() < 0.000_5);
            let share = raw * base.instructions as f64 / new.instructions as f64;
            assert!((share - of_fractions).abs() < 0.000_5);
        }
    }

    #[test]
    fn suffixes_and_known_renamings_are_recognised_and_noted() {
        let base = profile(
            1,
            &[
                ("f.isra.0", 10, 1),
                ("f.cold", 1, 1),
                ("__alloc_pages", 100, 1),
                ("same", 5, 1),
            ],
        );
        let new = profile(
            1,
            &[
                ("f", 12, 1),
                ("__alloc_pages_noprof", 90, 1),
                ("same", 5, 1),
                ("fresh", 7, 1),
            ],
        );
        let ledger = Ledger::new("w", &[base], &[new]).unwrap();
        let told: Vec<_> = ledger
            .lines
            .iter()
            .map(|l| (l.function.as_str(), l.matched, l.base.calls))
            .collect();
        assert_eq!(
            told,
            [
                ("__alloc_pages", Match::Renamed, 1),
                ("fresh", Match::OnlyNew, 0),
                ("f", Match::Suffix, 1),
                ("same", Match::Exact, 1)
            ]
        );
    }

    /// As with tcp-rr: the mean of all iterations has +30.2 of kernel and user code, the row's
    /// median +44.
    pub(crate) fn uneven() -> Ledger {
        let base = uneven_side([9000, 1000, 1000, 1000], &[("f", 12_000, 40)]);
        let new = uneven_side([8888, 1440, 1440, 1440], &[("f", 13_208, 40)]);
        Ledger::new("tcp-rr", &[base], &[new]).unwrap()
    }

    /// Returns a profile whose iterations have these counts of the kernel.
    fn uneven_side(kernel: [u64; 4], lines: &[(&str, u64, u64)]) -> Profile {
        let regions = kernel.map(|kernel| Region {
            kernel,
            user: 10,
            interrupt: 3,
            other: 0,
            ..Region::default()
        });
        let mut profile = profile(40, lines);
        for (share, instructions) in [(Share::User, 40), (Share::Interrupt, 12)] {
            profile.lines.push(ProfileLine {
                share,
                symbol: "x".into(),
                instructions,
                repeated: 0,
                calls: 0,
                costly: model::CostlyCounts::default(),
            });
        }
        Profile {
            regions: regions.to_vec(),
            ..profile
        }
    }

    #[test]
    fn ledger_lines_and_remainder_add_up() {
        let ledger = uneven();
        let row = ledger.row.unwrap();
        assert_eq!((row.values, row.iterations), ([101.0, 145.0], 4));
        let worked: f64 = ledger
            .lines
            .iter()
            .filter(|line| line.share != Share::Interrupt)
            .map(|line| ledger.line_added(line))
            .sum();
        let [base, new] = ledger.iterations_differ().unwrap();
        assert!((worked + new - base - row.added()).abs() < 1e-9);
        let sentence = ledger.sentence();
        assert!(
            sentence.contains(
                "in the row (-43.56%, + is better; median iteration), +30.2 in the ledger"
            ),
            "{sentence}"
        );
    }

    #[test]
    fn a_side_without_operations_has_no_ledger() {
        assert_eq!(Ledger::new("w", &[], &[profile(1, &[("f", 1, 1)])]), None);
    }

    proptest::proptest! {
        #[test]
        fn lines_add_up_for_any_numbers(
            base in proptest::collection::vec((0_u64..1 << 40, 0_usize..6), 0..20),
            new in proptest::collection::vec((0_u64..1 << 40, 0_usize..6), 0..20),
            operations in (1_u64..1 << 20, 1_u64..1 << 20),
        ) {
            let base = numbered_profile(&base, operations.0);
            let new = numbered_profile(&new, operations.1);
            let ledger = Ledger::new(
                "w",
                std::slice::from_ref(&base),
                std::slice::from_ref(&new),
            )
            .unwrap();
            let lines: i128 = ledger
                .lines
                .iter()
                .map(|l| scaled(ledger.operations, l.base.instructions, l.new.instructions))
                .sum();
            proptest::prop_assert_eq!(lines, scaled(ledger.operations, base.total(), new.total()));
        }
    }
}
