//! The controls of pages in a real browser: sorting, filtering and choosing kernels, in reports and
//! in the dashboard.

use std::sync::Arc;

use compare::fixtures::{Ending, Subject, WORKLOADS, build, question};
use compare::{Side, compare};
use model::Workload;
use serde_json::json;
use tempfile::TempDir;

use super::browser::Browser;
use crate::Limits;
use crate::testing::Lab;

/// The names of the rows that are shown, in their order.
const ROWS: &str = "[...document.querySelectorAll('table.document tr[id]')].filter(r => r.checkVisibility())\
                    .map(r => r.cells[0].innerText).join()";
/// The kernels whose columns are shown.
const KERNELS: &str = "[...document.querySelectorAll('th[data-k]')].filter(h => h.checkVisibility())\
                       .map(h => h.innerText).join()";

/// Writes the report of seven kernels: a file by itself.
fn report_of(kernels: u32) -> (TempDir, String) {
    let seeds = [1, 2];
    let subject = |n: u32| {
        let endings: Vec<(&str, Ending)> = WORKLOADS
            .iter()
            .zip(1_u32..)
            .map(|(workload, place)| {
                let change = f64::from((n * place * 7) % 11) - 4.0;
                let cost =
                    f64::from(400 * place) * (1.0 + if n == 0 { 0.0 } else { change / 100.0 });
                (
                    &*workload.name,
                    Ending::Cost(
                        cost,
                        if place == 3 {
                            cost / 50.0 * f64::from(n % 3)
                        } else {
                            0.0
                        },
                    ),
                )
            })
            .collect();
        Subject::new(
            build("deb:6.1", &format!("6.{}.{}", n + 1, 100 + n)),
            &seeds,
            &endings,
        )
    };
    let subjects: Vec<Subject> = (0..kernels).map(subject).collect();
    let sides: Vec<Side<'_>> = subjects.iter().map(Subject::side).collect();
    let comparison = compare(&sides[0], &sides[1..], &question(&seeds)).unwrap();
    let page = compare::render::comparison(&comparison, &document::View::default())
        .html()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, page).unwrap();
    (folder, format!("file://{}", file.display()))
}

fn named(rows: &[Arc<Workload>]) -> String {
    rows.iter()
        .map(|workload| &*workload.name)
        .collect::<Vec<_>>()
        .join(",")
}

#[test]
fn report_of_seven_kernels_has_controls() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (_folder, address) = report_of(7);
    for (width, scheme) in [(1280, "light"), (1280, "dark"), (400, "light")] {
        browser.show(width, 900, scheme);
        browser.open(&address);
        browser.picture(&format!("seven-{scheme}-{width}"));
        let seen = browser.value("document.documentElement.scrollWidth");
        assert!(
            seen.as_u64().unwrap() <= u64::from(width),
            "{scheme} {width}: {seen}"
        );
    }
    browser.show(1280, 900, "light");
    browser.open(&address);
    assert_eq!(browser.value(ROWS), json!(named(&WORKLOADS)));

    // By effect: the worst row of a kernel first, by mouse; the best first by keyboard; the suite's
    // order at last.
    let effects = "[...document.querySelectorAll('table.document tr[id]')].map(r => parseFloat(r.cells[2].querySelector('small').innerText))";
    browser.click("th[data-k] button");
    assert_eq!(
        browser.value("document.querySelector('th[data-k]').ariaSort"),
        "ascending"
    );
    assert_eq!(
        browser.value(&format!(
            "(e => e.every((x, n) => !n || e[n - 1] <= x))({effects})"
        )),
        true
    );
    assert_eq!(
        browser.value(
            "document.querySelectorAll('tr.about')[0].previousElementSibling.id.slice(0, 4)"
        ),
        "row-"
    );
    browser.picture("seven-sorted");
    browser.write("\r");
    assert_eq!(
        browser.value("document.querySelector('th[data-k]').ariaSort"),
        "descending"
    );
    assert_eq!(
        browser.value(&format!(
            "(e => e.every((x, n) => !n || e[n - 1] >= x))({effects})"
        )),
        true
    );
    browser.write("\r");
    assert_eq!(browser.value(ROWS), json!(named(&WORKLOADS)));

    browser.write("/");
    browser.write("fault anon");
    assert_eq!(browser.value(ROWS), "fault-anon");
    assert_eq!(
        browser
            .text(".tools [role=status]")
            .split_once(' ')
            .unwrap()
            .0,
        "1"
    );
    browser.key("Escape", 27);
    assert_eq!(browser.value(ROWS), json!(named(&WORKLOADS)));

    assert_eq!(
        browser.value(KERNELS),
        "6.2.101,6.3.102,6.4.103,6.5.104,6.6.105,6.7.106"
    );
    browser.click("input[value='6.3.102']");
    browser.click("input[value='6.6.105']");
    assert_eq!(browser.value(KERNELS), "6.2.101,6.4.103,6.5.104,6.7.106");
    let cells = "[...document.querySelectorAll('#row-getppid > *')].filter(c => c.checkVisibility()).length";
    assert_eq!(browser.value(cells), 2 + 4 * 2);
    browser.picture("seven-chosen");
    browser.click("input[value='6.3.102']");
    assert_eq!(browser.value(cells), 2 + 5 * 2);
}

