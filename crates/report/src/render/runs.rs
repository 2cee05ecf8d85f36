//! The list of stored runs: `marvin runs`. Text has one line each, 80 columns at most.

use model::{BuildId, KernelName, MachineId, RunId};
use schemars::JsonSchema;
use serde::Serialize;

use crate::label::cut_middle;
use crate::plain::plain;
use crate::render::layout::Page;
use crate::render::listing::{Head, Listing};
use crate::render::number::date;
use crate::render::styles::Styles;

/// Stored runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct RunsDocument {
    #[serde(flatten)]
    head: Head,
    /// The runs.
    runs: Vec<ListedRun>,
}

/// One stored run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ListedRun {
    /// Run id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "crate::render::listing::text")]
    pub id: RunId,
    /// Kernel name that the build was last asked for by.
    #[schemars(with = "String")]
    #[serde(serialize_with = "crate::render::listing::text")]
    pub kernel: KernelName,
    /// Version of the build.
    pub version: String,
    /// Build id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "crate::render::listing::text")]
    pub build: BuildId,
    /// Machine id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "crate::render::listing::text")]
    pub machine: MachineId,
    /// Suite.
    pub suite: String,
    /// Seed.
    pub seed: u64,
    /// Start of the run [seconds since 1970-01-01 UTC].
    pub started_unix: i64,
    /// Number of workloads that completed.
    pub completed: usize,
    /// Number of workloads that the kernel does not support.
    pub unsupported: usize,
    /// Number of workloads that the kernel failed.
    pub failed: usize,
}

impl RunsDocument {
    /// Returns the document of runs, in the order given.
    #[must_use]
    pub fn new(runs: Vec<ListedRun>) -> Self {
        Self { head: Head::new("runs"), runs }
    }
}

impl Listing for RunsDocument {
    fn text(&self, styles: &Styles) -> String {
        let mut page = Page::default();
        if self.runs.is_empty() {
            page.line("no runs");
            return page.finish();
        }
        let columns = Columns::new(&self.runs);
        page.line(styles.strong(&columns.line(["run", "started (UTC)", "kernel", "suite", "seed", "completed"])));
        for run in &self.runs {
            page.line(columns.line([
                &run.id.short(),
                &minute(run.started_unix),
                &plain(&run.version),
                &plain(&run.suite),
                &run.seed.to_string(),
                &completed(run, styles),
            ]));
        }
        page.finish()
    }
}

/// The widths of the columns with variable content.
struct Columns {
    version: usize,
    suite: usize,
    seed: usize,
}

impl Columns {
    fn new(list: &[ListedRun]) -> Self {
        let widest = |of: &dyn Fn(&ListedRun) -> usize, least: usize| list.iter().map(of).fold(least, usize::max);
        let suite = widest(&|run| run.suite.chars().count(), 5).min(8);
        let seed = widest(&|run| run.seed.to_string().len(), 4).min(12);
        // The rest of 80 columns after id, date, result and gaps.
        let room = 80_usize.saturating_sub(16 + 16 + 14 + 6 + suite + seed);
        Self { version: widest(&|run| run.version.chars().count(), 6).min(room), suite, seed }
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

fn completed(run: &ListedRun, styles: &Styles) -> String {
    let counts = format!("{}/{}", run.completed, run.completed + run.unsupported + run.failed);
    if run.failed > 0 { format!("{counts} {}", styles.alarm("failed")) } else { counts }
}

#[cfg(test)]
mod tests {
    use model::Outcome;

    use super::{ListedRun, RunsDocument};
    use crate::fixtures::{Subject, dead, new, old};
    use crate::render::listing::Listing as _;
    use crate::render::styles::Styles;

    fn listed(subjects: &[Subject]) -> String {
        let entry = |subject: &Subject, run: &model::Run| {
            let of = |wanted: fn(&Outcome) -> bool| run.results.iter().filter(|r| wanted(&r.outcome)).count();
            ListedRun {
                id: run.id.clone(),
                kernel: subject.build.name.clone(),
                version: subject.build.version.clone(),
                build: run.build.clone(),
                machine: run.machine.clone(),
                suite: run.suite.clone(),
                seed: run.seed,
                started_unix: run.started_unix,
                completed: of(|outcome| matches!(outcome, Outcome::Completed)),
                unsupported: of(|outcome| matches!(outcome, Outcome::Unsupported(_))),
                failed: of(|outcome| matches!(outcome, Outcome::Failed(_))),
            }
        };
        let list = subjects.iter().flat_map(|subject| subject.runs.iter().map(move |run| entry(subject, run)));
        let text = RunsDocument::new(list.collect()).text(&Styles::plain());
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
