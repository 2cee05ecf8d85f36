//! Builds the document of a comparison: content, order, and folded parts. The writers format it;
//! `render/json` has its JSON document.

pub(crate) mod origin;
pub(crate) mod ratios;
pub(crate) mod table;

use model::Verdict;

use crate::comparison::Comparison;
use crate::render::{counted, findings, words};
use document::number::signed_percent;
use document::{Block, Details, Document, Fact, Link, Style, View};
use model::{sanitize_line, sanitize_lines};

/// The experiment whose results may be published only in percent.
const SDET: &str = "SDET";
/// Number of largest changes per sign in the summary.
const MOST: usize = 5;

/// Returns the document of a comparison.
#[must_use]
pub fn comparison(comparison: &Comparison, view: &View) -> Document {
    let mut blocks = vec![
        Block::Facts(facts(comparison)),
        Block::Command(comparison.command.clone()),
    ];
    blocks.extend(biggest(comparison));
    blocks.extend(tables(comparison, view));
    blocks.extend(closing(comparison, view.style));
    // With two kernels, the table itself has them.
    if comparison.others.len() > 1 && !comparison.is_imported() {
        blocks.extend(ratios::ratios(None, comparison, view));
    }
    blocks.extend(failures(comparison));
    blocks.extend(unclear(comparison));
    blocks.extend(counted::deferred(comparison));
    blocks.extend(origins(comparison));
    for monitored in &comparison.monitors {
        blocks.push(Block::Heading(monitored.subject.clone()));
        blocks.extend(monitors::render::blocks(monitored, view));
    }
    fold(&mut blocks, view, counted::HEAD, table::apart(comparison));
    let measured = !words::no_run_needed(comparison);
    if measured {
        fold(
            &mut blocks,
            view,
            "What differs between the environments",
            origin::environment(comparison),
        );
    }
    fold(&mut blocks, view, "Kernels", origin::kernels(comparison));
    fold(&mut blocks, view, "Machines", origin::machines(comparison));
    if measured {
        blocks.extend(pages_only(
            "Every value: medians of the iterations without the first",
            table::values(comparison),
        ));
    }
    blocks.extend(pages_only("Runs", origin::runs(comparison)));
    Document {
        warnings: words::alarms(comparison),
        title: words::headlines(comparison).join("\n"),
        blocks,
    }
}

/// Adds a part that is folded unless the view is verbose.
fn fold(blocks: &mut Vec<Block>, view: &View, summary: &str, inner: Vec<Block>) {
    if inner.is_empty() {
        return;
    }
    if view.verbose {
        blocks.push(Block::Heading(summary.to_owned()));
        blocks.extend(inner);
    } else {
        blocks.push(Block::Details(Details {
            summary: summary.to_owned(),
            blocks: inner,
            pages_only: false,
        }));
    }
}

/// Returns a folded part of web pages only; `None` if it is empty.
pub(crate) fn pages_only(summary: &str, blocks: Vec<Block>) -> Option<Block> {
    (!blocks.is_empty()).then(|| {
        Block::Details(Details {
            summary: summary.to_owned(),
            blocks,
            pages_only: true,
        })
    })
}

fn facts(comparison: &Comparison) -> Vec<Fact> {
    let (replicates, which) = words::replicates(comparison);
    let mut facts = vec![
        Fact::new("Machine", words::machine(comparison)),
        Fact::new(replicates, which),
    ];
    facts.extend(
        comparison
            .created_unix
            .map(|created| Fact::new("Compared", created.date())),
    );
    let means = comparison
        .others
        .iter()
        .filter_map(|other| words::geometric_mean(comparison, other));
    facts.extend(means.map(|mean| Fact::new("Geomean", mean)));
    if !words::no_run_needed(comparison) {
        facts.push(Fact::new("Environment", origin::differing(comparison)));
    }
    facts.extend(
        words::notes(comparison)
            .into_iter()
            .map(|note| Fact::new("Note", note)),
    );
    facts
}

/// The largest changes, if there are many rows.
fn biggest(comparison: &Comparison) -> Option<Block> {
    if comparison.rows.len() <= 2 * MOST {
        return None;
    }
    let mut facts = Vec::new();
    for (place, other) in comparison.others.iter().enumerate() {
        let of = if comparison.others.len() > 1 {
            format!(", {}", other.kernel.title)
        } else {
            String::new()
        };
        for (verdict, name) in [(Verdict::Worse, "Worst"), (Verdict::Better, "Best")] {
            let links = changes(comparison, place, &verdict);
            let value: Vec<String> = links
                .iter()
                .map(|link| format!("{} {}", link.name, link.rest))
                .collect();
            let fact = Fact {
                links,
                ..Fact::new(format!("{name}{of}"), value.join(", "))
            };
            facts.extend((!fact.links.is_empty()).then_some(fact));
        }
    }
    (!facts.is_empty()).then_some(Block::Facts(facts))
}

