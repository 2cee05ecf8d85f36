//! I/O ports of the exact machine: the pvpanic port that stops it and the fw_cfg port that holds the job.
//!
//! Layouts: QEMU docs/specs/pvpanic.rst and docs/specs/fw_cfg.rst.

use std::arch::asm;
use std::io;

use wire::JOB_SIZE;

use crate::sys::check;

/// pvpanic: writing a bit tells QEMU; bit 0 is "panicked", which `-action panic=pause` turns into a stop.
const PVPANIC: u16 = 0x505;
/// fw_cfg: 16-bit selector, and data one byte at a time at the port after it.
const FW_CFG: u16 = 0x510;
/// Selector of the file directory: a big-endian count, then entries of 64 bytes.
const FILE_DIRECTORY: u16 = 0x19;
const ENTRY_SIZE: usize = 64;
/// Most directory entries that are looked at.
const ENTRIES_MAX: u32 = 256;

/// Stops the machine at this very instruction, then returns the job that was there when it was resumed.
///
/// Call it in a process of its own: a process that ever had ports open pays for it at each system call.
pub(crate) fn stop_and_read_job(name: &str) -> io::Result<Vec<u8>> {
    for (port, count) in [(PVPANIC, 1), (FW_CFG, 2)] {
        // SAFETY: ioperm only changes this process's port permissions.
        check(unsafe { libc::ioperm(u64::from(port), count, 1) })?;
    }
    // SAFETY: the ports were opened above; pvpanic and fw_cfg have no effect on memory when accessed by port.
    unsafe {
        asm!("out dx, al", in("dx") PVPANIC, in("al") 1u8, options(nomem, nostack, preserves_flags));
    }
    let selector =
        find_file(name).ok_or_else(|| io::Error::other(format!("no fw_cfg file {name}")))?;
    select(selector);
    let mut job = vec![0; JOB_SIZE];
    read(&mut job);
    Ok(job)
}

fn find_file(name: &str) -> Option<u16> {
    select(FILE_DIRECTORY);
    let mut count = [0; 4];
    read(&mut count);
    // All entries are read whatever their order, so that the position of ours does not change the count of
    // instructions.
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
    // SAFETY: the port is open, see `stop_and_read_job`.
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
