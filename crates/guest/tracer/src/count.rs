//! Counting: how often each instruction of the kernel was executed within the regions that the
//! agent opens and closes, by who executed it. Iterations of repeated string instructions are
//! counted apart.
//!
//! QEMU adds to a counter before each execution. When a region begins or ends, or another begins to
//! execute, what was added since the last time goes to whom it belongs.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::api::{Counters, Instruction};
use crate::calls::Calls;
use crate::context::{Context, Event, Owner};
use crate::cost::{self, Cost};
use crate::costly::{COSTLY, Costly};

/// Counters that are made at once.
const CHUNK: usize = 4096;
/// Most regions that are kept; more are only counted.
const REGIONS_MAX: usize = 10_000;
/// Kernel addresses have the highest bit set (Documentation/arch/x86/x86_64/mm.rst).
const KERNEL: u64 = 1 << 63;

/// What is executed: an instruction of the kernel, or any of user code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct CodeAddress {
    /// Its address; 0 stands for user code.
    address: u64,
    what: What,
}

/// What is counted of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum What {
    /// Its executions, and its kind if it is a costly one.
    Executed(Option<Costly>),
    /// Its iterations: it is a repeated string instruction, of this kind.
    Repeated(Option<Costly>),
    /// What the cost model says of it.
    Modelled(cost::Event),
}

impl What {
    fn word(self) -> &'static str {
        match self {
            Self::Executed(_) => "at",
            Self::Repeated(_) => "repeated",
            Self::Modelled(event) => event.word(),
        }
    }

    fn costly(self) -> Option<Costly> {
        match self {
            Self::Executed(kind) | Self::Repeated(kind) => kind,
            Self::Modelled(_) => None,
        }
    }
}

/// Whose a count is in the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Share {
    Process,
    Interrupt,
    Other,
}

/// Executions by share.
pub(crate) type Shares = [u64; 3];

#[derive(Debug, Clone, Copy, Default)]
struct Region {
    id: u16,
    user: u64,
    kernel: u64,
    interrupt: u64,
    other: u64,
    /// Costly instructions of the workload's processes, by kind; they are in `user` and `kernel`.
    costly: [u64; COSTLY],
}

/// Executions whose owner is not known yet, by counter: a list, which is appended to at each switch
/// of tasks, and made shorter now and then.
#[derive(Debug, Default)]
struct Pending(Vec<(usize, u64)>);

impl Pending {
    /// Adds executions of a counter, of which there are `places`.
    fn add(&mut self, slot: usize, count: u64, places: usize) {
        if self.0.len() > 2 * places {
            let mut sums = vec![0; places];
            for (slot, count) in self.0.drain(..) {
                sums[slot] += count;
            }
            let sums = sums.into_iter().enumerate();
            self.0.extend(sums.filter(|(_, count)| *count > 0));
        }
        self.0.push((slot, count));
    }
}

/// All that is counted.
#[derive(Default)]
pub(crate) struct Counts {
    slots: HashMap<CodeAddress, usize>,
    places: Vec<CodeAddress>,
    chunks: Vec<Counters>,
    /// Values up to which the counters have been given away.
    given: Vec<u64>,
    sums: Vec<Shares>,
    /// Room for what is to be given away.
    taken: Vec<(usize, u64)>,
    /// What tasks executed of which it is not known yet whether they are processes.
    pending: HashMap<u64, Pending>,
    context: Context,
    open: Option<Region>,
    regions: Vec<Region>,
    left_out: u64,
    unclosed: u64,
    /// The call tree, where it is asked for.
    calls: Option<Calls>,
}

impl Counts {
    /// Follows calls as well.
    pub(crate) fn with_calls() -> Self {
        Self {
            calls: Some(Calls::default()),
            ..Self::default()
        }
    }

