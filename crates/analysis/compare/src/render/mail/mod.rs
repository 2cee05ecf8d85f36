//! A comparison as a mail: plain text of at most 80 columns, a table in MMTests' style, counters,
//! numbered observations, and how to reproduce it. Also the head of mails about regressions.

mod facts;

use model::Verdict;

use crate::comparison::{Comparison, ComparisonRow, Measured};
use crate::render::{counted, words};
use document::layout::{Page, WIDTH, break_line, command_lines};
use document::number::{percent, value};
use document::{Block, Change, Style, Styles, Table, TableCell, Width, cut_middle, write_text};
use model::sanitize_line;
use monitors::Monitored;

/// The widest value and percentage.
const VALUE: usize = 15;
const PERCENT: usize = 8;

/// Renders a comparison as a mail, beginning with its subject. The sender adds recipients.
#[must_use]
pub fn mail(comparison: &Comparison) -> String {
    let mut page = Page::default();
    let headlines = words::headlines(comparison).join("; ");
    let subject = format!("{}: {headlines}", comparison.suite);
    for line in document::mail::head(&[("Subject", &subject)]).lines() {
        page.line(line);
    }
    page.blank();
    for alarm in words::alarms(comparison) {
        page.paragraph(0, &alarm);
        page.blank();
    }
    for headline in words::headlines(comparison) {
        page.paragraph(0, &headline);
    }
    page.blank();
    page.hanging("Machine: ", &words::machine(comparison));
    let (replicates, which) = words::replicates(comparison);
    page.hanging(&format!("{:<9}", format!("{replicates}:")), &which);
    for note in words::notes(comparison) {
        page.hanging("Note:    ", &note);
    }
    for place in 0..comparison.others.len() {
        table(&mut page, comparison, place);
    }
    page.blank();
    if words::no_run_needed(comparison) {
        page.paragraph(0, words::why_no_run(comparison));
    } else {
        page.paragraph(0, "Medians over the seeds; positive is better.");
        page.paragraph(0, &words::legend_of_stars(comparison));
        page.paragraph(0, comparison.base.machine.kind.caution());
    }
    comparison
        .monitors
        .iter()
        .for_each(|seen| counters(&mut page, seen));
    observations(&mut page, comparison);
    ending(&mut page, comparison);
    page.finish()
}

/// Adds the base and one other kernel: three would not fit with long numbers.
fn table(page: &mut Page, comparison: &Comparison, place: usize) {
    let heads = [&comparison.base.head, &comparison.others[place].kernel.head].map(Clone::clone);
    for section in words::sections(comparison) {
        let title = format!(
            "{}, {}, {}",
            comparison.suite, section.unit, section.direction
        );
        let columns = monitors::render::columns("", &heads, Width::Share(9, VALUE));
        let rows = section
            .rows
            .iter()
            .map(|row| self::row(row, place))
            .collect();
        let table = Block::Table(Table {
            columns,
            rows,
            ..Table::default()
        });
        write_text(
            page,
            &[
                Block::Subheading(cut_middle(&sanitize_line(&title), WIDTH)),
                table,
            ],
            &Styles::plain(),
        );
    }
}

fn row(row: &ComparisonRow, place: usize) -> document::TableRow {
    let cell = &row.cells[place];
    let number = |measured: &Measured| {
        measured
            .value
            .map_or_else(|| "-".to_owned(), |n| value(n, VALUE - 1))
    };
    let starred = matches!(cell.compared.verdict, Verdict::Better | Verdict::Worse);
    let base = row.base.value.map(|_| Change {
        percent: percent(0.0, PERCENT),
        starred: false,
        word: "",
    });
    let new = cell.compared.difference_percent.map(|difference| Change {
        percent: percent(difference, PERCENT),
        starred,
        word: "",
    });
    let cells = [
        TableCell::new(format!(
            "{} {}",
            if cell.rated.is_some() {
                "Gmean"
            } else {
                "Median"
            },
            row.workload.name
        )),
        TableCell {
            change: base,
            ..TableCell::new(number(&row.base))
        },
        TableCell {
            change: new,
            ..TableCell::new(number(&cell.measured))
        },
    ];
    document::TableRow {
        cells: cells.into(),
        ..document::TableRow::default()
    }
}

