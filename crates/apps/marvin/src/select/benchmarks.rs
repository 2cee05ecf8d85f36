//! Chooses benchmarks of the kernel's own source: `tree:NAME`, with module parameters behind it
//! (`tree:test_vmalloc:test_loop_count=100`).

use std::path::Path;

use kernel::{
    Benchmark, BenchmarkKind, BuildCache, ModuleSource, ProgramSource, SourceText, find_benchmarks,
};
use lab::{ModuleRequest, ProgramRequest, Tools, prepare_module, prepare_program, printed_metric};
use model::{KernelName, Tool, TreeBenchmark};

use super::{did_you_mean, explain_program_error, source_settings};
use crate::exit::WrongInput;
use crate::options::{ProgramOptions, SourceOptions};
use crate::session::Session;

/// What begins the name of a benchmark of the source.
pub(crate) const TREE: &str = "tree:";
/// Longest name of a row: those of its numbers follow.
const NAME_MAX: usize = 21;

/// Where benchmarks come from, and how they run.
pub(crate) struct BenchmarkChoice<'a> {
    pub(crate) sources: &'a SourceOptions,
    pub(crate) program: &'a ProgramOptions,
    /// The kernels of the command, the oldest first.
    pub(crate) kernels: &'a [KernelName],
}

/// A benchmark as a user names it.
struct NamedBenchmark<'a> {
    name: &'a str,
    /// Module parameters or options of perf, instead of those that Marvin knows.
    parameters: Vec<String>,
}

/// Returns the tools with the benchmarks that these words name, and the words that then choose them.
pub(crate) fn add_benchmarks(
    session: &Session,
    choice: &BenchmarkChoice<'_>,
    mut tools: Tools,
    words: &[String],
) -> anyhow::Result<(Tools, Vec<String>)> {
    if words.iter().all(|word| !word.starts_with(TREE)) {
        return Ok((tools, words.to_vec()));
    }
    let sources = open_sources(session, choice)?;
    let mut found: Vec<(usize, Vec<Benchmark>)> = Vec::new();
    let mut chosen = Vec::new();
    for word in words {
        let Some(written) = word.strip_prefix(TREE) else {
            chosen.push(word.clone());
            continue;
        };
        let named = parse(written);
        let (at, benchmark) = find(&sources, &mut found, named.name)?;
        check_parameters(benchmark.kind, &named)?;
        if let Some(why) = &benchmark.cannot {
            let text = format!(
                "cannot run {}: it {why} ({})",
                benchmark.name, benchmark.file
            );
            return Err(WrongInput(text).into());
        }
        let row = row_name(&benchmark.name, &tools);
        let tool = prepare(
            session,
            choice,
            &sources[at],
            &benchmark,
            &named,
            &row,
            &tools,
        )?;
        if !session.is_quiet() {
            crate::say(&describe(&benchmark, &row));
            for other in &sources {
                if !other.has_file(&benchmark.file)? {
                    crate::say(&describe_absence(&benchmark, &sources[at], other));
                }
            }
        }
        tools = tools.with_program(tool);
        chosen.push(format!("tool:{row}"));
    }
    Ok((tools, chosen))
}

fn parse(written: &str) -> NamedBenchmark<'_> {
    let mut parts = written.split(':');
    NamedBenchmark {
        name: parts.next().unwrap_or_default(),
        parameters: parts.map(str::to_owned).collect(),
    }
}

/// Errors if a benchmark of this kind takes no such parameter: options of perf may be flags.
fn check_parameters(kind: BenchmarkKind, named: &NamedBenchmark<'_>) -> Result<(), WrongInput> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.=".contains(c);
    let is_parameter = |text: &&String| {
        let name = text.split_once('=').map(|(name, _)| name);
        let has_name = match kind {
            BenchmarkKind::Perf => !name.unwrap_or(text).is_empty() && !text.starts_with('-'),
            _ => name.is_some_and(|name| !name.is_empty()),
        };
        text.chars().all(is_plain) && has_name
    };
    let name = named.name.escape_debug();
    let is_wrong = |text: &&String| kind == BenchmarkKind::Selftest || !is_parameter(text);
    let Some(wrong) = named.parameters.iter().find(is_wrong) else {
        return Ok(());
    };
    let wrong = wrong.escape_debug();
    Err(WrongInput(match kind {
        BenchmarkKind::Selftest => {
            format!("{name} is a selftest, which takes no parameter {wrong}")
        }
        BenchmarkKind::Perf => format!(
            "`{wrong}` is no option of perf bench: write {TREE}{name}:OPTION=VALUE, or {TREE}{name}:OPTION for a flag, without --"
        ),
        BenchmarkKind::Kunit | BenchmarkKind::Module => {
            format!("`{wrong}` is no module parameter: write {TREE}{name}:PARAMETER=VALUE")
        }
    }))
}

