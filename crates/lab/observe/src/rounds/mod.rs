//! Follows the threads of a program in rounds: their time from schedstat and stat, and where the
//! blocked ones are.

mod outside;
mod unread;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::rc::Rc;
use std::time::Instant;

use explain::facts::{Parked, Period, ShortLived, Stack, Thread, Wait};

use crate::ends::{Described, Ends};
use crate::goroutines::Goroutines;
use crate::jvm::Jvms;
use crate::proc::{self, Mapping, Stat, TICKS};
use crate::scripts::Scripts;
use crate::symbols::Modules;
use crate::timeline::Timeline;
use crate::tree::{entries, find_processes, read};
use outside::Outside;
use unread::Unread;
use waits::{Blocked, Place, Surroundings};

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
    /// Sockets at which it was blocked, up to a number.
    sockets: BTreeSet<String>,
}

impl Followed {
    /// Whether several rounds saw it: one that lived shorter has no budget.
    fn is_followed(&self) -> bool {
        self.looks > 1 && self.last.at > self.first.at
    }
}

/// A process of the program.
#[derive(Debug, Default)]
pub(crate) struct Process {
    first: Stat,
    last: Stat,
    is_gone: bool,
    pub(crate) maps: Rc<Vec<Mapping>>,
    /// Programs that it executed after the first one that was seen.
    pub(crate) executed: u32,
    /// The path of its program.
    pub(crate) program: String,
    /// Its command line.
    pub(crate) command: String,
    /// Reads, writes and their bytes: the first and the last text of `/proc/PID/io`.
    pub(crate) io: [String; 2],
    /// Largest resident memory (kB), at first and at last.
    pub(crate) resident_kb: [u64; 2],
    /// Its user, and its number in its own namespace.
    pub(crate) user: u32,
    pub(crate) inner_number: u32,
    /// The process that traces it; 0 for none.
    pub(crate) tracer: u64,
    /// Most memory on swap (kB).
    pub(crate) swapped_kb: u64,
}

impl Process {
    /// Returns its name, as in `/proc/PID/comm`.
    pub(crate) fn name(&self) -> &str {
        &self.last.name
    }

    /// Returns the time of children that it waited for (ticks).
    pub(crate) fn reaped(&self) -> u64 {
        self.last.reaped_user + self.last.reaped_system
    }

    /// Reads what it executes, what it has mapped and whose it is. Returns its status.
    fn read_identity(&mut self, id: u32, modules: &mut Modules) -> String {
        let read = |name: &str| read(&format!("/proc/{id}/{name}")).unwrap_or_default();
        // Of a process whose main thread has left there is none any more.
        if let Ok(program) = fs::read_link(format!("/proc/{id}/exe")) {
            let program = program.to_string_lossy();
            let program = program.trim_end_matches(" (deleted)").to_owned();
            let is_other = !self.program.is_empty() && self.program != program;
            self.executed += u32::from(is_other);
            self.program = program;
        }
        self.command = proc::command(&read("cmdline"));
        let maps = proc::maps(&read("maps"));
        if !maps.is_empty() {
            // The files are found now: when their functions are named, the process may be gone.
            modules.find(id, &maps);
            self.maps = Rc::new(maps);
        }
        let status = read("status");
        let inner = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let inner = inner.and_then(|list| list.split_whitespace().next_back()?.parse().ok());
        self.inner_number = inner.unwrap_or(self.inner_number.max(id));
        self.user = proc::value(&status, "Uid")
            .and_then(|user| u32::try_from(user).ok())
            .unwrap_or(self.user);
        status
    }

