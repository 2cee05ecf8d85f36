//! What a server may have besides: power control and a console. The crate `control` does both.

use std::fmt::Debug;
use std::path::Path;

use control::{Console, Power};
use model::ServerSettings;

use super::problem::ServerProblem;

/// What can be done to a server from outside.
pub(crate) trait Control: Debug + Send + Sync {
    /// Switches the power off and on; false if nothing can.
    fn cycle_power(&self) -> Result<bool, ServerProblem>;

    /// Returns whether something can switch the power.
    fn has_power(&self) -> bool;

    /// Returns what the console printed since the last call; empty if there is none.
    fn new_console(&self) -> Vec<u8>;
}

/// The power control and the console that a server's settings name.
#[derive(Debug)]
pub(super) struct Outside {
    power: Option<Power>,
    console: Console,
}

impl Outside {
    /// Starts to read the console, if there is one.
    pub(super) fn open(server: &ServerSettings, home: &Path) -> Self {
        let power = server.power.as_ref().map(|settings| Power::new(&server.name, settings));
        Self { power, console: Console::open(server, home) }
    }
}

impl Control for Outside {
    fn cycle_power(&self) -> Result<bool, ServerProblem> {
        let Some(power) = &self.power else { return Ok(false) };
        Ok(power.cycle().map(|_| true)?)
    }

    fn has_power(&self) -> bool {
        self.power.is_some()
    }

    fn new_console(&self) -> Vec<u8> {
        self.console.take()
    }
}
