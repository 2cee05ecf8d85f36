//! Making processes: fork, vfork, exec.
//!
//! The loop is machine code in a page of its own. Compiled code would make the numbers depend on
//! the agent: a child that runs in the agent's text takes faults for it, as many as the compiler's
//! and linker's layout wants, and each write to the stack copies a page. Here neither side touches
//! memory between fork and exit or exec.

use std::arch::global_asm;
use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::ptr::null;

use super::region::{PAGE, Region};
use super::scratch::Folder;
use super::{Between, Made, Workload};
use crate::sys::{c, check};

/// Memory of a process that has some.
const MEMORY: usize = 1024 * 1024;

/// The loop: number of operations, clone flags, what to execute or null, where to put the wait
/// status. Returns 0, a negative error number, or 1 when a child ended badly.
type Loop = unsafe extern "C" fn(u64, u64, *const Program, *mut i32) -> i64;

/// The arguments of execve.
#[repr(C)]
struct Program {
    path: *const libc::c_char,
    arguments: *const *const libc::c_char,
    environment: *const *const libc::c_char,
}

// Registers: rbx operations left, rbp clone flags, r12 program, r13 status. The system call numbers
// are clone 56, execve 59, wait4 61, exit_group 231.
global_asm!(
    ".pushsection .rodata.marvin_fork_loop, \"a\"",
    "marvin_fork_loop:",
    "push rbx",
    "push rbp",
    "push r12",
    "push r13",
    "mov rbx, rdi",
    "mov rbp, rsi",
    "mov r12, rdx",
    "mov r13, rcx",
    "2:",
    "mov eax, 56",
    "mov rdi, rbp",
    "xor esi, esi",
    "xor edx, edx",
    "xor r10d, r10d",
    "xor r8d, r8d",
    "syscall",
    "test rax, rax",
    "js 6f",
    "jnz 4f",
    // The child: execute, or end well; a failed execve ends badly.
    "xor edi, edi",
    "test r12, r12",
    "jz 3f",
    "mov rdi, [r12]",
    "mov rsi, [r12 + 8]",
    "mov rdx, [r12 + 16]",
    "mov eax, 59",
    "syscall",
    "mov edi, 1",
    "3:",
    "mov eax, 231",
    "syscall",
    "4:",
    "mov rdi, rax",
    "mov rsi, r13",
    "xor edx, edx",
    "xor r10d, r10d",
    "mov eax, 61",
    "syscall",
    "test rax, rax",
    "js 6f",
    "cmp dword ptr [r13], 0",
    "jne 5f",
    "dec rbx",
    "jnz 2b",
    "xor eax, eax",
    "jmp 6f",
    "5:",
    "mov eax, 1",
    "6:",
    "pop r13",
    "pop r12",
    "pop rbp",
    "pop rbx",
    "ret",
    "marvin_fork_loop_end:",
    ".popsection",
);

unsafe extern "C" {
    static marvin_fork_loop: u8;
    static marvin_fork_loop_end: u8;
}

