//! What is written: the formats, and where their bytes go.

pub(crate) mod kdump;
pub(crate) mod sink;
