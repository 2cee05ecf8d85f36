//! Plans of a few commits, written by hand: each row executes the function of its own number, and
//! all else is without effect.

use crate::made_up::plan::{Candidate, Commit, Effect, Part, Patch, Plan, Repair, Row};

/// Instructions of each row: an effect of 100 is 1 %.
const BASE: i64 = 10_000;
/// A function that no row executes.
const ELSEWHERE: usize = 1000;

/// Returns a plan without effects.
pub(crate) fn small(rows: usize, history: usize, candidates: usize) -> Plan {
    let patch = Patch {
        function: ELSEWHERE,
        is_compiled: true,
        lie: None,
    };
    let candidate = Candidate {
        patch: patch.clone(),
        applies_on: Vec::new(),
        builds_with: Vec::new(),
        shown: Vec::new(),
        flaw: None,
    };
    Plan {
        rows: (0..rows)
            .map(|row| Row {
                base: [BASE, BASE + 3, BASE - 2],
                functions: [row].into(),
            })
            .collect(),
        commits: vec![Commit { patch, below: None }; history],
        candidates: vec![candidate; candidates],
        effects: Vec::new(),
        breaks: Vec::new(),
        side: None,
        causes: Vec::new(),
    }
}

impl Plan {
    /// Has a commit change a row; each of the repairs removes the effect, and consists of one
    /// candidate or of several that do nothing alone.
    pub(crate) fn cause(
        mut self,
        point: usize,
        row: usize,
        instructions: i64,
        repairs: &[&[usize]],
    ) -> Self {
        self.commits[point - 1].patch.function = row;
        let mut all = Vec::new();
        for candidates in repairs {
            candidates
                .iter()
                .for_each(|candidate| self.candidates[*candidate].patch.function = row);
            all.push(Repair {
                by: candidates[0],
                with: candidates[1..].to_vec(),
            });
        }
        self.effects.push(Effect {
            row,
            instructions,
            needs: vec![Part::Commit(point)],
            repairs: all,
        });
        if !self.causes.contains(&point) {
            self.causes.push(point);
        }
        self
    }

    /// Has a candidate change a row.
    pub(crate) fn harm(mut self, candidate: usize, row: usize, instructions: i64) -> Self {
        self.effects.push(Effect {
            row,
            instructions,
            needs: vec![Part::Candidate(candidate)],
            repairs: Vec::new(),
        });
        self
    }
}
