//! Runs a job and sends its result: as PID 1 of the exact machine, which it then switches off, or
//! as an ordinary process of any other machine.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsFd;

use guest::clock::sleep_to_round_point;
use guest::stream::Sender;
use guest::{
    IN_GUEST, JOB, VERSION, console, die_with_message, guest_config, in_child, power_off, sys,
};
use wire::{Clock, Frame, JOB_SIZE, Job, OWN_COST, Task};

use crate::measure::{self, Plan};
use crate::monitors::Monitors;
use crate::samples::Samples;
use crate::workloads::Failure;
use crate::{environment, load, probes, rmap, symbols, tool};

/// Separates files in the worker's report.
const FILE: char = '\0';

/// Runs the job, then powers off.
pub(crate) fn main() -> ! {
    match run() {
        Ok(()) => power_off(),
        Err(error) => die_with_message(&format!("agent: {error}")),
    }
}

fn run() -> io::Result<()> {
    let job = Job::decode(&fs::read(JOB)?).map_err(io::Error::other)?;
    let frames = work(&job)?;
    // Only the gravest messages may come between the frames.
    fs::write("/proc/sys/kernel/printk", "1")?;
    let mut sender = Sender::new(console()?, job.id);
    send(&mut sender, frames)?;
    sender.drain()
}

/// Runs the job of standard input, and sends its frames to standard output.
pub(crate) fn do_job() -> io::Result<()> {
    let mut bytes = Vec::with_capacity(JOB_SIZE);
    io::stdin().take(JOB_SIZE as u64).read_to_end(&mut bytes)?;
    let job = Job::decode(&bytes).map_err(io::Error::other)?;
    let is_measured = matches!(job.task, Task::Workload { .. } | Task::Tool(_));
    if std::env::var_os(IN_GUEST).is_none() {
        keep_to_processors(&job.task)?;
    }
    // A guest is not alone on its host: there the host reads the load.
    let before = (is_measured && std::env::var_os(IN_GUEST).is_none()).then(load::copy);
    let begun = load::Moment::now()?;
    let mut frames = work(&job)?;
    if is_measured {
        let cost = load::Moment::now()?.since(&begun).into_bytes();
        frames.push(Frame::File {
            name: OWN_COST.to_owned(),
            bytes: cost,
        });
    }
    if let Some(before) = before {
        frames.push(Frame::File {
            name: load::BEFORE.to_owned(),
            bytes: before,
        });
        frames.push(Frame::File {
            name: load::AFTER.to_owned(),
            bytes: load::copy(),
        });
    }
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    send(&mut Sender::new(output, job.id), frames)
}

/// Keeps this process to the last of the processors that it may use: as many as its job has tasks,
/// unless it uses all.
fn keep_to_processors(task: &Task) -> io::Result<()> {
    let count = match task {
        Task::Tool(_)
        | Task::Workload {
            all_processors: true,
            ..
        } => return Ok(()),
        Task::Workload { tasks, .. } => *tasks as usize,
        _ => 1,
    };
    let last = sys::processors()?;
    // The workload itself says what it lacks.
    last.get(..count)
        .filter(|last| !last.is_empty())
        .map_or(Ok(()), sys::stay_on)
}

fn send(sender: &mut Sender, frames: Vec<Frame>) -> io::Result<()> {
    sender.send(&Frame::Hello {
        agent: VERSION.to_owned(),
    })?;
    for frame in frames {
        match frame {
            Frame::File { name, bytes } => sender.send_file(&name, &bytes)?,
            frame => sender.send(&frame)?,
        }
    }
    sender.send(&Frame::End)
}

/// Returns what is waited for before a workload and between its iterations. Only the exact machine
/// has round points: on others the next iteration follows at once.
fn wait_of(clock: Clock) -> fn(u64, u64) -> io::Result<()> {
    match clock {
        Clock::Tsc => sleep_to_round_point,
        Clock::Monotonic => |_, _| Ok(()),
    }
}

