//! The numbers in the mailing list thread of 2003 on object-based rmap, and in a mail of 2014 about
//! ebizzy, computed from the counters behind them.

use model::{Direction, MonitorFile, Observation};

use super::fixtures::{reading, timed, two};
use super::{Monitored, SampleRow, page_tables};
use crate::render::relative;
use document::{Block, Styles, text_of};

fn row(monitored: &Monitored, name: &str) -> [f64; 2] {
    let rows = monitored.blocks.iter().flat_map(|block| &block.rows);
    let row = rows.into_iter().find(|row| row.name == name).unwrap();
    [0, 1].map(|kernel: usize| row.values[kernel].number().unwrap())
}

/// Returns a row's values with two decimals.
fn formatted(monitored: &Monitored, name: &str) -> [String; 2] {
    row(monitored, name).map(|number| format!("{number:.2}"))
}

/// Two samples per kernel with the mean and standard deviation of Martin Bligh's tables. Marvin
/// assumes that his deviations are in percent of the kernel's own mean: the mail does not say.
#[test]
fn sdet_is_in_percent_of_the_first() {
    let kernels = ["2.5.61", "2.5.62-mjb1", "2.5.62-mjb2"];
    let heads = kernels.map(|kernel| [kernel.to_owned(), String::new()]);
    let lines: Vec<&str> = include_str!("golden/sdet.txt").lines().collect();
    let percent = |word: &str| word.trim_end_matches('%').parse::<f64>().unwrap();
    for table in lines.chunks(5) {
        let samples = table[2..].iter().map(|line| {
            let fields: Vec<&str> = line.split_whitespace().collect();
            let mean = percent(fields[1]) * 7.5;
            let half = mean * percent(fields[2]) / 100.0 / 2.0_f64.sqrt();
            vec![mean - half, mean + half]
        });
        let row = SampleRow {
            name: table[0].to_owned(),
            direction: Direction::HigherIsBetter,
            samples: samples.collect(),
        };
        let text = text_of(&[Block::Table(relative(&row, &heads))], &Styles::plain());
        // The name stands beside the heads of the columns.
        let head = format!("{} {}", table[0], table[1]);
        let mut expected = vec![head.as_str()];
        expected.extend(&table[2..]);
        assert_eq!(text.lines().count(), expected.len());
        for (line, expected) in text.lines().zip(expected) {
            assert!(
                line.split_whitespace().eq(expected.split_whitespace()),
                "{line}"
            );
        }
    }
    assert_eq!(lines.len(), 7 * 5);
}

/// One slab of 4 KiB has 127 chains of 32 bytes.
#[test]
fn pte_chains_fall_from_24116_to_716() {
    let seen = |objects: u64| {
        let slabs = objects.div_ceil(127);
        let cache = [
            ("active_objs", objects),
            ("num_objs", slabs * 127),
            ("num_slabs", slabs),
            ("pagesperslab", 1),
        ];
        let readings = vec![(0, reading(&[("pte_chain", &cache)]))];
        Observation {
            readings: timed(MonitorFile::Slabinfo, readings),
        }
    };
    let monitored = two(&seen(24_116), &seen(716));
    assert_eq!(
        formatted(&monitored, "pte_chain objects"),
        ["24116.00", "716.00"]
    );
    assert_eq!(formatted(&monitored, "pte_chain size"), ["760.00", "24.00"]);
}

/// William Lee Irwin's caches, with objects that give his KiB and percentages.
#[test]
fn caches_are_used_as_in_2003() {
    let told = [
        ("biovec-BIO_MAX_PAGES", 256, 260, "98.46"),
        ("size-4096", 207, 207, "100.00"),
        ("radix_tree_node", 5269, 12_162, "43.32"),
        ("dentry_cache", 12_728, 23_752, "53.59"),
        ("size-32", 25_482, 25_600, "99.54"),
        ("pgd", 176, 176, "100.00"),
    ];
    let counters = told.map(|(name, active, all, _)| {
        (
            name,
            [
                ("active_objs", active),
                ("num_objs", all),
                ("num_slabs", 1),
                ("pagesperslab", 1),
            ],
        )
    });
    let groups: Vec<(&str, &[(&str, u64)])> = counters
        .iter()
        .map(|(name, of)| (*name, of.as_slice()))
        .collect();
    let seen = Observation {
        readings: timed(MonitorFile::Slabinfo, vec![(0, reading(&groups))]),
    };
    let monitored = two(&seen, &seen);
    for (name, _, _, percent) in told {
        assert_eq!(
            format!("{:.2}", row(&monitored, &format!("{name} utilisation"))[0]),
            percent,
            "{name}"
        );
    }
}

/// 156027 reverse mappings in 689 page-table pages with 1024 entries. His first mail divided the
/// other way round (4.5 PTEs per page, 0.44 %); he corrected it ten minutes later.
#[test]
fn page_tables_hold_226_entries_a_page() {
    let told = page_tables(156_027, 689, 1024).unwrap();
    assert_eq!(
        format!(
            "{:.2} {:.2}",
            told.entries_per_page, told.utilisation_percent
        ),
        "226.45 22.11"
    );
    assert_eq!(page_tables(1, 0, 1024), None);
    assert_eq!(page_tables(1, 1, 0), None);
}

/// Ticks of 48 processors in a second, with and without `MALLOC_CHECK_`.
#[test]
fn the_processors_of_the_ebizzy_story() {
    let seen = |user: u64, system: u64, idle: u64| {
        let at = |part: u64| {
            let ticks = [
                ("user", user * part),
                ("nice", 0),
                ("system", system * part),
                ("idle", idle * part),
                ("iowait", 0),
                ("irq", 0),
                ("softirq", 0),
                ("steal", 0),
                ("guest", 0),
                ("guest_nice", 0),
            ];
            reading(&[("cpu", &ticks)])
        };
        Observation {
            readings: timed(MonitorFile::Stat, vec![(0, at(1)), (1000, at(2))]),
        }
    };
    let monitored = two(&seen(48, 534, 4170), &seen(338, 4463, 0));
    let shown = |name: &str| formatted(&monitored, name);
    assert_eq!(
        [shown("usr"), shown("sys"), shown("idle")],
        [["1.01", "7.04"], ["11.24", "92.96"], ["87.75", "0.00"]]
    );
    assert_eq!(shown("System"), ["5.34", "44.63"]);
}

/// Huge pages need no entries, and resident KiB are no pages.
#[test]
fn page_tables_of_processes_are_shown() {
    let status = [
        ("RssAnon", 40_000),
        ("RssFile", 8000),
        ("RssShmem", 0),
        ("VmPTE", 160),
    ];
    let seen = Observation {
        readings: timed(MonitorFile::Status, vec![(0, reading(&[("7", &status)]))]),
    };
    let monitored = two(&seen, &seen);
    assert_eq!(formatted(&monitored, "Page-table pages"), ["40.00"; 2]);
    assert_eq!(
        formatted(&monitored, "PTEs per page-table page"),
        ["300.00"; 2]
    );
    assert_eq!(
        formatted(&monitored, "Page-table utilisation"),
        ["58.59"; 2]
    );
}
