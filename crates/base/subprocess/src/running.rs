//! Starts a program so that it ends with Marvin, however Marvin ends, and ends it with all
//! processes that it started.
//!
//! Each program has a session of its own with a guard, a shell, as its leader. The guard starts a
//! watcher, which reads a pipe that only Marvin has the other end of: its end comes with every
//! death of Marvin, and when Marvin closes it because the deadline is reached. The watcher then
//! sends SIGTERM to the session's processes, and SIGKILL a second later.
//!
//! A program may end at the SIGTERM and leave processes that ignore it: bubblewrap leaves the first
//! process of unfinished walls, which the kernel protects. So the guard, which outlives the program,
//! sends SIGKILL too if Marvin is gone.
//!
//! The guard opens the pipe by its number in /proc, so no program inherits it, and then compares its
//! parent with Marvin: from the comparison on, the pipe tells of Marvin's end. A shell, sleep(1) and
//! setsid(1) of any kind do: busybox has them.

use std::convert::Infallible;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

use crate::affinity;

/// How long the processes behind walls may take to end after the program there.
const EMPTY: Duration = Duration::from_secs(2);
/// Interval at which this is checked.
const EMPTY_LOOK: Duration = Duration::from_millis(2);

/// The guard: starts the program if Marvin ($1) lives, whose pipe has the number $2. A signal to all
/// of the session leaves the guard, which still has to say how the program ended.
const GUARD: &str = "trap : TERM
exec 3<&0 4<\"/proc/$1/fd/$2\" </dev/null
[ \"$PPID\" = \"$1\" ] || exit 125
marvin=/proc/$1/fd/$2
shift 2
{
trap '' TERM
read -r line
kill -TERM 0
sleep 1
kill -KILL 0
} <&4 >/dev/null 2>&1 3<&- 4<&- &
watcher=$!
exec \"$@\" <&3 3<&- 4<&- &
program=$!
exec >/dev/null 2>&1 3<&- 4<&-
wait $program
status=$?
while kill -0 $program; do
wait $program
status=$?
done
[ -e $marvin ] || kill -KILL 0
kill -KILL $watcher
wait $watcher
exit $status";

/// A pipe whose end tells the guard that Marvin ended, or that the deadline is reached.
#[derive(Debug)]
pub(crate) struct Lifeline {
    /// The guard opens it by its number.
    reader: PipeReader,
    writer: PipeWriter,
}

impl Lifeline {
    pub(crate) fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        Ok(Self { reader, writer })
    }

    /// Returns the command that starts a program; the caller appends the program and its arguments.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("setsid");
        command.args(["sh", "-c", GUARD, "guard"]);
        command.arg(std::process::id().to_string());
        command.arg(self.reader.as_raw_fd().to_string());
        command
    }

    /// Closes it when the deadline is reached.
    fn hold(self, deadline: Duration) -> io::Result<Deadline> {
        let (cancel, cancelled) = mpsc::channel::<Infallible>();
        let is_over = Arc::new(AtomicBool::new(false));
        let reached = Arc::clone(&is_over);
        let writer = self.writer;
        thread::Builder::new()
            .name("deadline".to_owned())
            .spawn(move || {
                if cancelled.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
                    reached.store(true, Ordering::SeqCst);
                }
                drop(writer);
            })?;
        Ok(Deadline {
            _reader: self.reader,
            _cancel: cancel,
            is_over,
        })
    }
}

/// The deadline of a program that runs.
#[derive(Debug)]
struct Deadline {
    _reader: PipeReader,
    /// Its end ends the thread that waits for the deadline.
    _cancel: Sender<Infallible>,
    is_over: Arc<AtomicBool>,
}

/// Returns the signal that ended a program, also if its guard or its walls say it as shells do.
#[must_use]
pub fn signal_of(status: ExitStatus) -> Option<i32> {
    let reported = status
        .code()
        .filter(|code| (129..160).contains(code))
        .map(|code| code - 128);
    status.signal().or(reported)
}

