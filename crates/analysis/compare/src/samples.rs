//! Samples of a comparison, which `monitors` shows beside the counters.

use monitors::{SampleRow, SampleTable};

use crate::comparison::{Comparison, ComparisonRow, Measured};

/// Returns the samples of a comparison, a table for each experiment: of all seeds, including the
/// iterations that values leave out.
#[must_use]
pub fn sample_tables(comparison: &Comparison) -> Vec<SampleTable> {
    let mut tables: Vec<SampleTable> = Vec::new();
    for row in &comparison.rows {
        let title = comparison.block(row);
        match tables.iter_mut().find(|table| table.title == title) {
            Some(table) => table.rows.push(sample_row(row)),
            None => tables.push(SampleTable {
                title: title.to_owned(),
                rows: vec![sample_row(row)],
            }),
        }
    }
    tables
}

fn sample_row(row: &ComparisonRow) -> SampleRow {
    SampleRow {
        name: row.workload.name.to_string(),
        direction: row.workload.metric.direction,
        samples: std::iter::once(&row.base)
            .chain(row.cells.iter().map(|cell| &cell.measured))
            .map(samples_of_all_seeds)
            .collect(),
    }
}

fn samples_of_all_seeds(measured: &Measured) -> Vec<f64> {
    let seeds = measured
        .seeds
        .iter()
        .filter_map(|seed| seed.value.as_ref().ok());
    seeds
        .flat_map(|sampled| sampled.samples.iter().skip(sampled.left_out).copied())
        .collect()
}
