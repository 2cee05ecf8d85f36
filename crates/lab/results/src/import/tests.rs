//! Counts directories, and reads input that must neither block nor exhaust memory.
//! `marvin/tests/program/imported.rs` has what the command prints.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use model::Direction;

use super::tree::Walk;
use super::{ForeignRun, ImportOptions, Imported, Part, lkp, mmtests};

fn put(top: &Path, path: &str, bytes: &[u8]) {
    let file = top.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, bytes).unwrap();
}

/// Imports without a store: runs, the report of skipped data, and the number of listed directories.
pub(crate) fn read_mmtests(folder: &Path) -> (Vec<ForeignRun>, Vec<String>, usize) {
    let mut walk = Walk::default();
    let mut imported = Imported::default();
    let found = mmtests::find(folder, &mut walk, &mut imported).unwrap();
    let (runs, left) = collect(imported, |keep| mmtests::read(&found, &mut walk, &[], keep));
    (runs, left, walk.listed)
}

#[test]
fn longest_name_decides_direction_of_a_row() {
    let lower = ["fio".to_owned(), "boot".to_owned()];
    let higher = ["fio/read-iops".to_owned(), "boot".to_owned()];
    let options = ImportOptions {
        lower: &lower,
        higher: &higher,
        ..ImportOptions::default()
    };
    let of = |row| options.direction(row);
    assert_eq!(of("fio/latency"), Some(Direction::LowerIsBetter));
    assert_eq!(of("fio/read-iops"), Some(Direction::HigherIsBetter));
    assert_eq!(of("fiona"), None);
    assert_eq!(of("boot"), None, "named both ways");
}

fn read_lkp(folder: &Path) -> (Vec<ForeignRun>, Vec<String>) {
    let mut imported = Imported::default();
    let found = lkp::find(folder, &mut Walk::default(), &mut imported).unwrap();
    collect(imported, |keep| lkp::read(folder, &found, keep))
}

fn collect(
    imported: Imported,
    read: impl FnOnce(&mut super::Keep<'_>) -> Result<(), super::ImportError>,
) -> (Vec<ForeignRun>, Vec<String>) {
    let mut left: Vec<String> = imported
        .left_out
        .into_iter()
        .map(|(folder, left)| format!("{folder}: {}: {}", left.what, left.why))
        .collect();
    let mut runs = Vec::new();
    read(&mut |part| {
        match part {
            Part::Run(run) => {
                left.extend(
                    run.foreign
                        .left_out
                        .iter()
                        .map(|left| format!("{}: {}", left.what, left.why)),
                );
                runs.push(*run);
            }
            Part::LeftOut(folder, what, why) => left.push(format!("{folder}: {what}: {why}")),
        }
        Ok(())
    })
    .unwrap();
    (runs, left)
}

const TIME: &[u8] = b"1.0user 2.0system 0:03.00elapsed\n";
const PLACE: &str = "will-it-scale/process-50%/lkp-skl/debian-12/x86_64-rhel-9.4/gcc-14/v6.12";
const STATS: &[u8] = b"{\"will-it-scale.per_process_ops\": 5}";

#[test]
fn each_directory_is_listed_once() {
    for runs in [3, 60] {
        let top = tempfile::tempdir().unwrap();
        for run in 0..runs {
            put(
                top.path(),
                &format!("6.{run}/iter-0/kernbench/logs/time-2-1"),
                TIME,
            );
            put(
                top.path(),
                &format!("6.{run}/iter-1/kernbench/logs/time-2-1"),
                TIME,
            );
        }
        let (found, left, listed) = read_mmtests(top.path());
        assert_eq!((found.len(), left.len()), (2 * runs, 0));
        // The log directory, the runs, and three levels of each iteration.
        assert_eq!(listed, 1 + runs + 3 * 2 * runs);
    }
}

#[test]
fn fifos_and_links_are_named_not_opened() {
    let top = tempfile::tempdir().unwrap();
    let fifo = |path: &str| {
        assert!(
            Command::new("mkfifo")
                .arg(top.path().join(path))
                .status()
                .unwrap()
                .success()
        );
    };
    put(top.path(), "6.1/iter-0/kernbench/logs/time-2-1", TIME);
    fifo("6.1/iter-0/kernbench/logs/time-2-2");
    fifo("6.1/iter-0/tests-timestamp");
    fifo("6.1/iter-0/dmesg");
    fifo("6.1/iter-1");
    std::os::unix::fs::symlink("iter-0", top.path().join("6.1/iter-2")).unwrap();
    std::os::unix::fs::symlink(
        "/dev/zero",
        top.path().join("6.1/iter-0/kernbench/logs/time-2-3"),
    )
    .unwrap();
    let deep = "6.1/iter-0/kernbench/".to_owned() + &"d/".repeat(12) + "time-2-4";
    put(top.path(), &deep, TIME);
    let (found, left, _) = read_mmtests(top.path());
    assert_eq!(found.len(), 1);
    insta::assert_snapshot!("fifos_of_mmtests", left.join("\n"));

    put(top.path(), &format!("{PLACE}/0/stats.json"), STATS);
    fs::create_dir_all(top.path().join(PLACE).join("1")).unwrap();
    fifo(&format!("{PLACE}/1/stats.json"));
    fifo(&format!("{PLACE}/0/job.yaml"));
    std::os::unix::fs::symlink("/dev/zero", top.path().join(PLACE).join("matrix.json")).unwrap();
    let (found, left) = read_lkp(top.path());
    assert_eq!(found.len(), 1);
    insta::assert_snapshot!("fifos_of_lkp", left.join("\n"));
}

#[test]
fn bombs_are_refused_and_named() {
    let top = tempfile::tempdir().unwrap();
    let zeros = vec![b'0'; 65 << 20];
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&zeros).unwrap();
    let gz = gz.finish().unwrap();
    // A small file whose header asks the decoder for 256 MiB.
    let mut options = liblzma::stream::LzmaOptions::new_preset(0).unwrap();
    options.dict_size(256 << 20);
    let mut filters = liblzma::stream::Filters::new();
    filters.lzma2(&options);
    let stream =
        liblzma::stream::Stream::new_stream_encoder(&filters, liblzma::stream::Check::Crc32)
            .unwrap();
    let mut xz = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    xz.write_all(TIME).unwrap();
    let xz = xz.finish().unwrap();
    for (name, bytes) in [
        ("time-2-1", TIME),
        ("time-2-2.gz", &gz),
        ("time-2-3.xz", &xz),
        ("time-2-4", &zeros),
    ] {
        put(
            top.path(),
            &format!("6.1/iter-0/kernbench/logs/{name}"),
            bytes,
        );
    }
    let (found, left, _) = read_mmtests(top.path());
    assert_eq!(found[0].foreign.results.len(), 3);
    insta::assert_snapshot!("bombs_of_mmtests", left.join("\n"));
    put(top.path(), &format!("{PLACE}/0/stats.json.gz"), &gz);
    let (found, left) = read_lkp(top.path());
    assert!(found.is_empty());
    insta::assert_snapshot!("bombs_of_lkp", left.join("\n"));
}

