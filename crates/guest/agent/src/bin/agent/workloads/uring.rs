//! io_uring: requests by rings of memory that the kernel shares (`include/uapi/linux/io_uring.h`).
//! But for those of one workload all requests are done while they are submitted: no thread of the
//! kernel's takes part.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Made, Workload};
use crate::sys::check;

/// Requests of one submission: one operation.
const BATCH: u32 = 32;
/// What a request reads.
const BLOCK: usize = 4096;

// include/uapi/linux/io_uring.h; the numbers of the calls are those of x86-64 and arm64.
const SETUP: libc::c_long = 425;
const ENTER: libc::c_long = 426;
const GET_EVENTS: u32 = 1;
const RING_AT: i64 = 0;
const ENTRIES_AT: i64 = 0x1000_0000;
const NOP: u8 = 0;
const POLL: u8 = 6;
const READ: u8 = 22;
const SEND: u8 = 26;
const RECEIVE: u8 = 27;
/// `IOSQE_ASYNC`.
const ASYNC: u8 = 1 << 4;

/// `struct io_sqring_offsets`; `struct io_cqring_offsets` has the same size and its first fields.
#[repr(C)]
#[derive(Default)]
struct Offsets {
    head: u32,
    tail: u32,
    mask: u32,
    entries: u32,
    /// Of submissions flags, dropped, array; of completions overflow, entries, flags.
    more: [u32; 3],
    reserved: u32,
    address: u64,
}

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    submissions: u32,
    completions: u32,
    flags: u32,
    thread: [u32; 2],
    features: u32,
    workers: u32,
    reserved: [u32; 3],
    submission: Offsets,
    completion: Offsets,
}

/// `struct io_uring_sqe`, the fields that are used.
#[repr(C)]
#[derive(Default, Clone, Copy)]
struct Request {
    operation: u8,
    flags: u8,
    priority: u16,
    descriptor: i32,
    offset: u64,
    address: u64,
    length: u32,
    operation_flags: u32,
    user_data: u64,
    rest: [u64; 3],
}

/// `struct io_uring_cqe`.
#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

/// Shared memory of the kernel's.
struct Shared {
    start: *mut u8,
    bytes: usize,
}

impl Shared {
    fn new(ring: &OwnedFd, bytes: usize, at: i64) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice overlaps nothing of ours.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                ring.as_raw_fd(),
                at,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self {
            start: start.cast(),
            bytes,
        })
    }

    /// Returns where something lies; fails beyond the end.
    fn at<T>(&self, offset: usize) -> io::Result<*mut T> {
        if offset + size_of::<T>() > self.bytes {
            return Err(io::Error::other("an offset beyond the ring"));
        }
        // SAFETY: the offset is within the mapping; the kernel aligns what it places.
        Ok(unsafe { self.start.add(offset) }.cast())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and not used after this. It cannot fail for one that is there.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}

struct Ring {
    descriptor: OwnedFd,
    submissions: Shared,
    entries: Shared,
    completions: Shared,
    parameters: Parameters,
}

impl Ring {
    fn new() -> io::Result<Self> {
        let mut parameters = Parameters::default();
        // SAFETY: the parameters have the layout of the C struct and are valid for the call.
        let raw = check(unsafe { libc::syscall(SETUP, BATCH, &raw mut parameters) })?;
        let raw = i32::try_from(raw).map_err(io::Error::other)?;
        // SAFETY: the call just opened it, and it is nowhere else.
        let descriptor = unsafe { OwnedFd::from_raw_fd(raw) };
        let words = parameters.submissions as usize * size_of::<u32>();
        let submission_bytes = parameters.submission.more[2] as usize + words;
        let ends = parameters.completions as usize * size_of::<Completion>();
        // Where the completions begin, is the second of the three.
        let completion_bytes = parameters.completion.more[1] as usize + ends;
        // Since 5.4 both rings are one mapping; two of it are allowed.
        let entries = parameters.submissions as usize * size_of::<Request>();
        Ok(Self {
            submissions: Shared::new(&descriptor, submission_bytes, RING_AT)?,
            completions: Shared::new(&descriptor, completion_bytes, 0x800_0000)?,
            entries: Shared::new(&descriptor, entries, ENTRIES_AT)?,
            descriptor,
            parameters,
        })
    }

    fn counter(&self, ring: &Shared, offset: u32) -> io::Result<&AtomicU32> {
        let place: *mut AtomicU32 = ring.at(offset as usize)?;
        // SAFETY: the mapping lives as long as `self`; the kernel writes the counter atomically.
        Ok(unsafe { &*place })
    }

