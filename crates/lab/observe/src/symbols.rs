//! Names of functions: of programs by their ELF symbols, of the kernel by `/proc/kallsyms`.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::Path;

use gimli::{BaseAddresses, CieOrFde, EhFrame, UnwindSection as _};
use object::elf::{SHN_UNDEF, Sym64};
use object::{
    CompressionFormat, LittleEndian, Object as _, ObjectSection as _, ObjectSegment,
    ObjectSymbol as _, ReadCache,
};

use crate::files::{Found, find};
use crate::gopclntab;
use crate::goroutines::Runtime;
use crate::imports::{Called, Imports};
use crate::inlined::Inlined;
use crate::names::demangle;
use crate::proc::Mapping;
use crate::settings;

/// The name of functions in memory without a file.
pub(crate) const ANONYMOUS: &str = "(anonymous memory)";
/// Most files that are held open until their functions are asked for.
const FILES_MAX: usize = 256;
/// What is read of all files together (bytes).
const BYTES_MAX: u64 = 2 << 30;
/// Exported symbols of a file that are kept.
const EXPORTED_MAX: usize = 4096;
/// What is read of a table of them (bytes).
const TABLE_MAX: u64 = 64 << 20;
/// How often a file is looked for that cannot be had.
const TRIES: u32 = 3;

/// A program or a library.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// Its functions by address: end and name.
    functions: BTreeMap<u64, (u64, String)>,
    /// The loadable segments: offset in the file, size there, address.
    segments: Vec<(u64, u64, u64)>,
    /// The table for unwinding.
    pub(crate) frames: Option<Frames>,
    /// The names of its symbols for other files, with their addresses.
    exported: BTreeMap<String, u64>,
    /// Its code, and what that calls.
    pub(crate) imports: Imports,
    /// What it has for who reads its goroutines, if it is of Go.
    goroutines: Option<Runtime>,
    /// Whether it is of Go, and stripped.
    is_stripped_go: bool,
    /// Which of its functions are within others; not of libraries.
    inlined: Option<Inlined>,
    /// The version of glibc that it names, if it is that library.
    pub(crate) glibc: Option<(u32, u32)>,
}

/// The table for unwinding (`.eh_frame`), with an index: binary search instead of reading all of it
/// for each address.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) section: u64,
    pub(crate) bytes: Vec<u8>,
    /// The code that each entry describes: start, end, and where the entry is.
    index: Vec<(u64, u64, usize)>,
}

impl Frames {
    fn new(section: u64, bytes: Vec<u8>) -> Self {
        let mut index = Vec::new();
        let table = EhFrame::new(&bytes, gimli::LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(section);
        let mut entries = table.entries(&bases);
        // What cannot be read ends the table: its beginning is good.
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(entry) =
                partial.parse(|section, bases, offset| section.cie_from_offset(bases, offset))
            else {
                continue;
            };
            let start = entry.initial_address();
            index.push((start, start.saturating_add(entry.len()), entry.offset()));
        }
        index.sort_unstable();
        Self {
            section,
            bytes,
            index,
        }
    }

    fn entry(&self, address: u64) -> Option<(u64, u64, usize)> {
        let after = self.index.partition_point(|(start, ..)| *start <= address);
        let entry = *self.index.get(after.checked_sub(1)?)?;
        (address < entry.1).then_some(entry)
    }

    /// Returns the start of the code around an address, and where its entry is.
    pub(crate) fn find(&self, address: u64) -> Option<(u64, usize)> {
        let (start, _, offset) = self.entry(address)?;
        Some((start, offset))
    }

    /// Returns the start and the end of the code around an address.
    fn around(&self, address: u64) -> Option<(u64, u64)> {
        let (start, end, _) = self.entry(address)?;
        Some((start, end))
    }
}

/// Returns where a segment is in the file, its size, and its address.
fn place<'data>(segment: &impl ObjectSegment<'data>) -> (u64, u64, u64) {
    let (offset, size) = segment.file_range();
    (offset, size, segment.address())
}

/// Returns the address in the file for an address in a mapping of it.
fn address_in(segments: &[(u64, u64, u64)], mapping: &Mapping, address: u64) -> u64 {
    let offset = address
        .wrapping_sub(mapping.start)
        .wrapping_add(mapping.offset);
    let mut segments = segments.iter();
    let segment =
        segments.find(|(start, size, _)| (*start..start.saturating_add(*size)).contains(&offset));
    segment.map_or(offset, |(start, _, at)| (offset - start).wrapping_add(*at))
}

