//! Consoles of servers: recorded by a process that outlives each measurement, and read as they
//! grow.
//!
//! `source` connects, `log` keeps what comes. A BMC gives its console to one client, so one process
//! records a server; who measures reads the record, and connects itself only if no recorder runs. A
//! break or a sysrq goes the same way: the process with the connection sends it, and others ask
//! that process (`request`).

mod log;
mod request;
mod source;
mod tail;
mod telnet;

use std::fmt::{self, Debug};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

use model::{ConsoleSettings, ServerSettings};
use subprocess::Shared;

pub use self::log::ConsoleLine;
use self::log::Log;
pub use self::request::Signal;
use self::request::{Request, Unanswered};
use self::source::Connection;
pub use self::tail::Tail;

/// Wait before a connection that ended is opened again.
const AGAIN: Duration = Duration::from_secs(10);
/// How long a connection that is opened for one signal may take to begin: some BMCs need 10 s for
/// each question.
const CONNECTS: Duration = Duration::from_secs(40);
/// How long its answer is recorded.
const ANSWERS: Duration = Duration::from_secs(3);
/// Names of locks in a console's directory: of who records it, and of a measurement that reads it
/// itself.
const RECORDS: &str = "lock";
const READS: &str = "reads";
/// Limit on what is kept between two looks of who measures (bytes).
const KEPT_MAX: usize = 16 << 20;
/// What stands for the rest.
const LEFT_OUT: &[u8] =
    b"\n[marvin: the console printed more than is kept here between two looks]\n";

/// What stands for lines of the record that are gone.
const MISSING: &[u8] =
    b"\n[marvin: lines of the console are missing here: their file was removed before it was read]\n";

/// Returns milliseconds since 1970-01-01 UTC.
pub type Clock<'a> = &'a (dyn Fn() -> i64 + Sync);

/// Why nothing was sent to a console.
#[derive(Debug, thiserror::Error)]
pub enum SignalError {
    /// The console has no break.
    #[error(
        "cannot send {signal} to the console of {name}: {why}\nhint: {setting}; or, while its kernel answers: ssh HOST 'echo KEY > /proc/sysrq-trigger'"
    )]
    NoBreak {
        name: String,
        /// What was to be sent.
        signal: String,
        /// The setting that would give it one, and where.
        setting: &'static str,
        /// Why it has none.
        why: &'static str,
    },
    /// It was not sent.
    #[error("cannot send {signal} to the console of {name}: {why}")]
    Failed {
        name: String,
        /// What was to be sent.
        signal: String,
        why: String,
    },
    /// The recorder took the request and did not answer.
    #[error(
        "cannot tell whether {signal} was sent to the console of {name}: its recorder took it and did not answer"
    )]
    Unknown {
        name: String,
        /// What was to be sent.
        signal: String,
    },
}

/// Returns the directory of a server's recorded console. `home` is the lab's data directory.
#[must_use]
pub fn console_folder(home: &Path, name: &str) -> PathBuf {
    home.join("consoles").join(name)
}

