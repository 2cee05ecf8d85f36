//! A comparison as text: at most 80 columns for two kernels, ready for a mail.

mod table;

use model::Verdict;

use crate::comparison::{Comparison, Failure, Kernel};
use crate::document::{Block, write_text};
use crate::environment::Difference;
use crate::label::cut_middle;
use crate::monitors::SampleTable;
use crate::plain::plain_lines;
use crate::render::layout::{Page, WIDTH, broken, command_lines, wrap};
use crate::render::number::{date, value};
use crate::render::style::Style;
use crate::render::styles::Styles;
use crate::render::{counted, findings, monitors, words};

/// The experiment whose results may be published in percent only.
const SDET: &str = "SDET";

/// Lines of a console that a mail has room for; the page has all that were kept.
const CONSOLE_LINES: usize = 16;

/// Renders a comparison as text.
#[must_use]
pub fn text(comparison: &Comparison, styles: &Styles) -> String {
    text_in(comparison, Style::Marvin, styles)
}

/// Renders a comparison as text, its tables in a style. What is decided, and all that is said around the tables, is the
/// same in all styles.
#[must_use]
pub fn text_in(comparison: &Comparison, style: Style, styles: &Styles) -> String {
    let mut page = Page::default();
    opening(&mut page, comparison, styles);
    match style {
        Style::Marvin => {
            table::tables(&mut page, comparison, styles);
            in_percent(&mut page, comparison);
        }
        Style::Y2013 | Style::Mmtests => {
            let heads: Vec<[String; 2]> = comparison.kernels().map(|kernel| kernel.head.clone()).collect();
            for samples in SampleTable::of(comparison) {
                write_text(&mut page, &monitors::of_samples(&samples, &heads, style), styles);
            }
            in_percent(&mut page, comparison);
            letters(&mut page, comparison);
        }
    }
    closing(&mut page, comparison);
    apart(&mut page, comparison, styles);
    origins(&mut page, comparison, styles);
    watched(&mut page, comparison, style, styles);
    failures(&mut page, comparison, styles);
    unclear(&mut page, comparison, styles);
    environment(&mut page, comparison, styles);
    origin(&mut page, comparison, styles);
    page.finish()
}

/// What results of SDET are given in: percent of the first kernel, as throughput, with standard deviations.
fn in_percent(page: &mut Page, comparison: &Comparison) {
    let heads: Vec<[String; 2]> = comparison.kernels().map(|kernel| kernel.head.clone()).collect();
    let tables = SampleTable::of(comparison);
    let rows = tables.iter().filter(|table| table.title == SDET).flat_map(|table| &table.rows);
    for (number, row) in rows.filter(|row| row.relative().iter().any(Option::is_some)).enumerate() {
        page.blank();
        if number == 0 {
            page.words(0, "SDET, as its results are given: throughput in percent of the first kernel's");
            page.blank();
        }
        write_text(page, &[Block::Table(monitors::relative(row, &heads))], &Styles::plain());
    }
}

/// What is better and what is worse, for tables that have no column for that. What is unclear has its own part below.
fn letters(page: &mut Page, comparison: &Comparison) {
    page.blank();
    for (position, other) in comparison.others.iter().enumerate() {
        for verdict in [Verdict::Better, Verdict::Worse] {
            let rows = comparison.rows.iter().filter(|row| row.cells[position].compared.verdict == verdict);
            let names: Vec<&str> = rows.map(|row| &*row.workload.name).collect();
            if !names.is_empty() {
                page.hanging(
                    &format!("{} ", verdict.letter()),
                    &format!("{}: {}", other.kernel.title, names.join(", ")),
                );
            }
        }
    }
}

fn opening(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    for alarm in words::alarms(comparison) {
        for line in wrap(&alarm, WIDTH) {
            page.line(styles.alarm(&line));
        }
        page.blank();
    }
    for headline in words::headlines(comparison) {
        for line in wrap(&headline, WIDTH) {
            page.line(styles.strong(&line));
        }
    }
    page.blank();
    page.hanging("Machine: ", &words::machine(comparison));
    page.hanging("Seeds:   ", &words::seeds(comparison));
    for note in words::notes(comparison) {
        page.hanging("Note:    ", &note);
    }
}

