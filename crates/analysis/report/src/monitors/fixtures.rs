//! Monitor data for tests: the counters behind the tables of Mel Gorman's mail of 2013-06-26,
//! reconstructed from its numbers, and synthetic runs of newer kernels with all features.

use std::collections::BTreeMap;

use model::{Direction, MonitorFile, Observation, Phase, Reading, TimedReading};

use super::{Monitored, SampleRow, SampleTable, Watched};

/// Returns a reading of some groups.
pub(crate) fn reading(groups: &[(&str, &[(&str, u64)])]) -> Reading {
    let mut reading = Reading::default();
    for (group, counters) in groups {
        counters
            .iter()
            .for_each(|(key, value)| reading.put(group, key, *value));
    }
    reading
}

/// Returns readings of one file, each at its ms.
pub(crate) fn timed(file: MonitorFile, readings: Vec<(u64, Reading)>) -> Vec<TimedReading> {
    let last = readings.len() - 1;
    let phase = |place| match place {
        0 => Phase::Start,
        place if place == last => Phase::End,
        _ => Phase::Interval,
    };
    let timed = |(place, (ms, reading))| TimedReading {
        file,
        at_ns: ms * 1_000_000,
        phase: phase(place),
        reading,
    };
    readings.into_iter().enumerate().map(timed).collect()
}

/// Returns an observation of /proc/vmstat that started at zero.
pub(crate) fn vmstat(ms: u64, counters: &[(&str, u64)]) -> Observation {
    let zero: Vec<(&str, u64)> = counters.iter().map(|(key, _)| (*key, 0)).collect();
    let readings = vec![
        (5, reading(&[(Reading::WHOLE, &zero)])),
        (5 + ms, reading(&[(Reading::WHOLE, counters)])),
    ];
    Observation {
        readings: timed(MonitorFile::Vmstat, readings),
    }
}

/// Returns the monitors of two kernels.
pub(crate) fn two(base: &Observation, new: &Observation) -> Monitored {
    let kernel = |head: &str, observation| Watched {
        head: [head.to_owned(), String::new()],
        observation,
    };
    Monitored::new(
        &[kernel("6.1.192", base), kernel("6.12.117", new)],
        Vec::new(),
    )
}

/// The kernels of 2013.
pub(crate) const KERNELS: [&str; 3] = ["vanilla", "mm1-mmotm-20130606", "mm1-lessdisrupt-v1"];
/// ms from start to end, derived from the mail's velocities and scans.
const MS: [u64; 3] = [1_165_730, 1_162_440, 1_164_480];
/// Counters of 3.10 behind the mail's rows.
const VMSTAT: [(&str, [u64; 3]); 22] = [
    ("pgfault", [11_267_426, 10_690_442, 10_651_312]),
    ("pgmajfault", [37_255, 786, 705]),
    ("pswpin", [199_724, 0, 0]),
    ("pswpout", [623_022, 22_078, 21]),
    ("pgscan_kswapd_dma", [0, 0, 0]),
    ("pgscan_kswapd_dma32", [185_200, 835_646, 892_567]),
    ("pgscan_kswapd_normal", [15_707_518, 774_762, 761_062]),
    ("pgscan_direct_dma", [0, 0, 0]),
    ("pgscan_direct_dma32", [0, 0, 0]),
    ("pgscan_direct_normal", [0, 5378, 51_660]),
    ("pgscan_direct_throttle", [0, 0, 17]),
    ("pgsteal_kswapd_normal", [1_097_093, 1_083_339, 1_107_652]),
    ("pgsteal_direct_normal", [0, 5024, 47_241]),
    ("nr_vmscan_write", [3_065_275, 27_259, 6316]),
    ("nr_vmscan_immediate_reclaim", [8019, 429, 318]),
    ("pgpgin", [963_320, 99_096, 151_864]),
    ("pgpgout", [13_057_396, 10_887_480, 10_878_500]),
    ("slabs_scanned", [64_896, 23_168, 34_176]),
    ("pginodesteal", [0, 0, 0]),
    ("kswapd_inodesteal", [8668, 0, 0]),
    ("kswapd_skip_congestion_wait", [0, 0, 0]),
    ("allocstall", [0, 120, 1210]),
];
/// A disk after an interval of 10 s with the largest values, and at the end: reads, read_ms,
/// writes, write_ms, queue_ms.
const DISK: [[[u64; 5]; 2]; 3] = [
    [
        [
            7_806_290,
            834_726_590,
            2_193_710,
            67_052_786_300,
            11_621_700,
        ],
        [
            732_544_701,
            5_772_452_244,
            267_455_299,
            825_987_549_008,
            195_901_095,
        ],
    ],
    [
        [40_320, 9_757_440, 9_959_680, 41_290_343_360, 7_668_500],
        [
            35_430_865,
            342_970_773,
            964_569_135,
            215_967_029_326,
            40_266_991,
        ],
    ],
    [
        [594_366, 39_210_325, 9_405_634, 37_245_087_908, 7_956_900],
        [
            53_215_183,
            385_810_077,
            946_784_817,
            206_664_189_855,
            41_455_488,
        ],
    ],
];

