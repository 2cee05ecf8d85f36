//! Filling memory of each kind and keeping it. Each kind is held by a process of its own, so that
//! the dump has some.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use guest::sys::{self, Fork, c, check};
use guest::{in_child, mount};

use crate::disks;
use crate::pattern::{fill, fill_equally};
use crate::words::Words;

const PAGE: usize = 4096;
const MIB: usize = 1 << 20;
const HUGE_PAGE: usize = 2 * MIB;
const THP: &str = "/sys/kernel/mm/transparent_hugepage";
const KSM: &str = "/sys/kernel/mm/ksm";
/// How long KSM gets to merge pages.
const MERGING: Duration = Duration::from_secs(30);
/// Small files in one folder.
const FOLDER: usize = 1000;

/// Fills everything that was asked for and returns a line for each kind.
pub(crate) fn all(words: &Words) -> io::Result<String> {
    let private = libc::MAP_PRIVATE;
    let thp = |mib| always_huge().and_then(|()| anonymous(mib, private, libc::MADV_HUGEPAGE));
    let shmhuge = |mib| {
        fs::write(format!("{THP}/shmem_enabled"), "advise")?;
        anonymous(mib, libc::MAP_SHARED, libc::MADV_HUGEPAGE)
    };
    // What is freed comes late, or the others would take it.
    let report = [
        one("cache", words.cache, &|mib| hold(|| cache(mib)))?,
        one("disk", words.disk, &|mib| hold(|| disk(mib)))?,
        one("files", words.files, &files)?,
        one("huge", words.huge, &|mib| hold(|| huge(mib)))?,
        one("thp", words.thp, &|mib| hold(|| thp(mib)))?,
        one("anon", words.anon, &|mib| {
            hold(|| anonymous(mib, private, libc::MADV_NOHUGEPAGE))
        })?,
        one("shm", words.shm, &|mib| {
            hold(|| anonymous(mib, libc::MAP_SHARED, libc::MADV_NOHUGEPAGE))
        })?,
        one("shmhuge", words.shmhuge, &|mib| hold(|| shmhuge(mib)))?,
        one("same", words.same, &|mib| hold(|| same(mib)))?,
        one("poison", words.poison, &|pages| hold(|| poison(pages)))?,
        one("freed", words.freed, &|mib| freed(mib))?,
        one("holes", words.holes, &|mib| hold(|| holes(mib)))?,
    ];
    all_are_there()?;
    Ok(report.concat())
}

/// Makes sure that no holder was killed for the memory of another.
fn all_are_there() -> io::Result<()> {
    let mut status = 0;
    // SAFETY: `status` is a valid int for the duration of the call.
    match unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) } {
        0 | -1 => Ok(()),
        _ => Err(io::Error::other(
            "a process that held memory was killed: there is too little memory",
        )),
    }
}

/// Fills one kind, if there is to be any, and returns its line.
fn one(name: &str, amount: usize, action: &dyn Fn(usize) -> io::Result<()>) -> io::Result<String> {
    if amount == 0 {
        return Ok(String::new());
    }
    let start = Instant::now();
    action(amount).map_err(|error| io::Error::other(format!("marvin.{name}={amount}: {error}")))?;
    Ok(format!(
        "{name} {amount} in {} ms\n",
        start.elapsed().as_millis()
    ))
}

/// Mounts a tmpfs that may take nearly all memory.
pub(crate) fn mount_tmpfs(target: &str) -> io::Result<()> {
    mount("tmpfs", target)?;
    let (target, data) = (c(target)?, c"size=95%");
    let (kind, none) = (c"tmpfs".as_ptr(), std::ptr::null());
    // SAFETY: the strings are valid and outlive the call; a remount reads no source.
    check(unsafe {
        libc::mount(
            none,
            target.as_ptr(),
            kind,
            libc::MS_REMOUNT,
            data.as_ptr().cast(),
        )
    })
    .map(|_| ())
}

/// Does something in a child that lives on, and waits until it is done.
fn hold(action: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (mut receiver, mut sender) = io::pipe()?;
    match sys::fork()? {
        Fork::Child => {
            drop(receiver);
            let said = action()
                .map_err(|error| error.to_string())
                .err()
                .unwrap_or_default();
            if sender.write_all(format!("{said}\0").as_bytes()).is_err() || !said.is_empty() {
                sys::exit_now(1);
            }
            drop(sender);
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        }
        Fork::Parent(_) => {
            drop(sender);
            let mut said = String::new();
            receiver.read_to_string(&mut said)?;
            match said.as_str() {
                "\0" => Ok(()),
                "" => Err(io::Error::other("killed: there is too little memory")),
                said => Err(io::Error::other(said.trim_end_matches('\0').to_owned())),
            }
        }
    }
}

/// Maps memory for good, at a border of huge pages.
fn map(bytes: usize, flags: i32) -> io::Result<&'static mut [u8]> {
    let start = sys::map_anonymous(bytes + HUGE_PAGE, flags)?;
    let start = start.wrapping_add(start.align_offset(HUGE_PAGE));
    // SAFETY: the mapping has room for so much behind its first border, holds zeroes and is never
    // taken back.
    Ok(unsafe { std::slice::from_raw_parts_mut(start, bytes) })
}

