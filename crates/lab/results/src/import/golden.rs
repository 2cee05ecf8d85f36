//! Compares imported rows with the values that MMTests itself extracts from the trees in
//! `golden/mmtests`.

use std::collections::BTreeMap;
use std::path::Path;

use super::foreign::{self, Foreign};
use model::{Direction, MMTESTS, imported_metric};

use super::tests::read_mmtests;

/// Values by `test/row`, with the distance that the printed digits leave open.
type Values = BTreeMap<String, Vec<(f64, f64)>>;

fn golden(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("golden/mmtests")
        .join(name)
}

/// Returns the only iteration of a tree.
fn import(tree: &str) -> Foreign {
    let (mut found, ..) = read_mmtests(&golden(tree));
    assert_eq!(found.len(), 1);
    found.remove(0).foreign
}

fn samples(foreign: &Foreign) -> BTreeMap<&str, Vec<f64>> {
    foreign
        .results
        .iter()
        .map(|result| (result.workload.as_str(), sorted(&result.samples)))
        .collect()
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples
}

/// Reads what `golden/mmtests/extract.sh` printed: test, row, sample number, value.
fn extracted(tree: &str) -> Values {
    let text = std::fs::read_to_string(golden(&format!("{tree}.tsv"))).unwrap();
    let mut values = Values::new();
    for line in text.lines() {
        let [test, row, _, value] = line.split('\t').collect::<Vec<_>>().try_into().unwrap();
        let decimals = value
            .split_once('.')
            .map_or(0, |(_, decimals)| i32::try_from(decimals.len()).unwrap());
        let open = 0.5 * 10_f64.powi(-decimals) + 1e-9;
        values
            .entry(format!("{test}/{row}"))
            .or_default()
            .push((value.parse().unwrap(), open));
    }
    values
        .values_mut()
        .for_each(|values| values.sort_by(|a, b| a.0.total_cmp(&b.0)));
    values
}

/// Compares rows under Marvin's names; returns Marvin's rows that MMTests does not extract.
fn compare(foreign: &Foreign, expected: &Values) -> Vec<String> {
    let mut ours = samples(foreign);
    for (row, values) in expected {
        let samples = ours
            .remove(row.as_str())
            .unwrap_or_else(|| panic!("no row {row}"));
        let is_equal =
            |(sample, (value, open)): (&f64, &(f64, f64))| (sample - value).abs() <= *open;
        let equal = samples.len() == values.len() && samples.iter().zip(values).all(is_equal);
        assert!(equal, "{row}: {samples:?} here, {values:?} in MMTests");
    }
    ours.into_keys().map(str::to_owned).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(u32::try_from(values.len()).unwrap())
}

#[test]
fn current_layout_equals_extraction_by_mmtests() {
    let foreign = import("2026-06");
    let mut expected = extracted("2026-06");
    // MMTests has the running mean of each second, which falls here; Marvin has the final one,
    // which dbench prints.
    for clients in ["1", "8"] {
        let means = expected.remove(&format!("tbench/tput-{clients}")).unwrap();
        expected.insert(format!("tbench/throughput-{clients}"), vec![means[0]]);
    }
    // See `receiver_rate_is_not_the_rate_sent`.
    expected.retain(|row, _| !row.contains("udpstream-recv"));
    let more = compare(&foreign, &expected);
    assert_eq!(
        more,
        [
            "netperf-ipv4-udp/udpstream-recv-1024",
            "netperf-ipv4-udp/udpstream-recv-64"
        ]
    );
    assert_eq!(
        expected
            .keys()
            .find(|row: &&String| imported_metric(MMTESTS, row).direction.is_none()),
        None,
        "every row has a direction"
    );
    let unread: Vec<&str> = foreign
        .left_out
        .iter()
        .map(|left| left.what.as_str())
        .collect();
    assert_eq!(
        unread,
        [
            "netperf-ipv4-tcp",
            "netperf-ipv4-tcp-rr",
            "netperf-ipv4-udp"
        ],
        "`protocols` has no results"
    );
}

