//! What the loop does that samples are in: whether it follows pointers or goes through memory in
//! steps, by its instructions.
//!
//! A sampled address is near what the processor waited for, so the innermost loop around it is where
//! the time is. Loops are found by their jumps back, within one function.

use std::collections::{BTreeMap, BTreeSet};

use explain::facts::{HotLoop, Walk};
use iced_x86::{
    ConditionCode, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, OpKind, Register,
};

use crate::rounds::Process;
use crate::samples::Sampling;
use crate::symbols::Modules;

/// The longest function that is looked at (bytes), and the longest loop (instructions).
const FUNCTION_MAX: usize = 64 << 10;
const LOOP_MAX: usize = 96;

/// Samples of a function by their addresses in its file, with one of them in a process.
#[derive(Debug, Default)]
struct Sampled {
    process: u32,
    address: u64,
    all: u64,
    by_address: BTreeMap<u64, u64>,
}

/// Returns the loop with most samples of the function that at least half of those in user mode are
/// in; `None` without one.
pub(crate) fn hot_loop(
    sampling: &Sampling,
    processes: &BTreeMap<u32, Process>,
    modules: &mut Modules,
) -> Option<HotLoop> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    // Processes of one program have the same functions.
    let mut functions: BTreeMap<(String, u64), Sampled> = BTreeMap::new();
    let mut all = 0;
    for (chain, count) in &sampling.chains {
        let Some(address) = chain.user.first().filter(|_| chain.kernel.is_empty()) else {
            continue;
        };
        all += count;
        let Some(of) = processes.get(&chain.process) else {
            continue;
        };
        let name = modules.name(&of.maps, &of.program, *address);
        let Some((_, at, start)) = modules.function(&of.maps, *address) else {
            continue;
        };
        let sampled = functions.entry((name, start)).or_default();
        sampled.process = chain.process;
        sampled.address = *address;
        sampled.all += count;
        *sampled.by_address.entry(at).or_default() += count;
    }
    let ((_, start), sampled) = functions.into_iter().max_by_key(|(_, one)| one.all)?;
    let of = processes.get(&sampled.process)?;
    if 2 * sampled.all < all {
        return None;
    }
    let (code, ..) = modules.function(&of.maps, sampled.address)?;
    let loops = Loops::of(code, start);
    let mut hot: BTreeMap<Span, u64> = BTreeMap::new();
    for (at, count) in sampled.by_address {
        if let Some(around) = loops.around(at) {
            *hot.entry(around).or_default() += count;
        }
    }
    let (span, samples) = hot.into_iter().max_by_key(|(_, samples)| *samples)?;
    let body = loops.body(span);
    Some(HotLoop {
        instructions: body.len(),
        walk: walk(body),
        samples,
    })
}

/// Where a loop's first and last instruction are among those of its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    first: usize,
    last: usize,
}

/// A function's instructions, and its loops, the shortest first.
#[derive(Debug, Default)]
struct Loops {
    instructions: Vec<Instruction>,
    spans: Vec<Span>,
}

impl Loops {
    /// Finds the loops of a function's code that begins at an address.
    fn of(code: &[u8], start: u64) -> Self {
        let code = code.get(..FUNCTION_MAX).unwrap_or(code);
        let instructions: Vec<Instruction> =
            Decoder::with_ip(64, code, start, DecoderOptions::NONE)
                .into_iter()
                .collect();
        let mut spans = Vec::new();
        for (last, jump) in instructions.iter().enumerate() {
            let is_jump = matches!(
                jump.flow_control(),
                FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
            );
            let target = jump.near_branch_target();
            if !is_jump || target < start || target > jump.ip() {
                continue;
            }
            let first = instructions.partition_point(|one| one.ip() < target);
            let body = &instructions[first..=last];
            if body[0].ip() != target || body.len() > LOOP_MAX {
                continue;
            }
            // The end of a function may jump back to its return.
            let mut flows = body.iter().map(Instruction::flow_control);
            let is_return = jump.flow_control() == FlowControl::UnconditionalBranch
                && flows.any(|flow| flow == FlowControl::Return);
            if !is_return {
                spans.push(Span { first, last });
            }
        }
        spans.sort_by_key(|span| span.last - span.first);
        Self {
            instructions,
            spans,
        }
    }

