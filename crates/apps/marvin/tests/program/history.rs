//! Histories, alerts and the dashboard on a store with prepared runs.

use std::path::Path;

use model::{Declared, Direction, Run, UnixTime, WorkloadResult, unit_named};
use store::Store;

use crate::fresh::{Fresh, fresh};
use crate::served::Server;
use crate::{marvin, output_of, stored};

/// A data directory in which faults cost more since 6.12.100.
fn lab(name: &str) -> Fresh {
    let home = fresh(name);
    std::fs::create_dir_all(&home).unwrap();
    fill(&Store::open(&*home).unwrap());
    home
}

/// Saves the runs of that lab.
pub(crate) fn fill(store: &Store) {
    store.save_machine(&stored::machine()).unwrap();
    for (n, (version, cost)) in
        (0..).zip([("6.1.170", 330.0), ("6.1.192", 330.5), ("6.12.100", 345.0)])
    {
        stored::save_build(store, n, version);
        let results = [("fault-anon", cost), ("getppid", 100.0)]
            .map(|(workload, cost)| stored::completed(workload, vec![cost * 2.0, cost, cost]))
            .to_vec();
        store
            .save_run(&stored::run(&format!("{n:016x}"), n, 1, results), &[])
            .unwrap();
    }
}

#[test]
fn triaged_regression_stays_quiet() {
    let home = lab("history-home");
    let mut story = String::new();
    for arguments in [
        &["history", "fault"][..],
        &["history", "fault-anon:cost", "--line", "6.1"],
        &["alerts"],
        &[
            "triage",
            "6.12.100",
            "apparent",
            "--note",
            "6.1 did not zero what it gave",
        ],
        &["alerts"],
        &["alerts", "--open"],
    ] {
        // Where a command is broken depends on the length of the data directory's path.
        let output = output_of(&home, arguments).replace(" \\\n        ", " ");
        // The time of the decision varies.
        let output = output
            .split_inclusive('\n')
            .map(|line| match line.split_once("apparent (") {
                Some((before, rest)) => format!("{before}apparent (DATE{}", &rest[20..]),
                None => line.to_owned(),
            });
        story.extend([
            "$ marvin ",
            &arguments.join(" "),
            "\n",
            &output.collect::<String>(),
            "\n",
        ]);
    }
    insta::assert_snapshot!(story);
}

#[test]
fn confirmed_regression_is_no_longer_open() {
    let home = lab("history-real");
    assert!(output_of(&home, &["alerts", "--open"]).contains("1 alert, 1 open"));
    assert!(output_of(&home, &["triage", "6.12.100", "real"]).starts_with("exit 0"));
    insta::assert_snapshot!(output_of(&home, &["alerts", "--open"]));
    let listed = output_of(&home, &["alerts"]);
    let nothing = output_of(&home, &["alerts", "--line", "9.99"]);
    assert!(
        nothing.starts_with("exit 2") && nothing.contains("no kernel of it was measured"),
        "{nothing}"
    );
    assert!(
        listed.contains("1 alert, 0 open") && listed.contains("marvin bisect "),
        "{listed}"
    );
}

#[test]
fn unknown_names_fail_clearly() {
    let home = lab("history-mistakes");
    let mut story = String::new();
    for arguments in [
        &["history", "falut"][..],
        &["history", "fault-anon:speed"],
        &["history", "fault", "--line", "stable"],
        &["triage", "6.13", "real"],
        &["triage", "6.12.100", "good"],
    ] {
        story.extend([
            "$ marvin ",
            &arguments.join(" "),
            "\n",
            &output_of(&home, arguments),
            "\n",
        ]);
    }
    story.push_str(&output_of(&fresh("no-history"), &["alerts"]));
    insta::assert_snapshot!(story);
    // A service logs, with the time.
    let served = output_of(&home, &["serve", "--listen", "192.0.2.1:80"]);
    assert!(served.starts_with("exit 2"), "{served}");
    assert!(
        served.contains("ERROR cannot listen on 192.0.2.1:80: "),
        "{served}"
    );
}

