//! What was observed of a program and of the host beside it. `observe` fills it in; the rules read
//! nothing else.

use std::collections::BTreeMap;

/// The collector that works when the program is not observed any more.
pub const AFTERWARDS: &str = "names";

/// The name of processes that no round saw.
pub const SHORT_LIVED: &str = "(short-lived)";

/// All that is known of one observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    /// The command, or the process.
    pub subject: String,
    /// The process of the command, or the observed one: all others descend from it.
    pub root: u32,
    /// How long it was observed (s).
    pub seconds: f64,
    /// The host that the program ran on.
    pub host: Host,
    /// Every thread that was seen at least twice.
    pub threads: Vec<Thread>,
    /// Where blocked threads were, grouped.
    pub waits: Vec<Wait>,
    /// Processes and threads that ended between two rounds.
    pub short_lived: ShortLived,
    /// Who started which programs, most often first.
    pub started: Vec<Started>,
    /// Where scripts and Java programs ran, by looks: the runtime as the program of each stack.
    pub scripts: Vec<Stack>,
    /// All system calls of a program that mostly waits; `None` if they were not traced.
    pub traced: Option<Traced>,
    /// Sockets in which something lay all the time; `None` without one.
    pub unread: Option<UnreadSockets>,
    /// Where goroutines of Go waited, most of them first.
    pub parked: Vec<Parked>,
    /// The same of coroutines of CPython.
    pub coroutines: Vec<Parked>,
    /// What the kernel counts for the processes.
    pub counters: Counters,
    /// Environment, limits and such.
    pub settings: Settings,
    /// Samples of what ran; `None` if none could be had.
    pub samples: Option<Samples>,
    /// What could not be observed.
    pub gaps: Vec<Gap>,
    /// What observing cost: collector and processor time (s).
    pub costs: Vec<(&'static str, f64)>,
}

/// Sockets in which something lay all the time that the program did not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnreadSockets {
    /// How many.
    pub sockets: usize,
    /// What lay in all of them at the last look (bytes).
    pub bytes: u64,
    /// The one with most: its description, as in `Object::File`.
    pub file: String,
}

/// The system calls of a part of the time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Traced {
    /// How long they were traced (s).
    pub seconds: f64,
    /// By call, most frequent first.
    pub calls: Vec<TracedCall>,
}

/// The system calls of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedCall {
    /// Its name.
    pub call: String,
    /// How many ended.
    pub count: u64,
    /// How many had the most frequent error.
    pub failed: u64,
    /// The number of that error; 0 without one.
    pub error: i64,
    /// The path that most have; empty if none was seen.
    pub file: String,
}

/// The host during the observation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    /// Processors that are online.
    pub processors: usize,
    /// Idle time of all processors, as a share of their time.
    pub idle: f64,
    /// Time that a hypervisor gave to others, likewise.
    pub steal: f64,
    /// Processor time of all other processes (s).
    pub others_s: f64,
    /// The shares of the time in which some task was delayed: by memory, and by I/O
    /// (`/proc/pressure`); `None` without it.
    pub pressure: Option<Pressure>,
    /// The release of the kernel.
    pub kernel: String,
    /// Options of the kernel that make it slow: of its config and its command line.
    pub debugging: Vec<String>,
    /// Mitigations that are active, as the kernel describes them.
    pub mitigations: Vec<String>,
    /// What its clock is read from, such as `tsc`; empty if the kernel tells none.
    pub clock_source: String,
    /// The frequency governor of the first processor; empty if there is none.
    pub governor: String,
    /// The frequency of the fastest processor on average, and the highest there is (kHz); `None`
    /// if the kernel tells none.
    pub frequency: Option<[u64; 2]>,
}

/// The shares of the time in which some task was delayed.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pressure {
    /// Share of the time in which some task waited for memory.
    pub memory: f64,
    /// Share of the time in which some task waited for I/O.
    pub io: f64,
}

/// The time of a thread while it was observed (s). Running, waiting and blocked add up to the
/// total.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thread {
    /// The id of its process.
    pub process: u32,
    /// The id of the thread; that of the process for its first thread.
    pub id: u32,
    /// Its name, as in `/proc/TID/comm`.
    pub name: String,
    /// Observed time (s).
    pub total_s: f64,
    /// Time in user mode (s).
    pub user_s: f64,
    /// Time in the kernel (s).
    pub system_s: f64,
    /// Runnable, without a processor.
    pub waiting_s: f64,
    /// Switches because it blocked.
    pub voluntary: u64,
    /// The processors that it may use.
    pub allowed: usize,
    /// Where it was, by period: the observation in equal parts.
    pub periods: Vec<Period>,
    /// How many sockets it was seen blocked at.
    pub sockets: usize,
}

