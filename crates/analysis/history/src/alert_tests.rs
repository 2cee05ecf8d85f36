//! Tests of alerts: which changes are one alert, decisions about them, and their texts and mails.

use compare::fixtures::{Ending, Subject, build, other_machine};
use document::Styles;
use model::{
    Decision, FailureReason, Machine, ReleaseLine, Stage, Told, Triage, UnixTime,
    regression_subject,
};

use super::tests::{decided, kernel, lab, only, taken};
use super::{
    Addresses, Basis, Card, Doubt, History, Triaged, alert_mail, alerts, alerts_text, digest_text,
    overview, regression_text, told_words, triage_alerts,
};

#[test]
fn changes_of_the_same_kernels_are_one_alert() {
    let history = taken(&lab());
    let found = alerts(&history, ReleaseLine::All);
    let described: Vec<_> = found
        .iter()
        .map(|alert| (alert.name.as_str(), alert.counts()))
        .collect();
    // The pipes improve where the faults regress: perhaps one patch. The return of the forks makes
    // no alert.
    let expected = [
        ("cloud-amd64@6.12.117", (1, 0, 0)),
        ("cloud-amd64@6.12.9", (1, 1, 0)),
        ("cloud-amd64@6.1.190", (0, 0, 1)),
    ];
    assert_eq!(described, expected);
    assert_eq!(history.kernel(found[1].after).title, "6.1.190");
    assert_eq!(alerts(&history, ReleaseLine::Stable(6, 12)).len(), 1);
}

#[test]
fn failing_workload_alerts_until_it_works_again() {
    let hung = || Ending::Failed(Stage::Workload, FailureReason::Hung, "");
    let fine = || Ending::Cost(100.0, 0.0);
    let of = |endings: &[fn() -> Ending]| {
        let kernels = endings
            .iter()
            .enumerate()
            .map(|(n, ending)| kernel(&format!("6.1.{n}"), &[("getppid", ending())]));
        let history = taken(&kernels.collect::<Vec<_>>());
        let found = only(&history, "getppid").changes.clone();
        found
            .iter()
            .map(|change| (change.earliest, change.at, change.basis, change.went_away))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(&[fine, hung, hung]), [(1, 1, Basis::Fails, None)]);
    assert_eq!(of(&[fine, hung, fine]), [(1, 1, Basis::Fails, Some(2))]);
    assert_eq!(
        of(&[fine, || Ending::Unsupported("no such call"), hung]),
        [(1, 2, Basis::Fails, None)]
    );
    assert_eq!(of(&[hung, hung]), [], "what never worked did not change");
    let dearer = || Ending::Cost(120.0, 0.0);
    assert_eq!(
        of(&[fine, hung, dearer]),
        [
            (1, 1, Basis::Fails, Some(2)),
            (2, 2, Basis::EverySeed { seeds: 3 }, None)
        ],
        "that it works again hides nothing"
    );
}

