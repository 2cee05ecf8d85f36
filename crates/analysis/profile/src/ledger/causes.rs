//! Causes: lines of a ledger that only replace one another are one cause, with the difference that
//! is left. A function that has another name now, one that was inlined into its caller or split from
//! it, and clearing and copying wherever it is done, say nothing by themselves.
//!
//! Each cause needs evidence: counts of calls, callers in both images, repeated string instructions.
//! The causes add up to the ledger's difference; a test checks this.

use std::collections::{BTreeMap, BTreeSet};

use model::Share;

use super::{Count, Ledger, LedgerLine, names, pairs, scaled};

/// Callers of functions that only one side executes, by the calls in the images of the base and of
/// the new kernel; empty where an image is not known.
pub type CallersOfSides = [BTreeMap<String, BTreeSet<String>>; 2];

/// A caller takes the place of its callee only if it gains at least this part of what the callee
/// loses, and at most its inverse.
const TAKES_OVER: f64 = 0.25;
/// Most functions in brackets behind a cause.
const NAMED: usize = 2;

/// Functions that clear and copy memory (arch/x86/lib: `clear_page_64.S`, `memset_64.S`,
/// `memcpy_64.S`, `memmove_64.S`, `copy_page_64.S`, `copy_user_64.S`, `copy_mc_64.S`,
/// `usercopy_64.c`), and `kernel_init_pages` of `mm/page_alloc.c`, a loop around one of them.
const CLEARING_AND_COPYING: [&str; 35] = [
    "clear_page_orig",
    "clear_page_rep",
    "clear_page_erms",
    "memzero_page_aligned_unrolled",
    "kernel_init_pages",
    "memset",
    "__memset",
    "memset_orig",
    "memset_erms",
    "__pi_memset",
    "__clear_user",
    "clear_user_erms",
    "clear_user_rep_good",
    "clear_user_original",
    "rep_stos_alternative",
    "copy_page",
    "copy_page_regs",
    "memcpy",
    "__memcpy",
    "memcpy_orig",
    "memcpy_erms",
    "__pi_memcpy",
    "memmove",
    "__memmove",
    "memmove_erms",
    "copy_mc_fragile",
    "copy_mc_enhanced_fast_string",
    "copy_user_generic_string",
    "copy_user_generic_unrolled",
    "copy_user_enhanced_fast_string",
    "copy_user_short_string",
    "__copy_user_nocache",
    "rep_movs_alternative",
    "copyin",
    "copyout",
];
/// Thunks of returns and of indirect branches (arch/x86/lib/retpoline.S).
const THUNKS: [&str; 6] = [
    "__x86_return_thunk",
    "__x86_indirect_",
    "srso_return_thunk",
    "srso_alias_return_thunk",
    "retbleed_return_thunk",
    "its_return_thunk",
];

/// What kind of lines a cause consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CauseKind {
    /// One function, with those that it replaces, or that were inlined into it or split from it.
    Function,
    /// Clearing and copying, in functions for it and by repeated string instructions elsewhere.
    ClearingAndCopying,
    /// Thunks of returns and of indirect branches.
    Thunks,
}

/// Lines that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What kind of lines they are.
    pub kind: CauseKind,
    /// Who executes them.
    pub share: Share,
    /// The function that names the cause: its index in the ledger's lines.
    pub leader: usize,
    /// The other lines, largest difference first. Of clearing and copying, only functions for it.
    pub others: Vec<usize>,
    /// The difference of both sides, times both numbers of operations.
    scaled: i128,
}

impl Cause {
    /// Returns whether a published report would name it: a function, in kernel or user code of the
    /// workload.
    #[must_use]
    pub fn is_on_path(&self) -> bool {
        self.kind == CauseKind::Function && matches!(self.share, Share::Kernel | Share::User)
    }
}

/// A line's differences, its repeated string instructions apart.
#[derive(Debug, Clone, Copy)]
struct Difference {
    own: i128,
    repeated: i128,
}

