//! Stacks in user mode by the rules of `.eh_frame`, or by frame pointers where there are none: code
//! that a runtime compiled, and Go. Of blocked threads without stopping them: program counter and
//! stack pointer from `/proc/TID/syscall`, the stack from `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, Encoding, EndianSlice, EvaluationResult, Expression, Format,
    LittleEndian, Location, Register, RegisterRule, UnwindContext, UnwindSection, Value, X86_64,
};

use crate::imports::Called;
use crate::proc::{Call, Mapping};
use crate::symbols::{Frames, Modules};

/// Most functions of a stack.
const DEPTH: usize = 32;
/// What is read of a stack (bytes).
const STACK: usize = 32 << 10;
/// What is searched for return addresses (bytes), and how many are taken.
const SEARCHED: usize = 2 << 10;
const RETURNS_MAX: usize = 16;
/// The longest call instruction (bytes).
const CALL: usize = 7;

/// The stack of a blocked thread, as it was when it was seen. Its functions are named later: reading
/// the tables of a large program takes long.
#[derive(Debug)]
pub(crate) struct Captured {
    program_counter: u64,
    stack_pointer: u64,
    bytes: Vec<u8>,
    /// Words at the beginning that may be return addresses.
    returns: Vec<u64>,
}

impl Captured {
    /// Reads the stack of a blocked thread.
    pub(crate) fn read(memory: &File, maps: &[Mapping], call: &Call) -> Self {
        let mut bytes = vec![0; STACK];
        let size = read_some(memory, call.stack_pointer, &mut bytes);
        bytes.truncate(size);
        Self {
            program_counter: call.program_counter,
            stack_pointer: call.stack_pointer,
            returns: search(memory, &bytes, maps),
            bytes,
        }
    }

    /// Returns what was read, from the stack pointer on.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the addresses of its functions, innermost first.
    pub(crate) fn unwind(&self, maps: &[Mapping], modules: &mut Modules) -> Vec<u64> {
        let registers = Registers {
            program_counter: self.program_counter,
            stack_pointer: self.stack_pointer,
            saved: [None; 17],
        };
        let found = unwind(&registers, &self.bytes, maps, modules);
        let is_without_rules = maps
            .iter()
            .find(|mapping| (mapping.start..mapping.end).contains(&self.program_counter))
            .and_then(|mapping| modules.module(mapping))
            .is_some_and(|module| module.frames.is_none());
        if found.len() == 1 && is_without_rules {
            return std::iter::once(self.program_counter)
                .chain(self.returns.iter().copied())
                .collect();
        }
        found
    }
}

/// Searches a stack for return addresses: words that point behind a call. The registers of a
/// blocked thread are not known, and a program of Go has no rules for unwinding. Some may be left
/// from calls that have returned.
fn search(memory: &File, stack: &[u8], maps: &[Mapping]) -> Vec<u64> {
    let words = stack[..stack.len().min(SEARCHED)].chunks_exact(8);
    let is_return = |address: &u64| {
        let is_code = maps.iter().any(|mapping| {
            mapping.is_executable && (mapping.start + CALL as u64..mapping.end).contains(address)
        });
        let mut before = [0; CALL];
        is_code
            && memory
                .read_exact_at(&mut before, address - CALL as u64)
                .is_ok()
            && is_call(before)
    };
    words
        .filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?)))
        .filter(is_return)
        .take(RETURNS_MAX)
        .map(|address| address - 1)
        .collect()
}

/// Whether bytes end with a call: a direct one (E8), or an indirect one (FF /2) of two to seven
/// bytes.
fn is_call(bytes: [u8; CALL]) -> bool {
    let is_indirect = |length: usize| {
        let [first, second] = [bytes[CALL - length], bytes[CALL - length + 1]];
        first == 0xff && second >> 3 & 7 == 2
    };
    bytes[CALL - 5] == 0xe8 || (2..=CALL).any(is_indirect)
}

/// Returns the addresses of a stack's functions, innermost first; `stack` is what lies from the
/// stack pointer on.
pub(crate) fn unwind(
    registers: &Registers,
    stack: &[u8],
    maps: &[Mapping],
    modules: &mut Modules,
) -> Vec<u64> {
    let stack = Stack {
        start: registers.stack_pointer,
        bytes: stack,
    };
    let mut registers = registers.clone();
    let mut found = vec![registers.program_counter];
    while found.len() < DEPTH {
        // A return address is behind its call, which can be the last instruction of a function.
        let looked_up = if found.len() == 1 {
            registers.program_counter
        } else {
            registers.program_counter - 1
        };
        let next = match step(&registers, looked_up, &stack, maps, modules) {
            Step::To(next) => *next,
            Step::End => break,
            Step::Unknown => match scan(&registers, looked_up, &stack, maps, modules) {
                Some(next) => next,
                None => break,
            },
        };
        if next.program_counter == 0 || next.stack_pointer <= registers.stack_pointer {
            break;
        }
        found.push(next.program_counter - 1);
        registers = next;
    }
    found
}

