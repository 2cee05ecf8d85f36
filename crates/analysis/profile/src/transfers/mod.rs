//! Compares the lines of memory that two kernels move between processors: by function, by how they
//! move, and by line. What moves is followed by `tracer`, named by `ingest`, and kept by `lab`.

mod held;
mod json;
mod render;
mod sensitivity;

use std::collections::BTreeMap;

use model::{Counted, Move, Movement, Sharing, WATCHED, without_suffix};

pub use held::HeldLock;
pub use json::{json, schema};
pub use render::{Shared, brief, document};
pub use sensitivity::{Sensitive, sensitivity_document};

/// Functions that clear and copy pages: their transfers are of memory that went from one processor
/// to another through the page allocator (arch/x86/include/asm/page_64.h; mm/memory.c).
const PAGES: [&str; 9] = [
    "clear_page",
    "clear_page_rep",
    "clear_page_erms",
    "clear_page_orig",
    "copy_page",
    "copy_page_regs",
    "clear_user_highpage",
    "copy_user_highpage",
    "copy_mc_to_kernel",
];

/// Transfers per operation of both kernels.
pub type PerOperation = [f64; 2];

/// The difference of two kernels for a workload, over all their runs.
#[derive(Debug, Clone, PartialEq)]
pub struct SharingDifference {
    /// The workload that both kernels executed.
    pub workload: String,
    /// How many runs each kernel has: one for each seed.
    pub runs: [usize; 2],
    /// Transfers of any kind.
    pub total: PerOperation,
    /// By how lines move, in the order of [`Movement::ALL`].
    pub by_movement: [PerOperation; 3],
    /// What of the total is false sharing.
    pub of_false: PerOperation,
    /// What of the total is in functions that clear and copy pages.
    pub of_pages: PerOperation,
    /// What processors did to one another: what was entered, of [`model::WATCHED`], by its
    /// description.
    pub events: Vec<(&'static str, PerOperation)>,
    /// Locks that several processors took, the largest difference of the time first.
    pub held: Vec<HeldLock>,
    /// By function, the largest difference first; they add up to the total.
    pub functions: Vec<(String, PerOperation)>,
    /// By the word of memory that was asked for, likewise.
    pub words: Vec<(String, PerOperation)>,
    /// By line, of each kernel, the most transfers first; they add up to the kernel's total.
    pub lines: [Vec<SharedLine>; 2],
}

/// A line of memory, or a word of 8 bytes in it.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedLine {
    /// Its name: a symbol of the kernel's data or a slab cache, each with a distance, or the kind
    /// of memory; of a word a field.
    pub name: String,
    /// Its transfers per operation.
    pub per_operation: f64,
    /// The share of them that is false sharing, from 0 to 1.
    pub of_false: f64,
    /// The functions that wait for it in order to write, the most transfers first.
    pub writers: Vec<String>,
    /// The functions that wait for it in order to read.
    pub readers: Vec<String>,
    /// The words of a line that were asked for, the most transfers first; they add up to the
    /// line's. None of a word.
    pub words: Vec<Self>,
}

impl SharedLine {
    /// Returns what would part those that share it; `None` if they use the same words.
    #[must_use]
    pub fn remedy(&self) -> Option<&'static str> {
        (self.of_false > 0.5).then_some(
            "other words of the line are used: parting them onto lines of their own would do",
        )
    }
}

impl SharingDifference {
    /// Compares the runs of a base and a new kernel; `None` if one has none.
    #[must_use]
    pub fn new(workload: &str, base: &[Sharing], new: &[Sharing]) -> Option<Self> {
        let sides = [base, new];
        if sides
            .iter()
            .any(|runs| runs.iter().all(|run| run.operations == 0))
        {
            return None;
        }
        let sum = |wanted: &dyn Fn(&Move) -> bool| -> PerOperation {
            sides.map(|runs| per_operation(runs, wanted))
        };
        Some(Self {
            workload: workload.to_owned(),
            runs: sides.map(<[Sharing]>::len),
            total: sum(&|_| true),
            by_movement: Movement::ALL.map(|movement| sum(&|moved| moved.movement == movement)),
            of_false: sum(&|moved| moved.is_false),
            of_pages: sum(&|moved| PAGES.contains(&moved.function.as_str())),
            events: events(sides),
            held: held::held_locks(sides, sides.map(operations)),
            functions: largest_first(sides, |moved| &moved.function),
            words: largest_first(sides, |moved| &moved.word),
            lines: sides.map(lines),
        })
    }

    /// Says what differs: of the lines in one sentence, and of a lock in another if its time does.
    #[must_use]
    pub fn sentence(&self) -> String {
        let lines = self.sentence_of_lines();
        match held::sentence(&self.held) {
            Some(of_lock) => format!("{lines} {of_lock}"),
            None => lines,
        }
    }

