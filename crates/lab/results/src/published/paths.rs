//! Which of Marvin's workloads are on the path of a published test.

use super::PublishedReport;

/// Tests by suite and name, and the workloads that execute the same path, the nearest first; `FS`
/// stands for the report's file system. The tests are those of will-it-scale (tests/*.c), of
/// stress-ng (stress-*.c) and of LKP-tests.
const PATHS: &[(&str, &str, &[&str])] = &[
    // It copies by read(2) and write(2), not by copy_file_range(2).
    (
        "aim7",
        "disk_cp",
        &["FS-ram-write", "FS-ram-read", "share-FS-write"],
    ),
    ("aim7", "disk_rr", &["FS-ram-read", "memcg-stat-few"]),
    ("aim7", "disk_rw", &["FS-ram-write", "share-FS-write"]),
    ("aim7", "disk_src", &["FS-ram-create", "share-FS-create"]),
    ("aim7", "disk_wrt", &["FS-ram-write", "share-FS-write"]),
    ("aim7", "sync_disk_rw", &["FS-ram-sync", "FS-ram-write"]),
    ("dbench", "", &["FS-ram-create"]),
    ("fileio", "", &["FS-ram-write"]),
    (
        "filebench",
        "copyfiles.f",
        &["FS-ram-create", "FS-ram-write", "FS-ram-read"],
    ),
    (
        "filebench",
        "fileserver.f",
        &["FS-ram-create", "FS-ram-write", "FS-ram-read"],
    ),
    (
        "filebench",
        "filemicro_rwritefsync.f",
        &["FS-ram-sync", "FS-ram-fsync"],
    ),
    ("filebench", "randomrw.f", &["FS-ram-write"]),
    ("filebench", "randomwrite.f", &["FS-ram-write"]),
    ("filebench", "varmail.f", &["FS-ram-fsync"]),
    ("filebench", "webproxy.f", &["FS-ram-create"]),
    ("filebench", "webserver.f", &["FS-ram-read"]),
    ("fio-basic", "", &["FS-ram-write"]),
    ("fsmark", "", &["FS-ram-create", "share-FS-create"]),
    ("fxmark", "DRBH", &["FS-ram-read"]),
    ("fxmark", "DRBL", &["FS-ram-read"]),
    ("fxmark", "DRBM", &["FS-ram-read"]),
    ("fxmark", "DWAL", &["FS-ram-write"]),
    ("fxmark", "DWOL", &["FS-ram-write"]),
    ("fxmark", "DWOM", &["FS-ram-write", "share-FS-write"]),
    ("fxmark", "DWSL", &["FS-ram-fsync"]),
    ("fxmark", "DWTL", &["FS-ram-trunc"]),
    ("fxmark", "dbench_client", &["FS-ram-create"]),
    ("fxmark", "MRDL", &["FS-ram-readdir"]),
    ("fxmark", "MRDM", &["FS-ram-readdir"]),
    ("fxmark", "MRPH", &["file-stat"]),
    ("fxmark", "MRPL", &["file-stat"]),
    ("fxmark", "MRPM", &["file-stat"]),
    ("fxmark", "MWCL", &["FS-ram-create", "share-FS-create"]),
    ("fxmark", "MWCM", &["FS-ram-create", "share-FS-create"]),
    ("fxmark", "MWRL", &["FS-ram-rename"]),
    ("fxmark", "MWRM", &["FS-ram-rename"]),
    ("fxmark", "MWUL", &["FS-ram-create", "share-FS-create"]),
    ("fxmark", "MWUM", &["FS-ram-create", "share-FS-create"]),
    (
        "hackbench",
        "",
        &["hackbench-pipe", "hackbench-sock", "share-pipe-turn"],
    ),
    ("memtier", "", &["tcp-rr"]),
    ("netperf", "", STREAMS),
    ("netperf", "SCTP_RR", &["sock-sctp"]),
    ("netperf", "SCTP_STREAM", &["sock-sctp"]),
    ("netperf", "SCTP_STREAM_MANY", &["sock-sctp"]),
    ("netperf", "TCP_CRR", &["tcp-connect"]),
    ("netperf", "TCP_MAERTS", STREAMS),
    ("netperf", "TCP_RR", &["tcp-rr"]),
    ("netperf", "TCP_STREAM", STREAMS),
    ("netperf", "UDP_RR", &["udp-rr", "share-udp-turn"]),
    ("netperf", "UDP_STREAM", &["udp-send-1024", "share-udp"]),
    ("postmark", "", &["FS-ram-create"]),
    ("redis", "", &["tcp-rr"]),
    ("stress-ng", "af-alg", &["alg-hash"]),
    ("stress-ng", "aio", &["aio-read"]),
    ("stress-ng", "chmod", &["FS-ram-chmod", "tmpfs-chmod"]),
    ("stress-ng", "chown", &["FS-ram-chmod", "tmpfs-chmod"]),
    ("stress-ng", "clock", &["call-clock"]),
    ("stress-ng", "copy-file", &["FS-ram-copy"]),
    ("stress-ng", "dir", &["FS-ram-mkdir", "tmpfs-mkdir"]),
    ("stress-ng", "dup", &["call-dup", "share-dup"]),
    // Its clients connect anew each time.
    (
        "stress-ng",
        "epoll",
        &[
            "sock-connect",
            "event-epoll",
            "share-connect",
            "share-epoll",
        ],
    ),
    ("stress-ng", "eventfd", &["event-fd"]),
    ("stress-ng", "exec", &["fork-exec"]),
    ("stress-ng", "fallocate", &["FS-ram-falloc", "tmpfs-falloc"]),
    ("stress-ng", "fcntl", &["call-fcntl"]),
    ("stress-ng", "fiemap", &["FS-ram-fiemap"]),
    ("stress-ng", "fork", &["fork-exit"]),
    ("stress-ng", "fsize", &["FS-ram-falloc", "share-FS-falloc"]),
    ("stress-ng", "fstat", &["call-fstat"]),
    ("stress-ng", "futex", &["futex-pingpong"]),
    ("stress-ng", "get", &["getppid"]),
    ("stress-ng", "getrandom", &["call-getrandom"]),
    (
        "stress-ng",
        "io-uring",
        &["uring-read", "uring-nop", "uring-worker"],
    ),
    ("stress-ng", "loop", &["loop-file"]),
    ("stress-ng", "ioprio", &["FS-ram-sync", "FS-ram-write"]),
    ("stress-ng", "key", &["key-update"]),
    ("stress-ng", "link", &["FS-ram-link", "tmpfs-link"]),
    (
        "stress-ng",
        "metamix",
        &["FS-ram-gap", "FS-ram-trunc", "FS-ram-write"],
    ),
    ("stress-ng", "mlock", &["map-mlock"]),
    ("stress-ng", "mmap", &["mem-mmap"]),
    ("stress-ng", "mprotect", &["mem-mprotect"]),
    ("stress-ng", "mq", &["mqueue-posix"]),
    ("stress-ng", "mremap", &["map-mremap"]),
    ("stress-ng", "msg", &["mqueue-sysv"]),
    ("stress-ng", "nanosleep", &["timer-sleep"]),
    ("stress-ng", "open", &["file-open"]),
    ("stress-ng", "pagemove", &["map-mremap"]),
    ("stress-ng", "pipe", &["pipe-own-1"]),
    ("stress-ng", "poll", &["event-poll"]),
    ("stress-ng", "pthread", &["thread-create", "share-thread"]),
    ("stress-ng", "rawsock", &["sock-raw"]),
    (
        "stress-ng",
        "rename",
        &["FS-ram-rename", "tmpfs-rename", "FS-ram-statfs"],
    ),
    ("stress-ng", "seccomp", &["call-seccomp"]),
    ("stress-ng", "sem", &["futex-pingpong"]),
    ("stress-ng", "sem-sysv", &["sem-sysv"]),
    ("stress-ng", "sendfile", &["call-sendfile"]),
    ("stress-ng", "shm", &["map-shmget"]),
    ("stress-ng", "shm-sysv", &["map-shmget"]),
    ("stress-ng", "sigq", &["signal"]),
    ("stress-ng", "sigrt", &["signal"]),
    ("stress-ng", "sockfd", &["sock-fd"]),
    ("stress-ng", "switch", &["pipe-pingpong", "share-pipe-turn"]),
    ("stress-ng", "sync-file", &["FS-ram-fsync"]),
    ("stress-ng", "timer", &["timer-signal"]),
    ("stress-ng", "udp", &["udp-rr"]),
    ("stress-ng", "vfork", &["fork-vfork-exec"]),
    ("stress-ng", "yield", &["switch-yield"]),
    ("stress-ng", "zero", &["map-zero"]),
    // Its default is an fsync(2) each hundred requests.
    ("sysbench-fileio", "", &["FS-ram-sync", "FS-ram-write"]),
    ("tbench", "", &["tbench-like-1"]),
    (
        "unixbench",
        "context1",
        &["pipe-pingpong", "share-pipe-turn"],
    ),
    ("unixbench", "execl", &["fork-exec", "share-exec-proc"]),
    ("unixbench", "fsbuffer", &["file-read-4k", "file-write-4k"]),
    (
        "unixbench",
        "fsbuffer-w",
        &["call-writeseek", "file-write-4k"],
    ),
    ("unixbench", "pipe", &["pipe-own-1"]),
    ("unixbench", "shell", &["fork-exec", "share-exec-proc"]),
    ("unixbench", "spawn", &["fork-exit", "share-fork"]),
    ("unixbench", "syscall", &["getppid"]),
    ("vm-scalability", "truncate-seq", &["FS-ram-trunc"]),
    ("will-it-scale", "brk", &["mem-brk", "share-brk"]),
    (
        "will-it-scale",
        "context_switch",
        &["pipe-pingpong", "share-pipe-turn"],
    ),
    (
        "will-it-scale threads",
        "context_switch",
        &["futex-pingpong", "share-condvar"],
    ),
    ("will-it-scale", "dup", &["call-dup", "share-dup"]),
    ("will-it-scale", "eventfd", &["event-fd"]),
    (
        "will-it-scale",
        "futex",
        &["futex-own-1", "futex-pingpong", "share-futex"],
    ),
    ("will-it-scale", "getppid", &["getppid"]),
    ("will-it-scale", "lseek", &["call-lseek"]),
    ("will-it-scale", "malloc", &["map-large", "mmap-thr-1"]),
    ("will-it-scale", "mmap", &["mem-mmap", "share-mmap"]),
    ("will-it-scale", "open", &["file-open", "share-open"]),
    (
        "will-it-scale",
        "page_fault1",
        &["fault-anon", "share-fault"],
    ),
    (
        "will-it-scale",
        "page_fault2",
        &["map-file-private", "share-map-private"],
    ),
    (
        "will-it-scale threads",
        "page_fault2",
        &["map-file-private", "share-map-private", "share-fault"],
    ),
    (
        "will-it-scale",
        "page_fault3",
        &["map-file-shared", "share-map-file"],
    ),
    ("will-it-scale", "pipe", &["pipe-own-1"]),
    ("will-it-scale", "poll", &["event-poll", "share-poll"]),
    ("will-it-scale", "pread", &["file-read-4k", "share-pread"]),
    (
        "will-it-scale",
        "pthread_mutex",
        &["share-mutex", "mutex-contended"],
    ),
    (
        "will-it-scale",
        "pwrite",
        &["file-write-4k", "share-pwrite"],
    ),
    ("will-it-scale", "read", &["file-read-4k"]),
    ("will-it-scale", "sched_yield", &["switch-yield"]),
    ("will-it-scale", "signal", &["signal"]),
    ("will-it-scale", "tlb_flush", &["share-tlb"]),
    ("will-it-scale", "unix", &["unix-own-1", "unix-pingpong"]),
    ("will-it-scale", "unlink", &["file-create", "share-create"]),
    ("will-it-scale", "write", &["file-write-4k"]),
    ("will-it-scale", "writeseek", &["call-writeseek"]),
];

