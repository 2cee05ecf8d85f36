//! A running guest: QMP commands stop it while its memory is scanned, and resume it.
//!
//! The pages to keep are determined while it stands still; they are copied while it runs again, so
//! they are not of one moment, and the dump is marked as live. Reference: QEMU
//! docs/interop/qmp-spec.rst.

mod signal;

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use serde_json::{Value, json};

use crate::dump::Dump;
use crate::error::DumpError;
use crate::live::signal::OnSignal;
use crate::note;

/// The time limit of QEMU's answers: to stop, it waits for its disks.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line of QEMU, in bytes.
const LINE_MAX: usize = 1 << 20;
/// Most lines before an answer: events.
const LINES_MAX: usize = 10_000;
/// Longest quote of QEMU's reasons, in letters.
const WHY_MAX: usize = 300;
/// Owner and type of the note that marks a dump as live.
const NOTE: (&str, u32) = ("MARVIN-DUMP", 1);
const NOTE_TEXT: &[u8] = b"live: the guest ran while its pages were copied\n";

const GREET: &str = "greet";

/// A clock: returns the time since a fixed moment.
pub type Clock<'c> = &'c dyn Fn() -> Duration;

/// Marks a dump as live.
pub fn mark_live(dump: Dump) -> Dump {
    dump.with_note(NOTE.0, NOTE.1, NOTE_TEXT)
}

/// Returns whether the pages of a dump were copied while the guest ran.
pub fn is_live(dump: &Dump) -> bool {
    note::notes(dump.notes())
        .iter()
        .any(|note| (note.owner, note.kind) == NOTE)
}

/// A guest, by its QEMU's control socket.
#[derive(Debug)]
pub struct Guest {
    stream: UnixStream,
    socket: PathBuf,
    /// Input after the last line.
    received: Vec<u8>,
    patience: Duration,
    commands: u64,
}

impl Guest {
    /// Connects to a guest; each of its answers has this deadline.
    pub fn connect(socket: &Path, patience: Duration, clock: Clock<'_>) -> Result<Self, DumpError> {
        let (sender, receiver) = sync_channel(1);
        let path = socket.to_owned();
        // Connecting to a socket with a full queue blocks without limit; the thread ends with that
        // or with the program.
        std::thread::spawn(move || drop(sender.send(UnixStream::connect(path))));
        let connected = receiver
            .recv_timeout(patience)
            .unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        let stream = connected.map_err(|error| {
            let socket = socket.display();
            DumpError::Usage(format!(
                "no QEMU is reached at {socket}: {error}; it listens there with -qmp unix:{socket},server=on,wait=off"
            ))
        })?;
        let mut guest = Self {
            stream,
            socket: socket.to_owned(),
            received: Vec::new(),
            patience,
            commands: 0,
        };
        guest
            .stream
            .set_write_timeout(Some(patience))
            .map_err(|error| guest.to_error("connect", &error.to_string()))?;
        let greeting = guest.line(clock() + patience, clock, GREET)?;
        if greeting.get("QMP").is_none() {
            return Err(guest.to_error(GREET, "that is no QMP"));
        }
        guest.command("qmp_capabilities", clock)?;
        Ok(guest)
    }

