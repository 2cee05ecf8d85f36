//! A history read from the summary is that of the runs, whatever happened to either.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use history::{History, Key, ResultDigest, RunDigest, Series, ShapeIx, WithinMean};
use model::{
    Build, BuildFile, BuildId, Clock, Declared, FailureReason, Machine, MachineId, MachineKind,
    Metric, Origin, Outcome, Run, RunId, Stage, SubjectFailure, UnixTime, WorkloadResult,
};
use store::{Garbage, Store};

use crate::summary::{MAGIC, Summary, Writer, path};
use crate::{HistoryReader, check_summary};

/// More than are read before a summary is written.
const RUNS: u64 = 70;

fn id(run: u64) -> RunId {
    RunId::from_hex(&format!("{run:08x}")).unwrap()
}

fn result(workload: &str, run: u64) -> WorkloadResult {
    let outcome = match (workload, run % 9) {
        ("fork-exit", 4) => Outcome::Unsupported("forks\u{1b}[31m".to_owned()),
        ("fork-exit", 5) => Outcome::Failed(SubjectFailure {
            stage: Stage::Boot,
            reason: FailureReason::Hung,
            console_tail: "…".to_owned(),
        }),
        _ => Outcome::Completed,
    };
    let cost = if run > 40 { 120.0 } else { 100.0 };
    let samples = vec![cost, cost + run as f64 * 0.01, cost];
    WorkloadResult {
        workload: workload.to_owned(),
        operations: 1000 + run / 60,
        // An earlier Marvin stored none.
        declared: (run > 9).then(|| Declared::from_metric(&Metric::COST, Clock::Instructions)),
        samples: if outcome == Outcome::Completed {
            samples
        } else {
            Vec::new()
        },
        outcome,
        counted: Vec::new(),
    }
}

/// Saves runs of builds of two tracks, on two machines.
fn save(store: &Store, runs: std::ops::Range<u64>) {
    for number in runs {
        let commit = format!("6.12.0-g{:07x}", number / 4 * 7919);
        let (name, version) = if number / 4 % 2 == 0 {
            ("git:HEAD", commit)
        } else {
            ("deb:6.12", format!("6.12.{}", number / 4))
        };
        let build = Build {
            id: BuildId::from_hex(&format!("{:08x}", number / 4)).unwrap(),
            name: name.parse().unwrap(),
            version,
            origin: Origin::Described("made up".to_owned()),
            image: BuildFile {
                path: "/nowhere".into(),
                sha256: "00".to_owned(),
            },
            vmlinux: None,
            config: None,
            symbols: None,
            modules: None,
        };
        let kind: MachineKind = ["exact", "ssh"][number as usize % 2].parse().unwrap();
        let machine = Machine {
            id: MachineId::from_hex(["aa", "bb"][number as usize % 2]).unwrap(),
            kind,
            summary: "a machine".to_owned(),
            fingerprint: vec![("cpu".to_owned(), format!("{kind:?}"))],
        };
        store.save_build(&build).unwrap();
        store.save_machine(&machine).unwrap();
        let run = Run {
            id: id(number),
            build: build.id,
            machine: machine.id,
            suite: "micro".to_owned(),
            seed: number / 2 % 2,
            // Not in the order of saving, and one without a known start.
            started_unix: UnixTime::new(1_790_000_000 + (number as i64 * 37 % 50) * 60),
            environment: Vec::new(),
            results: ["getppid", "fork-exit"]
                .map(|name| result(name, number))
                .to_vec(),
        };
        store.save_run(&run, &[]).unwrap();
    }
}

/// Returns the series and kernels of a history.
fn content(history: &History) -> (Vec<(Key, Series)>, Vec<String>) {
    let series = history
        .series()
        .map(|(key, series)| (key.clone(), series.clone()));
    let order = history
        .order()
        .iter()
        .map(|kernel| history.title(*kernel).to_owned());
    (series.collect(), order.collect())
}

fn read(home: &Path, with_summary: bool) -> (Vec<(Key, Series)>, Vec<String>) {
    let mut reader = HistoryReader::open(home).unwrap();
    if with_summary {
        reader.keep_summary_of(home);
    }
    reader.refresh().unwrap();
    let snapshot = reader.snapshot(1);
    assert!(!snapshot.history.workloads().is_empty());
    content(&snapshot.history)
}

fn assert_same(home: &Path) {
    assert_eq!(read(home, true), read(home, false));
}

fn runs_in(home: &Path) -> usize {
    Summary::read(&path(home)).map_or(0, |summary| summary.runs().count())
}

/// Returns a data directory with runs and their summary.
fn lab() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(home.path()).unwrap();
    save(&store, 1..RUNS);
    assert_same(home.path());
    assert_eq!(runs_in(home.path()), RUNS as usize - 1);
    (home, store)
}

#[test]
fn summary_and_later_runs_tell_the_same() {
    let (home, store) = lab();
    assert_same(home.path());
    save(&store, RUNS..RUNS + 5);
    assert_same(home.path());
    assert_eq!(
        runs_in(home.path()),
        RUNS as usize - 1,
        "few runs more are read again"
    );
    save(&store, RUNS + 5..2 * RUNS);
    assert_same(home.path());
    assert_eq!(runs_in(home.path()), 2 * RUNS as usize - 1);
    assert_same(home.path());
}

