//! Stacks of Java threads with their locks, as the JVM itself tells them (`jcmd PID Thread.print`,
//! with `-l` only while threads wait for a lock of `java.util.concurrent`: to find who has such a
//! lock the JVM walks its whole heap, ConcurrentLocksDump in src/hotspot/share/services/
//! threadService.cpp), and names of the functions that it compiled (`Compiler.perfmap`): by its
//! attach mechanism (src/hotspot/os/posix/attachListener_posix.cpp, src/jdk.attach/linux).
//!
//! The JVM stops its threads for a moment each time. It is asked only if it takes SIGQUIT for this:
//! the signal ends other programs.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::rounds::Process;
use crate::tree::read;

/// The thread of a JVM that answers: it is there because it was asked.
pub(crate) const LISTENER: &str = "Attach Listener";
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a JVM is left alone between two looks whether it listens.
const LOOK: Duration = Duration::from_millis(10);
/// Questions without an answer after which a JVM is left alone.
const FAILURES_MAX: u32 = 3;
/// What is read of an answer at most (bytes).
const ANSWER_MAX: usize = 4 << 20;
/// Seconds between two questions, and from the first look at a JVM to the first one.
const PERIOD_S: f64 = 0.25;
/// Seconds between two questions for names of compiled functions.
const NAMES_PERIOD_S: f64 = 1.5;
/// Threads in a state that are kept.
const THREADS_MAX: usize = 2048;
/// Different stacks of a thread that are kept.
const STACKS_MAX: usize = 64;
/// How functions begin that may wait in a call of the system: the native ones of the JDK.
const IN_CALLS: [&str; 13] = [
    "sun.nio.ch.",
    "java.net.PlainSocketImpl",
    "java.net.PlainDatagramSocketImpl",
    "java.net.Inet",
    "java.net.SocketInputStream",
    "java.net.SocketOutputStream",
    "java.io.FileInputStream",
    "java.io.FileOutputStream",
    "java.io.RandomAccessFile",
    "java.io.UnixFileSystem",
    "java.lang.Process",
    "java.lang.ref.Reference.waitFor",
    "jdk.internal.misc.Unsafe.park",
];
/// The bit of SIGQUIT in the mask of caught signals.
const QUIT: u64 = 1 << 2;
/// What is found in the environment or the command line of a JVM that is not to be asked.
const FORBIDDEN: [&str; 2] = ["DisableAttachMechanism", "-Xrs"];

/// How a Java thread is blocked, or that it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum State {
    /// At a monitor.
    Blocked,
    Parked,
    /// In `Object.wait`.
    Waiting,
    Sleeping,
    /// It runs, or is in a system call.
    Running,
}

impl State {
    /// Returns the state of a thread by the functions of the JVM on its stack.
    fn of(stack: &[String]) -> Self {
        let has = |part: &str| stack.iter().any(|function| function.contains(part));
        if has("ObjectMonitor::enter") || has("ObjectMonitor::EnterI") {
            Self::Blocked
        } else if has("Parker::park") || has("Unsafe_Park") {
            Self::Parked
        } else if has("ObjectMonitor::wait") {
            Self::Waiting
        } else if has("JVM_Sleep") {
            Self::Sleeping
        } else {
            Self::Running
        }
    }
}

/// A thread of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    thread: u32,
    state: State,
    /// Its functions, innermost first.
    frames: Vec<String>,
    /// The object whose lock it waits for.
    wanted: Option<String>,
    /// The objects whose locks it has.
    held: Vec<String>,
}

/// What is known of a JVM.
#[derive(Debug, Default)]
struct Jvm {
    /// When it was asked last (s).
    asked_s: f64,
    named_s: f64,
    failures: u32,
    /// Where it writes the names of compiled functions; empty if they were there before.
    maps: Option<Vec<PathBuf>>,
    /// Whether a thread waits for a lock of `java.util.concurrent`, of whose holders it is asked.
    wants_owners: bool,
    /// Whether it is not to be asked any more.
    is_silent: bool,
}

/// The JVMs of a program.
#[derive(Debug, Default)]
pub(crate) struct Jvms {
    known: BTreeMap<u32, Jvm>,
    /// Stacks of threads, with their number in all answers.
    stacks: BTreeMap<(u32, State), BTreeMap<Vec<String>, u64>>,
    /// Who holds what a thread waits for, in this round.
    holders: BTreeMap<u32, u32>,
}

