//! Real copies of several kernels, and garbage. `corpus/README.md` gives the origin of each.

use model::{MonitorCopy, MonitorFile, Phase, Reading};
use monitors::find_meaning;
use proptest::prelude::{any, prop, prop_assert, proptest};

use super::{COUNTERS_MAX, observation, reading};

const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

/// Returns the path of a file of the corpus in the guest: `net_dev` is `/proc/net/dev`.
fn path(name: &str) -> String {
    match name {
        "thread_stat" => "/proc/45/stat".to_owned(),
        "thread_schedstat" => "/proc/45/schedstat".to_owned(),
        "status" => "/proc/1/status".to_owned(),
        _ => format!("/proc/{}", name.replace('_', "/")),
    }
}

fn corpus(kernel: &str, name: &str) -> Reading {
    let text = std::fs::read(format!("{CORPUS}/{kernel}/{name}")).unwrap();
    reading(&path(name), &text).unwrap()
}

/// Returns `kernel/name` of all files.
fn all() -> Vec<(String, String)> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap());
        let mut names: Vec<String> = entries
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let kernels = names(CORPUS).into_iter().filter(|name| name != "README.md");
    kernels
        .flat_map(|k| {
            names(&format!("{CORPUS}/{k}"))
                .into_iter()
                .map(move |n| (k.clone(), n))
        })
        .collect()
}

