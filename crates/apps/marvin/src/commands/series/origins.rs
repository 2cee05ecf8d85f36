//! Where the differences of a commit come from: what it changed, what does more with the same code,
//! and what the compiler made other code of. `kernel` compares sources, `lab` machine code,
//! `profile` adds up.

use std::collections::{BTreeMap, BTreeSet};

use compare::{Comparison, ComparisonRow};
use history::commit_table::{CommitCell, RowOrigin, SameCode};
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

/// What two kernels say of each other's rows.
#[derive(Debug, Default)]
pub(super) struct Attributed {
    /// The cells, with what was only compiled differently told apart.
    pub(super) cells: Vec<CommitCell>,
    /// Where the differences come from, the largest first.
    pub(super) origins: Vec<RowOrigin>,
    pub(super) same_code: SameCode,
    /// The executed functions whose source differs.
    pub(super) changed: BTreeSet<String>,
    /// Whether no row executes a function whose source or code differs, as far as that is known of
    /// all.
    pub(super) executes_the_same: bool,
}

/// A row with its ledger.
struct Row<'a> {
    number: usize,
    of: &'a ComparisonRow,
    ledger: Ledger,
}

impl Pair<'_> {
    /// Attributes the differences of a comparison.
    pub(super) fn attribute(
        &self,
        lab: &Lab,
        comparison: &Comparison,
        cells: Vec<CommitCell>,
    ) -> anyhow::Result<Attributed> {
        let mut rows = Vec::new();
        for (number, of) in comparison.rows.iter().enumerate() {
            let name = &*of.workload.name;
            let [base, new] = [self.profiles(lab, 0, name)?, self.profiles(lab, 1, name)?];
            if let Some(ledger) = Ledger::new(name, &base, &new) {
                rows.push(Row { number, of, ledger });
            }
        }
        let functions: BTreeSet<&str> = rows
            .iter()
            .flat_map(|row| &row.ledger.lines)
            .filter(|line| line.share != Share::User)
            .map(|line| line.function.as_str())
            .collect();
        let changes = self.function_changes(lab, &functions);
        let is_changed =
            |(_, (source, _)): &(&String, &FunctionChange)| *source == SourceChange::Changed;
        let changed = changes.iter().filter(is_changed);
        let mut attributed = Attributed {
            changed: changed.map(|(function, _)| function.clone()).collect(),
            cells,
            ..Attributed::default()
        };
        let mut origins = Vec::new();
        for row in &rows {
            let cell = &mut attributed.cells[row.number];
            if row.executes_the_same_code(&changes) {
                let same_code = &mut attributed.same_code;
                same_code.workloads += 1;
                let percent = row.difference_percent();
                same_code
                    .rows
                    .push((row.of.workload.name.to_string(), percent));
                if row.differs() {
                    same_code.differing += 1;
                    same_code.largest_percent = same_code.largest_percent.max(row.percent());
                }
            }
            let (CommitCell::Better(percent) | CommitCell::Worse(percent)) = *cell else {
                continue;
            };
            let origin = row.ledger.origin(&changes);
            if origin.is_only_compiled_differently(row.of.margin_percent) {
                *cell = CommitCell::CompiledDifferently(percent);
            }
            let origin = RowOrigin {
                workload: row.ledger.workload.clone(),
                changed: origin.source,
                others: origin.work,
                compiler: origin.compiler,
                unknown: origin.unknown,
                compiled: origin.functions,
            };
            origins.push((percent, origin));
        }
        let is_unchanged = |(source, _): &FunctionChange| *source == SourceChange::Unchanged;
        attributed.executes_the_same = !rows.is_empty()
            && attributed.same_code.workloads == comparison.rows.len()
            && changes.values().all(is_unchanged);
        origins.sort_by(|(one, _), (other, _)| other.abs().total_cmp(&one.abs()));
        attributed.origins = origins.into_iter().map(|(_, origin)| origin).collect();
        Ok(attributed)
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

impl Row<'_> {
    /// Returns whether no instruction that it executes differs between the kernels.
    fn executes_the_same_code(&self, changes: &BTreeMap<String, FunctionChange>) -> bool {
        let mut lines = self.ledger.lines.iter();
        lines.all(|line| {
            let change = changes.get(&line.function);
            line.share == Share::User || change.is_some_and(|(_, code)| *code == CodeChange::Same)
        })
    }

    /// Returns the difference in percent, without its sign.
    fn percent(&self) -> f64 {
        self.difference_percent().unwrap_or(0.0).abs()
    }

    fn difference_percent(&self) -> Option<f64> {
        self.of.cells.first()?.compared.difference_percent
    }

    /// Returns whether a value of a seed differs.
    fn differs(&self) -> bool {
        let new = self.of.cells.iter().flat_map(|cell| &cell.measured.seeds);
        let mut pairs = self.of.base.seeds.iter().zip(new);
        pairs.any(|pair| match (&pair.0.value, &pair.1.value) {
            (Ok(one), Ok(other)) => one.value.total_cmp(&other.value).is_ne(),
            _ => true,
        })
    }
}
