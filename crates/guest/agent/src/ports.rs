//! I/O ports of the exact machine: the watchdog that stops it and the fw_cfg port that holds the
//! job.
//!
//! Layouts: QEMU hw/watchdog/wdt_ib700.c and docs/specs/fw_cfg.rst. A process that ever had ports
//! open pays for it at each system call, so all of this belongs into short-lived children.

use std::arch::asm;
use std::io;

use wire::JOB_SIZE;

use crate::sys::check;

/// The ib700 watchdog: writing starts it.
const WATCHDOG: u16 = 0x443;
/// What it is written with: the index of 2 s in its table of times.
const IN_2_S: u8 = 14;
/// fw_cfg: 16-bit selector, and data one byte at a time at the port after it.
const FW_CFG: u16 = 0x510;
/// Selector of the file directory: a big-endian count, then entries of 64 bytes.
const FILE_DIRECTORY: u16 = 0x19;
const ENTRY_SIZE: usize = 64;
/// Most directory entries that are looked at.
const ENTRIES_MAX: u32 = 256;

/// Has the machine stopped two seconds from now.
///
/// By a timer and not by a port that stops at once: QEMU's main loop may or may not move the clock
/// of a processor that has just been stopped to its next timer, before it stops the clock as well,
/// so that two boots would differ. When a timer stops a machine whose processor is idle, one thread
/// does all of it.
pub fn start_watchdog() -> io::Result<()> {
    open(WATCHDOG, 1)?;
    // SAFETY: the port was opened above; the watchdog does not touch memory.
    unsafe {
        asm!("out dx, al", in("dx") WATCHDOG, in("al") IN_2_S, options(nomem, nostack, preserves_flags));
    }
    Ok(())
}

/// Returns the job.
pub fn read_job(name: &str) -> io::Result<Vec<u8>> {
    open(FW_CFG, 2)?;
    let selector =
        find_file(name).ok_or_else(|| io::Error::other(format!("no fw_cfg file {name}")))?;
    select(selector);
    let mut job = vec![0; JOB_SIZE];
    read(&mut job);
    Ok(job)
}

fn open(port: u16, count: u64) -> io::Result<()> {
    // SAFETY: ioperm only changes this process's port permissions.
    check(unsafe { libc::ioperm(u64::from(port), count, 1) }).map(|_| ())
}

fn find_file(name: &str) -> Option<u16> {
    select(FILE_DIRECTORY);
    let mut count = [0; 4];
    read(&mut count);
    // All entries are read whatever their order, so that the position of ours does not change the
    // count of instructions.
    let mut found = None;
    for _ in 0..u32::from_be_bytes(count).min(ENTRIES_MAX) {
        let mut entry = [0; ENTRY_SIZE];
        read(&mut entry);
        let end = entry[8..]
            .iter()
            .position(|&b| b == 0)
            .map_or(ENTRY_SIZE, |end| 8 + end);
        if &entry[8..end] == name.as_bytes() {
            found = Some(u16::from_be_bytes([entry[4], entry[5]]));
        }
    }
    found
}

fn select(selector: u16) {
    // SAFETY: `read_job` has opened the port; fw_cfg accessed by port does not touch memory.
    unsafe {
        asm!("out dx, ax", in("dx") FW_CFG, in("ax") selector, options(nomem, nostack, preserves_flags));
    }
}

fn read(buffer: &mut [u8]) {
    for byte in buffer {
        let value: u8;
        // SAFETY: as above.
        unsafe {
            asm!("in al, dx", in("dx") FW_CFG + 1, out("al") value, options(nomem, nostack, preserves_flags));
        }
        *byte = value;
    }
}
