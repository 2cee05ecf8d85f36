//! QMP, QEMU's control protocol: one JSON object a line (QEMU docs/interop/qmp-spec.rst), over the
//! pipes of a child or a UNIX socket. The meaning of commands, answers and events is the caller's.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Limit on a line from QEMU (bytes).
const LINE_MAX: u64 = 1 << 20;
/// Most lines before the greeting that are none of the protocol: some builds print that they found
/// no KVM.
const FOREIGN_MAX: usize = 100;
/// Most events between a command and its answer: a guest that causes more is not waited for.
const EVENTS_MAX: usize = 1000;

/// A connection to one QEMU, out of capability negotiation.
#[derive(Debug)]
pub struct Qmp {
    stream: Stream,
    events: VecDeque<Value>,
}

/// Why a command has no answer.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// QEMU closed its side, or took too long.
    #[error("{0}")]
    Gone(String),
    /// QEMU refused the command.
    #[error("{command}: {reason}")]
    Refused {
        /// The command's name.
        command: String,
        /// QEMU's `desc`.
        reason: String,
    },
}

#[derive(Debug)]
enum Stream {
    /// A pipe has no deadline of its own, so a thread reads it.
    Pipes {
        to: ChildStdin,
        from: Receiver<Value>,
    },
    Socket(BufReader<UnixStream>),
}

impl Qmp {
    /// Connects to a child that runs with `-qmp stdio`.
    ///
    /// # Errors
    /// If the child ends or does not answer within `patience`.
    pub fn over_pipes(
        to: ChildStdin,
        from: ChildStdout,
        patience: Duration,
    ) -> Result<Self, QmpError> {
        let (sender, receiver) = sync_channel(64);
        // The thread ends when QEMU closes its side, or when the receiver is dropped.
        std::thread::spawn(move || {
            let mut lines = BufReader::new(from);
            if skip_foreign(&mut lines).is_err() {
                return;
            }
            while let Ok(value) = read_line(&mut lines) {
                if sender.send(value).is_err() {
                    break;
                }
            }
        });
        let from = receiver;
        Self::negotiated(Stream::Pipes { to, from }, patience)
    }

    /// Connects to a QEMU that runs with `-qmp unix:SOCKET,server=on`.
    ///
    /// # Errors
    /// If no QEMU listens there, or QEMU does not answer within `patience`.
    pub fn over_socket(socket: &Path, patience: Duration) -> Result<Self, QmpError> {
        let stream = UnixStream::connect(socket).map_err(gone)?;
        stream.set_write_timeout(Some(patience)).map_err(gone)?;
        Self::negotiated(Stream::Socket(BufReader::new(stream)), patience)
    }

    fn negotiated(stream: Stream, patience: Duration) -> Result<Self, QmpError> {
        let events = VecDeque::new();
        let mut qmp = Self { stream, events };
        qmp.command("qmp_capabilities", json!({}), patience)?;
        Ok(qmp)
    }

    /// Sends a command and returns QEMU's answer, its `return`.
    ///
    /// # Errors
    /// If QEMU refuses, ends, or stays silent for `patience`.
    pub fn command(
        &mut self,
        name: &str,
        arguments: Value,
        patience: Duration,
    ) -> Result<Value, QmpError> {
        let line = format!("{}\n", json!({ "execute": name, "arguments": arguments }));
        self.stream.send(line.as_bytes()).map_err(gone)?;
        for _ in 0..EVENTS_MAX {
            let mut message = self.stream.receive(patience)?;
            if message.get("event").is_some() {
                self.events.push_back(message);
            } else if let Some(error) = message.get("error") {
                return Err(QmpError::Refused {
                    command: name.to_owned(),
                    reason: error["desc"].as_str().unwrap_or("no reason").to_owned(),
                });
            } else if let Some(answer) = message.get_mut("return") {
                return Ok(answer.take());
            }
            // Anything else is the greeting.
        }
        Err(QmpError::Gone(format!("{name}: only events, no answer")))
    }

    /// Runs a command of the human monitor and returns its text.
    ///
    /// # Errors
    /// As [`Qmp::command`].
    pub fn human(&mut self, command: &str, patience: Duration) -> Result<String, QmpError> {
        let arguments = json!({ "command-line": command });
        let answer = self.command("human-monitor-command", arguments, patience)?;
        Ok(answer.as_str().unwrap_or_default().to_owned())
    }

