//! The noise floor of a machine: how much its boots of the same kernel scatter, and what that lets
//! a comparison show.
//!
//! It is taken from every boot of every kernel that the store has: no kernel is measured for its
//! sake alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use compare::render::describe_noise;
use model::UnixTime;
use stats::{Floor, Scores, noise_profile};

use super::gather::History;
use super::index::MachineIx;
use super::series::{Point, Series};

/// Numbers of boots whose least visible change is of interest: the default, and as many as a
/// patient user takes.
pub const BOOTS: [usize; 2] = [5, 20];

/// The noise of one workload between boots.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseFloor {
    /// The workload's name.
    pub workload: Arc<str>,
    /// How many boots showed it; those that are the only one of their kernel show nothing.
    pub boots: usize,
    /// Coefficient of variation between boots of one kernel (percent).
    pub variation_percent: f64,
    /// Numbers of boots of each kernel, and the least change in percent that they show to exceed
    /// the workload's margin, four times of five; `None` if no change can be shown.
    pub least_percent: [(usize, Option<f64>); BOOTS.len()],
    /// What speaks against the machine: two modes, outliers, a drift or a memory from boot to
    /// boot. Fewer than six boots do not tell.
    pub suspicion: Option<String>,
}

/// The boots of one workload.
struct Boots<'a> {
    margin_percent: f64,
    of_kernels: Vec<Scores>,
    /// When each boot was, and how far it is from its kernel's centre.
    apart: Vec<((UnixTime, usize), f64)>,
    name: &'a Arc<str>,
}

impl History {
    /// Returns the noise floor of each workload of which these machines measured at least two boots
    /// of one kernel, by name. Exact machines have none: their boots do not scatter.
    #[must_use]
    pub fn noise_floors(&self, machines: &[MachineIx]) -> Vec<NoiseFloor> {
        let mut found: BTreeMap<&Arc<str>, Boots<'_>> = BTreeMap::new();
        for (key, series) in self
            .series()
            .filter(|(key, series)| series.scatters && machines.contains(&key.machine))
        {
            let boots = found.entry(&key.workload).or_insert_with(|| Boots {
                margin_percent: series.metric.margin_percent,
                of_kernels: Vec::new(),
                apart: Vec::new(),
                name: &key.workload,
            });
            for point in &series.points {
                let Some(scores) = series.scores(point).filter(|scores| scores.count() > 1) else {
                    continue;
                };
                boots.apart.extend(self.apart(series, point));
                boots.of_kernels.push(scores);
            }
        }
        found.into_values().filter_map(Boots::floor).collect()
    }

    /// Returns each boot's value as a multiple of the mean of its kernel, with the time of the
    /// boot.
    fn apart(&self, series: &Series, point: &Point) -> Vec<((UnixTime, usize), f64)> {
        let seen = point
            .seeds
            .iter()
            .filter_map(|seen| Some((seen.run, series.value(seen)?)));
        let values: Vec<(usize, f64)> = seen.collect();
        let mean = values.iter().map(|(_, value)| value).sum::<f64>() / values.len() as f64;
        values
            .into_iter()
            .map(|(run, value)| ((self.run(run).started_unix, run), value / mean))
            .collect()
    }
}

impl Boots<'_> {
    fn floor(mut self) -> Option<NoiseFloor> {
        let floor = Floor::estimate(&self.of_kernels)?;
        let margin = self.margin_percent / 100.0;
        self.apart.sort_by_key(|(when, _)| *when);
        let apart: Vec<f64> = self.apart.iter().map(|(_, value)| *value).collect();
        Some(NoiseFloor {
            workload: Arc::clone(self.name),
            boots: apart.len(),
            variation_percent: floor.variation() * 100.0,
            least_percent: BOOTS.map(|boots| {
                (
                    boots,
                    floor
                        .least_change(boots, margin)
                        .map(|change| change * 100.0),
                )
            }),
            suspicion: noise_profile(&apart).as_ref().and_then(describe_noise),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{History, NoiseFloor};
    use crate::noisy_tests::{host, imported};
    use crate::tests::taken;

    const KERNBENCH: &str = "kernbench/Elapsed-4";

    /// Returns the floors of one workload, whose boots of each kernel have these values.
    fn floors(kernels: &[&[f64]]) -> Vec<NoiseFloor> {
        let subjects = (1..).zip(kernels).map(|(minor, boots)| {
            let boots: Vec<[f64; 1]> = boots.iter().map(|boot| [*boot]).collect();
            let runs: Vec<&[f64]> = boots.iter().map(<[f64; 1]>::as_slice).collect();
            imported(&format!("6.{minor}"), KERNBENCH, &runs)
        });
        let history = taken(&subjects.collect::<Vec<_>>());
        let machine = history.machine_number(&host().id).unwrap();
        history.noise_floors(&[machine])
    }

    #[test]
    fn quiet_machine_shows_small_changes() {
        let found = floors(&[
            &[100.0, 100.5, 99.5, 100.2],
            &[149.7, 150.1, 149.9, 150.0],
            &[70.0],
        ]);
        assert_eq!(
            (found.len(), found[0].boots, &*found[0].workload),
            (1, 8, KERNBENCH)
        );
        let [(5, Some(five)), (20, Some(twenty))] = found[0].least_percent else {
            panic!("{found:?}")
        };
        assert!(
            (0.2..0.4).contains(&found[0].variation_percent),
            "{found:?}"
        );
        assert!(five > twenty && five < 3.0, "{found:?}");
        assert_eq!(found[0].suspicion, None);
    }

    #[test]
    fn drifting_machine_is_suspicious() {
        let rising: Vec<f64> = (0..10).map(|boot| 100.0 + f64::from(boot)).collect();
        let suspicion = floors(&[&rising])[0].suspicion.clone().unwrap();
        assert!(
            suspicion.contains("drifts up from run to run"),
            "{suspicion}"
        );
    }

    #[test]
    fn machine_with_two_modes_is_suspicious() {
        let values: Vec<f64> = (0..24)
            .map(|boot| if boot * 7 % 5 < 2 { 100.0 } else { 120.0 } + f64::from(boot % 3))
            .collect();
        let suspicion = floors(&[&values])[0].suspicion.clone().unwrap();
        assert!(suspicion.contains("two modes"), "{suspicion}");
    }

    #[test]
    fn single_boots_have_no_floor() {
        assert_eq!(floors(&[&[100.0], &[101.0]]), []);
        assert_eq!(History::default().noise_floors(&[crate::MachineIx(0)]), []);
    }
}
