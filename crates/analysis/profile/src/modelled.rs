//! Cost model results of two kernels, seed by seed. Seeds change memory layout and thus cache
//! misses, so a figure that depends on the seed is marked and never a finding.

use std::collections::BTreeMap;

use model::{CostEvent, CostEvents, CostModel, Modelled, ModelledLine, Share};

use crate::ledger::names;

/// Seeds that each side needs for a finding.
const SEEDS_MIN: usize = 3;
/// A relative difference up to this counts as none.
const SAME: f64 = 0.01;
/// A function is listed if its difference is at least this share of all cycles.
const LISTED: f64 = 0.001;
/// Figures below this, per operation, count as zero.
const TINY: f64 = 0.005;

/// A figure over the seeds of one side, per operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The mean over the seeds.
    pub mean: f64,
    /// The smallest of a seed.
    pub least: f64,
    /// The largest of a seed.
    pub most: f64,
}

impl Figure {
    fn new(values: &[f64]) -> Self {
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

/// The relation of two figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// The new kernel has more with every seed, by more than the spread between seeds.
    More,
    /// It has less, in the same way.
    Less,
    /// All seeds of both sides, or their means, are within one percent; or there is almost none of
    /// it.
    Same,
    /// The spread between seeds is as large as the difference.
    Unstable,
    /// There are too few seeds.
    FewSeeds,
}

impl Finding {
    /// Returns the name in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::More => "more",
            Self::Less => "less",
            Self::Same => "same",
            Self::Unstable => "unstable",
            Self::FewSeeds => "too few seeds",
        }
    }

    /// Compares the figures of both sides: they differ if the gap between them is wider than the
    /// spread of either.
    fn classify([base, new]: [Figure; 2], seeds: usize) -> Self {
        let least = base.least.min(new.least);
        let most = base.most.max(new.most);
        let gap = (new.least - base.most).max(base.least - new.most);
        let width = (base.most - base.least).max(new.most - new.least);
        match () {
            () if most < TINY => Self::Same,
            () if seeds < SEEDS_MIN => Self::FewSeeds,
            () if most - least <= SAME * most => Self::Same,
            () if gap <= width => Self::Unstable,
            () if (new.mean - base.mean).abs() <= SAME * base.mean.max(new.mean) => Self::Same,
            () if new.mean > base.mean => Self::More,
            () => Self::Less,
        }
    }
}

/// One figure on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRow {
    /// The event, or the function.
    pub name: String,
    /// The base's and the new kernel's.
    pub figures: [Figure; 2],
    /// Estimated cycles per operation that it takes, the mean over the seeds.
    pub cycles: [f64; 2],
    /// How the figures of both sides lie.
    pub finding: Finding,
}

/// The model's results for a workload on two kernels.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelDifference {
    /// The workload that both kernels executed.
    pub workload: String,
    /// The number of seeds of the side with fewer.
    pub seeds: usize,
    /// Instructions, each event, and the estimated cycles at the end; per operation, of the
    /// workload's processes.
    pub rows: Vec<ModelRow>,
    /// Functions with different estimated cycles per operation, largest difference first.
    pub functions: Vec<ModelRow>,
}

impl ModelDifference {
    /// Compares the model's results of all seeds of both sides; `None` if a side has none.
    #[must_use]
    pub fn new(workload: &str, model: &CostModel, sides: [&[Modelled]; 2]) -> Option<Self> {
        if sides
            .iter()
            .any(|side| side.is_empty() || side.iter().any(|seed| seed.operations == 0))
        {
            return None;
        }
        let seeds = sides[0].len().min(sides[1].len());
        let figures = |value: &dyn Fn(&Modelled) -> f64| {
            let per_operation = |seed: &Modelled| value(seed) / seed.operations as f64;
            sides.map(|side| Figure::new(&side.iter().map(per_operation).collect::<Vec<_>>()))
        };
        let row =
            |name: &str, value: &dyn Fn(&Modelled) -> f64, cycles: &dyn Fn(&Modelled) -> f64| {
                let cycles = figures(cycles).map(|figure| figure.mean);
                let figures = figures(value);
                ModelRow {
                    name: name.to_owned(),
                    figures,
                    cycles,
                    finding: Finding::classify(figures, seeds),
                }
            };
        let none = CostEvents::default();
        let instructions = |seed: &Modelled| own(seed).map(|line| line.instructions).sum::<u64>();
        let of_instructions = |seed: &Modelled| model.cycles(instructions(seed), &none);
        let mut rows = vec![row(
            "instructions",
            &|seed| instructions(seed) as f64,
            &of_instructions,
        )];
        for event in CostEvent::ALL {
            let count = |seed: &Modelled| events(seed)[event as usize];
            let of_event = |seed: &Modelled| {
                let mut only = none;
                only[event as usize] = count(seed);
                model.cycles(0, &only)
            };
            rows.push(row(event.title(), &|seed| count(seed) as f64, &of_event));
        }
        let all = |seed: &Modelled| model.cycles(instructions(seed), &events(seed));
        let cycles = row("estimated cycles", &all, &all);
        let least = LISTED * cycles.figures[0].mean.max(cycles.figures[1].mean);
        rows.push(cycles);
        let mut functions = functions(model, sides, seeds);
        functions.retain(|row| (row.figures[1].mean - row.figures[0].mean).abs() >= least);
        Some(Self {
            workload: workload.to_owned(),
            seeds,
            rows,
            functions,
        })
    }
}

