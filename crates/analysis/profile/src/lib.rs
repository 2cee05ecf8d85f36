//! What a difference between two kernels consists of: instructions by function ([`ledger`]), calls
//! ([`calls`]), costs of simulated caches ([`modelled`]), samples ([`sampled`]), lines of memory
//! that processors take from each other ([`transfers`]), and the places where the executed
//! instructions part ([`paths`]); each with its text, pages and JSON.
//!
//! Pure: profiles come in as values. Verdicts are `compare`'s; no number here decides one.

#![warn(missing_docs)]

pub mod calls;
pub mod ledger;
pub mod modelled;
pub mod paths;
pub mod render;
pub mod sampled;
pub mod transfers;
