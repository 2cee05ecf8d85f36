//! The first page: one line, where to look first, and the table of workloads by machines.

use std::collections::BTreeSet;

use askama::Template;
use history::{
    Alert, Card, Column, Counts, Group, History, KernelIx, Key, MachineIx, Member, Overview, Pair,
    State, Triaged, change_size, mixed_words,
};
use model::{Verdict, WithinRun};

use super::plots::{Spark, spark};
use super::rows::{Chosen, RowRequest, Show, address};
use super::tracks::{TrackRow, Tracks};
use super::trust::{self, Trusted, describe_machines};
use super::{
    Frame, Rendered, compare_path, count, machine_digits, percent, render, series_path, title,
};
use crate::address::slug;
use results::HistorySnapshot;

/// Limit on kernels in the selection.
const KERNELS_MAX: usize = 200;
/// Limit on lines of a card.
const LINES_MAX: usize = 5;
/// Limit on cards of earlier kernels.
const EARLIER_MAX: usize = 6;
/// Limit on names of results without a series.
const UNDIRECTED_MAX: usize = 6;

#[derive(Template)]
#[template(path = "overview.html")]
struct Page {
    frame: Frame,
    target: String,
    base: String,
    counts: Vec<Counted>,
    mean: Option<String>,
    pick: Option<Pick>,
    cards: Vec<Shown>,
    /// What there is to say where no card is.
    calm: Calm,
    /// The newest kernels of each track, unless these are all.
    tracks: Vec<TrackRow>,
    /// How many more there are.
    more_tracks: Option<String>,
    /// Alerts that are open since earlier kernels, and how many more there are.
    earlier: Vec<Shown>,
    more_earlier: Option<String>,
    columns: Vec<Head>,
    /// Whether it is known what some of the workloads stress.
    has_about: bool,
    width: usize,
    listed: String,
    groups: Vec<Rows>,
    steps: Vec<(String, String)>,
    trust: Vec<Trusted>,
    /// The false alarms of this lab.
    lab: String,
    /// Series whose unit or direction changed.
    mixed: Option<String>,
    /// Results without a series.
    undirected: Option<String>,
}

struct Calm {
    class: &'static str,
    text: String,
    /// Whether the alerts say more.
    has_alerts: bool,
}

struct Counted {
    class: &'static str,
    glyph: &'static str,
    text: String,
    /// A link that shows only these.
    href: Option<String>,
    /// Its start and width in the bar, in thousandths.
    part: (usize, usize),
}

struct Pick {
    targets: Vec<(String, bool)>,
    bases: Vec<(String, bool)>,
    shows: Vec<(&'static str, &'static str, bool)>,
    filter: String,
}

