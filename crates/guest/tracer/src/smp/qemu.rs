//! QEMU's own functions and fields, as far as the scheduler of several processors needs them. They
//! are no plugin interface: functions are looked up by name, and fields by their offsets in builds
//! of QEMU that are known.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::prefetch::Registers;
use crate::api::{self, function};

/// A processor: QEMU's `CPUState` (include/hw/core/cpu.h).
pub(super) type Cpu = *mut c_void;
type Class = *mut c_void;
/// What a thread of QEMU executes.
pub(super) type ThreadFunction = extern "C" fn(*mut c_void) -> *mut c_void;

const PAGE_BITS: u32 = 12;
/// Pages whose place is remembered: 64 MiB.
const PAGES: usize = 1 << 14;
/// `QEMU_CLOCK_VIRTUAL` (include/qemu/timer.h).
const VIRTUAL: c_int = 1;
/// `QEMU_TIMER_ATTR_ALL`.
const ALL: c_int = -1;
/// Size of `QemuCond` with room to spare (bytes).
const CONDITION: usize = 128;
/// `RTLD_LAZY | RTLD_NOLOAD` (dlopen(3)).
const NO_LOAD: c_int = 1 | 4;

/// Offsets of fields (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    name: &'static str,
    thread: usize,
    thread_id: usize,
    halt_cond: usize,
    created: usize,
    stopped: usize,
    exit_request: usize,
    icount_budget: usize,
    icount_extra: usize,
    random_seed: usize,
    env_ptr: usize,
    icount_decr_ptr: usize,
    can_do_io: usize,
    /// Within `timers_state` (softmmu/timers-state.h).
    icount_bias: usize,
    /// Within `qemu_plugin_hwaddr` (include/qemu/plugin-memory.h).
    is_device: usize,
    host_address: usize,
}

/// The builds that are known. The lab knows them by their hashes
/// (`crates/lab/machine/src/exact/processors.rs`). Read from the code of `rr_start_vcpu_thread`,
/// `icount_prepare_for_run`, `cpu_exit` and `icount_get` of that build.
const LAYOUTS: &[Layout] = &[Layout {
    name: "debian-7.2.22",
    thread: 0xb0,
    thread_id: 0xb8,
    halt_cond: 0xc0,
    created: 0xc9,
    stopped: 0xcb,
    exit_request: 0xcf,
    icount_budget: 0xe0,
    icount_extra: 0xe8,
    random_seed: 0xf0,
    env_ptr: 0x220,
    icount_decr_ptr: 0x228,
    can_do_io: 0x300,
    icount_bias: 0x28,
    is_device: 0,
    host_address: 8,
}];

impl Layout {
    /// Returns the layout of a build.
    pub(super) fn of(name: &str) -> Option<Self> {
        LAYOUTS.iter().find(|layout| layout.name == name).copied()
    }
}

/// Offsets in `AccelOpsClass` (include/sysemu/accel-ops.h) behind its `ObjectClass` of 96 bytes.
/// That they are right is seen by the functions that stand there.
const OPS_INIT: usize = 96;
const CREATE_THREAD: usize = 112;
const KICK: usize = 120;
const INTERRUPT: usize = 176;
const CLOCK: usize = 184;
const TICKS: usize = 192;

pub(super) type OpsInit = extern "C" fn(Class);
pub(super) type Create = extern "C" fn(Cpu);
pub(super) type Interrupt = extern "C" fn(Cpu, c_int);
pub(super) type Clock = extern "C" fn() -> i64;

/// What replaces QEMU's operations.
#[derive(Clone, Copy)]
pub(super) struct Operations {
    pub(super) create: Create,
    pub(super) kick: Create,
    pub(super) interrupt: Interrupt,
    pub(super) clock: Clock,
}

#[repr(C)]
struct Symbol {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, symbol: *mut Symbol) -> c_int;
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn mprotect(start: *mut c_void, length: usize, protection: c_int) -> c_int;
}

