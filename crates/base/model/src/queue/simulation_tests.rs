//! A month of a lab, simulated: 50 machines, 100,000 jobs, a fake clock, and failures of every
//! kind. No job is lost, none is held by two, and no machine runs two.
//!
//! The times are those of a busy lab; the rules are those of the queue, of health and of
//! reservations.

use std::collections::{BTreeMap, BTreeSet};

use super::order::QueuePosition;
use super::tests::new;
use super::{Ending, JobState, LEASE_S, QueuedJob};
use crate::{Health, Reservation, UnixTime, check_free, reservation_of};

const MACHINES: usize = 50;
const JOBS: u64 = 100_000;
const MONTH_S: i64 = 30 * 86_400;
/// Between two looks of a worker (s).
const STEP_S: i64 = 60;

/// Random numbers that are the same in each run: Knuth's MMIX generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What a worker believes that it holds: the job, its fence, when the work ends, and until when the
/// worker stalls.
struct Held {
    job: usize,
    fence: u64,
    ends: UnixTime,
    stalls_until: UnixTime,
}

struct Lab {
    jobs: Vec<QueuedJob>,
    /// Jobs that wait, by machine: place in the queue, index.
    waiting: Vec<BTreeSet<(QueuePosition, usize)>>,
    /// Jobs that run, by machine: several only while an earlier holder stalls.
    held: Vec<Vec<Held>>,
    health: Vec<Health>,
    reservations: Vec<Reservation>,
    done: BTreeMap<u64, u32>,
    refused: u64,
    dice: Dice,
}

impl Lab {
    fn count_quarantined(&self) -> usize {
        let health = self.health.iter();
        health.filter(|one| one.quarantined_unix.is_some()).count()
    }

    fn new() -> Self {
        let name = |n: usize| format!("testbox{n}");
        let mut lab = Self {
            jobs: Vec::new(),
            waiting: vec![BTreeSet::new(); MACHINES],
            held: (0..MACHINES).map(|_| Vec::new()).collect(),
            health: (0..MACHINES)
                .map(|n| Health {
                    machine: name(n),
                    ..Health::default()
                })
                .collect(),
            reservations: Vec::new(),
            done: BTreeMap::new(),
            refused: 0,
            dice: Dice(1),
        };
        for number in 1..=JOBS {
            let at = lab.dice.roll(MACHINES as u64) as usize;
            let mut new = new(number);
            (new.priority, new.deadline_s) = (lab.dice.roll(5) as i64, 3_600);
            new.work.machine = name(at);
            lab.jobs
                .push(QueuedJob::queued(number, new, UnixTime::default()));
            lab.enqueue(at, number as usize - 1);
        }
        lab
    }

    fn enqueue(&mut self, machine: usize, job: usize) {
        self.waiting[machine].insert((QueuePosition::of_job(&self.jobs[job]), job));
    }

    /// Requeues the jobs whose lease is over.
    fn take_back(&mut self, machine: usize, now: UnixTime) {
        let stale: BTreeSet<usize> = self.held[machine]
            .iter()
            .map(|held| held.job)
            .filter(|job| self.jobs[*job].is_stale(now))
            .collect();
        for job in stale {
            assert!(self.jobs[job].take_back(now));
            self.enqueue(machine, job);
        }
    }

    /// A worker of this machine looks for a job, as `site`'s worker does.
    fn claim(&mut self, machine: usize, now: UnixTime) {
        let is_busy = self.held[machine]
            .iter()
            .any(|held| self.jobs[held.job].fence == held.fence);
        let name = self.health[machine].machine.clone();
        if is_busy
            || !self.health[machine].takes_jobs(now)
            || reservation_of(&name, &self.reservations, now).is_some()
        {
            return;
        }
        let Some(next) = self.waiting[machine]
            .iter()
            .find(|(_, job)| self.jobs[*job].is_free(now))
            .copied()
        else {
            return;
        };
        self.waiting[machine].remove(&next);
        let job = next.1;
        self.jobs[job].claim("worker", now).unwrap();
        self.health[machine].try_one(now);
        let ends = now.plus_seconds(60 + self.dice.roll(900));
        // One worker of a thousand stalls for hours, and one dies.
        let stalls_until = match self.dice.roll(2_000) {
            0 | 1 => now.plus_seconds(7_200),
            2 | 3 => UnixTime::MAX,
            _ => UnixTime::default(),
        };
        self.held[machine].push(Held {
            job,
            fence: self.jobs[job].fence,
            ends,
            stalls_until,
        });
    }

