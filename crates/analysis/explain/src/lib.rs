//! Why a program is slow: the budget of its time, a tree of rules that finds the cause, and the
//! answer as a document.
//!
//! `kernels` does the same for workloads of ours, from exact counts. Pure: `observe` collects the
//! facts of programs, `lab` counts.

#![warn(missing_docs)]

mod answer;
mod arguments;
mod beside;
mod between;
pub mod budget;
mod callers;
mod config_hypotheses;
mod differing_settings;
mod drawings;
pub mod facts;
mod finding;
mod interpreted;
mod json;
mod kernels;
mod meanings;
mod parts;
mod render;
mod rules;
mod runtimes;
mod verification;
mod waits;

pub use answer::{Answer, answer};
pub use differing_settings::{Options, Setting, Touching, differing_settings};
pub use finding::{Certainty, Evidence, Finding, Suspect, Switch, Variable};
pub use json::{json, schema};
pub use kernels::{
    KernelsExplained, Part, Sides, WorkloadExplained, kernels_document, kernels_json,
    kernels_schema,
};
pub use render::{End, EndState, Explained, document};
pub use rules::{Branch, RULES, Rule};
pub use verification::{Runs, compare_outputs, judge_runs, runs_for};

#[cfg(test)]
mod asker_tests;
#[cfg(test)]
mod beside_tests;
#[cfg(test)]
mod called_tests;
#[cfg(test)]
mod runtime_tests;
#[cfg(test)]
mod script_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod waiting_tests;
#[cfg(test)]
mod work_tests;
