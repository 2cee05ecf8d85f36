//! Snapshots of a comparison: text, markdown and page of the same kernels.

use std::sync::Arc;

use model::{FailureReason, Stage, Workload};

use crate::compare::compare;
use crate::fixtures::{
    Ending, HOSTILE, Subject, THROUGHPUT, build, equal, hostile, large, mixed, old, on_noisy,
    other_machine, question, seeds, three, two,
};
use crate::{Comparison, Side};
use document::fixtures::without_assets;
use document::{Only, Sort, Style, Styles, View};

fn shown(comparison: &Comparison) -> String {
    seen(comparison, &View::default())
}

fn seen(comparison: &Comparison, view: &View) -> String {
    super::comparison(comparison, view).text(&Styles::plain())
}

fn whole(comparison: &Comparison) -> String {
    seen(
        comparison,
        &View {
            verbose: true,
            ..View::default()
        },
    )
}

fn markdown(comparison: &Comparison) -> String {
    super::comparison(comparison, &View::default()).markdown()
}

fn page(comparison: &Comparison) -> String {
    let page = super::comparison(comparison, &View::default())
        .html()
        .unwrap();
    assert_eq!(
        (
            page.matches("<script").count(),
            page.matches("<script>").count()
        ),
        (1, 1),
        "our script and no other"
    );
    assert!(
        !page.contains("http:")
            && !page.contains("https:")
            && !page.contains("src=")
            && !page.contains("url(")
    );
    without_assets(&page)
}

/// Returns the page without its styles, which would dominate the snapshot.
fn body(page: &str) -> &str {
    page.split_once("</head>").unwrap().1
}

fn assert_fits(text: &str) {
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80,
            "{} columns: {line}",
            line.chars().count()
        );
        assert_eq!(line, line.trim_end(), "trailing space");
    }
}

#[test]
fn noisy_rows_say_how_many_boots_decide() {
    insta::assert_snapshot!(shown(&on_noisy(3, 1.0)));
    assert!(
        !page(&on_noisy(3, 1.0)).contains("data-k"),
        "a column without differences would sort by nothing"
    );
}