fn counters(page: &mut Page, seen: &Monitored) {
    page.blank();
    page.paragraph(0, &seen.subject);
    page.blank();
    for line in monitors::render::text(seen, Style::Mmtests, &Styles::plain()).lines() {
        // Several kernels with large counters do not fit; lines are folded rather than cut, to lose
        // no number.
        for piece in break_line(line, WIDTH) {
            page.line(piece.trim_end());
        }
    }
}

fn observations(page: &mut Page, comparison: &Comparison) {
    let facts = facts::facts(comparison);
    page.blank();
    page.line("Observations");
    page.blank();
    for (number, fact) in (1..).zip(facts) {
        page.hanging(&format!("{number:>3}. "), &fact);
    }
    if let Some(checked) = counted::cross_check(comparison) {
        page.blank();
        page.paragraph(0, &checked);
    }
}

fn ending(page: &mut Page, comparison: &Comparison) {
    page.blank();
    for kernel in comparison.kernels() {
        let image = words::image(&kernel.build, 12);
        page.hanging(
            "Kernel:  ",
            &format!(
                "{}: {}, image sha256 {image}",
                kernel.title,
                words::source(&kernel.build)
            ),
        );
    }
    page.blank();
    page.line("To have it again:");
    page.blank();
    for line in command_lines(&comparison.command, WIDTH - 4) {
        page.line(format!("  {line}"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, proptest};

    use super::mail;
    use crate::Comparison;
    use crate::fixtures::{equal, hostile, mixed, seeds, three, two};

    /// Returns lines wider than a mail that are no part of a command.
    fn wide(text: &str) -> Vec<&str> {
        let (before, _) = text.rsplit_once("To have it again:").unwrap();
        before
            .lines()
            .filter(|line| line.chars().count() > 80)
            .collect()
    }

    #[test]
    fn two_kernels() {
        insta::assert_snapshot!(mail(&two(&seeds(3))));
    }

    #[test]
    fn three_kernels_have_two_tables() {
        insta::assert_snapshot!(mail(&three(&seeds(2))));
    }

    #[test]
    fn legend_explains_only_signs_of_the_table() {
        let text = mail(&two(&seeds(3)));
        for absent in ["B better", "W worse", "= same", "? unclear"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
    }

    #[test]
    fn equal_images_different_machines_and_hostile_words() {
        insta::assert_snapshot!("equal", mail(&equal(&[1])));
        insta::assert_snapshot!("mixed", mail(&mixed(&seeds(2))));
        let text = mail(&hostile());
        assert!(!text.contains('\x1b'));
        insta::assert_snapshot!("hostile", text);
    }

    /// Gives every word and every number of a comparison.
    fn filled(mut comparison: Comparison, word: &str, number: f64) -> Comparison {
        word.clone_into(&mut comparison.suite);
        comparison.origins = vec![word.to_owned()];
        let kernels = std::iter::once(&mut comparison.base)
            .chain(comparison.others.iter_mut().map(|o| &mut o.kernel));
        for kernel in kernels {
            word.clone_into(&mut kernel.title);
            kernel.head = [word.to_owned(), word.to_owned()];
            kernel.build.origin = model::Origin::Described(word.to_owned());
            word.clone_into(&mut kernel.machine.summary);
        }
        for row in &mut comparison.rows {
            row.base.value = Some(number);
            for cell in &mut row.cells {
                cell.measured.value = Some(number);
                cell.compared.difference_percent = Some(-number);
            }
        }
        comparison
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_a_mail(
            word in "\\PC{0,200}",
            spaced in any::<bool>(),
            number in prop::num::f64::ANY,
        ) {
            let word = if spaced { word.replace('a', " ") } else { word };
            for comparison in [two(&[1]), three(&seeds(2)), hostile()] {
                let text = mail(&filled(comparison, &word, number));
                prop_assert!(wide(&text).is_empty(), "{:?}", wide(&text));
            }
        }
    }
}
