//! Chooses suites and workloads by name; an error suggests a similar one.

use std::sync::Arc;

use lab::{OwnProgramError, PreparedProgram, Tools};
use model::{
    CONTENTION, Choice, KERNEL_PARTS, KernelName, MICRO, SUITES, SelectionError, Suite, Workload,
    sanitize_line,
};

use super::{BenchmarkChoice, TREE, add_benchmarks, did_you_mean};
use crate::exit::WrongInput;
use crate::options::{MeasureOptions, ProgramOptions};
use crate::session::Session;

pub(crate) fn find_suite(name: &str) -> anyhow::Result<&'static Arc<Suite>> {
    model::suite(name).ok_or_else(|| {
        let unknown = SelectionError::UnknownSuite(name.to_owned());
        explain_selection_error(&unknown, Vec::new(), Vec::new()).into()
    })
}

/// The workloads to measure.
pub(crate) struct ChosenWorkloads {
    pub(crate) suite: Arc<Suite>,
    pub(crate) workloads: Vec<Arc<Workload>>,
    pub(crate) tools: Tools,
}

/// Selects workloads of a suite, and tools. If all are tools, the suite is theirs. `kernels` are
/// those of the command, the oldest first: benchmarks of the kernel's source come from theirs.
pub(crate) fn choose_workloads(
    session: &Session,
    measure: &MeasureOptions,
    kernels: &[KernelName],
) -> anyhow::Result<ChosenWorkloads> {
    choose_workloads_of(session, measure, measure.suite(), kernels)
}

/// The same from another suite than the one that is usual.
pub(crate) fn choose_workloads_of(
    session: &Session,
    measure: &MeasureOptions,
    suite: &str,
    kernels: &[KernelName],
) -> anyhow::Result<ChosenWorkloads> {
    let tools = session.tools(&measure.manifest)?;
    if measure.program.is_given() {
        return choose_program(session, &measure.program, tools);
    }
    let choice = BenchmarkChoice {
        sources: &measure.sources,
        program: &measure.program,
        kernels,
    };
    let (tools, words) = add_benchmarks(session, &choice, tools, &measure.workload)?;
    choose_named_workloads(tools, suite, &words)
}

/// Makes workloads of a program of the user's own.
pub(crate) fn choose_program(
    session: &Session,
    options: &ProgramOptions,
    tools: Tools,
) -> anyhow::Result<ChosenWorkloads> {
    let home = session.home()?;
    let prepared =
        lab::prepare_program(&options.request()?, &tools, home).map_err(explain_program_error)?;
    let name = prepared.tool.name.clone();
    if !session.is_quiet() {
        for text in describe_program(&prepared) {
            crate::say(&text);
        }
    }
    let tools = tools.with_program(prepared.tool);
    Ok(ChosenWorkloads {
        suite: Arc::clone(tools.suite()),
        workloads: tools.select(&name),
        tools,
    })
}

/// Says in one line why a program cannot be measured: names of files may have line breaks. What
/// the user did not choose is no mistake of his.
pub(crate) fn explain_program_error(error: OwnProgramError) -> anyhow::Error {
    let text = sanitize_line(&error.to_string());
    match error {
        OwnProgramError::Write { .. } | OwnProgramError::Directory(_) => anyhow::Error::msg(text),
        _ => WrongInput(text).into(),
    }
}

/// Says what goes into the guest, and what may be missing there.
pub(crate) fn describe_program(prepared: &PreparedProgram) -> Vec<String> {
    let mut lines = Vec::new();
    let workload = &prepared.tool.workloads[0];
    lines.push(format!(
        "{}: {:.1} MB of files, in a guest of {} MiB",
        workload.name,
        prepared.bytes as f64 / 1e6,
        workload.memory_mib
    ));
    for (paths, about) in [
        (
            &prepared.missing,
            "which its files name and this host has not",
        ),
        (
            &prepared.left_out,
            "which a guest cannot get: no regular file, or a link to nowhere",
        ),
    ] {
        if !paths.is_empty() {
            lines.push(format!(
                "{}: without {}, {about}",
                workload.name,
                list_some(paths)
            ));
        }
    }
    lines
}

/// Returns the first paths, and how many more there are.
fn list_some(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = paths.iter().take(SHOWN).map(|path| sanitize_line(path));
    let shown: Vec<String> = shown.collect();
    let more = paths.len() - shown.len();
    if more > 0 {
        format!("{} and {more} more", shown.join(", "))
    } else {
        shown.join(", ")
    }
}

/// Selects workloads of a suite and of these tools; the error for an unknown word suggests a
/// similar one.
pub(crate) fn choose_named_workloads(
    tools: Tools,
    suite_name: &str,
    terms: &[String],
) -> anyhow::Result<ChosenWorkloads> {
    match model::choose(&tools.rows(), suite_name, terms) {
        Ok(Choice { suite, workloads }) => Ok(ChosenWorkloads {
            suite,
            workloads,
            tools,
        }),
        Err(error) => {
            let of_suite = model::suite(suite_name)
                .into_iter()
                .flat_map(|suite| names(suite));
            Err(explain_selection_error(&error, of_suite.collect(), tools.terms()).into())
        }
    }
}

/// Selects workloads; the error for an unknown word suggests a similar one.
pub(crate) fn select_workloads(
    suite: &Suite,
    terms: &[String],
) -> anyhow::Result<Vec<Arc<Workload>>> {
    model::select(suite, terms)
        .map_err(|error| explain_selection_error(&error, names(suite).collect(), Vec::new()).into())
}

/// The error for two commas in a row, or one at the end.
pub(crate) const EMPTY_NAME: &str =
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
            let parts = KERNEL_PARTS.iter().map(|part| part.suite);
            format!(
                "{error}{}; there are {}",
                did_you_mean(names.iter().copied().chain(parts), name),
                names.join(", ")
            )
        }
        SelectionError::UnknownTool(name) => {
            format!(
                "{error}{}; `marvin tools` lists them",
                did_you_mean(tools.into_iter(), name)
            )
        }
        SelectionError::UnknownWorkload(word) if word.starts_with(TREE) => format!(
            "{word} is a benchmark of the kernel's source, which only compare, run, profile and explain on exact, series \
             and bisect run"
        ),
        SelectionError::UnknownWorkload(word) if is_elsewhere(word) => {
            let suite = model::usual_suite(std::slice::from_ref(word)).name;
            format!("{word} is of the suite {suite}, and one command measures rows of one suite")
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

/// Returns whether a suite knows a word.
fn is_elsewhere(word: &str) -> bool {
    let words = [word.to_owned()];
    model::select(model::usual_suite(&words), &words).is_ok()
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

pub(crate) fn select_workload(suite: &Suite, word: &str) -> anyhow::Result<Arc<Workload>> {
    match select_workloads(suite, &[word.to_owned()])?.as_slice() {
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

/// Returns a suite; the one that is chosen without a word is for one processor.
pub(crate) fn smp_suite(name: &str) -> anyhow::Result<&'static Arc<Suite>> {
    if name == MICRO.name {
        Ok(&CONTENTION)
    } else {
        find_suite(name)
    }
}
