//! Histories and alerts for terminals and mails: 80 columns, with letters in addition to colours.

use compare::{NOT_COUNTED, Scale, difference_percent};
use document::layout::{Page, WIDTH, command_lines};
use document::number::{count, interval, percent, signed_percent, value};
use document::{Styles, cut_middle, distinct_width};
use model::{Direction, ReleaseLine, Unit, Verdict, sanitize_line};

use super::told::{Addresses, told_words};
use crate::{
    Alert, Basis, BisectHint, BisectionRecord, Change, History, Key, Point, Series, Triaged,
    bisect_hint, chain_arguments, day, records_of_alert,
};

/// The most series of an alert that a text lists.
const NAMED_MAX: usize = 8;
/// The most unused runs that a text lists.
const RUNS_NAMED_MAX: usize = 4;

/// Renders the matching series, over the kernels of a line.
#[must_use]
pub fn history_text(
    history: &History,
    line: ReleaseLine,
    fits: impl Fn(&Key) -> bool,
    styles: &Styles,
) -> String {
    let mut page = Page::default();
    for (key, series) in history.series().filter(|(key, _)| fits(key)) {
        page.blank();
        let series = series.of_line(line, |kernel| &history.kernel(kernel).release);
        one(&mut page, history, key, &series, styles);
    }
    page.finish()
}

fn one(page: &mut Page, history: &History, key: &Key, series: &Series, styles: &Styles) {
    let machine = history.machine(key.machine);
    let metric = &series.metric;
    let unit = series.scale.unit(metric, machine.capabilities().clock);
    let head = format!(
        "{}: {} in {unit}",
        sanitize_line(&key.workload),
        metric.name
    );
    page.line(styles.strong(&head));
    let by = measured_by(series);
    page.paragraph(
        0,
        &format!(
            "{by}; {}; margin {}%; {} on {} {}{}",
            metric.direction,
            metric.margin_percent,
            key.track,
            machine.kind,
            machine.id.short(),
            sanitize_line(&machine.peculiarities())
        ),
    );
    let values: Vec<Option<f64>> = series.points.iter().map(|point| point.value).collect();
    page.line(format!(
        "{}  (up is better)",
        sparkline(&values, metric.margin_percent, metric.direction)
    ));
    page.line(styles.strong(&format!(
        "  {:<26} {:>12} {:>9} {:>9} {:>5}  min..max %",
        "kernel", "value", "to first", "to prev.", "seeds"
    )));
    let first = values.iter().flatten().next().copied();
    let mut last = None;
    for (place, point) in series.points.iter().enumerate() {
        let title = &history.kernel(point.kernel).title;
        let change = series.changes.iter().find(|change| change.at == place);
        let verdict = change.map(|change| history.qualified(key, series, change));
        let line = row(series, title, point, verdict.as_ref(), first, last);
        page.line(verdict.map_or(line.clone(), |verdict| styles.verdict(&verdict, &line)));
        last = point.value.or(last);
    }
    for change in &series.changes {
        let verdict = history.qualified(key, series, change);
        page.hanging(
            &format!("{} ", verdict.letter()),
            &change_words(history, series, change, &verdict),
        );
    }
    if series.changes.is_empty() {
        page.paragraph(0, &no_change(series));
    }
    let has_chain = |change| chain_arguments(history, key, series, change).is_some();
    if series.changes.iter().any(has_chain) {
        let name = sanitize_line(&key.workload);
        let text = format!("marvin history {name} --chain measures what the archive has between");
        page.paragraph(2, &text);
    }
    if let Some(note) = aside_words(history, series) {
        page.hanging("! ", &note);
    }
}

/// States that there is no change, or that none could have been found.
#[must_use]
pub fn no_change(series: &Series) -> String {
    let (seen, needed) = series.kernels_to_tell();
    if seen >= needed {
        return "No change beyond the margin".to_owned();
    }
    let have = if seen == 1 { "has" } else { "have" };
    let few =
        format!("Too few kernels to tell: {seen} {have} a value, a change takes at least {needed}");
    if seen > 0 && series.has_single_foreign_runs() {
        format!(
            "{few}; of one run each, how much boots differ is not known: marvin report A B rates their samples"
        )
    } else {
        few
    }
}

