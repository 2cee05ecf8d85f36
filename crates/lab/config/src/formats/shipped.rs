//! The manifests of formats that come with Marvin.

/// Manifests by file name, in the order in which Marvin tries them.
pub const SHIPPED_FORMATS: &[(&str, &str)] = &[
    ("folded", include_str!("../../formats/folded.toml")),
    ("hyperfine", include_str!("../../formats/hyperfine.toml")),
    (
        "fio-instances",
        include_str!("../../formats/fio-instances.toml"),
    ),
    ("fio", include_str!("../../formats/fio.toml")),
    ("cyclictest", include_str!("../../formats/cyclictest.toml")),
    (
        "google-benchmark",
        include_str!("../../formats/google-benchmark.toml"),
    ),
    ("criterion", include_str!("../../formats/criterion.toml")),
    (
        "github-action-benchmark",
        include_str!("../../formats/github-action-benchmark.toml"),
    ),
    ("iperf3", include_str!("../../formats/iperf3.toml")),
    ("phoronix", include_str!("../../formats/phoronix.toml")),
    ("junit", include_str!("../../formats/junit.toml")),
    (
        "cargo-criterion",
        include_str!("../../formats/cargo-criterion.toml"),
    ),
    ("fio-terse", include_str!("../../formats/fio-terse.toml")),
    (
        "redis-benchmark",
        include_str!("../../formats/redis-benchmark.toml"),
    ),
    (
        "redis-benchmark-old",
        include_str!("../../formats/redis-benchmark-old.toml"),
    ),
    (
        "redis-benchmark-text",
        include_str!("../../formats/redis-benchmark-text.toml"),
    ),
    ("sysbench", include_str!("../../formats/sysbench.toml")),
    ("stress-ng", include_str!("../../formats/stress-ng.toml")),
    (
        "stress-ng-text",
        include_str!("../../formats/stress-ng-text.toml"),
    ),
    (
        "cyclictest-text",
        include_str!("../../formats/cyclictest-text.toml"),
    ),
    ("unixbench", include_str!("../../formats/unixbench.toml")),
    ("pgbench", include_str!("../../formats/pgbench.toml")),
    (
        "perf-stat-text",
        include_str!("../../formats/perf-stat-text.toml"),
    ),
    ("netperf", include_str!("../../formats/netperf.toml")),
    ("hackbench", include_str!("../../formats/hackbench.toml")),
    (
        "perf-stat-json",
        include_str!("../../formats/perf-stat-json.toml"),
    ),
    ("perf-bench", include_str!("../../formats/perf-bench.toml")),
    (
        "phoronix-text",
        include_str!("../../formats/phoronix-text.toml"),
    ),
    ("fio-text", include_str!("../../formats/fio-text.toml")),
    ("fxmark", include_str!("../../formats/fxmark.toml")),
    (
        "lmbench-mmap",
        include_str!("../../formats/lmbench-mmap.toml"),
    ),
    ("memtier", include_str!("../../formats/memtier.toml")),
    ("schbench", include_str!("../../formats/schbench.toml")),
    (
        "perf-report",
        include_str!("../../formats/perf-report.toml"),
    ),
    (
        "memtier-text",
        include_str!("../../formats/memtier-text.toml"),
    ),
    (
        "vm-scalability",
        include_str!("../../formats/vm-scalability.toml"),
    ),
    (
        "lmbench-bw-mem",
        include_str!("../../formats/lmbench-bw-mem.toml"),
    ),
    (
        "criterion-estimates",
        include_str!("../../formats/criterion-estimates.toml"),
    ),
    (
        "will-it-scale",
        include_str!("../../formats/will-it-scale.toml"),
    ),
    ("perf-stat", include_str!("../../formats/perf-stat.toml")),
];

/// The manifests of tests of MMTests.
pub const MMTESTS_FORMATS: &[(&str, &str)] = &[
    (
        "apachebench",
        include_str!("../../mmtests/apachebench.toml"),
    ),
    ("blogbench", include_str!("../../mmtests/blogbench.toml")),
    ("bonniepp", include_str!("../../mmtests/bonniepp.toml")),
    ("coremark", include_str!("../../mmtests/coremark.toml")),
    ("cyclictest", include_str!("../../mmtests/cyclictest.toml")),
    ("easywave", include_str!("../../mmtests/easywave.toml")),
    ("ebizzy", include_str!("../../mmtests/ebizzy.toml")),
    ("fio", include_str!("../../mmtests/fio.toml")),
    ("fsmark", include_str!("../../mmtests/fsmark.toml")),
    ("futexbench", include_str!("../../mmtests/futexbench.toml")),
    ("io-uring", include_str!("../../mmtests/io-uring.toml")),
    ("iperf3", include_str!("../../mmtests/iperf3.toml")),
    ("libmicro", include_str!("../../mmtests/libmicro.toml")),
    ("pedsort", include_str!("../../mmtests/pedsort.toml")),
    (
        "perffutexwake",
        include_str!("../../mmtests/perffutexwake.toml"),
    ),
    ("perfnuma", include_str!("../../mmtests/perfnuma.toml")),
    ("perfpipe", include_str!("../../mmtests/perfpipe.toml")),
    (
        "perfsyscall",
        include_str!("../../mmtests/perfsyscall.toml"),
    ),
    ("pistress", include_str!("../../mmtests/pistress.toml")),
    ("pmqtest", include_str!("../../mmtests/pmqtest.toml")),
    (
        "redis-memtier",
        include_str!("../../mmtests/redis-memtier.toml"),
    ),
    ("redis", include_str!("../../mmtests/redis.toml")),
    ("sembench", include_str!("../../mmtests/sembench.toml")),
    ("siege", include_str!("../../mmtests/siege.toml")),
    ("simoop", include_str!("../../mmtests/simoop.toml")),
    ("specjbb", include_str!("../../mmtests/specjbb.toml")),
    (
        "specjbb2015",
        include_str!("../../mmtests/specjbb2015.toml"),
    ),
    ("sqlite", include_str!("../../mmtests/sqlite.toml")),
    ("sstartup", include_str!("../../mmtests/sstartup.toml")),
    ("stressng", include_str!("../../mmtests/stressng.toml")),
    ("sysbench", include_str!("../../mmtests/sysbench.toml")),
    (
        "sysbenchcpu",
        include_str!("../../mmtests/sysbenchcpu.toml"),
    ),
    (
        "sysbenchmutex",
        include_str!("../../mmtests/sysbenchmutex.toml"),
    ),
    (
        "thpchallenge",
        include_str!("../../mmtests/thpchallenge.toml"),
    ),
    ("time", include_str!("../../mmtests/time.toml")),
    ("wis", include_str!("../../mmtests/wis.toml")),
    ("xfsrepair", include_str!("../../mmtests/xfsrepair.toml")),
    ("xsbench", include_str!("../../mmtests/xsbench.toml")),
];
