//! The answer as a document.

use document::number::{count, duration, seed_list};
use document::{Block, Document, Fact};
use model::Availability;

use super::view::{CandidateCounts, Repayment};
use super::words::{join, short, signed};
use super::{End, Measuring, Report, tables};
use crate::outcome::{Debt, Effect};
use crate::world::Change;

/// The note on the numbers, in every format.
const LEGEND: &str = "Percent; positive is better. Debts: from BASELINE to NEW; explained: the share that the causes \
                      account for; left: from BASELINE to NEW with the series. Effect: what a cause changed in the \
                      history; revert: what its revert brings on NEW. Alone: what a patch brings on NEW, with those \
                      that it needs; series: what the series loses without it, which \
is not measured where the effects of all patches add up.";

/// Returns the document of a stabilisation.
#[must_use]
pub fn document(report: &Report<'_>) -> Document {
    let outcome = report.outcome;
    let mut warnings = Vec::new();
    if outcome.is_cut {
        warnings.push("The budget ended the search: more causes and repairs may exist.".to_owned());
    }
    let mut blocks = vec![Block::Paragraph(format!("{}.", report.result()))];
    if outcome.ends.is_none() {
        if let Some(parted_at) = &report.parted_at {
            blocks.push(Block::Note(parted(parted_at)));
        }
        blocks.extend(findings(report));
        blocks.extend(list("Rows without a verdict", skipped(report)));
        if !outcome.debts.is_empty() {
            blocks.extend([
                Block::Heading("Measurement".to_owned()),
                Block::Paragraph(candidates(report)),
            ]);
            blocks.push(Block::Note(LEGEND.to_owned()));
        }
    }
    blocks.push(Block::Facts(facts(report)));
    if report.branch.is_some() {
        blocks.push(Block::Note(
            "git fetch REPOSITORY BRANCH gets the series.".to_owned(),
        ));
    }
    blocks.push(Block::Command(report.command.clone()));
    Document {
        warnings,
        title: format!("Stabilise: {} against {}", report.new, report.baseline),
        blocks,
    }
}

/// Returns the parts with what the search found.
fn findings(report: &Report<'_>) -> Vec<Block> {
    let outcome = report.outcome;
    let mut blocks = Vec::new();
    if outcome.debts.is_empty() {
        return blocks;
    }
    blocks.extend([
        Block::Heading("Debts".to_owned()),
        Block::Table(tables::debts(report)),
    ]);
    if !outcome.causes.is_empty() {
        blocks.extend([
            Block::Heading("Causes".to_owned()),
            Block::Table(tables::causes(report)),
        ]);
    }
    if !outcome.series.is_empty() {
        blocks.extend([
            Block::Heading("Series".to_owned()),
            Block::Table(tables::series(report)),
        ]);
        blocks.extend(broken_steps(report));
    }
    let bonus: Vec<Effect> = outcome
        .effects
        .iter()
        .copied()
        .filter(|effect| effect.percent > 0.0 && !report.is_debt(effect.row))
        .collect();
    if !bonus.is_empty() {
        blocks.push(Block::Paragraph(format!(
            "Also better with the series: {}.",
            report.effects(&bonus)
        )));
    }
    let worse = outcome
        .worse
        .iter()
        .map(|effect| report.effects(std::slice::from_ref(effect)));
    blocks.extend(list("Became worse with the series", worse.collect()));
    blocks.extend(list("Unpaid debts", report.unpaid()));
    blocks.extend(tables::not_taken(report));
    blocks
}

/// Returns a part with a list, unless it is empty.
fn list(title: &str, items: Vec<String>) -> Vec<Block> {
    match items.is_empty() {
        true => Vec::new(),
        false => vec![Block::Heading(title.to_owned()), Block::List(items)],
    }
}

fn parted(at: &End) -> String {
    format!(
        "BASELINE is no ancestor of NEW. The causes are searched among the commits of NEW since both part, at {at}; a \
         patch that only BASELINE has is none of them, and a debt that comes from its absence is not explained."
    )
}

