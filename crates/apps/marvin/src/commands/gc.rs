//! `marvin gc`: deletes superseded runs, old artifacts and unused images.

use server::ImageGarbage;
use store::{Garbage, HomeLock, Retention, Store};

use super::compare::now;
use super::config::site;
use crate::answer::Answer;
use crate::cli::{Arguments, Gc};
use crate::exit::Exit;
use crate::home::{home, store};
use lists::{GarbageDocument, Sizes};

const DAY_S: i64 = 86_400;

pub(crate) fn gc(arguments: &Arguments, command: &Gc) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    let before = |days: u32| now() - i64::from(days) * DAY_S;
    let retention = Retention {
        runs_before_unix: before(command.older_than),
        artefacts_before_unix: command.artefacts_older_than.map(before),
        artefacts_bytes_max: command.artefacts_mib.map(|mib| u64::from(mib) << 20),
    };
    let (location, home) = (store(arguments)?, home(arguments.home.as_deref())?);
    let recipes = site(arguments)?.settings.images;
    let unused = || {
        anyhow::Ok(ImageGarbage::find(
            &home,
            &recipes,
            &server::images_in_use(&home)?,
        )?)
    };
    if command.dry_run {
        let garbage = Store::open_read_only(location)?.find_garbage(&retention)?;
        answer.list(&document(&garbage, &unused()?), command.output, arguments)?;
        return Ok(Exit::Fine);
    }
    // The lock excludes a measurement that relies on a run it has looked up.
    let _lock = HomeLock::acquire(&home)?;
    let store = Store::open(location)?;
    let images = unused()?;
    images.remove()?;
    let waste = store.find_garbage(&retention)?;
    let bytes_before = store.size()?;
    store.remove(&waste)?;
    store.compact()?;
    let sizes = Sizes {
        bytes_before,
        bytes_after: store.size()?,
    };
    answer.list(
        &document(&waste, &images).deleted(sizes),
        command.output,
        arguments,
    )?;
    Ok(Exit::Fine)
}

fn document(garbage: &Garbage, images: &ImageGarbage) -> GarbageDocument {
    GarbageDocument::new(
        &garbage.runs,
        &garbage.artefacts_of,
        garbage.bytes,
        garbage.referred,
    )
    .with_images(images.sizes())
}
