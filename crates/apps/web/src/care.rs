//! Metrics of what an operator has to care for: the room that is left, the last backup, the last
//! run.

use model::UnixTime;
use store::{Store, StoreError};

/// Returns the metrics; those without a value are left out, as Prometheus expects.
pub(crate) fn metrics(store: &Store) -> Result<String, StoreError> {
    let time = |time: Option<UnixTime>| time.map(|time| time.seconds().unsigned_abs());
    let numbers: [(&str, &str, Option<u64>); 3] = [
        (
            "marvin_disk_free_bytes",
            "Room that is left for the data directory.",
            store.free_bytes(),
        ),
        (
            "marvin_backup_timestamp_seconds",
            "When the last backup of the data directory was made.",
            time(store.last_backup()),
        ),
        (
            "marvin_last_run_timestamp_seconds",
            "When the newest run began.",
            time(store.newest_start()?),
        ),
    ];
    let text = |(name, help, value): (&str, &str, Option<u64>)| {
        value.map_or_else(String::new, |value| {
            format!("# HELP {name} {help}\n# TYPE {name} gauge\n{name} {value}\n")
        })
    };
    Ok(numbers.map(text).concat())
}