#[test]
fn two_kernels_and_five_seeds() {
    let text = shown(&two(&seeds(5)));
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn two_kernels_and_one_seed() {
    let text = shown(&two(&[1]));
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn long_row_name_stands_above_its_numbers() {
    let mut comparison = two(&seeds(5));
    let row = &mut comparison.rows[0];
    let workload = Workload {
        name: "sysbench-cpu.latency-max".into(),
        ..(*row.workload).clone()
    };
    row.workload = Arc::new(workload);
    let text = shown(&comparison);
    assert_fits(&text);
    let lines: Vec<&str> = text
        .lines()
        .skip_while(|line| *line != "sysbench-cpu.latency-max")
        .take(2)
        .collect();
    assert!(
        lines.len() == 2 && lines[1].starts_with("    ") && lines[1].contains("0.00%"),
        "{text}"
    );
}

#[test]
fn letters_repeat_the_information_of_colours() {
    let comparison = two(&seeds(2));
    let coloured = super::comparison(&comparison, &View::default()).text(&Styles::ansi());
    insta::assert_snapshot!(coloured.replace('\x1b', "^["));
    let mut bare = coloured;
    for code in ["1", "2", "36", "1;33", "35", "0"] {
        bare = bare.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(bare, shown(&comparison));
}

#[test]
fn three_kernels_one_of_which_never_boots() {
    insta::assert_snapshot!(shown(&three(&seeds(3))));
}

#[test]
fn equal_images() {
    let text = shown(&equal(&seeds(2)));
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn equal_images_measured_again() {
    let seeds = seeds(2);
    let old = old(&seeds);
    let comparison = compare(&old.side(), &[old.side()], &question(&seeds)).unwrap();
    insta::assert_snapshot!(shown(&comparison));
}

#[test]
fn warning_about_mixed_machines_comes_first() {
    let text = shown(&mixed(&seeds(2)));
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn no_runs_at_all() {
    let old = Subject::new(build("deb:6.1", "6.1.192"), &[], &[]);
    let new = Subject::new(build("deb:6.12", "6.12.117"), &[], &[]);
    let comparison = compare(&old.side(), &[new.side()], &question(&[])).unwrap();
    let text = shown(&comparison);
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn two_directions_are_two_tables() {
    let seeds = seeds(2);
    let cells = |a, b| {
        [
            ("getppid", Ending::Cost(a, 0.0)),
            ("copy-rate", Ending::Cost(b, 1.0)),
        ]
    };
    let old = Subject::new(build("deb:6.12", "6.12.117"), &seeds, &cells(100.0, 5000.0));
    let new = Subject::new(
        build("deb:6.12+rt-amd64", "6.12.117"),
        &seeds,
        &cells(90.0, 6000.0),
    );
    let mut question = question(&seeds);
    question.workloads.truncate(1);
    question.workloads.push(Arc::clone(&THROUGHPUT));
    let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
    let text = shown(&comparison);
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn experiments_are_blocks_and_sdet_has_percent() {
    let seeds = seeds(2);
    let names = [
        "aim9-page",
        "sdet-like-1",
        "sdet-like-4",
        "memcachetest-0",
        "io-duration-0",
        "memcachetest-50",
    ];
    let cells = |factor: f64| {
        let costs = (1..).zip(names);
        costs
            .map(|(n, name)| (name, Ending::Cost(factor * 1000.0 * f64::from(n), 1.0)))
            .collect::<Vec<_>>()
    };
    let old = Subject::new(build("deb:6.1", "6.1.192"), &seeds, &cells(1.0));
    let new = Subject::new(build("deb:6.12", "6.12.117"), &seeds, &cells(1.25));
    let mut question = question(&seeds);
    question.workloads = model::workloads()
        .into_iter()
        .filter(|w| names.contains(&&*w.name))
        .cloned()
        .collect();
    let small = other_machine();
    let sides = [&old, &new].map(|subject| Side {
        also: vec![&small],
        ..subject.side()
    });
    let comparison = compare(&sides[0], &sides[1..], &question).unwrap();
    for (name, style) in [
        ("experiments_in_marvin_style", Style::Marvin),
        ("experiments_in_2013_style", Style::Y2013),
    ] {
        let text = seen(
            &comparison,
            &View {
                style,
                ..View::default()
            },
        );
        assert_fits(&text);
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn nasty_lengths_and_values_still_fit_a_mail() {
    let seeds = [u64::MAX - 3, 1, 2];
    let long = "6.12.0-rc4-next-20241105-00123-gabcdef123456-dirty-and-a-very-long-local-version";
    let path = format!("path:/home/{}/bzImage", "x".repeat(90));
    let nasty = |scale: f64| {
        vec![
            ("fault-file-private", Ending::Samples(vec![scale; 3])),
            ("getppid", Ending::Samples(vec![0.0, 100.0, 100.0])),
            ("mmap", Ending::Samples(vec![1e-7 * scale; 4])),
            (
                "fork-wait",
                Ending::Failed(
                    Stage::Results,
                    FailureReason::BadStream("y".repeat(200)),
                    HOSTILE,
                ),
            ),
            (
                "fork-exec",
                Ending::Unsupported(
                    "no /proc/sys/a/b/c/d/e and other words without an end, as it seems",
                ),
            ),
        ]
    };
    let old = Subject::new(build(&path, long), &seeds[..1], &nasty(1e15));
    let mut new = Subject::new(
        build(&format!("{path}.2"), long),
        &seeds[..1],
        &nasty(1.334_56e16),
    );
    new.runs[0]
        .environment
        .push((HOSTILE.repeat(3), HOSTILE.repeat(20)));
    let mut question = question(&seeds);
    question.command = format!(
        "marvin compare 'a b {}' {} --seeds 3",
        "c ".repeat(20),
        "word ".repeat(30)
    );
    let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
    let text = shown(&comparison);
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn hostile_words_do_not_reach_the_terminal() {
    let text = shown(&hostile());
    assert!(!text.contains('\x1b'));
    assert_fits(&text);
    insta::assert_snapshot!(text);
}

#[test]
fn huge_changes_fit() {
    let seeds = seeds(2);
    for factor in [13.345_6, 1e3, 1e7, 1e12] {
        let old = Subject::new(
            build("deb:6.1", "6.1.192"),
            &seeds,
            &[("fault-file-private", Ending::Cost(123_456.7, 0.0))],
        );
        let new = Subject::new(
            build("deb:6.12", "6.12.117"),
            &seeds,
            &[(
                "fault-file-private",
                Ending::Cost(123_456.7 * factor, 1000.0 * factor),
            )],
        );
        let mut question = question(&seeds);
        question.workloads = vec![Arc::clone(&question.workloads[4])];
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        assert_fits(&shown(&comparison));
    }
}

#[test]
fn everything_unfolded_fits_a_mail() {
    for (name, comparison) in [
        ("two", two(&seeds(5))),
        ("mixed", mixed(&seeds(2))),
        ("three", three(&seeds(3))),
    ] {
        let text = whole(&comparison);
        assert_fits(&text);
        insta::assert_snapshot!(format!("whole_{name}"), text);
    }
}

#[test]
fn two_rows_fit_one_screen() {
    let mut comparison = two(&seeds(5));
    comparison.rows.truncate(2);
    comparison.failures.clear();
    let lines = shown(&comparison).lines().count();
    assert!(lines <= 24, "{lines} lines");
}

#[test]
fn rows_are_sorted_and_chosen() {
    let comparison = two(&seeds(5));
    let names = |view: &View| {
        let text = seen(&comparison, view);
        let rows = text.lines().filter(|line| {
            [" W", " B", " =", " ?"]
                .iter()
                .any(|letter| line.ends_with(letter))
        });
        rows.map(|row| row.split(' ').next().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let worse = View {
        only: Some(Only::Worse),
        sort: Sort::Effect,
        ..View::default()
    };
    assert_eq!(names(&worse), ["fault-anon", "getppid"]);
    let changed = View {
        only: Some(Only::Changed),
        ..View::default()
    };
    assert_eq!(
        names(&changed),
        ["getppid", "fork-wait", "fault-anon", "mmap"]
    );
    let all = names(&View {
        sort: Sort::Effect,
        ..View::default()
    });
    assert_eq!((all.len(), &*all[0]), (12, "fault-anon"));
    let better = View {
        only: Some(Only::Better),
        ..View::default()
    };
    assert!(seen(&equal_rows(), &better).contains("No row of the verdict that was asked for."));
}

fn equal_rows() -> Comparison {
    let seeds = seeds(2);
    let old = old(&seeds);
    compare(&old.side(), &[old.side()], &question(&seeds)).unwrap()
}

#[test]
fn seven_kernels_are_blocks_of_eighty_columns() {
    let seeds = seeds(2);
    let mut subjects = Vec::new();
    for n in 1..8 {
        let cost = Ending::Cost(100.0 + f64::from(n), 0.0);
        let build = build(&format!("deb:6.{n}"), &format!("6.{n}.100"));
        subjects.push(Subject::new(build, &seeds, &[("getppid", cost)]));
    }
    let sides: Vec<Side<'_>> = subjects.iter().map(Subject::side).collect();
    let mut question = question(&seeds);
    question.workloads.truncate(1);
    let comparison = compare(&sides[0], &sides[1..], &question).unwrap();
    let text = shown(&comparison);
    assert_fits(&text);
    insta::assert_snapshot!(text);
    let page = page(&comparison);
    assert!(
        page.contains("class=\"document matrix\"") && !page.contains("Bars: "),
        "{}",
        body(&page)
    );
    assert_eq!(page.matches("<th scope=\"col\" data-k").count(), 6);
}

#[test]
fn markdown_says_the_same() {
    insta::assert_snapshot!("markdown_two", markdown(&two(&seeds(5))));
    insta::assert_snapshot!("markdown_three", markdown(&three(&[1])));
    insta::assert_snapshot!("markdown_equal", markdown(&equal(&seeds(2))));
}

#[test]
fn hostile_words_are_no_markdown() {
    let text = markdown(&hostile());
    assert!(!text.contains('\x1b'));
    let outside_fences: String = text.split("```").step_by(2).collect();
    assert!(!outside_fences.contains("<script"), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn pages_say_the_same() {
    insta::assert_snapshot!("page_two", page(&two(&seeds(5))));
    insta::assert_snapshot!("page_three", body(&page(&three(&[1]))));
    insta::assert_snapshot!("page_equal", body(&page(&equal(&seeds(2)))));
}

/// A thousand rows, ten kernels and thirty samples each: the bound is generous, as machines are
/// busy and tests not optimised; it detects quadratic work.
#[test]
fn large_comparisons_take_no_time_worth_speaking_of() {
    let (subjects, question) = large();
    let sides: Vec<_> = subjects.iter().map(Subject::side).collect();
    let start = std::time::Instant::now();
    let comparison = compare(&sides[0], &sides[1..], &question).unwrap();
    let text = shown(&comparison);
    let page = page(&comparison);
    let took = start.elapsed();
    assert_eq!(comparison.rows.len(), 1000);
    assert!(text.lines().count() > 1000 && page.matches("<th scope=\"col\" data-k").count() == 9);
    assert!(took.as_secs() < 20, "{took:?}");
}

#[test]
fn warnings_stand_above_the_title_of_a_page() {
    let page = page(&mixed(&seeds(2)));
    assert!(page.find("WARNING").unwrap() < page.find("<h1>").unwrap());
}

#[test]
fn hostile_words_are_no_html() {
    let page = page(&hostile());
    assert!(!page.contains('\x1b'));
    assert!(!page.contains("<b>|x") && !page.contains("\" onmouseover"));
    insta::assert_snapshot!(body(&page));
}

#[test]
fn every_link_of_a_page_has_its_row() {
    let page = page(&two(&seeds(5)));
    let ends: Vec<&str> = page.split("href=\"#").skip(1).collect();
    assert_eq!(ends.len(), 4);
    for end in ends {
        let anchor = end.split('"').next().unwrap();
        assert_eq!(
            page.matches(&format!(" id=\"{anchor}\"")).count(),
            1,
            "{anchor}"
        );
    }
}

/// A comparison in the style of memory management developers; the verdicts above and below are
/// Marvin's.
#[test]
fn a_comparison_in_other_styles() {
    let two = crate::fixtures::two(&[1, 2, 3]);
    for (name, style) in [
        ("comparison_in_2013_style", Style::Y2013),
        ("comparison_in_mmtests_style", Style::Mmtests),
    ] {
        let text = crate::render::comparison(
            &two,
            &View {
                style,
                ..View::default()
            },
        )
        .text(&Styles::plain());
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
        insta::assert_snapshot!(name, text);
    }
}

#[test]
fn a_comparison_has_its_monitors_in_every_rendering() {
    let mut comparison = crate::fixtures::two(&crate::fixtures::seeds(2));
    let shown = |comparison| crate::render::comparison(comparison, &View::default());
    assert!(
        !crate::render::json(&comparison)
            .unwrap()
            .contains("\"monitors\"")
    );
    let watched = |subject: &str| monitors::Monitored {
        subject: subject.to_owned(),
        ..monitors::fixtures::newer()
    };
    comparison.monitors = vec![
        watched("<b>mmap: what the kernels counted"),
        watched("fork-wait"),
    ];
    let text = shown(&comparison).text(&Styles::plain());
    assert!(
        text.contains("mmap: what the kernels counted ==\n")
            && text.lines().all(|line| line.chars().count() <= 80)
    );
    let page = shown(&comparison).html().unwrap();
    assert!(page.matches("<svg class=\"plot\"").count() >= 2 && !page.contains("<b>mmap"));
    let markdown = shown(&comparison).markdown();
    assert!(
        markdown.contains("## fork-wait\n\n| Moved most |"),
        "{markdown}"
    );
    let document: serde_json::Value =
        serde_json::from_str(&crate::render::json(&comparison).unwrap()).unwrap();
    assert_eq!(document["monitors"][1]["subject"], "fork-wait");
    assert!(
        !document["monitors"][1]["plots"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}
