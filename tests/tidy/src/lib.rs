//! Rules for the source tree beyond the compiler's: layers, sizes, forbidden code and words.
//!
//! Each check takes text and returns its findings, so that its own tests can show it a bad example.
//! The tests in `tests/` run the checks on the tree: `cargo test -p tidy`. rustfmt, rustdoc and
//! clippy check format, documents and the length of functions.

mod agent;
mod commands;
mod documents;
mod domain;
mod figures;
mod finding;
mod kinds;
mod layers;
mod manifest;
mod names;
mod paths;
mod prose;
mod sizes;
mod source;
mod tokens;
mod tree;

pub use agent::{interpreter, leaks, unlike};
pub use commands::command_uses;
pub use documents::{dead_paths, dead_tests};
pub use domain::domain_words;
pub use figures::{Figure, figures, wide_lines};
pub use finding::{Finding, Rule, none};
pub use kinds::machine_kinds;
pub use layers::{arrows, layers, layers_table};
pub use manifest::{packages, reasons};
pub use names::drawers;
pub use paths::machine_paths;
pub use prose::{dialect, test_names};
pub use sizes::{header, lines, traits};
pub use source::test_modules;
pub use tokens::{clock_and_chance, leaked, leftovers, locks, loose_serde, unsafe_code};
pub use tree::{File, Tree, root};