#[test]
fn deleted_runs_are_left_out() {
    let (home, store) = lab();
    let runs = [1, 30, RUNS - 1].map(id).to_vec();
    store
        .remove(&Garbage {
            runs,
            ..Garbage::default()
        })
        .unwrap();
    assert_same(home.path());
    // The last run's number goes to the next one.
    save(&store, RUNS..RUNS + 1);
    assert_same(home.path());
    save(&store, RUNS + 1..2 * RUNS + 1);
    assert_same(home.path());
    assert_same(home.path());
}

#[test]
fn other_digests_need_another_number() {
    let (home, _store) = lab();
    let bytes = fs::read(path(home.path())).unwrap();
    let begin = MAGIC.len() + size_of::<u32>();
    // What a digest says of these runs has changed if the sum does: then count up the number in
    // MAGIC, or a summary of an older Marvin is read with other values than its runs have.
    let number = MAGIC.trim_end().rsplit(' ').next();
    assert_eq!(
        (number, crc32fast::hash(&bytes[begin..])),
        (Some("4"), 1_058_997_608)
    );
}

#[test]
fn summary_of_another_store_is_not_used() {
    let (home, _) = lab();
    let other = tempfile::tempdir().unwrap();
    let store = Store::open(other.path()).unwrap();
    save(&store, 2..RUNS);
    fs::copy(path(home.path()), path(other.path())).unwrap();
    assert_same(other.path());
}

#[test]
fn damaged_or_half_written_summary_is_replaced() {
    let (home, _store) = lab();
    let file = path(home.path());
    let whole = fs::read(&file).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    for damaged in [
        &flipped[..],
        &whole[..whole.len() / 2],
        b"",
        b"marvin history",
    ] {
        fs::write(&file, damaged).unwrap();
        // That of a killed process.
        fs::write(file.with_extension("summary.new"), damaged).unwrap();
        assert!(Summary::read(&file).is_none());
        assert_same(home.path());
        assert_eq!(runs_in(home.path()), RUNS as usize - 1);
    }
}

#[test]
fn check_finds_summary_that_differs() {
    let (home, store) = lab();
    let check = || check_summary(&store, home.path()).unwrap();
    assert_eq!(check(), None);
    let file = path(home.path());
    let read = Summary::read(&file).unwrap();
    let mut history = History::default();
    history.know_shapes(read.shapes.iter().cloned());
    let mut writer = Writer::new(history.shapes());
    for (number, mut run) in read.runs() {
        run.results[0].value += f64::from(u8::from(number == 33));
        writer.add(number, &run);
    }
    writer.save(&file).unwrap();
    let wrong = check().unwrap();
    assert_eq!(wrong, format!("it differs from {}", id(33)));
    fs::write(&file, "half").unwrap();
    assert!(check().unwrap().contains("not whole"));
    fs::remove_file(&file).unwrap();
    assert_eq!(check(), None);
}

#[test]
fn summary_that_cannot_be_written_is_no_error() {
    let (home, _store) = lab();
    let file = path(home.path());
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_same(home.path());
}

#[test]
fn growing_reader_equals_a_new_one() {
    let (home, store) = lab();
    let mut reader = HistoryReader::open(home.path()).unwrap();
    reader.use_summary_of(home.path());
    reader.refresh().unwrap();
    save(&store, RUNS..RUNS + 9);
    assert!(reader.refresh().unwrap());
    assert_eq!(
        content(&reader.snapshot(2).history),
        read(home.path(), false)
    );
}

#[test]
fn one_workload_is_worked_out_like_all() {
    let (home, _store) = lab();
    let reader = HistoryReader::open(home.path()).unwrap();
    let history = reader.read_only(|name| name == "getppid").unwrap();
    let mut all = read(home.path(), false).0;
    all.retain(|(key, _)| &*key.workload == "getppid");
    let mut one = content(&history).0;
    one.retain(|(key, _)| &*key.workload == "getppid");
    assert!(!one.is_empty() && one == all);
}

#[test]
fn samples_of_single_runs_survive_the_summary() {
    let digest = |values: &[f64]| ResultDigest {
        shape: ShapeIx(0),
        value: 40.1,
        mark: 7,
        cycles: [0.0; 4],
        deferred: 0.0,
        within: WithinMean::compute(values).map(Arc::new),
    };
    let run = RunDigest {
        id: id(1),
        build: BuildId::from_hex("0a").unwrap(),
        machine: MachineId::from_hex("0b").unwrap(),
        seed: 0,
        started_unix: UnixTime::new(1),
        results: vec![
            digest(&[40.0, 40.2, 40.1]),
            digest(&[40.0]),
            digest(&[2.0; 3]),
        ],
    };
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(&[]);
    writer.add(1, &run);
    writer.save(&path(folder.path())).unwrap();
    let read = Summary::read(&path(folder.path())).unwrap();
    assert_eq!(read.runs().collect::<Vec<_>>(), [(1, run)]);
}
