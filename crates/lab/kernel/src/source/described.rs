//! What the functions of changed files are made of: a hash of each function's preprocessed text,
//! and for each function with code of its own the functions that the compiler inlined into it.
//!
//! The objects are compiled a second time with debug information, by the commands that make
//! recorded, into files beside them: the build stays as it is. A source is the work of others, so
//! that happens behind the same walls as the build.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Loader;
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::compiled::{Compiled, plain};
use super::line_table::LineTable;
use super::make::Objects;
use super::translation_unit::{HASH, function_hashes};
use crate::KernelError;

/// Most objects that are compiled a second time for one source.
const OBJECTS_MAX: usize = 24;
/// Most bytes of a preprocessed file and of an object.
const BYTES_MAX: u64 = 256 << 20;
/// Directories deeper than this have no objects.
const DEPTH_MAX: usize = 24;
/// Files that the compiler leaves, in make's output.
const PREPROCESSED: &str = "marvin.described.i";
const OBJECT: &str = "marvin.described.o";
const LINKED: &str = "marvin.described";

/// A function of a described object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DescribedFunction {
    /// Hash of its preprocessed text; of those of one name in several objects, of all texts. Empty
    /// if it has code and no text, such as what a macro of an assembler makes.
    pub(crate) text: String,
    /// What is inlined into it; `None` if it has no code of its own.
    pub(crate) inlined: Option<BTreeSet<String>>,
}

/// The functions of objects, by name without what compilers append.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Description {
    functions: BTreeMap<String, DescribedFunction>,
    /// The files whose objects are described.
    files: BTreeSet<String>,
    /// The files of which this is not known, with the reason.
    unknown: BTreeMap<String, String>,
}

impl Description {
    /// Returns a function.
    pub(crate) fn function(&self, name: &str) -> Option<&DescribedFunction> {
        self.functions.get(name)
    }

    /// Returns the hashes of a function's text in the described objects.
    pub(crate) fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        let text = self
            .functions
            .get(name)
            .map_or("", |function| &function.text);
        (0..text.len())
            .step_by(HASH)
            .filter_map(move |from| text.get(from..text.len().min(from + HASH)))
    }

    /// Returns the functions with code of their own into which another one is inlined.
    pub(crate) fn hosts<'a>(&'a self, inlined: &'a str) -> impl Iterator<Item = &'a str> {
        self.functions.iter().filter_map(move |(name, function)| {
            let within = function.inlined.as_ref()?;
            within.contains(inlined).then_some(name.as_str())
        })
    }

    /// Returns whether it has no function.
    pub(crate) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns whether the functions of a file could not be found out.
    pub(crate) fn is_unknown(&self, file: &str) -> bool {
        self.unknown.contains_key(file)
    }

    /// Notes why the functions of files are not known.
    pub(crate) fn give_up(&mut self, files: &[String], why: &str) {
        let unknown = files.iter().map(|file| (file.clone(), why.to_owned()));
        self.unknown.extend(unknown);
    }

    fn add(&mut self, name: &str, text: &str, inlined: Option<BTreeSet<String>>) {
        let known = self.functions.entry(name.to_owned()).or_default();
        if !known.text.contains(text) {
            known.text.push_str(text);
        }
        if let Some(inlined) = inlined {
            known.inlined.get_or_insert_default().extend(inlined);
        }
    }

    /// Returns one line for each function and file.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        for file in &self.files {
            text.push_str(&format_line(&["file", file]));
        }
        for (file, why) in &self.unknown {
            text.push_str(&format_line(&["unknown", file, why]));
        }
        for (name, function) in &self.functions {
            let inlined = function.inlined.as_ref().map(|within| {
                let within: Vec<&str> = within.iter().map(String::as_str).collect();
                within.join(",")
            });
            let mut words = vec!["function", name, &function.text];
            words.extend(inlined.as_deref());
            text.push_str(&format_line(&words));
        }
        text
    }

    /// Parses the output of [`to_text`](Self::to_text); leaves out what makes no sense.
    pub(crate) fn from_text(text: &str) -> Self {
        let mut found = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split('\t').collect();
            match words[..] {
                ["file", file] => drop(found.files.insert(file.to_owned())),
                ["unknown", file, why] => {
                    found.unknown.insert(file.to_owned(), why.to_owned());
                }
                ["function", name, text] => found.add(name, text, None),
                ["function", name, text, within] => {
                    let within = within.split(',').filter(|name| !name.is_empty());
                    found.add(name, text, Some(within.map(str::to_owned).collect()));
                }
                _ => {}
            }
        }
        found
    }
}

