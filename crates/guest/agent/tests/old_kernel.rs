//! Every workload runs where no system call newer than Linux 3.10 is to be had.
#![expect(
    unsafe_code,
    reason = "a seccomp filter can only be set with system calls"
)]
#![expect(
    clippy::print_stderr,
    reason = "says which workloads could not be tried here, and why"
)]
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests too")]

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output};

const AGENT: &str = env!("CARGO_BIN_EXE_marvin-agent");

/// finit_module(2), the last system call of Linux 3.10 on x86-64.
const LAST: u32 = 313;
/// Any newer one, to see that the filter works: memfd_create(2) of Linux 3.17.
const NEWER: i64 = 319;

/// Where the number of the system call is in what the filter sees (struct seccomp_data).
const NUMBER: u32 = 0;

/// Has this process, and what it executes, live without newer system calls.
fn forget_newer_calls() -> io::Result<()> {
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(
            (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
            0,
            0,
            NUMBER,
        ),
        step(
            (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16,
            0,
            1,
            LAST,
        ),
        step(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32,
        ),
        step(
            (libc::BPF_RET | libc::BPF_K) as u16,
            0,
            0,
            libc::SECCOMP_RET_ALLOW,
        ),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the call takes no memory of ours.
    let first = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
    // SAFETY: program and filter are valid for the call, which copies them.
    let second = unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    };
    if first == 0 && second == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn agent(words: &[&str]) -> Output {
    let mut command = Command::new(AGENT);
    command.args(words);
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(forget_newer_calls) };
    command.output().unwrap()
}

#[test]
fn the_filter_hides_newer_calls() {
    let mut command = Command::new("true");
    let newer = || {
        forget_newer_calls()?;
        // SAFETY: the filter answers; otherwise the kernel refuses the null pointer.
        match unsafe { libc::syscall(NEWER, std::ptr::null::<u8>(), 0) } {
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ENOSYS) => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EEXIST)),
        }
    };
    // SAFETY: between fork and exec only system calls are made.
    unsafe { command.pre_exec(newer) };
    assert!(command.status().unwrap().success());
}

/// What workloads about newer calls begin with: getrandom(2) is of Linux 3.17, bpf(2) of 3.18,
/// statx(2) of 4.11, io_uring of 5.1, landlock of 5.13.
const NEWER_SUBJECTS: [&str; 5] = [
    "bpf-",
    "uring-",
    "landlock-",
    "call-statx",
    "call-getrandom",
];

#[test]
fn every_workload_runs_without_newer_calls() {
    let listed = agent(&["list"]);
    let names = String::from_utf8(listed.stdout).unwrap();
    assert!(names.lines().count() > 30, "{names}");
    for name in names.lines() {
        let ran = agent(&["run", name, "8"]);
        let said = String::from_utf8_lossy(&ran.stdout);
        if said.contains("not supported: ") {
            // The filter says ENOSYS: that is what is missing only where a newer call is the subject.
            let is_about_newer = NEWER_SUBJECTS.iter().any(|group| name.starts_with(group));
            assert!(is_about_newer || !said.contains("os error 38"), "{said}");
            eprintln!("not tried here: {}", said.trim());
            continue;
        }
        assert!(
            ran.status.success(),
            "{name}: {:?} {said} {}",
            ran.status,
            String::from_utf8_lossy(&ran.stderr)
        );
        let lines = said
            .lines()
            .filter(|line| line.starts_with(name) && line.ends_with(" ns/op"))
            .count();
        assert_eq!(lines, 5, "{name}: {said}");
    }
}
