//! A chain as a document: a sentence for each row, the releases, and how to repeat it.

use document::number::{self, signed_percent};
use document::{Block, Document, Fact};

use super::{Chain, ChainRow, Step};

/// Returns the document of a chain whose steps were found.
#[must_use]
pub fn document(chain: &Chain) -> Document {
    let mut blocks = vec![Block::Paragraph(headline(chain))];
    for (row, steps) in chain.rows.iter().zip(&chain.steps) {
        blocks.push(Block::Heading(row.workload.clone()));
        blocks.push(Block::Paragraph(sentence(chain, row, steps)));
        let items: Vec<String> = steps.iter().map(|step| item(chain, step)).collect();
        if !items.is_empty() {
            blocks.push(Block::List(items));
        }
    }
    let missing: Vec<String> = chain
        .links
        .iter()
        .filter_map(|link| Some(format!("{}: {}", link.version, link.missing.as_ref()?)))
        .collect();
    if !missing.is_empty() {
        blocks.push(Block::Paragraph("Cannot be had:".to_owned()));
        blocks.push(Block::List(missing));
    }
    blocks.push(Block::Note(
        "Percent of the base, + is better; the parts add up. A release is measured only if the \
         interval around it differs by more than the margin."
            .to_owned(),
    ));
    let measured: Vec<String> = chain
        .measured()
        .into_iter()
        .map(|place| chain.links[place].version.clone())
        .collect();
    blocks.push(Block::Facts(vec![
        Fact::new("Measured", measured.join(", ")),
        Fact::new("Machine", chain.machine.clone()),
        Fact::new("Seeds", number::seed_list(&chain.seeds)),
    ]));
    blocks.push(Block::Command(chain.command.clone()));
    Document {
        title: title(chain),
        blocks,
        ..Document::default()
    }
}

fn title(chain: &Chain) -> String {
    let version = |link: Option<&super::Link>| link.map_or("", |link| &link.version).to_owned();
    format!(
        "Chain: {} to {}",
        version(chain.links.first()),
        version(chain.links.last())
    )
}

/// Says how many releases there are, and how many were measured.
fn headline(chain: &Chain) -> String {
    let missing = chain.links.iter().filter(|link| link.missing.is_some());
    let missing = match missing.count() {
        0 => String::new(),
        count => format!(", {count} cannot be had"),
    };
    format!(
        "{}, {} measured{missing}",
        number::count(chain.links.len(), "release"),
        chain.measured().len()
    )
}

/// Returns the sentence of a row: `of -14.80%: -9.10 in 6.6, -4.90 in 6.9, rest -0.80`.
pub(super) fn sentence(chain: &Chain, row: &ChainRow, steps: &[Step]) -> String {
    let Some(total) = row.total() else {
        return "an end has no value: marvin compare shows why".to_owned();
    };
    let margin = row.margin_percent;
    if steps.is_empty() {
        return format!("of {}: no step beyond {margin}%", signed_percent(total));
    }
    let parts: Vec<String> = steps
        .iter()
        .map(|step| format!("{:+.2} in {}", step.points, versions(chain, step)))
        .collect();
    let rest = total - steps.iter().map(|step| step.points).sum::<f64>();
    format!(
        "of {}: {}, rest {rest:+.2}",
        signed_percent(total),
        parts.join(", ")
    )
}

/// Returns the release of a step; of several those after the first to the last.
fn versions(chain: &Chain, step: &Step) -> String {
    let [from, to] = step.ends;
    let last = &chain.links[to].version;
    if to - from == 1 {
        last.clone()
    } else {
        format!("{} to {last}", chain.links[from + 1].version)
    }
}

/// Says between which releases a step is, and in which function.
fn item(chain: &Chain, step: &Step) -> String {
    let [from, to] = step.ends.map(|place| &chain.links[place].version);
    let function = step.function.as_deref().unwrap_or("no profile");
    format!("{from} -> {to}: {:+.2}, {function}", step.points)
}
