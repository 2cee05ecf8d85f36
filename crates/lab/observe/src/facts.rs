//! Puts together what the collectors saw.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use explain::facts::{
    AFTERWARDS, Counters, Facts, FaultingCode, GOROUTINES, Gap, Host, Object, Pressure,
    SHORT_LIVED, Samples, Settings, Stack, Wait,
};

use crate::ObserveError;
use crate::arguments::{Calls, Sampled};
use crate::cgroups::{self, Mounts, Quota};
use crate::ends::name_of;
use crate::environment::environment;
use crate::files::find_perf_map;
use crate::imports::Imports;
use crate::limits::{self, Limits};
use crate::loops::hot_loop;
use crate::names::PerfMap;
use crate::proc::{self, HostTimes, TICKS};
use crate::rounds::{Process, Rounds};
use crate::samples::{Chain, Sampling};
use crate::settings;
use crate::symbols::{ANONYMOUS, KernelSymbols, Modules, Place, file_name};
use crate::traced::Tracing;
use crate::unwind::unwind;

/// Rounds between two looks at settings.
const SETTINGS: u64 = 8;
/// Kept functions of a stack.
const DEPTH: usize = 48;
/// Looks that an answer needs.
const LOOKS_MIN: u64 = 3;
/// Files that are named of those whose functions could not be had.
const UNNAMED: usize = 3;

/// All collectors of one observation.
#[derive(Debug)]
pub(crate) struct Collector {
    root: u32,
    subject: String,
    started: Instant,
    rounds: Rounds,
    sampling: Result<Sampling, std::io::Error>,
    tracing: Tracing,
    host: Snapshot,
    mounts: Mounts,
    quotas: BTreeMap<PathBuf, [Quota; 2]>,
    limits: Limits,
    /// Sum, number of looks, and highest frequency (kHz).
    frequency: [u64; 3],
    environment: BTreeMap<String, String>,
    number: u64,
    /// Whether the program was there at the last look.
    is_there: bool,
    last_s: f64,
    costs: [(&'static str, f64); 4],
}

/// The host's counters at one time.
#[derive(Debug, Default)]
struct Snapshot {
    times: HostTimes,
    vmstat: String,
    memory_us: Option<u64>,
    io_us: Option<u64>,
}

impl Snapshot {
    fn read() -> std::io::Result<Self> {
        let pressure = |name: &str| {
            read_proc(&format!("pressure/{name}"))
                .ok()
                .and_then(|text| proc::pressure(&text))
        };
        Ok(Self {
            times: proc::host_times(&read_proc("stat")?).unwrap_or_default(),
            vmstat: read_proc("vmstat").unwrap_or_default(),
            memory_us: pressure("memory"),
            io_us: pressure("io"),
        })
    }
}

fn read_proc(name: &str) -> std::io::Result<String> {
    fs::read_to_string(format!("/proc/{name}"))
}

/// Returns the processor time of this thread (s).
fn own_s() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    proc::schedstat(&text).map_or(0.0, |(run_ns, _)| run_ns as f64 / 1e9)
}

impl Collector {
    pub(crate) fn new(root: u32, subject: String) -> Result<Self, ObserveError> {
        let started = Instant::now();
        let before = own_s();
        let host = Snapshot::read().map_err(ObserveError::Proc)?;
        let processors = processors();
        let mut rounds = Rounds::new(root, started);
        rounds.look();
        let threads: Vec<u32> = rounds.threads();
        let looked = own_s();
        let sampling = Sampling::attach(rounds.alive().into_iter().collect(), &threads, processors);
        let costs = [
            ("threads", looked - before),
            ("samples", own_s() - looked),
            ("settings", 0.0),
            (AFTERWARDS, 0.0),
        ];
        Ok(Self {
            root,
            subject,
            started,
            rounds,
            sampling,
            tracing: Tracing::default(),
            host,
            mounts: Mounts::read(),
            quotas: BTreeMap::new(),
            limits: Limits::new(),
            frequency: [0; 3],
            environment: BTreeMap::new(),
            number: 0,
            is_there: true,
            last_s: 0.0,
            costs,
        })
    }

