//! Snapshots of monitor data.

use proptest::prelude::{prop, prop_assert, proptest};

use super::{document, json, text};
use crate::Monitored;
use crate::fixtures::{self, monitored_of_2013, multibuild, newer, parallelio};
use document::{Style, Styles, View};

fn plain(monitored: &Monitored, style: Style) -> String {
    text(monitored, style, &Styles::plain())
}

#[test]
fn mail_of_2013_is_rendered_in_its_style() {
    insta::assert_snapshot!(plain(
        &monitored_of_2013(vec![parallelio(), multibuild()]),
        Style::Y2013
    ));
}

#[test]
fn mail_of_2013_is_rendered_in_current_style() {
    insta::assert_snapshot!(plain(
        &monitored_of_2013(vec![multibuild()]),
        Style::Mmtests
    ));
}

#[test]
fn two_kernels_in_the_style_of_2013() {
    insta::assert_snapshot!(plain(&newer(), Style::Y2013));
}

#[test]
fn two_kernels_in_the_style_of_today() {
    insta::assert_snapshot!(plain(&newer(), Style::Mmtests));
}

#[test]
fn two_kernels_in_ours() {
    insta::assert_snapshot!(plain(&newer(), Style::Marvin));
}

#[test]
fn rows_of_zeros_are_shown_on_request() {
    let view = View {
        verbose: true,
        ..View::default()
    };
    let whole = document(&newer(), &view).text(&Styles::plain());
    let row = "\nPage writes file ";
    assert!(whole.contains(row) && !whole.contains("hidden"), "{whole}");
    let short = plain(&newer(), Style::Marvin);
    assert!(
        !short.contains(row) && short.contains("rows of zeros are hidden: -v shows them."),
        "{short}"
    );
}

/// Two kernels fit whatever the style, and the counters of three.
#[test]
fn lines_are_as_wide_as_a_mail() {
    for style in Style::ALL {
        for (monitored, name) in [(newer(), "two"), (monitored_of_2013(Vec::new()), "three")] {
            let text = plain(&monitored, style);
            assert!(
                text.lines().all(|line| line.chars().count() <= 80),
                "{style} {name}\n{text}"
            );
        }
    }
}

#[test]
fn two_kernels_as_markdown() {
    insta::assert_snapshot!(document(&newer(), &View::default()).markdown());
}

#[test]
fn json_document_has_raw_values() {
    let document: serde_json::Value =
        serde_json::from_str(&json(&monitored_of_2013(vec![parallelio()])).unwrap()).unwrap();
    assert_eq!(
        (&document["schema_version"], &document["kind"]),
        (&1.into(), &"monitors".into())
    );
    assert_eq!(document["kernels"][1], "3.10.0-rc4-mm1-mmotm-20130606");
    let memory = &document["blocks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|b| b["title"] == "Memory management")
        .unwrap()["rows"];
    let row = memory
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "Kswapd efficiency")
        .unwrap();
    assert_eq!(
        (&row["unit"], &row["values"][0]),
        (&"%".into(), &(100.0 * 1_097_093.0 / 15_892_718.0).into())
    );
    let direct = memory
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["name"] == "Direct efficiency")
        .unwrap();
    assert!(direct["values"][0].is_null());
    assert_eq!(document["samples"][0]["rows"][0]["samples"][1][0], 22412.0);
    assert_eq!(
        document["samples"][0]["rows"][0]["direction"],
        "higher is better"
    );
    document::fixtures::assert_fits(&super::schema(), &json(&newer()).unwrap());
    let newer: serde_json::Value = serde_json::from_str(&json(&newer()).unwrap()).unwrap();
    assert_eq!(
        newer["plots"][0]["lines"][1]["points"]
            .as_array()
            .unwrap()
            .len(),
        59
    );
}

