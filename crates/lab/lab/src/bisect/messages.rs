//! The lines that a bisection prints while it searches, and when it does not start.

use document::number::count;

use super::report::{self, short};
use super::{BisectionEvent, Probe, Refused, Stands};

/// Returns how many commits have results already.
#[must_use]
pub fn describe_resumed(commits: usize) -> Option<String> {
    let were = if commits == 1 {
        "commit was"
    } else {
        "commits were"
    };
    (commits > 0).then(|| format!("{commits} {were} measured before; --force measures again"))
}

/// Returns the line for an event.
#[must_use]
pub fn format_event(event: &BisectionEvent<'_>) -> String {
    match event {
        BisectionEvent::Range {
            places,
            commits,
            builds,
        } => {
            let [places, commits, builds] =
                [(places, "place"), (commits, "commit"), (builds, "build")]
                    .map(|(number, noun)| count(*number, noun));
            format!("{places} to search in {commits}: about {builds} per step")
        }
        BisectionEvent::Probing(commit) => format!("next is {}", short(commit)),
        BisectionEvent::Probed(entry) => {
            let without = if entry.stands == Stands::Without {
                "BAD without "
            } else {
                ""
            };
            match &entry.probe {
                Probe::Measured { values, .. } => {
                    format!("{without}{}: {}", short(&entry.of), report::values(values))
                }
                Probe::Failed(why) => format!("{without}{}: {why}", short(&entry.of)),
            }
        }
        BisectionEvent::Into(merge) => {
            format!(
                "the step is in the merge {}: searching its commits",
                short(merge)
            )
        }
        BisectionEvent::Unpruned(commit) => {
            format!(
                "{} equals its parent: searching the excluded commits before it",
                short(commit)
            )
        }
        BisectionEvent::Reverting(commit) => {
            format!("{} is a culprit; reverting it on top of BAD", short(commit))
        }
    }
}

/// Returns what a user reads of a search that did not start.
#[must_use]
pub fn format_refusal(why: &Refused) -> String {
    match why {
        Refused::End { commit, why } => {
            format!(
                "cannot measure {}, an end of the range: {why}",
                short(commit)
            )
        }
        Refused::NoDifference {
            differences_percent,
            margin_percent,
            reason,
        } => {
            let percents: Vec<String> = differences_percent
                .iter()
                .map(|percent| format!("{percent:+.3} %"))
                .collect();
            let percents = percents.join(", ");
            match reason {
                Some(reason) => {
                    format!(
                        "the difference of the ends is uncertain: {percents} by seed: {reason}; use more --seeds"
                    )
                }
                None => format!(
                    "the ends do not differ: {percents} by seed, and a step must exceed {margin_percent:.3} % in all seeds; \
                     name another workload, a smaller --margin, or ends that differ (see `marvin compare`)"
                ),
            }
        }
        Refused::NotSeen {
            percent,
            error_percent,
            runs,
        } => format!(
            "the ends do not differ: {percent:+.3} % with a standard error of {error_percent:.3} % after {runs} runs; \
             name another workload, or ends that differ (`marvin compare` shows)"
        ),
    }
}