/// Streams of TCP, and what a control group is charged for them and otherwise: all but the root group
/// are charged by the same function (mm/memcontrol.c, try_charge_memcg).
const STREAMS: &[&str] = &["tcp-stream", "memcg-tcp", "memcg-fault"];
/// Most rows of a path on one processor and on several: each is measured, and each more is one more
/// that may differ by accident.
const ROWS_MOST: [usize; 2] = [4, 2];

/// What stands behind a suite's name for tests whose tasks are threads, where those of processes have
/// another path.
const THREADS: &str = " threads";
/// A collection of other programs' tests.
const PHORONIX: &str = "phoronix-test-suite";
/// Values of `sync_method` that wait for the disk (fsmark), and rows of it.
const SYNCING: &str = "fsync";
const FSYNC: &str = "FS-ram-fsync";
const NFS: &str = "nfs";
/// fxmark's name for ext4 without a journal, whose paths are others.
const WITHOUT_JOURNAL: &str = "ext4_no_jnl";

/// Returns the workloads on the path of a report, the nearest first, at most four on one processor
/// and two on several; none if no workload is.
#[must_use]
pub fn workloads_on_path(report: &PublishedReport) -> Vec<String> {
    let (suite, test) = suite_and_test(report);
    let threads = format!("{suite}{THREADS}");
    let has_threads = report.parameter("mode") == Some("thread");
    let of_threads = has_threads.then(|| find_path(&threads, &test)).flatten();
    let nearest = of_threads.or_else(|| find_path(&suite, &test));
    let mut workloads = nearest.unwrap_or_default().to_vec();
    let method = report.parameter("sync_method").unwrap_or_default();
    if method.to_ascii_lowercase().starts_with(SYNCING) && !workloads.is_empty() {
        workloads.insert(0, FSYNC);
    }
    // fxmark calls it so. What is below NFS serves it.
    let system = report.parameter("fs").or(report.parameter("fstype"));
    let above = report.parameter("fs2").unwrap_or_default();
    let system = if above.starts_with(NFS) {
        NFS
    } else {
        system.unwrap_or_default()
    };
    let mut found: Vec<String> = Vec::new();
    let mut rows = [0, 0];
    for workload in workloads {
        let workload = match (system, workload) {
            (WITHOUT_JOURNAL, "FS-ram-create") => "ext4-ram-nojournal".to_owned(),
            (WITHOUT_JOURNAL, _) => continue,
            _ => workload.replace("FS", system),
        };
        let kind = usize::from(model::declared_transfers(&workload).is_some());
        let mut suites = model::SUITES.iter();
        let is_known =
            suites.any(|suite| suite.workloads.iter().any(|known| *known.name == workload));
        if is_known && rows[kind] < ROWS_MOST[kind] {
            rows[kind] += 1;
            found.push(workload);
        }
    }
    found
}

