//! `marvin gc`: deletes superseded runs and old artifacts.

use store::{Garbage, HomeLock, Retention, Store};

use super::compare::now;
use crate::answer::Answer;
use crate::cli::{Arguments, Gc};
use crate::exit::Exit;
use crate::home::{home, store};
use crate::lists::{GarbageDocument, Sizes};

const DAY_S: i64 = 86_400;

pub(crate) fn gc(arguments: &Arguments, command: &Gc) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let before = |days: u32| now() - i64::from(days) * DAY_S;
    let retention = Retention {
        runs_before_unix: before(command.older_than),
        artefacts_before_unix: command.artefacts_older_than.map(before),
        artefacts_bytes_max: command.artefacts_mib.map(|mib| u64::from(mib) << 20),
    };
    let location = store(arguments)?;
    if command.dry_run {
        let store = Store::open_read_only(location)?;
        answer.list(&document(&store.find_garbage(&retention)?), command.output, arguments)?;
        return Ok(Exit::Fine);
    }
    // The lock excludes a measurement that relies on a run it has looked up.
    let _lock = HomeLock::acquire(&home(arguments.home.as_deref())?)?;
    let store = Store::open(location)?;
    let waste = store.find_garbage(&retention)?;
    let bytes_before = store.size()?;
    store.remove(&waste)?;
    store.compact()?;
    let sizes = Sizes { bytes_before, bytes_after: store.size()? };
    answer.list(&document(&waste).deleted(sizes), command.output, arguments)?;
    Ok(Exit::Fine)
}

fn document(garbage: &Garbage) -> GarbageDocument {
    GarbageDocument::new(&garbage.runs, &garbage.artefacts_of, garbage.bytes, garbage.referred)
}
