//! How workloads scale: what their tasks do together, and what each does against one alone.

mod table;

use std::collections::BTreeMap;

use model::{Capabilities, Clock, Direction, Run, find_workload};
use stats::{History, Scores, Spread};

use crate::{centre, run_value, scores};

pub use table::table;

const NS_PER_S: f64 = 1e9;

/// A workload with several numbers of tasks.
#[derive(Debug, Clone, PartialEq)]
pub struct Scaling {
    /// Its name without the number of tasks.
    pub series: String,
    /// The part of the kernel that the workload stresses.
    pub stresses: String,
    /// By number of tasks.
    pub rows: Vec<ScalingRow>,
}

/// One number of tasks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingRow {
    /// Tasks that run at once.
    pub tasks: u32,
    /// Operations per second of all tasks together.
    pub in_all: f64,
    /// Operations per second of one of them.
    pub per_task: f64,
    /// What each task does against one alone; `None` if one alone was not measured.
    pub efficiency: Option<Efficiency>,
}

/// Throughput of a task in percent of that of one alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// Throughput of one task, in percent of that of a task alone.
    pub percent: f64,
    /// Its interval of 95 % over boots; `None` for one boot.
    pub ends: Option<Spread>,
}

/// Returns the workloads that were measured with several numbers of tasks, from runs of one kernel
/// on one machine; none on a machine that does not measure time.
#[must_use]
pub fn scalings(runs: &[&Run], machine: Capabilities) -> Vec<Scaling> {
    if machine.clock != Clock::Seconds {
        return Vec::new();
    }
    let mut found: Vec<(Scaling, Costs)> = Vec::new();
    for result in runs.iter().flat_map(|run| &run.results) {
        let Some(workload) = find_workload(&result.workload) else {
            continue;
        };
        let (Some(tasks), Ok(value)) = (workload.tasks, run_value(result, machine)) else {
            continue;
        };
        let at = found
            .iter()
            .position(|(known, _)| known.series == workload.series())
            .unwrap_or_else(|| {
                let series = workload.series().to_owned();
                let stresses = workload.stresses.to_string();
                found.push((
                    Scaling {
                        series,
                        stresses,
                        rows: Vec::new(),
                    },
                    Costs::new(),
                ));
                found.len() - 1
            });
        found[at].1.entry(tasks).or_default().push(value.value);
    }
    let scalings = found.into_iter().map(|(scaling, costs)| Scaling {
        rows: rows(&costs),
        ..scaling
    });
    scalings.filter(|scaling| scaling.rows.len() > 1).collect()
}

/// By number of tasks, what an operation of each task took (ns) in each boot.
type Costs = BTreeMap<u32, Vec<f64>>;

fn rows(costs: &Costs) -> Vec<ScalingRow> {
    let direction = Direction::LowerIsBetter;
    let scored = costs
        .iter()
        .filter_map(|(tasks, values)| Some((*tasks, scores(values, direction).ok()?)));
    let scored: Vec<(u32, Scores)> = scored.collect();
    let alone = scored
        .iter()
        .find(|(tasks, _)| *tasks == 1)
        .map(|(_, scores)| scores);
    let mut rows = Vec::new();
    for (tasks, scores) in &scored {
        let per_task = NS_PER_S / centre(scores, direction);
        let efficiency = alone.map(|alone| {
            let rating = stats::estimate_ratio(alone, scores, &History::default(), 0.0);
            let ends = rating.interval().filter(|_| *tasks > 1);
            Efficiency {
                percent: 100.0 * rating.ratio(),
                ends: ends.map(|ends| Spread {
                    min: 100.0 * ends.low,
                    max: 100.0 * ends.high,
                }),
            }
        });
        rows.push(ScalingRow {
            tasks: *tasks,
            in_all: per_task * f64::from(*tasks),
            per_task,
            efficiency,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use model::{MachineKind, Run};

    use super::{Scaling, scalings};
    use crate::fixtures::{Ending, Subject, build};

    /// Returns the scalings of boots that have these costs (ns) with 1, 2 and 4 tasks.
    fn found(boots: &[[f64; 3]], kind: &str) -> Vec<Scaling> {
        let mut subject = Subject::new(build("deb:6.12", "6.12.117"), &[], &[]);
        for (boot, costs) in (1..).zip(boots) {
            let ending = |n: usize| Ending::Samples(vec![costs[n]; 4]);
            let names = ["fault-thr-1", "fault-thr-2", "fault-thr-4"];
            let mut endings: Vec<(&str, Ending)> =
                (0..3).rev().map(|n| (names[n], ending(n))).collect();
            endings.push(("getppid", ending(0)));
            endings.push(("mmap-thr-2", ending(0)));
            subject.add_run(boot, &endings);
        }
        let runs: Vec<&Run> = subject.runs.iter().collect();
        scalings(&runs, kind.parse::<MachineKind>().unwrap().capabilities())
    }

    #[test]
    fn efficiency_is_throughput_against_one_task() {
        let found = found(&[[1000.0, 1250.0, 4000.0]], "vm");
        let [Scaling { series, rows, .. }] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!(series, "fault-thr");
        let close = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-9;
        for (row, (tasks, in_all, percent)) in
            rows.iter()
                .zip([(1, 1e6, 100.0), (2, 1.6e6, 80.0), (4, 1e6, 25.0)])
        {
            let efficiency = row.efficiency.unwrap();
            assert_eq!((row.tasks, efficiency.ends), (tasks, None));
            assert!(
                close(row.in_all, in_all) && close(efficiency.percent, percent),
                "{row:?}"
            );
            assert!(close(row.per_task * f64::from(tasks), in_all), "{row:?}");
        }
    }

    #[test]
    fn several_boots_give_an_interval() {
        let boots = [
            [1000.0, 1250.0, 4000.0],
            [1010.0, 1240.0, 4100.0],
            [990.0, 1260.0, 3900.0],
        ];
        let found = found(&boots, "vm");
        let two = found[0].rows[1].efficiency.unwrap();
        let ends = two.ends.unwrap();
        assert!(
            ends.min < two.percent && two.percent < ends.max && ends.max - ends.min < 10.0,
            "{two:?}"
        );
        assert_eq!(
            found[0].rows[0].efficiency.unwrap().ends,
            None,
            "one task is what it is"
        );
    }

    #[test]
    fn counted_instructions_have_no_scaling() {
        assert_eq!(found(&[[1000.0, 1250.0, 4000.0]], "exact"), []);
    }
}
