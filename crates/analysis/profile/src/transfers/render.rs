//! Shared lines of two kernels as documents.

use crate::render::{Heads, draw_bars};
use document::{Block, Column, ColumnKind, Document, Fact, Styles, Table, TableRow, Weight, Width};
use model::Movement;

use crate::transfers::{PerOperation, SharedLine, SharingDifference};

/// Lines that a kernel's table has at most.
const LINES: usize = 8;
/// Words that a line's part of the table has at most.
const WORDS: usize = 3;
/// Width of the functions that wait for a line.
const WAITING: usize = 28;

/// The shared lines of two kernels, workload by workload.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The base: its label and its origin.
    pub base: (String, String),
    /// The new kernel's title and origin.
    pub new: (String, String),
    /// The machine, described in words.
    pub machine: String,
    /// The seeds of the runs, which both sides have.
    pub seeds: Vec<u64>,
    /// How each workload differs.
    pub differences: Vec<SharingDifference>,
    /// Workloads without one, with the reason.
    pub missing: Vec<(String, String)>,
    /// The command that repeats it.
    pub command: String,
    /// Most functions in the table of a workload.
    pub functions_max: usize,
}

/// The note on the numbers, in every format.
const LEGEND: &str = "Transfers per operation, on average over all iterations but the first: lines of 64 bytes that one processor had and another \
one asked for. More +: new \
minus base, so + is worse. load: read by one, modified by another; store: written by one, modified by another; upgrade: written \
by one, only read by others. false: the words of 8 bytes that are asked for are none that others used. Functions add up to the \
total, to the last transfer, and so do words. A line is named by the kernel's symbols or by its slab cache, a word by the field, \
where the kernel has types (BTF). held: how often a lock that several processors took was held, and for how many nanoseconds, per \
operation; a nanosecond is an instruction, and a transfer costs what the machine says.";
/// What may be claimed (`docs/contention.md`).
const CLAIMS: &str = "One interleaving for each seed: what is shared and by whom is exact; time, scaling and NUMA are not in it.";

/// Returns the document of the shared lines of two kernels.
#[must_use]
pub fn document(shared: &Shared) -> Document {
    let mut blocks = Vec::new();
    for difference in &shared.differences {
        blocks.push(Block::Heading(difference.workload.clone()));
        blocks.push(Block::Paragraph(difference.sentence()));
        blocks.push(Block::Table(by_movement(difference)));
        for (head, named) in [
            ("function", &difference.functions),
            ("word", &difference.words),
        ] {
            blocks.extend(bars(shared, head, named));
            blocks.push(Block::Table(by_name(
                head,
                named,
                difference.total,
                shared.functions_max,
            )));
        }
        if !difference.events.is_empty() {
            blocks.push(Block::Table(events(difference)));
        }
        if !difference.held.is_empty() {
            blocks.push(Block::Table(held(difference, shared.functions_max)));
        }
        let titles = [&shared.base.0, &shared.new.0];
        for (title, lines) in titles.into_iter().zip(&difference.lines) {
            blocks.push(Block::Subheading(format!("Lines of {title}")));
            blocks.push(Block::Table(by_line(lines)));
        }
    }
    if !shared.missing.is_empty() {
        blocks.push(Block::Paragraph("Without shared lines:".to_owned()));
        blocks.push(Block::List(
            shared
                .missing
                .iter()
                .map(|(workload, why)| format!("{workload}: {why}"))
                .collect(),
        ));
    }
    blocks.extend([
        Block::Note(LEGEND.to_owned()),
        Block::Note(CLAIMS.to_owned()),
    ]);
    let mut facts: Vec<Fact> = [&shared.base, &shared.new]
        .map(|(title, origin)| Fact::new("Kernel", format!("{title}, {origin}")))
        .into_iter()
        .collect();
    facts.push(Fact::new("Machine", shared.machine.clone()));
    let seeds: Vec<String> = shared.seeds.iter().map(u64::to_string).collect();
    facts.push(Fact::new("Seeds", seeds.join(", ")));
    blocks.extend([Block::Facts(facts), Block::Command(shared.command.clone())]);
    let title = format!("Shared lines: {} against {}", shared.new.0, shared.base.0);
    Document {
        title,
        blocks,
        ..Document::default()
    }
}

