//! Which function a call asks for: by the instruction before a return address, the entry of the
//! procedure linkage table that it calls, the slot that this entry jumps through, and the symbol
//! with which the dynamic linker fills the slot (System V ABI, AMD64 supplement, 5.2).
//!
//! Functions such as `strlen` are chosen when a program starts, and the chosen one has a name in no
//! table of symbols of a stripped library: only their callers say what they are.

use std::collections::BTreeMap;

use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, ObjectSymbolTable as _, RelocationFlags,
    RelocationTarget, SectionKind,
};

/// Code that is kept of a file at most (bytes).
const CODE_MAX: usize = 24 << 20;
/// Kinds of relocations that fill a slot (elf.h): `R_X86_64_GLOB_DAT`, `R_X86_64_JUMP_SLOT` and
/// `R_X86_64_IRELATIVE`.
const GLOB_DAT: u32 = 6;
const JUMP_SLOT: u32 = 7;
const IRELATIVE: u32 = 37;
/// The longest call instruction (bytes).
const CALL: u64 = 7;
const PAUSE: [u8; 2] = [0xf3, 0x90];
/// The longest atomic instruction that is looked for (bytes).
const ATOMIC_MAX: usize = 13;

/// What a call asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Called {
    /// A function of another file or one that is chosen at the start, by its name.
    Import(String),
    /// The function at this address of the same file.
    Address(u64),
    /// Known only when it is executed.
    Unknown,
}

/// The code of a file and the slots through which it calls others.
#[derive(Debug, Default)]
pub(crate) struct Imports {
    code: Vec<(u64, Vec<u8>)>,
    slots: BTreeMap<u64, String>,
}

impl Imports {
    /// Reads them of an ELF file; `functions` are its own, by address.
    pub(crate) fn read(file: &object::File, functions: &BTreeMap<u64, (u64, String)>) -> Self {
        let mut imports = Self::default();
        let is_code = |section: &object::Section| section.kind() == SectionKind::Text;
        let size: u64 = file.sections().filter(is_code).map(|one| one.size()).sum();
        if !cfg!(target_arch = "x86_64") || size > CODE_MAX as u64 {
            return imports;
        }
        for section in file.sections().filter(is_code) {
            if let Ok(bytes) = section.data() {
                imports.code.push((section.address(), bytes.to_vec()));
            }
        }
        let symbols = file.dynamic_symbol_table();
        // Slots may share a name, but all names take no more memory than the code.
        let mut room = usize::try_from(size).unwrap_or_default();
        for (slot, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let name = match (r_type.0, relocation.target()) {
                (GLOB_DAT | JUMP_SLOT, RelocationTarget::Symbol(index)) => symbols
                    .as_ref()
                    .and_then(|symbols| symbols.symbol_by_index(index).ok())
                    .and_then(|symbol| symbol.name().ok().map(str::to_owned)),
                // The address is that of the function that chooses, which has the name.
                (IRELATIVE, _) => u64::try_from(relocation.addend())
                    .ok()
                    .and_then(|address| functions.get(&address))
                    .map(|(_, name)| name.clone()),
                _ => None,
            };
            if let Some(name) = name.filter(|name| !name.is_empty()) {
                let Some(left) = room.checked_sub(name.len()) else {
                    break;
                };
                room = left;
                imports.slots.insert(slot, name);
            }
        }
        imports
    }

    /// Returns what the call asks for that is before a return address; `None` without a call.
    pub(crate) fn called(&self, return_address: u64) -> Option<Called> {
        let before: [u8; CALL as usize] = self
            .bytes(return_address.checked_sub(CALL)?, CALL as usize)?
            .try_into()
            .ok()?;
        let displacement = i32::from_le_bytes([before[3], before[4], before[5], before[6]]);
        let target = return_address.wrapping_add_signed(displacement.into());
        // call *slot(%rip)
        if before[1..3] == [0xff, 0x15] {
            return Some(self.import(target));
        }
        // call target
        if before[2] == 0xe8 && self.bytes(target, 1).is_some() {
            return Some(match self.slot_of_entry(target) {
                Some(slot) => self.import(slot),
                None => Called::Address(target),
            });
        }
        let is_indirect = |length: usize| {
            let [first, second] = [before[7 - length], before[8 - length]];
            first == 0xff && second >> 3 & 7 == 2
        };
        (2..=7).any(is_indirect).then_some(Called::Unknown)
    }

