//! What a server may have besides: power control and a console. `control` switches the power; the console is what a program prints.

use std::fmt::Debug;
use std::io::Read;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use control::Power;
use model::ServerSettings;
use process::{Program, Running};

use super::problem::ServerProblem;

/// Limit on what is kept of a console between two looks (bytes).
const CONSOLE_MAX: usize = 16 << 20;
/// Deadline of the program that prints the console (s): a week.
const CONSOLE_S: u64 = 7 * 86_400;

/// What can be done to a server from outside.
pub(crate) trait Control: Debug + Send + Sync {
    /// Switches the power off and on; false if nothing can.
    fn cycle_power(&self) -> Result<bool, ServerProblem>;

    /// Returns what the console printed since the last call; empty if there is none.
    fn new_console(&self) -> Vec<u8>;
}

/// The programs that a server's settings name.
#[derive(Debug)]
pub(super) struct Programs {
    power: Option<Power>,
    printed: Arc<Mutex<Vec<u8>>>,
    /// Prints the console; ends when this value is dropped.
    _console: Option<Running>,
}

impl Programs {
    /// Starts to record the console, if there is one.
    pub(super) fn start(server: &ServerSettings) -> Self {
        let printed = Arc::default();
        let power = server.power.as_ref().map(|settings| Power::new(&server.name, settings));
        let console = server.console.as_deref().and_then(|words| record(words, &printed));
        Self { power, printed, _console: console }
    }
}

impl Control for Programs {
    fn cycle_power(&self) -> Result<bool, ServerProblem> {
        let Some(power) = &self.power else { return Ok(false) };
        Ok(power.cycle().map(|_| true)?)
    }

    fn new_console(&self) -> Vec<u8> {
        std::mem::take(&mut *self.printed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Starts the program that prints the console, and keeps what it prints.
fn record(words: &[String], printed: &Arc<Mutex<Vec<u8>>>) -> Option<Running> {
    let [program, arguments @ ..] = words else { return None };
    let program = Program::new(program).args(arguments).deadline_s(CONSOLE_S);
    let mut running = program.start(Stdio::null(), Stdio::piped(), Stdio::null()).ok()?;
    let (mut output, printed) = (running.take_output()?, Arc::clone(printed));
    // The thread ends with the program.
    std::thread::spawn(move || {
        let mut part = [0; 1 << 14];
        while let Ok(count @ 1..) = output.read(&mut part) {
            let mut kept = printed.lock().unwrap_or_else(PoisonError::into_inner);
            let room = CONSOLE_MAX.saturating_sub(kept.len());
            kept.extend_from_slice(&part[..count.min(room)]);
        }
    });
    Some(running)
}