/// Draws the largest differences for pages; nothing if no name differs.
fn bars(shared: &Shared, head: &str, named: &[(String, PerOperation)]) -> Option<Block> {
    let differing = named
        .iter()
        .take_while(|(_, [base, new])| signed(new - base) != "0")
        .count();
    let heads = Heads {
        base: &shared.base.0,
        new: &shared.new.0,
        more: "more transfers +",
        name: head,
    };
    draw_bars(&heads, &named[..differing], 3).ok().flatten()
}

/// Renders the difference of one workload for a report on another subject, in 80 columns: its
/// sentence, and that many functions and words.
#[must_use]
pub fn brief(difference: &SharingDifference, max: usize) -> String {
    let mut blocks = vec![Block::Paragraph(difference.sentence())];
    for (head, named) in [
        ("function", &difference.functions),
        ("word", &difference.words),
    ] {
        let differing = named
            .iter()
            .take_while(|(_, [base, new])| signed(new - base) != "0")
            .count();
        let table = by_name(head, named, difference.total, max.min(differing));
        blocks.push(Block::Table(table));
    }
    Document {
        blocks,
        ..Document::default()
    }
    .text(&Styles::plain())
}

fn columns(head: &str) -> Vec<Column> {
    let numbers = ["base", "new", "more +"]
        .map(|head| Column::new(head, ColumnKind::Number, Width::Fixed(13)));
    std::iter::once(Column::new(head, ColumnKind::Name, Width::Fixed(41)))
        .chain(numbers)
        .collect()
}

fn row(name: String, [base, new]: PerOperation, weight: Weight) -> TableRow {
    TableRow::new(weight, [name, fixed(base), fixed(new), signed(new - base)])
}

fn by_movement(difference: &SharingDifference) -> Table {
    let kinds = Movement::ALL.into_iter().zip(difference.by_movement);
    let mut rows: Vec<TableRow> = kinds
        .map(|(kind, sides)| row(kind.name().to_owned(), sides, Weight::Normal))
        .collect();
    rows.push(row("transfers".into(), difference.total, Weight::Total));
    rows.push(row(
        "false sharing in it".into(),
        difference.of_false,
        Weight::Faint,
    ));
    rows.push(row(
        "clearing and copying of pages in it".into(),
        difference.of_pages,
        Weight::Faint,
    ));
    Table {
        columns: columns("how"),
        rows,
        ..Table::default()
    }
}

fn by_name(head: &str, named: &[(String, PerOperation)], total: PerOperation, max: usize) -> Table {
    let (shown, rest) = named.split_at(max.min(named.len()));
    let mut rows: Vec<TableRow> = shown
        .iter()
        .map(|(name, sides)| row(name.clone(), *sides, Weight::Normal))
        .collect();
    if !rest.is_empty() {
        let sum = [0, 1].map(|side| rest.iter().map(|(_, sides)| sides[side]).sum());
        rows.push(row(format!("{} others", rest.len()), sum, Weight::Faint));
    }
    rows.push(row("transfers".into(), total, Weight::Total));
    Table {
        columns: columns(head),
        rows,
        ..Table::default()
    }
}

fn events(difference: &SharingDifference) -> Table {
    let rows = difference
        .events
        .iter()
        .map(|(about, sides)| row((*about).to_owned(), *sides, Weight::Normal))
        .collect();
    Table {
        columns: columns("per operation"),
        rows,
        ..Table::default()
    }
}

