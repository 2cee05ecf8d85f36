//! Which file becomes which run: kernels, machines, repeats, copies, and what is skipped.
//! `config` tests what is in the files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use config::{Format, SHIPPED_FORMATS};

use super::tree::Walk;
use super::{ForeignRun, ForeignSuite, ImportOptions, Part, files};

fn formats() -> Vec<Format> {
    let all = SHIPPED_FORMATS.iter();
    all.map(|(_, text)| config::format(text).unwrap()).collect()
}

fn put(top: &Path, path: &str, text: &str) {
    let file = top.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, text).unwrap();
    let open = File::options().write(true).open(file).unwrap();
    open.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000))
        .unwrap();
}

fn hyperfine(seconds: f64) -> String {
    format!("{{\"results\": [{{\"command\": \"make\", \"mean\": 1, \"times\": [{seconds}, 2]}}]}}")
}

/// Imports without a store: runs, and what was skipped.
fn read(paths: &[PathBuf], options: ImportOptions<'_>) -> (Vec<ForeignRun>, Vec<String>) {
    let formats = formats();
    let options = ImportOptions {
        formats: &formats,
        ..options
    };
    let found = files::find(paths, &mut Walk::default()).unwrap();
    let (mut runs, mut left) = (Vec::new(), Vec::new());
    files::read(found, &options, &mut |part| {
        match part {
            Part::Run(run) => runs.push(*run),
            Part::LeftOut(folder, what, why) => left.push(format!("{folder}: {what}: {why}")),
        }
        Ok(())
    })
    .unwrap();
    (runs, left)
}

