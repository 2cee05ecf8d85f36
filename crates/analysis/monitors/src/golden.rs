//! The tables of Mel Gorman's mail of 2013-06-26, computed from the counters behind them; and
//! defects of other suites, each with the correct value.

use model::Direction;

use super::fixtures::{
    PARALLELIO, monitored_of_2013, multibuild, parallelio, reading, timed, two, vmstat,
};
use super::{MonitorValue, Monitored, difference_percent};
use crate::render::{document, text};
use document::{Style, Styles, View};
use model::{MonitorFile, Observation};

/// The mail's lines as a reader sees them: with the columns that its archive lost, and without
/// errors.
fn squeeze(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Compares each line of a table of the mail with Marvin's. `ours` has Marvin's line where the mail
/// is wrong.
fn assert_printed(monitored: &Monitored, original: &str, ours: &[(&str, &str)]) {
    let text = text(monitored, Style::Y2013, &Styles::plain());
    let printed: Vec<String> = text.lines().map(squeeze).collect();
    for line in original.lines() {
        let expected = ours
            .iter()
            .find(|(theirs, _)| *theirs == line)
            .map_or(line, |(_, ours)| ours);
        assert!(
            printed.contains(&squeeze(expected)),
            "{expected}\nis not in\n{text}"
        );
    }
    for (theirs, _) in ours {
        assert!(original.lines().any(|line| line == *theirs), "{theirs}");
    }
}

/// For a column without any swapping the mail has 0.00 % (as if equal): it is 100 %.
#[test]
fn parallelio_is_printed_as_in_2013() {
    let ours = [
        (
            "Ops swaptotal-715M 139693.00 ( 0.00%) 19.00 ( 99.99%) 0.00 ( 0.00%)",
            "Ops swaptotal-715M 139693.00 ( 0.00%) 19.00 ( 99.99%) 0.00 (100.00%)",
        ),
        (
            "Ops swaptotal-2385M 268541.00 ( 0.00%) 0.00 ( 0.00%) 19.00 ( 99.99%)",
            "Ops swaptotal-2385M 268541.00 ( 0.00%) 0.00 (100.00%) 19.00 ( 99.99%)",
        ),
        (
            "Ops swapin-2385M 73189.00 ( 0.00%) 0.00 ( 0.00%) 0.00 ( 0.00%)",
            "Ops swapin-2385M 73189.00 ( 0.00%) 0.00 (100.00%) 0.00 (100.00%)",
        ),
        (
            "Ops swapin-4055M 126292.00 ( 0.00%) 0.00 ( 0.00%) 0.00 ( 0.00%)",
            "Ops swapin-4055M 126292.00 ( 0.00%) 0.00 (100.00%) 0.00 (100.00%)",
        ),
    ];
    assert_printed(&monitored_of_2013(vec![parallelio()]), PARALLELIO, &ours);
}

#[test]
fn multibuild_is_printed_as_in_2013() {
    assert_printed(
        &monitored_of_2013(vec![multibuild()]),
        include_str!("golden/multibuild.txt"),
        &[],
    );
}

/// The mail formats counts of page writes as `3065275.000`, like the row above; and it has no key
/// for `Page rescued immediate`, which 3.10 does not count.
#[test]
fn the_counters_are_printed_as_in_2013() {
    let ours = [
        (
            "Page writes by reclaim 3065275.000 27259.000 6316.000",
            "Page writes by reclaim 3065275 27259 6316",
        ),
        (
            "Page rescued immediate 0 0 0",
            "Page rescued immediate - - -",
        ),
    ];
    let monitored = monitored_of_2013(Vec::new());
    assert_printed(&monitored, include_str!("golden/vmstat.txt"), &ours);
    let text = text(&monitored, Style::Y2013, &Styles::plain());
    let original: Vec<String> = include_str!("golden/vmstat.txt")
        .lines()
        .map(label)
        .collect();
    let ours: Vec<String> = text
        .lines()
        .map(label)
        .filter(|label| original.contains(label))
        .collect();
    assert_eq!(ours, original);
}

/// Returns the words before the numbers of a line.
fn label(line: &str) -> String {
    line.split_whitespace()
        .take_while(|word| !(word.starts_with(|c: char| c.is_ascii_digit()) || *word == "-"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn the_disk_is_printed_as_in_2013() {
    let monitored = monitored_of_2013(Vec::new());
    assert_printed(&monitored, include_str!("golden/iostat.txt"), &[]);
    // The partition has the same requests and is not listed again.
    assert!(!text(&monitored, Style::Marvin, &Styles::plain()).contains("sda1"));
}

fn values(monitored: &Monitored, name: &str) -> Vec<MonitorValue> {
    let rows = monitored.blocks.iter().flat_map(|block| &block.rows);
    rows.filter(|row| row.name == name)
        .flat_map(|row| row.values.clone())
        .collect()
}

fn numbers(monitored: &Monitored, name: &str) -> Vec<Option<f64>> {
    values(monitored, name)
        .into_iter()
        .map(MonitorValue::number)
        .collect()
}

/// MMTests 638401e0 maps all zones to one name, and the last one wins: it prints 7.
#[test]
fn stalls_of_all_zones_are_added_up() {
    let seen = vmstat(
        1000,
        &[
            ("allocstall_normal", 5000),
            ("allocstall_movable", 7),
            ("pgfault", 9),
            ("pgmajfault", 0),
        ],
    );
    assert_eq!(
        numbers(&two(&seen, &seen), "Allocation stalls"),
        [Some(5007.0); 2]
    );
}

/// MMTests reads neither khugepaged's nor proactive scans, and compares direct scans although they
/// lost both.
#[test]
fn newly_named_scans_are_shown_but_not_compared() {
    let old = vmstat(
        1000,
        &[
            ("pgscan_kswapd", 10),
            ("pgscan_direct", 1500),
            ("pgsteal_direct", 9),
        ],
    );
    let new = vmstat(
        1000,
        &[
            ("pgscan_kswapd", 10),
            ("pgscan_direct", 1000),
            ("pgscan_khugepaged", 500),
            ("pgsteal_direct", 9),
            ("pgsteal_khugepaged", 0),
        ],
    );
    let monitored = two(&old, &new);
    assert_eq!(
        numbers(&monitored, "Khugepaged pages scanned"),
        [None, Some(500.0)]
    );
    assert_eq!(
        numbers(&monitored, "Pages scanned outside kswapd"),
        [Some(1500.0); 2]
    );
    let notes = &monitored
        .blocks
        .iter()
        .find(|block| block.word == "Ops")
        .unwrap()
        .notes;
    assert_eq!(
        notes[0],
        "Direct pages scanned, and so Direct efficiency, Direct velocity, Percentage direct scans, cannot be compared: 6.12.117 keeps pgscan_khugepaged apart, 6.1.192 counts that within or \
         not at all. Pages scanned outside kswapd can."
    );
    assert!(two(&new, &new).blocks[0].notes.is_empty());
}

/// MMTests asks for `compact_migrate_free`, and a stray semicolon drops the copying of pages; both
/// cost nothing then.
#[test]
fn the_cost_models_have_all_their_terms() {
    let seen = vmstat(
        1000,
        &[
            ("compact_migrate_scanned", 1_000_000),
            ("compact_free_scanned", 2_000_000),
            ("compact_isolated", 100_000),
            ("pgmigrate_success", 10_000),
            ("pgmigrate_fail", 5000),
            ("numa_pte_updates", 1_000_000),
            ("numa_hint_faults", 2000),
            ("numa_pages_migrated", 3000),
            ("pgfault", 9),
            ("pgmajfault", 0),
        ],
    );
    let monitored = two(&seen, &seen);
    // 7 + 14 + 1.9 + 10.38 + 0.07; 7 + 10 + 0.057 + 3.114.
    for (name, cost) in [("Compaction cost", 33.35), ("AutoNUMA cost", 20.171)] {
        assert!(
            (numbers(&monitored, name)[0].unwrap() - cost).abs() < 1e-9,
            "{name}"
        );
    }
    assert_eq!(
        numbers(&monitored, "Page migrate failure"),
        [Some(5000.0); 2]
    );
}

/// MMTests uses `(r_await + w_await) / 2` as the wait of all requests: 50.5 here, where nearly all
/// are reads.
#[test]
fn the_mean_wait_is_that_of_requests() {
    let disk = |reads, read_ms, writes, write_ms| {
        reading(&[(
            "sda",
            &[
                ("reads", reads),
                ("read_ms", read_ms),
                ("writes", writes),
                ("write_ms", write_ms),
            ],
        )])
    };
    let readings = vec![(0, disk(0, 0, 0, 0)), (1000, disk(990, 990, 10, 1000))];
    let seen = Observation {
        readings: timed(MonitorFile::Diskstats, readings),
    };
    assert_eq!(
        numbers(&two(&seen, &seen), "Mean sda-await"),
        [Some(1.99); 2]
    );
    assert!(numbers(&two(&seen, &seen), "Max sda-await").is_empty());
}

/// MMTests divides by an elapsed time of zero, and prints an efficiency of 100 % without any scan.
#[test]
fn ratio_to_zero_has_no_value() {
    let idle = vmstat(
        1000,
        &[
            ("pgscan_kswapd", 0),
            ("pgsteal_kswapd", 0),
            ("pgscan_direct", 0),
            ("pgsteal_direct", 0),
        ],
    );
    let monitored = two(&idle, &idle);
    assert_eq!(
        values(&monitored, "Kswapd efficiency"),
        [MonitorValue::OfNothing; 2]
    );
    assert_eq!(
        values(&monitored, "Percentage direct scans"),
        [MonitorValue::OfNothing; 2]
    );
    let row = |style| {
        let view = View {
            style,
            verbose: true,
            ..View::default()
        };
        let text = document(&monitored, &view).text(&Styles::plain());
        let row = text
            .lines()
            .find(|line| line.contains("Kswapd efficiency"))
            .unwrap()
            .to_owned();
        row.split_whitespace().last().unwrap().to_owned()
    };
    assert_eq!(Style::ALL.map(row), ["100%", "100.00", "-"]);
    let at_once = vmstat(0, &[("pgscan_kswapd", 5), ("pgsteal_kswapd", 5)]);
    assert!(two(&at_once, &at_once).blocks.is_empty());
}

/// Debian's 6.12 after swapping a file of zeros (crates/lab/ingest/corpus): without the correction,
/// pswpout would suggest 30536 page writes of files, but there were none.
#[test]
fn pages_of_zeros_are_no_files() {
    let seen = vmstat(
        1000,
        &[
            ("nr_vmscan_write", 30_693),
            ("pswpout", 157),
            ("swpout_zero", 30_536),
        ],
    );
    let monitored = two(&seen, &seen);
    assert_eq!(numbers(&monitored, "Page writes file"), [Some(0.0); 2]);
    assert_eq!(numbers(&monitored, "Page writes anon"), [Some(30_693.0); 2]);
    let odd = vmstat(1000, &[("nr_vmscan_write", 1), ("pswpout", 2)]);
    assert_eq!(
        values(&two(&odd, &odd), "Page writes file"),
        [MonitorValue::Absent; 2]
    );
}

#[test]
fn positive_is_better_in_either_direction() {
    let higher = Direction::HigherIsBetter;
    let lower = Direction::LowerIsBetter;
    assert_eq!(difference_percent(higher, 100.0, 150.0), Some(50.0));
    assert_eq!(difference_percent(lower, 100.0, 150.0), Some(-50.0));
    assert_eq!(
        difference_percent(lower, 5.0, 5.0).map(f64::to_bits),
        Some(0.0_f64.to_bits())
    );
    assert_eq!(
        (
            difference_percent(lower, 0.0, 5.0),
            difference_percent(lower, 5.0, 0.0)
        ),
        (None, Some(100.0))
    );
}
