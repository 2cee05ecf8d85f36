//! Holds the summary against the runs: it is a copy, and has to say the same.

use std::collections::BTreeMap;
use std::path::Path;

use history::{History, RunDigest};
use store::Store;

use crate::stored_history::{HistoryReadError, RUNS_AT_ONCE};
use crate::summary::{Summary, path};

/// Compares what a data directory's summary has with the runs of a store. Returns what is wrong
/// with it; `None` if nothing is, or there is none.
///
/// # Errors
/// If the store cannot be read.
pub fn check_summary(store: &Store, home: &Path) -> Result<Option<String>, HistoryReadError> {
    let file = path(home);
    if !file.exists() {
        return Ok(None);
    }
    let Some(summary) = Summary::read(&file) else {
        return Ok(Some("it is not whole, or of another version".to_owned()));
    };
    let mut history = History::default();
    let shapes = history.know_shapes(summary.shapes.iter().cloned());
    let kept: BTreeMap<i64, RunDigest> = summary.runs().collect();
    let mut last = 0;
    loop {
        let runs = store.runs_after(last, RUNS_AT_ONCE)?;
        for (number, run) in &runs {
            last = *number;
            let Some(kept) = kept.get(number).filter(|kept| kept.id == run.id) else {
                continue;
            };
            if history.machine_number(&run.machine).is_none() {
                history.know_machine(&store.machine(&run.machine)?);
            }
            let mut kept = kept.clone();
            kept.refer_to(&shapes)?;
            if history.digest(run)? != kept {
                return Ok(Some(format!("it differs from {}", run.id)));
            }
        }
        if runs.is_empty() {
            return Ok(None);
        }
    }
}