fn broken_steps(report: &Report<'_>) -> Option<Block> {
    let broken = &report.outcome.broken_steps;
    if broken.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    for (step, failure) in broken {
        let failure = report.failure(failure, None);
        steps.push(format!("after #{step} the kernel {failure}"));
    }
    Some(Block::Paragraph(format!(
        "The series cannot be bisected: {}.",
        join(&steps)
    )))
}

fn skipped(report: &Report<'_>) -> Vec<String> {
    report
        .skipped
        .iter()
        .map(|skipped| format!("{}: {}", skipped.name, skipped.why))
        .collect()
}

/// Returns one line on the candidates that were not considered, and on those that were.
fn candidates(report: &Report<'_>) -> String {
    let CandidateCounts {
        all,
        not_compiled,
        in_new,
        dropped_otherwise,
        failed,
        tried,
    } = report.candidate_counts();
    let mut parts = Vec::new();
    for (number, verbs, rest) in [
        (in_new, ["is", "are"], "in NEW already"),
        (
            not_compiled,
            ["changes", "change"],
            "nothing that the kernel config compiles",
        ),
        (
            dropped_otherwise,
            ["was", "were"],
            "dropped for another reason",
        ),
        (failed, ["applies or builds", "apply or build"], "nowhere"),
        (tried, ["was", "were"], "tried alone"),
    ] {
        match number {
            0 => {}
            1 => parts.push(format!("1 {} {rest}", verbs[0])),
            _ => parts.push(format!("{number} {} {rest}", verbs[1])),
        }
    }
    let parts = if parts.is_empty() {
        "none was tried alone".to_owned()
    } else {
        join(&parts)
    };
    format!(
        "Of {} in {}, {parts}.",
        count(all, "candidate"),
        report.source
    )
}

fn facts(report: &Report<'_>) -> Vec<Fact> {
    let Measuring {
        machine,
        config,
        suite,
        seeds,
    } = &report.measuring;
    let mut facts = vec![
        Fact::new("Baseline", report.baseline.to_string()),
        Fact::new("New", report.new.to_string()),
        Fact::new(
            "Suite",
            format!("{suite}, {}", count(report.rows.len(), "row")),
        ),
        Fact::new("Machine", machine.clone()),
        Fact::new("Config", config.clone()),
        Fact::new("Seeds", seed_numbers(seeds)),
        Fact::new("Cost", cost(report)),
    ];
    if let Some(branch) = &report.branch {
        facts.push(Fact::new("Repository", branch.repository.clone()));
        facts.push(Fact::new(
            "Branch",
            format!("{} ({})", branch.name, short(&branch.tip)),
        ));
    }
    facts
}

fn seed_numbers(seeds: &[u64]) -> String {
    let text = seed_list(seeds);
    let numbers = text
        .strip_prefix("seeds ")
        .or_else(|| text.strip_prefix("seed "));
    numbers.unwrap_or(&text).to_owned()
}

fn cost(report: &Report<'_>) -> String {
    let cost = report.cost;
    format!(
        "{} ({} in this session), {}, {}",
        count(cost.kernels, "kernel"),
        count(cost.builds, "build"),
        count(cost.images, "distinct image"),
        duration(cost.seconds)
    )
}

