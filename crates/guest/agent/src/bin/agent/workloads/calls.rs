//! Single system calls of one process that published reports are about: descriptors, attributes,
//! random numbers, copies within the kernel, timers, message queues, aio, and a filter before all.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};

use super::repeat::{repeat, whole};
use super::scratch::{self, Folder};
use super::{Failure, Made, Workload, in_guest};
use crate::sys::{c, check};

const BLOCK: usize = 4096;
/// What is sent from a file at a time.
const PIECE: usize = 64 * 1024;
/// A message of a queue.
const MESSAGE: usize = 128;
/// Instructions of the filter before those that decide.
const FILTER: usize = 60;
/// How long a sleep is asked for (ns).
const SLEEP: i64 = 1_000;

/// Opens a file that is there, for as long as the folder.
fn some_file(folder: &Folder) -> io::Result<File> {
    let mut file = folder.file("file")?;
    scratch::fill(&mut file, BLOCK)?;
    Ok(file)
}

/// call-lseek: the position within a file is set.
pub(super) fn lseek() -> Made {
    let folder = Folder::new()?;
    let file = some_file(&folder)?;
    repeat(move |_| {
        let _keep = &folder;
        // SAFETY: takes no memory of ours.
        check(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_SET) }).map(drop)
    })
}

/// call-writeseek: a block is written over and the position set back.
pub(super) fn write_seek() -> Made {
    let folder = Folder::new()?;
    let file = some_file(&folder)?;
    let block = [1u8; BLOCK];
    repeat(move |_| {
        let _keep = &folder;
        // SAFETY: takes no memory of ours.
        check(unsafe { libc::lseek(file.as_raw_fd(), 0, libc::SEEK_SET) })?;
        // SAFETY: the block is as long as said.
        let written = unsafe { libc::write(file.as_raw_fd(), block.as_ptr().cast(), BLOCK) };
        whole(check(written as i64)?, BLOCK)
    })
}

/// call-dup: a descriptor is duplicated and closed.
pub(super) fn dup() -> Made {
    let file = File::open("/dev/null")?;
    repeat(move |_| {
        // SAFETY: takes numbers only.
        let copy = check(unsafe { libc::dup(file.as_raw_fd()) })?;
        // SAFETY: the descriptor is new and has no other owner.
        check(unsafe { libc::close(copy as i32) }).map(drop)
    })
}

/// call-fcntl: the flags of a descriptor are read and set.
pub(super) fn fcntl() -> Made {
    let file = File::open("/dev/null")?;
    repeat(move |_| {
        // SAFETY: takes numbers only.
        let flags = check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) })?;
        // SAFETY: as above.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags as i32) }).map(drop)
    })
}

/// call-fstat: the attributes of an open file. Not by libc, which may ask by an empty path.
pub(super) fn fstat() -> Made {
    let folder = Folder::new()?;
    let file = some_file(&folder)?;
    repeat(move |_| {
        let _keep = &folder;
        // SAFETY: a stat of zeroes is a valid value of the C struct.
        let mut found: libc::stat = unsafe { zeroed() };
        // SAFETY: the struct is valid for the call.
        check(unsafe { libc::syscall(libc::SYS_fstat, file.as_raw_fd(), &raw mut found) }).map(drop)
    })
}

/// call-statx: the attributes of a file by its path, by the newer call (Linux 4.11).
pub(super) fn statx() -> Made {
    let folder = Folder::new()?;
    some_file(&folder)?;
    let path = folder.path("file");
    let path = c(path.to_str().unwrap_or_default())?;
    let ask = move || {
        let mut found = [0u64; 32];
        // SAFETY: path and buffer, of 256 bytes as the C struct, are valid for the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_statx,
                libc::AT_FDCWD,
                path.as_ptr(),
                0,
                0x7ff,
                found.as_mut_ptr(),
            )
        })
        .map(drop)
    };
    ask()?;
    repeat(move |_| {
        let _keep = &folder;
        ask()
    })
}

/// call-getrandom: 32 random bytes (Linux 3.17).
pub(super) fn random() -> Made {
    let ask = || {
        let mut bytes = [0u8; 32];
        // SAFETY: the buffer is as long as said.
        let got = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
        whole(check(got)?, bytes.len())
    };
    ask()?;
    repeat(move |_| ask())
}

/// call-clock: the clock, which the vDSO reads.
pub(super) fn clock() -> Made {
    repeat(|_| {
        let mut now = time(0);
        // SAFETY: the struct is valid for the call.
        check(unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) }).map(drop)
    })
}

