//! Follows the threads of a program in rounds: their time from schedstat and stat, and where the
//! blocked ones are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use explain::facts::{Futex, Object, Period, ShortLived, Thread, Wait};
use rustix::io::Errno;

use crate::calls;
use crate::proc::{self, Mapping, Stat, TICKS};
use crate::symbols::{Modules, file_name};
use crate::unwind::unwind_blocked;

/// Processes that are named for a pipe.
const OTHERS: usize = 2;
/// Parts of the observation that a thread's timeline has at most; they are merged when there are
/// more.
const PERIODS: usize = 64;
/// Rounds between two looks at what changes seldom: names, switches, mappings.
const SELDOM: u64 = 8;
/// Processes and threads that are followed at most; the time of further ones counts as that of
/// short-lived ones.
const PROCESSES_MAX: usize = 4096;
const THREADS_MAX: usize = 16384;

/// Times of a thread, cumulated.
#[derive(Debug, Clone, Copy, Default)]
struct Times {
    at: f64,
    run_ns: u64,
    wait_ns: u64,
    user: u64,
    system: u64,
}

#[derive(Debug)]
struct Followed {
    process: u32,
    name: String,
    first: Times,
    last: Times,
    voluntary: [Option<u64>; 2],
    allowed: usize,
    /// Rounds that saw it.
    looks: u64,
    periods: Timeline,
}

impl Followed {
    /// Whether several rounds saw it: one that lived shorter has no budget.
    fn is_followed(&self) -> bool {
        self.looks > 1 && self.last.at > self.first.at
    }
}

/// Periods of a thread, of equally many rounds each, and never more than a program that runs for
/// hours needs.
#[derive(Debug)]
struct Timeline {
    periods: Vec<Period>,
    /// Rounds in a period.
    stride: usize,
    /// Rounds in the last one.
    filled: usize,
}

impl Timeline {
    fn new() -> Self {
        Self {
            periods: Vec::new(),
            stride: 1,
            filled: 1,
        }
    }

    fn push(&mut self, period: Period) {
        if self.filled < self.stride
            && let Some(last) = self.periods.last_mut()
        {
            *last = sum(&[*last, period]);
            self.filled += 1;
            return;
        }
        if self.periods.len() == 2 * PERIODS {
            self.periods = self.periods.chunks(2).map(sum).collect();
            self.stride *= 2;
        }
        self.periods.push(period);
        self.filled = 1;
    }

    /// Returns at most `PERIODS` parts.
    fn parts(&self) -> Vec<Period> {
        let size = self.periods.len().div_ceil(PERIODS).max(1);
        self.periods.chunks(size).map(sum).collect()
    }
}

fn sum(periods: &[Period]) -> Period {
    periods
        .iter()
        .fold(Period::default(), |sum, period| Period {
            user_s: sum.user_s + period.user_s,
            system_s: sum.system_s + period.system_s,
            waiting_s: sum.waiting_s + period.waiting_s,
            blocked_s: sum.blocked_s + period.blocked_s,
        })
}

/// A process of the program.
#[derive(Debug, Default)]
pub(crate) struct Process {
    first: Stat,
    last: Stat,
    is_gone: bool,
    pub(crate) maps: Vec<Mapping>,
    /// The path of its program.
    pub(crate) program: String,
    /// Reads, writes and their bytes: the first and the last text of `/proc/PID/io`.
    pub(crate) io: [String; 2],
    /// Largest resident memory (kB), at first and at last.
    pub(crate) resident_kb: [u64; 2],
    /// Most memory on swap (kB).
    pub(crate) swapped_kb: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    is_uninterruptible: bool,
    call: String,
    function: String,
    object: Object,
}

/// The threads of a program.
#[derive(Debug)]
pub(crate) struct Rounds {
    root: u32,
    started: Instant,
    number: u64,
    before: f64,
    threads: BTreeMap<u32, Followed>,
    pub(crate) processes: BTreeMap<u32, Process>,
    waits: BTreeMap<Place, Wait>,
    /// How many stacks of a place were read.
    unwound: BTreeMap<Place, u32>,
    pub(crate) modules: Modules,
    /// Descriptions of open files.
    files: BTreeMap<(u32, u64), String>,
    /// The devices of open files, by their description.
    pub(crate) devices: BTreeMap<String, u64>,
    /// Whether a thread's memory or call could not be read.
    pub(crate) is_denied: bool,
}

