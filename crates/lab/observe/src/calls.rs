//! Names of the system calls in which programs wait, on x86-64
//! (arch/x86/entry/syscalls/syscall_64.tbl).

const NAMES: &[(u64, &str)] = &[
    (0, "read"),
    (1, "write"),
    (3, "close"),
    (7, "poll"),
    (9, "mmap"),
    (10, "mprotect"),
    (11, "munmap"),
    (12, "brk"),
    (16, "ioctl"),
    (17, "pread64"),
    (18, "pwrite64"),
    (19, "readv"),
    (20, "writev"),
    (23, "select"),
    (24, "sched_yield"),
    (25, "mremap"),
    (26, "msync"),
    (28, "madvise"),
    (34, "pause"),
    (35, "nanosleep"),
    (40, "sendfile"),
    (42, "connect"),
    (43, "accept"),
    (44, "sendto"),
    (45, "recvfrom"),
    (46, "sendmsg"),
    (47, "recvmsg"),
    (56, "clone"),
    (57, "fork"),
    (58, "vfork"),
    (59, "execve"),
    (61, "wait4"),
    (64, "semget"),
    (65, "semop"),
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
    (87, "unlink"),
    (130, "rt_sigsuspend"),
    (128, "rt_sigtimedwait"),
    (162, "sync"),
    (202, "futex"),
    (208, "io_getevents"),
    (217, "getdents64"),
    (220, "semtimedop"),
    (230, "clock_nanosleep"),
    (232, "epoll_wait"),
    (247, "waitid"),
    (257, "openat"),
    (263, "unlinkat"),
    (264, "renameat"),
    (270, "pselect6"),
    (271, "ppoll"),
    (275, "splice"),
    (277, "sync_file_range"),
    (281, "epoll_pwait"),
    (285, "fallocate"),
    (288, "accept"),
    (295, "preadv"),
    (296, "pwritev"),
    (299, "recvmmsg"),
    (306, "syncfs"),
    (307, "sendmmsg"),
    (324, "membarrier"),
    (327, "preadv2"),
    (328, "pwritev2"),
    (426, "io_uring_enter"),
    (435, "clone3"),
    (441, "epoll_pwait2"),
    (449, "futex_waitv"),
];

/// The call whose first argument is a word of memory.
pub(crate) const FUTEX: u64 = 202;
/// Calls that wait for children.
pub(crate) const CHILDREN: [u64; 2] = [61, 247];
/// Calls that create a process and can wait until it executes a program: clone, vfork, clone3.
pub(crate) const CREATIONS: [u64; 3] = [56, 58, 435];
/// Calls whose first argument is an open file.
const FILES: [u64; 24] = [
    0, 1, 17, 18, 19, 20, 42, 43, 44, 45, 46, 47, 73, 74, 75, 217, 232, 275, 281, 288, 295, 299,
    306, 307,
];

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

/// Whether the first argument of a call is an open file.
pub(crate) fn has_file(number: u64) -> bool {
    FILES.contains(&number)
}
