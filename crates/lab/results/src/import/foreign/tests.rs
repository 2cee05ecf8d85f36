//! Handmade results in the layouts of gormanm/mmtests and intel/lkp-tests, and garbage.

use model::UnixTime;
use proptest::prelude::{any, prop_assert, proptest};

use super::{Foreign, LkpResultPath, lkp_columns, lkp_run, lkp_started};

/// A file and its content, or why it cannot be read.
#[derive(Clone)]
struct TreeFile {
    path: String,
    content: Result<Vec<u8>, String>,
}

fn file(path: &str, text: &str) -> TreeFile {
    TreeFile {
        path: path.to_owned(),
        content: Ok(text.as_bytes().to_vec()),
    }
}

fn mmtests(files: &[TreeFile]) -> Foreign {
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    super::mmtests(&paths, &[], &mut |file| files[file].content.clone())
}

fn describe(foreign: &Foreign) -> String {
    let mut lines: Vec<String> = foreign
        .results
        .iter()
        .map(|result| format!("{}: {:?}", result.workload, result.samples))
        .collect();
    lines.extend(
        foreign
            .environment
            .iter()
            .map(|(name, value)| format!("- {name}: {value}")),
    );
    lines.extend(foreign.monitors.iter().map(|(test, copies)| {
        let names: Vec<String> = copies
            .iter()
            .map(|copy| format!("{:?} {} {}", copy.phase, copy.begun_ns, copy.path))
            .collect();
        format!("- copies of {test}: {}", names.join(", "))
    }));
    lines.extend(
        foreign
            .left_out
            .iter()
            .map(|left| format!("! {}: {}", left.what, left.why)),
    );
    lines.join("\n")
}

/// One file of each supported test, in the format of its program and MMTests.
fn tree() -> Vec<TreeFile> {
    let mut files = vec![
        file(
            "kernel.version",
            "Linux marvin7 6.1.0-vanilla #1 SMP PREEMPT_DYNAMIC Mon Jan 1 00:00:00 UTC 2024 x86_64\n",
        ),
        file(
            "lscpu",
            "Architecture:            x86_64\nCPU(s):                  48\nModel name:              Xeon Gold\n",
        ),
        file(
            "tests-timestamp",
            "start :: 1700000000\ntest begin :: kernbench 1700000010\ntest end :: kernbench 1700000110 0\n\
             time :: kernbench 632.09 user 62.86 system 175.82 elapsed\nfinish :: 1700000120\nstatus :: 0\n",
        ),
        file(
            "tests-sysstate",
            "start :: 1700000000\nversion :: v0.26\ntest begin :: kernbench 1700000010\nfile start :: /proc/vmstat\n\
             pgfault 10\npgmajfault 1\nfile start :: /proc/meminfo\nMemTotal: 1000 kB\nfile end :: /proc/vmstat\n\
             pgfault 30\npgmajfault 2\nfile end :: /proc/meminfo\nMemTotal: 1000 kB\n\
             test end :: kernbench 1700000110 0\ntime :: kernbench 1 user 1 system 1 elapsed\n",
        ),
        file(
            "proc-vmstat-kernbench",
            "time: 1700000020\npgfault 15\npgmajfault 1\ntime: 1700000030\npgfault 20\n",
        ),
        file("iostat-kernbench", "never opened"),
        file("mpstat-kernbench", "never opened"),
    ];
    files.extend(logs());
    files
}