    /// Tells whether an interrupt executes.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.context.owner() == Owner::Interrupt
    }

    /// Changes the call tree, where there is one, after what was executed until now went to the
    /// function before. `own` is what the instruction that is about to execute adds to it.
    pub(crate) fn follow(&mut self, own: u64, change: impl FnOnce(&mut Calls, Option<Owner>)) {
        let owner = self.open.is_some().then(|| self.context.owner());
        if let Some(calls) = &mut self.calls {
            calls.settle(owner, own);
            change(calls, owner);
        }
    }

    /// Has an instruction counted, which may be a costly one.
    pub(crate) fn watch(&mut self, instruction: &Instruction, bytes: &[u8], kind: Option<Costly>) {
        let address = instruction.address();
        let what = if is_repeated(bytes) {
            What::Repeated(kind)
        } else {
            What::Executed(kind)
        };
        let place = CodeAddress {
            address: if is_kernel(address) { address } else { 0 },
            what,
        };
        let slot = self.slot(place);
        if let Some(chunk) = self.chunks.get(slot / CHUNK) {
            instruction.count(chunk, slot % CHUNK);
        }
        if let Some(calls) = &self.calls {
            calls.watch(instruction, place.address != 0);
        }
    }

    /// Returns the index of a counter, which is made if there is none yet.
    fn slot(&mut self, place: CodeAddress) -> usize {
        let next = self.places.len();
        let slot = *self.slots.entry(place).or_insert(next);
        if slot == next {
            self.places.push(place);
            self.given.push(0);
            self.sums.push(Shares::default());
            if slot / CHUNK == self.chunks.len() {
                self.chunks.extend(Counters::new(CHUNK));
            }
        }
        slot
    }

    /// Begins a region, in the task that executes.
    pub(crate) fn open(&mut self, id: u16) {
        self.unclosed += u64::from(self.open.is_some());
        self.context.note(Event::SystemCall);
        self.give_away(None);
        self.pending.clear();
        if let Some(calls) = &mut self.calls {
            calls.settle(None, 0);
            calls.forget();
        }
        self.open = Some(Region {
            id,
            ..Region::default()
        });
    }

    /// Ends the region.
    pub(crate) fn close(&mut self) {
        self.give_away(Some(self.context.owner()));
        self.follow(0, |calls, _| calls.decide(None, Share::Other));
        let pending = std::mem::take(&mut self.pending);
        for (slot, count) in pending.into_values().flat_map(|pending| pending.0) {
            self.add(slot, Share::Other, count);
        }
        if let Some(region) = self.open.take() {
            if self.regions.len() < REGIONS_MAX {
                self.regions.push(region);
            } else {
                self.left_out += 1;
            }
        }
    }

    /// Takes note of something after which another may execute.
    pub(crate) fn note(&mut self, event: Event) {
        let before = self.context.owner();
        self.context.note(event);
        if self.open.is_none() || self.context.owner() == before {
            return;
        }
        self.give_away(Some(before));
        if let (Event::SystemCall, Owner::Unknown(task)) = (event, before) {
            // A process after all: what it did before its first system call is its own.
            if let Some(calls) = &mut self.calls {
                calls.decide(Some(task), Share::Process);
            }
            self.decide(task, Share::Process);
        }
    }

    /// A new task begins. The one that had its place before made no system call to its end.
    pub(crate) fn begin_task(&mut self) {
        if self.open.is_some() {
            self.give_away(Some(self.context.owner()));
        }
        self.context.note(Event::Fork);
        if let (Some(_), Owner::Unknown(task)) = (&self.open, self.context.owner()) {
            if let Some(calls) = &mut self.calls {
                calls.decide(Some(task), Share::Other);
            }
            self.decide(task, Share::Other);
        }
    }

    /// Gives what a task executed to whom it belongs.
    fn decide(&mut self, task: u64, share: Share) {
        let pending = self.pending.remove(&task).unwrap_or_default();
        for (slot, count) in pending.0 {
            self.add(slot, share, count);
        }
    }

    /// Gives what was counted since the last time to whom it belongs; to nobody outside regions.
    fn give_away(&mut self, owner: Option<Owner>) {
        let mut taken = std::mem::take(&mut self.taken);
        let chunks = self.chunks.iter().zip(self.given.chunks_mut(CHUNK));
        for (number, (chunk, given)) in chunks.enumerate() {
            let before = taken.len();
            chunk.take(given, &mut taken);
            for (slot, _) in &mut taken[before..] {
                *slot += number * CHUNK;
            }
        }
        for (slot, count) in taken.drain(..) {
            self.give(slot, count, owner);
        }
        self.taken = taken;
        for (event, address, count) in cost::with(Cost::take).into_iter().flatten() {
            let slot = self.slot(CodeAddress {
                address,
                what: What::Modelled(event),
            });
            self.give(slot, count, owner);
        }
    }

    fn give(&mut self, slot: usize, count: u64, owner: Option<Owner>) {
        match owner {
            None => {}
            Some(Owner::Process) => self.add(slot, Share::Process, count),
            Some(Owner::Interrupt) => self.add(slot, Share::Interrupt, count),
            Some(Owner::Unknown(task)) => {
                let places = self.places.len();
                self.pending
                    .entry(task)
                    .or_default()
                    .add(slot, count, places);
            }
        }
    }

    fn add(&mut self, slot: usize, share: Share, count: u64) {
        let Some(region) = &mut self.open else { return };
        let CodeAddress { address, what } = self.places[slot];
        self.sums[slot][share as usize] += count;
        if matches!(what, What::Modelled(_)) {
            return;
        }
        if let (Share::Process, Some(kind)) = (share, what.costly()) {
            region.costly[kind as usize] += count;
        }
        *match (share, address) {
            (Share::Process, 0) => &mut region.user,
            (Share::Process, _) => &mut region.kernel,
            (Share::Interrupt, _) => &mut region.interrupt,
            (Share::Other, _) => &mut region.other,
        } += count;
    }

    /// Returns the call tree as text, see [`Calls::text`].
    pub(crate) fn calls_text(&self) -> Option<String> {
        self.calls.as_ref().map(Calls::text)
    }

    /// Returns all of it as text: `region ID USER KERNEL INTERRUPT OTHER COSTLY…` and `at ADDRESS
    /// PROCESS INTERRUPT OTHER KIND`, `repeated` in place of `at` for iterations of string
    /// instructions, the model's words for what it says, addresses in hexadecimal with 0 for user
    /// code. A region has a number for each kind of costly instruction; an ordinary one has no
    /// kind.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut line =
            |words: std::fmt::Arguments<'_>| writeln!(text, "{words}").unwrap_or_default();
        for Region {
            id,
            user,
            kernel,
            interrupt,
            other,
            costly,
        } in &self.regions
        {
            let costly = costly.map(|count| format!(" {count}")).concat();
            line(format_args!(
                "region {id} {user} {kernel} {interrupt} {other}{costly}"
            ));
        }
        let counted = self
            .places
            .iter()
            .zip(&self.sums)
            .filter(|(_, sums)| **sums != Shares::default());
        for (place, [process, interrupt, other]) in counted.collect::<BTreeMap<_, _>>() {
            let kind = place.what.costly().map_or("", Costly::word);
            let gap = if kind.is_empty() { "" } else { " " };
            line(format_args!(
                "{} {:x} {process} {interrupt} {other}{gap}{kind}",
                place.what.word(),
                place.address
            ));
        }
        let unclosed = self.unclosed + u64::from(self.open.is_some());
        line(format_args!("end {} {unclosed}", self.left_out));
        text
    }
}

