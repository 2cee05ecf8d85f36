//! Histories of noisy runs, changed metrics, and repeated measurements.

use compare::fixtures::{Ending, Subject, build, machine};
use document::Styles;
use model::{
    Clock, Declared, Direction, MMTESTS, Machine, ReleaseLine, Uncertainty, UnixTime, Verdict,
    imported_metric,
};

use super::index::{KernelPair, MachineIx};
use super::noise::COMPARED_MAX;
use super::tests::{take, taken};
use super::{
    History, Overview, Pair, Series, State, Trust, alerts, history_text, mixed_words, overview,
};

const KERNBENCH: &str = "kernbench/Elapsed-4";
const STREAM: &str = "stream/copy";
const DURATION: &str = "kernbench/duration-elapsed";

/// A machine of another suite.
pub(super) fn host() -> Machine {
    Machine {
        kind: "imported".parse().unwrap(),
        ..machine()
    }
}

/// A kernel of which MMTests measured a workload, a run for each list of values.
pub(super) fn imported(version: &str, workload: &str, runs: &[&[f64]]) -> Subject {
    let mut subject = Subject::new(build("imported:mmtests/x", version), &[], &[]);
    for (number, values) in (0..).zip(runs) {
        subject.add_run(number, &[(workload, Ending::Samples(values.to_vec()))]);
    }
    for run in &mut subject.runs {
        MMTESTS.clone_into(&mut run.suite);
        run.results[0].operations = 1;
        run.results[0].declared = Some(imported_metric(MMTESTS, workload));
    }
    subject.on(host())
}

fn only(history: &History) -> &Series {
    history.series().next().unwrap().1
}

fn seen(history: &History) -> Overview {
    let kernels = history.usual_pair().unwrap();
    overview(history, kernels, &[])
}

fn pair(history: &History) -> Pair {
    seen(history).groups[0].rows[0].cells[0].pair.clone()
}

#[test]
fn imported_metric_keeps_unit_direction_and_values() {
    // One value in each run: none of them is a warm-up, and more megabytes in a second are better.
    let history = taken(&[
        imported("6.1", STREAM, &[&[9000.0], &[9100.0], &[8900.0]]),
        imported("6.12", STREAM, &[&[12_000.0], &[12_100.0], &[11_900.0]]),
    ]);
    let series = only(&history);
    assert_eq!(
        (series.metric.direction, series.metric.margin_percent),
        (Direction::HigherIsBetter, 2.0)
    );
    assert_eq!(series.metric.unit(Clock::Seconds).name(), "MB/s");
    assert_eq!(pair(&history).compared.verdict, Verdict::Better);
    let text = history_text(&history, ReleaseLine::All, |_| true, &Styles::plain());
    assert!(
        text.contains("geometric means of runs; higher is better; margin 2%"),
        "{text}"
    );
}

#[test]
fn single_runs_are_rated_by_their_samples() {
    let old = [40.0, 40.2, 40.1, 40.3];
    for (factor, letter) in [(2.0, 'w'), (0.5, 'b'), (1.0005, '~')] {
        let new = old.map(|value| value * factor);
        let history = taken(&[
            imported("6.1", KERNBENCH, &[&old]),
            imported("6.12", KERNBENCH, &[&new]),
        ]);
        let found = pair(&history);
        assert_eq!(found.compared.verdict.letter(), letter);
        assert_eq!((found.state.tone(), letter), ("unclear", letter));
        let counts = seen(&history).counts;
        assert_eq!((counts.unclear, counts.worse, counts.better), (1, 0, 0));
        // A level needs to know how much boots differ.
        assert!(alerts(&history, ReleaseLine::All).is_empty());
        let text = history_text(&history, ReleaseLine::All, |_| true, &Styles::plain());
        assert!(
            text.contains("marvin report A B rates their samples"),
            "{text}"
        );
    }
}

#[test]
fn single_runs_are_rated_only_with_history() {
    let old = imported("6.11", KERNBENCH, &[&[100.0]]);
    let new = imported("6.12", KERNBENCH, &[&[150.0]]);
    let alone = taken(&[old, new]);
    assert_eq!(pair(&alone).state, State::Unrated);
    assert_eq!(
        pair(&alone).compared.verdict,
        Verdict::Unclear(Uncertainty::Noise { more_runs: None })
    );
    assert!(
        pair(&alone)
            .describe()
            .contains("1 against 1 run; unrated: bring two or more of each"),
        "{}",
        pair(&alone).describe()
    );
    assert_eq!(seen(&alone).counts.unrated, 1);
    let mut subjects: Vec<Subject> = (1..8)
        .map(|n| {
            let level = 100.0 + f64::from(n);
            imported(
                &format!("6.{n}"),
                KERNBENCH,
                &[&[level * 0.995], &[level], &[level * 1.005]],
            )
        })
        .collect();
    subjects.push(imported("6.11", KERNBENCH, &[&[100.0]]));
    subjects.push(imported("6.12", KERNBENCH, &[&[150.0]]));
    let known = taken(&subjects);
    assert_eq!(
        (pair(&known).state, seen(&known).counts.worse),
        (State::Worse, 1)
    );
    let scatters = known.scatters(&[&host().id], &[&subjects[0].build.id]);
    assert_eq!(
        scatters[KERNBENCH].degrees(),
        12,
        "two of each of six kernels"
    );
}

