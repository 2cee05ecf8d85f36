//! The origin of a comparison's numbers: environments, kernels, machines and runs.

use crate::comparison::{Comparison, Images, Kernel};
use crate::render::{findings, words};
use document::number::start_date;
use document::{Block, Column, ColumnKind, Fact, Table, TableRow, Weight, Width};

/// Longest shown value of a long difference.
const VALUE: usize = 100;

/// Returns the differences between the environments in a line.
pub(crate) fn differing(comparison: &Comparison) -> String {
    let environment = &comparison.environment;
    let names: Vec<&str> = environment
        .differences
        .iter()
        .map(|difference| &*difference.name)
        .collect();
    let differing = match names.as_slice() {
        [] => environment
            .silent
            .is_empty()
            .then(|| "does not differ".to_owned()),
        names => Some(format!("differs in {}", names.join(", "))),
    };
    let silent = findings::silent(comparison);
    differing
        .into_iter()
        .chain(silent)
        .collect::<Vec<_>>()
        .join("; ")
}

/// Returns the differences between the environments, value by value.
pub(crate) fn environment(comparison: &Comparison) -> Vec<Block> {
    let mut blocks = Vec::new();
    for difference in &comparison.environment.differences {
        let values = findings::values(comparison, difference, VALUE);
        let facts = comparison
            .kernels()
            .zip(values)
            .map(|(kernel, value)| Fact::new(kernel.title.clone(), value));
        blocks.push(Block::Subheading(difference.name.clone()));
        blocks.push(Block::Facts(facts.collect()));
    }
    blocks
}

/// Returns the origins of the kernels.
pub(crate) fn kernels(comparison: &Comparison) -> Vec<Block> {
    let images = std::iter::once(Images::Different)
        .chain(comparison.others.iter().map(|other| other.images));
    let mut blocks = Vec::new();
    for (kernel, images) in comparison.kernels().zip(images) {
        let role = if images == Images::Different {
            ""
        } else {
            " (the base's image)"
        };
        blocks.push(Block::Subheading(format!("{}{role}", kernel.title)));
        blocks.push(Block::Facts(origin(kernel)));
    }
    blocks
}

fn origin(kernel: &Kernel) -> Vec<Fact> {
    let build = &kernel.build;
    let config = build.config.as_ref().map_or_else(
        || "none found".to_owned(),
        |c| format!("sha256 {}", c.sha256),
    );
    vec![
        Fact::new("Name", build.name.to_string()),
        Fact::new("Origin", build.origin.to_string()),
        Fact::new("Build", build.id.to_string()),
        Fact::new(
            "Image",
            format!("sha256 {}", words::image(build, usize::MAX)),
        ),
        Fact::new("Config", config),
        Fact::new("Machine", kernel.machine.id.short()),
    ]
}

/// Returns the machines with their fingerprints; common entries are shown once.
pub(crate) fn machines(comparison: &Comparison) -> Vec<Block> {
    let mut found: Vec<&model::Machine> = Vec::new();
    for machine in comparison.kernels().flat_map(Kernel::machines) {
        // Few machines: one per guest config, unless the user mixes them.
        if !found.iter().any(|m| m.id == machine.id) {
            found.push(machine);
        }
    }
    let base = &comparison.base.machine.fingerprint;
    let (common, other): (Vec<_>, Vec<_>) = found
        .iter()
        .flat_map(|machine| &machine.fingerprint)
        .partition(|entry| found.iter().all(|m| m.fingerprint.contains(entry)));
    let mut blocks = Vec::new();
    for machine in &found {
        let own = machine
            .fingerprint
            .iter()
            .filter(|entry| other.contains(entry));
        let own = own.map(|(name, value)| Fact::new(name.clone(), value.clone()));
        blocks.push(Block::Paragraph(format!(
            "{}; {}; {}",
            machine.kind, machine.summary, machine.id
        )));
        blocks.push(Block::Facts(own.collect()));
    }
    let all = if found.len() > 1 {
        "What all have in common"
    } else {
        "Fingerprint"
    };
    blocks.push(Block::Subheading(all.to_owned()));
    let common = base.iter().filter(|entry| common.contains(entry));
    let common = common.map(|(name, value)| Fact::new(name.clone(), value.clone()));
    blocks.push(Block::Facts(common.collect()));
    blocks.retain(|block| !matches!(block, Block::Facts(facts) if facts.is_empty()));
    blocks
}

pub(crate) fn runs(comparison: &Comparison) -> Vec<Block> {
    let heads = [
        ("run", ColumnKind::Name),
        ("kernel", ColumnKind::Words),
        ("seed", ColumnKind::Number),
        ("started", ColumnKind::Words),
    ];
    let columns = heads
        .map(|(head, kind)| Column::new(head, kind, Width::Fit(VALUE)))
        .into();
    let mut rows = Vec::new();
    for kernel in comparison.kernels() {
        for run in &kernel.runs {
            let cells = [
                run.id.to_string(),
                kernel.title.clone(),
                run.seed.to_string(),
                start_date(run.started_unix),
            ];
            rows.push(TableRow::new(Weight::Normal, cells));
        }
    }
    if rows.is_empty() {
        Vec::new()
    } else {
        vec![Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        })]
    }
}