    #[cfg(test)]
    pub(crate) fn named(name: &str) -> Self {
        Self {
            last: Stat {
                name: name.into(),
                ..Stat::default()
            },
            ..Self::default()
        }
    }
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
    surroundings: BTreeMap<Place, Surroundings>,
    /// Stacks that were kept.
    captured: usize,
    /// Where each thread is in this round; `None` if it runs.
    now: BTreeMap<u32, Option<Blocked>>,
    /// The place at which the next round begins to look behind.
    turn: usize,
    ends: Ends,
    outside: Outside,
    jvms: Jvms,
    pub(crate) scripts: Scripts,
    goroutines: Goroutines,
    pub(crate) modules: Modules,
    /// Descriptions of open files.
    files: BTreeMap<(u32, u64), Described>,
    unread: Unread,
    /// What makes epolls return.
    ready: BTreeMap<(u32, u64), String>,
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
            surroundings: BTreeMap::new(),
            captured: 0,
            now: BTreeMap::new(),
            turn: 0,
            ends: Ends::default(),
            outside: Outside::default(),
            jvms: Jvms::default(),
            scripts: Scripts::default(),
            goroutines: Goroutines::default(),
            modules: Modules::default(),
            files: BTreeMap::new(),
            unread: Unread::default(),
            ready: BTreeMap::new(),
            devices: BTreeMap::new(),
            is_denied: false,
        }
    }

    /// Looks at all threads once. Returns whether the program is still there.
    pub(crate) fn look(&mut self) -> bool {
        let now = self.started.elapsed().as_secs_f64();
        let alive = find_processes(self.root);
        let is_seldom = self.number.is_multiple_of(SELDOM);
        self.now.clear();
        if is_seldom {
            self.files.clear();
            self.ready.clear();
        }
        self.jvms.begin_round();
        self.scripts.begin_round();
        for process in &alive {
            self.look_at_process(*process, is_seldom);
            if let Some(known) = self.processes.get(process) {
                self.jvms.look(*process, known, now);
                let modules = &mut self.modules;
                self.scripts.look(*process, known, modules);
                if is_seldom {
                    self.goroutines.look(*process, known, modules);
                    self.scripts.look_at_coroutines(*process);
                }
            }
            for thread in entries(&format!("/proc/{process}/task")) {
                self.look_at_thread(*process, thread, now, is_seldom);
            }
        }
        for (id, process) in &mut self.processes {
            process.is_gone = !alive.contains(id);
        }
        self.look_behind();
        if is_seldom {
            self.look_at_unread(&alive);
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
        let status = process.read_identity(id, &mut self.modules);
        process.tracer = proc::value(&status, "TracerPid").unwrap_or_default();
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
            sockets: BTreeSet::new(),
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
        match stat.state {
            'S' | 'D' | 't' | 'T' => self.look_at_wait(process, id, stat.state, seconds),
            'R' => {
                self.now.insert(id, None);
                self.scripts.count(process, id);
            }
            _ => {}
        }
    }

    /// Returns how long its threads ran (s).
    pub(crate) fn ran_s(&self) -> f64 {
        let ran = self.threads.values();
        let ran_ns: u64 = ran
            .map(|thread| thread.last.run_ns.saturating_sub(thread.first.run_ns))
            .sum();
        ran_ns as f64 / 1e9
    }

    /// Returns the stacks in which scripts and Java programs ran.
    pub(crate) fn scripts(&self) -> Vec<Stack> {
        let of_java = self.jvms.ran();
        let of_java = of_java.into_iter().map(|(stack, looks)| Stack {
            program: "Java".to_owned(),
            kernel: Vec::new(),
            user: stack.clone(),
            samples: looks,
        });
        self.scripts.ran().chain(of_java).collect()
    }

    /// Returns where goroutines waited.
    pub(crate) fn parked(&mut self) -> Vec<Parked> {
        self.goroutines.parked(&self.processes, &mut self.modules)
    }

    /// Returns where coroutines waited.
    pub(crate) fn coroutines(&self) -> Vec<Parked> {
        self.scripts.coroutines()
    }

    /// Removes the maps of compiled functions that JVMs wrote for this observation.
    pub(crate) fn forget_compiled(&self) {
        self.jvms.remove_maps();
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
    pub(crate) fn finish(&mut self) -> (Vec<Thread>, Vec<Wait>) {
        self.name_stacks();
        let threads = self
            .threads
            .iter()
            .filter(|(_, followed)| followed.is_followed());
        (
            threads
                .map(|(id, followed)| thread(*id, followed))
                .collect(),
            self.described_waits(),
        )
    }
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
        sockets: followed.sockets.len(),
    }
}
