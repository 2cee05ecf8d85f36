//! The workloads. Their declarations (what they stress, how many operations, which metric) are in
//! `model`.
//!
//! A workload is small: set up once, do N operations, take down by dropping. What is not to be
//! measured goes into `prepare` and `clear`. Three rules keep the numbers honest:
//!
//! * `run` costs N times one operation and nothing else: no fixed part per iteration.
//! * Nothing depends on the agent itself: not on its size, nor on what other workloads it holds.
//! * No system call newer than Linux 3.10 is needed, but by workloads about newer ones: there they
//!   are unsupported.

mod all_at_once;
mod bpf;
mod calls;
mod control_group;
mod disk;
mod disk_image;
mod disk_mount;
mod ebizzy;
mod event;
mod exec;
mod ext4_format;
mod fault;
mod file;
mod file_systems;
mod hackbench;
mod hash;
mod heap;
mod loop_device;
mod mappings;
mod memory;
mod messages;
mod misbehave;
mod mutex;
mod netfilter;
mod netperf;
mod nfs;
mod pages;
mod partner;
mod pft;
mod process;
mod reclaim;
mod region;
mod repeat;
pub(crate) mod rmap;
mod scale;
mod scratch;
mod scripts;
mod security;
mod share;
mod socket;
mod split_work;
mod stream;
mod syscall;
mod tbench;
mod thread;
mod tiobench;
mod uring;

use std::io;

use disk_mount::InMemory;
use hackbench::{Channel, hackbench};
use reclaim::Generations;
use rmap::Case;
use split_work::TaskKind;
use tiobench::Order;

/// What is done between two iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Between {
    /// Sleep to a round point of guest time, so that each iteration meets the timer tick alike.
    Rest,
    /// Go on at once. For operations that leave work to be done later, such as memory that RCU
    /// frees after a grace period: resting would do it unmeasured, and the first operations of
    /// each iteration would be too cheap. And for partners that spin: while we rest they would
    /// have the processor, and the scheduler would hold it against them.
    GoOn,
}

