//! Snapshots of comparisons side by side, and their numbers beside those of single comparisons.

use std::collections::BTreeSet;

use proptest::prelude::{prop_assert, proptest};
use serde_json::Value;

use super::{document, headlines, json};
use crate::fixtures::{equal, on_exact, on_noisy, on_two_machines, three, two};
use crate::{Agreement, Comparison, SideBySide, side_by_side};
use document::fixtures::without_assets;
use document::number::{percent, ratio, value};
use document::{Only, Sort, Styles, View};

fn text(side_by_side: &SideBySide, view: &View) -> String {
    let text = document(side_by_side, view).text(&Styles::plain());
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
        assert_eq!(line, line.trim_end(), "trailing space");
    }
    text
}

fn page(side_by_side: &SideBySide) -> String {
    without_assets(&document(side_by_side, &View::default()).html().unwrap())
}

/// Returns comparisons with the names of their machines.
fn named(columns: Vec<(&str, Comparison)>) -> Vec<(String, Comparison)> {
    columns
        .into_iter()
        .map(|(name, comparison)| (name.to_owned(), comparison))
        .collect()
}

#[test]
fn two_machines_fit_eighty_columns() {
    insta::assert_snapshot!(text(&on_two_machines(), &View::default()));
}

#[test]
fn three_machines_are_groups_below_each_other() {
    let columns = vec![
        ("exact", on_exact()),
        ("vm", on_noisy(5, 1.0)),
        ("testbox", on_noisy(8, 1.02)),
    ];
    insta::assert_snapshot!(text(
        &side_by_side(named(columns)).unwrap(),
        &View::default()
    ));
}

#[test]
fn several_kernels_are_counted_each_by_itself() {
    let both = side_by_side(named(vec![
        ("exact", three(&[1, 2])),
        ("other", three(&[1])),
    ]))
    .unwrap();
    insta::assert_snapshot!(text(
        &both,
        &View {
            only: Some(Only::Worse),
            ..View::default()
        }
    ));
    let many: Vec<(String, Comparison)> = (0..5).map(|n| (format!("m{n}"), three(&[1]))).collect();
    assert!(page(&side_by_side(many).unwrap()).contains("class=\"document matrix\""));
}

#[test]
fn kernels_that_need_no_run_have_no_table() {
    let both = side_by_side(named(vec![("exact", equal(&[1])), ("other", equal(&[1]))])).unwrap();
    insta::assert_snapshot!(text(&both, &View::default()));
}

#[test]
fn two_machines_as_markdown() {
    insta::assert_snapshot!(document(&on_two_machines(), &View::default()).markdown());
}

#[test]
fn two_machines_as_a_page() {
    let page = page(&on_two_machines());
    assert!(
        !page.contains("http:")
            && !page.contains("https:")
            && !page.contains("src=")
            && !page.contains("url(")
    );
    insta::assert_snapshot!(page.split_once("</head>").unwrap().1);
}

#[test]
fn schema_in_docs_is_up_to_date() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas/side-by-side.json"
    );
    let text = serde_json::to_string_pretty(&super::schema()).unwrap() + "\n";
    let in_docs = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        in_docs == text,
        "docs/schemas is old: marvin reference schemas docs/schemas"
    );
}

#[test]
fn json_has_the_match_and_both_comparisons() {
    let both = on_two_machines();
    let written = json(&both).unwrap();
    document::fixtures::assert_fits(&super::schema(), &written);
    let mut document: Value = serde_json::from_str(&written).unwrap();
    for (place, column) in both.columns().iter().enumerate() {
        let single: Value =
            serde_json::from_str(&crate::render::json(&column.comparison).unwrap()).unwrap();
        assert_eq!(document["machines"][place]["comparison"], single);
    }
    // One row of each kind of agreement; the values of all are in the comparisons.
    let rows = document["rows"].as_array_mut().unwrap();
    let mut known = BTreeSet::new();
    rows.retain(|row| known.insert(row["agreements"].to_string()));
    insta::assert_snapshot!(serde_json::to_string_pretty(rows).unwrap());
}

#[test]
fn everything_unfolded_fits_eighty_columns() {
    let whole = text(
        &on_two_machines(),
        &View {
            verbose: true,
            ..View::default()
        },
    );
    assert!(
        whole.contains("== vm: environments, kernels, machine =="),
        "{whole}"
    );
}

#[test]
fn rows_are_sorted_and_chosen_by_all_machines() {
    let both = on_two_machines();
    let worse = View {
        only: Some(Only::Worse),
        sort: Sort::Effect,
        ..View::default()
    };
    assert_eq!(row_names(&both, &worse), ["fault-anon", "mmap", "getppid"]);
    let by_effect = View {
        sort: Sort::Effect,
        ..View::default()
    };
    assert_eq!(row_names(&both, &by_effect).len(), 9);
}

