//! What a server may have besides: power control and a console.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use machine::person;
use model::ServerSettings;

use crate::console::{Console, Signal};
use crate::power::{Power, PowerState};
use crate::problem::ServerProblem;

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

    /// Sends these sysrq keys by the console; returns whether they were sent.
    fn send_sysrq(&self, keys: &str) -> bool;
}

/// The power control and the console that a server's settings name.
#[derive(Debug)]
pub(crate) struct PowerAndConsole {
    power: Option<Power>,
    console: Console,
    server: ServerSettings,
    home: PathBuf,
}

fn power_of(server: &ServerSettings) -> Option<Power> {
    server
        .power
        .as_ref()
        .map(|settings| Power::new(&server.name, settings))
}

impl PowerAndConsole {
    /// Starts to read the console, if there is one.
    pub(crate) fn open(server: &ServerSettings, home: &Path) -> Self {
        Self::with(Console::open(server, home), server, home)
    }

    /// Leaves the console alone.
    pub(crate) fn without_console(server: &ServerSettings, home: &Path) -> Self {
        Self::with(Console::none(), server, home)
    }

    fn with(console: Console, server: &ServerSettings, home: &Path) -> Self {
        Self {
            power: power_of(server),
            console,
            server: server.clone(),
            home: home.to_owned(),
        }
    }
}

impl Control for PowerAndConsole {
    fn cycle_power(&self) -> Result<bool, ServerProblem> {
        let Some(power) = &self.power else {
            return Ok(false);
        };
        Ok(power.cycle().map(|_| true)?)
    }

    fn has_power(&self) -> bool {
        self.power.is_some()
    }

    fn is_off(&self) -> Result<bool, ServerProblem> {
        let Some(power) = &self.power else {
            return Ok(false);
        };
        Ok(power.state()? == PowerState::Off)
    }

    fn switch_power(&self, is_on: bool) -> Result<(), ServerProblem> {
        let Some(power) = &self.power else {
            return Ok(());
        };
        Ok(power.turn(is_on).map(drop)?)
    }

    fn new_console(&self) -> Vec<u8> {
        self.console.take()
    }

    fn send_sysrq(&self, keys: &str) -> bool {
        let who = format!("a measurement of {}", person());
        Signal::sysrq(keys)
            .is_some_and(|signal| self.console.send(&self.server, &self.home, &signal, &who))
    }
}
