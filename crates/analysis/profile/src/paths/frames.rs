//! Executed paths as trees: what each execution of a function executes itself and calls.
//!
//! Equal executions are one node, on both sides, so that thousands of equal operations take no
//! memory, and comparing them no time.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use model::{ExecutedPath, PathEntry, PathInstruction, PathKind, PathStep};

/// Most calls within one another that are followed; deeper ones are their caller's.
const DEPTH_MAX: usize = 400;

/// A part of an execution of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Item {
    /// An instruction, by the number that both sides share.
    Own(u32),
    /// How often the instruction before it was repeated.
    Again(u32),
    /// A call of a function, by its node.
    Call(u32),
}

/// An execution of a function.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Node {
    pub(super) function: u32,
    pub(super) items: Vec<Item>,
    /// Instructions, with those of what it calls.
    pub(super) total: u64,
}

/// All executions of both sides, each once.
#[derive(Debug, Default)]
pub(super) struct Nodes {
    nodes: Vec<Rc<Node>>,
    numbers: HashMap<Rc<Node>, u32>,
}

impl Nodes {
    pub(super) fn get(&self, number: u32) -> &Rc<Node> {
        &self.nodes[number as usize]
    }

    pub(super) fn add(&mut self, node: Node) -> u32 {
        if let Some(number) = self.numbers.get(&node) {
            return *number;
        }
        let number = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let node = Rc::new(node);
        self.nodes.push(Rc::clone(&node));
        self.numbers.insert(node, number);
        number
    }
}

/// What the numbers of a side's instructions are for both.
#[derive(Debug)]
pub(super) struct Numbers {
    /// By the number in the path.
    pub(super) instructions: Vec<u32>,
    pub(super) functions: Vec<u32>,
}

/// Why the next instruction is where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pending {
    /// It follows, or was jumped to.
    Nothing,
    /// It was called, and its caller goes on there.
    Call(u64),
    Return,
}

/// How an execution began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    /// Its caller goes on there.
    Called(u64),
    /// Another function jumped to it.
    Jumped,
    /// By an exception; what was to come next in the code that it interrupted.
    Exception(Pending),
    /// It is the first one.
    First,
}

#[derive(Debug)]
struct Frame {
    function: u32,
    began: Began,
    items: Vec<Item>,
    total: u64,
}

/// What executes in one task.
#[derive(Debug)]
struct Task {
    stack: Vec<Frame>,
    pending: Pending,
}

/// What a task executed between two times in user code.
#[derive(Debug)]
struct Entered {
    is_process: bool,
    node: Option<u32>,
}

/// Returns where the next instruction in memory is.
fn end_of(instruction: &PathInstruction) -> u64 {
    let size = instruction.bytes.len() as u64;
    instruction.address.wrapping_add(size)
}

/// Follows one side.
#[derive(Debug)]
pub(super) struct Follower<'a> {
    path: &'a ExecutedPath,
    numbers: &'a Numbers,
    nodes: &'a mut Nodes,
    tasks: BTreeMap<u64, Task>,
    entered: Vec<Entered>,
    /// Where in `entered` the first frame of a task's stack belongs.
    open: BTreeMap<u64, usize>,
    /// What tasks executed that may turn out to be processes.
    undecided: BTreeMap<u64, Vec<usize>>,
    task: u64,
    is_process: bool,
}

impl<'a> Follower<'a> {
    pub(super) fn new(path: &'a ExecutedPath, numbers: &'a Numbers, nodes: &'a mut Nodes) -> Self {
        Self {
            path,
            numbers,
            nodes,
            tasks: BTreeMap::new(),
            entered: Vec::new(),
            open: BTreeMap::new(),
            undecided: BTreeMap::new(),
            task: 0,
            is_process: true,
        }
    }

    /// Returns the node of everything: what processes executed, in the order in which it began.
    pub(super) fn follow(mut self, everything: u32) -> u32 {
        let path = self.path;
        for step in path.steps() {
            match step {
                PathStep::Process(task) => (self.task, self.is_process) = (task, true),
                PathStep::Unknown(task) => (self.task, self.is_process) = (task, false),
                PathStep::IsProcess => {
                    self.is_process = true;
                    for index in self.undecided.remove(&self.task).unwrap_or_default() {
                        self.entered[index].is_process = true;
                    }
                }
                PathStep::Repeated(times) => self.repeat(times),
                PathStep::Block(block) => {
                    for instruction in &path.blocks[block] {
                        self.execute(*instruction);
                    }
                }
            }
        }
        for task in self.tasks.keys().copied().collect::<Vec<_>>() {
            self.end(task, 0);
        }
        let processes = self.entered.iter().filter(|entered| entered.is_process);
        let calls: Vec<u32> = processes.filter_map(|entered| entered.node).collect();
        let total = calls.iter().map(|node| self.nodes.get(*node).total).sum();
        self.nodes.add(Node {
            function: everything,
            items: calls.into_iter().map(Item::Call).collect(),
            total,
        })
    }