/// How a program is started.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) deadline_s: u64,
    pub(crate) is_walled: bool,
    /// The only processor that it may use.
    pub(crate) processor: Option<usize>,
}

/// A running program. It and the processes that it started end when this is dropped.
#[derive(Debug)]
pub struct Running {
    guard: Child,
    deadline: Deadline,
    /// The guard's process id until it has ended: afterwards the number may be another's.
    session: Option<Pid>,
    is_walled: bool,
}

impl Running {
    pub(crate) fn spawn(
        mut command: Command,
        lifeline: Lifeline,
        start: &Start,
    ) -> io::Result<Self> {
        let guard = match start.processor {
            Some(processor) => affinity::on_processor(processor, || command.spawn())?,
            None => command.spawn()?,
        };
        let session = Some(Pid::from_child(&guard));
        // Without a thread for the deadline, the pipe ends here, and so does the program.
        let deadline = lifeline.hold(Duration::from_secs(start.deadline_s))?;
        Ok(Self {
            guard,
            deadline,
            session,
            is_walled: start.is_walled,
        })
    }

    /// Returns its standard input, the first time, if it is a pipe.
    pub fn take_input(&mut self) -> Option<ChildStdin> {
        self.guard.stdin.take()
    }

    /// Returns its standard output, the first time, if it is a pipe.
    pub fn take_output(&mut self) -> Option<ChildStdout> {
        self.guard.stdout.take()
    }

    /// Returns its standard error, the first time, if it is a pipe.
    pub fn take_errors(&mut self) -> Option<ChildStderr> {
        self.guard.stderr.take()
    }

    /// Waits for its end, and returns its status and whether it reached its deadline. Behind walls,
    /// all processes that it started have ended then: none changes a file that the caller reads
    /// next.
    ///
    /// # Errors
    /// If the host fails.
    pub fn wait(&mut self) -> io::Result<(ExitStatus, bool)> {
        let status = self.guard.wait()?;
        Ok((status, self.end_session()))
    }

    /// Waits for its end, and then kills what it left in its session.
    pub(crate) fn wait_and_sweep(&mut self) -> io::Result<(ExitStatus, bool)> {
        let session = self.session;
        let ended = self.wait()?;
        if let Some(session) = session {
            // The number is not another's while a process of the group is left.
            kill_process_group(session, Signal::KILL).ok();
        }
        Ok(ended)
    }

    /// Returns its status if it has ended.
    ///
    /// # Errors
    /// If the host fails.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.guard.try_wait()?;
        if status.is_some() {
            self.end_session();
        }
        Ok(status)
    }

    /// Ends what the program left, if it reached its deadline, and returns whether it did.
    fn end_session(&mut self) -> bool {
        let is_over = self.deadline.is_over.load(Ordering::SeqCst);
        if let Some(session) = self.session.filter(|_| is_over) {
            // The number is not another's while a process of the group is left.
            kill_process_group(session, Signal::KILL).ok();
        }
        self.wait_for_walls();
        is_over
    }

    /// Waits until no process is left behind the walls: bubblewrap ends when the program does, and
    /// only its end has the kernel kill the first process of the namespace, which is in this
    /// session and ends as the last one there.
    fn wait_for_walls(&mut self) {
        let Some(session) = self.session.take().filter(|_| self.is_walled) else {
            return;
        };
        let begun = Instant::now();
        // The number is not another's while a process of the group is left.
        while test_kill_process_group(session).is_ok() && lives(session) && begun.elapsed() < EMPTY
        {
            std::thread::sleep(EMPTY_LOOK);
        }
        if lives(session) {
            kill_process_group(session, Signal::KILL).ok();
        }
    }

    /// Kills it and the processes that it started, and waits for its end.
    ///
    /// # Errors
    /// If the host fails.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        if let Some(session) = self.session {
            // Before setsid(2) there is no group: then only the process itself.
            kill_process_group(session, Signal::KILL).ok();
            self.guard.kill().ok();
        }
        self.wait().map(|(status, _)| status)
    }

    /// Returns the process id of the program behind guard and walls: the only process of the
    /// session without a child, but for the watcher, a copy of the guard.
    #[must_use]
    pub fn program_id(&self) -> u32 {
        let guard = self.guard.id();
        let command_line = |id: u32| std::fs::read(format!("/proc/{id}/cmdline")).ok();
        let of_guard = command_line(guard);
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let ours: Vec<(u32, u32)> = processes
            .filter_map(|entry| in_session(&entry.path(), guard))
            .filter(|(id, _)| *id == guard || command_line(*id) != of_guard)
            .collect();
        let mut ids = ours.iter().map(|(id, _)| *id);
        // The others have a parent in the session; the program's is the guard.
        ids.find(|id| !ours.iter().any(|(_, parent)| parent == id))
            .unwrap_or(guard)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.session.is_some() {
            // It may have ended by itself; either way it must not outlive its owner.
            drop(self.kill());
        }
    }
}

