//! Each hunk of a series alone on its base, beside all together: what only several do together is
//! the rest.

use schemars::JsonSchema;
use serde::Serialize;

/// Workloads with a column.
const SHOWN: usize = 4;
/// Characters of a hunk's name.
const HUNK: usize = 14;
/// Least characters of a column.
const COLUMN: usize = 12;

/// What each hunk costs alone, in instructions per operation more than the base executes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HunksAlone {
    /// The workloads that all hunks together change, the largest difference first.
    workloads: Vec<String>,
    /// The hunks, in their order.
    hunks: Vec<HunkAlone>,
    /// What all hunks together add, for each workload.
    all: Vec<f64>,
    /// The same without the sum of the hunks alone: what only several do together.
    together_only: Vec<f64>,
}

/// A hunk alone on the base.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HunkAlone {
    /// How it is called.
    pub hunk: String,
    /// What it adds, for each workload; null if it has no kernel.
    pub adds: Option<Vec<f64>>,
    /// Why it has no kernel; null if it has.
    pub failure: Option<String>,
}

impl HunksAlone {
    /// Adds up hunks that were measured alone. `all` is what all together add.
    #[must_use]
    pub fn new(workloads: Vec<String>, hunks: Vec<HunkAlone>, all: Vec<f64>) -> Self {
        let mut together_only = all.clone();
        for adds in hunks.iter().filter_map(|hunk| hunk.adds.as_ref()) {
            for (rest, add) in together_only.iter_mut().zip(adds) {
                *rest -= add;
            }
        }
        Self {
            workloads,
            hunks,
            all,
            together_only,
        }
    }

    /// Returns it as a table of 80 columns.
    #[must_use]
    pub fn text(&self) -> String {
        let shown = self.workloads.len().min(SHOWN);
        let mut lines = vec![
            "each hunk alone on the base, in additional instructions per operation:\n\n".to_owned(),
        ];
        let mut head = format!("{:<HUNK$}", "hunk");
        for workload in &self.workloads[..shown] {
            head.push_str(&format_cell(workload, workload));
        }
        lines.push(head + "\n");
        for hunk in &self.hunks {
            lines.push(match (&hunk.adds, &hunk.failure) {
                (Some(adds), _) => self.line(&hunk.hunk, adds),
                (None, why) => {
                    let why = why.as_deref().unwrap_or("not measured");
                    format!("{:<HUNK$}  {why}\n", hunk.hunk)
                }
            });
        }
        lines.push(self.line("together only", &self.together_only));
        lines.push(self.line("all hunks", &self.all));
        let more = self.workloads.len() - shown;
        if more > 0 {
            lines.push(format!("and {more} more workloads: --format json\n"));
        }
        lines.concat()
    }

    fn line(&self, name: &str, adds: &[f64]) -> String {
        let mut line = format!("{name:<HUNK$}");
        for (workload, add) in self.workloads.iter().zip(adds).take(SHOWN) {
            // No negative zero.
            line.push_str(&format_cell(workload, &format!("{:+.2}", add + 0.0)));
        }
        line + "\n"
    }
}

fn format_cell(workload: &str, text: &str) -> String {
    let width = workload.chars().count().max(COLUMN);
    format!("  {text:>width$}")
}

#[cfg(test)]
mod tests {
    use super::{HunkAlone, HunksAlone};

    #[test]
    fn hunks_and_their_interaction_add_up() {
        let hunk = |name: &str, adds: Option<[f64; 2]>| HunkAlone {
            hunk: name.to_owned(),
            failure: adds.is_none().then(|| "does not build".to_owned()),
            adds: adds.map(Vec::from),
        };
        let hunks = vec![
            hunk("1.1", Some([38.0, 0.0])),
            hunk("1.2", Some([0.0, -2.0])),
            hunk("1.3", None),
        ];
        let workloads = ["fork-exit", "getppid"].map(str::to_owned).to_vec();
        let alone = HunksAlone::new(workloads, hunks, vec![41.0, -2.0]);
        insta::assert_snapshot!("hunks_alone", alone.text());
    }
}
