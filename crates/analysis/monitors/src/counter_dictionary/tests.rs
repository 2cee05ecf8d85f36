//! What counters of old and new kernels mean, and which of them can be compared.

use std::collections::BTreeSet;

use super::{Comparability, DICTIONARY, Formula, Term, find_meaning};
use model::Counters;

fn counters(of: &[(&str, u64)]) -> Counters {
    of.iter()
        .map(|(key, value)| ((*key).to_owned(), *value))
        .collect()
}

fn value(name: &str, of: &[(&str, u64)]) -> Option<u64> {
    find_meaning(name).unwrap().value(&counters(of))
}

/// MMTests 638401e0 lets the last zone win and reports 7.
#[test]
fn stalls_are_summed_over_zones() {
    let zones = [
        ("allocstall_dma32", 0),
        ("allocstall_normal", 5000),
        ("allocstall_movable", 7),
    ];
    assert_eq!(value("Allocation stalls", &zones), Some(5007));
    assert_eq!(
        value("Allocation stalls", &[("allocstall", 4830)]),
        Some(4830)
    );
    assert_eq!(value("Allocation stalls", &[("pgfault", 1)]), None);
}

/// Of the zones, MMTests looks for `highmem` only, and sysstat mistakes the throttling for a
/// zone (its pull request 424).
#[test]
fn scans_are_summed_over_zones_without_throttle() {
    let keys = [
        ("pgscan_direct_high", 3),
        ("pgscan_direct_normal", 4),
        ("pgscan_direct_throttle", 100),
    ];
    assert_eq!(value("Direct pages scanned", &keys), Some(7));
}

#[test]
fn reclaim_counters_are_read_from_oldest_kernels() {
    let old = [
        ("pgsteal_normal", 1_043_923),
        ("pgsteal_dma", 424_170),
        ("kswapd_steal", 1_298_184),
    ];
    assert_eq!(value("Kswapd pages reclaimed", &old), Some(1_298_184));
    assert_eq!(
        value("Direct pages reclaimed", &old),
        Some(1_043_923 + 424_170 - 1_298_184)
    );
    let oldest = [("pgsteal", 146_188_093), ("kswapd_steal", 105_403_604)];
    assert_eq!(value("Direct pages reclaimed", &oldest), Some(40_784_489));
    let torn = [("pgsteal", 5), ("kswapd_steal", 6)];
    assert_eq!(value("Direct pages reclaimed", &torn), None);
}

/// MMTests ignores the new keys and does not see 500 more pages: direct scans may fall from 6.1
/// to 6.12 only because a counter was renamed.
#[test]
fn newly_split_counters_are_shown_but_not_compared() {
    let old = counters(&[("pgscan_direct", 1500)]);
    let new = counters(&[("pgscan_direct", 1000), ("pgscan_khugepaged", 500)]);
    let newest = counters(&[
        ("pgscan_direct", 900),
        ("pgscan_khugepaged", 500),
        ("pgscan_proactive", 100),
    ]);
    let direct = find_meaning("Direct pages scanned").unwrap();
    let coarser = find_meaning("Pages scanned outside kswapd").unwrap();
    for (base, other, key) in [
        (&old, &new, "pgscan_khugepaged"),
        (&new, &newest, "pgscan_proactive"),
    ] {
        let differs = Comparability::Differs {
            apart: Some(key),
            instead: Some(coarser.name),
        };
        assert_eq!(direct.comparability(base, other), differs);
        assert_eq!(direct.comparability(other, base), differs);
        assert_eq!(coarser.comparability(base, other), Comparability::Same);
        assert_eq!(
            (coarser.value(base), coarser.value(other)),
            (Some(1500), Some(1500))
        );
    }
    assert_eq!(direct.comparability(&new, &new), Comparability::Same);
    let zones = counters(&[("pgscan_direct_normal", 1)]);
    assert_eq!(direct.comparability(&zones, &old), Comparability::Same);
    assert_eq!(
        direct.comparability(&zones, &counters(&[])),
        Comparability::Lacking
    );
}

/// MMTests looks for `pgmigrate_failure` and `pgmigrate_failed`.
#[test]
fn failed_migrations_keep_the_kernel_counter_name() {
    assert_eq!(
        value("Page migrate failure", &[("pgmigrate_fail", 507_313)]),
        Some(507_313)
    );
    let failures = find_meaning("Page migrate failure").unwrap();
    let new = counters(&[("pgmigrate_fail", 1)]);
    let old = counters(&[("compact_pagemigrate_failed", 1)]);
    assert_eq!(
        failures.comparability(&old, &new),
        Comparability::Differs {
            apart: None,
            instead: None
        }
    );
}

#[test]
fn faults_of_two_kinds_are_kept_apart() {
    assert_eq!(
        value("Minor Faults", &[("pgfault", 10), ("pgmajfault", 3)]),
        Some(7)
    );
    assert_eq!(value("Minor Faults", &[("pgfault", 10)]), None);
}

#[test]
fn the_table_is_sound() {
    let names: BTreeSet<&str> = DICTIONARY.iter().map(|c| c.name).collect();
    assert_eq!(names.len(), DICTIONARY.len());
    for concept in DICTIONARY {
        assert!(
            !concept.forms.is_empty() && !concept.source.is_empty() && !concept.unit.is_empty()
        );
        assert!(
            concept.coarser.is_none_or(|name| names.contains(name)),
            "{}",
            concept.name
        );
        assert_eq!(concept.coarser.is_some(), !concept.apart.is_empty());
        for Formula(_, terms) in concept.forms {
            assert!(
                matches!(terms.first(), Some(Term::Key(_) | Term::Zones(_))),
                "{}",
                concept.name
            );
        }
    }
}
