//! Applies the rules for files to the tree.
#![expect(
    clippy::print_stdout,
    reason = "a check says what it leaves out, and why"
)]

use std::collections::BTreeSet;
use std::error::Error;

use tidy::{Finding, Tree, none};

type Outcome = Result<(), Box<dyn Error>>;

/// Crates below `lab`, which read no clock and draw no random number.
const BELOW_LAB: &[&str] = &[
    "model", "stats", "wire", "ingest", "document", "monitors", "compare", "profile", "explain",
    "history", "kernel", "machine", "server", "store",
];

/// Sources below `lab` that wait for a BMC, a console or a client of iPXE, or make a token for one.
const MEETS_DEADLINES: &[&str] = &[
    "crates/lab/server/src/console/",
    "crates/lab/server/src/deploy/answers.rs",
    "crates/lab/server/src/power/",
];

/// Crates without input, output or state between calls.
const PURE: &[&str] = &[
    "model", "stats", "wire", "ingest", "document", "monitors", "compare", "profile", "explain",
    "history",
];

/// Sources that the rules for prose leave alone, each with the reason.
const NO_PROSE: &[(&str, &str)] = &[
    (
        "crates/guest/agent/",
        "its sources are part of the machine's fingerprint",
    ),
    (
        "crates/guest/tracer/",
        "its sources are part of the machine's fingerprint",
    ),
    (
        "crates/guest/path-recorder/",
        "its bytes are carried with those of the tracer",
    ),
    ("tests/tidy/src/prose.rs", "it lists the words"),
];

/// Runs a check on all Rust source.
fn rust(check: fn(&str, &str) -> Vec<Finding>) -> Outcome {
    let tree = Tree::read()?;
    let found: Vec<Finding> = tree
        .rust()
        .flat_map(|file| check(&file.path, &file.text))
        .collect();
    none(&found);
    Ok(())
}

#[test]
fn the_tree_is_read() -> Outcome {
    let tree = Tree::read()?;
    for path in [
        "Cargo.toml",
        "crates/base/model/src/lib.rs",
        "tests/tidy/tests/tree.rs",
    ] {
        assert!(
            tree.files
                .iter()
                .any(|file| file.path == path && !file.text.is_empty()),
            "{path}"
        );
    }
    assert!(
        !tree
            .files
            .iter()
            .any(|file| file.path.starts_with("target/"))
    );
    Ok(())
}

#[test]
fn files_are_short() -> Outcome {
    rust(tidy::lines)
}

#[test]
fn traits_are_narrow() -> Outcome {
    rust(tidy::traits)
}

#[test]
fn files_begin_with_a_header() -> Outcome {
    rust(tidy::header)
}

#[test]
fn module_names_are_specific() -> Outcome {
    rust(tidy::drawers)
}

#[test]
fn unsafe_code_is_where_it_may_be() -> Outcome {
    rust(tidy::unsafe_code)
}

#[test]
fn documents_are_strict() -> Outcome {
    rust(tidy::loose_serde)
}

#[test]
fn leftovers_are_absent() -> Outcome {
    rust(tidy::leftovers)
}

#[test]
fn crates_below_lab_use_no_clock_or_chance() -> Outcome {
    let tree = Tree::read()?;
    let mut found = Vec::new();
    for name in BELOW_LAB {
        let files = tree.production(name);
        assert!(
            !files.is_empty(),
            "crate `{name}` has no source: is it gone? Then take it out of BELOW_LAB"
        );
        found.extend(
            files
                .iter()
                .filter(|file| {
                    !MEETS_DEADLINES
                        .iter()
                        .any(|path| file.path.starts_with(path))
                })
                .flat_map(|file| tidy::clock_and_chance(&file.path, &file.text)),
        );
    }
    none(&found);
    Ok(())
}