fn logs() -> Vec<TreeFile> {
    vec![
        file(
            "kernbench/logs/kernbench-4-1.time",
            "610.00user 60.10system 2:48.30elapsed 398%CPU (0avgtext+0avgdata 120000maxresident)k\n0inputs+0outputs\n",
        ),
        file(
            "kernbench/logs/kernbench-4-2.time",
            "612.00 user 61.10 system 168.55 elapsed\n",
        ),
        file(
            "kernbench/logs/kernbench-4-10.time",
            "611.00user 60.90system 1:02:03elapsed 398%CPU\n",
        ),
        file("kernbench/logs/mmtests.log", "noise\n"),
        file(
            "hackbench-process-pipes/logs/hackbench-4-1",
            "# Running 'sched/messaging' benchmark:\n# 20 sender and receiver processes per group\n\n     \
             Total time: 0.176 [sec]\n",
        ),
        file(
            "hackbench-process-pipes/logs/hackbench-4-2",
            "Time: 0.181\n",
        ),
        file(
            "pft/logs/base/pft-2.log",
            "MappingSize  Threads CacheLine   UserTime  SysTime WallTime flt/cpu/s fault/wsec\n  \
             2097152    2    1    0.18s    1.42s    0.80s  326581.206  652011.331\n",
        ),
        file(
            "aim9/logs/aim9-1",
            "     5 page_test           15.00       1540  102.66667       174533.33 System Allocations & Pages/second\n",
        ),
        file(
            "stream/logs/stream-1.log",
            "Function    Best Rate MB/s\nCopy:       11023.4     0.014731     0.014515     0.015\nScale:      7000.0 1 1 1\nAdd:  8000.5 1 1 1\nTriad: 8100.5 1 1 1\n",
        ),
        file(
            "vmr-stream/logs/malloc/stream-Add.instances",
            "131072 9000.5\n131072 9001.5\n262144 8000.0\n",
        ),
        file(
            "netperf-ipv4-udp/logs/UDP_STREAM-64.1",
            "MIGRATED UDP STREAM TEST from 0.0.0.0 () port 0 AF_INET\nSocket  Message  Elapsed      Messages\n\
             Size    Size     Time         Okay Errors   Throughput\nbytes   bytes    secs            #      #   10^6bits/sec\n\n\
             212992      64   10.00     2765432      0     141.59\n212992           10.00     2000000            102.40\n",
        ),
        file(
            "netperf-ipv4-tcp/logs/TCP_STREAM-1024.1",
            "Recv   Send    Send\nSize   Size    Size     Time     Throughput\n131072  16384   1024    10.00    9000.25\n",
        ),
        file(
            "tbench4/logs/tbench-8.log",
            "   8     29012  1201.33 MB/sec  execute   1 sec  latency 0.345 ms\n   8     58012  1203.50 MB/sec  execute   2 sec  \
             latency 0.340 ms\nloadfile completed in 1520 ms\n\nThroughput 1203.62 MB/sec  8 clients  8 procs  max_latency=0.345 ms\n",
        ),
        file(
            "sysbench-thread/logs/sysbench-raw-4-1",
            "Latency (ms):\n         95th percentile:                        1.27\n",
        ),
        file("usemem/logs/usemem-1", "1 2 3\n"),
    ]
}

#[test]
fn known_tests_are_read_and_others_named() {
    insta::assert_snapshot!(describe(&mmtests(&tree())));
    assert_eq!(
        mmtests(&tree()).started_unix,
        Some(UnixTime::new(1_700_000_000))
    );
}

/// The number of opened files grows with the number of folders, and no file is opened twice.
#[test]
fn each_file_is_opened_at_most_once() {
    for folders in [10, 1000] {
        let mut paths: Vec<String> = ["kernel.version", "tests-sysstate", "dmesg"]
            .map(str::to_owned)
            .to_vec();
        for folder in 0..folders {
            for end in ["logs/kernbench-4-1.time", "kernel.version"] {
                paths.push(format!("kernbench-{folder}/{end}"));
            }
            paths.push(format!("usemem-{folder}/logs/usemem"));
            paths.push(format!("slabinfo-kernbench-{folder}"));
            paths.push(format!("iostat-kernbench-{folder}"));
        }
        let mut opened = vec![0; paths.len()];
        let text = b"1.0user 2.0system 0:03.00elapsed\n".to_vec();
        let foreign = super::mmtests(&paths, &[], &mut |file| {
            opened[file] += 1;
            Ok(text.clone())
        });
        let once = paths
            .iter()
            .zip(&opened)
            .filter(|(_, count)| **count == 1)
            .count();
        assert_eq!(
            (once, opened.iter().sum::<usize>()),
            (2 + 3 * folders, 2 + 3 * folders)
        );
        assert_eq!(
            (foreign.results.len(), foreign.monitors.len()),
            (3 * folders, folders)
        );
    }
}

/// MMTests prints the sender's rate for both ends (a defect of its own): Marvin's rows have the
/// rate of each end.
#[test]
fn receiver_rate_differs_from_sender_rate() {
    let foreign = mmtests(&tree());
    let found = |name: &str| {
        foreign
            .results
            .iter()
            .find(|result| result.workload == name)
            .unwrap()
            .samples
            .clone()
    };
    assert_eq!(found("netperf-ipv4-udp/udpstream-send-64"), [141.59]);
    assert_eq!(found("netperf-ipv4-udp/udpstream-recv-64"), [102.4]);
}

