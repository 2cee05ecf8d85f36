//! Executes several processors on one thread, each with a time of its own: replaces QEMU's
//! scheduler and clock for TCG (accel/tcg/tcg-accel-ops-rr.c, softmmu/icount.c of QEMU 7.2). Whose
//! turn it is, `schedule.rs` says.
//!
//! Nothing of the host decides anything: a turn ends after a number of instructions, or where the
//! guest does something that ends it. What QEMU's other thread wants waits for the end of a turn,
//! and a timer that stops the machine stops it before another instruction executes.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use super::prefetch::Registers;
use super::qemu::{Accelerator, Cpu, Interrupt, Layout, Operations, OpsInit, Qemu};
use super::schedule::{Costs, Next, Schedule};

/// No processor executes.
const NONE: usize = usize::MAX;

/// The machine.
struct Machine {
    qemu: Qemu,
    schedule: Mutex<Schedule>,
    /// By how much the processors' times differ when the machine goes on (ns).
    offsets: Vec<i64>,
    /// The processor whose turn it is.
    turn: AtomicUsize,
    /// Instructions that all processors had executed when the turn began.
    began: AtomicI64,
    /// The clock, for threads that execute no processor.
    clock: AtomicI64,
    /// Whether the processors' thread keeps the clock; before, and while the machine is stopped,
    /// QEMU does.
    keeps_clock: AtomicBool,
    init: OpsInit,
    interrupt: OnceLock<Interrupt>,
    flags: OnceLock<extern "C" fn(Cpu, bool)>,
    first: OnceLock<usize>,
}

static MACHINE: OnceLock<Machine> = OnceLock::new();

thread_local! {
    /// Whether this is the thread of the processors.
    static IS_PROCESSORS: Cell<bool> = const { Cell::new(false) };
}

/// Has QEMU schedule its processors this way.
pub(super) fn install(layout: Layout, costs: Costs, offsets: Vec<i64>) -> Result<(), String> {
    let qemu = Qemu::find(layout)?;
    let accelerator = Accelerator::find()?;
    let machine = Machine {
        qemu,
        schedule: Mutex::new(Schedule::new(0, costs)),
        offsets,
        turn: AtomicUsize::new(NONE),
        began: AtomicI64::new(0),
        clock: AtomicI64::new(0),
        keeps_clock: AtomicBool::new(false),
        init: accelerator.replace_init(set_operations),
        interrupt: OnceLock::new(),
        flags: OnceLock::new(),
        first: OnceLock::new(),
    };
    drop(MACHINE.set(machine));
    Ok(())
}

/// Tells whether QEMU schedules its processors this way.
pub(crate) fn is_installed() -> bool {
    MACHINE.get().is_some()
}

/// The processor whose turn it is has waited for another.
pub(crate) extern "C" fn before_pause(_processor: u32, _: *mut c_void) {
    charge(|costs| costs.pause);
}

/// The processor whose turn it is waits for a line; its turn ends.
pub(super) fn wait_for_line() {
    let Some(machine) = MACHINE.get() else { return };
    charge(|costs| costs.latency);
    if let Some(cpu) = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed)) {
        machine.qemu.exit(cpu);
    }
}

/// Returns the time of the processor whose turn it is, within a callback: with all of the block
/// that executes.
pub(super) fn now() -> i64 {
    let Some(machine) = MACHINE.get() else {
        return 0;
    };
    let Some(cpu) = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed)) else {
        return 0;
    };
    machine.qemu.within_block(cpu, || machine.now())
}

/// Returns the physical address of an access, within its callback; nothing for devices.
pub(super) fn physical(access: u32, address: u64) -> Option<u64> {
    MACHINE.get()?.qemu.physical(access, address)
}

/// Reads guest memory at a virtual address of the processor whose turn it is.
pub(super) fn read_memory(address: u64, to: &mut [u8]) -> bool {
    let Some(machine) = MACHINE.get() else {
        return false;
    };
    let cpu = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed));
    cpu.is_some_and(|cpu| machine.qemu.read_memory(cpu, address, to))
}

/// Returns the registers of the processor whose turn it is, within the callback before an
/// instruction.
pub(super) fn registers() -> Option<Registers> {
    let machine = MACHINE.get()?;
    let cpu = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed))?;
    machine.qemu.registers(cpu)
}

/// Returns the physical address of a virtual one of the processor whose turn it is.
pub(super) fn translate(address: u64) -> Option<u64> {
    let machine = MACHINE.get()?;
    let cpu = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed))?;
    machine.qemu.translate(cpu, address)
}

fn charge(cost: impl Fn(&Costs) -> i64) {
    let Some(machine) = MACHINE.get() else { return };
    let turn = machine.turn.load(Ordering::Relaxed);
    let mut schedule = machine.schedule();
    // Alone it waits for no other, and its clock is that of the exact machine.
    if turn != NONE && schedule.processors() > 1 {
        let cost = cost(&schedule.costs);
        schedule.advance(turn, cost);
    }
}

/// QEMU sets its operations: ours replace some of them.
extern "C" fn set_operations(class: *mut c_void) {
    let Some(machine) = MACHINE.get() else { return };
    (machine.init)(class);
    let accelerator = Accelerator::of(class);
    let new = Operations {
        create,
        kick,
        interrupt,
        clock,
    };
    let ready = accelerator
        .flags()
        .and_then(|flags| Ok((flags, accelerator.replace(new)?)));
    match ready {
        Ok((flags, interrupt)) => {
            machine.flags.get_or_init(|| flags);
            machine.interrupt.get_or_init(|| interrupt);
        }
        // Without a clock of ours nothing that it measured would be right.
        Err(why) => super::give_up(&why),
    }
}

