//! Where the difference of a row comes from: functions whose source was changed, other functions
//! that do more or less, or functions that the compiler made other code of although their source,
//! with what is inlined into them, is the same.
//!
//! Pure: what happened to source and code is found out by the caller.

use std::collections::BTreeMap;

use model::Share;

use super::{Count, Ledger, LedgerLine};

/// What happened to the source of a function, with what is inlined into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceChange {
    /// It differs.
    Changed,
    /// It is the same, after preprocessing.
    Unchanged,
    /// That is not known.
    Unknown,
}

/// What happened to the machine code of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeChange {
    /// It is the same but for addresses.
    Same,
    /// It differs, or only one kernel has a function of that name.
    Differs,
    /// That is not known.
    Unknown,
}

/// What happened to a function.
pub type FunctionChange = (SourceChange, CodeChange);

/// Additional instructions per operation of a row, by where they come from. They add up to the
/// ledger's difference in kernel and user code.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    /// In functions whose source is changed.
    pub source: f64,
    /// In functions whose code is the same, or that are called more or less often.
    pub work: f64,
    /// In functions whose source is the same and whose code is not.
    pub compiler: f64,
    /// In functions of which that is not known.
    pub unknown: f64,
    /// The functions of `compiler` with its parts, the largest first.
    pub functions: Vec<(String, f64)>,
    /// Instructions per operation of the base.
    pub base: f64,
}

impl Origin {
    /// Returns the sum.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.source + self.work + self.compiler + self.unknown
    }

    /// Returns whether the row differs only as the compiler made other code of the same source:
    /// without that it would be within a margin, in percent.
    #[must_use]
    pub fn is_only_compiled_differently(&self, margin_percent: f64) -> bool {
        let rest = self.total() - self.compiler;
        let limit = self.base * margin_percent / 100.0;
        self.unknown == 0.0 && self.compiler.abs() > limit && rest.abs() <= limit
    }
}

impl Ledger {
    /// Divides the difference by what happened to the functions, by their names in the ledger. A
    /// function that is not among them counts as unknown.
    #[must_use]
    pub fn origin(&self, changes: &BTreeMap<String, FunctionChange>) -> Origin {
        let mut origin = Origin::default();
        let own = |line: &&LedgerLine| matches!(line.share, Share::Kernel | Share::User);
        for line in self.lines.iter().filter(own) {
            origin.base += self.per_operation(0, line.base.instructions);
            let added = self.line_added(line);
            let change = if line.share == Share::User {
                (SourceChange::Unchanged, CodeChange::Same)
            } else {
                let unknown = (SourceChange::Unknown, CodeChange::Unknown);
                changes.get(&line.function).copied().unwrap_or(unknown)
            };
            match change {
                (_, CodeChange::Same) => origin.work += added,
                (SourceChange::Changed, _) => origin.source += added,
                (SourceChange::Unchanged, CodeChange::Differs) => {
                    let work = self.added_by_calls(line);
                    origin.work += work;
                    origin.compiler += added - work;
                    if (added - work).abs() >= 0.005 {
                        origin.functions.push((line.function.clone(), added - work));
                    }
                }
                _ => origin.unknown += added,
            }
        }
        origin
            .functions
            .sort_by(|(_, one), (_, other)| other.abs().total_cmp(&one.abs()));
        origin
    }

    /// Returns what more calls add, each with as many instructions as on the base; nothing if one
    /// side does not execute the function.
    fn added_by_calls(&self, line: &LedgerLine) -> f64 {
        let Count {
            instructions,
            calls,
            ..
        } = line.base;
        if calls == 0 || line.new.calls == 0 {
            return 0.0;
        }
        let more = self.per_operation(1, line.new.calls) - self.per_operation(0, calls);
        more * instructions as f64 / calls as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{Profile, ProfileLine, Region, Share};

    use super::{CodeChange, FunctionChange, SourceChange};
    use crate::ledger::Ledger;

    fn profile(functions: &[(&str, u64, u64)]) -> Profile {
        let line = |(symbol, instructions, calls): &(&str, u64, u64)| ProfileLine {
            share: Share::Kernel,
            symbol: (*symbol).to_owned(),
            instructions: *instructions,
            repeated: 0,
            calls: *calls,
            costly: model::CostlyCounts::default(),
        };
        let lines: Vec<ProfileLine> = functions.iter().map(line).collect();
        Profile {
            operations: 10,
            regions: vec![Region {
                kernel: lines.iter().map(|line| line.instructions).sum(),
                ..Region::default()
            }],
            lines,
        }
    }

    fn changes(of: &[(&str, FunctionChange)]) -> BTreeMap<String, FunctionChange> {
        of.iter()
            .map(|(name, change)| ((*name).to_owned(), *change))
            .collect()
    }

    #[test]
    fn other_code_of_one_source_is_told_apart() {
        let base = profile(&[("fork", 10_000, 10), ("copy", 5_000, 10)]);
        let new = profile(&[("fork", 10_300, 10), ("copy", 5_000, 10)]);
        let ledger = Ledger::new("fork", &[base], &[new]).unwrap();
        let same = (SourceChange::Unchanged, CodeChange::Same);
        let other = (SourceChange::Unchanged, CodeChange::Differs);
        let compiled = ledger.origin(&changes(&[("fork", other), ("copy", same)]));
        assert!((compiled.compiler - 30.0).abs() < 1e-9 && compiled.work.abs() < 1e-9);
        assert!(compiled.is_only_compiled_differently(1.0));
        assert!(
            !compiled.is_only_compiled_differently(5.0),
            "it is the same"
        );
        let changed = (SourceChange::Changed, CodeChange::Differs);
        let own = ledger.origin(&changes(&[("fork", changed), ("copy", same)]));
        assert!(!own.is_only_compiled_differently(1.0));
        let unknown = ledger.origin(&changes(&[]));
        assert!((unknown.unknown - 30.0).abs() < 1e-9);
        assert!(!unknown.is_only_compiled_differently(1.0));
    }

    #[test]
    fn more_calls_of_other_code_are_work() {
        let base = profile(&[("fork", 10_000, 10)]);
        let new = profile(&[("fork", 20_400, 20)]);
        let ledger = Ledger::new("fork", &[base], &[new]).unwrap();
        let other = (SourceChange::Unchanged, CodeChange::Differs);
        let origin = ledger.origin(&changes(&[("fork", other)]));
        assert!((origin.work - 1000.0).abs() < 1e-9);
        assert!((origin.compiler - 40.0).abs() < 1e-9);
        assert!(!origin.is_only_compiled_differently(1.0));
        assert!((origin.total() - 1040.0).abs() < 1e-9);
    }
}
