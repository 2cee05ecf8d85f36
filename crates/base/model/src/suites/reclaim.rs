//! The reclaim suite: guests with little memory, after parallelio, multibuild and kernbench, and
//! explicit reclaim.
//!
//! Sizes follow rules: a guest has 128 MiB, swap on zram of the same size, and a disk without
//! content whose requests take a fixed time. The key-value server's pool is four fifths of the
//! guest's memory, background IO comes in even steps to four times the pool.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use super::Functions;
use crate::{
    Direction, ExtraFiles, GuestConfig, GuestModule, Metric, Processors, Quantity, Steadiness,
    Suite, Workload,
};

/// Pages are compressed with lz4, which is built into zram in some kernels and comes as a module in
/// others; lzo and lzo-rle must be there before zram in kernels that have them as modules (6.1).
const COMPRESSORS: [GuestModule; 3] = [
    GuestModule::may("lzo"),
    GuestModule::may("lzo_rle"),
    GuestModule::may("lz4"),
];
const ZRAM: GuestModule = GuestModule::must("zram", "num_devices=1");
/// A disk of 4 GiB that stores nothing: writes vanish, reads return any bytes. A request takes 400
/// microseconds, and 2 run at a time.
const DISK: GuestModule = GuestModule::must(
    "null_blk",
    "nr_devices=1 gb=4 bs=4096 irqmode=2 completion_nsec=400000 hw_queue_depth=2",
);
/// A disk in 96 MiB of the guest's own memory, with 50 microseconds for each request.
const SLOW_DISK: GuestModule =
    GuestModule::must("scsi_debug", "dev_size_mb=96 ndelay=50000 max_queue=32");

const MODULES: &[GuestModule] = &[COMPRESSORS[0], COMPRESSORS[1], COMPRESSORS[2], ZRAM, DISK];
const SLOW_MODULES: &[GuestModule] = &[GuestModule::must("sd_mod", ""), SLOW_DISK];

const fn equipped(memory_mib: u32, modules: &'static [GuestModule]) -> GuestConfig {
    GuestConfig {
        own_module: None,
        memory_mib,
        modules,
        files: ExtraFiles::None,
        disk: None,
    }
}

const SMALL: GuestConfig = equipped(128, MODULES);
const SLOW: GuestConfig = equipped(224, SLOW_MODULES);

/// Margins: chaotic behaviour moves these values by as much from seed to seed.
const MARGIN_PERCENT: f64 = 5.0;
const FEW_MARGIN_PERCENT: f64 = 20.0;

const fn metric(name: &'static str, quantity: Quantity, margin_percent: f64) -> Metric {
    let direction = match quantity {
        Quantity::Rate => Direction::HigherIsBetter,
        _ => Direction::LowerIsBetter,
    };
    Metric {
        name: Cow::Borrowed(name),
        quantity,
        direction,
        margin_percent,
    }
}

const TIME: Metric = metric("time", Quantity::Time, MARGIN_PERCENT);
const RATE: Metric = metric("rate", Quantity::Rate, MARGIN_PERCENT);
const DURATION: Metric = metric("duration", Quantity::Duration, MARGIN_PERCENT);
const SPREAD: Metric = metric("duration", Quantity::Duration, FEW_MARGIN_PERCENT);
const COUNT: Metric = metric("count", Quantity::Count, FEW_MARGIN_PERCENT);
const SPREAD_PERCENT: Metric = metric("percent", Quantity::Percent, FEW_MARGIN_PERCENT);
const PERCENT: Metric = metric("percent", Quantity::Percent, MARGIN_PERCENT);

/// How often a job repeats each step.
struct Amount {
    operations: u64,
    iterations: u32,
}

/// The texts of a job, for its own row and all others from the same job.
struct Job {
    operation: &'static str,
    amount: Amount,
    exercises: Functions,
    source: &'static str,
    guest_config: GuestConfig,
}

fn lead(name: &'static str, stresses: &'static str, metric: Metric, job: &Job) -> Workload {
    Workload {
        name: Cow::Borrowed(name),
        stresses: Cow::Borrowed(stresses),
        operation: Cow::Borrowed(job.operation),
        operations: job.amount.operations,
        iterations: job.amount.iterations,
        warm_up: 1,
        exercises: job.exercises,
        metric,
        guest_config: job.guest_config.clone(),
        steadiness: Steadiness::Chaotic,
        tasks: None,
        processors: Processors::One,
        row_of: None,
        source: Cow::Borrowed(job.source),
    }
}