    /// Returns whether the program had ended at the last look.
    pub(crate) fn has_ended(&self) -> bool {
        !self.is_there
    }

    /// Notes that the program ended after the last look.
    pub(crate) fn note_end(&mut self) {
        self.is_there = false;
    }

    /// Returns how long it observes already (s).
    pub(crate) fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Returns the processor time that observing took so far (s).
    pub(crate) fn cost(&self) -> f64 {
        self.costs.iter().map(|(_, seconds)| seconds).sum()
    }

    /// Looks once. Returns whether the program is still there.
    pub(crate) fn look(&mut self) -> bool {
        let begun = own_s();
        let is_there = self.rounds.look();
        self.is_there = is_there;
        if is_there {
            self.last_s = self.elapsed();
        }
        let looked = own_s();
        if let Ok(sampling) = &mut self.sampling {
            let known = sampling.stacked.len();
            sampling.drain();
            for stacked in &mut sampling.stacked[known..] {
                let scripts = &mut self.rounds.scripts;
                scripts.count_sample(stacked.process, &stacked.registers, &stacked.stack);
                if let Some(number) = stacked.looked_up_file() {
                    stacked.looked_up.file = self.rounds.describe_file(stacked.process, number);
                }
            }
        }
        if is_there {
            let threads = self.rounds.threads();
            let ran_s = self.rounds.ran_s();
            let now_s = self.elapsed();
            self.tracing.look(now_s, ran_s, &threads, processors());
        }
        let drained = own_s();
        self.number += u64::from(is_there);
        // A program may set its limits when it begins.
        if is_there && (self.number % SETTINGS == 1 || self.number == 3) {
            self.look_at_settings();
        }
        self.costs[0].1 += looked - begun;
        self.costs[1].1 += drained - looked;
        self.costs[2].1 += own_s() - drained;
        is_there
    }

    fn look_at_settings(&mut self) {
        for process in self.rounds.alive() {
            for (folder, quota) in cgroups::quotas(process, &self.mounts) {
                self.quotas.entry(folder).or_insert([quota; 2])[1] = quota;
            }
            limits::look(&mut self.limits, process, &self.mounts);
            self.environment.extend(environment(process));
        }
        if let Some([now, most]) = limits::frequency(Path::new("/sys/devices/system/cpu")) {
            let [sum, looks, _] = self.frequency;
            self.frequency = [sum + now, looks + 1, most];
        }
    }

    pub(crate) fn finish(mut self, named: &str) -> Result<Facts, ObserveError> {
        let seconds = self.elapsed();
        let before = own_s();
        let (threads, waits) = self.rounds.finish();
        self.costs[3].1 += own_s() - before;
        if threads.is_empty() || self.number < LOOKS_MIN {
            let named = named.to_owned();
            return Err(match self.is_there {
                false => ObserveError::Short(named, seconds),
                true if self.number < LOOKS_MIN => ObserveError::Few(named, self.number, seconds),
                true => ObserveError::Untold(named),
            });
        }
        let after = Snapshot::read().map_err(ObserveError::Proc)?;
        let before = own_s();
        let samples = self.samples();
        self.rounds.forget_compiled();
        self.costs[3].1 += own_s() - before;
        let mut short_lived = self.rounds.short_lived();
        let creations = self.sampling.as_ref().ok();
        let creations = creations.map(|sampling| &sampling.creations);
        short_lived.created = creations.map(|creations| creations.created);
        let processes = &self.rounds.processes;
        let started = creations.map(|creations| creations.started(processes));
        let running: f64 = threads
            .iter()
            .map(|thread| thread.user_s + thread.system_s)
            .sum();
        let others = running + self.cost() + short_lived.user_s + short_lived.system_s;
        Ok(Facts {
            subject: self.subject.clone(),
            root: self.root,
            seconds: self.last_s.max(f64::MIN_POSITIVE),
            host: self.host_facts(&after, seconds, others),
            counters: self.counters(&after),
            settings: self.settings(&waits),
            gaps: self.gaps(),
            threads,
            waits,
            short_lived,
            started: started.unwrap_or_default(),
            scripts: self.rounds.scripts(),
            unread: self.rounds.unread_sockets(),
            traced: std::mem::take(&mut self.tracing).finish(),
            parked: self.rounds.parked(),
            coroutines: self.rounds.coroutines(),
            samples,
            costs: self.costs.to_vec(),
        })
    }

