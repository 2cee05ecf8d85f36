//! Executed paths: the kernel instructions of one iteration of a workload, in their order.

/// What an instruction does to the order of instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// The next one, or a jump.
    Plain,
    /// A call of a function.
    Call,
    /// The return from one.
    Return,
    /// The end of an exception, or of a system call that ends as one.
    InterruptReturn,
    /// The end of a system call.
    SystemReturn,
}

/// What begins with an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathEntry {
    /// A system call.
    SystemCall,
    /// An exception, such as a page fault.
    Exception,
    /// A new task.
    Fork,
}

/// An instruction of the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathInstruction {
    /// Its address in the guest.
    pub address: u64,
    /// Its machine code.
    pub bytes: Vec<u8>,
    /// The same without what depends on where code and data lie.
    pub shape: Vec<u8>,
    /// The function that it is in.
    pub symbol: String,
    /// Bytes from that function's first.
    pub offset: u64,
    /// The other function that it calls or jumps to, if its machine code names one.
    pub target: Option<String>,
    /// What it does to the order.
    pub kind: PathKind,
    /// What begins with it.
    pub entry: Option<PathEntry>,
}

/// A part of an executed path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathStep {
    /// Another process executes from here on.
    Process(u64),
    /// Another task executes from here on, which may turn out to be a process.
    Unknown(u64),
    /// It is one.
    IsProcess,
    /// The last instruction was executed so many times more.
    Repeated(u64),
    /// The instructions of the block of this number.
    Block(usize),
}

/// The instructions that the processes of a workload execute in the kernel within one iteration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExecutedPath {
    /// The instructions, by number.
    pub instructions: Vec<PathInstruction>,
    /// Blocks of instructions, by number.
    pub blocks: Vec<Vec<u32>>,
    /// IRETs of interrupts, which count as the process's and are not in the path.
    pub returns: u64,
    /// Instructions behind the end of what was followed; 0 if that is everything.
    pub cut: u64,
    stream: Vec<u8>,
}

/// The numbers of the stream; see `crates/guest/path-recorder/src/recording.rs`.
const PROCESS: u64 = 0;
const UNKNOWN: u64 = 1;
const IS_PROCESS: u64 = 2;
const REPEATED: u64 = 3;
const FIRST_BLOCK: u64 = 4;

impl ExecutedPath {
    /// Returns a path with the steps of a stream; `None` if it names what is not there, or ends
    /// within a step.
    #[must_use]
    pub fn with_stream(mut self, stream: Vec<u8>) -> Option<Self> {
        let instructions = self.instructions.len();
        let is_known = |number: &u32| usize::try_from(*number).is_ok_and(|at| at < instructions);
        if !self.blocks.iter().flatten().all(is_known) {
            return None;
        }
        self.stream = stream;
        let mut at = 0;
        while at < self.stream.len() {
            let (step, next) = self.step_at(at)?;
            if let PathStep::Block(block) = step {
                self.blocks.get(block).filter(|block| !block.is_empty())?;
            }
            at = next;
        }
        Some(self)
    }

    /// Returns the steps in their order.
    pub fn steps(&self) -> impl Iterator<Item = PathStep> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (step, next) = self.step_at(at)?;
            at = next;
            Some(step)
        })
    }

    fn step_at(&self, at: usize) -> Option<(PathStep, usize)> {
        let (word, at) = self.number_at(at)?;
        let step = |make: fn(u64) -> PathStep| {
            let (number, at) = self.number_at(at)?;
            Some((make(number), at))
        };
        match word {
            PROCESS => step(PathStep::Process),
            UNKNOWN => step(PathStep::Unknown),
            IS_PROCESS => Some((PathStep::IsProcess, at)),
            REPEATED => step(PathStep::Repeated),
            block => Some((
                PathStep::Block(usize::try_from(block - FIRST_BLOCK).ok()?),
                at,
            )),
        }
    }

    fn number_at(&self, mut at: usize) -> Option<(u64, usize)> {
        let mut number = 0;
        for shift in (0..63).step_by(7) {
            let byte = *self.stream.get(at)?;
            at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some((number, at));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{ExecutedPath, PathStep};

    #[test]
    fn streams_are_steps_or_nothing() {
        let path = ExecutedPath {
            blocks: vec![vec![]],
            ..ExecutedPath::default()
        };
        let stream = vec![0, 5, 1, 0x81, 1, 2, 3, 7];
        let steps: Vec<PathStep> = path.clone().with_stream(stream).unwrap().steps().collect();
        assert_eq!(
            steps,
            [
                PathStep::Process(5),
                PathStep::Unknown(129),
                PathStep::IsProcess,
                PathStep::Repeated(7)
            ]
        );
        for bad in [vec![0], vec![4], vec![5], vec![0x80; 12]] {
            assert_eq!(path.clone().with_stream(bad), None);
        }
    }
}
