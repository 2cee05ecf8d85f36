//! Many processes with many mappings of the same memory: what the reverse mapping has to find, and
//! to do without.
//!
//! The processes are there before anything is measured, asleep; each has its orders alone, so that
//! what is measured of one is no other's work. Used twice: by the workloads of the suite, and by
//! the experiment over a grid (`crate::rmap`).

mod layout;
mod mailboxes;
mod mappings;
mod pool;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use wire::Clock;

use super::region::PAGE;
use super::scratch::{Folder, page_cache_file};
use super::{Between, Failure, Made, Workload};
use crate::sys::{self, Fork, check};
use guest::clock::now;
use layout::{CASES, Layout};
use mailboxes::{Mailboxes, Step};
use mappings::{Mappings, page_tables_kib};

pub(crate) use layout::Case;
pub(crate) use mailboxes::Answer;
pub(crate) use pool::Pool;

/// A guest that has less than this part of its memory left takes no more processes.
const RESERVE: u64 = 32;
/// The least that has to be used before it is extrapolated, in KiB.
const USED_MIN_KIB: u64 = 8 * 1024;
/// Between this many processes it is asked whether all will fit.
const ASKED_EVERY: usize = 16;

/// What is to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) case: Case,
    pub(crate) processes: usize,
    pub(crate) mappings: usize,
    /// What is measured by.
    pub(crate) clock: Clock,
}

impl Cell {
    /// Reads the case of a job.
    pub(crate) fn case(word: &str) -> Option<Case> {
        CASES
            .into_iter()
            .find(|(known, _)| *known == word)
            .map(|(_, case)| case)
    }

    fn layout(self) -> Layout {
        Layout {
            case: self.case,
            mappings: self.mappings,
        }
    }
}

/// Memory that does not suffice for all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DoesNotFit {
    /// What all would take, as far as can be told from those that are there.
    pub(crate) needed_kib: u64,
    /// What there is.
    pub(crate) available_kib: u64,
}

/// Whether the processes could be filled with mappings, and at what cost.
pub(crate) enum Populated {
    /// All have them.
    All(Answer),
    /// They do not fit.
    Not(DoesNotFit),
}

/// The processes, their mappings and what they are of.
pub(crate) struct World {
    cell: Cell,
    mailboxes: Mailboxes,
    object: Option<File>,
    /// Those that this process has forked.
    children: Vec<libc::pid_t>,
    /// Those that are there.
    alive: usize,
    /// What pages are charged to, where they are to be reclaimed.
    pool: Option<Pool>,
}

impl World {
    /// Makes the object in memory, and the processes without mappings where they map by themselves.
    pub(crate) fn new(cell: Cell, pool: Option<Pool>) -> io::Result<Self> {
        sys::wake_up_politely()?;
        let layout = cell.layout();
        let object = match cell.case {
            Case::File => Some(page_cache_file()?),
            // A file of tmpfs is what shared anonymous memory is of, with a name to map it by more
            // than once.
            _ if cell.case.has_object() => Some(Folder::new()?.file("object")?),
            _ => None,
        };
        if let Some(object) = &object {
            charged(pool.as_ref(), || fill(object, layout))?;
        }
        Mappings::keep_upper_tables(layout)?;
        let mailboxes = Mailboxes::new(cell.processes)?;
        let mut world = Self {
            cell,
            mailboxes,
            object,
            children: Vec::new(),
            alive: 0,
            pool,
        };
        while cell.case.has_object() && world.alive < cell.processes {
            world.fork(world.alive)?;
        }
        Ok(world)
    }