/// Something else that was measured in an iteration: its name, as declared, and a number:
/// nanoseconds, things, or thousandths of a percent.
pub(crate) type Row = (String, u64);

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

    /// Returns what else was measured in the iteration that has just been cleared up; the same
    /// names each time.
    fn rows(&mut self) -> Vec<Row> {
        Vec::new()
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
    /// A call that the kernel does not know means that the workload cannot be run there, which is
    /// no failure.
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => {
                Self::Unsupported(error.to_string())
            }
            // PID 1 of a guest may do everything; an ordinary process may not.
            Some(libc::EPERM) => Self::Unsupported(format!("{error}: it needs root")),
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
    ("aim9-page", heap::page),
    ("aim9-brk", heap::brk),
    ("aim9-exec", exec::fork_exec_large),
    ("aim9-fork", exec::fork_exit_large),
    ("pft-proc-1", || pft::faults(TaskKind::Process, 1)),
    ("pft-proc-4", || pft::faults(TaskKind::Process, 4)),
    ("pft-thr-4", || pft::faults(TaskKind::Thread, 4)),
    ("stream-2-17", || stream::stream(17)),
    ("stream-2-19", || stream::stream(19)),
    ("stream-2-21", || stream::stream(21)),
    ("stream-2-23", || stream::stream(23)),
    ("stream-2-25", || stream::stream(25)),
    ("pagealloc-0-16", || pages::pages(16)),
    ("pagealloc-0-64", || pages::pages(64)),
    ("pagealloc-0-256", || pages::pages(256)),
    ("pagealloc-2-1", || pages::blocks(2, 1)),
    ("pagealloc-2-16", || pages::blocks(2, 16)),
    ("pagealloc-3-1", || pages::blocks(3, 1)),
    ("pagealloc-3-16", || pages::blocks(3, 16)),
    ("pagealloc-4-1", || pages::blocks(4, 1)),
    ("pagealloc-4-16", || pages::blocks(4, 16)),
    ("ebizzy", ebizzy::ebizzy),
    ("hackbench-pipe", || {
        hackbench(TaskKind::Process, Channel::Pipe)
    }),
    ("hackbench-sock", || {
        hackbench(TaskKind::Process, Channel::Socket)
    }),
    ("hackbench-thr-pipe", || {
        hackbench(TaskKind::Thread, Channel::Pipe)
    }),
    ("hackbench-thr-sock", || {
        hackbench(TaskKind::Thread, Channel::Socket)
    }),
    ("sdet-like-1", || scripts::sdet(1)),
    ("sdet-like-4", || scripts::sdet(4)),
    ("sdet-like-16", || scripts::sdet(16)),
    ("build-like-1", || scripts::build(1)),
    ("build-like-2", || scripts::build(2)),
    ("build-like-12", || scripts::build(12)),
    ("tcp-stream-64", || netperf::tcp_stream(64)),
    ("tcp-stream-128", || netperf::tcp_stream(128)),
    ("tcp-stream-256", || netperf::tcp_stream(256)),
    ("tcp-stream-1024", || netperf::tcp_stream(1024)),
    ("tcp-stream-2048", || netperf::tcp_stream(2048)),
    ("tcp-stream-3312", || netperf::tcp_stream(3312)),
    ("tcp-stream-4096", || netperf::tcp_stream(4096)),
    ("tcp-stream-8192", || netperf::tcp_stream(8192)),
    ("tcp-stream-16384", || netperf::tcp_stream(16384)),
    ("udp-send-64", || netperf::udp_send(64)),
    ("udp-send-128", || netperf::udp_send(128)),
    ("udp-send-256", || netperf::udp_send(256)),
    ("udp-send-1024", || netperf::udp_send(1024)),
    ("udp-send-2048", || netperf::udp_send(2048)),
    ("udp-send-3312", || netperf::udp_send(3312)),
    ("udp-send-4096", || netperf::udp_send(4096)),
    ("udp-send-8192", || netperf::udp_send(8192)),
    ("udp-send-16384", || netperf::udp_send(16384)),
    ("udp-recv-64", || netperf::udp_receive(64)),
    ("udp-recv-128", || netperf::udp_receive(128)),
    ("udp-recv-256", || netperf::udp_receive(256)),
    ("udp-recv-1024", || netperf::udp_receive(1024)),
    ("udp-recv-2048", || netperf::udp_receive(2048)),
    ("udp-recv-3312", || netperf::udp_receive(3312)),
    ("udp-recv-4096", || netperf::udp_receive(4096)),
    ("udp-recv-8192", || netperf::udp_receive(8192)),
    ("udp-recv-16384", || netperf::udp_receive(16384)),
    ("tbench-like-1", || tbench::tbench(1)),
    ("tbench-like-4", || tbench::tbench(4)),
    ("tio-like-seqrd-1", || tiobench::read(Order::Sequential, 1)),
    ("tio-like-seqrd-4", || tiobench::read(Order::Sequential, 4)),
    ("tio-like-rndrd-1", || tiobench::read(Order::Random, 1)),
    ("tio-like-rndrd-4", || tiobench::read(Order::Random, 4)),
    ("tio-like-seqwr-1", || tiobench::write(Order::Sequential, 1)),
    ("tio-like-seqwr-4", || tiobench::write(Order::Sequential, 4)),
    ("tio-like-rndwr-1", || tiobench::write(Order::Random, 1)),
    ("tio-like-rndwr-4", || tiobench::write(Order::Random, 4)),
    ("memcachetest-0", || reclaim::parallelio(0)),
    ("memcachetest-50", || reclaim::parallelio(50)),
    ("memcachetest-225", || reclaim::parallelio(225)),
    ("memcachetest-400", || reclaim::parallelio(400)),
    ("mbuild-all", reclaim::multibuild),
    ("kbuild-wall-2", || reclaim::kernbench(2)),
    ("kbuild-wall-16", || reclaim::kernbench(16)),
    ("reclaim-file", || reclaim::file(Generations::AsBooted)),
    ("reclaim-file-gen", || reclaim::file(Generations::On)),
    ("reclaim-file-lru", || reclaim::file(Generations::Off)),
    ("reclaim-anon", || reclaim::anonymous(Generations::AsBooted)),
    ("reclaim-anon-gen", || reclaim::anonymous(Generations::On)),
    ("reclaim-anon-lru", || reclaim::anonymous(Generations::Off)),
    ("reclaim-slow", || reclaim::slow(Generations::AsBooted)),
    ("reclaim-slow-gen", || reclaim::slow(Generations::On)),
    ("reclaim-slow-lru", || reclaim::slow(Generations::Off)),
    ("rmap-file-map", || rmap::cycle(Case::File)),
    ("rmap-shm-map", || rmap::cycle(Case::Shared)),
    ("rmap-sparse-map", || rmap::cycle(Case::Sparse)),
    ("rmap-file-fork", || rmap::fork(Case::File)),
    ("rmap-anon-fork", || rmap::fork(Case::Inherited)),
    ("rmap-chain-fork", || rmap::fork(Case::Chain)),
    ("ext4-fsync", || disk::fsync("ext4")),
    ("ext4-read", || disk::read("ext4")),
    ("ext4-randread", || disk::random_read("ext4")),
    ("ext4-unlink", || disk::unlink("ext4")),
    ("xfs-fsync", || disk::fsync("xfs")),
    ("xfs-read", || disk::read("xfs")),
    ("xfs-randread", || disk::random_read("xfs")),
    ("xfs-unlink", || disk::unlink("xfs")),
    ("btrfs-fsync", || disk::fsync("btrfs")),
    ("btrfs-read", || disk::read("btrfs")),
    ("btrfs-randread", || disk::random_read("btrfs")),
    ("btrfs-unlink", || disk::unlink("btrfs")),
];

