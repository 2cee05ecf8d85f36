//! Stats of monitors that another suite computed: one number for each run. They have no unit and no
//! good direction, and are ranked by how much they moved.

use std::collections::{BTreeMap, BTreeSet};

use crate::block::{Block, BlockRow, Form, MonitorValue};

/// The subject of the block.
pub(crate) const TITLE: &str = "Stats of monitors";
/// Rows that a report has.
const SHOWN: usize = 40;
/// Scatter that a stat is taken to have at least, as a part of its mean: one run shows none.
const SCATTER_MIN: f64 = 0.01;
/// The same of shares of a profile, in percent of all samples.
const SHARE_SCATTER: f64 = 0.2;

/// The stats of a run, by name; `None` of one whose value could not be read, which is no zero.
pub type RunStats = BTreeMap<String, Option<f64>>;

/// A stat of one kernel: mean and variance over its runs.
#[derive(Debug, Clone, Copy)]
struct Level {
    mean: f64,
    variance: f64,
}

/// Returns the stats of kernels, a list of runs for each, the base first: those whose mean moved
/// most beside what runs of one kernel scatter. `None` if no kernel has stats.
#[must_use]
pub fn stats_block(kernels: &[Vec<RunStats>]) -> Option<Block> {
    let names: BTreeSet<&String> = kernels.iter().flatten().flat_map(BTreeMap::keys).collect();
    let mut rows: Vec<(f64, BlockRow)> = Vec::new();
    for name in &names {
        let levels: Vec<Option<Level>> = kernels.iter().map(|runs| level(runs, name)).collect();
        let values = levels.iter().map(|level| {
            level.map_or(MonitorValue::Absent, |level| {
                MonitorValue::Number(level.mean)
            })
        });
        let row = BlockRow::new(name.as_str(), Form::Mean, values.collect());
        rows.push((moved(name, &levels), row));
    }
    // A stable sort: stats that moved alike stay in the order of their names.
    rows.sort_by(|one, other| other.0.total_cmp(&one.0));
    let unmoved = rows.iter().filter(|(moved, _)| *moved <= 0.0).count();
    let shown: Vec<BlockRow> = rows
        .into_iter()
        .filter(|(moved, _)| *moved > 0.0)
        .map(|(_, row)| row)
        .take(SHOWN)
        .collect();
    if names.is_empty() {
        return None;
    }
    let rest = names.len() - unmoved - shown.len();
    let mut block = Block::new(TITLE, "", shown);
    block.notes.push(format!(
        "Means over runs, those first that moved most beside what runs scatter; {rest} more moved less, {unmoved} not at all. \
         Percent: more (+) or less (-) than the base; neither is better."
    ));
    Some(block)
}

/// Returns a stat over runs. LKP-tests leaves out a stat of zero: a run with other stats of the same
/// monitor has zero.
fn level(runs: &[RunStats], name: &str) -> Option<Level> {
    let monitor = name.split('.').next().unwrap_or(name);
    let has_monitor = |run: &RunStats| {
        run.range(monitor.to_owned()..)
            .next()
            .is_some_and(|(other, _)| other.split('.').next() == Some(monitor))
    };
    let values: Vec<f64> = runs
        .iter()
        .filter_map(|run| {
            run.get(name)
                .copied()
                .unwrap_or_else(|| has_monitor(run).then_some(0.0))
        })
        .collect();
    if values.is_empty() {
        return None;
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some(Level {
        mean,
        variance: squares / (count - 1.0).max(1.0),
    })
}

/// Returns how far the farthest kernel lies from the base, in deviations of a run; zero for a stat
/// that one of them does not have.
fn moved(name: &str, levels: &[Option<Level>]) -> f64 {
    let Some((Some(base), others)) = levels.split_first() else {
        return 0.0;
    };
    let least = if name.starts_with("perf-profile") {
        SHARE_SCATTER
    } else {
        0.0
    };
    let far = others.iter().flatten().map(|new| {
        let mean = f64::midpoint(base.mean.abs(), new.mean.abs());
        let scatter = f64::midpoint(base.variance, new.variance).sqrt();
        let scatter = scatter + SCATTER_MIN * mean + least;
        let difference = (new.mean - base.mean).abs();
        if difference > 0.0 {
            difference / scatter
        } else {
            0.0
        }
    });
    far.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::{RunStats, SHOWN, stats_block};

    fn run(stats: &[(&str, f64)]) -> RunStats {
        let named = stats
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Some(*value)));
        named.collect()
    }

    fn names(kernels: &[Vec<RunStats>]) -> Vec<String> {
        let block = stats_block(kernels).unwrap();
        block.rows.into_iter().map(|row| row.name).collect()
    }

    #[test]
    fn sure_moves_come_before_noisy_ones() {
        let base = [
            run(&[("cpu.usage", 10.0), ("vm.noise", 1.0), ("vm.still", 7.0)]),
            run(&[("cpu.usage", 10.1), ("vm.noise", 900.0), ("vm.still", 7.0)]),
        ];
        let new = [
            run(&[("cpu.usage", 20.0), ("vm.noise", 4000.0), ("vm.still", 7.0)]),
            run(&[("cpu.usage", 20.1), ("vm.noise", 3.0), ("vm.still", 7.0)]),
        ];
        let kernels = [base.to_vec(), new.to_vec()];
        assert_eq!(names(&kernels), ["cpu.usage", "vm.noise"]);
        let note = &stats_block(&kernels).unwrap().notes[0];
        assert!(note.contains("0 more moved less, 1 not at all"), "{note}");
    }

    #[test]
    fn stat_left_out_by_one_kernel_is_zero() {
        let base = vec![run(&[("slab.a", 5.0), ("slab.b", 3.0)])];
        let new = vec![run(&[("slab.a", 5.0)])];
        let block = stats_block(&[base, new]).unwrap();
        let values: Vec<_> = block.rows[0]
            .values
            .iter()
            .map(|value| value.number())
            .collect();
        assert_eq!(block.rows[0].name, "slab.b");
        assert_eq!(values, [Some(3.0), Some(0.0)]);
    }

    #[test]
    fn unreadable_value_is_no_zero() {
        let whole = run(&[("vm.fault", 500.0), ("vm.other", 1.0)]);
        let mut damaged = whole.clone();
        damaged.insert("vm.fault".to_owned(), None);
        let kernels = [vec![whole.clone(), whole.clone()], vec![whole, damaged]];
        assert_eq!(names(&kernels), Vec::<String>::new());
    }

    #[test]
    fn stat_of_absent_monitor_has_no_rank() {
        let base = vec![run(&[("slab.a", 5.0)])];
        let new = vec![run(&[("vm.b", 5.0)])];
        assert_eq!(stats_block(&[base, new]).unwrap().rows.len(), 0);
        assert!(stats_block(&[vec![], vec![]]).is_none());
    }

    #[test]
    fn thousands_of_stats_are_cut_and_counted() {
        let stats = |more: f64| -> RunStats {
            let numbers = 0..1000_u16;
            numbers
                .map(|n| (format!("proc.{n}"), Some(f64::from(n) + more)))
                .collect()
        };
        let block = stats_block(&[vec![stats(1.0)], vec![stats(2.0)]]).unwrap();
        assert_eq!(block.rows.len(), SHOWN);
        assert!(block.notes[0].contains("; 960 more moved less"));
        assert_eq!(block.rows[0].name, "proc.0", "1 to 2 is the farthest");
    }
}
