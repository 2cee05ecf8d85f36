//! Page faults. Each iteration begins with memory that is mapped and not there.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use super::partner::Partner;
use super::region::{HUGE, PAGE, Region, length};
use super::scratch::{self, Folder};
use super::{Failure, Made, Workload};
use crate::sys;

struct Anon(Option<Region>);

impl Workload for Anon {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.0 = Some(Region::small_pages(operations, PAGE)?);
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        touch(self.0.as_ref(), PAGE);
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.0 = None;
        Ok(())
    }
}

fn touch(region: Option<&Region>, step: usize) {
    if let Some(region) = region {
        region.touch(step);
    }
}

/// fault-anon: the first write to a page of anonymous memory.
pub(super) fn anon() -> Made {
    Ok(Box::new(Anon(None)))
}

struct OfFile {
    file: File,
    flags: i32,
    region: Option<Region>,
    _folder: Option<Folder>,
}

impl Workload for OfFile {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        let bytes = length(operations, PAGE)?;
        scratch::fill(&mut self.file, bytes)?;
        self.region = Some(Region::file(&self.file, bytes, self.flags)?);
        Ok(())
    }

    /// Only writes: the kernel maps the neighbours of a page that is read, but not of one that is
    /// written.
    fn run(&mut self, _operations: u64) -> io::Result<()> {
        touch(self.region.as_ref(), PAGE);
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.region = None;
        Ok(())
    }
}

/// Faults in a mapping of a file, private or shared by `flags`, in a folder to keep.
pub(super) fn of_file(file: File, flags: i32, folder: Option<Folder>) -> Box<dyn Workload> {
    Box::new(OfFile {
        file,
        flags,
        region: None,
        _folder: folder,
    })
}

fn of_tmpfs_file(flags: i32) -> Made {
    let folder = Folder::new()?;
    Ok(of_file(folder.file("file")?, flags, Some(folder)))
}

/// fault-file-private: the first write to a page of a private file mapping, which copies the page.
pub(super) fn file_private() -> Made {
    of_tmpfs_file(libc::MAP_PRIVATE)
}

/// fault-file-shared: the first write to a page of a shared file mapping; the page is in memory
/// already.
pub(super) fn file_shared() -> Made {
    of_tmpfs_file(libc::MAP_SHARED)
}

#[derive(Default)]
struct Cow {
    /// Dropped first, so that it never shares pages that are given back.
    sharer: Option<Partner>,
    region: Option<Region>,
}

impl Workload for Cow {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        let region = Region::small_pages(operations, PAGE)?;
        region.touch(PAGE);
        self.region = Some(region);
        let (mut ready, mut say_ready) = io::pipe()?;
        self.sharer = Some(Partner::start(move || {
            say_ready.write_all(&[0])?;
            loop {
                // SAFETY: pause takes nothing and only waits.
                unsafe { libc::pause() };
            }
        })?);
        ready.read_exact(&mut [0])?;
        // The sharer has still to fall asleep; not in the time that is measured.
        sys::yield_now();
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        touch(self.region.as_ref(), PAGE);
        Ok(())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.sharer = None;
        self.region = None;
        Ok(())
    }
}

/// fault-cow: the first write to a page that a forked child shares.
pub(super) fn cow() -> Made {
    Ok(Box::new(Cow::default()))
}

struct Huge(Option<Region>);

impl Workload for Huge {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        let region = Region::anonymous(length(operations, HUGE)?, libc::MAP_PRIVATE)?;
        region.advise(libc::MADV_HUGEPAGE)?;
        self.0 = Some(region);
        Ok(())
    }

    fn run(&mut self, _operations: u64) -> io::Result<()> {
        touch(self.0.as_ref(), HUGE);
        Ok(())
    }

    /// One byte of each huge page was written: where that gave a small page, the rest is not in
    /// memory.
    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        match self.0.take() {
            Some(region) if !region.is_resident()? => Err(io::Error::other(
                "the kernel gave small pages for huge ones",
            )),
            _ => Ok(()),
        }
    }
}

/// fault-huge: the first write to a huge page of anonymous memory.
pub(super) fn huge() -> Made {
    permit_huge_pages()?;
    Ok(Box::new(Huge(None)))
}

/// Switches huge pages on. The kernel turns them off in machines with less than 512 MB, as the
/// guest is.
pub(super) fn permit_huge_pages() -> Result<(), Failure> {
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    let unsupported = |why: String| Err(Failure::Unsupported(format!("huge pages: {why}")));
    match fs::read_to_string(path) {
        Err(error) => unsupported(format!("{path}: {error}")),
        Ok(setting) if !setting.contains("[never]") => Ok(()),
        Ok(_) if super::in_guest() => Ok(fs::write(path, "madvise")?),
        Ok(_) => unsupported(format!("{path} is never")),
    }
}
