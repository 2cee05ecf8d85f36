//! The job of the agent after the snapshot. Always [`JOB_SIZE`] bytes, so that reading any job
//! costs the guest the same instructions.

use crate::PROTOCOL;
use crate::checksum::crc32;
use crate::escape::{escape, unescape};
use crate::tool::ToolTask;

/// Size of an encoded job in bytes, padding included.
pub const JOB_SIZE: usize = 4096;

const HEAD: &str = "marvin-job";

/// The clock of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// The time stamp counter. In QEMU with `-icount shift=0` it counts guest instructions.
    Tsc,
    /// CLOCK_MONOTONIC in nanoseconds.
    Monotonic,
}

/// Perturbations between the snapshot and the workload, so that seeds sample the guest's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Perturbation {
    /// Sleep before the workload, in microseconds: moves the phase of the timer tick.
    pub delay_us: u64,
    /// Additional rounds of about a millisecond that the workload's process runs before it begins:
    /// moves it against other processes in the scheduler's account.
    pub spins: u64,
    /// Pages that a child process touches and holds: moves the physical layout.
    pub child_pages: u64,
    /// Forks that the child does first: moves slab and page free lists.
    pub child_forks: u64,
    /// Mappings that the workload's process has above its own: moves those within the tree of
    /// mappings. 0 for workloads that do not change mappings.
    pub mappings_above: u64,
    /// The same below.
    pub mappings_below: u64,
    /// Descriptors that the workload's process has open before it takes its own; 0 for workloads
    /// that take none while they are measured.
    pub descriptors: u64,
}

/// The task of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Task {
    /// Send the files that describe the guest.
    Environment,
    /// Send names and addresses of the kernel's functions.
    Symbols,
    /// Run one cell of the experiment on reverse mappings.
    Rmap {
        /// What is mapped, and how.
        case: String,
        /// How many processes map it.
        processes: u32,
        /// How many mappings each process has.
        mappings: u32,
    },
    /// Run one workload.
    Workload {
        /// Its name.
        name: String,
        /// Operations per iteration.
        operations: u64,
        /// Iterations before the measured ones.
        warm_up: u32,
        /// Measured iterations.
        iterations: u32,
        /// How many tasks do the operations at the same time, each all of them on a processor of
        /// its own.
        tasks: u32,
        /// Whether its processes may use all processors that the agent may; otherwise, outside of
        /// a guest, the agent keeps to the last.
        all_processors: bool,
        /// Kernel functions to count entries of with kprobes; empty for a measurement.
        probes: Vec<String>,
        /// Milliseconds between copies of the kernel's counters, 0 for copies before and after
        /// only; `None` for a measurement.
        monitors: Option<u64>,
        /// Nanoseconds between samples of where the processors are in the measured iterations,
        /// which come as the files `samples` and `symbols`; `None` for a measurement.
        sampling: Option<u64>,
    },
    /// Run an external tool. Samples are the ticks of each run; its output comes as files,
    /// `0/stdout`, `0/stderr` and so on for each run.
    Tool(ToolTask),
}

/// A job for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Binds the stream to this job: streams of other jobs are refused.
    pub id: u64,
    /// The clock.
    pub clock: Clock,
    /// The perturbations.
    pub perturbation: Perturbation,
    /// The task.
    pub task: Task,
}

/// A job that cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// It is longer than [`JOB_SIZE`].
    #[error("job of {0} bytes is longer than {JOB_SIZE}")]
    TooLong(usize),
    /// It is no job, or a damaged one.
    #[error("not a job: {0}")]
    Malformed(&'static str),
    /// It has another protocol version.
    #[error("job of protocol {0}, this agent speaks {PROTOCOL}")]
    Version(String),
}

