//! Generated documents are equal to what the program generates.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::fresh::fresh;
use crate::{marvin, output_of};

fn page(name: &str) -> String {
    let output = marvin(&fresh("no-home"))
        .args(["reference", name])
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn docs_pages_are_up_to_date() {
    for name in ["cli", "workloads", "counters"] {
        let path = format!("{}/../../../docs/{name}.md", env!("CARGO_MANIFEST_DIR"));
        let there = std::fs::read_to_string(&path).unwrap();
        assert!(
            there == page(name),
            "docs/{name}.md is old: marvin reference {name} > docs/{name}.md"
        );
    }
}

/// Sections of every page, in the order of man-pages(7).
const SECTIONS: [&str; 7] = [
    "NAME",
    "SYNOPSIS",
    "DESCRIPTION",
    "OPTIONS",
    "ENVIRONMENT",
    "FILES",
    "SEE ALSO",
];

#[test]
fn man_pages_have_all_sections() {
    let folder = fresh("man");
    let written = output_of(&fresh("man-home"), &["man", folder.to_str().unwrap()]);
    assert!(written.starts_with("exit 0"), "{written}");
    let mut pages = Vec::new();
    for file in std::fs::read_dir(&folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let heads: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .map(|head| head.trim_matches('"'))
            .collect();
        let sections = SECTIONS
            .iter()
            .map(|section| heads.iter().position(|head| head == section));
        let places: Option<Vec<usize>> = sections.collect();
        assert!(
            places.is_some_and(|places| places.is_sorted()) && heads.contains(&"EXIT STATUS"),
            "{name}: {heads:?}"
        );
        pages.push(name);
    }
    for page in [
        "marvin.1",
        "marvin-compare.1",
        "marvin-dump.1",
        "marvin-dump-info.1",
        "marvin-config-init.1",
    ] {
        assert!(pages.iter().any(|name| name == page), "{page}: {pages:?}");
    }
    let dump = std::fs::read_to_string(folder.join("marvin-dump.1")).unwrap();
    assert!(dump.matches("\n.TP\n").count() > 40, "{dump}");
}

/// The schemas in a directory by name.
pub(crate) fn schemas(folder: &Path) -> BTreeMap<String, Value> {
    let read = |file: std::fs::DirEntry| {
        let name = file
            .path()
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        (
            name,
            serde_json::from_slice(&std::fs::read(file.path()).unwrap()).unwrap(),
        )
    };
    std::fs::read_dir(folder)
        .unwrap()
        .map(|file| read(file.unwrap()))
        .collect()
}

#[test]
fn schemas_in_docs_are_up_to_date() {
    let folder = fresh("schemas");
    assert!(
        output_of(
            &fresh("schemas-home"),
            &["reference", "schemas", folder.to_str().unwrap()]
        )
        .starts_with("exit 0")
    );
    let in_docs = format!("{}/../../../docs/schemas", env!("CARGO_MANIFEST_DIR"));
    let is_equal = schemas(&folder) == schemas(Path::new(&in_docs));
    assert!(
        is_equal,
        "docs/schemas is old: marvin reference schemas docs/schemas"
    );
}

/// Commands whose answer is a JSON document, with the names of their schemas.
const DOCUMENTS: &[(&str, &str)] = &[
    ("runs", "runs"),
    ("show RUN", "run"),
    ("workloads", "workloads"),
    ("tools", "tools"),
    ("kernels deb:6.12", "kernels"),
    ("doctor", "doctor"),
    ("gc --dry-run", "gc"),
    ("gc", "gc"),
    ("build path:vmlinux", "build"),
    ("queue list", "queue"),
    ("queue why 1", "job"),
    ("history kernbench", "history"),
    ("alerts", "alerts"),
    ("report 6.1-vanilla 6.12-vanilla", "comparison"),
    ("report 6.1-vanilla 6.12-vanilla --monitors", "comparison"),
];

#[test]
fn documents_fit_their_schemas() {
    let home = fresh("documents-home");
    let log = crate::imported::log();
    output_of(&home, &["import", "mmtests", log.to_str().unwrap()]);
    output_of(
        &home,
        &["queue", "add", "deb:6.12", "--workload", "getppid"],
    );
    let image = format!("path:{}", crate::images().1[1].display());
    let list = output_of(&home, &["runs"]);
    let run = list
        .split_whitespace()
        .find(|word| word.starts_with("run_"))
        .unwrap()
        .to_owned();
    let schemas = schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    for (command, name) in DOCUMENTS {
        let arguments = command.split(' ').map(|word| match word {
            "path:vmlinux" => &image,
            "RUN" => &run,
            word => word,
        });
        let output = marvin(&home)
            .args(arguments.chain(["--format", "json", "-q"]))
            .output()
            .unwrap();
        let complaint = String::from_utf8_lossy(&output.stderr);
        let document = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|why| panic!("{command}: {why} {complaint}"));
        assert_eq!(
            document::fixtures::mistakes(&schemas[*name], &document),
            Vec::<String>::new(),
            "{command}"
        );
    }
}

#[test]
fn dump_documents_fit_their_schemas() {
    let home = fresh("documents-dump-home");
    std::fs::create_dir_all(&home).unwrap();
    let groups = "0x010+40 anon\n 0x080+3 cache 4\n 0x100 free 8".to_owned();
    let synthetic = synthetic_dumps::Synthetic {
        groups,
        memory: vec![0..0x9f, 0x100..0x2000],
        ..Default::default()
    };
    synthetic.write(&home.join("vmcore")).unwrap();
    let schemas = schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    for (command, name) in [
        ("-d 31 --json vmcore out", "dump"),
        ("info --json out", "dump-info"),
        ("usage --json vmcore", "dump-usage"),
        ("estimate --json vmcore", "dump-estimate"),
    ] {
        let output = marvin(&home)
            .current_dir(&*home)
            .arg("dump")
            .args(command.split(' '))
            .output()
            .unwrap();
        let document = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|why| panic!("{command}: {why} {output:?}"));
        assert_eq!(
            document::fixtures::mistakes(&schemas[name], &document),
            Vec::<String>::new(),
            "{command}"
        );
    }
}

#[test]
fn completions_and_man_pages_share_one_definition() {
    let home = fresh("man-home");
    let man = home.join("man");
    assert!(output_of(&home, &["man", man.to_str().unwrap()]).starts_with("exit 0"));
    let pages: Vec<_> = std::fs::read_dir(&man)
        .unwrap()
        .map(|page| page.unwrap().file_name())
        .collect();
    assert!(
        pages.iter().any(|page| page == "marvin-compare.1"),
        "{pages:?}"
    );
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = output_of(&home, &["completions", shell]);
        assert!(
            script.starts_with("exit 0") && script.contains("COMPLETE"),
            "{shell}: {script}"
        );
    }
}

#[test]
fn closed_pipe_is_no_error() {
    let script = format!(
        "{} workloads | head -n 1; exit ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_marvin")
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
