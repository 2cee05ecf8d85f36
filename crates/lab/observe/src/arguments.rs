//! What sampled system calls were asked for, and how they ended, by the registers of their samples:
//! the file or the path, how much, with which options, and the result.
//!
//! While a call is executed the registers have its arguments (arch/x86/entry/entry_64.S). A sample
//! at the instruction behind it has its result.

use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;

use explain::facts::{Called, Stack};

use crate::calls;
use crate::memory;

/// Samples of a round of which the files and paths are looked up: each takes some system calls.
const LOOKED_UP: usize = 6;
/// What is read of a path (bytes).
const PATH_MAX: usize = 256;
/// What the kernel puts into the register of the result until there is one
/// (arch/x86/entry/entry_64.S: `PUSH_AND_CLEAR_REGS rax=$-ENOSYS`).
const NONE_YET: i64 = -38;
/// Numbers of files below this are looked up.
const FILES_MAX: u64 = 1 << 16;
/// The number that stands for the current directory (`AT_FDCWD`).
const CURRENT: u32 = (-100_i32).cast_unsigned();
/// Addresses from here on are no small numbers (`vm.mmap_min_addr`).
const ADDRESS_MIN: u64 = 1 << 16;
/// Where a frame of a signal has its number, behind the address to which the handler returns
/// (arch/x86/include/asm/sigframe.h: `struct rt_sigframe`; 304 bytes of `struct ucontext`).
const SIGNAL: usize = 8 + 304;
const SIGNALS_MAX: u32 = 64;
/// Functions of a stack that make a place of a call.
const PLACE: usize = 4;

/// Registers of a sample in user mode, or of the call that the kernel executes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arguments {
    /// RAX.
    pub(crate) result: i64,
    /// RDI, RSI, RDX and R10.
    pub(crate) values: [u64; 4],
}

/// What was looked up of a sample when it was taken.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LookedUp {
    /// The path to which an argument points.
    path: String,
    /// The open file that the first argument is.
    pub(crate) file: String,
    is_done: bool,
}

impl LookedUp {
    /// Returns the number of the open file that was looked up.
    pub(crate) fn file_number(&self, of: &Arguments) -> Option<u64> {
        let number = of.values[0];
        (self.is_done && number < FILES_MAX).then_some(number)
    }
}

/// What the samples of a round have of memory and files.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    used: usize,
}

impl Budget {
    /// Returns whether one more sample may be looked up.
    pub(crate) fn take(&mut self) -> bool {
        self.used += 1;
        self.used <= LOOKED_UP
    }
}

/// Looks up the path or the open file of a call's arguments; `start` is where the sampled bytes of
/// the stack begin. Which of both the call takes is known later.
pub(crate) fn look_up(process: u32, of: &Arguments, start: u64, stack: &[u8]) -> LookedUp {
    let [first, second, ..] = of.values;
    let is_file = first < FILES_MAX;
    let is_current = first & u64::from(u32::MAX) == u64::from(CURRENT);
    let at = if is_file || is_current { second } else { first };
    LookedUp {
        path: path(process, at, start, stack).unwrap_or_default(),
        file: String::new(),
        is_done: true,
    }
}

/// Returns the path at an address: as the sampled stack has it, or the memory now.
pub(crate) fn path(process: u32, at: u64, start: u64, stack: &[u8]) -> Option<String> {
    if at < ADDRESS_MIN {
        return None;
    }
    let offset = at
        .checked_sub(start)
        .and_then(|offset| usize::try_from(offset).ok());
    let mut bytes = [0; PATH_MAX];
    let found = match offset.and_then(|offset| stack.get(offset..)) {
        Some(rest) if !rest.is_empty() => &rest[..rest.len().min(PATH_MAX)],
        _ => {
            let size = memory::open(process)?.read_at(&mut bytes, at).ok()?;
            &bytes[..size]
        }
    };
    let end = found.iter().position(|byte| *byte == 0)?;
    let path = std::str::from_utf8(&found[..end]).ok()?;
    let is_plain = !path.is_empty() && !path.chars().any(char::is_control);
    is_plain.then(|| path.to_owned())
}

/// Returns the number of the signal whose handler runs, by its frame on the stack: `restorer` is
/// where the handler returns to.
fn signal(restorer: u64, stack: &[u8]) -> Option<u64> {
    let mut words = stack.chunks_exact(8);
    let at = 8 * words.position(|word| word == restorer.to_le_bytes())? + SIGNAL;
    let number = u32::from_le_bytes(stack.get(at..at + 4)?.try_into().ok()?);
    (1..=SIGNALS_MAX).contains(&number).then(|| number.into())
}

/// A sample of a call.
pub(crate) struct Sampled<'s> {
    pub(crate) process: u32,
    /// Names of the kernel's functions; empty in user mode.
    pub(crate) kernel: Vec<String>,
    /// Addresses in user mode, innermost first.
    pub(crate) user: &'s [u64],
    pub(crate) arguments: Arguments,
    pub(crate) looked_up: &'s LookedUp,
}

