//! The noise floor of a machine: what boots of one kernel, measured again and again, say of the machine.

use std::sync::Arc;

use model::{Capabilities, Run, Workload};
use stats::NoiseProfile;

use crate::noisy::scores;
use crate::render::noise::profile;
use crate::value::run_value;

/// Numbers of boots whose least visible change is of interest: the default, and as many as a patient user takes.
pub const BOOTS: [usize; 2] = [5, 20];

/// The noise of one workload between boots.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseFloor {
    /// The workload.
    pub workload: String,
    /// How many boots measured it.
    pub boots: usize,
    /// Coefficient of variation between boots (percent).
    pub variation_percent: f64,
    /// Numbers of boots of each kernel, and the least change in percent that they show to exceed the workload's margin, four
    /// times of five; `None` if no change can be shown.
    pub least_percent: [(usize, Option<f64>); BOOTS.len()],
    /// What kind of noise it is; fewer than six boots do not tell.
    pub profile: Option<NoiseProfile>,
}

impl NoiseFloor {
    /// Returns what speaks against the machine: two modes, outliers, a drift or a memory from boot to boot.
    #[must_use]
    pub fn suspicion(&self) -> Option<String> {
        self.profile.as_ref().and_then(profile)
    }
}

/// Returns the noise floor of each workload that at least two boots of one kernel completed.
#[must_use]
pub fn noise_floors(runs: &[&Run], workloads: &[Arc<Workload>], machine: Capabilities) -> Vec<NoiseFloor> {
    let mut boots = runs.to_vec();
    boots.sort_by_key(|run| run.started_unix);
    let floor = |workload: &Arc<Workload>| {
        let results = boots.iter().flat_map(|run| &run.results).filter(|result| result.workload == workload.name);
        let values: Vec<f64> = results.filter_map(|result| Some(run_value(result, machine).ok()?.value)).collect();
        let floor = stats::Floor::of(&scores(&values, workload.metric.direction).ok()?)?;
        let margin = workload.metric.margin_percent / 100.0;
        Some(NoiseFloor {
            workload: workload.name.to_string(),
            boots: values.len(),
            variation_percent: floor.variation() * 100.0,
            least_percent: BOOTS.map(|boots| (boots, floor.least_change(boots, margin).map(|change| change * 100.0))),
            profile: stats::noise_profile(&values),
        })
    };
    workloads.iter().filter_map(floor).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{MachineKind, Run};

    use super::{NoiseFloor, noise_floors};
    use crate::fixtures::{Ending, Subject, build, question};

    /// Returns the floors of one workload, whose boots have these values.
    fn floors(values: &[f64]) -> Vec<NoiseFloor> {
        let mut subject = Subject::new(build("deb:6.12", "6.12.117"), &[], &[]);
        for (boot, value) in (0..).zip(values) {
            subject.add_run(boot, &[("getppid", Ending::Samples(vec![*value; 4]))]);
        }
        // Stored runs come in any order.
        for (run, start) in subject.runs.iter_mut().zip(1_000..) {
            run.started_unix = start;
        }
        let runs: Vec<&Run> = subject.runs.iter().rev().collect();
        let workloads: Vec<_> = question(&[1]).workloads.iter().map(Arc::clone).collect();
        let kind: MachineKind = "local".parse().unwrap();
        noise_floors(&runs, &workloads, kind.capabilities())
    }

    #[test]
    fn quiet_machine_shows_small_changes() {
        let found = floors(&[100.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.0]);
        assert_eq!((found.len(), found[0].boots, &*found[0].workload), (1, 8, "getppid"));
        let [(5, Some(five)), (20, Some(twenty))] = found[0].least_percent else { panic!("{found:?}") };
        assert!((0.2..0.4).contains(&found[0].variation_percent), "{found:?}");
        assert!(five > twenty && five < 2.0, "{found:?}");
        assert_eq!(found[0].suspicion(), None);
    }

    #[test]
    fn drifting_machine_is_suspicious() {
        let rising: Vec<f64> = (0..10).map(|boot| 100.0 + f64::from(boot)).collect();
        let suspicion = floors(&rising)[0].suspicion().unwrap();
        assert!(suspicion.contains("drifts up from run to run"), "{suspicion}");
    }

    #[test]
    fn machine_with_two_modes_is_suspicious() {
        let values: Vec<f64> =
            (0..24).map(|boot| if boot * 7 % 5 < 2 { 100.0 } else { 120.0 } + f64::from(boot % 3)).collect();
        let suspicion = floors(&values)[0].suspicion().unwrap();
        assert!(suspicion.contains("two modes"), "{suspicion}");
    }

    #[test]
    fn single_boot_has_no_floor() {
        assert_eq!(floors(&[100.0]), []);
        assert_eq!(floors(&[]), []);
    }
}