impl Rounds {
    pub(crate) fn new(root: u32, started: Instant) -> Self {
        Self {
            root,
            started,
            number: 0,
            before: 0.0,
            threads: BTreeMap::new(),
            processes: BTreeMap::new(),
            waits: BTreeMap::new(),
            unwound: BTreeMap::new(),
            modules: Modules::default(),
            files: BTreeMap::new(),
            devices: BTreeMap::new(),
            is_denied: false,
        }
    }

    /// Looks at all threads once. Returns whether the program is still there.
    pub(crate) fn look(&mut self) -> bool {
        let now = self.started.elapsed().as_secs_f64();
        let alive = find_processes(self.root);
        let is_seldom = self.number.is_multiple_of(SELDOM);
        for process in &alive {
            self.look_at_process(*process, is_seldom);
            for thread in entries(&format!("/proc/{process}/task")) {
                self.look_at_thread(*process, thread, now, is_seldom);
            }
        }
        for (id, process) in &mut self.processes {
            process.is_gone = !alive.contains(id);
        }
        self.number += 1;
        self.before = now;
        alive.contains(&self.root)
    }

    /// Returns the processes that the last round saw.
    pub(crate) fn alive(&self) -> Vec<u32> {
        self.processes
            .iter()
            .filter(|(_, process)| !process.is_gone)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Returns the threads that were seen.
    pub(crate) fn threads(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    fn look_at_process(&mut self, id: u32, is_seldom: bool) {
        let Some(stat) = read(&format!("/proc/{id}/stat"))
            .ok()
            .and_then(|text| proc::stat(&text))
        else {
            return;
        };
        let is_first = self.number == 0;
        let is_known = self.processes.contains_key(&id);
        if !is_known && self.processes.len() >= PROCESSES_MAX {
            return;
        }
        let process = self.processes.entry(id).or_default();
        if !is_known && is_first {
            process.first = stat.clone();
        }
        // A program that was executed has another name: a new program at the same process.
        let is_same = process.last.name == stat.name;
        process.last = stat;
        if is_known && is_same && !is_seldom {
            return;
        }
        let read = |name: &str| read(&format!("/proc/{id}/{name}")).unwrap_or_default();
        // Of a process whose main thread has left there is none any more.
        if let Ok(program) = fs::read_link(format!("/proc/{id}/exe")) {
            process.program = program
                .to_string_lossy()
                .trim_end_matches(" (deleted)")
                .to_owned();
        }
        let maps = proc::maps(&read("maps"));
        if !maps.is_empty() {
            // The files are found now: when their functions are named, the process may be gone.
            self.modules.find(id, &maps);
            process.maps = maps;
        }
        let status = read("status");
        let resident = proc::value(&status, "VmHWM").unwrap_or_default();
        process.swapped_kb = process
            .swapped_kb
            .max(proc::value(&status, "VmSwap").unwrap_or_default());
        let io = read("io");
        if !is_known && is_first {
            process.io[0].clone_from(&io);
            process.resident_kb[0] = resident;
        }
        if !io.is_empty() {
            process.io[1] = io;
        }
        process.resident_kb[1] = process.resident_kb[1].max(resident);
        self.files.retain(|(of, _), _| *of != id);
    }

    fn look_at_thread(&mut self, process: u32, id: u32, now: f64, is_seldom: bool) {
        let folder = format!("/proc/{process}/task/{id}");
        let read = |name: &str| read(&format!("{folder}/{name}")).ok();
        let Some(stat) = read("stat").and_then(|text| proc::stat(&text)) else {
            return;
        };
        let Some((run_ns, wait_ns)) = read("schedstat").and_then(|text| proc::schedstat(&text))
        else {
            return;
        };
        let times = Times {
            at: now,
            run_ns,
            wait_ns,
            user: stat.user,
            system: stat.system,
        };
        let was_there = self.number == 0;
        let before = self.before;
        let is_known = self.threads.contains_key(&id);
        if !is_known
            && (self.threads.len() >= THREADS_MAX || !self.processes.contains_key(&process))
        {
            return;
        }
        let followed = self.threads.entry(id).or_insert_with(|| Followed {
            process,
            name: stat.name.clone(),
            // One that is new began with zero, some time after the round before.
            first: if was_there {
                times
            } else {
                Times {
                    at: f64::midpoint(before, now),
                    ..Times::default()
                }
            },
            last: if was_there {
                times
            } else {
                Times {
                    at: f64::midpoint(before, now),
                    ..Times::default()
                }
            },
            voluntary: [None; 2],
            allowed: 0,
            looks: 0,
            periods: Timeline::new(),
        });
        followed.looks += 1;
        let last = std::mem::replace(&mut followed.last, times);
        let seconds = now - last.at;
        followed.periods.push(period(last, times));
        if !is_known || is_seldom {
            followed.name = stat.name;
            let status = read("status").unwrap_or_default();
            let zero = (!was_there).then_some(0);
            let keep = |[first, last]: &mut [Option<u64>; 2], key: &str| {
                let value = proc::value(&status, key);
                *first = first.or(zero.filter(|_| !is_known)).or(value);
                *last = value.or(*last);
            };
            keep(&mut followed.voluntary, "voluntary_ctxt_switches");
            let allowed = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            followed.allowed = allowed.map_or(followed.allowed, proc::processors);
        }
        if matches!(stat.state, 'S' | 'D') {
            self.look_at_wait(process, id, stat.state == 'D', seconds);
        }
    }

    fn look_at_wait(&mut self, process: u32, id: u32, is_uninterruptible: bool, seconds: f64) {
        let folder = format!("/proc/{process}/task/{id}");
        let Ok(text) = fs::read_to_string(format!("{folder}/syscall")) else {
            self.is_denied = true;
            return;
        };
        let Some(call) = proc::syscall(&text) else {
            return;
        };
        let function = fs::read_to_string(format!("{folder}/wchan")).unwrap_or_default();
        let place = Place {
            is_uninterruptible,
            call: call.number.map(calls::name).unwrap_or_default(),
            function: if function == "0" {
                String::new()
            } else {
                function
            },
            object: self.object(process, call),
        };
        let wait = self.waits.entry(place.clone()).or_insert_with(|| Wait {
            is_uninterruptible,
            call: place.call.clone(),
            function: place.function.clone(),
            object: place.object.clone(),
            ..Wait::default()
        });
        wait.seconds += seconds;
        if !wait.threads.contains(&id) {
            wait.threads.push(id);
        }
        if wait.stack.is_empty() {
            let tries = self.unwound.entry(place.clone()).or_default();
            *tries += 1;
            if *tries <= 3 {
                let stack = self.stack(process, &call);
                if let Some(wait) = self.waits.get_mut(&place) {
                    wait.stack = stack;
                }
            }
        }
    }

    fn stack(&mut self, process: u32, call: &proc::Call) -> Vec<String> {
        if !cfg!(target_arch = "x86_64") {
            return Vec::new();
        }
        let Some(Process { maps, program, .. }) = self.processes.get(&process) else {
            return Vec::new();
        };
        let Some(memory) = memory(process) else {
            return Vec::new();
        };
        let addresses = unwind_blocked(&memory, maps, &mut self.modules, call);
        if !addresses
            .first()
            .is_some_and(|at| maps.iter().any(|map| (map.start..map.end).contains(at)))
        {
            // It executed another program since the mappings were read: the next round has them.
            return Vec::new();
        }
        addresses
            .into_iter()
            .map(|address| self.modules.name(maps, program, address))
            .collect()
    }

    fn object(&mut self, process: u32, call: proc::Call) -> Object {
        match call.number {
            Some(calls::FUTEX) => Object::Futex(self.futex(process, call.first)),
            Some(number)
                if calls::CHILDREN.contains(&number) || calls::CREATIONS.contains(&number) =>
            {
                Object::Child
            }
            Some(number) if calls::has_file(number) => {
                let described = match self.files.get(&(process, call.first)) {
                    Some(known) => known.clone(),
                    None => self.describe_file(process, call.first),
                };
                if described.is_empty() {
                    Object::Unknown
                } else {
                    Object::File(described)
                }
            }
            _ => Object::Unknown,
        }
    }

    /// Describes an open file: its path, the peer of a socket, or who else has a pipe; `own
    /// pipe:[1]` if another process of the program has it.
    fn describe_file(&mut self, process: u32, number: u64) -> String {
        let link = fs::read_link(format!("/proc/{process}/fd/{number}")).unwrap_or_default();
        let link = link.to_string_lossy().into_owned();
        let described = if link.starts_with("pipe:") {
            self.describe_pipe(process, &link)
        } else if let Some(inode) = link
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'))
        {
            describe_socket(process, inode).unwrap_or(link)
        } else {
            // Of the open file, not of what this host has at its path.
            if let Ok(status) = fs::metadata(format!("/proc/{process}/fd/{number}")) {
                self.devices.insert(link.clone(), status.dev());
            }
            link
        };
        self.files.insert((process, number), described.clone());
        described
    }

    fn describe_pipe(&self, process: u32, pipe: &str) -> String {
        let alive = self.alive();
        if alive
            .iter()
            .any(|other| *other != process && has_open(*other, pipe))
        {
            return format!("own {pipe}");
        }
        let others = entries("/proc")
            .into_iter()
            .filter(|other| !alive.contains(other) && *other != std::process::id());
        let named = others
            .filter(|other| has_open(*other, pipe))
            .take(OTHERS)
            .map(|other| {
                let name = fs::read_to_string(format!("/proc/{other}/comm")).unwrap_or_default();
                format!("{other} {}", name.trim())
            });
        let named: Vec<String> = named.collect();
        if named.is_empty() {
            pipe.to_owned()
        } else {
            format!("{pipe} of process {}", named.join(", "))
        }
    }

    fn futex(&self, process: u32, address: u64) -> Futex {
        let mut futex = Futex {
            word: (process, address),
            ..Futex::default()
        };
        let Some(of) = self.processes.get(&process) else {
            return futex;
        };
        if let Some(mapping) = of
            .maps
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))
        {
            let offset = address - mapping.start
                + if mapping.path.starts_with('/') {
                    mapping.offset
                } else {
                    0
                };
            let name = if mapping.path.is_empty() {
                "anonymous memory"
            } else {
                file_name(&mapping.path)
            };
            futex.mapping = format!("{name}+{offset:#x}");
        }
        let word = |at: u64| -> Option<u32> {
            let mut bytes = [0; 4];
            memory(process)?.read_exact_at(&mut bytes, at).ok()?;
            Some(u32::from_le_bytes(bytes))
        };
        let is_thread =
            |id: u32| id != 0 && Path::new(&format!("/proc/{process}/task/{id}")).exists();
        // pthread_join waits for the word that has the thread's id (glibc: struct pthread.tid).
        futex.is_join = word(address).is_some_and(is_thread);
        futex
    }

