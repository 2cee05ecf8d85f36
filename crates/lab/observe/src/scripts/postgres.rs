//! The statement that a session of PostgreSQL executes, without its values.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::statement::without_values;
use crate::memory;
use crate::proc::Mapping;
use crate::rounds::Process;
use crate::symbols::Modules;

/// The symbol that points to the statement's text, or to nothing (src/backend/tcop/postgres.c).
const STATEMENT: &str = "debug_query_string";
/// What is read of a statement (bytes).
const READ_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct Interpreter {
    /// Where the pointer to the statement is.
    statement: u64,
}

/// Finds the statement's pointer in a mapped file.
pub(super) fn find(
    _: u32,
    _: &Process,
    mapping: &Mapping,
    modules: &mut Modules,
) -> Option<super::Interpreter> {
    let statement = modules.address_of(mapping, STATEMENT)?;
    Some(super::Interpreter::Postgres(Interpreter { statement }))
}

impl Interpreter {
    /// Returns the statement that is executed; `None` between statements, and of other processes.
    pub(super) fn read(&self, memory: &File) -> Option<String> {
        let at = memory::word(memory, self.statement).filter(|at| *at != 0)?;
        let mut bytes = vec![0; READ_MAX];
        let size = memory.read_at(&mut bytes, at).ok()?;
        let end = bytes[..size].iter().position(|byte| *byte == 0);
        let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(size)]);
        let shown = without_values(&text);
        (!shown.is_empty()).then_some(shown)
    }
}
