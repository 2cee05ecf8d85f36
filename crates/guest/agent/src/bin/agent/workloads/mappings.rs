//! Many and large mappings: moving, locking, splitting them, and a process that has very many.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};

use super::fault::permit_huge_pages;
use super::region::{HUGE, PAGE, Region, length};
use super::repeat::repeat;
use super::scratch::{self, Folder};
use super::{Failure, Made, Workload, exec, in_guest};
use crate::sys::check;

/// What is moved, locked and shared at a time.
const PIECE: usize = 16 * PAGE;
/// Mappings of a process that has very many, each of a page.
const MANY: usize = 10_000;
/// A large allocation: whole huge pages and the page with the allocator's record, as malloc(3) maps
/// them.
const LARGE: usize = 16 * HUGE + PAGE;
/// Pages of a file that are mapped, written and unmapped at a time.
const FILE_PAGES: usize = 64;
/// Pages of 2 MiB that are set aside.
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";
/// Whether huge pages are given unasked.
const HUGE_PAGES_UNASKED: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

fn mapped(address: *mut libc::c_void) -> io::Result<*mut u8> {
    if address == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(address.cast())
    }
}

/// map-mremap: pages that are there move to another address, and back.
pub(super) fn remap() -> Made {
    let region = Region::small_pages(2, PIECE)?;
    region.touch(PAGE);
    repeat(move |_| {
        let first = region.start();
        // SAFETY: the region is two pieces long and has no references to it: the first one moves
        // over the second, and back.
        unsafe {
            let second = first.add(PIECE);
            let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
            mapped(libc::mremap(first.cast(), PIECE, PIECE, flags, second))?;
            mapped(libc::mremap(second.cast(), PIECE, PIECE, flags, first))?;
        }
        Ok(())
    })
}

/// map-mlock: pages that are there are locked, and unlocked.
pub(super) fn lock() -> Made {
    let region = Region::small_pages(3, PIECE)?;
    region.touch(PAGE);
    repeat(move |_| {
        // SAFETY: the middle piece of our own mapping.
        unsafe {
            let middle = region.start().add(PIECE).cast();
            check(libc::mlock(middle, PIECE))?;
            check(libc::munlock(middle, PIECE)).map(drop)
        }
    })
}

struct Split(Option<Region>);

impl Workload for Split {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        let region = Region::anonymous(length(operations, HUGE)?, libc::MAP_PRIVATE)?;
        region.advise(libc::MADV_HUGEPAGE)?;
        region.touch(HUGE);
        if !region.is_resident()? {
            return Err(io::Error::other(
                "the kernel gave small pages for huge ones",
            ));
        }
        self.0 = Some(region);
        Ok(())
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let Some(region) = &self.0 else {
            return Ok(());
        };
        for number in 0..operations as usize {
            // SAFETY: a page within our own mapping, which has no references to it.
            check(unsafe {
                let page = region.start().add(number * HUGE + PAGE);
                libc::madvise(page.cast(), PAGE, libc::MADV_DONTNEED)
            })?;
        }
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

/// map-split: a page of a huge page is given back, which splits its mapping.
pub(super) fn split() -> Made {
    permit_huge_pages()?;
    Ok(Box::new(Split(None)))
}

/// Mappings of a page each, every other one read-only, so that none is joined to the next.
struct Many(Region);

impl Many {
    fn new() -> io::Result<Self> {
        let region = Region::anonymous(MANY * PAGE, libc::MAP_PRIVATE)?;
        for page in (0..MANY).step_by(2) {
            // SAFETY: a page of our own mapping, which has no references to it.
            check(unsafe {
                libc::mprotect(
                    region.start().add(page * PAGE).cast(),
                    PAGE,
                    libc::PROT_READ,
                )
            })?;
        }
        Ok(Self(region))
    }
}

/// map-many: one of very many mappings is unmapped and mapped again.
pub(super) fn many() -> Made {
    let many = Many::new()?;
    repeat(move |number| {
        // Odd ones can be written, and have neighbours that cannot.
        let page = number * 998 % MANY + 1;
        // SAFETY: a page of our own mapping, which is mapped again and has no references to it.
        unsafe {
            let page = many.0.start().add(page * PAGE).cast();
            check(libc::munmap(page, PAGE))?;
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
            mapped(libc::mmap(page, PAGE, protection, flags, -1, 0)).map(drop)
        }
    })
}

/// A workload of a process with very many mappings.
struct WithMany {
    work: Box<dyn Workload>,
    _many: Many,
}

impl Workload for WithMany {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.work.run(operations)
    }

