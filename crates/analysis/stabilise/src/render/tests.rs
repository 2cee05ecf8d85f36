//! Hand-made outcomes and how they are rendered.

use std::collections::BTreeMap;

use document::Styles;
use document::fixtures::mistakes;
use model::Availability;

use super::{
    BranchName, Candidate, Check, CheckedPatch, Cost, Dropped, End, Measuring, NamedCommit, Report,
    RowName, SkippedRow, check_mail, cover_letter, document, effect_note, json, schema,
};
use crate::outcome::{Cause, Debt, Effect, Outcome, Unit};
use crate::world::{Change, Failure};

const HOSTILE: &str = "mm: \u{1b}[31mred\u{7}\n| `<script>alert(1)</script>` **bold** and a subject that is much longer than any line";

fn effects(pairs: &[(usize, f64)]) -> Vec<Effect> {
    pairs
        .iter()
        .map(|(row, percent)| Effect {
            row: *row,
            percent: *percent,
        })
        .collect()
}

fn named(digit: char, subject: &str) -> NamedCommit {
    NamedCommit {
        commit: digit.to_string().repeat(40),
        subject: subject.to_owned(),
    }
}

fn unit(
    change: Change,
    needed: &[Change],
    alone: &[(usize, f64)],
    in_series: &[(usize, f64)],
) -> Unit {
    let changes = needed.iter().copied().chain([change]).collect();
    Unit {
        change,
        changes,
        alone: Availability::Available(effects(alone)),
        in_series: effects(in_series),
    }
}

fn debt(row: usize, percent: f64, explained_percent: f64, left: f64) -> Debt {
    Debt {
        row,
        percent,
        explained_percent,
        left_percent: Some(left),
    }
}

fn cause(
    point: usize,
    first: usize,
    moved: &[(usize, f64)],
    reverted: Option<Availability<Vec<Effect>, Failure>>,
) -> Cause {
    Cause {
        point,
        first,
        effects: effects(moved),
        reverted,
    }
}

fn row(name: &str) -> RowName {
    RowName {
        name: name.to_owned(),
        unit: "instructions/op".into(),
        margin_percent: 1.0,
    }
}

/// Two causes with common rows, a partial repair with a prerequisite, a revert, a conflict, a patch
/// that harms.
fn usual() -> Outcome {
    let conflict = Failure::Conflict {
        change: Change::Revert(9),
        files: vec!["mm/memory.c".into(), "mm/mmap.c".into()],
    };
    Outcome {
        debts: vec![
            debt(0, -3.10, 99.4, 0.12),
            debt(1, -12.40, 100.2, -5.25),
            debt(3, -2.25, 100.0, 0.0),
            debt(5, -1.75, 0.0, -1.75),
            debt(6, -1.40, 97.0, 0.05),
            debt(9, -2.00, 100.0, 0.0),
        ],
        causes: vec![
            cause(
                3,
                3,
                &[(0, -3.08), (1, -9.0), (9, -2.0)],
                Some(Availability::Available(effects(&[
                    (0, 3.05),
                    (1, 8.9),
                    (7, -1.5),
                    (9, 2.0),
                ]))),
            ),
            cause(
                9,
                7,
                &[(1, -3.43)],
                Some(Availability::Unavailable(conflict)),
            ),
            cause(
                12,
                12,
                &[(3, -2.25)],
                Some(Availability::Available(effects(&[(3, 2.3)]))),
            ),
            cause(14, 14, &[(6, -1.36)], None),
        ],
        units: vec![
            unit(
                Change::Apply(4),
                &[Change::Apply(2)],
                &[(0, 3.30), (1, 5.10), (8, 1.20), (9, 2.1)],
                &[(0, 3.22), (1, 5.0), (9, 2.0)],
            ),
            unit(Change::Apply(6), &[], &[(1, 2.9)], &[(1, 2.2)]),
            unit(Change::Apply(7), &[], &[(6, 1.50)], &[(6, 1.45)]),
            unit(Change::Apply(8), &[], &[(0, 2.0), (7, -4.5)], &[]),
            unit(Change::Apply(9), &[], &[(6, 0.9)], &[]),
            unit(Change::Apply(10), &[], &[(8, 2.0)], &[]),
            unit(Change::Apply(11), &[], &[], &[]),
            Unit {
                alone: Availability::Unavailable(Failure::DoesNotBuild(
                    "mm/slub.c:12:3: error: unknown type name 'slab_flags_t'".into(),
                )),
                ..unit(Change::Apply(12), &[Change::Apply(11)], &[], &[])
            },
            unit(Change::Revert(12), &[], &[(3, 2.3)], &[(3, 2.28)]),
        ],
        series: vec![
            Change::Revert(12),
            Change::Apply(2),
            Change::Apply(4),
            Change::Apply(6),
            Change::Apply(7),
        ],
        effects: effects(&[
            (0, 3.22),
            (1, 7.15),
            (2, -1.10),
            (3, 2.28),
            (6, 1.45),
            (8, 1.20),
            (9, 2.0),
        ]),
        worse: effects(&[(2, -1.10)]),
        failed: BTreeMap::from([(
            13,
            Failure::Conflict {
                change: Change::Apply(13),
                files: ["a", "b", "c", "d", "e"].map(String::from).into(),
            },
        )]),
        broken_steps: BTreeMap::from([(
            2,
            Failure::DoesNotBuild("mm/memory.c:7: error: implicit declaration".into()),
        )]),
        ..Outcome::default()
    }
}

