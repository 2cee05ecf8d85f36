//! Which rows of which budgets a change must fit, by the files that it touches and by the budgets
//! before and after it.

use std::collections::BTreeSet;

use model::Budget;

use crate::gate::GateRow;

/// What a change touches.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Touched {
    /// The names of the budgets that are about its files, and who answers for them.
    pub budgets: Vec<(String, Vec<String>)>,
    /// Their rows, not measured.
    pub rows: Vec<GateRow>,
}

/// Returns what a change touches. A budget counts if it is about one of the files before or after
/// the change, so that a change cannot lift a limit unseen. `before` is `None` if there were no
/// budgets.
#[must_use]
pub fn touched(files: &[String], before: Option<&[Budget]>, after: &[Budget]) -> Touched {
    let is_touched = |budget: &&Budget| files.iter().any(|file| budget.is_about(file));
    let mut found = Touched::default();
    for name in names(before.unwrap_or_default(), after) {
        let old = named(before.unwrap_or_default(), name).filter(is_touched);
        let new = named(after, name).filter(is_touched);
        if old.is_none() && new.is_none() {
            continue;
        }
        let mut owners: Vec<String> = Vec::new();
        let mut rows: Vec<&str> = Vec::new();
        for budget in [old, new].into_iter().flatten() {
            for owner in &budget.owners {
                if !owners.contains(owner) {
                    owners.push(owner.clone());
                }
            }
            for row in &budget.rows {
                if !rows.contains(&&**row) {
                    rows.push(row);
                }
            }
        }
        found.budgets.push((name.to_owned(), owners));
        for row in rows {
            let limit = |budget: Option<&Budget>| {
                let budget = budget.filter(|budget| budget.rows.iter().any(|known| known == row));
                budget.map(|budget| budget.limit_of(row))
            };
            found.rows.push(GateRow {
                workload: row.to_owned(),
                budget: name.to_owned(),
                limit_before: limit(old),
                limit: limit(new),
                measured: None,
            });
        }
    }
    found
}

/// Says what a change edits in budgets that were there before, each with a verb.
#[must_use]
pub fn edits(before: &[Budget], after: &[Budget]) -> Vec<String> {
    let mut found = Vec::new();
    for old in before {
        let Some(new) = named(after, &old.name) else {
            found.push(format!("removes the budget {}", old.name));
            continue;
        };
        if old.paths != new.paths {
            found.push(format!("edits the paths of the budget {}", old.name));
        }
        for row in &old.rows {
            let limit = old.limit_of(row);
            if !new.rows.contains(row) {
                found.push(format!(
                    "edits the budget {}: {row} {limit} -> none",
                    old.name
                ));
            } else if new.limit_of(row) != limit {
                let new = new.limit_of(row);
                found.push(format!(
                    "edits the budget {}: {row} {limit} -> {new}",
                    old.name
                ));
            }
        }
    }
    found
}

/// Returns the names of budgets, those after the change first.
fn names<'a>(before: &'a [Budget], after: &'a [Budget]) -> Vec<&'a str> {
    let mut seen = BTreeSet::new();
    let all = after.iter().chain(before).map(|budget| &*budget.name);
    all.filter(|name| seen.insert(*name)).collect()
}

fn named<'a>(budgets: &'a [Budget], name: &str) -> Option<&'a Budget> {
    budgets.iter().find(|budget| budget.name == name)
}

#[cfg(test)]
mod tests {
    use model::{Budget, Limit};

    use super::{edits, touched};

    fn budget(name: &str, path: &str, limit: f64) -> Budget {
        Budget {
            name: name.to_owned(),
            paths: vec![path.to_owned()],
            rows: vec!["fault-anon".to_owned(), "mem-brk".to_owned()],
            limit: Limit::Percent(limit),
            limits: [("mem-brk".to_owned(), Limit::Count(300.0))].into(),
            owners: vec![format!("{name}@example.org")],
        }
    }

    #[test]
    fn rows_have_limits_before_and_after() {
        let files = ["mm/memory.c".to_owned()];
        let before = [budget("mm", "mm/", 1.0), budget("fs", "fs/", 1.0)];
        let mut after = before.clone();
        assert_eq!(touched(&["x.c".to_owned()], Some(&before), &after).rows, []);
        after[0].limit = Limit::Percent(3.0);
        let found = touched(&files, Some(&before), &after);
        assert_eq!(
            found.budgets,
            [("mm".into(), vec!["mm@example.org".into()])]
        );
        let limits = |row: usize| (found.rows[row].limit_before, found.rows[row].limit);
        assert_eq!(
            limits(0),
            (Some(Limit::Percent(1.0)), Some(Limit::Percent(3.0)))
        );
        assert_eq!(
            limits(1),
            (Some(Limit::Count(300.0)), Some(Limit::Count(300.0)))
        );
        assert_eq!(
            edits(&before, &after),
            ["edits the budget mm: fault-anon 1 % -> 3 %"]
        );
        assert_eq!(touched(&files, None, &after).rows[0].limit_before, None);
    }

    #[test]
    fn lifted_budgets_count_as_before() {
        let files = ["mm/memory.c".to_owned()];
        let before = [budget("mm", "mm/", 1.0)];
        let narrower = [budget("mm", "mm/slub.c", 1.0)];
        for after in [&[][..], &narrower] {
            let found = touched(&files, Some(&before), after);
            assert_eq!(found.rows.len(), 2);
            assert!(found.rows.iter().all(|row| row.limit.is_none()));
            assert_eq!(edits(&before, after).len(), 1);
        }
    }
}
