//! Derives a perturbation of the guest from the seed alone: a seed perturbs every kernel in the
//! same way.

use std::ops::Range;

use model::LayoutState;
use wire::Perturbation;

/// Ranges of docs/exact-machine.md, section "Seeds".
const DELAY_US_MAX: u64 = 40_000;
const SPINS: (u64, u64) = (0, 4);
const CHILD_PAGES: (u64, u64) = (1000, 6000);
const CHILD_FORKS: (u64, u64) = (10, 50);
/// A node of the tree of mappings holds up to 16 of them (`MAPLE_NODE_SLOTS` of
/// include/linux/maple_tree.h).
const MAPPINGS: (u64, u64) = (0, 16);
/// A process has a table of 64 descriptors, and a larger one when it needs it (`NR_OPEN_DEFAULT` of
/// include/linux/fdtable.h).
const DESCRIPTORS: (u64, u64) = (0, 140);

/// Returns how a seed perturbs a guest after the snapshot, with what decides a state of the workload
/// that follows; QEMU's `-seed` perturbs the boot.
pub(crate) fn perturbation(seed: u64, state: Option<LayoutState>) -> Perturbation {
    let varied = |of: LayoutState, range: (u64, u64), salt: u64| match state {
        Some(state) if state == of => between(seed, range.0..range.1, salt),
        _ => 0,
    };
    Perturbation {
        delay_us: between(seed, 0..DELAY_US_MAX, 1),
        spins: between(seed, SPINS.0..SPINS.1, 4),
        child_pages: between(seed, CHILD_PAGES.0..CHILD_PAGES.1, 2),
        child_forks: between(seed, CHILD_FORKS.0..CHILD_FORKS.1, 3),
        mappings_above: varied(LayoutState::Mappings, MAPPINGS, 5),
        mappings_below: varied(LayoutState::Mappings, MAPPINGS, 6),
        descriptors: varied(LayoutState::Descriptors, DESCRIPTORS, 7),
    }
}

/// Returns a number of a range, by the seed and what it is for.
fn between(seed: u64, range: Range<u64>, salt: u64) -> u64 {
    range.start + mix(seed ^ (salt << 56)) % (range.end - range.start)
}

/// Returns every condition of a measurement that this crate decides. They are part of the machine's
/// identity, so that results under other conditions are not compared silently.
pub(crate) fn conditions() -> Vec<(String, String)> {
    let warm_ups: std::collections::BTreeSet<u32> =
        model::workloads().iter().map(|w| w.warm_up).collect();
    vec![
        (
            "seeds".into(),
            format!(
                "delay_us<{DELAY_US_MAX} spins={SPINS:?} child_pages={CHILD_PAGES:?} child_forks={CHILD_FORKS:?} mappings={MAPPINGS:?} descriptors={DESCRIPTORS:?}"
            ),
        ),
        ("warm_up".into(), format!("{warm_ups:?}")),
    ]
}

/// Puts items in an order that depends on the replicate only (Fisher and Yates).
pub(crate) fn shuffle<T>(items: &mut [T], replicate: u64) {
    for last in (1..items.len()).rev() {
        let chosen = mix(mix(replicate).wrapping_add(last as u64)) % (last as u64 + 1);
        // Not above `last`.
        items.swap(last, usize::try_from(chosen).unwrap_or(last));
    }
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): neighbouring seeds give unrelated
/// numbers.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::{
        CHILD_FORKS, CHILD_PAGES, DELAY_US_MAX, DESCRIPTORS, MAPPINGS, SPINS, perturbation, shuffle,
    };
    use model::LayoutState;

    #[test]
    fn order_depends_on_the_replicate_only() {
        let order = |replicate| {
            let mut items: Vec<usize> = (0..6).collect();
            shuffle(&mut items, replicate);
            items
        };
        assert_eq!(order(3), order(3));
        // Each item is in each place in about a sixth of the replicates.
        for item in 0..6 {
            for place in 0..6 {
                let there = (0..6000)
                    .filter(|replicate| order(*replicate)[place] == item)
                    .count();
                assert!((850..1150).contains(&there), "{item} in {place}: {there}");
            }
        }
        shuffle(&mut [0; 0], 1);
    }

    #[test]
    fn seeds_differ_and_stay_in_range() {
        let all: Vec<_> = (1..100).map(|seed| perturbation(seed, None)).collect();
        for (n, p) in all.iter().enumerate() {
            assert!(p.delay_us < DELAY_US_MAX);
            assert!((SPINS.0..SPINS.1).contains(&p.spins));
            assert!((CHILD_PAGES.0..CHILD_PAGES.1).contains(&p.child_pages));
            assert!((CHILD_FORKS.0..CHILD_FORKS.1).contains(&p.child_forks));
            assert!(!all[..n].contains(p));
        }
        assert_eq!(perturbation(7, None), perturbation(7, None));
    }

    #[test]
    fn five_seeds_have_five_layouts() {
        use LayoutState::{Descriptors, Mappings};
        for state in [Mappings, Descriptors] {
            let layouts: std::collections::BTreeSet<[u64; 3]> = (1..=5)
                .map(|seed| perturbation(seed, Some(state)))
                .map(|p| [p.mappings_above, p.mappings_below, p.descriptors])
                .collect();
            assert_eq!(layouts.len(), 5);
            for [above, below, descriptors] in layouts {
                let is_of = |range: (u64, u64), count, of| {
                    (range.0..range.1).contains(&count) && (state == of || count == 0)
                };
                assert!(is_of(MAPPINGS, above, Mappings) && is_of(MAPPINGS, below, Mappings));
                assert!(is_of(DESCRIPTORS, descriptors, Descriptors));
            }
        }
        let other = perturbation(3, Some(Mappings));
        assert_eq!(other.child_pages, perturbation(3, None).child_pages);
    }
}
