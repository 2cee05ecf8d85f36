//! Rules of the tree that no compiler knows: who may use whom, how long a file may be, which words may stand where.
//!
//! Each check takes text and returns what it found in it, so that its own tests can show it a bad example. What is
//! checked against them is read in `tests/`: `cargo test -p tidy`. Formatting, documents and the length of functions
//! are rustfmt's, rustdoc's and clippy's work.

mod agent;
mod domain;
mod finding;
mod kinds;
mod layers;
mod manifest;
mod names;
mod paths;
mod sizes;
mod source;
mod tokens;
mod tree;

pub use agent::{interpreter, leaks, unlike};
pub use domain::domain_words;
pub use finding::{Finding, Rule, none};
pub use kinds::machine_kinds;
pub use layers::layers;
pub use manifest::{packages, reasons};
pub use names::drawers;
pub use paths::machine_paths;
pub use sizes::{crates, header, lines, traits};
pub use source::test_modules;
pub use tokens::{clock_and_chance, leaked, leftovers, locks, loose_serde, unsafe_code};
pub use tree::{File, Tree, root};
