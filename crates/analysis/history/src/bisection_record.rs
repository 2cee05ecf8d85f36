//! Stored results of bisections: the commits that made a workload better or worse between two
//! others, and the alert that they answer.

use document::number::signed_percent;
use model::{Build, sanitize_line};

use super::alerts::Alert;
use super::bisect_hint::revision;
use super::gather::History;

/// The first line of such a file.
const HEAD: &str = "marvin found 1";

/// The result of a bisection.
#[derive(Debug, Clone, PartialEq)]
pub struct BisectionRecord {
    /// The workload that was searched by.
    pub workload: String,
    /// The older end: its given name and its commit.
    pub good: [String; 2],
    /// The newer end, likewise.
    pub bad: [String; 2],
    /// The commits that made the change, each with its size.
    pub culprits: Vec<RecordedCulprit>,
}

/// A commit that made a difference.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCulprit {
    /// The commit's full hash.
    pub commit: String,
    /// How much; positive is better.
    pub percent: f64,
    /// The first line of its message.
    pub subject: String,
}

impl BisectionRecord {
    /// Formats it, line by line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let Self {
            workload,
            good: [good, good_commit],
            bad: [bad, bad_commit],
            ..
        } = self;
        let mut lines = vec![
            HEAD.to_owned(),
            format!("workload {}", sanitize_line(workload)),
            format!("good {good_commit} {}", sanitize_line(good)),
            format!("bad {bad_commit} {}", sanitize_line(bad)),
        ];
        lines.extend(self.culprits.iter().map(|one| {
            format!(
                "culprit {} {} {}",
                one.commit,
                one.percent,
                sanitize_line(&one.subject)
            )
        }));
        lines.join("\n") + "\n"
    }

    /// Parses such a text; `None` if it is anything else.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let mut lines = text.lines().filter(|line| !line.is_empty());
        (lines.next()? == HEAD).then_some(())?;
        let workload = lines.next()?.strip_prefix("workload ")?.to_owned();
        let good = read_end(lines.next()?, "good ")?;
        let bad = read_end(lines.next()?, "bad ")?;
        let culprits = lines.map(culprit).collect::<Option<Vec<_>>>()?;
        Some(Self {
            workload,
            good,
            bad,
            culprits,
        })
    }

    /// Describes it in one sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        let mut culprits = Vec::new();
        for culprit in &self.culprits {
            let commit: String = culprit.commit.chars().take(12).collect();
            culprits.push(format!(
                "{commit} (\"{}\") made {}",
                sanitize_line(&culprit.subject),
                signed_percent(culprit.percent)
            ));
        }
        let what = if culprits.is_empty() {
            "no single commit made it".to_owned()
        } else {
            culprits.join("; ")
        };
        format!(
            "a bisection of {} found: {what}",
            sanitize_line(&self.workload)
        )
    }

    /// Returns whether it answers an alert: the same two commits, and one of its workloads.
    fn matches(&self, history: &History, alert: &Alert) -> bool {
        let mut members = alert.members.iter();
        members.any(|member| *member.key.workload == *self.workload)
            && is_end(&self.good, &history.kernel(alert.after).build)
            && is_end(&self.bad, &history.kernel(alert.at).build)
    }
}

/// Returns the results of bisections between an alert's kernels.
pub fn records_of_alert<'a>(
    history: &History,
    alert: &Alert,
    all: &'a [BisectionRecord],
) -> Vec<&'a BisectionRecord> {
    all.iter()
        .filter(|found| found.matches(history, alert))
        .collect()
}

fn culprit(line: &str) -> Option<RecordedCulprit> {
    let mut fields = line.strip_prefix("culprit ")?.splitn(3, ' ');
    let commit = fields.next()?;
    let percent = fields.next()?.parse::<f64>().ok()?;
    let subject = fields.next()?;
    let is_sane = is_commit(commit) && percent.is_finite();
    is_sane.then(|| RecordedCulprit {
        commit: commit.to_owned(),
        percent,
        subject: subject.to_owned(),
    })
}

