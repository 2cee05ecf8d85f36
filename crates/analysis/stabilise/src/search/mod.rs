//! The search: the debts, their causes, the candidates that repay them, and the smallest series.

mod causes;
mod chain;
mod changes;
mod check;
mod repairs;
mod series;
mod trials;

use compare::Rule;

use crate::outcome::{Debt, Outcome};
use crate::world::{Kernel, Phase, World};
use causes::find_causes;
pub use check::{Checked, check, check_steps};
use repairs::repairs;
use series::Series;
use trials::{Answer, Judgement, Trials};

/// The question of a search.
#[derive(Debug, Clone)]
pub struct Question {
    /// How to judge each row, by its number.
    pub rows: Vec<Rule>,
    /// Commits of the history: the last point is NEW.
    pub history: usize,
    /// Candidates.
    pub candidates: usize,
    /// Whether BASELINE is point 0 of the history.
    pub is_ancestor: bool,
}

/// A row with a debt, as the search needs it.
#[derive(Debug, Clone, Copy)]
struct Debtor {
    row: usize,
    percent: f64,
    /// Smaller steps are ignored (percent).
    step_percent: f64,
}

/// Searches causes and the smallest series.
///
/// # Errors
/// If the world fails.
pub fn search<W: World>(question: &Question, world: &mut W) -> Result<Outcome, W::Error> {
    let mut trials = Trials::new(world, &question.rows, question.history);
    let rows: Vec<usize> = (0..question.rows.len()).collect();
    let new_kernel = trials.new_kernel();
    let baseline = if question.is_ancestor {
        Kernel::Point(0)
    } else {
        Kernel::Baseline
    };
    let mut outcome = Outcome::default();
    trials.world.begin(Phase::Ends);
    let baseline = match trials.measure_end(&baseline, &rows)? {
        Answer::Values(values) => values,
        Answer::Failed(failure) => {
            return Ok(Outcome {
                ends: Some(failure),
                ..outcome
            });
        }
    };
    let new = match trials.measure_end(&new_kernel, &rows)? {
        Answer::Values(values) => values,
        Answer::Failed(failure) => {
            return Ok(Outcome {
                ends: Some(failure),
                ..outcome
            });
        }
    };
    let mut debtors = Vec::new();
    for row in rows {
        let (Some(before), Some(after)) = (baseline.get(&row), new.get(&row)) else {
            continue;
        };
        let judged = trials.judge(row, before, after);
        if judged.verdict == Judgement::Worse {
            let step_percent = trials.step_margin(row, judged.percent);
            debtors.push(Debtor {
                row,
                percent: judged.percent,
                step_percent,
            });
        }
    }
    if debtors.is_empty() {
        return Ok(outcome);
    }
    let debt_rows: Vec<usize> = debtors.iter().map(|debtor| debtor.row).collect();
    trials.world.begin(Phase::Causes);
    let evidence = trials.world.evidence(&debt_rows, &[])?;
    let causes = find_causes(&mut trials, &debtors, &evidence.history, &baseline, &new)?;
    outcome.causes = causes.causes;
    let evidence = trials.world.evidence(&debt_rows, &outcome.causes)?;
    let tried = repairs(&mut trials, &debtors, &evidence.candidates, &new)?;
    outcome.units = tried.units;
    outcome.failed = tried.failed;
    trials.world.begin(Phase::Series);
    let mut series = Series::new(&mut trials, &debtors, &baseline, &new);
    series.search(&mut outcome)?;
    for debtor in &debtors {
        outcome.debts.push(Debt {
            row: debtor.row,
            percent: debtor.percent,
            explained_percent: causes
                .explained_percent
                .get(&debtor.row)
                .copied()
                .unwrap_or(0.0),
            left_percent: series.left(&outcome.series, debtor.row)?,
        });
    }
    outcome.is_cut = trials.world.is_spent();
    Ok(outcome)
}
