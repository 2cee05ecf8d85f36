//! `marvin profile` on the exact machine with several processors: which lines of memory both
//! kernels move between them.

use lab::Wanted;
use profile::transfers::{Shared, document, json};

use super::{ProfileArguments, kernel_words};
use crate::exit::{Exit, WrongInput};
use crate::measure::{FollowedLines, follow_lines, kernel_titles};
use crate::session::{Format, Session};

pub(crate) fn profile(
    session: &Session,
    command: &ProfileArguments,
    wanted: &Wanted,
) -> anyhow::Result<Exit> {
    let counted_only = [
        (command.model.is_some(), "--model"),
        (command.no_calls, "--no-calls"),
        (command.folded.is_some(), "--folded"),
        (command.pprof.is_some(), "--pprof"),
        (command.firefox.is_some(), "--firefox"),
    ];
    if let Some((_, option)) = counted_only.into_iter().find(|(given, _)| *given) {
        return Err(WrongInput(format!(
            "{option} needs --on exact: exact-smp follows lines, not calls"
        ))
        .into());
    }
    let names = command.kernel_names()?;
    let answer = session.answer(command.output.as_deref())?;
    let seeds: Vec<u64> = (1..=command.seed_count()).collect();
    let FollowedLines {
        lab,
        builds,
        differences,
        machine,
        missing,
        ..
    } = follow_lines(session, &command.measure, &names, &seeds, wanted)?;
    let [base, new] = kernel_titles(&builds);
    let arguments = kernel_words(command, &builds)
        .into_iter()
        .chain(command.on.arguments(false))
        .chain(command.measure.program.tail());
    let command_line = arguments.collect::<Vec<_>>().join(" ");
    let command_line = lab.machine().exact_cpu().repeat(command_line);
    let functions_max = command.lines;
    let shared = Shared {
        base,
        new,
        machine,
        seeds,
        differences,
        missing,
        command: command_line,
        functions_max,
    };
    let text = match command.format {
        Format::Text => document(&shared).text(&answer.styles()),
        Format::Markdown => document(&shared).markdown(),
        Format::Html => document(&shared).html()?,
        Format::Json => json(&shared)?,
    };
    answer.write(&text)?;
    Ok(if shared.differences.is_empty() {
        Exit::Subject
    } else {
        Exit::Fine
    })
}
