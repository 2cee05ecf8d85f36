//! Results of other suites: small trees written by hand in the layouts of MMTests and LKP-tests.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use crate::fresh::{Fresh, fresh};
use crate::{format_output, marvin, output_of};

fn put(folder: &Path, path: &str, text: &str) {
    let file = folder.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    if path.ends_with(".gz") {
        let mut gz = flate2::write::GzEncoder::new(
            fs::File::create(file).unwrap(),
            flate2::Compression::fast(),
        );
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
    } else {
        fs::write(file, text).unwrap();
    }
}

/// A run of MMTests on a kernel, which takes `seconds` to build another kernel.
fn run(log: &Path, name: &str, iteration: u32, seconds: f64) {
    let top = log.join(format!("{name}/iter-{iteration}"));
    let begun = 1_700_000_000 + iteration * 1000;
    let release = name.split('-').next().unwrap();
    put(
        &top,
        "kernel.version",
        &format!("Linux marvin7 {release}.0-{name} #1 SMP x86_64\n"),
    );
    put(
        &top,
        "lscpu.gz",
        "Architecture: x86_64\nCPU(s): 48\nModel name: Xeon\n",
    );
    put(
        &top,
        "tests-timestamp",
        &format!(
            "start :: {begun}\ntest begin :: kernbench {begun}\ntest end :: kernbench {} 0\ntime :: kernbench 1.00 user \
             2.00 system {seconds} elapsed\n",
            begun + 100
        ),
    );
    let mut state = String::new();
    write!(
        state,
        "test begin :: kernbench {begun}\nfile start :: /proc/vmstat\npgfault 10\npswpin 0\n"
    )
    .unwrap();
    write!(
        state,
        "file end :: /proc/vmstat\npgfault 510\npswpin 7\ntest end :: kernbench {} 0\n",
        begun + 100
    )
    .unwrap();
    put(&top, "tests-sysstate.gz", &state);
    put(&top, "iostat-kernbench.gz", "avg-cpu\n");
    for (number, more) in [(1, 0.0), (2, 0.2), (3, 0.1)] {
        let time = format!(
            "10.0user 5.0system 0:{:.2}elapsed 100%CPU\n",
            seconds + more
        );
        put(
            &top,
            &format!("kernbench/logs/kernbench-4-{number}.time"),
            &time,
        );
    }
    put(&top, "usemem/logs/usemem-1.log", "x\n");
}

pub(crate) fn log() -> Fresh {
    let log = fresh("mmtests-log");
    for (iteration, old, new) in [(0, 40.0, 30.0), (1, 40.3, 30.2), (2, 39.9, 30.1)] {
        run(&log, "6.1-vanilla", iteration, old);
        run(&log, "6.12-vanilla", iteration, new);
    }
    log
}

/// Returns the ids of runs in the output of an import.
fn ids(output: &str) -> Vec<String> {
    output
        .lines()
        .filter_map(|line| {
            line.split(' ')
                .next()
                .filter(|word| word.starts_with("run_"))
        })
        .map(str::to_owned)
        .collect()
}