    fn sentence_of_lines(&self) -> String {
        let [base, new] = self.total;
        let difference = new - base;
        if base.to_bits() == new.to_bits() {
            return format!(
                "Each operation moves {} lines between processors, on both kernels.",
                render::number(base)
            );
        }
        if render::signed(difference) == "0" {
            return format!(
                "Each operation moves {} lines between processors, on both kernels to three digits.",
                render::number(base)
            );
        }
        let word = if difference > 0.0 { "more" } else { "fewer" };
        format!(
            "Each operation moves {} {word} lines between processors ({} before, {} now): in {}; of {}.",
            render::number(difference.abs()),
            render::number(base),
            render::number(new),
            largest(&self.functions),
            largest(&self.words)
        )
    }
}

/// Returns what was entered on at least one side.
fn events(sides: [&[Sharing]; 2]) -> Vec<(&'static str, PerOperation)> {
    let mut events: Vec<(&'static str, PerOperation)> = Vec::new();
    for (function, what, about) in WATCHED {
        let [base, new] = sides.map(|runs| events_per_operation(runs, function, what));
        match events.iter_mut().find(|(known, _)| *known == about) {
            // The function has several names.
            Some((_, sides)) => *sides = [sides[0] + base, sides[1] + new],
            None => events.push((about, [base, new])),
        }
    }
    events.retain(|(_, [base, new])| base + new > 0.0);
    events
}

fn events_per_operation(runs: &[Sharing], function: &str, what: Counted) -> f64 {
    let entered = runs.iter().flat_map(|run| &run.entered);
    let entered = entered.filter(|entered| without_suffix(&entered.function) == function);
    entered.map(|entered| entered.count(what)).sum::<u64>() as f64 / operations(runs)
}

fn all(runs: &[Sharing]) -> impl Iterator<Item = &Move> {
    runs.iter().flat_map(|run| &run.moves)
}

fn operations(runs: &[Sharing]) -> f64 {
    runs.iter().map(|run| run.operations).sum::<u64>().max(1) as f64
}

fn per_operation(runs: &[Sharing], wanted: &dyn Fn(&Move) -> bool) -> f64 {
    all(runs)
        .filter(|moved| wanted(moved))
        .map(|moved| moved.transfers)
        .sum::<u64>() as f64
        / operations(runs)
}

/// Returns the transfers of both kernels by a name, the largest difference first.
fn largest_first(
    sides: [&[Sharing]; 2],
    name: impl Fn(&Move) -> &str,
) -> Vec<(String, PerOperation)> {
    let mut sums: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for (side, runs) in sides.into_iter().enumerate() {
        for moved in all(runs) {
            sums.entry(name(moved)).or_default()[side] += moved.transfers;
        }
    }
    let operations = sides.map(operations);
    let mut named: Vec<(String, PerOperation)> = Vec::new();
    for (name, sums) in sums {
        let per_operation = [0, 1].map(|side| sums[side] as f64 / operations[side]);
        named.push((name.to_owned(), per_operation));
    }
    named.sort_by(|(_, one), (_, other)| {
        let size = |sides: &PerOperation| ((sides[1] - sides[0]).abs(), sides[0] + sides[1]);
        let one = size(one);
        let other = size(other);
        other.0.total_cmp(&one.0).then(other.1.total_cmp(&one.1))
    });
    named
}

/// Names the two largest differences.
fn largest(named: &[(String, PerOperation)]) -> String {
    let differing = named
        .iter()
        .take(2)
        .filter(|(_, [base, new])| base.to_bits() != new.to_bits());
    let named: Vec<String> = differing
        .map(|(name, [base, new])| format!("{name} ({})", render::signed(new - base)))
        .collect();
    named.join(", ")
}

/// Returns the lines of a kernel, the most transfers first.
fn lines(runs: &[Sharing]) -> Vec<SharedLine> {
    let operations = operations(runs);
    let words =
        |moves: &[&Move]| shared_by(moves, operations, |moved| &moved.word, &|_| Vec::new());
    shared_by(
        &all(runs).collect::<Vec<_>>(),
        operations,
        |moved| &moved.line,
        &words,
    )
}

/// Groups moves by a name, the most transfers first.
fn shared_by<'a>(
    moves: &[&'a Move],
    operations: f64,
    name: impl Fn(&'a Move) -> &'a str,
    words: &dyn Fn(&[&Move]) -> Vec<SharedLine>,
) -> Vec<SharedLine> {
    let mut by_name: BTreeMap<&str, Vec<&Move>> = BTreeMap::new();
    for moved in moves {
        by_name.entry(name(moved)).or_default().push(moved);
    }
    let mut lines: Vec<SharedLine> = Vec::new();
    for (name, moves) in by_name {
        let whole: u64 = moves.iter().map(|moved| moved.transfers).sum();
        let falsely = moves.iter().filter(|moved| moved.is_false);
        let falsely: u64 = falsely.map(|moved| moved.transfers).sum();
        lines.push(SharedLine {
            name: name.to_owned(),
            per_operation: whole as f64 / operations,
            of_false: falsely as f64 / whole.max(1) as f64,
            writers: functions(&moves, |movement| movement != Movement::Load),
            readers: functions(&moves, |movement| movement == Movement::Load),
            words: words(&moves),
        });
    }
    lines.sort_by(|one, other| {
        other
            .per_operation
            .total_cmp(&one.per_operation)
            .then_with(|| one.name.cmp(&other.name))
    });
    lines
}

/// Returns the functions of some movements, the most transfers first.
fn functions(moves: &[&Move], wanted: impl Fn(Movement) -> bool) -> Vec<String> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for moved in moves.iter().filter(|moved| wanted(moved.movement)) {
        *sums.entry(&moved.function).or_default() += moved.transfers;
    }
    let mut found: Vec<(&str, u64)> = sums.into_iter().collect();
    found.sort_by_key(|(name, sum)| (std::cmp::Reverse(*sum), *name));
    found.into_iter().map(|(name, _)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use model::{Entered, Held, LockKind, Move, Movement, Sharing};

    use super::SharingDifference;

    /// Runs of both kernels: the lock of an address space is gone, another line is shared falsely.
    pub(crate) fn known_case() -> SharingDifference {
        let moved =
            |movement, is_false, function: &str, (line, word): (&str, &str), transfers| Move {
                movement,
                is_false,
                function: function.to_owned(),
                line: line.to_owned(),
                word: word.to_owned(),
                transfers,
            };
        let lock = ("mm_struct+0x40", "mm_struct.mmap_lock.count");
        let readers = ("mm_struct+0x40", "mm_struct.page_table_lock");
        let counter = ("vm_node_stat+0x40, vm_numa_event", "vm_node_stat+0x48");
        let base = Sharing {
            entered: [
                ("__switch_to_asm", 400, 4000),
                ("set_task_cpu", 2, 40),
                ("osq_lock.isra.0", 1, 500),
            ]
            .map(|(function, times, instructions)| Entered {
                function: function.to_owned(),
                times,
                instructions,
                ns: 9,
            })
            .into(),
            operations: 1000,
            held: vec![Held {
                kind: LockKind::DownRead,
                lock: lock.1.to_owned(),
                within: model::Within::Object,
                times: 1000,
                ns: 240_000,
                processors: 2,
                longest: model::HeldWord::default(),
            }],
            moves: vec![
                moved(Movement::Store, false, "down_read_trylock", lock, 1428),
                moved(Movement::Store, false, "up_read", lock, 1294),
                moved(Movement::Load, false, "handle_mm_fault", readers, 80),
                moved(Movement::Upgrade, true, "mod_node_state", counter, 900),
                moved(
                    Movement::Store,
                    false,
                    "clear_page_rep",
                    ("other pages", "other pages"),
                    64,
                ),
            ],
        };
        let mut new = base.clone();
        new.moves.retain(|moved| moved.line != lock.0);
        new.held.clear();
        SharingDifference::new("share-fault", &[base], &[new]).unwrap()
    }

    #[test]
    fn functions_movements_and_lines_add_up() {
        let difference = known_case();
        for side in [0, 1] {
            let total = difference.total[side];
            let close = |sum: f64| assert!((sum - total).abs() < 1e-9, "{sum} is not {total}");
            close(
                difference
                    .functions
                    .iter()
                    .map(|(_, sides)| sides[side])
                    .sum(),
            );
            close(difference.words.iter().map(|(_, sides)| sides[side]).sum());
            close(difference.by_movement.iter().map(|sides| sides[side]).sum());
            close(
                difference.lines[side]
                    .iter()
                    .map(|line| line.per_operation)
                    .sum(),
            );
            close(
                difference.lines[side]
                    .iter()
                    .flat_map(|line| &line.words)
                    .map(|word| word.per_operation)
                    .sum(),
            );
        }
        assert!(
            difference
                .of_pages
                .iter()
                .all(|pages| (pages - 0.064).abs() < 1e-9)
        );
    }

    #[test]
    fn lock_is_named_by_its_writers_and_readers() {
        let difference = known_case();
        let lock = &difference.lines[0][0];
        assert_eq!(
            (&*lock.writers.join(" "), &*lock.readers.join(" ")),
            ("down_read_trylock up_read", "handle_mm_fault")
        );
        assert_eq!((lock.remedy(), lock.of_false), (None, 0.0));
        assert!(difference.lines[1][0].remedy().is_some(), "false sharing");
        assert_eq!(difference.functions[0].0, "down_read_trylock");
    }

    #[test]
    fn equal_kernels_differ_nowhere() {
        let difference = known_case();
        let same = Sharing {
            operations: 10,
            ..Sharing::default()
        };
        let equal = SharingDifference::new(
            "share-no-clock",
            std::slice::from_ref(&same),
            std::slice::from_ref(&same),
        )
        .unwrap();
        insta::assert_snapshot!(equal.sentence(), @"Each operation moves 0 lines between processors, on both kernels.");
        insta::assert_snapshot!(difference.sentence(), @"Each operation moves 2.802 fewer lines between processors (3.766 before, 0.964 now): in down_read_trylock (-1.428), up_read (-1.294); of mm_struct.mmap_lock.count (-2.722), mm_struct.page_table_lock (-0.080).");
        assert_eq!(SharingDifference::new("x", &[], &[]), None);
    }
}
