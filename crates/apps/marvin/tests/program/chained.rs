//! `marvin compare --chain` between two real packages, and what it refuses.

use std::path::Path;

use serde_json::Value;

use crate::fresh::fresh;
use crate::{is_left_to_full, marvin, output_of};

#[test]
fn chain_of_real_releases_adds_up() {
    if is_left_to_full("releases between two packages are fetched and booted") {
        return;
    }
    let home = fresh("chained-home");
    let measure = || {
        let output = marvin(&home)
            .args(["compare", "--chain", "deb:6.1", "deb:6.12", "--quick"])
            .args(["--workload", "fault-anon,getppid", "--format", "json"])
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let document: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
        (output.status.code(), document, said)
    };
    let (code, document, said) = measure();
    // Both ends differ as they do without the releases between them.
    assert_eq!(code, Some(1), "{said}");
    let schemas = crate::documents::schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    let mistakes = document::fixtures::mistakes(&schemas["chain"], &document);
    assert_eq!(mistakes, Vec::<String>::new());
    let releases = document["releases"].as_array().unwrap();
    assert!(releases.len() >= 2, "{document}");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    for row in rows {
        let steps = row["steps"].as_array().unwrap();
        let points: f64 = steps
            .iter()
            .map(|step| step["points"].as_f64().unwrap())
            .sum();
        let whole = row["difference_percent"].as_f64().unwrap();
        let rest = row["rest"].as_f64().unwrap();
        println!(
            "{} {whole:+.2}: {steps:?}, rest {rest:+.2}",
            row["workload"]
        );
        assert!((points + rest - whole).abs() < 1e-6, "{row}");
    }
    // Page faults became slower, and a function is named.
    let fault = rows.iter().find(|row| row["workload"] == "fault-anon");
    let steps = fault.unwrap()["steps"].as_array().unwrap();
    assert!(
        steps.iter().any(|step| step["function"].is_string()),
        "{document}"
    );
    let (_, again, said) = measure();
    assert_eq!(again["rows"], document["rows"]);
    assert!(!said.contains("booting"), "everything is stored: {said}");
    // A history of both ends makes the same chain by itself.
    let history = output_of(&home, &["history", "fault-anon", "--chain"]);
    let chain = history.find("between");
    assert!(
        history.starts_with("exit 0") && chain.is_some(),
        "{history}"
    );
    let last = history.matches("fault-anon: cost").count();
    assert_eq!(last, 1, "the history itself is at the end: {history}");
}

#[test]
fn chain_needs_ordered_packages_on_the_exact_machine() {
    let home = fresh("chained-mistakes");
    for (arguments, expected) in [
        (&["git:HEAD~1", "git:HEAD"][..], "--chain needs packages"),
        (&["deb:6.1", "ubuntu:6.8"], "of one distribution"),
        (&["deb:6.1", "deb:6.12", "--on", "vm"], "needs --on exact"),
    ] {
        let output = output_of(&home, &[&["compare", "--chain"], arguments].concat());
        assert!(
            output.starts_with("exit 2") && output.contains(expected),
            "{output}"
        );
    }
}
