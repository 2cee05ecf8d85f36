//! What there is to reclaim with: swap on zram or on a disk, a disk without content, the choice of
//! the reclaim algorithm.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::sys::{c, check};
use crate::workloads::region::PAGE;
use crate::workloads::{Failure, in_guest};

const ZRAM: &str = "/sys/block/zram0";
const NULL_BLK: &str = "/dev/nullb0";
const GENERATIONS: &str = "/sys/kernel/mm/lru_gen/enabled";

/// Where the header of a swap area has its fields, and what stands at the end of its first page
/// (struct swap_header of include/linux/swap.h).
const VERSION_AT: usize = 1024;
const LAST_PAGE_AT: usize = 1028;
const MAGIC: &[u8; 10] = b"SWAPSPACE2";

/// How the kernel finds what to reclaim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workloads) enum Generations {
    /// As it was booted.
    AsBooted,
    /// By generations (MGLRU).
    On,
    /// By active and inactive lists.
    Off,
}

impl Generations {
    /// Has the kernel do so.
    pub(super) fn set(self) -> Result<(), Failure> {
        let word = match self {
            Self::AsBooted => return Ok(()),
            Self::On => "y",
            Self::Off => "n",
        };
        match (fs::write(GENERATIONS, word), self) {
            // Where there is no choice there are no generations.
            (Err(error), Self::Off) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            (Err(error), _) => Err(Failure::Unsupported(format!(
                "no MGLRU (CONFIG_LRU_GEN): {GENERATIONS}: {error}"
            ))),
            (Ok(()), _) => Ok(()),
        }
    }
}

/// Returns the bytes of memory that the guest has (MemTotal).
pub(super) fn memory() -> io::Result<usize> {
    let text = fs::read_to_string("/proc/meminfo")?;
    let kib = text.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    });
    kib.map(|kib: usize| kib * 1024)
        .ok_or_else(|| io::Error::other("/proc/meminfo has no MemTotal"))
}

/// Refuses to go on where memory and disks are not ours.
pub(super) fn ours_alone() -> Result<(), Failure> {
    if in_guest() {
        Ok(())
    } else {
        Err(Failure::Unsupported("needs a guest of its own".to_owned()))
    }
}

/// Swaps to zram, which holds as much as the guest has memory.
pub(super) fn on_zram() -> Result<(), Failure> {
    if !Path::new(ZRAM).exists() {
        return Err(missing("zram", ZRAM));
    }
    // Kernels differ in their default. One that has only another takes that: it says so in the
    // environment's stead.
    drop(fs::write(format!("{ZRAM}/comp_algorithm"), "lz4"));
    let bytes = memory()? / PAGE * PAGE;
    fs::write(format!("{ZRAM}/disksize"), bytes.to_string()).map_err(no_room)?;
    swap_on(Path::new("/dev/zram0"), bytes / PAGE)
}

/// Swaps to a disk of scsi_debug.
pub(super) fn on_slow_disk() -> Result<(), Failure> {
    let disk = fs::read_dir("/sys/block")?.flatten().find_map(|entry| {
        let model = fs::read_to_string(entry.path().join("device/model")).ok()?;
        (model.trim() == "scsi_debug").then(|| entry.path())
    });
    let Some(disk) = disk else {
        return Err(missing("scsi_debug", "/sys/block/sd*"));
    };
    let sectors: usize = fs::read_to_string(disk.join("size"))?
        .trim()
        .parse()
        .map_err(io::Error::other)?;
    let name = disk.file_name().unwrap_or_default();
    swap_on(&Path::new("/dev").join(name), sectors * 512 / PAGE)
}

/// Opens the disk that keeps nothing.
pub(super) fn disk() -> Result<File, Failure> {
    let path = PathBuf::from(NULL_BLK);
    if !path.exists() {
        return Err(missing("null_blk", NULL_BLK));
    }
    Ok(OpenOptions::new().read(true).write(true).open(path)?)
}

fn missing(module: &str, path: &str) -> Failure {
    Failure::Unsupported(format!("no {module}: {path} is not there"))
}

fn no_room(error: io::Error) -> Failure {
    Failure::Error(io::Error::other(format!("no room for swap: {error}")))
}

/// Writes a header for so many pages and swaps there.
fn swap_on(device: &Path, pages: usize) -> Result<(), Failure> {
    let last = u32::try_from(pages.saturating_sub(1)).map_err(io::Error::other)?;
    if last < 2 {
        return Err(no_room(io::Error::other(format!(
            "{} holds {pages} pages",
            device.display()
        ))));
    }
    let mut header = [0; PAGE];
    header[VERSION_AT..VERSION_AT + 4].copy_from_slice(&1u32.to_le_bytes());
    header[LAST_PAGE_AT..LAST_PAGE_AT + 4].copy_from_slice(&last.to_le_bytes());
    header[PAGE - MAGIC.len()..].copy_from_slice(MAGIC);
    let mut file = OpenOptions::new()
        .write(true)
        .open(device)
        .map_err(no_room)?;
    file.write_all(&header)
        .and_then(|()| file.sync_all())
        .map_err(no_room)?;
    drop(file);
    let path = c(device.to_str().unwrap_or_default())?;
    // SAFETY: the path is a valid C string for the call.
    check(unsafe { libc::swapon(path.as_ptr(), 0) })
        .map(drop)
        .map_err(no_room)
}

/// What the kernel counts of faults and swap.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) swapped_in: u64,
    pub(super) swapped_out: u64,
    pub(super) faults: u64,
    pub(super) major_faults: u64,
}

impl Counts {
    /// Reads them.
    pub(super) fn now() -> io::Result<Self> {
        let text = fs::read_to_string("/proc/vmstat")?;
        let of = |wanted: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(' '));
            lines
                .find(|(name, _)| *name == wanted)
                .and_then(|(_, number)| number.parse().ok())
                .unwrap_or(0)
        };
        let (swapped_in, swapped_out) = (of("pswpin"), of("pswpout"));
        Ok(Self {
            swapped_in,
            swapped_out,
            faults: of("pgfault"),
            major_faults: of("pgmajfault"),
        })
    }
}