/// Returns whether a process records the console in a directory.
#[must_use]
pub fn is_recorded(folder: &Path) -> bool {
    File::open(folder.join(RECORDS))
        .is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// The right to record a server's console.
#[derive(Debug)]
pub struct Recorder {
    server: ServerSettings,
    folder: PathBuf,
    log: Log,
    _lock: File,
}

/// What the two threads of a recorder share: one reads the console, the other sends what is asked
/// for.
struct Recording {
    log: Shared<Log>,
    /// The connection, while there is one.
    connection: Shared<Option<Connection>>,
    has_ended: AtomicBool,
}

impl Recording {
    fn log<T>(&self, act: impl FnOnce(&mut Log) -> T) -> T {
        act(&mut self.log.lock())
    }

    fn connection(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock()
    }

    /// Sends something to the console, with a note in the record before it.
    fn send(&self, signal: &Signal, who: &str, clock: Clock<'_>) -> Result<(), String> {
        let mut connection = self.connection();
        let Some(connection) = &mut *connection else {
            return Err("there is no connection to the console now".into());
        };
        self.log(|log| log.note(&format!("sends {signal} for {who}"), clock()))
            .map_err(|error| error.to_string())?;
        let sent = signal
            .keys()
            .into_iter()
            .try_for_each(|key| connection.send_break(key));
        if let Err(why) = &sent {
            drop(self.log(|log| log.note(&format!("cannot send {signal}: {why}"), clock())));
        }
        sent
    }
}

impl Recorder {
    /// Takes the right to record a server's console; `None` if another process has it.
    ///
    /// # Errors
    /// If its directory cannot be used.
    pub fn open(server: &ServerSettings, home: &Path) -> io::Result<Option<Self>> {
        let folder = console_folder(home, &server.name);
        let Some(lock) = lock(&folder, RECORDS)? else {
            return Ok(None);
        };
        let log = Log::open(&folder)?;
        Ok(Some(Self {
            server: server.clone(),
            folder,
            log,
            _lock: lock,
        }))
    }

    /// Records until the disk is full or the process ends: a connection that ends is opened again.
    /// Sends what other processes ask for with [`send_signal`]. `clock` returns milliseconds
    /// since 1970-01-01 UTC.
    ///
    /// # Errors
    /// If the record cannot be written.
    pub fn record(self, clock: Clock<'_>) -> io::Result<()> {
        self.record_with(clock, AGAIN, || true)
    }

    /// Records while `goes_on`, which is asked before each connection.
    fn record_with(
        self,
        clock: Clock<'_>,
        again: Duration,
        goes_on: impl Fn() -> bool,
    ) -> io::Result<()> {
        let Self {
            server,
            folder,
            log,
            _lock,
        } = self;
        let shared = Recording {
            log: Shared::new(log),
            connection: Shared::default(),
            has_ended: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !shared.has_ended.load(Ordering::Relaxed) {
                    if let Some(request) = Request::take(&folder, clock()) {
                        request.answer(shared.send(&request.signal, &request.who, clock));
                    }
                    sleep(request::POLL_INTERVAL);
                }
            });
            let mut last = String::new();
            let mut recorded = Ok(());
            while recorded.is_ok() && goes_on() {
                recorded = read_once(&server, &shared, clock, &mut last);
                if recorded.is_ok() {
                    sleep(again);
                }
            }
            shared.has_ended.store(true, Ordering::Relaxed);
            recorded
        })
    }

    /// Connects, sends something, and records what the console prints in the next seconds.
    fn send(self, signal: &Signal, who: &str, clock: Clock<'_>) -> Result<(), String> {
        let Self {
            server,
            folder: _,
            log,
            _lock,
        } = self;
        let shared = Recording {
            log: Shared::new(log),
            connection: Shared::default(),
            has_ended: AtomicBool::new(false),
        };
        std::thread::scope(|scope| {
            let shared = &shared;
            let server = &server;
            let reader = scope.spawn(move || {
                let mut why = String::new();
                drop(read_once(server, shared, clock, &mut why));
                shared.has_ended.store(true, Ordering::Relaxed);
                why
            });
            let is_over = || shared.has_ended.load(Ordering::Relaxed);
            let begun = Instant::now();
            while shared.connection().is_none() && !is_over() && begun.elapsed() < CONNECTS {
                sleep(request::POLL_INTERVAL);
            }
            let sent = shared.send(signal, who, clock);
            if !is_over() {
                sleep(ANSWERS);
            }
            // Ends the reader.
            drop(shared.connection().take());
            let why = reader.join().unwrap_or_default();
            sent.map_err(|sent| {
                if why.is_empty() {
                    sent
                } else {
                    format!("{sent}: {why}")
                }
            })
        })
    }
}

