//! Counts pages by use: of a dump, or of the running kernel by its /proc/kcore.

use std::io::ErrorKind;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use vmcore::{Class, DumpError, Progress, Usage};

use crate::arguments::Look;
use crate::limits;
use crate::progress_printer::{ProgressPrinter, Screen};
use crate::report::size;
use crate::save::open;
use crate::{Exit, Host};

/// Version of the JSON document: raised when a field changes its meaning or disappears.
const SCHEMA_VERSION: u32 = 1;
/// The running kernel's memory, as an ELF file.
const LIVE: &str = "/proc/kcore";

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    schema_version: u32,
    /// Bytes of a page.
    page_bytes: u64,
    pages: Pages,
}

/// Numbers of pages.
#[derive(Debug, Serialize, JsonSchema)]
struct Pages {
    memory: u64,
    zero: u64,
    cache: u64,
    private_cache: u64,
    user: u64,
    free: u64,
    poisoned: u64,
    offline: u64,
    kernel: u64,
    unreadable: u64,
    /// Excluded from this dump already.
    missing: u64,
}

pub(crate) fn run(wish: &Look, screen: Screen, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let dump = open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())
        .map_err(|error| explain_kcore(&wish.files, error))?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = limits::reading_work(threads, true)?;
    let progress = Progress::default();
    let mut progress_printer = ProgressPrinter {
        screen,
        messages: host.messages,
        clock: host.clock,
    };
    let usage = progress_printer.during("counting", &progress, || {
        Usage::count(&dump, &work, &progress)
    })?;
    if let Some(why) = &usage.why {
        host.say(&format!(
            "warning: {} pages cannot be read: {why}",
            usage.unreadable
        ));
    }
    if let Some(why) = &usage.counts.why {
        let count = usage.counts.unknown;
        host.say(&format!("warning: {count} pages count as the kernel's because their records cannot be read: {why}"));
    }
    let answer = Answer::new(&usage, dump.page_size());
    host.answer_as(wish.json, &answer, &answer.text())?;
    Ok(Exit::Fine)
}

/// Adds a hint for the running kernel's file, which most hosts lack or protect.
fn explain_kcore(files: &[impl AsRef<Path>], error: DumpError) -> DumpError {
    let live = files.iter().any(|path| path.as_ref() == Path::new(LIVE));
    let DumpError::Io { source, .. } = &error else {
        return error;
    };
    let why = match source.kind() {
        _ if !live => return error,
        ErrorKind::NotFound => "the kernel lacks CONFIG_PROC_KCORE, or a container hides the file",
        ErrorKind::PermissionDenied => {
            "it needs root (CAP_SYS_RAWIO) and a kernel without lockdown"
        }
        _ => return error,
    };
    DumpError::Usage(format!("cannot read {LIVE}: {why}; name a dump instead"))
}

impl Answer {
    fn new(usage: &Usage, page_bytes: u64) -> Self {
        let pages = Pages {
            memory: usage.memory,
            zero: usage.zero,
            cache: usage.counts.of_class(Class::Cache),
            private_cache: usage.counts.of_class(Class::PrivateCache),
            user: usage.counts.of_class(Class::User),
            free: usage.counts.of_class(Class::Free),
            poisoned: usage.counts.of_class(Class::Poisoned),
            offline: usage.counts.of_class(Class::Offline),
            kernel: usage.kernel,
            unreadable: usage.unreadable,
            missing: usage.missing,
        };
        Self {
            schema_version: SCHEMA_VERSION,
            page_bytes,
            pages,
        }
    }

    fn text(&self) -> String {
        let pages = &self.pages;
        let rows = [
            ("zero", "1", pages.zero),
            ("page cache", "2", pages.cache),
            ("page cache, private data", "4", pages.private_cache),
            ("user data", "8", pages.user),
            ("free", "16", pages.free),
            ("poisoned", "always", pages.poisoned),
            ("offline", "always", pages.offline),
            ("other kernel data", "never", pages.kernel),
            ("not readable", "never", pages.unreadable),
            ("missing in this dump", "", pages.missing),
            ("in all", "", pages.memory),
        ];
        let mut text = format!(
            "{:<26} {:>14} {:>12}  excluded by level\n",
            "kind", "pages", "size"
        );
        for (name, level, count) in rows {
            let line = format!(
                "{name:<26} {count:>14} {:>12}  {level}",
                size(count * self.page_bytes)
            );
            text.extend([line.trim_end(), "\n"]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};
    use std::path::PathBuf;

    use vmcore::DumpError;

    use super::{LIVE, explain_kcore};

    fn explained(name: &str, kind: ErrorKind) -> String {
        let error = DumpError::Io {
            path: PathBuf::from(name),
            action: "read",
            offset: 0,
            source: Error::from(kind),
        };
        explain_kcore(&[name], error).to_string()
    }

    #[test]
    fn unusable_proc_kcore_is_explained() {
        insta::assert_snapshot!(explained(LIVE, ErrorKind::NotFound), @"cannot read /proc/kcore: the kernel lacks CONFIG_PROC_KCORE, or a container hides the file; name a dump instead");
        insta::assert_snapshot!(explained(LIVE, ErrorKind::PermissionDenied), @"cannot read /proc/kcore: it needs root (CAP_SYS_RAWIO) and a kernel without lockdown; name a dump instead");
        insta::assert_snapshot!(explained("vmcore", ErrorKind::PermissionDenied), @"vmcore could not be read at offset 0x0: permission denied");
    }
}