fn row(
    name: &'static str,
    of: &'static str,
    metric: Metric,
    stresses: &'static str,
    job: &Job,
) -> Workload {
    Workload {
        row_of: Some(Cow::Borrowed(of)),
        ..lead(name, stresses, metric, job)
    }
}

const PARALLELIO: Job = Job {
    operation: "a request to the server, and its answer: two gets of 16 KiB to a set",
    amount: Amount {
        operations: 2_000,
        iterations: 4,
    },
    exercises: &[&["tcp_sendmsg"], &["tcp_recvmsg"]],
    source: "parallelio of MMTests (memcachetest with background IO). Kept: one client, values of 16 KiB, a pool of four fifths \
        of memory, no IO and then IO in even steps, a sequential write with fdatasync at its end, a warm-up, rows and \
        formulas. Differs: the server is ours (a hash table in anonymous memory, TCP over loopback), IO to 4 times the \
        pool, a number of requests instead of 200 s, a bare disk instead of ext4",
    guest_config: SMALL,
};

macro_rules! parallelio {
    ($percent:literal) => {{
        const LEAD: &str = concat!("memcachetest-", $percent);
        [
            lead(
                LEAD,
                concat!(
                    "a key-value server in memory, with IO of ",
                    $percent,
                    " % of its pool beside it"
                ),
                RATE,
                &PARALLELIO,
            ),
            row(
                concat!("io-duration-", $percent),
                LEAD,
                DURATION,
                "that IO, to its end on the disk",
                &PARALLELIO,
            ),
            row(
                concat!("swaptotal-", $percent),
                LEAD,
                COUNT,
                "pages swapped in and out meanwhile",
                &PARALLELIO,
            ),
            row(
                concat!("swapin-", $percent),
                LEAD,
                COUNT,
                "pages swapped in meanwhile",
                &PARALLELIO,
            ),
            row(
                concat!("minorfaults-", $percent),
                LEAD,
                COUNT,
                "faults that read nothing meanwhile",
                &PARALLELIO,
            ),
            row(
                concat!("majorfaults-", $percent),
                LEAD,
                COUNT,
                "faults that read a page meanwhile",
                &PARALLELIO,
            ),
        ]
    }};
}

macro_rules! compiler {
    ($test:literal) => {
        concat!(
            $test,
            "; what the kernel does for each compilation: fork, exec, search and read headers, allocate, write an object; \
             a link in much memory at a build's end. Differs: no compiler and no make: what they compute, the same on \
             every kernel, is left out, so user time says little; everything is in memory"
        )
    };
}

const MULTIBUILD: Job = Job {
    operation: "12 builds, 2 at a time; a build is 6 compilations and a link in 40 MiB",
    amount: Amount {
        operations: 1,
        iterations: 4,
    },
    exercises: &[&["kernel_clone"], &["begin_new_exec"]],
    source: compiler!(
        "multibuild of MMTests. Kept: 12 builds with 2 at a time in little memory, rows and formulas"
    ),
    guest_config: SMALL,
};

macro_rules! multibuild {
    ($of:literal, $metric:expr, $spread:expr, $what:literal) => {
        [
            row(
                concat!("mbuild-", $of, "-min"),
                BUILDS,
                $metric,
                concat!("least ", $what, " of 12 builds"),
                &MULTIBUILD,
            ),
            row(
                concat!("mbuild-", $of, "-mean"),
                BUILDS,
                $metric,
                concat!("mean ", $what, " of 12 builds"),
                &MULTIBUILD,
            ),
            row(
                concat!("mbuild-", $of, "-stddev"),
                BUILDS,
                $spread,
                concat!("spread of it: ", $what),
                &MULTIBUILD,
            ),
            row(
                concat!("mbuild-", $of, "-max"),
                BUILDS,
                $metric,
                concat!("most ", $what, " of 12 builds"),
                &MULTIBUILD,
            ),
            row(
                concat!("mbuild-", $of, "-range"),
                BUILDS,
                $spread,
                concat!("most less least ", $what),
                &MULTIBUILD,
            ),
        ]
    };
}

const BUILDS: &str = "mbuild-all";

const KERNBENCH: Job = Job {
    operation: "a build: 32 compilations, so many at a time, and a link in 40 MiB",
    amount: Amount {
        operations: 1,
        iterations: 4,
    },
    exercises: &[&["kernel_clone"], &["begin_new_exec"]],
    source: compiler!(
        "kernbench. Kept: one build at a time after a warm-up build, jobs of 2 and 16 times the processors, rows"
    ),
    guest_config: SMALL,
};