fn format_line(words: &[&str]) -> String {
    let mut line = words.join("\t").replace(['\n', '\r'], " ");
    line.push('\n');
    line
}

impl Objects<'_> {
    /// Describes the objects that were made from files of the work tree, which is built, and their
    /// code by source lines. `compiled` counts the objects of each file.
    pub(crate) fn describe(
        &self,
        files: &[String],
        compiled: &Compiled,
    ) -> Result<(Description, LineTable), KernelError> {
        let mut found = Description::default();
        let mut lines = LineTable::default();
        let commands = self.commands(files, compiled)?;
        let mut described: BTreeSet<&Path> = BTreeSet::new();
        for (file, objects) in &commands {
            lines.note_file(file);
            if objects.is_empty() {
                found.files.insert(file.clone());
                continue;
            }
            if objects.len() > OBJECTS_MAX {
                let why = format!("{} objects are made from it", objects.len());
                found.unknown.insert(file.clone(), why);
                continue;
            }
            let mut fault = None;
            for object in objects {
                if described.insert(object) {
                    fault = fault.or(self.describe_object(object, &mut found, &mut lines)?);
                }
            }
            match fault {
                None => drop(found.files.insert(file.clone())),
                Some(why) => drop(found.unknown.insert(file.clone(), why)),
            }
        }
        Ok((found, lines))
    }

    /// Returns the records of make for the objects that were made from each of these files.
    fn commands(
        &self,
        files: &[String],
        compiled: &Compiled,
    ) -> Result<BTreeMap<String, Vec<PathBuf>>, KernelError> {
        let source = self.source().display().to_string();
        let mut wanted: BTreeMap<String, &String> = BTreeMap::new();
        let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
        for file in files {
            let own = match compiled.uses(file) {
                1 => self.own_record(file, &source),
                _ => None,
            };
            if own.is_none() {
                wanted.insert(format!("{source}/{file}"), file);
            }
            found.insert(file.clone(), own.into_iter().collect());
        }
        if wanted.is_empty() {
            return Ok(found);
        }
        let mut folders = vec![(self.out().to_owned(), DEPTH_MAX)];
        while let Some((folder, depth)) = folders.pop() {
            for entry in fs::read_dir(&folder).map_err(KernelError::io(&folder))? {
                let entry = entry.map_err(KernelError::io(&folder))?;
                let path = entry.path();
                let kind = entry.file_type().map_err(KernelError::io(&folder))?;
                if kind.is_dir() && depth > 0 {
                    folders.push((path, depth - 1));
                } else if kind.is_file() && path.to_string_lossy().ends_with(".o.cmd") {
                    let text = fs::read(&path).map_err(KernelError::io(&path))?;
                    let text = String::from_utf8_lossy(&text);
                    let used: BTreeSet<&String> = text
                        .split_whitespace()
                        .filter_map(|word| wanted.get(word).copied())
                        .collect();
                    for file in used {
                        found.entry(file.clone()).or_default().push(path.clone());
                    }
                }
            }
        }
        Ok(found)
    }

    /// Returns the record of the object that is named like a C file, if it was made from it: of a
    /// file that only one object is made from, no other record is to be read.
    fn own_record(&self, file: &str, source: &str) -> Option<PathBuf> {
        let (folder, name) = file.rsplit_once('/')?;
        let stem = name.strip_suffix(".c")?;
        let record = self.out().join(folder).join(format!(".{stem}.o.cmd"));
        let text = String::from_utf8_lossy(&read_file(&record)?).into_owned();
        let path = format!("{source}/{file}");
        text.split_ascii_whitespace()
            .any(|word| word == path)
            .then_some(record)
    }

    /// Adds the functions of one object; returns why that is not possible.
    fn describe_object(
        &self,
        record: &Path,
        found: &mut Description,
        lines: &mut LineTable,
    ) -> Result<Option<String>, KernelError> {
        let text = fs::read(record).map_err(KernelError::io(record))?;
        let text = String::from_utf8_lossy(&text);
        let Some(compile) = Compile::of_record(&text) else {
            // An assembler's, the build's own programs, Rust: no functions of C.
            return Ok(None);
        };
        for left in [PREPROCESSED, OBJECT, LINKED] {
            drop(fs::remove_file(self.out().join(left)));
        }
        // Line numbers and counters in messages are no change of a function.
        let preprocess = format!(
            "{} -E -P -D__LINE__=0 -D__COUNTER__=0 -Wno-builtin-macro-redefined -o {PREPROCESSED} {}",
            compile.before, compile.after
        );
        let debug = format!("{} -g -c -o {OBJECT} {}", compile.before, compile.after);
        let link = format!("ld --unresolved-symbols=ignore-all -e 0 -o {LINKED} {OBJECT}");
        let script = format!("{preprocess} && {debug} && {link}");
        if let Some(why) = self.run_shell(&script)? {
            return Ok(Some(why));
        }
        let Some(preprocessed) = read_file(&self.out().join(PREPROCESSED)) else {
            return Ok(Some(
                "its preprocessed text is no file, or too large".into(),
            ));
        };
        let Some(linked) = read_file(&self.out().join(LINKED)) else {
            return Ok(Some(
                "with debug information it is no file, or too large".into(),
            ));
        };
        for (name, hash) in function_hashes(&String::from_utf8_lossy(&preprocessed)) {
            found.add(&name, &hash, None);
        }
        let object = self.out().join(compile.object);
        let original = self.symbols_of(&object);
        if original != self.symbols_of(&self.out().join(OBJECT)) {
            return Ok(Some(
                "with debug information its code is another one".into(),
            ));
        }
        let mut of_object = LineTable::default();
        if self.read_lines(&linked, &mut of_object).is_none() {
            return Ok(Some("its debug information cannot be read".into()));
        }
        for (name, inlined) in of_object.inlined() {
            found.add(name, "", Some(inlined));
        }
        let [code, described] = [object, self.out().join(OBJECT)].map(|file| code_of(&file));
        of_object.keep(&|function| {
            code.contains_key(function) && code.get(function) == described.get(function)
        });
        lines.join(of_object);
        Ok(None)
    }

    /// Returns the functions of an object by name, with their sizes; nothing if it is none.
    fn symbols_of(&self, object: &Path) -> BTreeMap<String, u64> {
        let Some(bytes) = read_file(object) else {
            return BTreeMap::new();
        };
        let Ok(file) = object::File::parse(&*bytes) else {
            return BTreeMap::new();
        };
        file.symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| Some((symbol.name().ok()?.to_owned(), symbol.size())))
            // objtool adds these to the object later (tools/objtool/check.c).
            .filter(|(name, _)| !name.starts_with("__pfx_"))
            .collect()
    }

    /// Reads the code of the linked object.
    fn read_lines(&self, linked: &[u8], lines: &mut LineTable) -> Option<()> {
        let file = object::File::parse(linked).ok()?;
        // The source could name any file of the host there, and one that never ends.
        if file.section_by_name(".gnu_debugaltlink").is_some() {
            return None;
        }
        let loader = Loader::new(self.out().join(LINKED)).ok()?;
        let [source, out] = [&self.source(), self.out()].map(|top| format!("{}/", top.display()));
        let shorten = |path: &str| {
            let inside = path
                .strip_prefix(&source)
                .or_else(|| path.strip_prefix(&out));
            plain(inside.unwrap_or(path))
        };
        lines.read(&file, &loader, &shorten);
        Some(())
    }
}

