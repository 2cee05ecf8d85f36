//! `marvin gc`: deletes superseded runs and old artifacts.

use store::{Garbage, HomeLock, Retention, Store};

use super::compare::now;
use crate::answer::Answer;
use crate::cli::{Arguments, Gc};
use crate::exit::Exit;
use crate::home::{home, store};

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
        let text = format!("{}nothing deleted (dry run)\n", told(&store.find_garbage(&retention)?));
        answer.write(text)?;
        return Ok(Exit::Fine);
    }
    // The lock excludes a measurement that relies on a run it has looked up.
    let _lock = HomeLock::acquire(&home(arguments.home.as_deref())?)?;
    let store = Store::open(location)?;
    let waste = store.find_garbage(&retention)?;
    let size = store.size()?;
    store.remove(&waste)?;
    store.compact()?;
    answer.write(format!("{}the store took {} and takes {}\n", told(&waste), mib(size), mib(store.size()?)))?;
    Ok(Exit::Fine)
}

fn told(waste: &Garbage) -> String {
    format!(
        "superseded runs: {}\nolder runs with artifacts to delete: {}\nartifacts of both: {}\nkept because they are \
         referenced: {}\n",
        waste.runs.len(),
        waste.artefacts_of.len(),
        mib(waste.bytes),
        waste.referred
    )
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
