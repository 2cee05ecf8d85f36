//! A group: tasks, threads or processes, that each do all operations of an iteration at the same
//! time, each on a processor of its own. So an operation of a task costs the same with any number
//! of tasks, if the kernel scales.
//!
//! The workload's process is the first task and has the clock. All tasks make ready, then meet at a
//! gate; the iteration begins when it opens and ends with the last task. Tasks do not sleep at the
//! gate: to wake them one by one would take longer than many iterations. Between iterations they
//! sleep.

use std::io;
use std::ptr::null;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;

use super::partner::Partner;
use super::region::{PAGE, Region};
use super::scratch::Folder;
use super::split_work::{Step, TaskKind};
use super::{Between, Failure, Made, Workload};
use crate::sys;

/// The order that ends a task.
const END: u32 = u32::MAX;
/// How often a task looks before it lets others run: they may be on its processor if the host has
/// too few.
const LOOKS: u32 = 1 << 12;
/// How many such rounds pass between two looks after members that died.
const ROUNDS: u32 = 1 << 8;

/// What the tasks share, at the beginning of a page: its words are atomic, and all are zero at
/// first.
#[repr(C)]
struct Mailbox {
    /// The number of the present order, which the first task counts up; others sleep until it
    /// changes.
    order: AtomicU32,
    /// What the order is, as a [`Step`].
    step: AtomicU32,
    /// Operations of each task.
    operations: AtomicU64,
    /// The order whose measured part has begun.
    gate: AtomicU32,
    /// Tasks but the first that have done their part.
    arrived: AtomicU32,
    /// The error of one of them.
    failed: AtomicI32,
}

enum Life {
    Process(Partner),
    Thread(Option<JoinHandle<()>>),
}

/// A group that lives as long as this value.
pub(super) struct AllAtOnce {
    /// The first task's own work.
    own: Box<dyn Workload>,
    others: Vec<Life>,
    page: Arc<Page>,
    /// What all tasks use, kept until they have ended.
    _shared: Option<Folder>,
}

/// The page of a mailbox.
struct Page(Region);

// SAFETY: it is used as a mailbox only, whose words are atomic.
unsafe impl Sync for Page {}

fn mailbox(page: &Page) -> &Mailbox {
    // SAFETY: the page is aligned, larger than a mailbox, zeroed by the kernel, and lives as long
    // as the reference; all its words are atomic, in this process and in others.
    unsafe { &*page.0.start().cast::<Mailbox>() }
}

impl AllAtOnce {
    /// Starts so many tasks; each makes its own work, knowing its number.
    pub(super) fn start(
        kind: TaskKind,
        tasks: usize,
        shared: Option<Folder>,
        make: impl Fn(usize) -> Made + Clone + Send + 'static,
    ) -> Result<Self, Failure> {
        let places = places(tasks)?;
        let page = Arc::new(Page(Region::anonymous(PAGE, libc::MAP_SHARED)?));
        let mut others = Vec::new();
        for (number, place) in places.iter().copied().enumerate().skip(1) {
            let (make, page) = (make.clone(), Arc::clone(&page));
            let live = move || follow(mailbox(&page), place, || make(number));
            others.push(match kind {
                TaskKind::Process => Life::Process(Partner::start(live)?),
                // What ends it early is on the mailbox.
                TaskKind::Thread => Life::Thread(Some(
                    std::thread::Builder::new().spawn(move || drop(live()))?,
                )),
            });
        }
        sys::stay_on(&places[..1])?;
        let mut group = Self {
            own: make(0)?,
            others,
            page,
            _shared: shared,
        };
        group.wait()?;
        Ok(group)
    }

    fn mailbox(&self) -> &Mailbox {
        mailbox(&self.page)
    }

