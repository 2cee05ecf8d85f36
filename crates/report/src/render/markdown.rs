//! A comparison as GitHub's markdown: for issues and merge requests. The same content as the text.

use crate::comparison::{Cell, Comparison, Images, Kernel};
use crate::plain::{plain, plain_lines};
use crate::render::number::{date, interval, percent, ratio, value};
use crate::render::words::Section;
use crate::render::{counted, findings, words};

/// As wide as any number gets; a table in markdown needs no columns.
const WIDE: usize = 24;

/// Renders a comparison as markdown.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut blocks: Vec<String> = Vec::new();
    for alarm in words::alarms(comparison) {
        blocks.push(format!("> **{}**", escaped(&alarm)));
    }
    for headline in words::headlines(comparison) {
        blocks.push(format!("**{}**", escaped(&headline)));
    }
    blocks.push(circumstances(comparison));
    for section in words::sections(comparison) {
        blocks.push(format!("{}; difference: positive is better", escaped(&words::caption(&section))));
        blocks.push(table(comparison, &section));
    }
    blocks.extend(closing(comparison));
    blocks.extend(apart(comparison));
    if !comparison.origins.is_empty() {
        blocks.push("Where it comes from (new minus base, + is more work):".to_owned());
        blocks.push(comparison.origins.iter().map(|s| format!("- {}", escaped(s))).collect::<Vec<_>>().join("\n"));
    }
    for monitored in &comparison.monitors {
        blocks.push(format!("## {}", escaped(&monitored.subject)));
        let tables = super::monitors::markdown(monitored, super::style::Style::Marvin);
        blocks.push(tables.replace("## ", "### ").trim_end().to_owned());
    }
    blocks.extend(failures(comparison));
    blocks.extend(unclear(comparison));
    blocks.push(environment(comparison));
    blocks.push(kernels(comparison));
    blocks.push(format!("Reproduce:\n\n{}", fenced(&[plain(&comparison.command)])));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

fn circumstances(comparison: &Comparison) -> String {
    let mut lines = vec![
        format!("- machine: {}", escaped(&words::machine(comparison))),
        format!("- seeds: {}", words::seeds(comparison)),
    ];
    lines.extend(words::notes(comparison).iter().map(|note| format!("- note: {}", escaped(note))));
    lines.extend(comparison.created_unix.map(|created| format!("- compared: {}", date(created))));
    lines.join("\n")
}

fn table(comparison: &Comparison, section: &Section<'_>) -> String {
    let several = comparison.seeds.len() > 1;
    let mut head = vec!["workload".to_owned(), escaped(&comparison.base.title)];
    let mut rule = vec![":---".to_owned(), "---:".to_owned()];
    for other in &comparison.others {
        head.extend([escaped(&other.kernel.title), "difference".to_owned()]);
        rule.extend(["---:".to_owned(), "---:".to_owned()]);
        if several {
            head.push("min..max %".to_owned());
            rule.push("---:".to_owned());
        }
        head.extend(["ratio".to_owned(), String::new()]);
        rule.extend(["---:".to_owned(), ":---".to_owned()]);
    }
    let mut lines = vec![line(&head), line(&rule)];
    for row in &section.rows {
        let mut cells = vec![escaped(row.workload.name), median(row.base.median)];
        for cell in &row.cells {
            cells.extend(self::cells(cell, comparison));
        }
        lines.push(line(&cells));
    }
    lines.join("\n")
}

