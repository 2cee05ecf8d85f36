//! A program that is a child of Marvin itself, so that its exit status is exact, and that ends with
//! Marvin however Marvin ends.
//!
//! `running` has a guard and timeout(1) between Marvin and the program, and shells say a signal as
//! an exit code. Here the kernel kills the program when Marvin dies, and a guard beside it ends
//! what else is in its session. It is stopped before its first instruction: who observes it misses
//! nothing.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::at_end::AtEnd;

/// Stops if Marvin ($1) lives, and becomes the program. A death signal comes only for a death after
/// prctl(2): if Marvin died before, the parent is another. The program itself is asked to end, so
/// that it can clean up.
const STOPPED: &str = "[ \"$PPID\" = \"$1\" ] || exit 125; shift; kill -STOP $$; exec setpriv --pdeathsig TERM -- \"$@\"";
/// Ends the session $1.
const END: &str = "kill -s TERM -- \"-$1\"; sleep 1; kill -s KILL -- \"-$1\"";
/// How long the shell may take to stop.
const STARTING: Duration = Duration::from_secs(10);
/// Interval at which this is checked.
const LOOK: Duration = Duration::from_millis(1);

/// A program before or after its first instruction.
#[derive(Debug)]
pub struct Tethered {
    child: Child,
    guard: Option<AtEnd>,
}

/// Says which program could not be started: it is not the one that the caller named.
fn name_setpriv(error: io::Error) -> io::Error {
    io::Error::new(
        error.kind(),
        format!("setpriv, which starts it: {error}; install util-linux 2.33 or newer"),
    )
}

impl Tethered {
    /// Starts the words as a program that is stopped. It has Marvin's environment and standard
    /// input, and prints to `output` and to Marvin's standard error.
    ///
    /// # Errors
    /// If the host cannot start it.
    pub fn start_stopped(command_line: &[OsString], output: Stdio) -> io::Result<Self> {
        let mut command = Command::new("setpriv");
        // SIGKILL, because no other signal ends a stopped process.
        command.args([
            "--pdeathsig",
            "KILL",
            "--",
            "setsid",
            "sh",
            "-c",
            STOPPED,
            "sh",
        ]);
        command
            .arg(std::process::id().to_string())
            .args(command_line)
            .stdout(output);
        let mut tethered = Self {
            child: command.spawn().map_err(name_setpriv)?,
            guard: None,
        };
        tethered.wait_for_stop()?;
        let session = tethered.id().to_string();
        tethered.guard = Some(AtEnd::arm(END, &[&session], Stdio::null())?);
        Ok(tethered)
    }

    /// Returns its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets the stopped program run.
    pub fn resume(&self) {
        // It was stopped a moment ago, and if it is gone, its status says so.
        kill_process(Pid::from_child(&self.child), Signal::CONT).ok();
    }

    /// Returns its status if it has ended.
    ///
    /// # Errors
    /// If the host fails.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    fn wait_for_stop(&self) -> io::Result<()> {
        let begun = Instant::now();
        let file = PathBuf::from(format!("/proc/{}/stat", self.id()));
        while begun.elapsed() < STARTING {
            let text = std::fs::read_to_string(&file)?;
            match text
                .rsplit_once(") ")
                .and_then(|(_, rest)| rest.chars().next())
            {
                Some('T' | 't') => return Ok(()),
                Some('Z' | 'X') => {
                    return Err(io::Error::other(
                        "its starter setpriv ended at once: setpriv of util-linux 2.33 or newer is needed",
                    ));
                }
                _ => sleep(LOOK),
            }
        }
        Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the shell did not stop",
        ))
    }
}

impl Drop for Tethered {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Its status is of no use any more; before setsid(2) there is no group of it.
            kill_process_group(Pid::from_child(&self.child), Signal::KILL).ok();
            self.child.kill().ok();
            self.child.wait().ok();
        }
        if let Some(guard) = self.guard.take() {
            guard.cancel().ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::Tethered;

    /// The variable that makes a test process start a program until it is killed, in a directory.
    const TETHERS: &str = "MARVIN_TEST_TETHERS";

    fn start(script: &str) -> Tethered {
        Tethered::start_stopped(&["sh", "-c", script].map(Into::into), Stdio::null()).unwrap()
    }

    fn status(script: &str) -> std::process::ExitStatus {
        let mut program = start(script);
        program.resume();
        loop {
            if let Some(status) = program.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_alive(word: &str) -> bool {
        let command_line = format!("sleep\0{word}\0");
        let mut processes = std::fs::read_dir("/proc").unwrap().flatten();
        processes.any(|process| {
            std::fs::read_to_string(process.path().join("cmdline"))
                .is_ok_and(|words| words == command_line)
        })
    }

    fn is_gone_within(limit: Duration, word: &str) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if !is_alive(word) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        !is_alive(word)
    }

    #[test]
    fn exit_code_and_signal_are_exact() {
        for code in [0, 7, 124, 127, 137] {
            assert_eq!(status(&format!("exit {code}")).code(), Some(code));
        }
        for signal in [6, 9, 15] {
            let status = status(&format!("kill -{signal} $$"));
            assert_eq!((status.code(), status.signal()), (None, Some(signal)));
        }
    }

    #[test]
    fn program_runs_only_when_resumed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let program = start(&format!("touch {}", file.display()));
        std::thread::sleep(Duration::from_millis(50));
        assert!(!file.exists());
        program.resume();
        let begun = Instant::now();
        while !file.exists() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(file.exists());
    }

    #[test]
    fn dropped_program_takes_its_session_along() {
        let word = format!("71.{}", std::process::id());
        let program = start(&format!("sleep {word} & sleep {word}"));
        program.resume();
        while !is_alive(&word) {
            std::thread::sleep(Duration::from_millis(5));
        }
        drop(program);
        assert!(is_gone_within(Duration::from_secs(2), &word));
    }

    /// Not a test by itself: the process that the next test kills.
    #[test]
    fn process_that_tethers_until_killed() {
        let Some(word) = std::env::var_os(TETHERS) else {
            return;
        };
        let word = word.to_string_lossy().into_owned();
        let program = start(&format!("trap '' TERM; sleep {word} & sleep {word}"));
        program.resume();
        std::thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn killed_marvin_leaves_no_tethered_program() {
        for (round, delay_ms) in [5, 20, 60, 200, 500, 1000].into_iter().enumerate() {
            let word = format!("72.{}{round}", std::process::id());
            let mut parent = Command::new(std::env::current_exe().unwrap())
                .args(["process_that_tethers_until_killed", "--test-threads", "1"])
                .env(TETHERS, &word)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            std::thread::sleep(Duration::from_millis(delay_ms));
            parent.kill().unwrap();
            parent.wait().unwrap();
            assert!(
                is_gone_within(Duration::from_secs(3), &word),
                "killed after {delay_ms} ms"
            );
            // Nor a stopped shell that would become it.
            let waits = |entry: std::fs::DirEntry| {
                std::fs::read_to_string(entry.path().join("cmdline"))
                    .is_ok_and(|words| words.contains(&word))
            };
            let is_left = || {
                std::fs::read_dir(Path::new("/proc"))
                    .unwrap()
                    .flatten()
                    .any(waits)
            };
            let begun = Instant::now();
            while is_left() && begun.elapsed() < Duration::from_secs(3) {
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(!is_left(), "after {delay_ms} ms");
        }
    }
}