/// call-sendfile: a piece of a file in memory goes to /dev/null by way of a pipe in the kernel.
pub(super) fn sendfile() -> Made {
    let mut from = scratch::page_cache_file().map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Failure::Unsupported(format!("needs the right to mount a ramfs: {error}"))
        }
        _ => Failure::from(error),
    })?;
    scratch::fill(&mut from, PIECE)?;
    let to = OpenOptions::new().write(true).open("/dev/null")?;
    repeat(move |_| {
        let mut at = 0;
        // SAFETY: the place is valid for the call.
        let sent = unsafe { libc::sendfile(to.as_raw_fd(), from.as_raw_fd(), &raw mut at, PIECE) };
        whole(check(sent as i64)?, PIECE)
    })
}

/// One instruction of a filter (`struct sock_filter`).
const fn instruction(code: u16, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code,
        jt: 0,
        jf: 0,
        k,
    }
}

/// call-seccomp: getppid(2) behind a filter that looks at the call's number again and again and
/// lets it pass.
pub(super) fn seccomp() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it restricts the agent for good".to_owned(),
        ));
    }
    let mut filter = vec![instruction(
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        0,
    )];
    for number in 0..FILTER as u32 {
        // Equal or not, the next one follows: no system call has such a number.
        let code = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        filter.push(instruction(code as u16, 0x4000_0000 + number));
    }
    // Of the pointer to the arguments, so that no kernel takes the answer from its cache of numbers
    // (`seccomp_cache_prepare_bitmap` in kernel/seccomp.c).
    filter.push(instruction(
        (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        16,
    ));
    filter.push(instruction(
        (libc::BPF_RET | libc::BPF_K) as u16,
        libc::SECCOMP_RET_ALLOW,
    ));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    // SAFETY: program and filter are valid for the call, which copies them.
    let set = check(unsafe {
        libc::prctl(
            libc::PR_SET_SECCOMP,
            libc::SECCOMP_MODE_FILTER,
            &raw const program,
        )
    });
    set.map_err(|error| match error.raw_os_error() {
        Some(libc::EINVAL) => {
            Failure::Unsupported("the kernel has no filters (CONFIG_SECCOMP_FILTER)".to_owned())
        }
        _ => Failure::Error(error),
    })?;
    super::syscall::getppid()
}

const fn time(nanoseconds: i64) -> libc::timespec {
    libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds,
    }
}

/// timer-sleep: a sleep of a microsecond, which takes at least as long.
pub(super) fn sleep() -> Made {
    // The kernel waits this much longer at most (ns); otherwise 50 us.
    // SAFETY: takes numbers only.
    check(unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) })?;
    repeat(|_| {
        let asked = time(SLEEP);
        // SAFETY: the struct is valid for the call; what is left is not asked for.
        check(unsafe { libc::nanosleep(&raw const asked, null_mut()) }).map(drop)
    })
}

/// A timer of this process; deleted when dropped.
struct Timer(libc::timer_t);

impl Timer {
    /// Sets it to a moment that is long over.
    fn expire(&self) -> io::Result<()> {
        let setting = libc::itimerspec {
            it_interval: time(0),
            it_value: time(1),
        };
        // SAFETY: the struct is valid for the call; the old setting is not asked for.
        check(unsafe {
            libc::timer_settime(self.0, libc::TIMER_ABSTIME, &raw const setting, null_mut())
        })
        .map(drop)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and not used after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// timer-signal: a timer is set, expires at once, and its signal is taken.
pub(super) fn signal() -> Made {
    // SAFETY: a set of zeroes is a valid value of the C type.
    let mut wanted: libc::sigset_t = unsafe { zeroed() };
    // SAFETY: an event of zeroes is a valid value of the C struct.
    let mut event: libc::sigevent = unsafe { zeroed() };
    // SAFETY: the set is valid for the calls; the signal has to be blocked to be taken.
    check(unsafe {
        libc::sigemptyset(&raw mut wanted);
        libc::sigaddset(&raw mut wanted, libc::SIGUSR2);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const wanted, null_mut())
    })?;
    event.sigev_notify = libc::SIGEV_SIGNAL;
    event.sigev_signo = libc::SIGUSR2;
    let mut raw = null_mut();
    // SAFETY: both structs are valid for the call.
    check(unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut raw) })?;
    let timer = Timer(raw);
    repeat(move |_| {
        timer.expire()?;
        // SAFETY: the set is valid for the call; the details are not asked for.
        whole(
            check(unsafe { libc::sigwaitinfo(&raw const wanted, null_mut()) })?,
            libc::SIGUSR2 as usize,
        )
    })
}

