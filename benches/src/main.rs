//! Prints one line per figure of speed and size: what it is, what was measured, and the goal or peer it stands against.
//!
//! A claim about speed is never a test: whatever the figures are, the program ends well. It fails only when it cannot
//! measure. All it makes lies in a temporary folder and goes with it; the user's home is not touched.

mod agent;
mod comparison;
mod integrity;
mod suite;
mod tracing;

use figures::figure::Figures;

fn main() -> anyhow::Result<()> {
    let home = tempfile::tempdir()?;
    // First of all, as it fails where there is no QEMU.
    let bench = suite::Bench::open(home.path())?;
    let mut figures = Figures;
    agent::size(&mut figures)?;
    agent::sampler(&mut figures)?;
    comparison::from_store(&mut figures)?;
    let mut bench = bench.with_kernel()?;
    suite::whole(&mut bench, &mut figures)?;
    integrity::hashing(home.path(), &mut figures)?;
    agent::plain_loop(&mut bench, &mut figures)?;
    tracing::tracing(&mut bench, &mut figures)
}
