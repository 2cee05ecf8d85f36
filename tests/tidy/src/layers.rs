//! The layers: each crate with its wing, what it does and which crates it may use. Arrows point
//! down only. `ROOMS` is the one source: the table in ARCHITECTURE.md is written from it.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Finding, Rule};

const LAYERS: Rule = Rule {
    name: "crates use each other as `ROOMS` in tests/tidy/src/layers.rs says, downwards only",
    remedy: "move the code to the layer where both can reach it, or hand the value down as an argument",
};
const UNUSED: Rule = Rule {
    name: "`ROOMS` in tests/tidy/src/layers.rs allows no arrow that is not there",
    remedy: "take the crate out of the other's `uses`",
};
const UNKNOWN: Rule = Rule {
    name: "every crate of the program has its place in `ROOMS` in tests/tidy/src/layers.rs",
    remedy: "add it with its wing, what it does and what it may use, or put its folder into its wing",
};

/// The wings, lowest first.
pub(crate) const WINGS: &[(&str, &str)] = &[
    (
        "base",
        "Words, numbers, frames and child processes; nothing of ours below.",
    ),
    (
        "guest",
        "Programs for other targets; their bytes are part of the exact machine.",
    ),
    ("dump", "Memory dumps: a product of its own."),
    ("analysis", "Pure: values in, documents out."),
    ("lab", "Effects: files, QEMU, ssh, SQL."),
    ("apps", "What people start."),
];

/// A crate and its place.
#[derive(Debug)]
struct Room {
    wing: &'static str,
    name: &'static str,
    /// The crates that it may use, and does.
    uses: &'static [&'static str],
    does: &'static str,
}

