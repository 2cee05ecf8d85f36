//! Options that name a batch system of marvin.toml.

/// A batch system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum BatchName {
    // Comments and no documentation, which would make the help of all options twice as long. It
    // is [slurm] of marvin.toml.
    Slurm,
    // Another one: [batch] of marvin.toml.
    Batch,
}
