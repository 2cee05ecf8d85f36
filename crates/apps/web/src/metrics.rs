//! Metrics for Prometheus: a few numbers about the lab, in its text format.

use results::HistorySnapshot;

/// Returns the metrics; `trouble` means that the last read of the store failed.
pub(crate) fn text(snapshot: &HistorySnapshot, trouble: bool) -> String {
    let history = &snapshot.history;
    let repeats = history.repeats();
    let open = snapshot
        .alerts
        .iter()
        .filter(|triaged| triaged.is_open())
        .count();
    let all: Vec<_> = history.machine_indexes().collect();
    let trust = history.trust(&all);
    let numbers: [(&str, &str, &str, usize); 11] = [
        (
            "marvin_runs_total",
            "counter",
            "Stored runs.",
            history.run_count(),
        ),
        (
            "marvin_kernels",
            "gauge",
            "Builds with results.",
            history.order().len(),
        ),
        (
            "marvin_machines",
            "gauge",
            "Machines with results.",
            history.machines().len(),
        ),
        (
            "marvin_series",
            "gauge",
            "Series of a workload on a machine.",
            history.series().count(),
        ),
        (
            "marvin_alerts",
            "gauge",
            "Performance changes, grouped by the kernel that introduced them.",
            snapshot.alerts.len(),
        ),
        (
            "marvin_alerts_open",
            "gauge",
            "Alerts with an open regression.",
            open,
        ),
        (
            "marvin_results_repeated_total",
            "counter",
            "Results of measurements repeated with equal input.",
            repeats.iter().map(|machine| machine.again).sum(),
        ),
        (
            "marvin_results_agreeing_total",
            "counter",
            "Repeated results that were equal to the last bit.",
            repeats.iter().map(|machine| machine.agree).sum(),
        ),
        (
            "marvin_self_comparisons",
            "gauge",
            "Comparisons of a kernel with itself in the last 90 days.",
            trust.compared,
        ),
        (
            "marvin_false_alarms",
            "gauge",
            "Comparisons of a kernel with itself that found a difference.",
            trust.alarms,
        ),
        (
            "marvin_store_unreadable",
            "gauge",
            "1 if the last read of the store failed.",
            usize::from(trouble),
        ),
    ];
    numbers
        .map(|(name, kind, help, value)| {
            format!("# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n")
        })
        .concat()
}