    /// Refuses a guest whose memory is in no file.
    pub fn check_memory(&mut self, clock: Clock<'_>) -> Result<(), DumpError> {
        let devices = self.command("query-memdev", clock)?;
        let shares: Vec<bool> = devices
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["share"].as_bool())
            .collect();
        // Older QEMUs do not report that.
        if !shares.is_empty() && !shares.contains(&true) {
            return Err(DumpError::Usage(format!(
                "the memory of the guest at {} is its own (share=off), no file shows it: start it with memory-backend-file,share=on",
                self.socket.display()
            )));
        }
        Ok(())
    }

    /// Returns whether it runs.
    pub fn runs(&mut self, clock: Clock<'_>) -> Result<bool, DumpError> {
        let status = self.command("query-status", clock)?;
        status["running"]
            .as_bool()
            .ok_or_else(|| self.to_error("query-status", "it does not say whether it runs"))
    }

    /// Stops it for the lifetime of the value.
    pub fn stop<'g>(&'g mut self, clock: Clock<'g>) -> Result<Stopped<'g>, DumpError> {
        // Before `stop`, so that no signal ends this program and leaves the guest standing.
        let on_signal = OnSignal::arm(&self.stream);
        let stopped = Stopped {
            guest: self,
            clock,
            since: clock(),
            is_resumed: false,
            _on_signal: on_signal,
        };
        // It may stop later, even without an answer: dropping the value then resumes it.
        stopped.guest.command("stop", clock)?;
        Ok(stopped)
    }

    /// Sends a command and returns the answer.
    fn command(&mut self, name: &str, clock: Clock<'_>) -> Result<Value, DumpError> {
        self.commands += 1;
        let id = json!(self.commands);
        let line = format!("{}\n", json!({ "execute": name, "id": id }));
        self.stream
            .write_all(line.as_bytes())
            .map_err(|error| self.to_error(name, &error.to_string()))?;
        let deadline = clock() + self.patience;
        // A guest whose events never end must not hold up the dump.
        for _ in 0..LINES_MAX {
            let mut value = self.line(deadline, clock, name)?;
            // Events have no id, and late answers another one.
            if value.get("id") != Some(&id) {
                continue;
            }
            if let Some(error) = value.get("error") {
                // The peer may send anything.
                let why: String = error["desc"]
                    .as_str()
                    .unwrap_or("no, and no reason")
                    .chars()
                    .take(WHY_MAX)
                    .collect();
                return Err(self.to_error(name, &why.escape_debug().to_string()));
            }
            return Ok(value.get_mut("return").map(Value::take).unwrap_or_default());
        }
        Err(self.to_error(name, "no answer among many events"))
    }

    /// Waits for a line.
    fn line(
        &mut self,
        deadline: Duration,
        clock: Clock<'_>,
        name: &str,
    ) -> Result<Value, DumpError> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|_| self.to_error(name, "that is no QMP"));
            }
            if self.received.len() > LINE_MAX {
                return Err(self.to_error(name, "a line without end"));
            }
            // For the whole line: a peer that sends it byte by byte gets no more time.
            let rest = deadline.saturating_sub(clock());
            let mut piece = [0; 4096];
            let got = match rest {
                Duration::ZERO => Err(ErrorKind::TimedOut.into()),
                rest => self
                    .stream
                    .set_read_timeout(Some(rest))
                    .and_then(|()| self.stream.read(&mut piece)),
            };
            match got {
                Ok(0) => return Err(self.to_error(name, "QEMU hung up")),
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    let other = if name == GREET {
                        "; perhaps another program is connected to it"
                    } else {
                        ""
                    };
                    let what = format!("no answer within {} s{other}", self.patience.as_secs_f64());
                    return Err(self.to_error(name, &what));
                }
                Err(error) => return Err(self.to_error(name, &error.to_string())),
            }
        }
    }

    fn to_error(&self, name: &str, what: &str) -> DumpError {
        let mend = if ["stop", "cont"].contains(&name) {
            "; if it stands still now, tell it `cont`"
        } else {
            ""
        };
        DumpError::Guest {
            socket: self.socket.clone(),
            name: name.to_owned(),
            what: format!("{what}{mend}"),
        }
    }
}

/// A stopped guest. It resumes when the value is dropped, or when a signal ends the program.
pub struct Stopped<'g> {
    guest: &'g mut Guest,
    clock: Clock<'g>,
    since: Duration,
    /// The resume command was sent.
    is_resumed: bool,
    _on_signal: OnSignal,
}

impl std::fmt::Debug for Stopped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopped").finish_non_exhaustive()
    }
}

impl Stopped<'_> {
    /// Resumes it, and returns how long it stood still.
    pub fn go_on(mut self) -> Result<Duration, DumpError> {
        self.is_resumed = true;
        self.guest.command("cont", self.clock)?;
        Ok((self.clock)().saturating_sub(self.since))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if !self.is_resumed {
            // Another error is about to be reported, which is more useful.
            drop(self.guest.command("cont", self.clock));
        }
    }
}

#[cfg(test)]
mod tests;
