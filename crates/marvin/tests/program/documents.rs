//! Generated documents are equal to what the program generates.

use crate::fresh::fresh;
use crate::{marvin, told};

fn page(name: &str) -> String {
    let output = marvin(&fresh("no-home")).args(["reference", name]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_pages_in_docs_are_up_to_date() {
    for name in ["cli", "workloads", "counters"] {
        let path = format!("{}/../../docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let there = std::fs::read_to_string(&path).unwrap();
        assert!(there == page(name), "docs/{name}.md is old: marvin reference {name} > docs/{name}.md");
    }
}

#[test]
fn completions_and_man_pages_come_from_the_same_definition() {
    let home = fresh("man-home");
    let man = home.join("man");
    assert!(told(&home, &["man", man.to_str().unwrap()]).starts_with("exit 0"));
    let pages: Vec<_> = std::fs::read_dir(&man).unwrap().map(|page| page.unwrap().file_name()).collect();
    assert!(pages.iter().any(|page| page == "marvin-compare.1"), "{pages:?}");
    for shell in ["bash", "zsh", "fish"] {
        assert!(told(&home, &["completions", shell]).contains("compare"), "{shell}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let script = format!("{} workloads | head -n 1; exit ${{PIPESTATUS[0]}}", env!("CARGO_BIN_EXE_marvin"));
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