/// A processor is made.
extern "C" fn create(cpu: Cpu) {
    let Some(machine) = MACHINE.get() else { return };
    if let Some(flags) = machine.flags.get() {
        flags(cpu, false);
    }
    match machine.first.get() {
        Some(first) => machine.qemu.share_thread(cpu, *first as Cpu),
        None => {
            machine.first.get_or_init(|| cpu as usize);
            machine.qemu.start_thread(cpu, run);
        }
    }
}

/// Something is wanted of a processor. On its own thread that ends the turn, as a timer may be due
/// earlier; another thread has woken the processors' thread if that waits, and waits for the end of
/// the turn otherwise.
extern "C" fn kick(_: Cpu) {
    if let Some(machine) = MACHINE.get()
        && IS_PROCESSORS.get()
        && let Some(cpu) = machine.qemu.cpu(machine.turn.load(Ordering::Relaxed))
    {
        machine.qemu.exit(cpu);
    }
}

/// A processor is interrupted.
extern "C" fn interrupt(cpu: Cpu, mask: c_int) {
    let Some(machine) = MACHINE.get() else { return };
    if let Some(interrupt) = machine.interrupt.get() {
        interrupt(cpu, mask);
    }
    let turn = machine.turn.load(Ordering::Relaxed);
    let Some(running) = machine.qemu.cpu(turn).filter(|_| IS_PROCESSORS.get()) else {
        return;
    };
    if running == cpu {
        return;
    }
    // One processor interrupts another, which may have slept: the turn was given without it.
    let now = machine.now();
    let target =
        (0..machine.schedule().processors()).find(|number| machine.qemu.cpu(*number) == Some(cpu));
    if let Some(target) = target {
        machine.schedule().interrupt(target, now);
    }
    machine.qemu.exit(running);
}

/// What QEMU reads the guest's clock from.
extern "C" fn clock() -> i64 {
    MACHINE.get().map_or(0, Machine::now)
}

/// The thread of the processors.
extern "C" fn run(first: *mut c_void) -> *mut c_void {
    IS_PROCESSORS.set(true);
    let Some(machine) = MACHINE.get() else {
        return std::ptr::null_mut();
    };
    if let Err(why) = machine.qemu.enter_thread(first) {
        super::give_up(&why);
    }
    let mut cpus: Vec<Cpu> = Vec::new();
    loop {
        // The others are made while this thread waits.
        while let Some(cpu) = machine.qemu.cpu(cpus.len()) {
            cpus.push(cpu);
        }
        machine.step(first, &cpus);
    }
}

impl Machine {
    fn schedule(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time: of its own for the processor whose turn it is.
    fn now(&self) -> i64 {
        let turn = self.turn.load(Ordering::Relaxed);
        if IS_PROCESSORS.get() && turn != NONE {
            return self.schedule().own(turn) + self.qemu.executed()
                - self.began.load(Ordering::Relaxed);
        }
        if self.keeps_clock.load(Ordering::Acquire) {
            self.clock.load(Ordering::Acquire)
        } else {
            self.qemu.counted()
        }
    }

    /// Does one thing, with QEMU's big lock before and after it.
    fn step(&self, first: Cpu, cpus: &[Cpu]) {
        for cpu in cpus {
            self.qemu.obey(*cpu);
        }
        if cpus.is_empty() || !self.qemu.is_running(cpus) {
            self.keeps_clock.store(false, Ordering::Release);
            self.qemu.wait(first);
            return;
        }
        if !self.keeps_clock.load(Ordering::Relaxed) {
            self.resume(cpus.len());
        }
        let busy: Vec<bool> = cpus.iter().map(|cpu| !self.qemu.is_idle(*cpu)).collect();
        self.schedule().observe(&busy);
        self.show_clock();
        let next = self.schedule().next(self.qemu.deadline());
        match next {
            Next::Timers => self.fire(first),
            Next::Idle(None) => self.qemu.wait(first),
            Next::Idle(Some(left)) => {
                self.schedule().jump(left);
                self.show_clock();
                self.fire(first);
            }
            Next::Run { processor, budget } => self.turn(processor, cpus[processor], budget),
        }
    }

    /// The machine goes on, or begins.
    fn resume(&self, processors: usize) {
        let now = self.qemu.counted();
        let mut schedule = self.schedule();
        if schedule.processors() != processors {
            *schedule = Schedule::new(processors, schedule.costs);
        }
        // Power-on is at 0; jobs begin where a boot was stopped, and only there do the offsets of a
        // seed apply.
        schedule.resume(now, if now > 0 { &self.offsets } else { &[] });
        self.clock.store(now, Ordering::Release);
        self.keeps_clock.store(true, Ordering::Release);
    }

    /// Has everybody see the clock, and QEMU save it if it is asked to.
    fn show_clock(&self) {
        let clock = self.schedule().clock();
        self.clock.store(clock, Ordering::Release);
        self.qemu.set_counted(clock);
    }

    /// Has timers fire. If one of them stops the machine, nothing executes before it is stopped.
    fn fire(&self, first: Cpu) {
        self.qemu.act_for(first);
        self.qemu.run_timers();
        if self.qemu.is_stop_wanted() {
            while self.qemu.is_running(&[]) {
                self.qemu.wait(first);
            }
        }
    }

    fn turn(&self, processor: usize, cpu: Cpu, budget: i64) {
        self.qemu.unlock();
        let began = self.qemu.executed();
        self.began.store(began, Ordering::Relaxed);
        self.turn.store(processor, Ordering::Relaxed);
        self.qemu.execute(cpu, budget);
        self.turn.store(NONE, Ordering::Relaxed);
        let executed = self.qemu.executed() - began;
        self.schedule().advance(processor, executed);
        self.qemu.lock();
    }
}
