//! `marvin gc`: deletes superseded runs, old artifacts and unused images.

use clap::Args;
use model::UnixTime;
use server::ImageGarbage;
use store::{Garbage, Retention, Store};

use crate::exit::Exit;
use crate::options::whole;
use crate::session::{Output, Session, now};
use crate::views::{GarbageDocument, Sizes};

const GC_HELP: &str = "A run is superseded when a later run of the same build, machine, suite and seed has all its
workloads. Runs that a report, a comparison or a triage decision refers to are always kept, and so
are imported runs. An image of a distribution is unused when no server runs it and it is not the newest of an [[image]] in
marvin.toml.

Examples:
  marvin gc --dry-run
  marvin gc --older-than 90 --artifacts-older-than 365";

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
    let recipes = &session.config()?.settings.images;
    if command.dry_run {
        let garbage = Store::open_read_only(location)?.find_garbage(&retention)?;
        let images = ImageGarbage::find(home, recipes, &server::images_in_use(home)?)?;
        answer.list(&document(&garbage, &images), command.output)?;
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
    store.compact()?;
    let sizes = Sizes {
        bytes_before,
        bytes_after: store.size()?,
    };
    answer.list(&document(&waste, &images).deleted(sizes), command.output)?;
    Ok(Exit::Fine)
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
