//! A shell in the guest in which a user's own program would run, to try it by hand. Nothing is
//! measured or stored.
//!
//! It is a job like any other: the same agent makes the same directories, mounts, limits and
//! environment, and then starts the shell in place of the program, on the guest's serial line.
//! `output.rs` tells what the shell prints there from all else.

mod output;

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use machine::{BootOutcome, GuestTerminal, Heard, MachineError, Pace};
use model::{Build, FailureReason, SubjectFailure, Workload};
use wire::Frame;

use self::output::{Output, Signal};
use crate::own_program::{OwnProgramError, PreparedProgram, ProgramRequest, prepare_program};
use crate::{Lab, LabError, Tools};

/// Programs that a person at a shell expects, as far as this host has them. Those of
/// [`NEEDED`] are among them.
const USUAL: [&str; 64] = [
    "awk", "basename", "bash", "cat", "chmod", "clear", "cmp", "cp", "cut", "date", "dd", "df",
    "diff", "dirname", "dmesg", "du", "env", "expr", "find", "free", "grep", "head", "id", "ip",
    "kill", "ldd", "less", "ln", "ls", "lscpu", "lsmod", "mkdir", "mount", "mv", "nproc", "od",
    "ps", "readlink", "rm", "rmdir", "sed", "seq", "setsid", "sleep", "sort", "stat", "strace",
    "stty", "sysctl", "tail", "taskset", "tee", "timeout", "top", "touch", "tr", "tty", "umount",
    "uname", "uniq", "vi", "wc", "which", "xargs",
];
/// Programs without which there is no session.
const NEEDED: [&str; 4] = ["cat", "head", "setsid", "stty"];
/// The shell of every host.
const SHELL: &str = "/bin/sh";
/// Where descriptions of terminals are (terminfo(5)).
const TERMINFO: [&str; 3] = ["/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo"];
/// The guest's time limit for a session (s): ten years, as a guest without pauses may jump far.
const LIMIT_S: u32 = 10 * 365 * 24 * 3600;
/// How long the guest may take from where jobs start to its shell.
const BEGIN: Duration = Duration::from_secs(180);
/// Bytes of one block of lines: a terminal of the guest holds 4095 (N_TTY_BUF_SIZE in
/// drivers/tty/n_tty.c), and drops the rest without a word.
const BLOCK: usize = 2048;
/// Most bytes of all lines.
///
/// The serial line takes some milliseconds for sixteen bytes.
pub const LINES_MAX: usize = 64 << 10;

/// Runs on the guest's serial line, whose session is its own, so that Ctrl-C and jobs work.
/// $1: rows, $2: columns, $3: TERM, $4: blocks of lines, or `-` for a person, $5: the shell.
///
/// Lines have no terminal, as a measured program has none: empty input, and a pipe for what they
/// print.
const SESSION: &str = r#"exec </dev/ttyS0 >/dev/ttyS0 2>&1
if [ "$4" = - ]; then
stty sane rows "$1" cols "$2"
TERM=$3 PS1='guest:$PWD# '
export TERM PS1
printf '\036begin\036'
"$5" -i
status=$?
else
stty raw -echo
left=$4
while [ "$left" -gt 0 ]; do
printf '\036more\036' >&2
head -c 2048
left=$((left-1))
done >/run/lines
printf '\036begin\036'
{ /bin/sh /run/lines </dev/null 2>&1; echo $? >/run/status; } | cat
read -r status </run/status
fi
printf '\036end %d\036' "$status"
exit "$status"
"#;

/// Who uses a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellUser {
    /// A person at a terminal.
    Person {
        rows: u16,
        columns: u16,
        /// The terminal's TERM.
        terminal: String,
    },
    /// These lines, which the shell executes.
    Lines(Vec<u8>),
}