/// All crates of the program, lowest first.
const ROOMS: &[Room] = &[
    Room {
        wing: "base",
        name: "model",
        uses: &[],
        does: "Defines the shared types: kernel names, builds, machines, workloads, suites, metrics, runs, verdicts, jobs.",
    },
    Room {
        wing: "base",
        name: "stats",
        uses: &[],
        does: "Estimates differences with their intervals, tests them, finds change points, and chooses what to measure next; knows no domain type.",
    },
    Room {
        wing: "base",
        name: "subprocess",
        uses: &[],
        does: "Runs external programs with a deadline and output limits; they die with Marvin.",
    },
    Room {
        wing: "base",
        name: "wire",
        uses: &[],
        does: "Encodes jobs and the result stream between host and agent, versioned and checksummed.",
    },
    Room {
        wing: "guest",
        name: "tracer",
        uses: &[],
        does: "QEMU plugin: keeps the guest clock exact, counts instructions and the costly ones by kind, follows calls, simulates caches; executes several processors exactly and follows the lines they share.",
    },
    Room {
        wing: "guest",
        name: "path-recorder",
        uses: &[],
        does: "QEMU plugin beside the tracer, no part of the machine: writes the kernel instructions of one iteration in their order.",
    },
    Room {
        wing: "guest",
        name: "agent",
        uses: &["wire"],
        does: "Guest programs, static: modules, init, the workloads, and the programs of crash guests.",
    },
    Room {
        wing: "dump",
        name: "vmcore",
        uses: &[],
        does: "Reads, filters and writes memory dumps: ELF, kdump-compressed, flattened, guest memory.",
    },
    Room {
        wing: "dump",
        name: "marvin-dump",
        uses: &["model", "vmcore"],
        does: "The program of that name, and `marvin dump`.",
    },
    Room {
        wing: "analysis",
        name: "document",
        uses: &["model", "stats"],
        does: "Writes the content of a report as text, markdown, HTML and JSON; numbers, labels of kernels, styles, JSON schemas and mails for every renderer.",
    },
    Room {
        wing: "analysis",
        name: "monitors",
        uses: &["document", "model", "stats"],
        does: "Compares the counters of kernels during a workload: the counter dictionary, rows, plots, and their rendering.",
    },
    Room {
        wing: "analysis",
        name: "compare",
        uses: &["document", "model", "monitors", "stats"],
        does: "Compares runs and decides verdicts: one machine, several side by side, scaling, reverse mappings; renders them and their mails.",
    },
    Room {
        wing: "analysis",
        name: "profile",
        uses: &["compare", "document", "model", "stats"],
        does: "Shows what a difference consists of: instructions by function, calls, simulated caches, samples, transfers between processors.",
    },
    Room {
        wing: "analysis",
        name: "history",
        uses: &["compare", "document", "model", "stats"],
        does: "Follows workloads over kernel releases: series, changes, alerts, bisect hints, the overview of two kernels.",
    },
    Room {
        wing: "analysis",
        name: "explain",
        uses: &["document", "model", "profile", "stats"],
        does: "Finds why a program is slow: the budget of its time and a table of rules over what was observed.",
    },
    Room {
        wing: "analysis",
        name: "stabilise",
        uses: &["compare", "document", "model", "stats"],
        does: "Decides what to try of the history and of candidate patches, and which of these to take; weighs evidence, renders the answer.",
    },
    Room {
        wing: "lab",
        name: "store",
        uses: &["model"],
        does: "Keeps runs, artifacts, reservations, queue and notices in SQLite or PostgreSQL.",
    },
    Room {
        wing: "lab",
        name: "config",
        uses: &["model"],
        does: "Reads marvin.toml and the manifests of tools and of formats, strict and with the position of each mistake; and the outputs of these tools and files of these formats.",
    },
    Room {
        wing: "lab",
        name: "ingest",
        uses: &["model", "monitors", "wire"],
        does: "Parses guest output, /proc copies and profiles.",
    },
    Room {
        wing: "lab",
        name: "results",
        uses: &["compare", "config", "history", "ingest", "model", "store"],
        does: "Imports results of other programs, of MMTests and of LKP-tests, reads published reports and the history of a store, exports tables.",
    },
    Room {
        wing: "lab",
        name: "archives",
        uses: &["model", "subprocess"],
        does: "Fetches Debian's signed lists and packages over HTTP, verifies and unpacks them, without apt.",
    },
    Room {
        wing: "lab",
        name: "kernel",
        uses: &["archives", "model", "subprocess"],
        does: "Turns a kernel name into a build: Debian packages, image formats, git trees, source packages, build cache.",
    },
    Room {
        wing: "lab",
        name: "machine",
        uses: &["archives", "model", "subprocess", "wire"],
        does: "Defines what every machine offers (`backend.rs`), implements the exact machine, the virtual machine, this host, and a fake one for tests.",
    },
    Room {
        wing: "lab",
        name: "server",
        uses: &["machine", "model", "subprocess", "wire"],
        does: "Servers as machines: boots builds once by ssh (`boot`), switches and verifies power by IPMI, Redfish, QMP or a program (`power`), records consoles and sends breaks (`console`), makes images of distributions and gives servers one as their own system (`deploy`), switches idle servers off (`idle`).",
    },
    Room {
        wing: "lab",
        name: "observe",
        uses: &["explain", "machine", "subprocess"],
        does: "Observes programs on this host: time and places of threads, samples, settings; verifies causes by running programs without them.",
    },
    Room {
        wing: "lab",
        name: "lab",
        uses: &[
            "archives",
            "compare",
            "config",
            "document",
            "ingest",
            "kernel",
            "machine",
            "model",
            "profile",
            "server",
            "stabilise",
            "stats",
            "store",
            "subprocess",
            "vmcore",
            "wire",
        ],
        does: "Plans and executes: missing results, order, retries, estimates, bisections with their reports and mails; opens machines and embeds the guest programs.",
    },
    Room {
        wing: "apps",
        name: "web",
        uses: &[
            "compare",
            "document",
            "history",
            "model",
            "results",
            "store",
            "subprocess",
        ],
        does: "Serves the dashboard, read-only, and writes the same pages as files (`pages`, one file a page).",
    },
    Room {
        wing: "apps",
        name: "service",
        uses: &[
            "archives",
            "config",
            "kernel",
            "model",
            "server",
            "store",
            "subprocess",
        ],
        does: "Watches trees, queues new kernels, runs workers, sends jobs to Slurm or another batch system (`batch`), switches idle servers off, sends mails, webhooks and commands.",
    },
    Room {
        wing: "apps",
        name: "marvin",
        uses: &[
            "archives",
            "compare",
            "config",
            "document",
            "explain",
            "history",
            "kernel",
            "lab",
            "machine",
            "marvin-dump",
            "model",
            "monitors",
            "observe",
            "profile",
            "results",
            "server",
            "service",
            "stabilise",
            "store",
            "subprocess",
            "web",
        ],
        does: "The program: session, choices, measurements and views; one file per command, with its options.",
    },
];

