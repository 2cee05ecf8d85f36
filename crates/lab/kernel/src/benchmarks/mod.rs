//! The benchmarks that a kernel's source brings: modules that time something when they are loaded,
//! KUnit suites with a benchmark, `perf bench`, and selftests that measure.
//!
//! Found by reading the source, of any revision: what prints a number with a unit to the kernel's
//! log (`formats`), the Makefiles that make a module of it, and the Kconfig files that say what it
//! needs (`kconfig`, `requirements`). `known` has parameters for those whose defaults take too long.

mod expression;
mod formats;
mod kconfig;
mod known;
mod program_build;
mod programs;
mod requirements;
mod source_text;

use std::collections::BTreeMap;

pub(crate) use self::kconfig::Kconfig;
pub use self::source_text::SourceText;
use crate::KernelError;
use crate::source::{module_of, options_of};

/// Lines of files that may be benchmarks (POSIX extended): that print a number with a unit, list a
/// test that measures, or begin to measure in threads. One look at all files, as that takes seconds;
/// what follows looks closer.
const MAY_MEASURE: &str = "%[-+ 0-9.*lhzt]*[dufi] ?[([]?([nmu]s|[nu]?secs?|[mu]secs?|nano|micro|milli|[Cc]ycle|clocks|\
[MKG]i?B/s|[kmg]b/s|ops|iter|IOPS|per sec|DMIPS)|KUNIT_CASE[A-Z_]*[(].*(bench|perf|speed)|torture_init_begin[ ]*[(]|per Second: %";
/// Calls of files that are modules of their own.
const IS_MODULE: [&str; 3] = ["module_init(", "_initcall(", "kunit_test_suite"];
/// The call of modules that measure in threads (include/linux/torture.h).
const TORTURE: &str = "torture_init_begin(";
/// What is not of this architecture, or is no code of the kernel.
const CODE: [&str; 6] = [
    "*.c",
    ":(exclude)tools",
    ":(exclude)Documentation",
    ":(exclude)scripts",
    ":(exclude)samples",
    ":(exclude)drivers/gpu",
];
/// Words of files and options that test or measure.
const NAMES: [&str; 8] = [
    "TEST",
    "TESTS",
    "TESTING",
    "BENCH",
    "BENCHMARK",
    "SELFTEST",
    "KUNIT",
    "TORTURE",
];
/// Directories whose code needs no device: there a rate in a message is a measurement.
const WITHOUT_DEVICES: [&str; 7] = ["lib/", "crypto/", "kernel/", "mm/", "fs/", "block/", "net/"];
/// Most benchmarks of a tree.
const BENCHMARKS_MAX: usize = 2000;

/// What a benchmark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BenchmarkKind {
    /// A KUnit suite with a benchmark, as a module.
    Kunit,
    /// A module that measures when it is loaded, or in threads.
    Module,
    /// A benchmark of `perf bench`.
    Perf,
    /// A program of the selftests.
    Selftest,
}

impl std::fmt::Display for BenchmarkKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Kunit => "KUnit",
            Self::Module => "module",
            Self::Perf => "perf bench",
            Self::Selftest => "selftest",
        })
    }
}

/// A module that measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleSource {
    /// The module's name, with `_`.
    pub name: String,
    /// Its parameters, as for modprobe.
    pub parameters: Vec<String>,
    /// How long it is left loaded (s of the guest), if it measures in threads; else 0.
    pub seconds: u32,
}

/// A program of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramSource {
    /// `perf` with the name of a benchmark, and arguments with which that ends soon.
    Perf {
        name: Vec<String>,
        arguments: Vec<String>,
    },
    /// A selftest that a Makefile in this directory makes.
    Selftest { folder: String, name: String },
}

