//! Prints one line per figure of speed and size: its name, its value, and its goal or peer.
//!
//! Speed is never a test: the program succeeds with any figures, and fails only if it cannot
//! measure. It works in a temporary directory and does not touch the user's data directory.

mod agent;
mod comparison;
mod integrity;
mod noisy;
mod suite;
mod tracing;

use figures::figure::Figures;

fn main() -> anyhow::Result<()> {
    // The processor time of what runs behind them is not seen; `walls` prints what they cost.
    subprocess::remove_walls();
    let home = tempfile::tempdir()?;
    // First, because it fails without QEMU.
    let bench = suite::Bench::open(home.path())?;
    let mut figures = Figures;
    agent::size(&mut figures)?;
    agent::sampler(&mut figures)?;
    comparison::from_store(&mut figures)?;
    let mut bench = bench.with_kernel()?;
    suite::whole(&mut bench, &mut figures)?;
    integrity::hashing(home.path(), &mut figures)?;
    agent::plain_loop(&mut bench, &mut figures)?;
    noisy::own_cost(home.path(), bench.parts().1, &mut figures)?;
    tracing::tracing(&mut bench, &mut figures)
}
