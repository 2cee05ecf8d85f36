//! The executed instructions of functions within the measured iterations of a workload.

use std::collections::BTreeMap;

/// The executions of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Executions {
    /// How often; of a repeated string instruction its iterations.
    pub times: u64,
    /// Whether it is a repeated string instruction.
    pub is_repeated: bool,
}

/// The executed instructions of the functions whose symbol is the only one of its name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offsets {
    /// Operations in all regions together.
    pub operations: u64,
    /// By symbol, and by bytes from it.
    pub functions: BTreeMap<String, BTreeMap<u64, Executions>>,
}