    /// Whether the instruction before an address is an atomic one: what a sample is behind was
    /// slow.
    pub(crate) fn is_behind_atomic(&self, address: u64) -> bool {
        (3..=ATOMIC_MAX).any(|length| {
            let start = address.checked_sub(length as u64);
            let bytes = start.and_then(|start| self.bytes(start, length));
            bytes.is_some_and(|bytes| atomic_length(bytes) == Some(length))
        })
    }

    /// Whether an address is at or behind a PAUSE, with which a loop waits for a change of memory
    /// (Intel SDM 2B, PAUSE).
    pub(crate) fn is_at_pause(&self, address: u64) -> bool {
        let is_pause = |at: u64| self.bytes(at, PAUSE.len()) == Some(&PAUSE);
        is_pause(address) || address.checked_sub(2).is_some_and(is_pause)
    }

    /// Whether a handler of signals returns to an address: `mov $15, %rax; syscall`
    /// (glibc: sysdeps/unix/sysv/linux/x86_64/libc_sigaction.c).
    pub(crate) fn is_restorer(&self, address: u64) -> bool {
        let code = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        self.bytes(address, code.len()) == Some(&code)
    }

    fn import(&self, slot: u64) -> Called {
        let name = self.slots.get(&slot).cloned();
        name.map_or(Called::Unknown, Called::Import)
    }

    /// Returns the slot through which an entry of the table jumps: `jmp *slot(%rip)`, after an
    /// `endbr64` and with a prefix where the processor is to check it.
    fn slot_of_entry(&self, entry: u64) -> Option<u64> {
        let mut at = entry;
        if self.bytes(at, 4) == Some(&[0xf3, 0x0f, 0x1e, 0xfa]) {
            at += 4;
        }
        if self.bytes(at, 1) == Some(&[0xf2]) {
            at += 1;
        }
        let jump = self.bytes(at, 6)?;
        let displacement = i32::from_le_bytes([jump[2], jump[3], jump[4], jump[5]]);
        let is_jump = jump[..2] == [0xff, 0x25];
        is_jump.then(|| (at + 6).checked_add_signed(displacement.into()))?
    }

    /// Returns bytes of the code.
    pub(crate) fn bytes(&self, address: u64, size: usize) -> Option<&[u8]> {
        self.code.iter().find_map(|(start, bytes)| {
            let offset = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(offset..offset.checked_add(size)?)
        })
    }
}

