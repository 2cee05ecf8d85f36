//! Memory dumps of crashed kernels: read, filtered, compressed and written, in the formats of
//! makedumpfile.
//!
//! A [`Dump`] is an open file of any known format; a [`Reader`] gives its physical memory. A
//! [`Filter`] finds the kernel's memory map in it and decides which pages to drop; a [`Plan`] has
//! the pages of a new dump, which [`write_kdump`] and [`write_elf`] write into a [`Sink`]. The
//! crate `marvin-dump` has the command line and the output.
//!
//! ```no_run
//! use vmcore::{Dump, Io, Reader, VirtualMemory};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dump = Dump::open(&["/var/crash/vmcore".into()])?;
//! let mut reader = Reader::new(&dump, Io::Map);
//! let memory = VirtualMemory::new(&dump)?;
//! let text = dump.info().symbol("_stext").ok_or("no _stext")?;
//! let code = memory.read(&mut reader, text, 16)?;
//! # assert_eq!(code.len(), 16);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/` has a program for each use: `release` reads by virtual address, `filter` writes a
//! smaller dump and verifies it, `log` prints the kernel's log and checks every page. Features:
//! `erase` (needs DWARF) and `live` (a running guest; needs JSON). Without them the crate has
//! neither gimli nor serde.

#![warn(missing_docs)]
#![expect(
    unsafe_code,
    reason = "files are mapped; each use says why it is sound"
)]

mod bits;
mod btf;
mod bytes;
mod checksums;
mod completion;
mod compress;
mod dedup;
mod description;
mod dump;
mod elf;
mod erase;
mod error;
mod exclusion;
mod exclusion_table;
mod filter;
mod flattened;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod image;
mod kallsyms;
mod kdump;
mod layout;
#[cfg(feature = "live")]
pub mod live;
mod log;
mod lzo;
mod lzo_encoder;
mod machine;
mod mem_usage;
mod memmap;
pub mod memory_file;
mod note;
mod output;
mod paging;
mod per_cpu;
mod plan;
mod progress;
mod reader;
mod search;
mod segments;
mod storage;
mod symbols;
mod syscall_counts;
mod system;
mod thin_vmemmap;
mod types;
#[cfg(feature = "erase")]
mod variables;
mod verify;
mod virtual_memory;
pub mod vmcoreinfo;
mod vmlinux;
mod window;
mod write_order;
mod zones;

pub use completion::Shortfall;
pub use compress::{Codec, Compressor, Decompressor};
pub use dump::{Dump, Format};
pub use erase::Erasure;
pub use error::{DumpError, Fault, MemoryError};
pub use exclusion::{Class, Level};
pub use filter::{Counts, Filter, Scanner};
pub use log::{Log, LogPart, log};
pub use machine::Machine;
pub use mem_usage::Usage;
pub use memmap::MemoryMap;
pub use note::Info;
pub use output::elf::write as write_elf;
pub use output::kdump::{Style, Written, write as write_kdump};
pub use output::rearrange::{Cut, Rearranged, rearrange};
pub use output::sink::{FileSink, Flattened, Nowhere, Overwrite, Sink, Watched};
pub use plan::{Plan, Work};
pub use progress::Progress;
pub use reader::{Io, Reader};
pub use syscall_counts::Counted;
pub use system::names;
pub use types::{TypeId, Types};
pub use verify::{Damage, Differences, check, verify};
pub use virtual_memory::VirtualMemory;
pub use vmlinux::Vmlinux;
