//! Reads every page of a dump.

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{DumpError, check};

use crate::arguments::Look;
use crate::limits;
use crate::save::open;
use crate::{Exit, Host};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;

/// What reading all pages showed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    schema_version: u32,
    /// Pages that were read.
    pages: u64,
    /// Those that are damaged or missing.
    damaged_pages: u64,
    /// The number of the first of these; `None` if there is none.
    first_damaged: Option<u64>,
    /// Why it cannot be read.
    why: Option<String>,
    /// Whether the file is complete by its own mark.
    complete: bool,
}

pub(crate) fn run(wish: &Look, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let dump = open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let damage = check(&dump, &limits::reading_work(threads, false)?)?;
    let checked = Checked {
        schema_version: SCHEMA_VERSION,
        pages: damage.read,
        damaged_pages: damage.pages,
        first_damaged: damage.first.as_ref().map(|(page, _)| *page),
        why: damage.first.as_ref().map(|(_, error)| error.to_string()),
        complete: !dump.incomplete(),
    };
    host.answer_as(wish.json, &checked, &checked.text())?;
    for (is_damaged, what) in [
        (dump.are_headers_damaged(), "headers"),
        (dump.are_notes_damaged(), "notes"),
    ] {
        if is_damaged {
            host.say(&format!(
                "error: the {what} are damaged: their checksum is wrong"
            ));
        }
    }
    if dump.are_headers_damaged() || dump.are_notes_damaged() {
        return Ok(Exit::Differs);
    }
    Ok(match (damage.pages, dump.incomplete()) {
        (0, false) => Exit::Fine,
        (0, true) => Exit::Incomplete,
        _ => Exit::Differs,
    })
}

impl Checked {
    fn text(&self) -> String {
        let mut text = match (&self.why, self.first_damaged) {
            (Some(why), Some(first)) => {
                format!(
                    "{} of {} pages are damaged, the first is {first:#x}: {why}\n",
                    self.damaged_pages, self.pages
                )
            }
            _ => format!("all {} pages can be read\n", self.pages),
        };
        if !self.complete {
            text += "the file is truncated, or its writer did not finish\n";
        }
        text
    }
}
