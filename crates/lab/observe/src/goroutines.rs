//! Goroutines of Go that wait: where, and for what, from the runtime's own list in
//! `/proc/PID/mem`, without stopping it. A stack that changes while it is read ends there.
//!
//! The list is `runtime.allgs` (src/runtime/proc.go). Where the fields of a goroutine are
//! (src/runtime/runtime2.go: `g`, `gobuf`), the program's own debugging information says; its
//! functions keep frame pointers on amd64 (cmd/internal/obj/x86). Programs that were linked without
//! symbols (`-ldflags=-s`) tell nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::FileExt;

use explain::facts::Parked;
use flate2::read::ZlibDecoder;
use gimli::{
    AttributeValue, DebuggingInformationEntry, Dwarf, DwarfSections, EndianSlice, LittleEndian,
    SectionId, Unit,
};
use object::{CompressionFormat, Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::memory::{self, word, words};
use crate::rounds::Process;
use crate::symbols::Modules;

/// Goroutines that are read of a process in a look, frames of each, and different stacks of all.
const GOROUTINES_MAX: u64 = 128;
const DEPTH: usize = 24;
const STACKS_MAX: usize = 4096;
/// The most that is read of a section of debugging information (bytes).
const SECTION_MAX: u64 = 96 << 20;
/// The most reasons that a runtime has to wait, and the longest name of one (bytes).
const REASONS_MAX: u64 = 64;
const REASON: u64 = 64;
/// The state of a goroutine that waits (src/runtime/runtime2.go: `_Gwaiting`).
const WAITING: u32 = 4;
/// How much of a program has the note of Go's linker, and the type and the name of that.
const BEGIN: u64 = 32 << 10;
const NOTE: [u8; 8] = *b"\x04\0\0\0Go\0\0";
/// More is no goroutine (bytes).
const SIZE_MAX: u64 = 4096;

/// What a program of Go has for who reads its goroutines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Runtime {
    /// The address of the list of all goroutines.
    all: u64,
    /// The address of the names of reasons to wait, and how many there are.
    reasons: Option<(u64, u64)>,
    layout: Layout,
}

/// Where fields are in a goroutine (bytes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Layout {
    /// The lowest and, behind it, the highest address of the stack.
    stack: u64,
    counter: u64,
    frame: u64,
    status: u64,
    reason: u64,
}

type Slice<'d> = EndianSlice<'d, LittleEndian>;

impl Runtime {
    /// Finds them in a program; `None` if it is not of Go or tells nothing.
    pub(crate) fn read(file: &object::File) -> Option<Self> {
        let symbol = |name: &str| file.symbols().find(|symbol| symbol.name() == Ok(name));
        let all = symbol("runtime.allgs")?.address();
        let reasons = symbol("runtime.waitReasonStrings");
        let reasons = reasons.map(|reasons| (reasons.address(), reasons.size() / 16));
        Some(Self {
            all,
            reasons,
            layout: Layout::read(file)?,
        })
    }
}

impl Layout {
    fn read(file: &object::File) -> Option<Self> {
        let load = |id: SectionId| -> Result<Vec<u8>, gimli::Error> {
            let section = file.section_by_name(id.name());
            let bytes = section.and_then(|section| plain(&section));
            Ok(bytes.unwrap_or_default())
        };
        let sections = DwarfSections::load(load).ok()?;
        let dwarf = sections.borrow(|bytes| Slice::new(bytes, LittleEndian));
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            let unit = dwarf.unit(header).ok()?;
            // The part in assembly is another one of this name.
            if unit.name.is_some_and(|name| name.slice() == b"runtime")
                && let Some(found) = Self::find(&dwarf, &unit)
            {
                return Some(found);
            }
        }
        None
    }

    fn find(dwarf: &Dwarf<Slice>, unit: &Unit<Slice>) -> Option<Self> {
        let mut structures: BTreeMap<&str, BTreeMap<String, u64>> = BTreeMap::new();
        let mut around = None;
        let mut entries = unit.entries();
        while let Ok(Some(entry)) = entries.next_dfs() {
            match entry.tag() {
                gimli::DW_TAG_structure_type => {
                    let name = name(dwarf, unit, entry);
                    let mut wanted = ["runtime.g", "runtime.gobuf"].into_iter();
                    around = wanted.find(|one| name.as_deref() == Some(one));
                }
                gimli::DW_TAG_member => {
                    let place = entry
                        .attr_value(gimli::DW_AT_data_member_location)
                        .and_then(|value| value.udata_value());
                    if let (Some(around), Some(name), Some(place)) =
                        (around, name(dwarf, unit, entry), place)
                    {
                        structures.entry(around).or_default().insert(name, place);
                    }
                }
                _ => around = None,
            }
        }
        let field = |structure: &str, name: &str| structures.get(structure)?.get(name).copied();
        let saved = field("runtime.g", "sched")?;
        let layout = Self {
            stack: field("runtime.g", "stack")?,
            counter: saved.checked_add(field("runtime.gobuf", "pc")?)?,
            frame: saved.checked_add(field("runtime.gobuf", "bp")?)?,
            status: field("runtime.g", "atomicstatus")?,
            reason: field("runtime.g", "waitreason")?,
        };
        (layout.size() <= SIZE_MAX).then_some(layout)
    }

    /// Returns how much is read of a goroutine.
    fn size(&self) -> u64 {
        let Self {
            stack,
            counter,
            frame,
            status,
            reason,
        } = *self;
        let last = [stack.saturating_add(8), counter, frame, status, reason];
        last.into_iter().max().unwrap_or_default().saturating_add(8)
    }
}

