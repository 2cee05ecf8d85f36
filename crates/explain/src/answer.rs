//! Chooses the cause among what the rules find.

use crate::budget::View;
use crate::facts::Facts;
use crate::finding::{Certainty, Finding, percent};
use crate::rules::{Branch, RULES};

/// What explains the time of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The cause; `None` if nothing dominates.
    pub cause: Option<Finding>,
    /// Other rules that apply, largest share first.
    pub others: Vec<Finding>,
}

/// Applies all rules. A setting comes before what it causes; otherwise the largest share does.
#[must_use]
pub fn answer(facts: &Facts) -> Answer {
    let view = View::new(facts);
    let mut found: Vec<(Branch, Finding)> = RULES
        .iter()
        .filter_map(|rule| {
            let finding = (rule.check)(&view)?;
            Some((rule.branch, Finding { rule: rule.name, ..finding }))
        })
        .collect();
    // Equal shares stay in the table's order, in which the more special rules come first.
    let is_setting =
        |(branch, finding): &(Branch, Finding)| *branch == Branch::Settings && finding.certainty >= Certainty::Likely;
    found.sort_by(|one, other| {
        is_setting(other).cmp(&is_setting(one)).then_with(|| rounded(other.1.share).cmp(&rounded(one.1.share)))
    });
    let mut found = found.into_iter().map(|(_, finding)| finding);
    Answer { cause: found.next(), others: found.collect() }
}

/// Shares that differ by less than a percentage point are equal.
fn rounded(share: f64) -> i64 {
    (100.0 * share).round() as i64
}

impl Answer {
    /// Returns the answer as one sentence.
    #[must_use]
    pub fn sentence(&self, facts: &Facts) -> String {
        let Some(finding) = &self.cause else {
            let view = View::new(facts);
            let budget = view.budget;
            return format!(
                "Nothing dominates: {} user, {} kernel, {} waiting for a processor, {} blocked.",
                percent(budget.user),
                percent(budget.system),
                percent(budget.waiting),
                percent(budget.blocked)
            );
        };
        let mut letters = finding.cause.chars();
        let first: String = letters.next().map(|letter| letter.to_uppercase().collect()).unwrap_or_default();
        format!(
            "{first}{}: {} of its threads' time ({}).",
            letters.as_str(),
            percent(finding.share),
            finding.certainty.word()
        )
    }
}
