//! A list of runs as text: `marvin runs`. One line each, 80 columns at most.

use model::{Outcome, Run};

use crate::label::cut_middle;
use crate::plain::plain;
use crate::render::layout::Page;
use crate::render::number::date;
use crate::render::styles::Styles;

/// A run and the version of its kernel.
#[derive(Debug, Clone, Copy)]
pub struct Listed<'a> {
    /// The run.
    pub run: &'a Run,
    /// The version of its build.
    pub version: &'a str,
}

/// Renders a list of runs as text, in the given order.
#[must_use]
pub fn runs(list: &[Listed<'_>], styles: &Styles) -> String {
    let mut page = Page::default();
    if list.is_empty() {
        page.line("no runs");
        return page.finish();
    }
    let columns = Columns::new(list);
    page.line(styles.strong(&columns.line(["run", "started (UTC)", "kernel", "suite", "seed", "completed"])));
    for Listed { run, version } in list {
        page.line(columns.line([
            &run.id.short(),
            &minute(run.started_unix),
            &plain(version),
            &plain(&run.suite),
            &run.seed.to_string(),
            &completed(run, styles),
        ]));
    }
    page.finish()
}

/// The widths of the columns with variable content.
struct Columns {
    version: usize,
    suite: usize,
    seed: usize,
}

impl Columns {
    fn new(list: &[Listed<'_>]) -> Self {
        let widest = |of: &dyn Fn(&Listed<'_>) -> usize, least: usize| list.iter().map(of).fold(least, usize::max);
        let suite = widest(&|l| l.run.suite.chars().count(), 5).min(8);
        let seed = widest(&|l| l.run.seed.to_string().len(), 4).min(12);
        // The rest of 80 columns after id, date, result and gaps.
        let room = 80_usize.saturating_sub(16 + 16 + 14 + 6 + suite + seed);
        Self { version: widest(&|l| l.version.chars().count(), 6).min(room), suite, seed }
    }

    fn line(&self, cells: [&str; 6]) -> String {
        let [run, started, version, suite, seed, completed] = cells;
        let Self { version: v, suite: s, seed: n } = *self;
        format!(
            "{run:<16} {started:<16} {:<v$} {:<s$} {:>n$} {completed}",
            cut_middle(version, v),
            cut_middle(suite, s),
            cut_middle(seed, n),
        )
    }
}

/// Formats a date to the minute: `2026-11-20 13:12`.
fn minute(unix: i64) -> String {
    date(unix).replacen('T', " ", 1).chars().take(16).collect()
}

fn completed(run: &Run, styles: &Styles) -> String {
    let completed = run.results.iter().filter(|r| r.outcome == Outcome::Completed).count();
    let counts = format!("{completed}/{}", run.results.len());
    if run.results.iter().any(|r| matches!(r.outcome, Outcome::Failed(_))) {
        return format!("{counts} {}", styles.alarm("failed"));
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::{Listed, runs};
    use crate::fixtures::{Subject, dead, new, old};
    use crate::render::styles::Styles;

    fn listed(subjects: &[Subject]) -> String {
        let list: Vec<Listed<'_>> =
            subjects.iter().flat_map(|s| s.runs.iter().map(|run| Listed { run, version: &s.build.version })).collect();
        let text = runs(&list, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text
    }

    #[test]
    fn runs_of_three_kernels() {
        insta::assert_snapshot!(listed(&[old(&[1, 2]), new(&[1, 2]), dead(&[1])]));
    }

    #[test]
    fn nasty_lengths_fit() {
        let mut nasty = dead(&[1]);
        nasty.runs[0].seed = u64::MAX;
        nasty.runs[0].suite = "a-suite-with-a-very-long-name".to_owned();
        nasty.runs[0].started_unix = i64::MIN;
        insta::assert_snapshot!(listed(&[nasty, old(&[1])]));
    }

    #[test]
    fn no_runs() {
        assert_eq!(listed(&[]), "no runs\n");
    }
}