macro_rules! kernbench {
    ($jobs:literal) => {{
        const LEAD: &str = concat!("kbuild-wall-", $jobs);
        [
            lead(
                LEAD,
                concat!("a build with ", $jobs, " jobs: elapsed time"),
                TIME,
                &KERNBENCH,
            ),
            row(
                concat!("kbuild-user-", $jobs),
                LEAD,
                DURATION,
                "its user time",
                &KERNBENCH,
            ),
            row(
                concat!("kbuild-sys-", $jobs),
                LEAD,
                DURATION,
                "its system time",
                &KERNBENCH,
            ),
            row(
                concat!("kbuild-cpu-", $jobs),
                LEAD,
                PERCENT,
                "its share of the processor",
                &KERNBENCH,
            ),
        ]
    }};
}

const RECLAIMING: &[&str] = &["shrink_node"];
const FILE: Job = Job {
    operation: "1 MiB of a disk larger than memory read through the page cache, and 1 MiB of a mapped working set touched",
    amount: Amount {
        operations: 128,
        iterations: 6,
    },
    exercises: &[&["filemap_read"], RECLAIMING],
    source: "",
    guest_config: SMALL,
};
const ANON: Job = Job {
    operation: "a page written, of anonymous memory half as large again as the guest has, one after the other",
    amount: Amount {
        operations: 8_192,
        iterations: 6,
    },
    exercises: &[&["handle_mm_fault"], &["do_swap_page"], RECLAIMING],
    source: "",
    guest_config: SMALL,
};
const SLOW_ANON: Job = Job {
    operation: "a page written, of anonymous memory of 128 MiB, one after the other",
    amount: Amount {
        operations: 8_192,
        iterations: 6,
    },
    exercises: &[&["handle_mm_fault"], &["do_swap_page"], RECLAIMING],
    source: "",
    guest_config: SLOW,
};

fn on_purpose() -> [Workload; 9] {
    [
        lead(
            "reclaim-file",
            "reclaim of file pages beside a working set",
            TIME,
            &FILE,
        ),
        lead(
            "reclaim-file-gen",
            "the same, by generations (MGLRU on)",
            TIME,
            &FILE,
        ),
        lead(
            "reclaim-file-lru",
            "the same, by active and inactive lists (MGLRU off)",
            TIME,
            &FILE,
        ),
        lead(
            "reclaim-anon",
            "reclaim of anonymous pages, to swap on zram",
            TIME,
            &ANON,
        ),
        lead(
            "reclaim-anon-gen",
            "the same, by generations (MGLRU on)",
            TIME,
            &ANON,
        ),
        lead(
            "reclaim-anon-lru",
            "the same, by active and inactive lists (MGLRU off)",
            TIME,
            &ANON,
        ),
        lead(
            "reclaim-slow",
            "reclaim of anonymous pages, to swap on a disk that takes its time",
            TIME,
            &SLOW_ANON,
        ),
        lead(
            "reclaim-slow-gen",
            "the same, by generations (MGLRU on)",
            TIME,
            &SLOW_ANON,
        ),
        lead(
            "reclaim-slow-lru",
            "the same, by active and inactive lists (MGLRU off)",
            TIME,
            &SLOW_ANON,
        ),
    ]
}

/// The reclaim suite, job by job.
pub static RECLAIM: LazyLock<Arc<Suite>> = LazyLock::new(|| {
    let builds = lead(
        BUILDS,
        "12 builds, 2 at a time: elapsed time of all",
        TIME,
        &MULTIBUILD,
    );
    let all = [
        parallelio!("0"),
        parallelio!("50"),
        parallelio!("225"),
        parallelio!("400"),
    ]
    .into_iter()
    .flatten();
    let all = all.chain([builds]);
    let all = all.chain(multibuild!("user", DURATION, SPREAD, "user time"));
    let all = all.chain(multibuild!("sys", DURATION, SPREAD, "system time"));
    let all = all.chain(multibuild!("wall", DURATION, SPREAD, "elapsed time"));
    let all = all.chain(multibuild!(
        "cpu",
        PERCENT,
        SPREAD_PERCENT,
        "share of the processor"
    ));
    let all = all
        .chain(kernbench!("2"))
        .chain(kernbench!("16"))
        .chain(on_purpose());
    Suite::new(
        "reclaim",
        "too little memory, after parallelio, multibuild and kernbench, and reclaim on purpose",
        all,
    )
});