#[test]
fn noisy_runs_report_how_many_more_are_needed() {
    let history = taken(&[
        imported("6.1", KERNBENCH, &[&[100.0], &[102.5]]),
        imported("6.12", KERNBENCH, &[&[101.5], &[99.25]]),
    ]);
    let pair = pair(&history);
    assert_eq!(pair.state, State::Unclear);
    assert!(
        matches!(
            pair.compared.verdict,
            Verdict::Unclear(Uncertainty::Noise {
                more_runs: Some(1..)
            })
        ),
        "{:?}",
        pair.compared.verdict
    );
    assert!(
        pair.describe().contains("more of each needed"),
        "{}",
        pair.describe()
    );
}

#[test]
fn many_tests_that_scatter_are_one_question() {
    // Each of forty tests without a change differs by about twice its error: one in twenty of those
    // alone proves nothing.
    let names: Vec<String> = (0..40).map(|n| format!("kernbench{n}/Elapsed-4")).collect();
    let side = |version: &str, shift: f64| -> Vec<Subject> {
        names
            .iter()
            .map(|name| {
                imported(
                    version,
                    name,
                    &[&[100.0 + shift], &[102.0 + shift], &[104.0 + shift]],
                )
            })
            .collect()
    };
    let of = |old: Vec<Subject>, new: Vec<Subject>| {
        let all: Vec<Subject> = old.into_iter().chain(new).collect();
        seen(&taken(&all)).counts
    };
    let alone = of(
        side("6.1", 0.0).drain(..1).collect(),
        side("6.12", 7.0).drain(..1).collect(),
    );
    assert_eq!(alone.worse, 1);
    let mut new = side("6.12", 0.0);
    new[0] = side("6.12", 7.0).swap_remove(0);
    let among = of(side("6.1", 0.0), new);
    assert_eq!((among.worse, among.unclear), (0, 40), "{among:?}");
}

#[test]
fn metric_with_unknown_direction_is_not_judged() {
    let history = taken(&[
        imported("6.1", DURATION, &[&[40.0]]),
        imported("6.12", DURATION, &[&[50.0]]),
    ]);
    assert_eq!(history.series().count(), 0);
    assert_eq!(history.undirected().collect::<Vec<_>>(), [DURATION]);
    let mut later = imported("6.1", KERNBENCH, &[&[40.0]]);
    later.runs[0].results[0].declared = Some(Declared {
        unit: "".into(),
        direction: None,
        margin_percent: 2.0,
    });
    assert_eq!(
        taken(&[later]).series().count(),
        1,
        "a later Marvin knows more of what was imported before"
    );
}

/// Five kernels of a tool's throughput; the declarations are those of the first two and of the
/// rest.
fn tool(first: Declared, rest: Declared) -> History {
    let kernels = ["6.1.1", "6.1.2", "6.1.3", "6.1.4", "6.1.5"]
        .iter()
        .enumerate()
        .map(|(n, version)| {
            let value = if n < 2 { 5.0 } else { 5000.0 };
            let mut subject = Subject::new(
                build("deb:6.1", version),
                &[1, 2],
                &[("my-tool", Ending::Cost(value, 0.0))],
            );
            let declared = if n < 2 { &first } else { &rest };
            for run in &mut subject.runs {
                run.started_unix = run.started_unix.plus_seconds(n as u64 * 1000);
                run.results[0].declared = Some(declared.clone());
            }
            subject
        });
    taken(&kernels.collect::<Vec<_>>())
}

#[test]
fn metric_with_changed_unit_keeps_only_newest_series() {
    let direction = Some(Direction::HigherIsBetter);
    let old = Declared {
        unit: "GB/s".into(),
        direction,
        margin_percent: 5.0,
    };
    let new = Declared {
        unit: "MB/s".into(),
        direction,
        margin_percent: 5.0,
    };
    let history = tool(old, new);
    let series = only(&history);
    assert_eq!(
        (series.changes.len(), series.aside().count()),
        (0, 4),
        "a thousand times more is no change"
    );
    assert_eq!(
        series
            .points
            .iter()
            .filter(|point| point.value.is_some())
            .count(),
        3
    );
    assert!(alerts(&history, ReleaseLine::All).is_empty());
    insta::assert_snapshot!(
        "mixed",
        history_text(&history, ReleaseLine::All, |_| true, &Styles::plain())
    );
    insta::assert_snapshot!("mixed_alerts", mixed_words(&history).unwrap());
    let base = history.kernel_named("6.1.2").unwrap();
    let target = history.kernel_named("6.1.5").unwrap();
    let cell = overview(&history, KernelPair { base, target }, &[]).groups[0].rows[0].cells[0]
        .pair
        .clone();
    assert_eq!((cell.state, cell.compared.ratio), (State::Unclear, None));
    assert!(
        cell.describe()
            .contains("GB/s, higher is better on one side and MB/s"),
        "{}",
        cell.describe()
    );
}