#[test]
fn kernel_that_stops_booting_is_one_alert() {
    let dead = || Ending::Failed(Stage::Boot, FailureReason::Hung, "");
    let all = |ending: fn() -> Ending| {
        [
            ("fault-anon", ending()),
            ("fork-exec", ending()),
            ("pipe-pingpong", ending()),
        ]
    };
    let history = taken(&[
        kernel("6.1.1", &all(|| Ending::Cost(100.0, 0.0))),
        kernel("6.1.2", &all(dead)),
    ]);
    let found = alerts(&history, ReleaseLine::All);
    assert_eq!(found.len(), 1);
    assert!(found[0].is_boot());
    assert_eq!(found[0].counts(), (3, 0, 0));
    let all = triage_alerts(&history, found, &[], &[]);
    let text = alerts_text(
        &history,
        &all,
        "HOME/workshop/debian",
        &[],
        &Styles::plain(),
    );
    assert!(
        text.contains("does not boot") && text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let kernels = history.usual_pair().unwrap();
    let seen = overview(&history, kernels, &all);
    assert!(matches!(seen.cards[..], [Card::Alert(0)]) && seen.counts.failed == 3);
}

#[test]
fn decision_holds_for_its_range_and_narrower_ones() {
    let history = taken(&lab());
    let of = |decisions: &[Decision]| {
        triage_alerts(&history, alerts(&history, ReleaseLine::All), decisions, &[])[1].clone()
    };
    assert!(of(&[]).is_open());
    assert!(!of(&[decided("6.1.190", "6.12.9", Triage::Apparent)]).is_open());
    assert!(!of(&[decided("6.1.100", "6.12.101", Triage::TradeOff)]).is_open());
    assert!(
        of(&[decided("6.12.9", "6.12.101", Triage::Apparent)])
            .decided
            .is_none()
    );
    let changed = [
        decided("6.1.190", "6.12.9", Triage::Ignored),
        decided("6.1.190", "6.12.9", Triage::Real),
    ];
    assert_eq!(of(&changed).decided.as_ref().unwrap().triage, Triage::Real);
    assert!(
        !of(&changed).is_open() && of(&changed).needs_commit(),
        "who confirmed it has looked at it"
    );
    let less = Decision {
        worse: 0,
        ..decided("6.1.190", "6.12.9", Triage::Ignored)
    };
    assert!(of(std::slice::from_ref(&less)).is_open());
    assert_eq!(of(&[less]).more_since(), 1);
}

#[test]
fn alerts_as_text() {
    let history = taken(&lab());
    let decisions = [decided("6.1.190", "6.12.9", Triage::Apparent)];
    let all = triage_alerts(
        &history,
        alerts(&history, ReleaseLine::All),
        &decisions,
        &[],
    );
    insta::assert_snapshot!(alerts_text(
        &history,
        &all,
        "HOME/workshop/debian",
        &[],
        &Styles::plain()
    ));
}

#[test]
fn an_alert_as_a_mail() {
    let history = taken(&lab());
    let decisions = [decided("6.1.190", "6.12.9", Triage::Real)];
    let all = triage_alerts(
        &history,
        alerts(&history, ReleaseLine::All),
        &decisions,
        &[],
    );
    let mails: Vec<String> = all
        .iter()
        .filter_map(|one| alert_mail(&history, one, &[], &[]))
        .collect();
    let worse = all
        .iter()
        .filter(|one| one.alert.worse().next().is_some())
        .count();
    assert_eq!(mails.len(), worse, "what became better needs no mail");
    let mails = mails.join("\n====\n\n");
    assert!(mails.lines().all(|line| line.chars().count() <= 80));
    insta::assert_snapshot!(mails);
}

/// Kernels over which faults creep within the margin before they regress, with this many seeds.
fn creeping(seeds: &[u64]) -> History {
    let costs = [("6.1.170", 330.0), ("6.1.192", 332.0), ("6.12.100", 345.0)];
    let subjects = costs.map(|(version, cost)| {
        Subject::new(
            self::build("deb:6.12", version),
            seeds,
            &[("fault-anon", Ending::Cost(cost, 0.0))],
        )
    });
    taken(&subjects)
}

/// The alerts of a history as if a machine that measures time had shown them.
fn timed(history: &mut History, all: Vec<Triaged>) -> Vec<Triaged> {
    let host = Machine {
        kind: "vm".parse().unwrap(),
        ..other_machine()
    };
    history.know_machine(&host);
    let host = history.machine_number(&host.id).unwrap();
    let timed = |mut one: Triaged| {
        for member in &mut one.alert.members {
            member.key.machine = host;
        }
        one
    };
    all.into_iter().map(timed).collect()
}

#[test]
fn doubtful_rows_are_in_no_list_mail() {
    let mut history = creeping(&[1, 2, 3]);
    let counted = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
    let doubts = |history: &History, one: &Triaged| one.alert.mailable(history).doubts;
    assert_eq!(
        doubts(&history, &counted[0]),
        [Doubt::Counted, Doubt::Small]
    );
    let mut timed = timed(&mut history, counted.clone());
    assert_eq!(doubts(&history, &timed[0]), [Doubt::Small]);
    // The kernel's rule is about micro-benchmarks.
    timed[0].alert.members[0].key.workload = "of-a-tool".into();
    assert_eq!(doubts(&history, &timed[0]), []);
    let mail = alert_mail(&history, &timed[0], &[], &[]).unwrap();
    let text = regression_text(&history, &timed[0], &[]).unwrap();
    assert!(mail.contains("Subject: [REGRESSION] ") && text.doubts.is_empty());
    // A row with a doubt beside one without is left out by both.
    timed[0]
        .alert
        .members
        .extend(counted[0].alert.members.clone());
    let mail = alert_mail(&history, &timed[0], &[], &[]).unwrap();
    let text = regression_text(&history, &timed[0], &[]).unwrap();
    assert!(mail.contains("Subject: [REGRESSION] ") && text.doubts.is_empty());
    assert!(
        !mail.contains("fault-anon") && !text.body.contains("fault-anon"),
        "{mail}"
    );
    let draft = alert_mail(&history, &counted[0], &[], &[]).unwrap();
    assert!(!draft.contains("[REGRESSION]") && draft.contains("instructions were counted"));
}

#[test]
fn alert_mail_has_the_figures_of_the_alert() {
    let mut history = creeping(&[1, 2, 3]);
    let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
    let mut all = timed(&mut history, all);
    all[0].alert.members[0].key.workload = "of-a-tool".into();
    let text = alerts_text(&history, &all, "", &[], &Styles::plain());
    let mail = alert_mail(&history, &all[0], &[], &[]).unwrap();
    let difference = text
        .split_whitespace()
        .find(|word| word.ends_with('%'))
        .unwrap();
    assert_eq!(
        mail.matches('%').count(),
        mail.matches(difference.trim_start_matches('-')).count(),
        "{mail}"
    );
    assert!(
        mail.starts_with("To: regressions@") && mail.contains("Subject: [REGRESSION] "),
        "{mail}"
    );
    assert!(
        !mail.contains("marvin alerts") && mail.contains("series of measurements"),
        "{mail}"
    );
}

#[test]
fn alert_mail_of_one_seed_addresses_no_list() {
    let history = creeping(&[1]);
    let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
    let mail = alert_mail(&history, &all[0], &[], &[]).unwrap();
    for absent in ["To:", "lists.linux.dev", "[REGRESSION]", "#regzbot"] {
        assert!(!mail.contains(absent), "{absent}: {mail}");
    }
    assert!(
        mail.contains("one seed only") && mail.contains("--seeds 5"),
        "{mail}"
    );
}

#[test]
fn list_mail_leaves_out_rows_of_one_seed() {
    let subject = |version: &str, cost: f64| {
        let mut subject = Subject::new(
            build("deb:6.12", version),
            &[1, 2],
            &[("getppid", Ending::Cost(cost, 0.0))],
        );
        subject.add_run(
            3,
            &[
                ("getppid", Ending::Cost(cost, 0.0)),
                ("fork-exec", Ending::Cost(cost, 0.0)),
            ],
        );
        subject
    };
    let mut history = taken(&[subject("6.12.1", 100.0), subject("6.12.2", 130.0)]);
    let decision = Decision {
        track: "cloud-amd64".into(),
        after: "6.12.1".into(),
        at: "6.12.2".into(),
        triage: Triage::Real,
        note: "customer X waits for this".into(),
        worse: 2,
        decided_unix: UnixTime::new(0),
    };
    let all = triage_alerts(
        &history,
        alerts(&history, ReleaseLine::All),
        &[decision],
        &[],
    );
    let all = timed(&mut history, all);
    let left_out = all[0].alert.mailable(&history).left_out;
    assert_eq!(all[0].alert.worse().count(), 2);
    assert_eq!(left_out, [("fork-exec".to_owned(), vec![Doubt::OneSeed])]);
    let mail = alert_mail(&history, &all[0], &[], &[]).unwrap();
    assert!(
        mail.contains("[REGRESSION] getppid: ") && !mail.contains("fork-exec"),
        "{mail}"
    );
    assert!(
        mail.contains("It was triaged as real") && !mail.contains("customer"),
        "{mail}"
    );
}

#[test]
fn improvements_alone_are_in_no_list() {
    let costs = [("6.12.1", 400.0), ("6.12.2", 330.0)];
    let subjects =
        costs.map(|(version, cost)| kernel(version, &[("fault-anon", Ending::Cost(cost, 0.0))]));
    let history = taken(&subjects);
    let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
    assert_eq!(all[0].alert.counts(), (0, 1, 0));
    assert_eq!(digest_text(&history, &all), None);
    assert!(!all[0].is_untold());
    assert_eq!(regression_text(&history, &all[0], &[]), None);
}

#[test]
fn alert_says_who_was_told_and_when() {
    let costs = [("6.12.1", 330.0), ("6.12.2", 400.0)];
    let subjects =
        costs.map(|(version, cost)| kernel(version, &[("fault-anon", Ending::Cost(cost, 0.0))]));
    let history = taken(&subjects);
    let untold = alerts(&history, ReleaseLine::All);
    let track = untold[0].decision_track();
    // Told when the kernels on both sides were farther apart.
    let subject = regression_subject(&track, "6.12", "6.12.9");
    let mut told = Told::of_subject(&subject, UnixTime::new(1_780_000_000)).unwrap();
    let silent = told.clone();
    told.set_channel("us");
    let mut failed = told.clone();
    failed.failure = "connection refused".to_owned();
    told.delivered_unix = Some(UnixTime::new(1_780_000_100));
    let mut lists = told.clone();
    lists.is_report = true;
    lists.set_channel("us to a@x.org,b@x.org");
    let of = |told: &[Told]| triage_alerts(&history, untold.clone(), &[], told).remove(0);
    assert_eq!(told_words(&of(&[]), Addresses::Named), None);
    assert!(of(&[]).is_untold() && of(&[lists.clone()]).is_untold());
    assert!(!of(std::slice::from_ref(&silent)).is_untold());
    let one = of(&[lists, told, failed, silent]);
    insta::assert_snapshot!(told_words(&one, Addresses::Named).unwrap(), @"a@x.org, b@x.org by us on 2026-05-28; us on 2026-05-28; us not yet (connection refused); on no channel, as it was open before this lab reported regressions");
    insta::assert_snapshot!(told_words(&one, Addresses::Counted).unwrap(), @"2 addresses by us on 2026-05-28; us on 2026-05-28; us not yet; on no channel, as it was open before this lab reported regressions");
    let mut hostile = Told::of_subject(&subject, UnixTime::new(0)).unwrap();
    hostile.set_channel("us\u{1b}[2J\nalert closed to a@x.org\r\u{202e}");
    hostile.failure = "no\n\u{7}route".to_owned();
    let said = told_words(&of(&[hostile]), Addresses::Named).unwrap();
    assert!(
        !said.contains(|c: char| c.is_control() || c == '\u{202e}'),
        "{said:?}"
    );
    let elsewhere = regression_subject("other", "6.12", "6.12.9");
    let elsewhere = Told::of_subject(&elsewhere, UnixTime::new(0)).unwrap();
    assert!(of(&[elsewhere]).is_untold(), "another track");
}

#[test]
fn draft_has_the_doubts_of_its_subject() {
    let costs = [("6.12.1", 330.0, 100.0), ("6.12.2", 460.0, 103.0)];
    let subjects = costs.map(|(version, fault, call)| {
        let rows = [
            ("fault-anon", Ending::Cost(fault, 0.0)),
            ("getppid", Ending::Cost(call, 0.0)),
        ];
        kernel(version, &rows)
    });
    let history = taken(&subjects);
    let alert = alerts(&history, ReleaseLine::All).remove(0);
    assert_eq!(alert.worse().count(), 2);
    // The small one is a getppid that the subject does not name.
    assert_eq!(alert.mailable(&history).doubts, [Doubt::Counted]);
}