    fn host_facts(&self, after: &Snapshot, seconds: f64, ours_s: f64) -> Host {
        let first = &self.host.times;
        let last = &after.times;
        let busy = growth(first.busy, last.busy);
        let idle = growth(first.idle, last.idle);
        let interrupts = growth(first.interrupts, last.interrupts);
        let steal = growth(first.steal, last.steal);
        let all = (busy + idle + interrupts + steal).max(1.0);
        let part = |first: Option<u64>, last: Option<u64>| {
            Some(last?.saturating_sub(first?) as f64 / 1e6 / seconds)
        };
        let pressure = part(self.host.memory_us, after.memory_us).and_then(|memory| {
            Some(Pressure {
                memory,
                io: part(self.host.io_us, after.io_us)?,
            })
        });
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")
            .unwrap_or_default()
            .trim()
            .to_owned();
        Host {
            processors: processors(),
            idle: idle / all,
            steal: steal / all,
            others_s: (busy / TICKS - ours_s).max(0.0),
            pressure,
            debugging: settings::debugging(&release),
            mitigations: settings::mitigations(),
            clock_source: settings::clock_source(),
            governor: settings::governor(),
            frequency: self.frequency[0]
                .checked_div(self.frequency[1])
                .map(|mean| [mean, self.frequency[2]]),
            kernel: release,
        }
    }

    fn counters(&self, after: &Snapshot) -> Counters {
        let mut counters = Counters::default();
        for (first, last) in self.rounds.stats() {
            counters.minor_faults += last.minor_faults.saturating_sub(first.minor_faults);
            counters.major_faults += last.major_faults.saturating_sub(first.major_faults);
        }
        for process in self.rounds.processes.values() {
            let delta = |key| {
                let [first, last] = process
                    .io
                    .each_ref()
                    .map(|text| proc::value(text, key).unwrap_or_default());
                last.saturating_sub(first)
            };
            counters.reads += delta("syscr");
            counters.writes += delta("syscw");
            counters.read_bytes += delta("rchar");
            counters.written_bytes += delta("wchar");
            counters.storage_read_bytes += delta("read_bytes");
            counters.storage_written_bytes += delta("write_bytes");
            let [first, last] = process.resident_kb;
            counters.resident_pages = counters.resident_pages.max(last / 4);
            counters.touched_pages += last.saturating_sub(first) / 4;
            counters.swapped_pages += process.swapped_kb / 4;
        }
        let host = |key| {
            let [first, last] = [&self.host, after]
                .map(|snapshot| proc::value(&snapshot.vmstat, key).unwrap_or_default());
            last.saturating_sub(first)
        };
        counters.huge_pages_split = host("thp_split_pmd");
        counters.swapped_in = host("pswpin");
        counters.refaulted = host("workingset_refault_file") + host("workingset_refault_anon");
        counters
    }

