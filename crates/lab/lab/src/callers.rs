//! Which functions call a function, directly: by the calls and jumps in a kernel's image; and which
//! data has its address.

use std::collections::{BTreeMap, BTreeSet};

use ingest::Symbols;
use kernel::CodeBytes;
use model::Build;
use profile::ledger::{Ledger, names};

use crate::Lab;

/// `call` and `jmp` with a distance of four bytes (Intel SDM, volume 2).
const OPCODES: [u8; 2] = [0xe8, 0xe9];
const INSTRUCTION: usize = 5;
/// Levels of callers that are looked for.
const LEVELS: usize = 2;
/// Enters all system calls by number (arch/x86/entry/syscall_64.c): it says nothing about one.
const ALL_SYSTEM_CALLS: [&str; 2] = ["x64_sys_call", "ia32_sys_call"];

/// The callers of a function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Callers {
    /// Those that call it directly, then those that call these.
    pub levels: [BTreeSet<String>; LEVELS],
    /// Whether it is a system call's own function.
    pub is_system_call: bool,
    /// Data that has its address, such as `ext4_file_operations`.
    pub pointers: BTreeSet<String>,
}

/// Functions by where they begin, with the names that they are matched by.
struct Functions<'a> {
    starts: BTreeMap<u64, String>,
    code: &'a CodeBytes,
    extents: Vec<(u64, u64)>,
}

impl<'a> Functions<'a> {
    fn new(code: &'a CodeBytes, symbols: &Symbols) -> Self {
        let named: Vec<(u64, u64, &str)> = symbols.functions().collect();
        Self {
            starts: named
                .iter()
                .map(|(start, _, name)| (*start, names::key(name)))
                .collect(),
            code,
            extents: named.iter().map(|(start, end, _)| (*start, *end)).collect(),
        }
    }

    /// Returns who calls functions of these names: caller and function.
    fn calls_of(&self, wanted: &BTreeSet<String>) -> BTreeSet<(String, String)> {
        let targets: BTreeMap<u64, &String> = self
            .starts
            .iter()
            .filter(|(_, name)| wanted.contains(*name))
            .map(|(start, name)| (*start, name))
            .collect();
        let mut found = BTreeSet::new();
        for (start, end) in &self.extents {
            let Some(bytes) = self.code.between(*start, *end) else {
                continue;
            };
            for (at, window) in bytes.windows(INSTRUCTION).enumerate() {
                if !OPCODES.contains(&window[0]) {
                    continue;
                }
                let distance = i32::from_le_bytes([window[1], window[2], window[3], window[4]]);
                let behind = start.wrapping_add((at + INSTRUCTION) as u64);
                let target = behind.wrapping_add_signed(i64::from(distance));
                if let Some(callee) = targets.get(&target)
                    && let Some(caller) = self.starts.get(start)
                    && caller != *callee
                {
                    found.insert((caller.clone(), (*callee).clone()));
                }
            }
        }
        found
    }
}

impl Lab {
    /// Gives a ledger the callers of the functions that only one of its kernels executes, from the
    /// images of the base and of the new kernel.
    pub fn add_callers(&self, ledger: &mut Ledger, builds: [&Build; 2]) {
        for ((side, functions), build) in ledger.one_sided().into_iter().enumerate().zip(builds) {
            ledger.callers[side] = self.direct_callers(build, &functions);
        }
    }

    /// Returns the functions that call others directly, by names without what compilers append;
    /// nothing of a kernel whose image or symbols are not known.
    fn direct_callers(
        &self,
        build: &Build,
        functions: &BTreeSet<String>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        if functions.is_empty() {
            return found;
        }
        let Some((code, symbols)) = self.code_and_symbols(build) else {
            return found;
        };
        for (caller, callee) in Functions::new(&code, &symbols).calls_of(functions) {
            found.entry(callee).or_default().insert(caller);
        }
        found
    }

    fn code_and_symbols(&self, build: &Build) -> Option<(CodeBytes, Symbols)> {
        let code = CodeBytes::open(&build.boot_file().path)?;
        Some((code, self.stored_symbols(build)?))
    }

    /// Returns the callers of functions in a kernel, by their names without what compilers append;
    /// nothing of a kernel whose image or symbols are not known.
    #[must_use]
    pub fn callers(
        &self,
        build: &Build,
        functions: &BTreeSet<String>,
    ) -> BTreeMap<String, Callers> {
        let Some((code, symbols)) = self.code_and_symbols(build) else {
            return BTreeMap::new();
        };
        let all = Functions::new(&code, &symbols);
        let mut found: BTreeMap<String, Callers> = BTreeMap::new();
        // What is looked for at a level, and for which functions.
        let mut wanted: BTreeMap<String, BTreeSet<String>> = functions
            .iter()
            .map(|function| (function.clone(), [function.clone()].into()))
            .collect();
        for level in 0..LEVELS {
            let mut next: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
            for (caller, callee) in all.calls_of(&wanted.keys().cloned().collect()) {
                for function in wanted.get(&callee).into_iter().flatten() {
                    let callers = found.entry(function.clone()).or_default();
                    if ALL_SYSTEM_CALLS.contains(&&*caller) {
                        callers.is_system_call |= level == 0;
                        continue;
                    }
                    callers.levels[level].insert(caller.clone());
                    next.entry(caller.clone())
                        .or_default()
                        .insert(function.clone());
                }
            }
            wanted = next;
        }
        for (start, name) in &all.starts {
            if functions.contains(name) {
                let callers = found.entry(name.clone()).or_default();
                for address in code.pointers_to(*start) {
                    let place = symbols.place_of(address);
                    let data =
                        place.filter(|place| !place.is_function && !place.name.starts_with("__"));
                    callers
                        .pointers
                        .extend(data.map(|place| place.name.to_owned()));
                }
            }
        }
        found
    }
}