/// Those of the suites subsystems and reports.
const SUBSYSTEMS: &[(&str, Create)] = &[
    ("memcg-fault", control_group::fault),
    ("memcg-kmem", control_group::kernel_memory),
    ("bpf-map", bpf::map),
    ("bpf-load", bpf::verify),
    ("bpf-run", bpf::run),
    ("landlock-open", security::landlock),
    ("key-update", security::keys),
    ("uring-nop", uring::nop),
    ("uring-read", uring::read),
    ("uring-sock", uring::socket),
    ("netfilter-rules", netfilter::rules),
    ("netfilter-ct", netfilter::conntrack),
    ("ext4-ram-create", || disk::create_in_memory(InMemory::Ext4)),
    ("ext4-ram-fsync", || disk::fsync_in_memory(InMemory::Ext4)),
    ("ext4-ram-read", || disk::read_in_memory(InMemory::Ext4)),
    ("map-mremap", mappings::remap),
    ("map-mlock", mappings::lock),
    ("map-split", mappings::split),
    ("map-many", mappings::many),
    ("map-many-fork", mappings::many_fork),
    ("map-zero", mappings::zero),
    ("map-shmget", mappings::segment),
    ("map-hugetlb", mappings::set_aside),
    ("map-large", mappings::large),
    ("map-file-shared", || mappings::of_file(libc::MAP_SHARED)),
    ("map-file-private", || mappings::of_file(libc::MAP_PRIVATE)),
    ("memcg-deep", control_group::deep_fault),
    ("memcg-stat", control_group::statistics),
    ("memcg-stat-few", control_group::statistics_of_few),
    ("memcg-tcp", control_group::tcp),
    ("call-lseek", calls::lseek),
    ("call-writeseek", calls::write_seek),
    ("call-dup", calls::dup),
    ("call-fcntl", calls::fcntl),
    ("call-fstat", calls::fstat),
    ("call-statx", calls::statx),
    ("call-getrandom", calls::random),
    ("call-clock", calls::clock),
    ("call-sendfile", calls::sendfile),
    ("call-seccomp", calls::seccomp),
    ("timer-sleep", calls::sleep),
    ("timer-signal", calls::signal),
    ("mqueue-sysv", calls::messages),
    ("mqueue-posix", calls::posix_messages),
    ("aio-read", calls::aio),
    ("uring-poll", uring::poll),
    ("sock-fd", messages::descriptor),
    ("sock-dgram", messages::datagram),
    ("sock-connect", messages::connect),
    ("sock-raw", messages::raw),
    ("sock-ports", messages::ports),
    ("uring-worker", uring::worker),
    ("sock-sctp", messages::sctp),
    ("alg-hash", hash::hash),
    ("loop-file", loop_device::attach),
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

/// Says whether this is a guest that is ours alone: the agent is its first process, or that one
/// says so. Elsewhere nothing may be changed that others notice.
fn in_guest() -> bool {
    if std::env::var_os(guest::IN_GUEST).is_some() {
        return true;
    }
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    program("1").is_some_and(|first| program("self") == Some(first))
}

/// Returns the names of all workloads.
pub(crate) fn names() -> impl Iterator<Item = String> {
    let scaling = scale::SCALING.iter().map(|(name, _)| format!("{name}-1"));
    let named = |list: &'static [(&str, Create)]| list.iter().map(|(name, _)| (*name).to_owned());
    named(WORKLOADS)
        .chain(named(file_systems::FILE_SYSTEMS))
        .chain(named(SUBSYSTEMS))
        .chain(scaling)
        .chain(named(share::SHARE))
}

/// Makes the workload of that name, with so many tasks: at the end of the name of a workload that
/// scales.
pub(crate) fn create(name: &str, tasks: u32) -> Made {
    let series = name.strip_suffix(&format!("-{tasks}"));
    if let Some((_, create)) = scale::SCALING
        .iter()
        .find(|(known, _)| Some(*known) == series)
    {
        return create(tasks as usize);
    }
    let (_, create) = WORKLOADS
        .iter()
        .chain(file_systems::FILE_SYSTEMS)
        .chain(SUBSYSTEMS)
        .chain(share::SHARE)
        .chain(HIDDEN)
        .find(|(known, _)| *known == name)
        .ok_or_else(|| Failure::Unsupported(format!("this agent has no workload `{name}`")))?;
    create()
}