#[test]
fn report_without_scripts_has_all_rows() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (_folder, address) = report_of(3);
    browser.show(1280, 900, "light");
    browser.open(&address);
    browser.picture("three-light-1280");
    let whole = browser.text("table.drawn tbody");
    assert_eq!(
        browser.value("document.querySelectorAll('.tools').length"),
        1
    );
    browser.show(400, 900, "light");
    browser.open(&address);
    browser.picture("three-light-400");
    browser.show(1280, 900, "light");
    browser.without_scripts();
    browser.open(&address);
    browser.picture("three-no-script");
    assert_eq!(
        browser.value("document.querySelectorAll('.tools, button').length"),
        0
    );
    assert_eq!(browser.text("table.drawn tbody"), whole);
}

#[test]
fn script_of_another_author_does_not_run() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let (folder, _) = report_of(3);
    let file = folder.path().join("report.html");
    let page = std::fs::read_to_string(&file).unwrap();
    let page = page.replacen(
        "<main>",
        "<main><script>document.title = 'mine'</script><p onclick='document.title = 1'>",
        1,
    );
    std::fs::write(&file, page).unwrap();
    browser.open(&format!("file://{}", file.display()));
    assert_ne!(browser.value("document.title"), "mine");
    assert_eq!(
        browser.value("document.querySelectorAll('.tools').length"),
        1
    );
}

#[test]
fn published_pages_work_from_files() {
    let lab = Lab::usual();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("site");
    crate::publish(
        &crate::Site::of_files(lab.home(), lab.source().snapshot(1)),
        &target,
    )
    .unwrap();
    for (page, text) in [
        ("index.html", "fault-anon"),
        ("c/aa0000000000/6.1.192/6.12.117.html", "getppid"),
    ] {
        browser.open(&format!("file://{}", target.join(page).display()));
        assert!(browser.text("main").contains(text), "{page}");
        assert!(
            browser
                .value("document.querySelectorAll('button.sort').length")
                .as_u64()
                > Some(0),
            "{page}: no script"
        );
        let margin = browser.value("getComputedStyle(document.body).margin");
        assert_eq!(margin, "0px", "{page}: no styles");
        let policy = browser.value("document.querySelector('meta[http-equiv]').content");
        assert!(
            policy.as_str().unwrap().starts_with("default-src 'none'"),
            "{policy}"
        );
    }
}

#[test]
fn tables_of_the_dashboard_are_sorted() {
    let lab = Lab::usual();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let top = format!("http://{}/", lab.serve(Limits::default()));
    let names =
        "[...document.querySelectorAll('tr[data-n]')].map(r => r.cells[0].innerText).join()";
    browser.open(&top);
    assert_eq!(browser.value(names), "fault-anon,getppid,switch-yield");
    browser.click("table.grid thead th:nth-child(2) button");
    assert_eq!(browser.value(names), "fault-anon,getppid,switch-yield");
    browser.write("\r");
    assert_eq!(
        browser.value(names),
        "getppid,fault-anon,switch-yield",
        "what has no ratio comes last"
    );
    assert_eq!(
        browser.value("[...document.querySelectorAll('tr.sub')].every(r => r.hidden)"),
        true
    );
    browser.open(&format!("{top}c/aa0000000000/6.1.192/6.12.117.html"));
    browser.click("th[data-k] button");
    assert_eq!(browser.value(ROWS), "fault-anon,getppid,switch-yield");
    browser.open(&format!("{top}s/aa0000000000/cloud-amd64/fault-anon.html"));
    assert_eq!(
        browser.value("document.querySelectorAll('th')[0].querySelectorAll('button').length"),
        0
    );
    browser.open(&format!("{top}runs.html"));
    let runs = "document.querySelectorAll('tbody tr').length";
    let all = browser.value(runs);
    browser.click(".tools input");
    browser.write("6.12.117");
    assert_eq!(
        browser.value("[...document.querySelectorAll('tbody tr')].filter(r => !r.hidden).length"),
        4
    );
    assert_eq!(browser.value(runs), all);
}
