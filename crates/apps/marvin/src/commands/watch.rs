//! `marvin watch`: checks the trees of marvin.toml, and queues kernels without results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use config::ConfigFile;
use lab::bisection::add;
use model::UnixTime;
use service::{Remotes, TreeCheck, WatchEvent, WhyNone};
use signal_hook::consts::SIGTERM;

use crate::exit::{Exit, WrongInput, describe_error, fault};
use crate::options::seconds;
use crate::queue::{Courier, RegressionReporter};
use crate::session::{
    About, LastingState, LogLevel, LogOptions, Session, Stop, is_log_on, now, start_log,
    write_event,
};

const WATCH_EXAMPLES: &str = "Examples:
  marvin watch
  marvin watch --every 1h
  marvin work --once";

/// `marvin watch`.
#[derive(Debug, Args)]
#[command(after_help = WATCH_EXAMPLES)]
pub(crate) struct WatchArguments {
    /// Keep running and check again every TIME: 30m, 1h, 1d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) every: Option<u64>,

    #[command(flatten)]
    pub(crate) log: LogOptions,
}

/// How long a pass may go on that is to stop.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// The file of the data directory with the time of the last check.
const CHECKED: &str = "watch.checked";

/// Limit on tags listed that are not versions.
const NAMED_MAX: usize = 8;

pub(crate) fn watch(session: &Session, command: &WatchArguments) -> anyhow::Result<Exit> {
    // A pass that is cut off has queued a part of its jobs; the next one queues the rest.
    let stop = Stop::on(&[SIGTERM], STOP_LIMIT, Exit::Fine);
    start_log(&command.log, command.every.is_some(), session.is_quiet());
    let mut watcher = Watcher {
        is_service: command.every.is_some(),
        ..Watcher::default()
    };
    let mut is_first = true;
    loop {
        // Read at each pass, so that changes apply from the next one on.
        let exit = match session
            .read_existing_config()
            .and_then(|site| watcher.pass(session, &site))
        {
            Ok(exit) => {
                watcher
                    .failure
                    .end(About::default(), "trees are checked again");
                exit
            }
            // As the other services do: only an edit helps.
            Err(error) if is_first && fault(&error) == Exit::Usage => return Err(error),
            // With `--every`, continue after an error that may pass, such as a full disk.
            Err(error) if command.every.is_some() => {
                let text = describe_error(&error);
                watcher
                    .failure
                    .hold(LogLevel::Error, About::default(), &text);
                fault(&error)
            }
            Err(error) => return Err(error),
        };
        is_first = false;
        match command.every {
            None => return Ok(exit),
            Some(seconds) => stop.sleep(Duration::from_secs(seconds)),
        }
        if stop.is_asked() {
            return Ok(stop.finish(session.is_quiet()));
        }
    }
}

/// Records when trees were checked, for `marvin status`; a full disk has errors of its own.
fn note_check(home: &Path, now_unix: UnixTime) {
    std::fs::write(home.join(CHECKED), format!("{}\n", now_unix.seconds())).ok();
}

/// Returns when trees were checked last by a `marvin watch` with this data directory.
pub(crate) fn last_check(home: &Path) -> Option<UnixTime> {
    let text = std::fs::read_to_string(home.join(CHECKED)).ok()?;
    text.trim().parse().ok().map(UnixTime::new)
}

/// What a watcher has said, so that it does not repeat it at each pass.
#[derive(Default)]
struct Watcher {
    /// Whether it runs until it is stopped.
    is_service: bool,
    courier: Courier,
    failure: LastingState,
    /// Trees that do not answer.
    silent: RefCell<BTreeMap<String, LastingState>>,
    /// What the last check of each tree gave.
    checks: RefCell<BTreeMap<String, (String, LastingState)>>,
}

