//! The workloads of a suite as text: `marvin workloads`.

use model::{Suite, Workload};

use crate::render::layout::Page;
use crate::render::number::{count, margin};
use crate::render::styles::Styles;

/// Where the second column begins: behind the longest name that a suite may have.
const INDENT: usize = 20;

/// Renders a suite's workloads as text: what each stresses, what one operation is, what it reports.
#[must_use]
pub fn workloads(suite: &Suite, styles: &Styles) -> String {
    let mut page = Page::default();
    page.hanging("", &format!("{}: {}", suite.name, suite.purpose));
    page.blank();
    for workload in suite.workloads {
        let name = format!("{:<INDENT$}", workload.name);
        let mut lines = Page::default();
        lines.hanging(&name, workload.stresses);
        lines.words(INDENT, &operation(workload));
        let text = lines.finish();
        // Coloured after wrapping: colours have no width.
        page.line(text.trim_end().replacen(workload.name, &styles.strong(workload.name), 1));
    }
    page.blank();
    let metrics = metrics(suite);
    for metric in metrics {
        page.words(0, &metric);
    }
    page.finish()
}

fn operation(workload: &Workload) -> String {
    format!(
        "op: {}; {} x {}",
        workload.operation,
        count(workload.iterations as usize, "iteration"),
        workload.operations
    )
}

/// Returns what the suite's workloads report, each metric once.
fn metrics(suite: &Suite) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for workload in suite.workloads {
        let metric = workload.metric;
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
    use model::Suite;

    use super::workloads;
    use crate::fixtures::WORKLOADS;
    use crate::render::styles::Styles;

    #[test]
    fn a_suite() {
        let suite = Suite {
            name: "micro",
            purpose: "what single paths of the kernel cost: system calls, processes, memory, files, sockets, locks",
            workloads: &WORKLOADS,
        };
        let text = workloads(&suite, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
        let coloured = workloads(&suite, &Styles::ansi());
        assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), text);
    }

    #[test]
    fn the_micro_suite_fits_a_mail() {
        let text = workloads(&model::MICRO, &Styles::plain());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
}