    fn settings(&mut self, waits: &[Wait]) -> Settings {
        let mut libraries: Vec<String> = Vec::new();
        let mut glibc = None;
        let Rounds {
            processes, modules, ..
        } = &mut self.rounds;
        for process in processes.values() {
            for mapping in process.maps.iter().filter(|mapping| mapping.is_executable) {
                let name = file_name(&mapping.path).to_owned();
                if glibc.is_none() && (name.starts_with("libc.so") || name.starts_with("libc-2")) {
                    glibc = modules.module(mapping).and_then(|module| module.glibc);
                }
                if name.contains(".so") && !libraries.contains(&name) {
                    libraries.push(name);
                }
            }
        }
        // The cgroup that was throttled most.
        let delta = |[first, last]: &[Quota; 2]| last.throttled.saturating_sub(first.throttled);
        let worst = self.quotas.iter().max_by_key(|(_, quotas)| delta(quotas));
        let mut settings = Settings {
            environment: self.environment.clone(),
            glibc,
            libraries,
            ..Settings::default()
        };
        if let Some((folder, quotas)) = worst {
            let [first, last] = quotas;
            settings.throttled = (delta(quotas), last.periods.saturating_sub(first.periods));
            settings.quota = Some(last.quota);
            settings.quota_file = cgroups::quota_file(folder).to_string_lossy().into_owned();
        }
        settings.tracer = self.tracer();
        settings.mapped = self.mapped();
        settings.limits = self.limits.values().cloned().collect();
        let written = waits.iter().find_map(|wait| match &wait.object {
            Object::File(path) if wait.function.contains("balance_dirty") => Some(path),
            _ => None,
        });
        settings.limits.extend(
            written
                .map(|path| limits::dirty(self.rounds.devices.get(path).copied()))
                .unwrap_or_default(),
        );
        settings
    }

    /// Returns the most frequent ending of mapped files that are no programs, with their number.
    fn mapped(&self) -> Option<(String, usize)> {
        let maps = self
            .rounds
            .processes
            .values()
            .flat_map(|process| process.maps.iter());
        let files: BTreeSet<&str> = maps
            .filter(|mapping| mapping.path.starts_with('/') && !mapping.is_executable)
            .map(|mapping| &*mapping.path)
            .collect();
        let mut endings: BTreeMap<&str, usize> = BTreeMap::new();
        for file in files {
            if let Some((_, ending)) = file_name(file).rsplit_once('.') {
                *endings.entry(ending).or_default() += 1;
            }
        }
        let most = endings.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(ending, count)| (ending.to_owned(), count))
    }

    /// Names the process that traces the program; empty without one.
    fn tracer(&self) -> String {
        let mut processes = self.rounds.processes.values();
        let tracer = processes.find_map(|process| {
            let tracer = u32::try_from(process.tracer).ok()?;
            (tracer > 0).then_some(tracer)
        });
        tracer.map_or_else(String::new, |tracer| {
            format!("{tracer} {}", name_of(tracer))
                .trim_end()
                .to_owned()
        })
    }

