//! What a server may have besides: power control and a console. The crate `control` does both.

use std::fmt::Debug;
use std::path::Path;

use control::{Console, Power, PowerState};
use model::ServerSettings;

use super::problem::ServerProblem;

/// What can be done to a server from outside.
pub(crate) trait Control: Debug + Send + Sync {
    /// Switches the power off and on; false if nothing can.
    fn cycle_power(&self) -> Result<bool, ServerProblem>;

    /// Returns whether something can switch the power.
    fn has_power(&self) -> bool;

    /// Returns whether the power is off; false if nothing can say.
    fn is_off(&self) -> Result<bool, ServerProblem>;

    /// Switches the power on or off, unless it is; nothing without power control.
    fn switch_power(&self, is_on: bool) -> Result<(), ServerProblem>;

    /// Returns what the console printed since the last call; empty if there is none.
    fn new_console(&self) -> Vec<u8>;
}

/// The power control and the console that a server's settings name.
#[derive(Debug)]
pub(super) struct Outside {
    power: Option<Power>,
    console: Console,
}

fn power_of(server: &ServerSettings) -> Option<Power> {
    server.power.as_ref().map(|settings| Power::new(&server.name, settings))
}

impl Outside {
    /// Starts to read the console, if there is one.
    pub(super) fn open(server: &ServerSettings, home: &Path) -> Self {
        Self { power: power_of(server), console: Console::open(server, home) }
    }

    /// Leaves the console alone.
    pub(super) fn without_console(server: &ServerSettings) -> Self {
        Self { power: power_of(server), console: Console::none() }
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

    fn is_off(&self) -> Result<bool, ServerProblem> {
        let Some(power) = &self.power else { return Ok(false) };
        Ok(power.state()? == PowerState::Off)
    }

    fn switch_power(&self, is_on: bool) -> Result<(), ServerProblem> {
        let Some(power) = &self.power else { return Ok(()) };
        Ok(power.turn(is_on).map(drop)?)
    }

    fn new_console(&self) -> Vec<u8> {
        self.console.take()
    }
}
