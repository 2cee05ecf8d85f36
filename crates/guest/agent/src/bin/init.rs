//! `marvin-init`: PID 1 from boot to the workload. Mounts, says hello, lets the guest settle and
//! has it stopped for the snapshot; when it goes on, reads the job, disturbs the guest as the job
//! says, and hands over to the agent.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use guest::clock::sleep_to_round_point;
use guest::perturb::perturb;
use guest::stream::Sender;
use guest::{JOB, console, die_with_message, in_child, loopback_up, mount, ports, write_settings};
use wire::{Frame, Job};

/// Guest time from the first word to the watchdog's start: what boot leaves running in the
/// background has ended by then.
const SETTLE: Duration = Duration::from_secs(2);
/// Guest time from there on, in the middle of which the watchdog stops the machine.
const STOP: Duration = Duration::from_secs(4);
/// Name of the job's fw_cfg file.
const JOB_FILE: &str = "opt/marvin/job";
/// The program that goes on. It is started just after a timer tick, so that it is ready before the
/// next.
const AGENT: &str = "/agent";

fn main() {
    let error = match run() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    die_with_message(&format!("init: {error}"))
}

fn run() -> io::Result<std::convert::Infallible> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
    ] {
        mount(kind, target)?;
    }
    Sender::new(console()?, 0).send(&Frame::Hello {
        agent: guest::VERSION.to_owned(),
    })?;
    loopback_up()?;
    write_settings()?;
    std::thread::sleep(SETTLE);
    in_child(|| ports::start_watchdog().map(|()| Vec::new())).map_err(|error| {
        io::Error::other(format!(
            "I/O ports for user space (CONFIG_X86_IOPL_IOPERM): {error}"
        ))
    })?;
    std::thread::sleep(STOP);
    let bytes = in_child(|| ports::read_job(JOB_FILE))?;
    let job = Job::decode(&bytes).map_err(io::Error::other)?;
    std::fs::write(JOB, &bytes)?;
    perturb(&job.perturbation)?;
    sleep_to_round_point(0, 0)?;
    // The words of the kernel's command line that it did not know go on to where they are read.
    Err(Command::new(AGENT).args(std::env::args_os().skip(1)).exec())
}
