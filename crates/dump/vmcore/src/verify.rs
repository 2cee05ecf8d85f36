//! Compares a written dump with the original, byte by byte, and reads all pages of a dump that has
//! no original.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bits;
use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::plan::{Plan, Work, crew, lock};
use crate::reader::Reader;

/// The differences of two dumps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Pages that differ or are missing.
    pub pages: u64,
    /// The number of one of these pages; `None` if there is none.
    pub first: Option<u64>,
}

/// Pages that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Pages that were read.
    pub read: u64,
    /// Pages that are in the file and cannot be read.
    pub pages: u64,
    /// The number of one of these pages, and why it cannot be read.
    pub first: Option<(u64, MemoryError)>,
}

/// Reads all pages in a dump, with all checksums that its format has.
///
/// # Errors
/// If its bitmaps cannot be read.
pub fn check(dump: &Dump, work: &Work) -> Result<Damage, DumpError> {
    let plan = Plan::make(dump, None, work)?;
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Damage::default());
    let size = dump.page_size();
    crew(work.threads, || {
        let mut reader = Reader::new(dump, work.io);
        let mut words = vec![0; plan.words()];
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= plan.blocks() {
                return Ok(());
            }
            plan.read(block, &mut words)?;
            for bit in bits::runs(&words).flatten() {
                let page = plan.pages(block).start + bit as u64;
                // Pages have at most 1 MiB.
                let read = reader.bytes(page * size, size as usize).map(drop);
                let mut all = lock(&all);
                all.read += 1;
                if let Err(error) = read {
                    all.pages += 1;
                    if all.first.as_ref().is_none_or(|(first, _)| page < *first) {
                        all.first = Some((page, error));
                    }
                }
            }
        }
    })?;
    Ok(lock(&all).clone())
}

/// Compares all pages of a plan; pages that are unreadable in the original may be missing in
/// `copy`.
///
/// # Errors
/// If the plan cannot be read.
pub fn verify(plan: &Plan<'_>, copy: &Dump, work: &Work) -> Result<Differences, DumpError> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Differences::default());
    let dump = plan.dump();
    let size = plan.dump().page_size();
    crew(work.threads, || {
        let mut one = Reader::new(dump, work.io);
        let mut other = Reader::new(copy, work.io);
        let mut words = vec![0; plan.words()];
        let mut stored = vec![0; plan.words()];
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= plan.blocks() {
                return Ok(());
            }
            plan.read(block, &mut words)?;
            // A page in the copy alone is as wrong as one that it lacks.
            let first = plan.pages(block).start;
            copy.stored(first, &mut stored)?;
            let more = stored
                .iter()
                .zip(&words)
                .map(|(stored, kept_words)| stored & !kept_words)
                .collect::<Vec<_>>();
            for bit in bits::runs(&more)
                .flatten()
                .filter(|_| copy.level().is_some())
            {
                note(&all, first + bit as u64);
            }
            for bit in bits::runs(&words).flatten() {
                let page = first + bit as u64;
                // Pages have at most 1 MiB.
                let length = size as usize;
                let same = match (
                    one.bytes(page * size, length),
                    other.bytes(page * size, length),
                ) {
                    (Ok(one), Ok(other)) => {
                        one == other
                            || plan
                                .instead(page, one)?
                                .is_some_and(|instead| instead == other)
                    }
                    (Err(_), Err(_)) => true,
                    _ => false,
                };
                if !same {
                    note(&all, page);
                }
            }
        }
    })?;
    Ok(lock(&all).clone())
}

fn note(all: &Mutex<Differences>, page: u64) {
    let mut all = lock(all);
    all.pages += 1;
    all.first = Some(all.first.map_or(page, |first| first.min(page)));
}
