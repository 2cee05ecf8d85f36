//! Which processor executes next, for how long, and what time it is: arithmetic only. QEMU is left
//! to `machine.rs`.
//!
//! Each processor has a time of its own: one nanosecond for each instruction that it executed, and
//! what it was charged. Among those that have work, the one with the least time runs until it is a
//! quantum ahead of the next. The machine's clock is the least time of those that have work; QEMU's
//! timers fire when it reaches them.

/// What scheduling costs, in nanoseconds of a processor's own time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    /// How far a processor gets ahead of the next before that one runs.
    pub(crate) quantum: i64,
    /// A line that moves between processors.
    pub(crate) latency: i64,
    /// PAUSE, which a processor executes while it waits for another.
    pub(crate) pause: i64,
    /// From an interrupt that a processor sends to a halted one until that one runs.
    pub(crate) wake: i64,
}

/// What is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Timers of QEMU are due.
    Timers,
    /// No processor has work: the clock moves by so many nanoseconds to the next timer, if there is
    /// one.
    Idle(Option<i64>),
    /// A processor executes at most so many instructions.
    Run { processor: usize, budget: i64 },
}

/// Most instructions that a processor executes at once, so that QEMU's other thread is heard now
/// and then.
const LONGEST: i64 = 1 << 20;

/// The processors and their times.
#[derive(Debug)]
pub(crate) struct Schedule {
    pub(crate) costs: Costs,
    own: Vec<i64>,
    busy: Vec<bool>,
    /// The earliest time at which a halted processor may run, if another one woke it.
    woken: Vec<Option<i64>>,
    clock: i64,
}

impl Schedule {
    /// Returns the schedule of so many processors that begin at time 0.
    pub(crate) fn new(processors: usize, costs: Costs) -> Self {
        Self {
            costs,
            own: vec![0; processors],
            busy: vec![true; processors],
            woken: vec![None; processors],
            clock: 0,
        }
    }

    /// The machine goes on at a time, the processors that much later.
    pub(crate) fn resume(&mut self, now: i64, offsets: &[i64]) {
        self.clock = now;
        for (index, own) in self.own.iter_mut().enumerate() {
            *own = now + offsets.get(index).copied().unwrap_or(0);
        }
        self.busy.fill(true);
        self.woken.fill(None);
    }

    /// Returns the machine's time.
    pub(crate) const fn clock(&self) -> i64 {
        self.clock
    }

    /// Returns a processor's own time.
    pub(crate) fn own(&self, processor: usize) -> i64 {
        self.own[processor]
    }

    /// Returns how many processors there are.
    pub(crate) fn processors(&self) -> usize {
        self.own.len()
    }

    /// A processor's time goes on.
    pub(crate) fn advance(&mut self, processor: usize, by: i64) {
        self.own[processor] += by;
    }

    /// A processor has sent an interrupt to another at this time of its own.
    pub(crate) fn interrupt(&mut self, target: usize, at: i64) {
        self.woken[target] = Some(at + self.costs.wake);
    }

    /// No processor has work: the clock moves on.
    pub(crate) fn jump(&mut self, by: i64) {
        self.clock += by;
    }

    /// Takes note of which processors have work. One that had none begins when it was woken: by the
    /// timers, which is now, or by another processor.
    pub(crate) fn observe(&mut self, busy: &[bool]) {
        for (index, is_busy) in busy.iter().enumerate() {
            if *is_busy && !self.busy[index] {
                let begin = self.woken[index].unwrap_or(self.clock);
                self.own[index] = self.own[index].max(begin);
            }
            if *is_busy {
                self.woken[index] = None;
            }
            self.busy[index] = *is_busy;
        }
        if let Some((_, least)) = self.first() {
            self.clock = self.clock.max(least);
        }
    }

    /// Returns what is to be done, if the next timer is due in so many nanoseconds of the clock.
    pub(crate) fn next(&self, deadline: Option<i64>) -> Next {
        if deadline.is_some_and(|left| left <= 0) {
            return Next::Timers;
        }
        let Some((processor, own)) = self.first() else {
            return Next::Idle(deadline);
        };
        let others = (0..self.own.len()).filter(|other| *other != processor && self.busy[*other]);
        let behind = others.map(|other| self.own[other]).min();
        let turn = behind.map_or(LONGEST, |other| other - own + self.costs.quantum);
        let timer = deadline
            .map(|left| self.clock + left - own)
            .filter(|left| *left > 0)
            .unwrap_or(LONGEST);
        Next::Run {
            processor,
            budget: turn.min(timer).clamp(1, LONGEST),
        }
    }

