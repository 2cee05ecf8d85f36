//! Workloads that misbehave, each in one way: what the host must cope with. Only its tests ask for
//! them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use super::region::{HUGE, PAGE, Region};
use super::{Failure, Made, Workload};
use crate::sys;

/// A workload made of what it does.
struct Act(fn(u64) -> io::Result<()>);

impl Workload for Act {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        (self.0)(operations)
    }
}

fn act(action: fn(u64) -> io::Result<()>) -> Made {
    Ok(Box::new(Act(action)))
}

/// Refuses where the agent is not PID 1: these harm the machine they run on.
fn act_in_guest(action: fn(u64) -> io::Result<()>) -> Made {
    if super::in_guest() {
        act(action)
    } else {
        Err(Failure::Unsupported(
            "only in a guest whose first process is the agent".to_owned(),
        ))
    }
}

fn console() -> io::Result<File> {
    OpenOptions::new().write(true).open("/dev/console")
}

/// misbehave-panic: the kernel panics.
pub(super) fn panic() -> Made {
    act_in_guest(|_| fs::write("/proc/sysrq-trigger", "c"))
}

/// misbehave-hang: never comes to an end.
pub(super) fn hang() -> Made {
    act(|_| {
        loop {
            std::hint::spin_loop();
        }
    })
}

/// misbehave-exit: ends the process as if all were well, leaving no result.
pub(super) fn exit() -> Made {
    act(|_| sys::exit_now(0))
}

/// misbehave-segv: is killed for touching memory that it may not touch.
pub(super) fn segv() -> Made {
    act(|_| {
        let page = Region::anonymous(PAGE, libc::MAP_PRIVATE)?;
        // SAFETY: nobody has a reference to the page.
        sys::check(unsafe { libc::mprotect(page.start().cast(), PAGE, libc::PROT_NONE) })?;
        page.touch(PAGE);
        Ok(())
    })
}

/// misbehave-oom: takes memory until the kernel kills it.
pub(super) fn oom() -> Made {
    act_in_guest(|_| {
        // Whatever else is there, this process is the one to go.
        fs::write("/proc/self/oom_score_adj", "1000")?;
        loop {
            let region = Region::anonymous(8 * HUGE, libc::MAP_PRIVATE)?;
            region.touch(PAGE);
            std::mem::forget(region);
        }
    })
}

/// misbehave-print: prints to the console for ever.
pub(super) fn print() -> Made {
    act_in_guest(|_| {
        let mut console = console()?;
        loop {
            console.write_all(
                b"And another line that nobody asked for, of many that will never end.\n",
            )?;
        }
    })
}

/// misbehave-garble: prints a damaged frame for each operation, and otherwise works.
pub(super) fn garble() -> Made {
    act_in_guest(|operations| {
        let mut console = console()?;
        for _ in 0..operations {
            console.write_all(b"#M1 0 samples 00000000 x\n")?;
        }
        Ok(())
    })
}

/// misbehave-fail: fails with an error.
pub(super) fn fail() -> Made {
    act(|_| Err(io::Error::other("failed on purpose")))
}

/// misbehave-unsupported: says that the kernel lacks something.
pub(super) fn unsupported() -> Made {
    Err(Failure::Unsupported("lacking on purpose".to_owned()))
}
