//! Shared by `compare` and `run`: turns names into builds and words into workloads, and opens a lab
//! with progress.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use lab::Wanted;
use lab::{Dumps, Lab, LabSettings, Plan, Reuse, Sampled, Tools};
use machine::{Smp, SnapshotUse};
use model::{
    Build, Choice, KernelName, KernelNameError, Machine, SUITES, SelectionError, Suite, Workload,
};

use super::collector;
use super::tools::known_tools;
use super::tree::{around, settings};
use crate::cli::{Arguments, Measure, Noisy, OWN, On, own};
use crate::exit::WrongInput;
use crate::home::{open_lab, store};
use crate::progress::Progress;

/// Parses a kernel's name. Without a source, it is an existing file or, inside a kernel tree, a
/// revision.
pub(crate) fn kernel_name(text: &str) -> anyhow::Result<KernelName> {
    text.parse()
        .or_else(|error| match error {
            KernelNameError::Source(_) => bare(text).unwrap_or(Err(error)),
            _ => Err(error),
        })
        .map_err(|error| WrongInput(error.to_string()).into())
}

/// Returns the kernel of a name without a source; `None` if there is none.
fn bare(text: &str) -> Option<Result<KernelName, KernelNameError>> {
    let path = Path::new(text);
    if path.is_file() {
        return Some(Ok(KernelName::Path(path.to_owned())));
    }
    if format!("deb:{text}").parse::<KernelName>().is_ok() {
        return Some(Err(KernelNameError::Bare(text.to_owned())));
    }
    let is_path = text.contains('/') && !text.contains(':');
    (around().is_some() && !is_path).then(|| Ok(KernelName::Git(text.to_owned())))
}

/// Finds a suite.
pub(crate) fn suite(name: &str) -> anyhow::Result<&'static Arc<Suite>> {
    let unknown = || SelectionError::UnknownSuite(name.to_owned());
    model::suite(name)
        .ok_or_else(|| explain_selection_error(&unknown(), Vec::new(), Vec::new()).into())
}

/// The workloads to measure.
pub(crate) struct Chosen {
    pub(crate) suite: Arc<Suite>,
    pub(crate) workloads: Vec<Arc<Workload>>,
    /// All known tools.
    pub(crate) tools: Tools,
}

/// Selects workloads of a suite, and tools. If all are tools, the suite is theirs.
pub(crate) fn choose_workloads(arguments: &Arguments, measure: &Measure) -> anyhow::Result<Chosen> {
    choose(
        known_tools(arguments, &measure.manifest)?,
        &measure.suite,
        &measure.workload,
    )
}

/// Selects workloads of a suite and of these tools; the error for an unknown word suggests a
/// similar one.
pub(crate) fn choose(tools: Tools, suite_name: &str, words: &[String]) -> anyhow::Result<Chosen> {
    match model::choose(&tools.rows(), suite_name, words) {
        Ok(Choice { suite, workloads }) => Ok(Chosen {
            suite,
            workloads,
            tools,
        }),
        Err(error) => {
            let of_suite = model::suite(suite_name)
                .into_iter()
                .flat_map(|suite| names(suite));
            Err(explain_selection_error(&error, of_suite.collect(), tools.words()).into())
        }
    }
}

/// Selects workloads; the error for an unknown word suggests a similar one.
pub(crate) fn workloads(suite: &Suite, words: &[String]) -> anyhow::Result<Vec<Arc<Workload>>> {
    model::select(suite, words)
        .map_err(|error| explain_selection_error(&error, names(suite).collect(), Vec::new()).into())
}

/// The error for two commas in a row, or one at the end.
pub(super) const EMPTY_NAME: &str =
    "--workload has an empty name: write names with one comma between them, such as fault,fork";