impl Module {
    fn read(bytes: &[u8], name: &str) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let mut functions = BTreeMap::new();
        // Symbols may share a name, but a file that holds its names takes no more memory than it
        // has bytes.
        let mut room = bytes.len();
        let mut exported = BTreeMap::new();
        let mut exported_room = bytes.len();
        for symbol in file
            .dynamic_symbols()
            .filter(|symbol| !symbol.is_undefined())
        {
            let name = symbol.name().unwrap_or_default();
            let Some(left) = exported_room.checked_sub(name.len()) else {
                break;
            };
            exported_room = left;
            exported.insert(name.to_owned(), symbol.address());
        }
        for symbol in file.dynamic_symbols().chain(file.symbols()) {
            if symbol.kind() == object::SymbolKind::Text
                && symbol.size() > 0
                && !symbol.is_undefined()
            {
                let name = symbol.name().unwrap_or_default();
                let Some(left) = room.checked_sub(name.len()) else {
                    break;
                };
                room = left;
                let end = symbol.address().saturating_add(symbol.size());
                // Of several names the one for programmers: `sscanf`, not `__sscanf`.
                match functions.get(&symbol.address()) {
                    Some(_) if name.starts_with('_') => {}
                    _ => {
                        functions.insert(symbol.address(), (end, name.to_owned()));
                    }
                }
            }
        }
        let mut of_go = if file.symbols().next().is_none() {
            gopclntab::functions(&file)
        } else {
            BTreeMap::new()
        };
        let is_stripped_go = !of_go.is_empty();
        functions.append(&mut of_go);
        let frames = file.section_by_name(".eh_frame").and_then(|section| {
            // What is loaded is never compressed.
            let is_plain = section.compressed_file_range().ok()?.format == CompressionFormat::None;
            is_plain.then(|| {
                Some(Frames::new(
                    section.address(),
                    section.data().ok()?.to_vec(),
                ))
            })?
        });
        let is_glibc = name.starts_with("libc.so") || name.starts_with("libc-2");
        let glibc = if is_glibc {
            settings::glibc(bytes)
        } else {
            None
        };
        Some(Self {
            imports: Imports::read(&file, &functions),
            inlined: if name.contains(".so") {
                None
            } else {
                Inlined::read(&file)
            },
            goroutines: Runtime::read(&file),
            is_stripped_go,
            exported,
            functions,
            segments: file.segments().map(|segment| place(&segment)).collect(),
            frames,
            glibc,
        })
    }

    /// Returns the address in the file for an address in a mapping of it.
    pub(crate) fn address(&self, mapping: &Mapping, address: u64) -> u64 {
        address_in(&self.segments, mapping, address)
    }

    /// Returns how much addresses in a process are above those in the file.
    fn base(&self, mapping: &Mapping) -> Option<u64> {
        mapping
            .start
            .checked_sub(self.address(mapping, mapping.start))
    }

    /// Returns where the function around an address begins.
    pub(crate) fn start(&self, address: u64) -> Option<u64> {
        if let Some((start, _)) = self.frames.as_ref().and_then(|frames| frames.find(address)) {
            return Some(start);
        }
        let (start, (end, _)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(*start)
    }

    /// Returns where the function around an address begins and ends.
    fn bounds(&self, address: u64) -> Option<(u64, u64)> {
        let named = self.functions.range(..=address).next_back();
        let named = named.map(|(start, (end, _))| (*start, *end));
        let is_around = |(start, end): &(u64, u64)| (*start..*end).contains(&address);
        let framed = || {
            self.frames
                .as_ref()
                .and_then(|frames| frames.around(address))
        };
        named.filter(is_around).or_else(framed)
    }

    fn function(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }
}