fn changes(comparison: &Comparison, place: usize, verdict: &Verdict) -> Vec<Link> {
    let mut found: Vec<(f64, Link)> = Vec::new();
    for (number, row) in comparison.rows.iter().enumerate() {
        let compared = &row.cells[place].compared;
        if let Some(difference) = compared.difference_percent
            && compared.verdict == *verdict
        {
            let link = Link {
                anchor: table::anchor(&row.workload, number),
                name: row.workload.name.to_string(),
                rest: signed_percent(difference),
            };
            found.push((difference.abs(), link));
        }
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    found.into_iter().take(MOST).map(|(_, link)| link).collect()
}

fn tables(comparison: &Comparison, view: &View) -> Vec<Block> {
    let heads: Vec<[String; 2]> = comparison
        .kernels()
        .map(|kernel| kernel.head.clone())
        .collect();
    let mut blocks = Vec::new();
    if view.style == Style::Marvin {
        blocks.extend(table::tables(comparison, view));
        blocks.extend(table::cycles_of_changes(comparison));
    } else {
        let tables = crate::sample_tables(comparison);
        blocks.extend(
            tables
                .iter()
                .flat_map(|samples| monitors::render::of_samples(samples, &heads, view.style)),
        );
    }
    blocks.extend(in_percent(comparison, &heads));
    if view.style != Style::Marvin {
        blocks.push(Block::Facts(letters(comparison)));
    }
    blocks
}

/// Results of SDET: percent of the first kernel, as throughput, with standard deviations.
fn in_percent(comparison: &Comparison, heads: &[[String; 2]]) -> Vec<Block> {
    let tables = crate::sample_tables(comparison);
    let rows = tables
        .iter()
        .filter(|table| table.title == SDET)
        .flat_map(|table| &table.rows);
    let rows: Vec<_> = rows
        .filter(|row| row.relative().iter().any(Option::is_some))
        .collect();
    let title =
        "SDET, as its results are given: throughput in percent of the first kernel's:".to_owned();
    let title = (!rows.is_empty()).then_some(Block::Paragraph(title));
    title
        .into_iter()
        .chain(
            rows.into_iter()
                .map(|row| Block::Table(monitors::render::relative(row, heads))),
        )
        .collect()
}

/// Lists of better and worse rows, for tables without a column of verdicts.
fn letters(comparison: &Comparison) -> Vec<Fact> {
    let mut facts = Vec::new();
    for (place, other) in comparison.others.iter().enumerate() {
        for verdict in [Verdict::Better, Verdict::Worse] {
            let rows = comparison
                .rows
                .iter()
                .filter(|row| row.cells[place].compared.verdict == verdict);
            let names: Vec<&str> = rows.map(|row| &*row.workload.name).collect();
            let fact = Fact::new(
                verdict.letter(),
                format!("{}: {}", other.kernel.title, names.join(", ")),
            );
            facts.extend((!names.is_empty()).then_some(fact));
        }
    }
    facts
}

fn closing(comparison: &Comparison, style: Style) -> Vec<Block> {
    if words::no_run_needed(comparison) {
        return vec![Block::Paragraph(words::why_no_run(comparison).to_owned())];
    }
    let caution = comparison.base.machine.kind.caution().to_owned();
    let legend = words::legend(comparison, style);
    let bars = (style == Style::Marvin && table::has_bars(comparison))
        .then(|| Block::Drawing(table::ABOUT_BARS.to_owned()));
    let legend = (!legend.is_empty()).then_some(Block::Note(legend));
    legend
        .into_iter()
        .chain(bars)
        .chain([Block::Note(caution)])
        .collect()
}

fn origins(comparison: &Comparison) -> Vec<Block> {
    if comparison.origins.is_empty() {
        return Vec::new();
    }
    let head = Block::Paragraph("Where it comes from (new minus base, + is more work):".to_owned());
    vec![head, Block::List(comparison.origins.clone())]
}

fn failures(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !comparison.failures.is_empty() {
        blocks.push(Block::Heading("Failed".to_owned()));
    }
    for failure in &comparison.failures {
        blocks.push(Block::Paragraph(findings::failure(comparison, failure)));
        blocks.push(Block::Console(sanitize_lines(&failure.console_tail)));
    }
    blocks
}

fn unclear(comparison: &Comparison) -> Vec<Block> {
    let found = findings::unclear(comparison);
    if found.is_empty() {
        return Vec::new();
    }
    let items = found
        .iter()
        .map(|unclear| sanitize_line(&format!("{}: {}", unclear.rows, unclear.reason)))
        .collect();
    vec![Block::Paragraph("Unclear:".to_owned()), Block::List(items)]
}

#[cfg(test)]
mod tests;
