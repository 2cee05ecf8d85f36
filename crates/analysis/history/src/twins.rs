//! Differences that a twin contradicts: a workload of another suite that does the same operation,
//! measured on the same kernels and machine.

use std::sync::Arc;

use compare::{Effect, contradiction};
use model::{Direction, Uncertainty, Verdict};

use super::changes::Change;
use super::gather::History;
use super::index::KernelPair;
use super::pair::{Pair, Ruler, State};
use super::series::{Key, Series};

impl History {
    /// Returns why a difference of a series between two kernels is unclear: its twins were measured
    /// on both, and none of them shows it. `ratio` is above one if the second kernel is better.
    #[must_use]
    pub fn contradiction(&self, key: &Key, kernels: KernelPair, ratio: f64) -> Option<Uncertainty> {
        let series = self.series_by(key)?;
        let own = Effect {
            ratio,
            margin_percent: series.metric.margin_percent,
        };
        let twins: Vec<_> = model::twins(&key.workload)
            .filter_map(|twin| self.twin(twin, key, kernels))
            .collect();
        contradiction(own, &twins)
    }

    fn twin(
        &self,
        twin: &str,
        of: &Key,
        KernelPair { base, target }: KernelPair,
    ) -> Option<(String, f64, Effect)> {
        let mut machines = self.same_machine(of.machine).into_iter();
        machines.find_map(|machine| {
            let key = Key {
                workload: Arc::from(twin),
                machine,
                track: Arc::clone(&of.track),
            };
            let series = self.series_by(&key)?;
            let old = series.point(base)?;
            let new = series.point(target)?;
            let pair = Pair::rate(
                &Ruler::for_kernels(series, &[base, target]),
                Some(old),
                Some(new),
            );
            let is_known = !series.scatters
                || matches!(pair.state, State::Better | State::Worse | State::Same);
            let effect = Effect {
                ratio: pair.compared.ratio?,
                margin_percent: series.metric.margin_percent,
            };
            is_known.then_some((twin.to_owned(), pair.compared.difference_percent?, effect))
        })
    }

    /// Returns the verdict of a change of a series: its own, or why it is unclear if a twin
    /// contradicts it.
    #[must_use]
    pub fn qualified(&self, key: &Key, series: &Series, change: &Change) -> Verdict {
        self.contradicts(key, series, change)
            .map_or_else(|| change.verdict.clone(), Verdict::Unclear)
    }

    fn contradicts(&self, key: &Key, series: &Series, change: &Change) -> Option<Uncertainty> {
        let (before, after) = change
            .levels
            .filter(|(before, after)| *before > 0.0 && *after > 0.0)?;
        let ratio = match series.direction() {
            Direction::LowerIsBetter => before / after,
            Direction::HigherIsBetter => after / before,
        };
        let kernels = KernelPair {
            base: series.points[change.reference].kernel,
            target: series.points[change.at].kernel,
        };
        self.contradiction(key, kernels, ratio)
    }
}

#[cfg(test)]
mod tests {
    use compare::fixtures::{Ending, Subject, build};
    use document::Styles;
    use model::{ReleaseLine, Uncertainty};

    use crate::tests::taken;
    use crate::{History, State, alert_mail, alerts, history_text, overview, triage_alerts};

    /// Two kernels, of which the newer costs so many times as much in each workload.
    fn lab(ratios: &[(&'static str, f64)]) -> History {
        let kernel = |version: &str, is_new: bool| {
            let factor = |ratio: f64| if is_new { ratio } else { 1.0 };
            let endings: Vec<(&str, Ending)> = ratios
                .iter()
                .map(|(name, ratio)| (*name, Ending::Cost(1000.0 * factor(*ratio), 0.1)))
                .collect();
            Subject::new(build("deb:6.12", version), &[1, 2, 3], &endings)
        };
        taken(&[kernel("6.12.1", false), kernel("6.16.1", true)])
    }

    #[test]
    fn row_that_its_twin_contradicts_is_unclear_everywhere() {
        let history = lab(&[("mem-mmap", 1.8984), ("mmap-thr-1", 1.04), ("getppid", 1.0)]);
        let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
        let worse: Vec<&str> = all
            .iter()
            .flat_map(|one| one.alert.worse())
            .map(|member| &*member.key.workload)
            .collect();
        assert_eq!(worse, ["mmap-thr-1"], "what the other one shows, too");
        let mail = alert_mail(&history, &all[0], &[], &[]).unwrap();
        assert!(
            mail.contains("mmap-thr-1") && !mail.contains("mem-mmap"),
            "{mail}"
        );
        let kernels = history.usual_pair().unwrap();
        let screen = overview(&history, kernels, &all);
        assert_eq!(
            (
                screen.counts.worse,
                screen.counts.unclear,
                screen.counts.same
            ),
            (1, 1, 1)
        );
        let cells = screen
            .groups
            .iter()
            .flat_map(|group| &group.rows)
            .find(|row| &*row.workload == "mem-mmap")
            .unwrap();
        assert!(
            cells.cells[0]
                .pair
                .describe()
                .contains("its twin mmap-thr-1"),
            "{}",
            cells.cells[0].pair.describe()
        );
        let text = history_text(
            &history,
            ReleaseLine::All,
            |key| &*key.workload == "mem-mmap",
            &Styles::plain(),
        );
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains("? unclear, -89.8") && text.contains("its twin mmap-thr-1, which"),
            "{text}"
        );
    }

    #[test]
    fn alert_of_contradicted_rows_only_is_not_open() {
        let history = lab(&[("mem-mmap", 1.8984), ("mmap-proc-1", 1.0)]);
        let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
        assert!(
            all.iter().all(|one| !one.is_open()) && all.len() == 1,
            "{all:?}"
        );
        assert_eq!(alert_mail(&history, &all[0], &[], &[]), None);
    }

    #[test]
    fn regression_that_a_twin_shows_stays() {
        let history = lab(&[
            ("mem-mmap", 1.3),
            ("mmap-thr-1", 1.25),
            ("mmap-proc-1", 1.0),
        ]);
        let kernels = history.usual_pair().unwrap();
        let screen = overview(&history, kernels, &[]);
        assert_eq!((screen.counts.worse, screen.counts.same), (2, 1));
        let alone = lab(&[("mem-mmap", 1.8984)]);
        let kernels = alone.usual_pair().unwrap();
        let cell = overview(&alone, kernels, &[]).groups[0].rows[0].cells[0]
            .pair
            .clone();
        assert_eq!(cell.state, State::Worse);
        let key = alone.series().next().unwrap().0;
        assert_eq!(alone.contradiction(key, kernels, 0.5), None::<Uncertainty>);
    }
}