/// Returns the error for a selection, with suggestions.
fn explain_selection_error(
    error: &SelectionError,
    of_suite: Vec<&str>,
    tools: Vec<&str>,
) -> WrongInput {
    WrongInput(match error {
        SelectionError::UnknownSuite(name) => {
            let names: Vec<&str> = SUITES.iter().map(|suite| suite.name).collect();
            format!(
                "{error}{}; there are {}",
                did_you_mean(names.iter().copied(), name),
                names.join(", ")
            )
        }
        SelectionError::UnknownTool(name) => {
            format!(
                "{error}{}; `marvin tools` lists them",
                did_you_mean(tools.into_iter(), name)
            )
        }
        SelectionError::UnknownWorkload(word) => {
            format!(
                "{error}{}; `marvin workloads` lists them",
                did_you_mean(of_suite.into_iter(), word)
            )
        }
        SelectionError::Nothing => EMPTY_NAME.to_owned(),
    })
}

/// Returns the words that select workloads of a suite.
fn names(suite: &Suite) -> impl Iterator<Item = &str> {
    suite.workloads.iter().flat_map(|workload| {
        [
            &*workload.name,
            workload.series(),
            model::group_of(workload),
        ]
    })
}

/// Selects one workload.
pub(crate) fn workload(suite: &Suite, word: &str) -> anyhow::Result<Arc<Workload>> {
    match workloads(suite, &[word.to_owned()])?.as_slice() {
        [one] => Ok(Arc::clone(one)),
        many => {
            let names: Vec<&str> = many.iter().map(|workload| &*workload.name).collect();
            Err(WrongInput(format!(
                "`{word}` means several workloads; name one: {}",
                names.join(", ")
            ))
            .into())
        }
    }
}

pub(crate) fn did_you_mean<'a>(names: impl Iterator<Item = &'a str>, word: &str) -> String {
    let nearest = names
        .map(|name| (strsim::damerau_levenshtein(name, word), name))
        .min()
        .filter(|(distance, name)| distance * 3 <= name.len().max(word.len()));
    nearest.map_or_else(String::new, |(_, name)| {
        format!(" (did you mean `{name}`?)")
    })
}

/// Opens the lab.
pub(crate) fn open(arguments: &Arguments, measure: &Measure) -> anyhow::Result<Lab> {
    open_with(arguments, measure, Tools::default())
}

/// Opens the lab, with tools.
pub(crate) fn open_with(
    arguments: &Arguments,
    measure: &Measure,
    tools: Tools,
) -> anyhow::Result<Lab> {
    open_on(Wanted::Exact, arguments, measure, tools)
}

/// Returns the machines to open with their names: Marvin's own, or servers of marvin.toml.
pub(crate) fn named_machines(
    arguments: &Arguments,
    on: &On,
) -> anyhow::Result<Vec<(String, Wanted)>> {
    machines_of_names(arguments, &on.names(), &on.noisy)
}

/// Processors that exact-smp may have.
const SMP: std::ops::RangeInclusive<u32> = 2..=4;

/// Returns the machines of these names.
pub(crate) fn machines_of_names(
    arguments: &Arguments,
    names: &[&str],
    noisy: &Noisy,
) -> anyhow::Result<Vec<(String, Wanted)>> {
    let servers = match names.iter().all(|name| own(name, noisy).is_some()) {
        true => Vec::new(),
        false => super::config::site(arguments)?.settings.servers,
    };
    let wanted = |name: &str| match own(name, noisy) {
        Some(Wanted::ExactSmp(Smp { cpus, .. })) if !SMP.contains(&cpus) => {
            let text = format!("exact-smp has 2 to 4 processors, not {cpus}: --cpus 2");
            Err(WrongInput(text).into())
        }
        Some(wanted) => Ok((name.to_owned(), wanted)),
        None => match servers.iter().find(|server| server.name == name) {
            Some(server) => Ok((name.to_owned(), Wanted::Server(Box::new(server.clone())))),
            None => {
                let known = OWN
                    .iter()
                    .map(|(name, _)| *name)
                    .chain(servers.iter().map(|server| &*server.name));
                let guess = did_you_mean(known, name);
                let text = format!(
                    "no machine `{name}`{guess}: Marvin has exact, exact-smp, vm and local, and those of [[machine]] in marvin.toml"
                );
                Err(WrongInput(text).into())
            }
        },
    };
    names.iter().map(|name| wanted(name)).collect()
}

