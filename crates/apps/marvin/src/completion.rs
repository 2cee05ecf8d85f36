//! Completes words for shells: kernels, revisions, configs, machines, workloads, suites, runs,
//! alerts and jobs. The shell calls
//! `marvin` with the variable COMPLETE (protocol of clap_complete). An unusable store or a slow one
//! gives no candidates, never an error.

mod bash;
mod sources;

use std::ffi::{OsStr, OsString};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use clap_complete::Shell;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use model::{KERNEL_PARTS, SUITES, Suite};
use store::{Listed, Store};

use crate::options::OWN_MACHINES;
use crate::session::{GlobalOptions, Session};
pub(crate) use sources::{configuration, revision, tree_name};

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "COMPLETE";
/// Time limit for candidates from the store: a user who types does not wait longer.
const DEADLINE: Duration = Duration::from_millis(80);
/// Time limit for candidates from an archive's lists, which are verified.
const LISTS_DEADLINE: Duration = Duration::from_millis(400);
const RUNS_MAX: usize = 50;
/// The end of the script for zsh: if zsh loads it from a directory of its functions, it expects
/// candidates at once.
const AUTOLOADED: &str =
    "[[ ${funcstack[1]} == _marvin ]] && _clap_dynamic_completer_marvin \"$@\"\n";
/// What kernel names begin with.
const SOURCES: [&str; 11] = [
    "deb:",
    "ubuntu:",
    "fedora:",
    "arch:",
    "installed:",
    "path:",
    "git:",
    "patch:",
    "tree:",
    "deb-src:",
    "kernel.org:",
];

/// Shells that Marvin completes for; its own adapter for bash keeps words with colons whole.
const SHELLS: &[&dyn EnvCompleter] = &[
    &bash::Bash,
    &clap_complete::env::Zsh,
    &clap_complete::env::Fish,
    &clap_complete::env::Elvish,
    &clap_complete::env::Powershell,
];

/// Answers a shell that asks for completions, and exits; returns otherwise.
pub(crate) fn answer(command: fn() -> clap::Command) {
    if std::env::var_os(VARIABLE).is_some_and(|shell| !shell.is_empty()) {
        // A shell prints all complaints into the user's line.
        std::panic::set_hook(Box::new(|_| {}));
        CompleteEnv::with_factory(command)
            .var(VARIABLE)
            .shells(Shells(SHELLS))
            .complete();
    }
}

/// Returns the script that makes a shell ask Marvin for completions.
pub(crate) fn script(shell: Shell) -> anyhow::Result<Vec<u8>> {
    let name = shell.to_string();
    let adapter = Shells(SHELLS)
        .completer(&name)
        .with_context(|| format!("cannot complete for {name}"))?;
    let mut text = Vec::new();
    adapter.write_registration(VARIABLE, "marvin", "marvin", "marvin", &mut text)?;
    if shell == Shell::Zsh {
        text.extend_from_slice(AUTOLOADED.as_bytes());
    }
    Ok(text)
}

/// Completes a kernel name: measured kernels, sources, and files behind `path:` and `tree:`.
pub(crate) fn kernel() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let text = word.to_string_lossy();
        let file = ["path:", "tree:", "patch:"]
            .into_iter()
            .find_map(|source| Some((source, text.strip_prefix(source)?)));
        if let Some((source, path)) = file {
            let completer = if source == "tree:" {
                PathCompleter::dir()
            } else {
                PathCompleter::file()
            };
            let found = completer.complete(OsStr::new(path)).into_iter();
            return found
                .map(|candidate| candidate.add_prefix(source))
                .collect();
        }
        if let Some(revision) = text.strip_prefix("git:") {
            return sources::revisions(revision)
                .into_iter()
                .map(|candidate| candidate.add_prefix("git:"))
                .collect();
        }
        let packages = sources::packages(&text).unwrap_or_default();
        let revisions = match text.contains([':', '/']) {
            true => Vec::new(),
            false => sources::revisions(&text),
        };
        // A source that is typed in full is not suggested.
        let sources = SOURCES
            .into_iter()
            .filter(|source| *source != text)
            .map(CompletionCandidate::new);
        let measured = from_store(kernels).into_iter();
        let all = measured.chain(packages).chain(sources).chain(revisions);
        distinct(beginning(word, all))
    })
}

/// Completes a kernel or run that `marvin report` finds in the store.
pub(crate) fn measured() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        from_store(|store| {
            let mut found = kernels(store)?;
            for run in store.runs(usize::MAX)? {
                found.push(candidate(&run.version, &run.kernel.to_string()));
            }
            found.extend(run_ids(store)?);
            Ok(found)
        })
    })
}

/// Completes a run id.
pub(crate) fn run() -> ArgValueCandidates {
    ArgValueCandidates::new(|| from_store(run_ids))
}

/// Completes the number of an open job.
pub(crate) fn job() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        from_store(|store| {
            let jobs = store.queued_jobs(Listed::Open)?;
            Ok(jobs
                .iter()
                .map(|job| candidate(&job.number.to_string(), &job.new.work.to_string()))
                .collect())
        })
    })
}

/// Completes a machine to measure on.
pub(crate) fn machine() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let own = OWN_MACHINES
            .iter()
            .map(|(name, about)| candidate(name, about));
        own.chain(servers()).collect()
    })
}

/// Completes a machine whose numbers repeat exactly.
pub(crate) fn exact_machine() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        OWN_MACHINES[..2]
            .iter()
            .map(|(name, about)| candidate(name, about))
            .collect()
    })
}

