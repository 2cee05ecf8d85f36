//! Which of the files that an epoll watches are ready: those for which a loop of events is woken again
//! and again. Each is asked by a copy of its descriptor (`pidfd_getfd`), which is closed at once.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::tree::read;

/// Files of one epoll that are asked.
const ASKED_MAX: usize = 64;
/// The kernel reports an edge once (include/uapi/linux/eventpoll.h).
const EPOLLET: u32 = 1 << 31;
/// Events of a descriptor in words (include/uapi/asm-generic/poll.h).
const EVENTS: [(PollFlags, &str); 4] = [
    (PollFlags::HUP, "the other end has hung up: EPOLLHUP"),
    (PollFlags::ERR, "an error is not taken: EPOLLERR"),
    (PollFlags::IN, "there is something to read: EPOLLIN"),
    (PollFlags::OUT, "it can be written to: EPOLLOUT"),
];

/// Returns the descriptors that an epoll says are ready, each with what for.
pub(crate) fn ready(process: u32, epoll: u64) -> Vec<(u64, &'static str)> {
    let text = read(&format!("/proc/{process}/fdinfo/{epoll}")).unwrap_or_default();
    let watched = watched(&text);
    if watched.is_empty() {
        return Vec::new();
    }
    let id = i32::try_from(process).ok().and_then(Pid::from_raw);
    let Some(process) = id.and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok()) else {
        return Vec::new();
    };
    let asked = watched.into_iter().take(ASKED_MAX);
    asked
        .filter_map(|(number, events)| Some((number, ask(&process, number, events)?)))
        .collect()
}

/// Returns what a descriptor is ready for, of some events.
fn ask(process: &OwnedFd, number: u64, events: u32) -> Option<&'static str> {
    let number = i32::try_from(number).ok()?;
    let copy = pidfd_getfd(process.as_fd(), number, PidfdGetfdFlags::empty()).ok()?;
    let wanted = PollFlags::from_bits_truncate(u16::try_from(events & 0xffff).ok()?);
    let mut asked = [PollFd::new(&copy, wanted)];
    poll(&mut asked, Some(&Timespec::default())).ok()?;
    let is = asked[0].revents();
    let said = EVENTS.iter().find(|(event, _)| is.contains(*event));
    said.map(|(_, text)| *text)
}

/// Parses what `/proc/PID/fdinfo` says of an epoll (fs/eventpoll.c: `ep_show_fdinfo`): descriptors
/// with the events that it tells again as long as they last.
fn watched(text: &str) -> Vec<(u64, u32)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    lines
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let number = words.next()?.parse().ok()?;
            let events = words.nth(1)?;
            Some((number, u32::from_str_radix(events, 16).ok()?))
        })
        .filter(|(_, events)| *events & EPOLLET == 0 && *events != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn watched_files_have_their_events() {
        let text = "pos:\t0\nflags:\t02\n\
            tfd:        8 events:        5 data:                8  pos:0 ino:2d sdev:9\n\
            tfd:        9 events: 80000001 data:                9  pos:0 ino:2e sdev:9\n\
            tfd:       10 events:        0 data: ffffffffffffffff\n\
            tfd: x\n";
        assert_eq!(watched(text), [(8, 5)]);
        assert_eq!(watched(""), []);
    }

    #[test]
    fn descriptor_says_what_it_is_ready_for() {
        let id = Pid::from_raw(std::process::id().cast_signed()).unwrap();
        let process = pidfd_open(id, PidfdFlags::empty()).unwrap();
        let (mut writer, reader) = UnixStream::pair().unwrap();
        let number = u64::try_from(reader.as_raw_fd()).unwrap();
        assert_eq!(ask(&process, number, 1), None);
        let says = |events| ask(&process, number, events).unwrap_or_default();
        assert!(says(4).ends_with("EPOLLOUT"));
        writer.write_all(b"x").unwrap();
        assert!(says(1).ends_with("EPOLLIN"));
        drop(writer);
        assert!(says(1).ends_with("EPOLLHUP"));
        assert_eq!(ask(&process, 1 << 20, 1), None);
    }
}