    /// Returns the innermost loop around an address.
    fn around(&self, address: u64) -> Option<Span> {
        let mut spans = self.spans.iter().copied();
        spans.find(|span| {
            let begin = self.instructions[span.first].ip();
            (begin..=self.instructions[span.last].ip()).contains(&address)
        })
    }

    fn body(&self, span: Span) -> &[Instruction] {
        &self.instructions[span.first..=span.last]
    }
}

/// What holds a value from one turn to the next: a register, or a variable on the stack, which code
/// that is not optimised has for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Register(u32),
    Variable(u32, i64),
}

fn register(register: Register) -> Option<Holder> {
    let is_general = register.is_gpr();
    is_general.then(|| Holder::Register(register.full_register() as u32))
}

/// Returns the variable on the stack that an instruction's memory operand is.
fn variable(one: &Instruction) -> Option<Holder> {
    let base = one.memory_base();
    let is_stack =
        [Register::RBP, Register::RSP].contains(&base) && one.memory_index() == Register::None;
    is_stack.then(|| Holder::Variable(base as u32, one.memory_displacement64().cast_signed()))
}

/// Returns what an operand holds.
fn operand(one: &Instruction, index: u32) -> Option<Holder> {
    match one.op_kind(index) {
        OpKind::Register => register(one.op_register(index)),
        OpKind::Memory => variable(one),
        _ => None,
    }
}

/// Whether an instruction reads or writes memory that is no variable on the stack.
fn has_memory(one: &Instruction) -> bool {
    let mut kinds = one.op_kinds();
    let is_memory = kinds.any(|kind| kind == OpKind::Memory);
    is_memory && one.mnemonic() != Mnemonic::Lea && variable(one).is_none()
}

/// How a value changes from one turn to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// By so many bytes; 0 if it stays.
    By(i64),
    /// By what a register has that stays.
    Same,
    Unknown,
}

impl Change {
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::By(one), Self::By(other)) => Self::By(one.wrapping_add(other)),
            (Self::Same, Self::By(_)) | (Self::By(_), Self::Same) => Self::Same,
            _ => Self::Unknown,
        }
    }

    fn times(self, factor: i64) -> Self {
        match self {
            Self::By(one) => Self::By(one.wrapping_mul(factor)),
            Self::Same if factor != 0 => Self::Same,
            _ => Self::Unknown,
        }
    }
}

/// The value that an instruction adds to a holder of its own.
fn increment(one: &Instruction, written: &BTreeMap<Holder, usize>) -> Option<(Holder, Change)> {
    let of = operand(one, 0)?;
    let by_constant = || match one.op_kind(1) {
        kind if is_immediate(kind) => Some(Change::By(one.immediate(1).cast_signed())),
        OpKind::Register => {
            let other = register(one.op_register(1))?;
            (!written.contains_key(&other)).then_some(Change::Same)
        }
        _ => None,
    };
    match one.mnemonic() {
        Mnemonic::Inc => Some((of, Change::By(1))),
        Mnemonic::Dec => Some((of, Change::By(-1))),
        Mnemonic::Add => Some((of, by_constant()?)),
        Mnemonic::Sub => Some((of, by_constant()?.times(-1))),
        Mnemonic::Lea => {
            let base = register(one.memory_base())?;
            let is_own = base == of && one.memory_index() == Register::None;
            is_own.then(|| (of, Change::By(one.memory_displacement64().cast_signed())))
        }
        _ => None,
    }
}

fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate32
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// Returns how a loop goes through memory.
fn walk(body: &[Instruction]) -> Walk {
    if follows_pointers(body) {
        return Walk::Pointers;
    }
    let steps = steps(body);
    if steps.contains(&Change::Same) {
        return Walk::Rows;
    }
    let size = |step: &Change| match step {
        Change::By(bytes) => bytes.unsigned_abs(),
        Change::Same | Change::Unknown => 0,
    };
    match steps.iter().map(size).max().unwrap_or_default() {
        0 => Walk::Other,
        bytes => Walk::Steps(bytes),
    }
}