/// Returns the names in the rows of the table.
fn row_names(side_by_side: &SideBySide, view: &View) -> Vec<String> {
    let text = text(side_by_side, view);
    let (_, table) = text.split_once("--\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    let rows = table.lines().skip(1);
    rows.map(|row| row.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn swapped_machines_give_the_same_agreements() {
    let swapped =
        side_by_side(named(vec![("vm", on_noisy(5, 1.0)), ("exact", on_exact())])).unwrap();
    let both = on_two_machines();
    for row in both.rows() {
        let other = swapped
            .rows()
            .iter()
            .find(|other| other.workload.name == row.workload.name)
            .unwrap();
        let names = row.agreements.iter().map(Agreement::name);
        assert!(names.eq(other.agreements.iter().map(Agreement::name)));
        assert_eq!(both.explanations(row, 0), swapped.explanations(other, 0));
    }
    assert_eq!(swapped.conclusion(), both.conclusion());
}

#[test]
fn machine_with_itself_agrees_or_is_unclear() {
    let twice = side_by_side(named(vec![
        ("one", on_noisy(6, 1.0)),
        ("other", on_noisy(6, 1.0)),
    ]))
    .unwrap();
    let fine = |agreement: &Agreement| match agreement {
        Agreement::Agree => true,
        Agreement::UnclearOn(machines) => machines.len() == 2,
        Agreement::Disagree | Agreement::ChangedOn(_) | Agreement::MeasuredOn(_) => false,
    };
    assert!(
        twice
            .rows()
            .iter()
            .flat_map(|row| &row.agreements)
            .all(fine)
    );
    assert!(!text(&twice, &View::default()).contains("Machines disagree"));
}

#[test]
fn hostile_machine_name_stays_in_its_place() {
    let hostile = vec![
        ("exact", on_exact()),
        (crate::fixtures::HOSTILE, on_noisy(5, 1.0)),
    ];
    let both = side_by_side(named(hostile)).unwrap();
    let text = text(&both, &View::default());
    let markdown = document(&both, &View::default()).markdown();
    let page = page(&both);
    assert!(
        [&text, &markdown, &page]
            .iter()
            .all(|text| !text.contains('\x1b'))
    );
    assert!(!page.contains("<script>alert"), "{page}");
    let outside_fences: String = markdown.split("```").step_by(2).collect();
    assert!(!outside_fences.contains("<script"), "{markdown}");
    assert!(headlines(&both).iter().all(|line| !line.contains('\x1b')));
}

#[test]
fn comparisons_that_do_not_match_are_refused() {
    let refusal = |columns| side_by_side(named(columns)).unwrap_err().to_string();
    let texts = [
        refusal(vec![("exact", on_exact())]),
        refusal(vec![("exact", on_exact()), ("exact", on_exact())]),
        refusal(vec![("exact", on_exact()), ("vm", three(&[1]))]),
    ];
    insta::assert_snapshot!(texts.join("\n"));
    assert!(side_by_side(named(vec![("exact", on_exact()), ("other", two(&[1]))])).is_ok());
}

proptest! {
    /// Every number of a comparison is in the text, in the markdown and in the document of both.
    #[test]
    fn numbers_are_those_of_single_comparisons(boots in 1_u32..9, factor in 0.5_f64..2.0) {
        let both = side_by_side(named(vec![
            ("exact", on_exact()),
            ("vm", on_noisy(boots, factor)),
        ]))
        .unwrap();
        let document_of_both = document(&both, &View::default());
        let text = document_of_both.text(&Styles::plain());
        let markdown = document_of_both.markdown();
        let written: Value = serde_json::from_str(&json(&both).unwrap()).unwrap();
        for (row, in_json) in both.rows().iter().zip(written["rows"].as_array().unwrap()) {
            let name = &*row.workload.name;
            let of = |text: &str, start: &str| -> String {
                text.lines()
                    .filter(|line| line.starts_with(start))
                    .collect::<Vec<_>>()
                    .join(" ")
            };
            let texts = [
                of(&text, &format!("{name} ")),
                of(&markdown, &format!("| `{name}` ")),
            ];
            for place in 0..both.columns().len() {
                let Some(own) = both.row(row, place) else {
                    prop_assert!(in_json["machines"][place].is_null());
                    continue;
                };
                let cell = &own.cells[0];
                let in_json = &in_json["machines"][place];
                let rated = cell
                    .rated
                    .and(cell.compared.ratio)
                    .map(|number| ratio(number, 6));
                let shown = [
                    own.base.value.map(|number| value(number, 8)),
                    cell.measured.value.map(|number| value(number, 8)),
                    cell.compared
                        .difference_percent
                        .map(|number| percent(number, 7)),
                    rated,
                    Some(cell.compared.verdict.letter().to_string()),
                ];
                for number in shown.into_iter().flatten() {
                    let holds = |text: &String| {
                        text.split([' ', '(', ')', '%', '|'])
                            .any(|word| word == number)
                    };
                    prop_assert!(
                        texts.iter().all(holds),
                        "{name}: {number} is not in {texts:?}"
                    );
                }
                // As they come back from a text: the reader of JSON may lose the last bit.
                let read = |number: Option<f64>| {
                    serde_json::from_str(&serde_json::to_string(&number).unwrap()).unwrap()
                };
                let of_json = &in_json["others"][0];
                let numbers = [
                    &in_json["base"],
                    &of_json["value"],
                    &of_json["difference_percent"],
                    &of_json["ratio"],
                ];
                let own = [
                    own.base.value,
                    cell.measured.value,
                    cell.compared.difference_percent,
                    cell.compared.ratio,
                ];
                let own: [Value; 4] = own.map(read);
                prop_assert!(numbers.into_iter().eq(&own), "{name}: {numbers:?} {own:?}");
                prop_assert!(of_json["verdict"] == cell.compared.verdict.name());
            }
        }
    }
}
