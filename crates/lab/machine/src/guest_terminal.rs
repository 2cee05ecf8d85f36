//! A guest whose console a user has: what is typed goes to its serial line, what it prints comes
//! back. Nothing is measured there.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use model::SubjectFailure;
use serde_json::json;
use wire::Stream;

use crate::MachineError;
use crate::qemu::{Ended, Process, Scratch, stream_failure};

/// QEMU's arguments for a serial line that Marvin connects to.
pub(crate) const LINE: &str = "-chardev socket,id=line,path=line,server=on,wait=off";
/// The serial line that it is.
pub(crate) const SERIAL: &str = "chardev:line";
/// The socket of the line within a scratch directory.
const SOCKET: &str = "line";
/// How long one read waits; then QEMU is polled, which takes as long.
const SLICE: Duration = Duration::from_millis(25);
/// How much of the end of all that the guest printed is kept (bytes): the agent's frames and why
/// a kernel died are there.
const KEPT_MAX: usize = 4 << 20;

/// The guest clock of an interactive guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// An idle guest's clock goes with the host's: for a person.
    RealTime,
    /// An idle guest's clock jumps to the next timer, as in a measurement.
    Measured,
}

/// A guest that runs, with its serial line.
#[derive(Debug)]
pub struct GuestTerminal {
    // Dropped in this order: QEMU ends before its directory is removed.
    process: Process,
    line: UnixStream,
    scratch: Scratch,
    /// The job that it does.
    job: u64,
    /// The end of what it printed.
    kept: Vec<u8>,
    /// QEMU says it once.
    is_off: bool,
}

/// What a guest did within a short time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It printed so many bytes.
    Printed(usize),
    Nothing,
    /// It is switched off, and has printed all.
    Ended,
}

impl GuestTerminal {
    /// Connects to the serial line of a stopped guest, and lets it go on.
    pub(crate) fn connect(
        mut process: Process,
        scratch: Scratch,
        job: u64,
    ) -> Result<Self, MachineError> {
        let line = scratch.at_socket(SOCKET, UnixStream::connect)?;
        line.set_read_timeout(Some(SLICE))
            .map_err(MachineError::io("set up", &scratch.path(SOCKET)))?;
        process.command("cont", json!({}))?;
        Ok(Self {
            process,
            line,
            scratch,
            job,
            kept: Vec::new(),
            is_off: false,
        })
    }

    /// Returns the line for writing, from any thread.
    ///
    /// # Errors
    /// If the host has no more file descriptors.
    pub fn writer(&self) -> Result<UnixStream, MachineError> {
        let copied = self.line.try_clone();
        copied.map_err(MachineError::io("copy", &self.scratch.path(SOCKET)))
    }

    /// Waits a short time for what the guest prints.
    ///
    /// # Errors
    /// If QEMU dies.
    pub fn listen(&mut self, part: &mut [u8]) -> Result<Heard, MachineError> {
        let count = self.read(part)?;
        if count > 0 {
            return Ok(Heard::Printed(count));
        }
        // Only the end of the guest matters: QEMU has no limit on this line.
        if !self.is_off {
            self.is_off = self.process.poll(u64::MAX)? == Some(Ended::PoweredOff);
        }
        if !self.is_off {
            return Ok(Heard::Nothing);
        }
        // What was under way when it ended.
        let count = self.read(part)?;
        Ok(if count > 0 {
            Heard::Printed(count)
        } else {
            Heard::Ended
        })
    }

    /// Returns the agent's frames after the guest's end, or why the kernel failed before.
    ///
    /// # Errors
    /// If the guest's end is a failure of the kernel.
    pub fn end(&self) -> Result<Stream, SubjectFailure> {
        wire::decode(&self.kept, self.job)
            .map_err(|error| stream_failure(Ended::PoweredOff, Some(error), &self.kept))
    }

    /// Returns the last lines that the guest printed, in printable form.
    #[must_use]
    pub fn last_lines(&self) -> String {
        crate::readable_tail(&self.kept)
    }

    fn read(&mut self, part: &mut [u8]) -> Result<usize, MachineError> {
        let count = match self.line.read(part) {
            Ok(count) => count,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::ConnectionReset
                ) =>
            {
                0
            }
            Err(error) => return Err(MachineError::io("read", &self.scratch.path(SOCKET))(error)),
        };
        self.kept.extend_from_slice(&part[..count]);
        if self.kept.len() > 2 * KEPT_MAX {
            self.kept.drain(..self.kept.len() - KEPT_MAX);
        }
        Ok(count)
    }
}
