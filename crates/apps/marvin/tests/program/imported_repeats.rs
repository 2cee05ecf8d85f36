//! Repeated runs of another suite: report, history, dashboard and export choose the same run of
//! each kind of repetition, and garbage collection deletes none.

use std::fs;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;

use crate::fresh::{Fresh, fresh};
use crate::output_of;

const DAY: i64 = 86_400;
const FIRST_DAY: i64 = 1_700_000_000;
const ELAPSED: &str = "kernbench/Elapsed-4";
const USER: &str = "kernbench/User-4";

/// A run of MMTests: three builds of a kernel, of so many seconds each.
struct Repeat {
    /// When it began; `None` where its files do not tell.
    begun: Option<i64>,
    elapsed: f64,
    user: f64,
    /// Whether the time of the user's code is a row.
    has_user: bool,
}

/// Two runs of one kernel and number, in the order of their import, and what all commands show of
/// them.
struct Case {
    name: &'static str,
    runs: [Repeat; 2],
    stored: usize,
    elapsed: f64,
    user: f64,
}

const fn repeat(begun: i64, elapsed: f64, user: f64) -> Repeat {
    Repeat {
        begun: Some(begun),
        elapsed,
        user,
        has_user: true,
    }
}

/// Writes `iter-0` of a kernel into a log directory of its own.
fn write_log(log: &Path, kernel: &str, run: &Repeat) {
    let top = log.join(kernel).join("iter-0");
    let logs = top.join("kernbench/logs");
    fs::create_dir_all(&logs).unwrap();
    let version = format!("Linux marvin7 {kernel} #1 SMP x86_64\n");
    fs::write(top.join("kernel.version"), version).unwrap();
    if let Some(begun) = run.begun {
        let text = format!(
            "start :: {begun}\ntest begin :: kernbench {begun}\ntest end :: kernbench {} 0\n",
            begun + 100
        );
        fs::write(top.join("tests-timestamp"), text).unwrap();
    }
    for number in 1..=3 {
        let Repeat { elapsed, user, .. } = run;
        let user = if run.has_user {
            format!("{user:.1}user ")
        } else {
            String::new()
        };
        let time = format!("{user}5.0system 0:{elapsed:.2}elapsed 100%CPU\n");
        let file = logs.join(format!("kernbench-4-{number}.time"));
        fs::write(&file, time).unwrap();
        let file = fs::File::options().write(true).open(file).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(0))
            .unwrap();
    }
}

/// Returns the kinds of repetition.
fn cases() -> Vec<Case> {
    let second_day = FIRST_DAY + DAY;
    let undated = |elapsed| Repeat {
        begun: None,
        ..repeat(0, elapsed, 10.0)
    };
    let case = |name, runs, stored, elapsed, user| Case {
        name,
        runs,
        stored,
        elapsed,
        user,
    };
    vec![
        case(
            "the same files",
            [repeat(FIRST_DAY, 40.0, 10.0), repeat(FIRST_DAY, 40.0, 10.0)],
            1,
            40.0,
            10.0,
        ),
        case(
            "another day",
            [
                repeat(FIRST_DAY, 40.0, 10.0),
                repeat(second_day, 44.0, 11.0),
            ],
            2,
            44.0,
            11.0,
        ),
        case(
            "another day with equal values",
            [
                repeat(FIRST_DAY, 40.0, 10.0),
                repeat(second_day, 40.0, 10.0),
            ],
            2,
            40.0,
            10.0,
        ),
        case(
            "the earlier day imported last",
            [
                repeat(second_day, 44.0, 11.0),
                repeat(FIRST_DAY, 40.0, 10.0),
            ],
            2,
            44.0,
            11.0,
        ),
        case(
            "a later run with fewer rows",
            [
                repeat(FIRST_DAY, 40.0, 10.0),
                Repeat {
                    has_user: false,
                    ..repeat(second_day, 44.0, 0.0)
                },
            ],
            2,
            44.0,
            10.0,
        ),
        case(
            "other values at the same second",
            [repeat(FIRST_DAY, 40.0, 10.0), repeat(FIRST_DAY, 44.0, 11.0)],
            2,
            44.0,
            11.0,
        ),
        case(
            "runs without a date",
            [undated(40.0), undated(44.0)],
            2,
            44.0,
            10.0,
        ),
    ]
}

