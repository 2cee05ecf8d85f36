//! Builds the document of comparisons side by side: one table with a column group for each machine,
//! agreements and disagreements, and beneath them what belongs to one machine only.

use model::{sanitize_line, sanitize_lines};

use super::{headlines, table, words};
use crate::comparison::Comparison;
use crate::render::comparison::pages_only;
use crate::render::comparison::ratios::ratios;
use crate::render::comparison::{origin, table as comparison_table};
use crate::render::{counted, findings, noise, words as single};
use crate::side_by_side::SideBySide;
use document::number::count;
use document::{Block, Details, Document, Fact, Style, View};

/// Returns the document of comparisons side by side. The style of a view has no effect: MMTests has
/// no such table.
#[must_use]
pub fn document(side_by_side: &SideBySide, view: &View) -> Document {
    let mut blocks = vec![Block::Facts(facts(side_by_side))];
    blocks.extend(commands(side_by_side).map(|command| Block::Command(command.to_owned())));
    blocks.extend(table::tables(side_by_side, view));
    blocks.extend(closing(side_by_side));
    blocks.extend(words::disagreements(side_by_side));
    for (machine, comparison) in machines(side_by_side) {
        blocks.extend(ratios(Some(machine), comparison, view));
    }
    blocks.extend(failures(side_by_side));
    blocks.extend(unclear(side_by_side));
    for (machine, comparison) in machines(side_by_side) {
        let inner = details(comparison);
        let summary = format!("{machine}: environments, kernels, machine");
        match view.verbose {
            true => blocks.extend(std::iter::once(Block::Heading(summary)).chain(inner)),
            false => blocks.push(Block::Details(Details {
                summary,
                blocks: inner,
                pages_only: false,
            })),
        }
    }
    let mut warnings = Vec::new();
    for (machine, comparison) in machines(side_by_side) {
        let alarms = single::alarms(comparison);
        warnings.extend(alarms.iter().map(|alarm| format!("{machine}: {alarm}")));
    }
    Document {
        warnings,
        title: headlines(side_by_side).join("\n"),
        blocks,
    }
}

/// Returns the machines' names, as they may be shown, with their comparisons.
pub(super) fn machines(side_by_side: &SideBySide) -> impl Iterator<Item = (&str, &Comparison)> {
    side_by_side
        .columns()
        .iter()
        .map(|column| (column.machine.as_str(), &column.comparison))
}

/// Returns the commands that reproduce the comparisons: mostly one.
fn commands(side_by_side: &SideBySide) -> impl Iterator<Item = &str> {
    let mut commands: Vec<&str> = Vec::new();
    for (_, comparison) in machines(side_by_side) {
        if !commands.contains(&comparison.command.as_str()) {
            commands.push(&comparison.command);
        }
    }
    commands.into_iter()
}

fn facts(side_by_side: &SideBySide) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (machine, comparison) in machines(side_by_side) {
        for (place, other) in comparison.others.iter().enumerate() {
            let of = if comparison.others.len() > 1 {
                format!("{}: ", other.kernel.title)
            } else {
                String::new()
            };
            let tally = single::tally(comparison, place + 1, other);
            facts.push(Fact::new(format!("On {machine}"), format!("{of}{tally}")));
        }
    }
    for (machine, comparison) in machines(side_by_side) {
        let means = comparison
            .others
            .iter()
            .filter_map(|other| single::geometric_mean(comparison, other));
        facts.extend(means.map(|mean| Fact::new("Geomean", format!("{machine}: {mean}"))));
    }
    for (machine, comparison) in machines(side_by_side) {
        let replicates = count(comparison.seeds.len(), single::replicate(comparison));
        facts.push(Fact::new(
            "Machine",
            format!("{machine}: {}; {replicates}", single::machine(comparison)),
        ));
    }
    let created = machines(side_by_side)
        .filter_map(|(_, comparison)| comparison.created_unix)
        .max();
    facts.extend(created.map(|created| Fact::new("Compared", created.date())));
    for (machine, comparison) in machines(side_by_side) {
        let notes = single::doubts(comparison).into_iter();
        facts.extend(notes.map(|note| Fact::new("Note", format!("{machine}: {note}"))));
    }
    facts
}

/// Returns the legends and the caveats of the machines; what is the same for all comes once.
fn closing(side_by_side: &SideBySide) -> Vec<Block> {
    if machines(side_by_side).all(|(_, comparison)| single::no_run_needed(comparison)) {
        let first = machines(side_by_side)
            .map(|(_, comparison)| single::why_no_run(comparison))
            .next();
        return first
            .map(|why| Block::Paragraph(why.to_owned()))
            .into_iter()
            .collect();
    }
    let legends = words::grouped(side_by_side, |comparison| {
        single::legend_of_letters(comparison, Style::Marvin)
    });
    let bars = table::has_bars(side_by_side)
        .then(|| Block::Drawing(comparison_table::ABOUT_BARS.to_owned()));
    let mut cautions: Vec<&str> = Vec::new();
    for (_, comparison) in machines(side_by_side) {
        let caution = comparison.base.machine.kind.caution();
        if !cautions.contains(&caution) {
            cautions.push(caution);
        }
    }
    let cautions = cautions
        .into_iter()
        .map(|caution| Block::Note(caution.to_owned()));
    legends
        .into_iter()
        .map(Block::Note)
        .chain(bars)
        .chain(cautions)
        .collect()
}

fn failures(side_by_side: &SideBySide) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (machine, comparison) in machines(side_by_side) {
        for failure in &comparison.failures {
            blocks.push(Block::Paragraph(format!(
                "{machine}: {}",
                findings::failure(comparison, failure)
            )));
            blocks.push(Block::Console(sanitize_lines(&failure.console_tail)));
        }
    }
    if !blocks.is_empty() {
        blocks.insert(0, Block::Heading("Failed".to_owned()));
    }
    blocks
}

fn unclear(side_by_side: &SideBySide) -> Vec<Block> {
    let mut items = Vec::new();
    for (machine, comparison) in machines(side_by_side) {
        let found = findings::unclear(comparison);
        items.extend(found.iter().map(|unclear| {
            sanitize_line(&format!("{machine}: {}: {}", unclear.rows, unclear.reason))
        }));
    }
    if items.is_empty() {
        return Vec::new();
    }
    vec![Block::Paragraph("Unclear:".to_owned()), Block::List(items)]
}

/// Returns what belongs to one machine only.
fn details(comparison: &Comparison) -> Vec<Block> {
    let ranks = noise::ranks_that_agree(comparison);
    let parts = [
        (counted::HEAD, comparison_table::apart(comparison)),
        ("Ranks", ranks.into_iter().map(Block::Paragraph).collect()),
        (
            "What differs between the environments",
            origin::environment(comparison),
        ),
        ("Kernels", origin::kernels(comparison)),
        ("Machines", origin::machines(comparison)),
    ];
    let mut blocks = Vec::new();
    for (title, inner) in parts {
        if !inner.is_empty() {
            blocks.push(Block::Subheading(title.to_owned()));
            blocks.extend(inner);
        }
    }
    blocks.extend(pages_only(
        "Every value",
        comparison_table::values(comparison),
    ));
    blocks.extend(pages_only("Runs", origin::runs(comparison)));
    blocks
}