    /// Fills all processes with mappings, as long as they fit into memory.
    pub(crate) fn populate(&mut self) -> io::Result<Populated> {
        let (before_kib, total_kib) = free_kib()?;
        let mine = Mappings {
            layout: self.cell.layout(),
            object: self.object.as_ref(),
        };
        if !self.cell.case.has_object() {
            charged(self.pool.as_ref(), || mine.make())?;
        }
        let mut all = Answer::default();
        for number in 0..self.cell.processes {
            all.ticks += match self.cell.case {
                Case::Inherited => self.fork(number)?,
                Case::Chain if number == 0 => self.fork(number)?,
                Case::Chain => {
                    let answer = self.mailboxes.ask(number - 1, Step::Spawn, 0)?;
                    self.alive += 1;
                    answer.ticks
                }
                _ => self.mailboxes.ask(number, Step::Map, 0)?.ticks,
            };
            let there = number + 1;
            if there.is_power_of_two() || there % ASKED_EVERY == 0 {
                let (left_kib, _) = free_kib()?;
                let used = before_kib.saturating_sub(left_kib);
                // What is free counts without the processors' own lists: of little that says
                // nothing.
                if used < USED_MIN_KIB {
                    continue;
                }
                // One process more, as each forks once later on.
                let needed_kib =
                    used * (self.cell.processes as u64 + 1) / there as u64 + total_kib / RESERVE;
                if needed_kib > before_kib || left_kib < total_kib / RESERVE {
                    return Ok(Populated::Not(DoesNotFit {
                        needed_kib,
                        available_kib: before_kib,
                    }));
                }
            }
        }
        if !self.cell.case.has_object() {
            Mappings {
                layout: self.cell.layout(),
                object: None,
            }
            .unmap()?;
        }
        Ok(Populated::All(all))
    }

    /// Has each process do a step, one after the other, and adds up their answers.
    fn all(&self, step: Step, argument: u32) -> io::Result<Answer> {
        let mut all = Answer::default();
        for number in 0..self.alive {
            let Answer {
                ticks,
                entries,
                tables_kib,
            } = self.mailboxes.ask(number, step, argument)?;
            all.ticks += ticks;
            all.entries += entries;
            all.tables_kib += tables_kib;
        }
        Ok(all)
    }

    /// Has each process use its pages again, where they have been taken away.
    pub(crate) fn touch(&self) -> io::Result<()> {
        self.all(Step::Touch, 0).map(|_| ())
    }

    /// Has each process fork another that ends at once.
    pub(crate) fn fork_and_exit(&self) -> io::Result<Answer> {
        self.all(Step::Fork, 1)
    }

    /// Has each process unmap all its mappings.
    pub(crate) fn unmap(&self) -> io::Result<Answer> {
        self.all(Step::Unmap, 0)
    }

    /// Counts page-table entries in use, and page tables.
    pub(crate) fn count(&self) -> io::Result<Answer> {
        self.all(Step::Count, 0)
    }

    /// Has the last process ask for the page of its last mapping to be reclaimed; one entry is left
    /// if it is still there then. The kernel looks at mappings of the same pages in the order
    /// in which they were made, and stops at the last that has the page in use: it must not be
    /// the first.
    pub(crate) fn page_out(&self) -> io::Result<Answer> {
        self.mailboxes.ask(self.alive - 1, Step::PageOut, 0)
    }

    /// Takes one page that all processes have mapped out of the object, and returns the ticks.
    pub(crate) fn drop_one(&self, clock: Clock) -> Result<u64, Failure> {
        let object = self.object()?;
        let pages = self.cell.layout().object_pages();
        let ticks = timed(clock, || match self.cell.case {
            // Not every file system can have holes, but all can be cut: the last page is the first
            // mapping's.
            Case::File => truncate(object, pages - 1),
            _ => punch(object, self.cell.layout().place(0).offset),
        })?;
        truncate(object, pages)?;
        Ok(ticks)
    }

    /// Has the kernel reclaim all pages that are mapped, and returns the ticks and how many it
    /// reclaimed.
    pub(crate) fn reclaim(&self, clock: Clock) -> Result<(u64, u64), Failure> {
        let Some(pool) = &self.pool else {
            return Err(Failure::Unsupported("no pool of pages".to_owned()));
        };
        let before = pool.swapped_out()?;
        let ticks = timed(clock, || pool.reclaim(self.cell.layout().used_pages()))?;
        match pool.swapped_out()?.saturating_sub(before) {
            0 => Err(Failure::Unsupported(
                "memory.reclaim reclaims none of these pages".to_owned(),
            )),
            pages => Ok((ticks, pages)),
        }
    }