fn json(home: &Path, arguments: &[&str]) -> Value {
    let output = output_of(home, arguments);
    let text = output.split_once("-- out\n").unwrap().1;
    let text = text.split("-- err\n").next().unwrap();
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {output}"))
}

/// Imports both runs, and one of a newer kernel.
fn import_case(number: usize, case: &Case) -> Fresh {
    let home = fresh(&format!("repeats-home-{number}"));
    let other = repeat(FIRST_DAY + 100 * DAY, 30.0, 9.0);
    for (log, kernel, run) in [
        ("first", "6.1-vanilla", &case.runs[0]),
        ("second", "6.1-vanilla", &case.runs[1]),
        ("other", "6.12-vanilla", &other),
    ] {
        let log = fresh(&format!("repeats-log-{number}-{log}"));
        write_log(&log, kernel, run);
        let output = output_of(&home, &["import", "mmtests", log.to_str().unwrap()]);
        assert!(output.starts_with("exit 0"), "{}: {output}", case.name);
    }
    home
}

/// Returns the value of the first kernel in a list of rows or series, whose field `workload` this
/// is.
fn value_in<'a>(list: &'a Value, workload: &str) -> &'a Value {
    let mut rows = list.as_array().unwrap().iter();
    rows.find(|row| row["workload"] == workload)
        .unwrap_or_else(|| panic!("no {workload} in {list}"))
}