fn without_dates(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.starts_with("Compared:"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn mmtests_log_is_listed_shown_and_compared() {
    let home = fresh("mmtests-home");
    let log = log();
    let folder = log.display().to_string();
    let output = output_of(&home, &["import", "mmtests", &folder]);
    insta::assert_snapshot!("mmtests-import", output);
    assert!(
        output.lines().all(|line| line.chars().count() <= 80),
        "{output}"
    );
    let ids = ids(&output);
    assert_eq!(ids.len(), 6);
    insta::assert_snapshot!("mmtests-runs", output_of(&home, &["runs"]));
    insta::assert_snapshot!("mmtests-run", output_of(&home, &["show", &ids[0]]));
    insta::assert_snapshot!(
        "mmtests-artifacts",
        output_of(&home, &["show", &ids[0], "--artifact", "list"])
    );
    insta::assert_snapshot!(
        "mmtests-import-log",
        output_of(&home, &["show", &ids[0], "--artifact", "import.log"])
    );
    let mut report = vec!["report"];
    report.extend(ids.iter().map(String::as_str));
    insta::assert_snapshot!("mmtests-report", without_dates(&output_of(&home, &report)));
    let by_ids = without_dates(&output_of(&home, &report));
    let by_names = without_dates(&output_of(
        &home,
        &["report", "6.1-vanilla", "6.12-vanilla"],
    ));
    let [by_names, by_ids] = [&by_names, &by_ids].map(|text| text.split("marvin report").next());
    assert_eq!(by_names, by_ids, "up to the command");
    for format in ["markdown", "json", "html"] {
        let text = output_of(&home, &[&report[..], &["--format", format]].concat());
        assert!(
            text.starts_with("exit 0") && text.contains("kernbench/Elapsed-4"),
            "{text}"
        );
    }
    let monitors = output_of(
        &home,
        &[
            &report[..],
            &["--monitors", "--workload", "kernbench/Elapsed-4"],
        ]
        .concat(),
    );
    let block = monitors.split_once("kernbench: kernel counters").unwrap().1;
    insta::assert_snapshot!("mmtests-kernel-counters", block);
    let again = output_of(
        &home,
        &[
            "import",
            "mmtests",
            &log.join("6.1-vanilla").display().to_string(),
        ],
    );
    assert_eq!(
        again.matches("already imported, unchanged").count(),
        3,
        "{again}"
    );
}

#[test]
fn single_runs_and_unknown_directions_stay_unclear() {
    let home = fresh("mmtests-one-home");
    let log = fresh("mmtests-one");
    run(&log, "6.1-vanilla", 0, 40.0);
    run(&log, "6.12-vanilla", 0, 30.0);
    let ids = ids(&output_of(
        &home,
        &["import", "mmtests", &log.display().to_string()],
    ));
    let report = ["report", &ids[0], &ids[1]];
    let unclear = output_of(&home, &report);
    assert!(
        unclear.starts_with("exit 3") && unclear.contains("better within one run"),
        "{unclear}"
    );
    insta::assert_snapshot!(
        "metric-direction-unknown",
        output_of(
            &home,
            &[&report[..], &["--workload", "kernbench/duration-elapsed"]].concat()
        )
    );
    let lower = output_of(
        &home,
        &[&report[..], &["--lower", "kernbench/duration-elapsed"]].concat(),
    );
    assert!(lower.contains("kernbench/duration-elapsed"), "{lower}");
    insta::assert_snapshot!(
        "direction-of-misspelled-workload",
        output_of(&home, &[&report[..], &["--higher", "kernbanch"]].concat())
    );
}

#[test]
fn kernels_that_cannot_be_reported_are_named() {
    let home = fresh("mmtests-names-home");
    let log = log();
    output_of(&home, &["import", "mmtests", &log.display().to_string()]);
    let output = |arguments: &[&str]| output_of(&home, &[&["report"], arguments].concat());
    insta::assert_snapshot!("misspelled-kernel", output(&["6.1-vanilla", "6.12-vanila"]));
    insta::assert_snapshot!("kernel-alone", output(&["6.1-vanilla"]));
    insta::assert_snapshot!(
        "incomplete-kernel-name",
        output(&["6.1", "imported:mmtests/6.1-vanilla"])
    );
    insta::assert_snapshot!(
        "suite-never-imported",
        output(&["6.1-vanilla", "6.12-vanilla", "--suite", "micro"])
    );
    insta::assert_snapshot!("build-that-is-none", output(&["6.1-vanilla", "build_00"]));
}

#[test]
fn lkp_result_is_imported_and_compared() {
    let home = fresh("lkp-home");
    let results = fresh("lkp-results");
    let place = "result/will-it-scale/performance-process-100%-brk2/lkp-skl/debian-11/x86_64-rhel-8.3/gcc-12";
    for (commit, ops) in [
        ("ec81deb6b769dc1b", 129_489.0),
        ("6e553c6bcb7746ab", 252_151.0),
    ] {
        for number in 0_u8..3 {
            let stats = format!(
                "{{\"will-it-scale.per_process_ops\": {}, \"proc-vmstat.pgfault\": {}, \"will-it-scale.strange\": 1}}",
                ops + f64::from(number) * 100.0,
                ops / 1000.0 + f64::from(number)
            );
            put(
                &results,
                &format!("{place}/{commit}/{number}/stats.json.gz"),
                &stats,
            );
            let job = format!(
                "testcase: will-it-scale\nstart_time: '{}'\n",
                1_700_000_000 + 600 * u32::from(number)
            );
            put(
                &results,
                &format!("{place}/{commit}/{number}/job.yaml"),
                &job,
            );
        }
    }
    let matrix = "{\"will-it-scale.per_process_ops\": [1, 2], \"stats_source\": [\"/r/7/stats.json\", \"/r/8/stats.json\"]}";
    put(&results, &format!("{place}/v6.1/matrix.json"), matrix);
    put(
        &results,
        &format!("{place}/v6.2/3/stats.json"),
        "{\"will-it-scale.per_process_ops\": 5}",
    );
    for (file, seconds) in [
        ("v6.1/matrix.json", 1_600_000_000),
        ("v6.2/3/stats.json", 0),
    ] {
        let file = fs::File::options()
            .write(true)
            .open(results.join(place).join(file))
            .unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds))
            .unwrap();
    }
    let output = output_of(&home, &["import", "lkp", &results.display().to_string()]);
    insta::assert_snapshot!("lkp-import", output);
    assert!(
        output.lines().all(|line| line.chars().count() <= 80),
        "{output}"
    );
    insta::assert_snapshot!("lkp-runs", output_of(&home, &["runs"]));
    let json = output_of(&home, &["runs", "--format", "json"]);
    assert!(
        json.contains("\"started_unix\": null") && json.contains("\"started_unix\": 1700000600"),
        "{json}"
    );
    let undated = ids(&output).pop().unwrap();
    assert!(output_of(&home, &["show", &undated]).contains("Started: not known\n"));
    let log = output_of(&home, &["show", &undated, "--artifact", "import.log"]);
    assert!(
        log.contains("start time: no start_time in job.yaml"),
        "{log}"
    );
    let mut report = vec!["report"];
    let ids = ids(&output);
    report.extend(ids.iter().take(6).map(String::as_str));
    insta::assert_snapshot!("lkp-report", without_dates(&output_of(&home, &report)));
    report.push("--monitors");
    let monitors = output_of(&home, &report);
    let block = monitors.split_once("Monitors of the suite").unwrap().1;
    insta::assert_snapshot!("lkp-monitors", block);
}