    /// Workers renew their leases and record what ended.
    fn work(&mut self, machine: usize, now: UnixTime) {
        for held in std::mem::take(&mut self.held[machine]) {
            if now < held.stalls_until {
                // A dead worker is forgotten once its job is another's.
                if held.stalls_until < UnixTime::MAX || self.jobs[held.job].fence == held.fence {
                    self.held[machine].push(held);
                }
                continue;
            }
            if now < held.ends {
                match self.jobs[held.job].renew(held.fence, now) {
                    Ok(()) => self.held[machine].push(held),
                    Err(_) => self.refused += 1,
                }
                continue;
            }
            self.end(machine, &held, now);
        }
    }

    fn end(&mut self, machine: usize, held: &Held, now: UnixTime) {
        // Three machines are broken for a day each.
        let is_broken = machine < 3
            && (machine as i64 * 86_400..(machine as i64 + 1) * 86_400).contains(&now.seconds());
        let infra = is_broken || self.dice.roll(300) == 0;
        let ending = match self.dice.roll(100) {
            _ if infra => Ending::Lab("no network".into()),
            0 => Ending::Overran,
            1 => Ending::Wrong("no such kernel".into()),
            2..5 => Ending::Done("does not boot".into()),
            _ => Ending::Done(String::new()),
        };
        let number = self.jobs[held.job].number;
        let mut counts = ending.clone();
        if self.jobs[held.job].fence == held.fence {
            match &ending {
                Ending::Lab(why) => {
                    self.health[machine].fail(why, now);
                    if self.health[machine].quarantined_unix.is_some() {
                        counts = Ending::Busy(why.clone());
                    }
                }
                Ending::Done(_) => self.health[machine].recover(),
                _ => {}
            }
        }
        match self.jobs[held.job].end(held.fence, counts, now) {
            Err(_) => self.refused += 1,
            Ok(()) if self.jobs[held.job].state.is_over() => {
                *self.done.entry(number).or_default() += 1;
            }
            Ok(()) => self.enqueue(machine, held.job),
        }
    }

    /// Now and then a user takes a pair of machines for some hours.
    fn reserve(&mut self, now: UnixTime) {
        self.reservations.retain(|one| one.is_active(now));
        if self.dice.roll(240) > 0 {
            return;
        }
        let first = self.dice.roll(MACHINES as u64 - 1) as usize;
        let machines = [first, first + 1]
            .map(|n| self.health[n].machine.clone())
            .to_vec();
        if check_free(&machines, &self.reservations, now).is_ok() {
            let number = now.seconds().unsigned_abs();
            let until_unix = now.plus_seconds(3_600 * (1 + self.dice.roll(4)));
            let holder = "anna@lab".to_owned();
            let one = Reservation {
                number,
                machines,
                holder,
                since_unix: now,
                until_unix,
                ..Reservation::default()
            };
            self.reservations.push(one);
        }
    }

    fn check(&self, now: UnixTime) {
        for held in &self.held {
            let holders = held
                .iter()
                .filter(|held| self.jobs[held.job].fence == held.fence);
            let live = holders
                .filter(|held| matches!(self.jobs[held.job].state, JobState::Running { .. }))
                .count();
            assert!(live <= 1, "two jobs run on a machine at {now:?}");
        }
        for health in &self.health {
            assert!(
                health
                    .quarantined_unix
                    .is_none_or(|since| since <= now && health.failures >= 3),
                "{health:?}"
            );
        }
    }
}

#[test]
fn simulated_month_loses_no_job() {
    let mut lab = Lab::new();
    let mut quarantines = 0;
    for now in (0..MONTH_S).step_by(STEP_S as usize).map(UnixTime::new) {
        assert!(STEP_S < LEASE_S as i64);
        lab.reserve(now);
        let before = lab.count_quarantined();
        for machine in 0..MACHINES {
            lab.work(machine, now);
            lab.take_back(machine, now);
            lab.claim(machine, now);
        }
        quarantines += lab.count_quarantined().saturating_sub(before);
        lab.check(now);
    }
    assert!(
        lab.done.values().all(|ended| *ended == 1),
        "a job ended twice"
    );
    let open = lab.jobs.iter().filter(|job| !job.state.is_over()).count();
    assert_eq!(lab.done.len() + open, JOBS as usize);
    let waiting: usize = lab.waiting.iter().map(BTreeSet::len).sum();
    let running = lab
        .held
        .iter()
        .flatten()
        .filter(|held| lab.jobs[held.job].fence == held.fence)
        .count();
    assert_eq!(waiting + running, open, "a job is nowhere");
    // Machines' failures are not the jobs': without the rule, the three broken days alone would
    // fail hundreds.
    let failed = lab
        .jobs
        .iter()
        .filter(|job| job.state == JobState::Failed && !job.reason.starts_with("no such kernel"));
    let failed: Vec<&str> = failed.map(|job| job.reason.as_str()).collect();
    assert!(failed.len() < 20, "{failed:?}");
    assert!(
        lab.done.len() > 95_000 && lab.refused > 50 && quarantines >= 3,
        "{} {}",
        lab.done.len(),
        lab.refused
    );
}