/// A first and a last counter of each file, to detect a shift of columns.
#[test]
fn every_copy_is_read_to_its_last_line() {
    let mut lines = Vec::new();
    for (kernel, name) in all() {
        let reading = corpus(&kernel, &name);
        let counters: usize = reading.groups().map(|(_, counters)| counters.len()).sum();
        let (group, of) = reading.groups().last().unwrap();
        let (key, value) = of.iter().last().unwrap();
        lines.push(format!(
            "{kernel}/{name}: {} groups, {counters} counters; {group}: {key} = {value}",
            reading.len()
        ));
        assert_eq!(reading.unread_lines, 0, "{kernel}/{name}");
    }
    assert!(lines.len() > 50);
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn the_dictionary_reads_each_kernel() {
    let mut lines = Vec::new();
    for kernel in [
        "2.5.53", "2.6.9", "3.8", "4.1", "4.19", "6.1", "6.12", "6.18",
    ] {
        let vmstat = corpus(kernel, "vmstat");
        let value = |name: &str| {
            let value = find_meaning(name).unwrap().value(vmstat.whole().unwrap());
            value.map_or_else(|| "-".to_owned(), |value| value.to_string())
        };
        let names = [
            "Kswapd pages scanned",
            "Kswapd pages reclaimed",
            "Direct pages scanned",
            "Direct pages reclaimed",
            "Pages scanned outside kswapd",
            "Allocation stalls",
            "File refaults",
            "Anon refaults",
            "Page writes anon",
            "THP split",
        ];
        lines.push(format!(
            "{kernel}: {}",
            names
                .map(|name| format!("{name} {}", value(name)))
                .join(", ")
        ));
    }
    insta::assert_snapshot!(lines.join("\n"));
}

/// The reclaimer and the kind of page are two views of the same pages: adding all keys counts them
/// twice.
#[test]
fn all_reclaimers_together_are_all_types_together() {
    for kernel in ["6.1", "6.12", "6.18"] {
        let vmstat = corpus(kernel, "vmstat");
        let value = |name: &str| {
            find_meaning(name)
                .unwrap()
                .value(vmstat.whole().unwrap())
                .unwrap()
        };
        let both = |name: &str, other: &str| value(name) + value(other);
        assert_eq!(
            both("Kswapd pages scanned", "Pages scanned outside kswapd"),
            both("Anon pages scanned", "File pages scanned"),
            "{kernel}"
        );
        assert_eq!(
            both("Kswapd pages reclaimed", "Pages reclaimed outside kswapd"),
            both("Anon pages reclaimed", "File pages reclaimed"),
            "{kernel}"
        );
    }
}

/// The guest swapped a file of zeros: the 30536 page writes of files that MMTests would print are
/// pages of zeros.
#[test]
fn pages_of_zeros_are_no_writes_of_files() {
    let vmstat = corpus("6.12", "vmstat");
    let key = |key: &str| vmstat.whole().unwrap().get(key).unwrap();
    assert_eq!(key("nr_vmscan_write") - key("pswpout"), 30_536);
    let anon = find_meaning("Page writes anon")
        .unwrap()
        .value(vmstat.whole().unwrap());
    assert_eq!(Some(key("nr_vmscan_write")), anon);
}

/// LKP bbbc29c49 skips every line without 14 columns: it reads no line of kernels from 4.18 on.
#[test]
fn diskstats_of_every_kernel_format_are_read() {
    let get = |kernel: &str, disk: &str, key: &str| {
        corpus(kernel, "diskstats")
            .group(disk)
            .and_then(|c| c.get(key))
    };
    assert_eq!(get("3.8", "sda", "queue_ms"), Some(23_705_160));
    assert_eq!(get("3.8", "sda", "discards"), None);
    assert_eq!(get("3.8", "sda1", "written_sectors"), Some(38_030));
    assert_eq!(get("4.19", "sda", "discard_ms"), Some(8));
    assert_eq!(get("6.12", "vda", "flush_ms"), Some(1));
    let more = reading(
        "/proc/diskstats",
        b"8 0 sda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19\n",
    )
    .unwrap();
    assert_eq!(more.group("sda").unwrap().get("field19"), Some(19));
}

/// MMTests mistakes version 16 for a layout of SUSE and adds `ttwu_count` twice; mainline's 15 to
/// 17 have one layout for processors.
#[test]
fn schedstat_processors_are_equal_in_all_versions() {
    let cpu = "cpu0 1 0 30 4 50 6 700 80 9\n";
    let domains = [
        "domain0 00,0001 1 2 3\n",
        "domain0 3 1 2 3\n",
        "domain0 MC 3 1 2 3\n",
    ];
    for (version, domain) in [15, 16, 17].into_iter().zip(domains) {
        let text = format!("version {version}\ntimestamp 4295\n{cpu}{domain}");
        let schedstat = reading("/proc/schedstat", text.as_bytes()).unwrap();
        let counter = |key: &str| schedstat.group("cpu0").unwrap().get(key);
        assert_eq!(
            (
                counter("ttwu_count"),
                counter("ttwu_local"),
                counter("wait_ns")
            ),
            (Some(50), Some(6), Some(80))
        );
        assert_eq!(
            schedstat.group("cpu0 domain0").unwrap().get("field3"),
            Some(3)
        );
        assert_eq!(schedstat.unread_lines, 0);
    }
}

#[test]
fn names_that_look_like_columns_are_names() {
    let thread = reading(
        "/proc/7/stat",
        b"7 (a b) R 1) S 2 0 0 0 -1 64 5 0 6 0 7 8 0 0 20 0 1 0 37 0 0\n",
    )
    .unwrap();
    let counter = |key: &str| thread.group("a b) R 1/7").unwrap().get(key);
    assert_eq!(
        (
            counter("min_flt"),
            counter("maj_flt"),
            counter("utime"),
            counter("stime")
        ),
        (Some(5), Some(6), Some(7), Some(8))
    );
    let slab = reading(
        "/proc/slabinfo",
        b"ext4 io (x)  3  10 384 10 1 : tunables 0 0 0 : slabdata 1 1 0\n",
    )
    .unwrap();
    assert_eq!(slab.group("ext4 io (x)").unwrap().get("num_slabs"), Some(1));
    let net = b"Inter-| Receive | Transmit\n face |bytes packets|bytes\neth0:1:5 6 7\n";
    assert_eq!(
        reading("/proc/net/dev", net)
            .unwrap()
            .group("eth0:1")
            .unwrap()
            .get("transmit_bytes"),
        Some(7)
    );
}

#[test]
fn zones_and_their_node_are_apart() {
    let zoneinfo = corpus("6.12", "zoneinfo");
    let counter =
        |group: &str, key: &str| zoneinfo.group(group).and_then(|counters| counters.get(key));
    assert!(counter("node 0", "nr_file_pages").is_some() && counter("node 0", "min").is_none());
    for key in [
        "free",
        "min",
        "low",
        "high",
        "managed",
        "nr_free_pages",
        "start_pfn",
        "cpu0 count",
        "cpu1 batch",
    ] {
        assert!(counter("node 0 zone DMA32", key).is_some(), "{key}");
    }
}

#[test]
fn invalid_lines_are_counted_and_others_kept() {
    let vmstat = reading(
        "/proc/vmstat",
        b"pgfault 7\nnonsense\nnew_counter_of_7.0 18446744073709551615\nneg -1\n",
    )
    .unwrap();
    assert_eq!(
        vmstat.whole().unwrap().get("new_counter_of_7.0"),
        Some(u64::MAX)
    );
    assert_eq!((vmstat.whole().unwrap().len(), vmstat.unread_lines), (2, 2));
    assert_eq!(reading("/proc/kcore", b""), None);
    let long = format!("{} 1\n", "k".repeat(5000));
    assert_eq!(
        reading("/proc/vmstat", long.as_bytes())
            .unwrap()
            .unread_lines,
        1
    );
    let many: String = (0..COUNTERS_MAX + 5).map(|n| format!("k{n} 1\n")).collect();
    let many = reading("/proc/vmstat", many.as_bytes()).unwrap();
    assert_eq!(
        (many.whole().unwrap().len(), many.unread_lines),
        (COUNTERS_MAX, 5)
    );
}

#[test]
fn copies_become_readings_in_the_order_of_time() {
    let copy = |path: &str, at: u64, text: &str| MonitorCopy {
        path: path.to_owned(),
        begun_ns: at,
        ended_ns: at + 2,
        phase: Phase::Interval,
        bytes: text.as_bytes().to_vec(),
    };
    let copies = [
        copy("/proc/vmstat", 90, "a 5\n"),
        copy("/etc/passwd", 1, "root"),
        copy("/proc/vmstat", 10, "a 2\n"),
    ];
    let seen = observation(&copies);
    let times: Vec<u64> = seen.readings.iter().map(|timed| timed.at_ns).collect();
    assert_eq!(times, [11, 91]);
    assert_eq!(
        seen.growth(MonitorFile::Vmstat, Reading::WHOLE)
            .unwrap()
            .get("a"),
        Some(3)
    );
}

const PATHS: [&str; 20] = [
    "/proc/vmstat",
    "/proc/stat",
    "/proc/meminfo",
    "/proc/zoneinfo",
    "/proc/buddyinfo",
    "/proc/diskstats",
    "/proc/slabinfo",
    "/proc/schedstat",
    "/proc/interrupts",
    "/proc/softirqs",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/proc/pressure/irq",
    "/proc/net/dev",
    "/proc/net/snmp",
    "/proc/net/netstat",
    "/proc/1/stat",
    "/proc/1/schedstat",
    "/proc/1/status",
];

proptest! {
    #[test]
    fn garbage_is_read_as_garbage(bytes: Vec<u8>, garbage in "([a-zN(:|=,) 0-9-]{0,40}\n){0,8}") {
        for path in PATHS {
            for bytes in [bytes.as_slice(), garbage.as_bytes()] {
                let taken = reading(path, bytes).unwrap();
                let counters: usize = taken.groups().map(|(_, counters)| counters.len()).sum();
                prop_assert!(counters <= bytes.len());
            }
        }
    }

    #[test]
    fn damaged_copy_loses_only_the_damaged_part(cut in any::<prop::sample::Index>(), byte: u8) {
        for (kernel, name) in all() {
            let mut text = std::fs::read(format!("{CORPUS}/{kernel}/{name}")).unwrap();
            let at = cut.index(text.len());
            text[at] = byte;
            prop_assert!(reading(&path(&name), &text).is_some());
            text.truncate(at);
            prop_assert!(reading(&path(&name), &text).is_some());
        }
    }
}