    /// Submits the requests, waits for all, and checks the results.
    fn submit(&self, requests: &[Request], expected: i32) -> io::Result<()> {
        let tail = self.counter(&self.submissions, self.parameters.submission.tail)?;
        let mask = self.parameters.submissions - 1;
        let mut position = tail.load(Ordering::Relaxed);
        for request in requests {
            let slot = position & mask;
            let entry: *mut Request = self.entries.at(slot as usize * size_of::<Request>())?;
            // SAFETY: checked to be within the mapping; the kernel does not read it before `tail`.
            unsafe { entry.write_volatile(*request) };
            let array = self.parameters.submission.more[2] + slot * size_of::<u32>() as u32;
            self.counter(&self.submissions, array)?
                .store(slot, Ordering::Relaxed);
            position = position.wrapping_add(1);
        }
        tail.store(position, Ordering::Release);
        let count = requests.len() as u32;
        // SAFETY: the call takes no memory of ours but the ring's; no signal mask is passed.
        let taken = check(unsafe {
            libc::syscall(
                ENTER,
                self.descriptor.as_raw_fd(),
                count,
                count,
                GET_EVENTS,
                std::ptr::null::<u8>(),
                0usize,
            )
        })?;
        if taken != i64::from(count) {
            return Err(io::Error::other(format!("{taken} requests were taken")));
        }
        self.take_completions(count, expected)
    }

    fn take_completions(&self, count: u32, expected: i32) -> io::Result<()> {
        let head = self.counter(&self.completions, self.parameters.completion.head)?;
        let tail = self.counter(&self.completions, self.parameters.completion.tail)?;
        let mask = self.parameters.completions - 1;
        let mut position = head.load(Ordering::Relaxed);
        let end = tail.load(Ordering::Acquire);
        if end.wrapping_sub(position) != count {
            return Err(io::Error::other("requests are not complete"));
        }
        while position != end {
            let slot = (position & mask) as usize * size_of::<Completion>();
            let first = self.parameters.completion.more[1] as usize;
            let completion: *const Completion = self.completions.at(first + slot)?;
            // SAFETY: checked to be within the mapping, and completed by the kernel.
            let result = unsafe { (&raw const (*completion).result).read_volatile() };
            if result < 0 {
                return Err(io::Error::from_raw_os_error(-result));
            }
            if result != expected {
                return Err(io::Error::other(format!("a request returned {result}")));
            }
            position = position.wrapping_add(1);
        }
        head.store(position, Ordering::Release);
        Ok(())
    }
}

/// The same requests again and again.
struct Requests {
    ring: Ring,
    requests: Vec<Request>,
    expected: i32,
    _buffer: Vec<u8>,
    _ends: Vec<OwnedFd>,
}

impl Workload for Requests {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.ring.submit(&self.requests, self.expected)?;
        }
        Ok(())
    }
}

/// uring-nop: requests that do nothing, a batch at a time.
pub(super) fn nop() -> Made {
    let request = Request {
        operation: NOP,
        descriptor: -1,
        ..Request::default()
    };
    Ok(Box::new(Requests {
        ring: Ring::new()?,
        requests: vec![request; BATCH as usize],
        expected: 0,
        _buffer: Vec::new(),
        _ends: Vec::new(),
    }))
}

/// uring-read: reads that never wait, from /dev/zero (`FMODE_NOWAIT` in drivers/char/mem.c).
pub(super) fn read() -> Made {
    reads(0)
}

/// uring-worker: the same, which are handed to threads of the kernel's.
pub(super) fn worker() -> Made {
    reads(ASYNC)
}

fn reads(flags: u8) -> Made {
    let ring = Ring::new()?;
    let file = OwnedFd::from(File::open("/dev/zero")?);
    let mut buffer = vec![0u8; BLOCK];
    let request = Request {
        operation: READ,
        flags,
        descriptor: file.as_raw_fd(),
        address: buffer.as_mut_ptr() as u64,
        length: BLOCK as u32,
        ..Request::default()
    };
    Ok(Box::new(Requests {
        ring,
        requests: vec![request; BATCH as usize],
        expected: BLOCK as i32,
        _buffer: buffer,
        _ends: vec![file],
    }))
}

/// uring-poll: questions whether a descriptor is ready, which it is (`IORING_OP_POLL_ADD`).
pub(super) fn poll() -> Made {
    let ring = Ring::new()?;
    // SAFETY: eventfd takes two numbers.
    let ready = super::share::owned(unsafe { libc::eventfd(1, 0) })?;
    let request = Request {
        operation: POLL,
        descriptor: ready.as_raw_fd(),
        operation_flags: libc::POLLIN as u32,
        ..Request::default()
    };
    Ok(Box::new(Requests {
        ring,
        requests: vec![request; BATCH as usize],
        expected: i32::from(libc::POLLIN),
        _buffer: Vec::new(),
        _ends: vec![ready],
    }))
}

/// uring-sock: messages into a unix socket and out of its other end, in turns.
pub(super) fn socket() -> Made {
    let ring = Ring::new()?;
    let (from, to) = UnixStream::pair()?;
    let mut buffer = vec![0u8; 64];
    let message = Request {
        address: buffer.as_mut_ptr() as u64,
        length: buffer.len() as u32,
        ..Request::default()
    };
    let send = Request {
        operation: SEND,
        descriptor: from.as_raw_fd(),
        ..message
    };
    let receive = Request {
        operation: RECEIVE,
        descriptor: to.as_raw_fd(),
        ..message
    };
    Ok(Box::new(Requests {
        ring,
        requests: [send, receive].repeat(BATCH as usize / 2),
        expected: buffer.len() as i32,
        _buffer: buffer,
        _ends: vec![from.into(), to.into()],
    }))
}