    /// Has the other tasks begin a step.
    fn order(&self, step: Step, operations: u64) {
        let mailbox = self.mailbox();
        mailbox.step.store(step as u32, Ordering::Relaxed);
        mailbox.operations.store(operations, Ordering::Relaxed);
        mailbox.arrived.store(0, Ordering::Relaxed);
        mailbox
            .order
            .store(mailbox.order.load(Ordering::Relaxed) + 1, Ordering::Release);
        futex(&mailbox.order, libc::FUTEX_WAKE, i32::MAX as u32);
    }

    /// Waits until all other tasks have done their part.
    fn wait(&mut self) -> io::Result<()> {
        let others = &self.others;
        let mailbox = mailbox(&self.page);
        let is_done = || mailbox.arrived.load(Ordering::Acquire) as usize == others.len();
        spin_until(is_done, || others.iter().try_for_each(Life::check))?;
        match mailbox.failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

impl Life {
    /// Fails if it has died.
    fn check(&self) -> io::Result<()> {
        let is_over = match self {
            Self::Process(partner) => partner.is_over()?,
            Self::Thread(thread) => thread.as_ref().is_none_or(JoinHandle::is_finished),
        };
        if is_over {
            Err(io::Error::other("a task died"))
        } else {
            Ok(())
        }
    }
}

impl Workload for AllAtOnce {
    fn between(&self) -> Between {
        self.own.between()
    }

    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.order(Step::Prepare, operations);
        self.own.prepare(operations)?;
        self.wait()
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mailbox = self.mailbox();
        mailbox.arrived.store(0, Ordering::Relaxed);
        mailbox
            .gate
            .store(mailbox.order.load(Ordering::Relaxed), Ordering::Release);
        self.own.run(operations)?;
        self.wait()
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        self.order(Step::Clear, operations);
        self.own.clear(operations)?;
        self.wait()
    }
}

impl Drop for AllAtOnce {
    fn drop(&mut self) {
        let mailbox = mailbox(&self.page);
        mailbox.arrived.store(0, Ordering::Relaxed);
        mailbox.order.store(END, Ordering::Release);
        futex(&mailbox.order, libc::FUTEX_WAKE, i32::MAX as u32);
        for life in &mut self.others {
            match life {
                // It removes what it made in the file system. One that cannot is ended by its drop.
                Life::Process(partner) => {
                    drop(spin_until(|| partner.is_over().unwrap_or(true), || Ok(())));
                }
                Life::Thread(thread) => drop(thread.take().map(JoinHandle::join)),
            }
        }
    }
}

/// Lives the life of a task but the first: makes its work and follows orders.
fn follow(mailbox: &Mailbox, place: usize, make: impl FnOnce() -> Made) -> io::Result<()> {
    let made = sys::stay_on(&[place])
        .map_err(Failure::from)
        .and_then(|()| make());
    let mut work = match made {
        Ok(work) => work,
        Err(failure) => {
            let code = match failure {
                Failure::Error(error) => error,
                Failure::Unsupported(why) => io::Error::other(why),
            };
            arrive(mailbox, Err(code));
            return Ok(());
        }
    };
    arrive(mailbox, Ok(()));
    let mut last = 0;
    loop {
        let order = next(mailbox, last);
        if order == END {
            return Ok(());
        }
        last = order;
        let operations = mailbox.operations.load(Ordering::Relaxed);
        if mailbox.step.load(Ordering::Relaxed) == Step::Clear as u32 {
            arrive(mailbox, work.clear(operations));
            continue;
        }
        arrive(mailbox, work.prepare(operations));
        let is_open = || mailbox.gate.load(Ordering::Acquire) == order;
        // After an error elsewhere the gate stays shut.
        let is_over = || mailbox.order.load(Ordering::Acquire) != order;
        drop(spin_until(|| is_open() || is_over(), || Ok(())));
        if is_open() {
            arrive(mailbox, work.run(operations));
        }
    }
}

/// Sleeps until there is another order than the last.
fn next(mailbox: &Mailbox, last: u32) -> u32 {
    loop {
        match mailbox.order.load(Ordering::Acquire) {
            order if order == last => futex(&mailbox.order, libc::FUTEX_WAIT, last),
            order => return order,
        }
    }
}

fn arrive(mailbox: &Mailbox, done: io::Result<()>) {
    if let Err(error) = done {
        mailbox
            .failed
            .store(error.raw_os_error().unwrap_or(libc::EIO), Ordering::Relaxed);
    }
    mailbox.arrived.fetch_add(1, Ordering::Release);
}

/// Looks until something is so, and now and then calls `check`, whose error ends the wait.
fn spin_until(is_so: impl Fn() -> bool, check: impl Fn() -> io::Result<()>) -> io::Result<()> {
    for round in 1.. {
        for _ in 0..LOOKS {
            if is_so() {
                return Ok(());
            }
            std::hint::spin_loop();
        }
        sys::yield_now();
        if round % ROUNDS == 0 {
            check()?;
        }
    }
    Ok(())
}

/// Sleeps on a word that other processes have too, or wakes who does.
fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // The result does not matter: who sleeps looks again.
    // SAFETY: the word lives for the call; no timeout is passed.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            operation,
            value,
            null::<libc::timespec>(),
        )
    };
}