#[test]
fn memory_is_not_leaked() -> Outcome {
    let tree = Tree::read()?;
    let names: BTreeSet<&str> = tree.rust().filter_map(tidy::File::source_crate).collect();
    assert!(names.contains("model") && names.contains("marvin"));
    let benches = tree.rust().filter(|file| file.path.starts_with("benches/"));
    let files = names
        .iter()
        .flat_map(|name| tree.production(name))
        .chain(benches);
    none(
        &files
            .flat_map(|file| tidy::leaked(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

#[test]
fn pure_crates_have_no_locks() -> Outcome {
    let tree = Tree::read()?;
    let mut found = Vec::new();
    for name in PURE {
        let files = tree.production(name);
        assert!(
            !files.is_empty(),
            "crate `{name}` has no source: is it gone? Then take it out of PURE"
        );
        found.extend(
            files
                .iter()
                .flat_map(|file| tidy::locks(&file.path, &file.text)),
        );
    }
    none(&found);
    Ok(())
}

#[test]
fn stats_knows_no_word_of_the_domain() -> Outcome {
    let tree = Tree::read()?;
    let stats: Vec<_> = tree
        .rust()
        .filter(|file| file.path.starts_with("crates/base/stats/"))
        .collect();
    assert!(!stats.is_empty());
    none(
        &stats
            .iter()
            .flat_map(|file| tidy::domain_words(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

#[test]
fn machines_are_asked_for_capabilities() -> Outcome {
    let tree = Tree::read()?;
    none(
        &tree
            .rust()
            .flat_map(|file| tidy::machine_kinds(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

#[test]
fn dependencies_have_reasons() -> Outcome {
    let tree = Tree::read()?;
    let manifest = tree
        .files
        .iter()
        .find(|file| file.path == "Cargo.toml")
        .ok_or("no root manifest")?;
    none(&tidy::reasons(&manifest.path, &manifest.text));
    Ok(())
}

#[test]
fn dependencies_bring_few_packages() -> Outcome {
    let tree = Tree::read()?;
    let lock = tree
        .files
        .iter()
        .find(|file| file.path == "Cargo.lock")
        .ok_or("no lock file")?;
    none(&tidy::packages(&lock.path, &lock.text));
    Ok(())
}

#[test]
fn no_paths_of_a_machine() -> Outcome {
    let tree = Tree::read()?;
    // Recordings may contain paths of other machines, and a guest has its own directories.
    let excepted = |path: &str| {
        path.ends_with(".lock")
            || path.split('/').any(|part| part == "testdata")
            || path.starts_with("crates/guest/agent/src/")
    };
    let files = tree.files.iter().filter(|file| !excepted(&file.path));
    none(
        &files
            .flat_map(|file| tidy::machine_paths(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

/// Runs a check on the files for which the rules of prose hold, and prints those that it leaves
/// out.
fn prose(ends: &[&str], check: fn(&str, &str) -> Vec<Finding>) -> Outcome {
    for (path, reason) in NO_PROSE {
        println!("not checked: {path}: {reason}");
    }
    let excepted = |path: &str| {
        NO_PROSE.iter().any(|(prefix, _)| path.starts_with(prefix))
            // What other programs wrote is theirs.
            || path.split('/').any(|part| matches!(part, "corpus" | "golden" | "testdata"))
    };
    let tree = Tree::read()?;
    let files = tree
        .files
        .iter()
        .filter(|file| ends.iter().any(|end| file.path.ends_with(end)));
    none(
        &files
            .filter(|file| !excepted(&file.path))
            .flat_map(|file| check(&file.path, &file.text))
            .collect::<Vec<_>>(),
    );
    Ok(())
}

#[test]
fn prose_has_no_dialect() -> Outcome {
    prose(&[".rs", ".md", ".html", ".txt"], tidy::dialect)
}

#[test]
fn test_names_are_short() -> Outcome {
    prose(&[".rs"], tidy::test_names)
}

#[test]
fn documents_name_files_that_exist() -> Outcome {
    none(&tidy::dead_paths(&Tree::read()?.files));
    Ok(())
}

#[test]
fn documents_name_tests_that_exist() -> Outcome {
    none(&tidy::dead_tests(&Tree::read()?.files));
    Ok(())
}

#[test]
fn lines_are_at_most_100_columns() -> Outcome {
    rust(tidy::wide_lines)
}
