//! The list of suites and their workloads: `marvin workloads`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Clock, Suite, Workload, floor_percent, spread_percent};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::layout::Page;
use document::number::{count, margin};

/// The position of the second column: after the longest name of a workload.
const INDENT: usize = 20;

/// Suites and their workloads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct WorkloadsDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The suites.
    suites: Vec<ListedSuite>,
}

/// One suite.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedSuite {
    /// Name.
    name: &'static str,
    /// What it measures.
    purpose: &'static str,
    /// Workloads.
    workloads: Vec<ListedWorkload>,
}

/// One workload.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedWorkload {
    /// Name.
    name: String,
    /// What it stresses.
    stresses: String,
    /// What one operation is.
    operation: String,
    /// Number of operations per iteration.
    operations: u64,
    /// Number of iterations.
    iterations: u32,
    /// Workload that this one is measured with.
    measured_with: Option<String>,
    /// Kernel functions that each operation enters; of each list, one.
    enters: &'static [&'static [&'static str]],
    /// Metric.
    metric: String,
    /// Unit on the exact machine.
    unit: String,
    /// `lower is better` or `higher is better`.
    direction: String,
    /// Threshold (percent): smaller differences count as same.
    margin_percent: f64,
    /// Distance between five seeds of one build (percent); smaller differences need five seeds
    /// that agree.
    floor_percent: Option<f64>,
    /// Standard deviation between seeds (percent), if the workload is chaotic.
    spread_percent: Option<u16>,
    /// Test that it is modelled on; empty for none.
    source: String,
}

impl WorkloadsDocument {
    /// Returns the document of suites.
    pub(crate) fn new(suites: &[Arc<Suite>]) -> Self {
        let suites = suites.iter().map(|suite| ListedSuite {
            name: suite.name,
            purpose: suite.purpose,
            workloads: suite
                .workloads
                .iter()
                .map(|workload| listed(workload))
                .collect(),
        });
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "workloads",
            suites: suites.collect(),
        }
    }
}

fn listed(workload: &Workload) -> ListedWorkload {
    let metric = &workload.metric;
    ListedWorkload {
        name: workload.name.to_string(),
        stresses: workload.stresses.to_string(),
        operation: workload.operation.to_string(),
        operations: workload.operations,
        iterations: workload.iterations,
        measured_with: workload.row_of.as_ref().map(ToString::to_string),
        enters: workload.exercises,
        metric: metric.name.to_string(),
        unit: metric.unit(Clock::Instructions).to_string(),
        direction: metric.direction.to_string(),
        margin_percent: metric.margin_percent,
        floor_percent: floor_percent(&workload.name),
        spread_percent: spread_percent(&workload.name),
        source: workload.source.to_string(),
    }
}

impl Listing for WorkloadsDocument {
    /// Renders what each workload stresses, what one operation is, which test it is modelled on,
    /// and what it reports. A suite whose workloads are all in earlier suites has only their
    /// names.
    fn text(&self, styles: &Styles) -> String {
        let mut shown = BTreeSet::new();
        let mut texts = Vec::new();
        for suite in &self.suites {
            let names: Vec<&str> = suite
                .workloads
                .iter()
                .map(|workload| &*workload.name)
                .collect();
            texts.push(if names.iter().all(|name| shown.contains(name)) {
                let mut page = Page::default();
                page.hanging("", &format!("{}: {}", suite.name, suite.purpose));
                page.blank();
                page.paragraph(0, &names.join(" "));
                page.finish()
            } else {
                of_suite(suite, styles)
            });
            shown.extend(names);
        }
        texts.join("\n")
    }
}

fn of_suite(suite: &ListedSuite, styles: &Styles) -> String {
    let mut page = Page::default();
    page.hanging("", &format!("{}: {}", suite.name, suite.purpose));
    page.blank();
    let mut source = "";
    for workload in &suite.workloads {
        let name = format!("{:<INDENT$}", workload.name);
        let mut lines = Page::default();
        lines.hanging(&name, &workload.stresses);
        lines.paragraph(INDENT, &operation(workload));
        match (workload.spread_percent, workload.floor_percent) {
            (Some(percent), _) => {
                lines.paragraph(
                    INDENT,
                    &format!("chaotic: standard deviation of {percent} % between seeds"),
                );
            }
            (None, Some(floor)) => {
                lines.paragraph(INDENT, &format!("floor: {floor} % between seeds"));
            }
            (None, None) => {}
        }
        if !workload.source.is_empty() {
            let same = workload.source == source;
            lines.paragraph(
                INDENT,
                &format!("after {}", if same { "the same" } else { &workload.source }),
            );
        }
        source = &workload.source;
        let text = lines.finish();
        // Coloured after wrapping, because colours have no width.
        page.line(
            text.trim_end()
                .replacen(&workload.name, &styles.strong(&workload.name), 1),
        );
    }
    page.blank();
    for metric in metrics(suite) {
        page.paragraph(0, &metric);
    }
    page.finish()
}

fn operation(workload: &ListedWorkload) -> String {
    if let Some(lead) = &workload.measured_with {
        return format!("measured with {lead}");
    }
    format!(
        "op: {}; {} x {}",
        workload.operation,
        count(workload.iterations as usize, "iteration"),
        workload.operations
    )
}

/// Returns the metrics of the suite's workloads, each once.
fn metrics(suite: &ListedSuite) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for workload in &suite.workloads {
        let text = format!(
            "Metric {}: {}; differences up to {} count as same.",
            workload.metric,
            workload.direction,
            margin(workload.margin_percent)
        );
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::Suite;

    use super::WorkloadsDocument;
    use crate::views::Listing as _;
    use compare::fixtures::WORKLOADS;
    use document::Styles;

    #[test]
    fn a_suite() {
        let suites = [Arc::new(Suite {
            name: "micro",
            purpose: "what single paths of the kernel cost: system calls, processes, memory, files, sockets, locks",
            workloads: WORKLOADS.clone(),
        })];
        let text = WorkloadsDocument::new(&suites).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text);
        let coloured = WorkloadsDocument::new(&suites).text(&Styles::ansi());
        assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), text);
    }

    #[test]
    fn suites_fit_a_mail_with_each_workload_once() {
        let text = WorkloadsDocument::new(&*model::SUITES).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        for workload in model::workloads() {
            let heads = text.lines().filter(|line| {
                line.strip_prefix(&*workload.name)
                    .is_some_and(|l| l.starts_with("  "))
            });
            assert_eq!(heads.count(), 1, "{}", workload.name);
        }
    }
}