    /// Returns the thread that a mutex's word names as its owner (glibc, x86-64:
    /// `pthread_mutex_t.__owner`, 8 bytes behind the word).
    fn owner(&self, process: u32, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        memory(process)?
            .read_exact_at(&mut bytes, address.checked_add(8)?)
            .ok()?;
        let id = u32::from_le_bytes(bytes);
        self.threads
            .get(&id)
            .is_some_and(|thread| thread.process == process)
            .then_some(id)
    }

    /// Names the owners of the locks that threads wait for now: before the program ends.
    pub(crate) fn look_at_owners(&mut self) {
        let words: Vec<(Place, (u32, u64))> = self
            .waits
            .keys()
            .filter_map(|place| match &place.object {
                Object::Futex(futex) if !futex.is_join => Some((place.clone(), futex.word)),
                _ => None,
            })
            .collect();
        for (place, word) in words {
            let (process, address) = word;
            let owner = self.owner(process, address);
            if let (
                Some(owner),
                Some(Wait {
                    object: Object::Futex(futex),
                    ..
                }),
            ) = (owner, self.waits.get_mut(&place))
            {
                futex.owner = Some(owner);
            }
        }
    }

    /// Returns the first and the last counters of all processes.
    pub(crate) fn stats(&self) -> impl Iterator<Item = (&Stat, &Stat)> {
        self.processes
            .values()
            .map(|process| (&process.first, &process.last))
    }

