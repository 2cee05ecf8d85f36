//! One running QEMU: started in a scratch folder, watched for its deadlines, killed when let go.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::MachineError;
use crate::qmp::{ANSWER, Event, Qmp, QmpError};
use crate::seat::Seat;

/// How often a running machine is looked at.
const SLICE: Duration = Duration::from_millis(25);
/// How long QEMU may take to end after the guest has, or to be ready with a migration.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ticks per second of /proc/PID/stat: USER_HZ, fixed on x86-64 (include/asm-generic/param.h of the kernel).
const TICKS_PER_S: u64 = 100;
/// Most that is kept of what QEMU prints on standard error, in bytes.
const STDERR_MAX: usize = 2000;

/// QEMU's arguments for the control protocol over its standard input and output.
pub(crate) const CONTROL: &str = "-chardev stdio,id=control,signal=off -mon chardev=control,mode=control";

/// The serial line's file within a scratch folder.
pub(crate) const CONSOLE: &str = "console";

/// A folder that lives as long as one QEMU.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: PathBuf,
}

impl Scratch {
    /// Makes a new folder below `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self, MachineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(MachineError::io("create", &folder))?;
        Ok(Self { folder })
    }

    /// Returns the folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> Result<(), MachineError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(MachineError::io("write", &path))
    }

    /// Gives a file elsewhere a name in it, so that QEMU's arguments hold no path of this host.
    pub(crate) fn link(&self, name: &str, target: &Path) -> Result<(), MachineError> {
        let path = self.path(name);
        std::os::unix::fs::symlink(target, &path).map_err(MachineError::io("link", &path))
    }

    /// Returns what the guest has printed.
    pub(crate) fn console(&self) -> Vec<u8> {
        // No file means that QEMU did not come so far as to make one.
        fs::read(self.path(CONSOLE)).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is swept when the home is opened next time.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// What a stage may use up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Processor seconds of QEMU: what counts, whatever else the host does.
    pub(crate) cpu_s: u64,
    /// Seconds on the wall after which the host is to blame if QEMU had little of them.
    pub(crate) wall_s: u64,
    /// Bytes on the console.
    pub(crate) console_bytes: u64,
}

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The guest stopped the machine.
    Stopped,
    /// The guest switched off.
    PoweredOff,
    /// The budget of processor time is used up, or the guest sleeps for ever.
    Deadline,
    /// The console is full.
    ConsoleFull,
}

/// A running QEMU.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    qmp: Qmp,
    console: PathBuf,
    stderr: PathBuf,
    _seat: Seat,
}

impl Process {
    /// Starts QEMU in a scratch folder.
    pub(crate) fn start(program: &Path, arguments: &[String], scratch: &Scratch) -> Result<Self, MachineError> {
        let stderr = scratch.path("stderr");
        let file = fs::File::create(&stderr).map_err(MachineError::io("create", &stderr))?;
        let seat = Seat::take();
        let mut child = Command::new("setpriv")
            // QEMU must not outlive us, even if we are killed: it would run on without anybody to stop it.
            .args(["--pdeathsig", "KILL", "--"])
            .args(seat.words())
            .arg(program)
            .args(arguments)
            .current_dir(&scratch.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .map_err(MachineError::io("start", program))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(MachineError::QemuDied { how: "no pipes".into(), stderr: String::new() });
        };
        match Qmp::connect(to, from) {
            Ok(qmp) => Ok(Self { child, qmp, console: scratch.path(CONSOLE), stderr, _seat: seat }),
            Err(_) => Err(death(&mut child, &stderr)),
        }
    }

    /// Gives a command.
    pub(crate) fn command(&mut self, name: &str, arguments: Value) -> Result<Value, MachineError> {
        self.command_within(ANSWER, name, arguments)
    }

    /// Gives a command whose answer may take longer than others.
    pub(crate) fn command_within(
        &mut self,
        patience: Duration,
        name: &str,
        arguments: Value,
    ) -> Result<Value, MachineError> {
        self.qmp.command(patience, name, arguments).map_err(|error| match error {
            QmpError::Gone => death(&mut self.child, &self.stderr),
            QmpError::Refused(answer) => MachineError::Refused { command: name.to_owned(), answer },
        })
    }