#[test]
fn invalid_directories_and_damaged_files_fail_clearly() {
    let home = fresh("import-mistakes-home");
    let nothing = fresh("import-nothing");
    fs::create_dir_all(&nothing).unwrap();
    let name = nothing.display().to_string();
    for suite in ["mmtests", "lkp"] {
        insta::assert_snapshot!(
            format!("{suite}-import-of-empty-directory"),
            output_of(&home, &["import", suite, &name]).replace(&name, "FOLDER")
        );
    }
    insta::assert_snapshot!(
        "import-of-missing-directory",
        output_of(&home, &["import", "mmtests", "/no/such/folder"])
    );
    assert!(!home.exists(), "nothing was worth making a home for");

    let log = fresh("import-damaged");
    run(&log, "6.1-vanilla", 0, 40.0);
    let state = log.join("6.1-vanilla/iter-0/tests-sysstate.gz");
    let whole = fs::read(&state).unwrap();
    fs::write(&state, &whole[..whole.len() / 2]).unwrap();
    let bomb = vec![b'1'; 80 << 20];
    put(
        &log,
        "6.1-vanilla/iter-0/stream/logs/stream-1.log.gz",
        std::str::from_utf8(&bomb).unwrap(),
    );
    put(
        &log,
        "6.1-vanilla/iter-0/stream/logs/stream-2.log.xz",
        "plain",
    );
    put(
        &log,
        "6.1-vanilla/iter-0/hackbench/logs/hackbench-4-1",
        "Time: nan\n",
    );
    put(
        &log,
        "6.1 x\u{1b}[2J/iter-0/stream/logs/stream-1.log",
        "Copy: 1\n",
    );
    put(&log, "6.2/iter-0/tests-timestamp", "start :: 5\n");
    std::os::unix::fs::symlink("/etc", log.join("6.1-vanilla/iter-0/etc")).unwrap();
    let output = output_of(&home, &["import", "mmtests", &log.display().to_string()]);
    assert!(!output.contains('\u{1b}'), "{output}");
    insta::assert_snapshot!("import-of-damaged-files", output);
}

