//! Where the differences of a commit come from: what it changed, what does more with the same code,
//! and what the compiler made other code of. `kernel` compares sources, `lab` machine code,
//! `profile` adds up.

use std::collections::{BTreeMap, BTreeSet};

use compare::Comparison;
use history::commit_table::{CommitCell, RowOrigin};
use kernel::FunctionChanges;
use lab::Lab;
use model::{Build, Profile, Run, Share};
use profile::ledger::{CodeChange, FunctionChange, Ledger, SourceChange};

/// Two kernels with their runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) builds: [&'a Build; 2],
    pub(super) runs: [&'a [Run]; 2],
    pub(super) changes: &'a FunctionChanges,
}

impl Pair<'_> {
    /// Returns the cells of a comparison, with what was only compiled differently told apart, and
    /// where the differences come from, the largest first.
    pub(super) fn attribute(
        &self,
        lab: &Lab,
        comparison: &Comparison,
        mut cells: Vec<CommitCell>,
    ) -> anyhow::Result<(Vec<CommitCell>, Vec<RowOrigin>)> {
        let mut ledgers = Vec::new();
        for (number, (row, cell)) in comparison.rows.iter().zip(&cells).enumerate() {
            let (CommitCell::Better(percent) | CommitCell::Worse(percent)) = cell else {
                continue;
            };
            let name = &*row.workload.name;
            let [base, new] = [self.profiles(lab, 0, name)?, self.profiles(lab, 1, name)?];
            if let Some(ledger) = Ledger::new(name, &base, &new) {
                ledgers.push((number, *percent, row.margin_percent, ledger));
            }
        }
        let functions: BTreeSet<&str> = ledgers
            .iter()
            .flat_map(|(.., ledger)| &ledger.lines)
            .filter(|line| line.share == Share::Kernel)
            .map(|line| line.function.as_str())
            .collect();
        let changes = self.function_changes(lab, &functions);
        ledgers.sort_by(|(_, one, ..), (_, other, ..)| other.abs().total_cmp(&one.abs()));
        let mut origins = Vec::new();
        for (number, percent, margin_percent, ledger) in ledgers {
            let origin = ledger.origin(&changes);
            if origin.is_only_compiled_differently(margin_percent) {
                cells[number] = CommitCell::CompiledDifferently(percent);
            }
            origins.push(RowOrigin {
                workload: ledger.workload,
                changed: origin.source,
                others: origin.work,
                compiler: origin.compiler,
                unknown: origin.unknown,
                compiled: origin.functions,
            });
        }
        Ok((cells, origins))
    }

    /// Returns the profiles of a workload in the runs of a side.
    fn profiles(&self, lab: &Lab, side: usize, workload: &str) -> anyhow::Result<Vec<Profile>> {
        let mut found = Vec::new();
        for run in self.runs[side] {
            found.extend(lab.profile(&run.id, workload)?);
        }
        Ok(found)
    }

    fn function_changes(
        &self,
        lab: &Lab,
        functions: &BTreeSet<&str>,
    ) -> BTreeMap<String, FunctionChange> {
        let [before, after] = self.builds;
        let code = lab.code_changes(before, after, functions);
        functions
            .iter()
            .map(|function| {
                let source = match self.differs(function) {
                    Some(true) => SourceChange::Changed,
                    Some(false) => SourceChange::Unchanged,
                    None => SourceChange::Unknown,
                };
                let code = code.get(*function).copied().unwrap_or(CodeChange::Unknown);
                ((*function).to_owned(), (source, code))
            })
            .collect()
    }

    /// Returns whether the source of a function differs. A ledger's name may have a module or a file
    /// behind it, and lacks what Linux 6.10 appended to functions that allocate
    /// (include/linux/alloc_tag.h).
    fn differs(&self, function: &str) -> Option<bool> {
        let plain = function.split(' ').next().unwrap_or(function);
        let renamed = self.changes.differs(&format!("{plain}_noprof"));
        match self.changes.differs(plain) {
            Some(false) => renamed,
            known => known,
        }
    }
}
