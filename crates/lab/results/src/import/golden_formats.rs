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

fn values(foreign: &Foreign) -> Values {
    let results = foreign.results.iter();
    results
        .map(|result| (result.workload.clone(), sorted(result.samples.clone())))
        .collect()
}

/// Returns rows that differ, each with a text.
fn differences(ours: &Values, theirs: &Values) -> BTreeMap<String, String> {
    let mut differences = BTreeMap::new();
    let names: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for name in names {
        let none = Vec::new();
        let [one, other] = [ours, theirs].map(|rows| rows.get(name).unwrap_or(&none));
        if !is_equal(one, other) {
            let text = format!("{name}: {one:?} here, {other:?} in MMTests");
            differences.insert(name.clone(), text);
        }
    }
    differences
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
    let ours = values(&foreign);
    let theirs = extracted();
    let differences = differences(&ours, &theirs);
    let differences: Vec<&String> = differences.values().collect();
    let text: Vec<&str> = differences.iter().map(|text| text.as_str()).collect();
    insta::assert_snapshot!("differences", text.join("\n"));
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

/// Draws of the configs of MMTests that have a parser.
const DRAWN: usize = 50;
const SEED: u64 = 48;

/// Returns the names of the configs that have a test with a parser, and these tests, each with its
/// parser: `configs.tsv`, which `list-configs.sh` writes.
fn configs() -> Vec<(String, Vec<(String, String)>)> {
    let text = std::fs::read_to_string(folder().join("configs.tsv")).unwrap();
    let mut configs = Vec::new();
    for line in text.lines() {
        let [config, _, parsers] = line.split('\t').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let tests: Vec<(String, String)> = parsers
            .split(' ')
            .filter_map(|pair| pair.split_once('='))
            .map(|(test, parser)| (test.to_owned(), parser.to_owned()))
            .collect();
        if !tests.is_empty() {
            configs.push((config.to_owned(), tests));
        }
    }
    configs
}

/// Draws configs without replacement (splitmix64).
fn draw(mut configs: Vec<(String, Vec<(String, String)>)>) -> Vec<(String, Vec<(String, String)>)> {
    let mut state = SEED;
    let mut drawn = Vec::new();
    while drawn.len() < DRAWN {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let at = (mixed ^ (mixed >> 31)) % configs.len() as u64;
        drawn.push(configs.swap_remove(usize::try_from(at).unwrap()));
    }
    drawn
}

/// Returns the folder of the logs of a test, or of another test with the same parser: that whose
/// name ends most alike.
fn logs_of(test: &str, parser: &str) -> Option<PathBuf> {
    // The parser of tbench is a link to that of dbench.
    let parser = if parser == "dbench" { "tbench" } else { parser };
    let alike = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let ends = name.bytes().rev().zip(test.bytes().rev());
        ends.take_while(|(one, other)| one == other).count()
    };
    let tops = ["formats/iter-0", "2026-06/iter-0"].map(|top| folder().join(top));
    let entries = tops.iter().flat_map(|top| std::fs::read_dir(top).unwrap());
    let mut found: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let rest = name.strip_prefix(parser);
            path.is_dir() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        })
        .collect();
    found.sort();
    found.into_iter().max_by_key(alike)
}

/// Reads logs as those of a test; returns its rows without its name.
fn rows_of(logs: &Path, test: &str) -> Values {
    let mut paths = Vec::new();
    list(logs, &format!("{test}/"), &mut paths);
    let found: Vec<PathBuf> = paths
        .iter()
        .map(|path| logs.join(path.strip_prefix(&format!("{test}/")).unwrap()))
        .collect();
    for path in &mut paths {
        *path = path.trim_end_matches(".xz").to_owned();
    }
    let foreign = foreign::mmtests(&paths, &formats(), &mut |file| {
        super::tree::unpack(&found[file], super::tree::FILE_MAX)
    });
    let of_test = |(name, values): (String, Vec<f64>)| {
        Some((name.strip_prefix(&format!("{test}/"))?.to_owned(), values))
    };
    values(&foreign).into_iter().filter_map(of_test).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "counts for --nocapture")]
fn drawn_configs_give_the_rows_of_mmtests() {
    let of_formats = differences(&values(&import()), &extracted());
    // `golden.rs` has the two rows in which MMTests prints the rate sent as the one received.
    let known = |folder: &str| {
        let begin = format!("{folder}/");
        of_formats.keys().any(|row| row.starts_with(&begin)) || folder == "netperf-ipv4-udp"
    };
    let all = configs();
    let count = all.len();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (config, tests) in draw(all) {
        let mut worst = "rows of MMTests";
        for (test, parser) in &tests {
            let Some(logs) = logs_of(test, parser) else {
                println!("{config}: {test}: no logs of {parser} here");
                worst = "no logs";
                continue;
            };
            let name = logs.file_name().unwrap().to_string_lossy().into_owned();
            let rows = rows_of(&logs, test);
            if rows.is_empty() || rows != rows_of(&logs, &name) {
                println!("{config}: {test}: other rows than {name}");
                worst = "no rows";
            } else if known(&name) && worst == "rows of MMTests" {
                println!("{config}: {test}: some rows differ from MMTests' (docs/import.md)");
                worst = "differ where MMTests is wrong";
            }
        }
        *counts.entry(worst).or_default() += 1;
    }
    println!("{DRAWN} of {count} configs with a parser, seed {SEED}: {counts:?}");
    assert_eq!(counts.get("no rows"), None, "{counts:?}");
    assert!(counts["rows of MMTests"] >= DRAWN * 4 / 5, "{counts:?}");
}
