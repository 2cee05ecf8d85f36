//! How near workloads come to changed functions that none of them enters, and which workloads enter
//! what is changed: these are measured first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use history::commit_table::Reached;
use kernel::FunctionChanges;
use lab::{Callers, ExecutedFunctions, Lab, LabError};
use model::{Build, Run, Workload};

use super::input::Entry;

/// The callers of functions in a kernel.
#[derive(Debug)]
pub(super) struct Near<'a> {
    callers: BTreeMap<String, Callers>,
    executed: &'a ExecutedFunctions,
}

impl<'a> Near<'a> {
    /// Looks for the callers of functions that no workload enters.
    pub(super) fn new(
        lab: &Lab,
        build: &Build,
        never: &BTreeSet<String>,
        executed: &'a ExecutedFunctions,
    ) -> Self {
        let callers = if never.is_empty() {
            BTreeMap::new()
        } else {
            lab.callers(build, never)
        };
        Self { callers, executed }
    }

    /// Says how near workloads come to a function: of those of one name, or that it is inlined
    /// into, to the nearest.
    pub(super) fn reached(&self, functions: &[String]) -> Reached {
        let known = functions.iter().filter_map(|name| self.callers.get(name));
        let known: Vec<&Callers> = known.collect();
        for level in 0..2 {
            let callers = known.iter().flat_map(|callers| &callers.levels[level]);
            let entered = callers.filter_map(|name| Some((self.executed.most(name)?, name)));
            let most = entered.max_by(|(one, _), (other, _)| one.part.total_cmp(&other.part));
            if let Some((most, caller)) = most {
                return Reached::Caller {
                    caller: caller.clone(),
                    over: (level > 0).then(|| self.between(&known)).flatten(),
                    workload: most.workload.clone(),
                };
            }
        }
        if known.iter().any(|callers| callers.is_system_call) {
            return Reached::SystemCall;
        }
        if known.iter().any(|callers| !callers.levels[0].is_empty()) {
            return Reached::NoCaller;
        }
        let mut pointers = known.iter().flat_map(|callers| &callers.pointers);
        match pointers.next() {
            Some(data) => Reached::Pointer(data.clone()),
            None => Reached::Unknown,
        }
    }

    /// Names the function between, if there is only one.
    fn between(&self, known: &[&Callers]) -> Option<String> {
        let mut direct = known.iter().flat_map(|callers| &callers.levels[0]);
        let only = direct.next()?;
        direct.next().is_none().then(|| only.clone())
    }
}

/// Returns the functions that a series changes, with those that they are inlined into.
pub(super) fn changed_functions(
    entries: &[Entry],
    changes: &[FunctionChanges],
) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = BTreeSet::new();
    // The base is a row and no entry.
    for (entry, changes) in entries.iter().zip(changes.iter().skip(1)) {
        for function in &entry.functions {
            names.extend(changes.hosts(function));
            names.insert(function.clone());
        }
    }
    names
}

/// Puts the workloads that enter what the series changes first, by what they execute of a kernel
/// before it.
pub(super) fn in_order(
    lab: &Lab,
    base: &[Run],
    functions: &BTreeSet<String>,
    workloads: &[Arc<Workload>],
) -> Result<Vec<Arc<Workload>>, LabError> {
    let executed = lab.executed_functions(base)?;
    let is_entering = |workload: &Arc<Workload>| {
        let mut named = functions.iter();
        named.any(|function| executed.by(function, &workload.name).is_some())
    };
    let (mut first, last): (Vec<_>, Vec<_>) = workloads.iter().cloned().partition(is_entering);
    first.extend(last);
    Ok(first)
}
