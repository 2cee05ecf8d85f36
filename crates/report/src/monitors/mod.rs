//! What monitors saw while workloads ran, kernel beside kernel: blocks of rows as in reports of MMTests, samples of
//! workloads that are compared without a verdict, and plots of what changed with time.
//!
//! Here are numbers only; how they look is in `render/monitors`. Which counters are behind a row, and whether two
//! kernels count the same, is in the dictionary (`model::CONCEPTS`).

mod block;
mod devices;
mod events;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod golden;
mod memory;
mod plots;
mod processors;
mod samples;
#[cfg(test)]
mod thread_of_2003;
mod vmstat;
mod zones;

use model::{Build, Machine, Observation};

use crate::label::labels;

pub use block::{Block, BlockRow, Form, Value};
pub use memory::{PageTables, page_tables};
pub use plots::{Line, Plot};
pub use samples::{Relative, SampleRow, SampleTable, difference_percent};
pub(crate) use samples::{amean, stddev};

/// A kernel and what monitors saw of it.
#[derive(Debug, Clone)]
pub struct Watched<'a> {
    /// What it is called, in two lines; the second is often empty.
    pub head: [String; 2],
    /// What monitors saw.
    pub observation: &'a Observation,
}

/// Returns what kernels are called over their columns, in two lines each; no two are called the same.
#[must_use]
pub fn heads(kernels: &[(&Build, &Machine)]) -> Vec<[String; 2]> {
    labels(kernels).into_iter().map(|label| label.head).collect()
}

/// Kernels side by side, the base first.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitored {
    /// What they did meanwhile; empty where nobody says.
    pub subject: String,
    /// What they are called, in two lines.
    pub heads: Vec<[String; 2]>,
    /// Samples of workloads.
    pub tables: Vec<SampleTable>,
    /// Rows of counters. One that no kernel has is not there.
    pub blocks: Vec<Block>,
    /// What changed with time, where copies were made in between.
    pub plots: Vec<Plot>,
}

impl Monitored {
    /// Returns what monitors saw, kernel beside kernel.
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
        let blocks = blocks.into_iter().filter(|block| !block.rows.is_empty()).collect();
        Self { subject: String::new(), heads, tables, blocks, plots: plots::plots(&seen) }
    }
}

/// Returns what a kernel is called in a sentence.
pub(crate) fn title(head: &[String; 2]) -> String {
    head.iter().filter(|line| !line.is_empty()).cloned().collect::<Vec<_>>().join("-")
}