fn name(
    dwarf: &Dwarf<Slice>,
    unit: &Unit<Slice>,
    entry: &DebuggingInformationEntry<Slice>,
) -> Option<String> {
    let name: AttributeValue<Slice> = entry.attr_value(gimli::DW_AT_name)?;
    let name = dwarf.attr_string(unit, name).ok()?;
    Some(name.to_string_lossy().into_owned())
}

/// Returns what is in a section, which Go compresses.
fn plain(section: &object::Section) -> Option<Vec<u8>> {
    let data = section.compressed_data().ok()?;
    match data.format {
        CompressionFormat::None => Some(data.data.to_vec()),
        CompressionFormat::Zlib if data.uncompressed_size <= SECTION_MAX => {
            let mut bytes = Vec::new();
            let decoder = ZlibDecoder::new(data.data).take(SECTION_MAX);
            { decoder }.read_to_end(&mut bytes).ok()?;
            Some(bytes)
        }
        _ => None,
    }
}

/// Goroutines of a process that waited at the same place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    reason: String,
    /// Where they would go on, and the calls above.
    stack: Vec<u64>,
}

/// What was seen of the goroutines of a process.
#[derive(Debug, Default)]
struct Seen {
    /// The program that was looked at, and whether it is of Go.
    program: String,
    is_of_go: bool,
    looks: u64,
    /// Goroutines at a place, summed over all looks.
    places: BTreeMap<Place, u64>,
    reasons: Option<Vec<String>>,
}

/// The goroutines of a program.
#[derive(Debug, Default)]
pub(crate) struct Goroutines(BTreeMap<u32, Seen>);

impl Goroutines {
    /// Reads the goroutines of a process, if it is a program of Go.
    pub(crate) fn look(&mut self, id: u32, process: &Process, modules: &mut Modules) {
        let seen = self.0.entry(id).or_default();
        if seen.program != process.program {
            seen.program.clone_from(&process.program);
            seen.is_of_go = is_of_go(id);
        }
        if !seen.is_of_go {
            return;
        }
        let mut own = process
            .maps
            .iter()
            .filter(|map| map.path == process.program);
        let found = own.find_map(|mapping| modules.goroutines(mapping));
        if let (Some((runtime, base)), Some(memory)) = (found, memory::open(id)) {
            seen.look(&memory, &runtime, base);
        }
    }

    /// Returns where goroutines waited, with the functions of their stacks, most of them first.
    pub(crate) fn parked(
        &self,
        processes: &BTreeMap<u32, Process>,
        modules: &mut Modules,
    ) -> Vec<Parked> {
        let mut named: BTreeMap<(u32, &str, Vec<String>), u64> = BTreeMap::new();
        for (process, seen) in &self.0 {
            let Some(of) = processes.get(process) else {
                continue;
            };
            for (place, goroutines) in &seen.places {
                let stack = modules.name_all(&of.maps, &of.program, &place.stack);
                let sum = named.entry((*process, &place.reason, stack)).or_default();
                *sum = sum.saturating_add(*goroutines);
            }
        }
        let looks = |process: &u32| self.0.get(process).map_or(1, |seen| seen.looks.max(1));
        let parked = |((process, reason, stack), goroutines): ((u32, &str, _), u64)| Parked {
            process,
            reason: reason.to_owned(),
            stack,
            number: goroutines as f64 / looks(&process) as f64,
        };
        let mut parked: Vec<Parked> = named.into_iter().map(parked).collect();
        parked.sort_by(|one, other| other.number.total_cmp(&one.number));
        parked
    }
}