#[test]
fn rows_with_non_numeric_values_are_omitted() {
    let files = [
        file("hackbench/logs/hackbench-1-1", "Time: 0.5\n"),
        file("hackbench/logs/hackbench-1-2", "Time: nan\n"),
        file("hackbench/logs/hackbench-2-1", "Time: -0.5\n"),
        file("hackbench/logs/hackbench-3-1", "Time: inf\n"),
        file("hackbench/logs/hackbench-4-1", "Time:\n"),
        file("hackbench/logs/hackbench-5-1", "Time: 0.25\n"),
        file(
            "kernbench/logs/kernbench-2-1.time",
            "1.0user 2.0system 0:-5.0elapsed\n",
        ),
    ];
    insta::assert_snapshot!(describe(&mmtests(&files)));
}

#[test]
fn hostile_names_are_escaped_and_make_no_row() {
    let files = [
        file("stream/logs/stream-1.log", "Copy: 1 2 3\n"),
        file("vmr-stream/logs/stream-\u{1b}[2J.instances", "1 2\n"),
        file("vmr-stream/logs/stream-a b.instances", "1 2\n"),
        file("vmr-stream/logs/stream-..\u{202e}.instances", "1 2\n"),
        file("../logs/x", "1"),
        TreeFile {
            path: "kernbench/logs/a\x1b[31m".to_owned(),
            content: Err("cut\nshort".to_owned()),
        },
        file("proc-vmstat-nosuchtest", "time: 1\na 1\n"),
    ];
    let text = describe(&mmtests(&files));
    assert!(!text.contains('\x1b') && !text.contains('\u{202e}'));
    insta::assert_snapshot!(text);
}

#[test]
fn truncated_test_is_reported_and_has_no_copies() {
    let state =
        "test begin :: stream 5\nfile start :: /proc/vmstat\na 1\nfile end :: /proc/vmstat\na 2\n";
    let stamps = "test begin :: kernbench 5\ntest end :: kernbench 9 1\ntest begin :: stream 10\n";
    let foreign = mmtests(&[
        file("tests-sysstate", state),
        file("tests-timestamp", stamps),
    ]);
    insta::assert_snapshot!(describe(&foreign), @r"
    ! stream: it began and has no `test end`: it was cut short
    ! kernbench: ended with exit code 1
    ! stream: it began and has no `test end`: it was cut short
    ");
}

fn place() -> LkpResultPath {
    LkpResultPath::parse(
        "/lkp/result/will-it-scale/performance-process-100%-brk2/lkp-skl/debian-11/x86_64-rhel-8.3/gcc-12/\
         ec81deb6b769dc1b",
    )
    .unwrap()
}

#[test]
fn lkp_result_paths_have_seven_named_parts() {
    let place = place();
    assert_eq!(
        (
            place.test.as_str(),
            place.host.as_str(),
            place.compiler.as_str()
        ),
        ("will-it-scale", "lkp-skl", "gcc-12")
    );
    for path in [
        "",
        "a/b/c/d/e/f",
        "t/p/h/r/../c/x",
        "t/p/h/r/f/c/x\x1b",
        "t/p/h h/r/f/c/x",
    ] {
        assert_eq!(LkpResultPath::parse(path), None, "{path}");
    }
}

#[test]
fn lkp_stats_are_rows_and_monitor_stats_kept() {
    let json = br#"{"will-it-scale.per_process_ops": 129489, "will-it-scale.workload": [1.5, 2],
        "will-it-scale.broken": "n/a", "will-it-scale.negative": -1, "proc-vmstat.pgfault": [5, 6, 10],
        "proc-vmstat.delta": -6, "kmsg.text": "a word", "vm.huge": [1e308, -1e308, 1e308], "stats_source": "x/0/stats.json"}"#;
    let foreign = lkp_run(&place(), json).unwrap();
    insta::assert_snapshot!(describe(&foreign));
    let stats: Vec<_> = foreign.stats.into_iter().collect();
    // A value that cannot be read is no zero.
    let expected = [
        ("kmsg.text", None),
        ("proc-vmstat.delta", Some(-6.0)),
        ("proc-vmstat.pgfault", Some(7.0)),
        ("vm.huge", None),
    ];
    assert_eq!(stats, expected.map(|(name, mean)| (name.to_owned(), mean)));
}

#[test]
fn a_matrix_has_a_run_in_each_column() {
    let json = br#"{"will-it-scale.per_process_ops": [10, 11, 12], "will-it-scale.late": [1],
        "stats_source": ["/r/x/0/stats.json", "/r/x/1/stats.json", "/r/x/5/stats.json"]}"#;
    let runs = lkp_columns(&place(), json).unwrap();
    let rows: Vec<_> = runs
        .iter()
        .map(|(number, foreign)| (*number, foreign.results.len()))
        .collect();
    assert_eq!(rows, [(0, 2), (1, 1), (5, 1)]);
    assert_eq!(runs[2].1.results[0].samples, [12.0]);
}

