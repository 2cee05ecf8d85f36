//! This host, with the kernel that it runs. Boots nothing: a replicate is the boot that the host is
//! in, so all that is measured until the next reboot belongs to one replicate.
//!
//! The agent runs as an ordinary process of the caller. It keeps to the last processor, or to as
//! many of the last as its job has tasks; workloads of several processes, and tools, use all. What
//! it may not do without privileges, the workloads say. From the first boot until the last is
//! released, the host is set for measuring (`prepared`).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{
    Capabilities, FailureReason, GuestConfig, Machine, MachineKind, Stage, SubjectFailure,
};
use subprocess::{Program, ProgramError};
use wire::{Job, Task};

use crate::agent_process::{machine_for, read_end, refuse_guest_config};
use crate::backend::{Backend, BootOutcome, Booted, Guest, JobEnd, Observe};
use crate::host::{allowed_processors, processor_count, processor_name};
use crate::prepared::{LOCK, Preparation, Prepared, report_frame, undo_folder};
use crate::settings::{Limits, ScratchFolder, Settings};
use crate::{MachineError, hash, identify, load};

/// The id of the present boot (drivers/char/random.c of the kernel).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Digits of its hash that number the boot: few enough to read, enough to tell boots of one host
/// apart.
const DIGITS: usize = 6;

#[derive(Debug)]
pub struct Local {
    machine: Machine,
    agent: PathBuf,
    processor: usize,
    job_s: u64,
    disturbed_share: f64,
    guest_config: GuestConfig,
    preparation: Arc<Preparation>,
    /// Holds the agent's file.
    scratch: Arc<ScratchFolder>,
}

/// The kernel that it runs.
#[derive(Debug)]
struct Here {
    local: Arc<Local>,
    prepared: Prepared,
}

/// Returns a number of the boot that this host is in: the replicate of everything measured until
/// the next one.
#[must_use]
pub fn this_boot() -> u64 {
    let id = fs::read(BOOT_ID).unwrap_or_default();
    u64::from_str_radix(&hash(&[&id])[..DIGITS], 16).unwrap_or(0)
}

impl Local {
    /// Writes the agent where it can be executed.
    ///
    /// # Errors
    /// If the agent cannot describe this host or the data directory cannot be written.
    pub fn open(settings: &Settings) -> Result<Self, MachineError> {
        let scratch = Arc::new(ScratchFolder::new(&settings.home)?);
        let agent = scratch.path().join("agent");
        fs::write(&agent, &settings.programs.agent)
            .and_then(|()| fs::set_permissions(&agent, fs::Permissions::from_mode(0o700)))
            .map_err(MachineError::io("write", &agent))?;
        let processor = allowed_processors().into_iter().last().unwrap_or(0);
        let machine = identity(&settings.programs.agent, processor)?;
        let Limits {
            job_s,
            disturbed_share,
            ..
        } = settings.limits;
        let preparation = Arc::new(Preparation::open(
            agent.clone(),
            &undo_folder(&settings.home),
            Path::new(LOCK),
        )?);
        Ok(Self {
            machine,
            agent,
            processor,
            job_s,
            disturbed_share,
            guest_config: GuestConfig::PLAIN,
            preparation,
            scratch,
        })
    }
}

impl Local {
    /// Returns lines about the processors of jobs, for the environment of a run.
    fn describe_processors(&self) -> String {
        let all: Vec<String> = allowed_processors().iter().map(usize::to_string).collect();
        format!(
            "agent.processor={}\nagent.processors={}\n",
            self.processor,
            all.join(", ")
        )
    }
}

impl Backend for Local {
    fn identity(&self) -> &Machine {
        &self.machine
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            processors: processor_count(),
            ..MachineKind::Local.capabilities()
        }
    }

    fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        _: Option<&Path>,
    ) -> Result<Arc<dyn Backend>, MachineError> {
        Ok(Arc::new(Self {
            machine: machine_for(&self.machine, guest_config, false)?,
            agent: self.agent.clone(),
            processor: self.processor,
            job_s: self.job_s,
            disturbed_share: self.disturbed_share,
            guest_config: guest_config.clone(),
            preparation: Arc::clone(&self.preparation),
            scratch: Arc::clone(&self.scratch),
        }))
    }

    fn boot(self: Arc<Self>, _: &Guest<'_>, _: u64) -> Result<BootOutcome, MachineError> {
        let prepared = Arc::clone(&self.preparation).prepare()?;
        Ok(BootOutcome::Ready(Box::new(Here {
            local: self,
            prepared,
        })))
    }
}

