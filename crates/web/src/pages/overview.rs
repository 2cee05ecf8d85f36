//! The first screen: one line, where to look first, and the table of workloads by machines.

use askama::Template;
use report::history::{Card, Counts, Group, History, Key, Overview, Pair, State, Triaged};

use super::draw::{Spark, spark};
use super::{Frame, Rendered, compare_path, count, finished, machine_digits, percent, series_path};
use crate::address::{encoded, slug};
use crate::source::Snapshot;

/// The most cells on a page: it is to stay below 100 kB.
const CELLS_MAX: usize = 300;
/// The most kernels to choose from.
const KERNELS_MAX: usize = 200;
/// The most lines of a card.
const LINES_MAX: usize = 5;

/// Which part of the overview is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// Only rows in which something is not the same; none leaves it to the page.
    pub(crate) only_changed: Option<bool>,
    /// Only rows with this in their name or subsystem.
    pub(crate) filter: String,
    /// Which of several pages, from 0.
    pub(crate) page: usize,
    /// Whether one can ask again.
    pub(crate) is_static: bool,
}

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
    machines: Vec<Column>,
    width: usize,
    listed: String,
    groups: Vec<Rows>,
    steps: Vec<(String, String)>,
    trust: Vec<String>,
}

struct Counted {
    class: &'static str,
    glyph: &'static str,
    text: String,
}

struct Pick {
    targets: Vec<(String, String, bool)>,
    bases: Vec<(String, String, bool)>,
    only_changed: bool,
    filter: String,
}

struct Shown {
    title: String,
    words: String,
    lines: Vec<Line>,
    more: Option<String>,
    links: Vec<(String, String)>,
}

struct Line {
    name: String,
    href: String,
    class: &'static str,
    percent: String,
}

struct Column {
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
}

struct Cell {
    class: String,
    href: Option<String>,
    title: String,
    text: String,
    glyph: &'static str,
    spark: Option<Spark>,
    /// The same in words, where there is room.
    words: Option<String>,
}

/// Renders the overview of two kernels.
pub(crate) fn overview(snapshot: &Snapshot, seen: &Overview, asked: &Asked) -> Rendered {
    let history = &snapshot.history;
    let title = |kernel: usize| history.kernel(kernel).title.clone();
    let chosen = Chosen::of(seen, asked);
    let page = Page {
        frame: Frame::at(0, format!("{} against {}", title(seen.target), title(seen.base))),
        target: title(seen.target),
        base: title(seen.base),
        counts: counts(&seen.counts),
        mean: mean(seen),
        pick: (!asked.is_static).then(|| pick(history, seen, (&chosen, asked))),
        cards: seen.cards.iter().map(|card| shown(history, &snapshot.alerts, seen, card)).collect(),
        machines: seen.machines.iter().map(|machine| column(history, seen, *machine)).collect(),
        width: seen.machines.len() + 2,
        listed: chosen.words(asked),
        groups: chosen.groups.iter().map(|group| rows(history, seen, group)).collect(),
        steps: if asked.is_static { Vec::new() } else { chosen.steps(history, seen, asked) },
        trust: trust(history, seen),
    };
    finished(&page)
}

/// The rows that fit what was asked and a page.
struct Chosen {
    groups: Vec<Group>,
    only_changed: bool,
    shown: usize,
    found: usize,
    all: usize,
    pages: usize,
}

impl Chosen {
    fn of(seen: &Overview, asked: &Asked) -> Self {
        let all: usize = seen.groups.iter().map(|group| group.rows.len()).sum();
        let per_page = (CELLS_MAX / seen.machines.len().max(1)).max(1);
        let only_changed = asked.only_changed.unwrap_or(all > per_page);
        let filter = asked.filter.to_lowercase();
        let is_news = |cell: &Pair| !matches!(cell.state, State::Same | State::Missing);
        let fits = |group: &Group, row: &report::history::Row| {
            (!only_changed || row.cells.iter().any(is_news))
                && (filter.is_empty() || row.workload.to_lowercase().contains(&filter) || group.name.contains(&filter))
        };
        let mut found = 0;
        let mut groups: Vec<Group> = Vec::new();
        let first = asked.page.saturating_mul(per_page);
        for group in &seen.groups {
            let mut rows = Vec::new();
            for row in group.rows.iter().filter(|row| fits(group, row)) {
                if (first..first + per_page).contains(&found) {
                    rows.push(row.clone());
                }
                found += 1;
            }
            if !rows.is_empty() {
                groups.push(Group { name: group.name.clone(), rows });
            }
        }
        let shown = groups.iter().map(|group| group.rows.len()).sum();
        Self { groups, only_changed, shown, found, all, pages: found.div_ceil(per_page) }
    }