/// Completes a server of marvin.toml.
pub(crate) fn server() -> ArgValueCandidates {
    ArgValueCandidates::new(servers)
}

fn servers() -> Vec<CompletionCandidate> {
    let found = within(|session| {
        let servers = &session.config()?.settings.servers;
        Ok(servers
            .iter()
            .map(|server| candidate(&server.name, "[[machine]] of marvin.toml"))
            .collect())
    });
    found.unwrap_or_default()
}

pub(crate) fn alert() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let found = within(|session| {
            let snapshot = session.read_history()?;
            Ok(snapshot
                .alerts
                .iter()
                .map(|one| {
                    let about = format!("{} worse", one.alert.worse().count());
                    candidate(&one.alert.name, &about)
                })
                .collect::<Vec<_>>())
        });
        distinct(found.unwrap_or_default())
    })
}

pub(crate) fn suite() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let suites = SUITES.iter();
        let suites = suites.map(|suite| candidate(suite.name, suite.purpose));
        let of_part = |part: &model::KernelPart| {
            candidate(
                part.suite,
                &format!("rows of paths that enter {}", part.name),
            )
        };
        suites.chain(KERNEL_PARTS.iter().map(of_part)).collect()
    })
}

/// Completes a workload or a group: of the suite that the user typed, otherwise of all; and
/// external tools.
pub(crate) fn workload() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let suites: Vec<&Arc<Suite>> = match typed("--suite") {
            Some(name) => model::suite(&name.to_string_lossy()).into_iter().collect(),
            None => SUITES.iter().collect(),
        };
        let mut found = Vec::new();
        for workload in suites.into_iter().flat_map(|suite| &suite.workloads) {
            found.push(candidate(workload.series(), &workload.stresses));
            found.push(candidate(model::group_of(workload), "group"));
        }
        let tools = within(|session| session.tools(&[])).unwrap_or_default();
        for word in tools.terms() {
            found.push(candidate(
                &format!("{}{word}", model::TOOL),
                "external tool",
            ));
        }
        distinct(found)
    })
}

/// Lists kernel names by which builds were measured.
fn kernels(store: &Store) -> anyhow::Result<Vec<CompletionCandidate>> {
    Ok(store
        .kernels()?
        .into_iter()
        .map(|seen| candidate(&seen.name, &seen.build.short()))
        .collect())
}

fn run_ids(store: &Store) -> anyhow::Result<Vec<CompletionCandidate>> {
    Ok(store
        .runs(RUNS_MAX)?
        .iter()
        .map(|run| {
            let about = format!("{} {} seed {}", run.version, run.suite, run.seed);
            candidate(&run.id.short(), &about)
        })
        .collect())
}

fn candidate(word: &str, about: &str) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(about.to_owned().into()))
}

/// Keeps the first of candidates with the same word.
fn distinct(candidates: Vec<CompletionCandidate>) -> Vec<CompletionCandidate> {
    let mut seen = std::collections::HashSet::new();
    candidates
        .into_iter()
        .filter(|candidate| seen.insert(candidate.get_value().to_owned()))
        .collect()
}

fn beginning(
    word: &OsStr,
    all: impl Iterator<Item = CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    let word = word.as_encoded_bytes();
    all.filter(|candidate| candidate.get_value().as_encoded_bytes().starts_with(word))
        .collect()
}

/// Returns candidates from the store; none if it is unusable or slow.
fn from_store(
    list: impl FnOnce(&Store) -> anyhow::Result<Vec<CompletionCandidate>> + Send + 'static,
) -> Vec<CompletionCandidate> {
    let found = within(|session| list(&session.open_store_read_only()?));
    distinct(found.unwrap_or_default())
}

/// The global options of a command line that is not finished yet.
#[derive(Debug, Parser)]
struct TypedOptions {
    #[command(flatten)]
    global: GlobalOptions,
}

/// Calls a function with a session of the options that the user typed; returns None if it fails or
/// misses the deadline.
fn within<T: Send + 'static>(
    call: impl FnOnce(&Session) -> anyhow::Result<T> + Send + 'static,
) -> Option<T> {
    within_time(DEADLINE, call)
}

/// Does the same with another deadline.
fn within_time<T: Send + 'static>(
    deadline: Duration,
    call: impl FnOnce(&Session) -> anyhow::Result<T> + Send + 'static,
) -> Option<T> {
    let mut arguments: Vec<OsString> = vec!["marvin".into()];
    for option in ["--home", "--store", "--config-file"] {
        arguments.extend(
            typed(option)
                .into_iter()
                .flat_map(|value| [option.into(), value]),
        );
    }
    let TypedOptions { global } = TypedOptions::try_parse_from(arguments).ok()?;
    let session = Session::new(global);
    let (sender, receiver) = channel();
    // The thread may be in a connection to a server: it ends with the process.
    std::thread::spawn(move || drop(sender.send(call(&session).ok())));
    receiver.recv_timeout(deadline).ok()?
}

/// Returns the value of an option in the words that the shell passes: `--home DIR` or `--home=DIR`.
fn typed(option: &str) -> Option<OsString> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let place = arguments.iter().rposition(|word| word == option);
    let apart = place
        .and_then(|place| arguments.get(place + 1))
        .filter(|value| !value.is_empty());
    apart.cloned().or_else(|| {
        let value = arguments
            .iter()
            .find_map(|word| word.to_str()?.strip_prefix(option)?.strip_prefix('='))?;
        Some(value.into())
    })
}
