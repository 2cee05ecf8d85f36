//! The kernels' symbols: copied from the guest once per build and set of modules, as each set lies
//! elsewhere in memory, stored in the data directory, read once per process.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ingest::{Symbols, symbols_text};
use machine::{MachineError, Observe};
use model::{Availability, Build, BuildId};
use subprocess::{Shared, replace_file};
use wire::Task;

use crate::job::BootedBuild;
use crate::records::Records;

/// The end of a file's name. Files without it and with `.data`, of earlier versions, have fewer
/// symbols, and those with `.all` may have the modules of another guest.
const ENDING: &str = ".symbols";

/// Functions in different directories of every kernel: fs, mm and kernel/sched. Their file names
/// reveal the top of the source tree.
pub(crate) const ANCHORS: [&str; 3] = ["vfs_read", "handle_mm_fault", "schedule"];

/// The functions of a build.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) symbols: Symbols,
    /// The symbols that the tracer needs.
    pub(crate) marks: String,
    /// The functions whose entries it counts beside shared lines.
    pub(crate) watched: String,
    /// What dynamic memory is named by, read when it is first needed.
    records: OnceLock<Records>,
    boot_file: PathBuf,
}

/// Symbols, or why there are none.
pub(crate) type Known = Arc<Availability<Named>>;

/// Why there are no counts: QEMU.
const NO_PLUGINS: &str = "this QEMU was built without plugins (--enable-plugins), so nothing is counted by function, and \
on a busy host a number may rarely be off; Debian's has them";

/// Why there are no counts: the machine.
const NO_COUNTS: &str = "this machine counts no instructions";

/// A build, and the hash of the modules that its guest carries.
type Key = (BuildId, Option<String>);

/// One slot per key, so that threads can load two builds in parallel.
type Slot = Arc<Shared<Option<Known>>>;

/// The symbols of all builds of a data directory.
#[derive(Debug)]
pub(crate) struct SymbolCache {
    folder: PathBuf,
    slots: Shared<BTreeMap<Key, Slot>>,
}

impl SymbolCache {
    /// Stores symbols in `folder`, created when needed.
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            slots: Shared::default(),
        }
    }

    /// Returns the symbols of a guest, and whether this is their first use in this process.
    pub(crate) fn get(&self, on: BootedBuild<'_>) -> Result<(Known, bool), MachineError> {
        let slot = {
            let mut slots = self.slots.lock();
            let key = (on.build.id.clone(), on.modules.map(str::to_owned));
            Arc::clone(slots.entry(key).or_default())
        };
        // The list of builds is unlocked by now: another build can be read while a guest sends the
        // symbols of this one.
        let mut slot = slot.lock();
        if let Some(known) = &*slot {
            return Ok((Arc::clone(known), false));
        }
        let known = Arc::new(self.find(on)?);
        Ok((Arc::clone(slot.insert(known)), true))
    }

    /// Returns the stored symbols of a build, without asking a guest: those of the kernel are the
    /// same whatever modules it carried.
    pub(crate) fn stored(&self, build: &Build) -> Option<Named> {
        let plain = self.file(build, None);
        let of_build = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(build.id.hex()) && name.ends_with(ENDING))
        };
        let mut others: Vec<PathBuf> = fs::read_dir(&self.folder)
            .ok()?
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(of_build)
            .collect();
        others.sort();
        let mut all = std::iter::once(plain).chain(others);
        all.find_map(|path| Named::parse(&fs::read_to_string(path).ok()?, build).ok())
    }

    fn find(&self, on: BootedBuild<'_>) -> Result<Availability<Named>, MachineError> {
        let build = on.build;
        let can = on.machine.capabilities();
        if !can.counts && !can.sharing {
            let why = if on.machine.identity().capabilities().counts {
                NO_PLUGINS
            } else {
                NO_COUNTS
            };
            return Ok(Availability::Unavailable(why.to_owned()));
        }
        let path = self.file(build, on.modules);
        let stored = fs::read_to_string(&path).ok();
        if let Some(named) = stored.and_then(|text| Named::parse(&text, build).ok()) {
            return Ok(Availability::Available(named));
        }
        let stream = match on
            .booted
            .run(&on.plain_job(Task::Symbols), Observe::Nothing)?
            .stream
        {
            Ok(stream) => stream,
            Err(failure) => return Ok(Availability::Unavailable(failure.reason.to_string())),
        };
        let text = symbols_text(&stream);
        let named = Named::parse(&text, build);
        if named.is_ok() {
            // If they cannot be stored, the next process asks the guest again.
            drop(self.keep(&path, &text));
        }
        Ok(named.into())
    }

    fn file(&self, build: &Build, modules: Option<&str>) -> PathBuf {
        let build = build.id.hex();
        let name = modules.map_or_else(
            || format!("{build}{ENDING}"),
            |modules| format!("{build}-{modules}{ENDING}"),
        );
        self.folder.join(name)
    }

    fn keep(&self, path: &std::path::Path, text: &str) -> std::io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let new = path.with_extension("new");
        replace_file(path, &new, text)
    }
}

impl Named {
    pub(crate) fn parse(text: &str, build: &Build) -> Result<Self, String> {
        let mut symbols = Symbols::parse(text).map_err(|error| error.to_string())?;
        let anchors: Vec<u64> = ANCHORS
            .iter()
            .filter_map(|name| symbols.address(name))
            .collect();
        symbols.tell_apart(|addresses| {
            let all: Vec<u64> = addresses.iter().chain(&anchors).copied().collect();
            let places = kernel::source_places(&build.boot_file().path, &all);
            places
                .into_iter()
                .take(addresses.len())
                .map(|place| place.map(|place| place.file))
                .collect()
        });
        // Without one that can be read, data has the names that the kernel gives.
        let map = build.symbols.as_ref();
        if let Some(map) = map.and_then(|map| fs::read_to_string(&map.path).ok()) {
            symbols.add_data_of_map(&map);
        }
        let marks = symbols.marks();
        let watched = symbols.watched();
        let boot_file = build.boot_file().path.clone();
        Ok(Self {
            symbols,
            marks,
            watched,
            records: OnceLock::new(),
            boot_file,
        })
    }

    /// Returns what names the kernel's dynamic memory.
    pub(crate) fn records(&self) -> &Records {
        self.records.get_or_init(|| Records::read(&self.boot_file))
    }
}
