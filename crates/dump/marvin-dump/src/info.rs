//! Describes a file, and prints the kernel log in it.

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{Dump, DumpError, Io, Log, LogPart, MemoryMap, Plan, Reader, live, names};

use crate::arguments::Look;
use crate::limits;
use crate::report::size;
use crate::save::open;
use crate::{Exit, Host};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;

/// The description of a file.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    schema_version: u32,
    format: &'static str,
    flattened: bool,
    complete: bool,
    machine: &'static str,
    release: String,
    version: String,
    node: String,
    /// Seconds since 1970; `None` if the note does not have it.
    crash_time: Option<u64>,
    processors: usize,
    page_bytes: u64,
    memory_pages: u64,
    stored_pages: u64,
    /// The level recorded by its writer; `None` for ELF.
    level: Option<u32>,
    /// Whether its pages were copied while the guest ran; omitted if not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    live: bool,
    /// Which pages of its level were not excluded, and why; omitted if all were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_excluded: Vec<String>,
    /// Why it cannot be filtered; `None` if it can.
    not_filterable: Option<String>,
}

pub(crate) fn run(wish: &Look, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let dump = open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())?;
    let answer = Answer::new(&dump)?;
    host.answer_as(wish.json, &answer, &answer.text())?;
    Ok(Exit::Fine)
}

pub(crate) fn dmesg(wish: &Look, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let dump = open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())?;
    let Log { text, missing } = Log::read(&mut Reader::new(&dump, Io::Read), LogPart::All)?;
    if wish.json {
        let lines: Vec<&str> = text.lines().collect();
        let json = serde_json::json!({
            "schema_version": SCHEMA_VERSION,
            "lines": lines,
            "missing": missing,
        });
        host.answer(&format!("{json:#}\n"))?;
    } else {
        host.answer(&text)?;
    }
    Ok(report_missing(&missing, host))
}

/// Warns of what is missing in a log; returns the exit code.
pub(crate) fn report_missing(missing: &[String], host: &mut Host<'_>) -> Exit {
    for line in missing {
        host.say(&format!("warning: the log is not complete: {line}"));
    }
    if missing.is_empty() {
        Exit::Fine
    } else {
        Exit::Incomplete
    }
}

impl Answer {
    fn new(dump: &Dump) -> Result<Self, DumpError> {
        let mut reader = Reader::new(dump, Io::Read);
        let work = limits::reading_work(1, false)?;
        let plan = Plan::make(dump, None, &work)?;
        let [_, node, release, version, ..] = names(&mut reader);
        Ok(Self {
            schema_version: SCHEMA_VERSION,
            format: dump.format().name(),
            flattened: dump.flattened(),
            complete: !dump.incomplete(),
            machine: dump.machine().name(),
            release,
            version,
            node,
            crash_time: dump
                .info()
                .text("CRASHTIME")
                .and_then(|time| time.parse().ok()),
            processors: dump.processors(),
            page_bytes: dump.page_size(),
            memory_pages: plan.memory(),
            stored_pages: plan.kept_count(),
            level: dump.level(),
            live: live::is_live(dump),
            not_excluded: dump.not_excluded(),
            not_filterable: MemoryMap::find(&mut reader)
                .err()
                .map(|error| error.to_string()),
        })
    }

    fn with_size(&self, pages: u64) -> String {
        format!("{pages} pages, {}", size(pages * self.page_bytes))
    }

    fn text(&self) -> String {
        let format = format!(
            "{}{}",
            self.format,
            if self.flattened { ", flattened" } else { "" }
        );
        let complete = if self.complete {
            "yes"
        } else {
            "NO: the file is truncated, or its writer did not finish"
        };
        let mut rows = vec![
            ("format", format),
            ("complete", complete.to_owned()),
            (
                "kernel",
                format!("{} {} {}", self.release, self.machine, self.version),
            ),
            ("node", self.node.clone()),
            ("processors", self.processors.to_string()),
            ("memory", self.with_size(self.memory_pages)),
            (
                "in the file",
                format!(
                    "{}{}",
                    if self.complete { "" } else { "at most " },
                    self.with_size(self.stored_pages)
                ),
            ),
        ];
        rows.extend(
            self.crash_time
                .map(|time| ("crashed", format!("{time} s after 1970"))),
        );
        rows.extend(self.level.map(|level| ("level", level.to_string())));
        rows.extend(self.live.then(|| {
            (
                "live",
                "yes: its pages were copied while the guest ran".to_owned(),
            )
        }));
        let kept = self.not_excluded.iter();
        rows.extend(kept.map(|line| ("not excluded", line.clone())));
        let filter = self
            .not_filterable
            .as_ref()
            .map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
        rows.push(("can be filtered", filter));
        rows.into_iter()
            .map(|(name, value)| format!("{name:<16} {value}\n"))
            .collect()
    }
}
