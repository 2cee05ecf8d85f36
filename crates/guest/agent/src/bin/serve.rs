//! `marvin-serve`: PID 1 of guests that do one job after the other in one boot. Mounts, says hello
//! on the console, then reads jobs from the second serial line; a process of its own does each job
//! and sends its frames there.
#![expect(
    unsafe_code,
    reason = "terminal settings are system calls; each block says why it is sound"
)]

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::process::Command;

use guest::stream::Sender;
use guest::sys::check;
use guest::{IN_GUEST, JOB, console, die_with_message, loopback_up, mount, write_settings};
use wire::{Frame, JOB_END, JOB_SIZE};

/// The line on which jobs come and frames go.
const JOBS: &str = "/dev/ttyS1";
/// The program that does a job.
const AGENT: &str = "/agent";

fn main() {
    let error = match live() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    die_with_message(&format!("serve: {error}"))
}

fn live() -> io::Result<std::convert::Infallible> {
    for (kind, target) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/tmp"),
    ] {
        mount(kind, target)?;
    }
    loopback_up()?;
    write_settings()?;
    let mut jobs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(JOBS)
        .map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("a second serial line ({JOBS}): {error}"),
            )
        })?;
    make_raw(&jobs)?;
    Sender::new(console()?, 0).send(&Frame::Hello {
        agent: guest::VERSION.to_owned(),
    })?;
    let mut job = vec![0; JOB_SIZE];
    loop {
        jobs.read_exact(&mut job)?;
        fs::write(JOB, &job)?;
        // An agent that fails sends no end of its stream, so its exit status says nothing more.
        Command::new(AGENT)
            .arg("job")
            .env(IN_GUEST, "1")
            .stdin(File::open(JOB)?)
            .stdout(jobs.try_clone()?)
            .status()?;
        jobs.write_all(&[JOB_END])?;
    }
}

/// Makes a serial line pass all bytes as they are.
fn make_raw(line: &File) -> io::Result<()> {
    // SAFETY: a termios of zeroes is a valid value of the C struct.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: `settings` is valid for the calls, and `line` is open.
    check(unsafe { libc::tcgetattr(line.as_raw_fd(), &raw mut settings) })?;
    // SAFETY: as above; cfmakeraw only changes the struct.
    unsafe { libc::cfmakeraw(&raw mut settings) };
    // SAFETY: as above.
    check(unsafe { libc::tcsetattr(line.as_raw_fd(), libc::TCSANOW, &raw const settings) })
        .map(|_| ())
}
