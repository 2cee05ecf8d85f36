//! The report on a written dump: as text, and as JSON.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{Class, Codec, Level, Plan, Written};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;

/// The report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Report {
    schema_version: u32,
    /// The level used.
    level: u8,
    compression: &'static str,
    /// Bytes of a page.
    page_bytes: u64,
    pages: Pages,
    output_bytes: u64,
    complete: bool,
    seconds: Seconds,
    /// How long a running guest was paused (ms); omitted if none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    stood_still_ms: Option<u64>,
    warnings: Vec<String>,
}

/// Numbers of pages.
#[derive(Debug, Serialize, JsonSchema)]
struct Pages {
    memory: u64,
    cache: u64,
    private_cache: u64,
    user: u64,
    free: u64,
    /// Among the free ones, those on free lists of processors.
    free_listed: u64,
    poisoned: u64,
    offline: u64,
    /// Pages whose records could not be read; kept.
    unknown: u64,
    written: u64,
    /// Among the written ones.
    zero: u64,
    /// Among the written ones, those equal to another.
    shared: u64,
    unreadable: u64,
}

/// Durations (s).
#[derive(Debug, Serialize, JsonSchema)]
struct Seconds {
    filter: f64,
    write: f64,
}

/// The input of a report.
#[derive(Debug)]
pub(crate) struct Facts<'f> {
    pub(crate) level: Level,
    pub(crate) codec: Codec,
    pub(crate) page: u64,
    pub(crate) plan: &'f Plan<'f>,
    pub(crate) written: &'f Written,
    pub(crate) complete: bool,
    pub(crate) filter: Duration,
    pub(crate) write: Duration,
    /// How long a running guest was paused.
    pub(crate) stood_still: Option<Duration>,
    pub(crate) warnings: Vec<String>,
}

impl Report {
    pub(crate) fn new(facts: Facts<'_>) -> Self {
        let counts = facts.plan.counts();
        let written = facts.written;
        Self {
            schema_version: SCHEMA_VERSION,
            level: facts.level.number(),
            compression: facts.codec.name(),
            page_bytes: facts.page,
            pages: Pages {
                memory: facts.plan.memory(),
                cache: counts.of_class(Class::Cache),
                private_cache: counts.of_class(Class::PrivateCache),
                user: counts.of_class(Class::User),
                free: counts.of_class(Class::Free),
                free_listed: counts.listed,
                poisoned: counts.of_class(Class::Poisoned),
                offline: counts.of_class(Class::Offline),
                unknown: counts.unknown,
                written: written.pages,
                zero: written.zero,
                shared: written.twins,
                unreadable: written.unreadable,
            },
            output_bytes: written.bytes,
            complete: facts.complete,
            seconds: Seconds {
                filter: facts.filter.as_secs_f64(),
                write: facts.write.as_secs_f64(),
            },
            stood_still_ms: facts
                .stood_still
                .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
            warnings: facts.warnings,
        }
    }

    /// Returns the JSON document.
    pub(crate) fn json(&self) -> String {
        // Numbers and strings only: serialising cannot fail.
        serde_json::to_string_pretty(self)
            .map(|text| text + "\n")
            .unwrap_or_default()
    }

    /// Returns a one-line summary.
    pub(crate) fn line(&self) -> String {
        let pages = &self.pages;
        // With --dry-run there is no file.
        let into = match self.output_bytes {
            0 => String::new(),
            bytes => format!(" into {}", size(bytes)),
        };
        format!(
            "{} of {} pages {}written, {} of memory{into}{}{}",
            pages.written,
            pages.memory,
            if into.is_empty() { "would be " } else { "" },
            size(pages.memory * self.page_bytes),
            self.stood_still(),
            if self.complete {
                ""
            } else {
                "; the file says that it is INCOMPLETE"
            },
        )
    }

    fn stood_still(&self) -> String {
        self.stood_still_ms
            .map(|time| format!("; the guest was paused for {time} ms"))
            .unwrap_or_default()
    }

    /// Returns a table of written and excluded pages.
    pub(crate) fn table(&self) -> String {
        let pages = &self.pages;
        let rows = [
            ("memory", pages.memory),
            ("excluded: page cache", pages.cache),
            ("excluded: page cache, private", pages.private_cache),
            ("excluded: user data", pages.user),
            ("excluded: free", pages.free),
            ("  of these on per-CPU lists", pages.free_listed),
            ("excluded: poisoned", pages.poisoned),
            ("excluded: offline", pages.offline),
            ("kept: record unreadable", pages.unknown),
            ("written", pages.written),
            ("  of these zero, stored once", pages.zero),
            ("  of these equal to another page", pages.shared),
            ("not readable", pages.unreadable),
        ];
        let mut text = String::new();
        for (name, count) in rows {
            text.extend([format!(
                "{name:<32} {count:>14} pages {:>12}\n",
                size(count * self.page_bytes)
            )]);
        }
        text + &format!(
            "level {}, compression {}; filter {:.3} s, write {:.3} s{}\n",
            self.level,
            self.compression,
            self.seconds.filter,
            self.seconds.write,
            self.stood_still(),
        )
    }
}

pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut rest = bytes as f64;
    while rest >= 1024.0 && unit + 1 < UNITS.len() {
        rest /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} bytes")
    } else {
        format!("{rest:.1} {}", UNITS[unit])
    }
}
