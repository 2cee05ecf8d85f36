//! All measurements of two kernels: counts, one mean, a list of places to look at first, and a
//! table of workloads by machines.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use compare::{Q_MAX, SideComparison, test_of};
use stats::Spread;

use super::gather::History;
use super::index::{KernelIx, KernelPair, MachineIx};
use super::pair::{Pair, Ruler, State};
use super::series::Key;
use super::triaged::Triaged;

/// The longest list of places to look at first.
const CARDS_MAX: usize = 10;

/// The number of cells in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Worse for all seeds.
    pub worse: usize,
    /// Better for all seeds.
    pub better: usize,
    /// Within the margin for all seeds.
    pub same: usize,
    /// Pairs without a verdict.
    pub unclear: usize,
    /// One boot of each kernel, and unknown noise between boots.
    pub unrated: usize,
    /// A kernel failed or lacks support.
    pub failed: usize,
    /// Not measured on one of the kernels.
    pub missing: usize,
}

impl Counts {
    fn add(&mut self, state: State) {
        *match state {
            State::Worse => &mut self.worse,
            State::Better => &mut self.better,
            State::Same => &mut self.same,
            State::Unclear | State::WithinRun(_) => &mut self.unclear,
            State::Unrated => &mut self.unrated,
            State::Failed => &mut self.failed,
            State::Missing => &mut self.missing,
        } += 1;
    }
}

/// The geometric mean over all cells that have a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    /// Above one is better.
    pub ratio: f64,
    /// The number of cells.
    pub cells: usize,
    /// The smallest and the largest mean of one seed, if all cells have several seeds in common.
    pub seeds: Option<Spread>,
}

/// One workload on all machines.
#[derive(Debug, Clone, PartialEq)]
pub struct OverviewRow {
    /// The workload of all cells.
    pub workload: Arc<str>,
    /// One for each column of the overview.
    pub cells: Vec<OverviewCell>,
}

/// One workload on one machine.
#[derive(Debug, Clone, PartialEq)]
pub struct OverviewCell {
    /// The machine of the column that has the workload's guest config.
    pub machine: MachineIx,
    /// How the two kernels compare there.
    pub pair: Pair,
}

/// A column: a machine with all its guest configs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The one with the most series, which names the column.
    pub main: MachineIx,
    /// Each of them that measured one of the kernels, in the order of their first runs.
    pub machines: Vec<MachineIx>,
}

/// The workloads of one subsystem.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The subsystem that the workloads exercise.
    pub name: String,
    /// Its rows, by name.
    pub rows: Vec<OverviewRow>,
}

/// A place to look at first.
#[derive(Debug, Clone, PartialEq)]
pub enum Card {
    /// An alert, by its index.
    Alert(usize),
    /// Regressions between the two kernels without a change point in any series: machines and
    /// workloads, worst first.
    Rest(Vec<(MachineIx, Arc<str>, Pair)>),
}

/// All measurements of two kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct Overview {
    /// The baseline.
    pub base: KernelIx,
    /// The kernel that is compared with the baseline.
    pub target: KernelIx,
    /// The columns: machines that measured one of them.
    pub columns: Vec<Column>,
    /// The rows, by subsystem.
    pub groups: Vec<Group>,
    /// The number of cells in each state.
    pub counts: Counts,
    /// One number for all.
    pub mean: Option<Mean>,
    /// Where to look first, the most important first.
    pub cards: Vec<Card>,
    /// The open and confirmed alerts of the same track since earlier kernels, by number, newest
    /// first: a regression stays news until it is gone or triaged as something else, even if the
    /// last two kernels are the same.
    pub earlier: Vec<usize>,
}

impl Overview {
    /// Counts the cells of machines, each the first of those that differ only by the guest config.
    #[must_use]
    pub fn counts_on(&self, history: &History, machines: &[MachineIx]) -> Counts {
        let mut counts = Counts::default();
        for row in self.groups.iter().flat_map(|group| &group.rows) {
            for (column, cell) in self.columns.iter().zip(&row.cells) {
                if machines.contains(&history.first_kin(column.main)) {
                    counts.add(cell.pair.state);
                }
            }
        }
        counts
    }
}