struct Shown {
    title: String,
    words: String,
    lines: Vec<Line>,
    more: Option<String>,
    links: Vec<(&'static str, String)>,
}

struct Line {
    name: String,
    href: String,
    size: String,
    machines: String,
    fails: bool,
}

struct Head {
    kind: String,
    id: String,
    summary: String,
    compare: String,
}

struct Rows {
    name: String,
    rows: Vec<Row>,
}

struct Row {
    name: String,
    words: String,
    cells: Vec<Cell>,
    /// What it stresses, if there is room.
    about: Option<&'static str>,
}

struct Cell {
    class: String,
    href: Option<String>,
    title: String,
    text: String,
    glyph: &'static str,
    spark: Option<Spark>,
    /// The same as text, if there is room.
    words: Option<String>,
}

/// Renders the overview of two kernels, beside the newest ones of each track.
pub(crate) fn overview(
    snapshot: &HistorySnapshot,
    seen: &Overview,
    tracks: &Tracks,
    request: &RowRequest,
) -> Rendered {
    let history = &snapshot.history;
    let [target, base] = [seen.target, seen.base].map(|kernel| title(history, kernel).to_owned());
    let chosen = Chosen::choose(seen, request);
    let earlier = &seen.earlier[..seen.earlier.len().min(EARLIER_MAX)];
    let more = seen.earlier.len() - earlier.len();
    let groups: Vec<Rows> = chosen
        .groups
        .iter()
        .map(|group| rows(history, seen, group))
        .collect();
    let page = Page {
        frame: Frame::at(request.depth, format!("{target} against {base}")),
        target,
        base,
        counts: counts(history, seen, request),
        mean: mean(seen),
        pick: (!request.is_static).then(|| pick(history, seen, &chosen, request)),
        cards: seen
            .cards
            .iter()
            .map(|card| shown(history, &snapshot.alerts, seen, card))
            .collect(),
        calm: calm(seen, tracks),
        tracks: tracks.rows(history, seen, request.is_static),
        more_tracks: tracks.more(),
        earlier: earlier
            .iter()
            .map(|number| alert_card(history, seen, &snapshot.alerts[*number]))
            .collect(),
        more_earlier: (more > 0)
            .then(|| format!("{} since earlier kernels", count(more, "more open alert"))),
        columns: seen
            .columns
            .iter()
            .map(|column| head(history, seen, column))
            .collect(),
        width: if seen.columns.len() == 1 {
            4
        } else {
            seen.columns.len() + 1
        },
        listed: chosen.summary(seen, request),
        has_about: groups
            .iter()
            .flat_map(|group| &group.rows)
            .any(|row| row.about.is_some()),
        groups,
        steps: chosen.steps(history, seen, request),
        trust: describe_machines(history, seen),
        lab: trust::lab(history),
        mixed: mixed_words(history),
        undirected: undirected_words(history),
    };
    render(&page)
}

/// Names results without a series because their direction is unknown.
fn undirected_words(history: &History) -> Option<String> {
    let names: Vec<&str> = history.undirected().take(UNDIRECTED_MAX).collect();
    let more = history.undirected().count().saturating_sub(names.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!names.is_empty()).then(|| {
        format!(
            "Not shown, metric direction unknown: {}{more}. To compare them: marvin report RUN RUN --lower NAMES or \
             --higher NAMES.",
            names.join(", ")
        )
    })
}

fn glyph(state: State) -> &'static str {
    match state {
        State::Worse => "▼",
        State::Better => "▲",
        State::Same => "=",
        State::Unclear => "?",
        State::Unrated => "○",
        State::WithinRun(WithinRun::Better) => "b",
        State::WithinRun(WithinRun::Worse) => "w",
        State::WithinRun(WithinRun::Same) => "~",
        State::Failed => "✖",
        State::Missing => "·",
    }
}

impl Calm {
    fn without_alerts(class: &'static str, text: String) -> Self {
        Self {
            class,
            text,
            has_alerts: false,
        }
    }
}

/// Returns what a page without cards may claim: that there is no regression only where everything
/// was compared, and clear, here and in the other tracks.
fn calm(seen: &Overview, tracks: &Tracks) -> Calm {
    let Counts {
        worse,
        better,
        same,
        unclear,
        unrated,
        failed,
        missing: _,
    } = seen.counts;
    let unknown = unclear + unrated;
    let (worse_elsewhere, unknown_elsewhere) = tracks.elsewhere(seen);
    if worse + failed > 0 {
        let worse = Some(format!("{worse} worse")).filter(|_| worse > 0);
        let failed = Some(format!("{failed} failed")).filter(|_| failed > 0);
        let what = worse
            .into_iter()
            .chain(failed)
            .collect::<Vec<_>>()
            .join(", ");
        Calm {
            class: "worse",
            text: format!("{what}: no open alert is about these."),
            has_alerts: true,
        }
    } else if better + same + unknown == 0 {
        Calm::without_alerts(
            "warning",
            "No workload was measured on both kernels: there is nothing to compare.".to_owned(),
        )
    } else if unknown > 0 {
        Calm::without_alerts(
            "",
            format!(
                "No workload is shown to be worse, but {unknown} of {} have no verdict.",
                better + same + unknown
            ),
        )
    } else if !seen.earlier.is_empty() {
        let text =
            "Nothing is worse than on the baseline, but regressions since earlier kernels stay.";
        Calm::without_alerts("worse", text.to_owned())
    } else if worse_elsewhere + unknown_elsewhere > 0 {
        Calm::without_alerts(
            "",
            format!(
                "Nothing is worse between these kernels. In the table above: {worse_elsewhere} results of \
                 other kernels are worse or failed, {unknown_elsewhere} have no verdict."
            ),
        )
    } else {
        Calm::without_alerts(
            "calm",
            "No regression between these kernels in the measured workloads.".to_owned(),
        )
    }
}