/// Returns monitor data of the kernels of 2013.
pub(crate) fn of_2013() -> [Observation; 3] {
    [0, 1, 2].map(|kernel| {
        let counters: Vec<(&str, u64)> = VMSTAT
            .iter()
            .map(|(key, values)| (*key, values[kernel]))
            .collect();
        let mut observation = vmstat(MS[kernel], &counters);
        let disk = |[reads, read_ms, writes, write_ms, queue_ms]: [u64; 5]| {
            let all = [
                ("reads", reads),
                ("read_ms", read_ms),
                ("writes", writes),
                ("write_ms", write_ms),
                ("queue_ms", queue_ms),
            ];
            reading(&[("sda", &all), ("sda1", &all)])
        };
        let [first, last] = DISK[kernel];
        let readings = vec![
            (5, disk([0; 5])),
            (10_005, disk(first)),
            (5 + MS[kernel], disk(last)),
        ];
        observation
            .readings
            .extend(timed(MonitorFile::Diskstats, readings));
        observation
    })
}

/// Returns the kernels of 2013 with tables.
pub(crate) fn monitored_of_2013(tables: Vec<SampleTable>) -> Monitored {
    let seen = of_2013();
    let kernel = |(name, observation)| Watched {
        head: ["3.10.0-rc4".to_owned(), String::from(name)],
        observation,
    };
    Monitored::new(
        &KERNELS
            .into_iter()
            .zip(&seen)
            .map(kernel)
            .collect::<Vec<_>>(),
        tables,
    )
}

/// The mail's lines about parallelio, as numbers without their percentages.
pub(crate) const PARALLELIO: &str = include_str!("golden/parallelio.txt");

/// Returns the samples of parallelio.
pub(crate) fn parallelio() -> SampleTable {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = words[2..].iter().filter_map(|word| word.parse().ok());
        let direction = match words[1].starts_with("memcachetest") {
            true => Direction::HigherIsBetter,
            false => Direction::LowerIsBetter,
        };
        SampleRow {
            name: words[1].to_owned(),
            direction,
            samples: numbers.map(|number| vec![number]).collect(),
        }
    };
    SampleTable {
        title: "parallelio".to_owned(),
        rows: PARALLELIO.lines().map(row).collect(),
    }
}

/// The smallest, two values taken five times each, and the largest of twelve kernel builds:
/// reconstructed from the mail's minimum, mean, standard deviation, maximum and range.
const MULTIBUILD: [(&str, [[f64; 4]; 3]); 4] = [
    (
        "User",
        [
            [584.9939, 589.94132, 606.15922, 614.64403],
            [553.31294, 558.41601, 589.88463, 598.94389],
            [569.08232, 573.02994, 589.51903, 597.97287],
        ],
    ),
    (
        "System",
        [
            [35.78008, 35.90837, 36.32403, 36.53],
            [35.0501, 35.19902, 36.15705, 36.43994],
            [35.54039, 35.70716, 36.05881, 36.13035],
        ],
    ),
    (
        "Elapsed",
        [
            [190.54094, 193.79211, 201.53858, 203.7201],
            [190.56378, 200.86855, 206.88043, 210.23195],
            [192.99055, 195.85998, 204.71494, 210.45906],
        ],
    ),
    (
        "CPU",
        [
            [308.00263, 312.02115, 328.28594, 340.00253],
            [282.00238, 290.11375, 306.35706, 333.00359],
            [294.00277, 300.4351, 313.57194, 328.00203],
        ],
    ),
];

/// Returns the samples of multibuild.
pub(crate) fn multibuild() -> SampleTable {
    let samples = |[min, low, high, max]: [f64; 4]| {
        let mut samples = vec![min, max];
        samples.extend([low; 5]);
        samples.extend([high; 5]);
        samples
    };
    let row = |(name, kernels): (&str, [[f64; 4]; 3])| SampleRow {
        name: name.to_owned(),
        direction: Direction::LowerIsBetter,
        samples: kernels.map(samples).to_vec(),
    };
    SampleTable {
        title: "multibuild".to_owned(),
        rows: MULTIBUILD.map(row).to_vec(),
    }
}

