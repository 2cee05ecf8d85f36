//! Costly instructions of a row by kind, and the function that changed each most. What they cost is
//! `model::PROCESSORS`'s.

use std::collections::BTreeMap;

use model::{Costly, Profile, Share};

use super::names;

/// Smaller differences per operation are none.
const LEAST: f64 = 0.005;

/// One kind of costly instruction on both sides, in kernel and user code of the row.
#[derive(Debug, Clone, PartialEq)]
pub struct CostlyLine {
    /// The kind of instruction.
    pub kind: Costly,
    /// Executions per operation on the base and on the new kernel.
    pub counts: [f64; 2],
    /// The function whose executions differ most, and by how many per operation.
    pub function: (String, f64),
}

impl CostlyLine {
    /// Returns it as a sentence: `locked instructions 10.46 -> 13.27, most in dup_mm +2.00`.
    #[must_use]
    pub fn sentence(&self) -> String {
        let [base, new] = self.counts;
        let (function, added) = &self.function;
        let title = self.kind.title();
        format!("{title} {base:.2} -> {new:.2}, most in {function} {added:+.2}")
    }
}

/// Returns the kinds that differ between the profiles of all seeds of both sides, which have so
/// many operations, the largest difference first.
pub(super) fn compare(sides: [&[Profile]; 2], operations: [u64; 2]) -> Vec<CostlyLine> {
    let mut functions: BTreeMap<(usize, String), [f64; 2]> = BTreeMap::new();
    for (side, profiles) in sides.into_iter().enumerate() {
        let lines = profiles.iter().flat_map(|profile| &profile.lines);
        for line in lines.filter(|line| matches!(line.share, Share::Kernel | Share::User)) {
            for (kind, count) in line
                .costly
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
            {
                let key = (kind, names::key(&line.symbol));
                functions.entry(key).or_default()[side] += *count as f64 / operations[side] as f64;
            }
        }
    }
    let mut lines = Vec::new();
    for (number, kind) in Costly::ALL.into_iter().enumerate() {
        let of_kind = functions.iter().filter(|((of, _), _)| *of == number);
        let mut counts = [0.0; 2];
        let mut most = (String::new(), 0.0_f64);
        for ((_, function), [base, new]) in of_kind {
            counts[0] += base;
            counts[1] += new;
            if (new - base).abs() > most.1.abs() {
                most = (function.clone(), new - base);
            }
        }
        if (counts[1] - counts[0]).abs() >= LEAST {
            lines.push(CostlyLine {
                kind,
                counts,
                function: most,
            });
        }
    }
    lines.sort_by(|a, b| added(b).abs().total_cmp(&added(a).abs()));
    lines
}

fn added(line: &CostlyLine) -> f64 {
    line.counts[1] - line.counts[0]
}

#[cfg(test)]
mod tests {
    use model::{Costly, CostlyCounts, Profile, ProfileLine, Share};

    use super::compare;

    fn profile(lines: &[(Share, &str, u64)]) -> Profile {
        let lines = lines.iter().map(|(share, symbol, locked)| {
            let mut costly = CostlyCounts::default();
            costly[Costly::Locked as usize] = *locked;
            ProfileLine {
                share: *share,
                symbol: (*symbol).to_owned(),
                instructions: 100,
                repeated: 0,
                calls: 1,
                costly,
            }
        });
        Profile {
            operations: 10,
            regions: Vec::new(),
            lines: lines.collect(),
        }
    }

    #[test]
    fn kind_names_the_function_that_changed_most() {
        use Share::{Interrupt, Kernel};
        let base = profile(&[(Kernel, "dup_mm", 10), (Kernel, "fput", 30)]);
        let new = profile(&[
            (Kernel, "dup_mm.isra.0", 30),
            (Kernel, "fput", 25),
            (Interrupt, "tick", 99),
        ]);
        let lines = compare([&[base], &[new]], [10, 10]);
        let sentences: Vec<String> = lines.iter().map(|line| line.sentence()).collect();
        assert_eq!(
            sentences,
            ["locked instructions 4.00 -> 5.50, most in dup_mm +2.00"]
        );
    }

    #[test]
    fn equal_counts_have_no_line() {
        let one = profile(&[(Share::Kernel, "fput", 30)]);
        assert!(compare([std::slice::from_ref(&one); 2], [10, 10]).is_empty());
    }
}
