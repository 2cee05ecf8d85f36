//! How far a lab can be trusted: repeated measurements of its machines, and how many would have
//! been false alarms.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use model::{BuildId, MachineId, UnixTime};
use stats::{Scores, Spread};

use super::gather::History;
use super::index::{KernelIx, MachineIx};
use super::series::{Point, Series};

/// Days that count: earlier problems may have been fixed.
pub const TRUST_DAYS: i64 = 90;
/// Builds of a noisy series that are compared with themselves: each is rated with all others for
/// noise, and a series of years would keep a page waiting.
pub(super) const COMPARED_MAX: usize = 10;
/// Confidence level of a share's interval.
const LEVEL: f64 = 0.95;

/// How often machines agreed with themselves on the same kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Trust {
    /// Comparisons of a kernel with itself.
    pub compared: usize,
    /// Those that are equal bit by bit; none can be on noisy machines.
    pub equal: usize,
    /// Those with a verdict of better or worse: each is a false alarm.
    pub alarms: usize,
}

impl Trust {
    /// Returns the share of false alarms; `None` if nothing was compared.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.compared > 0).then(|| self.alarms as f64 / self.compared as f64)
    }

    /// Returns the interval that holds the true share with a chance of 95 % (Wilson); `None` if
    /// nothing was compared.
    #[must_use]
    pub fn interval(&self) -> Option<Spread> {
        stats::share_interval(self.alarms, self.compared, LEVEL)
    }
}

impl History {
    /// Returns the day of the newest run, in days since 1970-01-01 UTC. Trust is counted back from
    /// there, as a history does not know today's date.
    #[must_use]
    pub fn last_day(&self) -> Option<i64> {
        self.machine_indexes()
            .filter_map(|machine| self.runs_on(machine).1)
            .max()
            .map(UnixTime::days)
    }

    /// Returns how often machines agreed with themselves in the last 90 days.
    ///
    /// On exact machines each repeated result of a build, workload and seed is a comparison of the
    /// build with itself. On noisy machines the runs of each build are dealt alternately to two
    /// sides, which are rated like two kernels; the other builds of the series give the noise. The
    /// ten newest builds of each series are taken. Comparisons that cannot be rated are
    /// not counted.
    #[must_use]
    pub fn trust(&self, machines: &[MachineIx]) -> Trust {
        let since = self.last_day().map_or(i64::MIN, |day| day - TRUST_DAYS + 1);
        let mut trust = Trust::default();
        for machine in machines {
            let repeats = self.repeats_since(*machine, since);
            if self.machine(*machine).capabilities().deterministic {
                trust.compared += repeats.again;
                trust.equal += repeats.agree;
                trust.alarms += repeats.apart;
            }
        }
        for (_, series) in self
            .series()
            .filter(|(key, series)| series.scatters && machines.contains(&key.machine))
        {
            for (kernel, is_alarm) in series.compare_with_itself() {
                let point = series.point(*kernel);
                if point.is_some_and(|point| self.is_since(point, since)) {
                    trust.compared += 1;
                    trust.alarms += usize::from(*is_alarm);
                }
            }
        }
        trust
    }

    fn is_since(&self, point: &Point, since: i64) -> bool {
        point
            .seeds
            .iter()
            .any(|seen| self.run(seen.run).started_unix.days() >= since)
    }

    /// Returns for each workload the noise between runs of one kernel on some machines, over all
    /// kernels but some; it rates single runs of these.
    #[must_use]
    pub fn scatters(
        &self,
        machines: &[&MachineId],
        but: &[&BuildId],
    ) -> BTreeMap<String, stats::History> {
        let mut found: BTreeMap<String, stats::History> = BTreeMap::new();
        for (key, series) in self.series() {
            if !series.scatters || !machines.contains(&&self.machine(key.machine).id) {
                continue;
            }
            for point in &series.points {
                if but.contains(&&self.kernel(point.kernel).build.id) {
                    continue;
                }
                if let Some(scores) = series.scores(point) {
                    found
                        .entry(key.workload.to_string())
                        .or_default()
                        .add(&scores);
                }
            }
        }
        found
    }
}

/// Comparisons of a series' newest kernels with themselves, each with whether it is a false alarm.
/// They follow from the series, so that series are equal without them.
#[derive(Debug, Clone, Default)]
pub(super) struct SelfComparisons(OnceLock<Vec<(KernelIx, bool)>>);

impl PartialEq for SelfComparisons {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Series {
    /// Returns the comparisons of its newest kernels with themselves, worked out once.
    fn compare_with_itself(&self) -> &[(KernelIx, bool)] {
        self.self_comparisons.0.get_or_init(|| {
            let newest = self.points.iter().rev().take(COMPARED_MAX);
            newest
                .filter_map(|point| Some((point.kernel, is_false_alarm(self, point)?)))
                .collect()
        })
    }
}

/// Returns whether the runs of one kernel, dealt to two sides, rate as different; `None` if they
/// cannot be rated.
fn is_false_alarm(series: &Series, point: &Point) -> Option<bool> {
    let margin = series.metric.margin_percent / 100.0;
    let rating = stats::estimate_ratio(
        &scores_of_half(series, point, 0)?,
        &scores_of_half(series, point, 1)?,
        &series.scatter(&[point.kernel]),
        margin,
    );
    rating.precision?;
    let verdict = rating.verdict(rating.p())?;
    Some(matches!(
        verdict,
        stats::Verdict::Better | stats::Verdict::Worse
    ))
}

/// Returns the scores of every second run of a kernel, from the first (0) or the second (1).
fn scores_of_half(series: &Series, point: &Point, first: usize) -> Option<Scores> {
    let seeds = point
        .seeds
        .iter()
        .filter(|seen| series.value(seen).is_some())
        .skip(first)
        .step_by(2);
    series.scores(&Point {
        kernel: point.kernel,
        seeds: seeds.cloned().collect(),
        value: None,
    })
}
