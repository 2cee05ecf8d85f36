//! One stored pair of kernels through every command: counts rise by 10 %, guest time falls by 10 %,
//! and all must show the same.

use std::path::Path;

use compare::Scale;
use model::{Clock, Declared, MachineKind, Metric, Region, Run, WorkloadResult};
use serde_json::Value;
use store::Store;

use crate::fresh::{Fresh, fresh};
use crate::{output_of, stored};

const SEEDS: u64 = 3;

/// A result of 1000 operations.
fn result(workload: &str, time: f64, counted: Option<u64>) -> WorkloadResult {
    let region = counted.map(|kernel| Region {
        kernel,
        user: 0,
        interrupt: 50_000,
        other: 0,
        ..Region::default()
    });
    WorkloadResult {
        declared: Some(Declared::from_metric(&Metric::COST, Clock::Instructions)),
        counted: region.map_or_else(Vec::new, |region| vec![region; 3]),
        ..stored::completed(workload, vec![time; 3])
    }
}

/// A run of the first or the second kernel.
fn run(kernel: u64, seed: u64) -> Run {
    let is_new = kernel > 0;
    let (time, counted) = if is_new {
        (90.0, 110_000)
    } else {
        (100.0, 100_000)
    };
    let results = vec![
        result("fault-anon", time, Some(counted)),
        result("getppid", time, None),
        // Counted on one side only.
        result("pipe-pingpong", time, is_new.then_some(counted)),
    ];
    stored::run(&format!("{kernel:08x}{seed:08x}"), kernel, seed, results)
}

/// A data directory with both kernels and their runs. The second kernel has one seed more.
fn lab(name: &str) -> (Fresh, Vec<Run>) {
    let home = fresh(name);
    std::fs::create_dir_all(&home).unwrap();
    let store = Store::open(&*home).unwrap();
    store.save_machine(&stored::machine()).unwrap();
    let mut runs = Vec::new();
    for (kernel, version) in (0..).zip(["6.1.192", "6.12.100"]) {
        stored::save_build(&store, kernel, version);
        for seed in 1..=SEEDS + kernel {
            let run = run(kernel, seed);
            store.save_run(&run, &[]).unwrap();
            runs.push(run);
        }
    }
    (home, runs)
}

/// Returns what a command writes to standard output.
fn answer(home: &Path, arguments: &[&str]) -> String {
    let output = output_of(home, arguments);
    output
        .split_once("-- out\n")
        .unwrap()
        .1
        .split("-- err\n")
        .next()
        .unwrap()
        .to_owned()
}

fn json(home: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&answer(home, arguments)).unwrap()
}

fn near(value: &Value, expected: f64) -> bool {
    value
        .as_f64()
        .is_some_and(|value| (value - expected).abs() < 1e-9)
}

/// Finds the element of a list whose field has this value.
fn with<'a>(list: &'a Value, field: &str, value: &str) -> &'a Value {
    list.as_array()
        .unwrap()
        .iter()
        .find(|one| one[field] == value)
        .unwrap_or_else(|| panic!("no {value} in {list}"))
}