    fn between(&self) -> super::Between {
        self.work.between()
    }
}

/// map-many-fork: a process with very many mappings forks; the child ends at once.
pub(super) fn many_fork() -> Made {
    let many = Many::new()?;
    Ok(Box::new(WithMany {
        work: exec::fork_exit()?,
        _many: many,
    }))
}

/// map-zero: memory is shared by way of /dev/zero, written, and unmapped.
pub(super) fn zero() -> Made {
    let file = File::options().read(true).write(true).open("/dev/zero")?;
    repeat(move |_| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice, unmapped below.
        unsafe {
            let address = libc::mmap(
                null_mut(),
                PAGE,
                protection,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            );
            let start = mapped(address)?;
            start.write_volatile(1);
            check(libc::munmap(start.cast(), PAGE)).map(drop)
        }
    })
}

/// map-large: memory that is no multiple of huge pages is mapped, its beginning written, and
/// unmapped, where the kernel may give huge pages unasked.
pub(super) fn large() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it has the kernel give huge pages unasked".to_owned(),
        ));
    }
    permit_huge_pages()?;
    fs::write(HUGE_PAGES_UNASKED, "always")?;
    repeat(|_| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a fresh mapping at an address of the kernel's choice, unmapped below.
        unsafe {
            let start = mapped(libc::mmap(null_mut(), LARGE, protection, flags, -1, 0))?;
            start.write_volatile(1);
            check(libc::munmap(start.cast(), LARGE)).map(drop)
        }
    })
}

/// map-file-shared, map-file-private: pages of a file in memory are mapped, written, and unmapped.
pub(super) fn of_file(flags: i32) -> Made {
    let folder = Folder::new()?;
    let mut file = folder.file("file")?;
    scratch::fill(&mut file, FILE_PAGES * PAGE)?;
    repeat(move |_| {
        let _keep = &folder;
        Region::file(&file, FILE_PAGES * PAGE, flags)?.touch(PAGE);
        Ok(())
    })
}

/// map-shmget: shared memory of System V is made, attached, written, detached and removed.
pub(super) fn segment() -> Made {
    repeat(|_| {
        // SAFETY: a fresh segment at an address of the kernel's choice, detached and removed below.
        unsafe {
            let id = check(libc::shmget(
                libc::IPC_PRIVATE,
                PIECE,
                libc::IPC_CREAT | 0o600,
            ))?;
            let id = i32::try_from(id).map_err(io::Error::other)?;
            let attached = mapped(libc::shmat(id, null(), 0));
            check(libc::shmctl(id, libc::IPC_RMID, null_mut()))?;
            let start = attached?;
            start.write_volatile(1);
            check(libc::shmdt(start.cast())).map(drop)
        }
    })
}

/// map-hugetlb: a huge page that was set aside is mapped, written, and unmapped.
pub(super) fn set_aside() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it sets huge pages aside".to_owned(),
        ));
    }
    if !fs::exists(HUGE_PAGES)? {
        return Err(Failure::Unsupported(
            "the kernel has no hugetlb (CONFIG_HUGETLB_PAGE)".to_owned(),
        ));
    }
    fs::write(HUGE_PAGES, "2")?;
    repeat(|_| {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_HUGETLB;
        // SAFETY: a fresh mapping at an address of the kernel's choice, unmapped below.
        unsafe {
            let start = mapped(libc::mmap(null_mut(), HUGE, protection, flags, -1, 0))?;
            start.write_volatile(1);
            check(libc::munmap(start.cast(), HUGE)).map(drop)
        }
    })
}