/// QEMU's functions.
pub(super) struct Qemu {
    layout: Layout,
    cpu: extern "C" fn(c_int) -> Cpu,
    exec: extern "C" fn(Cpu) -> c_int,
    exec_start: extern "C" fn(Cpu),
    exec_end: extern "C" fn(Cpu),
    step_atomic: extern "C" fn(Cpu),
    exit: extern "C" fn(Cpu),
    read_memory: extern "C" fn(Cpu, u64, *mut c_void, usize, bool) -> c_int,
    page: extern "C" fn(Cpu, u64, *mut u64) -> u64,
    update: extern "C" fn(Cpu),
    raw: extern "C" fn() -> i64,
    counted: extern "C" fn() -> i64,
    deadline: extern "C" fn(c_int, c_int) -> i64,
    run_timers: extern "C" fn(c_int) -> bool,
    is_idle: extern "C" fn(Cpu) -> bool,
    common: extern "C" fn(Cpu),
    wait: extern "C" fn(*mut c_void),
    lock: extern "C" fn(*const c_char, c_int),
    unlock: extern "C" fn(),
    rcu: extern "C" fn(),
    tcg: extern "C" fn(),
    created: extern "C" fn(Cpu),
    seed: extern "C" fn(u64),
    thread: extern "C" fn(*mut c_void, *const c_char, ThreadFunction, *mut c_void, c_int),
    this_thread: extern "C" fn(*mut c_void),
    thread_number: extern "C" fn() -> c_int,
    condition: extern "C" fn(*mut c_void),
    is_running: extern "C" fn() -> bool,
    stop_asked: extern "C" fn(*mut c_int) -> bool,
    before_stop: extern "C" fn(),
    ask_stop: extern "C" fn(c_int),
    bias: *mut i64,
    /// Pages of this process with guest memory, and of the guest's physical memory: QEMU looks for
    /// them in its list of memory.
    pages: Box<[[AtomicU64; 2]]>,
    /// Where the thread of the processors has the current one.
    current: OnceLock<usize>,
}

// SAFETY: functions of QEMU, which it calls from several threads itself, and the address of a
// static.
unsafe impl Send for Qemu {}
// SAFETY: as above.
unsafe impl Sync for Qemu {}

impl Qemu {
    /// Looks all of them up.
    pub(super) fn find(layout: Layout) -> Result<Self, String> {
        // SAFETY: the types are those of QEMU 7.2's headers: include/hw/core/cpu.h,
        // include/exec/exec-all.h, include/sysemu/cpu-timers.h,
        // include/qemu/{timer,main-loop,rcu,thread,guest-random}.h,
        // include/sysemu/{tcg,runstate}.h.
        unsafe {
            let state: *mut u8 = function(c"timers_state")?;
            Ok(Self {
                layout,
                cpu: function(c"qemu_get_cpu")?,
                exec: function(c"cpu_exec")?,
                exec_start: function(c"cpu_exec_start")?,
                exec_end: function(c"cpu_exec_end")?,
                step_atomic: function(c"cpu_exec_step_atomic")?,
                exit: function(c"cpu_exit")?,
                read_memory: function(c"cpu_memory_rw_debug")?,
                page: function(c"cpu_get_phys_page_attrs_debug")?,
                update: function(c"icount_update")?,
                raw: function(c"icount_get_raw")?,
                counted: function(c"icount_get")?,
                deadline: function(c"qemu_clock_deadline_ns_all")?,
                run_timers: function(c"qemu_clock_run_timers")?,
                is_idle: function(c"cpu_thread_is_idle")?,
                common: function(c"qemu_wait_io_event_common")?,
                wait: function(c"qemu_cond_wait_iothread")?,
                lock: function(c"qemu_mutex_lock_iothread_impl")?,
                unlock: function(c"qemu_mutex_unlock_iothread")?,
                rcu: function(c"rcu_register_thread")?,
                tcg: function(c"tcg_register_thread")?,
                created: function(c"cpu_thread_signal_created")?,
                seed: function(c"qemu_guest_random_seed_thread_part2")?,
                thread: function(c"qemu_thread_create")?,
                this_thread: function(c"qemu_thread_get_self")?,
                thread_number: function(c"qemu_get_thread_id")?,
                condition: function(c"qemu_cond_init")?,
                is_running: function(c"runstate_is_running")?,
                stop_asked: function(c"qemu_vmstop_requested")?,
                before_stop: function(c"qemu_system_vmstop_request_prepare")?,
                ask_stop: function(c"qemu_system_vmstop_request")?,
                bias: state.add(layout.icount_bias).cast(),
                pages: (0..PAGES).map(|_| Default::default()).collect(),
                current: OnceLock::new(),
            })
        }
    }

    /// Returns a processor; nothing beyond the last.
    pub(super) fn cpu(&self, number: usize) -> Option<Cpu> {
        let cpu = (self.cpu)(c_int::try_from(number).ok()?);
        (!cpu.is_null()).then_some(cpu)
    }