    /// Returns the processor time of processes and threads that no round saw (s).
    pub(crate) fn short_lived(&self) -> ShortLived {
        let sum_of = |part: fn(&Stat) -> [u64; 2]| {
            self.processes
                .iter()
                .map(|(id, process)| self.unseen(*id, process, part))
                .sum::<f64>()
                .max(0.0)
        };
        ShortLived {
            user_s: sum_of(|stat| [stat.user, stat.reaped_user]),
            system_s: sum_of(|stat| [stat.system, stat.reaped_system]),
            created: None,
        }
    }

    /// Returns what a process adds to that: of its own threads and of the children that it waited
    /// for (s); `part` chooses a process's time and its children's.
    fn unseen(&self, id: u32, process: &Process, part: fn(&Stat) -> [u64; 2]) -> f64 {
        let first = part(&process.first);
        let last = part(&process.last);
        let [own, reaped] = [0, 1].map(|index| last[index].saturating_sub(first[index]));
        let threads = self
            .threads
            .values()
            .filter(|thread| thread.process == id && thread.is_followed());
        let missed = own.saturating_sub(
            threads
                .map(|thread: &Followed| {
                    let ticks = |times: &Times| {
                        part(&Stat {
                            user: times.user,
                            system: times.system,
                            ..Stat::default()
                        })[0]
                    };
                    ticks(&thread.last).saturating_sub(ticks(&thread.first))
                })
                .sum(),
        );
        // Each thread's ticks are rounded down.
        let missed = if missed > 2 { missed } else { 0 };
        // What was seen of a child is in its parent's sum, too.
        let seen_again = if process.is_gone && id != self.root {
            own + reaped
        } else {
            0
        };
        ((missed + reaped) as f64 - seen_again as f64) / TICKS
    }