fn report(outcome: &Outcome) -> Report<'_> {
    let rows = [
        "fault-anon",
        "fault-file-private-readahead",
        "fork",
        "pipe-ping",
        "open-close",
        "getppid",
        "mmap-munmap",
        "clone-thread",
        "exec",
        "futex-wake",
    ];
    let mut points: Vec<NamedCommit> = Vec::new();
    for (digit, number) in "0123456789abcdef".chars().zip(1..) {
        points.push(named(
            digit,
            &format!("subsystem: commit {number} of the history"),
        ));
    }
    points[2].subject = "mm: account each page twice to be on the safe side".into();
    points[8].subject = HOSTILE.into();
    let mut candidates: Vec<Candidate> = Vec::new();
    for (digit, number) in "fedcba9876543210".chars().zip(0..) {
        let named = named(
            digit,
            &format!("mm: candidate {number} makes something faster"),
        );
        candidates.push(Candidate {
            named,
            dropped: None,
        });
    }
    candidates[0].dropped = Some(Dropped::NotCompiled);
    candidates[1].dropped = Some(Dropped::InNew);
    candidates[3].dropped = Some(Dropped::Other("a merge".into()));
    candidates[4].named.subject = format!("mm: batch {}", "the accounting of pages ".repeat(4));
    candidates[6].named = NamedCommit {
        commit: String::new(),
        subject: HOSTILE.into(),
    };
    Report {
        outcome,
        rows: rows.map(row).to_vec(),
        skipped: vec![SkippedRow { name: "reclaim-anon".into(), why: "its values are chaotic".into() }],
        baseline: End { name: "v6.12.100".into(), commit: "1a2b3c4d5e6f".repeat(4)[..40].into() },
        new: End { name: "v6.12.107".into(), commit: "6f5e4d3c2b1a".repeat(4)[..40].into() },
        parted_at: None,
        points,
        candidates,
        source: "v6.12.107..v6.18".into(),
        measuring: Measuring {
            machine: "QEMU 7.2.22, 1 processor, instruction counting".into(),
            config: "debian-amd64 (3f2a1b)".into(),
            suite: "kernel".into(),
            seeds: vec![1, 2, 3, 4, 5],
        },
        cost: Cost { kernels: 61, builds: 12, images: 55, seconds: 9_123 },
        branch: Some(BranchName {
            repository: "/srv/marvin data/workshop.git".into(),
            name: "stabilise/v6.12.107".into(),
            tip: "ab".repeat(20),
        }),
        command: "marvin stabilise v6.12.100 v6.12.107 --tree linux --candidates v6.12.107..v6.18 --budget 3h".into(),
    }
}

fn text(report: &Report<'_>) -> String {
    let text = document(report).text(&Styles::plain());
    assert_width(&text, 80);
    text
}

fn assert_width(text: &str, width: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= width, "{line}\n{text}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
}

fn assert_fits(report: &Report<'_>) -> String {
    let written = json(report).unwrap();
    let document = serde_json::from_str(&written).unwrap();
    assert_eq!(
        mistakes(schema().as_value(), &document),
        Vec::<String>::new()
    );
    written
}

