//! QEMU's plugin interface, as far as it is used here: `include/qemu/qemu-plugin.h`, declared by
//! us.
//!
//! Interface 1 is that of QEMU 7.2, interface 2 and later that of QEMU 9 and later. Which one there
//! is, is seen when QEMU loads the plugin; each function is looked up by its name then, so that a
//! missing one can be told.

use std::cell::OnceCell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// A plugin's number.
pub(crate) type Id = u64;

/// A block of instructions that is being translated.
#[repr(C)]
pub(crate) struct Block {
    _private: [u8; 0],
}

#[repr(C)]
struct RawInstruction {
    _private: [u8; 0],
}

pub(crate) type Callback = extern "C" fn(c_uint, *mut c_void);
/// Called with the processor, what kind of access it is, its address, and the data given.
pub(crate) type Access = extern "C" fn(c_uint, u32, u64, *mut c_void);
type AtExit = extern "C" fn(Id, *mut c_void);
type Translated = extern "C" fn(Id, *mut Block);

/// The version of the interface that this plugin speaks; QEMU reads it when it has loaded the
/// plugin.
#[unsafe(no_mangle)]
pub(crate) static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// Runs while the plugin is loaded, before QEMU looks at the version: QEMU 9 and later take no
/// plugin that says 1 (`QEMU_PLUGIN_MIN_VERSION` in plugins/plugin.h).
extern "C" fn choose_version() {
    if !address(c"qemu_plugin_scoreboard_new").is_null() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

#[used]
// SAFETY: the section holds addresses of functions that the dynamic linker calls; this is one.
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = choose_version;

/// The callback neither reads nor writes registers (`QEMU_PLUGIN_CB_NO_REGS`).
const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
const ADD: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. QEMU 7.2 takes one kind for the other (`op_rw` in accel/tcg/plugin-gen.c:
/// what is asked for reads only is called for writes only), so both are asked for and told apart
/// when called.
const READ_OR_WRITE: c_int = 3;
/// Longest instruction of x86, in bytes (Intel SDM, volume 2, 2.3.11).
pub(crate) const LONGEST: usize = 15;

/// A counter as interface 2 sees it: `qemu_plugin_u64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Entry {
    board: *mut c_void,
    offset: usize,
}

/// QEMU's functions.
struct Functions {
    on_translation: extern "C" fn(Id, Translated),
    count: extern "C" fn(*const Block) -> usize,
    instruction: extern "C" fn(*const Block, usize) -> *mut RawInstruction,
    /// Interface 1 returns where the bytes are, and ignores two arguments; later ones copy them
    /// and return how many.
    data: extern "C" fn(*const RawInstruction, *mut u8, usize) -> usize,
    size: extern "C" fn(*const RawInstruction) -> usize,
    address: extern "C" fn(*const RawInstruction) -> u64,
    adding: Adding,
    on_exit: extern "C" fn(Id, AtExit, *mut c_void),
    on_access: extern "C" fn(*mut RawInstruction, Access, c_int, c_int, *mut c_void),
    is_write: extern "C" fn(u32) -> bool,
    before: extern "C" fn(*mut RawInstruction, Callback, c_int, *mut c_void),
}

/// How QEMU is asked to count.
enum Adding {
    /// Interface 1: any 64 bits in memory.
    Memory(extern "C" fn(*mut RawInstruction, c_int, *mut c_void, u64)),
    /// Interface 2: a scoreboard, which QEMU makes.
    Scoreboard {
        add: extern "C" fn(*mut RawInstruction, c_int, Entry, u64),
        new: extern "C" fn(usize) -> *mut c_void,
        find: extern "C" fn(*mut c_void, c_uint) -> *mut c_void,
    },
}

static FUNCTIONS: OnceLock<Functions> = OnceLock::new();

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn address(name: &CStr) -> *mut c_void {
    // SAFETY: a null handle means the default search order (RTLD_DEFAULT), and the name ends with a
    // zero.
    unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) }
}

