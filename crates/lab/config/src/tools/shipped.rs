//! The manifests that come with Marvin.

/// Manifests by file name, in order.
pub const SHIPPED: &[(&str, &str)] = &[
    ("dbench", include_str!("../../manifests/dbench.toml")),
    ("fio", include_str!("../../manifests/fio.toml")),
    ("hackbench", include_str!("../../manifests/hackbench.toml")),
    ("iperf3", include_str!("../../manifests/iperf3.toml")),
    ("make-gcc", include_str!("../../manifests/make-gcc.toml")),
    ("make-tcc", include_str!("../../manifests/make-tcc.toml")),
    ("memcached", include_str!("../../manifests/memcached.toml")),
    (
        "perf-bench",
        include_str!("../../manifests/perf-bench.toml"),
    ),
    ("pgbench", include_str!("../../manifests/pgbench.toml")),
    ("redis", include_str!("../../manifests/redis.toml")),
    ("stress-ng", include_str!("../../manifests/stress-ng.toml")),
    ("sysbench", include_str!("../../manifests/sysbench.toml")),
];
