//! Disturbing the guest on purpose before a workload, so that seeds sample its state.
//!
//! Memory is held by a child, never by the process that measures: held by that one it would be
//! copied at each fork. Mappings and descriptors beside those of a workload have to be its own, and
//! hold none.

use std::fs::File;
use std::io;
use std::os::fd::IntoRawFd;
use std::time::Duration;

use wire::Perturbation;

use crate::sys::{self, Fork};

const PAGE: usize = 4096;

/// Forks the child that forks and holds pages, and waits until it has.
pub fn perturb(perturbation: &Perturbation) -> io::Result<()> {
    if perturbation.child_pages > 0 || perturbation.child_forks > 0 {
        let (mut ready, mut holder) = io::pipe()?;
        match sys::fork()? {
            Fork::Child => {
                drop(ready);
                // The holder ends with the guest; one that could not do its work ends at once,
                // without a word.
                let done = fork_often(perturbation.child_forks)
                    .and_then(|()| hold(perturbation.child_pages));
                if done
                    .and_then(|()| io::Write::write_all(&mut holder, b"!"))
                    .is_ok()
                {
                    drop(holder);
                    loop {
                        std::thread::sleep(Duration::from_secs(3600));
                    }
                }
                sys::exit_now(1);
            }
            Fork::Parent(_) => {
                drop(holder);
                let mut word = Vec::new();
                io::Read::read_to_end(&mut ready, &mut word)?;
                if word.is_empty() {
                    return Err(io::Error::other(
                        "memory for a child process that holds some",
                    ));
                }
            }
        }
    }
    Ok(())
}

/// How far below the other mappings the lower neighbours lie.
const DISTANCE: usize = 1 << 30;

/// Makes mappings of a page that are never touched: so many above where the kernel puts the next
/// one, and so many far below.
pub fn surround([above, below]: [u64; 2]) -> io::Result<()> {
    for number in 0..above {
        map_page(0, protection(number))?;
    }
    if below == 0 {
        return Ok(());
    }
    let lowest = map_page(0, protection(above))? as usize;
    for number in 0..below {
        let distance = DISTANCE + 2 * PAGE * number as usize;
        map_page(lowest.saturating_sub(distance), protection(number))?;
    }
    Ok(())
}

/// Opens so many descriptors, for as long as the process lives.
pub fn open_descriptors(count: u64) -> io::Result<()> {
    for _ in 0..count {
        // It stays open: nothing closes a number.
        let _number = File::open("/dev/null")?.into_raw_fd();
    }
    Ok(())
}

/// Neighbours of one protection would be one mapping.
fn protection(number: u64) -> i32 {
    [libc::PROT_READ, libc::PROT_NONE][(number % 2) as usize]
}

/// Maps a page, at this address if it is free and not 0.
fn map_page(address: usize, protection: i32) -> io::Result<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping without MAP_FIXED overlaps nothing of ours.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::with_exposed_provenance_mut(address),
            PAGE,
            protection,
            flags,
            -1,
            0,
        )
    };
    if mapped == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped.cast())
}

fn fork_often(times: u64) -> io::Result<()> {
    for _ in 0..times {
        match sys::fork()? {
            Fork::Child => sys::exit_now(0),
            Fork::Parent(pid) => sys::wait_for(pid)?,
        };
    }
    Ok(())
}

fn hold(pages: u64) -> io::Result<()> {
    let pages = usize::try_from(pages).map_err(io::Error::other)?;
    if pages == 0 {
        return Ok(());
    }
    let start = sys::map_anonymous(pages * PAGE, libc::MAP_PRIVATE)?;
    // SAFETY: the advice concerns only the mapping made above.
    // A kernel without huge pages refuses it, and then does what was asked anyway.
    unsafe { libc::madvise(start.cast(), pages * PAGE, libc::MADV_NOHUGEPAGE) };
    for page in 0..pages {
        // SAFETY: each address lies within the mapping.
        unsafe { start.add(page * PAGE).write_volatile(1) };
    }
    Ok(())
}