/// Where a value comes from: what a holder had when the turn began, but for constants that are added,
/// and whether it was loaded through that.
type Origin = (Holder, bool);

/// Whether the address of a load is what the load of the turn before brought, but for constants that
/// are added.
fn follows_pointers(body: &[Instruction]) -> bool {
    let mut factory = InstructionInfoFactory::new();
    let carried: BTreeSet<Holder> = body
        .iter()
        .flat_map(|one| written_by(&mut factory, one))
        .collect();
    let mut now: BTreeMap<Holder, Option<Origin>> = BTreeMap::new();
    for one in body {
        let of = |holder: Option<Holder>| {
            let holder = holder?;
            now.get(&holder).copied().unwrap_or(Some((holder, false)))
        };
        let is_carried = |origin: &Origin| carried.contains(&origin.0);
        let either = |one: Option<Origin>, other: Option<Origin>| {
            one.filter(is_carried).or(other.filter(is_carried))
        };
        let address = either(
            of(register(one.memory_base())),
            of(register(one.memory_index())),
        );
        let is_conditional = one.condition_code() != ConditionCode::None;
        let value = match one.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsxd if has_memory(one) => {
                address.map(|(holder, _)| (holder, true))
            }
            Mnemonic::Lea => address,
            Mnemonic::Mov | Mnemonic::Movsxd => of(operand(one, 1)),
            // A constant that is added, or a longer sign, leaves where it comes from.
            Mnemonic::Add | Mnemonic::Sub if is_immediate(one.op_kind(1)) => continue,
            Mnemonic::Cdqe => continue,
            Mnemonic::Add => either(of(operand(one, 0)), of(operand(one, 1))),
            // Of two branches of a tree.
            _ if is_conditional => of(operand(one, 1)).or_else(|| of(operand(one, 0))),
            _ => None,
        };
        for holder in written_by(&mut factory, one) {
            now.insert(holder, value);
        }
    }
    now.keys().any(|holder| {
        let mut at = *holder;
        let mut is_loaded = false;
        for _ in 0..now.len() {
            let Some(Some((from, through))) = now.get(&at) else {
                return false;
            };
            is_loaded |= through;
            at = *from;
            if at == *holder {
                return is_loaded;
            }
        }
        false
    })
}

/// Returns what an instruction writes.
fn written_by(factory: &mut InstructionInfoFactory, one: &Instruction) -> BTreeSet<Holder> {
    let info = factory.info(one);
    let written = info.used_registers().iter();
    let written = written.filter(|used| is_write(used.access()));
    let mut into: BTreeSet<Holder> = written
        .filter_map(|used| register(used.register()))
        .collect();
    if one.op_kind(0) == OpKind::Memory && is_write(info.op0_access()) {
        into.extend(variable(one));
    }
    into
}

/// Returns by how much addresses change from one turn to the next.
fn steps(body: &[Instruction]) -> Vec<Change> {
    let mut factory = InstructionInfoFactory::new();
    let mut written: BTreeMap<Holder, usize> = BTreeMap::new();
    let mut writes = Vec::new();
    for one in body {
        let into = written_by(&mut factory, one);
        for holder in &into {
            *written.entry(*holder).or_default() += 1;
        }
        writes.push(into);
    }
    // What only constants are added to changes by their sum.
    let mut added: BTreeMap<Holder, (usize, Change)> = BTreeMap::new();
    for (of, by) in body.iter().filter_map(|one| increment(one, &written)) {
        let (count, sum) = added.entry(of).or_insert((0, Change::By(0)));
        *count += 1;
        *sum = sum.plus(by);
    }
    let mut now: BTreeMap<Holder, Change> = BTreeMap::new();
    for (holder, count) in &written {
        let sum = added.get(holder).filter(|(all, _)| all == count);
        now.insert(*holder, sum.map_or(Change::Unknown, |(_, sum)| *sum));
    }
    let mut found = Vec::new();
    for (one, into) in body.iter().zip(&writes) {
        let of = |holder: Option<Holder>| match holder {
            Some(holder) => now.get(&holder).copied().unwrap_or(Change::By(0)),
            None => Change::By(0),
        };
        let address = || {
            let index = of(register(one.memory_index()));
            of(register(one.memory_base())).plus(index.times(i64::from(one.memory_index_scale())))
        };
        if has_memory(one) {
            found.push(address());
        }
        let value = match one.mnemonic() {
            _ if increment(one, &written).is_some() => continue,
            Mnemonic::Mov | Mnemonic::Movsxd if !has_memory(one) => of(operand(one, 1)),
            Mnemonic::Cdqe => continue,
            Mnemonic::Lea => address(),
            Mnemonic::Add if !has_memory(one) => of(operand(one, 0)).plus(of(operand(one, 1))),
            Mnemonic::Shl if is_immediate(one.op_kind(1)) => {
                of(operand(one, 0)).times(1_i64.wrapping_shl(u32::from(one.immediate8())))
            }
            _ => Change::Unknown,
        };
        for holder in into {
            now.insert(*holder, value);
        }
    }
    found
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "a skipped check says why")]
mod tests {
    use std::process::Command;

    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

