//! Pages that can be reclaimed on purpose: swap on zram, and a cgroup that only these pages are
//! charged to. Only in a guest that is ours alone.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;

use super::super::control_group::{ROOT, mount_groups};
use super::super::region::PAGE;
use super::super::{Failure, in_guest};
use crate::sys::{c, check};

const DEVICE: &str = "/dev/zram0";
const DISK_SIZE: &str = "/sys/block/zram0/disksize";
/// Swap space: more than the pages of any cell.
const SWAP_BYTES: usize = 128 * 1024 * 1024;
/// A group of the root, [`ROOT`].
const GROUP: &str = "/tmp/control-groups/rmap";

/// The swap, and the cgroup.
pub(crate) struct Pool(());

impl Pool {
    /// Makes both, where the guest has what it takes.
    pub(crate) fn new() -> Result<Self, Failure> {
        let lacks = |what: &str| Failure::Unsupported(format!("the guest has no {what}"));
        if !in_guest() {
            return Err(Failure::Unsupported("only in a guest".to_owned()));
        }
        if !fs::exists(DISK_SIZE)? {
            return Err(lacks("zram to swap to"));
        }
        fs::write(DISK_SIZE, SWAP_BYTES.to_string())?;
        make_swap(&OpenOptions::new().write(true).open(DEVICE)?)?;
        let device = c(DEVICE)?;
        // SAFETY: the path is a valid string that outlives the call.
        check(unsafe { libc::swapon(device.as_ptr(), 0) })?;
        mount_groups()?;
        fs::create_dir(GROUP)?;
        if !fs::exists(format!("{GROUP}/memory.reclaim"))? {
            return Err(Failure::Unsupported(
                "no memory.reclaim (Linux 5.19)".to_owned(),
            ));
        }
        Ok(Self(()))
    }

    /// Does something whose pages are charged to the cgroup.
    pub(crate) fn charging<T>(&self, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let move_to = |group: &str| fs::write(format!("{group}/cgroup.procs"), "0");
        move_to(GROUP)?;
        let done = action();
        move_to(ROOT)?;
        done
    }

    /// Has so many pages of the cgroup reclaimed, at most.
    pub(crate) fn reclaim(&self, pages: usize) -> io::Result<()> {
        match fs::write(
            format!("{GROUP}/memory.reclaim"),
            (pages * PAGE).to_string(),
        ) {
            // Less could be reclaimed than was asked for: whoever counts sees how much.
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) => Ok(()),
            done => done,
        }
    }

    /// Returns how many pages have been written to swap.
    pub(crate) fn swapped_out(&self) -> io::Result<u64> {
        let counters = fs::read_to_string("/proc/vmstat")?;
        let count = counters
            .lines()
            .find_map(|line| line.strip_prefix("pswpout ")?.parse().ok());
        count.ok_or_else(|| io::Error::other("/proc/vmstat has no pswpout"))
    }
}

/// Writes what mkswap(8) does: `union swap_header` of include/linux/swap.h, version 1, at byte
/// 1024, and the magic word at the end of the page.
fn make_swap(device: &File) -> io::Result<()> {
    let mut page = [0; PAGE];
    let last = u32::try_from(SWAP_BYTES / PAGE - 1).map_err(io::Error::other)?;
    page[1024..1028].copy_from_slice(&1_u32.to_ne_bytes());
    page[1028..1032].copy_from_slice(&last.to_ne_bytes());
    page[PAGE - 10..].copy_from_slice(b"SWAPSPACE2");
    device.write_all_at(&page, 0)
}