/// Compares two kernels, with the open and confirmed alerts between them.
#[must_use]
pub fn overview(history: &History, kernels: KernelPair, alerts: &[Triaged]) -> Overview {
    let columns = columns(history, kernels);
    let mut groups: BTreeMap<String, Vec<OverviewRow>> = BTreeMap::new();
    let mut counts = Counts::default();
    for workload in history.workloads() {
        let cells: Vec<OverviewCell> = columns
            .iter()
            .map(|column| cell(history, &workload, column, kernels))
            .collect();
        if cells.iter().all(|cell| cell.pair.state == State::Missing) {
            continue;
        }
        let subsystem = model::subsystem_of(&workload).to_owned();
        groups
            .entry(subsystem)
            .or_default()
            .push(OverviewRow { workload, cells });
    }
    let mut groups: Vec<Group> = groups
        .into_iter()
        .map(|(name, rows)| Group { name, rows })
        .collect();
    weigh(&mut groups);
    doubt(history, &mut groups, kernels);
    let pairs: Vec<&Pair> = groups
        .iter()
        .flat_map(|group| &group.rows)
        .flat_map(|row| &row.cells)
        .map(|cell| &cell.pair)
        .collect();
    pairs.iter().for_each(|pair| counts.add(pair.state));
    let mean = mean(&pairs);
    let mut overview = Overview {
        base: kernels.base,
        target: kernels.target,
        columns,
        groups,
        counts,
        mean,
        cards: Vec::new(),
        earlier: Vec::new(),
    };
    overview.cards = cards(history, &overview, alerts);
    overview.earlier = earlier(history, &overview, alerts);
    overview
}

/// Decides the cells of noisy machines together: a test on a machine is a family, and all families
/// are one question.
fn weigh(groups: &mut [Group]) {
    let between = |pair: &Pair| {
        let rated = pair.rating.filter(|rating| rating.precision.is_some())?;
        Some(rated.p())
    };
    weigh_by(groups, &between, Pair::weigh);
    let within = |pair: &Pair| Some(pair.within?.p_margin);
    weigh_by(groups, &within, Pair::weigh_within);
}

/// Decides those cells together that have a chance `p_of`.
fn weigh_by(groups: &mut [Group], p_of: &dyn Fn(&Pair) -> Option<f64>, decide: fn(&mut Pair, f64)) {
    let mut families: BTreeMap<(String, MachineIx), Vec<(f64, &mut Pair)>> = BTreeMap::new();
    for row in groups.iter_mut().flat_map(|group| &mut group.rows) {
        let test = test_of(&row.workload).to_owned();
        for cell in &mut row.cells {
            if let Some(p) = p_of(&cell.pair) {
                families
                    .entry((test.clone(), cell.machine))
                    .or_default()
                    .push((p, &mut cell.pair));
            }
        }
    }
    let mut all: Vec<Vec<f64>> = Vec::new();
    for family in families.values() {
        all.push(family.iter().map(|(p, _)| *p).collect());
    }
    let Some(weighed) = stats::families(&all, Q_MAX) else {
        return;
    };
    for (family, found) in families.into_values().zip(weighed) {
        for ((_, pair), q) in family.into_iter().zip(found.members) {
            decide(pair, q);
        }
    }
}

/// Makes cells unclear that their twins contradict.
fn doubt(history: &History, groups: &mut [Group], kernels: KernelPair) {
    let track: Arc<str> = history.kernel(kernels.target).track.as_str().into();
    for row in groups.iter_mut().flat_map(|group| &mut group.rows) {
        for cell in row
            .cells
            .iter_mut()
            .filter(|cell| matches!(cell.pair.state, State::Better | State::Worse))
        {
            let key = Key {
                workload: Arc::clone(&row.workload),
                machine: cell.machine,
                track: Arc::clone(&track),
            };
            let why = cell
                .pair
                .compared
                .ratio
                .and_then(|ratio| history.contradiction(&key, kernels, ratio));
            why.into_iter().for_each(|why| cell.pair.doubt(why));
        }
    }
}

/// Returns the machines that measured one of the kernels, merged if they differ only by the guest
/// config.
fn columns(history: &History, kernels: KernelPair) -> Vec<Column> {
    let mut series = vec![0_usize; history.machines().len()];
    let mut found = BTreeSet::new();
    for (key, one) in history.series() {
        series[key.machine.0] += 1;
        if !found.contains(&key.machine)
            && one
                .points
                .iter()
                .any(|p| p.kernel == kernels.base || p.kernel == kernels.target)
        {
            found.insert(key.machine);
        }
    }
    let mut columns: BTreeMap<MachineIx, Vec<MachineIx>> = BTreeMap::new();
    for machine in found {
        columns
            .entry(history.first_kin(machine))
            .or_default()
            .push(machine);
    }
    let mut found = Vec::new();
    for (first, machines) in columns {
        let most_series = machines
            .iter()
            .copied()
            .max_by_key(|n| (series[n.0], std::cmp::Reverse(*n)));
        found.push(Column {
            main: most_series.unwrap_or(first),
            machines,
        });
    }
    found
}

/// Compares the kernels on the machine of a column that measured both, or else one of them.
fn cell(
    history: &History,
    workload: &Arc<str>,
    column: &Column,
    kernels: KernelPair,
) -> OverviewCell {
    let (mut most, pair) = compare_on(history, workload, column.main, kernels);
    let mut cell = OverviewCell {
        machine: column.main,
        pair,
    };
    for &machine in &column.machines {
        // Both kernels are measured: no machine has more.
        if most == 2 {
            break;
        }
        let (seen, pair) = compare_on(history, workload, machine, kernels);
        if seen > most {
            most = seen;
            cell = OverviewCell { machine, pair };
        }
    }
    cell
}

