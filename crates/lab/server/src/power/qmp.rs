//! Power of a server that QEMU emulates, by QMP on a UNIX socket (QEMU docs/interop/qmp-spec.rst).
//! QEMU lives on while the server is off: an off server is one that was reset and does not run.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use model::BootDevice;
use serde_json::{Value, json};

use super::{NextBoot, PowerError, PowerState, QUESTION_S, Refusal, Switch};

/// Limit on a line from QEMU (bytes).
const LINE_MAX: u64 = 1 << 20;
/// Events between a command and its answer.
const EVENTS_MAX: usize = 1000;

#[derive(Debug)]
pub(crate) struct Qemu {
    pub(crate) name: String,
    pub(crate) socket: PathBuf,
}

impl Qemu {
    /// Runs commands and returns the answer to the last one.
    fn run(&self, commands: &[&str]) -> Result<Value, String> {
        let reply = |error: std::io::Error| format!("{error}");
        let stream = UnixStream::connect(&self.socket).map_err(reply)?;
        let patience = Some(Duration::from_secs(QUESTION_S));
        stream
            .set_read_timeout(patience)
            .and_then(|()| stream.set_write_timeout(patience))
            .map_err(reply)?;
        let mut lines = BufReader::new(stream);
        // The greeting.
        read_line(&mut lines)?;
        let mut answer = Value::Null;
        for command in ["qmp_capabilities"].iter().chain(commands) {
            let line = format!("{}\n", json!({ "execute": command }));
            lines.get_mut().write_all(line.as_bytes()).map_err(reply)?;
            answer = answer_to(command, &mut lines)?;
        }
        Ok(answer)
    }
}

impl Switch for Qemu {
    fn state(&self) -> Result<PowerState, Refusal> {
        let answer = self.run(&["query-status"]).map_err(Refusal::Passing)?;
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
            ["stop", "system_reset"]
        };
        self.run(&commands).map(drop).map_err(Refusal::Passing)
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

fn answer_to(command: &str, lines: &mut BufReader<UnixStream>) -> Result<Value, String> {
    for _ in 0..EVENTS_MAX {
        let mut answer = read_line(lines)?;
        if let Some(value) = answer.get_mut("return") {
            return Ok(value.take());
        }
        if let Some(error) = answer.get("error") {
            return Err(format!(
                "{command}: {}",
                error["desc"].as_str().unwrap_or("refused")
            ));
        }
    }
    Err(format!("{command}: only events, no answer"))
}

fn read_line(lines: &mut BufReader<UnixStream>) -> Result<Value, String> {
    let mut line = String::new();
    match lines.take(LINE_MAX).read_line(&mut line) {
        Ok(0) => Err("QEMU has ended".to_owned()),
        Ok(_) => serde_json::from_str(&line).map_err(|error| format!("answers no JSON: {error}")),
        Err(error) => Err(error.to_string()),
    }
}
