//! Writers of the formats, and the sinks for their bytes.

pub(crate) mod elf;
pub(crate) mod kdump;
pub(crate) mod rearrange;
pub(crate) mod sink;