/// Returns the workloads of a test. Numbered variants of a test are the same path: the longest name
/// that begins theirs.
fn find_path(suite: &str, test: &str) -> Option<&'static [&'static str]> {
    let of_suite = PATHS.iter().filter(|(known, _, _)| suite == *known);
    let fitting = of_suite.filter(|(_, known, _)| {
        let rest = test.strip_prefix(known);
        *known == test
            || known.is_empty()
            || rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    });
    let (_, _, workloads) = fitting.max_by_key(|(_, known, _)| known.len())?;
    Some(workloads)
}

/// Returns the suite and the test that ran: without a parameter, the metric's name has them. Those of
/// Phoronix's suite name the program first: `phoronix-test-suite.stress-ng.SENDFILE.bogo_ops_s`.
fn suite_and_test(report: &PublishedReport) -> (String, String) {
    let words: Vec<&str> = report.metric.split('.').collect();
    let word = |place: usize| words.get(place).copied().unwrap_or_default();
    if report.testcase == PHORONIX {
        let program = if word(1) == "fio" {
            "fio-basic"
        } else {
            word(1)
        };
        return (program.to_owned(), word(2).to_ascii_lowercase());
    }
    let of_metric = word(1).to_ascii_lowercase();
    let test = report.parameter("test").map(ToOwned::to_owned);
    (report.testcase.clone(), test.unwrap_or(of_metric))
}