    /// Returns the next event of a child, whole, or `None` if there is none within the time.
    ///
    /// # Errors
    /// If QEMU has closed its side.
    pub fn next_event(&mut self, within: Duration) -> Result<Option<Value>, QmpError> {
        if let Some(event) = self.events.pop_front() {
            return Ok(Some(event));
        }
        match &self.stream {
            Stream::Pipes { from, .. } => match from.recv_timeout(within) {
                Ok(event) => Ok(Some(event)),
                Err(RecvTimeoutError::Timeout) => Ok(None),
                Err(RecvTimeoutError::Disconnected) => Err(ended()),
            },
            // A read that times out may have lost half a line, so a socket is not polled.
            Stream::Socket(_) => Ok(None),
        }
    }
}

impl Stream {
    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Pipes { to, .. } => to.write_all(line).and_then(|()| to.flush()),
            Self::Socket(stream) => stream.get_mut().write_all(line),
        }
    }

    fn receive(&mut self, patience: Duration) -> Result<Value, QmpError> {
        match self {
            Self::Pipes { from, .. } => from.recv_timeout(patience).map_err(|_| ended()),
            Self::Socket(stream) => {
                let timeout = stream.get_ref().set_read_timeout(Some(patience));
                timeout.map_err(gone)?;
                read_line(stream)
            }
        }
    }
}

/// Skips what a build prints before QEMU's first object.
fn skip_foreign(from: &mut impl BufRead) -> io::Result<()> {
    let mut line = String::new();
    for _ in 0..FOREIGN_MAX {
        if matches!(from.fill_buf()?.first(), None | Some(b'{')) {
            break;
        }
        line.clear();
        from.take(LINE_MAX).read_line(&mut line)?;
    }
    Ok(())
}

fn read_line(from: &mut impl BufRead) -> Result<Value, QmpError> {
    let mut line = String::new();
    match from.take(LINE_MAX).read_line(&mut line) {
        Ok(0) => Err(ended()),
        Ok(_) => serde_json::from_str(&line)
            .map_err(|error| QmpError::Gone(format!("QEMU's line is no JSON: {error}"))),
        Err(error) => Err(gone(error)),
    }
}

fn ended() -> QmpError {
    QmpError::Gone("QEMU has ended".to_owned())
}

fn gone(error: io::Error) -> QmpError {
    QmpError::Gone(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixListener;
    use std::thread;
    use std::time::Duration;

    use serde_json::json;

    use super::{Qmp, QmpError};

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Answers a connection with these lines, one after each line that comes in.
    fn answers(lines: &'static [&'static str]) -> Result<Qmp, QmpError> {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("qmp");
        let listener = UnixListener::bind(&socket).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"{\"QMP\": {}}\n").unwrap();
            let mut requests = BufReader::new(stream.try_clone().unwrap());
            for line in lines {
                requests.read_line(&mut String::new()).unwrap();
                stream.write_all(line.as_bytes()).unwrap();
            }
        });
        Qmp::over_socket(&socket, PATIENCE)
    }

    #[test]
    fn answer_is_found_behind_events() {
        let mut qmp = answers(&[
            "{\"return\": {}}\n",
            "{\"event\": \"STOP\"}\n{\"return\": {\"status\": \"running\"}}\n",
        ])
        .unwrap();
        let answer = qmp.command("query-status", json!({}), PATIENCE).unwrap();
        assert_eq!(answer["status"], "running");
        let event = qmp.next_event(Duration::ZERO).unwrap();
        assert_eq!(event.unwrap()["event"], "STOP");
        assert_eq!(qmp.next_event(Duration::ZERO).unwrap(), None);
    }

    #[test]
    fn failures_say_what_qemu_did() {
        let mut qmp = answers(&[
            "{\"return\": {}}\n",
            "{\"error\": {\"desc\": \"not now\"}}\n",
            "pardon\n",
        ])
        .unwrap();
        let failures: Vec<String> = ["cont", "stop", "quit"]
            .map(|name| qmp.command(name, json!({}), PATIENCE).unwrap_err())
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(failures[0], "cont: not now");
        assert!(
            failures[1].starts_with("QEMU's line is no JSON"),
            "{failures:?}"
        );
        assert!(matches!(answers(&[]), Err(QmpError::Gone(_))));
    }
}