impl Job {
    /// Returns the job as [`JOB_SIZE`] bytes.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn encode(&self) -> Result<Vec<u8>, JobError> {
        let Perturbation {
            delay_us,
            spins,
            child_pages,
            child_forks,
            mappings_above,
            mappings_below,
            descriptors,
        } = self.perturbation;
        let clock = match self.clock {
            Clock::Tsc => "tsc",
            Clock::Monotonic => "monotonic",
        };
        let mut words = vec![
            format!("id={:016x}", self.id),
            format!("clock={clock}"),
            format!("delay_us={delay_us}"),
            format!("spins={spins}"),
            format!("child_pages={child_pages}"),
            format!("child_forks={child_forks}"),
            format!("mappings_above={mappings_above}"),
            format!("mappings_below={mappings_below}"),
            format!("descriptors={descriptors}"),
        ];
        match &self.task {
            Task::Environment => words.push("task=environment".into()),
            Task::Symbols => words.push("task=symbols".into()),
            Task::Tool(tool) => {
                words.push("task=tool".into());
                words.extend(tool.lines());
            }
            Task::Rmap {
                case,
                processes,
                mappings,
            } => {
                words.push("task=rmap".into());
                words.push(format!("case={}", escape(case.as_bytes())));
                words.push(format!("processes={processes}"));
                words.push(format!("mappings={mappings}"));
            }
            Task::Workload {
                name,
                operations,
                warm_up,
                iterations,
                tasks,
                all_processors,
                probes,
                monitors,
                sampling,
            } => {
                words.push("task=workload".into());
                words.push(format!("name={}", escape(name.as_bytes())));
                words.push(format!("operations={operations}"));
                words.push(format!("warm_up={warm_up}"));
                words.push(format!("iterations={iterations}"));
                words.extend((*tasks > 1).then(|| format!("tasks={tasks}")));
                words.extend(all_processors.then(|| "processors=all".to_owned()));
                words.extend(monitors.map(|interval_ms| format!("monitors={interval_ms}")));
                words.extend(sampling.map(|period_ns| format!("sampling={period_ns}")));
                words.extend(
                    probes
                        .iter()
                        .map(|probe| format!("probe={}", escape(probe.as_bytes()))),
                );
            }
        }
        let body = words.join("\n");
        let mut out = format!(
            "{HEAD} {PROTOCOL} {:08x}\n{body}",
            crc32(&[body.as_bytes()])
        )
        .into_bytes();
        if out.len() > JOB_SIZE {
            return Err(JobError::TooLong(out.len()));
        }
        out.resize(JOB_SIZE, 0);
        Ok(out)
    }

    /// Reads an encoded job.
    ///
    /// # Errors
    /// If the bytes are not a job of this protocol version, whole and undamaged.
    pub fn decode(bytes: &[u8]) -> Result<Self, JobError> {
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        let text =
            std::str::from_utf8(&bytes[..end]).map_err(|_| JobError::Malformed("not text"))?;
        let (head, body) = text
            .split_once('\n')
            .ok_or(JobError::Malformed("no header"))?;
        let mut head = head.split(' ');
        if head.next() != Some(HEAD) {
            return Err(JobError::Malformed("no header"));
        }
        let version = head.next().unwrap_or_default();
        if version != PROTOCOL.to_string() {
            return Err(JobError::Version(version.to_owned()));
        }
        let crc = head
            .next()
            .and_then(|word| u32::from_str_radix(word, 16).ok());
        if crc != Some(crc32(&[body.as_bytes()])) {
            return Err(JobError::Malformed("checksum"));
        }
        Fields(body).job().ok_or(JobError::Malformed("fields"))
    }
}

/// The `name=value` lines of a job.
struct Fields<'a>(&'a str);

