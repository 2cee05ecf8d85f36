//! How far a lab can be trusted: comparisons of a kernel with itself, noise between seeds or runs,
//! and the state of its machines.

use history::{BOOTS, Column, History, MachineIx, Overview, OverviewCell, TRUST_DAYS, Trust, day};
use model::UnixTime;

use super::{count, machine_digits};

const SECONDS_OF_DAY: i64 = 86_400;
const NOT_YET: &str = "no comparison yet";

/// The facts about a machine.
pub(crate) struct Trusted {
    pub(crate) machine: String,
    pub(crate) summary: String,
    pub(crate) last: String,
    pub(crate) runs: usize,
    pub(crate) compared: String,
    pub(crate) alarms: String,
    pub(crate) floor: String,
    pub(crate) health: String,
    /// Whether the machine needs attention.
    pub(crate) is_ill: bool,
    /// Whether it has not measured the new kernel.
    pub(crate) is_behind: bool,
}

/// Describes each machine of the overview, with any guest config.
pub(crate) fn describe_machines(history: &History, seen: &Overview) -> Vec<Trusted> {
    seen.columns
        .iter()
        .enumerate()
        .map(|(place, column)| of_column(history, seen, place, column))
        .collect()
}

/// Describes the false alarms of this lab, all machines together.
pub(crate) fn lab(history: &History) -> String {
    let all: Vec<MachineIx> = history.machine_indexes().collect();
    let trust = history.trust(&all);
    let until = history.last_day().map_or_else(String::new, |last| {
        format!(" up to {}", day(UnixTime::new(last * SECONDS_OF_DAY)))
    });
    if trust.compared == 0 {
        return format!("False alarms of this lab in the {TRUST_DAYS} days{until}: {NOT_YET}.");
    }
    format!(
        "In the {TRUST_DAYS} days{until} this lab compared a kernel with itself {}: {}.",
        if trust.compared == 1 {
            "once".to_owned()
        } else {
            format!("{} times", trust.compared)
        },
        alarms(&trust)
    )
}

/// Counts false alarms, with the confidence interval of their rate.
fn alarms(trust: &Trust) -> String {
    let Some((rate, ends)) = trust.rate().zip(trust.interval()) else {
        return NOT_YET.to_owned();
    };
    format!(
        "{} ({:.1}%, 95%: {:.1}% to {:.1}%)",
        count(trust.alarms, "false alarm"),
        rate * 100.0,
        ends.min * 100.0,
        ends.max * 100.0
    )
}

fn of_column(history: &History, seen: &Overview, place: usize, column: &Column) -> Trusted {
    let known = history.machine(column.main);
    let kin = history.same_machine(column.main);
    let trust = history.trust(&kin);
    let cells = seen
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .map(move |row| &row.cells[place]);
    let mut series = history
        .series()
        .filter(|(key, _)| column.machines.contains(&key.machine));
    let (health, is_ill) = health(known.capabilities().deterministic, &trust);
    Trusted {
        machine: format!("{} {}", known.kind, machine_digits(history, column.main)),
        summary: known.summary.clone(),
        last: kin
            .iter()
            .filter_map(|n| history.runs_on(*n).1)
            .max()
            .map_or_else(|| "-".to_owned(), day),
        runs: kin.iter().map(|n| history.runs_on(*n).0).sum(),
        compared: if trust.compared == 0 {
            NOT_YET.to_owned()
        } else {
            trust.compared.to_string()
        },
        alarms: if trust.compared == 0 {
            "-".to_owned()
        } else {
            alarms(&trust)
        },
        floor: if known.capabilities().deterministic {
            floor(cells)
        } else {
            scatter(history, column)
        },
        health,
        is_ill,
        is_behind: series.all(|(_, series)| series.point(seen.target).is_none()),
    }
}

/// Describes the problems of a machine, and returns whether there are any.
fn health(deterministic: bool, trust: &Trust) -> (String, bool) {
    match trust.compared - trust.equal.min(trust.compared) {
        _ if !deterministic => ("not checked: noisy machine".to_owned(), false),
        _ if trust.compared == 0 => ("unknown: no repeated results".to_owned(), false),
        0 => ("repeated results equal to the last bit".to_owned(), false),
        unequal => (
            format!(
                "{} not equal to the last bit",
                count(unequal, "repeated result")
            ),
            true,
        ),
    }
}

/// Describes the noise of cells between seeds: median and maximum.
fn floor<'a>(cells: impl Iterator<Item = &'a OverviewCell>) -> String {
    let several = cells.filter(|cell| cell.pair.compared.differences.len() > 1);
    let widths = several
        .filter_map(|cell| cell.pair.compared.spread_percent)
        .map(|s| s.max - s.min)
        .collect();
    usually(widths).unwrap_or_else(|| "one seed only".to_owned())
}

/// Describes the noise between boots of one kernel, and the change that boots show in the median
/// workload.
fn scatter(history: &History, column: &Column) -> String {
    let floors = history.noise_floors(&column.machines);
    let Some(usual) = usually(floors.iter().map(|floor| floor.variation_percent).collect()) else {
        return "one run per kernel only".to_owned();
    };
    let shows = BOOTS.iter().enumerate().filter_map(|(place, boots)| {
        let mut least: Vec<f64> = floors
            .iter()
            .filter_map(|floor| floor.least_percent[place].1)
            .collect();
        least.sort_by(f64::total_cmp);
        Some(format!(
            "; {boots} show {:.1}%",
            least.get(least.len() / 2)?
        ))
    });
    format!(
        "runs: {usual} (standard deviation){}",
        shows.collect::<String>()
    )
}

fn usually(mut widths: Vec<f64>) -> Option<String> {
    widths.sort_by(f64::total_cmp);
    let (middle, widest) = widths.get(widths.len() / 2).zip(widths.last())?;
    Some(format!("median {middle:.2}%, maximum {widest:.2}%"))
}
