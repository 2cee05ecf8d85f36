//! Compares rows that manifests and `foreign::computed` read from logs of MMTests with those of
//! MMTests' own parsers: `golden/mmtests/formats`, `extract-formats.sh`. The logs are written by hand, in the layouts that
//! these parsers read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config::{Format, MMTESTS_FORMATS};
use model::{MMTESTS, imported_declaration};

use super::foreign::{self, Foreign};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/mmtests")
}

fn formats() -> Vec<Format> {
    let all = MMTESTS_FORMATS.iter();
    all.map(|(_, text)| config::format(text).unwrap()).collect()
}

fn list(folder: &Path, below: &str, all: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            list(&entry.path(), &format!("{name}/"), all);
        } else {
            all.push(name);
        }
    }
}

fn import() -> Foreign {
    let top = folder().join("formats/iter-0");
    let mut paths = Vec::new();
    list(&top, "", &mut paths);
    foreign::mmtests(&paths, &formats(), &mut |file| {
        std::fs::read(top.join(&paths[file])).map_err(|error| error.to_string())
    })
}

/// Values by row, sorted.
type Values = BTreeMap<String, Vec<f64>>;

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn extracted() -> Values {
    let text = std::fs::read_to_string(folder().join("formats.tsv")).unwrap();
    let mut rows = Values::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        let [test, row, _, value] = cells[..] else {
            panic!("{line}");
        };
        // `>` is no letter of a name.
        let name = format!("{test}/{row}").replace("->", "-");
        let value = value.replace(',', "").parse().unwrap();
        rows.entry(name).or_default().push(value);
    }
    rows.into_iter()
        .map(|(row, values)| (row, sorted(values)))
        .collect()
}

/// awk prints six digits.
fn is_equal(one: &[f64], other: &[f64]) -> bool {
    let is_near = |(one, other): (&f64, &f64)| (one - other).abs() <= 5e-6 * one.abs();
    one.len() == other.len() && one.iter().zip(other).all(is_near)
}

#[test]
fn rows_of_logs_equal_those_of_mmtests() {
    let foreign = import();
    let ours: Values = foreign
        .results
        .iter()
        .map(|result| (result.workload.clone(), sorted(result.samples.clone())))
        .collect();
    let theirs = extracted();
    let mut differences = Vec::new();
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let none = Vec::new();
        let [one, other] = [&ours, &theirs].map(|rows| rows.get(name).unwrap_or(&none));
        if !is_equal(one, other) {
            differences.push(format!("{name}: {one:?} here, {other:?} in MMTests"));
        }
    }
    insta::assert_snapshot!("differences", differences.join("\n"));
    let equal = theirs.len() - differences.iter().filter(|d| !d.contains("[] in")).count();
    assert!(equal > 150, "{equal}");
}

#[test]
fn rows_of_all_tests_have_directions() {
    let foreign = import();
    let undirected: Vec<&str> = foreign
        .results
        .iter()
        .filter(|result| {
            let known = imported_declaration(MMTESTS, result);
            known.direction.is_none() || known.unit.is_empty()
        })
        .map(|result| result.workload.as_str())
        .collect();
    assert_eq!(undirected, ["saladfork/local_v_total"]);
    let tests: BTreeSet<&str> = foreign
        .results
        .iter()
        .filter_map(|result| Some(result.workload.split_once('/')?.0))
        .collect();
    let of_formats: usize = formats().iter().map(Format::test_count).sum();
    // `sysbench-cpu` and `sysbench-mutex` are older names; nine tests have computed rows.
    assert_eq!(tests.len(), of_formats - 2 + 9);
}