/// Development crates: they may use every crate, and no crate may use them.
const DEVELOPMENT: &[&str] = &["benches", "crash-guests", "fuzz", "tidy"];

/// Crates for tests only, each with the crates that it may use.
const FOR_TESTS: &[(&str, &[&str])] = &[
    ("probes", &["lab", "model", "wire"]),
    ("rack", &["subprocess"]),
    ("synthetic-dumps", &[]),
];

/// Returns the number of arrows between crates.
#[must_use]
pub fn arrows() -> usize {
    ROOMS.iter().map(|room| room.uses.len()).sum()
}

/// Returns the table of ARCHITECTURE.md: one row for each crate, by wing, lowest first.
#[must_use]
pub fn layers_table() -> String {
    let mut lines = Vec::new();
    for (wing, about) in WINGS {
        lines.push(format!("\n### `crates/{wing}/`\n\n{about}\n"));
        lines.push("| crate | what it does | uses |\n|---|---|---|".to_owned());
        for room in ROOMS.iter().filter(|room| room.wing == *wing) {
            let uses: Vec<String> = room.uses.iter().map(|used| format!("`{used}`")).collect();
            let uses = if uses.is_empty() {
                "–".to_owned()
            } else {
                uses.join(", ")
            };
            lines.push(format!("| `{}` | {} | {uses} |", room.name, room.does));
        }
    }
    lines.join("\n") + "\n"
}