/// Returns the length of the atomic instruction at the begin of bytes: one with a lock prefix, or
/// an exchange with memory; or of an `mfence` (Intel SDM 2.1, 9.1.2.2).
fn atomic_length(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(&[0x0f, 0xae, 0xf0]) {
        return Some(3);
    }
    let is_prefix =
        |byte: &&u8| matches!(byte, 0xf0 | 0x66 | 0xf2 | 0xf3 | 0x2e | 0x3e | 0x64 | 0x65);
    let mut at = bytes.iter().take_while(is_prefix).count();
    let prefixes = &bytes[..at];
    let is_locked = prefixes.contains(&0xf0);
    at += usize::from(bytes.get(at)? & 0xf0 == 0x40);
    let is_long = *bytes.get(at)? == 0x0f;
    at += usize::from(is_long);
    let opcode = *bytes.get(at)?;
    let changes = if is_long {
        matches!(
            opcode,
            0xb0 | 0xb1 | 0xc0 | 0xc1 | 0xc7 | 0xab | 0xb3 | 0xbb | 0xba
        )
    } else {
        matches!(opcode, 0x80 | 0x81 | 0x83 | 0xf6 | 0xf7 | 0xfe | 0xff)
            || opcode < 0x38 && opcode & 7 < 2
    };
    let is_exchange = !is_long && matches!(opcode, 0x86 | 0x87);
    if !(is_locked && changes || is_exchange) {
        return None;
    }
    let immediate = match (is_long, opcode) {
        (false, 0x80 | 0x83) | (true, 0xba) => 1,
        (false, 0x81) if prefixes.contains(&0x66) => 2,
        (false, 0x81) => 4,
        _ => 0,
    };
    // The operand in memory: ModRM, SIB and displacement.
    let operand = *bytes.get(at + 1)?;
    let (mode, register) = (operand >> 6, operand & 7);
    let has_base = register != 4 || bytes.get(at + 2)? & 7 != 5;
    let displacement = match mode {
        0 if register == 5 || !has_base => 4,
        0 => 0,
        1 => 1,
        2 => 4,
        _ => return None,
    };
    Some(at + 2 + usize::from(register == 4) + displacement + immediate)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Eight bytes before 0x1000; there a call of the entry at 0x2000, at 0x1005 one through the
    /// slot, at 0x100b one of 0x1020, at 0x1010 one by a register.
    fn imports() -> Imports {
        let mut code = vec![0x90; 0x1040];
        let mut put =
            |at: usize, bytes: &[u8]| code[8 + at..][..bytes.len()].copy_from_slice(bytes);
        put(0, &[0xe8, 0xfb, 0x0f, 0, 0]);
        put(5, &[0xff, 0x15, 0xf5, 0x1f, 0, 0]);
        put(11, &[0xe8, 0x10, 0, 0, 0]);
        put(16, &[0xff, 0xd0]);
        let entry = [0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0x0f, 0, 0];
        put(0x1000, &entry);
        Imports {
            code: vec![(0xff8, code)],
            slots: BTreeMap::from([(0x3000, "strlen".to_owned())]),
        }
    }

    #[test]
    fn calls_name_what_they_ask_for() {
        let imports = imports();
        let strlen = Some(Called::Import("strlen".into()));
        assert_eq!(imports.called(0x1005), strlen);
        assert_eq!(imports.called(0x100b), strlen);
        assert_eq!(imports.called(0x1010), Some(Called::Address(0x1020)));
        assert_eq!(imports.called(0x1012), Some(Called::Unknown));
        assert_eq!(imports.called(0x1030), None);
    }

    #[test]
    fn atomic_instructions_have_lengths() {
        let cases: [(&[u8], Option<usize>); 7] = [
            // lock add %rax,(%rdi); lock xadd %eax,0x40(%rdi); lock orq $0,(%rsp)
            (&[0xf0, 0x48, 0x01, 0x07], Some(4)),
            (&[0xf0, 0x0f, 0xc1, 0x47, 0x40], Some(5)),
            (&[0xf0, 0x48, 0x83, 0x0c, 0x24, 0x00], Some(6)),
            // xchg %eax,0x10(%rip); lock incl 0x1000(,%rax,4); mfence
            (&[0x87, 0x05, 0x10, 0, 0, 0], Some(6)),
            (&[0xf0, 0xff, 0x04, 0x85, 0, 0x10, 0, 0], Some(8)),
            (&[0x0f, 0xae, 0xf0], Some(3)),
            // add %rax,(%rdi)
            (&[0x48, 0x01, 0x07], None),
        ];
        for (bytes, length) in cases {
            assert_eq!(atomic_length(bytes), length, "{bytes:x?}");
        }
        let imports = Imports {
            code: vec![(0x100, vec![0x90, 0xf0, 0x48, 0x01, 0x07, 0x90])],
            slots: BTreeMap::new(),
        };
        assert!(imports.is_behind_atomic(0x105) && !imports.is_behind_atomic(0x104));
    }

    #[test]
    fn pause_is_found_at_and_before_an_address() {
        let imports = Imports {
            code: vec![(0x100, vec![0x90, 0xf3, 0x90, 0x75, 0xf2])],
            slots: BTreeMap::new(),
        };
        let found: Vec<u64> = (0xf0..0x110)
            .filter(|at| imports.is_at_pause(*at))
            .collect();
        assert_eq!(found, [0x101, 0x103]);
    }

    #[test]
    fn restorer_is_known_by_its_code() {
        let code = vec![0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
        let imports = Imports {
            code: vec![(0x100, code)],
            slots: BTreeMap::new(),
        };
        assert!(imports.is_restorer(0x100) && !imports.is_restorer(0x101));
    }

    #[test]
    fn own_program_has_slots() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let imports = Imports::read(&file, &BTreeMap::new());
        if cfg!(target_arch = "x86_64") {
            assert!(
                imports
                    .slots
                    .values()
                    .any(|name| name.contains("libc_start_main"))
            );
        }
    }
}