impl Watcher {
    fn pass(&mut self, session: &Session, site: &ConfigFile) -> anyhow::Result<Exit> {
        if site.settings.trees.is_empty() || site.settings.plans.is_empty() {
            let text = "marvin.toml needs a [[tree]] and a [[plan]] to watch (docs/watch.md)";
            return Err(WrongInput(text.into()).into());
        }
        let store = session.open_store()?;
        let now_unix = store.time(now())?;
        let remotes = Remotes {
            archives: session.archives()?,
        };
        let watched = service::watch(&site.settings, &store, &remotes, now_unix, &|event| {
            if is_log_on() || !session.is_quiet() {
                self.note(&event);
            }
        })?;
        note_check(session.home()?, now_unix);
        RegressionReporter::default().report(&store, site, session, now_unix)?;
        self.courier.deliver(&store, site, session)?;
        let service::Watched {
            kernels,
            queued,
            replaced,
            silent,
        } = watched;
        let mut text = format!("kernels {kernels}, queued {queued}");
        if replaced > 0 {
            add(&mut text, format_args!(", replaced {replaced}"));
        }
        if silent > 0 {
            add(&mut text, format_args!(", silent trees {silent}"));
        }
        if self.is_service {
            self.hold_check("", &text);
        } else {
            session.answer(None)?.write(text + "\n")?;
        }
        Ok(if silent > 0 { Exit::Lab } else { Exit::Fine })
    }

    /// Says what a pass did, and what is new of a tree.
    fn note(&self, event: &WatchEvent) {
        let text = format_event(event);
        match event {
            WatchEvent::Queued(number, work) | WatchEvent::Replaced(number, work) => {
                let about = About {
                    job: Some(*number),
                    machine: Some(&work.machine),
                };
                write_event(LogLevel::Info, about, &text);
            }
            WatchEvent::Silent { tree, .. } => {
                let mut silent = self.silent.borrow_mut();
                let state = silent.entry(tree.clone()).or_default();
                state.hold(LogLevel::Warn, About::default(), &text);
            }
            WatchEvent::Answers(tree) => {
                let known = self.silent.borrow_mut().remove(tree);
                match known {
                    Some(mut state) => state.end(About::default(), &text),
                    // It was silent before this process began.
                    None => write_event(LogLevel::Info, About::default(), &text),
                }
            }
            WatchEvent::NoVersions(..) => write_event(LogLevel::Warn, About::default(), &text),
            WatchEvent::Checked(check) => self.hold_check(&check.tree, &text),
        }
    }

    /// Says what the check of a tree gave, or of all (no name), if that is new.
    fn hold_check(&self, tree: &str, text: &str) {
        let mut checks = self.checks.borrow_mut();
        let last = checks.entry(tree.to_owned()).or_default();
        if last.0 != text {
            *last = (text.to_owned(), LastingState::default());
        }
        last.1.hold(LogLevel::Info, About::default(), text);
    }
}

fn format_event(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Queued(number, work) => format!("job {number}: {work}"),
        WatchEvent::Replaced(number, work) => {
            format!("job {number} replaced: no plan asks for {work} any more")
        }
        WatchEvent::Silent { tree, why } => format!("{tree}: {why}"),
        WatchEvent::Answers(tree) => format!("the tree {tree} answers again"),
        WatchEvent::NoVersions(tree, tags) => {
            let named = tags
                .iter()
                .take(NAMED_MAX)
                .map(|tag| tag.escape_debug().to_string())
                .collect::<Vec<_>>();
            let more = if tags.len() > NAMED_MAX { ", …" } else { "" };
            format!(
                "{tree}: ignored tags that are not versions, {}: {}{more}",
                tags.len(),
                named.join(", ")
            )
        }
        WatchEvent::Checked(check) => format_check(check),
    }
}

/// Says what a tree gave, and why no job was queued.
fn format_check(check: &TreeCheck) -> String {
    let TreeCheck {
        tree,
        offered,
        selected,
        queued,
        why_none,
        branches,
    } = check;
    let result = match why_none {
        None => format!("queued {queued}"),
        Some(WhyNone::NoRelease { other_tags: 0 }) => {
            "nothing queued: it has no release or package".to_owned()
        }
        Some(WhyNone::NoRelease { other_tags }) => format!(
            "nothing queued: none of its {other_tags} tags is a release\n\
             hint: `tags` of its [[tree]] names releases (docs/watch.md)"
        ),
        Some(WhyNone::NoneSelected) => {
            "nothing queued: `since` and `points` of its [[tree]] exclude all".to_owned()
        }
        Some(WhyNone::NoPlan) => "nothing queued: no [[plan]] names it".to_owned(),
        Some(WhyNone::AllKnown) => "nothing queued: all are queued or measured".to_owned(),
    };
    let mut text = format!("{tree}: releases {offered}, selected {selected}, {result}");
    for branch in branches {
        add(&mut text, format_args!("\n{tree}: {}", branch.describe()));
    }
    text
}
