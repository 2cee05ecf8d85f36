//! Monitor data of several kernels: blocks of rows as in reports of MMTests, samples of workloads
//! without a verdict, and plots over time.
//!
//! Numbers only; [`render`] formats them. The dictionary ([`DICTIONARY`]) defines the
//! counters behind a row, and whether two kernels count the same.

#![warn(missing_docs)]

mod block;
mod counter_dictionary;
mod devices;
mod events;
#[cfg(any(test, feature = "fixtures"))]
pub mod fixtures;
#[cfg(test)]
mod golden;
mod memory;
mod plots;
mod processors;
pub mod render;
mod samples;
mod stats;
#[cfg(test)]
mod thread_of_2003;
mod vmstat;
mod zones;

use model::{Build, Machine, Observation};

use document::label::labels_as_typed;

pub use block::{Block, BlockRow, Form, MonitorValue};
pub use counter_dictionary::{
    Comparability, CounterMeaning, DICTIONARY, Formula, Term, ZONES, find_meaning,
};
pub use memory::{PageTables, page_tables};
pub use plots::{Plot, PlotLine};
pub use samples::{Relative, SampleRow, SampleTable, difference_percent};
pub(crate) use samples::{amean, stddev};
pub use stats::{RunStats, stats_block};

/// A kernel and its monitor data.
#[derive(Debug, Clone)]
pub struct Watched<'a> {
    /// Its label, in two lines; the second is often empty.
    pub head: [String; 2],
    /// What Marvin read while the workload ran.
    pub observation: &'a Observation,
}

/// Returns unique labels of kernels, in two lines each, for column heads.
#[must_use]
pub fn heads(kernels: &[(&Build, &Machine)]) -> Vec<[String; 2]> {
    labels_as_typed(kernels)
        .into_iter()
        .map(|label| label.head)
        .collect()
}

/// Kernels side by side, the base first.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitored {
    /// The workloads; empty if unknown.
    pub subject: String,
    /// Their labels, in two lines.
    pub heads: Vec<[String; 2]>,
    /// Samples of workloads, as tables of MMTests.
    pub tables: Vec<SampleTable>,
    /// Rows of counters, without those that no kernel has.
    pub blocks: Vec<Block>,
    /// Plots over time, if copies were made during the workload.
    pub plots: Vec<Plot>,
}

impl Monitored {
    /// Builds the side-by-side view of several kernels.
    #[must_use]
    pub fn new(kernels: &[Watched<'_>], tables: Vec<SampleTable>) -> Self {
        let heads: Vec<[String; 2]> = kernels.iter().map(|kernel| kernel.head.clone()).collect();
        let seen: Vec<&Observation> = kernels.iter().map(|kernel| kernel.observation).collect();
        let names: Vec<String> = heads.iter().map(title).collect();
        let blocks = [
            processors::duration(&seen),
            vmstat::block(&seen, &names),
            devices::disks(&seen),
            memory::slabs(&seen),
            memory::page_table_block(&seen),
            processors::pressure(&seen),
            processors::threads(&seen),
            processors::processors(&seen),
            zones::zones(&seen),
            events::interrupts(&seen),
            events::softirqs(&seen),
            events::network(&seen),
        ];
        let blocks = blocks
            .into_iter()
            .filter(|block| !block.rows.is_empty())
            .collect();
        Self {
            subject: String::new(),
            heads,
            tables,
            blocks,
            plots: plots::plots(&seen),
        }
    }
}

/// Returns a kernel's label for a sentence.
pub(crate) fn title(head: &[String; 2]) -> String {
    head.iter()
        .filter(|line| !line.is_empty())
        .cloned()
        .collect::<Vec<_>>()
        .join("-")
}
