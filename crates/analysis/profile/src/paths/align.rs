//! Aligns two sequences that are equal almost everywhere.
//!
//! Myers' greedy algorithm (E. W. Myers, An O(ND) difference algorithm and its variations, 1986) in
//! windows: after so many differences the way that came furthest is taken and the search begins
//! again from there, so that the time is linear however much differs.

/// Differences after which a window ends.
const WINDOW: usize = 128;

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
    let mut furthest = vec![0_isize; 2 * WINDOW + 3];
    let centre = WINDOW as isize + 1;
    let at = |k: isize| (k + centre).cast_unsigned();
    let [length, other_length] = [base.len() as isize, new.len() as isize];
    let mut best = (0_isize, 0_isize, 0);
    'search: for d in 0..=WINDOW as isize {
        trace.push(furthest.clone());
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
            if x == length || y == other_length {
                best = (x, y, d);
                break 'search;
            }
        }
    }
    let (x, y, d) = best;
    if x + y == 0 {
        // Nothing equal near: both go on by a window.
        let step = |length: usize| length.min(WINDOW);
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
    let centre = WINDOW as isize + 1;
    let at = |k: isize| (k + centre).cast_unsigned();
    let mut pairs = Vec::new();
    for d in (0..=differences).rev() {
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

    use super::align;

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
        fn few_edits_leave_the_rest_paired(base in proptest::collection::vec(any::<u8>(), 1..400),
                                           edits in proptest::collection::vec((any::<usize>(), any::<u8>()), 0..10)) {
            let mut new = base.clone();
            for (at, value) in &edits {
                new.insert(at % (new.len() + 1), *value);
            }
            let pairs = check(&base, &new);
            assert_eq!(pairs.len(), base.len());
        }
    }
}