    /// Asks the same until the answer's `status` is not among those that mean "not yet".
    pub(crate) fn until_not(&mut self, query: &str, not_yet: &[&str]) -> Result<String, MachineError> {
        let pause = Duration::from_millis(3);
        for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
            let answer = self.command(query, json!({}))?;
            let status = answer["status"].as_str().unwrap_or_default().to_owned();
            if !not_yet.contains(&status.as_str()) {
                return Ok(status);
            }
            std::thread::sleep(pause);
        }
        Err(MachineError::Refused { command: query.to_owned(), answer: "not ready in time".to_owned() })
    }

    /// Waits until the guest stops, ends, or uses up its budget.
    pub(crate) fn watch(&mut self, budget: &Budget) -> Result<Ended, MachineError> {
        let mut waited = Duration::ZERO;
        let before = self.cpu_ticks();
        loop {
            match self.qmp.next_event(SLICE) {
                Event::Stopped => return Ok(Ended::Stopped),
                Event::PoweredOff => return Ok(Ended::PoweredOff),
                Event::Closed => return Err(death(&mut self.child, &self.stderr)),
                Event::Nothing => waited += SLICE,
            }
            if fs::metadata(&self.console).is_ok_and(|file| file.len() > budget.console_bytes) {
                return Ok(Ended::ConsoleFull);
            }
            let cpu_s = self.cpu_ticks().saturating_sub(before) / TICKS_PER_S;
            if cpu_s >= budget.cpu_s {
                return Ok(Ended::Deadline);
            }
            if waited.as_secs() >= budget.wall_s {
                // A guest that sleeps for ever uses no time either; one that wanted to run and could not, some; and a
                // QEMU that the host has stopped is the host's business.
                return match (cpu_s, self.sleeps()) {
                    (0, true) => Ok(Ended::Deadline),
                    _ => Err(MachineError::Overloaded { cpu_s, wall_s: waited.as_secs() }),
                };
            }
        }
    }

    /// Waits until QEMU itself has ended, so that all it wrote is there.
    pub(crate) fn wait_for_end(mut self) -> Result<(), MachineError> {
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => {
                    std::thread::sleep(Duration::from_millis(2));
                    waited += Duration::from_millis(2);
                }
                Ok(Some(status)) if status.success() => return Ok(()),
                _ => return Err(death(&mut self.child, &self.stderr)),
            }
        }
        Err(MachineError::QemuDied { how: "it did not end after the guest had".into(), stderr: String::new() })
    }

    /// Processor time used so far; 0 when the system does not tell.
    fn cpu_ticks(&self) -> u64 {
        // Fields 14 and 15 of proc(5), the first here being 3.
        self.stat().split(' ').skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum()
    }

    /// Tells whether it waits of its own will: neither stopped nor stuck in the kernel.
    fn sleeps(&self) -> bool {
        self.stat().starts_with('S')
    }

    /// What the system says of it, from the third field on: the name in the second may hold blanks.
    fn stat(&self) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        stat.rsplit_once(") ").map_or_else(String::new, |(_, rest)| rest.to_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way it must not outlive us.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn death(child: &mut Child, stderr: &Path) -> MachineError {
    // QEMU has closed its side; if it lives on it is of no use.
    for _ in 0..100 {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.kill());
    let how = match child.wait() {
        Ok(status) => match (status.signal(), status.code()) {
            // A memory file without room behind it kills with SIGBUS when a page is touched.
            (Some(7), _) => "signal 7, SIGBUS: no space left for the guest's memory?".to_owned(),
            (Some(signal), _) => format!("signal {signal}"),
            (None, code) => format!("exit status {}", code.unwrap_or(-1)),
        },
        Err(error) => error.to_string(),
    };
    let said = fs::read(stderr).unwrap_or_default();
    let said = String::from_utf8_lossy(&said[..said.len().min(STDERR_MAX)]).trim().replace('\n', "; ");
    MachineError::QemuDied { how, stderr: said }
}
