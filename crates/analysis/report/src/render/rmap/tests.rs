//! Snapshots of the experiment.

use super::{document, json};
use crate::fixtures::without_script;
use crate::render::Styles;
use crate::rmap::Rmap;
use crate::rmap::fixtures::two_kernels;

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
    insta::assert_snapshot!(without_script(&document(&two_kernels()).html().unwrap()));
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
    crate::fixtures::assert_fits("rmap", &json(&rmap).unwrap());
    let document: serde_json::Value = serde_json::from_str(&json(&rmap).unwrap()).unwrap();
    assert_eq!(
        (&document["schema_version"], &document["kind"]),
        (&1.into(), &"rmap".into())
    );
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), rmap.outcomes.len());
    let of = |outcome: &str| {
        cells
            .iter()
            .filter(|cell| cell["outcome"] == outcome)
            .count()
    };
    assert_eq!((of("does_not_fit"), of("failed")), (6, 1));
    insta::assert_snapshot!(serde_json::to_string_pretty(&cells[0]).unwrap());
    insta::assert_snapshot!(serde_json::to_string_pretty(&document["laws"][0]).unwrap());
}

#[test]
fn words_from_outside_cannot_leave_their_place() {
    let mut rmap = two_kernels();
    rmap.kernels[1] = "<script>\x1b[2J|`".into();
    rmap.cases.truncate(1);
    let page = without_script(&document(&rmap).html().unwrap());
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