    fn current(&mut self) -> &mut Task {
        self.tasks.entry(self.task).or_insert_with(|| Task {
            stack: Vec::new(),
            pending: Pending::Nothing,
        })
    }

    fn repeat(&mut self, mut times: u64) {
        if let Some(frame) = self.current().stack.last_mut() {
            frame.total += times;
            while times > 0 {
                let some = u32::try_from(times).unwrap_or(u32::MAX);
                frame.items.push(Item::Again(some));
                times -= u64::from(some);
            }
        }
    }

    fn execute(&mut self, number: u32) {
        let path = self.path;
        let instruction = &path.instructions[number as usize];
        let function = self.numbers.functions[number as usize];
        self.begin(instruction, function);
        let own = self.numbers.instructions[number as usize];
        let task = self.task;
        let current = self.current();
        if let Some(frame) = current.stack.last_mut() {
            frame.items.push(Item::Own(own));
            frame.total += 1;
        }
        current.pending = match instruction.kind {
            PathKind::Call => Pending::Call(end_of(instruction)),
            PathKind::Return => Pending::Return,
            _ => Pending::Nothing,
        };
        match instruction.kind {
            PathKind::InterruptReturn => self.return_from_exception(task),
            PathKind::SystemReturn => self.end(task, 0),
            _ => {}
        }
    }

    /// Makes the last frame of the stack that of the instruction.
    fn begin(&mut self, instruction: &PathInstruction, function: u32) {
        let task = self.task;
        let current = self.current();
        let pending = std::mem::replace(&mut current.pending, Pending::Nothing);
        match instruction.entry {
            Some(PathEntry::SystemCall | PathEntry::Fork) => {
                self.end(task, 0);
                return self.push(function, Began::First);
            }
            Some(PathEntry::Exception) => {
                return self.push(function, Began::Exception(pending));
            }
            None => {}
        }
        match pending {
            // An exception may have the call executed once more.
            Pending::Call(behind) if end_of(instruction) != behind => {
                return self.push(function, Began::Called(behind));
            }
            Pending::Return => {
                let address = instruction.address;
                let caller = current
                    .stack
                    .iter()
                    .rposition(|frame| frame.began == Began::Called(address));
                if let Some(depth) = caller {
                    self.end(task, depth);
                }
            }
            _ => {}
        }
        let stack = &self.current().stack;
        match stack.last() {
            None => self.push(function, Began::First),
            Some(frame) if frame.function == function => {}
            Some(_) => {
                let jumped = stack
                    .iter()
                    .rev()
                    .take_while(|frame| frame.began == Began::Jumped)
                    .count();
                // One of those that jumped to one another, and the one that jumped first.
                let first = stack.len() - jumped - 1;
                let back = stack[first.min(stack.len() - 1)..]
                    .iter()
                    .rposition(|frame| frame.function == function)
                    .filter(|_| instruction.offset != 0);
                match back {
                    Some(index) => self.end(task, first + index + 1),
                    None => self.push(function, Began::Jumped),
                }
            }
        }
    }

    fn push(&mut self, function: u32, began: Began) {
        let (task, is_process) = (self.task, self.is_process);
        let current = self.current();
        if current.stack.len() >= DEPTH_MAX {
            return;
        }
        let is_first = current.stack.is_empty();
        current.stack.push(Frame {
            function,
            began,
            items: Vec::new(),
            total: 0,
        });
        if is_first {
            self.open.insert(task, self.entered.len());
            if !is_process {
                let undecided = self.undecided.entry(task).or_default();
                undecided.push(self.entered.len());
            }
            self.entered.push(Entered {
                is_process,
                node: None,
            });
        }
    }

    fn return_from_exception(&mut self, task: u64) {
        let stack = &self.current().stack;
        let exception = stack.iter().enumerate().rev().find_map(|(depth, frame)| {
            let Began::Exception(pending) = frame.began else {
                return None;
            };
            Some((depth, pending))
        });
        let (depth, pending) = exception.unwrap_or((0, Pending::Nothing));
        self.end(task, depth);
        let current = self.current();
        current.pending = pending;
    }

    /// Ends the frames of a task's stack from a depth on.
    fn end(&mut self, task: u64, depth: usize) {
        let Some(of_task) = self.tasks.get_mut(&task) else {
            return;
        };
        while of_task.stack.len() > depth {
            let Some(frame) = of_task.stack.pop() else {
                return;
            };
            let node = self.nodes.add(Node {
                function: frame.function,
                items: frame.items,
                total: frame.total,
            });
            match of_task.stack.last_mut() {
                Some(caller) => {
                    caller.items.push(Item::Call(node));
                    caller.total += frame.total;
                }
                None => {
                    let entered = self.open.remove(&task);
                    if let Some(entered) = entered.and_then(|at| self.entered.get_mut(at)) {
                        entered.node = Some(node);
                    }
                }
            }
        }
    }
}