fn counts(history: &History, seen: &Overview, request: &RowRequest) -> Vec<Counted> {
    let Counts {
        worse,
        better,
        same,
        unclear,
        unrated,
        failed,
        missing,
    } = seen.counts;
    let all = (worse + better + same + unclear + unrated + failed + missing).max(1);
    let mut before = 0;
    [
        (State::Worse, worse, "worse"),
        (State::Failed, failed, "failed"),
        (State::Unclear, unclear, "unclear"),
        (State::Unrated, unrated, "unrated"),
        (State::Missing, missing, "not measured"),
        (State::Same, same, "same"),
        (State::Better, better, "better"),
    ]
    .into_iter()
    .filter(|(state, number, _)| {
        *number > 0 || matches!(state, State::Worse | State::Same | State::Better)
    })
    .map(|(state, number, word)| {
        let from = before * 1000 / all;
        before += number;
        let show = Some(Show::Only(state))
            .filter(|show| Show::CHOICES.contains(show) && number > 0 && !request.is_static);
        Counted {
            class: if number > 0 { state.name() } else { "none" },
            glyph: glyph(state),
            text: format!("{number} {word}"),
            href: show.map(|show| address(history, seen, show)),
            part: (from, before * 1000 / all - from),
        }
    })
    .collect()
}

fn mean(seen: &Overview) -> Option<String> {
    let mean = seen.mean?;
    let ends = mean.seeds.map_or_else(String::new, |ends| {
        match (format!("{:.4}", ends.min), format!("{:.4}", ends.max)) {
            (low, high) if low == high => " (the same for every seed)".to_owned(),
            (low, high) => format!(" (per seed {low} to {high})"),
        }
    });
    let over = count(mean.cells, "result");
    Some(format!(
        "Geometric mean of the ratios {:.4}{ends}, over {over}; above 1 is better.",
        mean.ratio
    ))
}

/// Returns the newest kernels, and which of them is chosen.
fn newest_kernels(history: &History, chosen: KernelIx) -> Vec<(String, bool)> {
    let newest = history.order().iter().rev().take(KERNELS_MAX);
    newest
        .map(|kernel| (title(history, *kernel).to_owned(), *kernel == chosen))
        .collect()
}

fn pick(history: &History, seen: &Overview, chosen: &Chosen, request: &RowRequest) -> Pick {
    Pick {
        targets: newest_kernels(history, seen.target),
        bases: newest_kernels(history, seen.base),
        shows: Show::CHOICES
            .map(|show| (show.name(), show.title(), show == chosen.show))
            .to_vec(),
        filter: request.filter.clone(),
    }
}

fn shown(history: &History, alerts: &[Triaged], seen: &Overview, card: &Card) -> Shown {
    match card {
        Card::Alert(number) => alert_card(history, seen, &alerts[*number]),
        Card::Rest(rest) => rest_card(history, seen, rest),
    }
}

fn alert_card(history: &History, seen: &Overview, triaged: &Triaged) -> Shown {
    let alert = &triaged.alert;
    let lines = lines(history, seen, alert);
    let better: BTreeSet<&str> = alert
        .members
        .iter()
        .filter(|member| member.verdict == Verdict::Better && member.gone.is_none())
        .map(|member| &*member.key.workload)
        .collect();
    let how = match lines.iter().filter(|line| line.fails).count() {
        0 => "worse".to_owned(),
        failing if failing == lines.len() => "now failing".to_owned(),
        failing => format!("worse, {failing} of them now failing"),
    };
    let also = if better.is_empty() {
        String::new()
    } else {
        format!(", {} better at the same time", better.len())
    };
    let mut words = format!(
        "{} {how}{also}; not in {}.",
        count(lines.len(), "workload"),
        title(history, alert.after)
    );
    if let Some(decided) = &triaged.decided {
        words.extend([" Triage: ", decided.triage.name(), "."]);
    }
    let boots = if alert.is_boot() {
        "Does not boot since"
    } else {
        "First seen in"
    };
    let mut links = vec![(
        "All of this alert",
        format!("alerts.html#{}", slug(&alert.name)),
    )];
    if let Some(worst) = alert.worse().next() {
        let path = compare_path(history, alert.after, alert.at, worst.key.machine);
        links.push(("Compare both kernels", path));
    }
    Shown {
        title: format!("{boots} {}", title(history, alert.at)),
        words,
        more: lines
            .len()
            .checked_sub(LINES_MAX)
            .filter(|more| *more > 0)
            .map(|more| format!("and {more} more")),
        lines: lines.into_iter().take(LINES_MAX).collect(),
        links,
    }
}

