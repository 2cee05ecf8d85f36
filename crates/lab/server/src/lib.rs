//! Servers as machines: Marvin boots each build once by ssh and measures on it. The server's own
//! kernel stays the boot default throughout, so a crash returns to it.
//!
//! `boot` is the machine that the lab uses, `handle` a server in use, `remote` each step there by
//! ssh. `power` switches servers and verifies it, `console` records what they print, `deploy` makes
//! images and gives servers one as their own system, `idle` switches idle servers off. Whose turn
//! it is decides `lab` by reservations; here a [`Permit`] stands for them.

mod boot;
mod console;
mod deploy;
mod fit;
mod handle;
mod idle;
mod login;
mod look;
mod permit;
mod power;
mod power_and_console;
mod problem;
mod record;
mod remote;
#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::boot::ServerMachine;
pub use self::console::{
    Clock, Console, ConsoleLine, Recorder, Signal, SignalError, Tail, console_folder, is_recorded,
    request_signal, send_signal,
};
pub use self::deploy::{
    Answers, DeployError, Image, ImageGarbage, Offer, deploy, images_in_use, install, make,
    undeploy,
};
pub use self::idle::switch_off;
pub use self::login::password;
pub use self::look::{ServerLook, accept, look};
pub use self::permit::{Permit, ServerAccess};
pub use self::power::{Power, PowerError, PowerState, is_off};
pub use self::problem::{LoginProblem, ServerProblem, UnfitServer, WrongSystem, server_problem};
pub use self::record::{ServerState, server_state};

/// Time between two polls of a server that restarts.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// How long the agent may take to set the machine (s): before it drops caches, it waits for the
/// disks.
const PREPARE_S: u64 = 120;