/// Returns the exported symbols of a file that begin so, with their addresses in the file, and how
/// much those in the process are above them.
fn exported(found: &Found, mapping: &Mapping, begin: &str) -> Option<(Vec<(String, u64)>, u64)> {
    let opened = found.open()?;
    let cache = ReadCache::new(&opened);
    let file = object::File::parse(&cache).ok()?;
    let read = |section: &str| {
        let (offset, size) = file.section_by_name(section)?.file_range()?;
        let mut bytes = vec![0; usize::try_from(size.min(TABLE_MAX)).ok()?];
        opened.read_exact_at(&mut bytes, offset).ok()?;
        Some(bytes)
    };
    let (symbols, names) = (read(".dynsym")?, read(".dynstr")?);
    let mut wanted = Vec::new();
    for entry in symbols.chunks_exact(size_of::<Sym64<LittleEndian>>()) {
        let (symbol, _) = object::from_bytes::<Sym64<_>>(entry).ok()?;
        let name = symbol.st_name.get(LittleEndian) as usize;
        let name = names.get(name..).unwrap_or_default();
        if symbol.st_shndx.get(LittleEndian) == SHN_UNDEF || !name.starts_with(begin.as_bytes()) {
            continue;
        }
        let end = name.iter().position(|byte| *byte == 0)?;
        let name = String::from_utf8_lossy(&name[..end]).into_owned();
        wanted.push((name, symbol.st_value.get(LittleEndian)));
        if wanted.len() == EXPORTED_MAX {
            break;
        }
    }
    let segments: Vec<_> = file.segments().map(|segment| place(&segment)).collect();
    let base = mapping
        .start
        .checked_sub(address_in(&segments, mapping, mapping.start))?;
    Some((wanted, base))
}

/// What is known of a file.
#[derive(Debug)]
enum Known {
    /// It was found, and is read when its functions are asked for.
    Found(Found),
    /// It was read; `None` if it is no program.
    Read(Option<Box<Module>>),
    /// It could not be had so often.
    Missing(u32),
}

/// A file as its mappings name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FileId {
    device: (u32, u32),
    inode: u64,
    path: String,
}

/// Files that processes have mapped.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    known: BTreeMap<FileId, Known>,
    /// What was read (bytes).
    bytes: u64,
    /// Files whose functions were asked for in vain.
    pub(crate) unnamed: BTreeSet<String>,
}

fn file_id(mapping: &Mapping) -> FileId {
    FileId {
        device: mapping.device,
        inode: mapping.inode,
        path: mapping.path.clone(),
    }
}

/// A place on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) address: u64,
    /// The address around it: a function without a symbol has its name from the call there.
    caller: Option<u64>,
    /// Whether another function was called there.
    is_called_from: bool,
}

impl Place {
    /// Returns the frame of a stack at an index, innermost first.
    pub(crate) fn of(stack: &[u64], index: usize) -> Self {
        Self {
            address: stack[index],
            caller: stack.get(index + 1).copied(),
            is_called_from: index > 0,
        }
    }
}

impl Modules {
    /// Whether one of the programs that were read is of Go, and its goroutines cannot be.
    pub(crate) fn hides_goroutines(&self) -> bool {
        self.known.values().any(|known| match known {
            Known::Read(Some(module)) => module.is_stripped_go && module.goroutines.is_none(),
            _ => false,
        })
    }

    /// Finds the files that a process has mapped as code, as long as it is there.
    pub(crate) fn find(&mut self, process: u32, maps: &[Mapping]) {
        for mapping in maps
            .iter()
            .filter(|mapping| mapping.is_executable && mapping.path.starts_with('/'))
        {
            let key = file_id(mapping);
            let tries = match self.known.get(&key) {
                None => 0,
                Some(Known::Missing(tries)) if *tries < TRIES => *tries,
                Some(_) => continue,
            };
            let open = self
                .known
                .values()
                .filter(|known| matches!(known, Known::Found(_)))
                .count();
            let found = if open < FILES_MAX {
                find(process, mapping)
            } else {
                None
            };
            self.known
                .insert(key, found.map_or(Known::Missing(tries + 1), Known::Found));
        }
    }

    /// Returns the module of a mapping; `None` if it has none or it cannot be read.
    pub(crate) fn module(&mut self, mapping: &Mapping) -> Option<&Module> {
        if !mapping.path.starts_with('/') {
            return None;
        }
        let key = file_id(mapping);
        if let Some(Known::Found(found)) = self.known.get(&key) {
            let bytes = if self.bytes < BYTES_MAX {
                found.read()
            } else {
                None
            };
            self.bytes += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
            let module = bytes.and_then(|bytes| Module::read(&bytes, file_name(&mapping.path)));
            self.known
                .insert(key.clone(), Known::Read(module.map(Box::new)));
        }
        match self.known.get(&key) {
            Some(Known::Read(module)) => module.as_deref(),
            _ => {
                self.unnamed.insert(mapping.path.clone());
                None
            }
        }
    }

