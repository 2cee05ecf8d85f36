//! The laws of the experiment, and snapshots of its renderings.

use model::{RmapCase, RmapCell, RmapOperation};

use super::{CellCost, document, is_poor, json};
use crate::rmap::Rmap;
use crate::rmap::fixtures::two_kernels;
use document::Styles;
use document::fixtures::without_assets;

#[test]
fn two_kernels_as_text() {
    insta::assert_snapshot!(document(&two_kernels()).text(&Styles::plain()));
}

#[test]
fn two_kernels_as_markdown() {
    insta::assert_snapshot!(document(&two_kernels()).markdown());
}

#[test]
fn two_kernels_as_a_page() {
    // One case: the values of both are in the text.
    let mut rmap = two_kernels();
    rmap.cases.remove(0);
    insta::assert_snapshot!(without_assets(&document(&rmap).html().unwrap()));
}

#[test]
fn single_kernel_is_rendered_without_comparison() {
    let mut rmap = two_kernels();
    rmap.kernels.truncate(1);
    rmap.cases.truncate(1);
    let text = document(&rmap).text(&Styles::plain());
    assert!(!text.contains("6.12.117") && !text.contains("+"), "{text}");
}

#[test]
fn lines_are_as_wide_as_a_mail() {
    let mut six = two_kernels();
    six.mappings = vec![1, 3, 10, 100, 300, 1000];
    six.kernels[1] = "6.12.117+deb12-cloud-amd64".into();
    for rmap in [two_kernels(), six] {
        let text = document(&rmap).text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }
}

#[test]
fn json_document_has_raw_values() {
    let rmap: Rmap = two_kernels();
    document::fixtures::assert_fits(&super::schema(), &json(&rmap).unwrap());
    let document: serde_json::Value = serde_json::from_str(&json(&rmap).unwrap()).unwrap();
    assert_eq!(
        (&document["schema_version"], &document["kind"]),
        (&1.into(), &"rmap".into())
    );
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), rmap.outcomes.len());
    let outcomes = |outcome: &str| {
        let cells = cells.iter().filter(|cell| cell["outcome"] == outcome);
        cells.count()
    };
    assert_eq!((outcomes("does_not_fit"), outcomes("failed")), (6, 1));
    insta::assert_snapshot!(
        "json_cell",
        serde_json::to_string_pretty(&cells[0]).unwrap()
    );
    insta::assert_snapshot!(
        "json_law",
        serde_json::to_string_pretty(&document["laws"][0]).unwrap()
    );
}

#[test]
fn words_from_outside_cannot_leave_their_place() {
    let mut rmap = two_kernels();
    rmap.kernels[1] = "<script>\x1b[2J|`".into();
    rmap.cases.truncate(1);
    let page = without_assets(&document(&rmap).html().unwrap());
    assert!(
        !page.contains("<script>\u{fffd}")
            && page.matches("<script>").count() == 1
            && !page.contains('\x1b')
    );
    assert!(
        !document(&rmap).text(&Styles::plain()).contains('\x1b')
            && !document(&rmap).markdown().contains('\x1b')
    );
}

const LARGEST: RmapCell = RmapCell {
    case: RmapCase::Sparse,
    processes: 1000,
    mappings: 1000,
};

#[test]
fn fitted_laws_equal_the_generating_laws() {
    let rmap = two_kernels();
    let law = rmap
        .laws(0, RmapCase::Sparse, RmapOperation::DropOne)
        .unwrap();
    let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 0.01;
    assert!(
        near(law.all.exponents[0], 1.0) && near(law.all.exponents[1], 1.0),
        "{law:?}"
    );
    assert!(!is_poor(&law.all) && law.large.is_none());
    let law = rmap
        .laws(1, RmapCase::Sparse, RmapOperation::Unmap)
        .unwrap();
    let large = law.large.unwrap();
    assert!(
        is_poor(&law.all) && large.worst_ratio < law.all.worst_ratio,
        "{law:?}"
    );
    assert_eq!(
        rmap.laws(0, RmapCase::Chain, RmapOperation::DropOne),
        None,
        "anonymous memory has none"
    );
}

#[test]
fn unmeasured_row_has_its_reason() {
    let rmap = two_kernels();
    assert_eq!(
        rmap.value(0, LARGEST, RmapOperation::Unmap),
        CellCost::NoRoom
    );
    let small = RmapCell {
        case: RmapCase::Chain,
        processes: 1,
        mappings: 1,
    };
    assert!(matches!(
        rmap.value(0, small, RmapOperation::PageoutOne),
        CellCost::Unsupported(_)
    ));
    assert_eq!(
        rmap.value(2, small, RmapOperation::Unmap),
        CellCost::Missing
    );
    let failed = RmapCell {
        case: RmapCase::Chain,
        processes: 100,
        mappings: 100,
    };
    assert!(matches!(
        rmap.value(1, failed, RmapOperation::Unmap),
        CellCost::Failed(_)
    ));
}

#[test]
fn space_is_of_the_largest_common_cell() {
    let rmap = two_kernels();
    let (cell, spaces) = rmap.space(RmapCase::Sparse).unwrap();
    assert_eq!(
        (cell.processes, cell.mappings, spaces.len()),
        (100, 1000, 2)
    );
    assert_eq!(spaces[0].entries_per_table(), Some(1.0));
}
