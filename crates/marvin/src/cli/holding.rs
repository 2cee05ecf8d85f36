//! Commands on the servers of the lab: power.

use clap::{Args, ValueEnum};

/// `marvin power`.
#[derive(Debug, Args)]
pub(crate) struct Power {
    /// Its name: a [[machine]] of marvin.toml with a [machine.power]
    pub(crate) name: String,

    /// What to do
    #[arg(value_enum, default_value_t = Turn::Status)]
    pub(crate) turn: Turn,
}

/// What to do with the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Turn {
    /// Print whether it is on
    Status,
    /// Switch it on
    On,
    /// Switch it off at once; its kernel does not shut down
    Off,
    /// Switch it off, and on after 5 s
    Cycle,
}
