//! Aligns two sequences that are equal almost everywhere.
//!
//! Myers' greedy algorithm (E. W. Myers, An O(ND) difference algorithm and its variations, 1986) in
//! windows: after so many differences the way that came furthest is taken and the search begins
//! again from there, so that the time is linear however much differs.

use std::collections::HashMap;
use std::hash::Hash;

/// Differences after which a window ends.
const WINDOW: usize = 512;
/// The same for sequences that are so long that the time counts.
const SHORT_WINDOW: usize = 64;
/// Elements of such sequences.
const LONG: usize = 200_000;

/// Returns which elements of two sequences are the same: their indices, both rising. Where they
/// differ much, the elements that `is_anchor` names are aligned first, and the others between them.
pub(super) fn align_by<T: Eq + Hash + Copy>(
    base: &[T],
    new: &[T],
    is_anchor: fn(T) -> bool,
) -> Vec<(usize, usize)> {
    let pairs = align(base, new);
    let differences = base.len() + new.len() - 2 * pairs.len();
    if differences < WINDOW {
        return pairs;
    }
    let anchors = [base, new].map(|all| {
        let numbered = all.iter().copied().enumerate();
        numbered
            .filter(|(_, element)| is_anchor(*element))
            .collect::<Vec<_>>()
    });
    let elements = anchors.each_ref().map(|anchors| {
        anchors
            .iter()
            .map(|(_, element)| *element)
            .collect::<Vec<T>>()
    });
    let mut pairs = Vec::new();
    let mut at = [0, 0];
    let met = align(&elements[0], &elements[1]).into_iter();
    let met = met.map(|(one, other)| (anchors[0][one].0, anchors[1][other].0));
    for (one, other) in met.chain(std::iter::once((base.len(), new.len()))) {
        let between = align_by_unique(&base[at[0]..one], &new[at[1]..other]);
        pairs.extend(between.into_iter().map(|(x, y)| (at[0] + x, at[1] + y)));
        if one < base.len() {
            pairs.push((one, other));
        }
        at = [one + 1, other + 1];
    }
    pairs
}

/// The same with the elements that each side has once as anchors, as in Bram Cohen's patience diff.
fn align_by_unique<T: Eq + Hash + Copy>(base: &[T], new: &[T]) -> Vec<(usize, usize)> {
    let mut once: HashMap<T, [Option<Option<usize>>; 2]> = HashMap::new();
    for (side, all) in [base, new].into_iter().enumerate() {
        for (index, element) in all.iter().enumerate() {
            let found = &mut once.entry(*element).or_default()[side];
            *found = Some(found.is_none().then_some(index));
        }
    }
    let in_order = base.iter().enumerate().filter_map(|(index, element)| {
        let [Some(Some(_)), Some(Some(other))] = once.get(element)? else {
            return None;
        };
        Some((index, *other))
    });
    let mut pairs = Vec::new();
    let mut at = (0, 0);
    let ends = std::iter::once((base.len(), new.len()));
    for (one, other) in rising(&in_order.collect::<Vec<_>>())
        .into_iter()
        .chain(ends)
    {
        let between = align(&base[at.0..one], &new[at.1..other]);
        pairs.extend(between.into_iter().map(|(x, y)| (at.0 + x, at.1 + y)));
        if one < base.len() {
            pairs.push((one, other));
        }
        at = (one + 1, other + 1);
    }
    pairs
}

/// Returns the longest part of pairs whose second elements rise; the first ones do.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best part of each length, and the pair before each.
    let mut lasts: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (index, (_, other)) in pairs.iter().enumerate() {
        let length = lasts.partition_point(|last| pairs[*last].1 < *other);
        before.push(length.checked_sub(1).map(|shorter| lasts[shorter]));
        match lasts.get_mut(length) {
            Some(last) => *last = index,
            None => lasts.push(index),
        }
    }
    let mut found = Vec::new();
    let mut next = lasts.last().copied();
    while let Some(index) = next {
        found.push(pairs[index]);
        next = before[index];
    }
    found.reverse();
    found
}

/// Returns which elements of two sequences are the same: their indices, both rising.
pub(super) fn align<T: PartialEq>(base: &[T], new: &[T]) -> Vec<(usize, usize)> {
    let both = base.len().min(new.len());
    let head = (0..both)
        .take_while(|index| base[*index] == new[*index])
        .count();
    let tail = (1..=both - head)
        .take_while(|back| base[base.len() - back] == new[new.len() - back])
        .count();
    let mut pairs: Vec<(usize, usize)> = (0..head).map(|index| (index, index)).collect();
    let inner = [&base[head..base.len() - tail], &new[head..new.len() - tail]];
    let (mut x, mut y) = (0, 0);
    while x < inner[0].len() && y < inner[1].len() {
        let (matched, [by_x, by_y]) = window(&inner[0][x..], &inner[1][y..]);
        pairs.extend(
            matched
                .into_iter()
                .map(|(one, other)| (head + x + one, head + y + other)),
        );
        x += by_x;
        y += by_y;
    }
    let tails = (1..=tail).rev();
    pairs.extend(tails.map(|back| (base.len() - back, new.len() - back)));
    pairs
}

