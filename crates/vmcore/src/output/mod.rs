//! What is written: the formats, and where their bytes go.

pub(crate) mod archive;
pub(crate) mod elf;
pub(crate) mod kdump;
pub(crate) mod rearrange;
pub(crate) mod sink;
