//! Suggestions: a removed function and a new one may be the same under another name, or one into
//! which the other was inlined. Both lines stay separate.

use super::LedgerLine;

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
    // Most similar first; among equals those with the largest difference, which come first in the
    // ledger.
    fitting.sort_by_key(|&(alike, gone, new)| (std::cmp::Reverse(alike), gone.min(new)));
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
