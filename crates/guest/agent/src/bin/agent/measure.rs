//! The measured loop: a fixed number of operations per iteration, the clock read only outside of
//! it.

use std::io;

use wire::Clock;

use crate::region;
use crate::resident::touch_program;
use crate::samples::Samples;
use crate::sampling::Sampler;
use crate::workloads::{self, Between, Failure, Row};
use guest::clock::now;

/// How a workload is measured.
pub(crate) struct Plan {
    /// What time is read from.
    pub(crate) clock: Clock,
    /// Operations per iteration.
    pub(crate) operations: u64,
    /// Iterations before the measured ones.
    pub(crate) warm_up: u32,
    /// Measured iterations.
    pub(crate) iterations: u32,
    /// How many tasks do the operations at the same time.
    pub(crate) tasks: u32,
    /// What is waited for before the workload is made, and before each iteration where it rests.
    pub(crate) wait: fn(u64, u64) -> io::Result<()>,
    /// How long, in microseconds.
    pub(crate) delay_us: u64,
    /// And how many rounds are executed then.
    pub(crate) spins: u64,
    /// Mappings of the process above those of the workload, and below.
    pub(crate) mappings: [u64; 2],
    /// Descriptors that the process has open.
    pub(crate) descriptors: u64,
    /// Nanoseconds between samples of where the processors are; `None` for a measurement.
    pub(crate) sampling: Option<u64>,
}

/// What came of a workload.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The ticks of each measured iteration.
    pub(crate) ticks: Vec<u64>,
    /// What else it measured, by name: a number for each measured iteration.
    pub(crate) rows: Vec<(String, Vec<u64>)>,
    /// What was sampled.
    pub(crate) samples: Option<Samples>,
}

impl Measured {
    fn add(&mut self, rows: Vec<Row>) {
        for (name, value) in rows {
            match self.rows.iter_mut().find(|(known, _)| *known == name) {
                Some((_, values)) => values.push(value),
                None => self.rows.push((name, vec![value])),
            }
        }
    }
}

/// Runs a workload and returns what each measured iteration took.
pub(crate) fn measure(name: &str, plan: &Plan) -> Result<Measured, Failure> {
    touch_program()?;
    guest::perturb::surround(plan.mappings)?;
    guest::perturb::open_descriptors(plan.descriptors)?;
    (plan.wait)(plan.delay_us, plan.spins)?;
    // Before the workload starts processes: those inherit the events.
    let mut sampler = plan.sampling.map(Sampler::open).transpose()?;
    let mut workload = workloads::create(name, plan.tasks)?;
    // All memory for results is there before the first iteration, so that recording one touches no
    // allocator.
    let mut measured = Measured {
        ticks: Vec::with_capacity(plan.iterations as usize),
        rows: Vec::new(),
        samples: None,
    };
    for iteration in 0..plan.warm_up + plan.iterations {
        workload.prepare(plan.operations)?;
        if workload.between() == Between::Rest {
            (plan.wait)(plan.delay_us, plan.spins)?;
        }
        let sampled = sampler.as_mut().filter(|_| iteration >= plan.warm_up);
        sampled.as_ref().map_or(Ok(()), |sampler| sampler.start())?;
        let start = now(plan.clock);
        if iteration >= plan.warm_up {
            region::open();
        }
        workload.run(plan.operations)?;
        // After an iteration that was not opened this means nothing.
        region::close();
        let end = now(plan.clock);
        if let Some(sampler) = sampled {
            sampler.stop()?;
            sampler.drain();
        }
        workload.clear(plan.operations)?;
        let rows = workload.rows();
        if iteration >= plan.warm_up {
            measured.ticks.push(
                end.checked_sub(start)
                    .ok_or_else(|| io::Error::other("the clock went backwards"))?,
            );
            measured.add(rows);
        }
    }
    measured.samples = sampler.map(Sampler::into_samples);
    Ok(measured)
}