/// Returns the bytes of an object's functions by name, before they are linked; nothing if it is no
/// object.
fn code_of(object: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let Some(bytes) = read_file(object) else {
        return found;
    };
    let Ok(file) = object::File::parse(&*bytes) else {
        return found;
    };
    for symbol in file.symbols() {
        let index = symbol.section_index();
        let section = index.and_then(|index| file.section_by_index(index).ok());
        let (SymbolKind::Text, Some(section), Ok(name)) = (symbol.kind(), section, symbol.name())
        else {
            continue;
        };
        if let Ok(Some(code)) = section.data_range(symbol.address(), symbol.size()) {
            found.insert(name.to_owned(), code.to_owned());
        }
    }
    found
}

/// Reads a file that a build left: no link, and none without end.
fn read_file(file: &Path) -> Option<Vec<u8>> {
    let found = fs::symlink_metadata(file).ok()?;
    if !found.is_file() || found.len() > BYTES_MAX {
        return None;
    }
    fs::read(file).ok()
}

/// The command by which make compiled an object.
struct Compile<'a> {
    /// The object, below make's output.
    object: &'a str,
    /// Compiler and options up to `-c -o OBJECT`.
    before: &'a str,
    /// What is behind it: the source.
    after: &'a str,
}

impl<'a> Compile<'a> {
    /// Reads make's record of an object: `savedcmd_OBJECT := COMMAND`, in older kernels
    /// `cmd_OBJECT` (scripts/Kbuild.include); what is done to the object later is behind a
    /// semicolon.
    fn of_record(text: &'a str) -> Option<Self> {
        let line = text.lines().next()?;
        let (name, command) = line.split_once(" := ")?;
        let object = name
            .strip_prefix("savedcmd_")
            .or_else(|| name.strip_prefix("cmd_"))?;
        let command = command.split(" ; ").next()?;
        let (before, after) = command.split_once(&format!(" -c -o {object} "))?;
        after.trim_end().ends_with(".c").then_some(Self {
            object,
            before,
            after,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Compile, Description};

    #[test]
    fn commands_of_make_are_taken_apart() {
        let text = "savedcmd_mm/memory.o := ccache gcc -Wp,-MMD,mm/.memory.o.d -O2 -DX='\"a\"' -c -o mm/memory.o /src/mm/memory.c ; \
                    ./tools/objtool/objtool --orc mm/memory.o\n\nsource_mm/memory.o := /src/mm/memory.c\n";
        let compile = Compile::of_record(text).unwrap();
        assert_eq!(
            [compile.object, compile.before, compile.after],
            [
                "mm/memory.o",
                "ccache gcc -Wp,-MMD,mm/.memory.o.d -O2 -DX='\"a\"'",
                "/src/mm/memory.c"
            ]
        );
        let assembler =
            "savedcmd_lib/copy.o := gcc -D__ASSEMBLY__ -c -o lib/copy.o /src/lib/copy.S\n";
        assert!(Compile::of_record(assembler).is_none());
    }

    #[test]
    fn descriptions_round_trip() {
        let mut description = Description::default();
        description.add("outer", "12", Some(["inner".to_owned()].into()));
        description.add("inner", "34", None);
        description.add("alone", "", Some([].into()));
        description.files.insert("mm/memory.c".into());
        description
            .unknown
            .insert("include/a.h".into(), "many\tobjects".replace('\t', " "));
        let read = Description::from_text(&description.to_text());
        assert_eq!(read, description);
        assert_eq!(read.hosts("inner").collect::<Vec<_>>(), ["outer"]);
        assert!(read.is_unknown("include/a.h") && !read.is_unknown("mm/memory.c"));
    }
}
