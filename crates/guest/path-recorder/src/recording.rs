//! The instructions of one region in their order, and how they are written.
//!
//! The file is `marvin-path 1`, then lines:
//!
//! ```text
//! instruction ADDRESS BYTES     hexadecimal; the first is number 0
//! block NUMBER NUMBER …         instructions that are executed one after the other
//! returns N                     IRETs of interrupts, which count as the process's and are left out
//! cut N                         instructions that were not written, for their number
//! stream LENGTH
//! ```
//!
//! and so many bytes, then `end`. The stream has numbers of 7 bits a byte, the lowest first: 0 and
//! the number of the process that executes from here on; 1 and the number of a task of which it is
//! not known yet whether it is a process; 2: it is one, and what it executed before is its own; 3
//! and how often the last instruction was executed once more; from 4 on a block.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::context::{Context, Event, Owner};

/// Most bytes of the stream: some hundred million instructions.
const STREAM_MAX: usize = 64 << 20;
/// Most instructions of a block.
const BLOCK_MAX: usize = 64;
/// Most blocks; each line of them is short.
const BLOCKS_MAX: usize = 1 << 20;

const PROCESS: u64 = 0;
const UNKNOWN: u64 = 1;
const IS_PROCESS: u64 = 2;
const REPEATED: u64 = 3;
const FIRST_BLOCK: u64 = 4;

/// What is recorded.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The region that is recorded.
    wanted: u64,
    opened: u64,
    is_open: bool,
    context: Context,
    instructions: Vec<(u64, Vec<u8>)>,
    numbers: HashMap<(u64, Vec<u8>), usize>,
    blocks: HashMap<Vec<u32>, u64>,
    /// The instructions that were executed since the last block was written.
    block: Vec<u32>,
    /// Where the instruction behind the last one is.
    next: u64,
    repeated: u64,
    /// The instruction that was executed last.
    last: Option<u32>,
    tasks: HashMap<u64, u64>,
    /// The task that executes.
    current: u64,
    /// The task of which the stream speaks.
    task: Option<u64>,
    stream: Vec<u8>,
    returns: u64,
    /// Set where the next instruction is an interrupt's IRET.
    is_return: bool,
    cut: u64,
}

