//! Stacks that were sampled, summed up: addresses become those of functions, so that few different
//! stacks are left, and only the symbols of these are sent.
//!
//! The file `samples` has a head, then `at ADDRESS` for each function that occurs, then a line for
//! each stack: who runs, how often, how many of its outermost functions are those of the line
//! before, and the others as numbers of functions. The file `symbols` has these functions in the
//! format of `symbols.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Most different stacks that are kept, and that are sent.
const STACKS_MAX: usize = 200_000;
const SENT_MAX: usize = 50_000;
/// Functions of different directories whose symbols are always sent: by them the host finds source
/// files.
const ANCHORS: [&str; 3] = ["vfs_read", "handle_mm_fault", "schedule"];

/// Who runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Task {
    /// A program's own code.
    User,
    /// The idle task of a processor.
    Idle,
    /// The kernel, for a process or a thread of its own.
    Process,
    /// The kernel, for it is not known whom.
    Any,
}

/// What was sampled.
#[derive(Debug)]
pub(crate) struct Samples {
    head: String,
    /// Samples that the kernel had no room for.
    pub(crate) lost: u64,
    /// How often the kernel paused because samples took too long.
    pub(crate) throttled: u64,
    /// Samples whose stacks were too many.
    unkept: u64,
    /// How often a stack was seen, innermost address first.
    stacks: BTreeMap<(Task, Vec<u64>), u64>,
}

impl Samples {
    pub(crate) fn new(event: &str, scope: &str, period: u64, processors: usize) -> Self {
        let head = format!(
            "marvin-samples 1\nevent {event}\nscope {scope}\nperiod {period}\nprocessors {processors}\n"
        );
        Self {
            head,
            lost: 0,
            throttled: 0,
            unkept: 0,
            stacks: BTreeMap::new(),
        }
    }

    /// Adds a sample.
    pub(crate) fn add(&mut self, task: Task, stack: &[u64]) {
        self.add_many(task, stack, 1);
    }

    /// Adds so many samples of one stack.
    pub(crate) fn add_many(&mut self, task: Task, stack: &[u64], more: u64) {
        let is_full = self.stacks.len() >= STACKS_MAX;
        let key = (task, stack.to_vec());
        match self.stacks.get_mut(&key) {
            Some(count) => *count += more,
            None if is_full => self.unkept += more,
            None => drop(self.stacks.insert(key, more)),
        }
    }

    /// Returns the number of samples.
    #[cfg(test)]
    pub(crate) fn count(&self) -> u64 {
        self.stacks.values().sum::<u64>() + self.unkept
    }

    /// Returns the files to send; `symbols` are those of `symbols::list`.
    pub(crate) fn files(self, symbols: &[(u64, String)]) -> Vec<(String, Vec<u8>)> {
        let start = |address: u64| {
            let after = symbols.partition_point(|(start, _)| *start <= address);
            after.checked_sub(1).map_or(0, |index| symbols[index].0)
        };
        let mut whole: BTreeMap<(Task, Vec<u64>), u64> = BTreeMap::new();
        for ((task, stack), count) in self.stacks {
            // A caller's address is the one behind its call, which may be the first of the next
            // function.
            let back = |place: usize| u64::from(place > 0);
            let functions = stack
                .iter()
                .enumerate()
                .map(|(place, address)| start(address.wrapping_sub(back(place))));
            *whole.entry((task, functions.rev().collect())).or_default() += count;
        }
        let unkept = self.unkept + whole.values().skip(SENT_MAX).sum::<u64>();
        let used: BTreeSet<u64> = whole
            .keys()
            .take(SENT_MAX)
            .flat_map(|(_, stack)| stack.iter().copied())
            .collect();
        let mut text = self.head;
        // Writing to a string never fails.
        let mut line = |words: std::fmt::Arguments<'_>| text.write_fmt(words).unwrap_or_default();
        line(format_args!(
            "lost {}\nthrottled {}\nunkept {unkept}\n",
            self.lost, self.throttled
        ));
        used.iter()
            .for_each(|address| line(format_args!("at {address:x}\n")));
        let numbers: BTreeMap<u64, usize> = used
            .iter()
            .enumerate()
            .map(|(number, address)| (*address, number))
            .collect();
        let mut before: &[u64] = &[];
        for ((task, stack), count) in whole.iter().take(SENT_MAX) {
            let shared = stack
                .iter()
                .zip(before)
                .take_while(|(one, other)| one == other)
                .count();
            let word = match task {
                Task::User => "user",
                Task::Idle => "idle",
                Task::Process => "process",
                Task::Any => "any",
            };
            line(format_args!("{word} {count} {shared}"));
            stack[shared..]
                .iter()
                .for_each(|address| line(format_args!(" {}", numbers[address])));
            line(format_args!("\n"));
            before = stack;
        }
        vec![
            ("samples".to_owned(), text.into_bytes()),
            ("symbols".to_owned(), of_functions(symbols, &used)),
        ]
    }
}

/// Returns the symbols at some addresses, and the anchors.
fn of_functions(symbols: &[(u64, String)], used: &BTreeSet<u64>) -> Vec<u8> {
    let (mut text, mut last) = (String::new(), 0_u64);
    for (address, symbol) in symbols {
        let (kind, name) = symbol.split_once(' ').unwrap_or(("t", symbol));
        if used.contains(address) || ANCHORS.contains(&name) {
            writeln!(text, "{kind}{:x} {name}", address.wrapping_sub(last)).unwrap_or_default();
            last = *address;
        }
    }
    text.into_bytes()
}
