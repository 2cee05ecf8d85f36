//! Histories of synthetic kernels.

use compare::compare;
use compare::fixtures::{Ending, Subject, build, other_machine, question};
use document::Styles;
use model::{Decision, Direction, FailureReason, ReleaseLine, Stage, Triage, UnixTime, Verdict};
use proptest::prelude::{prop, prop_assert_eq, proptest};

use super::index::{KernelPair, MachineIx};
use super::{
    Basis, Card, History, Overview, Series, State, Triaged, alert_mail, alerts, alerts_text,
    history_document, history_json, history_text, overview, range, sparkline, triage_alerts,
};

/// Versions of a Debian track, unordered.
const VERSIONS: [&str; 6] = [
    "6.12.101", "6.1.9", "6.1.190", "6.1.100", "6.12.117", "6.12.9",
];

pub(super) fn taken(subjects: &[Subject]) -> History {
    let mut history = History::default();
    take(&mut history, subjects);
    history
}

/// Adds kernels to a history.
pub(super) fn take(history: &mut History, subjects: &[Subject]) {
    for subject in subjects {
        history.add_build(&subject.build);
        history.know_machine(&subject.machine);
        for run in &subject.runs {
            history.add_run(run).unwrap();
        }
    }
    history.recompute();
}

pub(super) fn kernel(version: &str, endings: &[(&'static str, Ending)]) -> Subject {
    Subject::new(build("deb:6.12", version), &[1, 2, 3], endings)
}

/// A lab: faults regress at 6.12.9, forks are slow in 6.1.190 only, pipes depend on the layout,
/// switches fail at last.
pub(super) fn lab() -> Vec<Subject> {
    let of = |version: &str| {
        let is_new = version.starts_with("6.12");
        let fork = if version == "6.1.190" { 1300.0 } else { 1000.0 };
        let pipe = Ending::Samples(if is_new {
            vec![9.0, 7.0, 7.0]
        } else {
            vec![9.0, 8.0, 8.0]
        });
        let yielding = match version {
            "6.12.117" => Ending::Failed(Stage::Workload, FailureReason::Hung, ""),
            _ => Ending::Cost(50.0, 0.0),
        };
        kernel(
            version,
            &[
                (
                    "fault-anon",
                    Ending::Cost(if is_new { 345.5 } else { 331.25 }, 0.1),
                ),
                ("fork-exec", Ending::Cost(fork, 1.0)),
                ("pipe-pingpong", pipe),
                ("switch-yield", yielding),
            ],
        )
    };
    VERSIONS.map(of).into()
}

pub(super) fn only<'a>(history: &'a History, workload: &str) -> &'a Series {
    history
        .series()
        .find(|(key, _)| &*key.workload == workload)
        .unwrap()
        .1
}

fn titles(history: &History) -> Vec<&str> {
    history
        .order()
        .iter()
        .map(|n| history.kernel(*n).title.as_str())
        .collect()
}

fn seen(
    history: &History,
    base: &str,
    target: &str,
    decisions: &[Decision],
) -> (Overview, Vec<Triaged>) {
    let all = triage_alerts(history, alerts(history, ReleaseLine::All), decisions, &[]);
    let [base, target] = [base, target].map(|version| history.kernel_named(version).unwrap());
    (overview(history, KernelPair { base, target }, &all), all)
}

#[test]
fn kernels_are_ordered_by_release_not_by_date() {
    let history = taken(&lab());
    assert_eq!(
        titles(&history),
        [
            "6.1.9", "6.1.100", "6.1.190", "6.12.9", "6.12.101", "6.12.117"
        ]
    );
    let stable = history.kernels_of_track("cloud-amd64", ReleaseLine::Stable(6, 1));
    assert_eq!(stable.len(), 3);
}

#[test]
fn level_ends_where_all_seeds_agree() {
    let history = taken(&lab());
    let faults = only(&history, "fault-anon");
    assert_eq!(faults.changes.len(), 1);
    let change = &faults.changes[0];
    assert_eq!((change.earliest, change.at, change.went_away), (3, 3, None));
    assert_eq!(
        (&change.verdict, change.basis),
        (&Verdict::Worse, Basis::EverySeed { seeds: 3 })
    );
}