impl Booted for Here {
    fn remark(&self) -> Option<&str> {
        self.prepared.remark()
    }

    fn run(&self, job: &Job, _: Observe<'_>) -> Result<JobEnd, MachineError> {
        let bytes = job.encode()?;
        if let Some(refused) = refuse_guest_config(&self.local.guest_config) {
            return Ok(refused);
        }
        let program = Program::new(&self.local.agent)
            .args(["job"])
            .without_variables()
            .deadline_s(self.local.job_s);
        let mut disturbance = None;
        let (stream, console) = match program.fed(|input| input.write_all(&bytes)) {
            Ok((ended, _)) => {
                let (mut stream, console) = read_end(&ended, job.id);
                if let Ok(stream) = &mut stream {
                    disturbance = load::take_disturbance(stream, self.local.disturbed_share);
                    if job.task == Task::Environment {
                        stream.frames.push(self.prepared.report_frame());
                        stream
                            .frames
                            .push(report_frame(&self.local.describe_processors()));
                    }
                }
                (stream, console)
            }
            Err(ProgramError::Deadline { .. }) => {
                let stage = Stage::Workload;
                let reason = FailureReason::Hung;
                (
                    Err(SubjectFailure {
                        stage,
                        reason,
                        console_tail: String::new(),
                    }),
                    Vec::new(),
                )
            }
            Err(ProgramError::Io { source, .. }) => {
                return Err(MachineError::io("run", &self.local.agent)(source));
            }
            Err(ProgramError::Missing(_) | ProgramError::NoLoader(_)) => {
                let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
                return Err(MachineError::io("run", &self.local.agent)(missing));
            }
        };
        Ok(JobEnd {
            disturbance,
            ..JobEnd::unobserved(stream, console)
        })
    }

    fn release(self: Box<Self>) -> Result<(), MachineError> {
        self.prepared.release()
    }
}

fn identity(agent: &[u8], processor: usize) -> Result<Machine, MachineError> {
    let memory = format!("{} GiB", memory_gib(&read_trimmed("/proc/meminfo")));
    let name = processor_name();
    let count = allowed_processors().len();
    let product = format!(
        "{} {}",
        read_trimmed("/sys/class/dmi/id/sys_vendor"),
        read_trimmed("/sys/class/dmi/id/product_name")
    );
    let fingerprint = [
        ("agent.processor", processor.to_string()),
        ("agent.sha256", hash(&[agent])),
        (
            "host.id",
            hash(&[read_trimmed("/etc/machine-id").as_bytes()]),
        ),
        ("host.memory", memory),
        ("host.processor", name.clone()),
        ("host.processors", count.to_string()),
        ("host.product", product.trim().to_owned()),
    ];
    let fingerprint = fingerprint
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
    identify(
        MachineKind::Local,
        format!("this host, {name}, agent on processor {processor}"),
        fingerprint,
    )
}

fn read_trimmed(path: &str) -> String {
    fs::read_to_string(path)
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns the memory in GiB, rounded up: what a kernel reserves of it differs between kernels, and
/// is less.
fn memory_gib(meminfo: &str) -> u64 {
    let total = meminfo.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    });
    total.map_or(0, |kib: u64| kib.div_ceil(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::memory_gib;

    #[test]
    fn memory_is_that_of_the_modules() {
        let kernels = [
            "MemTotal:       16283944 kB\nMemFree: 1 kB\n",
            "MemTotal:       16011004 kB\n",
        ];
        assert_eq!(kernels.map(memory_gib), [16, 16]);
        assert_eq!(memory_gib(""), 0);
    }
}