/// MMTests 900eadcc29b1 (2025-12-22), the last commit with the files that kernbench, stream,
/// hackbench and tbench wrote until then, and with `ExtractPft.pm`.
#[test]
fn old_layout_equals_extraction_by_mmtests() {
    let foreign = import("2025-12");
    let extracted = extracted("2025-12");
    let mut expected = Values::new();
    for (name, values) in extracted {
        let (test, row) = name.split_once('/').unwrap();
        let row = match (test, row.split_once('-')) {
            ("kernbench", Some(("user", jobs))) => format!("User-{jobs}"),
            ("kernbench", Some(("syst", jobs))) => format!("System-{jobs}"),
            ("kernbench", Some(("elsp", jobs))) => format!("Elapsed-{jobs}"),
            ("hackbench-process-pipes", None) => format!("time-{row}"),
            ("tbench4", None) => format!("loadfile-{row}"),
            ("netperf-ipv4-tcp", None) => format!("tcpstream-send-{row}"),
            ("netperf-ipv4-tcp-rr", None) => format!("tcprr-send-{row}"),
            ("netperf-ipv4-udp", Some(_)) => format!("udpstream-{row}"),
            // The mean over iterations in GB/s; Marvin keeps each iteration, in MB/s.
            ("stream", Some((row, ""))) => {
                let rates = &samples(&foreign)[format!("stream/{row}").as_str()];
                assert!(
                    (mean(rates) / 1024.0 - values[0].0).abs() <= values[0].1,
                    "{row}: {rates:?}"
                );
                continue;
            }
            _ => row.to_owned(),
        };
        expected.insert(format!("{test}/{row}"), values);
    }
    let more = compare(&foreign, &expected);
    let (ours, others): (Vec<&String>, Vec<&String>) =
        more.iter().partition(|row| row.starts_with("tbench4/"));
    assert_eq!(
        others,
        [
            "aim9/jmp_test",
            "stream/add",
            "stream/copy",
            "stream/scale",
            "stream/triad"
        ]
    );
    assert!(
        ours.iter()
            .all(|row| row.contains("/op-") || row.contains("/throughput-")),
        "{ours:?}"
    );
}

/// MMTests 638401e07e70 prints the rate sent as the rate received:
/// `shellpack_src/src/netperf/extract-report.pl` line 56 prints `$send_tput` under `recv`, since
/// 3f17acba59f5 (2026-01-05). `ExtractNetperf.pm` of 900eadcc29b1 printed `$recv_tput`, as Marvin
/// does.
#[test]
fn receiver_rate_is_not_the_rate_sent() {
    let ours = import("2026-06");
    let new = extracted("2026-06");
    let old = extracted("2025-12");
    let ours = samples(&ours);
    for size in ["64", "1024"] {
        let workload_name = |way: &str| format!("netperf-ipv4-udp/udpstream-{way}-{size}");
        let rates =
            |values: &[(f64, f64)]| values.iter().map(|(value, _)| *value).collect::<Vec<f64>>();
        assert_eq!(new[&workload_name("recv")], new[&workload_name("send")]);
        assert_eq!(
            ours[workload_name("recv").as_str()],
            rates(&old[&format!("netperf-ipv4-udp/recv-{size}")])
        );
        assert_eq!(
            ours[workload_name("send").as_str()],
            rates(&new[&workload_name("send")])
        );
    }
}

/// MMTests 638401e07e70 stops at the first file with more than 10% loss: line 59 of
/// `shellpack_src/src/netperf/extract-report.pl` calls `addData`, which `parse-results` does not
/// define (since 3f17acba59f5; 950312f1753a changed the call and not the error). It has printed a
/// row `udpstream-loss-64` with the rate sent by then; later iterations and sizes are missing, and
/// `extract-mmtests.pl` exits with 0.
#[test]
fn heavy_udp_loss_keeps_every_iteration() {
    let files = [
        ("64.1", 140.0, 20.0),
        ("64.2", 141.0, 140.0),
        ("128.1", 280.0, 279.0),
    ];
    let paths = files.map(|(name, ..)| format!("netperf-ipv4-udp/logs/UDP_STREAM-{name}"));
    let foreign = foreign::mmtests(&paths, &[], &mut |file| {
        let (_, sent, received) = files[file];
        Ok(
            format!("212992  64  10.00  2765432  0  {sent}\n212992  10.00  2000000  {received}\n")
                .into_bytes(),
        )
    });
    let rows: Vec<(&str, &[f64])> = foreign
        .results
        .iter()
        .map(|result| (result.workload.as_str(), result.samples.as_slice()))
        .collect();
    let row = |name: &str| {
        rows.iter()
            .find(|(known, _)| known.ends_with(name))
            .unwrap()
            .1
    };
    assert_eq!(
        (row("/udpstream-send-64"), row("/udpstream-recv-64")),
        (&[140.0, 141.0][..], &[20.0, 140.0][..])
    );
    assert_eq!((row("/udpstream-recv-128"), rows.len()), (&[279.0][..], 4));
}

/// `compare-mmtests.pl -b tbench` of MMTests 638401e07e70 prints a throughput that grew by 50% as
/// -50.00%: its `shellpack_src/src/tbench/shellpack.yaml` prefers higher values only under `tput`
/// (since 863dce1cee26, 2026-03-12), and `ExtractShellpack.pm` reads that only with `--sub-heading
/// tput`, which prints 50.00%. dbench has the same file.
#[test]
fn tbench_throughput_is_better_when_higher() {
    for (row, direction) in [
        ("throughput-8", Direction::HigherIsBetter),
        ("loadfile-8", Direction::LowerIsBetter),
        ("op-Close-8", Direction::LowerIsBetter),
    ] {
        for test in ["tbench", "tbench4", "dbench"] {
            assert_eq!(
                imported_metric(MMTESTS, &format!("{test}/{row}")).direction,
                Some(direction),
                "{test}/{row}"
            );
        }
    }
}
