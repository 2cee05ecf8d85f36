//! Histories of commits: hashes are in no order, dates and measurements are.

use compare::fixtures::{Ending, Subject, WHEN, build};
use model::{Build, Decision, Origin, ReleaseLine, Triage, UnixTime};
use proptest::prelude::{Strategy, prop, prop_assert_eq, proptest};

use super::tests::taken;
use super::{History, alerts, overview, triage_alerts};

/// Hashes whose texts are in the reverse order of the commits.
const HASHES: [&str; 5] = [
    "ffffffffffff",
    "c2c1c2c1c2c1",
    "90909090aaaa",
    "3141592653ab",
    "0123456789ab",
];

fn version(hash: &str) -> String {
    format!("6.12.0-g{hash}")
}

/// A commit, with its date if the store knows it.
fn commit(hash: &str, committed_unix: Option<UnixTime>) -> Build {
    let build = build("git:HEAD", &version(hash));
    let date = committed_unix.map_or_else(String::new, |committed| {
        format!(", committed {}", committed.date())
    });
    let origin = format!("commit {hash} of /src/linux, micro, gcc 12.2{date}");
    Build {
        origin: Origin::of_line(&origin, &build.name),
        ..build
    }
}

/// A commit that was measured on a day, slow or not.
fn measured(build: Build, day: u64, cost: f64) -> Subject {
    let mut subject = Subject::new(build, &[1, 2], &[("getppid", Ending::Cost(cost, 0.0))]);
    for run in &mut subject.runs {
        run.started_unix = WHEN.plus_seconds(day * 86_400);
    }
    subject
}

/// Five commits of which the newest is slow; measured in the reverse order if they are dated.
fn branch(dated: bool) -> Vec<Subject> {
    (0..5)
        .map(|n| {
            let date = dated.then(|| UnixTime::new(1_700_000_000).plus_seconds(n));
            let place = usize::try_from(n).unwrap();
            measured(
                commit(HASHES[place], date),
                if dated { 9 - n } else { n },
                if n == 4 { 130.0 } else { 100.0 },
            )
        })
        .collect()
}

fn order(history: &History) -> Vec<String> {
    history
        .order()
        .iter()
        .map(|n| history.kernel(*n).release.to_string())
        .collect()
}

#[test]
fn newest_commit_that_is_slow_stays_an_alert() {
    for dated in [true, false] {
        let mut subjects = branch(dated);
        subjects.rotate_left(2);
        let history = taken(&subjects);
        assert_eq!(order(&history), HASHES.map(version), "dated: {dated}");
        let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
        assert_eq!(
            (all.len(), all[0].is_open(), all[0].alert.counts()),
            (1, true, (1, 0, 0)),
            "dated: {dated}"
        );
        assert_eq!(
            history.kernel(all[0].alert.at).release.as_str(),
            version(HASHES[4])
        );
        let kernels = history.usual_pair().unwrap();
        assert_eq!(
            history.kernel(kernels.target).release.as_str(),
            version(HASHES[4]),
            "dated: {dated}"
        );
        assert_eq!(
            overview(&history, kernels, &all).counts.worse,
            1,
            "dated: {dated}"
        );
    }
}

/// Four commits of a store from before builds kept dates, and a new one whose date is older than
/// their measurements.
#[test]
fn commit_dates_and_measurements_do_not_mix() {
    let mut subjects = branch(false);
    subjects[4].build = commit(HASHES[4], Some(WHEN.minus_seconds(86_400)));
    for turn in 0..5 {
        let mut turned = subjects.clone();
        turned.rotate_left(turn);
        let history = taken(&turned);
        assert_eq!(order(&history), HASHES.map(version), "{turn}");
        let all = triage_alerts(&history, alerts(&history, ReleaseLine::All), &[], &[]);
        assert_eq!((all.len(), all[0].is_open()), (1, true), "{turn}");
    }
}

#[test]
fn decision_covers_commits_between_its_ends() {
    let history = taken(&branch(true));
    let decided = |after: usize, at: usize| {
        let decision = Decision {
            track: "git".into(),
            after: version(HASHES[after]),
            at: version(HASHES[at]),
            triage: Triage::Real,
            note: String::new(),
            worse: 1,
            decided_unix: WHEN,
        };
        triage_alerts(
            &history,
            alerts(&history, ReleaseLine::All),
            &[decision],
            &[],
        )[0]
        .decided
        .is_some()
    };
    assert!(decided(3, 4) && decided(0, 4));
    assert!(!decided(4, 4) && !decided(0, 3));
}

#[test]
fn earlier_measurement_found_later_moves_the_kernel() {
    let late = measured(commit(HASHES[0], None), 5, 100.0);
    let mut early = measured(commit(HASHES[0], None), 1, 100.0);
    early.runs.truncate(1);
    let other = measured(commit(HASHES[4], None), 3, 130.0);
    let before = taken(&[late.clone(), other.clone()]);
    assert_eq!(order(&before), [HASHES[4], HASHES[0]].map(version));
    let after = taken(&[late, other, early]);
    assert_eq!(order(&after), [HASHES[0], HASHES[4]].map(version));
    let (_, series) = after.series().next().unwrap();
    assert!(
        series
            .points
            .is_sorted_by_key(|point| after.rank(point.kernel))
    );
    assert_eq!(series.changes.len(), 1);
}

/// Kernels of mixed kinds: releases, stable updates, and commits with and without dates.
fn any_kernels() -> impl Strategy<Value = Vec<(usize, Option<i64>, u64)>> {
    prop::collection::vec((0_usize..10, prop::option::of(0_i64..5), 0_u64..5), 2..8)
}

proptest! {
    #[test]
    fn order_does_not_depend_on_arrival(kernels in any_kernels(), turn in 0_usize..8) {
        let mut subjects: Vec<Subject> = Vec::new();
        for (which, date, day) in kernels {
            let build = match which {
                0..5 => commit(HASHES[which], date.map(UnixTime::new)),
                5 => build("deb:6.12", "6.12"),
                6 => build("deb:6.12", "6.12.9"),
                7 => build("git:v6.12", "6.12.0-gaaaaaaaaaaaa"),
                8 => build("path:/a", "6.12.0-rc3-00012-gbbbbbbbbbbbb-dirty"),
                _ => build("tree:linux", "6.12.0-tcccccccccccc"),
            };
            if subjects.iter().all(|known| known.build.id != build.id) {
                subjects.push(measured(build, day, 100.0 + which as f64));
            }
        }
        let one = taken(&subjects);
        let count = subjects.len();
        subjects.rotate_left(turn % count);
        let other = taken(&subjects);
        prop_assert_eq!(order(&one), order(&other));
        let changes = |history: &History| {
            let series = history.series().map(|(key, series)| {
                (
                    key.workload.clone(),
                    key.track.clone(),
                    series.changes.clone(),
                )
            });
            series.collect::<Vec<_>>()
        };
        prop_assert_eq!(changes(&one), changes(&other));
    }
}