/// Compares two kernels by a workload on one machine; returns how many of them are measured, too.
fn compare_on(
    history: &History,
    workload: &Arc<str>,
    machine: MachineIx,
    KernelPair { base, target }: KernelPair,
) -> (usize, Pair) {
    let new = history.series_of(workload, machine, target);
    let old = if history.kernel(base).track == history.kernel(target).track {
        new
    } else {
        history.series_of(workload, machine, base)
    };
    let Some(series) = new.or(old) else {
        return (0, Pair::missing());
    };
    let old = old.and_then(|series| series.point(base));
    let new = new.and_then(|series| series.point(target));
    let measured = usize::from(old.is_some()) + usize::from(new.is_some());
    let ruler = Ruler::for_kernels(series, &[base, target]);
    (measured, Pair::rate(&ruler, old, new))
}

fn mean(pairs: &[&Pair]) -> Option<Mean> {
    let cells: Vec<&SideComparison> = pairs.iter().map(|pair| &pair.compared).collect();
    let cells: Vec<&SideComparison> = cells.into_iter().filter(|c| c.ratio.is_some()).collect();
    let ratios: Vec<f64> = cells.iter().filter_map(|cell| cell.ratio).collect();
    let ratio = stats::geometric_mean(&ratios)?;
    let seeds = cells[0]
        .differences
        .iter()
        .map(|difference| difference.seed);
    // A mean over other cells is no comparable one: only seeds that every cell has count.
    let common = seeds.filter(|seed| {
        cells
            .iter()
            .all(|cell| cell.differences.iter().any(|known| known.seed == *seed))
    });
    let mut means: Vec<f64> = Vec::new();
    for seed in common {
        let of_seed = cells.iter().filter_map(|cell| {
            cell.differences
                .iter()
                .find(|known| known.seed == seed)?
                .ratio
        });
        means.extend(stats::geometric_mean(&of_seed.collect::<Vec<f64>>()));
    }
    Some(Mean {
        ratio,
        cells: ratios.len(),
        seeds: stats::spread(&means).filter(|_| means.len() > 1),
    })
}

/// Chooses the places to look at first: alerts between the kernels, and regressions without one.
fn earlier(history: &History, overview: &Overview, alerts: &[Triaged]) -> Vec<usize> {
    let to = history.rank(overview.target);
    let track = &history.kernel(overview.target).track;
    let mut found = Vec::new();
    for (number, triaged) in alerts.iter().enumerate() {
        let alert = &triaged.alert;
        let is_on_card = overview
            .cards
            .iter()
            .any(|card| matches!(card, Card::Alert(n) if *n == number));
        if triaged.needs_commit()
            && alert.track == *track
            && history.rank(alert.at) <= to
            && alert.worse().count() > 0
            && !is_on_card
        {
            found.push(number);
        }
    }
    found.sort_by_key(|number| std::cmp::Reverse(history.rank(alerts[*number].alert.at)));
    found
}

fn cards(history: &History, overview: &Overview, alerts: &[Triaged]) -> Vec<Card> {
    let track = &history.kernel(overview.target).track;
    let from = history.rank(overview.base);
    let to = history.rank(overview.target);
    let between = |triaged: &Triaged| {
        let alert = &triaged.alert;
        alert.track == *track && history.rank(alert.at) <= to && history.rank(alert.after) >= from
    };
    let mut chosen: Vec<usize> = (0..alerts.len())
        .filter(|n| alerts[*n].needs_commit() && between(&alerts[*n]))
        .collect();
    chosen.sort_by(|a, b| {
        alerts[*b]
            .alert
            .weight()
            .total_cmp(&alerts[*a].alert.weight())
    });
    let known: BTreeSet<(MachineIx, &str)> = alerts
        .iter()
        .filter(|triaged| between(triaged))
        .flat_map(|triaged| {
            triaged
                .alert
                .members
                .iter()
                .map(|member| (member.key.machine, &*member.key.workload))
        })
        .collect();
    let mut rest: Vec<(MachineIx, Arc<str>, Pair)> = overview
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .flat_map(|row| row.cells.iter().map(move |cell| (row, cell)))
        .filter(|(_, cell)| cell.pair.state == State::Worse)
        .filter(|(row, cell)| !known.contains(&(cell.machine, &*row.workload)))
        .map(|(row, cell)| (cell.machine, Arc::clone(&row.workload), cell.pair.clone()))
        .collect();
    rest.sort_by(|(_, _, a), (_, _, b)| {
        let a = a.compared.difference_percent.unwrap_or_default();
        a.total_cmp(&b.compared.difference_percent.unwrap_or_default())
    });
    let room = if rest.is_empty() {
        CARDS_MAX
    } else {
        CARDS_MAX - 1
    };
    let mut cards: Vec<Card> = chosen.into_iter().take(room).map(Card::Alert).collect();
    if !rest.is_empty() {
        cards.push(Card::Rest(rest));
    }
    cards
}