/// The locks that several processors took: how often, and how long they were held.
fn held(difference: &SharingDifference, max: usize) -> Table {
    let mut columns = vec![Column::new(
        "lock of several processors",
        ColumnKind::Name,
        Width::Fixed(40),
    )];
    for (head, width) in [
        ("held", 8),
        ("new", 8),
        ("ns", 8),
        ("new", 8),
        ("more +", 8),
    ] {
        columns.push(Column::new(head, ColumnKind::Number, Width::Fixed(width)));
    }
    let mut rows = Vec::new();
    for lock in difference.held.iter().take(max) {
        let [base, new] = lock.ns;
        rows.push(TableRow::new(
            Weight::Normal,
            [
                format!("{} {}", lock.kind.name(), lock.lock),
                format!("{:.2}", lock.times[0]),
                format!("{:.2}", lock.times[1]),
                format!("{base:.0}"),
                format!("{new:.0}"),
                whole(new - base),
            ],
        ));
    }
    if difference.held.len() > max {
        let rest = difference.held.len() - max;
        let mut cells = vec![format!("{rest} others")];
        cells.resize(6, String::new());
        rows.push(TableRow::new(Weight::Faint, cells));
    }
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

fn whole(difference: f64) -> String {
    match format!("{difference:+.0}") {
        text if text == "+0" || text == "-0" => "0".to_owned(),
        text => text,
    }
}

fn by_line(lines: &[SharedLine]) -> Table {
    let columns = vec![
        Column::new("line, its words", ColumnKind::Name, Width::Fixed(34)),
        Column::new("per op", ColumnKind::Number, Width::Fixed(8)),
        Column::new("false", ColumnKind::Number, Width::Fixed(6)),
        Column::new(
            "who waits: writing; reading",
            ColumnKind::Words,
            Width::Fixed(WAITING),
        ),
    ];
    let (shown, rest) = lines.split_at(LINES.min(lines.len()));
    let mut rows = Vec::new();
    for line in shown {
        let about = line.remedy().unwrap_or_default().to_owned();
        let alone = line.words.len() < 2;
        // A line of which one word is asked for is that word.
        let name = if alone {
            line.words.first().map_or(&line.name, |word| &word.name)
        } else {
            &line.name
        };
        rows.push(TableRow {
            about,
            ..line_row(line, name.clone())
        });
        let words = line.words.iter().take(if alone { 0 } else { WORDS });
        rows.extend(words.map(|word| line_row(word, format!("  {}", word.name))));
    }
    if !rest.is_empty() {
        let sum = rest.iter().map(|line| line.per_operation).sum();
        rows.push(TableRow::new(
            Weight::Faint,
            [
                format!("{} others", rest.len()),
                fixed(sum),
                String::new(),
                String::new(),
            ],
        ));
    }
    Table {
        columns,
        rows,
        ..Table::default()
    }
}

fn line_row(line: &SharedLine, name: String) -> TableRow {
    TableRow::new(
        Weight::Normal,
        [
            name,
            fixed(line.per_operation),
            percent(line.of_false),
            waiting(line),
        ],
    )
}

/// Names as many functions as there is room for, those that wait in order to write first.
fn waiting(line: &SharedLine) -> String {
    let mut text = String::new();
    let mut left_out = false;
    for (index, names) in [&line.writers, &line.readers].into_iter().enumerate() {
        for (number, name) in names.iter().enumerate() {
            let before = match (index, number) {
                (0, 0) => "",
                (1, 0) if text.is_empty() => "-; ",
                (1, 0) => "; ",
                _ => " ",
            };
            let room = WAITING - text.chars().count().min(WAITING);
            if before.len() + name.chars().count() + " …".chars().count() > room && !text.is_empty()
            {
                left_out = true;
                break;
            }
            text.push_str(before);
            text.push_str(name);
        }
    }
    if left_out { text + " …" } else { text }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", 100.0 * share)
}

/// Formats transfers per operation in a sentence: three decimals, without those that are zero.
pub(crate) fn number(transfers: f64) -> String {
    fixed(transfers)
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

/// Formats transfers per operation in a table.
fn fixed(transfers: f64) -> String {
    format!("{transfers:.3}")
}

pub(crate) fn signed(difference: f64) -> String {
    match fixed(difference) {
        text if text == "-0.000" || text == "0.000" => "0".to_owned(),
        text if difference > 0.0 => format!("+{text}"),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use document::Styles;

    use super::{Shared, brief, document};
    use crate::transfers::json::json;
    use crate::transfers::tests::known_case;

    fn shared() -> Shared {
        let kernel = |version: &str| (version.to_owned(), format!("deb:{version}"));
        Shared {
            base: kernel("6.1.192"),
            new: kernel("6.12.117"),
            machine: "QEMU 7.2.22, 2 processors".into(),
            seeds: vec![1],
            differences: vec![known_case()],
            missing: vec![("share-accept".into(), "hung".into())],
            command: "marvin profile deb:6.1 deb:6.12 --on exact-smp".into(),
            functions_max: 3,
        }
    }

    #[test]
    fn known_case_as_text() {
        let text = document(&shared()).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text);
    }

    #[test]
    fn known_case_in_another_report() {
        insta::assert_snapshot!("brief", brief(&known_case(), 3));
    }

    #[test]
    fn known_case_as_markdown_and_json() {
        insta::assert_snapshot!("markdown", document(&shared()).markdown());
        insta::assert_snapshot!("json", json(&shared()).unwrap());
        assert!(
            document(&shared())
                .html()
                .unwrap()
                .contains("down_read_trylock")
        );
    }
}