/// Describes how the values of a series were computed.
#[must_use]
pub fn measured_by(series: &Series) -> &'static str {
    match (series.scatters, series.scale) {
        (true, _) => "geometric means of runs",
        (false, Scale::Counted) => "counted",
        (false, Scale::Reported) if series.declared.unit == Unit::TransfersPerOperation.name() => {
            "counted"
        }
        (false, Scale::Reported) => "by the guest's clock",
    }
}

/// Describes why a kernel has no value in a series.
#[must_use]
pub fn why_none(series: &Series, point: &Point) -> String {
    let mut seeds = point.seeds.iter();
    match seeds.find(|seen| !series.declared.agrees(&seen.declared)) {
        Some(seen) if point.absent().is_none() => format!("was in {}", seen.declared),
        _ if point.absent().is_none() && point.is_off(series.scale) => NOT_COUNTED.to_owned(),
        _ => point
            .absent()
            .unwrap_or("measured with other operations")
            .to_owned(),
    }
}

/// Describes results of a series' name with another unit or direction; `None` if there are none.
#[must_use]
pub fn aside_words(history: &History, series: &Series) -> Option<String> {
    let runs: Vec<String> = series
        .aside()
        .map(|(_, seen)| history.run(seen.run).id.short())
        .collect();
    let (_, first) = series.aside().next()?;
    let more = runs.len().saturating_sub(RUNS_NAMED_MAX);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    Some(format!(
        "not one metric: the newest run is in {}, but {} in {} ({}{more}). These are kept, and compared with nothing: measure \
         the kernels again (marvin run KERNEL --force), or import other suites' results again into another home.",
        sanitize_line(&series.declared.to_string()),
        if runs.len() == 1 {
            "1 result is".to_owned()
        } else {
            format!("{} results are", runs.len())
        },
        sanitize_line(&first.declared.to_string()),
        runs[..runs.len().min(RUNS_NAMED_MAX)].join(", "),
    ))
}

fn row(
    series: &Series,
    title: &str,
    point: &Point,
    verdict: Option<&Verdict>,
    first: Option<f64>,
    last: Option<f64>,
) -> String {
    let name = cut_middle(&sanitize_line(title), 26);
    let Some(now) = point.value else {
        let why = why_none(series, point);
        return cut_middle(
            &format!("  {name:<26} {:>12} {}", "-", sanitize_line(&why)),
            WIDTH,
        );
    };
    let change_to = |base: Option<f64>| {
        let difference = base.and_then(|base| difference_percent(series.direction(), base, now));
        difference.map_or("-".to_owned(), |difference| percent(difference, 9))
    };
    let differences: Vec<f64> = point
        .seeds
        .iter()
        .filter_map(|seen| stats::percent_change(now, series.value(seen)?))
        .collect();
    let ends = stats::spread(&differences).filter(|_| differences.len() > 1);
    let ends = ends.map_or_else(String::new, |ends| interval(ends, 14));
    let letter = verdict.map_or(' ', Verdict::letter);
    let first = change_to(first);
    let last = change_to(last);
    let seeds = differences.len();
    let line = format!(
        "{letter} {name:<26} {:>12} {first:>9} {last:>9} {seeds:>5}  {ends}",
        value(now, 12)
    );
    line.trim_end().to_owned()
}

/// Describes the evidence of a change.
#[must_use]
pub fn basis_words(series: &Series, change: &Change) -> String {
    certainty(change.basis).unwrap_or_else(|| {
        series.points[change.at]
            .failure()
            .map_or_else(String::new, |absent| absent.why.to_string())
    })
}

/// Describes the certainty of a change of values; `None` if it has no value.
pub(super) fn certainty(basis: Basis) -> Option<String> {
    match basis {
        Basis::EverySeed { seeds: 1 } => {
            Some("one seed only: it may be the layout of memory".to_owned())
        }
        Basis::EverySeed { seeds } => Some(format!("all {seeds} seeds agree")),
        Basis::Levels { p } => Some(format!("another level of the medians, p = {p:.1e}")),
        Basis::Creep { p } => Some(format!("the level creeps, p = {p:.1e}")),
        Basis::NoBoot | Basis::Fails => None,
    }
}