fn is_commit(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Reads the name and the commit of an end of the range: `good v6.12 0123...`, with the commit
/// first.
fn read_end(line: &str, keyword: &str) -> Option<[String; 2]> {
    let (commit, named) = line.strip_prefix(keyword)?.split_once(' ')?;
    is_commit(commit).then(|| [named.to_owned(), commit.to_owned()])
}

/// Returns whether a build is an end of the range, by the end's name or its commit.
fn is_end(end: &[String; 2], build: &Build) -> bool {
    revision(build)
        .is_some_and(|known| end[0] == known || (known.len() > 6 && end[1].starts_with(&known)))
}

#[cfg(test)]
mod tests {
    use compare::fixtures::{Ending, Subject, build};
    use model::{Build, Origin, ReleaseLine};
    use proptest::prelude::{any, proptest};

    use super::{BisectionRecord, RecordedCulprit, records_of_alert};
    use crate::{History, alerts};

    fn found(workload: &str) -> BisectionRecord {
        BisectionRecord {
            workload: workload.to_owned(),
            good: ["v6.12.115".to_owned(), "1".repeat(40)],
            bad: ["HEAD".to_owned(), "2".repeat(40)],
            culprits: vec![RecordedCulprit {
                commit: "3".repeat(40),
                percent: -4.25,
                subject: "mm: make faults dearer".to_owned(),
            }],
        }
    }

    #[test]
    fn bisection_result_round_trips() {
        let one = found("fault-anon");
        assert_eq!(BisectionRecord::read(&one.to_text()), Some(one.clone()));
        let none = BisectionRecord {
            culprits: Vec::new(),
            ..one
        };
        assert_eq!(BisectionRecord::read(&none.to_text()), Some(none.clone()));
        assert!(none.describe().ends_with("found: no single commit made it"));
        for damaged in [
            "",
            "marvin found 2\n",
            "marvin found 1\nworkload x\n",
            &none.to_text().replace("22", "zz"),
        ] {
            assert_eq!(BisectionRecord::read(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn bisection_result_answers_only_its_own_alert() {
        let mut history = History::default();
        for (version, digit, cost) in [("6.12.115-g1", "1", 100.0), ("6.12.117-g2", "2", 130.0)] {
            let origin = format!("commit {} of /src/linux, micro, gcc 12.2", digit.repeat(12));
            let build = build("git:HEAD", version);
            let build = Build {
                origin: Origin::of_line(&origin, &build.name),
                ..build
            };
            let subject = Subject::new(build, &[1], &[("fault-anon", Ending::Cost(cost, 0.0))]);
            history.add_build(&subject.build);
            history.know_machine(&subject.machine);
            subject
                .runs
                .iter()
                .for_each(|run| history.add_run(run).unwrap());
        }
        history.recompute();
        let alert = &alerts(&history, ReleaseLine::All)[0];
        let other = BisectionRecord {
            bad: ["x".to_owned(), "4".repeat(40)],
            ..found("fault-anon")
        };
        let all = [found("getppid"), other, found("fault-anon")];
        let described: Vec<String> = records_of_alert(&history, alert, &all)
            .iter()
            .map(|found| found.describe())
            .collect();
        let expected = "a bisection of fault-anon found: 333333333333 (\"mm: make faults dearer\") made -4.25%";
        assert_eq!(described, [expected]);
    }

    proptest! {
        #[test]
        fn no_text_makes_reading_fail(
            text in any::<String>(),
            rest in "(culprit [0-9a-f]{6,9} [-.0-9e]{0,9} .{0,9}\n){0,3}",
        ) {
            drop(BisectionRecord::read(&text));
            drop(BisectionRecord::read(&format!(
                "marvin found 1\nworkload a\ngood 1111111 x\nbad 2222222 y\n{rest}"
            )));
        }
    }
}
