//! Snapshots of profiles, and what their lines say.

use super::{Profiled, brief, document, json};
use crate::calls::CallDifference;
use crate::calls::tests::tree;
use crate::ledger::tests::profile;
use crate::ledger::{Ledger, Sources};
use crate::modelled::ModelDifference;
use document::Styles;
use model::{CostModel, SourceLocation};

fn profiled() -> Profiled {
    let base = profile(
        100,
        &[
            ("[user]", 500, 0),
            ("__handle_mm_fault", 34_999, 100),
            ("mtree_range_walk", 13_809, 100),
            ("__alloc_pages", 10_516, 100),
            ("rmqueue_bulk.isra.0", 10_494, 3),
            ("clear_page_rep", 51_700, 100),
            (
                "a_function_with_a_very_long_name_that_does_not_fit_into_any_table",
                900,
                100,
            ),
        ],
    );
    let new = profile(
        100,
        &[
            ("[user]", 500, 0),
            ("__handle_mm_fault", 21_002, 100),
            ("mas_walk", 17_111, 100),
            ("__alloc_pages_noprof", 10_115, 100),
            ("rmqueue_bulk", 9_000, 3),
            ("clear_page_rep", 51_700, 100),
            ("<script>alert(1)</script>", 2_000, 250),
        ],
    );
    let same = profile(10, &[("[user]", 50, 0), ("sys_getppid", 3000, 10)]);
    let ledger = |name, base, new| {
        Ledger::new(name, std::slice::from_ref(base), std::slice::from_ref(new)).unwrap()
    };
    Profiled {
        base: (
            "6.1.192".into(),
            "linux-image-6.1.0-56-cloud-amd64 6.1.192-2".into(),
        ),
        new: (
            "6.12.117".into(),
            "linux-image-6.12.117+deb12-cloud-amd64 6.12.117-1".into(),
        ),
        machine: "QEMU 7.2.22, microvm, -cpu max, 256 MiB, -icount shift=0".into(),
        seeds: vec![1],
        ledgers: vec![
            ledger("fault-anon", &base, &new),
            ledger("getppid", &same, &same),
        ],
        missing: vec![("fault-huge".into(), "unsupported: no huge pages".into())],
        expanded: vec![expanded()],
        sources: sources(),
        calls: vec![calls()],
        without_calls: vec![(
            "getppid".into(),
            "the tracer's call tree is cut: QEMU ended before it was written".into(),
        )],
        model: Some(CostModel::default()),
        modelled: vec![model_row()],
        without_model: vec![(
            "getppid".into(),
            "the same job executed something else this time".into(),
        )],
        command: "marvin profile deb:6.1 deb:6.12 --workload fault,getppid".into(),
        lines_max: 6,
    }
}

/// The first profile with an inlined function separate.
fn expanded() -> Ledger {
    let base = profile(
        100,
        &[
            ("[user]", 500, 0),
            ("__handle_mm_fault", 14_999, 100),
            ("do_anonymous_page", 20_000, 0),
        ],
    );
    let new = profile(
        100,
        &[
            ("[user]", 500, 0),
            ("__handle_mm_fault", 14_002, 100),
            ("do_anonymous_page", 7000, 0),
        ],
    );
    Ledger::new("fault-anon", &[base], &[new]).unwrap()
}

/// Cost model results for it.
fn model_row() -> ModelDifference {
    use crate::modelled::tests::seed;
    let [base, new] = [(5002, 34_999), (7770, 21_002)].map(|(l1i, fault)| {
        [0, 1, 2, 3].map(|number| {
            let lines = [
                ("__handle_mm_fault", fault, l1i + number, 900),
                ("clear_page_rep", 51_700, 0, 8000 + 900 * number),
            ];
            seed(100, &lines)
        })
    });
    ModelDifference::new("fault-anon", &CostModel::default(), [&base, &new]).unwrap()
}

/// The source locations of two of its functions.
fn sources() -> Sources {
    let places = [
        ("mas_walk", "lib/maple_tree.c", 4950),
        ("__handle_mm_fault", "mm/memory.c", 5700),
    ];
    let places = places.map(|(name, file, line)| {
        let file = file.to_owned();
        (name.to_owned(), SourceLocation { file, line })
    });
    Sources::new(&std::collections::BTreeMap::new(), &places.into())
}

/// The calls of that profile's first workload, one operation of it.
fn calls() -> CallDifference {
    let base = fault_tree(&[
        (";handle;__handle_mm_fault", 350),
        (";mtree_range_walk", 138),
        (";handle;clear_page_rep", 517),
    ]);
    let new = fault_tree(&[
        (";handle;__handle_mm_fault", 210),
        (";mas_walk", 171),
        (";handle;clear_page_rep", 517),
        (";handle;<script>alert(1)</script>", 20),
    ]);
    CallDifference::new("fault-anon", &[base], &[new]).unwrap()
}

/// Returns the tree of chains below a page fault, and of user code.
fn fault_tree(rows: &[(&str, u64)]) -> model::CallTree {
    use model::Share::{Kernel, User};
    let chains: Vec<(String, u64)> = rows
        .iter()
        .map(|(rest, n)| {
            let fault = "asm_exc_page_fault;exc_page_fault;do_user_addr_fault";
            (format!("{fault}{rest}"), *n)
        })
        .collect();
    let mut paths: Vec<_> = chains
        .iter()
        .map(|(chain, n)| (Kernel, chain.as_str(), *n, 1))
        .collect();
    paths.push((User, "[user]", 5, 0));
    tree(&paths)
}

#[test]
fn totals_lead_from_the_ledger_to_the_row() {
    insta::assert_snapshot!("uneven", brief(&crate::ledger::tests::uneven(), 3));
}

#[test]
fn all_renderings() {
    let document = document(&profiled()).unwrap();
    let text = document.text(&Styles::plain());
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    insta::assert_snapshot!("text", text);
    insta::assert_snapshot!(
        "brief",
        profiled()
            .ledgers
            .iter()
            .map(|ledger| brief(ledger, 3))
            .collect::<Vec<_>>()
            .join("\n")
    );
    insta::assert_snapshot!("markdown", document.markdown());
    insta::assert_snapshot!("json", json(&profiled()).unwrap());
    document::fixtures::assert_fits(&super::schema(), &json(&profiled()).unwrap());
    let page = document::fixtures::without_assets(&document.html().unwrap());
    assert!(
        !page.contains("<script>alert"),
        "names of a kernel are not to be trusted"
    );
    insta::assert_snapshot!("html", page);
}