    fn samples(&mut self) -> Option<Samples> {
        let sampling = self.sampling.as_mut().ok()?;
        sampling.drain();
        let kernel = if sampling.reach.has_kernel {
            KernelSymbols::read()
        } else {
            KernelSymbols::default()
        };
        let Rounds {
            processes, modules, ..
        } = &mut self.rounds;
        // A process that no round saw has, until it executes another program, the memory of the one
        // that made it.
        let fallback = processes.get(&self.root);
        let mut calls = Calls::default();
        unwind_all(sampling, processes, fallback, modules, &kernel, &mut calls);
        let behind = places(sampling, processes, modules, Imports::is_behind_atomic);
        let pausing = places(sampling, processes, modules, Imports::is_at_pause);
        let hot_loop = hot_loop(sampling, processes, modules);
        let mut stacks: BTreeMap<(String, Vec<String>, Vec<String>), u64> = BTreeMap::new();
        let mut compiled: BTreeMap<u32, PerfMap> = BTreeMap::new();
        let mut known: BTreeMap<(u32, Place), Vec<String>> = BTreeMap::new();
        let mut name = |process: u32, place: Place| {
            if let Some(names) = known.get(&(process, place)) {
                return names.clone();
            }
            let Some(of) = processes.get(&process).or(fallback) else {
                return vec![String::new()];
            };
            let mut names = modules.name_place(&of.maps, &of.program, place);
            if names == [ANONYMOUS] {
                let map = compiled
                    .entry(process)
                    .or_insert_with(|| perf_map(process, of));
                names = map
                    .name(place.address)
                    .map_or(names, |name| vec![name.to_owned()]);
            }
            known.insert((process, place), names.clone());
            names
        };
        let mut atomics: BTreeMap<String, u64> = BTreeMap::new();
        let mut pauses: BTreeMap<String, u64> = BTreeMap::new();
        let mut programs: BTreeMap<String, u64> = BTreeMap::new();
        for (chain, count) in &sampling.chains {
            let of = processes.get(&chain.process);
            let program = of
                .map_or(SHORT_LIVED, |of| file_name(&of.program))
                .to_owned();
            let executed = executed(sampling, chain.process, of, fallback).unwrap_or(&program);
            *programs.entry(executed.to_owned()).or_default() += count;
            let in_kernel: Vec<String> = chain
                .kernel
                .iter()
                .map(|address| kernel.name(*address))
                .collect();
            let user = (0..chain.user.len().min(DEPTH))
                .flat_map(|at| name(chain.process, Place::of(&chain.user, at)))
                .collect();
            let user: Vec<String> = user;
            if let Some(leaf) = user.first().filter(|_| in_kernel.is_empty()) {
                let at = (chain.process, chain.user[0]);
                for (places, counts) in [(&behind, &mut atomics), (&pausing, &mut pauses)] {
                    if places.contains(&at) {
                        *counts.entry(leaf.clone()).or_default() += count;
                    }
                }
            }
            *stacks.entry((program, in_kernel, user)).or_default() += count;
        }
        let mut faults: BTreeMap<String, u64> = BTreeMap::new();
        for ((process, at), count) in &sampling.touched {
            let function = name(*process, Place::of(&[*at], 0)).swap_remove(0);
            *faults.entry(function).or_default() += count;
        }
        Some(Samples {
            stacks: stacks
                .into_iter()
                .map(|((program, kernel, user), samples)| Stack {
                    program,
                    kernel,
                    user,
                    samples,
                })
                .collect(),
            faults: by_function(faults),
            atomics: by_function(atomics),
            pauses: by_function(pauses),
            hot_loop,
            programs: most_first(programs),
            calls: calls.finish(),
            lost: sampling.lost,
        })
    }

    fn gaps(&self) -> Vec<Gap> {
        let mut gaps = Vec::new();
        let root = "run it as root";
        match &self.sampling {
            Ok(sampling) if !sampling.reach.has_kernel => gaps.push(Gap {
                what: "functions of the kernel",
                why: "kernel.perf_event_paranoid keeps them from ordinary users".into(),
                remedy: root,
            }),
            Ok(_) => {}
            Err(error) => gaps.push(Gap {
                what: "samples of what runs, and how many processes it creates",
                why: error.to_string(),
                remedy: root,
            }),
        }
        let unnamed = &self.rounds.modules.unnamed;
        if !unnamed.is_empty() {
            let names: Vec<&str> = unnamed
                .iter()
                .map(|path| file_name(path))
                .take(UNNAMED)
                .collect();
            let more = unnamed.len().saturating_sub(names.len());
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            gaps.push(Gap {
                what: "names of functions",
                why: format!(
                    "the files that are mapped cannot be had: replaced, of another root, or no regular files: {}{more}",
                    names.join(", ")
                ),
                remedy: root,
            });
        }
        if self.rounds.modules.hides_goroutines() {
            gaps.push(Gap {
                what: GOROUTINES,
                why: "the program is stripped (-ldflags=-s)".into(),
                remedy: "build it with its symbols and DWARF",
            });
        }
        if self.rounds.is_denied {
            gaps.push(Gap {
                what: "where threads are blocked",
                why: "their owner is another user, or ptrace is restricted".into(),
                remedy: root,
            });
        }
        gaps
    }
}

/// Returns the name of the program that a process executed: the first one is known by the name of its
/// process, and one that no round saw by what it was called when it began.
fn executed<'s>(
    sampling: &'s Sampling,
    process: u32,
    of: Option<&Process>,
    root: Option<&'s Process>,
) -> Option<&'s str> {
    match (of, root) {
        (Some(of), Some(root)) if of.program == root.program => Some(root.name()),
        (None, _) => sampling.creations.program(process),
        _ => None,
    }
}

