//! Benchmarks that are programs of the tree: those of `perf bench`, and selftests that measure.
//!
//! Pure: the caller reads the files.

use std::collections::BTreeMap;

use super::{Benchmark, BenchmarkKind, ProgramSource, known};

/// The tables of `perf bench`.
pub(super) const PERF_TABLES: &str = "tools/perf/builtin-bench.c";
/// Where the selftests are.
pub(super) const SELFTESTS: &str = "tools/testing/selftests";
/// What a selftest's name has in it if it measures.
const MEASURES: [&str; 4] = ["bench", "benchmark", "perf", "speed"];
/// Selftests that measure though their names do not say so.
const ALSO_MEASURES: [&str; 1] = [
    // tools/testing/selftests/mm/gup_test.c: prints the time of get_user_pages_fast.
    "gup_test",
];
/// Ends of these lists for programs of all architectures, and of this one
/// (tools/testing/selftests/kvm/Makefile.kvm).
const LIST_ENDS: [&str; 4] = ["", "_COMMON", "_x86", "_x86_64"];
/// Lists of a selftest's Makefile with the programs that it makes (tools/testing/selftests/lib.mk).
const LISTS: [&str; 5] = [
    "TEST_GEN_PROGS",
    "TEST_GEN_PROGS_EXTENDED",
    "TEST_GEN_FILES",
    "TEST_PROGS",
    "TEST_CUSTOM_PROGS",
];
/// Directories of selftests for other architectures.
const OTHER_ARCHITECTURES: [&str; 6] = ["arm64", "powerpc", "riscv", "sparc64", "s390x", "ia64"];
/// Directories whose programs need what a guest has not.
const NOT_HERE: [(&str, &str); 4] = [
    ("kvm", "needs /dev/kvm in the guest"),
    ("bpf", "its build needs clang, bpftool and the kernel's BTF"),
    ("net", "needs a second program that it talks to"),
    ("intel_pstate", "needs a processor of Intel"),
];
/// Benchmarks of perf that need a network, a symbol table or a build of perf with more libraries.
const PERF_NOT_HERE: [(&str, &str); 2] = [
    ("uprobe", "needs perf built with BPF skeletons"),
    ("numa", "needs perf built with libnuma"),
];

/// Returns the benchmarks of perf, as the tables of `builtin-bench.c` list them.
pub(super) fn perf_benchmarks(text: &str) -> Vec<Benchmark> {
    let mut tables: BTreeMap<&str, Vec<(String, String)>> = BTreeMap::new();
    let mut collections: Vec<(String, String)> = Vec::new();
    let mut table: Option<&str> = None;
    for line in text.lines() {
        if let Some(declared) = line.strip_prefix("static struct ") {
            table = declared
                .split_whitespace()
                .find_map(|word| word.strip_suffix("[]"))
                .or(table);
            continue;
        }
        if line.starts_with('}') {
            table = None;
        }
        let (Some(table), Some(entry)) = (table, line.trim().strip_prefix('{')) else {
            continue;
        };
        let mut quoted = entry.split('"').skip(1).step_by(2).map(str::to_owned);
        let (Some(name), Some(summary)) = (quoted.next(), quoted.next()) else {
            continue;
        };
        if table == "collections" {
            let of = entry.trim_end_matches([' ', '\t', ',', '}']);
            let of = of.rsplit([',', ' ', '\t']).next().unwrap_or_default();
            collections.push((name, of.to_owned()));
        } else {
            tables.entry(table).or_default().push((name, summary));
        }
    }
    let mut found = Vec::new();
    for (collection, table) in collections {
        for (name, summary) in tables.get(table.as_str()).into_iter().flatten() {
            if name == "all" {
                continue;
            }
            let not_here = PERF_NOT_HERE.iter().find(|(of, _)| *of == collection);
            found.push(Benchmark {
                about: summary.clone(),
                program: Some(ProgramSource::Perf {
                    name: vec!["bench".to_owned(), collection.clone(), name.clone()],
                    arguments: known::perf_arguments(&collection, name),
                }),
                cannot: not_here.map(|(_, why)| (*why).to_owned()),
                ..Benchmark::new(
                    format!("perf-{collection}-{name}"),
                    BenchmarkKind::Perf,
                    PERF_TABLES,
                )
            });
        }
    }
    found
}

/// Returns the selftests that measure: C files whose name says so, and that a Makefile makes a
/// program of. `files` has the Makefiles and the files `config` of all selftests.
pub(super) fn selftests(sources: &[String], files: &BTreeMap<String, String>) -> Vec<Benchmark> {
    let mut found = Vec::new();
    for source in sources {
        let Some((folder, file)) = source.rsplit_once('/') else {
            continue;
        };
        let Some(below) = folder.strip_prefix(SELFTESTS) else {
            continue;
        };
        let group = below
            .trim_start_matches('/')
            .split('/')
            .next()
            .unwrap_or_default();
        let stem = file.trim_end_matches(".c");
        let words: Vec<&str> = stem.split(['_', '-']).collect();
        let measures = words.iter().any(|word| {
            MEASURES
                .iter()
                .any(|known| word == known || word.ends_with("bench"))
        });
        let measures = measures || ALSO_MEASURES.contains(&stem);
        if !measures || OTHER_ARCHITECTURES.contains(&group) {
            continue;
        }
        // That of kvm includes Makefile.kvm, which has the lists.
        let start = format!("{folder}/Makefile");
        let mut makefiles = files
            .range(start.clone()..)
            .take_while(|(path, _)| path.starts_with(&start));
        if !makefiles.any(|(_, makefile)| makes_program(makefile, stem)) {
            continue;
        }
        let config = files.get(&format!("{folder}/config"));
        let options = config
            .map(|text| crate::source::config_options(text))
            .unwrap_or_default();
        let not_here = NOT_HERE.iter().find(|(of, _)| *of == group);
        found.push(Benchmark {
            about: format!("selftest of {}", below.trim_start_matches('/')),
            options: options
                .into_iter()
                .filter(|(_, value)| value != "n")
                .map(|(name, value)| {
                    let name = name.trim_start_matches("CONFIG_").to_owned();
                    // A selftest loads its modules by modprobe: here all is in the image.
                    let value = if value == "m" { "y".to_owned() } else { value };
                    format!("{name}={value}")
                })
                .collect(),
            program: Some(ProgramSource::Selftest {
                folder: folder.to_owned(),
                name: stem.to_owned(),
            }),
            cannot: not_here.map(|(_, why)| (*why).to_owned()),
            ..Benchmark::new(stem.replace('_', "-"), BenchmarkKind::Selftest, source)
        });
    }
    found
}

/// Returns whether a Makefile makes a program of this name.
fn makes_program(makefile: &str, name: &str) -> bool {
    let joined = makefile.replace("\\\n", " ");
    joined.lines().any(|line| {
        let Some((list, words)) = line.split_once('=') else {
            return false;
        };
        let list = list.trim_end_matches(['+', ':', '?', ' ', '\t']);
        let is_list = LISTS.iter().any(|known| {
            let end = list.trim().strip_prefix(known);
            end.is_some_and(|end| LIST_ENDS.contains(&end))
        });
        is_list
            && words
                .split_whitespace()
                .any(|word| word.trim_start_matches("$(OUTPUT)/") == name)
    })
}
