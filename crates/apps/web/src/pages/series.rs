//! A series: plot, changes and every value.

use askama::Template;
use history::{
    Change, History, KernelIx, Key, Series, Triaged, aside_words, basis_words, change_size,
    measured_by, no_change, why_none,
};
use model::{ReleaseLine, Verdict};

use super::plots::{Plot, number, plot};
use super::{
    Frame, Rendered, compare_path, machine_digits, percent, profile_command, render, title,
    verdict_class, verdict_glyph,
};
use crate::address::slug;

#[derive(Template)]
#[template(path = "series.html")]
struct Page {
    frame: Frame,
    list: Vec<One>,
}

struct One {
    name: String,
    track: String,
    machine: String,
    about: String,
    label: String,
    unit: String,
    /// Values under this name in another unit.
    aside: Option<String>,
    plot: Option<Plot>,
    changes: Vec<Changed>,
    /// The text if there are none.
    no_change: String,
    rows: Vec<Row>,
}

struct Changed {
    class: &'static str,
    glyph: &'static str,
    words: String,
    rest: String,
    compare: Option<String>,
    alert: Option<String>,
    /// Why, in sentences, if the store tells.
    explained: Vec<String>,
    /// The command that attributes a change to functions; `None` for failures, which have no
    /// profile.
    command: Option<String>,
}

struct Row {
    class: &'static str,
    mark: &'static str,
    kernel: String,
    value: String,
    difference: String,
    seeds: usize,
    runs: Vec<(String, String)>,
    note: String,
}

/// Limit on runs linked from a row.
const RUNS_MAX: usize = 8;

/// Explains why a workload differs between two kernels of a history, in sentences.
pub(crate) type Explain<'a> = dyn Fn(KernelIx, KernelIx, &str) -> Vec<String> + 'a;

/// Renders series over the kernels of a line.
pub(crate) fn series(
    frame: Frame,
    history: &History,
    alerts: &[Triaged],
    line: ReleaseLine,
    keys: &[Key],
    explain: &Explain<'_>,
) -> Rendered {
    let found = keys
        .iter()
        .filter_map(|key| Some((key, history.series().find(|(known, _)| *known == key)?.1)));
    let list = found
        .map(|(key, series)| {
            one(
                history,
                alerts,
                key,
                &series.of_line(line, |kernel| &history.kernel(kernel).release),
                frame.is_alone,
                explain,
            )
        })
        .collect();
    render(&Page { frame, list })
}

fn one(
    history: &History,
    alerts: &[Triaged],
    key: &Key,
    series: &Series,
    is_alone: bool,
    explain: &Explain<'_>,
) -> One {
    let machine = history.machine(key.machine);
    let unit = series
        .scale
        .unit(&series.metric, machine.capabilities().clock);
    let declared = model::find_workload(&key.workload);
    let stresses = declared.map_or_else(String::new, |workload| {
        format!(
            "{}; one operation: {}. ",
            workload.stresses, workload.operation
        )
    });
    One {
        name: key.workload.to_string(),
        track: key.track.to_string(),
        machine: format!("{} {}", machine.kind, machine_digits(history, key.machine)),
        about: format!(
            "{stresses}{}: {}, {unit}, {}; differences up to {}% count as same.",
            series.metric.name,
            measured_by(series),
            series.metric.direction,
            series.metric.margin_percent
        ),
        label: format!(
            "{} over {}, {} changes",
            key.workload,
            super::count(series.points.len(), "kernel"),
            series.changes.len()
        ),
        unit: unit.to_string(),
        aside: aside_words(history, series),
        plot: plot(history, series),
        changes: series
            .changes
            .iter()
            .map(|change| Changed {
                explained: explain_change(key, series, change, explain),
                ..changed(history, alerts, key, series, change, is_alone)
            })
            .collect(),
        no_change: no_change(series),
        rows: rows(history, key, series, is_alone),
    }
}

/// Explains a change in sentences; none for a failure, which has no counts.
fn explain_change(
    key: &Key,
    series: &Series,
    change: &Change,
    explain: &Explain<'_>,
) -> Vec<String> {
    if change.levels.is_none() {
        return Vec::new();
    }
    let before = series.before(change).kernel;
    let after = series.points[change.at].kernel;
    let name = format!("{}: ", key.workload);
    explain(before, after, &key.workload)
        .iter()
        .map(|text| text.strip_prefix(&name).unwrap_or(text).to_owned())
        .collect()
}

fn changed(
    history: &History,
    alerts: &[Triaged],
    key: &Key,
    series: &Series,
    change: &Change,
    is_alone: bool,
) -> Changed {
    let before = series.before(change).kernel;
    let at = series.points[change.at].kernel;
    let gone = change.went_away.map_or_else(String::new, |point| {
        format!(
            "; gone again since {}",
            title(history, series.points[point].kernel)
        )
    });
    let alert = alerts.iter().map(|triaged| &triaged.alert).find(|alert| {
        alert.members.iter().any(|member| member.key == *key)
            && history.rank(alert.at) <= history.rank(at)
            && history.rank(alert.after) >= history.rank(before)
    });
    let verdict = history.qualified(key, series, change);
    let why = if let Verdict::Unclear(why) = &verdict {
        format!("; {why}")
    } else {
        String::new()
    };
    Changed {
        class: verdict_class(&verdict),
        glyph: verdict_glyph(&verdict),
        words: format!(
            "{} since {}",
            change_size(change.difference_percent, change.basis),
            title(history, at)
        ),
        rest: format!(
            "; not in {} ({}){gone}{why}.",
            title(history, before),
            basis_words(series, change)
        ),
        compare: (!is_alone).then(|| compare_path(history, before, at, key.machine)),
        alert: alert.map(|alert| format!("alerts.html#{}", slug(&alert.name))),
        explained: Vec::new(),
        command: change
            .levels
            .map(|_| profile_command(history, before, at, &key.workload)),
    }
}

fn rows(history: &History, key: &Key, series: &Series, is_alone: bool) -> Vec<Row> {
    let mut last: Option<f64> = None;
    let mut rows = Vec::new();
    for (place, point) in series.points.iter().enumerate() {
        let change = series.changes.iter().find(|change| change.at == place);
        let verdict = change.map(|change| history.qualified(key, series, change));
        let difference = last
            .zip(point.value)
            .and_then(|(last, now)| compare::difference_percent(series.direction(), last, now));
        let runs = point.seeds.iter().take(RUNS_MAX).map(|seen| {
            let id = &history.run(seen.run).id;
            (
                id.hex().chars().take(6).collect(),
                format!("r/{}/index.html", id.hex()),
            )
        });
        rows.push(Row {
            class: verdict.as_ref().map_or("", verdict_class),
            mark: verdict.as_ref().map_or("", verdict_glyph),
            kernel: history.kernel(point.kernel).title.clone(),
            value: point.value.map_or_else(|| "-".to_owned(), number),
            difference: difference.map(percent).unwrap_or_default(),
            seeds: point
                .seeds
                .iter()
                .filter(|seen| series.value(seen).is_some())
                .count(),
            runs: if is_alone { Vec::new() } else { runs.collect() },
            note: if point.value.is_none() {
                why_none(series, point)
            } else {
                String::new()
            },
        });
        last = point.value.or(last);
    }
    rows
}