/// The time of a thread in a part of the observation (s).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Period {
    /// Time in user mode (s).
    pub user_s: f64,
    /// Time in the kernel (s).
    pub system_s: f64,
    /// Time runnable without a processor (s).
    pub waiting_s: f64,
    /// Time blocked (s).
    pub blocked_s: f64,
}

impl Thread {
    /// Returns the time on a processor (s).
    #[must_use]
    pub fn running_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Returns the time in which it was neither running nor runnable (s).
    #[must_use]
    pub fn blocked_s(&self) -> f64 {
        (self.total_s - self.running_s() - self.waiting_s).max(0.0)
    }
}

/// Threads that were blocked at the same place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wait {
    /// Whether a signal does not wake them: state D.
    pub is_uninterruptible: bool,
    /// The system call: its name or number; empty if the kernel tells none, as in a page fault.
    pub call: String,
    /// The kernel function in which they wait; empty if the kernel tells none.
    pub function: String,
    /// What they wait for.
    pub object: Object,
    /// The stack in user mode, innermost first; empty if it was not read.
    pub stack: Vec<String>,
    /// How long, over all threads (s).
    pub seconds: f64,
    /// The ids of the threads that waited there.
    pub threads: Vec<u32>,
    /// The files whose events they wait for: what poll and epoll watch.
    pub watched: Vec<Watched>,
    /// Whom they wait for, as far as that was found, longest first.
    pub behind: Vec<Behind>,
    /// The longest time after which they go on without an event (ms); `None` if they wait for one.
    pub timeout_ms: Option<u64>,
    /// The TCP connection that they wait at.
    pub connection: Option<Connection>,
}

/// A TCP connection at which threads waited, over the looks at it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Connection {
    /// Looks at it.
    pub looks: u64,
    /// Looks at which Nagle's algorithm held data of this end, and of the peer.
    pub held: [u64; 2],
    /// Looks at which the peer had not read what had arrived.
    pub unread: u64,
    /// What the kernel had of it at the last look.
    pub tcp: Tcp,
}

/// What the kernel has of one end of a TCP connection (include/uapi/linux/tcp.h).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Most bytes of a segment.
    pub segment: u32,
    /// Segments that were sent and not acknowledged.
    pub unacknowledged: u32,
    /// Bytes that were written and not sent.
    pub unsent: u32,
    /// Segments that may be unacknowledged: the congestion window.
    pub window: u32,
    /// The round trip (µs).
    pub round_trip_us: u32,
    /// Segments that were sent again.
    pub retransmitted: u32,
    /// How long there was something to send, and of that, how long the receiver's window and the
    /// own buffer were full (µs).
    pub busy_us: u64,
    /// How long the window of the receiver was full (µs).
    pub receiver_limited_us: u64,
    /// How long the own buffer was too small (µs).
    pub buffer_limited_us: u64,
}

impl Tcp {
    /// Returns whether Nagle's algorithm holds data: less than a segment is written and not sent,
    /// although the window has room, because an earlier segment is not acknowledged
    /// (net/ipv4/tcp_output.c: tcp_nagle_check).
    #[must_use]
    pub fn is_held(&self) -> bool {
        (1..self.segment).contains(&self.unsent) && (1..self.window).contains(&self.unacknowledged)
    }
}

/// A file that a thread waits for beside others, by poll, select or epoll.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    /// What it is.
    pub kind: WatchedKind,
    /// Its description, as in `Object::File`.
    pub file: String,
}

/// What a watched file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WatchedKind {
    /// A socket that clients connect to.
    Listening,
    /// A socket with a peer.
    Socket,
    /// A pipe.
    Pipe,
    /// Something of the program itself: an eventfd, a timer, signals.
    Own,
    /// Another file.
    Other,
}

/// A thread or a process that others wait for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Behind {
    /// What it has to do with the wait.
    pub role: Role,
    /// Its process.
    pub process: u32,
    /// Its thread; that of the process for its first thread.
    pub thread: u32,
    /// The name of the process or the thread; of a process of another program the title that it
    /// gave itself, if it did.
    pub name: String,
    /// Whether it belongs to the observed program.
    pub is_own: bool,
    /// What it did while others waited for it, most looks first.
    pub doing: Vec<Doing>,
}