/// A shell in a guest that runs.
#[derive(Debug)]
pub struct GuestShell {
    terminal: GuestTerminal,
    line: UnixStream,
    output: Output,
    /// Lines that the guest has not asked for yet.
    left: Vec<u8>,
    opened: Instant,
    ended: Option<ShellEnd>,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellEnd {
    /// The shell ended with this exit status.
    Status(u8),
    /// The guest switched off or rebooted, and its kernel did not say why.
    SwitchedOff,
    /// The agent could not start it; why.
    NotStarted(String),
    /// Something else than the shell ended it; what.
    Killed(String),
    /// The kernel failed.
    Failed(SubjectFailure),
}

/// What a session did within a short time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellStep {
    /// It printed this.
    Printed(Vec<u8>),
    Nothing,
    Ended(ShellEnd),
}

/// Finds the files of a program and of a shell, and returns them as a tool that is the shell. An
/// empty command is a shell alone.
///
/// # Errors
/// If the program, a named file, or a program that a session needs is missing.
pub fn prepare_shell(
    request: &ProgramRequest,
    user: &ShellUser,
    tools: &Tools,
    home: &Path,
) -> Result<PreparedProgram, OwnProgramError> {
    let mut request = request.clone();
    if request.command.is_empty() {
        request.command.push(SHELL.to_owned());
    }
    request.runs = 1;
    request.limit_s = LIMIT_S;
    for name in NEEDED {
        find_in_path(name).ok_or_else(|| OwnProgramError::NotInPath {
            name: name.to_owned(),
            hint: "; a shell in the guest needs it: install coreutils and util-linux, or busybox",
        })?;
    }
    let usual = USUAL.iter().filter_map(|name| find_in_path(name));
    let files = usual.chain([PathBuf::from(SHELL)]);
    let with = files.chain(find_description(user));
    request.with.extend(with.map(|file| (file, None)));
    let mut prepared = prepare_program(&request, tools, home)?;
    if let Some(own) = &mut prepared.tool.own {
        own.stdin = None;
    }
    for workload in &mut prepared.tool.workloads {
        workload.command = session_command(user);
    }
    Ok(prepared)
}

/// Returns the command that is a session.
fn session_command(user: &ShellUser) -> Vec<String> {
    let path = |name: &str| find_in_path(name).map_or(name.to_owned(), |file| text_of(&file));
    let mut command = vec![path("setsid"), SHELL.to_owned(), "-c".to_owned()];
    command.extend([SESSION.to_owned(), "session".to_owned()]);
    match user {
        ShellUser::Person {
            rows,
            columns,
            terminal,
        } => {
            let shell = find_in_path("bash").map_or(SHELL.to_owned(), |file| text_of(&file));
            command.extend([rows.to_string(), columns.to_string(), terminal.clone()]);
            command.extend(["-".to_owned(), shell]);
        }
        ShellUser::Lines(lines) => {
            let blocks = lines.len().div_ceil(BLOCK);
            let words = ["0", "0", "dumb", &blocks.to_string(), SHELL];
            command.extend(words.map(str::to_owned));
        }
    }
    command
}

/// Returns the file with the description of a person's terminal, if this host has one.
fn find_description(user: &ShellUser) -> Option<PathBuf> {
    let ShellUser::Person { terminal, .. } = user else {
        return None;
    };
    let first = terminal.get(..1)?;
    if terminal.contains('/') {
        return None;
    }
    let mut files = TERMINFO
        .iter()
        .map(|folder| Path::new(folder).join(first).join(terminal));
    files.find(|file| file.is_file())
}

/// Returns the file of a program in PATH.
fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Lab {
    /// Boots a build with the files of a workload of [`prepare_shell`], and starts the shell there;
    /// `Err` inside says why there is none.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn open_shell(
        &self,
        build: &Build,
        workload: &Workload,
        user: &ShellUser,
    ) -> Result<Result<GuestShell, ShellEnd>, LabError> {
        let placement = self
            .machine_pool()
            .placement(build, &workload.guest_config)?;
        self.take_turn()?;
        let booted = match placement.boot(build, 1)? {
            BootOutcome::Ready(booted) => booted,
            BootOutcome::KernelFailed { failure, .. } => {
                return Ok(Err(ShellEnd::Failed(failure)));
            }
            BootOutcome::Unsupported(why) => return Ok(Err(ShellEnd::NotStarted(why))),
        };
        let on = placement.booted_build(build, 1, &*booted, self.tools());
        let (pace, left) = match user {
            ShellUser::Person { .. } => (Pace::RealTime, Vec::new()),
            ShellUser::Lines(lines) => (Pace::Measured, lines.clone()),
        };
        let terminal = match booted.open_terminal(&on.job_of(workload), pace)? {
            Ok(terminal) => terminal,
            Err(failure) => return Ok(Err(ShellEnd::Failed(failure))),
        };
        let line = terminal.writer()?;
        Ok(Ok(GuestShell {
            terminal,
            line,
            output: Output::default(),
            left,
            opened: Instant::now(),
            ended: None,
        }))
    }
}