    fn at<T>(cpu: Cpu, offset: usize) -> *mut T {
        cpu.cast::<u8>().wrapping_add(offset).cast()
    }

    fn write<T>(cpu: Cpu, offset: usize, value: T) {
        // SAFETY: a field of a processor, at the offset and with the type that this build has.
        unsafe { Self::at::<T>(cpu, offset).write_volatile(value) };
    }

    fn read<T>(cpu: Cpu, offset: usize) -> T {
        // SAFETY: as above.
        unsafe { Self::at::<T>(cpu, offset).read_volatile() }
    }

    /// Makes the thread of all processors, for the first one.
    pub(super) fn start_thread(&self, cpu: Cpu, function: ThreadFunction) {
        // QEMU keeps both as long as it lives.
        let thread: *mut c_void = Box::into_raw(Box::new(0_u64)).cast();
        let condition: *mut c_void = Box::into_raw(Box::new([0_u64; CONDITION / 8])).cast();
        Self::write(cpu, self.layout.thread, thread);
        Self::write(cpu, self.layout.halt_cond, condition);
        (self.condition)(condition);
        (self.thread)(thread, c"ALL CPUs/TCG".as_ptr(), function, cpu, 0);
    }

    /// Has a processor share the thread of the first.
    pub(super) fn share_thread(&self, cpu: Cpu, first: Cpu) {
        for offset in [self.layout.thread, self.layout.halt_cond] {
            Self::write(cpu, offset, Self::read::<*mut c_void>(first, offset));
        }
        Self::write(
            cpu,
            self.layout.thread_id,
            Self::read::<c_int>(first, self.layout.thread_id),
        );
        Self::write(cpu, self.layout.can_do_io, 1_u32);
        Self::write(cpu, self.layout.created, true);
    }

    /// The thread of all processors begins. It has QEMU's big lock then.
    pub(super) fn enter_thread(&self, first: Cpu) -> Result<(), String> {
        // SAFETY: a variable of that type; an address that is looked up on this thread is this
        // thread's.
        let current: *mut Cpu = unsafe { function(c"current_cpu")? };
        self.current.get_or_init(|| current as usize);
        (self.rcu)();
        (self.tcg)();
        self.lock();
        (self.this_thread)(Self::read(first, self.layout.thread));
        Self::write(first, self.layout.thread_id, (self.thread_number)());
        Self::write(first, self.layout.can_do_io, 1_u32);
        (self.created)(first);
        (self.seed)(Self::read(first, self.layout.random_seed));
        Ok(())
    }

    /// Takes QEMU's big lock.
    pub(super) fn lock(&self) {
        (self.lock)(c"marvin".as_ptr(), 0);
    }

    /// Releases it.
    pub(super) fn unlock(&self) {
        (self.unlock)();
    }

    /// Waits until another thread wants something of a processor, without the lock.
    pub(super) fn wait(&self, first: Cpu) {
        (self.wait)(Self::read(first, self.layout.halt_cond));
    }

    /// From here on this thread acts for a processor: QEMU has the current one in a variable of
    /// each thread.
    pub(super) fn act_for(&self, cpu: Cpu) {
        if let Some(current) = self.current.get() {
            // SAFETY: this thread's own variable, see `enter_thread`.
            unsafe { (*current as *mut Cpu).write(cpu) };
        }
    }

    /// Does what other threads want of a processor: stop, or work that was queued.
    pub(super) fn obey(&self, cpu: Cpu) {
        self.act_for(cpu);
        (self.common)(cpu);
    }

    /// Tells whether the machine runs and no processor was stopped.
    pub(super) fn is_running(&self, cpus: &[Cpu]) -> bool {
        (self.is_running)()
            && !cpus
                .iter()
                .any(|cpu| Self::read::<u8>(*cpu, self.layout.stopped) != 0)
    }

    /// Tells whether a processor has nothing to execute.
    pub(super) fn is_idle(&self, cpu: Cpu) -> bool {
        (self.is_idle)(cpu)
    }

    /// Returns the nanoseconds to the next timer of the guest.
    pub(super) fn deadline(&self) -> Option<i64> {
        Some((self.deadline)(VIRTUAL, ALL)).filter(|left| *left >= 0)
    }

    /// Has the timers fire that are due.
    pub(super) fn run_timers(&self) {
        (self.run_timers)(VIRTUAL);
    }