/// Returns the run of a kernel with or without separate counters of khugepaged's scans.
fn run(khugepaged: bool) -> Observation {
    let mut files: BTreeMap<MonitorFile, Vec<(u64, Reading)>> = BTreeMap::new();
    let mut put = |file, ms, groups: &[(&str, &[(&str, u64)])]| {
        files.entry(file).or_default().push((ms, reading(groups)));
    };
    let strength = if khugepaged { 2 } else { 3 };
    let mut done = 0;
    for second in 0..60_u64 {
        let ms = 20 + second * 1000;
        let load = if (15..45).contains(&second) {
            2 + second % 5
        } else {
            0
        };
        done += load * strength;
        let mut counters = counters(second, done);
        counters.push(("nr_free_pages", 60_000 - load * 8000));
        if khugepaged {
            counters.extend([("pgscan_khugepaged", done * 200), ("pgsteal_khugepaged", 0)]);
        }
        put(MonitorFile::Vmstat, ms, &[(Reading::WHOLE, &counters)]);
        let stalled: [&[(&str, u64)]; 2] = [
            &[("total_us", done * 24_000)],
            &[("total_us", done * 12_000)],
        ];
        put(
            MonitorFile::PressureMemory,
            ms,
            &[("some", stalled[0]), ("full", stalled[1])],
        );
        let cpu = [
            ("user", 500 + second * 60),
            ("nice", 0),
            ("system", 100 + second * 70),
            ("idle", 900 + second * 60),
            ("iowait", second * 10),
            ("softirq", second),
        ];
        put(MonitorFile::Stat, ms, &[("cpu", &cpu)]);
        let disk = [
            ("reads", done * 70),
            ("read_ms", done * 210),
            ("writes", done * 210),
            ("write_ms", done * 840 * strength),
            ("queue_ms", done * 2940),
        ];
        put(MonitorFile::Diskstats, ms, &[("vda", &disk)]);
    }
    let more = if khugepaged { 3 } else { 1 };
    let cache = |objects: u64, all: u64| {
        [
            ("active_objs", objects),
            ("num_objs", all),
            ("pagesperslab", 1),
            ("num_slabs", all / 16),
        ]
    };
    let hostile = "<b>|`x`\x1b[2J\u{202e}";
    let caches = [
        ("anon_vma", cache(4000 * more, 16_000)),
        (hostile, cache(1, 32)),
        ("vm_area_struct", cache(9000, 9600)),
    ];
    let caches: Vec<(&str, &[(&str, u64)])> = caches
        .iter()
        .map(|(name, cache)| (*name, cache.as_slice()))
        .collect();
    put(MonitorFile::Slabinfo, 60_000, &caches);
    let status = [
        ("RssAnon", 40_000),
        ("RssFile", 8000),
        ("RssShmem", 0),
        ("VmPTE", 160 * more),
    ];
    put(MonitorFile::Status, 60_000, &[("1", &status)]);
    for (ms, running) in [(21, 0), (59_021, 420)] {
        put(
            MonitorFile::ThreadStat,
            ms,
            &[(
                "kswapd0/45",
                &[("utime", 0), ("stime", 10 + running * more)],
            )],
        );
        put(
            MonitorFile::ThreadStat,
            ms + 1,
            &[("cc1/90", &[("utime", 700 + running), ("stime", 0)])],
        );
        put(
            MonitorFile::ThreadStat,
            ms + 2,
            &[("cc1/91", &[("utime", 700 + running), ("stime", 0)])],
        );
        put(
            MonitorFile::ThreadSchedstat,
            ms + 3,
            &[("45", &[("wait_ns", running * 900_000)])],
        );
    }
    let readings = files
        .into_iter()
        .flat_map(|(file, readings)| timed(file, readings));
    Observation {
        readings: readings.collect(),
    }
}

/// Counters of memory management after this much work.
fn counters(second: u64, done: u64) -> Vec<(&'static str, u64)> {
    let (scanned, swapped) = (1000 + done * 4000, 50 + done * 210);
    vec![
        ("pgscan_kswapd", scanned),
        ("pgscan_direct", scanned / 9),
        ("pgsteal_kswapd", scanned / 2),
        ("pgsteal_direct", scanned / 20),
        ("pswpin", swapped / 3),
        ("pswpout", swapped),
        ("nr_vmscan_write", swapped),
        ("pgfault", 90_000 + second * 800),
        ("pgmajfault", 30 + swapped / 90),
        ("allocstall_normal", scanned / 5000),
        ("allocstall_movable", scanned / 700),
        ("workingset_refault_anon", swapped / 4),
        ("workingset_refault_file", scanned / 11),
        ("pgpgin", swapped * 9),
        ("pgpgout", swapped * 16),
    ]
}

/// Returns two newer kernels under a varying load, with all files, and a hostile cache.
pub(crate) fn newer() -> Monitored {
    let (old, new) = (run(false), run(true));
    let samples = |scale: f64| {
        [0.0, 2.0, 1.0, 4.0]
            .map(|more| scale + more * 0.25)
            .to_vec()
    };
    let row = |name: &str, direction, scales: [f64; 2]| SampleRow {
        name: name.to_owned(),
        direction,
        samples: scales.map(samples).to_vec(),
    };
    let rows = vec![
        row("Elapsed-4", Direction::LowerIsBetter, [42.0, 47.0]),
        row("ops-4", Direction::HigherIsBetter, [900.0, 900.25]),
    ];
    let kernel = |head: &str, observation| Watched {
        head: [head.to_owned(), String::new()],
        observation,
    };
    let table = SampleTable {
        title: "kernbench".to_owned(),
        rows,
    };
    Monitored::new(
        &[kernel("6.1.192", &old), kernel("6.12.117", &new)],
        vec![table],
    )
}
