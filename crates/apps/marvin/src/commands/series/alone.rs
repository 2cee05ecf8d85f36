//! `marvin series --hunks`: each hunk alone on the base, and what only several do together.

use compare::{Question, Side};
use history::hunks_alone::{HunkAlone, HunksAlone};
use kernel::{KernelError, Picked, SourceError};
use lab::Lab;
use model::{Build, Verdict};

use super::input::Input;
use super::left_out::Applied;
use super::{SEEDS, SeriesArguments};
use crate::commands::compare::side;
use crate::measure::plan_runs;
use crate::select::ChosenWorkloads;

/// Measures each hunk alone. `None` without `--hunks`, for a single hunk, and if all together change
/// nothing.
pub(super) fn measure_alone(
    applied: Applied<'_>,
    lab: &Lab,
    command: &SeriesArguments,
    chosen: &ChosenWorkloads,
    builds: &[Build],
) -> anyhow::Result<Option<HunksAlone>> {
    let Input::Hunks { base, hunks, .. } = applied.input else {
        return Ok(None);
    };
    let (Some(first), Some(last)) = (builds.first(), builds.last()) else {
        return Ok(None);
    };
    if hunks.len() < 2 || first.id == last.id {
        return Ok(None);
    }
    let mut images = vec![first.clone(), last.clone()];
    // The place of each hunk's image, or why it has none.
    let mut places: Vec<Result<usize, String>> = Vec::new();
    for (label, patch) in hunks {
        let patches = std::slice::from_ref(patch);
        let picked = applied
            .sources
            .apply_series(base, patches, applied.three_way)?;
        let Some(Picked::Commit(commit)) = picked.first() else {
            places.push(Err("does not apply alone".to_owned()));
            continue;
        };
        let step = |step| applied.progress.step(&format!("{label} alone"), &step);
        match applied.sources.build(commit, &step) {
            Ok(build) => {
                let known = images.iter().position(|known| known.id == build.id);
                places.push(Ok(known.unwrap_or(images.len())));
                if known.is_none() {
                    images.push(build);
                }
            }
            Err(KernelError::Source(SourceError::DoesNotBuild { .. })) => {
                places.push(Err("does not build alone".to_owned()));
            }
            Err(KernelError::Image { .. }) => places.push(Err("no kernel alone".to_owned())),
            Err(error) => return Err(error.into()),
        }
    }
    let added = Added::measure(lab, command, chosen, &images, applied)?;
    let moved = added.moved();
    let mut alone = Vec::new();
    for ((label, _), place) in hunks.iter().zip(places) {
        alone.push(HunkAlone {
            hunk: label.clone(),
            adds: place.as_ref().ok().map(|place| added.of(*place, &moved)),
            failure: place.err(),
        });
    }
    if moved.is_empty() {
        return Ok(None);
    }
    let workloads = moved.iter().map(|row| added.workloads[*row].clone());
    let all = added.of(1, &moved);
    Ok(Some(HunksAlone::new(workloads.collect(), alone, all)))
}

/// What images add to the first one.
struct Added {
    workloads: Vec<String>,
    /// By image, then by workload.
    adds: Vec<Vec<f64>>,
    /// Whether the second image, all hunks together, changes a workload.
    is_moved: Vec<bool>,
}

impl Added {
    fn measure(
        lab: &Lab,
        command: &SeriesArguments,
        chosen: &ChosenWorkloads,
        images: &[Build],
        applied: Applied<'_>,
    ) -> anyhow::Result<Self> {
        let seeds: Vec<u64> = (1..=command.seeds.count(SEEDS)).collect();
        let ChosenWorkloads {
            suite, workloads, ..
        } = chosen;
        let plan = plan_runs(&command.measure, images, suite, workloads, &seeds);
        let runs = lab.execute(&plan, &|event| applied.progress.event(&event))?;
        let machines = lab.machines(workloads)?;
        let sides: Vec<Side<'_>> = images
            .iter()
            .zip(&runs)
            .map(|(build, runs)| side(build, runs, &machines))
            .collect();
        let question = Question {
            margin_percent: command.margin,
            ..Question::about(suite.name, workloads.clone(), seeds)
        };
        let comparison = compare::compare(&sides[0], &sides[1..], &question)?;
        let mut added = Self {
            workloads: Vec::new(),
            adds: vec![Vec::new(); images.len()],
            is_moved: Vec::new(),
        };
        for row in &comparison.rows {
            added.workloads.push(row.workload.name.to_string());
            let before = row.base.value.unwrap_or(f64::NAN);
            added.adds[0].push(0.0);
            for (adds, cell) in added.adds[1..].iter_mut().zip(&row.cells) {
                adds.push(cell.measured.value.unwrap_or(f64::NAN) - before);
            }
            let verdict = &row.cells[0].compared.verdict;
            let is_moved = matches!(verdict, Verdict::Better | Verdict::Worse);
            added.is_moved.push(is_moved);
        }
        Ok(added)
    }

    /// Returns the rows that all hunks together change, the largest difference first.
    fn moved(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..self.workloads.len())
            .filter(|row| self.is_moved[*row])
            .collect();
        let all = &self.adds[1];
        rows.sort_by(|one, other| all[*other].abs().total_cmp(&all[*one].abs()));
        rows
    }

    /// Returns what an image adds in these rows.
    fn of(&self, image: usize, rows: &[usize]) -> Vec<f64> {
        rows.iter().map(|row| self.adds[image][*row]).collect()
    }
}