/// Aligns the beginnings of two sequences: the pairs, and how far it came in each.
fn window<T: PartialEq>(base: &[T], new: &[T]) -> (Vec<(usize, usize)>, [usize; 2]) {
    // Furthest x on each diagonal k = x - y, for each number of differences.
    let mut trace: Vec<Vec<isize>> = Vec::new();
    let width = if base.len() + new.len() > LONG {
        SHORT_WINDOW
    } else {
        WINDOW.min(base.len() + new.len())
    };
    let mut furthest = vec![0_isize; 2 * width + 3];
    let centre = width as isize + 1;
    let at = |k: isize| (k + centre).cast_unsigned();
    let [length, other_length] = [base.len() as isize, new.len() as isize];
    let mut best = (0_isize, 0_isize, 0);
    'search: for d in 0..=width as isize {
        // What the last round left: the diagonals around the middle.
        let reach = at(-d)..=at(d);
        trace.push(furthest[reach].to_vec());
        for k in (-d..=d).step_by(2) {
            let down = k == -d || k != d && furthest[at(k - 1)] < furthest[at(k + 1)];
            let mut x = match (d, down) {
                (0, _) => 0,
                (_, true) => furthest[at(k + 1)],
                (_, false) => furthest[at(k - 1)] + 1,
            };
            let mut y = x - k;
            if x > length || y > other_length {
                // Beyond an end: no way leads on from here.
                furthest[at(k)] = isize::MIN / 2;
                continue;
            }
            while x >= 0
                && y >= 0
                && x < length
                && y < other_length
                && base[x.cast_unsigned()] == new[y.cast_unsigned()]
            {
                x += 1;
                y += 1;
            }
            furthest[at(k)] = x;
            if y >= 0 && x + y > best.0 + best.1 {
                best = (x, y, d);
            }
            if x == length && y == other_length {
                best = (x, y, d);
                break 'search;
            }
        }
    }
    let (x, y, d) = best;
    if x + y == 0 {
        // Nothing equal near: both go on by a window.
        let step = |length: usize| length.min(width);
        return (Vec::new(), [step(base.len()), step(new.len())]);
    }
    (
        backtrack(&trace, [x, y], d),
        [x.cast_unsigned(), y.cast_unsigned()],
    )
}

/// Walks the way back from its end.
fn backtrack(
    trace: &[Vec<isize>],
    [mut x, mut y]: [isize; 2],
    differences: isize,
) -> Vec<(usize, usize)> {
    let mut pairs = Vec::new();
    for d in (0..=differences).rev() {
        let at = |k: isize| (k + d).cast_unsigned();
        let furthest = &trace[d.cast_unsigned()];
        let k = x - y;
        let (from_x, from_y) = if d == 0 {
            (0, 0)
        } else if k == -d || k != d && furthest[at(k - 1)] < furthest[at(k + 1)] {
            let from = furthest[at(k + 1)];
            (from, from - k - 1)
        } else {
            let from = furthest[at(k - 1)];
            (from, from - k + 1)
        };
        while x > from_x && y > from_y {
            x -= 1;
            y -= 1;
            pairs.push((x.cast_unsigned(), y.cast_unsigned()));
        }
        (x, y) = (from_x, from_y);
    }
    pairs.reverse();
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{align, align_by};

    fn check(base: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
        let pairs = align(base, new);
        assert!(pairs.iter().all(|(one, other)| base[*one] == new[*other]));
        assert!(
            pairs
                .windows(2)
                .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1),
            "{pairs:?}"
        );
        pairs
    }

    #[test]
    fn inserted_elements_are_left_out() {
        assert_eq!(check(b"abcd", b"abxcd"), [(0, 0), (1, 1), (2, 3), (3, 4)]);
        assert_eq!(check(b"abxxcd", b"abycd").len(), 4);
        assert_eq!(check(b"", b"abc"), []);
        assert_eq!(check(b"abc", b"abc").len(), 3);
    }

    #[test]
    fn anchors_are_met_among_other_elements() {
        let side = |from: u32| -> Vec<u32> {
            let others = (from..from + 300).chain([7]).chain(from + 300..from + 600);
            others.collect()
        };
        let pairs = align_by(&side(1000), &side(5000), |element| element < 10);
        assert_eq!(pairs, [(300, 300)]);
    }

    #[test]
    fn everything_else_takes_linear_time() {
        let [base, new]: [Vec<u32>; 2] = [
            (0..200_000).collect(),
            (1_000_000..1_200_000).chain(0..10).collect(),
        ];
        assert!(align(&base, &new).len() <= 10);
    }

    #[test]
    fn sequences_meet_again_behind_many_differences() {
        let base: Vec<u32> = (0..5000).collect();
        let changed = |value: u32| {
            if value % 10 == 3 {
                value + 10_000
            } else {
                value
            }
        };
        let new: Vec<u32> = base.iter().map(|value| changed(*value)).collect();
        assert_eq!(align(&base, &new).len(), 4500);
    }

    proptest! {
        #[test]
        fn pairs_are_equal_and_rise(base in proptest::collection::vec(0_u8..4, 0..400),
                                    new in proptest::collection::vec(0_u8..4, 0..400)) {
            check(&base, &new);
        }

        #[test]
        fn few_edits_leave_the_rest_paired(
            base in proptest::collection::vec(any::<u8>(), 1..400),
            edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..10),
        ) {
            let mut new = base.clone();
            for (at, value) in &edits {
                new.insert(at % (new.len() + 1), *value);
            }
            let pairs = check(&base, &new);
            assert_eq!(pairs.len(), base.len());
        }
    }
}