#[test]
fn change_undone_at_next_kernel_is_closed() {
    let history = taken(&lab());
    let forks = only(&history, "fork-exec");
    let found: Vec<_> = forks
        .changes
        .iter()
        .map(|change| (change.at, change.went_away))
        .collect();
    assert_eq!(found, [(2, Some(3)), (3, None)]);
}

#[test]
fn creeping_change_is_found_where_it_passes_margin() {
    let costs = [100.0, 100.6, 101.1, 101.4, 101.5, 101.6];
    let ordered = ["6.1.1", "6.1.2", "6.1.3", "6.1.4", "6.1.5", "6.1.6"];
    let kernels = ordered
        .iter()
        .zip(costs)
        .map(|(v, cost)| kernel(v, &[("getppid", Ending::Cost(cost, 0.0))]));
    let history = taken(&kernels.collect::<Vec<_>>());
    let series = only(&history, "getppid");
    assert_eq!(
        series
            .changes
            .iter()
            .map(|c| (c.earliest, c.at))
            .collect::<Vec<_>>(),
        [(2, 2)]
    );
}

#[test]
fn kernel_with_disagreeing_seeds_widens_change_range() {
    let kernels = [
        ("6.1.1", 100.0, 0.0),
        ("6.1.2", 100.5, 1.0),
        ("6.1.3", 120.0, 0.0),
    ];
    let kernels = kernels
        .map(|(version, cost, step)| kernel(version, &[("getppid", Ending::Cost(cost, step))]));
    let history = taken(&kernels);
    let change = &only(&history, "getppid").changes[0];
    assert_eq!((change.earliest, change.at), (1, 2));
}

#[test]
fn noisy_series_levels_are_found_by_ranks() {
    // Seeds lie 4 % apart, the level rises by 3 %: single seeds cannot distinguish the kernels.
    let chaos = |n: usize, seed: usize| ((n * 7 + seed * 13) % 11) as f64 / 11.0 * 4.0;
    let mut history = History::default();
    for n in 0..60 {
        let level = if n < 30 { 100.0 } else { 103.0 };
        let mut subject = Subject::new(build("deb:6.1", &format!("6.1.{n}")), &[], &[]);
        for seed in 1..=3_usize {
            subject.add_run(
                seed as u64,
                &[("getppid", Ending::Cost(level + chaos(n, seed), 0.0))],
            );
        }
        history.add_build(&subject.build);
        history.know_machine(&subject.machine);
        subject
            .runs
            .iter()
            .for_each(|run| history.add_run(run).unwrap());
    }
    history.recompute();
    let found: Vec<_> = only(&history, "getppid")
        .changes
        .iter()
        .map(|c| (c.at, c.verdict.clone()))
        .collect();
    assert!(
        found
            .iter()
            .any(|(at, verdict)| (28..=33).contains(at) && *verdict == Verdict::Worse),
        "{found:?}"
    );
}

#[test]
fn the_newest_run_counts_and_repeats_are_counted() {
    let mut subject = kernel("6.1.9", &[("getppid", Ending::Cost(100.0, 0.0))]);
    subject.add_run(1, &[("getppid", Ending::Cost(100.0, 0.0))]);
    subject.add_run(2, &[("getppid", Ending::Cost(90.0, 0.0))]);
    subject.runs.rotate_left(4);
    let history = taken(&[subject]);
    let point = &only(&history, "getppid").points[0];
    let values: Vec<f64> = point
        .seeds
        .iter()
        .map(|seen| seen.value.as_ref().unwrap().value)
        .collect();
    assert_eq!(values, [100.0, 90.0, 100.0]);
    assert_eq!(
        (history.repeats()[0].again, history.repeats()[0].agree),
        (2, 1)
    );
}

