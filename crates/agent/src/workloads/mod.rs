//! The workloads. Their declarations (what they stress, how many operations, which metric) are in `model`.
//!
//! A workload is small: set up once, do N operations, take down by dropping. What is not to be measured goes into
//! `prepare` and `clear`.

mod process;
mod syscall;

use std::io;

/// A program that does a number of equal operations.
pub(crate) trait Workload {
    /// Makes ready for an iteration, unmeasured.
    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        Ok(())
    }

    /// Does the operations, measured.
    fn run(&mut self, operations: u64) -> io::Result<()>;

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
            Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                Self::Unsupported(error.to_string())
            }
            _ => Self::Error(error),
        }
    }
}

/// Makes a workload.
type Create = fn() -> Result<Box<dyn Workload>, Failure>;

const WORKLOADS: &[(&str, Create)] = &[
    ("getppid", syscall::getppid),
    ("pipe-pingpong", process::pipe_pingpong),
    #[cfg(feature = "one-more")]
    ("one-more", syscall::getppid),
];

/// Returns the names of all workloads.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

/// Makes the workload of that name.
pub(crate) fn create(name: &str) -> Result<Box<dyn Workload>, Failure> {
    let (_, create) = WORKLOADS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Failure::Unsupported(format!("this agent has no workload `{name}`")))?;
    create()
}