/// The smallest program: an ELF header, one program header, and `exit(0)`.
fn smallest_program() -> Vec<u8> {
    const BASE: u64 = 0x40_0000;
    const HEADERS: u64 = 64 + 56;
    // xor edi, edi; mov eax, 60; syscall
    let code = [0x31, 0xff, 0xb8, 60, 0, 0, 0, 0x0f, 0x05];
    let size = HEADERS + code.len() as u64;
    let mut elf = Vec::new();
    elf.extend(*b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    let half = |elf: &mut Vec<u8>, value: u16| elf.extend(value.to_le_bytes());
    let word = |elf: &mut Vec<u8>, value: u32| elf.extend(value.to_le_bytes());
    let long = |elf: &mut Vec<u8>, value: u64| elf.extend(value.to_le_bytes());
    half(&mut elf, 2); // executable
    half(&mut elf, 62); // x86-64
    word(&mut elf, 1); // version
    long(&mut elf, BASE + HEADERS); // entry
    long(&mut elf, 64); // program headers
    long(&mut elf, 0); // no section headers
    word(&mut elf, 0); // flags
    for value in [64, 56, 1, 64, 0, 0] {
        half(&mut elf, value); // sizes and counts of headers
    }
    word(&mut elf, 1); // to be loaded
    word(&mut elf, 5); // readable, executable
    for value in [0, BASE, BASE, size, size, 0x1000] {
        long(&mut elf, value); // offset, addresses, sizes, alignment
    }
    elf.extend(code);
    elf
}

/// A program to execute, and what execve is given.
pub(super) struct Executable {
    program: Box<Program>,
    _path: CString,
    _arguments: Box<[*const libc::c_char; 2]>,
    _folder: Option<Folder>,
}

impl Executable {
    fn new() -> io::Result<Self> {
        let folder = Folder::new()?;
        let program = Self::at(&folder.path("program"))?;
        Ok(Self {
            _folder: Some(folder),
            ..program
        })
    }

    /// Writes the program to a path in a folder of the caller's.
    pub(super) fn at(path: &Path) -> io::Result<Self> {
        fs::write(path, smallest_program())?;
        fs::set_permissions(path, Permissions::from_mode(0o700))?;
        let path = c(path.to_str().unwrap_or_default())?;
        let arguments = Box::new([path.as_ptr(), null()]);
        let program = Box::new(Program {
            path: path.as_ptr(),
            arguments: arguments.as_ptr(),
            // An empty list is the null at the end of the other one.
            environment: &raw const arguments[1],
        });
        Ok(Self {
            program,
            _path: path,
            _arguments: arguments,
            _folder: None,
        })
    }

    /// Executes it in the place of this process, and returns only to say why that failed.
    pub(super) fn execute(&self) -> io::Error {
        let Program {
            path,
            arguments,
            environment,
        } = *self.program;
        // SAFETY: all three point to strings and lists that live as long as `self`.
        unsafe { libc::execve(path, arguments, environment) };
        io::Error::last_os_error()
    }
}

struct Make {
    code: Region,
    /// Shared memory is not copied when the parent writes to it after a fork.
    status: Region,
    flags: u64,
    executable: Option<Executable>,
    /// What the parent has beside, and a child gets a copy of.
    _memory: Option<Region>,
}

impl Workload for Make {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        if operations == 0 {
            return Ok(());
        }
        let program = self
            .executable
            .as_ref()
            .map_or(null(), |it| &raw const *it.program);
        // SAFETY: the region holds the loop, which is position independent and follows the C
        // calling convention.
        let code = unsafe { std::mem::transmute::<*mut u8, Loop>(self.code.start()) };
        // SAFETY: `program` is null or points to valid strings; `status` is a valid, aligned int.
        // Children leave the loop only by ending, and use no stack, so that a child of
        // vfork may share ours.
        match unsafe { code(operations, self.flags, program, self.status.start().cast()) } {
            0 => Ok(()),
            1 => Err(io::Error::other("a child ended badly")),
            error => Err(io::Error::from_raw_os_error(-error as i32)),
        }
    }
}

fn make(flags: i32, executable: Option<Executable>) -> Made {
    Ok(Box::new(new_make(flags, executable)?))
}

/// The same with memory that a child gets a copy of.
fn make_large(executable: Option<Executable>) -> Made {
    let memory = Region::small_pages(1, MEMORY)?;
    memory.touch(PAGE);
    Ok(Box::new(Make {
        _memory: Some(memory),
        ..new_make(0, executable)?
    }))
}

fn new_make(flags: i32, executable: Option<Executable>) -> io::Result<Make> {
    let code = Region::anonymous(PAGE, libc::MAP_PRIVATE)?;
    let (start, end) = (&raw const marvin_fork_loop, &raw const marvin_fork_loop_end);
    // SAFETY: both labels are in the same section, the second behind the first and less than a page
    // away; the region is a writable page that nobody else uses.
    unsafe { start.copy_to_nonoverlapping(code.start(), end.offset_from(start) as usize) };
    let protection = libc::PROT_READ | libc::PROT_EXEC;
    // SAFETY: the page is ours, and from here on it is only executed.
    check(unsafe { libc::mprotect(code.start().cast(), PAGE, protection) })?;
    let status = Region::anonymous(PAGE, libc::MAP_SHARED)?;
    status.touch(PAGE);
    Ok(Make {
        code,
        status,
        flags: (flags | libc::SIGCHLD) as u64,
        executable,
        _memory: None,
    })
}

/// fork-exit: make a process that ends at once, and wait for it.
pub(super) fn fork_exit() -> Made {
    make(0, None)
}

/// fork-exec: make a process that executes the smallest program, and wait for it.
pub(super) fn fork_exec() -> Made {
    make(0, Some(Executable::new()?))
}

/// fork-vfork-exec: the same without a copy of the address space.
pub(super) fn vfork_exec() -> Made {
    make(libc::CLONE_VM | libc::CLONE_VFORK, Some(Executable::new()?))
}

/// aim9-fork: as fork-exit, from a process that has memory.
pub(super) fn fork_exit_large() -> Made {
    make_large(None)
}

/// aim9-exec: as fork-exec, from a process that has memory.
pub(super) fn fork_exec_large() -> Made {
    make_large(Some(Executable::new()?))
}
