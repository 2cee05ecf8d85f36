//! Names of the system calls in which programs wait, on x86-64
//! (arch/x86/entry/syscalls/syscall_64.tbl), and what their arguments are.

use rustix::time::ClockId;

use crate::memory;

const NAMES: &[(u64, &str)] = &[
    (0, "read"),
    (1, "write"),
    (2, "open"),
    (3, "close"),
    (4, "stat"),
    (5, "fstat"),
    (6, "lstat"),
    (7, "poll"),
    (8, "lseek"),
    (9, "mmap"),
    (10, "mprotect"),
    (11, "munmap"),
    (12, "brk"),
    (16, "ioctl"),
    (17, "pread64"),
    (18, "pwrite64"),
    (19, "readv"),
    (20, "writev"),
    (21, "access"),
    (23, "select"),
    (24, "sched_yield"),
    (25, "mremap"),
    (26, "msync"),
    (28, "madvise"),
    (32, "dup"),
    (34, "pause"),
    (35, "nanosleep"),
    (40, "sendfile"),
    (41, "socket"),
    (42, "connect"),
    (43, "accept"),
    (44, "sendto"),
    (45, "recvfrom"),
    (46, "sendmsg"),
    (47, "recvmsg"),
    (48, "shutdown"),
    (49, "bind"),
    (56, "clone"),
    (57, "fork"),
    (58, "vfork"),
    (59, "execve"),
    (60, "exit"),
    (61, "wait4"),
    (62, "kill"),
    (64, "semget"),
    (65, "semop"),
    (68, "msgget"),
    (69, "msgsnd"),
    (70, "msgrcv"),
    (72, "fcntl"),
    (73, "flock"),
    (74, "fsync"),
    (75, "fdatasync"),
    (76, "truncate"),
    (77, "ftruncate"),
    (78, "getdents"),
    (82, "rename"),
    (83, "mkdir"),
    (84, "rmdir"),
    (85, "creat"),
    (86, "link"),
    (87, "unlink"),
    (88, "symlink"),
    (89, "readlink"),
    (90, "chmod"),
    (91, "fchmod"),
    (92, "chown"),
    (93, "fchown"),
    (101, "ptrace"),
    (128, "rt_sigtimedwait"),
    (130, "rt_sigsuspend"),
    (162, "sync"),
    (165, "mount"),
    (166, "umount2"),
    (187, "readahead"),
    (202, "futex"),
    (208, "io_getevents"),
    (217, "getdents64"),
    (219, "restart_syscall"),
    (220, "semtimedop"),
    (221, "fadvise64"),
    (230, "clock_nanosleep"),
    (231, "exit_group"),
    (232, "epoll_wait"),
    (240, "mq_open"),
    (242, "mq_timedsend"),
    (243, "mq_timedreceive"),
    (247, "waitid"),
    (233, "epoll_ctl"),
    (254, "inotify_add_watch"),
    (257, "openat"),
    (258, "mkdirat"),
    (262, "newfstatat"),
    (263, "unlinkat"),
    (264, "renameat"),
    (265, "linkat"),
    (267, "readlinkat"),
    (269, "faccessat"),
    (270, "pselect6"),
    (271, "ppoll"),
    (275, "splice"),
    (276, "tee"),
    (277, "sync_file_range"),
    (278, "vmsplice"),
    (281, "epoll_pwait"),
    (285, "fallocate"),
    (288, "accept"),
    (295, "preadv"),
    (296, "pwritev"),
    (299, "recvmmsg"),
    (306, "syncfs"),
    (307, "sendmmsg"),
    (316, "renameat2"),
    (318, "getrandom"),
    (324, "membarrier"),
    (326, "copy_file_range"),
    (327, "preadv2"),
    (328, "pwritev2"),
    (332, "statx"),
    (426, "io_uring_enter"),
    (435, "clone3"),
    (436, "close_range"),
    (437, "openat2"),
    (439, "faccessat2"),
    (441, "epoll_pwait2"),
    (449, "futex_waitv"),
];

/// The call whose first argument is a word of memory.
pub(crate) const FUTEX: u64 = 202;
/// Calls that wait for children.
pub(crate) const CHILDREN: [u64; 2] = [61, 247];
/// Calls that create a process and can wait until it executes a program: clone, vfork, clone3.
pub(crate) const CREATIONS: [u64; 3] = [56, 58, 435];
/// Calls that wait for events of several files: poll and ppoll, select and pselect6, epoll.
pub(crate) const POLL: [u64; 2] = [7, 271];
pub(crate) const SELECT: [u64; 2] = [23, 270];
pub(crate) const EPOLL: [u64; 3] = [232, 281, 441];
/// Calls that wait for a lock of a file: fcntl and flock.
pub(crate) const FILE_LOCKS: [u64; 2] = [72, 73];
/// Calls that sleep.
pub(crate) const SLEEPS: [u64; 2] = [35, 230];
/// Calls whose first argument is an open file.
const FILES: [u64; 32] = [
    0, 1, 5, 8, 16, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 72, 73, 74, 75, 77, 78, 217, 232, 275,
    281, 285, 288, 295, 299, 306, 307, 441,
];

