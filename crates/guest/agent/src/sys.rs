//! System calls with `io::Result`: the few that std does not offer and more than one place here
//! needs.

use std::ffi::CString;
use std::io;

/// Turns a C return value into a result: negative means `errno`.
pub fn check(value: impl Into<i64>) -> io::Result<i64> {
    match value.into() {
        value if value < 0 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}

/// Returns a C string.
pub fn c(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(io::Error::other)
}

/// Which side of a fork we are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fork {
    /// The child.
    Child,
    /// The parent, with the child's process id.
    Parent(libc::pid_t),
}

/// Forks. The agent has one thread wherever it forks, so the child may do anything.
pub fn fork() -> io::Result<Fork> {
    // SAFETY: a single-threaded process may fork; the child continues with its own copy of
    // everything.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Fork::Child),
        pid => Ok(Fork::Parent(pid as libc::pid_t)),
    }
}

/// Ends the process at once, running no destructor: what a forked child does.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit never returns and frees what the process holds.
    unsafe { libc::_exit(code) }
}

/// Waits for a child and returns its wait status.
pub fn wait_for(pid: libc::pid_t) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is a valid int for the duration of the call.
        match check(unsafe { libc::waitpid(pid, &raw mut status, 0) }) {
            Ok(_) => return Ok(status),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Says in words how a child ended, or nothing when it ended well.
pub fn bad_end(status: i32) -> Option<String> {
    if libc::WIFSIGNALED(status) {
        Some(format!("killed by signal {}", libc::WTERMSIG(status)))
    } else if libc::WEXITSTATUS(status) != 0 {
        Some(format!("exit status {}", libc::WEXITSTATUS(status)))
    } else {
        None
    }
}

/// Maps anonymous memory, private or shared by `flags`.
pub fn map_anonymous(bytes: usize, flags: i32) -> io::Result<*mut u8> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
    let address = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            flags | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if address == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        Ok(address.cast())
    }
}

/// Ends a child at once and waits for it.
pub fn kill_and_wait(pid: libc::pid_t) -> io::Result<i32> {
    // SAFETY: kill takes no memory of ours; `pid` is a child that nobody has waited for yet, so
    // still the same one.
    check(unsafe { libc::kill(pid, libc::SIGKILL) })?;
    wait_for(pid)
}

/// Gives up the processor to whoever else can run.
pub fn yield_now() {
    // SAFETY: sched_yield takes nothing and always succeeds on Linux.
    unsafe { libc::sched_yield() };
}

/// Keeps this process, and the threads and children it starts from now on, on the processor it is
/// on.
pub fn stay_on_this_cpu() -> io::Result<()> {
    // SAFETY: sched_getcpu takes nothing.
    let cpu = check(unsafe { libc::sched_getcpu() })?;
    stay_on(&[usize::try_from(cpu).map_err(io::Error::other)?])
}

/// Returns the processors that this process may use, the last first.
pub fn processors() -> io::Result<Vec<usize>> {
    // SAFETY: a cpu_set_t of zeroes is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for the call and of the size given.
    check(unsafe { libc::sched_getaffinity(0, size_of_val(&set), &raw mut set) })?;
    // SAFETY: `set` is valid; CPU_ISSET checks that the number is within it.
    let may_use = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &set) };
    Ok((0..libc::CPU_SETSIZE as usize)
        .rev()
        .filter(may_use)
        .collect())
}

/// Keeps this process, and the threads and children it starts from now on, on these processors.
pub fn stay_on(cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a cpu_set_t of zeroes is a valid, empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus {
        // SAFETY: `set` is valid; CPU_SET checks that the number is within it.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: `set` is valid for the call and of the size given.
    check(unsafe { libc::sched_setaffinity(0, size_of_val(&set), &raw const set) }).map(|_| ())
}

/// Makes this process, and the threads and children it starts from now on, never displace another
/// one by waking up.
///
/// So a ping-pong has the same two switches each time. Otherwise it depends on the scheduler's
/// accounts whether the one who is woken runs at once or when the other has gone to sleep, and that
/// goes on changing.
pub fn wake_up_politely() -> io::Result<()> {
    // SAFETY: a sched_param of zeroes is valid: the only priority that this policy has.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: the parameters are valid for the call.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters) })
        .map(|_| ())
}