/// A benchmark of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Benchmark {
    /// Its name: `tree:NAME` on the command line.
    pub name: String,
    pub kind: BenchmarkKind,
    /// The file that it was found in.
    pub file: String,
    /// What it is, in the tree's words.
    pub about: String,
    pub module: Option<ModuleSource>,
    pub program: Option<ProgramSource>,
    /// What a kernel config needs for it, such as `TEST_VMALLOC=m`.
    pub options: Vec<String>,
    /// The formats of its numbers; empty if they are not known before it runs.
    pub formats: Vec<String>,
    /// Why Marvin cannot run it; `None` if it can.
    pub cannot: Option<String>,
}

impl Benchmark {
    fn new(name: String, kind: BenchmarkKind, file: &str) -> Self {
        Self {
            name,
            kind,
            file: file.to_owned(),
            about: String::new(),
            module: None,
            program: None,
            options: Vec::new(),
            formats: Vec::new(),
            cannot: None,
        }
    }
}

/// Finds the benchmarks of a source, by kind and name.
///
/// # Errors
/// If git fails.
pub fn find_benchmarks(source: &SourceText) -> Result<Vec<Benchmark>, KernelError> {
    let mut found = in_kernel(source)?;
    let tables = source.contents(&[programs::PERF_TABLES])?;
    if let Some(text) = tables.get(programs::PERF_TABLES) {
        found.extend(programs::perf_benchmarks(text));
    }
    let mains = source.files_with("main[ ]*[(]", &[programs::SELFTESTS])?;
    let made = [
        ":(glob)tools/testing/selftests/**/Makefile",
        ":(glob)tools/testing/selftests/**/Makefile.*",
        ":(glob)tools/testing/selftests/**/config",
    ];
    found.extend(programs::selftests(&mains, &source.contents(&made)?));
    found.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    found.dedup_by(|a, b| a.name == b.name);
    found.truncate(BENCHMARKS_MAX);
    Ok(found)
}

/// The files that say how code is built.
struct BuildFiles {
    makefiles: BTreeMap<String, String>,
    kconfig: Kconfig,
}

/// Finds the modules that measure.
fn in_kernel(source: &SourceText) -> Result<Vec<Benchmark>, KernelError> {
    let mut candidates = source.files_with(MAY_MEASURE, &CODE)?;
    let makefiles = source.contents(&["*Makefile", "*Kbuild", ":(exclude)tools"])?;
    candidates.extend(named_by_option(&makefiles));
    candidates.retain(|file| {
        file.strip_prefix("arch/")
            .is_none_or(|below| below.starts_with("x86/"))
    });
    candidates.sort();
    candidates.dedup();
    if candidates.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<&str> = candidates.iter().map(String::as_str).collect();
    let texts = source.contents(&names)?;
    let build = BuildFiles {
        makefiles,
        kconfig: Kconfig::read(&source.contents(&["*Kconfig*"])?),
    };
    let mut found = Vec::new();
    for (file, text) in &texts {
        let code = Code {
            file,
            text,
            is_kunit: text.contains("kunit_test_"),
            has_threads: text.contains(TORTURE),
        };
        if !IS_MODULE.iter().any(|call| text.contains(call)) {
            continue;
        }
        found.extend(benchmark_of(&code, &build));
    }
    Ok(found)
}

/// A source file that may be a benchmark.
struct Code<'a> {
    file: &'a str,
    text: &'a str,
    is_kunit: bool,
    has_threads: bool,
}

/// Returns the C files whose option has the word BENCHMARK.
fn named_by_option(makefiles: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in makefiles {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for line in text.replace("\\\n", " ").lines() {
            let Some((list, words)) = line.split_once("+=") else {
                continue;
            };
            if !list.contains("BENCH") || folder.is_empty() {
                continue;
            }
            found.extend(
                words
                    .split_whitespace()
                    .filter_map(|word| word.strip_suffix(".o"))
                    .map(|stem| format!("{folder}/{stem}.c")),
            );
        }
    }
    found
}