    /// Returns the processor with work that has the least time of its own, and that time.
    fn first(&self) -> Option<(usize, i64)> {
        let busy = (0..self.own.len()).filter(|index| self.busy[*index]);
        busy.map(|index| (index, self.own[index]))
            .min_by_key(|(index, own)| (*own, *index))
    }
}

#[cfg(test)]
mod tests {
    use super::{Costs, LONGEST, Next, Schedule};

    const COSTS: Costs = Costs {
        quantum: 100,
        latency: 100,
        pause: 40,
        wake: 500,
    };

    fn two() -> Schedule {
        let mut schedule = Schedule::new(2, COSTS);
        schedule.resume(1000, &[0, 30]);
        schedule
    }

    #[test]
    fn processors_take_turns_within_a_quantum() {
        let mut schedule = two();
        let mut ran = Vec::new();
        for _ in 0..4 {
            schedule.observe(&[true, true]);
            let Next::Run { processor, budget } = schedule.next(None) else {
                panic!("both have work")
            };
            ran.push((processor, budget));
            schedule.advance(processor, budget);
            assert!((schedule.own(0) - schedule.own(1)).abs() <= COSTS.quantum);
        }
        assert_eq!(ran, [(0, 130), (1, 200), (0, 200), (1, 200)]);
    }

    #[test]
    fn timers_fire_when_the_least_time_reaches_them() {
        let mut schedule = two();
        schedule.observe(&[true, true]);
        assert_eq!(
            schedule.next(Some(50)),
            Next::Run {
                processor: 0,
                budget: 50
            }
        );
        schedule.advance(0, 50);
        schedule.observe(&[true, true]);
        assert_eq!(schedule.clock(), 1030, "the other one is behind");
        assert_eq!(
            schedule.next(Some(20)),
            Next::Run {
                processor: 1,
                budget: 20
            }
        );
        schedule.advance(1, 20);
        schedule.observe(&[true, true]);
        assert_eq!(
            (schedule.clock(), schedule.next(Some(0))),
            (1050, Next::Timers)
        );
    }

    #[test]
    fn one_processor_runs_up_to_its_timer() {
        let mut schedule = Schedule::new(1, COSTS);
        schedule.observe(&[true]);
        assert_eq!(
            schedule.next(Some(7)),
            Next::Run {
                processor: 0,
                budget: 7
            }
        );
        assert_eq!(
            schedule.next(None),
            Next::Run {
                processor: 0,
                budget: LONGEST
            }
        );
        schedule.advance(0, 7);
        schedule.observe(&[false]);
        assert_eq!(schedule.next(Some(9)), Next::Idle(Some(9)));
        assert_eq!(schedule.next(None), Next::Idle(None));
    }

    #[test]
    fn woken_processor_begins_after_its_waker() {
        let mut schedule = two();
        schedule.observe(&[true, false]);
        schedule.advance(0, 400);
        schedule.interrupt(1, 1300);
        schedule.observe(&[true, true]);
        assert_eq!(schedule.own(1), 1800);
        assert_eq!(
            schedule.next(None),
            Next::Run {
                processor: 0,
                budget: 500
            }
        );
    }

    #[test]
    fn timer_wakes_at_the_time_of_the_clock() {
        let mut schedule = two();
        schedule.observe(&[false, false]);
        schedule.jump(5000);
        schedule.observe(&[false, true]);
        assert_eq!((schedule.own(1), schedule.clock()), (6000, 6000));
    }

    #[test]
    fn interrupt_to_a_running_processor_does_not_move_it() {
        let mut schedule = two();
        schedule.observe(&[true, true]);
        schedule.interrupt(1, 9000);
        schedule.observe(&[true, true]);
        schedule.observe(&[true, false]);
        schedule.observe(&[true, true]);
        assert_eq!(schedule.own(1), 1030);
    }
}
