//! External tools, run as a job says: programs of the guest image, or those that a host has. What
//! they print is sent as it is.
//!
//! What tools leave behind becomes the agent's child, and is ended (`tool_place.rs`).

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use guest::clock::now;
use guest::sys::{bad_end, check};
use wire::{Clock, Frame, PROGRAMS, ToolTask};

use crate::region;
use crate::system;
use crate::tool_place::{FOLDER, ToolPlace, describe};

/// Most bytes of one output that are sent: one more than are read, so that it is seen that there is
/// more.
const OUTPUT_MAX: u64 = (1 << 20) + 1;
/// Most bytes of all outputs together.
const ALL_MAX: usize = 4 << 20;
/// What is sent of a longer output of a user's own program: two outputs of a run.
const BEGINNING: usize = 64 << 10;
const END: usize = 192 << 10;
/// Longest quote of a tool's last line, in characters.
const QUOTED_MAX: usize = 200;
/// How long to wait before looking again whether a server listens.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A file that is sent: its name and the bytes.
type Sent = (String, Vec<u8>);

/// Why a tool came to no end of its own.
enum Stop {
    /// The image does not have what it needs.
    Unsupported(String),
    /// It failed.
    Failed(String),
    /// The agent itself failed.
    Error(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Error(error)
    }
}

/// Runs a tool, with a pause before each run; returns how it ended, and what it printed and wrote.
pub(crate) fn run(
    tool: &ToolTask,
    clock: Clock,
    pause: &dyn Fn() -> io::Result<()>,
) -> io::Result<(Frame, Vec<Sent>)> {
    let place = ToolPlace::here();
    let mut sent = Vec::new();
    let mut output = String::new();
    let end = match runs(tool, clock, pause, place, &mut output, &mut sent) {
        Ok(ticks) => Frame::Samples(ticks),
        Err(Stop::Unsupported(why)) => Frame::Unsupported(why),
        Err(Stop::Failed(what)) => Frame::Failed(what),
        Err(Stop::Error(error)) => return Err(error),
    };
    place.end_processes()?;
    place.remove_output(tool.system.as_ref(), &output);
    if place == ToolPlace::Host && matches!(end, Frame::Samples(_)) {
        let programs: Vec<PathBuf> = programs(tool)
            .filter_map(|program| place.program(program))
            .collect();
        sent.push((PROGRAMS.to_owned(), describe(&programs).into_bytes()));
    }
    if sent.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() > ALL_MAX {
        return Ok((
            Frame::Failed(format!("it printed more than {} MiB", ALL_MAX >> 20)),
            Vec::new(),
        ));
    }
    Ok((end, sent))
}

/// Returns the programs of a tool.
fn programs(tool: &ToolTask) -> impl Iterator<Item = &String> {
    let server = tool.server.as_ref().map(|(command, _)| command);
    let commands = tool
        .setup
        .iter()
        .chain(server)
        .chain(&tool.prepare)
        .chain([&tool.command]);
    commands.filter_map(|words| words.first())
}

/// Stops where a program is not there.
fn check_programs(tool: &ToolTask, place: ToolPlace) -> Result<(), Stop> {
    match programs(tool).find(|program| place.program(program).is_none()) {
        Some(program) => Err(Stop::Unsupported(place.lacks(program))),
        None => Ok(()),
    }
}

fn runs(
    tool: &ToolTask,
    clock: Clock,
    pause: &dyn Fn() -> io::Result<()>,
    place: ToolPlace,
    output: &mut String,
    sent: &mut Vec<Sent>,
) -> Result<Vec<u64>, Stop> {
    if tool.system.is_none() {
        check_programs(tool, place)?;
    }
    *output = place
        .make_output(tool.system.as_ref())
        .map_err(|error| match place {
            ToolPlace::Guest => Stop::Error(error),
            ToolPlace::Host => Stop::Unsupported(format!("it needs {error}")),
        })?;
    if tool.system.is_some() {
        // What the program brought to /tmp shows only now.
        check_programs(tool, place)?;
    }
    hold_child_signals()?;
    let guest = Guest {
        tool,
        place,
        output: output.clone(),
        end_ns: now(Clock::Monotonic) + u64::from(tool.limit_s) * 1_000_000_000,
    };
    for (at, words) in tool.setup.iter().enumerate() {
        guest.to_its_end(words, &format!("setup{at}"), sent)?;
    }
    if let Some((words, port)) = &tool.server {
        if place == ToolPlace::Host && is_taken(*port) {
            return Err(Stop::Unsupported(format!(
                "something listens on port {port} of this host already"
            )));
        }
        let pid = guest.start(words, "server")?;
        guest.until_listening(pid, *port)?;
    }
    for (at, words) in tool.prepare.iter().enumerate() {
        guest.to_its_end(words, &format!("prepare{at}"), sent)?;
    }
    let mut ticks = Vec::new();
    let is_marked_here = tool.system.as_ref().is_none_or(|system| !system.marks);
    for at in 0..tool.runs {
        pause()?;
        let name = at.to_string();
        let start = now(clock);
        if is_marked_here {
            region::open();
        }
        let ended = guest.execute(&tool.command, &name)?;
        if is_marked_here {
            region::close();
        }
        ticks.push(now(clock).saturating_sub(start));
        let accepted = tool
            .system
            .as_ref()
            .map_or(&[][..], |system| &system.accepted);
        guest.judge(&tool.command, &name, ended, accepted, sent)?;
        for path in &tool.files {
            sent.push((format!("{at}{path}"), content(Path::new(path))));
            // Each run writes its own.
            drop(fs::remove_file(path));
        }
    }
    Ok(ticks)
}