impl Recording {
    /// Records the region of this number.
    pub(crate) fn new(wanted: u64) -> Self {
        Self {
            wanted,
            opened: 0,
            is_open: false,
            context: Context::default(),
            instructions: Vec::new(),
            numbers: HashMap::new(),
            blocks: HashMap::new(),
            block: Vec::new(),
            next: 0,
            repeated: 0,
            last: None,
            tasks: HashMap::new(),
            current: 0,
            task: None,
            stream: Vec::new(),
            returns: 0,
            is_return: false,
            cut: 0,
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the number of an instruction.
    pub(crate) fn number(&mut self, address: u64, bytes: &[u8]) -> usize {
        let next = self.instructions.len();
        let number = *self
            .numbers
            .entry((address, bytes.to_vec()))
            .or_insert(next);
        if number == next {
            self.instructions.push((address, bytes.to_vec()));
        }
        number
    }

    pub(crate) fn open(&mut self) {
        self.note(Event::SystemCall);
        self.is_open = self.opened == self.wanted;
        self.opened += 1;
    }

    pub(crate) fn close(&mut self) {
        if self.is_open {
            self.write_block();
        }
        self.is_open = false;
    }

    /// Takes note of something after which another may execute.
    pub(crate) fn note(&mut self, event: Event) {
        let before = self.context.owner();
        self.context.note(event);
        if let Event::Switch(to) = event {
            self.current = to;
        }
        if !self.is_open {
            return;
        }
        // It is counted for whom it returns to.
        self.is_return =
            event == Event::Return && before == Owner::Interrupt && before != self.context.owner();
        if let (Event::SystemCall, Owner::Unknown(_)) = (event, before) {
            self.speak_of_current(UNKNOWN);
            self.write_block();
            self.put(IS_PROCESS);
        }
    }

    /// Records an execution.
    pub(crate) fn execute(&mut self, number: usize) {
        if !self.is_open {
            return;
        }
        let is_return = std::mem::take(&mut self.is_return);
        let kind = match self.context.owner() {
            Owner::Interrupt => return,
            Owner::Process if is_return => {
                self.returns += 1;
                return;
            }
            Owner::Process => PROCESS,
            Owner::Unknown(_) => UNKNOWN,
        };
        self.speak_of_current(kind);
        if self.stream.len() >= STREAM_MAX || self.blocks.len() >= BLOCKS_MAX {
            self.cut += 1;
            return;
        }
        let Some((address, bytes)) = self.instructions.get(number) else {
            return;
        };
        let (address, behind) = (*address, address.wrapping_add(bytes.len() as u64));
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        if self.last == Some(number) {
            self.repeated += 1;
            return;
        }
        if self.repeated > 0 || address != self.next || self.block.len() == BLOCK_MAX {
            self.write_block();
        }
        self.block.push(number);
        self.next = behind;
        self.last = Some(number);
    }

    /// Has the stream say who executes.
    fn speak_of_current(&mut self, kind: u64) {
        if self.task == Some(self.current) {
            return;
        }
        self.write_block();
        self.task = Some(self.current);
        let next = self.tasks.len() as u64;
        let number = *self.tasks.entry(self.current).or_insert(next);
        self.put(kind);
        self.put(number);
    }

    fn write_block(&mut self) {
        if !self.block.is_empty() {
            let next = self.blocks.len() as u64;
            let block = std::mem::take(&mut self.block);
            let number = *self.blocks.entry(block).or_insert(next);
            self.put(FIRST_BLOCK + number);
        }
        if self.repeated > 0 {
            let repeated = std::mem::take(&mut self.repeated);
            self.put(REPEATED);
            self.put(repeated);
        }
        self.last = None;
    }

    fn put(&mut self, mut number: u64) {
        while number > 0x7f {
            self.stream.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.stream.push(number as u8);
    }

    /// Returns all of it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = String::from("marvin-path 1\n");
        let mut line =
            |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").unwrap_or_default();
        for (address, bytes) in &self.instructions {
            let bytes: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            line(format_args!("instruction {address:x} {bytes}"));
        }
        let mut blocks: Vec<_> = self.blocks.iter().collect();
        blocks.sort_by_key(|(_, number)| **number);
        for (block, _) in blocks {
            let numbers: Vec<String> = block.iter().map(u32::to_string).collect();
            line(format_args!("block {}", numbers.join(" ")));
        }
        line(format_args!("returns {}", self.returns));
        line(format_args!("cut {}", self.cut));
        line(format_args!("stream {}", self.stream.len()));
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.stream);
        // A region that did not end is cut anywhere.
        bytes.extend_from_slice(if self.is_open || self.opened <= self.wanted {
            b"open\n".as_slice()
        } else {
            b"end\n"
        });
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, Recording};

    /// A recording that is open, with four instructions one behind the other.
    fn opened() -> Recording {
        let mut recording = Recording::new(1);
        for address in [0x1000, 0x1001, 0x1002, 0x2000] {
            recording.number(address, &[0x90]);
        }
        recording.open();
        recording.execute(3);
        recording.close();
        recording.note(Event::Switch(7));
        recording.open();
        recording
    }

    /// The numbers of the stream; all of these are short.
    fn stream(recording: &mut Recording) -> Vec<u8> {
        recording.close();
        recording.stream.clone()
    }

    #[test]
    fn only_the_wanted_region_is_recorded() {
        let mut recording = opened();
        for number in [0, 1, 3, 0, 1] {
            recording.execute(number);
        }
        // Process 0; the block twice, and the other one between.
        assert_eq!(stream(&mut recording), [0, 0, 4, 5, 4]);
        recording.open();
        recording.execute(2);
        assert_eq!(stream(&mut recording), [0, 0, 4, 5, 4]);
        let text = String::from_utf8(recording.bytes()).unwrap();
        let expected = "instruction 2000 90\nblock 0 1\nblock 3\nreturns 0\ncut 0\nstream 5\n";
        assert!(text.contains(expected) && text.ends_with("end\n"), "{text}");
    }

    #[test]
    fn repetitions_are_counted() {
        let mut recording = opened();
        for number in [0, 1, 1, 1, 2] {
            recording.execute(number);
        }
        assert_eq!(stream(&mut recording), [0, 0, 4, 3, 2, 5]);
    }

    #[test]
    fn interrupts_are_left_out_with_their_end() {
        let mut recording = opened();
        recording.execute(0);
        recording.note(Event::Interrupt);
        recording.execute(3);
        recording.note(Event::Return);
        recording.execute(3);
        recording.execute(1);
        assert_eq!(stream(&mut recording), [0, 0, 4]);
        assert_eq!(recording.returns, 1);
    }

    #[test]
    fn tasks_are_told_apart() {
        let mut recording = opened();
        recording.execute(0);
        recording.note(Event::Switch(9));
        recording.execute(1);
        recording.note(Event::SystemCall);
        recording.execute(2);
        recording.note(Event::Switch(7));
        recording.execute(3);
        // Of task 1 it is not known at first that it is a process.
        let expected = [0, 0, 4, 1, 1, 5, 2, 6, 0, 0, 7];
        assert_eq!(stream(&mut recording), expected);
    }

    #[test]
    fn region_that_did_not_end_is_marked() {
        let mut recording = opened();
        recording.execute(0);
        assert!(recording.bytes().ends_with(b"open\n"));
        assert!(Recording::new(0).bytes().ends_with(b"open\n"));
    }

    #[test]
    fn full_streams_are_cut() {
        let mut recording = opened();
        recording.stream = vec![0; super::STREAM_MAX];
        recording.execute(0);
        recording.execute(1);
        assert_eq!(recording.cut, 2);
    }
}
