//! External tools as text: `marvin tools`.

use model::{Steadiness, Tool, ToolWorkload};

use crate::plain::plain;
use crate::render::layout::Page;
use crate::render::number::{count, margin};
use crate::render::styles::Styles;

/// The position of the second column, as in the listing of workloads.
const INDENT: usize = 20;

/// A tool to list.
#[derive(Debug, Clone, Copy)]
pub struct ListedTool<'a> {
    /// The tool.
    pub tool: &'a Tool,
    /// The version that an image would have, if known.
    pub version: Option<&'a str>,
}

/// Renders tools as text: description, version, workloads and metrics.
#[must_use]
pub fn tools(tools: &[ListedTool<'_>], styles: &Styles) -> String {
    let mut texts = Vec::new();
    for ListedTool { tool, version } in tools {
        let mut page = Page::default();
        let version = version.map_or_else(|| "not offered by apt here".to_owned(), plain);
        page.hanging("", &format!("{}: {} ({version})", tool.name, plain(&tool.about)));
        page.blank();
        for workload in &tool.workloads {
            let text = of_workload(workload);
            // Coloured after wrapping, because colours have no width.
            page.line(text.trim_end().replacen(&workload.name, &styles.strong(&workload.name), 1));
        }
        texts.push(page.finish());
    }
    texts.join("\n")
}

fn of_workload(workload: &ToolWorkload) -> String {
    let mut lines = Page::default();
    lines.hanging(&format!("{:<INDENT$}", workload.name), &plain(&workload.stresses));
    let runs = count(workload.runs as usize, "run");
    let chaotic = if workload.steadiness == Steadiness::Chaotic { ", chaotic" } else { "" };
    lines.words(
        INDENT,
        &format!("{runs} in {} MiB{chaotic}: {}", workload.memory_mib, plain(&workload.command.join(" "))),
    );
    for metric in &workload.metrics {
        let (unit, direction) = (plain(&metric.unit), metric.direction);
        lines.words(
            INDENT,
            &format!("{} in {unit}, {direction}; margin {}", metric.name, margin(metric.margin_percent)),
        );
    }
    lines.finish()
}

#[cfg(test)]
mod tests {
    use model::{Direction, Find, Pick, Reader, Source, Steadiness, Tool, ToolMetric, ToolWorkload};

    use super::{ListedTool, tools};
    use crate::render::styles::Styles;

    fn tool() -> Tool {
        let metric = |name: &str, unit: &str, direction| ToolMetric {
            name: name.to_owned(),
            unit: unit.to_owned(),
            direction,
            margin_percent: 1.0,
            reader: Reader {
                source: Source::Stdout,
                after: None,
                find: Find::Key("x".to_owned()),
                pick: Pick::Only,
                factor: 1.0,
            },
        };
        let command = "/usr/bin/sysbench cpu --time=0 --events=200 --cpu-max-prime=2000 run";
        Tool {
            name: "sysbench".to_owned(),
            about: "small benchmarks of processor, memory and threads, written around LuaJIT".to_owned(),
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
        }
    }

    #[test]
    fn tools_are_listed_with_version_and_metrics() {
        let tool = tool();
        let listed =
            [ListedTool { tool: &tool, version: Some("1.0.20+ds-5") }, ListedTool { tool: &tool, version: None }];
        let text = tools(&listed, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }
}