/// The lines of a card: one for each workload, worst first, with the machines that agree.
fn lines(history: &History, seen: &Overview, alert: &Alert) -> Vec<Line> {
    let mut found: Vec<(&Member, usize)> = Vec::new();
    for member in alert.worse() {
        match found
            .iter_mut()
            .find(|(known, _)| known.key.workload == member.key.workload)
        {
            Some((_, machines)) => *machines += 1,
            None => found.push((member, 1)),
        }
    }
    let columns = seen.columns.len();
    let lines = found.into_iter().map(|(worst, machines)| Line {
        name: worst.key.workload.to_string(),
        href: series_path(history, &worst.key),
        size: change_size(worst.difference_percent, worst.basis),
        fails: worst.difference_percent.is_none(),
        machines: if columns > 1 {
            format!("{machines} of {columns} machines")
        } else {
            String::new()
        },
    });
    lines.collect()
}

fn rest_card(
    history: &History,
    seen: &Overview,
    rest: &[(MachineIx, std::sync::Arc<str>, Pair)],
) -> Shown {
    let track = &history.kernel(seen.target).track;
    let lines = rest
        .iter()
        .take(LINES_MAX)
        .map(|(machine, workload, pair)| {
            let key = Key {
                workload: workload.clone(),
                machine: *machine,
                track: track.as_str().into(),
            };
            let on = if seen.columns.len() > 1 {
                format!("on {}", &machine_digits(history, *machine)[..6])
            } else {
                String::new()
            };
            Line {
                name: workload.to_string(),
                href: series_path(history, &key),
                size: percent(pair.compared.difference_percent.unwrap_or_default()),
                machines: on,
                fails: false,
            }
        });
    Shown {
        title: "Worse, first kernel unknown".to_owned(),
        words: format!(
            "{} in {} against {}.",
            rest.len(),
            title(history, seen.target),
            title(history, seen.base)
        ),
        lines: lines.collect(),
        more: (rest.len() > LINES_MAX).then(|| format!("and {} more", rest.len() - LINES_MAX)),
        links: vec![(
            "Full comparison",
            compare_path(history, seen.base, seen.target, rest[0].0),
        )],
    }
}

fn head(history: &History, seen: &Overview, column: &Column) -> Head {
    let known = history.machine(column.main);
    let more = column.machines.len() - 1;
    let equipped = if more > 0 {
        format!("; with {}", count(more, "other guest config"))
    } else {
        String::new()
    };
    Head {
        kind: known.kind.to_string(),
        id: machine_digits(history, column.main),
        summary: format!("{}{equipped}", known.summary),
        compare: compare_path(history, seen.base, seen.target, column.main),
    }
}

fn rows(history: &History, seen: &Overview, group: &Group) -> Rows {
    let track: std::sync::Arc<str> = history.kernel(seen.target).track.as_str().into();
    let declared = if seen.columns.len() == 1 {
        model::workloads()
    } else {
        Vec::new()
    };
    let rows = group.rows.iter().map(|row| Row {
        about: declared
            .iter()
            .find(|known| *known.name == *row.workload)
            .map(|known| &*known.stresses),
        name: row.workload.to_string(),
        words: format!("{} {}", row.workload.to_lowercase(), group.name),
        cells: row
            .cells
            .iter()
            .map(|found| {
                let key = Key {
                    workload: row.workload.clone(),
                    machine: found.machine,
                    track: track.clone(),
                };
                cell(history, seen, &key, &found.pair)
            })
            .collect(),
    });
    Rows {
        name: group.name.clone(),
        rows: rows.collect(),
    }
}

fn cell(history: &History, seen: &Overview, key: &Key, pair: &Pair) -> Cell {
    let series = history.series_of(&key.workload, key.machine, seen.target);
    // The largest differences, five margins and more, get a darker colour.
    let is_deep = pair
        .compared
        .difference_percent
        .is_some_and(|d| d.abs() > 5.0 * series.map_or(1.0, |s| s.metric.margin_percent));
    Cell {
        class: format!(
            "{}{}",
            pair.state.tone(),
            if is_deep { " deep" } else { "" }
        ),
        href: series.map(|_| series_path(history, key)),
        title: pair.describe(),
        text: pair
            .compared
            .ratio
            .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        glyph: glyph(pair.state),
        spark: series.and_then(spark),
        words: (seen.columns.len() == 1).then(|| pair.describe()),
    }
}
