//! One run as text: `marvin show`.

use std::sync::Arc;

use model::{Build, Machine, Metric, Outcome, Run, SubjectFailure, Workload, WorkloadResult};

use crate::render::words;
use crate::value::{Estimator, NoValue, RunValue, Scale, run_value, samples};
use document::layout::{Page, WIDTH, break_line, wrap};
use document::number::{count, start_date, value};
use document::{Styles, cut_middle};
use model::{find_workload, sanitize_line, sanitize_lines};

/// A run with its build and machine, as far as known.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// The run that is printed.
    pub run: &'a Run,
    /// The build that it measured.
    pub build: &'a Build,
    /// The machine that it ran on.
    pub machine: &'a Machine,
    /// Declarations of workloads that are not in any suite.
    pub declared: &'a [Arc<Workload>],
    /// Artifacts with the memory of kernels that died.
    pub dumps: &'a [String],
}

/// Renders one run as text.
#[must_use]
pub fn run(shown: &Shown<'_>, styles: &Styles) -> String {
    let Shown {
        run,
        build,
        machine,
        dumps,
        ..
    } = shown;
    let mut page = Page::default();
    let replicate = machine.capabilities().replicate();
    let headline = format!(
        "{} on {}, {} {}: {}",
        sanitize_line(&run.suite),
        build.version,
        replicate,
        run.seed,
        endings(&run.results)
    );
    for line in wrap(&headline, WIDTH) {
        page.line(styles.strong(&line));
    }
    page.blank();
    page.hanging("Run:     ", &run.id.to_string());
    page.hanging("Started: ", &start_date(run.started_unix));
    page.hanging("Kernel:  ", &words::source(build));
    page.hanging("Build:   ", &build.id.to_string());
    page.hanging(
        "Machine: ",
        &format!("{}; {}", machine.kind, machine.summary),
    );
    page.hanging("         ", &machine.id.to_string());
    page.blank();
    values(&mut page, shown);
    rest(&mut page, run, styles);
    for name in *dumps {
        page.blank();
        page.paragraph(
            0,
            "The memory of the kernel that died is kept, filtered; to look at it:",
        );
        page.line(format!(
            "  marvin show {} --artifact {} --output FILE",
            run.id.short(),
            sanitize_line(name)
        ));
        page.line("  marvin dump info FILE");
    }
    environment(&mut page, shown, styles);
    page.finish()
}

/// Returns the number of workloads with each outcome.
fn endings(results: &[WorkloadResult]) -> String {
    let count_of =
        |wanted: fn(&Outcome) -> bool| results.iter().filter(|r| wanted(&r.outcome)).count();
    let completed = count_of(|o| matches!(o, Outcome::Completed));
    let unsupported = count_of(|o| matches!(o, Outcome::Unsupported(_)));
    let failed = count_of(|o| matches!(o, Outcome::Failed(_)));
    let mut texts = vec![format!(
        "{completed} of {} completed",
        count(results.len(), "workload")
    )];
    if unsupported > 0 {
        texts.push(format!("{unsupported} not supported"));
    }
    if failed > 0 {
        texts.push(format!("{failed} failed"));
    }
    texts.join(", ")
}

/// Returns the unit of a result; none for workloads that are not declared any more.
#[must_use]
pub fn result_unit(shown: &Shown<'_>, result: &WorkloadResult, scale: Scale) -> String {
    if shown.machine.capabilities().foreign {
        let declared = model::imported_declaration(&shown.run.suite, result);
        return sanitize_line(&declared.unit);
    }
    let mut declared = shown.declared.iter();
    let known = find_workload(&result.workload).or_else(|| {
        declared
            .find(|workload| workload.name == result.workload)
            .cloned()
    });
    let metric = match known {
        Some(workload) => workload.metric.clone(),
        None if shown.run.suite == "tools" => return "unknown unit".to_owned(),
        None => Metric::COST,
    };
    sanitize_line(
        &scale
            .unit(&metric, shown.machine.capabilities().clock)
            .name(),
    )
}