/// `MARVIN_SHOW_PAGES=DIRECTORY` writes the pages there, for a look in a browser.
#[test]
fn pages_are_whole_and_hostile_words_stay_words() {
    for (name, monitored) in [
        ("newer", newer()),
        ("2013", monitored_of_2013(vec![parallelio(), multibuild()])),
    ] {
        let page = document(&monitored, &View::default()).html().unwrap();
        if let Some(folder) = std::env::var_os("MARVIN_SHOW_PAGES") {
            std::fs::write(
                std::path::Path::new(&folder).join(format!("{name}.html")),
                &page,
            )
            .unwrap();
        }
        let page = document::fixtures::without_assets(&page);
        assert!(!page.contains("http:") && !page.contains("src=") && !page.contains("url("));
        assert!(!page.contains('\x1b') && !page.contains('\u{202e}') && !page.contains("<b>|"));
        assert_eq!(
            page.matches("<svg class=\"plot\"").count(),
            monitored.plots.len()
        );
        if name == "newer" {
            insta::assert_snapshot!(page.split_once("</style>").unwrap().1);
        }
    }
}

#[test]
fn empty_monitors_render_empty() {
    let nothing = Monitored {
        subject: String::new(),
        heads: vec![["6.1".to_owned(), String::new()]],
        tables: vec![],
        blocks: vec![],
        plots: vec![],
    };
    for style in Style::ALL {
        assert_eq!(plain(&nothing, style), "");
        assert!(
            document(
                &nothing,
                &View {
                    style,
                    ..View::default()
                }
            )
            .html()
            .unwrap()
            .contains("6.1")
        );
    }
}

#[test]
fn zero_samples_have_no_variation() {
    let mut monitored = newer();
    monitored.blocks.clear();
    for row in &mut monitored.tables[0].rows {
        row.samples = vec![vec![0.0, 0.0], vec![0.0, 0.0]];
    }
    let text = plain(&monitored, Style::Mmtests);
    let row = text
        .lines()
        .find(|line| line.starts_with("CoeffVar  Elapsed-4"))
        .unwrap();
    assert_eq!(
        row.split_whitespace().skip(2).collect::<Vec<_>>(),
        ["-", "-"]
    );
    assert!(!text.contains("NaN"));
}

proptest! {
    /// No combination of counters gives NaN.
    #[test]
    fn any_counters_are_rendered(
        counts in prop::collection::vec((0_usize..400, 0_u64..u64::MAX), 0..60),
        ms in 0_u64..1_000_000_000,
    ) {
        let terms = crate::DICTIONARY
            .iter()
            .flat_map(|meaning| meaning.forms)
            .flat_map(|form| form.1);
        let keys: Vec<&str> = terms
            .map(|term| match term {
                crate::Term::Key(key) | crate::Term::IfThere(key) | crate::Term::Less(key) => key,
                crate::Term::Zones("pgscan_direct") => "pgscan_direct_normal",
                crate::Term::Zones(_) => "allocstall_movable",
            })
            .collect();
        let counts: Vec<(&str, u64)> = counts
            .iter()
            .map(|(key, count)| (keys[key % keys.len()], *count))
            .collect();
        let (half, all) = counts.split_at(counts.len() / 2);
        let base = fixtures::vmstat(ms, half);
        let new = fixtures::vmstat(ms, all);
        let monitored = fixtures::two(&base, &new);
        for style in Style::ALL {
            let text = plain(&monitored, style);
            prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        }
        prop_assert!(json(&monitored).is_ok());
    }

    /// No samples break a style, and the base is at 0.00 %.
    #[test]
    fn any_samples_are_rendered(
        samples in prop::collection::vec(prop::collection::vec(-1e9..1e12, 0..4), 1..4),
    ) {
        let mut monitored = newer();
        monitored.heads = samples
            .iter()
            .map(|_| ["6".to_owned(), String::new()])
            .collect();
        monitored.blocks.clear();
        monitored.plots.clear();
        monitored.tables[0].rows.truncate(1);
        monitored.tables[0].rows[0].samples = samples;
        for style in Style::ALL {
            prop_assert!(!plain(&monitored, style).contains("NaN"));
            let markdown = document(
                &monitored,
                &View {
                    style,
                    ..View::default()
                },
            )
            .markdown();
            prop_assert!(!markdown.contains("inf"));
        }
    }
}