/// Returns the events of the workload's processes, without interrupts and other tasks.
fn own(seed: &Modelled) -> impl Iterator<Item = &ModelledLine> {
    seed.lines
        .iter()
        .filter(|line| matches!(line.share, Share::Kernel | Share::User))
}

fn events(seed: &Modelled) -> CostEvents {
    let mut sum = CostEvents::default();
    for line in own(seed) {
        sum.iter_mut()
            .zip(line.events)
            .for_each(|(sum, count)| *sum += count);
    }
    sum
}

fn functions(model: &CostModel, sides: [&[Modelled]; 2], seeds: usize) -> Vec<ModelRow> {
    let mut cycles: BTreeMap<String, [Vec<f64>; 2]> = BTreeMap::new();
    let all = sides.into_iter().flatten().flat_map(own);
    let plain = names::Plain::new(all.map(|line| line.symbol.as_str()));
    for (side, modelled) in sides.into_iter().enumerate() {
        for (number, seed) in modelled.iter().enumerate() {
            for line in own(seed) {
                let entry = cycles
                    .entry(names::key(plain.displayed_name(&line.symbol)))
                    .or_default();
                entry[side].resize(number + 1, 0.0);
                entry[side][number] +=
                    model.cycles(line.instructions, &line.events) / seed.operations as f64;
            }
        }
    }
    let mut rows: Vec<ModelRow> = Vec::new();
    for (name, mut values) in cycles {
        for (values, side) in values.iter_mut().zip(sides) {
            values.resize(side.len(), 0.0);
        }
        let figures = values.map(|values| Figure::new(&values));
        rows.push(ModelRow {
            name,
            figures,
            cycles: figures.map(|figure| figure.mean),
            finding: Finding::classify(figures, seeds),
        });
    }
    rows.retain(|row| matches!(row.finding, Finding::More | Finding::Less));
    let difference = |row: &ModelRow| (row.figures[1].mean - row.figures[0].mean).abs();
    rows.sort_by(|a, b| difference(b).total_cmp(&difference(a)));
    rows
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{Finding, ModelDifference};
    use model::{CostEvent, CostModel, Modelled, ModelledLine, Share};

    /// One seed: operations, and symbol, instructions, L1I and L1D misses of each function.
    pub(crate) fn seed(operations: u64, lines: &[(&str, u64, u64, u64)]) -> Modelled {
        let lines = lines.iter().map(|&(symbol, instructions, l1i, l1d)| {
            let mut events = [0; CostEvent::ALL.len()];
            events[CostEvent::L1i as usize] = l1i;
            events[CostEvent::L1d as usize] = l1d;
            ModelledLine {
                share: Share::Kernel,
                symbol: symbol.to_owned(),
                instructions,
                events,
            }
        });
        Modelled {
            operations,
            lines: lines.collect(),
        }
    }

    fn difference(base: &[Modelled], new: &[Modelled]) -> ModelDifference {
        ModelDifference::new("pipe", &CostModel::default(), [base, new]).unwrap()
    }

    #[test]
    fn only_differences_in_every_seed_are_found() {
        let base = [(100, 60), (101, 107), (100, 90)]
            .map(|(i, d)| seed(1, &[("f", 1000, i, d), ("g", 40, 0, 0)]));
        let new = [(155, 64), (156, 100), (155, 77)]
            .map(|(i, d)| seed(1, &[("f", 1000, i, d), ("g", 80, 0, 0)]));
        let difference = difference(&base, &new);
        let told: Vec<_> = difference
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.finding.name()))
            .collect();
        assert_eq!(
            told[..3],
            [
                ("instructions", "more"),
                ("L1I misses", "more"),
                ("L1D misses", "unstable")
            ]
        );
        assert_eq!(told[3], ("L2 misses", "same"));
        assert_eq!(
            told[9],
            ("estimated cycles", "unstable"),
            "the L1D misses are in it"
        );
        // 80 / 4 - 40 / 4, exactly, in the only function with all seeds.
        let functions: Vec<_> = difference
            .functions
            .iter()
            .map(|row| (row.name.as_str(), row.figures[1].mean))
            .collect();
        assert_eq!(functions, [("g", 20.0)]);
    }

    #[test]
    fn one_seed_gives_no_finding() {
        let difference = difference(
            &[seed(2, &[("f", 1000, 100, 0)])],
            &[seed(2, &[("f", 1000, 900, 0)])],
        );
        assert!(
            difference
                .rows
                .iter()
                .all(|row| matches!(row.finding, Finding::FewSeeds | Finding::Same))
        );
        assert!(difference.functions.is_empty());
        let l1i = &difference.rows[1];
        assert_eq!(
            (l1i.figures[0].mean, l1i.figures[1].mean),
            (50.0, 450.0),
            "per operation"
        );
    }

    #[test]
    fn a_side_without_seeds_is_no_difference() {
        assert_eq!(
            ModelDifference::new("pipe", &CostModel::default(), [&[], &[seed(1, &[])]]),
            None
        );
    }
}