/// Tells whether an address is the kernel's.
pub(crate) fn is_kernel(address: u64) -> bool {
    address & KERNEL != 0
}

/// Tells whether an instruction is a string instruction with a repeat prefix, of which QEMU counts
/// each iteration (Intel SDM, volume 2, REP).
fn is_repeated(bytes: &[u8]) -> bool {
    let is_prefix = |byte: &&u8| matches!(byte, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x40..=0x4f);
    let prefixes = bytes.iter().take_while(is_prefix).count();
    let repeat = bytes[..prefixes]
        .iter()
        .any(|byte| matches!(byte, 0xf2 | 0xf3));
    repeat
        && matches!(
            bytes.get(prefixes),
            Some(0x6c..=0x6f | 0xa4..=0xa7 | 0xaa..=0xaf)
        )
}

#[cfg(test)]
mod tests {
    use super::{Pending, is_repeated};

    #[test]
    fn pending_executions_add_up_however_many() {
        let mut pending = Pending::default();
        for number in 0..1000 {
            pending.add(number % 5, 2, 5);
            assert!(pending.0.len() <= 11);
        }
        let of = |slot| pending.0.iter().filter(move |(of, _)| *of == slot);
        for slot in 0..5 {
            assert_eq!(of(slot).map(|(_, count)| count).sum::<u64>(), 400);
        }
    }

    #[test]
    fn repeated_string_instructions_are_recognised() {
        assert!(
            is_repeated(&[0xf3, 0x48, 0xab])
                && is_repeated(&[0xf3, 0xa4])
                && is_repeated(&[0xf2, 0xae])
        );
        assert!(!is_repeated(&[0xf3, 0x90]), "PAUSE");
        assert!(!is_repeated(&[0xf3, 0x0f, 0x1e, 0xfa]), "ENDBR64");
        assert!(!is_repeated(&[0x48, 0xab]) && !is_repeated(&[]));
    }
}
