//! `marvin explain`: why a program or a workload is slow, or became slower.

use std::process::ExitStatus;

use ::explain::{Explained, answer, document, json};
use observe::{Observation, Observed, Subject, observe};

use super::verify::{set_back, verify};
use crate::answer::Answer;
use crate::cli::{Arguments, Explain, Format, SECONDS};
use crate::exit::{Exit, WrongInput};
use crate::progress::Progress;

pub(crate) fn explain(arguments: &Arguments, command: &Explain) -> anyhow::Result<Exit> {
    if command.verify && command.command.is_empty() {
        return Err(WrongInput("--verify needs a command: marvin explain --verify -- COMMAND".into()).into());
    }
    let subject = match (command.pid, command.command.as_slice(), command.kernels.as_slice()) {
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
    set_back(&home);
    let observation = Observation { subject, seconds: f64::from(command.seconds), without: Vec::new() };
    let Observed { facts, status } = observe(&observation).map_err(|error| WrongInput(error.to_string()))?;
    let mut answer = answer(&facts);
    let is_verified = command.verify && status.is_some_and(|status| status.success());
    if let Some(cause) = answer.cause.take() {
        let progress = Progress::new(arguments.quiet);
        let rate = command.rate.as_deref();
        let verified = |cause| verify(cause, &command.command, rate, command.seconds, &home, &progress);
        answer.cause = Some(if is_verified { verified(cause)? } else { cause });
        progress.end();
    }
    let explained = Explained { answer, facts, ended: ended(command, status), command: reproducer(command) };
    let text = match command.format {
        Format::Text => document(&explained)?.text(&out.styles(arguments.color)),
        Format::Markdown => document(&explained)?.markdown(),
        Format::Html => document(&explained)?.html()?,
        Format::Json => json(&explained)?,
    };
    out.write(&text)?;
    Ok(Exit::Fine)
}

/// Describes an end of the command that the reader has to know; empty if it was as expected.
fn ended(command: &Explain, status: Option<ExitStatus>) -> String {
    let verified = if command.verify { "; nothing was verified" } else { "" };
    match status {
        None if command.pid.is_none() => format!("Marvin ended the command after {} s{verified}", command.seconds),
        Some(status) if !status.success() => format!("the command failed: {status}{verified}"),
        _ => String::new(),
    }
}

fn reproducer(command: &Explain) -> String {
    let words = command.command.iter().map(|word| word.to_string_lossy().into_owned());
    let mut begin = vec!["marvin".to_owned(), "explain".into()];
    if let Some(process) = command.pid {
        begin.extend(["--pid".into(), process.to_string()]);
    }
    if command.seconds != SECONDS {
        begin.extend(["--seconds".into(), command.seconds.to_string()]);
    }
    if command.verify {
        begin.push("--verify".into());
    }
    begin.extend(command.rate.iter().flat_map(|text| ["--rate".into(), text.clone()]));
    if command.pid.is_none() {
        begin.push("--".into());
    }
    begin.into_iter().chain(words).collect::<Vec<_>>().join(" ")
}
