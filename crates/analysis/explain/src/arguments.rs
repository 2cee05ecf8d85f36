//! What system calls were asked for, and how they ended, in words: the file, the size, the options
//! and the error that most samples of a call have.

use std::collections::BTreeMap;

use crate::budget::View;
use crate::facts::Called;

/// Samples of a call from which on they speak for it.
const SAMPLES: u64 = 4;
/// The part of them that makes something that of most calls.
const MOST: f64 = 0.6;
/// The same of what is seen only at the moment of the look.
const HALF: f64 = 0.5;
/// The same of one file that is opened again and again.
const SAME: f64 = 0.8;
/// How `observe` describes an epoll of which a file is ready.
const READY: &str = "ready: ";
/// The part of paths below a directory that makes it the one of most.
const BELOW: f64 = 0.8;
/// Bytes up to which a size is small.
const SMALL: u64 = 1024;

/// Bytes of a read or a write from which on they may be more than is wanted.
const LARGE: u64 = 64 << 10;
const TRANSFERS: [&str; 4] = ["read", "write", "pread64", "pwrite64"];

/// Errors with their meaning (include/uapi/asm-generic/errno-base.h, errno.h).
const ERRORS: [(i64, &str); 31] = [
    (1, "EPERM: it may not do that"),
    (2, "ENOENT: no such file"),
    (3, "ESRCH: no such process"),
    (4, "EINTR: a signal interrupts it"),
    (5, "EIO: an error of the device"),
    (6, "ENXIO: no such device"),
    (9, "EBADF: no such open file"),
    (10, "ECHILD: no child"),
    (11, "EAGAIN: it would have to wait"),
    (12, "ENOMEM: no memory"),
    (13, "EACCES: it may not do that"),
    (14, "EFAULT: a bad address"),
    (16, "EBUSY: it is in use"),
    (17, "EEXIST: it exists already"),
    (20, "ENOTDIR: no directory"),
    (21, "EISDIR: a directory"),
    (22, "EINVAL: not for such arguments"),
    (24, "EMFILE: too many open files"),
    (25, "ENOTTY: no terminal"),
    (28, "ENOSPC: the file system is full"),
    (29, "ESPIPE: no seek in a pipe"),
    (32, "EPIPE: the other end reads no more"),
    (38, "ENOSYS: no such system call"),
    (40, "ELOOP: too many links"),
    (95, "EOPNOTSUPP: not supported"),
    (98, "EADDRINUSE: the address is in use"),
    (104, "ECONNRESET: the peer left"),
    (105, "ENOBUFS: no buffers"),
    (110, "ETIMEDOUT: the time is over"),
    (111, "ECONNREFUSED: nothing listens"),
    (115, "EINPROGRESS: it goes on"),
];

/// Signals (arch/x86/include/uapi/asm/signal.h).
const SIGNALS: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

/// Which argument of a call is a size.
const SIZES: [(&str, usize); 12] = [
    ("read", 2),
    ("write", 2),
    ("pread64", 2),
    ("pwrite64", 2),
    ("recvfrom", 2),
    ("sendto", 2),
    ("getrandom", 1),
    ("mmap", 1),
    ("munmap", 1),
    ("mprotect", 1),
    ("madvise", 1),
    ("getdents64", 2),
];

/// Which argument of a call says how many descriptors it looks at, and from which number on that is
/// many.
const DESCRIPTORS: [(&str, usize); 4] = [("select", 0), ("pselect6", 0), ("poll", 1), ("ppoll", 1)];
const MANY: u64 = 100;

