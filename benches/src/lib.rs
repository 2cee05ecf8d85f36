//! The shared parts of all benches: figures and their lines, processor time, memory, another rule
//! for changes.

pub mod cpu;
pub mod figure;
pub mod lab_of_years;
pub mod memory;
pub mod perfherder;