impl Jvms {
    /// Asks a process, if it is a JVM and its turn.
    pub(crate) fn look(&mut self, id: u32, process: &Process, now: f64) {
        let is_jvm = |path: &str| path.ends_with("/libjvm.so");
        if !process.maps.iter().any(|mapping| is_jvm(&mapping.path)) {
            return;
        }
        let jvm = self.known.entry(id).or_insert_with(|| Jvm {
            asked_s: now,
            named_s: now,
            ..Jvm::default()
        });
        if jvm.is_silent || now - jvm.asked_s < PERIOD_S {
            return;
        }
        jvm.asked_s = now;
        let socket = inner(id).join(format!(".java_pid{}", process.inner_number));
        if !socket.exists() {
            jvm.failures += 1;
            let is_asked = may_ask(id, process) && wake(id, process, &socket);
            jvm.is_silent = jvm.failures >= FAILURES_MAX || !is_asked;
            return;
        }
        let owners = if jvm.wants_owners { "-l" } else { "" };
        let Some(text) = ask(&socket, &["threaddump", owners, "", ""]) else {
            jvm.failures += 1;
            jvm.is_silent = jvm.failures >= FAILURES_MAX;
            return;
        };
        jvm.wants_owners = text.lines().any(is_at_lock);
        if now - jvm.named_s >= NAMES_PERIOD_S {
            jvm.named_s = now;
            let map = format!("perf-{}.map", process.inner_number);
            let outer = Path::new("/").join("tmp").join(&map);
            // One that was there before is another's.
            let places = [inner(id).join(map), outer];
            if jvm.maps.is_none() {
                let is_new = !places.iter().any(|place| place.exists());
                jvm.maps = Some(if is_new { places.into() } else { Vec::new() });
            }
            // Older ones do not know the command, which is no reason to ask nothing else.
            let _ = ask(&socket, &["jcmd", "Compiler.perfmap", "", ""]);
        }
        let told = parse(&text);
        self.add(&told);
    }

    /// Removes the files with names of compiled functions.
    pub(crate) fn remove_maps(&self) {
        let maps = self.known.values().filter_map(|jvm| jvm.maps.as_ref());
        // The first one is the same file, if the process is still there.
        maps.flatten()
            .for_each(|place| fs::remove_file(place).unwrap_or_default());
    }

    /// Forgets who held what in the round before.
    pub(crate) fn begin_round(&mut self) {
        self.holders.clear();
    }

    fn add(&mut self, told: &[Told]) {
        for one in told.iter().filter(|one| !one.frames.is_empty()) {
            let key = (one.thread, one.state);
            if self.stacks.len() >= THREADS_MAX && !self.stacks.contains_key(&key) {
                continue;
            }
            let stacks = self.stacks.entry(key).or_default();
            if stacks.len() < STACKS_MAX || stacks.contains_key(&one.frames) {
                *stacks.entry(one.frames.clone()).or_default() += 1;
            }
            let Some(wanted) = &one.wanted else { continue };
            let holder = told.iter().find(|other| other.held.contains(wanted));
            if let Some(holder) = holder.filter(|holder| holder.thread != one.thread) {
                self.holders.insert(one.thread, holder.thread);
            }
        }
    }

    /// Returns the thread that holds what a thread waits for, as far as this round's answer has it.
    pub(crate) fn holder(&self, thread: u32) -> Option<u32> {
        self.holders.get(&thread).copied()
    }

    /// Returns the stacks of threads that ran, without those that wait in a call of the system,
    /// which the JVM does not tell apart.
    pub(crate) fn ran(&self) -> Vec<(&Vec<String>, u64)> {
        let of_running = self
            .stacks
            .iter()
            .filter(|((_, state), _)| *state == State::Running);
        let stacks = of_running.flat_map(|(_, stacks)| stacks);
        stacks
            .filter(|(stack, _)| !IN_CALLS.iter().any(|begin| stack[0].starts_with(begin)))
            .map(|(stack, count)| (stack, *count))
            .collect()
    }

    /// Returns the Java functions in which a thread mostly ran, innermost first.
    pub(crate) fn running(&self, thread: u32) -> Vec<String> {
        self.most(&[thread], State::Running).unwrap_or_default()
    }

    fn most(&self, threads: &[u32], state: State) -> Option<Vec<String>> {
        let mut counts: BTreeMap<&Vec<String>, u64> = BTreeMap::new();
        for thread in threads {
            for (stack, count) in self.stacks.get(&(*thread, state)).into_iter().flatten() {
                *counts.entry(stack).or_default() += count;
            }
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(stack, _)| stack.clone())
    }

