//! What one process does with its mappings: make, write, count, have reclaimed, unmap.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use super::super::region::PAGE;
use super::layout::{Case, ENTRIES, Layout, Mapping};
use crate::sys::check;

/// Advice of madvise(2) since Linux 5.4; libc's name for it is newer than what this needs.
const MADV_PAGEOUT: libc::c_int = 21;
/// What an entry of /proc/PID/pagemap has for a page in memory
/// (Documentation/admin-guide/mm/pagemap.rst).
const PRESENT: u64 = 1 << 63;

/// The mappings of this process.
#[derive(Debug)]
pub(super) struct Mappings<'a> {
    pub(super) layout: Layout,
    pub(super) object: Option<&'a File>,
}

impl Mappings<'_> {
    /// Makes and writes to the pages that keep the upper page tables.
    pub(super) fn keep_upper_tables(layout: Layout) -> io::Result<()> {
        for keeper in layout.keepers() {
            map(keeper, 1, (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0))?;
            write(keeper);
        }
        Ok(())
    }

    /// Unmaps those pages.
    pub(super) fn leave_upper_tables(layout: Layout) -> io::Result<()> {
        layout.keepers().try_for_each(|keeper| unmap(keeper, PAGE))
    }

    /// Maps everything and writes to each page that is to be in use.
    pub(super) fn make(&self) -> io::Result<()> {
        if self.layout.case == Case::Remapped {
            self.make_by_remapping()?;
        } else {
            for (number, place) in self.layout.places().enumerate() {
                let how = match self.object {
                    Some(object) => (libc::MAP_SHARED, object.as_raw_fd(), place.offset),
                    // Anonymous neighbours would become one mapping if they were alike.
                    None if number % 2 == 0 => (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
                    None => (
                        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                        -1,
                        0,
                    ),
                };
                map(place.address, place.pages, how)?;
            }
        }
        self.write();
        Ok(())
    }

    /// Maps the object in order and has remap_file_pages(2) put its pages elsewhere. Since Linux
    /// kernel commit c8d78c1823f4 ("mm: replace remap_file_pages() syscall with emulation") (in
    /// v4.0) this makes a mapping of each.
    fn make_by_remapping(&self) -> io::Result<()> {
        let object = self.object.map_or(-1, AsRawFd::as_raw_fd);
        for (number, slot) in self.layout.slots().enumerate() {
            let first = number * ENTRIES;
            let pages = (self.layout.mappings - first).min(ENTRIES);
            map(slot, pages, (libc::MAP_SHARED, object, first))?;
        }
        self.layout.places().try_for_each(remap)
    }

    /// Uses each page that is to be in use: writes to those of an object, only reads those that
    /// were inherited, as a write would make them this process's own.
    pub(super) fn touch(&self) {
        let touch = if self.layout.case.has_object() {
            write
        } else {
            read
        };
        self.layout
            .places()
            .for_each(|place| touch(place.address + place.used * PAGE));
    }

    fn write(&self) {
        self.layout
            .places()
            .for_each(|place| write(place.address + place.used * PAGE));
    }

    /// Unmaps so many mappings one by one, from the first one on and round, and maps each again.
    /// Only of an object.
    pub(super) fn cycle(&self, operations: u32) -> io::Result<()> {
        let object = self.object.map_or(-1, AsRawFd::as_raw_fd);
        for number in 0..operations as usize {
            let place = self.layout.place(number % self.layout.mappings);
            unmap(place.address, place.pages * PAGE)?;
            map(
                place.address,
                place.pages,
                (libc::MAP_SHARED, object, place.offset),
            )?;
            write(place.address + place.used * PAGE);
        }
        Ok(())
    }

    /// Unmaps everything.
    pub(super) fn unmap(&self) -> io::Result<()> {
        self.layout
            .windows()
            .try_for_each(|(start, bytes)| unmap(start, bytes))
    }

    /// Returns how many page-table entries are in use.
    pub(super) fn entries(&self) -> io::Result<u64> {
        let pagemap = File::open("/proc/self/pagemap")?;
        let mut entries = [0; ENTRIES * 8];
        let mut present = 0;
        for slot in self.layout.slots() {
            pagemap.read_exact_at(&mut entries, (slot / PAGE * 8) as u64)?;
            present += entries
                .chunks_exact(8)
                .filter(|entry| is_present(entry))
                .count() as u64;
        }
        Ok(present)
    }

    /// Asks the kernel to reclaim the used page of the last mapping.
    pub(super) fn page_out(&self) -> io::Result<()> {
        let place = self.layout.last();
        let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(
            place.address + place.used * PAGE,
        );
        // SAFETY: the page is mapped, and nobody has a reference to it; what it holds is of no use
        // to anybody.
        check(unsafe { libc::madvise(page, PAGE, MADV_PAGEOUT) }).map(|_| ())
    }

    /// Says whether that page is still mapped.
    pub(super) fn is_there(&self) -> io::Result<bool> {
        let place = self.layout.last();
        let mut entry = [0; 8];
        let page = place.address / PAGE + place.used;
        File::open("/proc/self/pagemap")?.read_exact_at(&mut entry, (page * 8) as u64)?;
        Ok(is_present(&entry))
    }
}

