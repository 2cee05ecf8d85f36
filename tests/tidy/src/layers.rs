//! The layers: which crate may use which other crate of the workspace. Arrows point down only.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Finding, Rule};

const LAYERS: Rule = Rule {
    name: "crates use each other as the table in tests/tidy/src/layers.rs says, downwards only",
    remedy: "move the code to the layer where both can reach it, or hand the value down as an argument",
};
const UNKNOWN: Rule = Rule {
    name: "every crate has its place in the table of layers",
    remedy: "add it to ARCHITECTURE.md and to the table in tests/tidy/src/layers.rs, with what it may use",
};

/// Each crate with the crates that it may use, lowest first.
const TABLE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("stats", &[]),
    ("wire", &[]),
    ("process", &[]),
    ("vmcore", &[]),
    ("marvin-dump", &["model", "vmcore"]),
    ("tracer", &[]),
    ("ingest", &["model", "wire"]),
    ("document", &["model"]),
    ("report", &["model", "stats", "document"]),
    ("history", &["model", "stats", "report"]),
    ("sampled", &["document", "model", "stats", "report"]),
    ("scaling", &["model", "stats", "report"]),
    ("lists", &["history", "model", "report"]),
    ("sharing", &["document", "model", "report"]),
    ("explain", &["document", "model", "report", "stats"]),
    ("stabilise", &["document", "model", "report", "stats"]),
    ("kernel", &["model", "process"]),
    ("store", &["model"]),
    ("control", &["model", "process"]),
    ("deploy", &["model", "process"]),
    (
        "machine",
        &["control", "deploy", "model", "process", "wire"],
    ),
    ("observe", &["explain", "machine", "process"]),
    ("agent", &["wire"]),
    (
        "lab",
        &[
            "model",
            "stats",
            "wire",
            "vmcore",
            "ingest",
            "report",
            "kernel",
            "machine",
            "stabilise",
            "store",
        ],
    ),
    ("web", &["model", "report", "history", "store"]),
    ("exchange", &["ingest", "model", "report", "store"]),
    (
        "site",
        &["control", "ingest", "kernel", "model", "process", "store"],
    ),
    (
        "marvin",
        &[
            "model",
            "process",
            "stats",
            "wire",
            "vmcore",
            "marvin-dump",
            "tracer",
            "ingest",
            "report",
            "history",
            "sampled",
            "scaling",
            "lists",
            "sharing",
            "explain",
            "stabilise",
            "observe",
            "kernel",
            "control",
            "deploy",
            "machine",
            "store",
            "lab",
            "web",
            "exchange",
            "site",
        ],
    ),
];

/// Development crates: they may use every crate, and no crate may use them.
const DEVELOPMENT: &[&str] = &["benches", "crash-guests", "fuzz", "stories", "tidy"];

/// Crates for tests only, each with the crates that it may use.
const FOR_TESTS: &[(&str, &[&str])] = &[
    ("probes", &["lab", "model", "wire"]),
    ("rack", &["process"]),
    ("synthetic-dumps", &[]),
];

/// Finds dependencies outside the table.
///
/// `metadata` is the output of `cargo metadata --no-deps`; `read` returns a manifest by its path,
/// to find the line.
///
/// # Errors
/// If the metadata is invalid.
pub fn layers(metadata: &str, read: impl Fn(&str) -> String) -> Result<Vec<Finding>, String> {
    let metadata: Value =
        serde_json::from_str(metadata).map_err(|error| format!("no metadata: {error}"))?;
    let root = format!(
        "{}/",
        metadata["workspace_root"].as_str().unwrap_or_default()
    );
    let packages = metadata["packages"]
        .as_array()
        .filter(|list| !list.is_empty())
        .ok_or("metadata without packages")?;
    let table: BTreeMap<&str, &[&str]> = TABLE.iter().chain(FOR_TESTS).copied().collect();
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let path = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = path.strip_prefix(&root).unwrap_or(path);
        if DEVELOPMENT.contains(&name) {
            continue;
        }
        let Some(allowed) = table.get(name).copied() else {
            found.push(UNKNOWN.at(manifest, 1, format!("crate `{name}` is not in the table")));
            continue;
        };
        // A crate may depend on itself in its tests, to enable a feature.
        for used in ours(package).filter(|used| *used != name && !allowed.contains(used)) {
            let line = line_of(&read(path), used);
            found.push(LAYERS.at(manifest, line, format!("`{name}` may not use `{used}`")));
        }
    }
    Ok(found)
}

