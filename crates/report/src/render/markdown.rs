//! A comparison as GitHub's markdown: for issues and merge requests. The same content as the text.

use crate::comparison::{Cell, Comparison, Images, Row};
use crate::document::{self, Block, Column, Kind, Table, Weight, Width, escaped, markdown_of};
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
    let mut add = |parts: Vec<Block>| blocks.push(markdown_of(&parts).trim_end().to_owned());
    add(vec![circumstances(comparison)]);
    for section in words::sections(comparison) {
        let caption = format!("{}; difference: positive is better", words::caption(&section));
        add(vec![Block::Paragraph(caption), table(comparison, &section)]);
    }
    add(vec![closing(comparison)]);
    apart(comparison).into_iter().for_each(&mut add);
    if !comparison.origins.is_empty() {
        let head = Block::Paragraph("Where it comes from (new minus base, + is more work):".to_owned());
        add(vec![head, Block::List(comparison.origins.clone())]);
    }
    for monitored in &comparison.monitors {
        add(vec![Block::Heading(monitored.subject.clone())]);
        add(super::monitors::blocks(monitored, super::style::Style::Marvin));
    }
    blocks.extend(failures(comparison));
    let mut add = |parts: Vec<Block>| blocks.push(markdown_of(&parts).trim_end().to_owned());
    let unclear: Vec<String> =
        findings::unclear(comparison).iter().map(|of| format!("{}: {}", of.rows, of.reason)).collect();
    if !unclear.is_empty() {
        add(vec![Block::Paragraph("Unclear:".to_owned()), Block::List(unclear)]);
    }
    add(environment(comparison));
    add(vec![kernels(comparison)]);
    blocks.push(format!("Reproduce:\n\n{}", fenced(&[plain(&comparison.command)])));
    let mut text = blocks.join("\n\n");
    text.push('\n');
    text
}

fn circumstances(comparison: &Comparison) -> Block {
    let mut items =
        vec![format!("machine: {}", words::machine(comparison)), format!("seeds: {}", words::seeds(comparison))];
    items.extend(words::notes(comparison).iter().map(|note| format!("note: {note}")));
    items.extend(comparison.created_unix.map(|created| format!("compared: {}", date(created))));
    Block::List(items)
}

fn column(head: &str, kind: Kind) -> Column {
    Column::new(head, kind, Width::Fit(WIDE))
}

fn row(cells: impl IntoIterator<Item = String>) -> document::Row {
    document::Row::new(Weight::Normal, cells)
}

fn table(comparison: &Comparison, section: &Section<'_>) -> Block {
    let mut columns = vec![column("workload", Kind::Words), column(&comparison.base.title, Kind::Number)];
    for other in &comparison.others {
        columns.extend([&*other.kernel.title, "difference"].map(|head| column(head, Kind::Number)));
        columns.extend((comparison.seeds.len() > 1).then(|| column("min..max %", Kind::Number)));
        columns.extend([column("ratio", Kind::Number), column("", Kind::Name)]);
    }
    let of_row = |row: &&Row| {
        let first = [row.workload.name.to_string(), median(row.base.median)];
        let others = row.cells.iter().flat_map(|cell| cells(cell, comparison));
        self::row(first.into_iter().chain(others))
    };
    Block::Table(Table { columns, rows: section.rows.iter().map(of_row).collect(), notes: Vec::new() })
}

fn median(median: Option<f64>) -> String {
    median.map_or_else(|| "-".to_owned(), |m| value(m, WIDE))
}

fn cells(cell: &Cell, comparison: &Comparison) -> Vec<String> {
    let mut cells = vec![
        median(cell.measured.median),
        cell.compared.difference_percent.map_or_else(String::new, |d| format!("{}%", percent(d, WIDE))),
    ];
    if comparison.seeds.len() > 1 {
        cells.push(cell.compared.spread_percent.map_or_else(String::new, |s| interval(s, WIDE)));
    }
    cells.push(cell.compared.ratio.map_or_else(String::new, |r| ratio(r, WIDE)));
    cells.push(format!("{} {}", cell.compared.verdict.letter(), cell.compared.verdict.word()));
    cells
}

fn closing(comparison: &Comparison) -> Block {
    let mut items: Vec<String> =
        comparison.others.iter().filter_map(|other| words::geometric_mean(comparison, other)).collect();
    let legend =
        if words::no_run_needed(comparison) { words::NO_RUN_NEEDED.to_owned() } else { counted::legend(comparison) };
    items.extend([legend, comparison.base.machine.kind.caution().to_owned()]);
    Block::List(items)
}

/// The rows that changed, taken apart.
fn apart(comparison: &Comparison) -> Option<Vec<Block>> {
    let heads = ["kernel", "", "user code", "", "ticks, other tasks", ""].map(|head| column(head, Kind::Number));
    let of_row = |of: &counted::Apart| {
        let numbers = [of.kernel, of.user, of.elsewhere].into_iter().flatten().map(|number| value(number, WIDE));
        row(std::iter::once(of.name.clone()).chain(numbers))
    };
    let rows: Vec<document::Row> = counted::apart(comparison).iter().map(of_row).collect();
    let columns = std::iter::once(column("workload", Kind::Words)).chain(heads).collect();
    (!rows.is_empty()).then(|| {
        let head = Block::Paragraph(format!("{}:", counted::HEAD));
        vec![head, Block::Table(Table { columns, rows, notes: Vec::new() })]
    })
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

fn environment(comparison: &Comparison) -> Vec<Block> {
    let differing = &comparison.environment;
    if differing.differences.is_empty() && differing.silent.is_empty() {
        return vec![Block::Paragraph("The kernels' environments do not differ.".to_owned())];
    }
    let kernels = comparison.kernels().map(|kernel| column(&kernel.title, Kind::Words));
    let columns = std::iter::once(column("environment", Kind::Words)).chain(kernels).collect();
    let rows: Vec<document::Row> = differing
        .differences
        .iter()
        .map(|of| row(std::iter::once(of.name.clone()).chain(findings::values(comparison, of, 60))))
        .collect();
    let table = (!rows.is_empty()).then(|| Block::Table(Table { columns, rows, notes: Vec::new() }));
    let rest = findings::silent(comparison).unwrap_or_else(|| "nothing else".to_owned());
    let head = Block::Paragraph("What differed between the environments:".to_owned());
    std::iter::once(head).chain(table).chain([Block::Paragraph(rest)]).collect()
}

fn kernels(comparison: &Comparison) -> Block {
    let images = std::iter::once(Images::Different).chain(comparison.others.iter().map(|other| other.images));
    let own = |(kernel, images): (&crate::comparison::Kernel, Images)| {
        let (build, machine) = (&kernel.build, &kernel.machine);
        let of = if images == Images::Different { "" } else { " (the base's image)" };
        let id = machine.id.short();
        row([
            format!("{}{of}", kernel.title),
            build.name.to_string(),
            build.origin.to_string(),
            build.id.short(),
            words::image(build, 12),
            if words::one_machine(comparison) { id } else { format!("{id} {}", machine.summary) },
        ])
    };
    let heads = ["kernel", "name", "origin", "build", "image sha256", "machine"];
    Block::Table(Table {
        columns: heads.map(|head| column(head, Kind::Words)).into(),
        rows: comparison.kernels().zip(images).map(own).collect(),
        notes: Vec::new(),
    })
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