/// Returns a processor for each task, from the last that this process may use.
fn places(tasks: usize) -> Result<Vec<usize>, Failure> {
    let processors = sys::processors()?;
    match processors.get(..tasks) {
        Some(places @ [_, ..]) => Ok(places.to_vec()),
        _ => Err(Failure::Unsupported(format!(
            "{tasks} tasks need {tasks} processors, and it may use {}",
            processors.len()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{AllAtOnce, Failure, places};
    use crate::workloads::split_work::TaskKind;
    use crate::workloads::{Made, Workload};

    struct Count(Arc<AtomicU64>);

    impl Workload for Count {
        fn run(&mut self, operations: u64) -> io::Result<()> {
            self.0.fetch_add(operations, Ordering::Relaxed);
            Ok(())
        }
    }

    struct Refuse;

    impl Workload for Refuse {
        fn run(&mut self, _operations: u64) -> io::Result<()> {
            Err(io::Error::from_raw_os_error(libc::ENOMEM))
        }
    }

    fn processors() -> usize {
        (1..).take_while(|tasks| places(*tasks).is_ok()).count()
    }

    #[test]
    fn each_task_does_all_operations() {
        let (done, tasks) = (Arc::new(AtomicU64::new(0)), processors());
        let count = Arc::clone(&done);
        let make = move |_| -> Made { Ok(Box::new(Count(Arc::clone(&count)))) };
        // On a thread, as a group keeps the one that starts it on a processor.
        let group = std::thread::spawn(move || {
            let mut group = AllAtOnce::start(TaskKind::Thread, tasks, None, make)
                .map_err(|failure| failure.to_string())?;
            for _ in 0..3 {
                group
                    .prepare(10)
                    .and_then(|()| group.run(10))
                    .and_then(|()| group.clear(10))
                    .map_err(|e| e.to_string())?;
            }
            Ok::<(), String>(())
        });
        group.join().unwrap().unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 30 * tasks as u64);
    }

    #[test]
    fn failing_task_fails_the_crew() {
        if processors() < 2 {
            return;
        }
        let make = |number| -> Made {
            if number == 1 {
                Ok(Box::new(Refuse))
            } else {
                Ok(Box::new(Count(Arc::default())))
            }
        };
        let failed = std::thread::spawn(move || {
            let mut group = AllAtOnce::start(TaskKind::Thread, 2, None, make)
                .map_err(|failure| failure.to_string())?;
            group.prepare(1).map_err(|error| error.to_string())?;
            Ok::<_, String>(group.run(1).unwrap_err().raw_os_error())
        });
        assert_eq!(failed.join().unwrap().unwrap(), Some(libc::ENOMEM));
    }

    #[test]
    fn too_many_tasks_are_unsupported() {
        let why = places(1_000_000).unwrap_err();
        assert!(
            matches!(&why, Failure::Unsupported(why) if why.contains("1000000 processors")),
            "{why}"
        );
    }
}
