//! Memory dumps of crashed kernels: read, filtered, compressed and written, in the formats of makedumpfile.
//!
//! A [`Dump`] is an open file of any known format; a [`Reader`] gives its physical memory. A [`Filter`] finds the
//! kernel's memory map in it and decides which pages to drop; a [`Plan`] has the pages of a new dump, which
//! [`write_kdump`] and [`write_elf`] write into a [`Sink`]. The crate `marvin-dump` has the command
//! line and the output.

#![expect(unsafe_code, reason = "files are mapped; each use says why it is sound")]

mod bits;
mod btf;
mod bytes;
mod calls;
mod compress;
mod dump;
mod elf;
mod erase;
mod error;
mod filter;
mod flattened;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod image;
mod kallsyms;
mod kdump;
mod layout;
pub mod live;
mod log;
mod lzo;
mod lzo_encoder;
mod machine;
mod memmap;
mod note;
mod output;
mod paging;
mod per_cpu;
mod plan;
mod progress;
pub mod ram;
mod reader;
mod rule;
mod search;
mod storage;
mod system;
mod table;
mod thin;
mod twins;
mod types;
mod usage;
mod variables;
mod verify;
pub mod vmcoreinfo;
mod vmlinux;
mod window;

pub use calls::Counted;
pub use compress::{Codec, Compressor, Decompressor};
pub use dump::{Dump, Format};
pub use erase::Erasure;
pub use error::{DumpError, Guilt, MemoryError};
pub use filter::{Counts, Filter, Scanner};
pub use log::{LogPart, log};
pub use machine::Machine;
pub use memmap::MemoryMap;
pub use note::Info;
pub use output::elf::write as write_elf;
pub use output::kdump::{Style, Written, write as write_kdump};
pub use output::rearrange::rearrange;
pub use output::sink::{FileSink, Flattened, Nowhere, Overwrite, Sink, Watched};
pub use plan::{Plan, Work};
pub use progress::Progress;
pub use reader::{Io, Reader};
pub use rule::{Class, Level};
pub use system::names;
pub use types::{TypeId, Types};
pub use usage::Usage;
pub use verify::{Damage, Differences, check, verify};
pub use vmlinux::Vmlinux;