impl Seen {
    fn look(&mut self, memory: &File, runtime: &Runtime, base: u64) {
        let at = |address: u64| base.wrapping_add(address);
        let Some([list, count]) = words(memory, at(runtime.all)) else {
            return;
        };
        if self.reasons.is_none() {
            let (first, count) = runtime.reasons.unwrap_or_default();
            let name = |index| text(memory, at(first).wrapping_add(16 * index));
            let names = (0..count.min(REASONS_MAX)).map(name);
            self.reasons = Some(names.map(Option::unwrap_or_default).collect());
        }
        self.looks += 1;
        let step = count.div_ceil(GOROUTINES_MAX).max(1);
        for index in (0..count).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
            let Some(goroutine) = word(memory, list.wrapping_add(index.wrapping_mul(8))) else {
                return;
            };
            let Some(place) = self.place(memory, runtime.layout, goroutine) else {
                continue;
            };
            if self.places.len() < STACKS_MAX || self.places.contains_key(&place) {
                let goroutines = self.places.entry(place).or_default();
                *goroutines = goroutines.saturating_add(step);
            }
        }
    }

    /// Returns where a goroutine waits; `None` if it does not.
    fn place(&self, memory: &File, layout: Layout, goroutine: u64) -> Option<Place> {
        let mut fields = vec![0; usize::try_from(layout.size()).ok()?];
        memory.read_exact_at(&mut fields, goroutine).ok()?;
        let field = |at: u64| {
            let bytes = fields.get(at as usize..)?.first_chunk::<8>()?;
            Some(u64::from_le_bytes(*bytes))
        };
        let status = field(layout.status)? as u32;
        if status != WAITING {
            return None;
        }
        let [low, high] = [field(layout.stack)?, field(layout.stack + 8)?];
        let mut stack = vec![field(layout.counter)?.saturating_sub(1)];
        let mut frame = field(layout.frame)?;
        while (low..high).contains(&frame) && stack.len() < DEPTH {
            let Some([above, back]) = words(memory, frame) else {
                break;
            };
            stack.push(back.saturating_sub(1));
            if above <= frame {
                break;
            }
            frame = above;
        }
        let which = usize::from(*fields.get(layout.reason as usize)?);
        let reason = self.reasons.as_ref().and_then(|reasons| reasons.get(which));
        Some(Place {
            reason: reason.cloned().unwrap_or_default(),
            stack,
        })
    }
}

/// Whether a process executes a program of Go: its begin has a note of that linker. To read all of
/// each program would take longer than all else (src/cmd/internal/buildid/note.go).
fn is_of_go(process: u32) -> bool {
    let mut bytes = Vec::new();
    let program = File::open(format!("/proc/{process}/exe"));
    let read = program.and_then(|program| program.take(BEGIN).read_to_end(&mut bytes));
    read.is_ok() && bytes.windows(NOTE.len()).any(|part| part == NOTE)
}

/// Reads a string of Go: where it is, and its length.
fn text(memory: &File, at: u64) -> Option<String> {
    let [address, length] = words(memory, at)?;
    let mut bytes = vec![0; length.min(REASON) as usize];
    memory.read_exact_at(&mut bytes, address).ok()?;
    let is_name = bytes.iter().all(|byte| (32..127).contains(byte));
    is_name.then(|| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    const LAYOUT: Layout = Layout {
        stack: 0,
        counter: 64,
        frame: 96,
        status: 144,
        reason: 176,
    };

    /// Memory with a list of two goroutines, of which the first waits for reason 1 and has two
    /// callers.
    fn memory_of_two() -> File {
        let mut bytes = vec![0; 0x1000];
        let mut put = |at: usize, value: u64| {
            bytes[at..][..8].copy_from_slice(&value.to_le_bytes());
        };
        put(0x10, 0x100);
        put(0x18, 2);
        put(0x100, 0x200);
        put(0x108, 0x400);
        for (goroutine, status, reason) in [(0x200, 4, 1), (0x400, 2, 0)] {
            put(goroutine, 0x800);
            put(goroutine + 8, 0x900);
            put(goroutine + 64, 0x5001);
            put(goroutine + 96, 0x810);
            put(goroutine + 144, status);
            put(goroutine + 176, reason);
        }
        put(0x810, 0x850);
        put(0x818, 0x6001);
        // What is no longer on the stack ends it.
        put(0x850, 0x10);
        put(0x858, 0x7001);
        put(0xa00, 0xb00);
        put(0xa08, 0);
        put(0xa10, 0xb00);
        put(0xa18, 7);
        bytes[0xb00..][..7].copy_from_slice(b"IO wait");
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn waiting_goroutine_has_its_callers() {
        let runtime = Runtime {
            all: 0x10,
            reasons: Some((0xa00, 2)),
            layout: LAYOUT,
        };
        let mut seen = Seen::default();
        seen.look(&memory_of_two(), &runtime, 0);
        let place = Place {
            reason: "IO wait".into(),
            stack: vec![0x5000, 0x6000, 0x7000],
        };
        assert_eq!(seen.looks, 1);
        assert_eq!(seen.places, BTreeMap::from([(place, 1)]));
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            words in prop::collection::vec(prop_oneof![0_u64..0x800, any::<u64>()], 0..0x100),
            all in prop_oneof![0_u64..0x800, any::<u64>()],
            reasons: Option<(u64, u64)>,
            base: u64,
        ) {
            let runtime = Runtime {
                all,
                reasons,
                layout: LAYOUT,
            };
            let memory = memory::file_of(&words);
            for base in [0, base] {
                Seen::default().look(&memory, &runtime, base);
            }
        }
    }

    #[test]
    fn list_outside_of_memory_tells_nothing() {
        let runtime = Runtime {
            all: 0x10_0000,
            reasons: None,
            layout: LAYOUT,
        };
        let mut seen = Seen::default();
        seen.look(&memory_of_two(), &runtime, u64::MAX);
        assert_eq!((seen.looks, seen.places.len()), (0, 0));
    }
}
