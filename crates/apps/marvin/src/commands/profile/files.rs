//! `marvin profile` of two files, or of two directories of them: profiles of other programs.

use std::path::Path;

use config::LeafProfile;
use profile::sampled::{FileDifference, FileSide};
use results::import::read_profiles;
use subprocess::quote_words;

use super::ProfileArguments;
use crate::exit::{Exit, WrongInput};
use crate::options::EXACT;
use crate::session::{Format, Session};

/// Returns whether a word means files: a file, or a directory that is written as a path. Names of
/// branches may be those of directories.
fn is_files(word: &str) -> bool {
    let path = Path::new(word);
    path.is_file() || (word.contains('/') && path.is_dir())
}

/// Returns whether both sides are files.
///
/// # Errors
/// If one is, and the other is not.
pub(crate) fn are_files(command: &ProfileArguments) -> Result<bool, WrongInput> {
    match [&command.base, &command.new].map(|word| is_files(word)) {
        [true, true] => Ok(true),
        [false, false] => Ok(false),
        [first, _] => {
            let (file, other) = if first {
                (&command.base, &command.new)
            } else {
                (&command.new, &command.base)
            };
            // Names of kernels have a colon, and dots before numbers.
            let extension = Path::new(other).extension().and_then(|end| end.to_str());
            let is_word = |end: &str| end.chars().all(|letter| letter.is_ascii_alphabetic());
            let is_path = other.contains('/') || extension.is_some_and(is_word);
            if is_path && !other.contains(':') && !Path::new(other).exists() {
                return Err(WrongInput(format!("{other} does not exist")));
            }
            Err(WrongInput(format!(
                "{file} is a file and {other} is not: name two profiles, or two kernels; a directory of profiles ends with /"
            )))
        }
    }
}

pub(crate) fn profile(session: &Session, command: &ProfileArguments) -> anyhow::Result<Exit> {
    let of_kernels = [
        (command.model.is_some(), "--model"),
        (command.path, "--path"),
        (command.no_calls, "--no-calls"),
        (command.folded.is_some(), "--folded"),
        (command.pprof.is_some(), "--pprof"),
        (command.firefox.is_some(), "--firefox"),
        (!command.measure.workload.is_empty(), "--workload"),
        (command.measure.suite.is_some(), "--suite"),
        (command.measure.program.is_given(), "a program behind --"),
        (command.measure.force, "--force"),
        (command.on.on != [EXACT], "--on"),
        (command.on.noisy.boots.is_some(), "--boots"),
        (command.seeds.given().is_some(), "--seeds"),
    ];
    if let Some((_, option)) = of_kernels.into_iter().find(|(given, _)| *given) {
        return Err(WrongInput(format!("{option} is for kernels: these are files")).into());
    }
    let answer = session.answer(command.output.as_deref())?;
    let [base, new] = [&command.base, &command.new].map(|word| read_profiles(Path::new(word)));
    let (base, new) = (base.map_err(WrongInput)?, new.map_err(WrongInput)?);
    let event = base[0].event.clone();
    if let Some(other) = base.iter().chain(&new).find(|file| file.event != event) {
        let text = format!(
            "these files do not count the same: {event} and {}: record all with one event",
            other.event
        );
        return Err(WrongInput(text).into());
    }
    let notes = base.iter().chain(&new).flat_map(|file| &file.left_out);
    let mut notes: Vec<String> = notes.map(|(what, why)| format!("{what}: {why}")).collect();
    notes.sort();
    notes.dedup();
    let again = quote_words([&command.base, &command.new]);
    let again = format!("marvin profile {again}");
    let sides = [(&command.base, base), (&command.new, new)].map(|(word, files)| side(word, files));
    let difference = FileDifference::new(&sides[0], &sides[1], event, notes, again)
        .map_err(|why| WrongInput(format!("cannot compare these profiles: {why}")))?;
    let document = difference.document(command.lines);
    let text = match command.format {
        Format::Text => document.text(&answer.styles()),
        Format::Markdown => document.markdown(),
        Format::Html => document.html()?,
        Format::Json => difference.json()?,
    };
    answer.write(&text)?;
    Ok(Exit::Fine)
}

fn side(word: &str, files: Vec<LeafProfile>) -> FileSide {
    FileSide {
        title: model::sanitize_line(word),
        idle: files.iter().map(|file| file.idle).sum(),
        files: files.into_iter().map(|file| file.functions).collect(),
    }
}