    fn words(&self, asked: &Asked) -> String {
        let rest = if self.shown == self.found {
            String::new()
        } else {
            format!(", page {} of {}", asked.page + 1, self.pages)
        };
        match (self.only_changed, asked.filter.is_empty()) {
            (false, true) => format!("{} in all{rest}.", count(self.all, "workload")),
            (true, true) => {
                format!("{} of {} are not the same everywhere{rest}.", self.found, count(self.all, "workload"))
            }
            _ => format!("{} of {} fit{rest}.", self.found, count(self.all, "workload")),
        }
    }

    /// Links to the page before and the page after.
    fn steps(&self, history: &History, seen: &Overview, asked: &Asked) -> Vec<(String, String)> {
        let show = if self.only_changed { "changed" } else { "all" };
        let name = |kernel: usize| encoded(&history.kernel(kernel).title);
        let to = |page: usize| {
            format!(
                "index.html?base={}&target={}&show={show}&filter={}&page={}",
                name(seen.base),
                name(seen.target),
                encoded(&asked.filter),
                page + 1
            )
        };
        let before = asked.page.checked_sub(1).map(|page| ("previous rows".to_owned(), to(page)));
        let after = (asked.page + 1 < self.pages).then(|| ("next rows".to_owned(), to(asked.page + 1)));
        before.into_iter().chain(after).collect()
    }
}

fn glyph(state: State) -> &'static str {
    match state {
        State::Worse => "▼",
        State::Better => "▲",
        State::Same => "=",
        State::Unclear => "?",
        State::Failed => "✖",
        State::Missing => "·",
    }
}

fn counts(counts: &Counts) -> Vec<Counted> {
    [
        (State::Worse, counts.worse, "worse"),
        (State::Better, counts.better, "better"),
        (State::Same, counts.same, "same"),
        (State::Unclear, counts.unclear, "unclear"),
        (State::Failed, counts.failed, "failed"),
        (State::Missing, counts.missing, "not measured"),
    ]
    .into_iter()
    .filter(|(state, number, _)| *number > 0 || *state <= State::Same)
    .map(|(state, number, word)| Counted {
        class: if number > 0 { state.word() } else { "faint" },
        glyph: glyph(state),
        text: format!("{number} {word}"),
    })
    .collect()
}

fn mean(seen: &Overview) -> Option<String> {
    let mean = seen.mean?;
    let ends =
        mean.seeds.map_or_else(String::new, |ends| format!(" (from seed to seed {:.4} to {:.4})", ends.min, ends.max));
    let way = if mean.ratio >= 1.0 { "better" } else { "worse" };
    let size = (mean.ratio - 1.0).abs() * 100.0;
    Some(format!(
        "Geometric mean {:.4}{ends}, {size:.2}% {way}, over all {} that have a ratio.",
        mean.ratio,
        count(mean.cells, "cell")
    ))
}

fn pick(history: &History, seen: &Overview, (chosen, asked): (&Chosen, &Asked)) -> Pick {
    let kernels = |of: usize| {
        history
            .order()
            .iter()
            .rev()
            .take(KERNELS_MAX)
            .map(|kernel| {
                let title = history.kernel(*kernel).title.clone();
                (title.clone(), title, *kernel == of)
            })
            .collect()
    };
    Pick {
        targets: kernels(seen.target),
        bases: kernels(seen.base),
        only_changed: chosen.only_changed,
        filter: asked.filter.clone(),
    }
}