#[test]
fn dashboard_is_published_and_served() {
    let home = lab("history-pages");
    let folder = home.join("site");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert!(output_of(&home, &["publish", folder.to_str().unwrap()]).starts_with("exit 0"));
    assert!(text(&folder.join("index.html")).contains("6.12.100 against 6.1.192"));
    assert!(
        output_of(&home, &["publish", home.to_str().unwrap()])
            .contains("holds files that marvin did not write")
    );
    let page = home.join("history.html");
    assert!(
        output_of(
            &home,
            &[
                "history",
                "fault",
                "--format",
                "html",
                "-o",
                page.to_str().unwrap()
            ]
        )
        .starts_with("exit 0")
    );
    assert!(
        text(&page).contains("<svg")
            && !text(&page).contains("src=")
            && !text(&page).contains("href=\"r/")
    );

    let answer = Server::start(marvin(&home)).ask("/");
    assert!(
        answer.starts_with("HTTP/1.1 200 OK") && answer.contains("First seen in 6.12.100"),
        "{answer}"
    );
}

/// Measures one more workload on each of the kernels, as a tool would: the last kernel's runs have
/// another unit.
fn with_a_changed_metric(store: &Store) {
    for (n, unit, value) in [(0_u64, "GB/s", 5.0), (1, "GB/s", 5.1), (2, "MB/s", 5200.0)] {
        let declared = Declared {
            unit: unit_named(unit),
            direction: Some(Direction::HigherIsBetter),
            margin_percent: 5.0,
        };
        let result = WorkloadResult {
            operations: 1,
            declared: Some(declared),
            ..stored::completed("copy-tool", vec![value; 3])
        };
        let started_unix = stored::STARTED_UNIX + 100 + i64::try_from(n).unwrap();
        let run = Run {
            started_unix: UnixTime::new(started_unix),
            ..stored::run(&format!("c0{n:014x}"), n, 1, vec![result])
        };
        store.save_run(&run, &[]).unwrap();
    }
}

#[test]
fn changed_unit_is_reported_and_never_mixed() {
    let home = lab("history-mixed");
    with_a_changed_metric(&Store::open(&*home).unwrap());
    let mut story = String::new();
    for arguments in [
        &["history", "copy-tool"][..],
        &["triage", "6.12.100", "apparent"],
        &["alerts", "--open"],
    ] {
        story.extend([
            "$ marvin ",
            &arguments.join(" "),
            "\n",
            &output_of(&home, arguments),
            "\n",
        ]);
    }
    insta::assert_snapshot!(story);
    let folder = home.join("site");
    assert!(output_of(&home, &["publish", folder.to_str().unwrap()]).starts_with("exit 0"));
    let page = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    assert!(page("index.html").contains("unit or direction changed between runs of copy-tool"));
    assert!(page("s/aa00aa00aa00/cloud-amd64/copy-tool.html").contains("Not one metric."));
    assert!(
        output_of(&home, &["runs"]).contains("c000000000"),
        "nothing is lost"
    );
}

#[test]
fn token_in_an_address_is_never_logged() {
    let home = lab("history-token");
    let server = Server::start(marvin(&home));
    for path in [
        "/?token=s3cr3t",
        "/alerts.html?Access%5FToken=s3cr3t",
        "/s3cr3t?password=s3cr3t",
    ] {
        let answer = server.ask(path);
        assert!(
            answer.starts_with("HTTP/1.1 400") && !answer.contains("s3cr3t"),
            "{answer}"
        );
    }
    let output = server.end();
    assert!(
        output.contains("http://") && !output.contains("s3cr3t"),
        "{output}"
    );
    for entry in walk(&home) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(
            !bytes.windows(6).any(|window| window == b"s3cr3t"),
            "{}",
            entry.display()
        );
    }
}

/// Returns all files of a directory.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else {
            files.push(path);
        }
    }
    files
}
