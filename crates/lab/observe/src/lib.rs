//! Observes a program on this host: the time of its threads, where they wait, what they run, and
//! their settings. Nothing stops the program, except that a JVM is asked for its stacks, and no other
//! program is used.
//!
//! `explain` says what the facts mean.

mod arguments;
mod calls;
mod cgroups;
mod creations;
mod diag;
mod ends;
mod environment;
mod facts;
mod files;
mod gopclntab;
mod goroutines;
mod imports;
mod inlined;
mod jvm;
mod limits;
mod loops;
mod memory;
mod names;
mod proc;
mod ready;
mod rounds;
mod samples;
mod scripts;
mod settings;
mod symbols;
mod timeline;
mod traced;
mod tree;
mod unwind;
mod verify;

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use explain::facts::Facts;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use subprocess::Tethered;

use facts::Collector;
pub use verify::{Verification, verify};

/// Between two rounds, at least.
const PERIOD: Duration = Duration::from_millis(50);
/// The processor time that observing may take, of the time that is observed: one percent.
const SHARE: f64 = 0.01;
/// What it may take beyond that at first, for finding programs, libraries and open files (s).
const AT_FIRST_S: f64 = 0.05;
/// Looks that fit into every observation: fewer tell nothing.
const LOOKS: f64 = 6.0;
/// Between two looks whether the observation is to end.
const GLANCE: Duration = Duration::from_millis(100);
/// The longest pause between the first looks (s).
const SOON_S: f64 = 0.25;
/// How long a program may take to end after it was asked to.
const ENDING: Duration = Duration::from_secs(2);

#[derive(Debug, Clone)]
pub enum Subject {
    /// A command, without a shell.
    Command(Vec<OsString>),
    /// A process with its children.
    Process(u32),
}

/// How to observe it.
#[derive(Debug, Clone)]
pub struct Observation {
    pub subject: Subject,
    /// How long at most (s); `None` for a command to its end.
    pub seconds: Option<f64>,
    /// Ends the observation when it is set, as by Ctrl-C: what was seen until then is the answer.
    pub stop: Arc<AtomicBool>,
}

#[derive(Debug)]
pub struct Observed {
    pub facts: Facts,
    /// How the command ended; `None` if Marvin ended it or it was a process.
    pub status: Option<ExitStatus>,
    /// Whether the program had ended when Marvin looked last.
    pub has_ended: bool,
}

/// A program that cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// It could not be started.
    #[error("cannot start `{0}`: {1}")]
    Start(String, io::Error),
    /// There is no such process.
    #[error("cannot observe process {0}: there is no such process")]
    Missing(u32),
    /// Another system than Linux, or /proc is not mounted.
    #[error("cannot read /proc: {0}")]
    Proc(io::Error),
    /// It failed before there was something to see.
    #[error("cannot explain `{0}`: it failed at once, {1}")]
    Failed(String, ExitStatus),
    /// It ended before there was something to see.
    #[error("cannot explain `{0}`: it ended after {1:.2} s, too early to be observed")]
    Short(String, f64),
    /// It runs on, and was not seen often enough.
    #[error(
        "cannot explain `{0}`: it runs on, and Marvin saw it {1} times in {2:.1} s, too seldom\nhint: observe it longer, with --seconds"
    )]
    Few(String, u64, f64),
    /// It runs on, and the kernel tells no times of its threads.
    #[error(
        "cannot explain `{0}`: it runs on, and /proc/PID/task/TID/schedstat tells no times of its threads"
    )]
    Untold(String),
}

/// Observes a program. The standard output of a command goes to Marvin's standard error, so that
/// the answer stands alone.
///
/// # Errors
/// If the program cannot be started, does not exist, or ends at once.
pub fn observe(observation: &Observation) -> Result<Observed, ObserveError> {
    match &observation.subject {
        Subject::Command(command_line) => command(observation, command_line),
        Subject::Process(id) => {
            if !std::path::Path::new(&format!("/proc/{id}/stat")).exists() {
                return Err(ObserveError::Missing(*id));
            }
            let name = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
            let mut collector = Collector::new(*id, format!("process {id} ({})", name.trim()))?;
            rounds(&mut collector, observation, None);
            let has_ended = collector.has_ended();
            Ok(Observed {
                facts: collector.finish(name.trim())?,
                status: None,
                has_ended,
            })
        }
    }
}