fn advise(memory: &mut [u8], advice: i32) -> io::Result<()> {
    // SAFETY: the range is of a mapping of ours, which is not read again once it was given back or
    // poisoned; what is given back would read as zeroes.
    check(unsafe { libc::madvise(memory.as_mut_ptr().cast(), memory.len(), advice) }).map(|_| ())
}

fn anonymous(mib: usize, flags: i32, advice: i32) -> io::Result<()> {
    let memory = map(mib * MIB, flags)?;
    advise(memory, advice)?;
    fill(memory);
    Ok(())
}

/// A small guest has huge pages switched off at boot.
fn always_huge() -> io::Result<()> {
    fs::write(format!("{THP}/enabled"), "always")?;
    fs::write(format!("{THP}/defrag"), "always")
}

fn huge(mib: usize) -> io::Result<()> {
    let pages = mib.div_ceil(2);
    // One more than is used: those that nobody has are another kind.
    fs::write("/proc/sys/vm/nr_hugepages", (pages + 1).to_string())?;
    let bytes = pages * HUGE_PAGE;
    let start = sys::map_anonymous(bytes, libc::MAP_PRIVATE | libc::MAP_HUGETLB)?;
    // SAFETY: a fresh mapping of this length, never taken back.
    fill(unsafe { std::slice::from_raw_parts_mut(start, bytes) });
    Ok(())
}

fn same(mib: usize) -> io::Result<()> {
    let memory = map(mib * MIB, libc::MAP_PRIVATE)?;
    advise(memory, libc::MADV_NOHUGEPAGE)?;
    fill_equally(memory);
    advise(memory, libc::MADV_MERGEABLE)?;
    fs::write(format!("{KSM}/pages_to_scan"), "100000")?;
    fs::write(format!("{KSM}/run"), "1")?;
    let start = Instant::now();
    let merged =
        || fs::read_to_string(format!("{KSM}/pages_sharing")).map(|text| text.trim() != "0");
    while !merged()? {
        if start.elapsed() > MERGING {
            return Err(io::Error::other("KSM merges nothing"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn poison(pages: usize) -> io::Result<()> {
    let memory = map(pages * PAGE, libc::MAP_PRIVATE)?;
    advise(memory, libc::MADV_NOHUGEPAGE)?;
    fill_equally(memory);
    advise(memory, libc::MADV_HWPOISON)
}

/// The child's end frees what it filled.
fn freed(mib: usize) -> io::Result<()> {
    in_child(|| anonymous(mib, libc::MAP_PRIVATE, libc::MADV_NOHUGEPAGE).map(|()| Vec::new()))
        .map(|_| ())
}

/// Gives every second page back, so that what is free lies in the smallest pieces.
fn holes(mib: usize) -> io::Result<()> {
    let memory = map(mib * MIB, libc::MAP_PRIVATE)?;
    advise(memory, libc::MADV_NOHUGEPAGE)?;
    fill(memory);
    memory
        .chunks_mut(PAGE)
        .step_by(2)
        .try_for_each(|page| advise(page, libc::MADV_DONTNEED))
}

/// ramfs is nothing but page cache: on the LRU, without buffers.
fn cache(mib: usize) -> io::Result<()> {
    mount("ramfs", "/cache")?;
    write_much(&mut File::create("/cache/file")?, mib)
}

/// Block devices keep buffers with each page of their cache.
fn disk(mib: usize) -> io::Result<()> {
    let mut disk =
        disks::open("scratch")?.ok_or_else(|| io::Error::other("there is no disk `scratch`"))?;
    write_much(&mut disk, mib)?;
    disk.sync_all()?;
    // Open for good: the last one to close a disk drops its cache.
    std::mem::forget(disk);
    Ok(())
}

fn write_much(file: &mut File, mib: usize) -> io::Result<()> {
    let mut piece = vec![0; MIB];
    fill(&mut piece);
    for number in 0..mib {
        // No two pieces are equal.
        piece
            .chunks_mut(PAGE)
            .for_each(|page| page[..8].copy_from_slice(&(number as u64).to_le_bytes()));
        file.write_all(&piece)?;
    }
    Ok(())
}

/// Small files and links: inodes, names and folders in slab memory.
fn files(count: usize) -> io::Result<()> {
    fs::create_dir_all("/tmp/files")?;
    for number in 0..count {
        let folder = format!("/tmp/files/{}", number / FOLDER);
        if number % FOLDER == 0 {
            fs::create_dir(&folder)?;
        }
        let path = format!("{folder}/a-file-with-a-long-name-that-is-kept-apart-{number}");
        match number % 8 {
            0 => fs::write(&path, format!("file {number}\n"))?,
            1 => symlink("/proc/self/a-target-that-does-not-exist", &path)?,
            _ => drop(
                OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&path)?,
            ),
        }
    }
    Ok(())
}
