//! The suites made after older tests, and the selections from all suites.
//!
//! Sizes follow one rule: what the original scales with memory or processors is scaled to a guest with 256 MiB and one
//! processor, everything together takes at most a quarter of that memory, and an iteration is between about one and
//! fifty million instructions, so that it is long against the orders that it begins with.

mod io;
mod mm;
mod net;
mod reclaim;
mod rmap;
mod sched;
mod selections;
mod spread;

pub use io::IO;
pub use mm::MM;
pub use net::NET;
pub use reclaim::RECLAIM;
pub use rmap::RMAP;
pub use sched::SCHED;
pub use selections::{SEEDS, SMOKE};
pub use spread::{floor_percent, spread_percent};

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use crate::{Equipment, MICRO, Metric, Steadiness, Suite, Workload};

/// All suites. The last two declare nothing of their own: they choose from the others.
pub static SUITES: LazyLock<[Arc<Suite>; 9]> =
    LazyLock::new(|| [&MICRO, &MM, &SCHED, &NET, &IO, &RECLAIM, &RMAP, &SMOKE, &SEEDS].map(|suite| Arc::clone(suite)));

/// What is said of a workload.
pub(crate) struct Texts {
    pub(crate) stresses: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) source: &'static str,
}

/// The functions of which a workload enters at least one of each list.
pub(crate) type Functions = &'static [&'static [&'static str]];

/// Returns a declaration.
pub(crate) const fn workload(name: &'static str, texts: Texts, operations: u64, exercises: Functions) -> Workload {
    Workload {
        name: Cow::Borrowed(name),
        stresses: Cow::Borrowed(texts.stresses),
        operation: Cow::Borrowed(texts.operation),
        operations,
        iterations: 16,
        warm_up: 2,
        exercises,
        metric: Metric::COST,
        equipment: Equipment::PLAIN,
        steadiness: Steadiness::Steady,
        row_of: None,
        source: Cow::Borrowed(texts.source),
    }
}
