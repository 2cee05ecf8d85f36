//! The code of functions by source lines, inlined ones too: read from objects that were compiled a
//! second time with debug information (`described`), kept beside the recipe of the build.
//!
//! Offsets begin at the function's symbol, so they hold wherever a kernel is linked.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read as _;
use std::ops::Range;

use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};

/// Most bytes of a kept table.
const TEXT_MAX: u64 = 256 << 20;
const LEVEL: i32 = 3;

/// A place in the source: of code that is inlined, also where it was called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinePlace {
    /// The function whose source it is.
    pub function: String,
    /// The file, from the top of the source.
    pub file: String,
    pub line: u32,
}

/// Code between two offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineSpan {
    /// Bytes from the function's symbol.
    pub offsets: Range<u64>,
    /// The innermost function first; the others are where it was inlined.
    pub places: Vec<LinePlace>,
}

/// The code of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionLines {
    /// Its symbol, with what compilers append: `copy_mm.isra.0`.
    pub symbol: String,
    /// Its bytes.
    pub size: u64,
    /// Sorted by offset.
    pub spans: Vec<LineSpan>,
}

/// The functions of objects that were made from some files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineTable {
    /// The files that were asked for.
    files: BTreeSet<String>,
    /// By symbol; static functions of several objects share one.
    functions: BTreeMap<String, Vec<FunctionLines>>,
}

impl LineTable {
    /// Returns the code of a function by its symbol; `None` if it has none, or if several objects
    /// have one of that name with other code.
    #[must_use]
    pub fn function(&self, symbol: &str) -> Option<&FunctionLines> {
        match self.functions.get(symbol).map(Vec::as_slice) {
            Some([one]) => Some(one),
            _ => None,
        }
    }

    /// Returns the code of a function with its innermost places: what lines it has where.
    pub fn lines_of(&self, symbol: &str) -> impl Iterator<Item = (Range<u64>, &str, u32)> {
        let spans = self.function(symbol).map(|function| &function.spans);
        spans.into_iter().flatten().filter_map(|span| {
            let place = span.places.first()?;
            Some((span.offsets.clone(), place.file.as_str(), place.line))
        })
    }

    /// Returns the functions that have code of these lines, innermost or around inlined code.
    #[must_use]
    pub fn functions_with(&self, has: &dyn Fn(&str, u32) -> bool) -> Vec<&FunctionLines> {
        let known = self.functions.values().filter(|all| all.len() == 1);
        let with = known.flatten().filter(|function| {
            let mut places = function.spans.iter().flat_map(|span| &span.places);
            places.any(|place| has(&place.file, place.line))
        });
        with.collect()
    }

    /// Notes that a file's objects are in it.
    pub(crate) fn note_file(&mut self, file: &str) {
        self.files.insert(file.to_owned());
    }

    /// Takes what another table knows.
    pub(crate) fn join(&mut self, other: Self) {
        self.files.extend(other.files);
        for function in other.functions.into_values().flatten() {
            self.add(function);
        }
    }

    fn add(&mut self, function: FunctionLines) {
        let known = self.functions.entry(function.symbol.clone()).or_default();
        // Files are asked for one after the other, and objects are made from several.
        if !known.contains(&function) {
            known.push(function);
        }
    }