/// A message of System V: its type, then its text.
#[repr(C)]
struct Message {
    kind: libc::c_long,
    text: [u8; MESSAGE],
}

struct Messages(i32);

impl Workload for Messages {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut message = Message {
            kind: 1,
            text: [1; MESSAGE],
        };
        for _ in 0..operations {
            // SAFETY: the message has the layout of the C struct and the length said.
            check(unsafe { libc::msgsnd(self.0, (&raw const message).cast(), MESSAGE, 0) })?;
            // SAFETY: as above.
            let got = unsafe { libc::msgrcv(self.0, (&raw mut message).cast(), MESSAGE, 0, 0) };
            whole(check(got as i64)?, MESSAGE)?;
        }
        Ok(())
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        // SAFETY: the queue is ours; removing it takes no further argument.
        unsafe { libc::msgctl(self.0, libc::IPC_RMID, null_mut()) };
    }
}

/// mqueue-sysv: a message into a queue of System V and out of it.
pub(super) fn messages() -> Made {
    // SAFETY: takes numbers only.
    let id = check(unsafe { libc::msgget(libc::IPC_PRIVATE, libc::IPC_CREAT | 0o600) })?;
    let id = i32::try_from(id).map_err(io::Error::other)?;
    Ok(Box::new(Messages(id)))
}

/// mqueue-posix: a message into a POSIX queue and out of it.
pub(super) fn posix_messages() -> Made {
    let name = c(&format!("/marvin-{}", std::process::id()))?;
    // SAFETY: attributes of zeroes are a valid value of the C struct.
    let mut attributes: libc::mq_attr = unsafe { zeroed() };
    attributes.mq_maxmsg = 2;
    attributes.mq_msgsize = MESSAGE as _;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
    // SAFETY: name and attributes are valid for the call.
    let raw = check(unsafe { libc::mq_open(name.as_ptr(), flags, 0o600, &raw const attributes) })?;
    let queue = super::share::owned(i32::try_from(raw).map_err(io::Error::other)?)?;
    // The queue is gone with its descriptor.
    // SAFETY: the name is valid for the call.
    check(unsafe { libc::mq_unlink(name.as_ptr()) })?;
    repeat(move |_| {
        let mut text = [1u8; MESSAGE];
        // SAFETY: the message is as long as said.
        check(unsafe { libc::mq_send(queue.as_raw_fd(), text.as_ptr().cast(), MESSAGE, 0) })?;
        // SAFETY: as above; the priority is not asked for.
        let got = unsafe {
            libc::mq_receive(
                queue.as_raw_fd(),
                text.as_mut_ptr().cast(),
                MESSAGE,
                null_mut(),
            )
        };
        whole(check(got as i64)?, MESSAGE)
    })
}

/// `struct iocb` of include/uapi/linux/aio_abi.h.
#[repr(C)]
#[derive(Default)]
struct Request {
    data: u64,
    key: u32,
    flags: u32,
    operation: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    more_flags: u32,
    event: u32,
}

/// A context of requests; destroyed when dropped.
struct Context(u64);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is ours and not used after this.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

impl Context {
    fn new() -> io::Result<Self> {
        let mut context = Self(0);
        // SAFETY: the context is valid for the call and zero before it.
        check(unsafe { libc::syscall(libc::SYS_io_setup, 8, &raw mut context.0) })?;
        Ok(context)
    }

    /// Submits a request, and returns its result when it is done.
    fn execute(&self, request: &mut Request) -> io::Result<i64> {
        let mut requests = [&raw mut *request];
        // SAFETY: the list has one request, whose buffer is as long as said.
        let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.0, 1, requests.as_mut_ptr()) };
        whole(check(taken)?, 1)?;
        let mut event = [0i64; 4];
        // SAFETY: there is room for one event, of 32 bytes; no timeout is passed.
        let done = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.0,
                1,
                1,
                event.as_mut_ptr(),
                null::<libc::timespec>(),
            )
        };
        whole(check(done)?, 1)?;
        Ok(event[2])
    }
}

/// aio-read: a read of a page that is in memory is submitted, and its end taken.
pub(super) fn aio() -> Made {
    let folder = Folder::new()?;
    let file = some_file(&folder)?;
    let context = Context::new()?;
    let mut buffer = vec![0u8; BLOCK];
    repeat(move |_| {
        let _keep = &folder;
        let mut request = Request {
            descriptor: file.as_raw_fd() as u32,
            buffer: buffer.as_mut_ptr() as u64,
            bytes: BLOCK as u64,
            ..Request::default()
        };
        whole(context.execute(&mut request)?, BLOCK)
    })
}