/// Looks a function up.
///
/// # Safety
/// `F` must be the type of the C function of that name.
pub(crate) unsafe fn function<F: Copy>(name: &CStr) -> Result<F, String> {
    let found = address(name);
    if found.is_null() {
        return Err(format!(
            "this QEMU has no {}: its plugin interface is too old, or switched off",
            name.to_string_lossy()
        ));
    }
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a function pointer has the size of a pointer, and the caller vouches for its type.
    Ok(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Looks all of them up.
pub(crate) fn prepare() -> Result<(), String> {
    // SAFETY: the types are those of the declarations in include/qemu/qemu-plugin.h.
    let functions = unsafe {
        let adding = if address(c"qemu_plugin_scoreboard_new").is_null() {
            Adding::Memory(function(c"qemu_plugin_register_vcpu_insn_exec_inline")?)
        } else {
            Adding::Scoreboard {
                add: function(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?,
                new: function(c"qemu_plugin_scoreboard_new")?,
                find: function(c"qemu_plugin_scoreboard_find")?,
            }
        };
        Functions {
            on_translation: function(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
            count: function(c"qemu_plugin_tb_n_insns")?,
            instruction: function(c"qemu_plugin_tb_get_insn")?,
            data: function(c"qemu_plugin_insn_data")?,
            size: function(c"qemu_plugin_insn_size")?,
            address: function(c"qemu_plugin_insn_vaddr")?,
            adding,
            on_exit: function(c"qemu_plugin_register_atexit_cb")?,
            on_access: function(c"qemu_plugin_register_vcpu_mem_cb")?,
            is_write: function(c"qemu_plugin_mem_is_store")?,
            before: function(c"qemu_plugin_register_vcpu_insn_exec_cb")?,
        }
    };
    drop(FUNCTIONS.set(functions));
    Ok(())
}

/// QEMU's own functions that put executed instructions on the clock. They are no part of the plugin
/// interface: a QEMU that can load modules shows all of its functions to what it loads, another
/// does not.
pub(crate) struct Clock {
    processor: extern "C" fn(c_int) -> *mut c_void,
    update: extern "C" fn(*mut c_void),
}

impl Clock {
    /// Finds them, where they can be seen.
    pub(crate) fn find() -> Option<Self> {
        // SAFETY: the types are those of the declarations in include/hw/core/cpu.h and
        // include/sysemu/cpu-timers.h.
        unsafe {
            Some(Self {
                processor: function(c"qemu_get_cpu").ok()?,
                update: function(c"icount_update").ok()?,
            })
        }
    }

    /// Puts what the block that executes has counted on the clock, all of its instructions.
    pub(crate) fn update(&self) {
        (self.update)((self.processor)(0));
    }
}

/// QEMU's functions that tell where in the guest's physical memory something is.
struct MemoryLookup {
    host: extern "C" fn(*const RawInstruction) -> *const c_void,
    find: extern "C" fn(u32, u64) -> *const c_void,
    is_device: extern "C" fn(*const c_void) -> bool,
    physical: extern "C" fn(*const c_void) -> u64,
    size_shift: extern "C" fn(u32) -> c_uint,
}

static MEMORY_LOOKUP: OnceLock<MemoryLookup> = OnceLock::new();

/// Looks up what [`physical`] and [`Instruction::host`] need.
pub(crate) fn prepare_memory_lookup() -> Result<(), String> {
    // SAFETY: the types are those of the declarations in include/qemu/qemu-plugin.h.
    let places = unsafe {
        MemoryLookup {
            host: function(c"qemu_plugin_insn_haddr")?,
            find: function(c"qemu_plugin_get_hwaddr")?,
            is_device: function(c"qemu_plugin_hwaddr_is_io")?,
            physical: function(c"qemu_plugin_hwaddr_phys_addr")?,
            size_shift: function(c"qemu_plugin_mem_size_shift")?,
        }
    };
    drop(MEMORY_LOOKUP.set(places));
    Ok(())
}

/// Returns the physical address of an access, within its callback; nothing for devices.
pub(crate) fn physical(access: u32, address: u64) -> Option<u64> {
    physical_of(place(access, address)?)
}

/// Returns QEMU's description of where an access is, within its callback.
pub(crate) fn place(access: u32, address: u64) -> Option<*const c_void> {
    let found = (MEMORY_LOOKUP.get()?.find)(access, address);
    (!found.is_null()).then_some(found)
}

/// Returns the physical address of such a place; nothing for devices.
pub(crate) fn physical_of(place: *const c_void) -> Option<u64> {
    let places = MEMORY_LOOKUP.get()?;
    (!(places.is_device)(place)).then(|| (places.physical)(place))
}

/// Returns the size of an access to memory, as a power of two (bytes).
pub(crate) fn size_shift(access: u32) -> u32 {
    MEMORY_LOOKUP
        .get()
        .map_or(0, |places| (places.size_shift)(access))
}

/// Has a function called for each block that is translated.
pub(crate) fn on_translation(id: Id, callback: Translated) {
    if let Some(functions) = FUNCTIONS.get() {
        (functions.on_translation)(id, callback);
    }
}

/// Has a function called when QEMU ends.
pub(crate) fn on_exit(id: Id, callback: AtExit) {
    if let Some(functions) = FUNCTIONS.get() {
        (functions.on_exit)(id, callback, std::ptr::null_mut());
    }
}

/// Tells whether an access to memory is a write.
pub(crate) fn is_write(access: u32) -> bool {
    FUNCTIONS
        .get()
        .is_some_and(|functions| (functions.is_write)(access))
}

/// An instruction that is being translated; valid until the callback returns.
pub(crate) struct Instruction {
    raw: *mut RawInstruction,
    functions: &'static Functions,
}

/// Returns the instructions of a block.
pub(crate) fn instructions(block: *mut Block) -> impl Iterator<Item = Instruction> {
    FUNCTIONS.get().into_iter().flat_map(move |functions| {
        let count = (functions.count)(block);
        (0..count).map(move |index| Instruction {
            raw: (functions.instruction)(block, index),
            functions,
        })
    })
}

impl Instruction {
    /// Returns its address.
    pub(crate) fn address(&self) -> u64 {
        (self.functions.address)(self.raw)
    }

    /// Copies its bytes to a buffer and returns them.
    pub(crate) fn bytes<'a>(&self, room: &'a mut [u8; LONGEST]) -> &'a [u8] {
        let size = (self.functions.size)(self.raw).min(LONGEST);
        let answer = (self.functions.data)(self.raw, room.as_mut_ptr(), size);
        if answer > LONGEST {
            // SAFETY: interface 1 returns the address of the instruction's bytes, valid during the
            // callback.
            room[..size]
                .copy_from_slice(unsafe { std::slice::from_raw_parts(answer as *const u8, size) });
        }
        &room[..size]
    }

    /// Has a function called before each execution.
    pub(crate) fn before(&self, callback: Callback, data: usize) {
        (self.functions.before)(self.raw, callback, NO_REGISTERS, data as *mut c_void);
    }

    /// Returns where QEMU has it in its own memory; nothing if that is no memory.
    pub(crate) fn host(&self) -> Option<u64> {
        let host = (MEMORY_LOOKUP.get()?.host)(self.raw);
        (!host.is_null()).then_some(host as usize as u64)
    }

    /// Has a function called with the address of each read or write of memory, see [`is_write`].
    pub(crate) fn on_access(&self, callback: Access, data: usize) {
        (self.functions.on_access)(
            self.raw,
            callback,
            NO_REGISTERS,
            READ_OR_WRITE,
            data as *mut c_void,
        );
    }

    /// Counts each execution.
    pub(crate) fn count(&self, counters: &Counters, index: usize) {
        match &self.functions.adding {
            Adding::Memory(add) => add(self.raw, ADD, counters.at(index).cast(), 1),
            Adding::Scoreboard { add, .. } => {
                add(
                    self.raw,
                    ADD,
                    Entry {
                        board: counters.board,
                        offset: index * size_of::<u64>(),
                    },
                    1,
                );
            }
        }
    }
}

/// Counters that QEMU adds to while the guest runs, on the thread that calls us.
pub(crate) struct Counters {
    /// Where they are. With interface 2 that is asked for when it is needed first: there is no
    /// processor yet when the plugin is loaded, and a scoreboard has nothing to find before
    /// (`qemu_plugin_scoreboard_find` in plugins/api.c).
    first: OnceCell<*mut u64>,
    board: *mut c_void,
    length: usize,
}

// SAFETY: there is one processor (thread=single): QEMU adds, translates and calls back on that one
// thread.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

impl Counters {
    /// Makes counters, all 0, that live as long as QEMU.
    pub(crate) fn new(length: usize) -> Option<Self> {
        let functions = FUNCTIONS.get()?;
        Some(match &functions.adding {
            Adding::Memory(_) => {
                let first = Box::leak(vec![0_u64; length].into_boxed_slice()).as_mut_ptr();
                Self {
                    first: OnceCell::from(first),
                    board: std::ptr::null_mut(),
                    length,
                }
            }
            Adding::Scoreboard { new, .. } => Self {
                first: OnceCell::new(),
                board: new(length * size_of::<u64>()),
                length,
            },
        })
    }

    fn at(&self, index: usize) -> *mut u64 {
        assert!(index < self.length, "a counter that was not made");
        let first =
            self.first.get_or_init(
                || match FUNCTIONS.get().map(|functions| &functions.adding) {
                    Some(Adding::Scoreboard { find, .. }) => find(self.board, 0).cast(),
                    _ => std::ptr::null_mut(),
                },
            );
        // SAFETY: within the counters, see above; whoever has counters has functions.
        unsafe { first.add(index) }
    }

    /// Appends by how much each of the first counters is beyond what is known of it, if it is, and
    /// makes that known. Most are not.
    pub(crate) fn take(&self, known: &mut [u64], taken: &mut Vec<(usize, u64)>) {
        /// Counters that are compared at once.
        const TOGETHER: usize = 64;
        if known.is_empty() {
            return;
        }
        self.at(known.len() - 1);
        // SAFETY: aligned, within the counters, and QEMU adds nothing while a callback runs.
        let now = unsafe { std::slice::from_raw_parts(self.at(0), known.len()) };
        let pieces = now.chunks(TOGETHER).zip(known.chunks_mut(TOGETHER));
        for (piece, (now, known)) in pieces.enumerate() {
            if now == known {
                continue;
            }
            for (index, (now, known)) in now.iter().zip(known).enumerate() {
                if now != known {
                    taken.push((piece * TOGETHER + index, now - *known));
                    *known = *now;
                }
            }
        }
    }

    /// Returns a counter's value now.
    pub(crate) fn get(&self, index: usize) -> u64 {
        // SAFETY: aligned, within the counters, and QEMU adds nothing while a callback runs.
        unsafe { self.at(index).read_volatile() }
    }
}