    /// Tells whether one of the timers wants the machine stopped, and leaves it wanted: the other
    /// thread stops it.
    pub(super) fn is_stop_wanted(&self) -> bool {
        let mut state = 0;
        if !(self.stop_asked)(&raw mut state) {
            return false;
        }
        (self.before_stop)();
        (self.ask_stop)(state);
        true
    }

    /// Returns the instructions that were executed. On the thread of the processors those of the
    /// running one are in it.
    pub(super) fn executed(&self) -> i64 {
        (self.raw)()
    }

    /// Does something that reads the number of executed instructions within a block, which QEMU
    /// allows at its end only.
    pub(super) fn within_block<R>(&self, cpu: Cpu, action: impl FnOnce() -> R) -> R {
        let allowed: u32 = Self::read(cpu, self.layout.can_do_io);
        Self::write(cpu, self.layout.can_do_io, 1_u32);
        let result = action();
        Self::write(cpu, self.layout.can_do_io, allowed);
        result
    }

    /// Returns QEMU's own clock, which it saves and restores.
    pub(super) fn counted(&self) -> i64 {
        (self.counted)()
    }

    /// Has QEMU's own clock show a time.
    pub(super) fn set_counted(&self, now: i64) {
        // SAFETY: a static of QEMU; the caller has the big lock, and who reads it without reads a
        // whole number.
        unsafe { self.bias.write_volatile(now - self.executed()) };
    }

    /// Ends a processor's turn at its next block.
    pub(super) fn exit(&self, cpu: Cpu) {
        (self.exit)(cpu);
    }

    /// Returns the physical address of an access, within its callback; nothing for devices.
    pub(super) fn physical(&self, access: u32, address: u64) -> Option<u64> {
        let place = api::place(access, address)?.cast::<u8>();
        // SAFETY: fields of QEMU's description, which lives until the next one, at the offsets that
        // this build has.
        let (is_device, host) = unsafe {
            let host = place.add(self.layout.host_address).cast::<u64>();
            (place.add(self.layout.is_device).read() != 0, host.read())
        };
        if is_device {
            return None;
        }
        let (page, within) = (host >> PAGE_BITS, host & ((1 << PAGE_BITS) - 1));
        let [known, physical] = &self.pages[page as usize % PAGES];
        if known.load(Ordering::Relaxed) != page {
            physical.store(
                api::physical_of(place.cast())? >> PAGE_BITS,
                Ordering::Relaxed,
            );
            known.store(page, Ordering::Relaxed);
        }
        Some(physical.load(Ordering::Relaxed) << PAGE_BITS | within)
    }

    /// Reads guest memory at a virtual address of a processor, as a debugger does; `false` if
    /// nothing is mapped there.
    pub(super) fn read_memory(&self, cpu: Cpu, address: u64, to: &mut [u8]) -> bool {
        (self.read_memory)(cpu, address, to.as_mut_ptr().cast(), to.len(), false) == 0
    }

    /// Returns the physical address of a virtual one of a processor, by its page tables, which are
    /// only read; nothing if nothing is mapped there.
    pub(super) fn translate(&self, cpu: Cpu, address: u64) -> Option<u64> {
        const WITHIN: u64 = (1 << PAGE_BITS) - 1;
        // `MemTxAttrs` (include/exec/memattrs.h) is smaller.
        let mut attributes = 0;
        let page = (self.page)(cpu, address & !WITHIN, &raw mut attributes);
        (page != u64::MAX).then_some(page & !WITHIN | address & WITHIN)
    }

    /// Returns the registers of a processor, within the callback before an instruction, see
    /// [`keep_registers`].
    pub(super) fn registers(&self, cpu: Cpu) -> Option<Registers> {
        /// How far behind the processor's counter its registers begin (`CPUNegativeOffsetState` of
        /// include/exec/cpu-defs.h is before them, and ends with the counter).
        const BEHIND_COUNTER: usize = 16;
        let registers: *const Registers = Self::read(cpu, self.layout.env_ptr);
        let counter: *const u8 = Self::read(cpu, self.layout.icount_decr_ptr);
        let distance = (registers as usize).wrapping_sub(counter as usize);
        // SAFETY: the first field of `CPUArchState` (target/i386/cpu.h), which is where it has to be.
        (distance <= BEHIND_COUNTER).then(|| unsafe { registers.read_volatile() })
    }