/// Blocks SIGCHLD, so that it can be waited for with a deadline. Children get an empty mask from
/// the standard library.
fn hold_child_signals() -> io::Result<()> {
    let set = child_signal();
    // SAFETY: `set` is a valid signal set; the old one is not asked for.
    check(unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) })
        .map(|_| ())
}

fn child_signal() -> libc::sigset_t {
    // SAFETY: a signal set of zeroes is a valid value, and is emptied in the way that the C library
    // wants.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid and SIGCHLD is a signal.
    unsafe {
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
    }
    set
}

/// What a file holds, up to the most that is sent; nothing where there is none.
fn content(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // One that cannot be read is as one that is not there: the host says what was expected.
    drop(File::open(path).and_then(|file| file.take(OUTPUT_MAX).read_to_end(&mut bytes)));
    bytes
}

/// What a user's own program printed: its beginning and its end where it is long.
fn beginning_and_end(path: &Path) -> Vec<u8> {
    let Ok(bytes) = fs::read(path) else {
        return Vec::new();
    };
    let Some(left_out) = bytes.len().checked_sub(BEGINNING + END).filter(|n| *n > 0) else {
        return bytes;
    };
    let mut kept = bytes[..BEGINNING].to_vec();
    kept.extend_from_slice(format!("\n[{left_out} bytes are left out]\n").as_bytes());
    kept.extend_from_slice(&bytes[bytes.len() - END..]);
    kept
}

/// Where a tool's programs run.
struct Guest<'a> {
    tool: &'a ToolTask,
    place: ToolPlace,
    /// Where the programs' output is kept until the end.
    output: String,
    /// When everything has to have ended, by CLOCK_MONOTONIC.
    end_ns: u64,
}