    /// Puts the Java functions of threads into their stack: instead of the code that the JVM
    /// compiled or interprets, which has no names.
    pub(crate) fn name(&self, stack: &mut Vec<String>, threads: &[u32]) {
        if !stack.iter().any(|function| function.contains("libj")) {
            return;
        }
        let Some(frames) = self.most(threads, State::of(stack)) else {
            return;
        };
        let is_nameless = |function: &String| function.starts_with("(anonymous");
        let first = stack.iter().position(is_nameless).unwrap_or(stack.len());
        let last = stack
            .iter()
            .rposition(is_nameless)
            .map_or(first, |at| at + 1);
        stack.splice(first..last, frames);
    }
}

/// Returns the folder of temporary files as a process sees it.
fn inner(id: u32) -> PathBuf {
    let root = Path::new("/proc").join(id.to_string()).join("root");
    root.join("tmp")
}

/// Whether a process belongs to this user, takes the signal, and allows to be asked.
fn may_ask(id: u32, process: &Process) -> bool {
    let user = geteuid();
    let is_ours = user.is_root() || user.as_raw() == process.user;
    let status = read(&format!("/proc/{id}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let environment = String::from_utf8_lossy(&environment);
    let is_forbidden = FORBIDDEN
        .iter()
        .any(|word| process.command.contains(word) || environment.contains(word));
    is_ours && caught.is_some_and(|mask| mask & QUIT != 0) && !is_forbidden
}

/// Has a JVM listen: it does so on SIGQUIT if a file with its number is there.
fn wake(id: u32, process: &Process, socket: &Path) -> bool {
    let file = inner(id).join(format!(".attach_pid{}", process.inner_number));
    if fs::File::create_new(&file).is_err() {
        return false;
    }
    let target = i32::try_from(id).ok().and_then(Pid::from_raw);
    let is_sent = target.is_some_and(|id| kill_process(id, Signal::QUIT).is_ok());
    // A JVM that does not find the file when it comes to the signal prints all its stacks into the
    // program's output, so a busy one is waited for.
    let begun = Instant::now();
    while is_sent && !socket.exists() && begun.elapsed() < PATIENCE {
        std::thread::sleep(LOOK);
    }
    let is_removed = fs::remove_file(&file).is_ok();
    is_sent && is_removed
}

/// Asks a JVM; `None` if it does not answer.
fn ask(socket: &Path, words: &[&str]) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.set_write_timeout(Some(PATIENCE)).ok()?;
    let mut question = b"1\0".to_vec();
    for word in words {
        question.extend(word.as_bytes());
        question.push(0);
    }
    stream.write_all(&question).ok()?;
    let mut answer = Vec::new();
    let mut part = [0; 1 << 14];
    let begun = Instant::now();
    loop {
        match stream.read(&mut part).ok()? {
            0 => break,
            size => answer.extend(&part[..size]),
        }
        // One that sends a little now and then is not waited for.
        if begun.elapsed() > PATIENCE || answer.len() > ANSWER_MAX {
            return None;
        }
    }
    let answer = String::from_utf8_lossy(&answer).into_owned();
    // The first line is the error, 0 for none.
    answer.strip_prefix("0\n").map(str::to_owned)
}

/// Whether a line says that a thread waits for a lock of `java.util.concurrent`.
fn is_at_lock(line: &str) -> bool {
    line.contains("- parking to wait for")
        && line.contains("(a java.util.concurrent.locks.")
        && !line.contains("ConditionObject")
}

/// Parses the threads of an answer.
fn parse(text: &str) -> Vec<Told> {
    let mut told: Vec<Told> = Vec::new();
    for line in text.lines() {
        if line.starts_with('"') {
            told.extend(parse_header(line));
            continue;
        }
        let Some(one) = told.last_mut() else { continue };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if let Some(frame) = line.strip_prefix("at ") {
            one.frames.push(function(frame));
        } else if let Some(state) = line.strip_prefix("java.lang.Thread.State: ") {
            one.state = state_of(state);
        } else if line.starts_with("- ") {
            add_lock(one, line);
        }
    }
    told
}

/// Parses the first line of a thread: its name, and its number as the kernel has it, which newer
/// versions write in decimal.
fn parse_header(line: &str) -> Option<Told> {
    let (_, after) = line.split_once(" nid=")?;
    let number = after.split_whitespace().next()?;
    let thread = match number.strip_prefix("0x") {
        Some(number) => u32::from_str_radix(number, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some(Told {
        thread,
        state: State::Running,
        frames: Vec::new(),
        wanted: None,
        held: Vec::new(),
    })
}

fn state_of(text: &str) -> State {
    match text.split_once(' ') {
        _ if text.starts_with("BLOCKED") => State::Blocked,
        Some((_, why)) if why.contains("parking") => State::Parked,
        Some((_, why)) if why.contains("sleeping") => State::Sleeping,
        Some((_, why)) if why.contains("on object monitor") => State::Waiting,
        _ => State::Running,
    }
}

/// Returns the class and the method of `java.base@17/java.io.Writer.write(Writer.java:7)`.
fn function(frame: &str) -> String {
    let name = frame.split_once('(').map_or(frame, |(name, _)| name);
    let name = name.rsplit_once('/').map_or(name, |(_, name)| name);
    name.trim().to_owned()
}

/// Adds what a line says of a lock: `- locked <0x12> (a X)`, `- waiting to lock <0x12>`, or `- <0x12>`
/// among those of `java.util.concurrent`.
fn add_lock(one: &mut Told, line: &str) {
    let Some(address) = line
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'))
    else {
        return;
    };
    let address = address.0.to_owned();
    if line.starts_with("- waiting to lock") || line.starts_with("- parking to wait for") {
        one.wanted = Some(address);
    } else if line.starts_with("- waiting on") {
        // `Object.wait` gives the lock up.
        one.held.retain(|held| *held != address);
    } else if one.wanted.as_ref() != Some(&address) && one.state != State::Waiting {
        one.held.push(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "2026-11-29 23:40:00\nFull thread dump\n\n\
        \"exec-0\" #12 prio=5 os_prio=0 cpu=1.20ms elapsed=0.52s tid=0x00007f nid=0x4703 waiting for monitor entry  [0x0]\n\
        \x20  java.lang.Thread.State: BLOCKED (on object monitor)\n\
        \tat Log$Manager.write(Log.java:12)\n\
        \t- waiting to lock <0xfc> (a Log$Manager)\n\
        \tat java.lang.Thread.run(java.base@17.0.15/Thread.java:840)\n\n\
        \x20  Locked ownable synchronizers:\n\t- None\n\n\
        \"exec-1\" #13 prio=5 tid=0x00007f nid=18180 runnable  [0x0]\n\
        \x20  java.lang.Thread.State: RUNNABLE\n\
        \tat java.base@17.0.15/java.io.RandomAccessFile.writeBytes(Native Method)\n\
        \tat Log$Manager.write(Log.java:13)\n\
        \t- locked <0xfc> (a Log$Manager)\n\n\
        \"VM Thread\" os_prio=0 tid=0x00007f nid=0x4701 runnable\n";

    #[test]
    fn holder_of_a_monitor_is_known() {
        let told = parse(ANSWER);
        assert_eq!(told.len(), 3);
        assert_eq!((told[0].thread, told[1].thread), (0x4703, 18180));
        assert_eq!(told[0].state, State::Blocked);
        assert_eq!(told[1].frames[0], "java.io.RandomAccessFile.writeBytes");
        let mut jvms = Jvms::default();
        jvms.add(&told);
        assert_eq!(jvms.holder(0x4703), Some(18180));
        assert_eq!(jvms.holder(18180), None);
        jvms.begin_round();
        assert_eq!(jvms.holder(0x4703), None);
    }

    #[test]
    fn holders_are_asked_for_beside_waiting_threads() {
        let parks = |of: &str| is_at_lock(&format!("\t- parking to wait for  <0xfc> (a {of})"));
        assert!(parks(
            "java.util.concurrent.locks.ReentrantLock$NonfairSync"
        ));
        assert!(!parks(
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject"
        ));
        assert!(!parks(
            "java.util.concurrent.SynchronousQueue$TransferStack"
        ));
    }

    #[test]
    fn java_functions_replace_nameless_code() {
        let mut jvms = Jvms::default();
        jvms.add(&parse(ANSWER));
        let mut stack: Vec<String> = [
            "ObjectMonitor::enter (libjvm.so)",
            "(anonymous memory)",
            "(anonymous memory)",
            "JavaCalls::call_helper (libjvm.so)",
        ]
        .map(str::to_owned)
        .into();
        jvms.name(&mut stack, &[0x4703]);
        assert_eq!(stack[1], "Log$Manager.write");
        assert_eq!(stack.len(), 4);
        // What it did when it ran says nothing of where it was blocked.
        let mut stack = vec!["read (libc.so.6)".to_owned(), "x (libjava.so)".to_owned()];
        jvms.name(&mut stack, &[0x4703]);
        assert_eq!(stack.len(), 2);
    }

    #[test]
    fn any_answer_is_parsed() {
        for text in [
            "",
            "\"x\" nid=",
            "\"x\" nid=0xzz\nat\n- locked <",
            "at x\n- <1>",
        ] {
            assert!(parse(text).is_empty());
        }
    }
}
