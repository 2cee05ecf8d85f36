//! An alert as a mail to mailing lists: plain text of at most 80 columns, with measured facts only.

use document::cut_middle;
use document::layout::{Page, WIDTH, command_lines};
use document::mail::{CLONE, REGRESSIONS, regression_head};
use document::number::{count, percent, value};
use model::{Verdict, sanitize_line};

use super::text::{certainty, change_size};
use crate::bisect_hint::{bisection_anywhere, introduced, reproducer};
use crate::doubts::draft_head;
use crate::{
    Alert, BisectionRecord, History, KernelIx, MachineIx, Member, Triaged, records_of_alert,
};

/// The most series in the table of a mail; the others are counted.
const SHOWN_MAX: usize = 20;

/// Columns of its table; with the spaces between, 79.
const NAME: usize = 30;
const VALUE: usize = 17;
const PERCENT: usize = 11;

/// Renders an alert as a mail; `None` if there is no regression. `found` are the results of
/// bisections, `origins` sentences on the functions that the regressions are in.
///
/// It addresses the lists for regressions, unless every regression has a doubt; rows with one
/// beside others are left out, and so are rows that a twin contradicts. Notes of a triage are
/// private.
#[must_use]
pub fn alert_mail(
    history: &History,
    triaged: &Triaged,
    found: &[BisectionRecord],
    origins: &[String],
) -> Option<String> {
    let mailable = triaged.alert.mailable(history);
    let alert = &mailable.alert;
    let subject = subject(history, alert)?;
    let is_draft = !mailable.doubts.is_empty();
    let head = if is_draft {
        draft_head(&mailable.doubts, &subject)
    } else {
        regression_head(false, &[("To", REGRESSIONS)], &subject)
    };
    let mut page = Page::default();
    for line in head.lines() {
        page.line(line);
    }
    write_body(
        &mut page,
        history,
        &Triaged {
            alert: alert.clone(),
            decided: triaged.decided.clone(),
            told: Vec::new(),
        },
        found,
        origins,
    );
    if let Some(range) = introduced(history, alert).filter(|_| !is_draft) {
        page.blank();
        page.line(format!("#regzbot introduced: {range}"));
    }
    Some(page.finish())
}

/// Returns what an alert's regressions are, in one line.
pub(super) fn subject(history: &History, alert: &Alert) -> Option<String> {
    let worst = alert.worse().next()?;
    let [after, at] =
        [alert.after, alert.at].map(|kernel| sanitize_line(&history.kernel(kernel).title));
    let others = alert.worse().count() - 1;
    let and = if others > 0 {
        format!(" and {}", count(others, "other"))
    } else {
        String::new()
    };
    let size = match worst.difference_percent {
        Some(difference) => format!("{}% worse", percent(difference.abs(), PERCENT)),
        None => change_size(None, worst.basis),
    };
    Some(format!(
        "{}{and}: {size} between {after} and {at}",
        sanitize_line(&worst.key.workload)
    ))
}

/// Writes what a mail says of an alert, which has only what the mail may name.
pub(super) fn write_body(
    page: &mut Page,
    history: &History,
    triaged: &Triaged,
    found: &[BisectionRecord],
    origins: &[String],
) {
    let alert = &triaged.alert;
    let [after, at] =
        [alert.after, alert.at].map(|kernel| sanitize_line(&history.kernel(kernel).title));
    page.line("Hi,");
    page.blank();
    page.paragraph(0, &opening(alert, &after, &at));
    page.blank();
    table(page, history, alert);
    observations(page, history, triaged, found, origins);
    page.blank();
    machines(page, history, alert);
    if let Some(command) = reproducer(history, alert) {
        commands(page, "To measure it again:", &[command]);
    }
    if let Some(command) = bisection_anywhere(history, alert) {
        commands(page, "To find the commit:", &[CLONE.to_owned(), command]);
    }
}

fn commands(page: &mut Page, head: &str, commands: &[String]) {
    page.blank();
    page.line(head);
    page.blank();
    for command in commands {
        for line in command_lines(command, WIDTH - 4) {
            page.line(format!("  {line}"));
        }
    }
}

fn opening(alert: &Alert, after: &str, at: &str) -> String {
    let worse = alert.worse().count();
    let have = if worse == 1 { "has" } else { "have" };
    format!(
        "{worse} series of measurements {have} become worse with a kernel after {after}, and at the latest with {at} ({}).",
        sanitize_line(&alert.track)
    )
}

fn table(page: &mut Page, history: &History, alert: &Alert) {
    page.line(format!(
        "{:NAME$} {:>VALUE$} {:>VALUE$} {:>PERCENT$}",
        "", "before", "after", "difference"
    ));
    for member in alert.worse().take(SHOWN_MAX) {
        let name = sanitize_line(&member.key.workload);
        if name.chars().count() > NAME {
            page.line(cut_middle(&name, WIDTH));
        }
        page.line(row(history, member).trim_end());
        if let Some(range) = alert.own_range(member, history) {
            page.paragraph(2, &sanitize_line(&range));
        }
    }
    let more = alert.worse().count().saturating_sub(SHOWN_MAX);
    if more > 0 {
        page.paragraph(0, &format!("and {more} more"));
    }
    page.blank();
    page.paragraph(
        0,
        "Levels before and after the change, of medians over the seeds; positive is better.",
    );
}

