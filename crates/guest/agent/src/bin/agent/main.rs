//! The agent: one static program that is PID 1 of the guest, runs workloads and sends raw results.
//!
//! It interprets nothing and needs nothing but Linux 3.10: what the bytes mean is decided on the
//! host, so that old runs can be read again by better programs. As an ordinary process,
//! `marvin-agent job` reads a job from standard input and writes its frames to standard output. By
//! hand: `marvin-agent list`, `marvin-agent run NAME [OPERATIONS]`, and `marvin-agent sample FILE
//! ROUNDS INTERVAL_MS` says what its monitors cost. On machines that measure time, `marvin-agent
//! prepare UNDO_FILE` sets the machine for measuring, `marvin-agent restore UNDO_FILE` sets it
//! back, and `marvin-agent describe` says what machine and boot it is.
#![expect(
    unsafe_code,
    reason = "the agent is made of system calls; each block says why it is sound"
)]

mod describe;
mod environment;
mod job;
mod knobs;
mod load;
mod measure;
mod module;
mod monitors;
mod probes;
mod region;
mod resident;
mod rmap;
mod samples;
mod sampling;
mod symbols;
mod system;
mod tick_profile;
mod tool;
mod tool_place;
mod undo;
mod workloads;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use guest::sys;
use wire::Clock;

const USAGE: &str = "usage: marvin-agent job | list | run NAME [OPERATIONS] | sample FILE ROUNDS INTERVAL_MS | prepare UNDO_FILE | \
    restore UNDO_FILE | describe | --version\n";

fn main() -> ExitCode {
    if std::process::id() == 1 {
        job::main();
    }
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    if name.ends_with(system::MARK) {
        return mark(arguments.first().map(String::as_str));
    }
    if name.ends_with(module::NAME) {
        return module::main(&arguments);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (text, code) = match words.as_slice() {
        ["job"] => match job::do_job() {
            Ok(()) => (String::new(), ExitCode::SUCCESS),
            Err(error) => (format!("agent: {error}\n"), ExitCode::FAILURE),
        },
        ["list"] => (
            workloads::names().map(|name| format!("{name}\n")).collect(),
            ExitCode::SUCCESS,
        ),
        ["run", name] => try_out(name, "1000"),
        ["run", name, operations] => try_out(name, operations),
        ["prepare", undo] => turn(knobs::prepare, undo),
        ["restore", undo] => turn(knobs::restore, undo),
        ["describe"] => (describe(), ExitCode::SUCCESS),
        ["sample", file, rounds, interval_ms] => sample(file, (rounds, interval_ms)),
        ["--version"] => (
            format!("marvin-agent {}\n", env!("CARGO_PKG_VERSION")),
            ExitCode::SUCCESS,
        ),
        _ => (USAGE.to_owned(), ExitCode::from(2)),
    };
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => code,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Marks what is measured, for scripts: `marvin-mark begin`, `marvin-mark end`.
fn mark(word: Option<&str>) -> ExitCode {
    match word {
        Some("begin") => region::open(),
        Some("end") => region::close(),
        _ => {
            drop(io::stderr().write_all(b"usage: marvin-mark begin | end\n"));
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

type Turn = fn(&knobs::Tree, &Path) -> io::Result<Vec<String>>;

/// Turns knobs, and says what they were and are.
fn turn(knobs: Turn, undo: &str) -> (String, ExitCode) {
    match knobs(&knobs::Tree::below(Path::new("/")), Path::new(undo)) {
        Ok(lines) => (
            lines.iter().map(|line| format!("{line}\n")).collect(),
            ExitCode::SUCCESS,
        ),
        Err(error) => (format!("agent: {error}\n"), ExitCode::FAILURE),
    }
}

fn describe() -> String {
    let pairs = describe::describe(&knobs::Tree::below(Path::new("/")));
    pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"))
        .collect()
}

/// Has the monitors copy here, so many times, and says what one time costs.
fn sample(file: &str, (rounds, interval_ms): (&str, &str)) -> (String, ExitCode) {
    let (Ok(rounds @ 1..), Ok(interval_ms)) = (rounds.parse::<usize>(), interval_ms.parse::<u64>())
    else {
        return (USAGE.to_owned(), ExitCode::from(2));
    };
    match monitors::cost_ns(file, (rounds, interval_ms)) {
        Ok(ns) => (
            format!(
                "{} ns of a processor for each of {rounds}\n",
                ns / rounds as u64
            ),
            ExitCode::SUCCESS,
        ),
        Err(error) => (format!("{file}: {error}\n"), ExitCode::FAILURE),
    }
}

/// Runs one workload here and says what an operation costs in nanoseconds, for trying a workload by
/// hand.
fn try_out(name: &str, operations: &str) -> (String, ExitCode) {
    let Ok(operations) = operations.parse::<u64>() else {
        return (
            format!("`{operations}` is not a number of operations\n"),
            ExitCode::from(2),
        );
    };
    let plan = measure::Plan {
        clock: Clock::Monotonic,
        operations: operations.max(1),
        warm_up: 1,
        iterations: 5,
        tasks: name
            .rsplit_once('-')
            .and_then(|(_, tasks)| tasks.parse().ok())
            .unwrap_or(1),
        wait: |_, _| Ok(()),
        delay_us: 0,
        spins: 0,
        mappings: [0, 0],
        descriptors: 0,
        sampling: None,
    };
    match measure::measure(name, &plan) {
        Ok(measured) => {
            let line = |tick: &u64| format!("{name} {} ns/op\n", tick / plan.operations);
            (measured.ticks.iter().map(line).collect(), ExitCode::SUCCESS)
        }
        Err(error) => (format!("{name}: {error}\n"), ExitCode::FAILURE),
    }
}