#[cfg(test)]
mod tests {
    use super::{PATHS, workloads_on_path};
    use crate::published::PublishedReport;

    /// The nearest workload of a mail with this test, metric and parameters.
    fn nearest(suite: &str, metric: &str, parameters: &str) -> Option<String> {
        let text = format!(
            "noticed a -4.3% regression of {metric} on:\n\ncommit: b6c81e63ec1e (\"fs: a change\")\n\n\
             testcase: {suite}\nparameters:\n\n{parameters}\n"
        );
        let report = PublishedReport::read(&text).unwrap();
        workloads_on_path(&report).into_iter().next()
    }

    #[test]
    fn metric_names_the_test_of_a_collection() {
        let phoronix = "phoronix-test-suite";
        let sendfile = "phoronix-test-suite.stress-ng.SENDFILE.bogo_ops_s";
        let test = "\ttest: stress-ng-1.3.1\n";
        assert_eq!(nearest(phoronix, sendfile, test).unwrap(), "call-sendfile");
        let sequential = "phoronix-test-suite.fio.SequentialWrite.Sync.4KB.iops";
        let on_ext4 = "\tfs: ext4\n";
        assert_eq!(
            nearest(phoronix, sequential, on_ext4).unwrap(),
            "ext4-ram-write"
        );
        let other = "phoronix-test-suite.osbench.CreateThreads.us";
        assert_eq!(nearest(phoronix, other, ""), None);
        let of_metric = nearest("stress-ng", "stress-ng.dup.ops_per_sec", "\tnr: 1\n");
        assert_eq!(of_metric.unwrap(), "call-dup");
    }