    /// Takes all pages out of the object, gives it its length again, and returns the ticks of the
    /// former and how many pages were in use.
    pub(crate) fn drop_all(&self, clock: Clock) -> Result<(u64, u64), Failure> {
        let object = self.object()?;
        let layout = self.cell.layout();
        let ticks = timed(clock, || truncate(object, 0))?;
        truncate(object, layout.object_pages())?;
        Ok((ticks, layout.used_pages() as u64))
    }

    /// Says whether pages can be taken out of what is mapped.
    pub(crate) fn has_object(&self) -> bool {
        self.object.is_some()
    }

    fn object(&self) -> Result<&File, Failure> {
        self.object
            .as_ref()
            .ok_or_else(|| Failure::Unsupported("anonymous memory is of no file".to_owned()))
    }

    /// Forks a process of ours that waits for orders, and returns the ticks.
    fn fork(&mut self, number: usize) -> io::Result<u64> {
        let clock = self.cell.clock;
        let start = now(clock);
        match sys::fork()? {
            Fork::Child => live(self, number),
            Fork::Parent(pid) => {
                let ticks = now(clock).saturating_sub(start);
                self.children.push(pid);
                self.alive += 1;
                Ok(ticks)
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        (0..self.alive).for_each(|number| {
            self.mailboxes.tell(number, Step::Leave, 0);
        });
        // One that was killed is waited for as well.
        self.children
            .drain(..)
            .for_each(|pid| drop(sys::wait_for(pid)));
        let mine = Mappings {
            layout: self.cell.layout(),
            object: None,
        };
        // There may be nothing left of them, which is what is wanted.
        mine.unmap()
            .and_then(|()| Mappings::leave_upper_tables(self.cell.layout()))
            .ok();
    }
}

/// Lives the life of a process: follows orders until it is told to leave. A chain goes on in the
/// same loop, so that the last process's stack is no deeper than the first one's.
fn live(world: &World, number: usize) -> ! {
    let (mut me, mut last, mut child) = (number, 0, None);
    let stay = stay_with_parent();
    let mappings = Mappings {
        layout: world.cell.layout(),
        object: world.object.as_ref(),
    };
    while let Ok((order, step, argument)) = world.mailboxes.next(me, last) {
        last = order;
        let answer = match step {
            Step::Leave => {
                let waited = child.map_or(Ok(0), sys::wait_for);
                sys::exit_now(i32::from(waited.is_err() || stay.is_err()))
            }
            Step::Spawn => {
                let start = now(world.cell.clock);
                match sys::fork() {
                    Ok(Fork::Child) => {
                        // What fails is known by the order that it does not answer.
                        stay_with_parent().ok();
                        (me, last, child) = (me + 1, 0, None);
                        continue;
                    }
                    Ok(Fork::Parent(pid)) => {
                        let ticks = now(world.cell.clock).saturating_sub(start);
                        child = Some(pid);
                        Ok(Answer {
                            ticks,
                            ..Answer::default()
                        })
                    }
                    Err(error) => Err(error),
                }
            }
            step => follow(&mappings, world.cell.clock, (step, argument)),
        };
        world.mailboxes.answer(me, order, answer);
    }
    sys::exit_now(1)
}

fn follow(
    mappings: &Mappings<'_>,
    clock: Clock,
    (step, argument): (Step, u32),
) -> io::Result<Answer> {
    let start = now(clock);
    match step {
        Step::Map => mappings.make()?,
        Step::Unmap => mappings.unmap()?,
        Step::Cycle => mappings.cycle(argument)?,
        Step::Fork => (0..argument).try_for_each(|_| fork_and_exit())?,
        Step::PageOut => {
            mappings.touch();
            let start = now(clock);
            mappings.page_out()?;
            let ticks = now(clock).saturating_sub(start);
            return Ok(Answer {
                ticks,
                entries: u64::from(mappings.is_there()?),
                tables_kib: 0,
            });
        }
        Step::Count => {
            return Ok(Answer {
                ticks: 0,
                entries: mappings.entries()?,
                tables_kib: page_tables_kib()?,
            });
        }
        Step::Touch | Step::Spawn | Step::Leave => mappings.touch(),
    }
    Ok(Answer {
        ticks: now(clock).saturating_sub(start),
        ..Answer::default()
    })
}

fn fork_and_exit() -> io::Result<()> {
    match sys::fork()? {
        Fork::Child => sys::exit_now(0),
        Fork::Parent(pid) => sys::wait_for(pid).map(|_| ()),
    }
}

fn stay_with_parent() -> io::Result<()> {
    // SAFETY: the call takes no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(|_| ())
}

fn charged<T>(pool: Option<&Pool>, action: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    match pool {
        Some(pool) => pool.charging(action),
        None => action(),
    }
}

fn timed(clock: Clock, action: impl FnOnce() -> io::Result<()>) -> Result<u64, Failure> {
    let start = now(clock);
    action()?;
    Ok(now(clock).saturating_sub(start))
}

/// Gives an object its length, and has the pages in memory that will be in use; not of zeroes,
/// which kernels may leave out when they write to swap.
fn fill(object: &File, layout: Layout) -> io::Result<()> {
    truncate(object, layout.object_pages())?;
    (0..layout.used_pages()).try_for_each(|page| object.write_all_at(&[1], (page * PAGE) as u64))
}

fn truncate(object: &File, pages: usize) -> io::Result<()> {
    object.set_len((pages * PAGE) as u64)
}

fn punch(object: &File, page: usize) -> io::Result<()> {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let offset = libc::off_t::try_from(page * PAGE).map_err(io::Error::other)?;
    // SAFETY: the call takes no memory of ours; the descriptor is open.
    check(unsafe { libc::fallocate(object.as_raw_fd(), mode, offset, PAGE as libc::off_t) })
        .map(|_| ())
}

/// Returns the free memory and all memory, in KiB.
fn free_kib() -> io::Result<(u64, u64)> {
    // SAFETY: a sysinfo of zeroes is a valid value of the C struct.
    let mut info: libc::sysinfo = unsafe { std::mem::zeroed() };
    // SAFETY: the struct is valid for the call.
    check(unsafe { libc::sysinfo(&raw mut info) })?;
    let kib = |count: u64| count * u64::from(info.mem_unit) / 1024;
    Ok((kib(info.freeram), kib(info.totalram)))
}

/// Processes of the suite's workloads.
const TEAM: usize = 4;
/// Mappings of each of them.
const MAPPED: usize = 256;
/// Mappings of a process whose forks are measured.
const FORKED: usize = 64;

/// What a workload of the suite measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measured {
    Cycle,
    Fork,
}

struct Suite {
    case: Case,
    measured: Measured,
    world: Option<World>,
}

impl Workload for Suite {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn prepare(&mut self, _operations: u64) -> io::Result<()> {
        let mappings = match self.measured {
            Measured::Cycle => MAPPED,
            Measured::Fork => FORKED,
        };
        let cell = Cell {
            case: self.case,
            processes: TEAM,
            mappings,
            clock: Clock::Tsc,
        };
        let world = self.world.insert(World::new(cell, None)?);
        match world.populate()? {
            Populated::All(_) => Ok(()),
            Populated::Not(_) => Err(io::Error::from_raw_os_error(libc::ENOMEM)),
        }
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let Some(world) = &self.world else {
            return Ok(());
        };
        let step = match self.measured {
            Measured::Cycle => Step::Cycle,
            Measured::Fork => Step::Fork,
        };
        let operations = u32::try_from(operations).map_err(io::Error::other)?;
        world.mailboxes.ask(0, step, operations).map(|_| ())
    }

    fn clear(&mut self, _operations: u64) -> io::Result<()> {
        self.world = None;
        Ok(())
    }
}

fn made(case: Case, measured: Measured) -> Made {
    Ok(Box::new(Suite {
        case,
        measured,
        world: None,
    }))
}

/// rmap-…-map: a process unmaps one by one what others have mapped as well, and maps it again.
pub(super) fn cycle(case: Case) -> Made {
    made(case, Measured::Cycle)
}

/// rmap-…-fork: a process that has mappings forks others that end at once.
pub(super) fn fork(case: Case) -> Made {
    made(case, Measured::Fork)
}
