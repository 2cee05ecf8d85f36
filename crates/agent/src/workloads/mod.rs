//! The workloads. Their declarations (what they stress, how many operations, which metric) are in `model`.
//!
//! A workload is small: set up once, do N operations, take down by dropping. What is not to be measured goes into
//! `prepare` and `clear`. Three rules keep the numbers honest:
//!
//! * `run` costs N times one operation and nothing else: no fixed part per iteration.
//! * Nothing depends on the agent itself: not on its size, nor on what other workloads it holds.
//! * No system call newer than Linux 3.10 is needed.

mod event;
mod exec;
mod fault;
mod file;
mod memory;
mod misbehave;
mod mutex;
mod peer;
mod process;
mod region;
mod scratch;
mod socket;
mod syscall;
mod thread;

use std::io;

/// What is done between two iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    /// Sleep to a round point of guest time, so that each iteration meets the timer tick alike.
    Rest,
    /// Go on at once. For operations that leave work to be done later, such as memory that RCU frees after a grace
    /// period: resting would do it unmeasured, and the first operations of each iteration would be too cheap. And for
    /// peers that spin: while we rest they would have the processor, and the scheduler would hold it against them.
    GoOn,
}

/// A program that does a number of equal operations.
pub(crate) trait Workload {
    /// Makes ready for an iteration, unmeasured.
    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        Ok(())
    }

    /// Does the operations, measured.
    fn run(&mut self, operations: u64) -> io::Result<()>;

    /// Says what is done between two iterations.
    fn between(&self) -> Between {
        Between::Rest
    }

    /// Clears up after an iteration, unmeasured.
    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Why a workload has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The kernel does not offer what it needs.
    Unsupported(String),
    /// A system call failed.
    Error(io::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unsupported(why) => write!(f, "not supported: {why}"),
            Self::Error(error) => error.fmt(f),
        }
    }
}

impl From<io::Error> for Failure {
    /// A call that the kernel does not know means that the workload cannot be run there, which is no failure.
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => Self::Unsupported(error.to_string()),
            _ => Self::Error(error),
        }
    }
}

/// What making a workload gives.
type Made = Result<Box<dyn Workload>, Failure>;
type Create = fn() -> Made;

const WORKLOADS: &[(&str, Create)] = &[
    ("getppid", syscall::getppid),
    ("signal", syscall::signal),
    ("switch-yield", process::switch_yield),
    ("pipe-pingpong", process::pipe_pingpong),
    ("futex-pingpong", thread::futex_pingpong),
    ("unix-pingpong", socket::unix_pingpong),
    ("event-fd", event::eventfd),
    ("event-epoll", event::epoll_wait),
    ("event-poll", event::poll),
    ("fork-exit", exec::fork_exit),
    ("fork-exec", exec::fork_exec),
    ("fork-vfork-exec", exec::vfork_exec),
    ("thread-create", thread::thread_create),
    ("fault-anon", fault::anon),
    ("fault-file-private", fault::file_private),
    ("fault-file-shared", fault::file_shared),
    ("fault-cow", fault::cow),
    ("fault-huge", fault::huge),
    ("mem-mmap", memory::mmap_munmap),
    ("mem-mprotect", memory::mprotect),
    ("mem-brk", memory::brk),
    ("mem-dontneed", memory::madvise_dontneed),
    ("file-read-4k", file::read_4k),
    ("file-read-64k", file::read_64k),
    ("file-write-4k", file::write_4k),
    ("file-write-64k", file::write_64k),
    ("file-open", file::open_close),
    ("file-stat", file::stat),
    ("file-create", file::create_unlink),
    ("file-readdir", file::readdir),
    ("tcp-connect", socket::tcp_connect),
    ("tcp-rr", socket::tcp_rr),
    ("tcp-stream", socket::tcp_stream),
    ("udp-rr", socket::udp_rr),
    ("sem-sysv", syscall::semaphore),
    ("mutex-uncontended", mutex::uncontended),
    ("mutex-contended", mutex::contended),
];

/// Misbehaviours, for the tests of the host side. Not listed.
const HIDDEN: &[(&str, Create)] = &[
    ("misbehave-panic", misbehave::panic),
    ("misbehave-hang", misbehave::hang),
    ("misbehave-exit", misbehave::exit),
    ("misbehave-segv", misbehave::segv),
    ("misbehave-oom", misbehave::oom),
    ("misbehave-print", misbehave::print),
    ("misbehave-garble", misbehave::garble),
    ("misbehave-fail", misbehave::fail),
    ("misbehave-unsupported", misbehave::unsupported),
];

/// Says whether this is a guest that is ours alone: the agent is its first process. Elsewhere nothing may be changed
/// that others notice.
fn in_guest() -> bool {
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    program("1").is_some_and(|first| program("self") == Some(first))
}

/// Returns the names of all workloads.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

/// Makes the workload of that name.
pub(crate) fn create(name: &str) -> Made {
    let (_, create) = WORKLOADS
        .iter()
        .chain(HIDDEN)
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Failure::Unsupported(format!("this agent has no workload `{name}`")))?;
    create()
}