/// The workspace crates that a package uses: normal, for its build script and for its tests;
/// without those for tests only.
fn ours(package: &Value) -> impl Iterator<Item = &str> {
    let all = package["dependencies"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_for_tests = |name: &str| FOR_TESTS.iter().any(|(known, _)| *known == name);
    let for_tests = move |used: &Value| {
        used["kind"] == "dev" && used["name"].as_str().is_some_and(is_for_tests)
    };
    all.iter()
        .filter(move |used| used["path"].is_string() && !for_tests(used))
        .filter_map(|used| used["name"].as_str())
}

fn line_of(manifest: &str, name: &str) -> usize {
    let named = |line: &str| {
        line.strip_prefix(name)
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    manifest.lines().position(named).map_or(1, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::{DEVELOPMENT, TABLE, layers};

    fn metadata(name: &str, used: &str, kind: &str) -> String {
        format!(
            r#"{{"workspace_root": "/r", "packages": [{{"name": "{name}", "manifest_path": "/r/{name}/Cargo.toml",
            "dependencies": [{{"name": "{used}", "path": "/r/{used}", "kind": {kind}}}, {{"name": "serde"}}]}}]}}"#
        )
    }

    fn found(name: &str, used: &str, kind: &str) -> Vec<String> {
        let manifest =
            "[dependencies]\nserde = \"1\"\nstorey.workspace = true\nstore.workspace = true\n";
        let found = layers(&metadata(name, used, kind), |_| manifest.to_owned()).unwrap();
        found
            .into_iter()
            .map(|f| format!("{}:{} {}", f.file, f.line, f.what))
            .collect()
    }

    #[test]
    fn upward_dependency_is_found_in_any_section() {
        for kind in ["null", "\"build\"", "\"dev\""] {
            assert_eq!(
                found("model", "store", kind),
                ["model/Cargo.toml:4 `model` may not use `store`"]
            );
            assert!(found("lab", "store", kind).is_empty());
        }
        assert_eq!(found("marvin", "agent", "null").len(), 1);
        assert_eq!(found("marvin", "tidy", "\"dev\"").len(), 1);
    }

    #[test]
    fn unknown_crate_is_found_and_development_is_exempt() {
        assert_eq!(
            found("novelty", "model", "null"),
            ["novelty/Cargo.toml:1 crate `novelty` is not in the table"]
        );
        assert!(found("tidy", "lab", "null").is_empty());
        assert_eq!(found("lab", "novelty", "null").len(), 1);
        assert!(found("vmcore", "synthetic-dumps", "\"dev\"").is_empty());
        assert_eq!(found("vmcore", "synthetic-dumps", "null").len(), 1);
        assert!(
            found("probes", "lab", "null").is_empty()
                && found("lab", "probes", "\"dev\"").is_empty()
        );
        assert_eq!(
            found("lab", "probes", "null").len() + found("probes", "store", "null").len(),
            2
        );
    }

    #[test]
    fn empty_metadata_is_an_error() {
        for text in ["", "{}", r#"{"packages": []}"#] {
            assert!(layers(text, |_| String::new()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_table_itself_has_no_upward_arrow() {
        for (n, (name, allowed)) in TABLE.iter().enumerate() {
            assert!(!DEVELOPMENT.contains(name), "{name}");
            for used in *allowed {
                assert!(
                    TABLE[..n].iter().any(|(lower, _)| lower == used),
                    "{name} uses {used}, which is not below it"
                );
            }
        }
    }
}
