//! The exact machine with several processors: `-plugin
//! FILE,build=NAME,quantum=NS,latency=NS,pause=NS,wake=NS[,offsets=NS/NS…]` `[,sharing=FILE]`. All
//! but the last two have no default. `build` names the build of QEMU, whose fields are known then.
//!
//! `machine.rs` executes the processors, `schedule.rs` says whose turn it is, `sharing.rs` follows
//! which lines move between them, those of `prefetch.rs` too, and `locks.rs` how long locks are
//! held, `memory.rs` says what they are, and `qemu.rs` has QEMU's own functions.

mod locks;
mod machine;
mod memory;
mod prefetch;
mod qemu;
mod schedule;
mod sharing;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

pub(crate) use machine::{before_pause, is_installed};
pub(crate) use sharing::{
    access, close, enter, execute, is_watched, open, prefetch, prefetched, site, text,
};

use memory::Memory;
use qemu::Layout;
use schedule::Costs;

/// What was asked for.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    build: Option<String>,
    quantum: Option<i64>,
    latency: Option<i64>,
    pause: Option<i64>,
    wake: Option<i64>,
    offsets: Vec<i64>,
    sharing: Option<PathBuf>,
}

impl Settings {
    /// Takes one of the plugin's arguments, if it is one of these.
    pub(crate) fn set(&mut self, word: &str, value: &str) -> bool {
        let number = || value.parse().ok().filter(|number| *number >= 0);
        match word {
            "build" => self.build = Some(value.to_owned()),
            "quantum" => self.quantum = number(),
            "latency" => self.latency = number(),
            "pause" => self.pause = number(),
            "wake" => self.wake = number(),
            "sharing" => self.sharing = Some(PathBuf::from(value)),
            "offsets" => match value.split('/').map(str::parse).collect() {
                Ok(offsets) => self.offsets = offsets,
                Err(_) => return false,
            },
            _ => return false,
        }
        true
    }

    /// Has QEMU execute its processors as asked for; nothing without a `build`. `known` says where
    /// the kernel keeps its records. Returns the file of the shared lines.
    pub(crate) fn install(self, known: BTreeMap<String, u64>) -> Result<Option<PathBuf>, String> {
        let Some(build) = self.build else {
            return Ok(None);
        };
        let costs = || {
            let (quantum, latency) = (self.quantum?, self.latency?);
            Some(Costs {
                quantum,
                latency,
                pause: self.pause?,
                wake: self.wake?,
            })
        };
        let costs =
            costs().ok_or("one of quantum, latency, pause and wake is missing, or no number")?;
        // A processor that runs on while its line moves hides the next transfer.
        if costs.quantum == 0 || costs.quantum > costs.latency {
            return Err(format!(
                "a quantum of {} ns is not between 1 and the latency, {} ns",
                costs.quantum, costs.latency
            ));
        }
        let layout = Layout::of(&build)
            .ok_or_else(|| format!("`{build}` is no build of QEMU that is known"))?;
        if self.sharing.is_some() {
            qemu::keep_registers()?;
            sharing::install(Memory::new(known));
        }
        machine::install(layout, costs, self.offsets)?;
        Ok(self.sharing)
    }
}

/// Ends QEMU, which goes on no further: said where the lab looks.
fn give_up(why: &str) -> ! {
    drop(writeln!(std::io::stderr(), "marvin's tracer: {why}"));
    std::process::exit(1)
}