/// Returns the benchmark of a file; `None` if it is none, or no Makefile makes a module of it.
fn benchmark_of(code: &Code<'_>, build: &BuildFiles) -> Option<Benchmark> {
    let read = |path: &str| build.makefiles.get(path).cloned();
    let mut chain = options_of(code.file, &read, &|_| false)?;
    // The option of the module is the last; those of the directories above come before.
    chain.reverse();
    let chain: Vec<String> = chain
        .iter()
        .map(|option| option.trim_start_matches("CONFIG_").to_owned())
        .collect();
    let own = chain.first()?;
    let formats = formats::timed_formats(code.text);
    if !is_benchmark(code, own, &formats) {
        return None;
    }
    let object = module_of(code.file, &read)?;
    let name = object.replace('-', "_");
    let symbol = build.kconfig.symbols.get(own);
    let about = symbol.and_then(|symbol| symbol.prompt.clone());
    let mut options = chain.clone();
    if code.is_kunit {
        options.push("KUNIT".to_owned());
    }
    options.extend(benchmark_options(code.text, &build.kconfig));
    let (options, cannot) = match build.kconfig.requirements(&options) {
        Ok((found, true)) => (found.lines(), None),
        // Code of the kernel's core that happens to print a time is no benchmark.
        Ok((_, false)) if !is_named(code.file, own) => return None,
        Ok((found, false)) => (
            found.lines(),
            Some(known::reason_of_built_in(&name).to_owned()),
        ),
        Err(why) => (vec![format!("{own}=m")], Some(why)),
    };
    let (parameters, seconds) = known::parameters_of(&name, code.has_threads);
    let kind = if code.is_kunit {
        BenchmarkKind::Kunit
    } else {
        BenchmarkKind::Module
    };
    Some(Benchmark {
        about: about.unwrap_or_else(|| format!("module {name}")),
        module: Some(ModuleSource {
            name: name.clone(),
            parameters,
            seconds,
        }),
        options,
        formats,
        cannot,
        ..Benchmark::new(name, kind, code.file)
    })
}

/// Returns the options of benchmarks that a file asks for: `IS_ENABLED(CONFIG_CRC_BENCHMARK)`.
fn benchmark_options(text: &str, kconfig: &Kconfig) -> Vec<String> {
    let mut found: Vec<String> = text
        .split("CONFIG_")
        .skip(1)
        .map(|rest| {
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            rest[..end].to_owned()
        })
        .filter(|name| name.contains("BENCHMARK") && kconfig.symbols.contains_key(name))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// Returns whether a file is a benchmark: its name, its option or its tests say so, or code that
/// needs no device prints a rate.
fn is_benchmark(code: &Code<'_>, option: &str, formats: &[String]) -> bool {
    let measures = !formats.is_empty() || code.has_threads;
    let has_case = code.is_kunit
        && code.text.lines().any(|line| {
            let words = ["bench", "perf", "speed"];
            line.contains("KUNIT_CASE") && words.iter().any(|word| line.contains(word))
        });
    let has_rate = formats
        .iter()
        .any(|format| format.contains("B/s") || format.contains("Second"));
    let is_without_device = WITHOUT_DEVICES
        .iter()
        .any(|folder| code.file.starts_with(folder));
    has_case
        || option.contains("BENCH")
        || measures && is_named(code.file, option)
        || has_rate && is_without_device
}

/// Returns whether the name of a file or its option says that it tests or measures.
fn is_named(file: &str, option: &str) -> bool {
    let stem = file.rsplit('/').next().unwrap_or(file);
    let stem = stem.trim_end_matches(".c").to_ascii_uppercase();
    let option = option.to_ascii_uppercase();
    stem.split(['_', '-']).chain(option.split('_')).any(|word| {
        NAMES.contains(&word)
            || ["TEST", "SCALE", "TORTURE"]
                .iter()
                .any(|end| word.len() > end.len() && word.ends_with(end) && word != "LATEST")
    })
}

#[cfg(test)]
mod tests;
