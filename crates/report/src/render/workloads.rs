//! The workloads of suites as text: `marvin workloads`.

use std::collections::BTreeSet;
use std::sync::Arc;

use model::{Suite, Workload, floor_percent, spread_percent};

use crate::render::layout::Page;
use crate::render::number::{count, margin};
use crate::render::styles::Styles;

/// The position of the second column: after the longest name of a workload.
const INDENT: usize = 20;

/// Renders the workloads of suites as text: what each stresses, its operation, the older test that it follows, its
/// metric. Suites that only select from earlier ones are listed by name.
#[must_use]
pub fn workloads(suites: &[Arc<Suite>], styles: &Styles) -> String {
    let mut shown = BTreeSet::new();
    let mut texts = Vec::new();
    for suite in suites {
        let names: Vec<&str> = suite.workloads.iter().map(|workload| &*workload.name).collect();
        texts.push(if names.iter().all(|name| shown.contains(name)) {
            let mut page = Page::default();
            page.hanging("", &format!("{}: {}", suite.name, suite.purpose));
            page.blank();
            page.words(0, &names.join(" "));
            page.finish()
        } else {
            of_suite(suite, styles)
        });
        shown.extend(names);
    }
    texts.join("\n")
}

fn of_suite(suite: &Suite, styles: &Styles) -> String {
    let mut page = Page::default();
    page.hanging("", &format!("{}: {}", suite.name, suite.purpose));
    page.blank();
    let mut source = "";
    for workload in &suite.workloads {
        let name = format!("{:<INDENT$}", workload.name);
        let mut lines = Page::default();
        lines.hanging(&name, &workload.stresses);
        lines.words(INDENT, &operation(workload));
        match (spread_percent(&workload.name), floor_percent(&workload.name)) {
            (Some(percent), _) => {
                lines.words(INDENT, &format!("chaotic: standard deviation of {percent} % between seeds"));
            }
            (None, Some(floor)) => lines.words(INDENT, &format!("floor: {floor} % between seeds")),
            (None, None) => {}
        }
        if !workload.source.is_empty() {
            let same = workload.source == source;
            lines.words(INDENT, &format!("after {}", if same { "the same" } else { &workload.source }));
        }
        source = &workload.source;
        let text = lines.finish();
        // Coloured after wrapping, because colours have no width.
        page.line(text.trim_end().replacen(&*workload.name, &styles.strong(&workload.name), 1));
    }
    page.blank();
    let metrics = metrics(suite);
    for metric in metrics {
        page.words(0, &metric);
    }
    page.finish()
}

fn operation(workload: &Workload) -> String {
    if let Some(lead) = &workload.row_of {
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
fn metrics(suite: &Suite) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for workload in &suite.workloads {
        let metric = &workload.metric;
        let text = format!(
            "Metric {}: {}; a difference up to {} is no news.",
            metric.name,
            metric.direction,
            margin(metric.margin_percent)
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

    use super::workloads;
    use crate::fixtures::WORKLOADS;
    use crate::render::styles::Styles;

    #[test]
    fn a_suite() {
        let suites = [Arc::new(Suite {
            name: "micro",
            purpose: "what single paths of the kernel cost: system calls, processes, memory, files, sockets, locks",
            workloads: WORKLOADS.clone(),
        })];
        let text = workloads(&suites, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
        let coloured = workloads(&suites, &Styles::ansi());
        assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), text);
    }

    #[test]
    fn suites_fit_a_mail_with_each_workload_once() {
        let text = workloads(&*model::SUITES, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for workload in model::workloads() {
            let heads =
                text.lines().filter(|line| line.strip_prefix(&*workload.name).is_some_and(|l| l.starts_with("  ")));
            assert_eq!(heads.count(), 1, "{}", workload.name);
        }
    }
}
