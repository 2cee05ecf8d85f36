//! `marvin import`: imports results of other suites, and checks published reports.

mod judgement;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use document::layout::{Page, WIDTH, command_lines};
use document::number::count;
use model::sanitize_line;
use results::import::{
    ForeignSuite, ImportOptions, Imported, ImportedRun, Kernels, LeftOut, order_kernels,
};
use store::{Location, Store};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::whole;
use crate::select::shortest_names;
use crate::session::Session;

const IMPORT_EXAMPLES: &str = "Examples:
  marvin import before.json after.json
  marvin import results --as lab3
  marvin import mmtests work/log
  marvin import lkp /lkp/result/will-it-scale
  marvin import lkp-mail report.eml deb:6.12 deb:trixie-backports/6.19
  marvin import --list
  marvin report 6.1-vanilla 6.12-vanilla";

/// `marvin import`.
#[derive(Debug, Args)]
#[command(after_help = IMPORT_EXAMPLES)]
pub(crate) struct ImportArguments {
    /// Results: files of other programs and directories of them; work/log of MMTests or one run in
    /// it; a result directory of LKP-tests; a mail of the kernel test robot. A first word mmtests,
    /// lkp, lkp-mail or files says which; without it Marvin recognises them. Two kernels behind
    /// lkp-mail FILE, one before the commit and one with it, are measured
    #[arg(value_name = "PATH", required_unless_present = "list")]
    pub(crate) words: Vec<String>,

    /// List the formats of files that Marvin knows
    #[arg(long, conflicts_with = "words")]
    list: bool,

    /// Kernel of all files (default: as the file says, else its directory, else its name)
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    kernel: Option<String>,

    /// Machine of all results (default: the host that the results name)
    #[arg(long = "as", value_name = "MACHINE", value_parser = NonEmptyStringValueParser::new())]
    machine: Option<String>,

    /// Track of all kernels: a history of its own, such as that of a stable series or of another
    /// kernel config
    #[arg(long, value_name = "TRACK", value_parser = track_name)]
    track: Option<String>,

    /// Rows of which less is better, by name or its beginning up to a slash; stored with them
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    lower: Vec<String>,

    /// Rows of which more is better
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    higher: Vec<String>,

    /// Add the format of this manifest (docs/import.md) to those in formats/ of the data directory
    #[arg(long, value_name = "FILE")]
    manifest: Vec<PathBuf>,

    /// Of a mail: measure this workload alone
    #[arg(long, value_name = "NAME", add = completion::workload())]
    workload: Option<String>,

    /// Of a mail: git tree for git: and patch: names, a directory or a tree's name in marvin.toml
    #[arg(long, value_name = "TREE", add = completion::tree_name())]
    tree: Option<String>,

    /// Of a mail: kernel config for kernels that Marvin builds, as of marvin compare
    #[arg(long, value_name = "CONFIG", add = completion::configuration())]
    config: Option<String>,

    /// Of a mail: number of seeds [default: 1; 5 with several processors]
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, 100))]
    seeds: Option<u64>,
}

impl ImportArguments {
    /// Returns the options of a measurement, as `marvin compare` takes them.
    fn measure_options(&self) -> Vec<String> {
        let seeds = self.seeds.map(|seeds| seeds.to_string());
        let options = [
            ("--tree", &self.tree),
            ("--config", &self.config),
            (report::SEEDS, &seeds),
        ];
        let given = options.into_iter().filter_map(|(option, value)| {
            let value = value.as_ref()?;
            Some([option.to_owned(), value.clone()])
        });
        given.flatten().collect()
    }
}

/// Longest name of a track.
const TRACK_MAX: usize = 40;

/// Reads the name of a track: letters, digits and `.+-_`.
fn track_name(text: &str) -> Result<String, String> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b".+-_".contains(&byte);
    if (1..=TRACK_MAX).contains(&text.len()) && text.bytes().all(is_fit) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "no name of a track: use at most {TRACK_MAX} letters, digits and . + - _"
        ))
    }
}

/// The kind of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Foreign {
    Suite(ForeignSuite),
    /// A mail of the kernel test robot (0-day) on one commit.
    LkpMail,
}

/// Returns the kind of the results, and the words that name them.
fn split_words(words: &[String]) -> (Foreign, &[String]) {
    let kinds = [
        ("mmtests", Foreign::Suite(ForeignSuite::Mmtests)),
        ("lkp", Foreign::Suite(ForeignSuite::Lkp)),
        ("lkp-mail", Foreign::LkpMail),
        ("files", Foreign::Suite(ForeignSuite::Files)),
    ];
    if let [first, rest @ ..] = words
        && !rest.is_empty()
        && let Some((_, kind)) = kinds.iter().find(|(name, _)| name == first)
    {
        return (*kind, rest);
    }
    if let [mail] = words
        && mail.ends_with(".eml")
    {
        return (Foreign::LkpMail, words);
    }
    let paths: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
    (Foreign::Suite(ForeignSuite::recognise(&paths)), words)
}

