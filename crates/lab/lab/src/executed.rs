//! Which functions of a kernel the workloads of stored runs execute, and how often.
//!
//! Every run of an exact machine has its profile; `profile` compares those of two kernels.

use std::collections::{BTreeMap, BTreeSet};

use model::{Profile, Run, Share};

use crate::{Lab, LabError};

/// What a workload executes of a function, per operation.
#[derive(Debug, Clone, PartialEq)]
pub struct Execution {
    pub workload: String,
    /// Executions of its first instruction.
    pub calls: f64,
    /// Its own instructions, with those inlined into it.
    pub instructions: f64,
    /// Its part of all instructions of the workload, from 0 to 1.
    pub part: f64,
}

/// The functions of a kernel that workloads execute, by name without what compilers append.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExecutedFunctions {
    by_function: BTreeMap<String, Vec<Execution>>,
}

impl ExecutedFunctions {
    /// Returns the workload that spends the largest part in a function.
    #[must_use]
    pub fn most(&self, function: &str) -> Option<&Execution> {
        let executions = self.by_function.get(function)?;
        executions
            .iter()
            .max_by(|one, other| one.part.total_cmp(&other.part))
    }

    /// Returns what one workload executes of a function.
    #[must_use]
    pub fn by(&self, function: &str, workload: &str) -> Option<&Execution> {
        let executions = self.by_function.get(function)?;
        executions
            .iter()
            .find(|execution| execution.workload == workload)
    }

    fn add(&mut self, workload: &str, profile: &Profile) {
        let operations = profile.operations.max(1) as f64;
        let all = profile.total().max(1) as f64;
        let mut sums: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for line in profile
            .lines
            .iter()
            .filter(|line| line.share != Share::User)
        {
            let sum = sums.entry(plain_name(&line.symbol)).or_default();
            sum.0 += line.calls;
            sum.1 += line.total();
        }
        for (function, (calls, instructions)) in sums {
            let executions = self.by_function.entry(function.to_owned()).or_default();
            executions.push(Execution {
                workload: workload.to_owned(),
                calls: calls as f64 / operations,
                instructions: instructions as f64 / operations,
                part: instructions as f64 / all,
            });
        }
    }
}

/// Returns a symbol without the module behind it and without what compilers append to copies:
/// `.constprop.0`, `.isra.0`, `.part.0`, `.cold`.
fn plain_name(symbol: &str) -> &str {
    let name = symbol.split(' ').next().unwrap_or(symbol);
    match name.split_once('.') {
        Some((plain, _)) if !plain.is_empty() => plain,
        _ => name,
    }
}

impl Lab {
    /// Returns the functions that the workloads of a kernel's runs execute; of several runs of a
    /// workload, those of the first with a profile.
    ///
    /// # Errors
    /// If the store fails or a profile is damaged.
    pub fn executed_functions(&self, runs: &[Run]) -> Result<ExecutedFunctions, LabError> {
        let mut found = ExecutedFunctions::default();
        let mut known = BTreeSet::new();
        for run in runs {
            for result in &run.results {
                if known.contains(&result.workload) {
                    continue;
                }
                if let Some(profile) = self.profile(&run.id, &result.workload)? {
                    found.add(&result.workload, &profile);
                    known.insert(&result.workload);
                }
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use model::{Profile, ProfileLine, Share};

    use super::{ExecutedFunctions, plain_name};

    fn line(share: Share, symbol: &str, instructions: u64, calls: u64) -> ProfileLine {
        ProfileLine {
            share,
            symbol: symbol.to_owned(),
            instructions,
            repeated: 0,
            calls,
            costly: model::CostlyCounts::default(),
        }
    }

    #[test]
    fn workload_with_the_largest_part_is_named() {
        let small = Profile {
            operations: 2,
            regions: Vec::new(),
            lines: vec![
                line(Share::Kernel, "work.isra.0", 90, 2),
                line(Share::Interrupt, "work", 10, 2),
                line(Share::User, "main", 100, 0),
            ],
        };
        let large = Profile {
            lines: vec![
                line(Share::Kernel, "work", 100, 2),
                line(Share::Kernel, "rest", 900, 2),
            ],
            ..small.clone()
        };
        let mut executed = ExecutedFunctions::default();
        executed.add("large", &large);
        executed.add("small", &small);
        let most = executed.most("work").unwrap();
        assert_eq!(most.workload, "small");
        let found = [most.calls, most.instructions, most.part];
        let expected = [2.0, 50.0, 0.5];
        assert!(
            found
                .iter()
                .zip(expected)
                .all(|(one, other)| (one - other).abs() < 1e-9)
        );
        let large = executed.by("work", "large").unwrap();
        assert!((large.part - 0.1).abs() < 1e-9);
        assert!(executed.most("main").is_none(), "user code is no kernel");
    }

    #[test]
    fn copies_of_compilers_have_one_name() {
        for symbol in [
            "walk",
            "walk.part.0",
            "walk.constprop.0.isra.0",
            "walk [ext4]",
        ] {
            assert_eq!(plain_name(symbol), "walk");
        }
        assert_eq!(plain_name(".text"), ".text");
    }
}
