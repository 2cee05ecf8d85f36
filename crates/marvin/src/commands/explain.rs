//! `marvin explain`: why a program or a workload is slow, or became slower.

use explain::{Explained, answer, document, json};
use observe::{Observation, Observed, Subject, observe};

use crate::answer::Answer;
use crate::cli::{Arguments, Explain, Format};
use crate::exit::{Exit, WrongInput};

pub(crate) fn explain(arguments: &Arguments, command: &Explain) -> anyhow::Result<Exit> {
    let subject = match (command.pid, command.command.as_slice(), command.kernels.as_slice()) {
        (Some(process), ..) => Subject::Process(process),
        (None, words @ [_, ..], _) => Subject::Command(words.to_vec()),
        (None, [], []) => {
            let text = "nothing to explain: give `-- COMMAND`, --pid PID, or one or two kernels with --workload";
            return Err(WrongInput(text.into()).into());
        }
        (None, [], _) => return Err(WrongInput("kernels: not yet".into()).into()),
    };
    program(arguments, command, subject)
}

/// Explains a program on this host.
fn program(arguments: &Arguments, command: &Explain, subject: Subject) -> anyhow::Result<Exit> {
    let out = Answer::open(command.output.as_deref())?;
    let observation = Observation { subject, seconds: f64::from(command.seconds), without: Vec::new() };
    let Observed { facts, status } = observe(&observation).map_err(|error| WrongInput(error.to_string()))?;
    let answer = answer(&facts);
    let _ = status;
    let explained = Explained { answer, facts, verified: Vec::new(), command: reproducer(command) };
    let text = match command.format {
        Format::Text => document(&explained).text(&out.styles(arguments.color)),
        Format::Markdown => document(&explained).markdown(),
        Format::Html => document(&explained).html()?,
        Format::Json => json(&explained)?,
    };
    out.write(&text)?;
    Ok(Exit::Fine)
}

fn reproducer(command: &Explain) -> String {
    let words = command.command.iter().map(|word| word.to_string_lossy().into_owned());
    let begin = ["marvin".to_owned(), "explain".into()].into_iter();
    match command.pid {
        Some(process) => format!("marvin explain --pid {process}"),
        None => begin.chain(["--".into()]).chain(words).collect::<Vec<_>>().join(" "),
    }
}