/// What a thread or process has to do with a wait for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// It holds the lock.
    #[default]
    Holder,
    /// It has the other end of a pipe or a socket.
    Peer,
    /// It traces the waiting thread.
    Tracer,
}

/// Goroutines of Go or coroutines of CPython that wait at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parked {
    /// Their process.
    pub process: u32,
    /// What for, as Go's runtime calls it: `chan receive`, `IO wait`; empty if it does not say, as CPython.
    pub reason: String,
    /// Their functions, innermost first.
    pub stack: Vec<String>,
    /// How many there were on average.
    pub number: f64,
}

/// What a thread did at a number of looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Doing {
    /// Where it waited; `None` if it ran or could run.
    pub wait: Option<Box<Wait>>,
    /// At how many looks.
    pub looks: u64,
    /// Its functions while it ran, innermost first; empty if they are not known.
    pub stack: Vec<String>,
}

/// What a blocked thread waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// It is not known.
    #[default]
    Unknown,
    /// A word of memory.
    Futex(Futex),
    /// An open file: its description.
    File(String),
    /// The end of a child.
    Child,
    /// A signal that continues it, or its tracer.
    Stop,
    /// Nothing but the end of a time, as of a select without files.
    Timer,
}

/// A word on which threads wait.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Futex {
    /// Its process and address.
    pub word: (u32, u64),
    /// What is mapped there, such as `libc.so.6+0x1d3c60` or `[heap]`.
    pub mapping: String,
    /// Whether its value is a thread of the process: the waiter joins that thread.
    pub is_join: bool,
}

/// What ended between two rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ShortLived {
    /// Processor time in user mode (s).
    pub user_s: f64,
    /// In the kernel (s).
    pub system_s: f64,
    /// What the program created; `None` if the kernel does not say whose new processes are.
    pub created: Option<Created>,
}

/// What the program's processes created while they were observed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Created {
    /// New processes.
    pub processes: u64,
    /// New threads of these and older processes.
    pub threads: u64,
}

/// Processes of one name that processes of another one created.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Started {
    /// The program that they executed; empty for the creation itself, before any.
    pub program: String,
    /// The command line of one of them; empty if none was seen.
    pub command: String,
    /// The name of who created them.
    pub by: String,
    /// The command line of one of those.
    pub by_command: String,
    /// How many.
    pub count: u64,
    /// The part of the observation between the first and the last of them.
    pub span: f64,
}

/// Sums over all processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// The growth of the largest resident memory (pages of 4096 bytes).
    pub touched_pages: u64,
    /// The most that one of its processes had in memory (pages of 4096 bytes).
    pub resident_pages: u64,
    /// Read calls, failed ones included.
    pub reads: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes that reads returned.
    pub read_bytes: u64,
    /// Bytes that writes took.
    pub written_bytes: u64,
    /// Bytes that came from storage.
    pub storage_read_bytes: u64,
    /// Bytes that went to storage.
    pub storage_written_bytes: u64,
    /// Huge pages that the host split.
    pub huge_pages_split: u64,
    /// The most pages that its processes had on swap.
    pub swapped_pages: u64,
    /// Pages that the host read from swap.
    pub swapped_in: u64,
    /// Pages that the host read again soon after it reclaimed them (refaults).
    pub refaulted: u64,
}

/// What was set before the program ran.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Variables of its environment that change its speed, with what may be shown of their values.
    pub environment: BTreeMap<String, String>,
    /// The version of glibc, as in (2, 36); `None` for another library.
    pub glibc: Option<(u32, u32)>,
    /// Libraries that it maps.
    pub libraries: Vec<String>,
    /// The most frequent ending of files that it has mapped, and how many those are.
    pub mapped: Option<(String, usize)>,
    /// How often its cgroup's quota was exhausted, and of how many periods.
    pub throttled: (u64, u64),
    /// The quota of its cgroup (thousandths of a processor).
    pub quota: Option<u64>,
    /// The file that has it; empty without one.
    pub quota_file: String,
    /// Limits of memory, dirty pages and open files.
    pub limits: Vec<Limit>,
    /// The process that traces the program, with its name: `4711 strace`; empty without one.
    pub tracer: String,
}

/// A limit that was set outside the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// What is limited.
    pub of: Limited,
    /// The limit (bytes, or files).
    pub value: u64,
    /// The most that was used while it was observed.
    pub used: u64,
    /// The file that has the limit.
    pub file: String,
    /// What to write to the file to be without the limit; empty if it cannot be switched for one
    /// command.
    pub without: &'static str,
}

