//! Stacks of Perl: the subroutines of the script, from the interpreter's contexts.
//!
//! The places of the fields are those of Perl 5.36 with threads, as distributions build it, as its
//! headers have them (intrpvar.h, cop.h, cv.h, gv.h, hv.h in CORE). Of another layout the names are
//! not letters, and nothing is read.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use super::{DEPTH, NAMES_MAX, printable};
use crate::memory::{self, field};
use crate::proc::Mapping;
use crate::rounds::Process;
use crate::symbols::{Modules, file_name};

/// The symbol that points to the interpreter of the first thread.
const CURRENT: &str = "PL_curinterp";
/// `struct interpreter`: the statement that is executed, and the stack of contexts.
const STATEMENT: u64 = 208;
const STACK: u64 = 224;
/// `PERL_SI`: its contexts, the one before it, and the index of the last context.
const CONTEXTS: u64 = 8;
const BEFORE: u64 = 16;
const LAST: u64 = 32;
/// `PERL_CONTEXT`: its size, the statement that called, and the subroutine.
const CONTEXT: u64 = 104;
const CALLER: u64 = 16;
const SUBROUTINE: u64 = 72;
/// The kinds of context that are a subroutine or a format (`CXt_SUB`, `CXt_FORMAT`).
const KINDS: std::ops::RangeInclusive<u8> = 9..=10;
const KIND: u8 = 0xf;
/// `COP`: line and file.
const LINE: u64 = 36;
const FILE: u64 = 48;
/// `XPVCV`: package, name or glob, and flags, of which one says which.
const PACKAGE: u64 = 32;
const NAME: u64 = 56;
const FLAGS: u64 = 92;
const IS_NAMED: u32 = 0x8000;
/// `XPVGV`: name and package.
const GLOB_NAME: u64 = 32;
const GLOB_PACKAGE: u64 = 40;
/// `xpvhv_with_aux`: the name of a package, and how many it has.
const PACKAGE_NAME: u64 = 32;
const PACKAGE_NAMES: u64 = 60;
/// `HEK`: length and letters.
const LENGTH: u64 = 4;
const LETTERS: u64 = 8;
/// Stacks of contexts, one within another one (sorting, destructors, signals).
const NESTED: usize = 4;
/// Contexts that are read of one.
const CONTEXTS_MAX: u64 = 512;
/// The longest name and the longest path (bytes).
const NAME_MAX: usize = 160;
const PATH_MAX: usize = 512;
/// A statement's line is below this.
const LINES_MAX: u32 = 1 << 24;

#[derive(Debug)]
pub(super) struct Interpreter {
    /// Where the pointer to it is.
    current: u64,
    names: BTreeMap<u64, String>,
}

/// Finds the interpreter in a mapped file.
pub(super) fn find(
    _: u32,
    _: &Process,
    mapping: &Mapping,
    modules: &mut Modules,
) -> Option<super::Interpreter> {
    let current = modules.address_of(mapping, CURRENT)?;
    let names = BTreeMap::new();
    Some(super::Interpreter::Perl(Interpreter { current, names }))
}

/// A statement.
struct Statement {
    file: String,
    line: u32,
}

impl Interpreter {
    /// Returns the subroutines that the first thread is in, innermost first; of a script that is in
    /// none its line.
    pub(super) fn read(&mut self, memory: &File) -> Option<Vec<String>> {
        let interpreter = memory::word(memory, self.current)?;
        let mut statement = statement(memory, field(memory, interpreter, STATEMENT)?)?;
        let mut at = field(memory, interpreter, STACK)?;
        let mut stack = Vec::new();
        for _ in 0..NESTED {
            let contexts = field(memory, at, CONTEXTS)?;
            let last = field(memory, at, LAST)? as u32;
            // None is -1.
            let count = u64::from(last.wrapping_add(1)).min(CONTEXTS_MAX);
            for index in (0..count).rev() {
                let context = contexts.checked_add(index * CONTEXT)?;
                let kind = field(memory, context, 0)?.to_le_bytes()[0] & KIND;
                if !KINDS.contains(&kind) {
                    continue;
                }
                let name = self.name(memory, field(memory, context, SUBROUTINE)?)?;
                if stack.len() < DEPTH {
                    stack.push(describe(&name, &statement.file));
                }
                match self::statement(memory, field(memory, context, CALLER)?) {
                    Some(caller) => statement = caller,
                    None => return Some(stack),
                }
            }
            at = field(memory, at, BEFORE)?;
            if at == 0 {
                break;
            }
        }
        if stack.is_empty() {
            stack.push(format!("{}:{}", file_name(&statement.file), statement.line));
        }
        Some(stack)
    }

    fn name(&mut self, memory: &File, subroutine: u64) -> Option<String> {
        let body = field(memory, subroutine, 0)?;
        let flags = field(memory, body, FLAGS)? as u32;
        let of_name = field(memory, body, NAME)?;
        // All closures of a subroutine have it in common.
        if let Some(name) = self.names.get(&of_name) {
            return Some(name.clone());
        }
        let (name, package) = if flags & IS_NAMED == 0 {
            let glob = field(memory, of_name, 0)?;
            let name = key(memory, field(memory, glob, GLOB_NAME)?)?;
            (name, field(memory, glob, GLOB_PACKAGE)?)
        } else {
            (key(memory, of_name)?, field(memory, body, PACKAGE)?)
        };
        let name = match package_name(memory, package) {
            Some(package) if package != "main" => format!("{package}::{name}"),
            _ => name,
        };
        if self.names.len() < NAMES_MAX {
            self.names.insert(of_name, name.clone());
        }
        Some(name)
    }
}

