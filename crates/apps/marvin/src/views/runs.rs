//! The list of stored runs: `marvin runs`. Text has one line each, 80 columns at most.

use model::{BuildId, KernelName, MachineId, RunId, UnixTime};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::cut_middle;
use document::layout::Page;
use document::number::minute;
use model::sanitize_line;

/// Stored runs, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct RunsDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The runs.
    runs: Vec<ListedRun>,
}

/// One stored run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ListedRun {
    /// Run id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "super::text")]
    pub(crate) id: RunId,
    /// Kernel name that the build was last asked for by.
    #[schemars(with = "String")]
    #[serde(serialize_with = "super::text")]
    pub(crate) kernel: KernelName,
    /// Version of the build.
    pub(crate) version: String,
    /// Build id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "super::text")]
    pub(crate) build: BuildId,
    /// Machine id.
    #[schemars(with = "String")]
    #[serde(serialize_with = "super::text")]
    pub(crate) machine: MachineId,
    /// Suite.
    pub(crate) suite: String,
    /// Seed.
    pub(crate) seed: u64,
    /// Start of the run (seconds since 1970-01-01 UTC); null if not known.
    pub(crate) started_unix: Option<i64>,
    /// Number of workloads that completed.
    pub(crate) completed: usize,
    /// Number of workloads that the kernel does not support.
    pub(crate) unsupported: usize,
    /// Number of workloads that the kernel failed.
    pub(crate) failed: usize,
}

impl RunsDocument {
    /// Returns the document of runs, in the order given.
    pub(crate) fn new(runs: Vec<ListedRun>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "runs",
            runs,
        }
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
        page.line(styles.strong(&columns.line([
            "run",
            "started (UTC)",
            "kernel",
            "suite",
            "seed",
            "completed",
        ])));
        for run in &self.runs {
            page.line(columns.line([
                &run.id.short(),
                &run.started_unix.map_or_else(
                    || "not known".to_owned(),
                    |start| minute(UnixTime::new(start)),
                ),
                &sanitize_line(&run.version),
                &sanitize_line(&run.suite),
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
        let widest = |width: &dyn Fn(&ListedRun) -> usize, least: usize| {
            list.iter().map(width).fold(least, usize::max)
        };
        let suite = widest(&|run| run.suite.chars().count(), 5).min(8);
        let seed = widest(&|run| run.seed.to_string().len(), 4).min(12);
        // The rest of 80 columns after id, date, result and gaps.
        let room = 80_usize.saturating_sub(16 + 16 + 14 + 6 + suite + seed);
        Self {
            version: widest(&|run| run.version.chars().count(), 6).min(room),
            suite,
            seed,
        }
    }

    fn line(&self, cells: [&str; 6]) -> String {
        let [run, started, version, suite, seed, completed] = cells;
        let Self {
            version: v,
            suite: s,
            seed: n,
        } = *self;
        format!(
            "{run:<16} {started:<16} {:<v$} {:<s$} {:>n$} {completed}",
            cut_middle(version, v),
            cut_middle(suite, s),
            cut_middle(seed, n),
        )
    }
}

fn completed(run: &ListedRun, styles: &Styles) -> String {
    let counts = format!(
        "{}/{}",
        run.completed,
        run.completed + run.unsupported + run.failed
    );
    if run.failed > 0 {
        format!("{counts} {}", styles.alarm("failed"))
    } else {
        counts
    }
}

#[cfg(test)]
mod tests {
    use document::Styles;
    use model::{BuildId, MachineId, RunId};

    use super::{ListedRun, RunsDocument};
    use crate::views::Listing as _;

    fn run(
        id: &str,
        version: &str,
        seed: u64,
        [completed, unsupported, failed]: [usize; 3],
    ) -> ListedRun {
        ListedRun {
            id: RunId::from_hex(id).unwrap(),
            kernel: "deb:6.12".parse().unwrap(),
            version: version.to_owned(),
            build: BuildId::from_hex("0b").unwrap(),
            machine: MachineId::from_hex("0c").unwrap(),
            suite: "micro".to_owned(),
            seed,
            started_unix: Some(1_795_180_320),
            completed,
            unsupported,
            failed,
        }
    }

    fn listed(runs: Vec<ListedRun>) -> String {
        let text = RunsDocument::new(runs).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        text
    }

    #[test]
    fn runs_of_three_kernels() {
        insta::assert_snapshot!(listed(vec![
            run("b61ebcc89dc3", "6.1.192", 1, [11, 1, 0]),
            run("b61b35c89dc0", "6.1.192", 2, [11, 1, 0]),
            run("118a7d3182cb", "6.12.117", 1, [10, 0, 1]),
            run("1187163182c8", "6.12.117", 2, [10, 0, 1]),
            run(
                "f6c26af64453",
                "6.18.3-00042-g0123456789ab-dirty",
                1,
                [0, 0, 12]
            ),
        ]));
    }

    #[test]
    fn nasty_lengths_fit() {
        let mut nasty = run(
            "f6c26af64453",
            "6.18.3-00042-g0123456789ab-dirty",
            u64::MAX,
            [0, 0, 12],
        );
        nasty.suite = "a-suite-with-a-very-long-name".to_owned();
        nasty.started_unix = Some(i64::MIN);
        insta::assert_snapshot!(listed(vec![
            nasty,
            run("b61ebcc89dc3", "6.1.192", 1, [11, 1, 0])
        ]));
    }

    #[test]
    fn no_runs() {
        assert_eq!(listed(Vec::new()), "no runs\n");
    }
}
