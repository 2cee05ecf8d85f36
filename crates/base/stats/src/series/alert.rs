//! What becomes of changes: those of many series that may have one cause, and those that go away
//! again.

use super::Change;

/// Places in an order that several series share, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first that may be it.
    pub earliest: usize,
    /// The last that may be it.
    pub latest: usize,
}

impl Span {
    /// Returns the span between two places, whichever comes first.
    #[must_use]
    pub fn new(one: usize, other: usize) -> Self {
        Self {
            earliest: one.min(other),
            latest: one.max(other),
        }
    }
}

/// Changes that may have one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The places that all members share.
    pub span: Span,
    /// Indices of the spans, in the order they were given in.
    pub members: Vec<usize>,
}

/// Returns the fewest groups such that the members of each share at least one place; ordered by
/// place, each span in one.
///
/// Greedy stabbing of intervals: the span that ends first has to be hit, and no place hits more of
/// the others than its end does. A chain of spans in which neighbours overlap and the ends do not
/// becomes several groups.
#[must_use]
pub fn groups(spans: &[Span]) -> Vec<Group> {
    let mut left: Vec<usize> = (0..spans.len()).collect();
    left.sort_by_key(|n| spans[*n].latest);
    let mut groups = Vec::new();
    while let Some(first) = left.first() {
        let latest = spans[*first].latest;
        let (mut members, others): (Vec<usize>, Vec<usize>) =
            left.into_iter().partition(|n| spans[*n].earliest <= latest);
        members.sort_unstable();
        let earliest = members
            .iter()
            .map(|n| spans[*n].earliest)
            .max()
            .unwrap_or(latest);
        groups.push(Group {
            span: Span { earliest, latest },
            members,
        });
        left = others;
    }
    groups
}

/// What the next point says of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FollowUp {
    /// It lies at the new level, or beyond.
    Stays,
    /// It lies at the old level again, or beyond.
    WentAway,
    /// It lies between, or the levels are too near each other for one point to tell.
    Unclear,
}

/// A point belongs to a level that is at most so many deviations away.
const REACH: f64 = 3.0;

/// Returns what the point after all those that a change was found in says of it. One that is not
/// finite says nothing.
#[must_use]
pub fn follow_up(change: &Change, next: f64) -> FollowUp {
    // Where the point lies on the way from the old level to the new one, in the points' unit.
    let way = change.after - change.before;
    let done = (next - change.before) * way.signum();
    let reach = REACH * change.deviation;
    let way = way.abs();
    let old = done <= reach;
    let new = done >= way - reach;
    match (old, new) {
        _ if !next.is_finite() => FollowUp::Unclear,
        (true, false) => FollowUp::WentAway,
        (false, true) => FollowUp::Stays,
        _ => FollowUp::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop, prop_assert, prop_assert_eq, proptest};

    use super::{Change, FollowUp, Span, follow_up, groups};

    #[test]
    fn changes_that_share_a_place_are_one_group() {
        let spans = [
            Span::new(5, 9),
            Span::new(20, 21),
            Span::new(8, 12),
            Span::new(9, 9),
            Span::new(11, 12),
        ];
        let found: Vec<_> = groups(&spans)
            .into_iter()
            .map(|g| (g.span.earliest, g.span.latest, g.members))
            .collect();
        assert_eq!(
            found,
            [(9, 9, vec![0, 2, 3]), (11, 12, vec![4]), (20, 21, vec![1])]
        );
        assert!(groups(&[]).is_empty());
    }

    fn follow_up_of(before: f64, after: f64, next: f64) -> FollowUp {
        let change = Change {
            at: 9,
            span: Span::new(9, 9),
            before,
            after,
            deviation: 1.0,
            p: 0.0,
        };
        follow_up(&change, next)
    }

    #[test]
    fn next_point_tells_change_from_visit() {
        assert_eq!(follow_up_of(100.0, 110.0, 109.0), FollowUp::Stays);
        assert_eq!(follow_up_of(100.0, 110.0, 150.0), FollowUp::Stays);
        assert_eq!(follow_up_of(100.0, 110.0, 101.0), FollowUp::WentAway);
        assert_eq!(follow_up_of(100.0, 110.0, 90.0), FollowUp::WentAway);
        assert_eq!(follow_up_of(100.0, 110.0, 105.0), FollowUp::Unclear);
        assert_eq!(follow_up_of(100.0, 102.0, 102.0), FollowUp::Unclear);
        assert_eq!(follow_up_of(110.0, 100.0, 100.5), FollowUp::Stays);
        assert_eq!(follow_up_of(110.0, 100.0, 109.5), FollowUp::WentAway);
        assert_eq!(follow_up_of(100.0, 110.0, f64::NAN), FollowUp::Unclear);
        assert_eq!(follow_up_of(100.0, 110.0, f64::INFINITY), FollowUp::Unclear);
    }

    proptest! {
        #[test]
        fn each_span_is_in_one_group(
            ends in prop::collection::vec((0_usize..50, 0_usize..50), 0..40),
        ) {
            let spans: Vec<Span> = ends
                .iter()
                .map(|(one, other)| Span::new(*one, *other))
                .collect();
            let groups = groups(&spans);
            let mut members: Vec<usize> = groups
                .iter()
                .flat_map(|group| group.members.clone())
                .collect();
            members.sort_unstable();
            prop_assert_eq!(members, (0..spans.len()).collect::<Vec<_>>());
            for group in groups {
                prop_assert!(group.span.earliest <= group.span.latest);
                for member in group.members {
                    prop_assert!(spans[member].earliest <= group.span.earliest);
                    prop_assert!(group.span.latest <= spans[member].latest);
                }
            }
        }
    }
}