#[test]
fn non_lkp_document_is_refused() {
    let why = |json: &[u8]| lkp_run(&place(), json).unwrap_err();
    insta::assert_snapshot!(why(b"[1]"), @"it is no JSON object of stats");
    assert!(why(b"{\"a\": NaN}").starts_with("it is no JSON: "));
    assert!(
        why(&[&b"{\"a\": "[..], &b"[".repeat(1_000_000)].concat()).starts_with("it is no JSON: ")
    );
    let why = |json: &[u8]| lkp_columns(&place(), json).unwrap_err();
    insta::assert_snapshot!(why(b"{}"), @"it has no row stats_source, which names the run of each column");
    insta::assert_snapshot!(why(b"{\"stats_source\": [7]}"), @"stats_source names no run in column 0: expected …/NUMBER/stats.json");
}

#[test]
fn lkp_start_comes_from_the_job() {
    for (job, expected) in [
        (
            "suite: x\nstart_time: '1669568123'\nend_time: '1669568456'\n",
            Some(1_669_568_123),
        ),
        ("start_time: 1669568123", Some(1_669_568_123)),
        ("end_time: \"1669568456\"\n", Some(1_669_568_456)),
        ("start_time: 0\nend_time: -5\n", None),
        ("  start_time: 5\nstart_times: 6\nstart_time: x\n", None),
        ("\u{0}", None),
    ] {
        assert_eq!(
            lkp_started(job.as_bytes()),
            expected.map(UnixTime::new),
            "{job}"
        );
    }
}

/// As a tree of values a document takes 16 times its size.
#[test]
fn zeros_of_a_document_are_counted_not_kept() {
    let few = zeros(super::VALUES_MAX + 9);
    let many = zeros(1_000_000);
    let json = format!(
        "{{\"will-it-scale.a\": [{few}], \"proc-vmstat.b\": [{many}], \"will-it-scale.c\": [[1], {{}}]}}"
    );
    let foreign = lkp_run(&place(), json.as_bytes()).unwrap();
    let lengths: Vec<usize> = foreign
        .results
        .iter()
        .map(|result| result.samples.len())
        .collect();
    assert_eq!(lengths, [super::VALUES_MAX]);
    insta::assert_snapshot!(
        describe(&foreign)
            .lines()
            .filter(|line| line.starts_with('!'))
            .collect::<Vec<_>>()
            .join("\n")
    );
    let json = format!("{{\"will-it-scale.a\": [{few}], \"stats_source\": []}}");
    insta::assert_snapshot!(lkp_columns(&place(), json.as_bytes()).unwrap_err(), @"the row will-it-scale.a has more than 1000 runs");
    let names: Vec<String> = (0..300)
        .map(|name| format!("\"will-it-scale.{name}\": [{}]", zeros(1000)))
        .collect();
    let json = format!("{{{}}}", names.join(","));
    insta::assert_snapshot!(lkp_columns(&place(), json.as_bytes()).unwrap_err(), @"it has more than 200000 values of will-it-scale");
}

fn zeros(count: usize) -> String {
    vec!["0"; count].join(",")
}

#[test]
fn values_beyond_the_limits_are_counted() {
    let line = "131072 9000.5\n";
    let many = line.repeat(super::VALUES_MAX + 7);
    let rows: String = (0..super::ROWS_MAX + 5)
        .map(|row| format!("{row} 1\n"))
        .collect();
    let long = format!("1 {}\n2 5\n", "9".repeat(super::LINE_MAX));
    let foreign = mmtests(&[
        file("vmr-stream-a/logs/stream-Add.instances", &many),
        file("vmr-stream-b/logs/stream-Add.instances", &rows),
        file("vmr-stream-c/logs/stream-Add.instances", &long),
        file(
            &format!("vmr-stream-d/logs/stream-{}.instances", "x".repeat(300)),
            line,
        ),
    ]);
    let of = |test: &str| {
        foreign
            .results
            .iter()
            .filter(|result| result.workload.starts_with(test))
            .count()
    };
    assert_eq!(
        [
            of("vmr-stream-a"),
            of("vmr-stream-b"),
            of("vmr-stream-c"),
            of("vmr-stream-d")
        ],
        [1, super::ROWS_MAX, 1, 0]
    );
    insta::assert_snapshot!(
        describe(&foreign)
            .lines()
            .filter(|line| line.starts_with('!'))
            .collect::<Vec<_>>()
            .join("\n")
    );
}

