//! The list of benchmarks of a kernel's source: `marvin workloads --tree`.

use kernel::{Benchmark, ProgramSource};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::layout::Page;
use document::number::count;
use model::sanitize_line;

/// The position of the second column, as in the listing of workloads.
const INDENT: usize = 20;
/// Most options of the kernel config that the text lists.
const OPTIONS_SHOWN: usize = 12;
/// Most formats of numbers that the text lists.
const FORMATS_SHOWN: usize = 3;

/// Benchmarks of a kernel's source.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct BenchmarksDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The directory of the tree.
    tree: String,
    /// The commit; null for a directory as it stands.
    commit: Option<String>,
    /// The benchmarks.
    benchmarks: Vec<ListedBenchmark>,
}

/// One benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedBenchmark {
    /// Name; `tree:NAME` on the command line.
    name: String,
    /// `KUnit`, `module`, `perf bench` or `selftest`.
    kind: String,
    /// The file that it was found in.
    file: String,
    /// What it is, in the tree's words.
    about: String,
    /// Module parameters, or arguments of perf, that Marvin gives it.
    parameters: Vec<String>,
    /// How long it is left loaded (s), if it measures in threads.
    seconds: u32,
    /// What Marvin adds to the kernel config.
    options: Vec<String>,
    /// Formats of the lines with its numbers.
    formats: Vec<String>,
    /// Why Marvin cannot run it; null if it can.
    cannot: Option<String>,
}

fn parameters_of(benchmark: &Benchmark) -> Vec<String> {
    match (&benchmark.module, &benchmark.program) {
        (Some(module), _) => module.parameters.clone(),
        (None, Some(ProgramSource::Perf { arguments, .. })) => arguments.clone(),
        _ => Vec::new(),
    }
}

impl BenchmarksDocument {
    /// Returns the document of the benchmarks of a tree.
    pub(crate) fn new(tree: String, commit: Option<&str>, benchmarks: Vec<Benchmark>) -> Self {
        let benchmarks = benchmarks.into_iter().map(|benchmark| {
            let module = benchmark.module.as_ref();
            ListedBenchmark {
                kind: benchmark.kind.to_string(),
                parameters: parameters_of(&benchmark),
                seconds: module.map_or(0, |module| module.seconds),
                name: benchmark.name,
                file: benchmark.file,
                about: benchmark.about,
                options: benchmark.options,
                formats: benchmark.formats,
                cannot: benchmark.cannot,
            }
        });
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "benchmarks",
            tree,
            commit: commit.map(str::to_owned),
            benchmarks: benchmarks.collect(),
        }
    }
}

impl Listing for BenchmarksDocument {
    fn text(&self, styles: &Styles) -> String {
        let mut texts = Vec::new();
        let mut head = Page::default();
        let at = self.commit.as_ref().map_or_else(String::new, |commit| {
            let short: String = commit.chars().take(12).collect();
            format!(" at {short}")
        });
        let usable = self.benchmarks.iter().filter(|of| of.cannot.is_none());
        // One line: where it breaks would depend on the path.
        head.line(format!(
            "{}{at}: {}, {} of them usable as tree:NAME",
            sanitize_line(&self.tree),
            count(self.benchmarks.len(), "benchmark"),
            usable.count()
        ));
        texts.push(head.finish());
        for benchmark in &self.benchmarks {
            let text = of_benchmark(benchmark);
            // Coloured after wrapping, because colours have no width.
            let name = sanitize_line(&benchmark.name);
            texts.push(text.replacen(&name, &styles.strong(&name), 1));
        }
        texts.join("")
    }
}

fn of_benchmark(benchmark: &ListedBenchmark) -> String {
    let mut lines = Page::default();
    let name = sanitize_line(&benchmark.name);
    let about = sanitize_line(&benchmark.about);
    if name.len() < INDENT {
        lines.hanging(&format!("{name:<INDENT$}"), &about);
    } else {
        lines.line(name);
        lines.paragraph(INDENT, &about);
    }
    let file = sanitize_line(&benchmark.file);
    lines.paragraph(INDENT, &format!("{}, {file}", benchmark.kind));
    if let Some(why) = &benchmark.cannot {
        lines.paragraph(INDENT, &format!("not usable: {}", sanitize_line(why)));
        return lines.finish();
    }
    if !benchmark.options.is_empty() {
        let options = shorten(&benchmark.options, OPTIONS_SHOWN, " ");
        lines.paragraph(INDENT, &format!("config: {options}"));
    }
    if !benchmark.parameters.is_empty() {
        let parameters = sanitize_line(&benchmark.parameters.join(" "));
        lines.paragraph(INDENT, &format!("parameters: {parameters}"));
    }
    if !benchmark.formats.is_empty() {
        let formats = shorten(&benchmark.formats, FORMATS_SHOWN, "; ");
        lines.paragraph(INDENT, &format!("prints: {formats}"));
    }
    lines.finish()
}

/// Joins the first of some texts, and says how many there are beside.
fn shorten(texts: &[String], shown_max: usize, separator: &str) -> String {
    let shown: Vec<String> = texts
        .iter()
        .take(shown_max)
        .map(|text| sanitize_line(text.trim()))
        .collect();
    let more = texts.len().saturating_sub(shown_max);
    let joined = shown.join(separator);
    if more == 0 {
        joined
    } else {
        format!("{joined} and {more} more")
    }
}
