//! Calibration of workloads on machines that measure time: how many rounds of its operations a
//! workload needs so that an iteration takes long enough for clock and scheduler not to matter.
//!
//! A workload declares its operations for the exact machine, where an iteration may take a
//! millisecond. Its working set belongs to them, so more operations at once would be another
//! workload. Marvin repeats the same operations instead, and takes the mean of a group of
//! iterations for one. The number of rounds is found once for machine and workload, by the
//! first kernel that completes it, and never again: all kernels get the same job.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use model::{MachineId, Workload};
use subprocess::{Shared, replace_file};

/// How long an iteration should take (ns): some ten ticks of a timer, and many slices of the
/// scheduler.
const TARGET_NS: f64 = 50e6;
/// How long a job should take at most (s), with the work between its iterations.
const JOB_S: f64 = 5.0;
const ROUNDS_MAX: u32 = 256;

/// What a calibrating job showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Trial {
    /// How long an iteration took (ns).
    pub(crate) iteration_ns: f64,
    /// How long the whole job took (s).
    pub(crate) job_s: f64,
}

impl Trial {
    /// Returns the rounds that an iteration needs.
    pub(crate) fn rounds(self) -> u32 {
        let wanted = TARGET_NS / self.iteration_ns.max(1.0);
        let affordable = JOB_S / self.job_s.max(f64::MIN_POSITIVE);
        // Far below what a u32 holds, and not a number only if a sample is none.
        wanted
            .min(affordable)
            .round()
            .clamp(1.0, f64::from(ROUNDS_MAX)) as u32
    }
}

/// The rounds of workloads by machine, in a file for each machine.
#[derive(Debug)]
pub(crate) struct Calibration {
    folder: PathBuf,
    known: Shared<BTreeMap<MachineId, BTreeMap<String, u64>>>,
}

impl Calibration {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            known: Shared::default(),
        }
    }

    /// Returns the rounds of a workload on a machine; `None` if it was not calibrated there, or
    /// with other operations.
    pub(crate) fn rounds(&self, machine: &MachineId, workload: &Workload) -> Option<u32> {
        let mut known = self.known.lock();
        let of_machine = known
            .entry(machine.clone())
            .or_insert_with(|| self.read(machine));
        let operations = of_machine.get(workload.job_name())?;
        // A workload that was declared with other operations since then is calibrated anew.
        let is_whole = operations.is_multiple_of(workload.operations.max(1));
        let rounds = u32::try_from(operations / workload.operations.max(1)).ok()?;
        (is_whole && (1..=ROUNDS_MAX).contains(&rounds)).then_some(rounds)
    }

    /// Keeps the rounds of a workload on a machine.
    pub(crate) fn keep(&self, machine: &MachineId, workload: &Workload, rounds: u32) {
        let mut known = self.known.lock();
        let of_machine = known
            .entry(machine.clone())
            .or_insert_with(|| self.read(machine));
        of_machine.insert(
            workload.job_name().to_owned(),
            workload.operations * u64::from(rounds),
        );
        let text: String = of_machine
            .iter()
            .map(|(name, operations)| format!("{name} {operations}\n"))
            .collect();
        let file = self.file(machine);
        let new = self.file(machine).with_extension("new");
        let write = || {
            fs::create_dir_all(&self.folder)?;
            replace_file(&file, &new, text)
        };
        // If it cannot be kept, the next process calibrates again and measures what is stored with
        // other operations.
        drop(write());
    }

    fn read(&self, machine: &MachineId) -> BTreeMap<String, u64> {
        let text = fs::read_to_string(self.file(machine)).unwrap_or_default();
        text.lines()
            .filter_map(|line: &str| {
                line.split_once(' ')
                    .and_then(|(name, n)| Some((name.to_owned(), n.parse().ok()?)))
            })
            .collect()
    }

    fn file(&self, machine: &MachineId) -> PathBuf {
        self.folder.join(machine.hex())
    }
}