fn values(page: &mut Page, shown: &Shown<'_>) {
    let run = shown.run;
    let completed: Vec<&WorkloadResult> = run
        .results
        .iter()
        .filter(|r| r.outcome == Outcome::Completed)
        .collect();
    if completed.is_empty() {
        return;
    }
    if shown.machine.capabilities().foreign {
        return noisy(page, shown, &completed);
    }
    let estimator = Estimator::for_machine(shown.machine.capabilities());
    let width = completed
        .iter()
        .map(|result| result.workload.len())
        .max()
        .unwrap_or(0)
        .clamp(18, 26);
    let mut units: Vec<(String, Vec<String>)> = Vec::new();
    for result in completed {
        let value = run_value(result, shown.machine.capabilities());
        // Rows without a value go to the table of costs.
        let unit = result_unit(
            shown,
            result,
            value.map_or(Scale::Counted, |value| value.scale),
        );
        let line = line(result, value, width);
        match units.iter_mut().find(|(known, _)| *known == unit) {
            Some((_, lines)) => lines.push(line),
            None => units.push((unit, vec![line])),
        }
    }
    for (unit, lines) in units {
        let unit = cut_middle(&unit, width);
        page.line(format!(
            "{unit:<width$} {:>12} {:>12} {:>12}  iterations",
            estimator.heading(),
            "min",
            "max"
        ));
        lines.into_iter().for_each(|line| page.line(line));
    }
    match estimator {
        Estimator::MedianWithoutFirst => {
            page.paragraph(
                0,
                "iterations: without the first, which is left out, x operations in each",
            );
        }
        Estimator::TrimmedMean => {
            page.paragraph(
                0,
                &format!(
                    "{}: {estimator}; iterations: x operations in each",
                    estimator.heading()
                ),
            );
        }
    }
}

fn line(result: &WorkloadResult, value: Result<RunValue, NoValue<'_>>, width: usize) -> String {
    let name = cut_middle(&sanitize_line(&result.workload), width);
    let value = match value {
        Ok(value) => value,
        Err(none) => return cut_middle(&format!("{name:<width$} {:>12} {none}", "-"), WIDTH),
    };
    let samples = samples(result, value.scale);
    let rest = samples.get(value.left_out..).unwrap_or_default();
    let number =
        |n: Option<f64>| n.map_or_else(|| "-".to_owned(), |n| document::number::value(n, 12));
    let ends = stats::spread(rest);
    format!(
        "{name:<width$} {:>12} {:>12} {:>12}  {} x {}",
        number(Some(value.value)),
        number(ends.map(|e| e.min)),
        number(ends.map(|e| e.max)),
        rest.len(),
        result.operations,
    )
}

/// Values of another suite: each row has its own unit, and all its values count.
fn noisy(page: &mut Page, shown: &Shown<'_>, completed: &[&WorkloadResult]) {
    let estimator = Estimator::for_machine(shown.machine.capabilities());
    page.line(format!(
        "{:<32} {:>11} {:>11} {:>11} values unit",
        "",
        estimator.heading(),
        "min",
        "max"
    ));
    let mut undirected = 0;
    for result in completed {
        let declared = model::imported_declaration(&shown.run.suite, result);
        undirected += usize::from(declared.direction.is_none());
        let mark = if declared.direction.is_none() {
            '?'
        } else {
            ' '
        };
        let ends = stats::spread(&result.samples);
        page.line(format!(
            "{:<32} {:>11} {:>11} {:>11} {:>6} {}{mark}",
            cut_middle(&sanitize_line(&result.workload), 32),
            format_or_dash(
                run_value(result, shown.machine.capabilities())
                    .ok()
                    .map(|value| value.value)
            ),
            format_or_dash(ends.map(|e| e.min)),
            format_or_dash(ends.map(|e| e.max)),
            result.samples.len(),
            declared.unit,
        ));
    }
    page.paragraph(0, &format!("{}: {estimator}", estimator.heading()));
    if undirected > 0 {
        let rows = count(undirected, "row");
        page.paragraph(0, &format!("?: of {rows} it is not known which way they are good; `marvin report` rates them with --lower or --higher"));
    }
}

