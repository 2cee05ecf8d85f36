//! What a program that mostly waits does between its waits: a loop that asks again and again, and what
//! it is answered.

use crate::arguments::describe_error;
use crate::facts::{Facts, TracedCall};
use crate::finding::percent;

/// The least calls, and how many a second, that are worth a word.
const LEAST: u64 = 3;
const LEAST_RATE: f64 = 0.8;
/// New connections a second that are many.
const OFTEN: f64 = 5.0;
/// The part of a call's results from which on an error is worth a word, and that makes it the answer.
const SOME: f64 = 0.3;
const FAILING: f64 = 0.7;
/// Calls that wait, or that each loop has: they say nothing of what it is for.
const PLAIN: [&str; 32] = [
    "futex",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_ctl",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "nanosleep",
    "clock_nanosleep",
    "restart_syscall",
    "rt_sigtimedwait",
    "sched_yield",
    "mmap",
    "munmap",
    "mprotect",
    "mremap",
    "madvise",
    "brk",
    "read",
    "write",
    "close",
    "lseek",
    "fstat",
    "fcntl",
    "ioctl",
    "dup",
    "getrandom",
    "membarrier",
    "exit",
    "exit_group",
];
/// Errors that are part of waiting: EINTR, EAGAIN, ETIMEDOUT and EINPROGRESS, and those with which the
/// kernel asks again (include/linux/errno.h).
const OF_WAITING: [i64; 4] = [4, 11, 110, 115];
const RESTARTS: i64 = 512;

/// Returns the part of a call's results that are its most frequent error.
fn failing_part(call: &TracedCall) -> f64 {
    call.failed as f64 / call.count.max(1) as f64
}

/// Returns which call a program makes between its waits, as the end of a sentence; empty if it makes
/// none again and again, or was not traced.
pub(crate) fn between(facts: &Facts) -> String {
    let Some(traced) = &facts.traced else {
        return String::new();
    };
    // A JVM reads limits of its cgroup, and answers what Marvin asks it.
    let mut libraries = facts.settings.libraries.iter();
    if libraries.any(|library| library == "libjvm.so") {
        return String::new();
    }
    let rate = |call: &TracedCall| call.count as f64 / traced.seconds;
    let is_program = |call: &TracedCall| call.call == "execve" && call.count >= LEAST;
    // What programs do that it starts is theirs, and that it starts them is said elsewhere.
    if traced.calls.iter().any(is_program) {
        return String::new();
    }
    let is_wanted = |call: &&TracedCall| {
        call.count >= LEAST
            && rate(call) >= LEAST_RATE
            && !PLAIN.contains(&&*call.call)
            && !call.call.starts_with("system call")
    };
    let calls: Vec<&TracedCall> = traced.calls.iter().filter(is_wanted).collect();
    let is_failing = |call: &&&TracedCall| {
        failing_part(call) >= SOME && !OF_WAITING.contains(&call.error) && call.error < RESTARTS
    };
    // A new connection is several calls.
    let connects = calls.iter().find(|call| call.call == "connect");
    if let Some(connect) = connects.filter(|call| rate(call) >= OFTEN && !is_failing(call)) {
        let often = rate(connect);
        return format!("; it opens {often:.0} new connections a second (connect)");
    }
    let failing = calls.iter().find(is_failing);
    let Some(call) = failing.or(calls.first()) else {
        return String::new();
    };
    let file = match &*call.file {
        "" => String::new(),
        file => format!(" ({file})"),
    };
    let error = match failing.and_then(|call| describe_error(call.error)) {
        Some(error) if failing_part(call) >= FAILING => format!(", which fails ({error})"),
        Some(error) => {
            let part = percent(failing_part(call));
            format!(", of which {part} fail ({error})")
        }
        None => String::new(),
    };
    let often = rate(call);
    let often = if often < 10.0 {
        format!("{often:.1}")
    } else {
        format!("{often:.0}")
    };
    let name = &call.call;
    format!("; between that it calls {name}{file} {often} times a second{error}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Traced;

    fn call(call: &str, count: u64, failed: u64, error: i64) -> TracedCall {
        TracedCall {
            call: call.into(),
            count,
            failed,
            error,
            file: "/srv/lock".into(),
        }
    }

    fn sentence(calls: Vec<TracedCall>) -> String {
        between(&Facts {
            traced: Some(Traced {
                seconds: 2.0,
                calls,
            }),
            ..Facts::default()
        })
    }

    #[test]
    fn failing_call_comes_before_frequent_one() {
        let calls = vec![
            call("epoll_wait", 90, 0, 0),
            call("statx", 20, 0, 0),
            call("mkdir", 8, 8, 17),
        ];
        assert_eq!(
            sentence(calls),
            "; between that it calls mkdir (/srv/lock) 4.0 times a second, which fails (EEXIST: it exists already)"
        );
        let some = sentence(vec![call("mkdir", 10, 4, 17)]);
        assert!(
            some.ends_with("5.0 times a second, of which 40 % fail (EEXIST: it exists already)")
        );
    }

    #[test]
    fn frequent_call_is_named_without_error() {
        let calls = vec![call("statx", 40, 3, 2), call("recvfrom", 9, 9, 11)];
        assert_eq!(
            sentence(calls),
            "; between that it calls statx (/srv/lock) 20 times a second"
        );
    }

    #[test]
    fn waits_and_started_programs_say_nothing() {
        assert_eq!(sentence(vec![call("futex", 90, 90, 110)]), "");
        let starts = vec![call("execve", 9, 0, 0), call("access", 9, 9, 2)];
        assert_eq!(sentence(starts), "");
        assert_eq!(between(&Facts::default()), "");
    }
}