#[test]
fn tables_histories_and_pages_show_one_value() {
    let (home, runs) = lab("one-value");
    let ids: Vec<String> = runs.iter().map(|run| run.id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let report = json(
        &home,
        &[&["report"], ids.as_slice(), &["--format", "json"]].concat(),
    );
    // `compare` and `series` build their tables with the same function.
    let [counted, timed, mixed] = ["fault-anon", "getppid", "pipe-pingpong"]
        .map(|name| with(&report["rows"], "workload", name));
    assert_eq!(
        (&counted["unit"], &timed["unit"]),
        (&"instructions/op".into(), &"guest ns/op".into())
    );
    assert!(
        near(&counted["base"]["value"], 100.0)
            && near(&counted["others"][0]["measured"]["value"], 110.0)
    );
    assert_eq!(counted["others"][0]["verdict"], "worse");
    assert!(near(&counted["others"][0]["difference_percent"], -10.0));
    assert_eq!(timed["others"][0]["verdict"], "better");
    assert_eq!(mixed["others"][0]["verdict"], "unclear");
    assert!(
        mixed["others"][0]["reason"]
            .as_str()
            .unwrap()
            .contains("not counted"),
        "{mixed}"
    );
    assert!(answer(&home, &[&["report"], ids.as_slice()].concat()).contains("Left out: seed 4"));

    let history = json(&home, &["history", "fault-anon", "--format", "json"]);
    let series = &history["series"][0];
    assert_eq!(series["unit"], "instructions/op");
    assert!(
        near(&series["medians"][0], 100.0) && near(&series["medians"][1], 110.0),
        "{series}"
    );
    assert_eq!(
        (
            &series["changes"][0]["verdict"],
            &series["changes"][0]["seeds"]
        ),
        (&"worse".into(), &3.into())
    );
    assert!(near(&series["changes"][0]["difference_percent"], -10.0));
    assert_eq!(
        json(&home, &["history", "getppid", "--format", "json"])["series"][0]["unit"],
        "guest ns/op"
    );
    assert!(answer(&home, &["history", "pipe-pingpong"]).contains("only guest time is known"));

    let alerts = json(&home, &["alerts", "--format", "json"]);
    let member = with(&alerts["alerts"][0]["members"], "workload", "fault-anon");
    assert!(
        member["verdict"] == "worse" && near(&member["difference_percent"], -10.0),
        "{member}"
    );
    assert!(
        alerts["alerts"][0]["members"]
            .as_array()
            .unwrap()
            .iter()
            .all(|member| member["workload"] != "pipe-pingpong")
    );

    let site = home.join("site");
    answer(&home, &["publish", site.to_str().unwrap()]);
    let read = |name: &str| std::fs::read_to_string(site.join(name)).unwrap();
    let overview: Value = serde_json::from_str(&read("api/v1/overview.json")).unwrap();
    let cell = |name: &str| with(&overview["cells"], "workload", name);
    assert!(
        cell("fault-anon")["state"] == "worse"
            && near(&cell("fault-anon")["difference_percent"], -10.0)
    );
    assert_eq!(
        (&cell("getppid")["state"], &cell("fault-anon")["seeds"]),
        (&"better".into(), &3.into())
    );
    assert_eq!(cell("pipe-pingpong")["state"], "unclear");
    assert!(
        read("index.html").contains("-10.00% (-10.00..-10.00 over 3 seeds; seed 4 not on both)")
    );
}

#[test]
fn listings_exports_and_bisections_show_one_value() {
    let (home, runs) = lab("one-value-of-a-run");
    // `runs` lists a run as `show` does.
    let shown = answer(&home, &["show", &runs[0].id.to_string()]);
    let line = |name: &str| {
        shown
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .split_whitespace()
            .nth(1)
            .unwrap()
    };
    assert_eq!((line("fault-anon"), line("getppid")), ("100.00", "100.00"));
    assert!(
        shown.contains("\ninstructions/op ") && shown.contains("\nguest ns/op "),
        "{shown}"
    );
    let new = answer(&home, &["show", &runs[4].id.to_string()]);
    assert!(
        new.lines()
            .any(|line| line.starts_with("fault-anon") && line.contains(" 110.00 ")),
        "{new}"
    );

    let table = answer(&home, &["export", "--rows", "results", "--format", "jsonl"]);
    let rows: Vec<Value> = table
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let value = |version: &str, workload: &str| {
        let row = rows
            .iter()
            .find(|row| row["version"] == version && row["workload"] == workload)
            .unwrap();
        (
            row["value"].as_f64().unwrap(),
            row["unit"].as_str().unwrap().to_owned(),
        )
    };
    assert_eq!(
        value("6.12.100", "fault-anon"),
        (110.0, "instructions/op".to_owned())
    );
    assert_eq!(
        value("6.12.100", "getppid"),
        (90.0, "guest ns/op".to_owned())
    );

    let exact = "exact".parse::<MachineKind>().unwrap().capabilities();
    let of = |runs: &[Run], workload| lab::values_of(runs, 1..=SEEDS, workload, exact).unwrap();
    assert_eq!(
        of(&runs[..3], "fault-anon"),
        (vec![100.0; 3], Scale::Counted)
    );
    assert_eq!(
        of(&runs[3..], "fault-anon"),
        (vec![110.0; 3], Scale::Counted)
    );
    assert_eq!(of(&runs[3..], "getppid"), (vec![90.0; 3], Scale::Reported));
}
