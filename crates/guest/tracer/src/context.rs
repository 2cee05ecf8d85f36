//! Who executes: the workload, an interrupt, or somebody else. Told from the addresses of a few
//! functions of the kernel and from the task that is switched to; registers are not needed.

use std::collections::HashMap;

/// Whose instructions these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A process: system calls, faults and user code.
    Process,
    /// An interrupt, with the softirqs that run at its end.
    Interrupt,
    /// A task of which it is not known yet whether it is a process: it has made no system call.
    Unknown(u64),
}

/// What an instruction means for the question who executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// The first instruction of an interrupt.
    Interrupt,
    /// The first instruction of an exception.
    Exception,
    /// IRET.
    Return,
    /// The first instruction of a system call.
    SystemCall,
    /// The stack of a task is switched to; with the address it is kept at.
    Switch(u64),
    /// A new task begins, maybe where one was that has ended.
    Fork,
}

#[derive(Debug, Clone, Copy, Default)]
struct Task {
    /// Interrupts, and exceptions within them, that have not returned.
    depth: u32,
    process: bool,
}

/// The tasks that were seen.
#[derive(Debug, Default)]
pub(crate) struct Context {
    /// By the address that its stack pointer is kept at.
    tasks: HashMap<u64, Task>,
    current: u64,
    now: Task,
}

impl Context {
    /// Returns who executes.
    pub(crate) fn owner(&self) -> Owner {
        match self.now {
            Task { depth: 1.., .. } => Owner::Interrupt,
            Task { process: true, .. } => Owner::Process,
            Task { .. } => Owner::Unknown(self.current),
        }
    }

    /// Takes note of something, after which another may execute.
    pub(crate) fn note(&mut self, event: Event) {
        match event {
            Event::Interrupt => self.now.depth += 1,
            // One that a process causes is its own work.
            Event::Exception if self.now.depth > 0 => self.now.depth += 1,
            Event::Return => self.now.depth = self.now.depth.saturating_sub(1),
            // It comes from user code, where no interrupt is open.
            Event::SystemCall => {
                self.now = Task {
                    depth: 0,
                    process: true,
                }
            }
            Event::Switch(to) => {
                self.tasks.insert(self.current, self.now);
                self.now = self.tasks.get(&to).copied().unwrap_or_default();
                self.current = to;
            }
            // What was known is of the task whose place this one has.
            Event::Fork => self.now = Task::default(),
            Event::Exception => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Event, Owner};

    fn after(events: &[Event]) -> Owner {
        let mut context = Context::default();
        events.iter().for_each(|event| context.note(*event));
        context.owner()
    }

    #[test]
    fn interrupts_nest_and_return() {
        use Event::{Exception, Interrupt, Return, SystemCall};
        assert_eq!(after(&[SystemCall]), Owner::Process);
        assert_eq!(after(&[SystemCall, Exception, Return]), Owner::Process);
        assert_eq!(
            after(&[SystemCall, Interrupt, Exception, Return]),
            Owner::Interrupt
        );
        assert_eq!(
            after(&[SystemCall, Interrupt, Exception, Return, Return]),
            Owner::Process
        );
        assert_eq!(
            after(&[SystemCall, Return, Return, Interrupt]),
            Owner::Interrupt
        );
        assert_eq!(
            after(&[Interrupt, Interrupt, Return, SystemCall]),
            Owner::Process
        );
    }

    #[test]
    fn a_new_task_is_unknown_where_a_process_ended() {
        use Event::{Fork, Switch, SystemCall};
        let ended = [Switch(1), SystemCall, Switch(2), Switch(1)];
        assert_eq!(after(&ended), Owner::Process);
        assert_eq!(
            after(&[ended.as_slice(), &[Fork]].concat()),
            Owner::Unknown(1)
        );
    }

    #[test]
    fn an_interrupt_that_switches_tasks_goes_on_when_its_task_does() {
        use Event::{Interrupt, Return, Switch, SystemCall};
        let preempted = [Switch(1), SystemCall, Interrupt, Switch(2)];
        assert_eq!(after(&preempted), Owner::Unknown(2));
        let back = [preempted.as_slice(), &[Switch(1)]].concat();
        assert_eq!(after(&back), Owner::Interrupt);
        assert_eq!(
            after(&[back.as_slice(), &[Return]].concat()),
            Owner::Process
        );
    }
}
