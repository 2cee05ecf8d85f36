//! A running guest: told over QMP to stand still while its memory is scanned, and to go on.
//!
//! What of its memory is kept is found out while it stands still; the pages are copied while it runs again, so they are not
//! of one moment, and the dump says so. Reference: QEMU docs/interop/qmp-spec.rst.

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

/// How long QEMU may take to answer: to stop, it waits for its disks.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Longest line that QEMU is believed to send, in bytes.
const LINE_MAX: usize = 1 << 20;
/// Most lines before an answer: events.
const LINES_MAX: usize = 10_000;
/// Most letters of QEMU's reasons that are told.
const WHY_MAX: usize = 300;
/// Owner and type of the note that says that a dump is live.
const NOTE: (&str, u32) = ("MARVIN-DUMP", 1);
const NOTE_TEXT: &[u8] = b"live: the guest ran while its pages were copied\n";

/// What QEMU does first.
const GREET: &str = "greet";

/// Tells the time since some moment.
pub type Clock<'c> = &'c dyn Fn() -> Duration;

/// Marks a dump as one of a guest that runs.
pub fn marked(dump: Dump) -> Dump {
    dump.with_note(NOTE.0, NOTE.1, NOTE_TEXT)
}

/// Whether the pages of a dump were copied while the guest ran.
pub fn is_live(dump: &Dump) -> bool {
    note::notes(dump.notes()).iter().any(|note| (note.owner, note.kind) == NOTE)
}

/// A guest, by its QEMU's control socket.
#[derive(Debug)]
pub struct Guest {
    stream: UnixStream,
    socket: PathBuf,
    /// What came behind the last line.
    received: Vec<u8>,
    patience: Duration,
    commands: u64,
}

impl Guest {
    /// Connects to a guest, each of whose answers may take so long.
    pub fn connect(socket: &Path, patience: Duration, clock: Clock<'_>) -> Result<Self, DumpError> {
        let (sender, receiver) = sync_channel(1);
        let path = socket.to_owned();
        // A socket whose queue is full lets wait without end; the thread ends with that or with the program.
        std::thread::spawn(move || drop(sender.send(UnixStream::connect(path))));
        let connected = receiver.recv_timeout(patience).unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()));
        let stream = connected.map_err(|error| {
            let socket = socket.display();
            DumpError::Usage(format!(
                "no QEMU is reached at {socket}: {error}; it listens there with -qmp unix:{socket},server=on,wait=off"
            ))
        })?;
        let mut guest = Self { stream, socket: socket.to_owned(), received: Vec::new(), patience, commands: 0 };
        guest.stream.set_write_timeout(Some(patience)).map_err(|error| guest.failed("connect", &error.to_string()))?;
        let greeting = guest.line(clock() + patience, clock, GREET)?;
        if greeting.get("QMP").is_none() {
            return Err(guest.failed(GREET, "that is no QMP"));
        }
        guest.command("qmp_capabilities", clock)?;
        Ok(guest)
    }

    /// Refuses a guest whose memory no file shows.
    pub fn check_memory(&mut self, clock: Clock<'_>) -> Result<(), DumpError> {
        let devices = self.command("query-memdev", clock)?;
        let shares: Vec<bool> =
            devices.as_array().into_iter().flatten().filter_map(|one| one["share"].as_bool()).collect();
        // Older QEMUs do not tell.
        if !shares.is_empty() && !shares.contains(&true) {
            return Err(DumpError::Usage(format!(
                "the memory of the guest at {} is its own (share=off), no file shows it: start it with memory-backend-file,share=on",
                self.socket.display()
            )));
        }
        Ok(())
    }

    /// Whether it runs.
    pub fn runs(&mut self, clock: Clock<'_>) -> Result<bool, DumpError> {
        let status = self.command("query-status", clock)?;
        status["running"].as_bool().ok_or_else(|| self.failed("query-status", "it does not say whether it runs"))
    }

    /// Lets it stand still, for as long as the value lives.
    pub fn stop<'g>(&'g mut self, clock: Clock<'g>) -> Result<Stopped<'g>, DumpError> {
        let on_signal = OnSignal::arm(&self.stream);
        let stopped = Stopped { guest: self, clock, since: clock(), told: false, _on_signal: on_signal };
        // Where the answer does not come it may still stop: what was made goes, and lets it go on.
        stopped.guest.command("stop", clock)?;
        Ok(stopped)
    }

    /// Gives a command and returns the answer.
    fn command(&mut self, name: &str, clock: Clock<'_>) -> Result<Value, DumpError> {
        self.commands += 1;
        let id = json!(self.commands);
        let line = format!("{}\n", json!({ "execute": name, "id": id }));
        self.stream.write_all(line.as_bytes()).map_err(|error| self.failed(name, &error.to_string()))?;
        let deadline = clock() + self.patience;
        for _ in 0..LINES_MAX {
            let mut value = self.line(deadline, clock, name)?;
            // Events have none, and late answers another.
            if value.get("id") != Some(&id) {
                continue;
            }
            if let Some(error) = value.get("error") {
                // Whoever answers there may send anything.
                let why: String = error["desc"].as_str().unwrap_or("no, and no reason").chars().take(WHY_MAX).collect();
                return Err(self.failed(name, &why.escape_debug().to_string()));
            }
            return Ok(value.get_mut("return").map(Value::take).unwrap_or_default());
        }
        Err(self.failed(name, "no answer among many events"))
    }

    /// Waits for a line.
    fn line(&mut self, deadline: Duration, clock: Clock<'_>, name: &str) -> Result<Value, DumpError> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                return serde_json::from_slice(&line).map_err(|_| self.failed(name, "that is no QMP"));
            }
            if self.received.len() > LINE_MAX {
                return Err(self.failed(name, "a line without end"));
            }
            let rest = deadline.saturating_sub(clock());
            let mut piece = [0; 4096];
            let got = match rest {
                Duration::ZERO => Err(ErrorKind::TimedOut.into()),
                rest => self.stream.set_read_timeout(Some(rest)).and_then(|()| self.stream.read(&mut piece)),
            };
            match got {
                Ok(0) => return Err(self.failed(name, "QEMU hung up")),
                Ok(count) => self.received.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    let other = if name == GREET { "; perhaps another program is connected to it" } else { "" };
                    let what = format!("no answer within {} s{other}", self.patience.as_secs_f64());
                    return Err(self.failed(name, &what));
                }
                Err(error) => return Err(self.failed(name, &error.to_string())),
            }
        }
    }

    fn failed(&self, name: &str, what: &str) -> DumpError {
        let mend = if ["stop", "cont"].contains(&name) { "; if it stands still now, tell it `cont`" } else { "" };
        DumpError::Guest { socket: self.socket.clone(), name: name.to_owned(), what: format!("{what}{mend}") }
    }
}

/// A guest that stands still. Dropped, it goes on; so it does when a signal ends the program.
pub struct Stopped<'g> {
    guest: &'g mut Guest,
    clock: Clock<'g>,
    since: Duration,
    /// It was told to go on.
    told: bool,
    _on_signal: OnSignal,
}

impl std::fmt::Debug for Stopped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stopped").finish_non_exhaustive()
    }
}

impl Stopped<'_> {
    /// Lets it go on, and returns how long it stood still.
    pub fn go_on(mut self) -> Result<Duration, DumpError> {
        self.told = true;
        self.guest.command("cont", self.clock)?;
        Ok((self.clock)().saturating_sub(self.since))
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        if !self.told {
            // Another error is on its way, and tells more.
            drop(self.guest.command("cont", self.clock));
        }
    }
}

#[cfg(test)]
mod tests;