#[test]
fn usual_outcome_as_text() {
    insta::assert_snapshot!(text(&report(&usual())));
}

#[test]
fn usual_outcome_as_markdown() {
    insta::assert_snapshot!(document(&report(&usual())).markdown());
}

#[test]
fn usual_outcome_as_json() {
    insta::assert_snapshot!(assert_fits(&report(&usual())));
}

#[test]
fn page_escapes_subjects() {
    let page = document(&report(&usual())).html().unwrap();
    assert!(
        page.contains("Tried and not taken")
            && page.contains("(its revert conflicts in mm/memory.c")
    );
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'));
}

#[test]
fn usual_outcome_as_cover_letter() {
    let letter = cover_letter(&report(&usual()));
    assert_width(&letter, 76);
    insta::assert_snapshot!(letter);
}

#[test]
fn notes_of_commits_name_effects_and_needs() {
    let outcome = usual();
    let report = report(&outcome);
    let notes: Vec<String> = outcome
        .series
        .iter()
        .map(|change| effect_note(&report, *change))
        .collect();
    let notes = notes.join("--\n");
    assert_width(&notes, 72);
    insta::assert_snapshot!(notes);
}

#[test]
fn outcome_without_debts_says_so() {
    let outcome = Outcome::default();
    let report = Report {
        branch: None,
        skipped: Vec::new(),
        ..report(&outcome)
    };
    assert_fits(&report);
    insta::assert_snapshot!(text(&report));
}

#[test]
fn spent_budget_is_a_warning() {
    let outcome = Outcome {
        debts: vec![
            debt(0, -3.10, 0.0, -3.10),
            Debt {
                left_percent: None,
                ..debt(3, -2.0, 100.0, 0.0)
            },
        ],
        causes: vec![Cause {
            point: 3,
            first: 3,
            effects: effects(&[(3, -2.0)]),
            reverted: None,
        }],
        units: vec![unit(Change::Apply(4), &[], &[(0, 3.0)], &[])],
        is_cut: true,
        ..Outcome::default()
    };
    let parted_at = Some(End {
        name: "v6.12".into(),
        commit: "9".repeat(40),
    });
    let report = Report {
        branch: None,
        parted_at,
        ..report(&outcome)
    };
    assert_fits(&report);
    insta::assert_snapshot!(text(&report));
}

#[test]
fn unmeasurable_end_is_the_whole_answer() {
    let failure = Failure::DoesNotBuild("drivers/x.c:1: error: \u{1b}[1m'y' undeclared".into());
    let outcome = Outcome {
        ends: Some(failure),
        ..Outcome::default()
    };
    let report = Report {
        branch: None,
        ..report(&outcome)
    };
    assert_fits(&report);
    insta::assert_snapshot!(text(&report));
}

#[test]
fn queue_is_checked_patch_by_patch() {
    let of = usual();
    let report = report(&of);
    let patch = |place: usize, result| CheckedPatch {
        named: report.candidates[place].named.clone(),
        result,
    };
    let conflict = Failure::Conflict {
        change: Change::Apply(2),
        files: vec!["mm/slub.c".into()],
    };
    let mut check = Check {
        queue: "stable queue 6.12".into(),
        on: report.new.clone(),
        rows: report.rows.clone(),
        patches: vec![
            patch(2, Availability::Available(Vec::new())),
            patch(4, Availability::Available(effects(&[(8, 2.5)]))),
            patch(5, Availability::Unavailable(conflict)),
            patch(
                6,
                Availability::Available(effects(&[(0, -3.1), (3, 1.2), (7, -1.0), (8, -1.3)])),
            ),
        ],
        not_compiled: 7,
        measuring: report.measuring.clone(),
        command: "marvin stabilise --check v6.12.107 --tree linux --candidates queue-6.12".into(),
    };
    let mail = check_mail(&check);
    assert_width(&mail.text, 80);
    insta::assert_snapshot!(format!("Subject: {}\n\n{}", mail.subject, mail.text));
    check.patches.truncate(2);
    assert_eq!(
        check_mail(&check).subject,
        "stable queue 6.12: none of 2 patches makes a row worse"
    );
}

#[test]
fn schema_in_docs_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas/stabilise.json"
    );
    let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    let in_docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        in_docs == text,
        "docs/schemas is old: marvin reference schemas docs/schemas"
    );
}
