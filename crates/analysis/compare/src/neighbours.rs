//! Whether the boots of two kernels were neighbours: each replicate of one was measured right
//! before or after the same replicate of the other. `lab` orders boots so (`plan.rs`).
//!
//! Only when and as which replicate a run was measured counts, not what it showed: so the analysis
//! is chosen before the data are seen.

use model::Run;

/// Returns whether all runs of two sides come in pairs of the same replicate, one of each side.
/// Starts that are not known, as of imported runs, show no pairs.
pub(crate) fn are_neighbours(base: &[&Run], new: &[&Run]) -> bool {
    let mut runs = Vec::with_capacity(base.len() + new.len());
    for (side, runs_of_side) in [base, new].into_iter().enumerate() {
        for run in runs_of_side {
            let Some(start) = Run::known_start(run.started_unix) else {
                return false;
            };
            runs.push((start, run.seed, side));
        }
    }
    runs.sort_unstable();
    let are_pairs = runs.chunks(2).all(|pair| match pair {
        [one, other] => one.1 == other.1 && one.2 != other.2,
        _ => false,
    });
    let are_apart = runs.windows(3).step_by(2).all(|next| next[1].0 < next[2].0);
    let mut seeds: Vec<u64> = base.iter().map(|run| run.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    are_pairs && are_apart && seeds.len() == base.len()
}

#[cfg(test)]
mod tests {
    use model::{Run, UnixTime};

    use super::are_neighbours;
    use crate::fixtures::{Subject, build};

    /// Returns runs of these starts, numbered from 1.
    fn runs(starts: &[i64]) -> Vec<Run> {
        let mut subject = Subject::new(build("deb:6.1", "6.1.192"), &[1, 2, 3, 4], &[]);
        for (run, start) in subject.runs.iter_mut().zip(starts) {
            run.started_unix = UnixTime::new(*start);
        }
        subject.runs.truncate(starts.len());
        subject.runs
    }

    fn neighbours(base: &[i64], new: &[i64]) -> bool {
        let base = runs(base);
        let new = runs(new);
        are_neighbours(
            &base.iter().collect::<Vec<_>>(),
            &new.iter().collect::<Vec<_>>(),
        )
    }

    #[test]
    fn only_boots_in_turns_are_neighbours() {
        assert!(neighbours(&[10, 40, 50, 80], &[20, 30, 60, 70]));
        assert!(!neighbours(&[10, 20, 30, 40], &[50, 60, 70, 80]), "apart");
        assert!(!neighbours(&[10, 40, 50], &[20, 30, 60, 70]), "one lacks");
        assert!(!neighbours(&[10; 4], &[10; 4]), "all at once");
        assert!(!neighbours(&[0; 4], &[0; 4]), "no starts");
    }
}
