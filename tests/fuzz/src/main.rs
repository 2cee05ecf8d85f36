//! Runs all targets in turn for some minutes, in two processes, and prints executions, the slowest
//! and the memory of each.
//!
//! `fuzz --minutes N` fails on a panic, on more than 2 s of processor time, and on more than 512
//! MiB. It then prints the command that repeats the input: `fuzz TARGET NUMBER`. Each session goes
//! on with the number where the former ended, which is in a file beside this program, or begins
//! with `--from N`; `--workers N` are other processes.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program of the terminal"
)]

use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use fuzz::{Target, targets};

/// Worker processes, unless others are asked for: memory of one does not count as that of another.
const WORKERS: u64 = 2;
/// Executions of a target before it is the next one's turn; all targets get as many.
const BATCH: u64 = 256;
/// The line of a worker with the round after its last one.
const NEXT: &str = "=";
const CPU_MAX: Duration = Duration::from_secs(2);
const MEMORY_MAX: u64 = 512 << 20;
/// An execution that takes this long, by the clock, does not end.
const HANG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["--worker", first, step, minutes, folder] => work(first, step, minutes, Path::new(folder)),
        [target, number] if !target.starts_with('-') => one(target, number),
        options => Session::of(options).and_then(|session| all(&session)),
    };
    done.map_or_else(
        |error| {
            eprintln!("fuzz: {error:#}");
            ExitCode::FAILURE
        },
        |()| ExitCode::SUCCESS,
    )
}

/// What is known of a target's executions.
#[derive(Debug, Clone, Copy, Default)]
struct Figures {
    executions: u64,
    /// By the clock, of all executions.
    time: Duration,
    slowest: Duration,
    slowest_number: u64,
    memory: u64,
}

/// What a session was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Session {
    minutes: String,
    from: u64,
    workers: u64,
    /// Executions of the sessions before.
    before: u64,
}

impl Session {
    fn of(options: &[&str]) -> Result<Self> {
        let usage =
            || anyhow!("usage: fuzz --minutes N [--from N] [--workers N] | fuzz TARGET NUMBER");
        let (from, before) = former()?.unwrap_or_default();
        let mut session = Self {
            minutes: String::new(),
            from,
            workers: WORKERS,
            before,
        };
        for pair in options.chunks(2) {
            match *pair {
                ["--minutes", minutes] => minutes.clone_into(&mut session.minutes),
                ["--from", from] => {
                    (session.from, session.before) = (from.parse().context("--from")?, 0);
                }
                ["--workers", workers] => session.workers = workers.parse().context("--workers")?,
                _ => return Err(usage()),
            }
        }
        if session.minutes.is_empty() || session.workers == 0 {
            Err(usage())
        } else {
            Ok(session)
        }
    }
}

/// The file with the number where the former session ended, and the executions of all sessions.
fn place() -> Result<PathBuf> {
    Ok(std::env::current_exe()?.with_extension("next"))
}

fn former() -> Result<Option<(u64, u64)>> {
    let place = place()?;
    let Ok(text) = fs::read_to_string(&place) else {
        return Ok(None);
    };
    let numbers = text
        .trim()
        .split_once(' ')
        .and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    Ok(Some(numbers.with_context(|| {
        format!("{} is not two numbers: remove it", place.display())
    })?))
}

