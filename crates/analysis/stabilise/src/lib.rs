//! Stabilisation: which commits made NEW slower than BASELINE, which patches repay it, and which of
//! these to take.
//!
//! [`search()`] decides what to try next and what follows; it is pure over any [`World`].

#![warn(missing_docs)]

pub mod evidence;
mod outcome;
pub mod render;
mod search;
mod world;

pub use outcome::{Cause, Debt, Effect, Outcome, Unit};
pub use search::{Checked, Question, check, check_steps, search};
pub use world::{Change, Evidence, Failure, Kernel, Phase, Suspicion, Trial, World};