/// Formats a number for its column; `-` if there is none.
fn format_or_dash(number: Option<f64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| value(number, 11))
}

fn rest(page: &mut Page, run: &Run, styles: &Styles) {
    page.blank();
    for result in &run.results {
        if let Outcome::Unsupported(what) = &result.outcome {
            page.hanging("? ", &format!("{}: not supported: {what}", result.workload));
        }
    }
    for (failure, names) in failures(&run.results) {
        page.blank();
        let names = names.join(", ");
        let sentence = format!("{names}: {} ({} stage)", failure.reason, failure.stage);
        for line in wrap(&sentence, WIDTH) {
            page.line(styles.alarm(&line));
        }
        for line in sanitize_lines(&failure.console_tail) {
            let mut mark = "  | ";
            for piece in break_line(&line, WIDTH - mark.len()) {
                page.line(styles.faint(format!("{mark}{piece}").trim_end()));
                mark = "    ";
            }
        }
    }
}

/// Returns the failures, each with its workloads: a kernel that does not boot fails alike in all.
fn failures(results: &[WorkloadResult]) -> Vec<(&SubjectFailure, Vec<&str>)> {
    let mut found: Vec<(&SubjectFailure, Vec<&str>)> = Vec::new();
    for result in results {
        let Outcome::Failed(failure) = &result.outcome else {
            continue;
        };
        match found.iter_mut().find(|(known, _)| *known == failure) {
            Some((_, names)) => names.push(&result.workload),
            None => found.push((failure, vec![&result.workload])),
        }
    }
    found
}

fn environment(page: &mut Page, shown: &Shown<'_>, styles: &Styles) {
    let run = shown.run;
    page.blank();
    if run.environment.is_empty() && shown.machine.capabilities().foreign {
        page.line("The imported results do not describe the environment.");
        return;
    }
    if run.environment.is_empty() {
        page.line("The guest said nothing of its environment: it never got that far.");
        return;
    }
    page.line(styles.strong("Environment:"));
    for (name, value) in &run.environment {
        page.hanging(&format!("  {:<20} ", sanitize_line(name)), value);
    }
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Shown, run};
    use crate::fixtures::{Subject, dead, new, old};
    use document::Styles;

    fn shown(subject: &Subject) -> String {
        let run_of = &subject.runs[0];
        let build = &subject.build;
        let machine = &subject.machine;
        let dumps = ["fault-anon.vmcore".to_owned()];
        let is_dead = run_of
            .results
            .iter()
            .any(|result| matches!(result.outcome, Outcome::Failed(_)));
        let shown = Shown {
            run: run_of,
            build,
            machine,
            declared: &[],
            dumps: if is_dead { &dumps } else { &[] },
        };
        let text = run(&shown, &Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        assert!(!text.contains('\x1b'));
        text
    }

    #[test]
    fn a_run_with_an_unsupported_workload() {
        insta::assert_snapshot!(shown(&old(&[1])));
    }

    #[test]
    fn a_run_with_a_failure() {
        insta::assert_snapshot!(shown(&new(&[3])));
    }

    #[test]
    fn imported_run_speaks_of_no_guest() {
        let mut subject = old(&[1]);
        subject.machine.kind = "imported".parse().unwrap();
        subject.runs[0].environment.clear();
        let text = shown(&subject);
        assert!(
            text.ends_with("The imported results do not describe the environment.\n"),
            "{text}"
        );
        assert!(!text.contains("guest"), "{text}");
    }

    #[test]
    fn a_run_that_never_booted() {
        let mut dead = dead(&[1]);
        dead.runs[0].results.truncate(2);
        insta::assert_snapshot!(shown(&dead));
    }
}