/// Reads what is mapped, up to the end of the stack.
fn read_some(memory: &File, address: u64, buffer: &mut [u8]) -> usize {
    let mut size = 0;
    while size < buffer.len() {
        match memory.read_at(&mut buffer[size..], address + size as u64) {
            Ok(0) | Err(_) => break,
            Ok(more) => size += more,
        }
    }
    size
}

struct Stack<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let offset = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(
            self.bytes
                .get(offset..offset.checked_add(8)?)?
                .try_into()
                .ok()?,
        ))
    }
}

/// Registers of a function.
#[derive(Debug, Clone)]
pub(crate) struct Registers {
    pub(crate) program_counter: u64,
    pub(crate) stack_pointer: u64,
    /// What is known of the others, by their DWARF number.
    pub(crate) saved: [Option<u64>; 17],
}

impl Registers {
    fn get(&self, register: Register) -> Option<u64> {
        if register == X86_64::RSP {
            Some(self.stack_pointer)
        } else {
            *self.saved.get(usize::from(register.0))?
        }
    }
}

/// Returns the registers of the calling function if RBP points to them, as compilers for V8 and Go
/// leave it.
fn step_by_frame_pointer(
    registers: &Registers,
    stack: &Stack,
    maps: &[Mapping],
) -> Option<Registers> {
    let frame = registers.get(X86_64::RBP)?;
    if frame < registers.stack_pointer {
        return None;
    }
    let program_counter = stack.word(frame.checked_add(8)?)?;
    let is_code = |mapping: &Mapping| {
        mapping.is_executable && (mapping.start..mapping.end).contains(&program_counter)
    };
    maps.iter().any(is_code).then(|| {
        let mut saved = [None; 17];
        saved[usize::from(X86_64::RBP.0)] = stack.word(frame);
        Registers {
            program_counter,
            stack_pointer: frame.wrapping_add(16),
            saved,
        }
    })
}

/// What the rules tell of the calling function.
enum Step {
    To(Box<Registers>),
    /// There is none.
    End,
    /// They need what is not known.
    Unknown,
}

impl From<Option<Registers>> for Step {
    fn from(found: Option<Registers>) -> Self {
        found.map_or(Self::Unknown, |found| Self::To(Box::new(found)))
    }
}

/// Searches the stack for the return address of a function whose rules need a register that is not
/// known: the next word that points behind a call of this very function, or else behind one that may
/// be of it.
fn scan(
    registers: &Registers,
    looked_up: u64,
    stack: &Stack,
    maps: &[Mapping],
    modules: &mut Modules,
) -> Option<Registers> {
    let around = |address: u64| {
        maps.iter().find(|mapping| {
            mapping.is_executable && (mapping.start..mapping.end).contains(&address)
        })
    };
    let mapping = around(looked_up)?;
    let module = modules.module(mapping)?;
    let start = module.start(module.address(mapping, looked_up))?;
    let mut possible = None;
    // The register has whatever the program put there.
    let first = registers.stack_pointer.checked_next_multiple_of(8)?;
    for at in (first..first.saturating_add(SEARCHED as u64)).step_by(8) {
        let Some(word) = stack.word(at) else { break };
        let Some(caller) = around(word) else { continue };
        let is_same_file = caller.path == mapping.path;
        let Some(module) = modules.module(caller) else {
            continue;
        };
        match module.imports.called(module.address(caller, word)) {
            Some(Called::Address(target)) if is_same_file && target == start => {
                return Some(returned(word, at, stack));
            }
            Some(Called::Import(_) | Called::Unknown) if possible.is_none() => {
                possible = Some(returned(word, at, stack));
            }
            _ => {}
        }
    }
    possible
}

/// Returns the registers behind a return that is at an address of the stack. Below that a function
/// with a frame pointer saved its caller's.
fn returned(program_counter: u64, at: u64, stack: &Stack) -> Registers {
    let mut saved = [None; 17];
    let below = at.checked_sub(8).and_then(|below| stack.word(below));
    let is_of_stack = |word: &u64| *word > at && stack.word(*word).is_some();
    saved[usize::from(X86_64::RBP.0)] = below.filter(is_of_stack);
    Registers {
        program_counter,
        stack_pointer: at.wrapping_add(8),
        saved,
    }
}

fn step(
    registers: &Registers,
    looked_up: u64,
    stack: &Stack,
    maps: &[Mapping],
    modules: &mut Modules,
) -> Step {
    let Some(mapping) = maps
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&looked_up))
    else {
        return Step::End;
    };
    let found = modules.module(mapping).and_then(|module| {
        let frames = module.frames.as_ref()?;
        let address = module.address(mapping, looked_up);
        let (_, offset) = frames.find(address)?;
        Some((frames, address, offset))
    });
    match found {
        Some((frames, address, offset)) => step_by_rules(registers, stack, frames, address, offset),
        None => step_by_frame_pointer(registers, stack, maps).into(),
    }
}

