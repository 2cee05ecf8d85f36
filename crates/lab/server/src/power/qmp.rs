//! Power of a server that QEMU emulates, by QMP on a UNIX socket (QEMU docs/interop/qmp-spec.rst).
//! QEMU lives on while the server is off: an off server is one that was reset and does not run.

use std::path::PathBuf;
use std::time::Duration;

use model::BootDevice;
use serde_json::{Value, json};
use subprocess::{Qmp, QmpError};

use super::{NextBoot, PowerError, PowerState, QUESTION_S, Refusal, Switch};

#[derive(Debug)]
pub(crate) struct Qemu {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
}

impl Qemu {
    /// Runs commands and returns the answer to the last one.
    fn run(&self, commands: &[&str]) -> Result<Value, Refusal> {
        let patience = Duration::from_secs(QUESTION_S);
        let mut qmp = Qmp::over_socket(&self.socket, patience).map_err(passing)?;
        let mut answer = Value::Null;
        for command in commands {
            let arguments = json!({});
            answer = qmp.command(command, arguments, patience).map_err(passing)?;
        }
        Ok(answer)
    }
}

impl Switch for Qemu {
    fn state(&self) -> Result<PowerState, Refusal> {
        let answer = self.run(&["query-status"])?;
        Ok(if answer["status"] == "running" {
            PowerState::On
        } else {
            PowerState::Off
        })
    }

    fn request(&self, is_on: bool) -> Result<(), Refusal> {
        let commands = if is_on {
            ["system_reset", "cont"]
        } else {
            // Stopped first: after the reset it would begin to boot.
            ["stop", "system_reset"]
        };
        self.run(&commands).map(drop)
    }

    fn request_boot(&self, device: BootDevice) -> Result<(), Refusal> {
        let why =
            "QEMU has its boot order from its command line (-boot, bootindex), and QMP cannot change it".to_owned();
        Err(Refusal::Lasting(PowerError::NoBoot {
            name: self.name.clone(),
            device,
            why,
        }))
    }

    fn next_boot(&self) -> Result<NextBoot, Refusal> {
        Ok(NextBoot::Unknown)
    }
}

fn passing(error: QmpError) -> Refusal {
    Refusal::Passing(error.to_string())
}