/// Returns a row's value by each command: report, history, dashboard and export.
fn values(home: &Path, workload: &str) -> [(&'static str, f64); 5] {
    let kernels = ["6.1-vanilla", "6.12-vanilla"];
    let report = json(
        home,
        &["report", kernels[0], kernels[1], "--format", "json"],
    );
    let history = json(home, &["history", workload, "--format", "json"]);
    let site = home.join("site");
    output_of(home, &["publish", site.to_str().unwrap()]);
    let page = fs::read(site.join("api/v1/series.json")).unwrap();
    let page: Value = serde_json::from_slice(&page).unwrap();
    let exported = output_of(home, &["export", "--rows", "results", "--format", "jsonl"]);
    let mut counting = Vec::new();
    for line in exported.lines().filter(|line| line.starts_with('{')) {
        let row: Value = serde_json::from_str(line).unwrap();
        let is_meant = row["workload"] == workload && row["version"] == kernels[0];
        if is_meant && row["counts"] == 1 {
            counting.push(row["value"].as_f64().unwrap());
        }
    }
    assert_eq!(counting.len(), 1, "{workload}: {exported}");
    let row = value_in(&report["rows"], workload);
    let number = |value: &Value| value.as_f64().unwrap();
    [
        ("report", number(&row["base"]["value"])),
        ("its seeds", number(&row["base"]["seeds"][0]["value"])),
        (
            "history",
            number(&value_in(&history["series"], workload)["values"][0]),
        ),
        (
            "dashboard",
            number(&value_in(&page["series"], workload)["values"][0]),
        ),
        ("export", counting[0]),
    ]
}

#[test]
fn all_commands_choose_the_same_repeated_run() {
    for (number, case) in cases().iter().enumerate() {
        let home = import_case(number, case);
        let count = || {
            let runs = json(&home, &["runs", "--format", "json"]);
            runs["runs"].as_array().unwrap().len()
        };
        assert_eq!(count(), case.stored + 1, "{}", case.name);
        let check = |when: &str| {
            for (workload, expected) in [(ELAPSED, case.elapsed), (USER, case.user)] {
                for (command, value) in values(&home, workload) {
                    assert!(
                        (value - expected).abs() < 1e-6,
                        "{}, {command} {when}, {workload}: {value} and not {expected}",
                        case.name
                    );
                }
            }
        };
        check("before gc");
        let gc = output_of(&home, &["gc", "--older-than", "0"]);
        assert!(gc.starts_with("exit 0"), "{gc}");
        assert_eq!(count(), case.stored + 1, "{}: gc deleted a run", case.name);
        check("after gc");
    }
}

/// Imports one run of each kernel, whose builds take so many seconds.
fn import_singles(home: &Path, kernels: [(&str, [f64; 3]); 2]) {
    for (number, (kernel, seconds)) in (0..).zip(kernels) {
        let log = fresh(&format!("singles-log-{kernel}"));
        let run = repeat(FIRST_DAY + number * DAY, 0.0, 0.0);
        write_log(&log, kernel, &run);
        let logs = log.join(kernel).join("iter-0/kernbench/logs");
        for (number, seconds) in (1..).zip(seconds) {
            let time =
                format!("{seconds:.2}user 5.0{number}system 0:{seconds:.2}elapsed 100%CPU\n");
            fs::write(logs.join(format!("kernbench-4-{number}.time")), time).unwrap();
        }
        let output = output_of(home, &["import", "mmtests", log.to_str().unwrap()]);
        assert!(output.starts_with("exit 0"), "{output}");
    }
}

#[test]
fn report_and_dashboard_rate_single_runs_alike() {
    let home = fresh("singles-home");
    import_singles(
        &home,
        [
            ("6.1-vanilla", [20.0, 20.1, 20.05]),
            ("6.12-vanilla", [40.0, 40.2, 40.1]),
        ],
    );
    let arguments = ["report", "6.1-vanilla", "6.12-vanilla", "--format", "json"];
    let report = json(&home, &arguments);
    let site = home.join("site");
    output_of(&home, &["publish", site.to_str().unwrap()]);
    let page = fs::read(site.join("api/v1/overview.json")).unwrap();
    let page: Value = serde_json::from_slice(&page).unwrap();
    for (workload, verdict) in [
        (ELAPSED, "worse within one run"),
        (USER, "worse within one run"),
        ("kernbench/System-4", "same within one run"),
    ] {
        let row = value_in(&report["rows"], workload);
        assert_eq!(row["others"][0]["verdict"], verdict, "{row}");
        assert_eq!(value_in(&page["cells"], workload)["state"], verdict);
    }
    assert_eq!(page["counts"]["unclear"], 3);
    let runs = json(&home, &["runs", "--format", "json"]);
    let id = runs["runs"][0]["id"].as_str().unwrap().to_owned();
    let shown = json(&home, &["show", &id, "--format", "json"]);
    assert_eq!(value_in(&shown["results"], ELAPSED)["unit"], "s");
    let index = fs::read_to_string(site.join("index.html")).unwrap();
    assert!(index.contains("worse within one run"), "{index}");
}

#[test]
fn second_import_adds_the_stats_of_monitors() {
    let home = fresh("readded-home");
    let results = fresh("readded-results");
    let run = results.join(
        "result/will-it-scale/performance-brk2/lkp-skl/debian-11/x86_64-rhel-8.3/gcc-12/v6.1/0",
    );
    fs::create_dir_all(&run).unwrap();
    fs::write(run.join("job.yaml"), "start_time: '1700000000'\n").unwrap();
    let import = |stats: &str| {
        fs::write(run.join("stats.json"), stats).unwrap();
        output_of(&home, &["import", "lkp", results.to_str().unwrap()])
    };
    // Like a Marvin that did not keep the stats of monitors.
    let first = import(r#"{"will-it-scale.per_process_ops": 100.0}"#);
    assert!(first.contains("1 row, imported"), "{first}");
    let whole = r#"{"will-it-scale.per_process_ops": 100.0, "vmstat.system.cs": 5}"#;
    let second = import(whole);
    assert!(second.contains("already imported, now with"), "{second}");
    let third = import(whole);
    assert!(third.contains("already imported, unchanged"), "{third}");
    let runs = json(&home, &["runs", "--format", "json"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1);
}
