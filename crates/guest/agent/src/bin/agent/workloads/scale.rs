//! Workloads of the scale suite: what the micro workloads do, by tasks on several processors at the
//! same time.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::all_at_once::AllAtOnce;
use super::scratch::Folder;
use super::split_work::TaskKind;
use super::{Made, Workload, fault, file, memory, process};

/// What goes through a pipe or a socket at a time.
const PIECE: usize = 512;

/// Makes the workload with so many tasks.
pub(super) type Create = fn(usize) -> Made;

/// The workloads by their names without the number of tasks.
pub(super) const SCALING: &[(&str, Create)] = &[
    ("fault-thr", |tasks| {
        all_at_once(TaskKind::Thread, tasks, |_| fault::anon())
    }),
    ("fault-proc", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| fault::anon())
    }),
    ("mmap-thr", |tasks| {
        all_at_once(TaskKind::Thread, tasks, |_| memory::mmap_munmap())
    }),
    ("mmap-proc", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| memory::mmap_munmap())
    }),
    ("futex-own", |tasks| {
        all_at_once(TaskKind::Thread, tasks, |_| refused(Arc::default()))
    }),
    ("futex-shared", |tasks| {
        let word = Arc::new(Word::default());
        all_at_once(TaskKind::Thread, tasks, move |_| refused(Arc::clone(&word)))
    }),
    ("switch-pair", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| process::pipe_pingpong())
    }),
    ("pipe-own", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| {
            let (from, to) = io::pipe()?;
            Ok(Box::new(Through::<PipeReader, PipeWriter> { from, to }))
        })
    }),
    ("unix-own", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| {
            let (from, to) = UnixStream::pair()?;
            Ok(Box::new(Through { from, to }))
        })
    }),
    ("open-own", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| file::open_close())
    }),
    ("open-shared", |tasks| {
        let folder = Folder::new()?;
        folder.file("file")?;
        let path = folder.path("file");
        in_folder(tasks, folder, move |_| {
            file::open_close_at(path.clone(), None)
        })
    }),
    ("unlink-own", |tasks| {
        all_at_once(TaskKind::Process, tasks, |_| file::create_unlink())
    }),
    ("unlink-shared", |tasks| {
        let folder = Folder::new()?;
        let files = folder.path("");
        in_folder(tasks, folder, move |number| {
            file::create_unlink_at(files.join(format!("file-{number:04}")), None)
        })
    }),
];

fn all_at_once(
    kind: TaskKind,
    tasks: usize,
    make: impl Fn(usize) -> Made + Clone + Send + 'static,
) -> Made {
    Ok(Box::new(AllAtOnce::start(kind, tasks, None, make)?))
}

/// Starts processes that share a folder.
fn in_folder(
    tasks: usize,
    folder: Folder,
    make: impl Fn(usize) -> Made + Clone + Send + 'static,
) -> Made {
    Ok(Box::new(AllAtOnce::start(
        TaskKind::Process,
        tasks,
        Some(folder),
        make,
    )?))
}

/// The word of a futex, on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Word(AtomicU32);

struct Refused(Arc<Word>);

impl Workload for Refused {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        for _ in 0..operations {
            // SAFETY: the word lives as long as `self`; no timeout is passed.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.0.0.as_ptr(),
                    operation,
                    1,
                    null::<libc::timespec>(),
                )
            };
        }
        Ok(())
    }
}

/// futex-…: wait for another value than the word has. The kernel takes the lock of the word's hash
/// bucket, looks, and refuses.
fn refused(word: Arc<Word>) -> Made {
    Ok(Box::new(Refused(word)))
}

struct Through<R, W> {
    from: R,
    to: W,
}

impl<R: Read, W: Write> Workload for Through<R, W> {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut buffer = [1; PIECE];
        for _ in 0..operations {
            self.to.write_all(&buffer)?;
            self.from.read_exact(&mut buffer)?;
        }
        Ok(())
    }
}