/// Unwinds the stacks that samples have, which become chains.
fn unwind_all(
    sampling: &mut Sampling,
    processes: &BTreeMap<u32, Process>,
    fallback: Option<&Process>,
    modules: &mut Modules,
    kernel: &KernelSymbols,
    calls: &mut Calls,
) {
    let mut restorers: BTreeMap<(u32, u64), bool> = BTreeMap::new();
    for stacked in &sampling.stacked {
        let process = processes.get(&stacked.process).or(fallback);
        let maps = process.map_or(&[][..], |process| process.maps.as_slice());
        let mut user = unwind(&stacked.registers, &stacked.stack, maps, modules);
        let in_kernel = stacked.kernel.iter();
        calls.add(&Sampled {
            process: stacked.process,
            kernel: in_kernel.map(|address| kernel.name(*address)).collect(),
            user: &user,
            arguments: stacked.arguments,
            looked_up: &stacked.looked_up,
        });
        // Found addresses are one less than where a function returns to.
        let restorer = user
            .iter()
            .skip(1)
            .map(|address| address + 1)
            .find(|address| {
                let known = restorers.entry((stacked.process, *address));
                *known.or_insert_with(|| {
                    let code = modules.code(maps, *address);
                    code.is_some_and(|(code, address)| code.is_restorer(address))
                })
            });
        if let Some(restorer) = restorer {
            calls.add_handler(restorer, &stacked.stack);
        }
        append(&mut user, &stacked.user);
        user.truncate(DEPTH);
        let chain = Chain {
            process: stacked.process,
            kernel: stacked.kernel.clone(),
            user,
        };
        *sampling.chains.entry(chain).or_default() += 1;
    }
}

/// Returns the processes and addresses of samples in user mode at which a test of the code holds.
fn places(
    sampling: &Sampling,
    processes: &BTreeMap<u32, Process>,
    modules: &mut Modules,
    is_wanted: fn(&Imports, u64) -> bool,
) -> BTreeSet<(u32, u64)> {
    let in_user_mode = sampling
        .chains
        .keys()
        .filter(|chain| chain.kernel.is_empty());
    let places: BTreeSet<(u32, u64)> = in_user_mode
        .filter_map(|chain| Some((chain.process, *chain.user.first()?)))
        .collect();
    let is_there = |(process, address): &(u32, u64)| {
        let process = processes.get(process);
        let code = process.and_then(|process| modules.code(&process.maps, *address));
        code.is_some_and(|(code, address)| is_wanted(code, address))
    };
    places.into_iter().filter(is_there).collect()
}

fn most_first(counts: BTreeMap<String, u64>) -> Vec<(String, u64)> {
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, samples)| std::cmp::Reverse(*samples));
    counts
}

fn by_function(counts: BTreeMap<String, u64>) -> Vec<FaultingCode> {
    let code = |(function, samples)| FaultingCode { function, samples };
    counts.into_iter().map(code).collect()
}

/// Reads the names of functions that a process compiled.
fn perf_map(process: u32, of: &Process) -> PerfMap {
    let found = find_perf_map(process, of.inner_number, of.user);
    let bytes = found.and_then(|found| found.read()).unwrap_or_default();
    PerfMap::parse(&String::from_utf8_lossy(&bytes))
}

/// Adds what frame pointers tell of the callers of a stack that was unwound no further: its bytes
/// may end before them.
fn append(unwound: &mut Vec<u64>, pointed: &[u64]) {
    let Some(last) = unwound.last() else { return };
    // Frame pointers lead to return addresses, of which the unwound ones are one less.
    let at = pointed
        .iter()
        .position(|address| address.wrapping_sub(1) == *last || address == last);
    let Some(at) = at else { return };
    unwound.extend(
        pointed[at + 1..]
            .iter()
            .map(|address| address.saturating_sub(1)),
    );
}

fn growth(first: u64, last: u64) -> f64 {
    last.saturating_sub(first) as f64
}

fn processors() -> usize {
    let online = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    proc::processors(&online).max(1)
}
