//! A running QEMU: started in a scratch directory, polled for its deadlines, killed when dropped.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use subprocess::{Program, Qmp, QmpError, Running, Walls};

use super::Qemu;
use super::seat::Seat;
use crate::MachineError;

/// Deadline of an answer to a command. On a loaded host QEMU may have to wait for a processor.
const ANSWER: Duration = Duration::from_secs(120);
/// Polling interval of a running machine.
const SLICE: Duration = Duration::from_millis(25);
/// First query for executed instructions: most jobs have ended by then.
const ASK_FIRST: Duration = Duration::from_secs(5);
/// Interval of later queries.
const ASK: Duration = Duration::from_secs(1);
/// A guest without progress for this long, while QEMU sleeps, has hung.
const STILL: Duration = Duration::from_secs(5);
/// The same if QEMU does not sleep, in processor seconds.
const STILL_CPU_S: u64 = 2;
/// Limit on instructions per processor second of a guest in a loop of PAUSE: measured were 4
/// million, and a hundred times that for other code.
const PAUSES: u64 = 15_000_000;
/// A guest that does nothing else for this many processor seconds has hung.
const PAUSES_CPU_S: u64 = 30;
/// How long QEMU may take to exit after the guest's end, or to complete a migration.
const PATIENCE: Duration = Duration::from_secs(60);
/// No machine runs longer, whatever happens to Marvin (s).
const DEADLINE_S: u64 = 24 * 3600;
/// Ticks per second of /proc/PID/stat: USER_HZ, fixed on x86-64 (include/asm-generic/param.h of the
/// kernel).
const TICKS_PER_S: u64 = 100;
/// Limit on stored standard error of QEMU (bytes).
const STDERR_MAX: usize = 2000;

/// QEMU's arguments for the control protocol over its standard input and output.
pub const CONTROL: &str = "-chardev stdio,id=control,signal=off -mon chardev=control,mode=control";

/// The serial line's file within a scratch folder.
pub const CONSOLE: &str = "console";

/// A directory that exists as long as one QEMU.
#[derive(Debug)]
pub struct Scratch {
    folder: PathBuf,
    /// Linked files that QEMU may write.
    writable: Vec<PathBuf>,
}

impl Scratch {
    /// Makes a new directory below `parent`.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn new(parent: &Path) -> Result<Self, MachineError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = parent.join(format!("{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(MachineError::io("create", &folder))?;
        Ok(Self {
            folder,
            writable: Vec::new(),
        })
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), MachineError> {
        let path = self.path(name);
        fs::write(&path, bytes).map_err(MachineError::io("write", &path))
    }

    /// Links a file elsewhere into the directory, so that QEMU's arguments contain no path of this
    /// host.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn link(&self, name: &str, target: &Path) -> Result<(), MachineError> {
        let path = self.path(name);
        std::os::unix::fs::symlink(target, &path).map_err(MachineError::io("link", &path))
    }

    /// Links a file that QEMU has to open for writing.
    ///
    /// # Errors
    /// If the link cannot be made.
    pub fn link_writable(&mut self, name: &str, target: &Path) -> Result<(), MachineError> {
        self.writable.push(target.to_owned());
        self.link(name, target)
    }

    pub fn unlink(&mut self, name: &str) {
        let path = self.path(name);
        self.writable
            .retain(|target| fs::read_link(&path).ok().as_ref() != Some(target));
        // QEMU cannot start with the link, and then says so.
        drop(fs::remove_file(path));
    }

    /// Returns the walls around a QEMU that works here: it sees this directory and the files that
    /// are linked into it.
    fn walls(&self, qemu: &Qemu) -> Walls {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let links = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
        let linked = links.filter(|target| !self.writable.contains(target));
        let readable = qemu.folders().into_iter().chain(linked);
        let walls = readable.fold(Walls::default(), |walls, path| walls.readable(&path));
        let writable = std::iter::once(&self.folder).chain(&self.writable);
        writable.fold(walls, |walls, path| walls.writable(path))
    }

    /// Opens a socket in it by a short name, as its own may have more than the 107 bytes of
    /// `sun_path`.
    pub(crate) fn at_socket<T>(
        &self,
        name: &str,
        open: impl Fn(String) -> io::Result<T>,
    ) -> Result<T, MachineError> {
        let folder =
            fs::File::open(&self.folder).map_err(MachineError::io("open", &self.folder))?;
        let short = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
        open(short).map_err(MachineError::io("open", &self.path(name)))
    }

    /// Returns what the guest printed.
    #[must_use]
    pub fn console(&self) -> Vec<u8> {
        // Without the file, QEMU failed before it opened the console.
        fs::read(self.path(CONSOLE)).unwrap_or_default()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // The next opening of the data directory removes what remains.
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// The budget of a stage.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Limit on instructions since power-on, if they are counted: beyond it the guest has hung.
    pub until: Option<u64>,
    /// Whether QEMU does little beside executing instructions, so that a guest with little
    /// progress has hung.
    pub is_fast: bool,
    /// Limit on wall time (s); beyond it the host is too slow.
    pub wall_s: u64,
    /// Limit on console output (bytes).
    pub console_bytes: u64,
}

