//! Power of servers. Marvin reads the state back after each request, because the answer of a BMC
//! proves nothing: some answer before they switch, some answer and do nothing, some report a state
//! that they only intend.
//!
//! `ipmi`, `redfish`, `qmp` and `command` are the ways to ask; this module decides how often and
//! how long. Whether a server really restarted, its boot id says: `handle` looks at that.

mod command;
mod ipmi;
mod qmp;
mod redfish;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug, Display};
use std::thread::sleep;
use std::time::{Duration, Instant};

use model::{BootDevice, Login, PowerSettings, ServerSettings};
use subprocess::{Ended, Program, ProgramError};

use self::command::Command;
pub(crate) use self::ipmi::IpmiTool;
use self::qmp::Qemu;
use self::redfish::Curl;
use crate::password;

/// Deadline of one question to a BMC (s): slow ones take 20 s.
const QUESTION_S: u64 = 60;
/// How often a question or request is repeated that failed.
const ATTEMPTS: u32 = 3;

/// What is known of a server's power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PowerState {
    On,
    Off,
    /// It changes at this moment.
    Changing,
    /// Whatever switches it cannot say.
    Unknown,
}

impl PowerState {
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
            Self::Changing => "changing",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the state of this name, in any case: BMCs write `On`.
    fn of_word(word: &str) -> Option<Self> {
        [Self::On, Self::Off]
            .into_iter()
            .find(|state| state.name().eq_ignore_ascii_case(word))
    }
}

impl Display for PowerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why the power was not switched, or is not known.
#[derive(Debug, thiserror::Error)]
pub enum PowerError {
    /// The password cannot be read.
    #[error("cannot switch the power of {name}: {why}")]
    Login {
        name: String,
        /// Which one, and why.
        why: String,
    },
    /// A program is missing on this host.
    #[error(
        "cannot switch the power of {name}: no {tool} on this host\nhint: apt-get install {package}"
    )]
    NoTool {
        name: String,
        tool: &'static str,
        package: &'static str,
    },
    /// The BMC does not answer, or refuses.
    #[error("cannot ask {place} for the power of {name}: {reply}")]
    Refused {
        name: String,
        place: String,
        reply: String,
    },
    /// The state did not follow the request.
    #[error(
        "cannot switch {name} {wanted}: {place} took {attempts} requests in {seconds} s and still reports {state}"
    )]
    Unchanged {
        name: String,
        place: String,
        /// The state that it reports.
        state: PowerState,
        /// The state that was asked for.
        wanted: PowerState,
        /// How long Marvin waited (s).
        seconds: u64,
        /// How often it asked.
        attempts: u32,
    },
    /// What switches the power cannot choose the boot device.
    #[error("cannot set the next boot of {name} to {device}: {why}")]
    NoBoot {
        name: String,
        /// The device that was asked for.
        device: BootDevice,
        why: String,
    },
    /// The boot device did not follow the request.
    #[error(
        "cannot set the next boot of {name} to {device}: {place} took {attempts} requests and reports {reported}"
    )]
    BootUnchanged {
        name: String,
        place: String,
        /// The device that was asked for.
        device: BootDevice,
        /// The device that it reports, or that there is none.
        reported: &'static str,
        /// How often Marvin asked.
        attempts: u32,
    },
    #[error("cannot switch the power of {name}: {source}")]
    Program { name: String, source: ProgramError },
}

/// A way to ask for power.
trait Switch: Debug + Send + Sync {
    fn state(&self) -> Result<PowerState, Refusal>;

    /// Asks for power, or for none.
    fn request(&self, is_on: bool) -> Result<(), Refusal>;

    /// Asks for a device for the next boot only.
    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal>;

    /// Returns the device of the next boot.
    fn next_boot(&self) -> Result<NextBoot, Refusal>;
}

/// What is known of a server's next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextBoot {
    /// It boots from this device.
    From(BootDevice),
    /// It boots as its firmware is set, or from another device.
    Other,
    /// Whatever sets it cannot say.
    Unknown,
}

/// Why one question failed.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Another attempt may succeed.
    Passing(String),
    /// It would fail again.
    Lasting(PowerError),
}

impl Refusal {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Passing(reply) => reply,
            Self::Lasting(error) => error.to_string(),
        }
    }
}

/// How long to wait.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// Between two looks at the state.
    look: Duration,
    /// For the state to follow a request; then it is repeated.
    change: Duration,
    /// Without power during a cycle: capacitors keep some servers on for a second.
    dark: Duration,
}

const PATIENCE: Patience = Patience {
    look: Duration::from_secs(1),
    change: Duration::from_secs(40),
    dark: Duration::from_secs(5),
};

/// The power of a server.
#[derive(Debug)]
pub struct Power {
    name: String,
    place: String,
    switch: Box<dyn Switch>,
    patience: Patience,
}

/// Returns whether the power control of a server says that it is off.
#[must_use]
pub fn is_off(server: &ServerSettings) -> bool {
    let Some(settings) = &server.power else {
        return false;
    };
    Power::new(&server.name, settings)
        .state()
        .is_ok_and(|state| state == PowerState::Off)
}

