//! Where the executions of two kernels part, and where they meet again: the kernel instructions of
//! one iteration of a workload, in their order.
//!
//! Instructions of both kernels are the same if they are at the same place of the same function:
//! the executed instructions of each function are aligned by their machine code (`align`). Then
//! the executions are compared call by call (`frames`, `divergences`): below the same function
//! both meet again at the latest where it returns. What is left of both sides adds up to the
//! difference, whatever the alignment.

mod align;
mod divergences;
mod frames;
mod json;
mod numbering;
mod render;
#[cfg(test)]
mod tests;

use model::{ExecutedPath, PathInstruction, Profile, Region};

use self::divergences::Compared;
use self::frames::{Follower, Nodes};
pub use self::json::{json, schema};
pub use self::render::{LineOf, Parted, document};

/// An instruction on one side or on both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point {
    /// On the baseline and on the new kernel.
    pub sides: [Option<PathInstruction>; 2],
}

/// What a side executes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// An instruction of the same function.
    Instruction(PathInstruction),
    /// The last instruction once more.
    Again,
    /// The function that was called, or jumped to.
    Call(String),
    /// The function ends.
    End,
}

/// A place where executions part.
#[derive(Debug, Clone, PartialEq)]
pub struct Divergence {
    /// The function in which they part; [`EVERYTHING`] between two entries of the kernel.
    pub function: String,
    /// The last instruction that both execute in it; `None` at its beginning.
    pub behind: Option<Point>,
    /// What each side executes then.
    pub next: [Next; 2],
    /// What each side executes when they meet again, the first time.
    pub meet: [Next; 2],
    /// How often they part here.
    pub times: u64,
    /// Instructions of each side until they meet again, all times together.
    pub instructions: [u64; 2],
    /// Functions that only one side calls until then, the first time.
    pub calls: [Vec<String>; 2],
}

/// The name of what is between two entries of the kernel.
pub const EVERYTHING: &str = "(user code)";

impl Divergence {
    /// Returns how many instructions more the new kernel executes.
    #[must_use]
    pub fn more(&self) -> i64 {
        let [base, new] = self.instructions;
        new.cast_signed() - base.cast_signed()
    }
}

/// Where the executions of a workload part in one iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct PathDifference {
    /// The workload's name.
    pub workload: String,
    /// The iteration, from 1, and how many there are.
    pub iteration: (usize, usize),
    /// Operations of an iteration.
    pub operations: u64,
    /// The seed of both runs.
    pub seed: u64,
    /// The counts of that iteration.
    pub counted: [Region; 2],
    /// The medians of the row: instructions of the kernel and of user code per operation.
    pub row: [f64; 2],
    /// IRETs of interrupts, which count as the kernel's.
    pub returns: [u64; 2],
    /// Instructions that were not followed, for their number.
    pub cut: [u64; 2],
    /// The instructions that were followed.
    pub followed: [u64; 2],
    /// Where they part, in the order in which they do so first.
    pub divergences: Vec<Divergence>,
}

/// Why paths cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miscounted {
    /// Instructions of the kernel by the path.
    pub path: u64,
    /// The same by the counts.
    pub counted: u64,
}

impl std::fmt::Display for Miscounted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the path has {} instructions of the kernel, the counts have {}: they must be the same",
            self.path, self.counted
        )
    }
}

/// What is known of the iteration that two paths are of.
#[derive(Debug, Clone)]
pub struct Iteration {
    /// The workload's name.
    pub workload: String,
    /// Its number from 0, and how many there are.
    pub number: (usize, usize),
    /// Operations of an iteration.
    pub operations: u64,
    /// The seed of both runs.
    pub seed: u64,
    /// The counts of it.
    pub counted: [Region; 2],
    /// The medians of the row.
    pub row: [f64; 2],
}

impl Iteration {
    /// Returns the iteration that is nearest to the medians of the row; `None` if the profiles of
    /// the baseline and the new kernel have other iterations.
    #[must_use]
    pub fn nearest(workload: &str, profiles: [&Profile; 2], seed: u64) -> Option<Self> {
        let [base, new] = profiles;
        let iterations = base.regions.len();
        if new.regions.len() != iterations || base.operations != new.operations {
            return None;
        }
        let operations = (base.operations / (iterations as u64).max(1)).max(1);
        let own = |region: &Region| (region.kernel + region.user) as f64;
        let median = |profile: &Profile| {
            let values: Vec<f64> = profile.regions.iter().map(own).collect();
            stats::median_without_first(&values)
        };
        let medians = [median(base)?, median(new)?];
        let distance = |number: usize| {
            let sides = profiles.iter().zip(medians);
            sides
                .map(|(profile, median)| (own(&profile.regions[number]) - median).abs())
                .sum::<f64>()
        };
        // The first one is not in the row.
        let first = usize::from(iterations > 1);
        let number =
            (first..iterations).min_by(|one, other| distance(*one).total_cmp(&distance(*other)))?;
        Some(Self {
            workload: workload.to_owned(),
            number: (number, iterations),
            operations,
            seed,
            counted: profiles.map(|profile| profile.regions[number]),
            row: medians.map(|median| median / operations as f64),
        })
    }
}

impl PathDifference {
    /// Compares the paths of a baseline and a new kernel.
    ///
    /// # Errors
    /// If a path is not what was counted.
    pub fn new(iteration: Iteration, paths: [&ExecutedPath; 2]) -> Result<Self, Miscounted> {
        let numbering = numbering::Numbering::new(paths);
        let mut nodes = Nodes::default();
        let roots = [0, 1].map(|side| {
            let numbers = &numbering.sides[side];
            Follower::new(paths[side], numbers, &mut nodes).follow(numbering.everything)
        });
        let followed = roots.map(|root| nodes.get(root).total);
        for (side, path) in paths.iter().enumerate() {
            let of_path = followed[side] + path.returns;
            let counted = iteration.counted[side].kernel;
            // Of a path that is cut it is not known whose the rest is.
            if of_path != counted && (path.cut == 0 || of_path > counted) {
                return Err(Miscounted {
                    path: of_path,
                    counted,
                });
            }
        }
        let divergences = Compared::new(&nodes).compare(roots, &numbering, paths);
        let Iteration {
            workload,
            number: (number, iterations),
            operations,
            seed,
            counted,
            row,
        } = iteration;
        Ok(Self {
            workload,
            iteration: (number + 1, iterations),
            operations,
            seed,
            counted,
            row,
            returns: paths.map(|path| path.returns),
            cut: [0, 1].map(|side| counted[side].kernel - followed[side] - paths[side].returns),
            followed,
            divergences,
        })
    }

    /// Returns the instructions more of each part of the iteration, with its name. They add up to
    /// the iteration's difference.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, [u64; 2])> {
        let of = |part: fn(&Region) -> u64| self.counted.each_ref().map(part);
        let interrupts = of(|region| region.interrupt);
        let mut parts = vec![("kernel, followed", self.followed)];
        if self.cut != [0; 2] {
            parts.push(("kernel, not followed", self.cut));
        }
        parts.extend([
            ("user code", of(|region| region.user)),
            (
                "interrupts",
                [0, 1].map(|side| interrupts[side] + self.returns[side]),
            ),
            ("other tasks", of(|region| region.other)),
        ]);
        parts
    }
}
