//! The suites that follow older tests, and the selections from all suites.
//!
//! Sizes follow one rule. Parameters that the original scales with memory or processors are scaled
//! to a guest with 256 MiB and one processor. A workload uses at most a quarter of that memory. An
//! iteration has about one to fifty million instructions, which is long against its start-up cost.

mod contention;
mod disk;
mod fs;
mod io;
mod kernel_parts;
pub(crate) mod micro;
mod mm;
mod net;
mod reclaim;
mod reports;
mod rmap;
mod scale;
mod sched;
mod selections;
mod spread;
mod subsystems;
mod twins;

pub use contention::{CONTENTION, declared_transfers};
pub use disk::DISKS;
pub use fs::FS;
pub use io::IO;
pub(crate) use kernel_parts::part_suite;
pub use kernel_parts::{KERNEL_PARTS, KernelPart};
pub use mm::MM;
pub use net::NET;
pub use reclaim::RECLAIM;
pub use reports::REPORTS;
pub use rmap::RMAP;
pub use scale::SCALE;
pub use sched::SCHED;
pub use selections::{PATHS, SEEDS, SMOKE};
pub use spread::{Floor, floor, floor_percent, spread_percent};
pub use subsystems::SUBSYSTEMS;
pub use twins::{LayoutState, layout_state, twins};

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use crate::{GuestConfig, MICRO, Metric, Processors, Steadiness, Suite, Workload};

/// All suites. The last three declare no workloads: they select from the others.
pub static SUITES: LazyLock<[Arc<Suite>; 16]> = LazyLock::new(|| {
    [
        &MICRO,
        &MM,
        &SCHED,
        &NET,
        &IO,
        &RECLAIM,
        &RMAP,
        &DISKS,
        &FS,
        &SUBSYSTEMS,
        &REPORTS,
        &SCALE,
        &CONTENTION,
        &PATHS,
        &SMOKE,
        &SEEDS,
    ]
    .map(|suite| Arc::clone(suite))
});

/// The texts of a workload.
pub(crate) struct Texts {
    pub(crate) stresses: &'static str,
    pub(crate) operation: &'static str,
    pub(crate) source: &'static str,
}

/// Groups of functions; a workload enters at least one of each group.
pub(crate) type Functions = &'static [&'static [&'static str]];

pub(crate) const fn workload(
    name: &'static str,
    texts: Texts,
    operations: u64,
    exercises: Functions,
) -> Workload {
    Workload {
        name: Cow::Borrowed(name),
        stresses: Cow::Borrowed(texts.stresses),
        operation: Cow::Borrowed(texts.operation),
        operations,
        iterations: 16,
        warm_up: 2,
        exercises,
        metric: Metric::COST,
        guest_config: GuestConfig::PLAIN,
        steadiness: Steadiness::Steady,
        tasks: None,
        processors: Processors::One,
        row_of: None,
        source: Cow::Borrowed(texts.source),
    }
}
