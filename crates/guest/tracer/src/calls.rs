//! The call tree: which function called which, and how much was executed in each, by who executed
//! it.
//!
//! One counter for the kernel and one for user code grow with each instruction. Whenever the
//! function may have changed, what they grew goes to the function before, so that the tree adds up
//! to the same instructions as the counts by address. A call is known by the place on the stack
//! where its return address is written, its return by the place it is read from: that survives
//! stacks that are switched and return addresses that are dropped. A function that begins without a
//! call took the place of the one before it (tail calls, thunks).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::api::{Counters, Instruction};
use crate::context::Owner;
use crate::count::{Share, Shares};

/// Index of a node.
type Node = u32;

/// The node of kernel code that no known function called.
const ROOT: Node = 0;
/// The node of user code.
const USER: Node = 1;
/// Most nodes; deeper code counts for the function above.
const NODES_MAX: usize = 500_000;
/// Most frames of a stack.
const FRAMES_MAX: usize = 512;
/// Stacks of tasks and interrupts begin at multiples of this (THREAD_SIZE and IRQ_STACK_SIZE in
/// arch/x86/include/asm/page_64_types.h).
const STACK_BITS: u32 = 14;

/// What a frame stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// A call.
    Call,
    /// An interrupt or exception, which ends by IRET.
    Boundary,
    /// A system call or a new task: nothing called it.
    Entry,
    /// A function of which it is not known what called it.
    Unknown,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    kind: FrameKind,
    /// Where its return address is.
    slot: u64,
    /// The node that what begins here without a call is below: the caller's, or what an entry
    /// began with.
    parent: Node,
    node: Node,
    /// Whether no function began since the call.
    fresh: bool,
}

#[derive(Debug, Clone, Copy)]
struct Called {
    parent: Node,
    function: u64,
    calls: Shares,
    executed: Shares,
}

/// What is known of the calls so far.
pub(crate) struct Calls {
    nodes: Vec<Called>,
    children: HashMap<(Node, u64), Node>,
    /// Executed instructions of the kernel and of user code.
    counters: Option<Counters>,
    given: [u64; 2],
    frames: Vec<Frame>,
    /// The frames of tasks that do not execute now.
    stacks: HashMap<u64, Vec<Frame>>,
    task: u64,
    /// What tasks executed and called of which it is not known yet whether they are processes.
    pending: HashMap<u64, BTreeMap<Node, (u64, u64)>>,
}

impl Default for Calls {
    fn default() -> Self {
        let node = |function| Called {
            parent: ROOT,
            function,
            calls: [0; 3],
            executed: [0; 3],
        };
        Self {
            nodes: vec![node(0), node(0)],
            children: HashMap::new(),
            counters: Counters::new(2),
            given: [0; 2],
            frames: Vec::new(),
            stacks: HashMap::new(),
            task: 0,
            pending: HashMap::new(),
        }
    }
}

impl Calls {
    /// Has an instruction counted.
    pub(crate) fn watch(&self, instruction: &Instruction, is_kernel: bool) {
        if let Some(counters) = &self.counters {
            instruction.count(counters, usize::from(!is_kernel));
        }
    }

    /// Gives what was executed since the last time to the function that executed it; to nobody
    /// outside regions. `own` is 1 if the instruction that is about to execute belongs to it as
    /// well, else 0.
    pub(crate) fn settle(&mut self, owner: Option<Owner>, own: u64) {
        let node = self.frames.last().map_or(ROOT, |frame| frame.node);
        for (index, node) in [node, USER].into_iter().enumerate() {
            let Some(counters) = &self.counters else {
                return;
            };
            let until = counters.get(index) + if index == 0 { own } else { 0 };
            let grown = until.saturating_sub(self.given[index]);
            self.given[index] = until.max(self.given[index]);
            self.add(owner, node, (grown, 0));
        }
    }

    fn add(&mut self, owner: Option<Owner>, node: Node, (executed, calls): (u64, u64)) {
        let share = match owner {
            None => return,
            _ if executed == 0 && calls == 0 => return,
            Some(Owner::Process) => Share::Process,
            Some(Owner::Interrupt) => Share::Interrupt,
            Some(Owner::Unknown(task)) => {
                let sums = self
                    .pending
                    .entry(task)
                    .or_default()
                    .entry(node)
                    .or_default();
                *sums = (sums.0 + executed, sums.1 + calls);
                return;
            }
        };
        self.credit(share, node, (executed, calls));
    }

    fn credit(&mut self, share: Share, node: Node, (executed, calls): (u64, u64)) {
        let node = &mut self.nodes[node as usize];
        node.executed[share as usize] += executed;
        node.calls[share as usize] += calls;
    }

    /// Forgets what has no owner yet: a region begins.
    pub(crate) fn forget(&mut self) {
        self.pending.clear();
    }

