//! `marvin-crash`: PID 1 of a guest that exists to be dumped. Fills memory of every kind as the
//! kernel's command line says, reports, and then waits to be dumped, or panics; in the capture
//! kernel it brings out what /proc/vmcore holds.
//!
//! Nothing is measured here: this program is no part of the exact machine, and may use newer system
//! calls.
#![expect(
    unsafe_code,
    reason = "the guest's programs are made of system calls; each block says why it is sound"
)]

mod capture;
mod dirty;
mod disks;
mod kexec;
mod modules;
mod pattern;
mod words;

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use guest::stream::Sender;
use guest::{console, die_with_message, in_child, mount, ports, power_off};
use wire::Frame;

use crate::words::{End, Words};

fn main() {
    let error = match live() {
        Ok(never) => match never {},
        Err(error) => error,
    };
    die_with_message(&format!("crash: {error}"))
}

fn live() -> io::Result<std::convert::Infallible> {
    for (kind, target) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        mount(kind, target)?;
    }
    dirty::mount_tmpfs("/tmp")?;
    let words = Words::read(&fs::read_to_string("/proc/cmdline")?)?;
    let mut sender = Sender::new(console()?, 0);
    sender.send(&Frame::Hello {
        agent: guest::VERSION.to_owned(),
    })?;
    modules::load("/modules")?;
    // Only a kernel that was told where the memory of a crashed one is has this file
    // (fs/proc/vmcore.c).
    if Path::new("/proc/vmcore").exists() {
        report(&mut sender, "captured", &capture::capture(&words)?)?;
        sender.drain()?;
        power_off();
    }
    let figures = dirty::all(&words)?;
    if words.end == End::Kdump {
        kexec::load_crash_kernel()?;
    }
    report(&mut sender, "filled", &figures)?;
    sender.drain()?;
    end(words.end)
}

/// Sends a report and ends the stream: whoever waits for this guest knows now that it is done.
fn report(sender: &mut Sender, name: &str, text: &str) -> io::Result<()> {
    sender.send_file(name, text.as_bytes())?;
    sender.send_file("meminfo", &fs::read("/proc/meminfo")?)?;
    sender.send(&Frame::End)
}

fn end(end: End) -> io::Result<std::convert::Infallible> {
    // In the kernel's log as well, where a dump's reader finds it.
    fs::write(
        "/dev/kmsg",
        format!("marvin-crash: memory is filled, the end is {end:?}\n"),
    )?;
    match end {
        End::Stop => {
            in_child(|| ports::start_watchdog().map(|()| Vec::new()))?;
        }
        End::Panic | End::Kdump => fs::write("/proc/sysrq-trigger", "c")?,
    }
    loop {
        std::thread::sleep(Duration::from_secs(3600));
    }
}