    use super::*;

    const SOURCE: &str = "
struct node { long key; struct node *next; };
long follow(struct node *one, long key) { while (one && one->key != key) one = one->next; return one ? one->key : 0; }
long add(long *all, long count) { long sum = 0; for (long i = 0; i < count; i++) sum += all[i]; return sum; }
long far(char *all, long count) { long sum = 0; for (long i = 0; i < count; i++) sum += all[i * 4096]; return sum; }
double column(double *all, long count) { double sum = 0; for (long i = 0; i < count; i++) sum += all[i * count]; return sum; }
int chain(int *next, int at) { while (at > 0) at = next[at]; return at; }
unsigned mix(unsigned value, int count) { for (int i = 0; i < count; i++) value = value * 31 ^ value >> 3; return value; }
";

    /// Compiles the functions and returns the walk of the loop of each.
    fn walks(optimisation: &str) -> Vec<(String, Walk)> {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("loops.c");
        let object = folder.path().join("loops.o");
        std::fs::write(&source, SOURCE).unwrap();
        let mut gcc = Command::new("gcc");
        gcc.args([optimisation, "-fno-tree-vectorize", "-c", "-o"]);
        assert!(gcc.arg(&object).arg(&source).status().unwrap().success());
        let bytes = std::fs::read(&object).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let functions = file
            .symbols()
            .filter(|symbol| symbol.kind() == object::SymbolKind::Text);
        functions
            .map(|function| {
                let size = usize::try_from(function.size()).unwrap();
                let code = &text.data().unwrap()[function.address() as usize..][..size];
                let loops = Loops::of(code, function.address());
                let last = loops.spans.last().unwrap().last;
                let around = loops.around(loops.instructions[last].ip()).unwrap();
                let body = loops.body(around);
                (function.name().unwrap().to_owned(), walk(body))
            })
            .collect()
    }

    #[test]
    fn loops_say_how_they_go_through_memory() {
        if !cfg!(target_arch = "x86_64") {
            println!("skipped: loops are read on x86-64 only");
            return;
        }
        for optimisation in ["-O0", "-O1", "-O2"] {
            let walks: BTreeMap<String, Walk> = walks(optimisation).into_iter().collect();
            let expected = [
                ("follow", Walk::Pointers),
                ("chain", Walk::Pointers),
                ("add", Walk::Steps(8)),
                ("far", Walk::Steps(4096)),
                ("mix", Walk::Other),
            ];
            for (function, walk) in expected {
                assert_eq!(walks[function], walk, "{function} {optimisation}");
            }
            // Not optimised, it multiplies in each turn.
            if optimisation != "-O0" {
                assert_eq!(walks["column"], Walk::Rows, "{optimisation}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_have_loops_within_them(code: Vec<u8>, start in 0..1_u64 << 48) {
            let loops = Loops::of(&code, start);
            for span in &loops.spans {
                let body = loops.body(*span);
                proptest::prop_assert!(body.len() <= LOOP_MAX && body[0].ip() >= start);
                walk(body);
            }
        }
    }
}