/// Starts the workers and prints the sums of what they print.
fn all(session: &Session) -> Result<()> {
    let begun = Instant::now();
    let first = session.from.div_ceil(BATCH);
    let mut workers = Vec::new();
    for worker in 0..session.workers {
        let folder = scratch()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args([
            "--worker",
            &(first + worker).to_string(),
            &session.workers.to_string(),
            &session.minutes,
        ]);
        workers.push((
            command.arg(folder.path()).stdout(Stdio::piped()).spawn()?,
            folder,
        ));
    }
    let mut order = Vec::new();
    let mut sums = BTreeMap::<String, Figures>::new();
    let mut failed = false;
    let mut next = first;
    for (worker, folder) in workers {
        let output = worker.wait_with_output()?;
        if !output.status.success() {
            failed = true;
            let place = fs::read_to_string(folder.path().join("progress")).unwrap_or_default();
            eprintln!(
                "fuzz: a worker failed ({}), in the {BATCH} executions from: fuzz {place}",
                output.status
            );
        }
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let (name, numbers) = line.split_once(' ').context("a worker's line")?;
            let numbers: Vec<u64> = numbers
                .split(' ')
                .map(str::parse)
                .collect::<Result<_, _>>()?;
            let &[executions, time, slowest, number, memory] = numbers.as_slice() else {
                bail!("a worker's line: {line}")
            };
            if name == NEXT {
                next = next.max(executions);
                continue;
            }
            if !sums.contains_key(name) {
                order.push(name.to_owned());
            }
            let sum = sums.entry(name.to_owned()).or_default();
            sum.executions += executions;
            sum.time += Duration::from_nanos(time);
            sum.memory = sum.memory.max(memory);
            if Duration::from_nanos(slowest) > sum.slowest {
                (sum.slowest, sum.slowest_number) = (Duration::from_nanos(slowest), number);
            }
        }
    }
    let total = print(&order, &sums, begun.elapsed());
    let next = next * BATCH;
    let all = session.before + total;
    println!(
        "numbers {} to {next}; {all} executions in all sessions since --from",
        session.from
    );
    fs::write(place()?, format!("{next} {all}\n"))?;
    if failed {
        Err(anyhow!("a reader failed"))
    } else {
        Ok(())
    }
}

/// Prints the table; returns all executions.
fn print(order: &[String], sums: &BTreeMap<String, Figures>, time: Duration) -> u64 {
    println!(
        "{:<12}{:>12}{:>12}{:>12}{:>13}{:>12}",
        "target", "executions", "mean", "slowest", "number", "memory"
    );
    for name in order {
        let sum = sums[name];
        let slowest = format!("{:.1} ms", sum.slowest.as_secs_f64() * 1000.0);
        let mean = format!(
            "{:.1} us",
            sum.time.as_secs_f64() * 1e6 / sum.executions.max(1) as f64
        );
        let memory = format!("{} MiB", sum.memory >> 20);
        println!(
            "{name:<12}{:>12}{mean:>12}{slowest:>12}{:>13}{memory:>12}",
            sum.executions, sum.slowest_number
        );
    }
    let total: u64 = sums.values().map(|sum| sum.executions).sum();
    println!(
        "{total} executions in {:.0} s, {:.0} per second",
        time.as_secs_f64(),
        total as f64 / time.as_secs_f64()
    );
    total
}

/// Runs the numbers of one worker for some minutes, and prints what they took even if one failed.
fn work(first: &str, step: &str, minutes: &str, folder: &Path) -> Result<()> {
    let minutes: f64 = minutes.parse().context("minutes")?;
    let end = Instant::now() + Duration::try_from_secs_f64(minutes * 60.0)?;
    let targets = targets(folder).map_err(|error| anyhow!("{error}"))?;
    let mut figures = vec![Figures::default(); targets.len()];
    let now = watch();
    let (mut round, step): (u64, u64) = (first.parse()?, step.parse()?);
    let mut done = Ok(());
    while done.is_ok() && Instant::now() < end {
        done = (0..targets.len())
            .try_for_each(|n| batch(n, &targets[n], round, folder, &now, &mut figures[n]));
        round += step;
    }
    for (
        target,
        Figures {
            executions,
            time,
            slowest,
            slowest_number,
            memory,
        },
    ) in targets.iter().zip(figures)
    {
        println!(
            "{} {executions} {} {} {slowest_number} {memory}",
            target.name,
            time.as_nanos(),
            slowest.as_nanos()
        );
    }
    println!("{NEXT} {round} 0 0 0 0");
    done
}