/// Finds dependencies outside the table, permissions without a dependency, and crates in another
/// folder than their wing's.
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
    let for_tests: BTreeMap<&str, &[&str]> = FOR_TESTS.iter().copied().collect();
    let mut found = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap_or_default();
        let path = package["manifest_path"].as_str().unwrap_or_default();
        let manifest = path.strip_prefix(&root).unwrap_or(path);
        if DEVELOPMENT.contains(&name) {
            continue;
        }
        let room = ROOMS
            .iter()
            .find(|room| manifest == format!("crates/{}/{}/Cargo.toml", room.wing, room.name));
        let allowed = match (room, for_tests.get(name)) {
            (Some(room), _) if room.name == name => room.uses,
            (None, Some(allowed)) => allowed,
            _ => {
                let what = format!("crate `{name}` is not in the table");
                found.push(UNKNOWN.at(manifest, 1, what));
                continue;
            }
        };
        // A crate may depend on itself in its tests, to enable a feature.
        for used in ours(package).filter(|used| *used != name && !allowed.contains(used)) {
            let line = line_of(&read(path), used);
            found.push(LAYERS.at(manifest, line, format!("`{name}` may not use `{used}`")));
        }
        for unused in allowed
            .iter()
            .filter(|used| !ours(package).any(|real| real == **used))
        {
            found.push(UNUSED.at(manifest, 1, format!("`{name}` does not use `{unused}`")));
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
    use super::{DEVELOPMENT, ROOMS, WINGS, layers};

    /// A package in its wing, or in `tests/`, that uses crates.
    fn metadata(name: &str, uses: &[&str], kind: &str) -> String {
        let wing = ROOMS.iter().find(|room| room.name == name);
        let folder = wing.map_or("tests".to_owned(), |room| format!("crates/{}", room.wing));
        let uses: Vec<String> = uses
            .iter()
            .map(|used| format!(r#"{{"name": "{used}", "path": "/r/{used}", "kind": {kind}}}"#))
            .chain([r#"{"name": "serde"}"#.to_owned()])
            .collect();
        format!(
            r#"{{"workspace_root": "/r", "packages": [{{"name": "{name}",
            "manifest_path": "/r/{folder}/{name}/Cargo.toml", "dependencies": [{}]}}]}}"#,
            uses.join(", ")
        )
    }

    /// What is found if a crate uses one more than it may.
    fn found(name: &str, used: &str, kind: &str) -> Vec<String> {
        let room = ROOMS.iter().find(|room| room.name == name);
        let mut uses = room.map_or(Vec::new(), |room| room.uses.to_vec());
        if !uses.contains(&used) {
            uses.push(used);
        }
        list(&metadata(name, &uses, kind))
    }

    fn list(metadata: &str) -> Vec<String> {
        let manifest =
            "[dependencies]\nserde = \"1\"\nstorey.workspace = true\nstore.workspace = true\n";
        let found = layers(metadata, |_| manifest.to_owned()).unwrap();
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
                ["crates/base/model/Cargo.toml:4 `model` may not use `store`"]
            );
            assert!(found("lab", "store", kind).is_empty());
        }
        assert_eq!(found("marvin", "agent", "null").len(), 1);
        assert_eq!(found("marvin", "tidy", "\"dev\"").len(), 1);
    }

    #[test]
    fn unused_permission_is_found() {
        assert_eq!(
            list(&metadata("store", &[], "null")),
            ["crates/lab/store/Cargo.toml:1 `store` does not use `model`"]
        );
    }

    #[test]
    fn unknown_crate_is_found_and_development_is_exempt() {
        assert_eq!(
            found("novelty", "model", "null"),
            ["tests/novelty/Cargo.toml:1 crate `novelty` is not in the table"]
        );
        assert!(list(&metadata("tidy", &["lab"], "null")).is_empty());
        assert_eq!(found("lab", "novelty", "null").len(), 1);
        assert!(found("vmcore", "synthetic-dumps", "\"dev\"").is_empty());
        assert_eq!(found("vmcore", "synthetic-dumps", "null").len(), 1);
        assert!(found("lab", "probes", "\"dev\"").is_empty());
        assert_eq!(found("lab", "probes", "null").len(), 1);
        assert!(list(&metadata("rack", &["subprocess"], "null")).is_empty());
        assert_eq!(
            list(&metadata("rack", &["subprocess", "store"], "null")).len(),
            1
        );
    }

    #[test]
    fn crate_in_another_wing_is_found() {
        let moved = metadata("store", &["model"], "null").replace("crates/lab", "crates/base");
        assert_eq!(list(&moved).len(), 1);
    }

    #[test]
    fn empty_metadata_is_an_error() {
        for text in ["", "{}", r#"{"packages": []}"#] {
            assert!(layers(text, |_| String::new()).is_err(), "{text}");
        }
    }

    #[test]
    fn the_table_itself_has_no_upward_arrow() {
        let wing = |name: &str| WINGS.iter().position(|(wing, _)| *wing == name).unwrap();
        for (n, room) in ROOMS.iter().enumerate() {
            assert!(!DEVELOPMENT.contains(&room.name), "{}", room.name);
            for used in room.uses {
                let lower = ROOMS[..n].iter().find(|lower| lower.name == *used);
                assert!(
                    lower.is_some_and(|lower| wing(lower.wing) <= wing(room.wing)),
                    "{} uses {used}, which is not below it",
                    room.name
                );
            }
        }
    }
}
