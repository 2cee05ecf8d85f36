//! How far a lab can be trusted: what it measured twice, how far seeds lie apart, and when its machines last worked.

use report::history::{Cell, Column, History, Overview, day};

use super::{count, machine_digits};

/// What is known of a machine.
pub(crate) struct Trusted {
    pub(crate) machine: String,
    pub(crate) summary: String,
    pub(crate) last: String,
    pub(crate) runs: usize,
    pub(crate) again: String,
    pub(crate) equal: String,
    pub(crate) alarms: String,
    pub(crate) floor: String,
    /// Whether it has not measured the new kernel.
    pub(crate) is_behind: bool,
}

/// Says it of each machine of the overview, with all its equipments.
pub(crate) fn trusted(history: &History, seen: &Overview) -> Vec<Trusted> {
    seen.columns.iter().enumerate().map(|(place, column)| of_column(history, seen, (place, column))).collect()
}

fn of_column(history: &History, seen: &Overview, (place, column): (usize, &Column)) -> Trusted {
    let known = &history.machines()[column.main];
    let kin = history.kin(column.main);
    let sum =
        |of: fn(&report::history::Repeats) -> usize| kin.iter().map(|n| of(&history.repeats()[*n])).sum::<usize>();
    let (again, equal, apart) = (sum(|r| r.again), sum(|r| r.agree), sum(|r| r.apart));
    let part = |number: usize| {
        if again == 0 {
            "-".to_owned()
        } else {
            format!("{number} of {again} ({:.1}%)", number as f64 * 100.0 / again as f64)
        }
    };
    let cells = seen.groups.iter().flat_map(|group| &group.rows).map(move |row| &row.cells[place]);
    let mut series = history.series().filter(|(key, _)| column.machines.contains(&key.machine));
    Trusted {
        machine: format!("{} {}", known.kind, machine_digits(history, column.main)),
        summary: known.summary.clone(),
        last: kin.iter().filter_map(|n| history.runs_on(*n).1).max().map_or_else(|| "-".to_owned(), day),
        runs: kin.iter().map(|n| history.runs_on(*n).0).sum(),
        again: if again == 0 { "nothing yet".to_owned() } else { count(again, "result") },
        equal: part(equal),
        alarms: part(apart),
        floor: floor(cells),
        is_behind: series.all(|(_, series)| series.point(seen.target).is_none()),
    }
}

/// Says how far the differences of one cell lie apart from seed to seed: in the middle case, and at most.
fn floor<'a>(cells: impl Iterator<Item = &'a Cell>) -> String {
    let several = cells.filter(|cell| cell.pair.ratios.len() > 1);
    let mut widths: Vec<f64> = several.filter_map(|cell| cell.pair.spread_percent).map(|s| s.max - s.min).collect();
    widths.sort_by(f64::total_cmp);
    match (widths.get(widths.len() / 2), widths.last()) {
        (Some(middle), Some(widest)) => format!("{middle:.2}% usually, {widest:.2}% at most"),
        _ => "one seed only".to_owned(),
    }
}