/// Describes the size of a change: `-4.29%`, `fails`, `does not boot`.
#[must_use]
pub fn change_size(difference_percent: Option<f64>, basis: Basis) -> String {
    match (basis, difference_percent) {
        (Basis::NoBoot, _) => "does not boot".to_owned(),
        (Basis::Fails, _) => "fails".to_owned(),
        (_, Some(difference)) => signed_percent(difference),
        (_, None) => "-".to_owned(),
    }
}

fn change_words(history: &History, series: &Series, change: &Change, verdict: &Verdict) -> String {
    let title = |point: &Point| history.title(point.kernel);
    let gone = change.went_away.map_or_else(String::new, |at| {
        format!("; gone again since {}", title(&series.points[at]))
    });
    let why = if let Verdict::Unclear(why) = verdict {
        format!("; {why}")
    } else {
        String::new()
    };
    format!(
        "{}, {}, between {} and {} ({}){gone}{why}",
        verdict.name(),
        change_size(change.difference_percent, change.basis),
        title(series.before(change)),
        title(&series.points[change.at]),
        basis_words(series, change)
    )
}

/// Returns the lowest and the highest value that a drawing shows: at least two margins apart, so
/// that differences within the margin look level. `None` if there is nothing to draw.
#[must_use]
pub fn range(values: impl Iterator<Item = f64>, margin_percent: f64) -> Option<(f64, f64)> {
    let known: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    let ends = stats::spread(&known)?;
    let least = ends.max.abs().max(ends.min.abs()) * margin_percent / 100.0 * 2.0;
    let lack = ((least.max(f64::MIN_POSITIVE) - (ends.max - ends.min)) / 2.0).max(0.0);
    let low = ends.min - lack;
    let high = ends.max + lack;
    (high - low).is_finite().then_some((low, high))
}

/// Returns a line of bars, one per value, higher is better; a dot for a missing value. Differences
/// within the margin look level.
#[must_use]
pub fn sparkline(values: &[Option<f64>], margin_percent: f64, direction: Direction) -> String {
    // Seven levels, so that one is in the middle: small differences do not cross a border.
    const BARS: [char; 7] = ['▁', '▂', '▃', '▅', '▆', '▇', '█'];
    let Some((low, high)) = range(values.iter().flatten().copied(), margin_percent) else {
        return "·".repeat(values.len());
    };
    let mut line = String::new();
    for value in values {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            line.push('·');
            continue;
        };
        let part = if high > low {
            (value - low) / (high - low)
        } else {
            0.5
        };
        let part = if direction == Direction::LowerIsBetter {
            1.0 - part
        } else {
            part
        };
        line.push(BARS[((part * 6.0).round() as usize).min(6)]);
    }
    line
}

/// Renders alerts in the given order, each with the results of bisections or, if it is open, with a
/// hint for finding its commit; `debian` is the tree of Debian's sources in the data directory.
#[must_use]
pub fn alerts_text(
    history: &History,
    alerts: &[Triaged],
    debian: &str,
    found: &[BisectionRecord],
    styles: &Styles,
) -> String {
    let mut page = Page::default();
    let open = alerts.iter().filter(|triaged| triaged.is_open()).count();
    page.line(styles.strong(&format!("{}, {open} open", count(alerts.len(), "alert"))));
    for triaged in alerts {
        page.blank();
        alert(&mut page, history, triaged, styles);
        let answers = records_of_alert(history, &triaged.alert, found);
        for found in &answers {
            page.hanging("  ", &format!("{}.", found.describe()));
        }
        if triaged.needs_commit() && answers.is_empty() {
            push_bisect_hint(&mut page, bisect_hint(history, &triaged.alert, debian));
        }
    }
    if let Some(note) = mixed_words(history) {
        page.blank();
        page.hanging("! ", &note);
    }
    page.finish()
}