fn command(observation: &Observation, command_line: &[OsString]) -> Result<Observed, ObserveError> {
    let named = command_line
        .iter()
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ");
    let failed = |error: io::Error| ObserveError::Start(named.clone(), error);
    let Some(program) = command_line.first() else {
        return Err(failed(io::Error::other("no command")));
    };
    if find(program).is_none() {
        return Err(failed(io::Error::new(
            io::ErrorKind::NotFound,
            "no such program",
        )));
    }
    let output = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
    let mut started =
        Started(Tethered::start_stopped(command_line, Stdio::from(output)).map_err(failed)?);
    let id = started.0.id();
    let mut collector = Collector::new(id, named.clone())?;
    started.0.resume();
    let status = rounds(&mut collector, observation, Some(&mut started.0));
    match (collector.finish(&named), status) {
        (Ok(facts), status) => Ok(Observed {
            facts,
            status,
            has_ended: status.is_some(),
        }),
        (Err(ObserveError::Short(..)), Some(status)) if !status.success() => {
            Err(ObserveError::Failed(named, status))
        }
        (Err(error), _) => Err(error),
    }
}

/// Looks again and again until the time is over or the program ended. Returns how the command ended
/// by itself.
fn rounds(
    collector: &mut Collector,
    observation: &Observation,
    mut child: Option<&mut Tethered>,
) -> Option<ExitStatus> {
    let seconds = observation.seconds.unwrap_or(f64::INFINITY);
    let is_stopped = || observation.stop.load(Ordering::Relaxed);
    // However costly a look is, several fit.
    let longest_s = (seconds / LOOKS).min(1.0);
    let mut looks = 0.0;
    while collector.elapsed() < seconds && !is_stopped() {
        let begun = Instant::now();
        let is_there = collector.look();
        let too_early_s = (collector.cost() - AT_FIRST_S) / SHARE - collector.elapsed();
        // The first looks come soon: a program may end early.
        let longest_s = if looks < LOOKS {
            longest_s.min(SOON_S)
        } else {
            longest_s
        };
        looks += 1.0;
        let pause = PERIOD.max(Duration::from_secs_f64(too_early_s.clamp(0.0, longest_s)));
        match child.as_mut().map(|child| child.try_wait()) {
            Some(Ok(Some(status))) => {
                collector.note_end();
                return Some(status);
            }
            // Only its status says that it ended.
            Some(Ok(None)) => {}
            Some(Err(_)) | None if !is_there => break,
            Some(Err(_)) | None => {}
        }
        while begun.elapsed() < pause && !is_stopped() {
            sleep(pause.saturating_sub(begun.elapsed()).min(GLANCE));
        }
    }
    let status = child.and_then(|child| child.try_wait().ok().flatten());
    if status.is_some() {
        collector.note_end();
    }
    status
}

/// A command that does not outlive its observation.
struct Started(Tethered);

impl Drop for Started {
    fn drop(&mut self) {
        if let Ok(Some(_)) = self.0.try_wait() {
            return;
        }
        let all = tree::find_processes(self.0.id());
        all.iter()
            .for_each(|process| signal(*process, Signal::TERM));
        let begun = Instant::now();
        // What it started may take longer to end than the program, or refuse to.
        while begun.elapsed() < ENDING
            && (!matches!(self.0.try_wait(), Ok(Some(_)))
                || all.iter().any(|process| tree::is_there(*process)))
        {
            sleep(Duration::from_millis(20));
        }
        let left = all.iter().filter(|process| tree::is_there(**process));
        left.for_each(|process| signal(*process, Signal::KILL));
        // What was started meanwhile; the number is not another's while a process of the group is
        // left.
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            kill_process_group(group, Signal::KILL).unwrap_or_default();
        }
    }
}

fn signal(process: u32, signal: Signal) {
    if let Some(id) = i32::try_from(process).ok().and_then(Pid::from_raw) {
        // One that is gone needs no signal.
        kill_process(id, signal).unwrap_or_default();
    }
}

/// Returns where a program is, as the shell would find it.
fn find(program: &OsString) -> Option<std::path::PathBuf> {
    let path = std::path::Path::new(program);
    if path.components().count() > 1 {
        return path.is_file().then(|| path.to_owned());
    }
    let folders = std::env::var_os("PATH")?;
    std::env::split_paths(&folders)
        .map(|folder| folder.join(path))
        .find(|file| file.is_file())
}
