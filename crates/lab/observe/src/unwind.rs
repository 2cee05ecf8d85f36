//! Stacks in user mode by the rules of `.eh_frame`. Of blocked threads without stopping them:
//! program counter and stack pointer from `/proc/TID/syscall`, the stack from `/proc/PID/mem`.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection, X86_64,
};

use crate::proc::{Call, Mapping};
use crate::symbols::Modules;

/// Most functions of a stack.
const DEPTH: usize = 32;
/// What is read of a stack (bytes).
const STACK: usize = 64 << 10;

/// Returns the addresses of a blocked thread's functions, innermost first.
pub(crate) fn unwind_blocked(
    memory: &File,
    maps: &[Mapping],
    modules: &mut Modules,
    call: &Call,
) -> Vec<u64> {
    let Call {
        program_counter,
        stack_pointer,
        ..
    } = *call;
    let mut stack = vec![0; STACK];
    let size = read_some(memory, stack_pointer, &mut stack);
    let registers = Registers {
        program_counter,
        stack_pointer,
        saved: [None; 17],
    };
    unwind(&registers, &stack[..size], maps, modules)
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
        let Some(next) = step(&registers, looked_up, &stack, maps, modules) else {
            break;
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

/// Returns the registers of the calling function; `None` at the end, or if the rules need what is
/// not known.
fn step(
    registers: &Registers,
    looked_up: u64,
    stack: &Stack,
    maps: &[Mapping],
    modules: &mut Modules,
) -> Option<Registers> {
    let mapping = maps
        .iter()
        .find(|mapping| (mapping.start..mapping.end).contains(&looked_up))?;
    let module = modules.module(mapping)?;
    let frames = module.frames.as_ref()?;
    let address = module.address(mapping, looked_up);
    let (_, offset) = frames.find(address)?;
    let table = EhFrame::new(&frames.bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(frames.section);
    let entry = table
        .fde_from_offset(
            &bases,
            offset.into(),
            |section: &EhFrame<_>, bases: &BaseAddresses, offset| {
                section.cie_from_offset(bases, offset)
            },
        )
        .ok()?;
    let mut context = UnwindContext::new();
    let row = entry
        .unwind_info_for_address(&table, &bases, &mut context, address)
        .ok()?;
    let frame = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            registers.get(*register)?.checked_add_signed(*offset)?
        }
        CfaRule::Expression(_) => return None,
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
            Some(RegisterRule::Undefined) if register == X86_64::RA => return None,
            // Without a rule a register keeps its value, if the function is bound to restore it.
            _ => registers.saved[usize::from(number)],
        };
        next.saved[usize::from(number)] = value;
    }
    next.program_counter = next.saved[usize::from(X86_64::RA.0)]?;
    Some(next)
}