impl<'a> Fields<'a> {
    fn all(&self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix('='))
    }

    fn number<T: std::str::FromStr>(&self, name: &'a str) -> Option<T> {
        self.all(name).next()?.parse().ok()
    }

    /// The inner one is none without such a line, the outer one if it is no number.
    #[expect(clippy::option_option, reason = "an absent line is not a damaged one")]
    fn optional<T: std::str::FromStr>(&self, name: &'a str) -> Option<Option<T>> {
        self.all(name)
            .next()
            .map_or(Some(None), |word| word.parse().ok().map(Some))
    }

    fn text(word: &str) -> Option<String> {
        String::from_utf8(unescape(word)?).ok()
    }

    fn job(&self) -> Option<Job> {
        Some(Job {
            id: u64::from_str_radix(self.all("id").next()?, 16).ok()?,
            clock: match self.all("clock").next()? {
                "tsc" => Clock::Tsc,
                "monotonic" => Clock::Monotonic,
                _ => return None,
            },
            perturbation: Perturbation {
                delay_us: self.number("delay_us")?,
                spins: self.number("spins")?,
                child_pages: self.number("child_pages")?,
                child_forks: self.number("child_forks")?,
                mappings_above: self.number("mappings_above")?,
                mappings_below: self.number("mappings_below")?,
                descriptors: self.number("descriptors")?,
            },
            task: match self.all("task").next()? {
                "environment" => Task::Environment,
                "symbols" => Task::Symbols,
                "tool" => Task::Tool(ToolTask::from_body(self.0)?),
                "rmap" => Task::Rmap {
                    case: Self::text(self.all("case").next()?)?,
                    processes: self.number("processes")?,
                    mappings: self.number("mappings")?,
                },
                "workload" => Task::Workload {
                    name: Self::text(self.all("name").next()?)?,
                    operations: self.number("operations")?,
                    warm_up: self.number("warm_up")?,
                    iterations: self.number("iterations")?,
                    tasks: self.optional("tasks")?.unwrap_or(1),
                    all_processors: self.all("processors").next().is_some(),
                    probes: self.all("probe").map(Self::text).collect::<Option<_>>()?,
                    monitors: self.optional("monitors")?,
                    sampling: self.optional("sampling")?,
                },
                _ => return None,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, JOB_SIZE, Job, JobError, Perturbation, Task, ToolTask};

    fn job() -> Job {
        Job {
            id: 0xfeed_0000_0000_0001,
            clock: Clock::Tsc,
            perturbation: Perturbation {
                delay_us: 17,
                spins: 2,
                child_pages: 1000,
                child_forks: 10,
                mappings_above: 3,
                mappings_below: 11,
                descriptors: 70,
            },
            task: Task::Workload {
                name: "fault-anon".into(),
                operations: 2048,
                warm_up: 2,
                iterations: 16,
                tasks: 4,
                all_processors: true,
                probes: vec!["do_anonymous_page".into(), "odd name".into()],
                monitors: Some(250),
                sampling: Some(250_007),
            },
        }
    }

    #[test]
    fn job_round_trips_with_fixed_size() {
        let bytes = job().encode().unwrap();
        assert_eq!(bytes.len(), JOB_SIZE);
        assert_eq!(Job::decode(&bytes), Ok(job()));
        let cell = Job {
            task: Task::Rmap {
                case: "file".into(),
                processes: 10,
                mappings: 1000,
            },
            ..job()
        };
        assert_eq!(Job::decode(&cell.encode().unwrap()), Ok(cell));
        let environment = Job {
            task: Task::Environment,
            clock: Clock::Monotonic,
            ..job()
        };
        assert_eq!(Job::decode(&environment.encode().unwrap()), Ok(environment));
        let command = vec!["/bin/true".to_owned()];
        let tool = Job {
            task: Task::Tool(ToolTask {
                command,
                runs: 2,
                ..ToolTask::default()
            }),
            ..job()
        };
        assert_eq!(Job::decode(&tool.encode().unwrap()), Ok(tool));
    }

    #[test]
    fn damage_is_noticed() {
        let bytes = job().encode().unwrap();
        for at in 0..bytes.iter().position(|&b| b == 0).unwrap() {
            let mut bad = bytes.clone();
            bad[at] ^= 1;
            assert!(Job::decode(&bad).is_err(), "byte {at}");
        }
        assert_eq!(Job::decode(b""), Err(JobError::Malformed("no header")));
        assert_eq!(
            Job::decode(b"marvin-job 9 00000000\n"),
            Err(JobError::Version("9".into()))
        );
    }

    #[test]
    fn a_job_that_does_not_fit_is_refused() {
        let mut long = job();
        long.task = Task::Workload {
            name: "x".repeat(JOB_SIZE),
            operations: 1,
            warm_up: 0,
            iterations: 1,
            tasks: 1,
            all_processors: false,
            probes: vec![],
            monitors: None,
            sampling: None,
        };
        assert!(matches!(long.encode(), Err(JobError::TooLong(_))));
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>) {
            assert!(Job::decode(&bytes).is_err());
        }
    }
}