    #[test]
    fn threads_and_file_systems_are_parameters() {
        let metric = "will-it-scale.per_thread_ops";
        let of_mode = |mode: &str| {
            let parameters = format!("\tmode: {mode}\n\ttest: context_switch1\n");
            nearest("will-it-scale", metric, &parameters).unwrap()
        };
        assert_eq!(of_mode("thread"), "futex-pingpong");
        assert_eq!(of_mode("process"), "pipe-pingpong");
        let parameters = "\tfstype: ext4\n\ttest: MWCL\n";
        let works = nearest("fxmark", "fxmark.ssd_ext4_MWCL_18.works/sec", parameters);
        assert_eq!(works.unwrap(), "ext4-ram-create");
        let parameters = "\tfstype: ext4_no_jnl\n\ttest: dbench_client\n";
        let works = nearest(
            "fxmark",
            "fxmark.ssd_dbench_client_72.works/sec",
            parameters,
        );
        assert_eq!(works.unwrap(), "ext4-ram-nojournal");
    }

    #[test]
    fn file_systems_below_nfs_serve_it() {
        let parameters = "\tdisk: 1HDD\n\tfs: btrfs\n\tfs2: nfsv4\n\ttest: webproxy.f\n";
        let rows = nearest("filebench", "filebench.sum_operations/s", parameters);
        assert_eq!(rows.unwrap(), "nfs-ram-create");
    }

    #[test]
    fn files_that_are_synced_have_their_row() {
        let files = |method: &str| {
            let parameters = format!("\tfs: btrfs\n\tsync_method: {method}\n");
            nearest("fsmark", "fsmark.files_per_sec", &parameters).unwrap()
        };
        assert_eq!(files("fsyncBeforeClose"), "btrfs-ram-fsync");
        assert_eq!(files("NoSync"), "btrfs-ram-create");
    }

    #[test]
    fn every_path_has_a_workload_of_its_name() {
        for (suite, test, workloads) in PATHS {
            for workload in *workloads {
                // Some have no row of ext4 or of btrfs, and none is of all.
                let workload = workload
                    .replace("share-FS-write", "share-btrfs-write")
                    .replace("FS", "ext4");
                let is_known = model::SUITES
                    .iter()
                    .any(|suite| suite.workloads.iter().any(|known| *known.name == workload));
                assert!(is_known, "{suite} {test}: {workload}");
            }
        }
    }
}