/// Opens the sources of the command, the newest first: those of its kernels, or else the tree.
fn open_sources(
    session: &Session,
    choice: &BenchmarkChoice<'_>,
) -> anyhow::Result<Vec<SourceText>> {
    let tree = source_settings(session, choice.sources)?.tree;
    let mut sources = Vec::new();
    for kernel in choice.kernels.iter().rev() {
        sources.extend(source_of(session, kernel, tree.as_deref())?);
    }
    if sources.is_empty() {
        let tree = tree.ok_or_else(|| {
            WrongInput(format!(
                "{TREE}NAME needs the kernel's source: name its directory with --tree DIR, or a kernel by git:REVISION"
            ))
        })?;
        sources.push(open_tree(&tree, None)?);
    }
    Ok(sources)
}

/// Opens a tree at a revision; by default what it has checked out, or a directory without git as it
/// stands.
pub(crate) fn open_tree(tree: &Path, revision: Option<&str>) -> anyhow::Result<SourceText> {
    let opened = match revision {
        None if !tree.join(".git").exists() && tree.join("Kbuild").is_file() => {
            SourceText::of_directory(tree)
        }
        revision => SourceText::of_revision(tree, revision.unwrap_or("HEAD")),
    };
    Ok(opened?)
}

/// Returns the source of a kernel; `None` for one that Marvin does not build.
fn source_of(
    session: &Session,
    kernel: &KernelName,
    tree: Option<&Path>,
) -> anyhow::Result<Option<SourceText>> {
    Ok(match (kernel.source(), tree) {
        (KernelName::Git(revision) | KernelName::Patch { revision, .. }, Some(tree)) => {
            Some(SourceText::of_revision(tree, revision)?)
        }
        (KernelName::Tree(folder), _) => Some(SourceText::of_directory(folder)?),
        (KernelName::DebSrc(version), _) => {
            let cache = BuildCache::open(session.home()?, session.archives()?)?;
            let progress = session.progress();
            let shown = kernel.to_string();
            let imported = cache.import_release(version, &|step| progress.step(&shown, &step));
            progress.end();
            let (repository, tag) = imported?;
            Some(SourceText::of_revision(
                &repository,
                &format!("refs/tags/{tag}"),
            )?)
        }
        _ => None,
    })
}

/// Finds a benchmark in the newest source that has it; returns the source's index.
fn find(
    sources: &[SourceText],
    found: &mut Vec<(usize, Vec<Benchmark>)>,
    name: &str,
) -> anyhow::Result<(usize, Benchmark)> {
    let normal = |name: &str| name.replace('-', "_");
    for (at, source) in sources.iter().enumerate() {
        if found.len() == at {
            found.push((at, find_benchmarks(source)?));
        }
        let of_source = &found[at].1;
        if let Some(benchmark) = of_source
            .iter()
            .find(|benchmark| normal(&benchmark.name) == normal(name))
        {
            return Ok((at, benchmark.clone()));
        }
    }
    let names = found.iter().flat_map(|(_, all)| all);
    let names = names.map(|benchmark| benchmark.name.as_str());
    let guess = did_you_mean(names, name);
    let places: Vec<&str> = sources.iter().map(SourceText::name).collect();
    Err(WrongInput(format!(
        "no benchmark `{}` in {}{guess}; `marvin workloads --tree DIR` lists them",
        name.escape_debug(),
        places.join(" and ")
    ))
    .into())
}