impl GuestShell {
    /// Returns the line for what a person types, for any thread.
    ///
    /// # Errors
    /// If the host has no more file descriptors.
    pub fn writer(&self) -> Result<UnixStream, LabError> {
        Ok(self.terminal.writer()?)
    }

    /// Waits a short time for what the shell prints.
    ///
    /// # Errors
    /// If the lab fails.
    pub fn step(&mut self) -> Result<ShellStep, LabError> {
        if let Some(end) = &self.ended {
            return Ok(ShellStep::Ended(end.clone()));
        }
        let mut part = vec![0; 1 << 14];
        match self.terminal.listen(&mut part)? {
            Heard::Ended => return Ok(ShellStep::Ended(self.end_of_guest())),
            Heard::Nothing if !self.output.has_begun() && self.opened.elapsed() > BEGIN => {
                let end = ShellEnd::NotStarted(format!(
                    "it started no shell within {} s; its console ended with:\n{}",
                    BEGIN.as_secs(),
                    self.terminal.last_lines()
                ));
                return Ok(ShellStep::Ended(end));
            }
            Heard::Nothing => return Ok(ShellStep::Nothing),
            Heard::Printed(count) => part.truncate(count),
        }
        let mut printed = Vec::new();
        for signal in self.output.read(&part) {
            match signal {
                Signal::Printed(bytes) => printed.extend(bytes),
                Signal::More => self.send_block()?,
                Signal::End(status) => self.ended = Some(ShellEnd::Status(status)),
            }
        }
        Ok(if printed.is_empty() {
            ShellStep::Nothing
        } else {
            ShellStep::Printed(printed)
        })
    }

    /// Sends the block of lines that the guest waits for, filled up with empty lines.
    fn send_block(&mut self) -> Result<(), LabError> {
        let mut block: Vec<u8> = self.left.drain(..self.left.len().min(BLOCK)).collect();
        block.resize(BLOCK, b'\n');
        let sent = self.line.write_all(&block);
        sent.map_err(|error| MachineError::io("write", Path::new("line"))(error).into())
    }

    /// Returns how a guest ended whose shell did not say that it ended.
    fn end_of_guest(&self) -> ShellEnd {
        let stream = match self.terminal.end() {
            Ok(stream) => stream,
            Err(failure) => {
                let is_silent = matches!(failure.reason, FailureReason::BadStream(_));
                return if is_silent && self.output.has_begun() {
                    ShellEnd::SwitchedOff
                } else {
                    ShellEnd::Failed(failure)
                };
            }
        };
        let mut frames = stream.frames.iter();
        let why = frames.find_map(|frame| match frame {
            Frame::Unsupported(why) | Frame::Failed(why) | Frame::Died(why) => Some(why.clone()),
            _ => None,
        });
        match why {
            None => ShellEnd::Status(0),
            Some(why) if self.output.has_begun() => ShellEnd::Killed(why),
            Some(why) => ShellEnd::NotStarted(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, NEEDED, SESSION, ShellUser, USUAL, session_command};

    #[test]
    fn needed_programs_are_carried() {
        assert!(NEEDED.iter().all(|name| USUAL.contains(name)));
        assert!(USUAL.is_sorted(), "{USUAL:?}");
        assert!(SESSION.contains(&format!("head -c {BLOCK}\n")));
    }

    #[test]
    fn lines_come_in_whole_blocks() {
        let blocks =
            |bytes: usize| session_command(&ShellUser::Lines(vec![b'x'; bytes]))[8].clone();
        assert_eq!([0, 1, BLOCK, BLOCK + 1].map(blocks), ["0", "1", "1", "2"]);
    }
}