impl Ledger {
    /// Returns the causes, largest difference first.
    #[must_use]
    pub fn causes(&self) -> Vec<Cause> {
        let differences: Vec<Difference> = self.lines.iter().map(|line| self.parts(line)).collect();
        let mut groups = Groups::new(self.lines.len());
        for pair in pairs::renamed(&self.lines, self.operations, &self.callers) {
            groups.join(pair.gone, pair.new);
        }
        self.join_inlined(&differences, &mut groups);
        let mut causes = Vec::new();
        for members in groups.all() {
            let functions = members.into_iter();
            let functions: Vec<usize> = functions
                .filter(|place| kind(&self.lines[*place]) == CauseKind::Function)
                .collect();
            causes.extend(self.cause_of_functions(functions, &differences));
        }
        for share in Share::ALL {
            for kind in [CauseKind::ClearingAndCopying, CauseKind::Thunks] {
                causes.extend(self.cause_of_helpers(kind, share, &differences));
            }
        }
        causes.retain(|cause| cause.scaled != 0);
        causes.sort_by_key(|cause| (std::cmp::Reverse(cause.scaled.unsigned_abs()), cause.leader));
        causes
    }

    /// Returns the additional instructions per operation of a cause.
    #[must_use]
    pub fn cause_added(&self, cause: &Cause) -> f64 {
        let [of_base, of_new] = self.operations;
        cause.scaled as f64 / (of_base as f64 * of_new as f64)
    }

    /// Returns a cause as words: its function, what it adds, and in brackets what is netted in it.
    #[must_use]
    pub fn cause_words(&self, cause: &Cause) -> String {
        let leader = &self.lines[cause.leader];
        let added = self.cause_added(cause);
        let others: Vec<&str> = cause
            .others
            .iter()
            .take(NAMED)
            .map(|place| &*self.lines[*place].function)
            .collect();
        let name = match cause.kind {
            CauseKind::Function => super::label(leader),
            CauseKind::ClearingAndCopying => helper_label("clearing and copying", cause.share),
            CauseKind::Thunks => helper_label("thunks", cause.share),
        };
        let netted = match cause.kind {
            CauseKind::Function => others.join(", "),
            _ => leader.function.clone(),
        };
        if netted.is_empty() {
            format!("{name} {added:+.1}")
        } else if cause.kind == CauseKind::Function {
            format!("{name} {added:+.1} (with {netted})")
        } else {
            format!("{name} {added:+.1} ({netted})")
        }
    }

    fn parts(&self, line: &LedgerLine) -> Difference {
        let all = scaled(
            self.operations,
            line.base.instructions,
            line.new.instructions,
        );
        let repeated = if line.share == Share::User {
            0
        } else {
            scaled(self.operations, line.base.repeated, line.new.repeated)
        };
        Difference {
            own: all - repeated,
            repeated,
        }
    }

    /// Joins functions that only one side executes with the caller that does their work on the
    /// other.
    fn join_inlined(&self, differences: &[Difference], groups: &mut Groups) {
        let mut places: BTreeMap<(Share, &str), usize> = BTreeMap::new();
        for (place, line) in self.lines.iter().enumerate() {
            if kind(line) == CauseKind::Function {
                places.insert((line.share, names::without_file(&line.function)), place);
            }
        }
        for (place, line) in self.lines.iter().enumerate() {
            let Some(side) = pairs::only_side(line) else {
                continue;
            };
            if kind(line) != CauseKind::Function || groups.is_joined(place) {
                continue;
            }
            let name = names::without_file(&line.function);
            let own = differences[place].own;
            let callers = self.callers[side].get(name).into_iter().flatten();
            let hosts = callers.filter_map(|caller| places.get(&(line.share, &**caller)).copied());
            let host = hosts
                .filter(|host| takes_over(own, differences[*host].own))
                .max_by_key(|host| differences[*host].own.unsigned_abs());
            if let Some(host) = host {
                groups.join(place, host);
            }
        }
    }