/// What a limit is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limited {
    /// Memory of a cgroup.
    Memory,
    /// Dirty pages, of the host or of a device.
    Dirty,
    /// Open files of a process.
    Files,
}

/// Samples of what ran on processors.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// Equal stacks once, with their samples.
    pub stacks: Vec<Stack>,
    /// Sampled page faults; each stands for `fault_period` of them.
    pub faults: Vec<FaultingCode>,
    /// Samples in user mode right behind an atomic instruction.
    pub atomics: Vec<FaultingCode>,
    /// Samples in user mode at the instruction that loops wait with (PAUSE).
    pub pauses: Vec<FaultingCode>,
    /// The loop with most samples of the function that at least half of those in user mode are in.
    pub hot_loop: Option<HotLoop>,
    /// Samples by program, most first: also of those that no round saw.
    pub programs: Vec<(String, u64)>,
    /// System calls with their arguments and results.
    pub calls: Vec<Called>,
    /// Samples that the kernel dropped.
    pub lost: u64,
}

/// A stack with its samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stack {
    /// The program's name, as in `/proc/PID/comm`.
    pub program: String,
    /// Functions of the kernel, innermost first; empty in user mode.
    pub kernel: Vec<String>,
    /// Functions of the program, innermost first.
    pub user: Vec<String>,
    /// Samples with this stack.
    pub samples: u64,
}

impl Stack {
    /// Returns the system call that the kernel executes: `read` of `__x64_sys_read`.
    #[must_use]
    pub fn call(&self) -> Option<&str> {
        let prefixes = [
            "__x64_sys_",
            "__arm64_sys_",
            "__ia32_sys_",
            "__do_sys_",
            "__se_sys_",
            "ksys_",
            "sys_",
        ];
        let call = self.kernel.iter().rev().find_map(|function| {
            prefixes
                .iter()
                .find_map(|prefix| function.strip_prefix(prefix))
        });
        // ksys_mmap_pgoff is mmap (mm/mmap.c).
        let call = call.map(|call| call.trim_end_matches("_pgoff"));
        call.or_else(|| self.entering_call())
    }

    /// Returns the system call of a stack without the call's own function: it is still at the entry,
    /// already back there, or the function ended with a jump to the next one. Then it is that of the
    /// C library's function.
    fn entering_call(&self) -> Option<&str> {
        let entries = [
            "do_syscall_64",
            "entry_SYSCALL_64",
            "syscall_return",
            "syscall_exit",
        ];
        let is_entry = |function: &String| entries.iter().any(|entry| function.starts_with(entry));
        let is_call = self.kernel.iter().any(is_entry);
        let (function, file) = self.user.first()?.split_once(" (")?;
        let is_libc = file.starts_with("libc.") || file.starts_with("libc-");
        (is_call && is_libc).then(|| function.trim_start_matches('_'))
    }
}

/// What a sampled system call was asked for, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    /// Its name, as the kernel's function has it.
    pub call: String,
    /// The path that it was given, or what its open file is; empty if it was not looked up.
    pub file: String,
    /// Its arguments, 0 for addresses; of `rt_sigreturn` the signal.
    pub arguments: [u64; 4],
    /// What it returned, errors as negative numbers; `None` while it was executed.
    pub result: Option<i64>,
    /// Samples.
    pub samples: u64,
}

/// Samples of one place, such as page faults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultingCode {
    /// The function, for faults that which touched the memory.
    pub function: String,
    /// Samples.
    pub samples: u64,
}

/// A loop, with the samples in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HotLoop {
    /// How many instructions it has.
    pub instructions: usize,
    /// How it goes through memory.
    pub walk: Walk,
    /// Samples.
    pub samples: u64,
}

/// How a loop goes through memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Walk {
    /// Each turn loads the address of the next one's load.
    Pointers,
    /// In steps of so many bytes.
    Steps(u64),
    /// In steps whose size is in a register and stays.
    Rows,
    /// In no way that its instructions tell.
    #[default]
    Other,
}

/// What is not observed of a Go program that is stripped.
pub const GOROUTINES: &str = "what goroutines wait for";

/// What could not be observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gap {
    /// What could not be observed.
    pub what: &'static str,
    /// The reason, as an error says it.
    pub why: String,
    /// What would add it.
    pub remedy: &'static str,
}
