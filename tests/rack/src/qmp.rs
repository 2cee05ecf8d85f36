//! QMP over a UNIX socket: one command at a time, events dropped.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Longest wait for QEMU, also on a busy host.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(20);

#[derive(Debug)]
pub(crate) struct Qmp {
    from: BufReader<UnixStream>,
}

impl Qmp {
    /// Connects as soon as QEMU listens.
    pub(crate) fn connect(socket: &Path) -> Result<Self, String> {
        let begun = Instant::now();
        let stream = loop {
            match UnixStream::connect(socket) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > PATIENCE => {
                    return Err(format!("no control socket: {error}"));
                }
                Err(_) => sleep(LOOK),
            }
        };
        stream
            .set_read_timeout(Some(PATIENCE))
            .map_err(|error| error.to_string())?;
        let mut qmp = Self {
            from: BufReader::new(stream),
        };
        // The greeting.
        qmp.line()?;
        qmp.command("qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Sends a command and returns QEMU's answer.
    pub(crate) fn command(&mut self, name: &str, arguments: Value) -> Result<Value, String> {
        let line = format!("{}\n", json!({ "execute": name, "arguments": arguments }));
        self.from
            .get_mut()
            .write_all(line.as_bytes())
            .map_err(|error| format!("{name}: {error}"))?;
        loop {
            let mut answer = self.line()?;
            if let Some(value) = answer.get_mut("return") {
                return Ok(value.take());
            }
            if let Some(error) = answer.get("error") {
                return Err(format!(
                    "{name}: {}",
                    error["desc"].as_str().unwrap_or("refused")
                ));
            }
        }
    }

    /// Runs a command of the human monitor.
    pub(crate) fn human(&mut self, command: &str) -> Result<String, String> {
        let answer = self.command("human-monitor-command", json!({ "command-line": command }))?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// Returns the guest's state.
    pub(crate) fn status(&mut self) -> Result<String, String> {
        let answer = self.command("query-status", json!({}))?;
        Ok(answer["status"].as_str().unwrap_or_default().to_owned())
    }

    /// Waits until the status that a command reports is none of these, and returns it.
    pub(crate) fn until_not(&mut self, query: &str, passing: &[&str]) -> Result<String, String> {
        let begun = Instant::now();
        loop {
            let answer = self.command(query, json!({}))?;
            let status = answer["status"].as_str().unwrap_or_default().to_owned();
            if !passing.contains(&&*status) {
                return Ok(status);
            }
            if begun.elapsed() > PATIENCE {
                return Err(format!(
                    "{query} reports {status} for {} s",
                    PATIENCE.as_secs()
                ));
            }
            sleep(LOOK);
        }
    }

    fn line(&mut self) -> Result<Value, String> {
        let mut line = String::new();
        match self.from.read_line(&mut line) {
            Ok(0) => Err("QEMU has ended".to_owned()),
            Ok(_) => {
                serde_json::from_str(&line).map_err(|error| format!("answers no JSON: {error}"))
            }
            Err(error) => Err(format!("does not answer: {error}")),
        }
    }
}
