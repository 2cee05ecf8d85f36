//! The use of a dump's memory, in pages of each kind: what each level would drop.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::bits;
use crate::bytes::is_zero;
use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::exclusion::Level;
use crate::filter::{Counts, Filter};
use crate::plan::{Plan, Work, crew, lock};
use crate::progress::Progress;
use crate::reader::Reader;

/// Pages of each kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// All pages of memory.
    pub memory: u64,
    /// The filter's result at the highest level.
    pub counts: Counts,
    /// Of the remaining pages, those with zeros only.
    pub zero: u64,
    /// Of the remaining pages, unreadable ones.
    pub unreadable: u64,
    /// The reason, for the first of them.
    pub why: Option<MemoryError>,
    /// All other pages: the kernel's own data.
    pub kernel: u64,
    /// Pages of memory that are missing from the dump.
    pub missing: u64,
}

impl Usage {
    /// Counts the pages of a dump by kind; reports progress.
    ///
    /// # Errors
    /// If the memory map cannot be found or the dump cannot be read.
    pub fn count(dump: &Dump, work: &Work, progress: &Progress) -> Result<Self, DumpError> {
        let filter = Filter::new(&mut Reader::new(dump, work.io), Level::MAX)?;
        let plan = Plan::make(dump, Some(&filter), work)?;
        progress.expect(plan.kept_count() * dump.page_size());
        let next = AtomicUsize::new(0);
        let all = Mutex::new(Self::default());
        crew(work.threads, || {
            let mut reader = Reader::new(dump, work.io);
            let mut own = Self::default();
            let mut words = vec![0; plan.words()];
            loop {
                let block = next.fetch_add(1, Ordering::Relaxed);
                if block >= plan.blocks() {
                    break;
                }
                plan.read(block, &mut words)?;
                for bit in bits::runs(&words).flatten() {
                    own.page(&mut reader, plan.pages(block).start + bit as u64);
                }
                progress.add(bits::count(&words) * dump.page_size());
            }
            let mut all = lock(&all);
            all.zero += own.zero;
            all.kernel += own.kernel;
            all.unreadable += own.unreadable;
            all.why = all.why.take().or(own.why);
            Ok(())
        })?;
        let usage = lock(&all).clone();
        let dropped: u64 = plan.counts().dropped.iter().sum();
        let missing = plan.memory().saturating_sub(plan.kept_count() + dropped);
        Ok(Self {
            memory: plan.memory(),
            counts: plan.counts().clone(),
            missing,
            ..usage
        })
    }

    /// Classifies a page that no level drops by its class.
    fn page(&mut self, reader: &mut Reader<'_>, page: u64) {
        let size = reader.dump().page_size();
        // Pages have at most 64 KiB.
        match reader.bytes(page * size, size as usize) {
            Ok(bytes) if is_zero(bytes) => self.zero += 1,
            Ok(_) => self.kernel += 1,
            Err(error) => {
                self.unreadable += 1;
                self.why.get_or_insert(error);
            }
        }
    }
}