    /// Names the functions of a stack, innermost first. One without a symbol has the name by which
    /// its caller asks for it.
    pub(crate) fn name_all(
        &mut self,
        maps: &[Mapping],
        program: &str,
        stack: &[u64],
    ) -> Vec<String> {
        (0..stack.len())
            .flat_map(|index| self.name_place(maps, program, Place::of(stack, index)))
            .collect()
    }

    /// Names the function of a frame, with those that are within it before it.
    pub(crate) fn name_place(
        &mut self,
        maps: &[Mapping],
        program: &str,
        place: Place,
    ) -> Vec<String> {
        let name = self.name(maps, program, place.address);
        let caller = place.caller.filter(|_| name.contains("+0x"));
        let asked = caller.and_then(|caller| self.asked(maps, place.address, caller + 1));
        let mut names = self.inlined(maps, program, place).unwrap_or_default();
        names.push(asked.unwrap_or(name));
        names
    }

    /// Returns the functions of the program that are within the one around an address.
    fn inlined(&mut self, maps: &[Mapping], program: &str, place: Place) -> Option<Vec<String>> {
        let address = place.address;
        let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let mapping = maps.iter().find(is_there)?;
        if mapping.path != program {
            return None;
        }
        let module = self.module(mapping)?;
        let at = module.address(mapping, address);
        Some(module.inlined.as_ref()?.names(at, place.is_called_from))
    }

    /// Returns where the symbols of a mapped file that begin so are in the process, by their names. Of
    /// a file that was not read yet only the table of what it exports is read: the tables of a large
    /// program take long.
    pub(crate) fn addresses_of(&mut self, mapping: &Mapping, begin: &str) -> BTreeMap<String, u64> {
        let (exported, base) = match self.known.get(&file_id(mapping)) {
            Some(Known::Found(found)) => exported(found, mapping, begin).unwrap_or_default(),
            Some(Known::Read(Some(module))) => {
                let all = module.exported.iter();
                let wanted = all.filter(|(name, _)| name.starts_with(begin));
                let wanted = wanted.map(|(name, address)| (name.clone(), *address));
                (wanted.collect(), module.base(mapping).unwrap_or_default())
            }
            Some(Known::Read(None) | Known::Missing(_)) | None => return BTreeMap::new(),
        };
        let in_process = |(name, address): (String, u64)| Some((name, base.checked_add(address)?));
        exported.into_iter().filter_map(in_process).collect()
    }

    /// Returns where a symbol of a mapped file is in the process.
    pub(crate) fn address_of(&mut self, mapping: &Mapping, symbol: &str) -> Option<u64> {
        self.addresses_of(mapping, symbol).remove(symbol)
    }

    /// Returns what a mapped program of Go has for who reads its goroutines, and what is to be
    /// added to its addresses.
    pub(crate) fn goroutines(&mut self, mapping: &Mapping) -> Option<(Runtime, u64)> {
        if !mapping.is_executable {
            return None;
        }
        let module = self.module(mapping)?;
        Some((module.goroutines.clone()?, module.base(mapping)?))
    }

    /// Returns the code of the file that is mapped at an address, and where that is in the file.
    pub(crate) fn code(&mut self, maps: &[Mapping], address: u64) -> Option<(&Imports, u64)> {
        let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let mapping = maps.iter().find(is_there)?;
        let module = self.module(mapping)?;
        Some((&module.imports, module.address(mapping, address)))
    }

    /// Returns the code of the function around an address, with where that is in the file and where
    /// the function begins there.
    pub(crate) fn function(&mut self, maps: &[Mapping], address: u64) -> Option<(&[u8], u64, u64)> {
        let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
        let mapping = maps.iter().find(is_there)?;
        let module = self.module(mapping)?;
        let address = module.address(mapping, address);
        let (start, end) = module.bounds(address)?;
        let size = usize::try_from(end.checked_sub(start)?).ok()?;
        Some((module.imports.bytes(start, size)?, address, start))
    }

    /// Returns the name by which the call before a return address asks for the function at an
    /// address, if the file of that function has one of this name.
    fn asked(&mut self, maps: &[Mapping], address: u64, return_address: u64) -> Option<String> {
        let around = |address: u64| {
            let is_there = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
            maps.iter().find(is_there)
        };
        let caller = around(return_address - 1)?;
        let module = self.module(caller)?;
        let called = module
            .imports
            .called(module.address(caller, return_address))?;
        let mapping = around(address)?;
        let name = match called {
            Called::Import(name) => name,
            Called::Address(_) | Called::Unknown => return None,
        };
        let file = file_name(&mapping.path).to_owned();
        self.module(mapping)?
            .exported
            .contains_key(&name)
            .then(|| format!("{} ({file})", demangle(&name)))
    }

