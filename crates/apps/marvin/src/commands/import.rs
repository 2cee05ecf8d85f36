//! `marvin import`: imports results of other suites, and checks published reports.

mod report;

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use document::layout::{Page, WIDTH, command_lines};
use document::number::count;
use results::import::{ForeignSuite, Imported, Kernels, LeftOut, order_kernels};
use store::{Location, Store};

use crate::exit::{Exit, WrongInput};
use crate::select::shortest_names;
use crate::session::Session;

const IMPORT_EXAMPLES: &str = "Examples:
  marvin import mmtests work/log
  marvin import lkp /lkp/result/will-it-scale
  marvin import lkp-mail report.eml deb:6.12 deb:trixie-backports/6.19
  marvin runs
  marvin report 6.1-vanilla 6.12-vanilla";

/// `marvin import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// Suite that wrote the results
    #[arg(value_enum)]
    pub(crate) suite: Foreign,

    /// Results: work/log of MMTests or one run in it; a result directory of LKP-tests; a mail of
    /// the kernel test robot
    pub(crate) folder: PathBuf,

    /// With lkp-mail: two kernels, one before the commit and one with it; Marvin measures the
    /// workload on the report's path and says whether it agrees
    #[arg(value_names = ["BASE", "NEW"], num_args = 2, add = crate::completion::kernel())]
    pub(crate) kernels: Vec<String>,
}

/// Another suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Foreign {
    /// MMTests
    Mmtests,
    /// LKP-tests
    Lkp,
    /// A mail of the kernel test robot (0-day) on one commit
    LkpMail,
}

pub(crate) fn import(session: &Session, command: &ImportArguments) -> anyhow::Result<Exit> {
    let suite = match command.suite {
        Foreign::LkpMail => return report::check(session, &command.folder, &command.kernels),
        Foreign::Mmtests => ForeignSuite::Mmtests,
        Foreign::Lkp => ForeignSuite::Lkp,
    };
    if !command.kernels.is_empty() {
        let text = "kernels are measured with lkp-mail only: results of a suite are theirs already";
        return Err(WrongInput(text.to_owned()).into());
    }
    let answer = session.answer(None)?;
    let store = session.store_location()?;
    let home = session.home()?;
    let lock = || lab::lock_home(home, session.patience());
    let imported = results::import::import(&lock, &store, suite, &command.folder)?;
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
    let names = shortest_names(&Store::open_read_only(location)?, &builds)?;
    let lines = command_lines(&format!("marvin report {}", names.join(" ")), WIDTH - 2);
    let baseline = names.first().map_or("", |word| word);
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
    for (folder, start) in &imported.start_times {
        start_times.entry(start.clone()).or_default().push(folder);
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
