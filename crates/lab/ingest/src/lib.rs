//! Parses a guest's raw bytes into samples, environments and counts. Total functions: any bytes
//! give a value or an error.
//!
//! This crate judges no value; `compare` compares them.

mod calls;
mod environment;
mod machine_code;
mod modelled;
mod monitors;
mod offsets;
mod path;
mod places;
mod profile;
mod rmap;
mod sampled;
mod samples;
mod sharing;
mod stored_text;
mod symbols;

pub use calls::{CallsError, call_tree};
pub use environment::{UNKNOWN_PARAMETERS, environment};
pub use modelled::modelled;
pub use monitors::{copies, observation, reading};
pub use offsets::{offsets, offsets_from_text, offsets_to_text};
pub use path::{PathError, executed_path};
pub use places::{FieldAt, Object};
pub use profile::{ProfileError, profile, profile_by};
pub use rmap::rmap;
pub use sampled::{SampledError, sampled, sampled_from_text, sampled_to_text, sent_file};
pub use samples::{IngestError, outcome, rows};
pub use sharing::{SharingError, sharing, sharing_from_text, sharing_to_text};
pub use stored_text::{monitors_from_bytes, monitors_to_bytes, profile_from_text, profile_to_text};
pub use symbols::{Place, Symbols, SymbolsError, symbols_text};