fn work(job: &Job) -> io::Result<Vec<Frame>> {
    let file = |(name, bytes)| Frame::File { name, bytes };
    match &job.task {
        Task::Environment => Ok(environment::copy().into_iter().map(file).collect()),
        Task::Symbols => Ok(vec![file(("symbols".to_owned(), symbols::copy()?))]),
        Task::Tool(tool) => {
            let pause = || wait_of(job.clock)(job.perturbation.delay_us, job.perturbation.spins);
            let (end, files) = tool::run(tool, job.clock, &pause)?;
            Ok(files.into_iter().map(file).chain([end]).collect())
        }
        Task::Rmap {
            case,
            processes,
            mappings,
        } => rmap::frames(&rmap::Question {
            case,
            processes: *processes,
            mappings: *mappings,
            clock: job.clock,
            delay_us: job.perturbation.delay_us,
            spins: job.perturbation.spins,
        }),
        Task::Workload {
            name,
            operations,
            warm_up,
            iterations,
            tasks,
            probes,
            monitors,
            sampling,
            all_processors: _,
        } => {
            if let Some(why) = guest_config::failure() {
                return Ok(vec![Frame::Unsupported(why)]);
            }
            if !probes.is_empty()
                && let Err(error) = probes::set(probes)
            {
                return Ok(vec![Frame::Unsupported(format!("kprobes: {error}"))]);
            }
            let plan = Plan {
                clock: job.clock,
                operations: *operations,
                warm_up: *warm_up,
                iterations: *iterations,
                tasks: *tasks,
                wait: wait_of(job.clock),
                delay_us: job.perturbation.delay_us,
                spins: job.perturbation.spins,
                mappings: [
                    job.perturbation.mappings_above,
                    job.perturbation.mappings_below,
                ],
                descriptors: job.perturbation.descriptors,
                sampling: *sampling,
            };
            let monitors = monitors.map(Monitors::start).transpose()?;
            let mut frames = in_worker(name, &plan)?;
            if let Some(monitors) = monitors {
                frames.extend(monitors.end()?.into_iter().map(file));
            }
            if !probes.is_empty() {
                frames.push(file(("kprobe_profile".to_owned(), probes::profile()?)));
            }
            Ok(frames)
        }
    }
}

/// Runs the workload in a process of its own, so that its death is a result and not the end of PID
/// 1.
fn in_worker(name: &str, plan: &Plan) -> io::Result<Vec<Frame>> {
    let report = in_child(|| {
        let (tag, text) = match measure::measure(name, plan) {
            Ok(measured) => {
                let rows = measured
                    .rows
                    .iter()
                    .map(|(name, values)| format!("\n{name} {}", list(values)));
                let text = list(&measured.ticks) + &rows.collect::<String>();
                ('s', text + &sampled(measured.samples)?)
            }
            Err(Failure::Unsupported(why)) => ('u', why),
            Err(Failure::Error(error)) => ('f', error.to_string()),
        };
        Ok(format!("{tag}{text}").into_bytes())
    });
    let text = match report.map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return Err(io::Error::other(error)),
        Err(error) => return Ok(vec![Frame::Died(error.to_string())]),
    };
    Ok(match text.split_at_checked(1) {
        Some(("s", report)) => {
            let (report, files) = report.split_once(FILE).unwrap_or((report, ""));
            let (ticks, rows) = report.split_once('\n').unwrap_or((report, ""));
            let samples = Frame::Samples(
                ticks
                    .split(',')
                    .filter_map(|tick| tick.parse().ok())
                    .collect(),
            );
            let files = files.split(FILE).filter_map(|file| file.split_once('\n'));
            let files = files.map(|(name, text)| Frame::File {
                name: name.to_owned(),
                bytes: text.into(),
            });
            [samples]
                .into_iter()
                .chain(rows.lines().filter_map(row))
                .chain(files)
                .collect()
        }
        Some(("u", why)) => vec![Frame::Unsupported(why.to_owned())],
        Some(("f", what)) => vec![Frame::Failed(what.to_owned())],
        _ => vec![Frame::Died("the workload left without a word".to_owned())],
    })
}

/// Returns what was sampled as files: each begins with a mark and its name.
fn sampled(samples: Option<Samples>) -> io::Result<String> {
    let Some(samples) = samples else {
        return Ok(String::new());
    };
    let files = samples.files(&symbols::list()?).into_iter();
    Ok(files
        .map(|(name, bytes)| format!("{FILE}{name}\n{}", String::from_utf8_lossy(&bytes)))
        .collect())
}

fn list(numbers: &[u64]) -> String {
    numbers
        .iter()
        .map(u64::to_string)
        .collect::<Vec<_>>()
        .join(",")
}

/// What else a workload measured, as a file: `row NAME` with a number for each iteration.
fn row(line: &str) -> Option<Frame> {
    let (name, numbers) = line.split_once(' ')?;
    Some(Frame::File {
        name: format!("row {name}"),
        bytes: numbers.as_bytes().to_vec(),
    })
}
