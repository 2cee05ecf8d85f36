//! What readers look for on a page and must find: when, on which machine, and where the rest is.

use crate::testing::{Lab, result};

fn page(lab: &Lab, path: &str) -> String {
    String::from_utf8(lab.site().answer(path, "").body.clone()).unwrap()
}

#[test]
fn runs_have_their_date_and_machine() {
    let mut lab = Lab::new();
    lab.run("6.12.100", "aa", 1, vec![result("getppid", 100.0)]);
    let runs = page(&lab, "/runs.html");
    assert!(
        runs.contains("<td>2026-11-1") && runs.contains("<td>exact</td>") && !runs.contains("aa00"),
        "{runs}"
    );
    // Another one of its kind.
    lab.run("6.12.100", "bb", 1, vec![result("getppid", 100.0)]);
    let runs = page(&lab, "/runs.html");
    assert!(
        runs.contains("<td>exact aa0000</td>") && runs.contains("<td>exact bb0000</td>"),
        "{runs}"
    );
}

#[test]
fn members_not_shown_have_a_link() {
    let suite = model::suite("micro").unwrap();
    let names: Vec<&str> = suite.workloads.iter().map(|one| &*one.name).collect();
    let mut lab = Lab::new();
    for version in ["6.12.100", "6.12.101", "6.12.102"] {
        let cost = if version == "6.12.100" { 100.0 } else { 150.0 };
        for seed in 1..=3 {
            let results = names.iter().map(|name| result(name, cost));
            lab.run(version, "aa", seed, results.collect());
        }
    }
    let alerts = page(&lab, "/alerts.html");
    let more = alerts.split(" more</a>").next().unwrap();
    let link = more.rsplit("<a href=\"").next().unwrap();
    let address = link.split('"').next().unwrap();
    assert!(
        alerts.contains(" more</a>") && address.starts_with("c/"),
        "{alerts}"
    );
    let all = page(&lab, &format!("/{address}"));
    let missing: Vec<&&str> = names.iter().filter(|name| !all.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}: {all}");
}