/// Opens the lab on a machine, with tools.
pub(crate) fn open_on(
    wanted: Wanted,
    arguments: &Arguments,
    measure: &Measure,
    tools: Tools,
) -> anyhow::Result<Lab> {
    let wanted = match wanted {
        Wanted::Server(server) if measure.keep_dump => {
            Wanted::Server(Box::new(collector::saving(*server)?))
        }
        other => other,
    };
    let store = Some(store(arguments)?);
    let snapshots = if measure.no_snapshots {
        SnapshotUse::Never
    } else {
        SnapshotUse::Cached
    };
    let sources = settings(arguments, &measure.sources)?;
    open_lab(
        arguments,
        LabSettings {
            store,
            wanted,
            snapshots,
            tools,
            sources,
            ..LabSettings::default()
        },
    )
}

/// Returns the replicates to measure: seeds where they are exact, else boots, or the boot that this
/// host is in.
pub(crate) fn replicates(machine: &Machine, seeds: u64, boots: u64) -> Vec<u64> {
    let can = machine.capabilities();
    match (can.deterministic, can.boots) {
        (true, _) => (1..=seeds).collect(),
        (false, true) => (1..=boots).collect(),
        (false, false) => vec![machine::this_boot()],
    }
}

/// Finds builds. Checks all names before it fetches or builds the first kernel.
pub(crate) fn builds(
    lab: &Lab,
    names: &[KernelName],
    progress: &Progress,
) -> anyhow::Result<Vec<Build>> {
    for name in names {
        lab.check(name)
            .with_context(|| format!("cannot get the kernel {name}"))?;
    }
    names
        .iter()
        .map(|name| build(lab, name, progress))
        .collect()
}

/// Finds a build.
pub(crate) fn build(lab: &Lab, name: &KernelName, progress: &Progress) -> anyhow::Result<Build> {
    let shown = name.to_string();
    lab.build(name, &|step| progress.step(&shown, &step))
        .with_context(|| format!("cannot get the kernel {name}"))
}

/// Makes the tools' guest images.
pub(crate) fn prepare(
    lab: &Lab,
    workloads: &[Arc<Workload>],
    progress: &Progress,
) -> anyhow::Result<()> {
    lab.prepare(workloads, &|step| progress.step("tools", &step))
        .context("cannot make the guest image of a tool")
}

/// Returns the plan for these builds, workloads and seeds.
pub(crate) fn plan<'a>(
    measure: &Measure,
    builds: &'a [Build],
    suite: &'a Suite,
    workloads: &[Arc<Workload>],
    seeds: &[u64],
) -> Plan<'a> {
    Plan {
        sides: builds.iter().collect(),
        suite,
        workloads: workloads.to_vec(),
        replicates: seeds.to_vec(),
        machines: machines(measure),
        reuse: reuse(measure),
        dumps: if measure.keep_dump {
            Dumps::Keep
        } else {
            Dumps::Drop
        },
        sampled: Sampled::No,
    }
}

/// Returns how many machines run at the same time.
pub(crate) fn machines(measure: &Measure) -> usize {
    machines_of(measure.jobs)
}

/// Returns how many machines run at the same time: `jobs`, or a default for this host.
pub(crate) fn machines_of(jobs: Option<u16>) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    jobs.map_or(processors.min(2), usize::from)
}

/// Returns whether to use earlier results.
pub(crate) fn reuse(measure: &Measure) -> Reuse {
    if measure.force {
        Reuse::Nothing
    } else {
        Reuse::Stored
    }
}