/// Returns the means of groups of so many values.
pub(crate) fn fold(values: &[f64], rounds: u32) -> Vec<f64> {
    values
        .chunks_exact(rounds.max(1) as usize)
        .map(|group: &[f64]| group.iter().sum::<f64>() / group.len() as f64)
        .collect()
}

/// Returns the rounded means of groups of so many numbers.
pub(crate) fn fold_numbers(values: &[u64], rounds: u32) -> Vec<u64> {
    let rounds = u128::from(rounds.max(1));
    let mean = |group: &[u64]| {
        u64::try_from(
            (group.iter().map(|&number| u128::from(number)).sum::<u128>() + rounds / 2) / rounds,
        )
        .unwrap_or(u64::MAX)
    };
    values.chunks_exact(rounds as usize).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{MachineId, Workload};

    use super::{Calibration, Trial, fold, fold_numbers};

    fn getppid() -> Arc<Workload> {
        Arc::clone(
            model::workloads()
                .into_iter()
                .find(|workload| workload.name == "getppid")
                .unwrap(),
        )
    }

    #[test]
    fn short_iterations_get_many_rounds() {
        let rounds = |iteration_ns, job_s| {
            Trial {
                iteration_ns,
                job_s,
            }
            .rounds()
        };
        assert_eq!(rounds(2e6, 0.04), 25);
        assert_eq!(rounds(40e6, 0.8), 1);
        assert_eq!(rounds(3e9, 60.0), 1);
        assert_eq!(rounds(1.0, 0.001), 256);
        assert_eq!(rounds(2e6, 1.0), 5, "much work between the iterations");
        assert_eq!(rounds(0.0, 0.0), 256);
        assert_eq!(rounds(f64::NAN, 0.0), 256);
    }

    #[test]
    fn calibration_is_kept_for_machine_and_workload() {
        let folder = tempfile::tempdir().unwrap();
        let [machine, other] =
            ["a", "b"].map(|digit| MachineId::from_hex(&digit.repeat(64)).unwrap());
        let workload = getppid();
        let calibration = Calibration::new(folder.path().join("calibration"));
        assert_eq!(calibration.rounds(&machine, &workload), None);
        calibration.keep(&machine, &workload, 25);
        for calibration in [
            &calibration,
            &Calibration::new(folder.path().join("calibration")),
        ] {
            assert_eq!(calibration.rounds(&machine, &workload), Some(25));
            assert_eq!(calibration.rounds(&other, &workload), None);
        }
        let text = std::fs::read_to_string(folder.path().join("calibration").join("a".repeat(64)))
            .unwrap();
        assert_eq!(text, "getppid 500000\n");
        let changed = Workload {
            operations: 30_000,
            ..Workload::clone(&workload)
        };
        assert_eq!(
            calibration.rounds(&machine, &changed),
            None,
            "Marvin's workloads change"
        );
    }

    #[test]
    fn damaged_calibration_is_no_calibration() {
        let folder = tempfile::tempdir().unwrap();
        let machine = MachineId::from_hex(&"a".repeat(64)).unwrap();
        for text in [
            "getppid",
            "getppid x\n",
            "getppid 0\n",
            "getppid 20001\n",
            "getppid 20000000000\n",
            "\u{0}",
        ] {
            std::fs::write(folder.path().join(machine.hex()), text).unwrap();
            assert_eq!(
                Calibration::new(folder.path().to_owned()).rounds(&machine, &getppid()),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn groups_become_their_means() {
        assert_eq!(fold(&[1.0, 3.0, 5.0, 6.0], 2), [2.0, 5.5]);
        assert_eq!(fold(&[1.0, 3.0], 1), [1.0, 3.0]);
        assert_eq!(
            fold_numbers(&[1, 2, 5, 5, u64::MAX, u64::MAX], 2),
            [2, 5, u64::MAX]
        );
    }
}
