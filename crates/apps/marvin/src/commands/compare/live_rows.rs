//! Rows of a comparison during the measurement: the differences of one seed, before the table
//! has all.

use std::collections::HashMap;
use std::sync::Arc;

use compare::difference_percent;
use document::number::{signed_percent, value};
use lab::Event;
use model::{Build, BuildId, Direction, Workload};
use subprocess::Shared;

const NAME: usize = 18;

const VALUE: usize = 12;

/// Values of the first seed so far.
#[derive(Debug)]
pub(crate) struct LiveRows {
    builds: Vec<(BuildId, String)>,
    directions: HashMap<String, Direction>,
    seed: u64,
    values: Shared<HashMap<(String, BuildId), f64>>,
}

impl LiveRows {
    pub(crate) fn new(builds: &[Build], workloads: &[Arc<Workload>], seed: u64) -> Self {
        let direction =
            |workload: &Arc<Workload>| (workload.name.to_string(), workload.metric.direction);
        Self {
            builds: builds
                .iter()
                .map(|build| (build.id.clone(), build.version.clone()))
                .collect(),
            directions: workloads.iter().map(direction).collect(),
            seed,
            values: Shared::default(),
        }
    }

    /// Returns the rows that a value completes: one of a new kernel, or all if the baseline's comes
    /// last.
    pub(crate) fn completed_by(&self, event: &Event) -> Vec<String> {
        let Event::Done {
            build,
            replicate,
            workload,
            value: Some(value),
            ..
        } = event
        else {
            return Vec::new();
        };
        let (Some(direction), Some((base, news))) =
            (self.directions.get(workload), self.builds.split_first())
        else {
            return Vec::new();
        };
        if replicate.number != self.seed {
            return Vec::new();
        }
        let mut values = self.values.lock();
        values.insert((workload.clone(), build.clone()), *value);
        let value_of = |build: &BuildId| values.get(&(workload.clone(), build.clone())).copied();
        let Some(old) = value_of(&base.0) else {
            return Vec::new();
        };
        let shown = news
            .iter()
            .filter(|(id, _)| *build == base.0 || id == build);
        let row = |(id, version): &(BuildId, String)| {
            let of_build = if self.builds.len() > 2 {
                format!("  {version}")
            } else {
                String::new()
            };
            Some(format!(
                "{}  {replicate}{of_build}",
                row(workload, *direction, old, value_of(id)?)
            ))
        };
        shown.filter_map(row).collect()
    }
}

fn row(workload: &str, direction: Direction, old: f64, new: f64) -> String {
    let base = value(old, VALUE);
    let new_text = value(new, VALUE);
    let difference =
        difference_percent(direction, old, new).map_or_else(String::new, signed_percent);
    format!("{workload:<NAME$} {base:>VALUE$} {new_text:>VALUE$} {difference:>9}")
}

#[cfg(test)]
mod tests {
    use lab::{Event, Replicate};
    use model::BuildId;

    use super::LiveRows;

    fn done(build: &BuildId, replicate: u64, workload: &str, value: Option<f64>) -> Event {
        let replicate = Replicate {
            noun: "seed",
            number: replicate,
        };
        Event::Done {
            build: build.clone(),
            version: String::new(),
            replicate,
            workload: workload.to_owned(),
            value,
        }
    }

    #[test]
    fn row_appears_once_both_sides_are_measured() {
        let ids = ["a", "b", "c"].map(|digit| BuildId::from_hex(&digit.repeat(64)).unwrap());
        let rows = LiveRows {
            builds: ids
                .iter()
                .map(|id| (id.clone(), "6.12".to_owned()))
                .collect(),
            directions: [("getppid".to_owned(), model::Direction::LowerIsBetter)].into(),
            seed: 1,
            values: subprocess::Shared::default(),
        };
        assert!(
            rows.completed_by(&done(&ids[1], 1, "getppid", Some(110.0)))
                .is_empty(),
            "no base yet"
        );
        let line = rows.completed_by(&done(&ids[0], 1, "getppid", Some(100.0)));
        insta::assert_snapshot!(line.join("\n"), @"getppid                  100.00       110.00   -10.00%  seed 1  6.12");
        assert_eq!(
            rows.completed_by(&done(&ids[2], 1, "getppid", Some(100.0)))
                .len(),
            1
        );
        assert!(
            rows.completed_by(&done(&ids[2], 2, "getppid", Some(100.0)))
                .is_empty(),
            "another seed"
        );
        assert!(
            rows.completed_by(&done(&ids[2], 1, "getppid", None))
                .is_empty(),
            "no value"
        );
        assert!(
            rows.completed_by(&done(&ids[2], 1, "environment", Some(1.0)))
                .is_empty(),
            "no row"
        );
    }
}