/// Options of calls: the argument, its bits, their value, and what it says.
const OPTIONS: [(&str, usize, u64, u64, &str); 16] = [
    // include/uapi/linux/wait.h
    (
        "wait4",
        2,
        1,
        1,
        "with WNOHANG, which asks and does not wait",
    ),
    (
        "waitid",
        3,
        1,
        1,
        "with WNOHANG, which asks and does not wait",
    ),
    // include/uapi/asm-generic/fcntl.h
    (
        "flock",
        1,
        4,
        4,
        "with LOCK_NB, which asks and does not wait",
    ),
    ("flock", 1, 0xf, 8, "to unlock"),
    (
        "kill",
        1,
        u64::MAX,
        0,
        "with signal 0, to see whether a process is there",
    ),
    // Whatever its arguments are.
    ("connect", 0, 0, 0, "for a new connection each time"),
    // include/uapi/linux/eventpoll.h
    ("epoll_ctl", 1, u64::MAX, 1, "with EPOLL_CTL_ADD"),
    ("epoll_ctl", 1, u64::MAX, 2, "with EPOLL_CTL_DEL"),
    ("epoll_ctl", 1, u64::MAX, 3, "with EPOLL_CTL_MOD"),
    // include/uapi/asm-generic/mman-common.h
    ("madvise", 2, u64::MAX, 4, "with MADV_DONTNEED"),
    ("madvise", 2, u64::MAX, 8, "with MADV_FREE"),
    ("poll", 2, u64::MAX, 0, "with a timeout of 0"),
    ("epoll_wait", 3, u64::MAX, 0, "with a timeout of 0"),
    ("epoll_pwait", 3, u64::MAX, 0, "with a timeout of 0"),
    // include/uapi/asm-generic/ioctls.h
    (
        "ioctl",
        1,
        u64::MAX,
        0x5401,
        "with TCGETS, to see whether a file is a terminal",
    ),
    (
        "ioctl",
        1,
        u64::MAX,
        0x541b,
        "with FIONREAD, to see how much there is to read",
    ),
];

/// Returns the value that most samples have, with their part.
fn most<T: Ord>(of: impl Iterator<Item = (T, u64)>) -> Option<(T, f64, u64)> {
    let mut counts: BTreeMap<T, u64> = BTreeMap::new();
    for (value, samples) in of {
        *counts.entry(value).or_default() += samples;
    }
    let all: u64 = counts.values().sum();
    let (value, samples) = counts.into_iter().max_by_key(|(_, samples)| *samples)?;
    Some((value, samples as f64 / all.max(1) as f64, all))
}

/// The sampled calls of some names.
pub(crate) struct Calls<'v>(Vec<&'v Called>);

/// Returns the name of an error with its meaning.
pub(crate) fn describe_error(error: i64) -> Option<&'static str> {
    let known = ERRORS.iter().find(|(number, _)| *number == error);
    known.map(|(_, text)| *text)
}

impl<'v> Calls<'v> {
    pub(crate) fn of(view: &View<'v>, is_wanted: impl Fn(&str) -> bool) -> Self {
        let samples = view.facts.samples.as_ref();
        let calls = samples.map_or(&[][..], |samples| &samples.calls);
        Self(calls.iter().filter(|call| is_wanted(&call.call)).collect())
    }