fn step_by_rules(
    registers: &Registers,
    stack: &Stack,
    frames: &Frames,
    address: u64,
    offset: usize,
) -> Step {
    let table = EhFrame::new(&frames.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(frames.section);
    let entry = table.fde_from_offset(
        &bases,
        offset.into(),
        |section: &EhFrame<_>, bases: &BaseAddresses, offset| {
            section.cie_from_offset(bases, offset)
        },
    );
    let mut context = UnwindContext::new();
    let row = entry.as_ref().ok().and_then(|entry| {
        entry
            .unwind_info_for_address(&table, &bases, &mut context, address)
            .ok()
    });
    let Some(row) = row else { return Step::Unknown };
    if row.register(X86_64::RA) == Some(RegisterRule::Undefined) {
        return Step::End;
    }
    caller_of(registers, stack, row, &table).into()
}

/// Returns the registers of the calling function by a row of rules.
fn caller_of(
    registers: &Registers,
    stack: &Stack,
    row: &gimli::UnwindTableRow<usize>,
    table: &EhFrame<EndianSlice<LittleEndian>>,
) -> Option<Registers> {
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(*register)?.checked_add_signed(*offset)?
        }
        // Assembler that aligns the stack keeps where it was before on it, as that of OpenSSL does.
        CfaRule::Expression(expression) => evaluate(expression.get(table).ok()?, registers, stack)?,
    };
    let mut next = Registers {
        program_counter: 0,
        stack_pointer: frame,
        saved: registers.saved,
    };
    for number in 0..17_u16 {
        let register = Register(number);
        let value = match row.register(register) {
            Some(RegisterRule::Offset(offset)) => stack.word(frame.checked_add_signed(offset)?),
            Some(RegisterRule::ValOffset(offset)) => frame.checked_add_signed(offset),
            // Without a rule a register keeps its value, if the function is bound to restore it.
            _ => registers.saved[usize::from(number)],
        };
        next.saved[usize::from(number)] = value;
    }
    next.program_counter = next.saved[usize::from(X86_64::RA.0)]?;
    Some(next)
}

/// Operations of an expression that are executed at most.
const OPERATIONS_MAX: u32 = 100;

/// Returns the address that an expression has (DWARF 5, section 2.5), by registers and the stack.
fn evaluate(
    expression: Expression<EndianSlice<LittleEndian>>,
    registers: &Registers,
    stack: &Stack,
) -> Option<u64> {
    let encoding = Encoding {
        address_size: 8,
        format: Format::Dwarf32,
        version: 4,
    };
    let mut evaluation = expression.evaluation(encoding);
    evaluation.set_max_iterations(OPERATIONS_MAX);
    let mut result = evaluation.evaluate().ok()?;
    loop {
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresMemory {
                address, size: 8, ..
            } => {
                let word = Value::Generic(stack.word(address)?);
                evaluation.resume_with_memory(word).ok()?
            }
            EvaluationResult::RequiresRegister { register, .. } => {
                let value = Value::Generic(registers.get(register)?);
                evaluation.resume_with_register(value).ok()?
            }
            _ => return None,
        };
    }
    match evaluation.result().first()?.location {
        Location::Address { address } => Some(address),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expression_finds_what_assembler_put_aside() {
        // DW_OP_breg7 (RSP) 16, DW_OP_deref, DW_OP_plus_uconst 8.
        let bytes = [0x77, 16, 0x06, 0x23, 8];
        let expression = || Expression(EndianSlice::new(&bytes, LittleEndian));
        let registers = Registers {
            program_counter: 0,
            stack_pointer: 0x7000,
            saved: [None; 17],
        };
        let mut words = vec![0_u8; 16];
        words.extend(0x7100_u64.to_le_bytes());
        let [here, elsewhere] = [0x7000, 0x9000].map(|start| Stack {
            start,
            bytes: &words,
        });
        assert_eq!(evaluate(expression(), &registers, &here), Some(0x7108));
        assert_eq!(evaluate(expression(), &registers, &elsewhere), None);
    }

    #[test]
    fn stack_pointer_at_the_end_is_survived() {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let maps = crate::proc::maps(&maps);
        let mut modules = Modules::default();
        modules.find(std::process::id(), &maps);
        let own = is_call as *const () as u64;
        for stack_pointer in [u64::MAX, u64::MAX - 7, u64::MAX - 16] {
            let registers = Registers {
                program_counter: own,
                stack_pointer,
                saved: [Some(stack_pointer - 15); 17],
            };
            let stack = Stack {
                start: stack_pointer & !7,
                bytes: &[0xff; 64],
            };
            let found = scan(&registers, own, &stack, &maps, &mut modules);
            assert!(found.is_none());
            assert!(step_by_frame_pointer(&registers, &stack, &maps).is_none());
        }
    }

    #[test]
    fn calls_are_known_by_their_bytes() {
        let direct = [0, 0, 0xe8, 1, 2, 3, 4];
        let by_register = [0, 0, 0, 0, 0, 0xff, 0xd0];
        let by_memory = [0xff, 0x14, 0x25, 1, 2, 3, 4];
        assert!([direct, by_register, by_memory].into_iter().all(is_call));
        // A jump (FF /4) returns to no caller.
        assert!(!is_call([0, 0, 0, 0, 0, 0xff, 0xe0]) && !is_call([0; CALL]));
    }
}
