//! Waiting for events on descriptors: eventfd, epoll, poll. Nothing ever blocks.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{Made, Workload};
use crate::sys::check;

/// Descriptors that are watched.
const WATCHED: usize = 64;
/// One in so many of them is ready.
const READY_EACH: usize = 8;
const READY: usize = WATCHED / READY_EACH;

fn owned(value: i64) -> io::Result<OwnedFd> {
    let raw = i32::try_from(value).map_err(io::Error::other)?;
    // SAFETY: the callers pass what a call just opened, which nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn new_eventfd(value: u32) -> io::Result<OwnedFd> {
    // SAFETY: eventfd takes no memory of ours.
    owned(check(unsafe {
        libc::eventfd(value, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)
    })?)
}

fn watched() -> io::Result<Vec<OwnedFd>> {
    (0..WATCHED)
        .map(|number| new_eventfd(u32::from(number % READY_EACH == 0)))
        .collect()
}

fn expect_ready(count: i64) -> io::Result<()> {
    if usize::try_from(count) == Ok(READY) {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "{count} descriptors were ready and not {READY}"
        )))
    }
}

struct EventFd(OwnedFd);

impl Workload for EventFd {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut value = 1u64;
        for _ in 0..operations {
            // SAFETY: `value` is valid for the calls and has the 8 bytes named.
            check(unsafe { libc::write(self.0.as_raw_fd(), (&raw const value).cast(), 8) } as i64)?;
            // SAFETY: as above.
            check(unsafe { libc::read(self.0.as_raw_fd(), (&raw mut value).cast(), 8) } as i64)?;
        }
        Ok(())
    }
}

/// event-fd: write to an eventfd and read it back.
pub(super) fn eventfd() -> Made {
    Ok(Box::new(EventFd(new_eventfd(0)?)))
}

struct Epoll {
    epoll: OwnedFd,
    _watched: Vec<OwnedFd>,
}

impl Workload for Epoll {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; WATCHED];
        for _ in 0..operations {
            // SAFETY: `events` has room for the number of events named.
            expect_ready(check(unsafe {
                libc::epoll_wait(
                    self.epoll.as_raw_fd(),
                    events.as_mut_ptr(),
                    WATCHED as i32,
                    0,
                )
            })?)?;
        }
        Ok(())
    }
}

/// event-epoll: ask which of many descriptors are ready.
pub(super) fn epoll_wait() -> Made {
    // SAFETY: epoll_create1 takes no memory of ours.
    let epoll = owned(check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?)?;
    let watched = watched()?;
    for (descriptor, number) in watched.iter().zip(0..) {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number,
        };
        // SAFETY: `event` is valid for the call, and both descriptors are open.
        check(unsafe {
            libc::epoll_ctl(
                epoll.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                descriptor.as_raw_fd(),
                &raw mut event,
            )
        })?;
    }
    Ok(Box::new(Epoll {
        epoll,
        _watched: watched,
    }))
}

struct Poll {
    list: Vec<libc::pollfd>,
    _watched: Vec<OwnedFd>,
}

impl Workload for Poll {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            // SAFETY: `list` has the number of entries named.
            expect_ready(check(unsafe {
                libc::poll(self.list.as_mut_ptr(), WATCHED as libc::nfds_t, 0)
            })?)?;
        }
        Ok(())
    }
}

/// event-poll: the same question asked with poll(2), which looks at each descriptor.
pub(super) fn poll() -> Made {
    let watched = watched()?;
    let list = watched
        .iter()
        .map(|descriptor| libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    Ok(Box::new(Poll {
        list,
        _watched: watched,
    }))
}