/// The end of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The guest stopped the machine.
    Stopped,
    /// The guest powered off.
    PoweredOff,
    /// The guest used up its instructions, or waits for ever.
    Deadline,
    /// The console is full.
    ConsoleFull,
}

#[derive(Debug)]
pub struct Process {
    running: Running,
    id: u32,
    qmp: Qmp,
    console: PathBuf,
    stderr: PathBuf,
    _seat: Seat,
}

impl Process {
    /// Starts QEMU in a scratch directory, behind walls where the host has them.
    ///
    /// # Errors
    /// If the directory cannot be written, or QEMU cannot be started.
    pub fn start(
        qemu: &Qemu,
        arguments: &[String],
        scratch: &Scratch,
    ) -> Result<Self, MachineError> {
        Self::start_on(Seat::take(), qemu, arguments, scratch)
    }

    /// Starts QEMU on these host processors.
    pub(crate) fn start_on(
        seat: Seat,
        qemu: &Qemu,
        arguments: &[String],
        scratch: &Scratch,
    ) -> Result<Self, MachineError> {
        let stderr = scratch.path("stderr");
        let file = fs::File::create(&stderr).map_err(MachineError::io("create", &stderr))?;
        let command = qemu.command();
        let (program, first) = command
            .split_first()
            .ok_or_else(|| MachineError::QemuDied {
                how: "no program".into(),
                stderr: String::new(),
            })?;
        let mut running = Program::new(program)
            .args(first)
            .args(arguments)
            .args(qemu.sandbox())
            .without_variables()
            .walls(scratch.walls(qemu))
            .started_by(seat.scheduling())
            .processor(seat.processor())
            .folder(&scratch.folder)
            .deadline_s(DEADLINE_S)
            .start(Stdio::piped(), Stdio::piped(), file.into())
            .map_err(MachineError::io("start", &qemu.program))?;
        let (Some(to), Some(from)) = (running.take_input(), running.take_output()) else {
            return Err(MachineError::QemuDied {
                how: "no pipes".into(),
                stderr: String::new(),
            });
        };
        match Qmp::over_pipes(to, from, ANSWER) {
            Ok(qmp) => {
                let id = running.program_id();
                Ok(Self {
                    running,
                    id,
                    qmp,
                    console: scratch.path(CONSOLE),
                    stderr,
                    _seat: seat,
                })
            }
            Err(_) => Err(death(&mut running, &stderr)),
        }
    }

    pub(crate) fn command(&mut self, name: &str, arguments: Value) -> Result<Value, MachineError> {
        self.command_within(ANSWER, name, arguments)
    }

    /// Sends a command with its own deadline for the answer.
    pub(crate) fn command_within(
        &mut self,
        patience: Duration,
        name: &str,
        arguments: Value,
    ) -> Result<Value, MachineError> {
        self.qmp
            .command(name, arguments, patience)
            .map_err(|error| match error {
                QmpError::Gone(_) => death(&mut self.running, &self.stderr),
                QmpError::Refused { command, reason } => MachineError::Refused {
                    command,
                    answer: reason,
                },
            })
    }