    /// Adds the functions of a linked object; `shorten` makes a path one from the top of the
    /// source.
    pub(super) fn read(
        &mut self,
        file: &object::File<'_>,
        loader: &Loader,
        shorten: &dyn Fn(&str) -> String,
    ) {
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0);
        for symbol in functions {
            let Ok(name) = symbol.name() else { continue };
            let start = symbol.address();
            let end = start.saturating_add(symbol.size());
            let Ok(ranges) = loader.find_location_range(start, end) else {
                continue;
            };
            let mut spans: Vec<LineSpan> = Vec::new();
            for (address, length, _) in ranges {
                let from = address.max(start);
                let to = address.saturating_add(length).min(end);
                let places = places_at(loader, from, shorten);
                if places.is_empty() || from >= to {
                    continue;
                }
                let offsets = from - start..to - start;
                match spans.last_mut() {
                    Some(last) if last.offsets.end == offsets.start && last.places == places => {
                        last.offsets.end = offsets.end;
                    }
                    _ => spans.push(LineSpan { offsets, places }),
                }
            }
            self.add(FunctionLines {
                symbol: name.to_owned(),
                size: symbol.size(),
                spans,
            });
        }
    }

    /// Leaves out functions of which the code is another one than that of the build.
    pub(super) fn keep(&mut self, has_code_of_build: &dyn Fn(&str) -> bool) {
        self.functions.retain(|symbol, _| has_code_of_build(symbol));
    }

    /// Returns what is inlined into each function, by name without what compilers append.
    pub(super) fn inlined(&self) -> impl Iterator<Item = (&str, BTreeSet<String>)> {
        self.functions.values().flatten().map(|function| {
            let name = model::without_suffix(&function.symbol);
            let places = function.spans.iter().flat_map(|span| &span.places);
            // The outermost is the function itself, or another name of it.
            let inner = places
                .map(|place| &place.function)
                .filter(|inner| *inner != name);
            (name, inner.cloned().collect())
        })
    }

    /// Returns it as a file.
    pub(crate) fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        zstd::bulk::compress(self.to_text().as_bytes(), LEVEL)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote; `None` if it is something else.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut text = String::new();
        let mut decoder = zstd::Decoder::new(bytes).ok()?.take(TEXT_MAX);
        decoder.read_to_string(&mut text).ok()?;
        Self::from_text(&text)
    }

    /// Names are written once: a span is offset, length, and for each place the numbers of its
    /// function and file, and the line.
    fn to_text(&self) -> String {
        let mut names = Names::default();
        let mut text = String::new();
        let mut line = |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").ok();
        for file in &self.files {
            line(format_args!("file\t{}", one_word(file)));
        }
        for function in self.functions.values().flatten() {
            let FunctionLines {
                symbol,
                size,
                spans,
            } = function;
            line(format_args!("function\t{}\t{size}", one_word(symbol)));
            for LineSpan { offsets, places } in spans {
                let mut words = String::new();
                for place in places {
                    for name in [&place.function, &place.file] {
                        if let Some(number) = names.note(name) {
                            line(format_args!("name\t{number}\t{}", one_word(name)));
                        }
                    }
                    let [function, file] = [&place.function, &place.file].map(|of| names.get(of));
                    write!(words, "\t{function} {file} {}", place.line).ok();
                }
                let length = offsets.end - offsets.start;
                line(format_args!("{}\t{length}{words}", offsets.start));
            }
        }
        text
    }

    fn from_text(text: &str) -> Option<Self> {
        let mut found = Self::default();
        let mut names: Vec<&str> = Vec::new();
        let mut function: Option<FunctionLines> = None;
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                ["file", file] => found.note_file(file),
                ["name", number, name] => {
                    if number.parse() != Ok(names.len()) {
                        return None;
                    }
                    names.push(name);
                }
                ["function", symbol, size] => {
                    let next = FunctionLines {
                        symbol: symbol.to_owned(),
                        size: size.parse().ok()?,
                        spans: Vec::new(),
                    };
                    if let Some(read) = function.replace(next) {
                        found.add(read);
                    }
                }
                [start, length, ref places @ ..] => {
                    let start: u64 = start.parse().ok()?;
                    let end = start.checked_add(length.parse().ok()?)?;
                    let places = places.iter().map(|place| read_place(place, &names));
                    function.as_mut()?.spans.push(LineSpan {
                        offsets: start..end,
                        places: places.collect::<Option<_>>()?,
                    });
                }
                _ => return None,
            }
        }
        if let Some(read) = function {
            found.add(read);
        }
        Some(found)
    }
}

/// Numbers of names.
#[derive(Debug, Default)]
struct Names<'a>(BTreeMap<&'a str, usize>);

