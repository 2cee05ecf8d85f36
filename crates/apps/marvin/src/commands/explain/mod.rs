//! `marvin explain`: why a program or a workload is slow, or became slower.

mod kernels;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::explain::{Certainty, End, EndState, Explained, Finding, answer, document, json};
use clap::Args;
use machine::Switching;
use model::CostModel;
use observe::{Observation, ObserveError, Observed, Subject, Verification, observe, verify};
use signal_hook::consts::SIGINT;
use signal_hook::{SigId, flag};
use subprocess::quote_words;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::{MachineOptions, MeasureOptions, whole};
use crate::session::{Format, INTERRUPTED, Session};

pub(crate) const EXPLAIN_EXAMPLES: &str = "Examples:
  marvin explain -- ./benchmark --threads 8
  marvin explain --verify --rate rec/s -- ./benchmark
  marvin explain --pid 4711 --seconds 5
  marvin explain deb:6.12 --workload fault-anon
  marvin explain deb:6.1 deb:6.12 --workload fault-anon";

/// How long a process is observed (s).
pub(crate) const SECONDS: u32 = 30;

#[derive(Debug, Args)]
#[command(after_help = EXPLAIN_EXAMPLES)]
pub(crate) struct ExplainArguments {
    /// One kernel: where the time of a workload goes; two: why the second is slower or faster
    #[arg(add = completion::kernel(), num_args = 0..=2, value_name = "KERNEL", conflicts_with = "pid")]
    pub(crate) kernels: Vec<String>,

    /// Observe a running process and its children
    #[arg(long, conflicts_with = "program")]
    pub(crate) pid: Option<u32>,

    /// Observe for at most N seconds, and end a command that runs longer [default: until the
    /// command ends; 30 with --pid]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1, 86400))]
    pub(crate) seconds: Option<u32>,

    /// If the suspect can be switched off, run the command with and without it, in turns
    #[arg(long)]
    pub(crate) verify: bool,

    /// With --verify: compare the number before TEXT in the command's output, such as rec/s,
    /// instead of its duration
    #[arg(long, value_name = "TEXT", requires = "verify")]
    pub(crate) rate: Option<String>,

    /// With kernels, on the exact machine: also simulate a processor, as `marvin profile --model`
    /// does
    #[arg(long, value_name = "MODEL", num_args = 0..=1, require_equals = true, default_missing_value = CostModel::NAME,
          value_parser = CostModel::parse, requires = "kernels")]
    pub(crate) model: Option<CostModel>,

    #[command(flatten)]
    pub(crate) measure: MeasureOptions,

    #[command(flatten)]
    pub(crate) on: MachineOptions,

    /// Output format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Write to a file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

pub(crate) fn explain(session: &Session, command: &ExplainArguments) -> anyhow::Result<Exit> {
    if command.verify && !command.measure.program.is_given() {
        return Err(WrongInput(
            "--verify needs a command: marvin explain --verify -- COMMAND".into(),
        )
        .into());
    }
    let subject = match (
        command.pid,
        command.measure.program.program.as_slice(),
        command.kernels.as_slice(),
    ) {
        (Some(process), ..) => Subject::Process(process),
        (None, command @ [_, ..], []) => Subject::Command(command.to_vec()),
        (None, [], []) => {
            let text = "nothing to explain: give `-- COMMAND`, --pid PID, or one or two kernels with --workload";
            return Err(WrongInput(text.into()).into());
        }
        (None, _, _) => return kernels::kernels(session, command),
    };
    program(session, command, subject)
}

