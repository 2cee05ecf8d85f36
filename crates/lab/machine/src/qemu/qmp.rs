//! QMP, QEMU's control protocol: one JSON object a line, over its standard input and output.
//!
//! Reference: QEMU docs/interop/qmp-spec.rst. Marvin sends nothing while the guest runs a job.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Deadline of an answer. On a loaded host QEMU may have to wait for a processor.
pub(crate) const ANSWER: Duration = Duration::from_secs(120);
/// Limit on a line from QEMU (bytes).
const LINE_MAX: u64 = 1 << 20;

/// An event of the guest or of QEMU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Stopped,
    /// The guest powered off, rebooted or panicked: QEMU is exiting.
    PoweredOff,
    /// No event within the time.
    Nothing,
    /// QEMU closed the connection.
    Closed,
}

/// A connection to one QEMU.
#[derive(Debug)]
pub(crate) struct Qmp {
    to: ChildStdin,
    from: Receiver<Value>,
    waiting: Vec<Event>,
}

#[derive(Debug)]
pub(crate) enum QmpError {
    /// QEMU exited or does not answer.
    Gone,
    /// QEMU refused the command.
    Refused(String),
}

impl Qmp {
    /// Connects and leaves capability negotiation.
    pub(crate) fn connect(to: ChildStdin, from: ChildStdout) -> Result<Self, QmpError> {
        let (sender, receiver) = sync_channel(64);
        // The thread ends when QEMU closes its side, or when the receiver is dropped.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(from);
            loop {
                let mut line = String::new();
                match (&mut lines).take(LINE_MAX).read_line(&mut line) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {
                        if let Ok(value) = serde_json::from_str::<Value>(&line)
                            && sender.send(value).is_err()
                        {
                            break;
                        }
                    }
                }
            }
        });
        let mut qmp = Self {
            to,
            from: receiver,
            waiting: Vec::new(),
        };
        qmp.command(ANSWER, "qmp_capabilities", json!({}))?;
        Ok(qmp)
    }

    /// Sends a command and waits for QEMU's answer, at most for `patience`.
    pub(crate) fn command(
        &mut self,
        patience: Duration,
        name: &str,
        arguments: Value,
    ) -> Result<Value, QmpError> {
        let line = format!("{}\n", json!({ "execute": name, "arguments": arguments }));
        self.to
            .write_all(line.as_bytes())
            .and_then(|()| self.to.flush())
            .map_err(|_| QmpError::Gone)?;
        loop {
            let mut value = self
                .from
                .recv_timeout(patience)
                .map_err(|_| QmpError::Gone)?;
            if let Some(event) = event_in(&value) {
                self.waiting.push(event);
            } else if let Some(error) = value.get("error") {
                return Err(QmpError::Refused(
                    error["desc"].as_str().unwrap_or("no reason").to_owned(),
                ));
            } else if let Some(answer) = value.get_mut("return") {
                return Ok(answer.take());
            }
        }
    }

    /// Returns the next event, or `Nothing` after `within`.
    pub(crate) fn next_event(&mut self, within: Duration) -> Event {
        if !self.waiting.is_empty() {
            return self.waiting.remove(0);
        }
        match self.from.recv_timeout(within) {
            Ok(value) => event_in(&value).unwrap_or(Event::Nothing),
            Err(RecvTimeoutError::Timeout) => Event::Nothing,
            Err(RecvTimeoutError::Disconnected) => Event::Closed,
        }
    }
}

fn event_in(value: &Value) -> Option<Event> {
    match value.get("event")?.as_str()? {
        "STOP" => Some(Event::Stopped),
        // A shutdown that the guest did not request comes from a signal to QEMU; a kernel cannot
        // cause it.
        "SHUTDOWN" if value["data"]["guest"] == json!(true) => Some(Event::PoweredOff),
        "SHUTDOWN" => Some(Event::Closed),
        _ => Some(Event::Nothing),
    }
}