    fn cause_of_functions(
        &self,
        mut members: Vec<usize>,
        differences: &[Difference],
    ) -> Option<Cause> {
        // A report on the new kernel names what is there now; a caller is there on both sides.
        members.sort_by_key(|place| {
            let line = &self.lines[*place];
            let is_gone = line.new.instructions == 0;
            let is_one_sided = pairs::only_side(line).is_some();
            let size = differences[*place].own.unsigned_abs();
            (is_gone, is_one_sided, std::cmp::Reverse(size))
        });
        let sum = members.iter().map(|place| differences[*place].own).sum();
        let leader = members.first().copied()?;
        let mut others = members.split_off(1);
        others.sort_by_key(|place| std::cmp::Reverse(differences[*place].own.unsigned_abs()));
        Some(Cause {
            kind: CauseKind::Function,
            share: self.lines[leader].share,
            leader,
            others,
            scaled: sum,
        })
    }

    fn cause_of_helpers(
        &self,
        wanted: CauseKind,
        share: Share,
        differences: &[Difference],
    ) -> Option<Cause> {
        let mut sum = 0;
        let mut members: Vec<(i128, usize)> = Vec::new();
        for (place, line) in self.lines.iter().enumerate() {
            if line.share != share {
                continue;
            }
            let mut part = 0;
            if wanted == CauseKind::ClearingAndCopying {
                part += differences[place].repeated;
            }
            if kind(line) == wanted {
                part += differences[place].own;
            }
            // A thunk has no repeated instructions: what clears is counted once.
            sum += part;
            if part != 0 {
                members.push((part, place));
            }
        }
        members.sort_by_key(|(part, place)| {
            let is_against = part.signum() != i128::signum(sum);
            (is_against, std::cmp::Reverse(part.unsigned_abs()), *place)
        });
        let mut places = members.into_iter().map(|(_, place)| place);
        let leader = places.next()?;
        Some(Cause {
            kind: wanted,
            share,
            leader,
            others: places
                .filter(|place| kind(&self.lines[*place]) == wanted)
                .collect(),
            scaled: sum,
        })
    }
}

/// Returns a helper's label with its share, as functions have it.
fn helper_label(name: &str, share: Share) -> String {
    match share {
        Share::Kernel | Share::User => name.to_owned(),
        Share::Interrupt => format!("{name} (irq)"),
        Share::Other => format!("{name} (other)"),
    }
}

/// Returns whether one function's difference makes up for another's.
fn takes_over(one: i128, other: i128) -> bool {
    let ratio = other.unsigned_abs() as f64 / one.unsigned_abs().max(1) as f64;
    one.signum() * other.signum() < 0 && (TAKES_OVER..=1.0 / TAKES_OVER).contains(&ratio)
}

/// Returns the kind of a line by its function's name.
fn kind(line: &LedgerLine) -> CauseKind {
    let name = &*line.function;
    if line.share == Share::User {
        CauseKind::Function
    } else if THUNKS.iter().any(|thunk| name.starts_with(thunk)) {
        CauseKind::Thunks
    } else if CLEARING_AND_COPYING.contains(&name) {
        CauseKind::ClearingAndCopying
    } else {
        CauseKind::Function
    }
}

/// Lines that belong together, by the first line of each group.
struct Groups(Vec<usize>);

impl Groups {
    fn new(lines: usize) -> Self {
        Self((0..lines).collect())
    }

    /// Joins the groups of two lines.
    fn join(&mut self, one: usize, other: usize) {
        let from = self.0[one];
        let into = self.0[other];
        for group in &mut self.0 {
            if *group == from {
                *group = into;
            }
        }
    }

    /// Returns whether a line is in a group with others.
    fn is_joined(&self, place: usize) -> bool {
        let group = self.0[place];
        self.0.iter().filter(|other| **other == group).count() > 1
    }

    /// Returns the lines of each group.
    fn all(self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, group) in self.0.into_iter().enumerate() {
            groups.entry(group).or_default().push(place);
        }
        groups.into_values().collect()
    }
}

impl Count {
    /// Returns its instructions without those of repeated string instructions.
    pub(super) fn without_repeated(self) -> u64 {
        self.instructions - self.repeated.min(self.instructions)
    }
}

#[cfg(test)]
mod tests;