impl Power {
    /// Returns the power of a server; asks for nothing yet.
    #[must_use]
    pub fn new(name: &str, settings: &PowerSettings) -> Self {
        let own = name.to_owned();
        let switch: Box<dyn Switch> = match settings {
            PowerSettings::Command(command) => Box::new(Command {
                name: own,
                command: command.clone(),
            }),
            PowerSettings::Ipmi(ipmi) => Box::new(IpmiTool {
                name: own,
                ipmi: ipmi.clone(),
            }),
            PowerSettings::Redfish(redfish) => Box::new(Curl {
                name: own,
                redfish: redfish.clone(),
            }),
            PowerSettings::Qmp(socket) => Box::new(Qemu {
                name: own,
                socket: socket.clone(),
            }),
        };
        Self {
            name: name.to_owned(),
            place: settings.summary(),
            switch,
            patience: PATIENCE,
        }
    }

    /// Waits less, for tests with real parts.
    #[doc(hidden)]
    #[must_use]
    pub fn hasty(self) -> Self {
        let [look, change, dark] = [100, 2000, 100].map(Duration::from_millis);
        Self {
            patience: Patience { look, change, dark },
            ..self
        }
    }

    /// Returns what switches it, in words without secrets.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the state.
    ///
    /// # Errors
    /// If it cannot be asked for.
    pub fn state(&self) -> Result<PowerState, PowerError> {
        self.retry(|| self.switch.state())
    }

    /// Switches it on or off and waits until that is reported. Returns the state;
    /// [`PowerState::Unknown`] if nothing can report it.
    ///
    /// # Errors
    /// If it cannot be asked for, or if it does not follow.
    pub fn turn(&self, is_on: bool) -> Result<PowerState, PowerError> {
        let wanted = if is_on {
            PowerState::On
        } else {
            PowerState::Off
        };
        let mut state = self.state()?;
        for _ in 0..ATTEMPTS {
            if state == wanted {
                return Ok(state);
            }
            self.retry(|| self.switch.request(is_on))?;
            let requested = Instant::now();
            loop {
                state = self.state()?;
                if [wanted, PowerState::Unknown].contains(&state) {
                    return Ok(state);
                }
                if requested.elapsed() >= self.patience.change {
                    break;
                }
                sleep(self.patience.look);
            }
        }
        let name = self.name.clone();
        let place = self.place.clone();
        let seconds = self.patience.change.as_secs() * u64::from(ATTEMPTS);
        Err(PowerError::Unchanged {
            name,
            place,
            state,
            wanted,
            seconds,
            attempts: ATTEMPTS,
        })
    }

    /// Switches it off, waits some seconds, and switches it on.
    ///
    /// # Errors
    /// As [`Self::turn`].
    pub fn cycle(&self) -> Result<PowerState, PowerError> {
        self.turn(false)?;
        sleep(self.patience.dark);
        self.turn(true)
    }

    /// Has the next boot, and only that, start from a device. It switches no power. Returns whether
    /// that was read back; false if nothing can report it.
    ///
    /// # Errors
    /// If it cannot be asked for, or if it does not follow.
    pub fn boot_next(&self, device: BootDevice) -> Result<bool, PowerError> {
        let mut reported = "no device";
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                sleep(self.patience.look);
            }
            self.retry(|| self.switch.request_boot(device))?;
            match self.retry(|| self.switch.next_boot())? {
                NextBoot::From(set) if set == device => return Ok(true),
                NextBoot::From(other) => reported = other.name(),
                NextBoot::Other => reported = "no device",
                NextBoot::Unknown => return Ok(false),
            }
        }
        let name = self.name.clone();
        let place = self.place.clone();
        Err(PowerError::BootUnchanged {
            name,
            place,
            device,
            reported,
            attempts: ATTEMPTS,
        })
    }

    fn retry<T>(&self, ask: impl Fn() -> Result<T, Refusal>) -> Result<T, PowerError> {
        let mut attempts = 1;
        loop {
            match ask() {
                Ok(answer) => return Ok(answer),
                Err(Refusal::Lasting(error)) => return Err(error),
                Err(Refusal::Passing(reply)) if attempts == ATTEMPTS => {
                    let name = self.name.clone();
                    let place = self.place.clone();
                    return Err(PowerError::Refused {
                        name,
                        place,
                        reply: model::sanitize_line(&reply),
                    });
                }
                Err(Refusal::Passing(_)) => attempts += 1,
            }
            sleep(self.patience.look);
        }
    }
}

/// Returns the user and the password; empty if the BMC asks for none.
fn login(name: &str, login: Option<&Login>) -> Result<(String, String), Refusal> {
    let Some(login) = login else {
        return Ok(Default::default());
    };
    Ok((
        login.user.clone(),
        password(login).map_err(|why| {
            Refusal::Lasting(PowerError::Login {
                name: name.to_owned(),
                why,
            })
        })?,
    ))
}

/// Runs a program that asks a BMC, with a deadline.
fn ask(
    name: &str,
    program: Program,
    package: Option<(&'static str, &'static str)>,
    input: &str,
) -> Result<Ended, Refusal> {
    match program
        .deadline_s(QUESTION_S)
        .fed(|to| to.write_all(input.as_bytes()))
    {
        Ok((ended, _)) => Ok(ended),
        Err(ProgramError::Deadline { .. }) => {
            Err(Refusal::Passing(format!("no answer within {QUESTION_S} s")))
        }
        Err(ProgramError::Missing(_)) if package.is_some() => {
            let (tool, package) = package.unwrap_or_default();
            Err(Refusal::Lasting(PowerError::NoTool {
                name: name.to_owned(),
                tool,
                package,
            }))
        }
        Err(source) => Err(Refusal::Lasting(PowerError::Program {
            name: name.to_owned(),
            source,
        })),
    }
}
