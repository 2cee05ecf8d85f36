//! From runs to a comparison. The caller chooses the runs; `render` formats the result.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use model::{Unit, Workload, is_of_one_run};

use crate::checks::{check_machines, check_question, check_runs, other_qemus};
use crate::comparison::{Against, Comparison, ComparisonRow, Images, Warning};
use crate::comparison_builder::ComparisonBuilder;
use crate::environment::{Pairs, differing};
use crate::error::CompareError;
use crate::failures::Failures;
use crate::index::Index;
use crate::metrics::check_metrics;
use crate::neighbours::are_neighbours;
use crate::noisy;
use crate::question::{Question, Side};
use document::label::labels_as_typed;

/// Compares a base kernel with others.
///
/// # Errors
/// If machines differ and the question does not allow it, if a run is of another kernel or machine
/// than its side, or if there are no rows to compare.
pub fn compare(
    base: &Side<'_>,
    others: &[Side<'_>],
    question: &Question,
) -> Result<Comparison, CompareError> {
    let sides: Vec<&Side<'_>> = std::iter::once(base).chain(others).collect();
    let kernels: Vec<_> = sides.iter().map(|s| (s.build, s.machine)).collect();
    let labels = labels_as_typed(&kernels);
    let workloads = distinct(&question.workloads);
    check_question(question, &workloads, &labels)?;
    check_runs(&sides, &labels)?;
    check_metrics(&sides, &labels, &workloads)?;
    let mut warnings: Vec<Warning> = check_machines(&sides, &labels, question.machines)?
        .into_iter()
        .collect();

    let seeds = seeds(&sides, question);
    let indices: Vec<Index<'_>> = sides
        .iter()
        .map(|side| Index::new(side, &question.suite, &seeds))
        .collect();
    let mut answer = ComparisonBuilder {
        question,
        sides: &sides,
        labels: &labels,
        indices: &indices,
        seeds: &seeds,
        failures: Failures::default(),
    };
    let mut rows: Vec<ComparisonRow> = workloads.iter().map(|w| answer.row(w)).collect();
    join_valueless(&mut rows);
    if sides
        .iter()
        .any(|side| !side.machine.capabilities().deterministic)
    {
        let neighbours: Vec<bool> = indices[1..]
            .iter()
            .map(|new| are_neighbours(&indices[0].runs, &new.runs))
            .collect();
        // Boots of Marvin's own machines are repeated at will, and differ more than their iterations.
        let is_foreign = sides.iter().all(|side| side.machine.capabilities().foreign);
        noisy::rate(&mut rows, question, &neighbours, is_foreign);
    }
    let mut others: Vec<Against> = (1..sides.len()).map(|k| answer.against(k, &rows)).collect();
    noisy::means(&mut others, &rows);
    warnings.extend(other_qemus(&sides));
    warnings.extend(answer.built_differently());
    warnings.extend(answer.left_out(&rows));
    warnings.extend(answer.disturbed(&rows));
    warnings.extend(answer.superseded());
    warnings.extend(answer.find_unrepeated(&workloads));
    warnings.extend(answer.clock_disagrees(&rows));
    let environments: Vec<Pairs<'_>> = (0..sides.len())
        // A kernel with the base's image and no run has the base's environment, too.
        .map(|k| match answer.images(k) {
            Images::EqualWithoutRuns => environment(&indices[0]),
            Images::Different | Images::Equal => environment(&indices[k]),
        })
        .collect();
    let mut comparison = Comparison {
        suite: question.suite.clone(),
        command: question.command.clone(),
        created_unix: question.created_unix,
        base: answer.kernel(0),
        others,
        rows,
        environment: differing(&environments),
        failures: answer.failures.all,
        seeds,
        warnings,
        origins: Vec::new(),
        monitors: Vec::new(),
    };
    comparison.doubt(&[]);
    Ok(comparison)
}

/// Moves rows without a value into the table of their metric, if all rows there are of guest time.
fn join_valueless(rows: &mut [ComparisonRow]) {
    let counted = Unit::InstructionsPerOperation;
    let is_timed = rows
        .iter()
        .any(|row| row.unit == Unit::GuestTimePerOperation);
    let has_counted_value = rows.iter().any(|row| {
        let others = row.cells.iter().map(|cell| &cell.measured);
        row.unit == counted
            && std::iter::once(&row.base)
                .chain(others)
                .any(|measured| measured.value.is_some())
    });
    if is_timed && !has_counted_value {
        rows.iter_mut()
            .filter(|row| row.unit == counted)
            .for_each(|row| row.unit = Unit::GuestTimePerOperation);
    }
}

fn distinct(workloads: &[Arc<Workload>]) -> Vec<Arc<Workload>> {
    let mut seen = HashSet::new();
    workloads
        .iter()
        .filter(|w| seen.insert(&*w.name))
        .cloned()
        .collect()
}

/// Returns the requested seeds, or else all, ascending.
fn seeds(sides: &[&Side<'_>], question: &Question) -> Vec<u64> {
    if !question.seeds.is_empty() {
        let mut seen = HashSet::new();
        return question
            .seeds
            .iter()
            .copied()
            .filter(|seed| seen.insert(*seed))
            .collect();
    }
    let found: BTreeSet<u64> = sides
        .iter()
        .flat_map(|side| &side.runs)
        .filter(|run| run.suite == question.suite)
        .map(|run| run.seed)
        .collect();
    found.into_iter().collect()
}

fn environment<'a>(index: &Index<'a>) -> Pairs<'a> {
    let pairs = index.runs.iter().flat_map(|run| &run.environment);
    // What disturbed a run is a note of its own.
    let lasting = pairs.filter(|(name, _)| !is_of_one_run(name));
    lasting
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{FailureReason, Origin, SourceOrigin, Stage, Uncertainty, Verdict, disturbed_pair};

    use super::compare;
    use crate::comparison::{Absent, Comparison, Conclusion, Counts, Images, Warning};
    use crate::fixtures::{
        Ending, Subject, THROUGHPUT, build, dead, new, old, other_machine, question, seeds,
    };
    use crate::question::Machines;
    use crate::render::words;
    use document::{Styles, View};

    fn two() -> Comparison {
        let seeds = seeds(5);
        let old = old(&seeds);
        let new = new(&seeds);
        compare(&old.side(), &[new.side()], &question(&seeds)).unwrap()
    }

    /// Compares two kernels that ran one workload each.
    fn one_row(base: Ending, other: Ending, seeds: &[u64]) -> Comparison {
        let old = Subject::new(build("deb:6.1", "6.1.192"), seeds, &[("getppid", base)]);
        let new = Subject::new(build("deb:6.12", "6.12.117"), seeds, &[("getppid", other)]);
        let mut question = question(seeds);
        question.workloads.truncate(1);
        compare(&old.side(), &[new.side()], &question).unwrap()
    }

    fn reason(comparison: &Comparison) -> String {
        match &comparison.rows[0].cells[0].compared.verdict {
            Verdict::Unclear(why) => why.to_string(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_verdict_is_counted() {
        let comparison = two();
        assert_eq!(
            comparison.others[0].counts,
            Counts {
                better: 2,
                worse: 2,
                same: 3,
                unclear: 5
            }
        );
        assert_eq!(comparison.conclusion(), Conclusion::Failed);
        assert_eq!(comparison.others[0].geometric_mean.unwrap().rows, 9);
    }

    #[test]
    fn run_value_is_median_without_first_iteration() {
        let samples = vec![9000.0, 101.0, 100.0, 102.0];
        let comparison = one_row(Ending::Samples(samples), Ending::Cost(50.5, 0.0), &[1]);
        let cell = &comparison.rows[0].cells[0];
        assert_eq!(comparison.rows[0].base.value, Some(101.0));
        assert_eq!(cell.compared.difference_percent, Some(50.0));
        assert_eq!(cell.compared.ratio, Some(2.0));
        assert_eq!(cell.compared.verdict, Verdict::Better);
    }

    #[test]
    fn difference_is_median_of_seed_differences() {
        let comparison = one_row(
            Ending::Cost(100.0, 0.0),
            Ending::Cost(110.0, 10.0),
            &[1, 2, 3],
        );
        let cell = &comparison.rows[0].cells[0];
        let percents: Vec<f64> = cell
            .compared
            .differences
            .iter()
            .map(|d| d.percent)
            .collect();
        assert_eq!(percents, [-10.0, -20.0, -30.0]);
        assert_eq!(cell.compared.difference_percent, Some(-20.0));
        let spread = cell.compared.spread_percent.unwrap();
        assert_eq!((spread.min, spread.max), (-30.0, -10.0));
        assert_eq!(cell.compared.verdict, Verdict::Worse);
    }

    #[test]
    fn higher_is_better_where_the_metric_says_so() {
        let old = Subject::new(
            build("deb:6.1", "6.1"),
            &[1],
            &[("copy-rate", Ending::Cost(100.0, 0.0))],
        );
        let new = Subject::new(
            build("deb:6.12", "6.12"),
            &[1],
            &[("copy-rate", Ending::Cost(130.0, 0.0))],
        );
        let mut question = question(&[1]);
        question.workloads = vec![Arc::clone(&THROUGHPUT)];
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        let cell = &comparison.rows[0].cells[0];
        assert_eq!(
            (cell.compared.difference_percent, cell.compared.ratio),
            (Some(30.0), Some(1.3))
        );
        assert_eq!(cell.compared.verdict, Verdict::Better);
        assert_eq!(comparison.conclusion(), Conclusion::Fine);
    }

    #[test]
    fn requested_margin_overrides_metric_margin() {
        let seeds = seeds(1);
        let old = old(&seeds);
        let new = new(&seeds);
        let mut question = question(&seeds);
        question.workloads.truncate(4);
        question.margin_percent = Some(50.0);
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_eq!(comparison.others[0].counts.same, 4);
        assert_eq!(comparison.conclusion(), Conclusion::Fine);
    }

    #[test]
    fn one_failed_seed_leaves_row_unclear_with_values() {
        let seeds = seeds(3);
        let old = Subject::new(
            build("deb:6.1", "6.1"),
            &seeds,
            &[("getppid", Ending::Cost(100.0, 0.0))],
        );
        let mut new = Subject::new(
            build("deb:6.12", "6.12"),
            &seeds[..2],
            &[("getppid", Ending::Cost(90.0, 0.0))],
        );
        new.add_run(
            3,
            &[(
                "getppid",
                Ending::Failed(Stage::Workload, FailureReason::Hung, ""),
            )],
        );
        let mut question = question(&seeds);
        question.workloads.truncate(1);
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_eq!(
            reason(&comparison),
            "no value: 6.12: hung (workload stage) for seed 3"
        );
        assert_eq!(
            comparison.rows[0].cells[0].compared.difference_percent,
            Some(10.0)
        );
        assert_eq!(comparison.conclusion(), Conclusion::Failed);
    }

    #[test]
    fn missing_ledger_says_why() {
        let cost = Ending::Cost(100.0, 0.0);
        for (base, other, expected) in [
            (
                cost.clone(),
                Ending::Nothing,
                "6.12.117: the run has no result",
            ),
            (
                Ending::Samples(vec![1.0]),
                cost.clone(),
                "6.1.192: 1 iteration, none left without the first",
            ),
            (
                cost.clone(),
                Ending::Samples(vec![1.0, f64::NAN]),
                "6.12.117: an iteration's value is not a number",
            ),
            (
                cost,
                Ending::Samples(vec![1.0, -1.0]),
                "6.12.117: an iteration's value is not a number",
            ),
        ] {
            let comparison = one_row(base, other, &[1, 2]);
            assert_eq!(reason(&comparison), format!("no value: {expected}"));
            assert_eq!(comparison.conclusion(), Conclusion::Unclear);
        }
    }

    #[test]
    fn seeds_without_runs_are_missing_not_passed_over() {
        let old = old(&[1, 2]);
        let new = new(&[1]);
        let comparison = compare(&old.side(), &[new.side()], &question(&[1, 2, 2])).unwrap();
        assert_eq!(comparison.seeds, [1, 2]);
        assert_eq!(reason(&comparison), "no value: 6.12.117: no run for seed 2");
        assert_eq!(
            comparison.rows[0].cells[0].measured.seeds[1].value,
            Err(Absent::NoRun)
        );
    }

    #[test]
    fn no_seeds_stand_for_all_that_there_are() {
        let old = old(&[4, 2]);
        let new = new(&[2, 4]);
        let comparison = compare(&old.side(), &[new.side()], &question(&[])).unwrap();
        assert_eq!(comparison.seeds, [2, 4]);
        let none = Subject::new(build("deb:6.12", "6.12"), &[], &[]);
        let nothing = Subject::new(build("deb:6.1", "6.1"), &[], &[]);
        let comparison = compare(&nothing.side(), &[none.side()], &question(&[])).unwrap();
        assert_eq!(reason(&comparison), "no value: no run");
    }

    #[test]
    fn other_operations_are_another_experiment() {
        let old = Subject::new(
            build("deb:6.1", "6.1"),
            &[1],
            &[("getppid", Ending::Cost(100.0, 0.0))],
        );
        let mut new = Subject::new(
            build("deb:6.12", "6.12"),
            &[1],
            &[("getppid", Ending::Cost(90.0, 0.0))],
        );
        new.runs[0].results[0].operations = 10;
        let mut question = question(&[1]);
        question.workloads.truncate(1);
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_eq!(
            reason(&comparison),
            "no value: asked for 1000 operations on one side and 10 on the other"
        );
    }

    #[test]
    fn newest_run_of_a_repeated_seed_counts() {
        let cost = Ending::Cost;
        let old = Subject::new(
            build("deb:6.1", "6.1"),
            &[1],
            &[("getppid", cost(100.0, 0.0)), ("mmap", cost(100.0, 0.0))],
        );
        let mut new = Subject::new(
            build("deb:6.12", "6.12"),
            &[1],
            &[("getppid", cost(100.0, 0.0))],
        );
        new.add_run(
            1,
            &[("mmap", cost(200.0, 0.0)), ("getppid", cost(100.5, 0.0))],
        );
        let mut question = question(&[1]);
        question
            .workloads
            .retain(|w| ["getppid", "mmap"].contains(&&*w.name));
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_eq!(
            comparison.rows[0].cells[0].compared.difference_percent,
            Some(-0.5)
        );
        assert_eq!(
            comparison.rows[1].cells[0].compared.difference_percent,
            Some(-100.0)
        );
        assert_eq!(
            comparison.warnings,
            [Warning::NotRepeated {
                kernel: "6.12".to_owned(),
                workload: "getppid".to_owned(),
                seed: 1
            }]
        );
        // Whatever the order in which they are given.
        new.runs.reverse();
        let again = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_eq!(
            again.rows[0].cells[0].compared.difference_percent,
            Some(-0.5)
        );
    }

    #[test]
    fn imported_runs_left_out_are_counted() {
        let cost = |cost| [("getppid", Ending::Samples(vec![cost; 3]))];
        let old = imported(Subject::new(build("deb:6.1", "6.1"), &[0], &cost(100.0)));
        let mut new = Subject::new(build("deb:6.12", "6.12"), &[0, 0, 0], &cost(100.0));
        new.add_run(0, &cost(50.0));
        let mut question = question(&[]);
        question.suite = "mmtests".to_owned();
        question.workloads.retain(|w| &*w.name == "getppid");
        let comparison = compare(&old.side(), &[imported(new).side()], &question).unwrap();
        let shown = comparison.rows[0].cells[0].measured.value.unwrap();
        assert!((shown - 50.0).abs() < 1e-9, "the newest: {shown}");
        assert_eq!(
            comparison.warnings,
            [Warning::Superseded {
                kernel: "6.12".to_owned(),
                runs: 3
            }]
        );
    }

    /// Makes runs those of another suite.
    fn imported(mut subject: Subject) -> Subject {
        let mut machine = subject.machine.clone();
        machine.kind = "imported".parse().unwrap();
        for run in &mut subject.runs {
            run.suite = "mmtests".to_owned();
        }
        subject.on(machine)
    }

    #[test]
    fn runs_of_other_suites_are_no_answer() {
        let old = old(&[1]);
        let mut new = new(&[1]);
        new.runs[0].suite = "macro".to_owned();
        let comparison = compare(&old.side(), &[new.side()], &question(&[1])).unwrap();
        assert_eq!(reason(&comparison), "no value: 6.12.117: no run");
    }

    #[test]
    fn equal_images_need_no_run() {
        let seeds = seeds(2);
        let old = old(&seeds);
        let again = Subject::new(old.build.clone(), &[], &[]);
        let comparison = compare(&old.side(), &[again.side()], &question(&seeds)).unwrap();
        assert_eq!(comparison.others[0].images, Images::EqualWithoutRuns);
        assert_eq!(comparison.conclusion(), Conclusion::Fine);
        let comparison = compare(&old.side(), &[old.side()], &question(&seeds)).unwrap();
        assert_eq!(comparison.others[0].images, Images::Equal);
        assert_eq!(comparison.others[0].counts.same, 11);
        assert_eq!(comparison.others[0].counts.unclear, 1);
    }

    #[test]
    fn different_compilers_are_named_beside_the_headline() {
        let built_by = |compiler: &str| Origin::Built {
            source: SourceOrigin::Described("/linux as it stands".to_owned()),
            configuration: "micro".to_owned(),
            compiler: compiler.to_owned(),
            committed_unix: None,
        };
        let mut old = old(&[1]);
        let mut new = new(&[1]);
        old.build.origin = built_by("gcc 12, ld 2.40");
        new.build.origin = built_by("gcc 12, ld 2.40, make KCFLAGS=-O3");
        let comparison = compare(&old.side(), &[new.side()], &question(&[1])).unwrap();
        let notes: Vec<String> = comparison.warnings.iter().map(words::warning).collect();
        assert_eq!(
            notes[0],
            "6.12.117 was built by gcc 12, ld 2.40, make KCFLAGS=-O3, the baseline by gcc 12, ld 2.40. A difference below \
             may come from the compiler and not from the source."
        );
        let mut equal = new.build.clone();
        equal.id = old.build.id.clone();
        let equal = Subject::new(equal, &[], &[]);
        let comparison = compare(&old.side(), &[equal.side()], &question(&[1])).unwrap();
        assert!(comparison.warnings.is_empty(), "the same image");
    }

    #[test]
    fn equal_images_on_different_machines_do_need_runs() {
        let old = old(&[1]);
        let again = Subject::new(old.build.clone(), &[], &[]).on(other_machine());
        let mut question = question(&[1]);
        question.machines = Machines::Mixed;
        let comparison = compare(&old.side(), &[again.side()], &question).unwrap();
        assert_eq!(comparison.others[0].counts.unclear, 12);
        assert!(matches!(comparison.warnings[0], Warning::MixedMachines(ref d) if d.len() == 2));
    }

    #[test]
    fn kernel_that_does_not_boot_fails_once() {
        let seeds = seeds(2);
        let old = old(&seeds);
        let dead = dead(&seeds);
        let comparison = compare(&old.side(), &[dead.side()], &question(&seeds)).unwrap();
        assert_eq!(comparison.failures.len(), 1);
        assert_eq!(comparison.failures[0].occurrences.len(), 24);
        assert_eq!(comparison.conclusion(), Conclusion::Failed);
        assert_eq!(comparison.environment.silent, [1]);
    }

    #[test]
    fn disturbed_workloads_are_noted_with_their_kernel() {
        let old = old(&[1, 2]);
        let mut new = new(&[1, 2]);
        let text = "others took 23% of the host's processors".to_owned();
        for (run, names) in [(0, &["getppid", "mmap"][..]), (1, &["getppid", "no-row"])] {
            new.runs[run]
                .environment
                .extend(names.iter().map(|name| disturbed_pair(name, text.clone())));
        }
        let comparison = compare(&old.side(), &[new.side()], &question(&[1, 2])).unwrap();
        let workloads = ["getppid", "mmap"].map(str::to_owned).to_vec();
        let kernel = comparison.others[0].kernel.title.clone();
        assert_eq!(
            comparison.warnings,
            [Warning::Disturbed {
                kernel,
                workloads,
                boots: 2
            }]
        );
        assert!(
            comparison
                .environment
                .differences
                .iter()
                .all(|d| !d.name.starts_with("disturbed"))
        );
        let text = crate::render::comparison(&comparison, &View::default()).text(&Styles::plain());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let note = "Other work on the host disturbed getppid, mmap on 6.12.117 in 2 boots, however often Marvin measured; \
                    `marvin show RUN` says how much.";
        assert!(text.contains(note), "{text}");
    }

    #[test]
    fn baseline_failure_is_unclear_and_unbootable_baseline_fails() {
        let fails = |stage| Ending::Failed(stage, FailureReason::Hung, "");
        let comparison = one_row(fails(Stage::Workload), Ending::Cost(1.0, 0.0), &[1]);
        assert_eq!(comparison.conclusion(), Conclusion::Unclear);
        let comparison = one_row(fails(Stage::Boot), Ending::Cost(1.0, 0.0), &[1]);
        assert_eq!(comparison.conclusion(), Conclusion::Failed);
    }

    #[test]
    fn seeds_that_disagree_are_unclear() {
        let comparison = one_row(
            Ending::Cost(100.0, 0.0),
            Ending::Cost(98.0, 2.0),
            &[1, 2, 3],
        );
        assert_eq!(
            comparison.rows[0].cells[0].compared.verdict,
            Verdict::Unclear(Uncertainty::SeedsDisagree {
                better: 1,
                worse: 1,
                same: 1
            })
        );
        assert_eq!(comparison.conclusion(), Conclusion::Unclear);
    }

    #[test]
    fn means_of_several_kernels_have_the_same_rows() {
        let seeds = [1];
        let few: [(&str, Ending); 2] = [
            ("getppid", Ending::Cost(163.15, 0.0)),
            ("mmap", Ending::Cost(3402.125, 0.0)),
        ];
        let old = old(&seeds);
        let new = new(&seeds);
        let dead = dead(&seeds);
        let few = Subject::new(build("deb:6.18", "6.18.1"), &seeds, &few);
        let sides = [new.side(), few.side(), dead.side()];
        let comparison = compare(&old.side(), &sides, &question(&seeds)).unwrap();
        let means: Vec<_> = comparison
            .others
            .iter()
            .map(|other| other.geometric_mean)
            .collect();
        let new = means[0].unwrap();
        let few = means[1].unwrap();
        assert_eq!(
            (new.rows, few.rows, means[2]),
            (2, 2, None),
            "the kernel that never boots takes no row away"
        );
        let ratio_of = |name: &str, place: usize| {
            let mut rows = comparison.rows.iter();
            let row = rows.find(|row| &*row.workload.name == name).unwrap();
            row.cells[place].compared.ratio.unwrap()
        };
        let mean = |place| (ratio_of("getppid", place) * ratio_of("mmap", place)).sqrt();
        assert!((new.ratio - mean(0)).abs() < 1e-12 && (few.ratio - mean(1)).abs() < 1e-12);
        let text = crate::render::comparison(&comparison, &View::default()).text(&Styles::plain());
        assert!(
            text.contains("over 2 of 12 rows, those that all kernels"),
            "{text}"
        );
    }
}
