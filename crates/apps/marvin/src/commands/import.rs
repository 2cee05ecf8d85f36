//! `marvin import`: imports results of other suites.

use std::collections::BTreeMap;

use document::layout::{Page, WIDTH, command_lines};
use document::number::count;
use results::import::{ForeignSuite, Imported, Kernels, LeftOut, order_kernels};
use store::{Location, Store};

use super::stored::words_of;
use crate::answer::Answer;
use crate::cli::{Arguments, Foreign, Import};
use crate::exit::Exit;
use crate::home::{home, store};

pub(crate) fn import(arguments: &Arguments, command: &Import) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let suite = match command.suite {
        Foreign::Mmtests => ForeignSuite::Mmtests,
        Foreign::Lkp => ForeignSuite::Lkp,
    };
    let store = store(arguments)?;
    let imported = results::import::import(
        &home(arguments.home.as_deref())?,
        &store,
        suite,
        &command.folder,
    )?;
    let exit = if imported.runs.is_empty() {
        Exit::Usage
    } else {
        Exit::Fine
    };
    let next = if imported.runs.is_empty() {
        String::new()
    } else {
        next_command(&store, &imported)?
    };
    answer.write(format_imported(&imported) + &next)?;
    Ok(exit)
}

/// Returns the command that compares the kernels, the baseline first; with one kernel, the one that
/// shows its first run.
fn next_command(location: &Location, imported: &Imported) -> anyhow::Result<String> {
    let Kernels { builds, by } = order_kernels(&imported.runs);
    if let [_] = &builds[..] {
        return Ok(format!(
            "To show a run:\n  marvin show {}\n",
            imported.runs[0].id.short()
        ));
    }
    let words = words_of(&Store::open_read_only(location)?, &builds)?;
    let lines = command_lines(&format!("marvin report {}", words.join(" ")), WIDTH - 2);
    let baseline = words.first().map_or("", |word| word);
    Ok(format!(
        "To compare the kernels with {baseline} ({by}):\n  {}\n",
        lines.join("\n  ")
    ))
}

/// Lists imported runs, runs imported earlier, skipped results and start times that the suite did
/// not store.
fn format_imported(imported: &Imported) -> String {
    let mut page = Page::default();
    for run in &imported.runs {
        let end = if run.known {
            "already imported, unchanged"
        } else {
            "imported"
        };
        page.hanging(
            &format!("{} ", run.id.short()),
            &format!("{}: {}, {end}", run.name, count(run.rows, "row")),
        );
    }
    // Print the same reason once for many runs.
    let mut left: Places<'_> = BTreeMap::new();
    for (folder, LeftOut { what, why }) in &imported.left_out {
        left.entry(format!("{what}: {why}"))
            .or_default()
            .push(folder);
    }
    if !left.is_empty() {
        page.hanging(
            "Skipped: ",
            &format!(
                "{}; import.log of each run lists its own",
                count(imported.left_out.len(), "part")
            ),
        );
    }
    list(&left, &mut page);
    let mut start_times: Places<'_> = BTreeMap::new();
    for (folder, words) in &imported.start_times {
        start_times.entry(words.clone()).or_default().push(folder);
    }
    if !start_times.is_empty() {
        page.line(format!(
            "Start time not stored: {}",
            count(imported.start_times.len(), "run")
        ));
    }
    list(&start_times, &mut page);
    if imported.runs.is_empty() {
        page.line("No run imported.");
    }
    page.finish()
}

/// Directories by what is said of them.
type Places<'a> = BTreeMap<String, Vec<&'a str>>;

/// Lists reasons, each with its first directory and the number of others.
fn list(places: &Places<'_>, page: &mut Page) {
    for (reason, folders) in places {
        page.hanging("  ", reason);
        let more = match folders.len() {
            0 | 1 => String::new(),
            several => format!(" and {} more", several - 1),
        };
        page.hanging(
            "    in ",
            &format!("{}{more}", folders.first().unwrap_or(&".")),
        );
    }
}