    /// Has a processor execute at most so many instructions. Without the lock.
    pub(super) fn execute(&self, cpu: Cpu, budget: i64) {
        /// What `cpu_exec` returns for an instruction that has to execute alone
        /// (include/exec/cpu-common.h).
        const ATOMIC: c_int = 0x1_0005;
        let decrement: *mut u16 = Self::read(cpu, self.layout.icount_decr_ptr);
        let low = budget.clamp(1, 0xffff) as u16;
        Self::write(cpu, self.layout.exit_request, false);
        Self::write(cpu, self.layout.icount_budget, budget);
        Self::write(cpu, self.layout.icount_extra, budget - i64::from(low));
        // SAFETY: the lower half of the processor's own counter.
        unsafe { decrement.write_volatile(low) };
        (self.exec_start)(cpu);
        let how = (self.exec)(cpu);
        (self.exec_end)(cpu);
        (self.update)(cpu);
        // SAFETY: as above.
        unsafe { decrement.write_volatile(0) };
        Self::write(cpu, self.layout.icount_budget, 0_i64);
        Self::write(cpu, self.layout.icount_extra, 0_i64);
        if how == ATOMIC {
            (self.step_atomic)(cpu);
        }
    }
}

/// The name of the helper that calls back before an instruction, as the table of helpers has it.
const BEFORE: &[u8] = b"\0plugin_vcpu_udata_cb\0";
/// `TCG_CALL_NO_READ_GLOBALS` and `TCG_CALL_NO_WRITE_GLOBALS` (include/tcg/tcg.h).
const READS_NO_REGISTERS: u32 = 1;
const WRITES_NO_REGISTERS: u32 = 2;
/// `PROT_READ` and `PROT_WRITE`.
const READABLE: c_int = 1;
const WRITABLE: c_int = 2;

/// Has QEMU write registers to memory where it calls back before an instruction. Its helper for
/// that says that it reads none (accel/tcg/plugin-helpers.h). What helpers say is in a table of
/// `TCGHelperInfo` (`all_helpers` of tcg/tcg.c): function, name, flags.
pub(super) fn keep_registers() -> Result<(), String> {
    const UNKNOWN: &str = "this QEMU does not say what its helpers read";
    // SAFETY: only its address is used.
    let known: *const c_void = unsafe { function(c"qemu_get_cpu")? };
    let (file, _) = symbol(known).ok_or(UNKNOWN)?;
    let maps = std::fs::read_to_string("/proc/self/maps").map_err(|error| error.to_string())?;
    let file = file.to_string_lossy();
    let parts = || maps.lines().filter_map(|line| readable(line, &file));
    let name = parts().find_map(|part| {
        let at = part.windows(BEFORE.len()).position(|bytes| bytes == BEFORE);
        at.map(|at| part.as_ptr() as usize + at + 1)
    });
    let name = name.ok_or(UNKNOWN)?.to_ne_bytes();
    for part in parts() {
        let mut words = part.chunks_exact(size_of::<usize>()).enumerate();
        let Some((at, _)) = words.find(|(_, word)| *word == name) else {
            continue;
        };
        let place = part.as_ptr() as usize + (at + 1) * size_of::<usize>();
        let page = place & !((1 << PAGE_BITS) - 1);
        let flags = place as *mut u32;
        // SAFETY: the table's entry goes on behind the name. Its page is QEMU's data, which it
        // makes read-only when it has started; nothing is translated yet.
        let is_changed = unsafe {
            let found = flags.read_volatile();
            found & READS_NO_REGISTERS != 0
                && mprotect(page as *mut c_void, 1 << PAGE_BITS, READABLE | WRITABLE) == 0
                && {
                    flags.write_volatile(found & !READS_NO_REGISTERS | WRITES_NO_REGISTERS);
                    mprotect(page as *mut c_void, 1 << PAGE_BITS, READABLE) == 0
                }
        };
        return if is_changed {
            Ok(())
        } else {
            Err(UNKNOWN.into())
        };
    }
    Err(UNKNOWN.into())
}

/// Returns what a line of /proc/self/maps has mapped of a file, if it can be read only.
fn readable(line: &str, file: &str) -> Option<&'static [u8]> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let is_readable = words.next()? == "r--p";
    let is_of_file = words.nth(3)?.rsplit('/').next() == file.rsplit('/').next();
    let number = |text| usize::from_str_radix(text, 16).ok();
    let (start, end) = (number(start)?, number(end)?);
    // SAFETY: mapped, readable, not written, and as long as QEMU lives.
    (is_readable && is_of_file)
        .then(|| unsafe { std::slice::from_raw_parts(start as *const u8, end - start) })
}