    /// Returns the threads and their waits.
    pub(crate) fn finish(&self) -> (Vec<Thread>, Vec<Wait>) {
        let threads = self
            .threads
            .iter()
            .filter(|(_, followed)| followed.is_followed());
        (
            threads
                .map(|(id, followed)| thread(*id, followed))
                .collect(),
            self.waits.values().cloned().collect(),
        )
    }
}

/// Whether a process has a file open, by the text of its link.
fn has_open(process: u32, link: &str) -> bool {
    let folder = format!("/proc/{process}/fd");
    entries(&folder).iter().any(|file| {
        fs::read_link(format!("{folder}/{file}")).is_ok_and(|to| to.as_os_str() == link)
    })
}

fn describe_socket(process: u32, inode: &str) -> Option<String> {
    let peer = ["tcp", "tcp6", "udp", "udp6"]
        .into_iter()
        .find_map(|kind| {
            let text = fs::read_to_string(format!("/proc/{process}/net/{kind}")).ok()?;
            Some(format!("{kind} to {}", proc::peer(&text, inode)?))
        })?;
    Some(format!("socket, {peer}"))
}

/// Returns a process and its descendants.
pub(crate) fn find_processes(root: u32) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut left = vec![root];
    while let Some(process) = left.pop() {
        if !is_there(process) || !found.insert(process) {
            continue;
        }
        for thread in entries(&format!("/proc/{process}/task")) {
            let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/children"))
                .unwrap_or_default();
            left.extend(
                text.split_whitespace()
                    .filter_map(|id| id.parse::<u32>().ok()),
            );
        }
    }
    found
}