    /// Names the function at an address: `malloc (libc.so.6)`, without the file for the program
    /// itself.
    pub(crate) fn name(&mut self, maps: &[Mapping], program: &str, address: u64) -> String {
        let Some(mapping) = maps
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&address))
        else {
            return "(unknown)".into();
        };
        let file = file_name(&mapping.path).to_owned();
        if file.is_empty() {
            return ANONYMOUS.into();
        }
        let is_program = mapping.path == program;
        let Some(module) = self.module(mapping) else {
            return file;
        };
        let at = module.address(mapping, address);
        match module.function(at) {
            Some(function) if is_program => demangle(function),
            Some(function) => format!("{} ({file})", demangle(function)),
            None => {
                // A function without a name is known by where it begins.
                let start = module
                    .frames
                    .as_ref()
                    .and_then(|frames| frames.find(at))
                    .map_or(at, |(start, _)| start);
                format!("{file}+{start:#x}")
            }
        }
    }
}

/// Returns the last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    Path::new(path)
        .file_name()
        .and_then(std::ffi::OsStr::to_str)
        .unwrap_or(path)
}

#[derive(Debug, Default)]
pub(crate) struct KernelSymbols(Vec<(u64, String)>);

impl KernelSymbols {
    /// Reads `/proc/kallsyms`; empty if addresses are hidden.
    pub(crate) fn read() -> Self {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let line = |line: &str| {
            let mut fields = line.split_whitespace();
            let address = u64::from_str_radix(fields.next()?, 16)
                .ok()
                .filter(|address| *address > 0)?;
            let is_text = matches!(fields.next()?, "t" | "T" | "w" | "W");
            is_text.then_some((address, fields.next()?.to_owned()))
        };
        let mut symbols: Vec<(u64, String)> = text.lines().filter_map(line).collect();
        symbols.sort();
        Self(symbols)
    }

    /// Names the function at an address.
    pub(crate) fn name(&self, address: u64) -> String {
        let after = self.0.partition_point(|(start, _)| *start <= address);
        after
            .checked_sub(1)
            .map_or_else(|| "(kernel)".to_owned(), |index| self.0[index].1.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns an ELF file for x86-64 whose functions all have the one name.
    fn with_symbols(count: u64, name: &str) -> Vec<u8> {
        let names = format!("\0{name}\0");
        let mut symbols = vec![0; 24];
        for number in 1..=count {
            // The name at 1, a global function, in the first section.
            symbols.extend([1, 0, 0, 0, 0x12, 0, 1, 0]);
            symbols.extend(
                [number * 16, 16]
                    .iter()
                    .flat_map(|number| number.to_le_bytes()),
            );
        }
        let at_names = 64;
        let at_symbols = 64 + names.len() as u64;
        let at_sections = at_symbols + symbols.len() as u64;
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0\x01\0\0\0".to_vec();
        file.extend(
            [0, 0, at_sections]
                .iter()
                .flat_map(|number: &u64| number.to_le_bytes()),
        );
        file.extend([0; 4]);
        file.extend(
            [64_u16, 56, 0, 64, 3, 2]
                .iter()
                .flat_map(|number| number.to_le_bytes()),
        );
        file.extend(names.as_bytes());
        file.extend(&symbols);
        // Of each section: kind, where, size, the section of the names, first global symbol, size
        // of an entry.
        let sections = [
            [0; 6],
            [2, at_symbols, symbols.len() as u64, 2, 1, 24],
            [3, at_names, names.len() as u64, 0, 0, 0],
        ];
        for [kind, at, size, link, info, entry] in sections {
            let words = [kind << 32, 0, 0, at, size, info << 32 | link, 1, entry];
            file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        }
        file
    }

    #[test]
    fn names_take_no_more_than_the_file() {
        let functions_of = |bytes: &[u8]| Module::read(bytes, "program").unwrap().functions;
        let honest = functions_of(&with_symbols(3, "main"));
        assert_eq!(honest.len(), 3);
        assert_eq!(honest[&16], (32, "main".to_owned()));
        let bytes = with_symbols(300, &"n".repeat(100_000));
        let names: usize = functions_of(&bytes)
            .values()
            .map(|(_, name)| name.len())
            .sum();
        assert!(
            names > 0 && names <= bytes.len(),
            "{names} of {}",
            bytes.len()
        );
    }
}
