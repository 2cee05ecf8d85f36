//! How the transfers of workloads depend on what scheduling costs, as a table.

use document::{Block, Column, ColumnKind, Document, Table, TableRow, Weight, Width};

/// Below this many transfers per operation differences say nothing.
const NOTHING: f64 = 0.01;

/// Transfers of one workload at several costs of scheduling.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitive {
    /// The workload that was simulated with each set of costs.
    pub workload: String,
    /// Its margin, in percent.
    pub margin_percent: f64,
    /// Transfers per operation at the usual costs and at others; `None` where it did not complete.
    pub values: Vec<Option<f64>>,
}

impl Sensitive {
    /// Returns the largest difference from the value at the usual costs, in percent of it; `None`
    /// if one is missing.
    #[must_use]
    pub fn moves_percent(&self) -> Option<f64> {
        let (usual, others) = self.values.split_first()?;
        let usual = (*usual)?;
        let mut most: f64 = 0.0;
        for other in others {
            let difference = ((*other)? - usual).abs();
            if usual >= NOTHING {
                most = most.max(100.0 * difference / usual);
            }
        }
        Some(most)
    }
}

/// Returns the table: a column for each of the costs, by name.
#[must_use]
pub fn sensitivity_document(costs: &[&str], workloads: &[Sensitive]) -> Document {
    let heads = costs.iter().map(|name| (*name, 12));
    let heads = heads
        .chain([("moves %", 8), ("margin", 7)])
        .map(|(head, width)| Column::new(head, ColumnKind::Number, Width::Fixed(width)));
    let rows = workloads.iter().map(|sensitive| {
        let moves = sensitive.moves_percent();
        let above = moves.is_none_or(|moves| moves > sensitive.margin_percent);
        let values = sensitive
            .values
            .iter()
            .map(|value| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.3}")));
        let moves = moves.map_or_else(|| "-".to_owned(), |moves| format!("{moves:.1}"));
        let cells = std::iter::once(sensitive.workload.clone()).chain(values);
        let weight = if above { Weight::Normal } else { Weight::Faint };
        TableRow::new(
            weight,
            cells.chain([moves, format!("{:.0}", sensitive.margin_percent)]),
        )
    });
    let first = Column::new("transfers/op", ColumnKind::Name, Width::Fixed(17));
    let table = Table {
        columns: std::iter::once(first).chain(heads).collect(),
        rows: rows.collect(),
        ..Table::default()
    };
    let above = workloads
        .iter()
        .filter(|one| {
            one.moves_percent()
                .is_none_or(|moves| moves > one.margin_percent)
        })
        .count();
    let legend = format!(
        "moves: the largest difference from the usual costs, {above} of {} above their margin. Such a row says what is shared and by \
         whom, and its number is of these costs only.",
        workloads.len()
    );
    Document {
        title: "Transfers by what scheduling costs (ns)".to_owned(),
        blocks: vec![Block::Table(table), Block::Note(legend)],
        ..Document::default()
    }
}

#[cfg(test)]
mod tests {
    use document::Styles;

    use super::{Sensitive, sensitivity_document};

    fn sensitive(values: &[Option<f64>]) -> Sensitive {
        Sensitive {
            workload: "share-fault".into(),
            margin_percent: 10.0,
            values: values.to_vec(),
        }
    }

    #[test]
    fn largest_difference_counts() {
        let moves = |values: &[Option<f64>]| sensitive(values).moves_percent();
        assert_eq!(moves(&[Some(2.0), Some(3.0), Some(1.8)]), Some(50.0));
        assert_eq!(moves(&[Some(2.0), None]), None);
        assert_eq!(moves(&[Some(0.001), Some(0.01)]), Some(0.0));
    }

    #[test]
    fn table_fits_the_terminal() {
        let rows = [
            sensitive(&[Some(2.0), Some(2.1), Some(1.9), Some(3.0)]),
            sensitive(&[Some(30.25); 4]),
            sensitive(&[None; 4]),
        ];
        let text = sensitivity_document(&["usual", "quantum 50", "latency 200", "both 50"], &rows)
            .text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(text);
    }
}