fn shown(history: &History, alerts: &[Triaged], seen: &Overview, card: &Card) -> Shown {
    let title = |kernel: usize| history.kernel(kernel).title.as_str();
    let several = seen.machines.len() > 1;
    let line = |key: Key, difference: f64| Line {
        name: if several {
            format!("{} on {}", key.workload, &machine_digits(history, key.machine)[..6])
        } else {
            key.workload.to_string()
        },
        href: series_path(history, &key),
        class: "worse",
        percent: percent(difference),
    };
    match card {
        Card::Alert(number) => {
            let triaged = &alerts[*number];
            let alert = &triaged.alert;
            let (worse, better, _) = alert.counts();
            let lines = alert.worse().take(LINES_MAX).map(|m| line(m.key.clone(), m.difference_percent)).collect();
            let machine = alert.worse().next().map_or(0, |member| member.key.machine);
            let mut words = format!("{worse} worse, {better} better since {}.", title(alert.after));
            if let Some(decided) = &triaged.decided {
                words.extend([" Triage: ", decided.triage.word(), "."]);
            }
            Shown {
                title: format!("came with {}", title(alert.at)),
                words,
                lines,
                more: (worse > LINES_MAX).then(|| format!("and {} more", worse - LINES_MAX)),
                links: vec![
                    ("all of it".to_owned(), format!("alerts.html#{}", slug(&alert.name))),
                    ("the two kernels".to_owned(), compare_path(history, (alert.after, alert.at), machine)),
                ],
            }
        }
        Card::Rest(rest) => {
            let track = &history.kernel(seen.target).track;
            let lines = rest.iter().take(LINES_MAX).map(|(machine, workload, pair)| {
                let key = Key { workload: workload.clone(), machine: *machine, track: track.as_str().into() };
                line(key, pair.difference_percent.unwrap_or_default())
            });
            Shown {
                title: "worse, and no series shows since when".to_owned(),
                words: format!("{} in {} against {}.", rest.len(), title(seen.target), title(seen.base)),
                lines: lines.collect(),
                more: (rest.len() > LINES_MAX).then(|| format!("and {} more", rest.len() - LINES_MAX)),
                links: vec![("full comparison".to_owned(), compare_path(history, (seen.base, seen.target), rest[0].0))],
            }
        }
    }
}

fn column(history: &History, seen: &Overview, machine: usize) -> Column {
    let known = &history.machines()[machine];
    Column {
        kind: known.kind.to_string(),
        id: machine_digits(history, machine),
        summary: known.summary.clone(),
        compare: compare_path(history, (seen.base, seen.target), machine),
    }
}

fn rows(history: &History, seen: &Overview, group: &Group) -> Rows {
    let track: std::sync::Arc<str> = history.kernel(seen.target).track.as_str().into();
    let row = |row: &report::history::Row| Row {
        name: row.workload.to_string(),
        words: format!("{} {}", row.workload.to_lowercase(), group.name),
        cells: row
            .cells
            .iter()
            .zip(&seen.machines)
            .map(|(pair, machine)| {
                let key = Key { workload: row.workload.clone(), machine: *machine, track: track.clone() };
                cell(history, seen, (&key, pair))
            })
            .collect(),
    };
    Rows { name: group.name.clone(), rows: group.rows.iter().map(row).collect() }
}

fn cell(history: &History, seen: &Overview, (key, pair): (&Key, &Pair)) -> Cell {
    let series = history.series_of(&key.workload, key.machine, seen.target);
    // The largest differences are drawn deeper: five margins and more.
    let is_deep =
        pair.difference_percent.is_some_and(|d| d.abs() > 5.0 * series.map_or(1.0, |s| s.metric.margin_percent));
    Cell {
        class: format!("{}{}", pair.state.word(), if is_deep { " deep" } else { "" }),
        href: series.map(|_| series_path(history, key)),
        title: pair.words(),
        text: pair.ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
        glyph: glyph(pair.state),
        spark: series.and_then(spark),
        words: (seen.machines.len() == 1).then(|| pair.words()),
    }
}

/// Says what the lab knows of its own exactness.
fn trust(history: &History, seen: &Overview) -> Vec<String> {
    let mut lines = Vec::new();
    for machine in &seen.machines {
        let repeats = history.repeats()[*machine];
        let name = format!("{} {}", history.machines()[*machine].kind, machine_digits(history, *machine));
        lines.push(if repeats.again == 0 {
            format!("{name}: nothing was measured twice yet; marvin run KERNEL --force does, and shows here whether it agrees.")
        } else {
            format!(
                "{name}: {} measured again with the same build and seed, {} of them equal in every sample, to the last \
                 nanosecond of guest time.",
                count(repeats.again, "result"),
                repeats.agree
            )
        });
    }
    let cells = || seen.groups.iter().flat_map(|group| &group.rows).flat_map(|row| &row.cells);
    let mut widths: Vec<f64> = cells()
        .filter(|cell| cell.ratios.len() > 1)
        .filter_map(|cell| cell.spread_percent)
        .map(|s| s.max - s.min)
        .collect();
    widths.sort_by(f64::total_cmp);
    if let (Some(middle), Some(widest)) = (widths.get(widths.len() / 2), widths.last()) {
        lines.push(format!(
            "Seeds disturb layout and timing on purpose: differences of one cell lie {middle:.2} percentage points apart in \
             the middle case, {widest:.2} at most."
        ));
    }
    let single = cells().filter(|cell| cell.ratios.len() == 1).count();
    if single > 0 {
        lines.push(format!(
            "{} measured with one seed only: what depends on layout cannot be seen there.",
            count(single, "cell")
        ));
    }
    lines
}