    /// Gives the work of a task, or of all of which it is not known yet, to whom it belongs.
    pub(crate) fn decide(&mut self, task: Option<u64>, share: Share) {
        let decided: Vec<_> = match task {
            Some(task) => self.pending.remove(&task).into_iter().collect(),
            None => std::mem::take(&mut self.pending).into_values().collect(),
        };
        for (node, sums) in decided.into_iter().flatten() {
            self.credit(share, node, sums);
        }
    }

    /// A return address was written at this place.
    pub(crate) fn call(&mut self, slot: u64) {
        if self.frames.len() < FRAMES_MAX {
            let node = self.frames.last().map_or(ROOT, |frame| frame.node);
            self.frames.push(Frame {
                kind: FrameKind::Call,
                slot,
                parent: node,
                node,
                fresh: true,
            });
        }
    }

    /// A return address was read from this place.
    pub(crate) fn ret(&mut self, slot: u64) {
        let calls = self
            .frames
            .iter()
            .rev()
            .take_while(|frame| frame.kind == FrameKind::Call)
            .count();
        let first = self.frames.len() - calls;
        if let Some(place) = self.frames[first..]
            .iter()
            .rposition(|frame| frame.slot == slot)
        {
            self.frames.truncate(first + place);
            return;
        }
        let is_same_stack = |frame: &Frame| frame.slot >> STACK_BITS == slot >> STACK_BITS;
        // A return address that was moved down the stack (`save_ret` of PUSH_AND_CLEAR_REGS in
        // arch/x86/entry/calling.h).
        let moved = |frame: &Frame| is_same_stack(frame) && frame.slot > slot;
        if self.frames.len() > first && self.frames.last().is_some_and(moved) {
            self.frames.pop();
            return;
        }
        // Return addresses that were dropped.
        let dropped = |frame: &Frame| is_same_stack(frame) && frame.slot < slot;
        while self.frames.len() > first && self.frames.last().is_some_and(dropped) {
            self.frames.pop();
        }
        if self
            .frames
            .last()
            .is_some_and(|frame| frame.kind == FrameKind::Unknown)
        {
            self.frames.pop();
        }
    }

    /// A function begins.
    pub(crate) fn enter(&mut self, function: u64, owner: Option<Owner>) {
        let Some(&top) = self.frames.last() else {
            self.push(FrameKind::Unknown, (ROOT, function), None);
            return;
        };
        // The first instruction of an entry that is jumped back to.
        let is_itself =
            top.kind != FrameKind::Call && self.nodes[top.parent as usize].function == function;
        let node = if is_itself {
            top.parent
        } else {
            self.child(top.parent, function)
        };
        if let Some(frame) = self.frames.last_mut() {
            (frame.node, frame.fresh) = (node, false);
        }
        if top.fresh {
            self.add(owner, node, (0, 1));
        }
    }

    /// An interrupt begins in a function. What it interrupts has nothing to do with it.
    pub(crate) fn interrupt(&mut self, function: u64, owner: Option<Owner>) {
        self.push(FrameKind::Boundary, (ROOT, function), owner);
    }

    /// An exception begins in a function. What it interrupts has caused it.
    pub(crate) fn exception(&mut self, function: u64, owner: Option<Owner>) {
        let parent = self.frames.last().map_or(ROOT, |frame| frame.node);
        self.push(FrameKind::Boundary, (parent, function), owner);
    }

    /// A system call or a new task begins in a function.
    pub(crate) fn begin(&mut self, function: u64, owner: Option<Owner>) {
        self.frames.clear();
        self.push(FrameKind::Entry, (ROOT, function), owner);
    }

    /// IRET: the last interrupt or exception ends, or else a system call.
    pub(crate) fn iret(&mut self) {
        let last = self
            .frames
            .iter()
            .rposition(|frame| frame.kind == FrameKind::Boundary);
        self.frames.truncate(last.unwrap_or(0));
    }

    /// SYSRET: user code follows.
    pub(crate) fn sysret(&mut self) {
        self.frames.clear();
    }

    /// Another task follows.
    pub(crate) fn switch(&mut self, to: u64) {
        let next = self.stacks.remove(&to).unwrap_or_default();
        let frames = std::mem::replace(&mut self.frames, next);
        self.stacks.insert(self.task, frames);
        self.task = to;
    }

    fn push(&mut self, kind: FrameKind, (parent, function): (Node, u64), owner: Option<Owner>) {
        let node = self.child(parent, function);
        if self.frames.len() < FRAMES_MAX {
            // What entry code jumps to is its own.
            let parent = if kind == FrameKind::Unknown {
                parent
            } else {
                node
            };
            self.frames.push(Frame {
                kind,
                slot: 0,
                parent,
                node,
                fresh: false,
            });
        }
        self.add(owner, node, (0, 1));
    }

    fn child(&mut self, parent: Node, function: u64) -> Node {
        if let Some(&node) = self.children.get(&(parent, function)) {
            return node;
        }
        if self.nodes.len() == NODES_MAX {
            return parent;
        }
        let node = u32::try_from(self.nodes.len()).unwrap_or(ROOT);
        self.nodes.push(Called {
            parent,
            function,
            calls: [0; 3],
            executed: [0; 3],
        });
        self.children.insert((parent, function), node);
        node
    }

