//! Suggestions: a removed function and a new one may be the same under another name, or one into
//! which the other was inlined. Both lines stay separate. [`renamed`] has those with evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::causes::CallersOfSides;
use super::{LedgerLine, names};

/// A removed and a new function, by their indices in the ledger's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The index of the line that only the base executes.
    pub gone: usize,
    /// The index of the line that only the new kernel executes.
    pub new: usize,
}

/// A function with less than this share of the other side's instructions counts as not executed.
const RARE: f64 = 0.01;

/// A renamed function has as many instructions in a call, within this factor.
const SAME_SIZE: f64 = 1.5;
/// It is called as often within the first factor; if the same functions call it within the second,
/// as calls may be inlined or not.
const SAME_CALLS: f64 = 1.01;
const SIMILAR_CALLS: f64 = 1.5;
/// At least this part of both functions' callers call both.
const SAME_CALLERS: f64 = 0.5;

/// Words of names that carry little information.
const COMMON: &[&str] = &[
    "do", "get", "put", "set", "page", "pages", "folio", "from", "user", "lock", "node", "list",
];

/// Returns pairs, each line in at most one: equal number of calls, a common informative word, and a
/// similar size.
pub(crate) fn suggest(lines: &[LedgerLine], operations: [u64; 2]) -> Vec<Pair> {
    let mut fitting: Vec<(usize, usize, usize)> = Vec::new();
    for (gone, before) in lines.iter().enumerate() {
        if !is_rare_beside(before.new.instructions, before.base.instructions) {
            continue;
        }
        for (new, after) in lines.iter().enumerate() {
            let is_new = is_rare_beside(after.base.instructions, after.new.instructions);
            let alike = likeness(&before.function, &after.function);
            if is_new
                && alike > 0
                && before.share == after.share
                && is_similar(before, after, operations)
            {
                fitting.push((alike, gone, new));
            }
        }
    }
    disjoint(
        fitting
            .into_iter()
            .map(|(alike, gone, new)| (alike as f64, gone, new)),
    )
}

/// Returns the best pairs, each line in at most one.
fn disjoint(fitting: impl Iterator<Item = (f64, usize, usize)>) -> Vec<Pair> {
    let mut fitting: Vec<(f64, usize, usize)> = fitting.collect();
    // Most similar first; among equals those with the largest difference, which come first in the
    // ledger.
    fitting.sort_by(|one, other| {
        let by_place = one.1.min(one.2).cmp(&other.1.min(other.2));
        other.0.total_cmp(&one.0).then(by_place)
    });
    let mut pairs: Vec<Pair> = Vec::new();
    for (_, gone, new) in fitting {
        if !pairs
            .iter()
            .any(|pair| pair.gone == gone || pair.new == new)
        {
            pairs.push(Pair { gone, new });
        }
    }
    pairs.sort_by_key(|pair| pair.gone.min(pair.new));
    pairs
}

/// Returns pairs that are one function, or one that took the other's place: of the same size, and
/// called as often from the same callers. Without known callers, as of functions called by pointer,
/// as often to one in a hundred, and with a common informative word.
pub(super) fn renamed(
    lines: &[LedgerLine],
    operations: [u64; 2],
    callers: &CallersOfSides,
) -> Vec<Pair> {
    let both: BTreeSet<&str> = lines
        .iter()
        .filter(|line| only_side(line).is_none())
        .map(|line| names::without_file(&line.function))
        .collect();
    let mut fitting = Vec::new();
    for (gone, before) in lines.iter().enumerate() {
        if only_side(before) != Some(0) {
            continue;
        }
        for (new, after) in lines.iter().enumerate() {
            if only_side(after) == Some(1) && before.share == after.share {
                let alike = evidence([before, after], operations, callers, &both);
                fitting.extend(alike.map(|alike| (alike, gone, new)));
            }
        }
    }
    disjoint(fitting.into_iter())
}