fn closing(page: &mut Page, comparison: &Comparison) {
    page.blank();
    for other in &comparison.others {
        if let Some(mean) = words::geometric_mean(comparison, other) {
            page.words(0, &mean);
        }
    }
    page.words(
        0,
        &if words::no_run_needed(comparison) { words::NO_RUN_NEEDED.to_owned() } else { words::legend(comparison) },
    );
    if let Some(counted) = counted::cross_check(comparison) {
        page.words(0, &counted);
    }
    page.words(0, comparison.base.machine.kind.caution());
}

/// The rows that changed, taken apart.
fn apart(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    let rows = counted::apart(comparison);
    if rows.is_empty() {
        return;
    }
    page.blank();
    page.line(styles.strong(&format!("{}:", counted::HEAD)));
    let head = format!("{:18} {:^20} {:^19} {:^20}", "", "kernel", "user code", "ticks, other tasks");
    page.line(styles.faint(head.trim_end()));
    for row in rows {
        let numbers: Vec<String> = [row.kernel, row.user, row.elsewhere]
            .iter()
            .flatten()
            .map(|n| value(*n, 9))
            .map(|n| format!("{n:>9}"))
            .collect();
        page.line(format!("{:18} {}", cut_middle(&row.name, 18), numbers.join(" ")));
    }
}

/// What the kernels counted meanwhile.
fn watched(page: &mut Page, comparison: &Comparison, style: Style, styles: &Styles) {
    for monitored in &comparison.monitors {
        page.blank();
        for line in wrap(&monitored.subject, WIDTH) {
            page.line(styles.strong(&line));
        }
        write_text(page, &monitors::blocks(monitored, style), styles);
    }
}

fn origins(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    if comparison.origins.is_empty() {
        return;
    }
    page.blank();
    page.line(styles.strong("Where it comes from (new minus base, + is more work):"));
    for sentence in &comparison.origins {
        page.hanging("  ", sentence);
    }
}

fn failures(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    if comparison.failures.is_empty() {
        return;
    }
    page.blank();
    page.line(styles.strong("Failed:"));
    for failure in &comparison.failures {
        page.words(2, &findings::failure(comparison, failure));
        console(page, failure, styles);
    }
}

fn console(page: &mut Page, failure: &Failure, styles: &Styles) {
    let lines = plain_lines(&failure.console_tail);
    for line in &lines[lines.len().saturating_sub(CONSOLE_LINES)..] {
        let mut mark = "    | ";
        for piece in broken(line, WIDTH - mark.len()) {
            page.line(styles.faint(format!("{mark}{piece}").trim_end()));
            mark = "      ";
        }
    }
}

fn unclear(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    let found = findings::unclear(comparison);
    if found.is_empty() {
        return;
    }
    page.blank();
    page.line(styles.strong("Unclear:"));
    for unclear in found {
        page.hanging("  ? ", &unclear.rows);
        page.words(6, &unclear.reason);
    }
}

fn environment(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    if words::no_run_needed(comparison) {
        return;
    }
    page.blank();
    let differing = &comparison.environment;
    if differing.differences.is_empty() && differing.silent.is_empty() {
        page.line("The kernels' environments do not differ.");
        return;
    }
    page.line(styles.strong("What differed between the environments:"));
    for difference in &differing.differences {
        self::difference(page, comparison, difference);
    }
    match findings::silent(comparison) {
        Some(silent) => page.words(2, &silent),
        None => page.line("  nothing else"),
    }
}

fn difference(page: &mut Page, comparison: &Comparison, difference: &Difference) {
    page.words(2, &difference.name);
    let titles: Vec<&str> = comparison.kernels().map(|k| k.title.as_str()).collect();
    let widest = titles.iter().map(|t| t.chars().count()).max().unwrap_or(0);
    let room = WIDTH.saturating_sub(widest + 6).max(24);
    let values = findings::values(comparison, difference, room);
    for (title, value) in titles.iter().zip(values) {
        page.hanging(&format!("    {title:<widest$}  "), &value);
    }
}

