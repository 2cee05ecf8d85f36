//! Limits on the size of documents and pages, in bytes for each value or row: a lab may grow, these
//! may not.

use model::workloads;

use crate::publish::links;
use crate::testing::{Lab, result};
use crate::{ContentKind, Site, publish};

const KERNELS: usize = 8;
const MACHINES: [&str; 2] = ["aa", "bb"];
const SEEDS: u64 = 3;

/// Size limits in bytes: for a value of a seed in the document of all series, and for a row of a
/// comparison.
const VALUE_BYTES_MAX: usize = 24;
const ROW_BYTES_MAX: usize = 820;

/// A lab of all workloads, whose values have as many digits as measured ones.
fn large_lab() -> Lab {
    let mut lab = Lab::new();
    for kernel in 0..KERNELS {
        for machine in MACHINES {
            for seed in 1..=SEEDS {
                let mut results = Vec::new();
                for (number, workload) in workloads().into_iter().enumerate() {
                    let is_worse = number.is_multiple_of(9) && kernel > 4;
                    let factor = if is_worse { 1.1 } else { 1.0 };
                    let cost = (100.0 + number as f64 * 17.371 + seed as f64 * 0.113) * factor;
                    results.push(result(&workload.name, (cost * 1e3).round() / 1e3));
                }
                lab.run(&format!("6.1.{kernel}"), machine, seed, results);
            }
        }
    }
    lab
}

#[test]
fn documents_and_pages_stay_small() {
    let lab = large_lab();
    let site = Site::new(lab.home(), lab.source().snapshot(1));
    let size = |path: &str| {
        let reply = site.answer(path, "");
        assert_eq!(reply.status, 200, "{path}");
        reply.body.len()
    };
    let rows = workloads().len();
    let values = rows * KERNELS * MACHINES.len() * SEEDS as usize;
    let each = [
        (
            "a value",
            size("/api/v1/series.json") / values,
            VALUE_BYTES_MAX,
        ),
        (
            "a row",
            size("/c/aa0000000000/6.1.4/6.1.5.html") / rows,
            ROW_BYTES_MAX,
        ),
    ];
    for (what, bytes, limit) in each {
        assert!(bytes <= limit, "{what}: {bytes} bytes, at most {limit}");
    }
}

#[test]
fn files_contain_every_series() {
    let lab = Lab::usual();
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("site");
    publish(
        &Site::of_files(lab.home(), lab.source().snapshot(1)),
        &target,
    )
    .unwrap();
    let text = std::fs::read_to_string(target.join("api/v1/series.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let kernels = document["kernels"].as_array().unwrap();
    let runs = document["runs"].as_array().unwrap();
    assert_eq!((kernels.len(), runs.len()), (5, 2), "names stand once");
    assert_eq!(document["complete"], true);
    for series in document["series"].as_array().unwrap() {
        let list = &runs[series["runs"].as_u64().unwrap() as usize];
        assert_eq!(
            series["values"].as_array().unwrap().len(),
            list["ids"].as_array().unwrap().len()
        );
        assert_eq!(series["medians"].as_array().unwrap().len(), kernels.len());
    }
}

#[test]
fn published_pages_need_no_server() {
    let lab = Lab::usual();
    let site = Site::of_files(lab.home(), lab.source().snapshot(1));
    let path = "c/aa0000000000/6.1.192/6.12.117.html";
    let page = site.answer(&format!("/{path}"), "");
    let page = String::from_utf8_lossy(&page.body);
    let found = links(path, &page);
    for linked in ["document.css", "script.js"] {
        assert!(
            found.iter().any(|link| link == linked),
            "{linked}: {found:?}"
        );
        assert!(matches!(
            site.answer(&format!("/{linked}"), "").kind,
            ContentKind::Css | ContentKind::Script
        ));
    }
    assert!(!page.contains("href=\"/") && !page.contains("src=\"/"));
}