/// Returns the page tables of this process in KiB, as the kernel accounts for them: of all levels
/// since Linux kernel commit af5b0f6a09e4 ("mm: consolidate page table accounting") (in v4.15).
pub(super) fn page_tables_kib() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| {
        line.strip_prefix("VmPTE:")?
            .trim()
            .split(' ')
            .next()?
            .parse()
            .ok()
    });
    value.ok_or_else(|| io::Error::other("/proc/self/status has no VmPTE"))
}

fn is_present(entry: &[u8]) -> bool {
    entry
        .try_into()
        .map(u64::from_ne_bytes)
        .is_ok_and(|entry| entry & PRESENT != 0)
}

/// Maps so many pages where nothing is yet: flags, descriptor, first page of the object.
fn map(
    address: usize,
    pages: usize,
    (flags, descriptor, offset): (i32, i32, usize),
) -> io::Result<()> {
    let wanted = std::ptr::with_exposed_provenance_mut::<libc::c_void>(address);
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let offset = libc::off_t::try_from(offset * PAGE).map_err(io::Error::other)?;
    // Kernels before 4.17 do not know the flag and take the address as a hint, which is as good
    // where nothing is.
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: a new mapping takes the place of nothing, by that flag or for want of MAP_FIXED.
    let got = unsafe { libc::mmap(wanted, pages * PAGE, protection, flags, descriptor, offset) };
    if got == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    if got != wanted {
        // SAFETY: it was just made, elsewhere than wanted, and nobody uses it.
        unsafe { libc::munmap(got, pages * PAGE) };
        return Err(io::Error::from_raw_os_error(libc::EEXIST));
    }
    Ok(())
}

/// Has a page of an object that is mapped in another order be that of a place.
fn remap(place: Mapping) -> io::Result<()> {
    // SAFETY: the page is one of our mappings', and nobody has a reference to it.
    check(unsafe {
        libc::syscall(
            libc::SYS_remap_file_pages,
            place.address,
            PAGE,
            0,
            place.offset,
            0,
        )
    })
    .map(|_| ())
}

fn write(address: usize) {
    let byte = std::ptr::with_exposed_provenance_mut::<u8>(address);
    // SAFETY: only called for pages of ours that are mapped and writable, and that nobody has a
    // reference to.
    unsafe { byte.write_volatile(1) };
}

fn read(address: usize) {
    let byte = std::ptr::with_exposed_provenance::<u8>(address);
    // SAFETY: as for writing.
    unsafe { byte.read_volatile() };
}

fn unmap(start: usize, bytes: usize) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut::<libc::c_void>(start);
    // SAFETY: the range is one of our windows, which hold our mappings only, and nobody has a
    // reference to them.
    check(unsafe { libc::munmap(start, bytes) }).map(|_| ())
}
