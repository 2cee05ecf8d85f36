//! `marvin explain`: why a program or a workload is slow, or became slower.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use ::explain::{Certainty, End, Explained, Finding, answer, document, json};
use machine::Switching;
use observe::{Observation, ObserveError, Observed, Subject, Verification, observe, verify};

use crate::answer::Answer;
use crate::cli::{Arguments, Explain, Format, SECONDS};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

pub(crate) fn explain(arguments: &Arguments, command: &Explain) -> anyhow::Result<Exit> {
    if command.verify && command.command.is_empty() {
        return Err(WrongInput(
            "--verify needs a command: marvin explain --verify -- COMMAND".into(),
        )
        .into());
    }
    let subject = match (
        command.pid,
        command.command.as_slice(),
        command.kernels.as_slice(),
    ) {
        (Some(process), ..) => Subject::Process(process),
        (None, words @ [_, ..], _) => Subject::Command(words.to_vec()),
        (None, [], []) => {
            let text = "nothing to explain: give `-- COMMAND`, --pid PID, or one or two kernels with --workload";
            return Err(WrongInput(text.into()).into());
        }
        (None, [], _) => return super::explain_kernels::kernels(arguments, command),
    };
    program(arguments, command, subject)
}

/// Explains a program on this host.
fn program(arguments: &Arguments, command: &Explain, subject: Subject) -> anyhow::Result<Exit> {
    let out = Answer::open(command.output.as_deref())?;
    let home = crate::home::home(arguments.home.as_deref())?;
    match Switching::of_host(&home).set_back_left() {
        Ok(None) => {}
        Ok(Some(said)) => crate::say(&format!("note: {said}")),
        Err(error) => crate::say(&format!("warning: {error}")),
    }
    // A process goes on; a command ends.
    let seconds = command.seconds.or(command.pid.is_some().then_some(SECONDS));
    let observed = match observe(&Observation {
        subject,
        seconds: seconds.map(f64::from),
    }) {
        Err(error @ ObserveError::Failed(..)) => {
            crate::say(&format!("error: {error}"));
            return Ok(Exit::Subject);
        }
        observed => observed.map_err(|error| WrongInput(error.to_string()))?,
    };
    let end = end(command, &observed);
    let Observed { facts, status, .. } = observed;
    let mut answer = answer(&facts);
    let is_verified = command.verify && status.is_some_and(|status| status.success());
    if let Some(cause) = answer.cause.take_if(|_| is_verified) {
        let progress = Progress::new(arguments.quiet);
        let (rate, seconds) = (command.rate.as_deref(), command.seconds);
        let verification = Verification {
            words: &command.command,
            rate,
            seconds,
            home: &home,
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
        Format::Text => document(&explained)?.text(&out.styles(arguments.color)),
        Format::Markdown => document(&explained)?.markdown(),
        Format::Html => document(&explained)?.html()?,
        Format::Json => json(&explained)?,
    };
    out.write(&text)?;
    Ok(exit)
}

/// A command that fails has failed, as a kernel that does not complete its workloads; a cause that
/// was to be verified and was not is unclear.
fn exit(command: &Explain, status: Option<ExitStatus>, cause: Option<&Finding>) -> Exit {
    match cause {
        _ if status.is_some_and(|status| !status.success()) => Exit::Subject,
        Some(cause) if command.verify && cause.certainty < Certainty::Shown => Exit::Unclear,
        _ => Exit::Fine,
    }
}

/// Describes how the program ended.
fn end(command: &Explain, observed: &Observed) -> End {
    let verified = if command.verify {
        "; nothing was verified"
    } else {
        ""
    };
    let Some(status) = observed.status else {
        let text = match (command.pid, command.seconds) {
            (None, Some(seconds)) => {
                format!("Marvin ended the command after {seconds} s{verified}")
            }
            (Some(_), _) if observed.has_ended => {
                "the process ended while it was observed".to_owned()
            }
            _ => String::new(),
        };
        return End {
            text,
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
        exit_code: status.code(),
        signal: status.signal(),
    }
}

fn reproducer(command: &Explain) -> String {
    let words = command
        .command
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
    begin.into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