    /// Returns all of it as text: `node PARENT ADDRESS` and then calls and executed instructions of
    /// processes, of interrupts and of other tasks. Nodes count from 0, which is the root; 1 is
    /// user code.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for Called {
            parent,
            function,
            calls: [a, b, c],
            executed: [d, e, f],
        } in &self.nodes
        {
            writeln!(text, "node {parent} {function:x} {a} {b} {c} {d} {e} {f}")
                .unwrap_or_default();
        }
        text.push_str("end\n");
        text
    }
}

/// Tells whether an instruction calls (CALL near, Intel SDM, volume 2).
pub(crate) fn is_call(bytes: &[u8]) -> bool {
    match without_prefixes(bytes) {
        [0xe8, ..] => true,
        [0xff, modrm, ..] => modrm >> 3 & 7 == 2,
        _ => false,
    }
}

/// Tells whether an instruction returns from a call (RET near).
pub(crate) fn is_return(bytes: &[u8]) -> bool {
    matches!(without_prefixes(bytes), [0xc3] | [0xc2, _, _])
}

/// Leaves REX, CS (which hints at branches), NOTRACK and REP away.
fn without_prefixes(bytes: &[u8]) -> &[u8] {
    let prefixes = bytes
        .iter()
        .take_while(|byte| matches!(byte, 0x40..=0x4f | 0x2e | 0x3e | 0xf2 | 0xf3))
        .count();
    &bytes[prefixes..]
}

#[cfg(test)]
mod tests {
    use super::{Calls, is_call, is_return};

    /// Returns the functions of the stack, outermost first.
    fn stack(calls: &Calls) -> Vec<u64> {
        let mut node = calls.frames.last().map_or(0, |frame| frame.node);
        let mut functions = Vec::new();
        while node != 0 {
            functions.insert(0, calls.nodes[node as usize].function);
            node = calls.nodes[node as usize].parent;
        }
        functions
    }

    #[test]
    fn calls_and_returns_are_followed() {
        let mut calls = Calls::default();
        calls.begin(1, None);
        calls.call(0x8000);
        calls.enter(2, None);
        calls.call(0x7ff0);
        calls.enter(3, None);
        assert_eq!(stack(&calls), [1, 2, 3]);
        // A tail call takes the place of its caller and returns for it.
        calls.enter(4, None);
        assert_eq!(stack(&calls), [1, 2, 4]);
        calls.ret(0x7ff0);
        assert_eq!(stack(&calls), [1, 2]);
        calls.interrupt(8, None);
        assert_eq!(stack(&calls), [8]);
        calls.iret();
        calls.exception(9, None);
        assert_eq!(stack(&calls), [1, 2, 9]);
        calls.call(0x7fe0);
        calls.enter(5, None);
        calls.iret();
        assert_eq!(stack(&calls), [1, 2]);
        calls.ret(0x8000);
        assert_eq!(stack(&calls), [1]);
        calls.sysret();
        assert_eq!(stack(&calls), [0_u64; 0]);
    }

    #[test]
    fn a_thunk_that_returns_into_a_function_calls_it() {
        let mut calls = Calls::default();
        calls.begin(1, None);
        calls.call(0x8000);
        calls.enter(100, None);
        calls.call(0x7ff8);
        calls.ret(0x7ff8);
        calls.enter(2, None);
        assert_eq!(stack(&calls), [1, 2]);
        calls.ret(0x8000);
        assert_eq!(stack(&calls), [1]);
    }

    #[test]
    fn dropped_return_addresses_go_with_the_function_that_dropped_them() {
        let mut calls = Calls::default();
        calls.begin(1, None);
        calls.call(0x8000);
        calls.enter(2, None);
        calls.call(0x7ff8);
        calls.call(0x7ff0);
        calls.ret(0x8000);
        assert_eq!(stack(&calls), [1]);
    }

    #[test]
    fn each_task_has_its_stack() {
        let mut calls = Calls::default();
        calls.begin(1, None);
        calls.switch(77);
        assert_eq!(stack(&calls), [0_u64; 0]);
        calls.begin(2, None);
        calls.switch(0);
        assert_eq!(stack(&calls), [1]);
        calls.switch(77);
        assert_eq!(stack(&calls), [2]);
    }

    #[test]
    fn calls_and_returns_are_recognised() {
        assert!(
            is_call(&[0xe8, 0, 0, 0, 0])
                && is_call(&[0xff, 0xd0])
                && is_call(&[0x41, 0xff, 0x55, 8])
        );
        assert!(
            is_call(&[0x2e, 0xe8, 0, 0, 0, 0])
                && !is_call(&[0xff, 0xe0])
                && !is_call(&[0xff, 0x30])
        );
        assert!(is_return(&[0xc3]) && is_return(&[0xf3, 0xc3]) && is_return(&[0xc2, 8, 0]));
        assert!(!is_return(&[0x90]) && !is_return(&[]) && !is_call(&[]));
    }
}