/// Runs the numbers of one round.
fn batch(
    index: usize,
    target: &Target,
    round: u64,
    folder: &Path,
    now: &AtomicU64,
    figures: &mut Figures,
) -> Result<()> {
    let numbers = round * BATCH..(round + 1) * BATCH;
    fs::write(
        folder.join("progress"),
        format!("{} {}", target.name, numbers.start),
    )?;
    let before = reset_memory()?;
    let begun = Instant::now();
    for number in numbers.clone() {
        now.store((index as u64) << 48 | number, Ordering::Relaxed);
        execute(target, number, folder, figures)?;
    }
    figures.time += begun.elapsed();
    let memory = status("VmHWM")?.saturating_sub(before);
    figures.memory = figures.memory.max(memory);
    if memory > MEMORY_MAX {
        bail!("{} MiB: {}", memory >> 20, repeat(target, numbers.start));
    }
    Ok(())
}

fn execute(target: &Target, number: u64, folder: &Path, figures: &mut Figures) -> Result<()> {
    let input = target.input(number);
    let scratch = folder.join("scratch");
    let begun = Instant::now();
    let run = || catch_unwind(AssertUnwindSafe(|| target.run(&input, &scratch)));
    run().map_err(|_| anyhow!("panic: {}", repeat(target, number)))?;
    figures.executions += 1;
    let wall = begun.elapsed();
    // On a busy host the clock says too much, so the time of the processor decides.
    if wall > figures.slowest.max(Duration::from_micros(20)) {
        let before = processor()?;
        run().ok();
        let taken = processor()?.saturating_sub(before).min(wall);
        if taken > CPU_MAX {
            bail!("{taken:?} of processor: {}", repeat(target, number));
        }
        if taken > figures.slowest {
            (figures.slowest, figures.slowest_number) = (taken, number);
        }
    }
    Ok(())
}

/// Runs one input and prints what it took; writes the input to a file.
fn one(name: &str, number: &str) -> Result<()> {
    let folder = scratch()?;
    let number = number.parse()?;
    let targets = targets(folder.path()).map_err(|error| anyhow!("{error}"))?;
    let target = targets
        .iter()
        .find(|target| target.name == name)
        .with_context(|| format!("no target `{name}`"))?;
    let file = std::env::temp_dir().join(format!("fuzz-{name}-{number}"));
    fs::write(&file, target.input(number))?;
    println!("input: {}", file.display());
    let before = reset_memory()?;
    let mut figures = Figures::default();
    execute(target, number, folder.path(), &mut figures)?;
    let memory = status("VmHWM")?.saturating_sub(before);
    println!("{:?} of processor, {} MiB", figures.slowest, memory >> 20);
    Ok(())
}

fn repeat(target: &Target, number: u64) -> String {
    format!(
        "repeat it with `cargo run --release -p fuzz -- {} {number}`",
        target.name
    )
}

/// Ends this process if an execution does not end.
fn watch() -> Arc<AtomicU64> {
    let now = Arc::new(AtomicU64::new(u64::MAX));
    let watched = Arc::clone(&now);
    std::thread::spawn(move || {
        let mut last = (u64::MAX, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let current = watched.load(Ordering::Relaxed);
            if current != last.0 {
                last = (current, Instant::now());
            } else if last.1.elapsed() > HANG {
                eprintln!("fuzz: number {} does not end", current & ((1 << 48) - 1));
                std::process::exit(1);
            }
        }
    });
    now
}

/// Returns a directory in memory, if there is one.
fn scratch() -> Result<tempfile::TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() {
        tempfile::tempdir_in(memory)?
    } else {
        tempfile::tempdir()?
    })
}

/// Returns the processor time of this thread.
fn processor() -> Result<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(
        text.split(' ').next().unwrap_or_default().parse()?,
    ))
}

/// Begins a new peak of memory; returns the memory in use.
fn reset_memory() -> Result<u64> {
    // "5" resets the peak (Documentation/filesystems/proc.rst).
    fs::write("/proc/self/clear_refs", "5")?;
    status("VmRSS")
}

/// Returns a field of this process's status, in bytes.
fn status(field: &str) -> Result<u64> {
    let text = fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
        .context("no memory")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? << 10)
}