#[test]
fn metric_with_changed_direction_keeps_only_newest_series() {
    let of = |direction, margin_percent| Declared {
        unit: "ops".into(),
        direction: Some(direction),
        margin_percent,
    };
    let lower = Direction::LowerIsBetter;
    let higher = Direction::HigherIsBetter;
    assert_eq!(
        only(&tool(of(lower, 1.0), of(higher, 1.0))).aside().count(),
        4
    );
    let same = tool(of(higher, 1.0), of(higher, 9.0));
    assert_eq!((only(&same).aside().count(), mixed_words(&same)), (0, None));
    let change = &only(&same).changes[0];
    assert_eq!(
        change.verdict,
        Verdict::Better,
        "more is better, as its manifest said"
    );
}

#[test]
fn exact_lab_counts_repeated_measurements() {
    let mut subject = Subject::new(
        build("deb:6.1", "6.1.9"),
        &[1, 2, 3],
        &[("getppid", Ending::Cost(100.0, 0.0))],
    );
    assert_eq!(taken(&[subject]).trust(&[MachineIx(0)]), Trust::default());
    subject = Subject::new(
        build("deb:6.1", "6.1.9"),
        &[1, 2, 3],
        &[("getppid", Ending::Cost(100.0, 0.0))],
    );
    for (seed, cost) in [(1, 100.0), (2, 100.2), (3, 150.0)] {
        subject.add_run(seed, &[("getppid", Ending::Cost(cost, 0.0))]);
    }
    let history = taken(&[subject]);
    let trust = history.trust(&[MachineIx(0)]);
    assert_eq!(
        trust,
        Trust {
            compared: 3,
            equal: 1,
            alarms: 1
        }
    );
    let ends = trust.interval().unwrap();
    assert!(ends.min > 0.06 && ends.max < 0.80, "{ends:?}");
}

#[test]
fn old_repeated_measurements_do_not_count() {
    let day = 86_400;
    let mut subject = Subject::new(
        build("deb:6.1", "6.1.9"),
        &[1, 1, 2],
        &[("getppid", Ending::Cost(100.0, 0.0))],
    );
    for (run, days) in subject.runs.iter_mut().zip([0, 0, 89]) {
        run.started_unix = UnixTime::new(1_700_000_000 + days * day);
    }
    assert_eq!(taken(&[subject]).trust(&[MachineIx(0)]).compared, 1);
    let mut subject = Subject::new(
        build("deb:6.1", "6.1.9"),
        &[1, 1, 2],
        &[("getppid", Ending::Cost(100.0, 0.0))],
    );
    for (run, days) in subject.runs.iter_mut().zip([0, 0, 90]) {
        run.started_unix = UnixTime::new(1_700_000_000 + days * day);
    }
    assert_eq!(taken(&[subject]).trust(&[MachineIx(0)]).compared, 0);
}

#[test]
fn long_series_compare_their_newest_kernels_only() {
    let of = |kernels: usize| -> Vec<Subject> {
        (0..kernels)
            .map(|n| {
                let release = format!("6.{n}");
                let runs: [&[f64]; 4] = [&[100.0], &[100.4], &[99.8], &[100.1]];
                imported(&release, KERNBENCH, &runs)
            })
            .collect()
    };
    let mut history = taken(&of(COMPARED_MAX + 3));
    let compared = |history: &History| history.trust(&[MachineIx(0)]).compared;
    assert_eq!(compared(&history), COMPARED_MAX);
    assert_eq!(compared(&history.clone()), COMPARED_MAX);
    // A new kernel takes the place of an old one, also where the comparisons are known.
    let wild: [&[f64]; 4] = [&[100.0], &[133.0], &[100.2], &[133.1]];
    take(&mut history, &[imported("6.99", KERNBENCH, &wild)]);
    let trust = history.trust(&[MachineIx(0)]);
    assert_eq!((trust.compared, trust.alarms), (COMPARED_MAX, 1));
}

#[test]
fn noisy_runs_split_in_two_count_false_alarms() {
    let calm: Vec<Subject> = (1..6)
        .map(|n| {
            imported(
                &format!("6.{n}"),
                KERNBENCH,
                &[&[100.0], &[100.4], &[99.8], &[100.1]],
            )
        })
        .collect();
    assert_eq!(
        taken(&calm).trust(&[MachineIx(0)]),
        Trust {
            compared: 5,
            equal: 0,
            alarms: 0
        }
    );
    let mut wild = calm;
    // Every second run of one kernel is a third slower: a machine with two states.
    wild.push(imported(
        "6.6",
        KERNBENCH,
        &[&[100.0], &[133.0], &[100.2], &[133.1]],
    ));
    assert_eq!(
        taken(&wild).trust(&[MachineIx(0)]),
        Trust {
            compared: 6,
            equal: 0,
            alarms: 1
        }
    );
    let alone = taken(&[imported("6.1", KERNBENCH, &[&[100.0], &[101.0]])]);
    assert_eq!(
        alone.trust(&[MachineIx(0)]).compared,
        0,
        "what cannot be rated is not counted"
    );
}
