//! Tests of chains: which releases are measured, and what their steps add up to.

use std::collections::{BTreeMap, BTreeSet};

use super::{Chain, ChainRow, Link, document, json, schema};
use ::document::Styles;

/// Returns a chain of these releases whose ends are measured.
fn chain(versions: &[&str], rows: &[(&str, &[f64])]) -> Chain {
    let links = versions.iter().map(|version| Link {
        version: (*version).to_owned(),
        name: format!("deb:linux-image-{version}"),
        missing: None,
    });
    let last = versions.len() - 1;
    let rows = rows.iter().map(|(workload, percent)| ChainRow {
        workload: (*workload).to_owned(),
        margin_percent: 1.0,
        percent: BTreeMap::from([(0, Some(percent[0])), (last, Some(percent[last]))]),
    });
    Chain {
        links: links.collect(),
        rows: rows.collect(),
        seeds: vec![1],
        ..Chain::default()
    }
}

/// Measures what the chain asks for, and returns the releases in the order of their boots.
fn measure(chain: &mut Chain, rows: &[(&str, &[f64])]) -> Vec<String> {
    let mut booted = Vec::new();
    while let Some((place, workloads)) = chain.next() {
        assert!(!workloads.is_empty(), "a boot without a workload");
        booted.push(chain.links[place].version.clone());
        for (row, (_, percent)) in chain.rows.iter_mut().zip(rows) {
            if workloads.contains(&row.workload) {
                row.percent.insert(place, Some(percent[place]));
            }
        }
    }
    chain.find_steps();
    booted
}

const VERSIONS: [&str; 8] = [
    "6.1.170", "6.1.180", "6.1.190", "6.6.10", "6.6.20", "6.9.1", "6.12.100", "6.12.117",
];

#[test]
fn steps_are_found_beside_boundaries_of_series() {
    let rows: [(&str, &[f64]); 2] = [
        ("fork", &[0.0, 0.0, 0.1, -9.0, -9.0, -9.1, -14.0, -14.8]),
        ("pipe", &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.2]),
    ];
    let mut chain = chain(&VERSIONS, &rows);
    let booted = measure(&mut chain, &rows);
    let once: BTreeSet<&String> = booted.iter().collect();
    assert_eq!(once.len(), booted.len(), "{booted:?}");
    // No stable update of a series without a step.
    assert!(!booted.contains(&"6.1.180".to_owned()), "{booted:?}");
    insta::assert_snapshot!(document(&chain).text(&Styles::plain()));
}

#[test]
fn equal_ends_are_not_opened() {
    let rows: [(&str, &[f64]); 1] = [("pipe", &[0.0, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 0.9])];
    let mut chain = chain(&VERSIONS, &rows);
    assert_eq!(chain.next(), None);
    chain.find_steps();
    assert!(chain.steps[0].is_empty());
}

#[test]
fn release_that_cannot_be_had_widens_its_step() {
    let rows: [(&str, &[f64]); 1] = [("fork", &[0.0, -5.0, -5.0])];
    let mut chain = chain(&["6.1.1", "6.1.2", "6.1.3"], &rows);
    chain.links[1].missing = Some("no list has linux-base-6.1.2".to_owned());
    assert_eq!(measure(&mut chain, &rows), Vec::<String>::new());
    let text = document(&chain).text(&Styles::plain());
    assert!(
        text.contains("-5.00 in 6.1.2 to 6.1.3, rest +0.00"),
        "{text}"
    );
    assert!(
        text.contains("6.1.2: no list has linux-base-6.1.2"),
        "{text}"
    );
}

#[test]
fn release_without_value_is_not_asked_again() {
    let rows: [(&str, &[f64]); 1] = [("fork", &[0.0, -5.0, -5.0])];
    let mut chain = chain(&["6.1.1", "6.1.2", "6.1.3"], &rows);
    chain.rows[0].percent.insert(1, None);
    assert_eq!(chain.next(), None);
    chain.find_steps();
    assert_eq!(chain.steps[0][0].ends, [0, 2]);
}

#[test]
fn json_of_a_chain_fits_its_schema() {
    let rows: [(&str, &[f64]); 1] = [("fork", &[0.0, -5.0, -5.0])];
    let mut chain = chain(&["6.1.1", "6.1.2", "6.1.3"], &rows);
    measure(&mut chain, &rows);
    ::document::fixtures::assert_fits(&schema(), &json(&chain).unwrap());
}

#[test]
fn schema_in_docs_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas/chain.json"
    );
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    let in_docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        in_docs == text,
        "docs/schemas is old: marvin reference schemas docs/schemas"
    );
}

proptest::proptest! {
    #[test]
    fn steps_add_up_within_the_margin(
        percent in proptest::collection::vec(-30_i32..30, 8),
    ) {
        let mut values: Vec<f64> = percent.into_iter().map(f64::from).collect();
        values[0] = 0.0;
        let rows: [(&str, &[f64]); 1] = [("fork", &values)];
        let mut chain = chain(&VERSIONS, &rows);
        let booted = measure(&mut chain, &rows);
        proptest::prop_assert!(booted.len() <= VERSIONS.len() - 2);
        let sum: f64 = chain.steps[0].iter().map(|step| step.points).sum();
        let unopened = (chain.measured().len() - 1) as f64;
        proptest::prop_assert!((sum - values[7]).abs() <= unopened + 1e-9);
        for step in &chain.steps[0] {
            proptest::prop_assert_eq!(step.ends[1] - step.ends[0], 1);
        }
    }
}