#[test]
fn start_comes_from_job_or_modification() {
    let top = tempfile::tempdir().unwrap();
    let touch = |path: &str, seconds: u64| {
        let file = File::options()
            .write(true)
            .open(top.path().join(path))
            .unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    };
    for number in 0..3 {
        put(top.path(), &format!("{PLACE}/{number}/stats.json"), STATS);
        touch(
            &format!("{PLACE}/{number}/stats.json"),
            if number == 2 { 0 } else { 1_700_000_000 },
        );
    }
    put(
        top.path(),
        &format!("{PLACE}/0/job.yaml"),
        b"testcase: will-it-scale\nstart_time: '1669568123'\n",
    );
    put(
        top.path(),
        &format!("{PLACE}/1/job.yaml"),
        b"testcase: will-it-scale\n",
    );
    let matrix = b"{\"stats_source\": [\"/r/1/stats.json\", \"/r/7/stats.json\"], \"will-it-scale.a\": [1, 2]}";
    put(top.path(), &format!("{PLACE}/matrix.json"), matrix);
    touch(&format!("{PLACE}/matrix.json"), 1_700_000_005);
    let describe = |run: &ForeignRun| {
        let start = run.start_time.as_deref().unwrap_or("stored");
        format!("{}: {:?} {start}", run.name, run.foreign.started_unix)
    };
    let (found, _) = read_lkp(top.path());
    insta::assert_snapshot!(
        "starts_of_lkp",
        found.iter().map(describe).collect::<Vec<_>>().join("\n")
    );

    for (iteration, stamp) in [(0, "start :: 1600000000\n"), (1, "")] {
        put(
            top.path(),
            &format!("log/6.1/iter-{iteration}/tests-timestamp"),
            stamp.as_bytes(),
        );
        let logs = format!("log/6.1/iter-{iteration}/kernbench/logs");
        for (number, seconds) in [(1, 1_700_000_100), (2, 1_700_000_050)] {
            put(top.path(), &format!("{logs}/time-2-{number}"), TIME);
            touch(&format!("{logs}/time-2-{number}"), seconds);
        }
    }
    let (found, ..) = read_mmtests(&top.path().join("log"));
    insta::assert_snapshot!(
        "starts_of_mmtests",
        found.iter().map(describe).collect::<Vec<_>>().join("\n")
    );
}
