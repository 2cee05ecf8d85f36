//! Workloads with too little memory: a key-value server beside background IO, builds that swap, and
//! reclaim on purpose.
//!
//! They take swap, disks and all memory of the guest, so they run nowhere else.

mod builds;
mod parallelio;
mod pressure;
mod server;
mod swap;

pub(super) use builds::{kernbench, multibuild};
pub(super) use parallelio::parallelio;
pub(super) use pressure::{anonymous, file, slow};
pub(super) use swap::Generations;
