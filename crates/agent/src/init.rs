//! Being PID 1 of the exact machine: mount, say hello, settle, stop for the snapshot, do the job, switch off.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::time::Duration;

use wire::{Frame, Job, Task};

use crate::measure::{self, Plan};
use crate::stream::Sender;
use crate::sys::{self, Fork, c, check};
use crate::workloads::Failure;
use crate::{environment, perturb, ports, probes};

/// Guest time from the first word to the watchdog's start: what boot leaves running in the background has ended by then.
const SETTLE: Duration = Duration::from_secs(2);
/// Guest time from there on, in the middle of which the watchdog stops the machine.
const STOP: Duration = Duration::from_secs(4);
/// Name of the job's fw_cfg file.
const JOB_FILE: &str = "opt/marvin/job";
const AGENT: &str = env!("CARGO_PKG_VERSION");

/// Runs the whole life of PID 1; ends with the machine.
pub(crate) fn main() -> ! {
    if let Err(error) = live() {
        // There is nobody to return an error to but the console.
        if let Ok(console) = console() {
            let failed = Frame::Failed(format!("agent: {error}"));
            let mut sender = Sender::new(console, 0);
            if sender.send(&failed).and_then(|()| sender.drain()).is_err() {
                power_off();
            }
        }
    }
    power_off()
}

fn live() -> io::Result<()> {
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")] {
        mount(kind, target)?;
    }
    Sender::new(console()?, 0).send(&Frame::Hello { agent: AGENT.to_owned() })?;
    loopback_up()?;
    std::thread::sleep(SETTLE);
    in_child(|| ports::start_watchdog().map(|()| Vec::new()))?;
    std::thread::sleep(STOP);
    let bytes = in_child(|| ports::read_job(JOB_FILE))?;
    let job = Job::decode(&bytes).map_err(io::Error::other)?;
    perturb::perturb(&job.perturbation)?;
    let frames = work(&job)?;
    // Only the gravest messages may come between the frames.
    fs::write("/proc/sys/kernel/printk", "1")?;
    let mut sender = Sender::new(console()?, job.id);
    sender.send(&Frame::Hello { agent: AGENT.to_owned() })?;
    for frame in frames {
        match frame {
            Frame::File { name, bytes } => sender.send_file(&name, &bytes)?,
            frame => sender.send(&frame)?,
        }
    }
    sender.send(&Frame::End)?;
    sender.drain()
}

fn work(job: &Job) -> io::Result<Vec<Frame>> {
    let file = |(name, bytes)| Frame::File { name, bytes };
    match &job.task {
        Task::Environment => Ok(environment::copy().into_iter().map(file).collect()),
        Task::Workload { name, operations, warm_up, iterations, probes } => {
            if !probes.is_empty()
                && let Err(error) = probes::set(probes)
            {
                return Ok(vec![Frame::Unsupported(format!("kprobes: {error}"))]);
            }
            let plan = Plan { clock: job.clock, operations: *operations, warm_up: *warm_up, iterations: *iterations };
            let mut frames = vec![in_worker(name, &plan)?];
            if !probes.is_empty() {
                frames.push(file(("kprobe_profile".to_owned(), probes::profile()?)));
            }
            Ok(frames)
        }
    }
}

/// Runs the workload in a process of its own, so that its death is a result and not the end of PID 1.
fn in_worker(name: &str, plan: &Plan) -> io::Result<Frame> {
    let report = in_child(|| {
        let (tag, text) = match measure::measure(name, plan) {
            Ok(ticks) => ('s', ticks.iter().map(u64::to_string).collect::<Vec<_>>().join(",")),
            Err(Failure::Unsupported(why)) => ('u', why),
            Err(Failure::Error(error)) => ('f', error.to_string()),
        };
        Ok(format!("{tag}{text}").into_bytes())
    });
    let text = match report.map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(error)) => return Err(io::Error::other(error)),
        Err(error) => return Ok(Frame::Died(error.to_string())),
    };
    Ok(match text.split_at_checked(1) {
        Some(("s", ticks)) => Frame::Samples(ticks.split(',').filter_map(|tick| tick.parse().ok()).collect()),
        Some(("u", why)) => Frame::Unsupported(why.to_owned()),
        Some(("f", what)) => Frame::Failed(what.to_owned()),
        _ => Frame::Died("the workload left without a word".to_owned()),
    })
}

/// Does something in a child process and returns the bytes that it made there.
fn in_child(action: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    let (mut receiver, mut sender) = io::pipe()?;
    match sys::fork()? {
        Fork::Child => {
            drop(receiver);
            let code = match action().and_then(|bytes| sender.write_all(&bytes)) {
                Ok(()) => 0,
                Err(error) => error.raw_os_error().filter(|code| (1..=255).contains(code)).unwrap_or(255),
            };
            sys::exit_now(code)
        }
        Fork::Parent(pid) => {
            drop(sender);
            let mut bytes = Vec::new();
            receiver.read_to_end(&mut bytes)?;
            match sys::bad_end(sys::wait_for(pid)?) {
                None => Ok(bytes),
                Some(how) => Err(io::Error::other(how)),
            }
        }
    }
}

/// Mounts a file system without a device; one that is there already is fine.
pub(crate) fn mount(kind: &str, target: &str) -> io::Result<()> {
    fs::create_dir_all(target)?;
    let (kind, target) = (c(kind)?, c(target)?);
    // SAFETY: the strings are valid and outlive the call; no data is passed.
    let result = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, std::ptr::null()) };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EBUSY) => {
            Err(io::Error::new(error.kind(), format!("mount {target:?}: {error}")))
        }
        _ => Ok(()),
    }
}

fn console() -> io::Result<File> {
    let open = |path| OpenOptions::new().write(true).open(path);
    open("/dev/ttyS0").or_else(|_| open("/dev/console"))
}

fn loopback_up() -> io::Result<()> {
    // SAFETY: socket takes no memory of ours.
    let socket = check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })? as i32;
    // SAFETY: an ifreq of zeroes is a valid value of the C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    // SAFETY: SIOCSIFFLAGS reads an ifreq, which outlives the call; the socket is open.
    let result = check(unsafe { libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request) });
    // SAFETY: the socket is ours and not used again.
    unsafe { libc::close(socket) };
    result.map(|_| ())
}

/// Ends the machine: `reboot=t` and `-no-reboot` make a reboot the end of QEMU.
fn power_off() -> ! {
    // SAFETY: reboot takes no memory of ours; PID 1 is allowed to.
    unsafe { libc::reboot(libc::RB_AUTOBOOT) };
    // A kernel that refuses to reboot ends by the death of PID 1.
    sys::exit_now(0)
}