impl<'a> Names<'a> {
    /// Returns the number of a name that had none.
    fn note(&mut self, name: &'a str) -> Option<usize> {
        let next = self.0.len();
        (*self.0.entry(name).or_insert(next) == next).then_some(next)
    }

    fn get(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }
}

fn read_place(text: &str, names: &[&str]) -> Option<LinePlace> {
    let mut words = text.split(' ');
    let mut name = || Some((*names.get(words.next()?.parse::<usize>().ok()?)?).to_owned());
    let function = name()?;
    let file = name()?;
    let line = words.next()?.parse().ok()?;
    Some(LinePlace {
        function,
        file,
        line,
    })
}

fn one_word(text: &str) -> String {
    text.replace(['\t', '\n', '\r'], " ")
}

/// Returns the places of an address, the innermost first.
fn places_at(loader: &Loader, address: u64, shorten: &dyn Fn(&str) -> String) -> Vec<LinePlace> {
    let mut places = Vec::new();
    let Ok(mut frames) = loader.find_frames(address) else {
        return places;
    };
    while let Ok(Some(frame)) = frames.next() {
        let name = frame.function.as_ref();
        let name = name.and_then(|name| Some(name.raw_name().ok()?.into_owned()));
        let Some(location) = frame.location else {
            continue;
        };
        let (Some(function), Some(file), Some(line)) = (name, location.file, location.line) else {
            continue;
        };
        places.push(LinePlace {
            function,
            file: shorten(file),
            line,
        });
    }
    places
}

#[cfg(test)]
mod tests {
    use super::{FunctionLines, LinePlace, LineSpan, LineTable};

    fn place(function: &str, file: &str, line: u32) -> LinePlace {
        LinePlace {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
        }
    }

    fn function(symbol: &str, line: u32) -> FunctionLines {
        let outer = place(symbol, "mm/memory.c", line);
        let inner = place("inner", "include/linux/mm.h", 7);
        let span = |offsets, places: &[&LinePlace]| LineSpan {
            offsets,
            places: places.iter().map(|place| (*place).clone()).collect(),
        };
        FunctionLines {
            symbol: symbol.to_owned(),
            size: 24,
            spans: vec![span(0..16, &[&outer]), span(16..24, &[&inner, &outer])],
        }
    }

    fn table() -> LineTable {
        let mut table = LineTable::default();
        table.note_file("mm/memory.c");
        table.add(function("outer", 12));
        table.add(function("other", 20));
        table
    }

    #[test]
    fn tables_round_trip() {
        let table = table();
        let bytes = table.to_bytes().unwrap();
        assert_eq!(LineTable::from_bytes(&bytes), Some(table));
        assert_eq!(LineTable::from_bytes(b"no table"), None);
        for damaged in [
            "x",
            "name\t1\ta",
            "0\t1\t0 0 1",
            "function\ta\t1\n0\t1\t9 9 9",
        ] {
            assert_eq!(LineTable::from_text(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn lines_have_the_functions_around_them() {
        let mut table = table();
        let lines: Vec<_> = table.lines_of("outer").collect();
        let expected = [
            (0..16, "mm/memory.c", 12),
            (16..24, "include/linux/mm.h", 7),
        ];
        assert_eq!(lines, expected);
        let has = |file: &str, line| file == "include/linux/mm.h" && line == 7;
        let with: Vec<&str> = table
            .functions_with(&has)
            .iter()
            .map(|function| function.symbol.as_str())
            .collect();
        assert_eq!(with, ["other", "outer"]);
        table.add(function("outer", 13));
        assert_eq!(table.function("outer"), None, "which one is not known");
    }

    proptest::proptest! {
        #[test]
        fn damaged_tables_never_panic(text in "((file|name|function|[0-9]{1,3})\t[0-9a-z]{0,3}(\t[0-9]{0,2} [0-9]{0,2} [0-9]{0,2})?\n){0,9}", bytes: Vec<u8>) {
            let _table = LineTable::from_text(&text);
            let _table = LineTable::from_bytes(&bytes);
        }
    }
}
