//! Why a program is slow: the budget of its time, a tree of rules that finds the cause, and the answer as a document.
//!
//! Pure: `observe` collects the facts.

mod answer;
pub mod budget;
pub mod facts;
mod finding;
mod json;
mod render;
mod rules;

pub use answer::{Answer, answer};
pub use finding::{Certainty, Evidence, Finding, Switch};
pub use json::{json, schema};
pub use render::{Explained, document};
pub use rules::{Branch, RULES, Rule};