    /// Returns the error that most of them return, with its meaning: `ENOENT: no such file`.
    pub(crate) fn error(&self) -> Option<&'static str> {
        let results = self.0.iter().filter_map(|call| {
            let result = call.result?;
            // Larger ones have the kernel ask again, and no program sees them.
            let error = (-511..0).contains(&result).then_some(-result);
            Some((error, call.samples))
        });
        let (error, part, samples) = most(results)?;
        let error = error.filter(|_| part >= MOST && samples >= SAMPLES)?;
        describe_error(error)
    }

    /// Whether most of them return nothing: no bytes, no events, no child.
    pub(crate) fn is_empty_handed(&self) -> bool {
        let results = self.0.iter().filter_map(|call| {
            let result = call.result?;
            Some((result == 0, call.samples))
        });
        most(results)
            .is_some_and(|(is_zero, part, samples)| is_zero && part >= MOST && samples >= SAMPLES)
    }

    /// Returns the files that most of them are for: one, those below a directory, or an example.
    pub(crate) fn files(&self) -> Option<String> {
        let named = self.0.iter().filter(|call| !call.file.is_empty());
        let with: Vec<(&str, u64)> = named.map(|call| (&*call.file, call.samples)).collect();
        let (first, part, samples) = most(with.iter().copied())?;
        if samples < SAMPLES {
            return None;
        }
        if part >= MOST {
            return Some(first.to_owned());
        }
        let mut below: BTreeMap<&str, u64> = BTreeMap::new();
        for (file, samples) in &with {
            let folders = file.match_indices('/').filter(|(at, _)| *at > 0);
            for at in folders.map(|(at, _)| at).chain([file.len()]) {
                *below.entry(&file[..at]).or_default() += samples;
            }
        }
        let is_most = |count: u64| count as f64 >= BELOW * samples as f64;
        let deepest = below
            .into_iter()
            .filter(|(folder, count)| is_most(*count) && folder.starts_with('/'))
            .max_by_key(|(folder, _)| folder.len());
        Some(match deepest {
            Some((folder, _)) if folder == first => format!("files below {folder}"),
            Some((folder, _)) => format!("files below {folder}, such as {first}"),
            None => format!("files such as {first}"),
        })
    }

    /// Leaves out those for a kind of file, and those of which the file is not known.
    pub(crate) fn without(mut self, kind: &str) -> Self {
        self.0
            .retain(|call| !call.file.is_empty() && !call.file.contains(kind));
        self
    }

    /// Returns the file that nearly all of them are for, other than a library.
    pub(crate) fn same_file(&self) -> Option<&'v str> {
        let named = self.0.iter().filter(|call| !call.file.is_empty());
        let (file, part, samples) = most(named.map(|call| (&*call.file, call.samples)))?;
        let is_library = file.contains(".so");
        (part >= SAME && samples >= SAMPLES - 1 && !is_library).then_some(file)
    }

    /// Returns the file for which most of the waits for events end at once, with what it is ready for.
    pub(crate) fn ready(&self) -> Option<&'v str> {
        let looked_up = self.0.iter().filter(|call| !call.file.is_empty());
        let ready = looked_up.map(|call| (call.file.strip_prefix(READY), call.samples));
        let (ready, part, samples) = most(ready)?;
        ready.filter(|_| part >= HALF && samples >= SAMPLES)
    }

    /// Returns the number that most of them give as an argument.
    fn number(&self, arguments: &[(&str, usize)]) -> Option<u64> {
        let numbers = self.0.iter().filter_map(|call| {
            let (_, at) = arguments.iter().find(|(name, _)| *name == call.call)?;
            let is_asked = call.arguments != [0; 4];
            is_asked.then_some((call.arguments[*at], call.samples))
        });
        let (number, part, samples) = most(numbers)?;
        (part >= MOST && samples >= SAMPLES).then_some(number)
    }

    /// Returns how many bytes most of them are asked for.
    pub(crate) fn size(&self) -> Option<u64> {
        self.number(&SIZES)
    }

    /// Returns the options that most of them have.
    pub(crate) fn options(&self) -> Option<&'static str> {
        // What was sampled behind a call has no arguments any more.
        let with = self.0.iter().filter(|call| call.arguments != [0; 4]);
        let options = with.map(|call| {
            let option = OPTIONS.iter().find(|(name, at, bits, value, _)| {
                // Options are of 32 bits.
                let given = call.arguments[*at] & u64::from(u32::MAX);
                *name == call.call && given & bits == *value
            });
            (option.map(|(.., text)| *text), call.samples)
        });
        let (option, part, samples) = most(options)?;
        option.filter(|_| part >= MOST && samples >= SAMPLES)
    }

    /// Whether all wake-ups at a futex are for one thread: `FUTEX_WAKE` with 1, as
    /// `pthread_cond_signal` has it, and not with all as a broadcast does.
    pub(crate) fn wakes_one(&self) -> bool {
        // include/uapi/linux/futex.h: FUTEX_WAKE, without the flags.
        let wakes = self.0.iter().filter(|call| call.arguments[1] & 0x7f == 1);
        let many = |call: &&&Called| call.arguments[2] > 1;
        let all: u64 = wakes.clone().map(|call| call.samples).sum();
        let many: u64 = wakes.filter(many).map(|call| call.samples).sum();
        // A condition variable now and then wakes all of its older group.
        all >= 5 * SAMPLES && 50 * many <= all
    }

    /// Returns the signal that is handled, of `rt_sigreturn`.
    pub(crate) fn signal(&self) -> Option<String> {
        let signals = self.0.iter().map(|call| (call.arguments[0], call.samples));
        let signals = signals.filter(|(number, _)| *number > 0);
        let (number, part, samples) = most(signals)?;
        let name = usize::try_from(number - 1).ok();
        let name = name.and_then(|at| SIGNALS.get(at));
        let name = name.map_or_else(|| format!("signal {number}"), |name| (*name).to_owned());
        (part >= MOST && samples >= SAMPLES).then_some(name)
    }

    /// Returns all that is known of them, as the middle of a sentence: ` with WNOHANG … (/srv/a)`.
    pub(crate) fn described(&self) -> String {
        let is_transfer = self.0.iter().all(|call| TRANSFERS.contains(&&*call.call));
        let is_worth = |size: &u64| (1..=SMALL).contains(size) || is_transfer && *size >= LARGE;
        let size = self.size().filter(is_worth);
        let size = size.map(|size| {
            let bytes = if size == 1 { "byte" } else { "bytes" };
            format!(" of {size} {bytes} each")
        });
        let descriptors = self.number(&DESCRIPTORS).filter(|number| *number >= MANY);
        let descriptors = descriptors.map(|number| {
            format!(" over {number} descriptors, each of which it looks at each time")
        });
        let options = self.options().map(|options| format!(" {options}"));
        let files = self.files().map(|files| format!(" ({files})"));
        let error = self.error();
        let error = error.map(|error| format!(", which mostly fails ({error})"));
        let parts = [size, descriptors, options, files, error];
        parts.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn called(call: &str, file: &str, arguments: [u64; 4], result: Option<i64>) -> Called {
        Called {
            call: call.into(),
            file: file.into(),
            arguments,
            result,
            samples: 5,
        }
    }

    fn described(calls: &[Called]) -> String {
        Calls(calls.iter().collect()).described()
    }

    #[test]
    fn missing_files_of_stat_are_named() {
        let calls = [
            called("newfstatat", "/etc/a/x", [0, 0, 0, 0], None),
            called("newfstatat", "/etc/a/y", [0, 0, 0, 0], None),
            called("newfstatat", "", [0; 4], Some(-2)),
        ];
        assert_eq!(
            described(&calls),
            " (files below /etc/a, such as /etc/a/y), which mostly fails (ENOENT: no such file)"
        );
    }

    #[test]
    fn options_and_small_sizes_are_named() {
        let waits = [called("wait4", "", [u64::from(u32::MAX), 0, 1, 0], None)];
        assert_eq!(
            described(&waits),
            " with WNOHANG, which asks and does not wait"
        );
        let random = [called("getrandom", "", [0, 1, 0, 0], None)];
        assert_eq!(described(&random), " of 1 byte each");
        // What differs from call to call says nothing.
        let sizes = [1, 2, 3].map(|size| called("getrandom", "", [0, size, 0, 0], None));
        assert_eq!(described(&sizes), "");
    }

    #[test]
    fn select_over_many_descriptors_says_how_many() {
        let many = [called("pselect6", "", [803, 1, 0, 0], None)];
        assert_eq!(
            described(&many),
            " over 803 descriptors, each of which it looks at each time"
        );
        let few = [called("poll", "", [1, 3, 100, 0], None)];
        assert_eq!(described(&few), "");
    }

    #[test]
    fn file_that_is_always_ready_is_named() {
        let ready = "ready: socket, tcp to [::1]:80 (it can be written to: EPOLLOUT)";
        let calls = [
            called("epoll_wait", ready, [3, 0, 64, 0], None),
            called("epoll_wait", "anon_inode:[eventpoll]", [3, 0, 64, 0], None),
            called("epoll_wait", ready, [3, 0, 64, 100], Some(1)),
        ];
        let found = Calls(calls.iter().collect()).ready();
        assert_eq!(found, ready.strip_prefix("ready: "));
        let once = Calls(calls[..2].iter().collect()).ready();
        assert_eq!(once, ready.strip_prefix("ready: "));
        assert_eq!(Calls(calls[1..2].iter().collect()).ready(), None);
    }

    #[test]
    fn few_samples_say_nothing() {
        let one = Called {
            samples: 1,
            ..called("openat", "/a", [0; 4], Some(-2))
        };
        assert_eq!(described(&[one]), "");
    }

    #[test]
    fn broadcast_wakes_more_than_one() {
        let wake = |threads| called("futex", "", [0, 129, threads, 0], None);
        let signals = [1; 4].map(wake);
        assert!(Calls(signals.iter().collect()).wakes_one());
        let broadcast = [1, 1, 1, 0x7fff_ffff].map(wake);
        assert!(!Calls(broadcast.iter().collect()).wakes_one());
    }

    #[test]
    fn handled_signal_has_its_name() {
        let returns = [called("rt_sigreturn", "", [14, 0, 0, 0], None)];
        let calls = Calls(returns.iter().collect());
        assert_eq!(calls.signal().as_deref(), Some("SIGALRM"));
    }
}
