//! Sending frames: numbered, one line each, to a console that others print on as well.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

use wire::{Frame, encode};

use crate::sys::check;

/// Bytes of a file that go into one frame: escaped they stay below the longest line the host reads.
const PIECE: usize = 1024;

/// The sending end of a job's stream.
#[derive(Debug)]
pub struct Sender {
    console: File,
    job: u64,
    sequence: usize,
}

impl Sender {
    /// Starts the stream of a job.
    pub fn new(console: File, job: u64) -> Self {
        Self {
            console,
            job,
            sequence: 0,
        }
    }

    /// Sends one frame. A line break goes first, in case the console stands within a line.
    pub fn send(&mut self, frame: &Frame) -> io::Result<()> {
        let line = encode(self.job, self.sequence, frame);
        self.sequence += 1;
        self.console.write_all(format!("\n{line}").as_bytes())
    }

    /// Sends a file of the guest, as raw pieces.
    pub fn send_file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        content.chunks(PIECE).try_for_each(|piece| {
            self.send(&Frame::File {
                name: name.to_owned(),
                bytes: piece.to_vec(),
            })
        })
    }

    /// Waits until everything has left the machine.
    pub fn drain(&self) -> io::Result<()> {
        // SAFETY: tcdrain takes a descriptor, which `console` keeps open.
        check(unsafe { libc::tcdrain(self.console.as_raw_fd()) }).map(|_| ())
    }
}