impl Guest<'_> {
    fn start(&self, words: &[String], name: &str) -> Result<libc::pid_t, Stop> {
        let (program, arguments) = words
            .split_first()
            .ok_or_else(|| io::Error::other("a command without a program"))?;
        let output = |kind: &str| File::create(format!("{}/{name}.{kind}", self.output));
        let system = self.tool.system.as_ref();
        let directory = system.map_or(FOLDER, |system| &system.directory);
        let input = match system.and_then(|system| system.stdin.as_ref()) {
            Some(file) => File::open(file)?.into(),
            None => Stdio::null(),
        };
        let environment = self
            .tool
            .environment
            .iter()
            .map(|(name, value)| (name, value));
        let found = self
            .place
            .program(program)
            .unwrap_or_else(|| PathBuf::from(program));
        let child = Command::new(found)
            .args(arguments)
            .env_clear()
            .envs(environment)
            .current_dir(directory)
            .stdin(input)
            .stdout(output("stdout")?)
            .stderr(output("stderr")?)
            .spawn()
            .map_err(|error| Stop::Failed(format!("{program}: {error}")))?;
        libc::pid_t::try_from(child.id()).map_err(|error| Stop::Error(io::Error::other(error)))
    }

    /// Runs a program to its end and takes what it printed.
    fn to_its_end(&self, words: &[String], name: &str, sent: &mut Vec<Sent>) -> Result<(), Stop> {
        let ended = self.execute(words, name)?;
        self.judge(words, name, ended, &[], sent)
    }

    /// Runs a program to its end; returns its status, and none where it did not end in time.
    fn execute(&self, words: &[String], name: &str) -> Result<Option<i32>, Stop> {
        let pid = self.start(words, name)?;
        Ok(self.wait(pid)?)
    }

    /// Takes what a program printed, and fails where it ended badly.
    fn judge(
        &self,
        words: &[String],
        name: &str,
        ended: Option<i32>,
        accepted: &[u8],
        sent: &mut Vec<Sent>,
    ) -> Result<(), Stop> {
        let printed = |kind: &str| {
            let file = format!("{}/{name}.{kind}", self.output);
            match self.tool.system {
                Some(_) => beginning_and_end(Path::new(&file)),
                None => content(Path::new(&file)),
            }
        };
        let (stdout, stderr) = (printed("stdout"), printed("stderr"));
        let is_accepted = |status: i32| {
            libc::WIFEXITED(status)
                && accepted
                    .iter()
                    .any(|known| i32::from(*known) == libc::WEXITSTATUS(status))
        };
        let is_full = self.place == ToolPlace::Guest
            && self.tool.system.is_some()
            && system::is_full(&self.output);
        let bad = match ended {
            _ if is_full => Some(format!(
                "it printed more than {} MiB",
                system::PRINTED_MAX >> 20
            )),
            Some(status) if is_accepted(status) => None,
            None if self.place == ToolPlace::Host => {
                Some(format!("no end within {} s", self.tool.limit_s))
            }
            None => Some(format!(
                "no end within {} s of the guest",
                self.tool.limit_s
            )),
            Some(status) => bad_end(status),
        };
        let program = words.first().map_or("", String::as_str);
        let failure = bad.map(|how| {
            let last = last_line(&stderr).or_else(|| last_line(&stdout));
            Stop::Failed(format!(
                "{program}: {how}{}",
                last.map_or_else(String::new, |line| format!(": {line}"))
            ))
        });
        sent.push((format!("{name}/stdout"), stdout));
        sent.push((format!("{name}/stderr"), stderr));
        failure.map_or(Ok(()), Err)
    }

    /// Waits for a child, and buries others meanwhile; nothing where it does not end in time.
    fn wait(&self, pid: libc::pid_t) -> io::Result<Option<i32>> {
        loop {
            if let Some(status) = buried(pid)? {
                return Ok(Some(status));
            }
            let left_ns = self.end_ns.saturating_sub(now(Clock::Monotonic));
            if left_ns == 0 {
                return Ok(None);
            }
            let left = libc::timespec {
                tv_sec: i64::try_from(left_ns / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(left_ns % 1_000_000_000).unwrap_or(0),
            };
            let set = child_signal();
            // SAFETY: both structures are valid for the call; what was received is not asked for.
            match check(unsafe {
                libc::sigtimedwait(&raw const set, std::ptr::null_mut(), &raw const left)
            }) {
                Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR)) => {
                    return Err(error);
                }
                _ => {}
            }
        }
    }

    /// Waits until something listens on a port.
    fn until_listening(&self, server: libc::pid_t, port: u16) -> Result<(), Stop> {
        loop {
            if is_taken(port) {
                return Ok(());
            }
            let ended = buried(server)?;
            if ended.is_some() || now(Clock::Monotonic) > self.end_ns {
                let text = content(Path::new(&format!("{}/server.stderr", self.output)));
                let text = last_line(&text).map_or_else(String::new, |line| format!(": {line}"));
                let how = if ended.is_some() {
                    "ended before it listened"
                } else {
                    "did not listen in time"
                };
                return Err(Stop::Failed(format!(
                    "the server {how} on port {port}{text}"
                )));
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}

/// Waits for all children that have ended; returns the status of one of them, if it is among them.
fn buried(pid: libc::pid_t) -> io::Result<Option<i32>> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid int for the duration of the call.
        match check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) }) {
            Ok(0) => return Ok(None),
            Ok(found) if found == i64::from(pid) => return Ok(Some(status)),
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => {
                return Err(io::Error::other("a child that nobody waited for is gone"));
            }
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

/// Returns whether something listens on a port.
fn is_taken(port: u16) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    tables.iter().any(|table| listens(table, port))
}

/// Tells whether a table of the kernel's sockets has one that listens on a port.
fn listens(table: &str, port: u16) -> bool {
    let end = format!(":{port:04X}");
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        // The local address, the remote one, and the state: TCP_LISTEN of include/net/tcp_states.h.
        words.next().is_some_and(|local| local.ends_with(&end)) && words.nth(1) == Some("0A")
    })
}

fn last_line(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().rfind(|line| !line.trim().is_empty())?;
    Some(line.trim().chars().take(QUOTED_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::{last_line, listens};

    #[test]
    fn a_port_is_found_only_where_something_listens() {
        let table = "  sl  local_address rem_address   st\n   0: 0100007F:1451 00000000:0000 0A 00000000:00000000\n   \
                     1: 0100007F:2BCB 0100007F:1451 01 0\n";
        assert!(listens(table, 5201));
        assert!(!listens(table, 11_211), "a connection is no listener");
        assert!(!listens("", 80) && !listens("\n:0050", 80));
    }

    #[test]
    fn the_last_line_says_something() {
        assert_eq!(last_line(b"a\n  b \n\n"), Some("b".to_owned()));
        assert_eq!(last_line(b"\n"), None);
    }
}