/// Makes a tool of a benchmark.
fn prepare(
    session: &Session,
    choice: &BenchmarkChoice<'_>,
    source: &SourceText,
    benchmark: &Benchmark,
    named: &NamedBenchmark<'_>,
    row: &str,
    tools: &Tools,
) -> anyhow::Result<Tool> {
    let home = session.home()?;
    let options = choice.program;
    let limit_s = u32::try_from(options.time_limit.as_secs()).unwrap_or(u32::MAX);
    if let Some(ModuleSource {
        name,
        parameters,
        seconds,
    }) = &benchmark.module
    {
        let parameters = if named.parameters.is_empty() {
            parameters.clone()
        } else {
            named.parameters.clone()
        };
        let request = ModuleRequest {
            name: row.to_owned(),
            about: benchmark.about.clone(),
            module: name.clone(),
            parameters,
            seconds: *seconds,
            options: benchmark.options.clone(),
            runs: options.repeat,
            limit_s,
            memory_mib: options.guest_memory,
        };
        return Ok(prepare_module(&request, home)?);
    }
    let Some(program) = &benchmark.program else {
        return Err(WrongInput(format!("{} is no program", benchmark.name)).into());
    };
    let cache = BuildCache::open(home, session.archives()?)?;
    let progress = session.progress();
    let file = cache.benchmark_program(source, program, &|step| progress.step(row, &step));
    progress.end();
    let mut command = vec![file?.display().to_string()];
    if let ProgramSource::Perf { name, arguments } = program {
        command.extend(name.iter().cloned());
        if named.parameters.is_empty() {
            command.extend(arguments.iter().cloned());
        } else {
            let options = named.parameters.iter();
            command.extend(options.map(|option| format!("--{option}")));
        }
    }
    let request = ProgramRequest {
        command,
        values: vec![printed_metric()],
        accepted: options.accept_status.clone(),
        runs: options.repeat,
        limit_s,
        memory_mib: options.guest_memory,
        name: Some(row.to_owned()),
        benchmark: Some(TreeBenchmark {
            module: None,
            options: benchmark.options.clone(),
        }),
        ..ProgramRequest::default()
    };
    let prepared = prepare_program(&request, tools, home).map_err(explain_program_error)?;
    Ok(prepared.tool)
}

/// Returns the name of a row, unless another workload has it.
fn row_name(name: &str, tools: &Tools) -> String {
    let cut = |text: &str| text.chars().take(NAME_MAX).collect::<String>();
    let short = cut(name.strip_prefix("perf-internals-").unwrap_or(name));
    if tools.is_taken(&short) {
        cut(&format!("tree-{short}"))
    } else {
        short
    }
}

/// Says that a kernel's source lacks a benchmark, and since when the other one has it.
fn describe_absence(benchmark: &Benchmark, source: &SourceText, other: &SourceText) -> String {
    let file = &benchmark.file;
    let since = source.added_by(file, other);
    let since = since.map_or_else(String::new, |commit| {
        format!(": it is there since {commit}")
    });
    format!("{} has no {file}{since}", other.name())
}

/// Says what is added to the kernel config of all sides.
fn describe(benchmark: &Benchmark, row: &str) -> String {
    let config = if benchmark.options.is_empty() {
        String::new()
    } else {
        format!(
            ", with {} in the config of each kernel",
            benchmark.options.join(",")
        )
    };
    format!("{row}: {} of {}{config}", benchmark.kind, benchmark.file)
}

#[cfg(test)]
mod tests {
    use super::{BenchmarkKind, check_parameters, parse};

    fn answer(kind: BenchmarkKind, written: &str) -> String {
        check_parameters(kind, &parse(written))
            .map_or_else(|error| error.to_string(), |()| "fits".to_owned())
    }

    #[test]
    fn parameters_are_judged_by_the_benchmark() {
        let (perf, module) = (BenchmarkKind::Perf, BenchmarkKind::Module);
        assert_eq!(answer(perf, "perf-sched-pipe:threaded:loop=10"), "fits");
        assert_eq!(answer(module, "test_vmalloc:nr_threads=1"), "fits");
        insta::assert_snapshot!(answer(perf, "perf-sched-pipe:--threaded"), @"`--threaded` is no option of perf bench: write tree:perf-sched-pipe:OPTION=VALUE, or tree:perf-sched-pipe:OPTION for a flag, without --");
        insta::assert_snapshot!(answer(perf, "perf-sched-pipe:"), @"`` is no option of perf bench: write tree:perf-sched-pipe:OPTION=VALUE, or tree:perf-sched-pipe:OPTION for a flag, without --");
        insta::assert_snapshot!(answer(module, "test_vmalloc:flag"), @"`flag` is no module parameter: write tree:test_vmalloc:PARAMETER=VALUE");
        insta::assert_snapshot!(answer(module, "x:a=\u{1b}[2J"), @r"`a=\u{1b}[2J` is no module parameter: write tree:x:PARAMETER=VALUE");
        insta::assert_snapshot!(answer(BenchmarkKind::Selftest, "gup-test:flag"), @"gup-test is a selftest, which takes no parameter flag");
    }
}