fn origin(page: &mut Page, comparison: &Comparison, styles: &Styles) {
    page.blank();
    page.line(styles.strong("Kernels:"));
    for kernel in comparison.kernels() {
        self::kernel(page, kernel, comparison);
    }
    page.blank();
    if words::one_machine(comparison) {
        for (number, machine) in comparison.base.machines().enumerate() {
            page.hanging(if number == 0 { "Machine:   " } else { "  and:     " }, &machine.id.to_string());
        }
    }
    if let Some(created) = comparison.created_unix {
        page.hanging("Compared:  ", &date(created));
    }
    let mut mark = "Reproduce: ";
    for line in command_lines(&comparison.command, WIDTH - mark.len()) {
        page.line(format!("{mark}{line}"));
        mark = "           ";
    }
}

fn kernel(page: &mut Page, kernel: &Kernel, comparison: &Comparison) {
    let build = &kernel.build;
    page.words(2, &kernel.title);
    page.words(4, &words::source(build));
    page.words(4, &format!("{}, image sha256 {}", build.id.short(), words::image(build, 12)));
    if !words::one_machine(comparison) {
        let machine = &kernel.machine;
        page.words(4, &format!("on {}: {}", machine.id.short(), machine.summary));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use model::{FailureReason, Stage, Workload};

    use super::{text, text_in};
    use crate::compare::compare;
    use crate::fixtures::{
        Ending, HOSTILE, Subject, THROUGHPUT, build, equal, hostile, mixed, old, other_machine, question, seeds, three,
        two,
    };
    use crate::render::style::Style;
    use crate::render::styles::Styles;
    use crate::{Comparison, Side};

    fn shown(comparison: &Comparison) -> String {
        text(comparison, &Styles::plain())
    }

    fn assert_fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
            assert_eq!(line, line.trim_end(), "trailing space");
        }
    }

    #[test]
    fn two_kernels_and_five_seeds() {
        let text = shown(&two(&seeds(5)));
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn two_kernels_and_one_seed() {
        let text = shown(&two(&[1]));
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn a_name_longer_than_its_column_stands_above_its_numbers() {
        let mut comparison = two(&seeds(5));
        let row = &mut comparison.rows[0];
        let workload = Workload { name: "sysbench-cpu.latency-max".into(), ..(*row.workload).clone() };
        row.workload = Arc::new(workload);
        let text = shown(&comparison);
        assert_fits(&text);
        let lines: Vec<&str> = text.lines().skip_while(|line| *line != "sysbench-cpu.latency-max").take(2).collect();
        assert!(lines.len() == 2 && lines[1].starts_with("    ") && lines[1].contains("0.00%"), "{text}");
    }

    #[test]
    fn colours_say_nothing_that_letters_do_not() {
        let comparison = two(&seeds(2));
        let coloured = text(&comparison, &Styles::ansi());
        insta::assert_snapshot!(coloured.replace('\x1b', "^["));
        let mut bare = coloured;
        for code in ["1", "2", "36", "1;33", "35", "0"] {
            bare = bare.replace(&format!("\x1b[{code}m"), "");
        }
        assert_eq!(bare, shown(&comparison));
    }

    #[test]
    fn three_kernels_one_of_which_never_boots() {
        insta::assert_snapshot!(shown(&three(&seeds(3))));
    }

    #[test]
    fn equal_images() {
        let text = shown(&equal(&seeds(2)));
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn equal_images_measured_again() {
        let seeds = seeds(2);
        let old = old(&seeds);
        let comparison = compare(&old.side(), &[old.side()], &question(&seeds)).unwrap();
        insta::assert_snapshot!(shown(&comparison));
    }

    #[test]
    fn mixed_machines_are_the_first_thing_that_is_said() {
        let text = shown(&mixed(&seeds(2)));
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn no_runs_at_all() {
        let old = Subject::new(build("deb:6.1", "6.1.192"), &[], &[]);
        let new = Subject::new(build("deb:6.12", "6.12.117"), &[], &[]);
        let comparison = compare(&old.side(), &[new.side()], &question(&[])).unwrap();
        let text = shown(&comparison);
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn two_directions_are_two_tables() {
        let seeds = seeds(2);
        let cells = |a, b| [("getppid", Ending::Cost(a, 0.0)), ("copy-rate", Ending::Cost(b, 1.0))];
        let old = Subject::new(build("deb:6.12", "6.12.117"), &seeds, &cells(100.0, 5000.0));
        let new = Subject::new(build("deb:6.12+rt-amd64", "6.12.117"), &seeds, &cells(90.0, 6000.0));
        let mut question = question(&seeds);
        question.workloads.truncate(1);
        question.workloads.push(Arc::clone(&THROUGHPUT));
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        let text = shown(&comparison);
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn each_experiment_is_a_block_and_sdet_is_in_percent_too() {
        let seeds = seeds(2);
        let names = ["aim9-page", "sdet-like-1", "sdet-like-4", "memcachetest-0", "io-duration-0", "memcachetest-50"];
        let cells = |factor: f64| {
            let cost = |(at, name)| (name, Ending::Cost(factor * 1000.0 * (at as f64 + 1.0), 1.0));
            names.into_iter().enumerate().map(cost).collect::<Vec<_>>()
        };
        let old = Subject::new(build("deb:6.1", "6.1.192"), &seeds, &cells(1.0));
        let new = Subject::new(build("deb:6.12", "6.12.117"), &seeds, &cells(1.25));
        let mut question = question(&seeds);
        question.workloads = model::workloads().into_iter().filter(|w| names.contains(&&*w.name)).cloned().collect();
        let small = other_machine();
        let sides = [&old, &new].map(|subject| Side { also: vec![&small], ..subject.side() });
        let comparison = compare(&sides[0], &sides[1..], &question).unwrap();
        for style in [Style::Marvin, Style::Y2013] {
            let text = text_in(&comparison, style, &Styles::plain());
            assert_fits(&text);
            insta::assert_snapshot!(text);
        }
    }

    #[test]
    fn nasty_lengths_and_values_still_fit_a_mail() {
        let seeds = [u64::MAX - 3, 1, 2];
        let long = "6.12.0-rc4-next-20241105-00123-gabcdef123456-dirty-and-a-very-long-local-version";
        let path = format!("path:/home/{}/bzImage", "x".repeat(90));
        let nasty = |scale: f64| {
            vec![
                ("fault-file-private", Ending::Samples(vec![scale; 3])),
                ("getppid", Ending::Samples(vec![0.0, 100.0, 100.0])),
                ("mmap", Ending::Samples(vec![1e-7 * scale; 4])),
                ("fork-wait", Ending::Failed(Stage::Results, FailureReason::BadStream("y".repeat(200)), HOSTILE)),
                (
                    "fork-exec",
                    Ending::Unsupported("no /proc/sys/a/b/c/d/e and other words without an end, as it seems"),
                ),
            ]
        };
        let old = Subject::new(build(&path, long), &seeds[..1], &nasty(1e15));
        let mut new = Subject::new(build(&format!("{path}.2"), long), &seeds[..1], &nasty(1.334_56e16));
        new.runs[0].environment.push((HOSTILE.repeat(3), HOSTILE.repeat(20)));
        let mut question = question(&seeds);
        question.command = format!("marvin compare 'a b {}' {} --seeds 3", "c ".repeat(20), "word ".repeat(30));
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        let text = shown(&comparison);
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn hostile_words_do_not_reach_the_terminal() {
        let text = shown(&hostile());
        assert!(!text.contains('\x1b'));
        assert_fits(&text);
        insta::assert_snapshot!(text);
    }

    #[test]
    fn huge_changes_fit() {
        let seeds = seeds(2);
        for factor in [13.345_6, 1e3, 1e7, 1e12] {
            let old = Subject::new(
                build("deb:6.1", "6.1.192"),
                &seeds,
                &[("fault-file-private", Ending::Cost(123_456.7, 0.0))],
            );
            let new = Subject::new(
                build("deb:6.12", "6.12.117"),
                &seeds,
                &[("fault-file-private", Ending::Cost(123_456.7 * factor, 1000.0 * factor))],
            );
            let mut question = question(&seeds);
            question.workloads = vec![Arc::clone(&question.workloads[4])];
            let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
            assert_fits(&shown(&comparison));
        }
    }
}
