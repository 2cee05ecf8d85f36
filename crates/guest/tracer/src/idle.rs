//! Keeps the clock of an idle guest exact.
//!
//! When the guest halts, QEMU's main loop moves the clock on to the next timer (softmmu/icount.c of
//! QEMU 7.2, `icount_start_warp_timer`). It asks whether the processor is halted without asking
//! whether the instructions that led there are on the clock already: a main loop that happens to
//! pass between the two, `helper_hlt` and `icount_process_data`, moves the clock by too much, and
//! all that follows is later than in another run.
//!
//! So the instructions are put on the clock before the processor halts, by QEMU's own
//! `icount_update`: HLT ends its block, whose instructions are all counted when it begins. Then it
//! does not matter when the main loop passes.
//!
//! A QEMU that cannot load modules does not show that function to plugins. There, the processor
//! waits before it halts until the main loop sleeps and nothing can wake it. It only passes when
//! something has woken it, and what wakes it is the guest's last timer, by an eventfd. Both must be
//! looked at, in this order: a thread that another processor is just about to wake still looks
//! asleep (TASK_WAKING, `ttwu_queue_wakelist` in kernel/sched/core.c), but what woke it is in
//! the eventfd until it has run.

use std::ffi::c_void;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use crate::api::Clock;

/// What the system says of the main thread: the number of the call it sleeps in, or that it runs.
static MAIN_THREAD: OnceLock<File> = OnceLock::new();
/// What the system says of each eventfd of this process.
static EVENTS: OnceLock<Vec<File>> = OnceLock::new();

/// System calls in which the main loop waits for events: poll and ppoll
/// (arch/x86/entry/syscalls/syscall_64.tbl).
const WAITING: [&[u8]; 2] = [b"7 ", b"271 "];
/// What stands before the value of an eventfd, in hexadecimal (proc(5), fdinfo).
const VALUE: &[u8] = b"eventfd-count:";

/// QEMU's functions that put instructions on the clock.
static CLOCK: OnceLock<Clock> = OnceLock::new();

/// Finds what puts instructions on the clock, or opens what tells whether the main loop sleeps.
pub(crate) fn prepare() -> Result<(), String> {
    if let Some(clock) = Clock::find() {
        drop(CLOCK.set(clock));
        return Ok(());
    }
    // The main loop runs on the thread that the process began with.
    let path = format!("/proc/self/task/{}/syscall", std::process::id());
    let file = File::open(&path).map_err(|error| format!("failed to open {path}: {error}"))?;
    sleeps(&file).map_err(|error| format!("failed to read {path}: {error}"))?;
    drop(MAIN_THREAD.set(file));
    Ok(())
}

/// Tells whether an instruction halts the processor: HLT, or MWAIT, which QEMU treats alike (Intel
/// SDM, volume 2).
pub(crate) fn is_halt(bytes: &[u8]) -> bool {
    matches!(bytes, [0xf4] | [0x0f, 0x01, 0xc9])
}

/// Called before the processor halts.
pub(crate) extern "C" fn before_halt(_processor: u32, _: *mut c_void) {
    match CLOCK.get() {
        Some(clock) => clock.update(),
        None => wait(),
    }
}

/// Waits until the main loop sleeps. Whoever limits QEMU's processor time limits this as well.
fn wait() {
    let Some(main) = MAIN_THREAD.get() else {
        return;
    };
    // QEMU makes its eventfds before the guest starts.
    let events = EVENTS.get_or_init(eventfds);
    // A file that could be read once is not unreadable later; if it were, waiting for it would be
    // for ever.
    while events.iter().any(is_set) || matches!(sleeps(main), Ok(false)) {
        std::thread::yield_now();
    }
}

fn sleeps(file: &File) -> io::Result<bool> {
    let mut line = [0; 64];
    let length = file.read_at(&mut line, 0)?;
    Ok(WAITING.iter().any(|call| line[..length].starts_with(call)))
}

/// Opens what the system says of the eventfds that there are.
fn eventfds() -> Vec<File> {
    let numbers = fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let files = numbers.filter_map(|entry| {
        let is_event = fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().contains("[eventfd]"));
        is_event.then(|| {
            File::open(format!(
                "/proc/self/fdinfo/{}",
                entry.file_name().to_string_lossy()
            ))
            .ok()
        })?
    });
    files.collect()
}

/// Tells whether an eventfd was written to and has not been read.
fn is_set(file: &File) -> bool {
    let mut text = [0; 512];
    let Ok(length) = file.read_at(&mut text, 0) else {
        return false;
    };
    let value = text[..length]
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(VALUE));
    value.is_some_and(|digits| {
        digits
            .iter()
            .any(|digit| !matches!(digit, b'0' | b' ' | b'\t'))
    })
}

#[cfg(test)]
mod tests {
    use super::{eventfds, is_halt, is_set, sleeps};
    use std::fs::File;
    use std::io::{Read, Write};
    use std::process::{Command, Stdio};

    #[test]
    fn halts_are_known_from_other_instructions() {
        assert!(is_halt(&[0xf4]) && is_halt(&[0x0f, 0x01, 0xc9]));
        assert!(!is_halt(&[0x90]) && !is_halt(&[0xf4, 0x00]) && !is_halt(&[]));
    }

    #[test]
    fn an_eventfd_is_set_until_it_is_read() {
        unsafe extern "C" {
            fn eventfd(value: u32, flags: i32) -> i32;
        }
        use std::os::fd::{FromRawFd, OwnedFd};
        // SAFETY: eventfd(2) takes two numbers.
        let number = unsafe { eventfd(0, 0) };
        // SAFETY: a descriptor that was just opened and belongs to nobody else.
        let mut file = File::from(unsafe { OwnedFd::from_raw_fd(number) });
        let set = || eventfds().iter().any(is_set);
        assert!(!set());
        file.write_all(&16_u64.to_ne_bytes()).unwrap();
        assert!(set());
        file.read_exact(&mut [0; 8]).unwrap();
        assert!(!set());
    }

    #[test]
    fn waiting_thread_differs_from_a_running_one() {
        // Python's poll() is the system call; `sleep` waits in another one.
        let script = "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let file = File::open(format!("/proc/{}/syscall", child.id())).unwrap();
        let began = (0..1000).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            sleeps(&file).unwrap()
        });
        drop(child.stdin.take());
        child.wait().unwrap();
        let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        let other =
            sleeps(&File::open(format!("/proc/{}/syscall", sleeper.id())).unwrap()).unwrap();
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
        assert!(began && !other);
    }
}