/// Whether a process is there. That it is gone is what the kernel says, and no error of Marvin's
/// own, such as too many open files.
pub(crate) fn is_there(process: u32) -> bool {
    let folder = format!("/proc/{process}");
    match state(&folder) {
        // The main thread may leave before the others (pthread_exit): then it stays a zombie until
        // they have left.
        Ok(Some('Z')) => match fs::read_dir(format!("{folder}/task")) {
            Ok(threads) => {
                threads
                    .flatten()
                    .any(|thread| match state(&thread.path().to_string_lossy()) {
                        Ok(state) => !matches!(state, Some('Z' | 'X')),
                        Err(error) => !is_gone(&error),
                    })
            }
            Err(error) => !is_gone(&error),
        },
        Ok(state) => state != Some('X'),
        Err(error) => !is_gone(&error),
    }
}

/// Returns the state of a process or a thread.
fn state(folder: &str) -> io::Result<Option<char>> {
    Ok(proc::stat(&read(&format!("{folder}/stat"))?).map(|stat| stat.state))
}

/// Whether an error of a file in /proc says that its process is gone.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Reads a file of /proc. Names and paths may have any bytes.
fn read(file: &str) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&fs::read(file)?).into_owned())
}

/// Opens a process's memory. It is not kept: each open file would take one of the few that Marvin
/// may have, and after an exec it is of the memory that is gone.
fn memory(process: u32) -> Option<File> {
    File::open(format!("/proc/{process}/mem")).ok()
}

/// Returns the numbers that are names in a directory of /proc.
fn entries(folder: &str) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

fn period(from: Times, to: Times) -> Period {
    let running_s = to.run_ns.saturating_sub(from.run_ns) as f64 / 1e9;
    let waiting_s = to.wait_ns.saturating_sub(from.wait_ns) as f64 / 1e9;
    let user = to.user.saturating_sub(from.user);
    let system = to.system.saturating_sub(from.system);
    // Ticks are too coarse for short times: they only say how the exact time is divided.
    let of_system = if user + system > 0 {
        system as f64 / (user + system) as f64
    } else {
        0.0
    };
    Period {
        user_s: running_s * (1.0 - of_system),
        system_s: running_s * of_system,
        waiting_s,
        blocked_s: (to.at - from.at - running_s - waiting_s).max(0.0),
    }
}

fn thread(id: u32, followed: &Followed) -> Thread {
    let whole = period(followed.first, followed.last);
    let total_s = followed.last.at - followed.first.at;
    let delta = |[first, last]: [Option<u64>; 2]| {
        last.unwrap_or_default()
            .saturating_sub(first.unwrap_or_default())
    };
    Thread {
        process: followed.process,
        id,
        name: followed.name.clone(),
        total_s: total_s.max(whole.user_s + whole.system_s + whole.waiting_s),
        user_s: whole.user_s,
        system_s: whole.system_s,
        waiting_s: whole.waiting_s,
        voluntary: delta(followed.voluntary),
        allowed: followed.allowed,
        periods: followed.periods.parts(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeline_of_hours_stays_short() {
        let mut timeline = Timeline::new();
        for _ in 0..100_000 {
            timeline.push(Period {
                user_s: 0.05,
                ..Period::default()
            });
        }
        let parts = timeline.parts();
        assert!(
            timeline.periods.len() <= 2 * PERIODS && (PERIODS / 2..=PERIODS).contains(&parts.len())
        );
        assert!((sum(&parts).user_s - 5000.0).abs() < 1e-6);
        let [first, second] = [parts[0].user_s, parts[parts.len() - 2].user_s];
        assert!(
            (first - second).abs() < 1e-6,
            "parts are of equal time: {first} and {second}"
        );
    }

    #[test]
    fn error_that_is_marvins_own_ends_no_process() {
        let ends = |error: Errno| is_gone(&error.into());
        assert!(ends(Errno::NOENT) && ends(Errno::SRCH));
        assert!(
            ![Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::ACCESS]
                .into_iter()
                .any(ends)
        );
        assert!(is_there(std::process::id()) && !is_there(u32::MAX));
    }
}