/// Explains a program on this host.
fn program(
    session: &Session,
    command: &ExplainArguments,
    subject: Subject,
) -> anyhow::Result<Exit> {
    let out = session.answer(command.output.as_deref())?;
    let home = session.home()?;
    match Switching::of_host(home).set_back_left() {
        Ok(None) => {}
        Ok(Some(note)) => crate::say(&format!("note: {note}")),
        Err(error) => crate::say(&format!("warning: {error}")),
    }
    // A process goes on; a command ends.
    let seconds = command.seconds.or(command.pid.is_some().then_some(SECONDS));
    let stop: Arc<AtomicBool> = Arc::default();
    let handler = note_interrupt(&stop);
    let observed = observe(&Observation {
        subject,
        seconds: seconds.map(f64::from),
        stop: Arc::clone(&stop),
    });
    handler.into_iter().for_each(|id| {
        signal_hook::low_level::unregister(id);
    });
    let is_interrupted = stop.load(Ordering::Relaxed);
    let observed = match observed {
        Err(error @ ObserveError::Failed(..)) => {
            crate::say(&format!("error: {error}"));
            return Ok(Exit::Subject);
        }
        observed => observed.map_err(|error| WrongInput(error.to_string()))?,
    };
    let end = end(command, &observed, is_interrupted);
    let Observed { facts, status, .. } = observed;
    let mut answer = answer(&facts);
    let is_verified =
        command.verify && !is_interrupted && status.is_some_and(|status| status.success());
    if let Some(cause) = answer.cause.take_if(|_| is_verified) {
        let progress = session.progress();
        let rate = command.rate.as_deref();
        let seconds = command.seconds;
        let verification = Verification {
            command: &command.measure.program.program,
            rate,
            seconds,
            home,
        };
        answer.cause = Some(verify(cause, verification, &|text| progress.say(text)));
        progress.end();
    }
    let exit = exit(command, status, answer.cause.as_ref());
    let explained = Explained {
        answer,
        facts,
        end,
        command: reproducer(command),
    };
    let text = match command.format {
        Format::Text => document(&explained)?.text(&out.styles()),
        Format::Markdown => document(&explained)?.markdown(),
        Format::Html => document(&explained)?.html()?,
        Format::Json => json(&explained)?,
    };
    out.write(&text)?;
    Ok(exit)
}

/// A command that fails has failed, as a kernel that does not complete its workloads; a cause that
/// was to be verified and was not is unclear.
fn exit(command: &ExplainArguments, status: Option<ExitStatus>, cause: Option<&Finding>) -> Exit {
    match cause {
        _ if status.is_some_and(|status| !status.success()) => Exit::Subject,
        Some(cause) if command.verify && cause.certainty < Certainty::Shown => Exit::Unclear,
        _ => Exit::Fine,
    }
}

/// Has the first Ctrl-C end the observation, and the second one Marvin.
fn note_interrupt(stop: &Arc<AtomicBool>) -> Vec<SigId> {
    let second = flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(stop));
    let first = flag::register(SIGINT, Arc::clone(stop));
    // Without a handler, Ctrl-C ends Marvin, as it ends any program.
    second.into_iter().chain(first).collect()
}

/// Describes how the program ended.
fn end(command: &ExplainArguments, observed: &Observed, is_interrupted: bool) -> End {
    let verified = if command.verify {
        "; nothing was verified"
    } else {
        ""
    };
    let Some(status) = observed.status else {
        let seconds = observed.facts.seconds;
        let (state, text) = match (command.pid, command.seconds) {
            (Some(_), _) if observed.has_ended => (
                EndState::Gone,
                "the process ended while it was observed".to_owned(),
            ),
            (None, _) if is_interrupted => (
                EndState::Interrupted,
                format!("interrupted after {seconds:.1} s: Marvin ended the command{verified}"),
            ),
            (Some(_), _) if is_interrupted => (
                EndState::Interrupted,
                format!("interrupted after {seconds:.1} s; the process runs on"),
            ),
            (None, Some(seconds)) => (
                EndState::CutShort,
                format!("Marvin ended the command after {seconds} s{verified}"),
            ),
            _ => (EndState::RunsOn, String::new()),
        };
        return End {
            text,
            state,
            ..End::default()
        };
    };
    let verified = if status.success() { "" } else { verified };
    let text = match (status.code(), status.signal()) {
        (Some(0), _) => "exit status 0".to_owned(),
        (Some(code), _) => format!("the command failed: exit status {code}{verified}"),
        (_, Some(signal)) => format!("the command was ended by signal {signal}{verified}"),
        _ => status.to_string(),
    };
    End {
        text,
        state: match status.code() {
            Some(0) => EndState::Succeeded,
            Some(_) => EndState::Failed,
            None => EndState::Killed,
        },
        exit_code: status.code(),
        signal: status.signal(),
    }
}

fn reproducer(command: &ExplainArguments) -> String {
    let arguments = command
        .measure
        .program
        .program
        .iter()
        .map(|word| word.to_string_lossy().into_owned());
    let mut begin = vec!["marvin".to_owned(), "explain".into()];
    if let Some(process) = command.pid {
        begin.extend(["--pid".into(), process.to_string()]);
    }
    begin.extend(
        command
            .seconds
            .iter()
            .flat_map(|seconds| ["--seconds".into(), seconds.to_string()]),
    );
    if command.verify {
        begin.push("--verify".into());
    }
    begin.extend(
        command
            .rate
            .iter()
            .flat_map(|text| ["--rate".into(), text.clone()]),
    );
    if command.pid.is_none() {
        begin.push("--".into());
    }
    begin
        .into_iter()
        .chain(arguments)
        .map(quote_word)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Quotes a word for a shell, if it needs that.
fn quote_word(word: String) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        quote_words([word])
    }
}