#[test]
fn adding_runs_later_equals_adding_all_at_once() {
    let subjects = lab();
    let whole = taken(&subjects);
    let mut grown = History::default();
    for subject in &subjects {
        grown.add_build(&subject.build);
        grown.know_machine(&subject.machine);
        for run in &subject.runs {
            grown.add_run(run).unwrap();
            grown.recompute();
        }
    }
    assert_eq!(titles(&grown), titles(&whole));
    let series = |history: &History| {
        history
            .series()
            .map(|(k, s)| (k.clone(), s.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(series(&grown), series(&whole));
    assert_eq!(
        alerts(&grown, ReleaseLine::All),
        alerts(&whole, ReleaseLine::All)
    );
}

#[test]
fn run_of_unknown_build_or_machine_is_refused() {
    let subject = kernel("6.1.9", &[]);
    let error = History::default().add_run(&subject.runs[0]).unwrap_err();
    assert!(error.to_string().contains("was not told of"));
}

#[test]
fn a_machine_with_several_equipments_is_one_column() {
    let mut plain = lab();
    let mut equipped = Vec::new();
    for subject in lab() {
        let mut machine = subject.machine.clone();
        machine
            .fingerprint
            .push(("equipment.modules".to_owned(), "zram".to_owned()));
        machine.id = other_machine().id;
        let mut subject = subject.on(machine);
        subject
            .runs
            .iter_mut()
            .for_each(|run| run.results.retain(|result| result.workload == "fork-exec"));
        equipped.push(subject);
    }
    for subject in &mut plain {
        subject
            .runs
            .iter_mut()
            .for_each(|run| run.results.retain(|result| result.workload != "fork-exec"));
    }
    plain.extend(equipped);
    let history = taken(&plain);
    let (seen, _) = self::seen(&history, "6.1.190", "6.12.117", &[]);
    assert_eq!((seen.columns.len(), seen.counts.missing), (1, 0));
    let [column] = &seen.columns[..] else {
        panic!("one column")
    };
    assert_eq!((column.machines.len(), column.main), (2, MachineIx(0)));
    let rows: Vec<_> = seen.groups.iter().flat_map(|group| &group.rows).collect();
    let machine = |name: &str| {
        rows.iter()
            .find(|row| &*row.workload == name)
            .unwrap()
            .cells[0]
            .machine
    };
    assert_eq!(
        (machine("fault-anon"), machine("fork-exec")),
        (MachineIx(0), MachineIx(1))
    );
}

#[test]
fn change_within_margin_looks_level() {
    let up = Direction::HigherIsBetter;
    let bars = |values: &[f64]| {
        sparkline(
            &values.iter().map(|value| Some(*value)).collect::<Vec<_>>(),
            1.0,
            up,
        )
    };
    assert_eq!(bars(&[100.0, 100.001, 100.0]), "▅▅▅");
    assert_eq!(bars(&[100.0, 100.0]), "▅▅");
    assert_eq!(bars(&[100.0, 102.5]), "▁█");
    assert_eq!(
        bars(&[100.0, 100.5]),
        "▃▆",
        "half a margin is a quarter of the height"
    );
    assert_eq!(sparkline(&[None, Some(f64::NAN)], 1.0, up), "··");
    let costs = [Some(100.0), Some(102.5)];
    assert_eq!(
        sparkline(&costs, 1.0, Direction::LowerIsBetter),
        "█▁",
        "what costs less is higher"
    );
    assert_eq!(range([f64::MAX, -f64::MAX].into_iter(), 1.0), None);
}

pub(super) fn decided(after: &str, at: &str, triage: Triage) -> Decision {
    Decision {
        track: "cloud-amd64".into(),
        after: after.into(),
        at: at.into(),
        triage,
        note: "measured the zeroing that was missing".into(),
        worse: 1,
        decided_unix: UnixTime::new(1_795_180_320),
    }
}

#[test]
fn overview_counts_rows_and_ranks_cards() {
    let mut subjects = lab();
    subjects.extend(lab().into_iter().map(|subject| subject.on(other_machine())));
    let history = taken(&subjects);
    let (seen, _) = self::seen(&history, "6.1.190", "6.12.117", &[]);
    assert_eq!(seen.columns.len(), 2);
    let counts = seen.counts;
    assert_eq!(
        (counts.worse, counts.better, counts.same, counts.failed),
        (2, 4, 0, 2)
    );
    assert_eq!(
        seen.groups
            .iter()
            .map(|group| group.name.as_str())
            .collect::<Vec<_>>(),
        ["mm", "process", "sched"]
    );
    assert!(
        matches!(seen.cards[..], [Card::Alert(0), Card::Alert(1)]),
        "what fails weighs more: {:?}",
        seen.cards
    );
    let mean = seen.mean.unwrap();
    assert_eq!(mean.cells, 6);
    assert!(mean.seeds.unwrap().min <= mean.ratio && mean.ratio <= mean.seeds.unwrap().max);
}

#[test]
fn regression_without_change_point_is_a_separate_card() {
    let one = Subject::new(
        build("deb:6.1+amd64", "6.1.9"),
        &[1],
        &[("getppid", Ending::Cost(100.0, 0.0))],
    );
    let other = Subject::new(
        build("deb:6.1+rt-amd64", "6.1.9"),
        &[1],
        &[("getppid", Ending::Cost(130.0, 0.0))],
    );
    let history = taken(&[one, other]);
    let (seen, _) = self::seen(&history, "6.1.9 (amd64)", "6.1.9 (rt-amd64)", &[]);
    assert!(
        matches!(&seen.cards[..], [Card::Rest(rest)] if rest.len() == 1),
        "{:?}",
        seen.cards
    );
}

#[test]
fn cells_agree_with_the_comparison() {
    let subjects = lab();
    let history = taken(&subjects);
    let of = |version: &str| {
        subjects
            .iter()
            .find(|subject| subject.build.version == version)
            .unwrap()
    };
    for (base, new) in [
        ("6.1.9", "6.12.9"),
        ("6.1.100", "6.1.190"),
        ("6.12.101", "6.1.100"),
    ] {
        let comparison =
            compare(&of(base).side(), &[of(new).side()], &question(&[1, 2, 3])).unwrap();
        let (seen, _) = self::seen(&history, base, new, &[]);
        for row in seen.groups.iter().flat_map(|group| &group.rows) {
            let Some(other) = comparison
                .rows
                .iter()
                .find(|other| other.workload.name == *row.workload)
            else {
                continue;
            };
            let cell = &other.cells[0];
            let own = &row.cells[0].pair;
            assert_eq!(
                own.compared.verdict, cell.compared.verdict,
                "{}",
                row.workload
            );
            assert_eq!(
                own.compared.difference_percent,
                cell.compared.difference_percent
            );
            assert_eq!(own.compared.ratio, cell.compared.ratio);
        }
    }
}

#[test]
fn a_history_as_text() {
    let history = taken(&lab());
    let text = history_text(&history, ReleaseLine::All, |_| true, &Styles::plain());
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!(text);
}

#[test]
fn history_of_too_few_kernels_has_no_change() {
    let text = |subjects: &[Subject]| {
        history_text(
            &taken(subjects),
            ReleaseLine::All,
            |_| true,
            &Styles::plain(),
        )
    };
    let of = |version: &str| kernel(version, &[("fault-anon", Ending::Cost(330.0, 0.1))]);
    assert!(
        text(&[of("6.1.9")])
            .ends_with("Too few kernels to tell: 1 has a value, a change takes at least 2\n")
    );
    assert!(text(&[of("6.1.9"), of("6.1.10")]).ends_with("\nNo change beyond the margin\n"));
}

#[test]
fn series_with_gap_keeps_its_range() {
    let subjects = ["6.6.12", "6.6.13", "6.6.16"].map(|version| {
        let is_new = version != "6.6.12";
        let cost = |old: f64, new: f64| Ending::Cost(if is_new { new } else { old }, 0.0);
        let mut endings = vec![("fault-anon", cost(330.0, 350.0))];
        if version != "6.6.13" {
            endings.push(("switch-yield", cost(50.0, 60.0)));
        }
        kernel(version, &endings)
    });
    let history = taken(&subjects);
    let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
    let [one] = all.as_slice() else {
        panic!("{all:?}")
    };
    let text = alerts_text(&history, &all, "", &[], &Styles::plain());
    assert!(
        text.contains("came between 6.6.12 and 6.6.13")
            && text.contains("\n    between 6.6.12 and 6.6.16\n"),
        "{text}"
    );
    let mail = alert_mail(&history, one, &[], &[]).unwrap();
    let rows: Vec<&str> = mail
        .lines()
        .skip_while(|line| !line.contains("before"))
        .skip(1)
        .take(3)
        .collect();
    insta::assert_snapshot!(rows.join("\n"), @r"
    switch-yield                               50.00             60.00     -20.00%
      between 6.6.12 and 6.6.16
    fault-anon                                330.00            350.00      -6.06%
    ");
    // Without the series that was measured everywhere, the mail says no more than the gap lets it.
    let mut gap = one.clone();
    gap.alert
        .members
        .retain(|member| &*member.key.workload == "switch-yield");
    let mail = alert_mail(&history, &gap, &[], &[]).unwrap();
    assert!(
        mail.contains("between 6.6.12 and 6.6.16") && !mail.contains("6.6.13"),
        "{mail}"
    );
}

#[test]
fn a_history_as_json() {
    let history = taken(&lab()[..2]);
    let document = history_document(&history, ReleaseLine::All, usize::MAX, |key| {
        &*key.workload == "fault-anon"
    });
    insta::assert_snapshot!(history_json(&document).unwrap());
}

#[test]
fn terminal_control_characters_are_escaped() {
    let mut subject = kernel(
        "6.1\x1b[2J",
        &[("getppid", Ending::Unsupported("\x1b]0;x\x07"))],
    );
    subject.runs[0].results[0].workload = "\x1b[31mred".to_owned();
    let history = taken(&[subject]);
    let text = history_text(&history, ReleaseLine::All, |_| true, &Styles::plain());
    assert!(!text.contains('\x1b') && !text.contains('\x07'), "{text:?}");
}

proptest! {
    #[test]
    fn alert_mail_lines_stay_within_width(word in "\\PC{1,120}", cost in prop::num::f64::POSITIVE) {
        let of = |version: String, cost| {
            let mut subject = kernel(&version, &[("getppid", Ending::Cost(cost, 0.0))]);
            subject
                .runs
                .iter_mut()
                .flat_map(|run| &mut run.results)
                .for_each(|result| result.workload.clone_from(&word));
            subject.build.origin = model::Origin::Described(word.clone());
            subject
        };
        let history = taken(&[
            of(format!("6.1{word}"), cost / 4.0),
            of(format!("6.12{word}"), cost),
        ]);
        let decided = Decision {
            note: word.clone(),
            ..decided("6.1", "6.99", Triage::Real)
        };
        for one in triage_alerts(&history, alerts(&history, ReleaseLine::All), &[decided], &[]) {
            let mail = alert_mail(&history, &one, &[], &[]).unwrap_or_default();
            prop_assert_eq!(mail.lines().find(|line| line.chars().count() > 80), None);
        }
    }

    #[test]
    fn a_pair_turned_around_says_the_opposite(base in 1.0..1e6, new in 1.0..1e6) {
        let of = |version, cost| kernel(version, &[("getppid", Ending::Cost(cost, 0.0))]);
        let history = taken(&[of("6.1.1", base), of("6.1.2", new)]);
        let state = |base, target| {
            self::seen(&history, base, target, &[]).0.groups[0].rows[0].cells[0]
                .pair
                .clone()
        };
        let there = state("6.1.1", "6.1.2");
        let back = state("6.1.2", "6.1.1");
        // Percentages are of the base, so the margin differs between the two directions.
        if there.compared.difference_percent.unwrap().abs() > 1.1 {
            let opposite = if there.state == State::Worse {
                State::Better
            } else {
                State::Worse
            };
            prop_assert_eq!(back.state, opposite);
        }
    }

    #[test]
    fn changes_are_in_order_and_within_the_series(
        costs in prop::collection::vec(90.0..110.0, 1..24),
    ) {
        let kernels: Vec<Subject> = costs
            .iter()
            .enumerate()
            .map(|(n, cost)| {
                kernel(
                    &format!("6.1.{n}"),
                    &[("getppid", Ending::Cost(*cost, 0.3))],
                )
            })
            .collect();
        let history = taken(&kernels);
        let series = only(&history, "getppid");
        for change in &series.changes {
            prop_assert_eq!(
                change.earliest <= change.at && change.at < costs.len() && change.earliest > 0,
                true
            );
            prop_assert_eq!(change.went_away.is_none_or(|back| back > change.at), true);
            prop_assert_eq!(
                change.verdict == Verdict::Worse,
                change.difference_percent.unwrap() < 0.0
            );
        }
        let alerts = alerts(&history, ReleaseLine::All);
        let is_back = |at: usize| {
            series
                .changes
                .iter()
                .any(|change| change.went_away == Some(at))
        };
        let news = series
            .changes
            .iter()
            .filter(|change| !is_back(change.at))
            .count();
        prop_assert_eq!(
            alerts
                .iter()
                .map(|alert| alert.members.len())
                .sum::<usize>(),
            news
        );
    }
}