/// QEMU's operations of the accelerator: `AccelOpsClass`.
#[derive(Clone, Copy)]
pub(super) struct Accelerator(Class);

impl Accelerator {
    /// Finds the one for TCG. Plugins are loaded before it is used.
    pub(super) fn find() -> Result<Self, String> {
        // SAFETY: the type is that of the declaration in include/qom/object.h.
        let class: extern "C" fn(*const c_char) -> Class =
            unsafe { function(c"module_object_class_by_name")? };
        let found = class(c"tcg-accel-ops".as_ptr());
        if found.is_null() {
            Err("this QEMU has no operations for TCG".into())
        } else {
            Ok(Self(found))
        }
    }

    pub(super) const fn of(class: Class) -> Self {
        Self(class)
    }

    fn slot<F: Copy>(self, offset: usize) -> *mut F {
        const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
        self.0.cast::<u8>().wrapping_add(offset).cast()
    }

    /// Replaces what sets the operations, and returns what did before.
    pub(super) fn replace_init(self, init: OpsInit) -> OpsInit {
        let slot = self.slot::<OpsInit>(OPS_INIT);
        // SAFETY: the class is QEMU's and lives as long as it; `check` sees later whether it was
        // the right place.
        unsafe { std::mem::replace(&mut *slot, init) }
    }

    /// Replaces the operations that QEMU has set and returns its function for interrupts.
    pub(super) fn replace(self, new: Operations) -> Result<Interrupt, String> {
        let names = [
            (CREATE_THREAD, "rr_start_vcpu_thread"),
            (KICK, "rr_kick_vcpu_thread"),
            (INTERRUPT, "icount_handle_interrupt"),
            (CLOCK, "icount_get"),
            (TICKS, "icount_get"),
        ];
        for (offset, name) in names {
            // SAFETY: within the class.
            let found =
                symbol(unsafe { self.slot::<*const c_void>(offset).read() }).map(|(_, name)| name);
            if found.as_deref() != Some(name) {
                let found = found.unwrap_or_else(|| "an unknown function".into());
                return Err(format!("this QEMU has {found} where {name} was expected"));
            }
        }
        // SAFETY: the slots hold functions of these types, as their names say.
        unsafe {
            self.slot::<Create>(CREATE_THREAD).write(new.create);
            self.slot::<Create>(KICK).write(new.kick);
            self.slot::<Clock>(CLOCK).write(new.clock);
            self.slot::<Clock>(TICKS).write(new.clock);
            Ok(std::mem::replace(
                &mut *self.slot::<Interrupt>(INTERRUPT),
                new.interrupt,
            ))
        }
    }

    /// Returns the function that sets a processor's flags for translation, of the module that has
    /// the operations.
    pub(super) fn flags(self) -> Result<extern "C" fn(Cpu, bool), String> {
        // SAFETY: within the class.
        let create = unsafe { self.slot::<*const c_void>(CREATE_THREAD).read() };
        let (file, _) = symbol(create).ok_or("QEMU's operations are in no module")?;
        // SAFETY: strings that end with a zero; the module is loaded already.
        let found = unsafe {
            dlsym(
                dlopen(file.as_ptr(), NO_LOAD),
                c"tcg_cpu_init_cflags".as_ptr(),
            )
        };
        if found.is_null() {
            return Err("this QEMU has no tcg_cpu_init_cflags".into());
        }
        // SAFETY: the type is that of the declaration in accel/tcg/tcg-accel-ops.h.
        Ok(unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(Cpu, bool)>(found) })
    }
}

/// Returns the file and the name of what begins at an address.
fn symbol(address: *const c_void) -> Option<(CString, String)> {
    let mut found = Symbol {
        file: std::ptr::null(),
        base: std::ptr::null_mut(),
        name: std::ptr::null(),
        address: std::ptr::null_mut(),
    };
    // SAFETY: `found` is valid for the call.
    let is_known = unsafe { dladdr(address, &raw mut found) } != 0;
    if !is_known
        || found.name.is_null()
        || found.file.is_null()
        || !std::ptr::eq(found.address, address)
    {
        return None;
    }
    // SAFETY: dladdr(3) returns strings that live as long as the module.
    let (file, name) = unsafe { (CStr::from_ptr(found.file), CStr::from_ptr(found.name)) };
    Some((file.to_owned(), name.to_string_lossy().into_owned()))
}
