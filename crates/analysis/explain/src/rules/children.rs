//! Programs that a process starts one after the other: each lives too shortly to be followed, and what
//! they wait for is most of the time together.

use std::collections::{BTreeMap, BTreeSet};

use crate::budget::{View, is_for_own, waiting_for_children};
use crate::facts::{Facts, SHORT_LIVED, Thread, Wait};
use crate::finding::Finding;
use crate::waits::{Kind, chain, describe_wait, kind};

use super::blocked::{BLOCKED, THREAD_STATES};

/// New programs a second that are many, and the part of the observed time up to which one lives
/// shortly.
const STARTED: f64 = 2.0;
const SHORT: f64 = 0.25;

/// Whether a wait is one of threads that live shortly.
fn is_of_short(facts: &Facts, wait: &Wait, lasting: &BTreeSet<u32>) -> bool {
    let mut threads = wait.threads.iter();
    facts.root != 0 && !threads.any(|thread| lasting.contains(thread))
}

pub(super) fn one_after_the_other(view: &View) -> Option<Finding> {
    let facts = view.facts;
    let started = view.per_second(facts.short_lived.created?.processes);
    if started < STARTED || waiting_for_children(facts).is_empty() {
        return None;
    }
    let is_lasting = |thread: &&Thread| thread.total_s > SHORT * facts.seconds;
    let lasting: BTreeSet<u32> = facts
        .threads
        .iter()
        .filter(is_lasting)
        .map(|one| one.id)
        .collect();
    let mut kinds: BTreeMap<&str, (f64, &Wait)> = BTreeMap::new();
    for wait in facts
        .waits
        .iter()
        .filter(|wait| is_of_short(facts, wait, &lasting))
    {
        let kind = kind(facts, wait);
        // An answer may be waited for in a poll.
        let is_wanted = kind == Kind::Events || !kind.is_soft() && kind != Kind::Join;
        if is_wanted && !is_for_own(facts, wait) {
            let (seconds, longest) = kinds.entry(&wait.call).or_insert((0.0, wait));
            *seconds += wait.seconds;
            if wait.seconds > longest.seconds {
                *longest = wait;
            }
        }
    }
    let (seconds, wait) = kinds
        .into_values()
        .max_by(|one, other| one.0.total_cmp(&other.0))?;
    let share = (seconds / facts.seconds).min(1.0);
    if share < BLOCKED {
        return None;
    }
    // What ran most of those that are no lasting thread; else what was started most often.
    let is_of_lasting = |name: &str| facts.threads.iter().any(|one| one.name == name);
    let ran = facts.samples.iter().flat_map(|samples| &samples.programs);
    let ran = ran.map(|(name, _)| &**name);
    let mut ran = ran.filter(|name| *name != SHORT_LIVED && !is_of_lasting(name));
    let programs = facts.started.iter().filter(|one| !one.program.is_empty());
    let often = programs.max_by_key(|one| one.count);
    let name = ran.next().or(often.map(|one| &*one.program)).unwrap_or("");
    let does = describe_wait(facts, wait);
    let behind = chain(facts, wait);
    Some(
        Finding::new(
            format!("it starts programs one after the other ({name}, {started:.0} a second), and waits while each {does}{behind}"),
            share,
        )
        .with(
            format!("{seconds:.1} s in {} of processes that live shortly", wait.call),
            THREAD_STATES,
            "30 % of the time",
            "what lasting processes do",
        )
        .advise("Start several side by side, or ask for several things at once.")
        .look("strace -f -T -p PID"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer;
    use crate::facts::{Created, Object, ShortLived, Started};
    use crate::tests::{facts, thread, wait};

    fn of(seconds: f64, processes: u64) -> Facts {
        let shell = Thread {
            name: "sh".into(),
            ..thread(1, [0.1, 0.1, 0.0])
        };
        let answers = (0..10).map(|number| Wait {
            threads: vec![100 + number],
            ..wait("recvfrom", "sk_wait_data", seconds / 10.0)
        });
        let child = Wait {
            object: Object::Child,
            ..wait("wait4", "do_wait", 9.0)
        };
        Facts {
            root: 1,
            waits: answers.chain([child]).collect(),
            short_lived: ShortLived {
                created: Some(Created {
                    processes,
                    threads: 0,
                }),
                ..ShortLived::default()
            },
            started: vec![Started {
                program: "curl".into(),
                count: processes,
                ..Started::default()
            }],
            ..facts(vec![shell])
        }
    }

    #[test]
    fn waits_of_short_programs_add_up() {
        let found = answer(&of(6.0, 200)).cause.unwrap();
        assert_eq!(found.rule, "children");
        assert!(
            found.cause.starts_with(
                "it starts programs one after the other (curl, 20 a second), and waits while each \
                 waits for the peer of a socket in work"
            ),
            "{}",
            found.cause
        );
        for few in [of(1.0, 200), of(6.0, 5)] {
            let rule = answer(&few).cause.map(|cause| cause.rule);
            assert_ne!(rule, Some("children"));
        }
    }
}
