//! A bisection as text: the report, and the mail to a list that regzbot reads.

use std::fmt::{Arguments, Write};

use document::mail::{
    CLONE, REGRESSIONS, command, labelled, labelled_command, more, paragraph, regression_head,
};
use document::number::count;
use kernel::Headline;
use model::{Machine, Steadiness, Unit, Workload};

pub use super::messages::{describe_resumed, format_event, format_refusal};
use super::{Change, Culprit, Entry, Findings, Probe, Reverted, Stands};

/// The contents of a report.
#[derive(Debug)]
pub struct BisectionReport<'a> {
    /// What the bisection found.
    pub findings: &'a Findings,
    /// The subject and author of each culprit.
    pub headlines: &'a [Headline],
    /// What the difference of each culprit against its reference commit is in, as text in 80
    /// columns, or why that is not known.
    pub ledgers: &'a [Result<String, String>],
    pub entries: &'a [Entry],
    /// The workload that shows the change.
    pub workload: &'a Workload,
    /// The older and the newer end.
    pub ends: (&'a str, &'a str),
    pub machine: &'a Machine,
    /// The name of the kernel config.
    pub configuration: String,
    /// The command that gives the same report.
    pub command: String,
    /// The same for the reader of a mail: a config file is called [`CONFIG`], and one seed becomes
    /// several.
    pub mail_command: String,
}

/// What mails call a kernel config that is a file on the sender's host.
pub const CONFIG: &str = "CONFIG";

/// Returns the first twelve digits of a commit, as kernel developers quote them.
#[must_use]
pub fn short(commit: &str) -> String {
    commit.chars().take(12).collect()
}