fn package_name(memory: &File, package: u64) -> Option<String> {
    let body = field(memory, package, 0)?;
    let name = field(memory, body, PACKAGE_NAME)?;
    let count = field(memory, body, PACKAGE_NAMES)? as u32;
    key(
        memory,
        if count == 0 {
            name
        } else {
            memory::word(memory, name)?
        },
    )
}

fn statement(memory: &File, at: u64) -> Option<Statement> {
    let line = field(memory, at, LINE)? as u32;
    let file = path(memory, field(memory, at, FILE)?)?;
    (line < LINES_MAX).then_some(Statement { file, line })
}

/// Reads a name from a table of Perl's (HEK).
fn key(memory: &File, at: u64) -> Option<String> {
    let length = usize::try_from(field(memory, at, LENGTH)? as u32).ok()?;
    let mut bytes = vec![0; length];
    if length > NAME_MAX {
        return None;
    }
    memory
        .read_exact_at(&mut bytes, at.checked_add(LETTERS)?)
        .ok()?;
    printable(&bytes)
}

/// Reads a path, which ends with a zero.
fn path(memory: &File, at: u64) -> Option<String> {
    let mut bytes = vec![0; PATH_MAX];
    let size = memory.read_at(&mut bytes, at).ok()?;
    let end = bytes[..size].iter().position(|byte| *byte == 0)?;
    printable(&bytes[..end])
}

/// Returns a subroutine's name with its file; one of an installed module is called so.
fn describe(name: &str, file: &str) -> String {
    let is_installed = ["/perl/", "/perl5/", "/perl-base/"]
        .iter()
        .any(|folder| file.starts_with("/usr/") && file.contains(folder));
    if is_installed {
        format!("Perl's {name}")
    } else {
        format!("{name} {}", file_name(file))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn interpreter() -> Interpreter {
        Interpreter {
            current: 0,
            names: BTreeMap::new(),
        }
    }

    #[test]
    fn subroutines_are_named_with_their_file() {
        assert_eq!(
            describe("export", "/srv/app/bin/report.pl"),
            "export report.pl"
        );
        assert_eq!(
            describe("JSON::PP::encode", "/usr/share/perl/5.36/JSON/PP.pm"),
            "Perl's JSON::PP::encode"
        );
    }

    #[test]
    fn contexts_are_read_from_memory() {
        let mut bytes = vec![0; 0x2000];
        let mut put = |at: u64, value: u64| {
            bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
        };
        // The interpreter at 0x100, a statement at 0x300, contexts at 0x500, a subroutine at 0x800.
        put(0, 0x100);
        put(0x100 + STATEMENT, 0x300);
        put(0x100 + STACK, 0x400);
        put(0x300 + LINE - 4, 7 << 32);
        put(0x300 + FILE, 0x700);
        put(0x400 + CONTEXTS, 0x500);
        put(0x500 + CONTEXT, 9);
        put(0x500 + CONTEXT + CALLER, 0x300);
        put(0x500 + CONTEXT + SUBROUTINE, 0x800);
        put(0x800, 0x900);
        put(0x900 + NAME, 0xa00);
        put(0xa00, 0xb00);
        put(0xb00 + GLOB_NAME, 0xc00);
        put(0xb00 + GLOB_PACKAGE, 0xd00);
        put(0xc00, 6 << 32);
        put(0xd00, 0xe00);
        put(0xe00 + PACKAGE_NAME, 0xf00);
        put(0xf00, 4 << 32);
        bytes[0x700..][..9].copy_from_slice(b"/a/app.pl");
        bytes[0xc00 + LETTERS as usize..][..6].copy_from_slice(b"export");
        bytes[0xf00 + LETTERS as usize..][..4].copy_from_slice(b"Shop");
        // Two contexts, of which the first is a block.
        let file = |last: i32| {
            let mut bytes = bytes.clone();
            bytes[0x400 + LAST as usize..][..4].copy_from_slice(&last.to_le_bytes());
            let words = bytes.chunks_exact(8);
            let words: Vec<u64> = words
                .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
                .collect();
            memory::file_of(&words)
        };
        let within = interpreter().read(&file(1));
        assert_eq!(within, Some(vec!["Shop::export app.pl".to_owned()]));
        let outside = interpreter().read(&file(-1));
        assert_eq!(outside, Some(vec!["app.pl:7".to_owned()]));
    }

    proptest! {
        #[test]
        fn damaged_memory_is_survived(
            words in prop::collection::vec(prop_oneof![0_u64..0x800, any::<u64>()], 0..0x100),
            current in prop_oneof![0_u64..0x800, any::<u64>()],
        ) {
            let memory = memory::file_of(&words);
            let mut perl = Interpreter { current, names: BTreeMap::new() };
            let _ = perl.read(&memory);
        }
    }
}