/// Calls whose first or second argument is a path.
const PATHS_FIRST: [u64; 18] = [
    2, 4, 6, 21, 59, 76, 80, 82, 83, 84, 85, 86, 87, 88, 89, 90, 92, 166,
];
const PATHS_SECOND: [u64; 11] = [257, 258, 262, 263, 264, 265, 267, 269, 332, 437, 439];

/// Returns which argument of a call is a path.
pub(crate) fn path_argument(number: u64) -> Option<usize> {
    if PATHS_FIRST.contains(&number) {
        return Some(0);
    }
    PATHS_SECOND.contains(&number).then_some(1)
}

/// How a call says how long it waits at most, by the address of a `struct timespec`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// So long.
    Duration(u64),
    /// Until this time of the monotonic clock.
    Monotonic(u64),
    /// Until this time of day.
    Realtime(u64),
}

impl Limit {
    /// Returns how long the wait of a process lasts from now on at most (ms).
    pub(crate) fn ms(self, process: u32) -> Option<u64> {
        let until = |address, clock| {
            let now = rustix::time::clock_gettime(clock);
            let now_ms = now.tv_sec * 1000 + now.tv_nsec / 1_000_000;
            memory::timespec_ms(process, address)?.checked_sub(u64::try_from(now_ms).ok()?)
        };
        match self {
            Self::Duration(address) => memory::timespec_ms(process, address),
            Self::Monotonic(address) => until(address, ClockId::Monotonic),
            Self::Realtime(address) => until(address, ClockId::Realtime),
        }
    }
}

/// Operations of futex that wait, their part of the number, and the flag of the time of day
/// (include/uapi/linux/futex.h).
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const FUTEX_OPERATION: u64 = 0x7f;
const FUTEX_CLOCK_REALTIME: u64 = 0x100;

/// Returns how long a call waits at most; `None` without an end, or if it is not by an address that is
/// kept here, as of `clock_nanosleep` to a time (`TIMER_ABSTIME`).
pub(crate) fn limit(number: u64, arguments: &[u64; 4]) -> Option<Limit> {
    let [first, second, third, fourth] = *arguments;
    let limit = match number {
        35 => Limit::Duration(first),
        230 if second & 1 == 0 => Limit::Duration(third),
        // ppoll, epoll_pwait2.
        271 => Limit::Duration(third),
        441 => Limit::Duration(fourth),
        FUTEX => match second & FUTEX_OPERATION {
            FUTEX_WAIT => Limit::Duration(fourth),
            FUTEX_WAIT_BITSET if second & FUTEX_CLOCK_REALTIME != 0 => Limit::Realtime(fourth),
            FUTEX_WAIT_BITSET => Limit::Monotonic(fourth),
            _ => return None,
        },
        _ => return None,
    };
    let (Limit::Duration(at) | Limit::Monotonic(at) | Limit::Realtime(at)) = limit;
    (at != 0).then_some(limit)
}

/// Whether a call that waits for events of files watches none: then it sleeps.
pub(crate) fn watches_nothing(number: u64, arguments: &[u64; 4]) -> bool {
    SELECT.contains(&number) && arguments[0] == 0 || POLL.contains(&number) && arguments[1] == 0
}

/// Returns after how long a call that waits for events comes back without one (ms); `None` if it
/// does not.
pub(crate) fn timeout_ms(number: u64, arguments: &[u64; 4]) -> Option<u64> {
    let timeout = match number {
        7 => arguments[2],
        232 | 281 => arguments[3],
        _ => return None,
    };
    // An int, of which -1 stands for no end.
    let timeout = i32::try_from(timeout & u64::from(u32::MAX)).ok()?;
    u64::try_from(timeout).ok().filter(|timeout| *timeout > 0)
}

/// Returns the name of a call, or its number.
pub(crate) fn name(number: u64) -> String {
    if !cfg!(target_arch = "x86_64") {
        return format!("system call {number}");
    }
    let found = NAMES.iter().find(|(known, _)| *known == number);
    found.map_or_else(
        || format!("system call {number}"),
        |(_, name)| (*name).to_owned(),
    )
}

/// Returns the number of a call that the kernel's function has in its name
/// (`__x64_sys_newstat`).
pub(crate) fn number(name: &str) -> Option<u64> {
    let plain = match name {
        "newstat" | "newlstat" | "newfstat" => name.trim_start_matches("new"),
        _ => name,
    };
    let found = NAMES.iter().find(|(_, known)| *known == plain);
    found.map(|(number, _)| *number)
}

/// Whether the first argument of a call is an open file.
pub(crate) fn has_file(number: u64) -> bool {
    FILES.contains(&number)
}
