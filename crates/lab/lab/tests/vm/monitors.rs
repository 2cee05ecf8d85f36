//! Monitors: what the kernel counts while a workload runs, separate from measurements.

use model::{MonitorFile, Observation, Phase, Reading};

use crate::{build, declared, first, kernels, lab, measure, samples};

/// Returns the growth of a counter of /proc/vmstat.
fn grown(observation: &Observation, key: &str) -> u64 {
    let counters = observation
        .growth(MonitorFile::Vmstat, Reading::WHOLE)
        .unwrap();
    counters.get(key).unwrap()
}

#[test]
fn monitors_count_workloads_without_disturbing_measurements() {
    for kernel in kernels() {
        let build = build(kernel);
        let faults = declared("fault-anon");
        let before = measure(lab(), &build, std::slice::from_ref(faults));
        let seen = lab()
            .observe(first(&build, faults), 0)
            .unwrap()
            .into_result()
            .unwrap();
        // Each operation is a fault.
        let operations = faults.operations * u64::from(faults.warm_up + faults.iterations);
        let counted = grown(&seen, "pgfault");
        assert!(
            (operations..operations + operations / 10).contains(&counted),
            "{kernel}: {counted} of {operations}"
        );
        // A workload that takes no memory has none.
        let calls = lab()
            .observe(first(&build, declared("getppid")), 0)
            .unwrap()
            .into_result()
            .unwrap();
        assert!(grown(&calls, "pgfault") < operations / 10, "{kernel}");
        assert_eq!(
            lab()
                .observe(first(&build, faults), 0)
                .unwrap()
                .into_result()
                .unwrap(),
            seen,
            "{kernel}: the same again"
        );
        let after = measure(lab(), &build, std::slice::from_ref(faults));
        assert_eq!(samples(&before[0]), samples(&after[0]), "{kernel}");
    }
}

#[test]
fn interval_samples_monitors_during_the_workload() {
    let build = build("deb:6.12");
    let seen = lab()
        .observe(first(&build, declared("file-create")), 50)
        .unwrap()
        .into_result()
        .unwrap();
    let times: Vec<u64> = seen
        .readings
        .iter()
        .filter(|timed: &&model::TimedReading| {
            timed.file == MonitorFile::Vmstat && timed.phase == Phase::Interval
        })
        .map(|timed| timed.at_ns)
        .collect();
    assert!(times.len() > 3, "{times:?}");
    assert!(
        times.windows(2).all(|pair| pair[1] - pair[0] >= 50_000_000),
        "{times:?}"
    );
    assert!(
        seen.readings
            .iter()
            .any(|timed| timed.file == MonitorFile::ThreadSchedstat),
        "kswapd is watched"
    );
}
