//! The tables as text: one for each workload, in the style of will-it-scale.

use model::{Build, Machine, Run, sanitize_line};

use document::layout::{Page, WIDTH, wrap};
use document::{Styles, number};

use crate::scaling::{Efficiency, Scaling, ScalingRow, scalings};

/// Renders the tables of boots of a kernel on a machine; `None` if no workload was measured with
/// several numbers of tasks.
#[must_use]
pub fn table(build: &Build, machine: &Machine, runs: &[&Run], styles: &Styles) -> Option<String> {
    let found = scalings(runs, machine.capabilities());
    if found.is_empty() {
        return None;
    }
    let mut page = Page::default();
    let boots = number::count(runs.len(), "boot");
    for line in wrap(
        &format!("Scaling of {} on {}, {boots}", build.version, machine.kind),
        WIDTH,
    ) {
        page.line(styles.strong(&line));
    }
    for Scaling {
        series,
        stresses,
        rows,
    } in &found
    {
        page.blank();
        page.hanging("", &format!("{series}: {}", sanitize_line(stresses)));
        page.line(format!(
            "{:>7} {:>16} {:>14} {:>12}",
            "tasks", "operations/s", "per task", "efficiency"
        ));
        rows.iter().for_each(|row| page.line(line(row)));
    }
    page.blank();
    page.paragraph(0, "efficiency: what a task does in percent of one task alone; with its 95% interval over boots");
    Some(page.finish())
}

fn line(row: &ScalingRow) -> String {
    let ScalingRow {
        tasks,
        in_all,
        per_task,
        efficiency,
    } = row;
    let efficiency = efficiency.map_or_else(|| format!("{:>12}", "-"), format_efficiency);
    format!("{tasks:>7} {in_all:>16.0} {per_task:>14.0} {efficiency}")
}

fn format_efficiency(efficiency: Efficiency) -> String {
    let percent = format!("{:>11}%", number::percent(efficiency.percent, 7));
    match efficiency.ends {
        None => percent,
        Some(ends) => format!("{percent}  {}", number::interval(ends, 16)),
    }
}

#[cfg(test)]
mod tests {
    use model::Run;

    use crate::fixtures::{Ending, Subject, build, machine};
    use document::Styles;

    use super::table;

    fn shown(boots: u64, names: &[(&str, f64)]) -> Option<String> {
        let mut subject = Subject::new(build("deb:6.12", "6.12.117"), &[], &[]);
        for boot in 1..=boots {
            let slower = 1.0 + boot as f64 / 100.0;
            let endings: Vec<(&str, Ending)> = names
                .iter()
                .map(|(name, cost)| (*name, Ending::Samples(vec![cost * slower; 4])))
                .collect();
            subject.add_run(boot, &endings);
        }
        let mut on = machine();
        on.kind = "vm".parse().unwrap();
        let runs: Vec<&Run> = subject.runs.iter().collect();
        let text = table(&subject.build, &on, &runs, &Styles::plain());
        assert!(
            text.iter()
                .flat_map(|text| text.lines())
                .all(|line| line.chars().count() <= 80),
            "{text:?}"
        );
        text
    }

    const SERIES: &[(&str, f64)] = &[
        ("fault-thr-1", 812.0),
        ("fault-thr-2", 1_190.0),
        ("fault-thr-64", 96_400.0),
        ("futex-own-2", 310.0),
        ("futex-own-4", 311.0),
        ("getppid", 90.0),
    ];

    #[test]
    fn tables_of_several_boots() {
        insta::assert_snapshot!(shown(3, SERIES).unwrap());
    }

    #[test]
    fn tables_of_one_boot() {
        insta::assert_snapshot!(shown(1, SERIES).unwrap());
    }

    #[test]
    fn no_series_gives_no_table() {
        assert_eq!(shown(2, &[("getppid", 90.0), ("fault-thr-2", 90.0)]), None);
    }
}