    /// Repeats a query until the answer's `status` is none of `not_yet`.
    pub(crate) fn until_not(
        &mut self,
        query: &str,
        not_yet: &[&str],
    ) -> Result<String, MachineError> {
        let pause = Duration::from_millis(3);
        for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
            let answer = self.command(query, json!({}))?;
            let status = answer["status"].as_str().unwrap_or_default().to_owned();
            if !not_yet.contains(&status.as_str()) {
                return Ok(status);
            }
            std::thread::sleep(pause);
        }
        Err(MachineError::Refused {
            command: query.to_owned(),
            answer: "not ready in time".to_owned(),
        })
    }

    /// Returns whether the guest has ended within a short time, or its console is full.
    pub(crate) fn poll(&mut self, console_bytes: u64) -> Result<Option<Ended>, MachineError> {
        let Ok(event) = self.qmp.next_event(SLICE) else {
            return Err(death(&mut self.running, &self.stderr));
        };
        let event = event.unwrap_or_default();
        let ended = match event["event"].as_str() {
            Some("STOP") => Some(Ended::Stopped),
            // A shutdown that the guest did not request comes from a signal to QEMU; a kernel
            // cannot cause it.
            Some("SHUTDOWN") if event["data"]["guest"] == json!(true) => Some(Ended::PoweredOff),
            Some("SHUTDOWN") => return Err(death(&mut self.running, &self.stderr)),
            _ => None,
        };
        let is_full = fs::metadata(&self.console).is_ok_and(|file| file.len() > console_bytes);
        Ok(if is_full {
            Some(Ended::ConsoleFull)
        } else {
            ended
        })
    }

    /// Waits until the guest stops, ends, or uses up its budget. A guest beyond its instructions
    /// has hung, however late Marvin notices: the verdict does not depend on the host.
    ///
    /// # Errors
    /// If QEMU dies, or the host is too busy.
    pub fn wait_for_end(&mut self, budget: &Budget) -> Result<Ended, MachineError> {
        let mut waited = Duration::ZERO;
        let mut next = ASK_FIRST;
        let before = self.cpu_ticks();
        let mut pulse = Pulse::default();
        loop {
            let ended = self.poll(budget.console_bytes)?;
            waited += SLICE;
            if ended == Some(Ended::ConsoleFull) {
                return Ok(Ended::ConsoleFull);
            }
            if let Some(until) = budget.until
                && (ended.is_some() || waited >= next)
            {
                next = waited + ASK;
                let executed = self.instructions()?;
                let cpu_ticks = self.cpu_ticks();
                let sleeps = self.sleeps();
                let still = pulse.stands_still(executed, waited, cpu_ticks, sleeps)
                    || (budget.is_fast && pulse.pauses(executed, cpu_ticks));
                if executed >= until || (ended.is_none() && still) {
                    return Ok(Ended::Deadline);
                }
            }
            if let Some(ended) = ended {
                return Ok(ended);
            }
            if waited.as_secs() >= budget.wall_s {
                let cpu_s = self.cpu_ticks().saturating_sub(before) / TICKS_PER_S;
                return Err(MachineError::Overloaded {
                    cpu_s,
                    wall_s: waited.as_secs(),
                });
            }
        }
    }

    /// Returns the number of instructions executed since power-on. The query does not disturb the
    /// guest: `icount_get_raw` in softmmu/icount.c.
    pub(crate) fn instructions(&mut self) -> Result<u64, MachineError> {
        let answer = self.command("query-replay", json!({}))?;
        answer["icount"]
            .as_u64()
            .ok_or_else(|| MachineError::Refused {
                command: "query-replay".into(),
                answer: answer.to_string(),
            })
    }

    /// Makes QEMU exit after its guest's end, so that all its files are complete.
    pub(crate) fn end(mut self) -> Result<(), MachineError> {
        self.command("quit", json!({}))?;
        let mut waited = Duration::ZERO;
        while waited < PATIENCE {
            match self.running.try_wait() {
                Ok(None) => {
                    std::thread::sleep(Duration::from_millis(2));
                    waited += Duration::from_millis(2);
                }
                Ok(Some(status)) if status.success() => return Ok(()),
                _ => return Err(death(&mut self.running, &self.stderr)),
            }
        }
        Err(MachineError::QemuDied {
            how: "it did not exit after the guest's end".into(),
            stderr: String::new(),
        })
    }

    /// Returns QEMU's process id.
    pub(crate) const fn id(&self) -> u32 {
        self.id
    }

    /// Returns the host's ids of the threads that execute the guest's processors, in the
    /// processors' order. QEMU names them `CPU 0/TCG` if it has debug-threads=on.
    pub(crate) fn processor_threads(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id))
            .into_iter()
            .flatten()
            .flatten();
        let thread = |task: PathBuf| {
            Some((
                processor_of_thread(&task)?,
                task.file_name()?.to_str()?.parse().ok()?,
            ))
        };
        let mut found: Vec<(u32, u32)> = tasks.filter_map(|task| thread(task.path())).collect();
        found.sort_unstable();
        found.into_iter().map(|(_, thread)| thread).collect()
    }

    /// Returns the processor time used so far; 0 if the system does not report it.
    fn cpu_ticks(&self) -> u64 {
        // Fields 14 and 15 of proc(5); the first field here is field 3.
        stat(Path::new(&format!("/proc/{}", self.id)))
            .split(' ')
            .skip(11)
            .take(2)
            .filter_map(|field| field.parse::<u64>().ok())
            .sum()
    }

    /// Returns whether all of its threads sleep: neither stopped nor stuck in the kernel.
    fn sleeps(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id))
            .into_iter()
            .flatten()
            .flatten();
        tasks
            .map(|task| stat(&task.path()))
            .all(|stat| stat.starts_with('S'))
    }
}

fn processor_of_thread(task: &Path) -> Option<u32> {
    let name = fs::read_to_string(task.join("comm")).ok()?;
    name.strip_prefix("CPU ")?
        .split('/')
        .next()?
        .parse::<u32>()
        .ok()
}