/// Connects once, and records until the connection ends. `last` is why it ended, which is noted
/// once.
fn read_once(
    server: &ServerSettings,
    shared: &Recording,
    clock: Clock<'_>,
    last: &mut String,
) -> io::Result<()> {
    let note = |text: &str| shared.log(|log| log.note(text, clock()));
    let source::Open {
        mut bytes,
        connection,
    } = match source::open(server) {
        Ok(open) => open,
        Err(why) => {
            // A server that is off for a day is named once.
            if why != *last {
                note(&format!("cannot connect: {why}"))?;
            }
            *last = why;
            return Ok(());
        }
    };
    // ipmitool greets when its session is there: what is written before would be mixed up.
    let mut connection = Some(connection);
    if !matches!(connection, Some(Connection::Sol { .. })) {
        *shared.connection() = connection.take();
    }
    let place = server
        .console
        .as_ref()
        .map(ConsoleSettings::place)
        .unwrap_or_default();
    let mut read = || {
        let mut part = [0; 1 << 14];
        let mut is_silent = true;
        while let Ok(count @ 1..) = bytes.read(&mut part) {
            if std::mem::take(&mut is_silent) {
                last.clear();
                if let Some(greeted) = connection.take() {
                    *shared.connection() = Some(greeted);
                }
                note(&format!("connected to {place}"))?;
            }
            shared.log(|log| log.write(&part[..count], clock()))?;
        }
        Ok(())
    };
    let recorded: io::Result<()> = read();
    let is_ended = connection.or_else(|| shared.connection().take()).is_some();
    recorded?;
    let why = format!("{place} has ended the connection");
    if is_ended {
        if why != *last {
            note(&why)?;
        }
        *last = why;
    }
    Ok(())
}

/// Sends something to the console of a server: by its recorder, or by a connection of its own if
/// none runs. `home` is the lab's data directory, `who` asks, `clock` returns milliseconds since
/// 1970-01-01 UTC. That it was sent is all that is known: what came of it, the record says.
///
/// # Errors
/// If the console has no break, or it was not sent.
pub fn send_signal(
    server: &ServerSettings,
    home: &Path,
    signal: &Signal,
    who: &str,
    clock: Clock<'_>,
) -> Result<(), SignalError> {
    let signal_text = signal.to_string();
    let failed = |why| SignalError::Failed {
        name: server.name.clone(),
        signal: signal_text.clone(),
        why,
    };
    check_break(server, signal)?;
    let reply = |error: io::Error| failed(error.to_string());
    let folder = console_folder(home, &server.name);
    let Some(recorder) = Recorder::open(server, home).map_err(reply)? else {
        return request_signal(server, home, signal, who);
    };
    // A measurement that reads the console itself has the connection.
    if lock(&folder, READS).map_err(reply)?.is_none() {
        return Err(failed(
            "a measurement reads it now\nhint: marvin console --record records it always, and sends, too".into(),
        ));
    }
    recorder.send(signal, who, clock).map_err(failed)
}

/// Has the recorder of a server's console send something, and waits until it has.
///
/// # Errors
/// If the console has no break, no recorder runs, or it was not sent.
pub fn request_signal(
    server: &ServerSettings,
    home: &Path,
    signal: &Signal,
    who: &str,
) -> Result<(), SignalError> {
    check_break(server, signal)?;
    let name = server.name.clone();
    let signal_text = signal.to_string();
    request::ask(&console_folder(home, &server.name), who, signal).map_err(
        |problem| match problem {
            Unanswered::Failed(why) => SignalError::Failed {
                name,
                signal: signal_text,
                why,
            },
            Unanswered::Unknown => SignalError::Unknown {
                name,
                signal: signal_text,
            },
        },
    )
}

fn check_break(server: &ServerSettings, signal: &Signal) -> Result<(), SignalError> {
    let none = Err(("give its [[machine]] a [machine.console]", "it has none"));
    server
        .console
        .as_ref()
        .map_or(none, ConsoleSettings::check_break)
        .map_err(|(setting, why)| SignalError::NoBreak {
            name: server.name.clone(),
            signal: signal.to_string(),
            setting,
            why,
        })
}