/// Returns how much speaks for two lines being one function; none if something speaks against it.
fn evidence(
    [before, after]: [&LedgerLine; 2],
    [of_base, of_new]: [u64; 2],
    callers: &CallersOfSides,
    both: &BTreeSet<&str>,
) -> Option<f64> {
    let calls = ratio(
        before.base.calls as f64 / of_base as f64,
        after.new.calls as f64 / of_new as f64,
    )?;
    let size = ratio(
        before.base.without_repeated() as f64 / before.base.calls as f64,
        after.new.without_repeated() as f64 / after.new.calls as f64,
    )?;
    if calls > SIMILAR_CALLS || size > SAME_SIZE {
        return None;
    }
    let base = lasting_callers(&callers[0], &before.function, both);
    let new = lasting_callers(&callers[1], &after.function, both);
    if base.is_empty() || new.is_empty() {
        let is_alike = calls <= SAME_CALLS && likeness(&before.function, &after.function) > 0;
        return is_alike.then(|| 1.0 / size);
    }
    let common = base.intersection(&new).count() as f64 / base.union(&new).count() as f64;
    (common >= SAME_CALLERS).then(|| 1.0 + common / size)
}

/// Returns the callers of a function that both sides execute; in place of others, their callers:
/// what is between may have another name too.
fn lasting_callers<'a>(
    callers: &'a BTreeMap<String, BTreeSet<String>>,
    function: &str,
    both: &BTreeSet<&str>,
) -> BTreeSet<&'a str> {
    let mut lasting = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![names::without_file(function)];
    while let Some(callee) = open.pop() {
        for caller in callers.get(callee).into_iter().flatten() {
            if both.contains(&**caller) {
                lasting.insert(&**caller);
            } else if seen.insert(&**caller) {
                open.push(caller);
            }
        }
    }
    lasting
}

/// Returns the ratio of the larger to the smaller; none if one is zero.
fn ratio(one: f64, other: f64) -> Option<f64> {
    (one > 0.0 && other > 0.0).then(|| one.max(other) / one.min(other))
}

/// Returns the side (0 the base, 1 the new kernel) that alone executes a function, but for a few
/// times.
pub(super) fn only_side(line: &LedgerLine) -> Option<usize> {
    let base = line.base.instructions;
    let new = line.new.instructions;
    if is_rare_beside(new, base) {
        Some(0)
    } else if is_rare_beside(base, new) {
        Some(1)
    } else {
        None
    }
}

/// Returns whether a function is executed on one side and hardly ever on the other: a function that
/// still exists but is hardly ever executed counts as removed.
fn is_rare_beside(few: u64, many: u64) -> bool {
    many > 0 && few as f64 <= RARE * many as f64
}

fn is_similar(before: &LedgerLine, after: &LedgerLine, [of_base, of_new]: [u64; 2]) -> bool {
    let within = |a: f64, b: f64, factor: f64| a > 0.0 && b > 0.0 && a.max(b) <= factor * a.min(b);
    let [of_base, of_new] = [of_base as f64, of_new as f64];
    within(
        before.base.calls as f64 / of_base,
        after.new.calls as f64 / of_new,
        1.05,
    ) && within(
        before.base.instructions as f64 / of_base,
        after.new.instructions as f64 / of_new,
        3.0,
    )
}

/// Returns the number of letters in the common words of two names.
fn likeness(one: &str, other: &str) -> usize {
    let others = distinctive_words(other);
    let terms = distinctive_words(one).into_iter();
    terms
        .filter(|word| others.contains(word))
        .map(str::len)
        .sum()
}

/// Returns the words of a function's name that few others have.
fn distinctive_words(name: &str) -> Vec<&str> {
    name.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() >= 3 && !COMMON.contains(word))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::ledger::Ledger;
    use crate::ledger::tests::profile;

    #[test]
    fn similar_function_with_equal_calls_is_suggested() {
        let mut base = profile(
            1,
            &[
                ("mtree_range_walk", 138, 1),
                ("lru_add_fn", 102, 1),
                ("rmqueue_bulk", 105, 0),
            ],
        );
        let new = profile(
            1,
            &[
                ("mas_walk", 171, 1),
                ("lru_add", 58, 1),
                ("other_walk", 170, 7),
                ("bulk", 100, 1),
            ],
        );
        // mas_walk existed before, but was hardly ever executed.
        base.lines
            .push(profile(1, &[("mas_walk", 1, 0)]).lines.remove(0));
        let ledger = Ledger::new("w", &[base], &[new]).unwrap();
        let name = |place: usize| ledger.lines[place].function.as_str();
        let pairs = ledger.pairs.iter();
        let suggested: Vec<_> = pairs
            .map(|pair| (name(pair.gone), name(pair.new)))
            .collect();
        assert_eq!(
            suggested,
            [("mtree_range_walk", "mas_walk"), ("lru_add_fn", "lru_add")]
        );
    }
}
