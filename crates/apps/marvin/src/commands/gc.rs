//! `marvin gc`: deletes superseded runs, old artifacts, jobs, notices and logs, and unused images.

use std::path::Path;

use clap::Args;
use model::UnixTime;
use server::ImageGarbage;
use store::{Expired, Expiry, Garbage, Retention, Store};

use crate::commands::old_logs::OldLogs;
use crate::exit::Exit;
use crate::options::whole;
use crate::session::{Output, Session, now};
use crate::views::{ExpiredRecords, GarbageDocument, Sizes};

const GC_HELP: &str = "A run is superseded when a later run of the same build, machine, suite and seed has all its
workloads. Runs that a report, a comparison or a triage decision refers to are always kept, and so
are imported runs. An image of a distribution is unused when no server runs it and it is not the newest of an [[image]] in
marvin.toml.

Jobs of the plans of trees in marvin.toml stay, because `marvin watch` asks them which kernels it
has queued; so do notices that still stand, because a notice that was sent is not sent again. Ages
count from the clock, or from a week after the lab's last record if that is earlier: a clock that
is years ahead deletes nothing that is young.

Examples:
  marvin gc --dry-run
  marvin gc --older-than 90 --artifacts-older-than 365
  marvin gc --jobs-older-than 90 --logs-older-than 30 --notices-older-than 365";

/// `marvin gc`.
#[derive(Debug, Args)]
#[command(after_help = GC_HELP)]
pub(crate) struct GcArguments {
    /// List runs, artifacts and images that gc would delete, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Delete superseded runs older than DAYS days
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = whole::<u32>(0, 36_500))]
    pub(crate) older_than: u32,

    /// Delete artifacts (consoles, profiles, monitor copies) of runs older than DAYS days
    #[arg(long, alias = "artefacts-older-than", value_name = "DAYS", value_parser = whole::<u32>(0, 36_500))]
    pub(crate) artifacts_older_than: Option<u32>,

    /// Delete artifacts of the oldest runs until all artifacts take at most MIB MiB
    #[arg(long, alias = "artefacts-mib", value_name = "MIB")]
    pub(crate) artifacts_mib: Option<u32>,

    /// Delete jobs of the queue that are over since more than DAYS days
    #[arg(long, value_name = "DAYS", value_parser = whole::<u32>(0, 36_500))]
    pub(crate) jobs_older_than: Option<u32>,

    /// Delete logs of jobs and full files of recorded consoles older than DAYS days
    #[arg(long, value_name = "DAYS", value_parser = whole::<u32>(0, 36_500))]
    pub(crate) logs_older_than: Option<u32>,

    /// Delete notices that were delivered, and stand no more since DAYS days
    #[arg(long, value_name = "DAYS", value_parser = whole::<u32>(0, 36_500))]
    pub(crate) notices_older_than: Option<u32>,

    #[command(flatten)]
    pub(crate) output: Output,
}

const DAY_S: u64 = 86_400;

pub(crate) fn gc(session: &Session, command: &GcArguments) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    let retention = Retention {
        runs_before_unix: days_ago(command.older_than),
        artifacts_before_unix: command.artifacts_older_than.map(days_ago),
        artifacts_bytes_max: command.artifacts_mib.map(|mib| u64::from(mib) << 20),
    };
    let location = session.store_location()?;
    let home = session.home()?;
    let settings = &session.config()?.settings;
    let recipes = &settings.images;
    let trees: Vec<String> = settings
        .trees
        .iter()
        .map(|tree| tree.name.clone())
        .collect();
    if command.dry_run {
        let store = Store::open_read_only(location)?;
        let garbage = store.find_garbage(&retention)?;
        let images = ImageGarbage::find(home, recipes, &server::images_in_use(home)?)?;
        let ages = command.ages(&store)?;
        let logs = ages.logs(home)?;
        let expired = store.count_expired(&ages.expiry(&trees))?;
        let document = document(&garbage, &images).with_expired(command.records(&expired, &logs));
        answer.list(&document, command.output)?;
        return Ok(Exit::Fine);
    }
    // The lock excludes a measurement that relies on a run it has looked up.
    let _lock = session.lock_home()?;
    let store = Store::open(location)?;
    let images = ImageGarbage::find(home, recipes, &server::images_in_use(home)?)?;
    images.remove()?;
    let waste = store.find_garbage(&retention)?;
    let bytes_before = store.size()?;
    store.remove(&waste)?;
    let ages = command.ages(&store)?;
    let expired = store.remove_expired(&ages.expiry(&trees))?;
    let logs = ages.logs(home)?;
    logs.remove()?;
    store.compact()?;
    let sizes = Sizes {
        bytes_before,
        bytes_after: store.size()?,
    };
    let document = document(&waste, &images)
        .with_expired(command.records(&expired, &logs))
        .deleted(sizes);
    answer.list(&document, command.output)?;
    Ok(Exit::Fine)
}

/// The times before which jobs, notices and logs are old; `None` for no limit.
struct Ages {
    jobs: Option<UnixTime>,
    notices: Option<UnixTime>,
    logs: Option<UnixTime>,
}

impl GcArguments {
    fn ages(&self, store: &Store) -> anyhow::Result<Ages> {
        let now_unix = store.age_reference(store.time(now())?)?;
        Ok(Ages {
            jobs: days_before(now_unix, self.jobs_older_than),
            notices: days_before(now_unix, self.notices_older_than),
            logs: days_before(now_unix, self.logs_older_than),
        })
    }

    /// Returns what the answer says of those that were asked for.
    fn records(&self, expired: &Expired, logs: &OldLogs) -> ExpiredRecords {
        ExpiredRecords {
            jobs: self.jobs_older_than.map(|_| expired.jobs),
            notices: self.notices_older_than.map(|_| expired.notices),
            logs: self.logs_older_than.map(|_| logs.count()),
            log_bytes: self.logs_older_than.map(|_| logs.bytes),
        }
    }
}

impl Ages {
    fn expiry<'a>(&self, trees: &'a [String]) -> Expiry<'a> {
        Expiry {
            jobs_before_unix: self.jobs,
            trees,
            notices_before_unix: self.notices,
        }
    }

    fn logs(&self, home: &Path) -> anyhow::Result<OldLogs> {
        self.logs.map_or_else(
            || Ok(OldLogs::default()),
            |before| OldLogs::find(home, before),
        )
    }
}

fn days_before(time: UnixTime, days: Option<u32>) -> Option<UnixTime> {
    Some(time.minus_seconds(u64::from(days?) * DAY_S))
}

fn days_ago(days: u32) -> UnixTime {
    now().minus_seconds(u64::from(days) * DAY_S)
}

fn document(garbage: &Garbage, images: &ImageGarbage) -> GarbageDocument {
    GarbageDocument::new(
        &garbage.runs,
        &garbage.artifacts_of,
        garbage.bytes,
        garbage.referred,
    )
    .with_images(images.sizes())
}