/// What is known of the sampled calls.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: BTreeMap<Called, u64>,
    /// Where calls return to, with their names; an empty one if that is where several do.
    places: BTreeMap<(u32, Vec<u64>), String>,
    /// Results at places in user mode.
    results: BTreeMap<(u32, Vec<u64>, i64), u64>,
}

impl Calls {
    pub(crate) fn add(&mut self, sampled: &Sampled) {
        let user: Vec<u64> = sampled.user.iter().take(PLACE).copied().collect();
        let result = sampled.arguments.result;
        if sampled.kernel.is_empty() {
            let place = (sampled.process, user, result);
            *self.results.entry(place).or_default() += 1;
            return;
        }
        let stack = Stack {
            kernel: sampled.kernel.clone(),
            ..Stack::default()
        };
        let Some(call) = stack.call() else { return };
        let named = self.places.entry((sampled.process, user));
        let known = named.or_insert_with(|| call.to_owned());
        if known != call {
            known.clear();
        }
        let mut called = called(call, sampled);
        called.result = (result != NONE_YET).then_some(result);
        *self.calls.entry(called).or_default() += 1;
    }

    /// Adds a sample in a handler of a signal, with its stack: the handler ends with a call.
    pub(crate) fn add_handler(&mut self, restorer: u64, stack: &[u8]) {
        if let Some(number) = signal(restorer, stack) {
            let called = Called {
                call: "rt_sigreturn".into(),
                arguments: [number, 0, 0, 0],
                ..Called::default()
            };
            *self.calls.entry(called).or_default() += 1;
        }
    }

    /// Returns the calls with their samples.
    pub(crate) fn finish(mut self) -> Vec<Called> {
        for ((process, user, result), samples) in self.results {
            let call = self.places.get(&(process, user));
            if let Some(call) = call.filter(|call| !call.is_empty()) {
                let called = Called {
                    call: call.clone(),
                    result: Some(result),
                    ..Called::default()
                };
                *self.calls.entry(called).or_default() += samples;
            }
        }
        let with = |(called, samples)| Called { samples, ..called };
        self.calls.into_iter().map(with).collect()
    }
}

/// Returns what a call was asked for, as far as its arguments are no addresses.
fn called(call: &str, sampled: &Sampled) -> Called {
    let looked_up = sampled.looked_up;
    let number = calls::number(call);
    let has_path = number.is_some_and(|number| calls::path_argument(number).is_some());
    let has_file = number.is_some_and(calls::has_file);
    let file = if has_path {
        looked_up.path.clone()
    } else if has_file {
        looked_up.file.clone()
    } else {
        String::new()
    };
    let arguments = sampled.arguments.values.map(|value| {
        let is_address = value >= 1 << 32 && value >> 32 != u64::from(u32::MAX);
        if is_address { 0 } else { value }
    });
    Called {
        call: call.to_owned(),
        file,
        arguments,
        result: None,
        samples: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(calls: &mut Calls, kernel: &[&str], user: &[u64], result: i64) {
        let arguments = Arguments {
            result,
            values: [3, 0x7fff_0000_1234, 1, 0],
        };
        let looked_up = LookedUp {
            path: "secret".into(),
            file: "/srv/log".into(),
            is_done: true,
        };
        calls.add(&Sampled {
            process: 7,
            kernel: kernel.iter().map(|name| (*name).to_owned()).collect(),
            user,
            arguments,
            looked_up: &looked_up,
        });
    }

    #[test]
    fn call_has_file_size_and_result() {
        let mut calls = Calls::default();
        let write = ["vfs_write", "__x64_sys_write", "do_syscall_64"];
        add(&mut calls, &write, &[0x10, 0x20], NONE_YET);
        // Behind the call, and elsewhere.
        add(&mut calls, &[], &[0x10, 0x20], -11);
        add(&mut calls, &[], &[0x11, 0x20], 99);
        let found = calls.finish();
        let results: Vec<_> = found.iter().map(|call| call.result).collect();
        assert_eq!(results, [Some(-11), None]);
        // What is at the buffer of a write is no path, and no address is kept.
        assert_eq!(found[1].file, "/srv/log");
        assert_eq!(found[1].arguments, [3, 0, 1, 0]);
    }

    #[test]
    fn path_is_read_from_sampled_stack() {
        let start = 0x7fff_0000_0000;
        let stack = b"....../etc/localtime\0....";
        let found = path(std::process::id(), start + 6, start, stack);
        assert_eq!(found.as_deref(), Some("/etc/localtime"));
        assert_eq!(path(std::process::id(), start + 22, start, stack), None);
        assert_eq!(path(std::process::id(), 5, start, stack), None);
    }

    #[test]
    fn signal_is_read_from_its_frame() {
        let restorer: u64 = 0x7f00_1234_5670;
        let mut stack = vec![0; 400];
        assert_eq!(signal(restorer, &stack), None);
        stack[16..24].copy_from_slice(&restorer.to_le_bytes());
        stack[16 + SIGNAL] = 14;
        assert_eq!(signal(restorer, &stack), Some(14));
        assert_eq!(signal(restorer, &stack[..300]), None);
    }
}