/// Returns the `stat` fields of a process or thread from the third on: the name in the second may
/// contain spaces.
fn stat(folder: &Path) -> String {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .map_or_else(String::new, |(_, rest)| rest.to_owned())
}

/// The last progress of a guest's instruction count. A guest that executes moves it every 65,535
/// instructions; for one that waits, QEMU moves the clock to the next timer at once. If the count
/// stands still although QEMU had processor time, the guest waits for ever. If it moves very
/// slowly, the guest spins in a loop of PAUSE, as for a lock: QEMU leaves its main loop at each
/// PAUSE (`helper_pause`), which takes thirty times as long.
#[derive(Debug, Default)]
struct Pulse {
    executed: Option<u64>,
    at: Duration,
    cpu_ticks: u64,
    slept: bool,
    /// Instructions and processor time at the last progress.
    got_on: Option<(u64, u64)>,
}

impl Pulse {
    /// Returns whether the guest makes too little progress.
    fn pauses(&mut self, executed: u64, cpu_ticks: u64) -> bool {
        let (then, ticks) = *self.got_on.get_or_insert((executed, cpu_ticks));
        if cpu_ticks.saturating_sub(ticks) < PAUSES_CPU_S * TICKS_PER_S {
            return false;
        }
        self.got_on = None;
        executed.saturating_sub(then) < PAUSES_CPU_S * PAUSES
    }

    fn stands_still(&mut self, executed: u64, at: Duration, cpu_ticks: u64, sleeps: bool) -> bool {
        if self.executed != Some(executed) {
            *self = Self {
                executed: Some(executed),
                at,
                cpu_ticks,
                slept: sleeps,
                ..*self
            };
            return false;
        }
        self.slept &= sleeps;
        let had_time = cpu_ticks.saturating_sub(self.cpu_ticks) >= STILL_CPU_S * TICKS_PER_S;
        had_time || (self.slept && at - self.at >= STILL)
    }
}

fn death(running: &mut Running, stderr: &Path) -> MachineError {
    // QEMU closed its side; a survivor is useless.
    for _ in 0..100 {
        if !matches!(running.try_wait(), Ok(None)) {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let how = match running.kill() {
        Ok(status) => match (subprocess::signal_of(status), status.code()) {
            // A memory file without disk space kills QEMU with SIGBUS when it touches a page.
            (Some(7), _) => "signal 7, SIGBUS: no space left for the guest's memory?".to_owned(),
            (Some(signal), _) => format!("signal {signal}"),
            (None, code) => format!("exit status {}", code.unwrap_or(-1)),
        },
        Err(error) => error.to_string(),
    };
    let text = fs::read(stderr).unwrap_or_default();
    let text = String::from_utf8_lossy(&text[..text.len().min(STDERR_MAX)])
        .trim()
        .replace('\n', "; ");
    MachineError::QemuDied { how, stderr: text }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Pulse, TICKS_PER_S};

    /// Asks once a second, with these answers: instructions, processor seconds of QEMU, and whether
    /// it sleeps.
    fn still(requested: &[(u64, u64, bool)]) -> Option<usize> {
        let mut pulse = Pulse::default();
        let mut answers = (1..).map(Duration::from_secs).zip(requested);
        answers.position(|(at, (executed, cpu_s, sleeps))| {
            pulse.stands_still(*executed, at, cpu_s * TICKS_PER_S, *sleeps)
        })
    }

    #[test]
    fn executing_guest_is_not_stuck() {
        assert_eq!(
            still(&[
                (1, 0, true),
                (2, 0, true),
                (3, 9, false),
                (4, 99, false),
                (5, 100, false)
            ]),
            None
        );
    }

    #[test]
    fn guest_without_timers_is_stuck() {
        assert_eq!(
            still(&[(7, 0, false), (7, 1, false), (7, 2, false)]),
            Some(2),
            "QEMU turns in circles"
        );
        assert_eq!(still(&[(7, 0, true); 9]), Some(5), "QEMU sleeps");
    }

    #[test]
    fn pausing_guest_is_stuck() {
        let mut pulse = Pulse::default();
        let mut requested =
            |executed: u64, cpu_s: u64| pulse.pauses(executed * 1_000_000, cpu_s * TICKS_PER_S);
        assert!(!requested(0, 0) && !requested(100, 29) && requested(130, 30));
        assert!(
            !requested(200, 40) && !requested(3000, 70),
            "a hundred million in a second get on"
        );
    }

    #[test]
    fn busy_host_proves_no_hang() {
        assert_eq!(
            still(&[(7, 0, false); 99]),
            None,
            "QEMU neither runs nor sleeps"
        );
        assert_eq!(
            still(&[
                (7, 0, true),
                (7, 0, true),
                (7, 1, false),
                (7, 1, true),
                (7, 1, true),
                (7, 1, true)
            ]),
            None
        );
    }
}
