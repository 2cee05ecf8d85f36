//! BPF: maps, the verifier and running programs, by bpf(2) (`include/uapi/linux/bpf.h`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::{Between, Made, Workload};
use crate::sys::check;

/// Keys of the map.
const KEYS: u32 = 256;
/// Branches of the program that is verified.
const BRANCHES: i16 = 64;
/// How often one call runs the program.
const REPEATS: u32 = 128;
/// A frame that the program sees.
const FRAME: [u8; 64] = [0; 64];

const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const MAP_UPDATE: i32 = 2;
const MAP_DELETE: i32 = 3;
const PROGRAM_LOAD: i32 = 5;
const PROGRAM_TEST_RUN: i32 = 10;
const HASH: u32 = 1;
const SOCKET_FILTER: u32 = 1;

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    immediate: i32,
}

const fn instruction(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Instruction {
    Instruction {
        code,
        registers: to | from << 4,
        offset,
        immediate,
    }
}

// Codes of include/uapi/linux/bpf.h and bpf_common.h: class, width or operand, operation.
const MOVE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
const ADD: u8 = 0x07;
const STORE_WORD: u8 = 0x62;
const LOAD_WORD: u8 = 0x61;
const LOAD_MAP: u8 = 0x18;
const JUMP_EQUAL: u8 = 0x15;
const JUMP_GREATER: u8 = 0x25;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const LOOKUP_HELPER: i32 = 1;
/// What makes the number of a map an address (`BPF_PSEUDO_MAP_FD`).
const OF_MAP: u8 = 1;

/// The kernel's `union bpf_attr`, of 64 bytes as Linux 4.12 has it.
#[derive(Default)]
struct Attributes([u64; 8]);

impl Attributes {
    fn with(words: &[(usize, u32)], addresses: &[(usize, u64)]) -> Self {
        let mut bytes = [0u8; 64];
        for (at, word) in words {
            bytes[*at..at + 4].copy_from_slice(&word.to_ne_bytes());
        }
        for (at, address) in addresses {
            bytes[*at..at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        let mut attributes = Self::default();
        for (word, piece) in attributes.0.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_ne_bytes(*piece);
        }
        attributes
    }

    /// Calls bpf(2).
    ///
    /// # Safety
    /// The addresses must be those of memory that is valid for the call and as large as the kernel
    /// takes it to be.
    unsafe fn call(&mut self, command: i32) -> io::Result<i64> {
        // SAFETY: the attributes are valid for the call; the caller vouches for what they point to.
        check(unsafe {
            libc::syscall(
                libc::SYS_bpf,
                command,
                self.0.as_mut_ptr(),
                size_of_val(&self.0),
            )
        })
    }

    /// The same for a call that opens a descriptor.
    ///
    /// # Safety
    /// As of [`Self::call`].
    unsafe fn open(&mut self, command: i32) -> io::Result<OwnedFd> {
        // SAFETY: the caller vouches for it.
        let raw = unsafe { self.call(command) }?;
        let raw = i32::try_from(raw).map_err(io::Error::other)?;
        // SAFETY: the call just opened it, and it is nowhere else.
        Ok(unsafe { OwnedFd::from_raw_fd(raw) })
    }
}

/// Makes a hash of numbers by numbers.
fn hash() -> io::Result<OwnedFd> {
    let words = [(0, HASH), (4, 4), (8, 8), (12, KEYS)];
    // SAFETY: no addresses are passed.
    unsafe { Attributes::with(&words, &[]).open(MAP_CREATE) }
}

fn load(program: &[Instruction]) -> io::Result<OwnedFd> {
    let length = u32::try_from(program.len()).map_err(io::Error::other)?;
    let words = [(0, SOCKET_FILTER), (4, length)];
    let addresses = [(8, program.as_ptr() as u64), (16, c"GPL".as_ptr() as u64)];
    // SAFETY: the program has the length named, and the licence ends with a zero.
    unsafe { Attributes::with(&words, &addresses).open(PROGRAM_LOAD) }
}

struct Map {
    map: OwnedFd,
}

impl Workload for Map {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut value = 0u64;
        for operation in 0..operations {
            let key = (operation % u64::from(KEYS)) as u32;
            let words = [(0, self.map.as_raw_fd() as u32)];
            let addresses = [(8, (&raw const key) as u64), (16, (&raw mut value) as u64)];
            for command in [MAP_UPDATE, MAP_LOOKUP, MAP_DELETE] {
                let addresses = match command {
                    MAP_DELETE => &addresses[..1],
                    _ => &addresses[..],
                };
                // SAFETY: key and value have the sizes that the map was made with.
                unsafe { Attributes::with(&words, addresses).call(command) }?;
            }
        }
        Ok(())
    }
}

/// bpf-map: an element of a hash is written, read and removed.
pub(super) fn map() -> Made {
    Ok(Box::new(Map { map: hash()? }))
}

struct Load(Vec<Instruction>);

impl Workload for Load {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            drop(load(&self.0)?);
        }
        Ok(())
    }
}

/// bpf-load: a program with branches is verified and made ready, and closed.
pub(super) fn verify() -> Made {
    let mut program = vec![
        instruction(MOVE, 0, 0, 0, 0),
        // The length of the packet, which the verifier does not know.
        instruction(LOAD_WORD, 2, 1, 0, 0),
    ];
    for branch in 0..BRANCHES {
        program.push(instruction(JUMP_GREATER, 2, 0, 1, i32::from(branch)));
        program.push(instruction(ADD, 0, 0, 0, 1));
    }
    program.push(instruction(EXIT, 0, 0, 0, 0));
    // A kernel without BPF says so here.
    drop(load(&program)?);
    Ok(Box::new(Load(program)))
}

struct Run {
    program: OwnedFd,
    _map: OwnedFd,
}

impl Workload for Run {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let words = [
            (0, self.program.as_raw_fd() as u32),
            (8, FRAME.len() as u32),
            (32, REPEATS),
        ];
        for _ in 0..operations {
            let addresses = [(16, FRAME.as_ptr() as u64)];
            // SAFETY: the frame has the length named; no output is asked for.
            unsafe { Attributes::with(&words, &addresses).call(PROGRAM_TEST_RUN) }?;
        }
        Ok(())
    }
}

/// bpf-run: a program that counts in a hash runs, many times in one call.
pub(super) fn run() -> Made {
    let map = hash()?;
    let (key, value) = (1u32, 0u64);
    let words = [(0, map.as_raw_fd() as u32)];
    let addresses = [
        (8, (&raw const key) as u64),
        (16, (&raw const value) as u64),
    ];
    // SAFETY: key and value have the sizes that the map was made with.
    unsafe { Attributes::with(&words, &addresses).call(MAP_UPDATE) }?;
    let program = load(&[
        instruction(STORE_WORD, 10, 0, -4, 1),
        instruction(MOVE_REGISTER, 2, 10, 0, 0),
        instruction(ADD, 2, 0, 0, -4),
        instruction(LOAD_MAP, 1, OF_MAP, 0, map.as_raw_fd()),
        instruction(0, 0, 0, 0, 0),
        instruction(CALL, 0, 0, 0, LOOKUP_HELPER),
        instruction(JUMP_EQUAL, 0, 0, 3, 0),
        instruction(LOAD_WORD, 1, 0, 0, 0),
        instruction(ADD, 1, 0, 0, 1),
        // STX | W | MEM: the counted number goes back.
        instruction(0x63, 0, 1, 0, 0),
        instruction(MOVE, 0, 0, 0, 0),
        instruction(EXIT, 0, 0, 0, 0),
    ])?;
    Ok(Box::new(Run { program, _map: map }))
}