impl Report<'_> {
    /// Returns the result in one sentence, without its final period.
    pub(super) fn result(&self) -> String {
        let outcome = self.outcome;
        if let Some(failure) = &outcome.ends {
            return format!(
                "Marvin cannot measure BASELINE or NEW: it {}",
                self.failure(failure, None)
            );
        }
        let debts = outcome.debts.len();
        let rows = self.rows.len();
        if debts == 0 {
            return format!(
                "None of {} is worse: there is no debt to repay",
                count(rows, "row")
            );
        }
        let worse = format!(
            "{debts} of {} {} worse",
            count(rows, "row"),
            if debts == 1 { "is" } else { "are" }
        );
        format!("{worse}; {}", self.repaid())
    }

    /// Describes how many debts the series repays.
    fn repaid(&self) -> String {
        let outcome = self.outcome;
        if outcome.series.is_empty() {
            let them = if outcome.debts.len() == 1 {
                "it"
            } else {
                "any of them"
            };
            return format!("no patch repays {them}");
        }
        let debts = outcome.debts.len();
        let repaid = self.count_repaid(Repayment::Repaid);
        let partly = self.count_repaid(Repayment::Partly);
        let of_them = |number: usize| match number {
            1 if debts == 1 => "it".to_owned(),
            number if number == debts => "all of them".to_owned(),
            number => format!("{number} of them"),
        };
        let what = match (repaid, partly) {
            (0, 0) => "none of them".to_owned(),
            (0, partly) => format!("{} in part", of_them(partly)),
            (repaid, 0) => of_them(repaid),
            (repaid, partly) => format!("{} and {partly} in part", of_them(repaid)),
        };
        let mut parts = vec![format!("{} {what}", counted_patches(&outcome.series))];
        for (like, what) in [
            (Repayment::Unpaid, "unpaid"),
            (Repayment::Unknown, "not measured with the series"),
        ] {
            match self.count_repaid(like) {
                0 => {}
                1 => parts.push(format!("; 1 is {what}")),
                many => parts.push(format!("; {many} are {what}")),
            }
        }
        if !outcome.worse.is_empty() {
            parts.push(format!(
                "; the series makes {} worse than NEW",
                count(outcome.worse.len(), "row")
            ));
        }
        parts.concat()
    }

    /// Describes each debt that is not repaid, with its causes.
    pub(super) fn unpaid(&self) -> Vec<String> {
        let debts = self.outcome.debts.iter();
        debts
            .filter(|debt| self.repayment(debt) != Repayment::Repaid)
            .map(|debt| self.describe_unpaid(debt))
            .collect()
    }

    fn describe_unpaid(&self, debt: &Debt) -> String {
        let left = match (self.repayment(debt), debt.left_percent) {
            (Repayment::Partly, Some(left)) => format!(", {}% left", signed(left)),
            (Repayment::Unknown, _) => ", not measured with the series".to_owned(),
            _ => String::new(),
        };
        let mut causes = Vec::new();
        for cause in self.causes_of(debt.row) {
            let revert = Change::Revert(cause.point);
            let why = match &cause.reverted {
                Some(Availability::Unavailable(failure)) => {
                    format!(" (its revert {})", self.failure(failure, Some(revert)))
                }
                Some(Availability::Available(effects)) if effects.is_empty() => {
                    " (its revert moves no row)".to_owned()
                }
                Some(Availability::Available(effects)) => {
                    format!(" (its revert brings {})", self.effects(effects))
                }
                None => String::new(),
            };
            let named = self.point(cause.point);
            let name = if named.commit.is_empty() {
                named.subject
            } else {
                short(&named.commit)
            };
            causes.push(format!("{name}{why}"));
        }
        let causes = if causes.is_empty() {
            "no cause found".to_owned()
        } else {
            format!("by {}", join(&causes))
        };
        format!(
            "{} {}%{left}: {causes}",
            self.row(debt.row),
            signed(debt.percent)
        )
    }
}

/// Counts the changes of a series: `7 patches repay`, `7 patches (1 of them a revert) repay`.
fn counted_patches(series: &[Change]) -> String {
    let reverts = series
        .iter()
        .filter(|change| matches!(change, Change::Revert(_)))
        .count();
    match (series.len(), reverts) {
        (1, 0) => "1 patch repays".to_owned(),
        (1, _) => "1 revert repays".to_owned(),
        (patches, 0) => format!("{patches} patches repay"),
        (all, reverts) if all == reverts => format!("{all} reverts repay"),
        (all, 1) => format!("{all} patches (1 of them a revert) repay"),
        (all, reverts) => format!("{all} patches ({reverts} of them reverts) repay"),
    }
}