/// Lists the series with unused results because their unit or direction changed; `None` if there
/// are none.
#[must_use]
pub fn mixed_words(history: &History) -> Option<String> {
    let mixed = history
        .series()
        .filter(|(_, series)| series.aside().next().is_some());
    let mixed: Vec<&Key> = mixed.map(|(key, _)| key).collect();
    let all = mixed.len();
    let names: Vec<String> = mixed
        .into_iter()
        .take(NAMED_MAX)
        .map(|key| sanitize_line(&key.workload))
        .collect();
    let more = if all > names.len() {
        format!(" and {} more", all - names.len())
    } else {
        String::new()
    };
    (all > 0).then(|| {
        format!(
            "unit or direction changed between runs of {}{more}: what disagrees with the newest is kept, and compared with \
             nothing. marvin history NAME says which runs.",
            names.join(", ")
        )
    })
}

fn alert(page: &mut Page, history: &History, triaged: &Triaged, styles: &Styles) {
    let Alert {
        name,
        members,
        after,
        at,
        ..
    } = &triaged.alert;
    let (worse, better, gone) = triaged.alert.counts();
    let head = format!(
        "{}: {worse} worse, {better} better, {gone} gone again",
        sanitize_line(name)
    );
    page.line(if triaged.is_open() {
        styles.alarm(&head)
    } else {
        styles.strong(&head)
    });
    let (after, at) = (history.title(*after), history.title(*at));
    let measured = triaged.alert.first_measured(history);
    let measured = measured.map_or_else(String::new, |time| {
        format!(", first measured on {}", day(time))
    });
    page.paragraph(2, &format!("came between {after} and {at}{measured}"));
    let names: Vec<String> = members
        .iter()
        .take(NAMED_MAX)
        .map(|member| sanitize_line(&member.key.workload))
        .collect();
    let width = distinct_width(names.iter().map(String::as_str), 18);
    for (member, name) in members.iter().zip(&names) {
        let machine = history.machine(member.key.machine).id.short();
        let gone = member.gone.map_or_else(String::new, |kernel| {
            format!(", gone again since {}", history.title(kernel))
        });
        let text = format!(
            "{} {:<width$} {:>13}  {machine}{gone}",
            member.verdict.letter(),
            cut_middle(name, width),
            change_size(member.difference_percent, member.basis)
        );
        let is_gone = member.gone.is_some();
        page.line(format!(
            "  {}",
            if is_gone {
                styles.faint(&text)
            } else {
                colour_by_verdict(styles, &member.verdict, &text)
            }
        ));
        if let Some(range) = triaged.alert.own_range(member, history) {
            page.paragraph(4, &range);
        }
        if let Verdict::Unclear(why) = &member.verdict {
            page.paragraph(4, &why.to_string());
        }
    }
    if members.len() > NAMED_MAX {
        page.paragraph(2, &format!("and {} more", members.len() - NAMED_MAX));
    }
    if let Some(decided) = &triaged.decided {
        let since = match triaged.more_since() {
            0 => String::new(),
            more => format!("; {more} more are worse since"),
        };
        page.paragraph(
            2,
            &format!(
                "{} ({}): {}{since}",
                decided.triage,
                decided.decided_unix.date(),
                decided.note
            ),
        );
    }
    if let Some(words) = told_words(triaged, Addresses::Named) {
        page.paragraph(2, &format!("reported: {words}"));
    }
}

/// Adds the hint for finding the commit of an alert.
fn push_bisect_hint(page: &mut Page, hunt: Option<BisectHint>) {
    let commands = match hunt {
        None => return,
        Some(BisectHint::Impossible(why)) => {
            page.hanging("  the commit: ", &format!("{why}."));
            return;
        }
        Some(BisectHint::Command(command)) => {
            page.paragraph(2, "the commit is found by");
            vec![command]
        }
        Some(BisectHint::First { why, commands }) => {
            page.hanging("  the commit: ", &format!("{why}:"));
            commands
        }
    };
    for command in commands {
        for line in command_lines(&command, WIDTH - 6) {
            page.line(format!("    {line}"));
        }
    }
}

fn colour_by_verdict(styles: &Styles, verdict: &Verdict, text: &str) -> String {
    styles.verdict(verdict, text)
}
