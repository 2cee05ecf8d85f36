//! Consoles of servers: recorded by a process that outlives each measurement, and read as they grow.
//!
//! `source` connects, `log` keeps what comes. A BMC gives its console to one client, so one process records a server; who
//! measures reads the record, and connects itself only if no recorder runs.

mod log;
mod source;

use std::fmt::{self, Debug};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{sleep, spawn};
use std::time::Duration;

use model::{ConsoleSettings, ServerSettings};

use self::log::Log;
pub use self::log::{ConsoleLine, Tail, lines_since};
use self::source::Connection;

/// Wait before a connection that ended is opened again.
const AGAIN: Duration = Duration::from_secs(10);
/// Limit on what is kept between two looks of who measures (bytes).
const KEPT_MAX: usize = 16 << 20;

/// Returns the directory of a server's recorded console. `home` is the lab's data directory.
#[must_use]
pub fn console_folder(home: &Path, name: &str) -> PathBuf {
    home.join("consoles").join(name)
}

/// Returns whether a process records the console in a directory.
#[must_use]
pub fn is_recorded(folder: &Path) -> bool {
    File::open(folder.join("lock")).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The right to record a server's console.
#[derive(Debug)]
pub struct Recorder {
    server: ServerSettings,
    log: Log,
    _lock: File,
}

impl Recorder {
    /// Takes the right to record a server's console; `None` if another process has it.
    ///
    /// # Errors
    /// If its directory cannot be used.
    pub fn open(server: &ServerSettings, home: &Path) -> io::Result<Option<Self>> {
        let folder = console_folder(home, &server.name);
        fs::create_dir_all(&folder)?;
        let lock = OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { server: server.clone(), log: Log::open(&folder)?, _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Records until the disk is full or the process ends: a connection that ends is opened again. `clock` returns
    /// milliseconds since 1970-01-01 UTC.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record(self, clock: &dyn Fn() -> i64) -> io::Result<()> {
        self.record_with(clock, AGAIN, || true)
    }

    /// Records while `goes_on`, which is asked before each connection.
    fn record_with(mut self, clock: &dyn Fn() -> i64, again: Duration, goes_on: impl Fn() -> bool) -> io::Result<()> {
        let mut last = String::new();
        while goes_on() {
            match source::open(&self.server) {
                Err(why) => {
                    // A server that is off for a day is named once.
                    if why != last {
                        self.log.note(&format!("cannot connect: {why}"), clock())?;
                    }
                    last = why;
                }
                Ok(mut open) => {
                    let place = self.server.console.as_ref().map(ConsoleSettings::place).unwrap_or_default();
                    let mut part = [0; 1 << 14];
                    let mut is_silent = true;
                    while let Ok(count @ 1..) = open.bytes.read(&mut part) {
                        if std::mem::take(&mut is_silent) {
                            last.clear();
                            self.log.note(&format!("connected to {place}"), clock())?;
                        }
                        self.log.write(&part[..count], clock())?;
                    }
                    let why = format!("{place} has ended the connection");
                    if why != last {
                        self.log.note(&why, clock())?;
                    }
                    last = why;
                }
            }
            sleep(again);
        }
        Ok(())
    }
}

/// What a server prints while a measurement runs.
pub struct Console(Kind);

enum Kind {
    /// It has none.
    None,
    /// A recorder keeps it.
    Recorded(Mutex<Tail>),
    /// This process reads it, in a thread that ends with the connection.
    Own(Arc<Mutex<Vec<u8>>>, #[expect(dead_code, reason = "it is held")] Connection),
}

impl Debug for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::None => "Console::None",
            Kind::Recorded(_) => "Console::Recorded",
            Kind::Own(..) => "Console::Own",
        })
    }
}

impl Console {
    /// Reads the record of a server's console from its end on or, if no process records it, connects to it.
    #[must_use]
    pub fn open(server: &ServerSettings, home: &Path) -> Self {
        let folder = console_folder(home, &server.name);
        if server.console.is_none() {
            return Self(Kind::None);
        }
        if is_recorded(&folder) {
            return Self(Kind::Recorded(Mutex::new(Tail::at_end(&folder))));
        }
        // A console that cannot be opened is none: what the kernel did is known without it, too.
        let Ok(source::Open { mut bytes, connection }) = source::open(server) else { return Self(Kind::None) };
        let printed: Arc<Mutex<Vec<u8>>> = Arc::default();
        let kept = Arc::clone(&printed);
        spawn(move || {
            let mut part = [0; 1 << 14];
            while let Ok(count @ 1..) = bytes.read(&mut part) {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = KEPT_MAX.saturating_sub(kept.len());
                kept.extend_from_slice(&part[..count.min(room)]);
            }
        });
        Self(Kind::Own(printed, connection))
    }

    /// Returns what was printed since the last call.
    pub fn take(&self) -> Vec<u8> {
        match &self.0 {
            Kind::None => Vec::new(),
            Kind::Own(printed, ..) => std::mem::take(&mut *printed.lock().unwrap_or_else(PoisonError::into_inner)),
            Kind::Recorded(tail) => {
                let lines = tail.lock().unwrap_or_else(PoisonError::into_inner).new_lines();
                lines.into_iter().filter(|line| !line.is_note).flat_map(|line| line.bytes).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests;
    /// Returns a console that prints nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self(Kind::None)
    }