#[test]
fn imported_runs_have_history_pages_and_verdicts() {
    let home = fresh("mmtests-pages-home");
    let log = fresh("mmtests-pages");
    for iteration in 0..6_u32 {
        let more = f64::from(iteration % 3) * 0.2;
        run(&log, "6.1-vanilla", iteration, 40.0 + more);
        run(&log, "6.6-vanilla", iteration, 40.1 + more);
        run(&log, "6.12-vanilla", iteration, 50.0 + more);
    }
    // One boot only: uses the noise learned from other kernels on this machine.
    run(&log, "6.13-vanilla", 0, 50.1);
    let output = output_of(&home, &["import", "mmtests", &log.display().to_string()]);
    let all = ids(&output);
    assert_eq!(all.len(), 19);
    let of = |kernel: &str| -> Vec<&str> {
        let lines = output
            .lines()
            .filter(|line| line.starts_with("run_") && line.contains(kernel));
        lines.map(|line| line.split(' ').next().unwrap()).collect()
    };
    insta::assert_snapshot!(
        "history-of-imported-runs",
        output_of(&home, &["history", "kernbench/Elapsed-4"])
    );
    let group = output_of(&home, &["history", "kernbench"]);
    assert!(
        group.contains("\nkernbench/Elapsed-4: ") && group.contains("\nkernbench/User-4: "),
        "{group}"
    );
    let report = |old: &str, new: &str| {
        let runs: Vec<&str> = ["report"]
            .into_iter()
            .chain(of(old))
            .chain(of(new))
            .collect();
        without_dates(&output_of(
            &home,
            &[&runs[..], &["--workload", "kernbench/Elapsed-4"]].concat(),
        ))
    };
    let worse = report("6.6-vanilla", "6.12-vanilla");
    assert!(
        worse.starts_with("exit 1") && worse.contains("Ranks of the runs (exact Mann-Whitney"),
        "{worse}"
    );
    insta::assert_snapshot!("report-of-worse-imported-runs", worse);
    let one = report("6.6-vanilla", "6.13-vanilla");
    assert!(
        one.starts_with("exit 1"),
        "one boot is rated by the others' scatter: {one}"
    );
    let folder = home.join("site");
    assert!(output_of(&home, &["publish", folder.to_str().unwrap()]).starts_with("exit 0"));
    let first = fs::read_to_string(folder.join("index.html")).unwrap();
    for text in [
        "kernbench/Elapsed-4",
        "this lab compared a kernel with itself 9 times: 0 false alarms (0.0%, 95%: 0.0% to",
        "runs: ",
    ] {
        assert!(first.contains(text), "{text}\n{first}");
    }
}

const MAIL: &str = "From: kernel test robot <oliver.sang@intel.com>\n\
Subject: [x] 1111111111: will-it-scale.per_process_ops -11.7% regression\n\n\
kernel test robot noticed a 11.7% regression of will-it-scale.per_process_ops on:\n\n\
commit: 1111111111111111111111111111111111111111 (\"poll: do less\")\n\n\
testcase: will-it-scale\nparameters:\n\n\tnr_task: 100%\n\tmode: process\n\ttest: poll2\n\n\
commit: \n  2222222222 (\"before\")\n  1111111111 (\"poll: do less\")\n\n\
2222222222 1111111111\n---------------- ---------------------------\n\
         %stddev     %change         %stddev\n             \\          |                \\  \n\
    263173           -11.7%     232411        will-it-scale.per_process_ops\n\
      1.00 \u{b1} 2%     +13.0%       1.13        perf-stat.overall.cpi\n\
      2000            +0.1%       2002        perf-stat.overall.path-length\n\
      1.00            +9.5       10.50        perf-profile.self.cycles-pp.do_pollfd\n";

#[test]
fn mail_of_test_robot_names_path_and_functions() {
    let home = fresh("lkp-mail-home");
    put(&home, "report.eml", MAIL);
    put(&home, "other.eml", "From: me\n\nhello\n");
    put(&home, "it's $(reboot).eml", MAIL);
    // By relative names: where a printed command is folded depends on the length of its words.
    let read = |name: &str| {
        let mut import = marvin(&home);
        let import = import.current_dir(&home).args(["import", "lkp-mail", name]);
        format_output(&import.output().unwrap(), &home)
    };
    insta::assert_snapshot!("lkp-mail", read("report.eml"));
    insta::assert_snapshot!("lkp-mail-other", read("other.eml"));
    assert!(read("missing.eml").contains("error: cannot read missing.eml: "));
    assert!(read("missing.eml").starts_with("exit 2"));
    let hostile = read("it's $(reboot).eml").replace("\\\n", " ");
    assert!(hostile.contains("it'\\''s $(reboot).eml'"), "{hostile}");
}