#[test]
fn monitors_beyond_the_limit_are_named() {
    let copy = format!(
        "time: 5\n{}",
        format!("{}\n", "1 ".repeat(15_000)).repeat(1024)
    );
    let mut files = vec![file("stream/logs/stream-1.log", "Copy: 1\n")];
    files.extend(
        ["proc-vmstat", "proc-meminfo", "slabinfo"]
            .map(|monitor| file(&format!("{monitor}-stream"), &copy)),
    );
    let foreign = mmtests(&files);
    assert_eq!(foreign.monitors["stream"].len(), 2);
    let left: Vec<String> = foreign
        .left_out
        .iter()
        .map(|left| format!("{}: {}", left.what, left.why))
        .collect();
    assert_eq!(
        left,
        ["slabinfo-stream: the monitors of this run hold more than 64 MiB"]
    );
}

proptest! {
    #[test]
    fn garbage_is_read_as_garbage(
        bytes: Vec<u8>,
        lines in "((file|test|time|start|end|begin| |::|:|-|[0-9.]{1,3}|MB/sec|Time|user|system|elapsed|completed in|/proc/vmstat|Copy:)\n?){0,60}",
        which: usize,
    ) {
        let template = tree();
        let path = template[which % template.len()].path.clone();
        for content in [bytes, lines.into_bytes()] {
            let mut all = template.clone();
            all.push(TreeFile {
                path: path.clone(),
                content: Ok(content),
            });
            let foreign = mmtests(&all);
            prop_assert!(
                foreign
                    .results
                    .iter()
                    .all(|r| r.samples.iter().all(|s| s.is_finite() && *s >= 0.0))
            );
        }
    }

    #[test]
    fn garbage_of_lkp_is_an_error_or_rows(
        bytes: Vec<u8>,
        values in proptest::collection::vec(any::<f64>(), 0..4),
    ) {
        drop((lkp_run(&place(), &bytes), lkp_columns(&place(), &bytes)));
        let list: Vec<String> = values.iter().map(f64::to_string).collect();
        let json = format!("{{\"will-it-scale.a\": [{}]}}", list.join(","));
        if let Ok(foreign) = lkp_run(&place(), json.as_bytes()) {
            prop_assert!(
                foreign
                    .results
                    .iter()
                    .all(|r| r.samples.iter().all(|s| s.is_finite() && *s >= 0.0))
            );
        }
    }
}

#[test]
fn stats_of_lkp_are_those_of_its_program() {
    for (test, stat, row) in [
        ("fio-basic", "fio.read_iops", Some("read_iops")),
        ("fio-jbod", "fio.read_bw_MBps", Some("read_bw_MBps")),
        ("nfsiozone", "iozone.write", Some("write")),
        (
            "will-it-scale",
            "will-it-scale.per_process_ops",
            Some("per_process_ops"),
        ),
        ("fio-basic", "proc-vmstat.pgfault", None),
        ("fio-basic", "fiod.x", None),
    ] {
        let path = format!("/result/{test}/p/host/rootfs/config/gcc/v6.1");
        let place = LkpResultPath::parse(&path).unwrap();
        let foreign = lkp_run(&place, format!("{{\"{stat}\": 5}}").as_bytes()).unwrap();
        let rows: Vec<&str> = foreign
            .results
            .iter()
            .map(|result| result.workload.as_str())
            .collect();
        let expected: Vec<String> = row
            .map(|row| format!("{test}/p/{row}"))
            .into_iter()
            .collect();
        assert_eq!(rows, expected, "{stat}");
    }
}

#[test]
fn bad_value_of_lkp_leaves_the_others() {
    let place = LkpResultPath::parse("/result/netperf/p/host/rootfs/config/gcc/v6.1").unwrap();
    let json = "{\"netperf.Throughput_Mbps\": [5, \"inf\", 7, -1], \"netperf.x\": \"nan\"}";
    let foreign = lkp_run(&place, json.as_bytes()).unwrap();
    assert_eq!(foreign.results.len(), 1);
    assert_eq!(foreign.results[0].samples, [5.0, 7.0]);
    let left: Vec<&str> = foreign
        .left_out
        .iter()
        .map(|left| left.what.as_str())
        .collect();
    assert_eq!(
        left,
        [
            "netperf.Throughput_Mbps",
            "netperf.Throughput_Mbps",
            "netperf.x"
        ]
    );
}
