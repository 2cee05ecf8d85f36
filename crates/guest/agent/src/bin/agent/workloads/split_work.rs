//! Members of a group, processes or threads, that each do a share of every iteration at a signal.
//!
//! They are there before the first iteration and wait for orders. An order and its answer are two
//! system calls on each side: iterations of groups are long enough for that to be no part of the
//! cost.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::thread::JoinHandle;

use super::partner::Partner;

/// What members are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskKind {
    /// Processes, each with an address space of its own.
    Process,
    /// Threads of the workload's process.
    Thread,
}

/// The orders of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Make ready, unmeasured.
    Prepare,
    /// Do the operations.
    Run,
    /// Clear up, unmeasured.
    Clear,
}

/// What a member does at each step, for so many operations.
pub(super) type Act = Box<dyn FnMut(Step, u64) -> io::Result<()> + Send>;

enum Life {
    Process { _partner: Partner },
    Thread(JoinHandle<()>),
}

struct Member {
    orders: PipeWriter,
    life: Life,
}

/// A group that lives as long as this value.
pub(super) struct SplitWork {
    members: Vec<Member>,
    answers: PipeReader,
}

impl SplitWork {
    /// Starts a member for each act.
    pub(super) fn start(kind: TaskKind, acts: Vec<Act>) -> io::Result<Self> {
        let (answers, answer) = io::pipe()?;
        let mut members = Vec::new();
        for act in acts {
            let (receiver, orders) = io::pipe()?;
            let answer = answer.try_clone()?;
            let work = move || follow(receiver, answer, act);
            let life = match kind {
                TaskKind::Process => Life::Process {
                    _partner: Partner::start(work)?,
                },
                // Whatever ends it early, its end of the pipe says so.
                TaskKind::Thread => {
                    Life::Thread(std::thread::Builder::new().spawn(move || drop(work()))?)
                }
            };
            members.push(Member { orders, life });
        }
        Ok(Self { members, answers })
    }

    /// Has the members share so many operations in a step, and waits for all of them.
    pub(super) fn share(&mut self, step: Step, operations: u64) -> io::Result<()> {
        let members = self.members.len() as u64;
        self.tell(step, |member| {
            operations / members + u64::from((member as u64) < operations % members)
        })
    }

    /// Has each member do a number of operations in a step, and waits for all of them.
    pub(super) fn tell(&mut self, step: Step, operations: impl Fn(usize) -> u64) -> io::Result<()> {
        for (number, member) in self.members.iter_mut().enumerate() {
            let mut order = [step as u8; 9];
            order[1..].copy_from_slice(&operations(number).to_le_bytes());
            member.orders.write_all(&order)?;
        }
        let mut failed = 0;
        for _ in 0..self.members.len() {
            let mut code = [0; 4];
            self.answers.read_exact(&mut code)?;
            failed = failed.max(i32::from_le_bytes(code));
        }
        match failed {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }
}

impl Drop for SplitWork {
    fn drop(&mut self) {
        for Member { orders, life } in self.members.drain(..) {
            // A thread ends with its orders; a process is ended.
            drop(orders);
            if let Life::Thread(thread) = life {
                thread.join().ok();
            }
        }
    }
}

/// Follows orders until there are none any more.
fn follow(mut orders: PipeReader, mut answer: PipeWriter, mut act: Act) -> io::Result<()> {
    let mut order = [0; 9];
    loop {
        orders.read_exact(&mut order)?;
        let [step, operations @ ..] = order;
        let step = [Step::Prepare, Step::Run, Step::Clear][usize::from(step) % 3];
        let done = act(step, u64::from_le_bytes(operations));
        let code = done
            .err()
            .map_or(0, |error| error.raw_os_error().unwrap_or(libc::EIO));
        answer.write_all(&code.to_le_bytes())?;
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{Act, SplitWork, Step, TaskKind};

    #[test]
    fn operations_are_shared_and_none_is_lost() {
        let done = Arc::new(AtomicU64::new(0));
        let act = |done: Arc<AtomicU64>| -> Act {
            Box::new(move |step, operations| {
                if step == Step::Run {
                    done.fetch_add(operations, Ordering::Relaxed);
                }
                Ok(())
            })
        };
        let mut group = SplitWork::start(
            TaskKind::Thread,
            (0..4).map(|_| act(Arc::clone(&done))).collect(),
        )
        .unwrap();
        group.share(Step::Prepare, 10).unwrap();
        group.share(Step::Run, 10).unwrap();
        assert_eq!(done.load(Ordering::Relaxed), 10);
    }

    #[test]
    fn failure_in_a_member_is_reported() {
        let refuse: Act = Box::new(|_, _| Err(io::Error::from_raw_os_error(libc::ENOMEM)));
        let mut group = SplitWork::start(TaskKind::Process, vec![refuse]).unwrap();
        assert_eq!(
            group.share(Step::Run, 1).unwrap_err().raw_os_error(),
            Some(libc::ENOMEM)
        );
    }
}
