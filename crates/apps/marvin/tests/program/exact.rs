//! The same kernel gives the same numbers, another kernel gives others, and the report says so.

use serde_json::Value;

use crate::busy::while_busy;
use crate::fresh::fresh;
use crate::{format_output, is_full, marvin, names};

fn json(home: &std::path::Path, arguments: &[&str]) -> Value {
    let output = marvin(home)
        .args(["--quiet", "compare"])
        .args(arguments)
        .args(["--format", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", format_output(&output, home)))
}

#[test]
fn kernel_against_itself_is_zero_when_busy() {
    // Every twelfth workload in every gate, all of them in `make test-full`.
    let step = if is_full() { 1 } else { 12 };
    let workloads: Vec<&str> = model::MICRO
        .workloads
        .iter()
        .step_by(step)
        .map(|workload| &*workload.name)
        .collect();
    let comparison = while_busy(1, || {
        let name = &names()[1];
        let arguments = [
            name,
            name,
            "--force",
            "--quick",
            "--workload",
            &workloads.join(","),
        ];
        json(&fresh("itself-home"), &arguments)
    });
    let rows = comparison["rows"].as_array().unwrap();
    assert_eq!(rows.len(), workloads.len());
    for row in rows {
        let other = &row["others"][0];
        assert_eq!(other["verdict"], "same", "{row}");
        assert_eq!(
            other["difference_percent"].as_f64().map(f64::to_bits),
            Some(0.0_f64.to_bits()),
            "{row}"
        );
    }
}

#[test]
fn equal_comparisons_give_equal_json() {
    let [old, new] = names();
    let arguments = [
        &*old,
        &*new,
        "--seeds",
        if is_full() { "2" } else { "1" },
        "--workload",
        "getppid,fault-anon,pipe",
    ];
    let mut documents = ["first-home", "second-home"].map(|name| json(&fresh(name), &arguments));
    for document in &mut documents {
        let ids_and_dates = document.as_object_mut().unwrap().remove("provenance");
        assert!(ids_and_dates.is_some());
    }
    assert!(
        documents[0] == documents[1],
        "{:#}\n{:#}",
        documents[0],
        documents[1]
    );
    assert_eq!(documents[0]["conclusion"], "worse");
}

#[test]
fn server_cpu_is_a_machine_of_its_own() {
    let [old, new] = names();
    let arguments = |cpu| {
        let kernels = [&*old, &*new, "--quick", "--workload", "getppid"];
        [&kernels[..], &["--cpu", cpu]].concat()
    };
    let home = fresh("server-cpu-home");
    let usual = json(&home, &arguments("generic"));
    let mut server = json(&home, &arguments("server"));
    let machine = server["base"]["machine"].clone();
    assert_ne!(machine["id"], usual["base"]["machine"]["id"]);
    let summary = machine["summary"].as_str().unwrap();
    assert!(
        summary.contains("CPU server (family 25 model 1)"),
        "{summary}"
    );
    let named = |machine: &Value| machine["fingerprint"].to_string().contains("cpu.name");
    assert!(
        named(&machine) && !named(&usual["base"]["machine"]),
        "the usual one keeps its id"
    );
    let command = server["command"].to_string();
    assert!(command.contains("--cpu server"), "{command}");
    if is_full() {
        let mut again = json(&fresh("server-cpu-again"), &arguments("server"));
        for document in [&mut server, &mut again] {
            let ids_and_dates = document.as_object_mut().unwrap().remove("provenance");
            assert!(ids_and_dates.is_some());
        }
        assert!(server == again, "{server:#}\n{again:#}");
    }

    let runs = marvin(&home).args(["runs", "--format", "json"]).output();
    let runs: Value = serde_json::from_slice(&runs.unwrap().stdout).unwrap();
    let run_on = |version: &str, is_server: bool| {
        let mut runs = runs["runs"].as_array().unwrap().iter();
        let run = runs.find(|run| {
            let on_server = run["machine"] == machine["id"];
            run["version"].as_str().unwrap().starts_with(version) && on_server == is_server
        });
        run.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let sides = [run_on("6.1.", false), run_on("6.12.", true)];
    let refused = crate::output_of(&home, &["report", &sides[0], &sides[1]]);
    assert!(
        refused.starts_with("exit 2") && refused.contains("--mixed-machines"),
        "{refused}"
    );
    let mixed = ["report", &sides[0], &sides[1], "--mixed-machines"];
    let mixed = crate::output_of(&home, &mixed);
    assert!(
        mixed.contains("WARNING: these kernels ran on different machines"),
        "{mixed}"
    );
}

#[test]
fn every_format_shows_differing_releases() {
    let home = fresh("differ-home");
    let [old, new] = names();
    let compare = |format: &str| {
        let arguments = [
            "--quiet",
            "compare",
            &old,
            &new,
            "--quick",
            "--workload",
            "fault-anon,mutex-uncontended",
        ];
        let output = marvin(&home)
            .args(arguments)
            .args(["--format", format])
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(1),
            "{}",
            format_output(&output, &home)
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let headline = "0 better, 1 worse, 1 same, 0 unclear";
    let text = compare("text");
    // User input, such as a path, is never cut.
    let wide = text
        .lines()
        .filter(|line| line.chars().count() > 80 && !line.contains("path:"));
    assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(
        text.lines().next().unwrap().contains(headline)
            || text.replace('\n', " ").contains(headline),
        "{text}"
    );
    assert!(compare("markdown").contains("fault-anon"));
    let page = compare("html");
    assert!(page.contains("<svg") && page.contains("fault-anon"));
    assert_eq!(
        page.matches("<script").count(),
        1,
        "our script and no other"
    );
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        let allowed = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!allowed.contains(outside), "the page reaches for {outside}");
    }
}

#[test]
fn equal_images_need_no_run() {
    let home = fresh("equal-home");
    let name = &names()[1];
    let output = marvin(&home)
        .args(["compare", name, name])
        .output()
        .unwrap();
    assert_eq!(
        output.status.code(),
        Some(0),
        "{}",
        format_output(&output, &home)
    );
    assert!(
        String::from_utf8_lossy(&output.stdout)
            .replace('\n', " ")
            .contains("equal images, no run needed")
    );
    assert!(crate::output_of(&home, &["runs"]).contains("no runs"));
}
