//! Call trees: instructions executed within the measured iterations of a workload, by chain of
//! calls.

use crate::Share;

/// A chain of calls, and what its last function executed itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallPath {
    /// Who executed these instructions.
    pub share: Share,
    /// Symbols, outermost first; `[user]` alone for user code.
    pub functions: Vec<String>,
    /// Instructions of the last function itself, iterations of repeated string instructions
    /// included.
    pub instructions: u64,
    /// Calls of the last function in this chain.
    pub calls: u64,
}

/// The call tree of one workload in one run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    /// Operations in all regions together.
    pub operations: u64,
    /// Chains, each once, sorted.
    pub paths: Vec<CallPath>,
}

impl CallTree {
    /// Returns the instructions of all paths.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.paths.iter().map(|path| path.instructions).sum()
    }
}
