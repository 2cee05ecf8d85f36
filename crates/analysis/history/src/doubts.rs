//! What speaks against sending a regression to a mailing list: one rule, for mails that a person
//! asks for and for those that go out by themselves.

use document::mail::{head, paragraph};
use model::MICRO;

use crate::{Alert, History, Member};

/// Less than that may be no regression to report of a micro-benchmark alone (percent;
/// Documentation/admin-guide/reporting-regressions.rst).
const MICRO_PERCENT: f64 = 5.0;

/// Why a row is in no mail to a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doubt {
    /// One seed shows it.
    OneSeed,
    /// Its machine counts instructions, and leaves out what they cost.
    Counted,
    /// It is small, and of a micro-benchmark.
    Small,
}

impl Doubt {
    /// Returns it as a sentence without its period.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::OneSeed => {
                "one seed only, so the layout of memory may be the cause. Measure more seeds first; the command is \
                 below"
            }
            Self::Counted => {
                "instructions were counted: caches, contention and devices, which that machine leaves out, may \
                 outweigh them. Measure a machine that measures time, too"
            }
            Self::Small => {
                "less than 5 %, which the kernel's rules hardly count in a micro-benchmark"
            }
        }
    }
}

/// What a mail about an alert names.
#[derive(Debug, Clone, PartialEq)]
pub struct MailableAlert {
    /// The alert with the rows to name, and with their range.
    pub(crate) alert: Alert,
    /// Why no list may get it; empty if one may.
    pub doubts: Vec<Doubt>,
    /// Workloads of regressions that the mail leaves out, and why, once each.
    pub left_out: Vec<(String, Vec<Doubt>)>,
}

impl Alert {
    /// Returns what a mail names: the regressions without a doubt, or if all have one, all of them
    /// for a draft.
    #[must_use]
    pub fn mailable(&self, history: &History) -> MailableAlert {
        let is_clean = |member: &&Member| doubts_of(history, member).is_empty();
        let mut alert = self.clone();
        let mut doubts = Vec::new();
        let mut left_out = Vec::new();
        if self.worse().any(|member| is_clean(&member)) {
            for member in self.worse().filter(|member| !is_clean(member)) {
                left_out.push((member.key.workload.to_string(), doubts_of(history, member)));
            }
            left_out.sort();
            left_out.dedup();
            let doubtful: Vec<&Member> = self.worse().filter(|one| !is_clean(one)).collect();
            alert.members.retain(|member| !doubtful.contains(&member));
        } else {
            // Those of the worst row, which the subject names: another row's say nothing of it.
            let worst = self.worse().next();
            doubts.extend(
                worst
                    .into_iter()
                    .flat_map(|member| doubts_of(history, member)),
            );
        }
        MailableAlert {
            alert: alert.of_regressions(history),
            doubts,
            left_out,
        }
    }
}

/// Returns the head of a mail that addresses no list, and says why.
pub(crate) fn draft_head(doubts: &[Doubt], subject: &str) -> String {
    let mut text = head(&[("Subject", subject)]) + "\n";
    for doubt in doubts {
        let note = format!(
            "This is a draft that addresses no list: {}.",
            doubt.describe()
        );
        text.extend([paragraph(&note), "\n".to_owned()]);
    }
    text
}

fn doubts_of(history: &History, member: &Member) -> Vec<Doubt> {
    let machine = history.machine(member.key.machine).capabilities();
    let percent = member.difference_percent;
    let is_micro = MICRO.find(&member.key.workload).is_some();
    let doubts = [
        (Doubt::OneSeed, member.rests_on_one_seed()),
        // What fails fails without a number.
        (Doubt::Counted, percent.is_some() && machine.deterministic),
        (
            Doubt::Small,
            is_micro && percent.is_some_and(|percent| percent.abs() < MICRO_PERCENT),
        ),
    ];
    let held = doubts.into_iter().filter(|(_, holds)| *holds);
    held.map(|(doubt, _)| doubt).collect()
}