/// The values are the levels of the alert's difference; for a failure, the value of the last kernel
/// that did not fail.
fn row(history: &History, member: &Member) -> String {
    let (before, after) = match member.levels {
        Some((before, after)) => (Some(before), Some(after)),
        None => (
            numeric(history, member, member.between.0),
            numeric(history, member, member.between.1),
        ),
    };
    // A cut name looks like another: it has a line of its own.
    let name = Some(sanitize_line(&member.key.workload))
        .filter(|name| name.chars().count() <= NAME)
        .unwrap_or_default();
    let difference = match member.difference_percent {
        Some(difference) => format!("{}%", percent(difference, PERCENT - 1)),
        None => change_size(None, member.basis),
    };
    format!(
        "{name:<NAME$} {:>VALUE$} {:>VALUE$} {difference:>PERCENT$}",
        format_level(before),
        format_level(after)
    )
}

/// Formats a value for its column; `-` if there is none.
fn format_level(level: Option<f64>) -> String {
    level.map_or_else(|| "-".to_owned(), |level| value(level, VALUE))
}

fn numeric(history: &History, member: &Member, kernel: KernelIx) -> Option<f64> {
    let (_, series) = history.series().find(|(key, _)| **key == member.key)?;
    series.point(kernel)?.value
}

fn observations(
    page: &mut Page,
    history: &History,
    triaged: &Triaged,
    found: &[BisectionRecord],
    origins: &[String],
) {
    let alert = &triaged.alert;
    let mut facts = Vec::new();
    if let Some(worst) = alert.worse().next() {
        facts.push(format!(
            "The worst is {}: {}{}.",
            sanitize_line(&worst.key.workload),
            change_size(worst.difference_percent, worst.basis),
            certainty(worst.basis).map_or_else(String::new, |paragraph| format!(" ({paragraph})"))
        ));
    }
    facts.extend(
        origins
            .iter()
            .map(|origin| format!("{}.", sanitize_line(origin))),
    );
    let better: Vec<String> = alert
        .members
        .iter()
        .filter(|member| member.verdict == Verdict::Better && member.gone.is_none())
        .take(SHOWN_MAX)
        .map(|member| {
            format!(
                "{} ({})",
                sanitize_line(&member.key.workload),
                change_size(member.difference_percent, member.basis)
            )
        })
        .collect();
    if !better.is_empty() {
        facts.push(format!(
            "Better with the same kernels: {}.",
            better.join(", ")
        ));
    }
    let gone: Vec<&Member> = alert
        .members
        .iter()
        .filter(|member| member.gone.is_some() && !matches!(member.verdict, Verdict::Unclear(_)))
        .take(SHOWN_MAX)
        .collect();
    for member in gone {
        if let Some(gone) = member.gone {
            facts.push(format!(
                "{} is back at its old level with {}.",
                sanitize_line(&member.key.workload),
                sanitize_line(history.title(gone))
            ));
        }
    }
    for found in records_of_alert(history, alert, found) {
        facts.push(format!("{}.", capital(&found.describe())));
    }
    if let Some(decided) = &triaged.decided {
        facts.push(format!("It was triaged as {}.", decided.triage));
    }
    page.blank();
    page.line("Observations");
    page.blank();
    for (number, fact) in (1..).zip(facts) {
        page.hanging(&format!("{number:>3}. "), &fact);
    }
}

/// Capitalizes the first letter.
fn capital(phrase: &str) -> String {
    let mut all = phrase.chars();
    all.next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .chain(all)
        .collect()
}

fn machines(page: &mut Page, history: &History, alert: &Alert) {
    let mut known: Vec<MachineIx> = alert.worse().map(|member| member.key.machine).collect();
    known.sort_unstable();
    known.dedup();
    for number in known {
        let machine = history.machine(number);
        page.hanging(
            "Machine: ",
            &format!("{}; {}", machine.kind, sanitize_line(&machine.summary)),
        );
        if machine.capabilities().deterministic {
            page.paragraph(
                9,
                "The numbers are exact: the same kernel gives them again.",
            );
        }
    }
    // For a creeping series, the kernel of the old level is older than the last good one.
    let mut kernels = vec![alert.after, alert.at];
    if let Some(worst) = alert
        .worse()
        .next()
        .filter(|worst| !kernels.contains(&worst.between.0))
    {
        kernels.insert(0, worst.between.0);
    }
    for kernel in kernels {
        let build = &history.kernel(kernel).build;
        page.hanging(
            "Kernel:  ",
            &format!(
                "{}, {}",
                sanitize_line(&build.version),
                sanitize_line(&build.origin.to_string())
            ),
        );
    }
}
