//! The list of external tools: `marvin tools`.

use model::{Steadiness, Tool, ToolWorkload};
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;
use document::layout::Page;
use document::number::{count, margin};
use model::sanitize_line;

/// The position of the second column, as in the listing of workloads.
const INDENT: usize = 20;

/// External tools.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ToolsDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The tools.
    tools: Vec<ListedTool>,
}

/// One external tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedTool {
    /// Name.
    name: String,
    /// What it is.
    about: String,
    /// Debian packages that it comes from.
    packages: Vec<String>,
    /// Version in Debian's suite; null if it is not there or its lists cannot be had.
    version: Option<String>,
    /// Workloads.
    workloads: Vec<ListedToolWorkload>,
}

/// A workload of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedToolWorkload {
    /// Name; `tool:NAME` on the command line.
    name: String,
    /// What it stresses.
    stresses: String,
    /// Memory of the guest (MiB).
    memory_mib: u32,
    /// Number of runs of the command.
    runs: u32,
    /// Whether small causes have large effects.
    chaotic: bool,
    /// The program and its arguments.
    command: Vec<String>,
    /// Reported metrics.
    metrics: Vec<ListedMetric>,
}

/// A metric of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct ListedMetric {
    /// Name.
    name: String,
    /// Unit.
    unit: String,
    /// `lower is better` or `higher is better`.
    direction: String,
    /// Threshold (percent): smaller differences count as same.
    margin_percent: f64,
}

impl ToolsDocument {
    /// Returns the document of tools, each with its version in Debian's suite.
    pub(crate) fn new<'a>(tools: impl IntoIterator<Item = (&'a Tool, Option<&'a str>)>) -> Self {
        let tools = tools.into_iter().map(|(tool, version)| ListedTool {
            name: tool.name.clone(),
            about: tool.about.clone(),
            packages: tool.packages.clone(),
            version: version.map(str::to_owned),
            workloads: tool.workloads.iter().map(workload).collect(),
        });
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "tools",
            tools: tools.collect(),
        }
    }
}

fn workload(workload: &ToolWorkload) -> ListedToolWorkload {
    let metrics = workload.metrics.iter().map(|metric| ListedMetric {
        name: metric.name.clone(),
        unit: metric.unit.clone(),
        direction: metric.direction.to_string(),
        margin_percent: metric.margin_percent,
    });
    ListedToolWorkload {
        name: workload.name.clone(),
        stresses: workload.stresses.clone(),
        memory_mib: workload.memory_mib,
        runs: workload.runs,
        chaotic: workload.steadiness == Steadiness::Chaotic,
        command: workload.command.clone(),
        metrics: metrics.collect(),
    }
}

impl Listing for ToolsDocument {
    fn text(&self, styles: &Styles) -> String {
        let mut texts = Vec::new();
        for tool in &self.tools {
            let mut page = Page::default();
            let version = tool
                .version
                .as_deref()
                .map_or_else(|| "version unknown".to_owned(), sanitize_line);
            page.hanging(
                "",
                &format!("{}: {} ({version})", tool.name, sanitize_line(&tool.about)),
            );
            page.blank();
            for workload in &tool.workloads {
                let text = of_workload(workload);
                // Coloured after wrapping, because colours have no width.
                page.line(text.trim_end().replacen(
                    &workload.name,
                    &styles.strong(&workload.name),
                    1,
                ));
            }
            texts.push(page.finish());
        }
        texts.join("\n")
    }
}

fn of_workload(workload: &ListedToolWorkload) -> String {
    let mut lines = Page::default();
    lines.hanging(
        &format!("{:<INDENT$}", workload.name),
        &sanitize_line(&workload.stresses),
    );
    let runs = count(workload.runs as usize, "run");
    let chaotic = if workload.chaotic { ", chaotic" } else { "" };
    lines.paragraph(
        INDENT,
        &format!(
            "{runs} in {} MiB{chaotic}: {}",
            workload.memory_mib,
            sanitize_line(&workload.command.join(" "))
        ),
    );
    for metric in &workload.metrics {
        let unit = sanitize_line(&metric.unit);
        let direction = &metric.direction;
        lines.paragraph(
            INDENT,
            &format!(
                "{} in {unit}, {direction}; margin {}",
                metric.name,
                margin(metric.margin_percent)
            ),
        );
    }
    lines.finish()
}

#[cfg(test)]
mod tests {
    use model::{
        Direction, Find, Pick, Reader, Source, Steadiness, Tool, ToolMetric, ToolWorkload,
    };

    use super::ToolsDocument;
    use crate::views::Listing as _;
    use document::Styles;

    fn tool() -> Tool {
        let metric = |name: &str, unit: &str, direction| ToolMetric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            direction,
            margin_percent: 1.0,
            reader: Some(Reader {
                source: Source::Stdout,
                after: None,
                find: Find::Key("x".to_owned()),
                pick: Pick::Only,
                factor: 1.0,
            }),
        };
        let command = "/usr/bin/sysbench cpu --time=0 --events=200 --cpu-max-prime=2000 run";
        Tool {
            name: "sysbench".to_owned(),
            about: "small benchmarks of processor, memory and threads, written around LuaJIT"
                .to_owned(),
            packages: vec!["sysbench".to_owned()],
            files: vec![],
            environment: vec![],
            workloads: vec![ToolWorkload {
                name: "sysbench-cpu".to_owned(),
                stresses: "user code: division, for prime numbers".to_owned(),
                memory_mib: 512,
                setup: vec![],
                server: None,
                prepare: vec![],
                command: command.split(' ').map(str::to_owned).collect(),
                runs: 4,
                limit_s: 60,
                steadiness: Steadiness::Chaotic,
                known: vec![],
                refuse: vec![],
                metrics: vec![
                    metric("rate", "events/s", Direction::HigherIsBetter),
                    metric("latency-max", "ms\u{1b}[31m", Direction::LowerIsBetter),
                ],
            }],
            own: None,
        }
    }

    #[test]
    fn tools_are_listed_with_version_and_metrics() {
        let tool = tool();
        let listed = [(&tool, Some("1.0.20+ds-5")), (&tool, None)];
        let text = ToolsDocument::new(listed).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text);
    }
}
