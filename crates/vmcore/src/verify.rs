//! Compares a written dump with the original: the kept pages, byte by byte.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bits;
use crate::dump::Dump;
use crate::error::DumpError;
use crate::plan::{Plan, Work, crew, lock};
use crate::reader::Reader;

/// The differences of two dumps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differences {
    /// Pages that differ or are missing.
    pub pages: u64,
    /// One of them.
    pub first: Option<u64>,
}

/// Compares all pages of a plan; pages that are unreadable in the original may be missing in `copy`.
///
/// # Errors
/// If the plan cannot be read.
pub fn verify(plan: &Plan<'_>, copy: &Dump, work: &Work) -> Result<Differences, DumpError> {
    let next = AtomicUsize::new(0);
    let all = Mutex::new(Differences::default());
    let (dump, size) = (plan.dump(), plan.dump().page_size());
    crew(work.threads, || {
        let (mut one, mut other) = (Reader::new(dump, work.io), Reader::new(copy, work.io));
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
                let length = size as usize;
                let same = match (one.bytes(page * size, length), other.bytes(page * size, length)) {
                    (Ok(one), Ok(other)) => {
                        one == other || plan.instead(page, one)?.is_some_and(|instead| instead == other)
                    }
                    (Err(_), Err(_)) => true,
                    _ => false,
                };
                if !same {
                    let mut all = lock(&all);
                    all.pages += 1;
                    all.first = Some(all.first.map_or(page, |first| first.min(page)));
                }
            }
        }
    })?;
    Ok(lock(&all).clone())
}