/// Formats the values of the seeds.
#[must_use]
pub fn values(values: &[f64]) -> String {
    values
        .iter()
        .map(|value| format!("{value:.2}"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Appends to a text.
pub fn add(text: &mut String, more: Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(more).ok();
}

/// Indentation of a culprit's details.
const INDENT: &str = "        ";

#[must_use]
pub fn text(report: &BisectionReport<'_>) -> String {
    let BisectionReport {
        findings, workload, ..
    } = report;
    let direction = workload.metric.direction;
    let unit = unit(report);
    let mut text = format!(
        "{}, {unit}, {direction}; in percent, positive is better\n",
        workload.name
    );
    add(
        &mut text,
        format_args!(
            "whole difference  {}\n\n",
            change(&findings.total, workload)
        ),
    );
    if findings.culprits.is_empty() {
        text.push_str(&paragraph(&format!(
            "no single commit made a step of more than {:.3} %: the difference is spread over several; a smaller --margin finds smaller steps",
            findings.margin_percent
        )));
    }
    for (culprit, headline) in findings.culprits.iter().zip(report.headlines) {
        add(
            &mut text,
            format_args!(
                "{}  {} (\"{}\")\n",
                word(&culprit.change),
                short(&culprit.commit),
                headline.subject
            ),
        );
        add(
            &mut text,
            format_args!(
                "        by {}\n        {}\n",
                headline.author,
                change(&culprit.change, workload)
            ),
        );
        add(
            &mut text,
            format_args!("        against {}", short(&culprit.parent)),
        );
        if let Some(merge) = &culprit.merge {
            add(&mut text, format_args!(", merged by {}", short(merge)));
        }
        text.push('\n');
        if culprit.candidates.len() > 1 {
            let all: Vec<String> = culprit
                .candidates
                .iter()
                .map(|commit| short(commit))
                .collect();
            let any = format!(
                "it may be any of {}: the commits between could not be measured",
                all.join(" ")
            );
            text.push_str(&labelled(INDENT, &any));
        }
        if let Some(certainty) = &culprit.certainty {
            add(
                &mut text,
                format_args!(
                    "        with a probability of {:.1} %\n",
                    100.0 * certainty.chance
                ),
            );
        }
        if let Some(reverted) = &culprit.reverted {
            text.push_str(&labelled(INDENT, &describe_revert(reverted)));
        }
    }
    add(
        &mut text,
        format_args!(
            "\nexplained: {:.1} % of the whole difference\n",
            findings.explained_percent()
        ),
    );
    add(
        &mut text,
        format_args!(
            "{}, {} of which can change the image; {} measured\nsteps up to {:.3} % are ignored\n\n",
            count(findings.commits, "commit"),
            findings.commits_kept,
            report.entries.len(),
            findings.margin_percent
        ),
    );
    for (culprit, ledger) in findings.culprits.iter().zip(report.ledgers) {
        text.push_str(&came_from(culprit, ledger));
    }
    text.push_str(&table(report.entries, report.workload));
    text.push('\n');
    text.push_str(&labelled("machine:   ", &report.machine.summary));
    text.push_str(&labelled("config:    ", &report.configuration));
    text.push_str(&labelled_command("reproduce: ", &report.command));
    text
}

fn unit(report: &BisectionReport<'_>) -> Unit {
    report
        .findings
        .scale
        .unit(&report.workload.metric, report.machine.capabilities().clock)
}

/// Says what a culprit's difference is in.
fn came_from(culprit: &Culprit, ledger: &Result<String, String>) -> String {
    let commit = short(&culprit.commit);
    match ledger {
        Ok(ledger) => {
            let parent = short(&culprit.parent);
            format!("{commit} against {parent}, function by function:\n\n{ledger}\n")
        }
        Err(why) => format!("{commit} has no profile: {why}\n\n"),
    }
}

/// Returns the word for a change: positive is better.
fn word(change: &Change) -> &'static str {
    if change.percent().is_some_and(|percent| percent < 0.0) {
        "worse "
    } else {
        "better"
    }
}

fn change(change: &Change, workload: &Workload) -> String {
    let (least, most) = change.range_percent().unwrap_or((0.0, 0.0));
    let range = match workload.steadiness {
        Steadiness::Steady => "by seed",
        Steadiness::Chaotic => "in 95 of 100 cases",
    };
    format!(
        "{:.2} -> {:.2}: {:+.2} % ({least:+.2} to {most:+.2} {range})",
        change.before,
        change.after,
        change.percent().unwrap_or(0.0)
    )
}

/// Describes BAD without a culprit.
fn describe_revert(reverted: &Reverted) -> String {
    match reverted {
        Reverted::Undone(change) => format!(
            "confirmed: BAD without it differs from BAD by {:+.2} %",
            percent_of(change)
        ),
        Reverted::NotUndone(change) => format!(
            "not confirmed: BAD without it differs from BAD by {:+.2} % only; its effect depends on other commits",
            percent_of(change)
        ),
        Reverted::Conflicts => "not reverted: later commits conflict with the revert".to_owned(),
        Reverted::Failed(why) => format!("not reverted: BAD without it cannot be measured: {why}"),
    }
}

fn percent_of(change: &Change) -> f64 {
    change.percent().unwrap_or(0.0)
}

/// The log: measured commits in order; marks images that equal earlier ones.
fn table(entries: &[Entry], workload: &Workload) -> String {
    let heading = match workload.steadiness {
        Steadiness::Steady => "values by seed",
        Steadiness::Chaotic => "values by run",
    };
    let mut text = format!(
        "{:>3}  {:<12}  {:<18}  {}\n",
        "", "commit", "image", heading
    );
    let mut seen: Vec<(&str, usize)> = Vec::new();
    for (number, entry) in (1..).zip(entries) {
        let row = match &entry.probe {
            Probe::Measured {
                build,
                values: of_seeds,
                ..
            } => {
                let known = seen
                    .iter()
                    .find(|(other, _)| other == build)
                    .map(|(_, number)| *number);
                seen.push((build, number));
                let image = known.map_or_else(|| build.clone(), |known| format!("that of {known}"));
                format!("{image:<18}  {}", values(of_seeds))
            }
            Probe::Failed(why) => format!("{:<18}  {why}", "-"),
        };
        let stands = match entry.stands {
            Stands::Itself => "",
            Stands::Merged => "  (merged onto the trunk)",
            Stands::Without => "  (BAD without it)",
        };
        add(
            &mut text,
            format_args!("{number:>3}  {:<12}  {row}{stands}\n", short(&entry.of)),
        );
    }
    text
}

/// Returns a mail for the list about the largest regression; `None` if there is no regression.
///
/// Its form is that of Documentation/admin-guide/reporting-regressions.rst and of regzbot's
/// commands.
#[must_use]
pub fn mail(report: &BisectionReport<'_>) -> Option<String> {
    let worst = |pair: &(&Culprit, &Headline)| pair.0.change.percent().unwrap_or(0.0);
    let pairs = report.findings.culprits.iter().zip(report.headlines);
    let (place, (culprit, headline)) = pairs
        .enumerate()
        .min_by(|a, b| worst(&a.1).total_cmp(&worst(&b.1)))?;
    let percent = culprit.change.percent().filter(|percent| *percent < 0.0)?;
    let commit = short(&culprit.commit);
    let Workload {
        name, operation, ..
    } = report.workload;
    let more = more(report.workload.metric.direction, &unit(report));
    let subject = format!(
        "{name}: {:.1} % {more} since {commit} (\"{}\")",
        percent.abs(),
        headline.subject
    );
    let is_draft = rests_on_one_seed(report);
    let mut text = regression_head(
        is_draft,
        &[("To", &headline.author), ("Cc", REGRESSIONS)],
        &subject,
    );
    let range = format!("{}..{}", short(report.ends.0), short(report.ends.1));
    let several = culprit.candidates.len() > 1;
    let or = if several {
        "\n(or a commit shortly before it: those between could not be measured)\n"
    } else {
        ""
    };
    let since = paragraph(&format!(
        "the workload {name} costs {:.2} % {more} since",
        percent.abs()
    ));
    let found = paragraph(&format!(
        "which a bisection of {range} found. One operation is: {operation}."
    ));
    add(
        &mut text,
        format_args!(
            "Hi,\n\n{since}\n  {commit} (\"{}\")\n{or}\n{found}\n",
            headline.subject
        ),
    );
    text += &medians(report, culprit);
    let introduced = if several {
        format!("{}..{commit}", short(&culprit.parent))
    } else {
        commit.clone()
    };
    if let Some(Ok(ledger)) = report.ledgers.get(place) {
        add(
            &mut text,
            format_args!("\nFunction by function, before and after:\n\n{ledger}"),
        );
    }
    let BisectionReport {
        machine: Machine {
            summary: machine, ..
        },
        configuration,
        ..
    } = report;
    let is_file = configuration.contains('/');
    let config = if is_file { CONFIG } else { configuration };
    let attached = if is_file { " (attached)" } else { "" };
    let exact = paragraph(&format!(
        "The numbers are exact: {machine}. Kernel config {config}{attached}; `marvin build git:{commit} --tree linux \
         --config {config}` builds the kernel. To reproduce:"
    ));
    add(
        &mut text,
        format_args!(
            "\n{exact}\n{}{}",
            command(CLONE),
            command(&report.mail_command)
        ),
    );
    if !is_draft {
        add(
            &mut text,
            format_args!("\n#regzbot introduced: {introduced}\n"),
        );
    }
    Some(text)
}

/// Returns the table of medians before and after the culprit and the whole range.
fn medians(report: &BisectionReport<'_>, culprit: &Culprit) -> String {
    let mut text = format!("Medians of the seeds, {}:\n\n", unit(report));
    add(
        &mut text,
        format_args!(
            "  {:<14} {:>14} {:>14} {:>9}\n",
            "", "before", "after", "worse by"
        ),
    );
    let rows = [
        (short(&culprit.commit), &culprit.change),
        ("whole range".to_owned(), &report.findings.total),
    ];
    for (what, change) in rows {
        let percent = -change.percent().unwrap_or(0.0);
        add(
            &mut text,
            format_args!(
                "  {what:<14} {:>14.2} {:>14.2} {percent:>7.2} %\n",
                change.before, change.after
            ),
        );
    }
    text
}

/// Returns whether the whole difference rests on one seed: memory layout may be its cause.
#[must_use]
pub fn rests_on_one_seed(report: &BisectionReport<'_>) -> bool {
    report.workload.steadiness == Steadiness::Steady
        && report.findings.total.differences_percent.len() <= 1
}

#[cfg(test)]
mod tests {
    use compare::Scale;
    use kernel::Headline;
    use model::{Machine, Profile, ProfileLine, Region, Share};
    use profile::ledger::Ledger;
    use profile::render::brief;

    use super::super::{Certainty, Change, Culprit, Entry, Findings, Probe, Reverted, Stands};
    use super::{BisectionReport, describe_revert, mail, text};

    fn change(before: f64, after: f64) -> Change {
        let percent = 100.0 - 100.0 * after / before;
        Change {
            before,
            after,
            differences_percent: vec![percent, percent + 0.1],
        }
    }

    fn commit(digit: char) -> String {
        digit.to_string().repeat(40)
    }

    fn culprit(digit: char, of: Change) -> (Culprit, Headline) {
        let culprit = Culprit {
            commit: commit(digit),
            candidates: vec![commit(digit)],
            parent: commit('1'),
            merge: None,
            change: of,
            certainty: None,
            reverted: None,
        };
        let subject = format!("mm: change {digit}");
        (
            culprit,
            Headline {
                subject,
                author: "Ada Lovelace <ada@example.org>".to_owned(),
            },
        )
    }

    fn entries() -> Vec<Entry> {
        let measured = |digit: char, of: char, build: &str, value: f64| Entry {
            commit: commit(digit),
            of: commit(of),
            stands: if digit == of {
                Stands::Itself
            } else {
                Stands::Merged
            },
            probe: Probe::Measured {
                build: build.to_owned(),
                values: vec![value, value + 1.0],
                scale: Scale::Counted,
            },
        };
        vec![
            measured('0', '0', "build_000000000000", 6105.0),
            measured('f', 'f', "build_ffffffffffff", 6205.0),
            Entry {
                commit: commit('7'),
                of: commit('7'),
                stands: Stands::Itself,
                probe: Probe::Failed("does not build: mm.c:1: error: x".to_owned()),
            },
            measured('9', '8', "build_000000000000", 6105.0),
        ]
    }

    fn ledger() -> Ledger {
        let profile = |instructions: u64| {
            let line = |share, symbol: &str, instructions, calls| ProfileLine {
                share,
                symbol: symbol.to_owned(),
                instructions,
                repeated: 0,
                calls,
                costly: model::CostlyCounts::default(),
            };
            let lines = vec![
                line(Share::User, "[user]", 5000, 0),
                line(Share::Kernel, "handle_mm_fault", 100 * instructions, 100),
                line(Share::Kernel, "clear_page_rep", 60_000, 100),
            ];
            let kernel = lines.iter().map(ProfileLine::total).sum();
            Profile {
                operations: 100,
                regions: vec![Region {
                    kernel,
                    ..Region::default()
                }],
                lines,
            }
        };
        Ledger::new("getppid", &[profile(5455)], &[profile(5655)]).unwrap()
    }

    fn with_report(
        findings: &Findings,
        headlines: &[Headline],
        use_it: &dyn Fn(&BisectionReport<'_>),
    ) {
        let good = commit('0');
        let bad = commit('f');
        let summary =
            "QEMU 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18+b3), microvm, 256 MiB, -icount shift=0";
        let id = model::MachineId::from_hex(&"0".repeat(64)).unwrap();
        let machine = Machine {
            id,
            kind: "exact".parse().unwrap(),
            summary: summary.to_owned(),
            fingerprint: Vec::new(),
        };
        use_it(&BisectionReport {
            findings,
            headlines,
            ledgers: &[
                Ok(brief(&ledger(), 8)),
                Err("its profile was not recorded".to_owned()),
            ],
            entries: &entries(),
            workload: &model::MICRO.workloads[0],
            ends: (&good, &bad),
            machine: &machine,
            configuration: "micro".to_owned(),
            command: "marvin bisect 000000000000 ffffffffffff --tree linux --workload x".to_owned(),
            mail_command: "marvin bisect 000000000000 ffffffffffff --tree linux --workload x"
                .to_owned(),
        });
    }

    #[test]
    fn report_lists_culprits_and_the_log() {
        let (mut first, of_first) = culprit('a', change(6105.0, 6305.0));
        first.merge = Some(commit('c'));
        let (mut second, of_second) = culprit('b', change(6305.0, 6205.0));
        second.candidates.insert(0, commit('7'));
        first.reverted = Some(Reverted::Undone(change(6205.0, 6005.0)));
        second.certainty = Some(Certainty {
            chance: 0.987,
            error_percent: 0.4,
        });
        let total = change(6105.0, 6205.0);
        let findings = Findings {
            total,
            culprits: vec![first, second],
            scale: Scale::Counted,
            margin_percent: 0.4,
            commits: 64,
            commits_kept: 22,
        };
        with_report(&findings, &[of_first, of_second], &|report| {
            let text = text(report);
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{text}"
            );
            insta::assert_snapshot!("report", text);
            let mail = mail(report).unwrap();
            assert!(
                mail.lines().all(|line| line.chars().count() <= 80),
                "{mail}"
            );
            insta::assert_snapshot!("mail", mail);
        });
    }

    #[test]
    fn mail_of_one_seed_addresses_no_list() {
        let of = |before: f64, after: f64| Change {
            differences_percent: vec![-3.0],
            ..change(before, after)
        };
        let (culprit, headline) = culprit('a', of(6105.0, 6305.0));
        let findings = Findings {
            total: of(6105.0, 6305.0),
            culprits: vec![culprit],
            scale: Scale::Counted,
            margin_percent: 0.4,
            commits: 64,
            commits_kept: 22,
        };
        with_report(&findings, &[headline], &|report| {
            let mail = mail(report).unwrap();
            for absent in ["To:", "Cc:", "lists.linux.dev", "[REGRESSION]", "#regzbot"] {
                assert!(!mail.contains(absent), "{absent}: {mail}");
            }
            assert!(
                mail.contains("one seed only") && mail.contains("  git clone https://"),
                "{mail}"
            );
        });
    }

    #[test]
    fn report_describes_the_revert() {
        let answer = [
            Reverted::Undone(change(100.0, 90.0)),
            Reverted::NotUndone(change(100.0, 99.0)),
            Reverted::Conflicts,
            Reverted::Failed("does not build: mm.c:1: error: x".to_owned()),
        ];
        insta::assert_snapshot!(
            "taken-back",
            answer.map(|reverted| describe_revert(&reverted)).join("\n")
        );
    }

    #[test]
    fn improvements_and_spread_changes_need_no_mail() {
        let findings = |culprits| Findings {
            scale: Scale::Counted,
            total: change(100.0, 103.0),
            culprits,
            margin_percent: 1.0,
            commits: 5,
            commits_kept: 5,
        };
        with_report(&findings(vec![]), &[], &|report| {
            assert!(text(report).contains("no single commit made a step of more than 1.000 %"));
            assert_eq!(mail(report), None);
        });
        let (better, headline) = culprit('b', change(100.0, 90.0));
        with_report(&findings(vec![better]), &[headline], &|report| {
            assert_eq!(mail(report), None);
        });
    }
}