fn describe(runs: &[ForeignRun]) -> String {
    let lines = runs.iter().map(|run| {
        let host = run
            .foreign
            .environment
            .iter()
            .find(|(name, _)| name == "host");
        let host = host.map_or("-", |(_, host)| host.as_str());
        let rows: Vec<&str> = run
            .foreign
            .results
            .iter()
            .map(|result| result.workload.as_str())
            .collect();
        format!(
            "{} ({}) on {host}: {}",
            run.name,
            run.origin,
            rows.join(" ")
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn instances_side_by_side_are_one_run() {
    let top = tempfile::tempdir().unwrap();
    for (instance, iops, latency) in [(1, 250, 1000.0), (2, 9000, 3000.0)] {
        let text = format!(
            "{{\"jobs\": [{{\"jobname\": \"a\", \"error\": 0, \"read\": {{\"iops\": {iops}, \"bw\": 5, \
             \"clat_ns\": {{\"mean\": {latency}}}}}}}]}}"
        );
        put(top.path(), &format!("fio.output.{instance}"), &text);
    }
    let (runs, left) = read(&[top.path().to_owned()], ImportOptions::default());
    assert_eq!(runs.len(), 1, "{left:?}");
    let rows = runs[0].foreign.results.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.workload.as_str(), row.samples.as_slice()))
        .collect();
    assert_eq!(
        rows,
        [
            ("fio-instances/a/read-iops", &[9250.0][..]),
            ("fio-instances/a/read-bandwidth", &[10.0][..]),
            ("fio-instances/a/read-latency-mean", &[2000.0][..]),
        ]
    );
}

#[test]
fn kernels_come_from_files_directories_and_names() {
    let top = tempfile::tempdir().unwrap();
    let at = |path: &str| top.path().join(path);
    put(top.path(), "flat/6.1-run1.json", &hyperfine(1.0));
    put(top.path(), "flat/6.1-run2.json", &hyperfine(1.5));
    put(top.path(), "flat/6.12.json", &hyperfine(1.25));
    put(top.path(), "flat/notes.txt", "words\n");
    put(top.path(), "flat/cut.json", &hyperfine(1.0)[..40]);
    put(top.path(), "deep/before/a.json", &hyperfine(2.0));
    put(top.path(), "deep/after/a.json", &hyperfine(2.5));
    put(
        top.path(),
        "table.csv",
        "kernel,host,benchmark,run,value,unit\n6.1,lab3,x,1,5,ms\n6.1,lab3,x,2,6,ms\n6.2,lab3,x,1,4,ms\n",
    );
    let none = ImportOptions::default();
    let (flat, left) = read(&[at("flat")], none);
    insta::assert_snapshot!(
        "kernels_by_name",
        format!("{}\n{}", describe(&flat), left.join("\n"))
    );
    let (deep, _) = read(&[at("deep")], none);
    insta::assert_snapshot!("kernels_by_directory", describe(&deep));
    let (several, _) = read(
        &[at("deep/before"), at("deep/after"), at("table.csv")],
        none,
    );
    insta::assert_snapshot!("kernels_of_several_paths", describe(&several));
    let named = ImportOptions {
        kernel: Some("my kernel"),
        host: Some("here"),
        ..none
    };
    let (named, _) = read(&[at("flat/6.12.json")], named);
    insta::assert_snapshot!("kernels_named", describe(&named));
}

#[test]
fn commit_and_directory_name_kernels() {
    let top = tempfile::tempdir().unwrap();
    let text = |commit: &str| {
        format!(
            "{{\"context\": {{\"host_name\": \"0f61d52966d1\", \"GIT_COMMIT_HASH\": \"{commit}\"}}, \
             \"benchmarks\": [{{\"name\": \"a\", \"real_time\": 1, \"time_unit\": \"ns\", \
             \"run_type\": \"iteration\"}}]}}"
        )
    };
    put(top.path(), "g/clang/1.json", &text("fea9315"));
    put(top.path(), "g/gcc/1.json", &text("fea9315"));
    put(top.path(), "g/gcc/2.json", &text("abc1234"));
    put(top.path(), "6.1/run1.json", &hyperfine(1.0));
    let (runs, _) = read(
        &[
            top.path().join("g"),
            top.path().join("6.1/run1.json"),
            top.path().join("g/gcc/2.json"),
        ],
        ImportOptions::default(),
    );
    let kernels: Vec<&str> = runs.iter().map(|run| run.kernel.as_str()).collect();
    assert_eq!(
        kernels,
        ["g-fea9315", "g-fea9315", "g-abc1234", "6.1", "gcc-abc1234"]
    );
    let environment = &runs[0].foreign.environment;
    assert!(environment.iter().all(|(name, _)| name != "host"));
    assert!(
        runs[0]
            .foreign
            .left_out
            .iter()
            .any(|left| left.what == "host")
    );
    let (runs, _) = read(&[top.path().join("g")], ImportOptions::default());
    let kernels: Vec<&str> = runs.iter().map(|run| run.kernel.as_str()).collect();
    assert_eq!(kernels, ["clang-fea9315", "gcc-fea9315", "gcc-abc1234"]);
}

#[test]
fn starts_of_files_are_read() {
    let top = tempfile::tempdir().unwrap();
    let stat = " Performance counter stats for 'x':\n\n   5      cycles\n";
    put(
        top.path(),
        "a.txt",
        &format!("# started on Fri May 16 23:04:11 2025\n\n{stat}"),
    );
    put(
        top.path(),
        "b.txt",
        &format!("# started on yesterday\n\n{stat}"),
    );
    put(top.path(), "c.json", &hyperfine(1.0));
    let (runs, _) = read(&[top.path().to_owned()], ImportOptions::default());
    let starts: Vec<Option<&str>> = runs.iter().map(|run| run.start_time.as_deref()).collect();
    assert_eq!(
        starts,
        [
            None,
            Some(
                "its start time is written in no way that Marvin reads; Marvin takes the \
                 modification time of the file"
            ),
            Some(
                "Marvin reads no start time of hyperfine; Marvin takes the modification time of \
                 the file"
            ),
        ]
    );
}

#[test]
fn copies_are_one_run_and_repeats_two() {
    let top = tempfile::tempdir().unwrap();
    put(top.path(), "k/1.json", &hyperfine(1.0));
    put(top.path(), "k/copy.json", &hyperfine(1.0));
    put(top.path(), "k/2.json", &hyperfine(1.5));
    let (runs, _) = read(&[top.path().to_owned()], ImportOptions::default());
    let numbers: Vec<u64> = runs.iter().map(|run| run.number).collect();
    assert_eq!(numbers[0], numbers[2]);
    assert_ne!(numbers[0], numbers[1]);
}

#[test]
fn files_of_one_criterion_tree_are_one_run() {
    let top = tempfile::tempdir().unwrap();
    let sample = "{\"sampling_mode\": \"Flat\", \"iters\": [1, 2], \"times\": [10, 22]}";
    for bench in ["a/x", "a/y"] {
        let path = format!("linux-6.1/target/criterion/{bench}/new/sample.json");
        put(top.path(), &path, sample);
        put(top.path(), &path.replace("/new/", "/base/"), sample);
    }
    let (runs, left) = read(
        &[top.path().join("linux-6.1/target/criterion")],
        ImportOptions::default(),
    );
    assert_eq!((runs.len(), left.len()), (1, 2), "{left:?}");
    assert_eq!(runs[0].kernel, "linux-6.1");
    assert_eq!(runs[0].foreign.results.len(), 2);
}

#[test]
fn suites_are_recognised_by_their_directories() {
    let top = tempfile::tempdir().unwrap();
    let at = |path: &str| vec![top.path().join(path)];
    put(top.path(), "mm/6.1/iter-0/kernbench/logs/time-2-1", "x");
    let place = "lkp/will-it-scale/p/host/rootfs/config/gcc/v6.1/0/stats.json";
    put(top.path(), place, "{}");
    put(top.path(), "files/a.json", &hyperfine(1.0));
    for (path, suite) in [
        ("mm", ForeignSuite::Mmtests),
        ("mm/6.1", ForeignSuite::Mmtests),
        ("lkp", ForeignSuite::Lkp),
        ("files", ForeignSuite::Files),
        ("files/a.json", ForeignSuite::Files),
        ("missing", ForeignSuite::Files),
    ] {
        assert_eq!(ForeignSuite::recognise(&at(path)), suite, "{path}");
    }
}