/// Takes a lock in a console's directory; `None` if another process has it.
fn lock(folder: &Path, name: &str) -> io::Result<Option<File>> {
    fs::create_dir_all(folder)?;
    let lock = subprocess::lock_file(&folder.join(name))?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// What a server prints while a measurement runs.
pub struct Console(Kind);

enum Kind {
    None,
    /// A recorder keeps it.
    Recorded(Shared<Tail>),
    /// This process reads it, in a thread that ends with the connection.
    Own(Own),
}

/// A console that this process reads.
struct Own {
    printed: Arc<Shared<Vec<u8>>>,
    connection: Shared<Connection>,
    _lock: Option<File>,
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
    /// Returns a console that prints nothing.
    #[must_use]
    pub const fn none() -> Self {
        Self(Kind::None)
    }

    /// Reads the record of a server's console from its end on or, if no process records it,
    /// connects to it.
    #[must_use]
    pub fn open(server: &ServerSettings, home: &Path) -> Self {
        let folder = console_folder(home, &server.name);
        if server.console.is_none() {
            return Self(Kind::None);
        }
        if is_recorded(&folder) {
            return Self(Kind::Recorded(Shared::new(Tail::at_end(&folder))));
        }
        // A console that cannot be opened is none: what the kernel did is known without it, too.
        let Ok(source::Open {
            mut bytes,
            connection,
        }) = source::open(server)
        else {
            return Self(Kind::None);
        };
        let printed: Arc<Shared<Vec<u8>>> = Arc::default();
        let buffer = Arc::clone(&printed);
        spawn(move || {
            let mut part = [0; 1 << 14];
            while let Ok(count @ 1..) = bytes.read(&mut part) {
                keep(&mut buffer.lock(), &part[..count]);
            }
        });
        let lock = lock(&folder, READS).unwrap_or_default();
        Self(Kind::Own(Own {
            printed,
            connection: Shared::new(connection),
            _lock: lock,
        }))
    }

    /// Returns what was printed since the last call.
    pub fn take(&self) -> Vec<u8> {
        match &self.0 {
            Kind::None => Vec::new(),
            Kind::Own(own) => std::mem::take(&mut *own.printed.lock()),
            Kind::Recorded(tail) => {
                let mut tail = tail.lock();
                let mut buffer = Vec::new();
                loop {
                    let lines = tail.new_lines();
                    if lines.is_empty() {
                        return buffer;
                    }
                    // Of the recorder's notes, only that lines are missing is of what the server
                    // printed.
                    for line in &lines {
                        if tail::is_gap(line) {
                            keep(&mut buffer, MISSING);
                        } else if !line.is_note {
                            keep(&mut buffer, &line.bytes);
                        }
                    }
                }
            }
        }
    }
}

/// Keeps what a console printed, up to the limit, and says once that there was more.
fn keep(buffer: &mut Vec<u8>, bytes: &[u8]) {
    let room = KEPT_MAX.saturating_sub(buffer.len());
    buffer.extend_from_slice(&bytes[..bytes.len().min(room)]);
    if bytes.len() > room && buffer.len() <= KEPT_MAX {
        buffer.extend_from_slice(LEFT_OUT);
    }
}

/// What can be sent to a console while it is read: by the recorder, or by this process.
impl Console {
    /// Sends something; returns whether it was sent. `who` asks.
    pub fn send(&self, server: &ServerSettings, home: &Path, signal: &Signal, who: &str) -> bool {
        match &self.0 {
            Kind::None => false,
            Kind::Recorded(_) => request_signal(server, home, signal, who).is_ok(),
            Kind::Own(own) => {
                let mut connection = own.connection.lock();
                check_break(server, signal).is_ok()
                    && signal
                        .keys()
                        .into_iter()
                        .try_for_each(|key| connection.send_break(key))
                        .is_ok()
            }
        }
    }
}

#[cfg(test)]
mod tests;