/// Returns whether a session has a process that is no zombie.
fn lives(session: Pid) -> bool {
    let session = session.as_raw_nonzero().get().unsigned_abs();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|entry| entry.path())
        .filter(|process| in_session(process, session).is_some())
        .any(|process| !is_zombie(&process))
}

fn is_zombie(process: &Path) -> bool {
    std::fs::read_to_string(process.join("stat")).is_ok_and(|stat| stat.contains(") Z "))
}

/// Returns the numbers of a process and its parent if it belongs to a session.
fn in_session(process: &Path, session: u32) -> Option<(u32, u32)> {
    let id = process.file_name()?.to_str()?.parse().ok()?;
    // proc(5): the name in brackets may contain anything; then state, parent, group, session.
    let stat = std::fs::read_to_string(process.join("stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let its_session = fields.nth(1)?.parse::<u32>().ok()?;
    (its_session == session).then_some((id, parent))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::thread::sleep;
    use std::time::{Duration, Instant};

    use super::in_session;
    use crate::Program;

    /// A script that starts a background process, and says so by a file.
    const BUSY: &str = "trap '' TERM HUP; sleep 61 & sleep 62";
    /// The variable that makes a test process start programs until it is killed, in a directory.
    const STARTS: &str = "MARVIN_TEST_STARTS";

    fn has_ended(pid: u32) -> bool {
        // A zombie has ended.
        std::fs::read_to_string(format!("/proc/{pid}/stat"))
            .map_or(true, |stat| stat.contains(") Z "))
    }

    /// Returns the processes that work in a directory, or have it among their arguments: behind
    /// unfinished walls the working directory is another.
    fn processes_in(folder: &Path) -> Vec<u32> {
        let mut found = Vec::new();
        let name = folder.display().to_string();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let process = entry.path();
            let names_it = std::fs::read_to_string(process.join("cmdline"))
                .is_ok_and(|words| words.contains(&name));
            if names_it || std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder) {
                found.extend(
                    entry
                        .file_name()
                        .to_str()
                        .and_then(|name| name.parse::<u32>().ok()),
                );
            }
        }
        found
    }

    fn has_within(limit: Duration, mut is_so: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            if is_so() {
                return true;
            }
            sleep(Duration::from_millis(10));
        }
        is_so()
    }

    #[test]
    fn dropped_program_takes_its_processes_along() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let program = Program::new("sh").args(["-c", BUSY]).folder(&folder);
        let running = program
            .start(Stdio::null(), Stdio::null(), Stdio::null())
            .unwrap();
        assert!(
            has_within(Duration::from_secs(20), || processes_in(&folder).len() >= 5),
            "guard, watcher, shell, two sleeps"
        );
        drop(running);
        assert!(
            has_within(Duration::from_secs(2), || processes_in(&folder).is_empty()),
            "{:?}",
            processes_in(&folder)
        );
    }

    #[test]
    fn nothing_behind_walls_outlives_its_program() {
        // A busy host, on which processes take their time to die.
        let busy = Program::new("sh").args([
            "-c",
            "for n in 1 2 3 4 5 6; do while :; do :; done & done; wait",
        ]);
        let busy = busy
            .start(Stdio::null(), Stdio::null(), Stdio::null())
            .unwrap();
        let own = format!("63.{}", std::process::id());
        let is_left = |process: std::fs::DirEntry| {
            std::fs::read_to_string(process.path().join("cmdline"))
                .is_ok_and(|words| words == format!("sleep\0{own}\0"))
        };
        let script = format!(
            "for n in 1 2 3 4 5 6 7 8 9; do nice -n 19 setsid sleep {own} & done; sleep 0.05; exit 7"
        );
        for round in 0..8 {
            let program = Program::new("sh")
                .args(["-c", &script])
                .walls(crate::Walls::default());
            assert_eq!(program.run().unwrap().code, Some(7));
            assert!(
                !std::fs::read_dir("/proc").unwrap().flatten().any(is_left),
                "round {round}"
            );
        }
        drop(busy);
    }

    #[test]
    fn program_is_found_behind_its_guard() {
        let mut running = Program::new("sleep")
            .args(["60"])
            .start(Stdio::null(), Stdio::null(), Stdio::null())
            .unwrap();
        let name =
            |id: u32| std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        assert!(has_within(Duration::from_secs(20), || name(
            running.program_id()
        ) == "sleep\n"));
        let id = running.program_id();
        assert!(in_session(Path::new(&format!("/proc/{id}")), 1).is_none());
        running.kill().unwrap();
        assert!(has_within(Duration::from_secs(2), || has_ended(id)));
    }

    /// Not a test by itself: the process that the next test kills.
    #[test]
    fn process_that_starts_programs_until_killed() {
        let Some(folder) = std::env::var_os(STARTS) else {
            return;
        };
        let program = Program::new("sh")
            .args(["-c", BUSY])
            .folder(Path::new(&folder));
        let walls = crate::Walls::default().writable(Path::new(&folder));
        let walled = Program::new("sleep")
            .args(["64"])
            .folder(Path::new(&folder))
            .walls(walls);
        std::fs::write(Path::new(&folder).join("begun"), "").unwrap();
        let mut started = Vec::new();
        for program in [&program, &walled, &program, &walled] {
            started.push(
                program
                    .start(Stdio::null(), Stdio::null(), Stdio::null())
                    .unwrap(),
            );
        }
        sleep(Duration::from_secs(60));
    }

    #[test]
    fn killed_process_leaves_no_program_behind() {
        let kills: u64 = if std::env::var_os("MARVIN_FULL").is_some() {
            300
        } else {
            25
        };
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let begun = folder.join("begun");
        for kill in 0..kills {
            let mut parent = Command::new(std::env::current_exe().unwrap())
                .args([
                    "process_that_starts_programs_until_killed",
                    "--test-threads",
                    "1",
                ])
                .env(STARTS, &folder)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            assert!(has_within(Duration::from_secs(60), || begun.exists()));
            // At all moments of the first 40 ms, from the first fork on.
            sleep(Duration::from_micros(400 * (kill * 37 % 100)));
            parent.kill().unwrap();
            parent.wait().unwrap();
            std::fs::remove_file(&begun).unwrap();
            let gone = has_within(Duration::from_secs(2), || processes_in(&folder).is_empty());
            let left = processes_in(&folder)
                .into_iter()
                .map(|id| std::fs::read_to_string(format!("/proc/{id}/cmdline")));
            assert!(gone, "kill {kill} left {:?}", left.collect::<Vec<_>>());
        }
    }
}