fn line(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn median(median: Option<f64>) -> String {
    median.map_or_else(|| "-".to_owned(), |m| value(m, WIDE))
}

fn cells(cell: &Cell, comparison: &Comparison) -> Vec<String> {
    let mut cells = vec![
        median(cell.measured.median),
        cell.difference_percent.map_or_else(String::new, |d| format!("{}%", percent(d, WIDE))),
    ];
    if comparison.seeds.len() > 1 {
        cells.push(cell.spread_percent.map_or_else(String::new, |s| interval(s, WIDE)));
    }
    cells.push(cell.ratio.map_or_else(String::new, |r| ratio(r, WIDE)));
    cells.push(format!("`{}` {}", cell.verdict.letter(), cell.verdict.word()));
    cells
}

fn closing(comparison: &Comparison) -> Vec<String> {
    let mut lines: Vec<String> = comparison
        .others
        .iter()
        .filter_map(|other| words::geometric_mean(comparison, other))
        .map(|mean| format!("- {}", escaped(&mean)))
        .collect();
    if words::no_run_needed(comparison) {
        lines.push(format!("- {}", words::NO_RUN_NEEDED));
    } else {
        lines.push(format!("- {}", escaped(&counted::legend(comparison))));
    }
    lines.push(format!("- {}", words::honesty(comparison.base.machine.kind)));
    vec![lines.join("\n")]
}

/// The rows that changed, taken apart.
fn apart(comparison: &Comparison) -> Option<String> {
    let rows = counted::apart(comparison);
    let head = ["workload", "kernel", "", "user code", "", "ticks, other tasks", ""].map(str::to_owned);
    let rule = [":---", "---:", "---:", "---:", "---:", "---:", "---:"].map(str::to_owned);
    let mut lines = vec![line(&head), line(&rule)];
    for row in &rows {
        let numbers = [row.kernel, row.user, row.elsewhere].into_iter().flatten().map(|number| value(number, WIDE));
        lines.push(line(&std::iter::once(escaped(&row.name)).chain(numbers).collect::<Vec<_>>()));
    }
    (!rows.is_empty()).then(|| format!("{}:\n\n{}", counted::HEAD, lines.join("\n")))
}

fn failures(comparison: &Comparison) -> Vec<String> {
    let mut blocks = Vec::new();
    for failure in &comparison.failures {
        let sentence = escaped(&findings::failure(comparison, failure));
        blocks.push(format!("**Failed:** {sentence}"));
        let lines = plain_lines(&failure.console_tail);
        if !lines.is_empty() {
            blocks.push(fenced(&lines));
        }
    }
    blocks
}

fn unclear(comparison: &Comparison) -> Option<String> {
    let lines: Vec<String> = findings::unclear(comparison)
        .iter()
        .map(|u| format!("- {}: {}", escaped(&u.rows), escaped(&u.reason)))
        .collect();
    (!lines.is_empty()).then(|| format!("**Unclear:**\n\n{}", lines.join("\n")))
}

fn environment(comparison: &Comparison) -> String {
    let differing = &comparison.environment;
    if differing.differences.is_empty() && differing.silent.is_empty() {
        return "The kernels' environments do not differ.".to_owned();
    }
    let mut head = vec!["environment".to_owned()];
    head.extend(comparison.kernels().map(|k| escaped(&k.title)));
    let rule = vec![":---".to_owned(); head.len()];
    let mut lines = vec![line(&head), line(&rule)];
    for difference in &differing.differences {
        let mut cells = vec![escaped(&plain(&difference.name))];
        cells.extend(findings::values(comparison, difference, 60).iter().map(|v| escaped(v)));
        lines.push(line(&cells));
    }
    let rest = findings::silent(comparison).unwrap_or_else(|| "nothing else".to_owned());
    let table = if differing.differences.is_empty() { String::new() } else { format!("{}\n\n", lines.join("\n")) };
    format!("What differed between the environments:\n\n{table}{}", escaped(&rest))
}

fn kernels(comparison: &Comparison) -> String {
    let head: Vec<String> =
        ["kernel", "name", "origin", "build", "image sha256", "machine"].map(str::to_owned).to_vec();
    let own = |kernel: &Kernel| {
        let machine = &kernel.machine;
        let place = if words::one_machine(comparison) {
            machine.id.short()
        } else {
            format!("{} {}", machine.id.short(), machine.summary)
        };
        vec![
            escaped(&kernel.title),
            escaped(&kernel.build.name.to_string()),
            escaped(&kernel.build.origin),
            escaped(&kernel.build.id.short()),
            words::image(&kernel.build, 12),
            escaped(&place),
        ]
    };
    let rule = vec![":---".to_owned(); head.len()];
    let mut lines = vec![line(&head), line(&rule)];
    lines.push(line(&own(&comparison.base)));
    for other in &comparison.others {
        let mut cells = own(&other.kernel);
        if other.images != Images::Different {
            cells[0].push_str(" (the base's image)");
        }
        lines.push(line(&cells));
    }
    lines.join("\n")
}

/// Returns text that markdown shows as it is.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '|' | '*' | '_' | '`' | '[' | ']' | '#' | '~' | '!' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    out
}

/// Returns lines in a fence that is longer than any run of backticks in them.
fn fenced(lines: &[String]) -> String {
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`')).map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{}\n{fence}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::{escaped, fenced, markdown};
    use crate::fixtures::{HOSTILE, equal, hostile, mixed, seeds, three, two};

    #[test]
    fn two_kernels_and_five_seeds() {
        insta::assert_snapshot!(markdown(&two(&seeds(5))));
    }

    #[test]
    fn three_kernels_and_one_seed() {
        insta::assert_snapshot!(markdown(&three(&[1])));
    }

    #[test]
    fn mixed_machines_are_the_first_thing_that_is_said() {
        insta::assert_snapshot!(markdown(&mixed(&seeds(2))));
    }

    #[test]
    fn equal_images() {
        insta::assert_snapshot!(markdown(&equal(&seeds(2))));
    }

    #[test]
    fn hostile_words_stay_words() {
        let text = markdown(&hostile());
        assert!(!text.contains("\x1b"));
        let outside_fences: String = text.split("```").step_by(2).collect();
        assert!(!outside_fences.contains("<script"));
        insta::assert_snapshot!(text);
    }

    #[test]
    fn nothing_of_a_hostile_word_is_markdown() {
        assert_eq!(escaped(HOSTILE), "&lt;script&gt;alert('x')&lt;/script&gt;\\|\\`\u{fffd}\\[31m\\*\\_&amp;amp;");
        assert_eq!(escaped("a\n# b"), "a \\# b");
    }

    #[test]
    fn a_fence_cannot_be_closed_from_within() {
        assert_eq!(fenced(&["```".to_owned()]), "````text\n```\n````");
        assert_eq!(fenced(&["x".to_owned()]), "```text\nx\n```");
    }
}