pub(crate) fn import(session: &Session, command: &ImportArguments) -> anyhow::Result<Exit> {
    if command.list {
        let answer = session.answer(None)?;
        let formats = session.formats(&command.manifest)?;
        answer.write(format_formats(&formats))?;
        return Ok(Exit::Fine);
    }
    let (kind, words) = split_words(&command.words);
    let suite = match kind {
        Foreign::LkpMail => {
            let (file, kernels) = words.split_first().context("no mail")?;
            let wanted = report::Wanted {
                kernels,
                workload: command.workload.as_deref(),
                options: command.measure_options(),
            };
            return report::check(session, Path::new(file), &wanted);
        }
        Foreign::Suite(suite) => suite,
    };
    if command.workload.is_some() || !command.measure_options().is_empty() {
        let text =
            "--workload, --tree, --config and --seeds are for a mail of the kernel test robot";
        return Err(WrongInput(text.to_owned()).into());
    }
    if command.kernel.is_some() && suite != ForeignSuite::Files {
        let text =
            "--kernel is for files of other programs: MMTests and LKP-tests name their kernels";
        return Err(WrongInput(text.to_owned()).into());
    }
    if let Some(word) = command
        .lower
        .iter()
        .find(|word| command.higher.contains(word))
    {
        let text = format!("--lower and --higher both name {}", sanitize_line(word));
        return Err(WrongInput(text).into());
    }
    let formats = session.formats(&command.manifest)?;
    let options = ImportOptions {
        kernel: command.kernel.as_deref(),
        host: command.machine.as_deref(),
        track: command.track.as_deref(),
        lower: &command.lower,
        higher: &command.higher,
        formats: &formats,
    };
    let answer = session.answer(None)?;
    let store = session.store_location()?;
    let home = session.home()?;
    let lock = || lab::lock_home(home, session.patience());
    let paths: Vec<PathBuf> = words.iter().map(PathBuf::from).collect();
    let imported = results::import::import(&lock, &store, suite, &paths, &options)?;
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

/// Lists formats: a name and what it is.
fn format_formats(formats: &[config::Format]) -> String {
    let mut page = Page::default();
    for format in formats.iter().filter(|format| !format.is_of_mmtests()) {
        page.hanging(&format!("{:<24}", format.name), &format.about);
    }
    page.hanging(
        &format!("{:<24}", config::PERF_SCRIPT),
        "perf script: samples of each function itself",
    );
    page.hanging(
        &format!("{:<24}", config::TABLE),
        "CSV, TSV or JSON lines, by their headings",
    );
    page.finish()
}

/// Most kernels that the printed command compares: of more the first and the last.
const KERNELS_NAMED_MAX: usize = 8;

/// Returns the command that compares the kernels, the baseline first; with one kernel, the one that
/// shows its first run. Of several machines and kernel configs each has a command of its own, which
/// names runs: names of kernels mean those of one machine.
fn next_command(location: &Location, imported: &Imported) -> anyhow::Result<String> {
    let mut groups: Vec<(&ImportedRun, Vec<&ImportedRun>)> = Vec::new();
    for run in &imported.runs {
        match groups
            .iter_mut()
            .find(|(first, _)| first.machine == run.machine && first.config == run.config)
        {
            Some((_, runs)) => runs.push(run),
            None => groups.push((run, vec![run])),
        }
    }
    let is_single = groups.len() == 1;
    let has_machines = groups
        .iter()
        .any(|(first, _)| first.machine != groups[0].0.machine);
    let mut text = String::new();
    for (first, runs) in groups {
        let Kernels { mut builds, by } = order_kernels(runs.iter().copied());
        let count = builds.len();
        if count > KERNELS_NAMED_MAX {
            builds.drain(1..count - 1);
        }
        let on = if is_single {
            String::new()
        } else {
            let config = first.config.as_ref().map(|config| format!(", {config}"));
            let of = format!("{}{}", first.machine_summary, config.unwrap_or_default());
            format!(" on {}", sanitize_line(&of))
        };
        if let [_] = &builds[..] {
            let show = format!("To show a run{on}:\n  marvin show {}\n", first.id.short());
            text.push_str(&show);
            continue;
        }
        let names = shortest_names(&Store::open_read_only(location)?, &builds)?;
        let baseline = names.first().map_or("", |word| word);
        let words: Vec<String> = if is_single {
            names.clone()
        } else {
            let mut ids = Vec::new();
            for build in &builds {
                let of_build = runs.iter().filter(|run| run.build == *build);
                ids.extend(of_build.map(|run| run.id.short()));
            }
            ids
        };
        let lines = command_lines(&format!("marvin report {}", words.join(" ")), WIDTH - 2);
        let which = if count > KERNELS_NAMED_MAX {
            format!("the last of {count} kernels")
        } else {
            "the kernels".to_owned()
        };
        let compare = format!(
            "To compare {which} with {baseline} ({by}){on}:\n  {}\n",
            lines.join("\n  ")
        );
        text.push_str(&compare);
    }
    if has_machines {
        text +=
            "Results of one machine that is named differently: import them with --as MACHINE.\n";
    }
    Ok(text)
}

/// Lists imported runs, runs imported earlier, skipped results and start times that the suite did
/// not store.
fn format_imported(imported: &Imported) -> String {
    let mut page = Page::default();
    for run in &imported.runs {
        let end = match run.added.as_slice() {
            [] if run.known => "already imported, unchanged".to_owned(),
            [] => "imported".to_owned(),
            added => format!("already imported, now with {}", added.join(", ")),
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
