//! Numbers that the instructions and functions of two kernels share.

use std::collections::BTreeMap;

use model::{ExecutedPath, PathInstruction};

use super::align::align;
use super::frames::Numbers;
use super::{EVERYTHING, Point};
use crate::ledger::names;

/// The numbers of both sides.
#[derive(Debug)]
pub(super) struct Numbering {
    pub(super) sides: [Numbers; 2],
    /// By number: the instruction on each side, by its number in the path.
    instructions: Vec<[Option<u32>; 2]>,
    functions: Vec<String>,
    /// The function of what is between entries of the kernel.
    pub(super) everything: u32,
}

/// What an instruction is, wherever it lies.
type Shape<'a> = (&'a [u8], Option<String>);

impl Numbering {
    /// Numbers the instructions that are executed.
    pub(super) fn new(paths: [&ExecutedPath; 2]) -> Self {
        let mut functions: BTreeMap<String, [Vec<u32>; 2]> = BTreeMap::new();
        for (side, path) in paths.into_iter().enumerate() {
            for number in executed(path) {
                let key = names::key(&path.instructions[number as usize].symbol);
                functions.entry(key).or_default()[side].push(number);
            }
        }
        let mut numbering = Self {
            sides: paths.map(|path| Numbers {
                instructions: vec![0; path.instructions.len()],
                functions: vec![0; path.instructions.len()],
            }),
            instructions: Vec::new(),
            functions: vec![EVERYTHING.to_owned()],
            everything: 0,
        };
        for (name, mut of_sides) in functions {
            for (path, numbers) in paths.into_iter().zip(&mut of_sides) {
                // Parts of a function lie apart, in another order on each side.
                numbers.sort_by_key(|number| {
                    let instruction = &path.instructions[*number as usize];
                    (instruction.symbol.contains(".cold"), instruction.address)
                });
            }
            numbering.number_function(name, &of_sides, paths);
        }
        numbering
    }

    fn number_function(
        &mut self,
        name: String,
        of_sides: &[Vec<u32>; 2],
        paths: [&ExecutedPath; 2],
    ) {
        let function = u32::try_from(self.functions.len()).unwrap_or(u32::MAX);
        self.functions.push(name);
        let shapes = [0, 1].map(|side| {
            let of_path = &paths[side].instructions;
            of_sides[side]
                .iter()
                .map(|number| shape(&of_path[*number as usize]))
                .collect::<Vec<Shape<'_>>>()
        });
        let mut partners = [0, 1].map(|side| vec![None; of_sides[side].len()]);
        for (base, new) in align(&shapes[0], &shapes[1]) {
            partners[0][base] = Some(of_sides[1][new]);
            partners[1][new] = Some(of_sides[0][base]);
        }
        for (base, partner) in of_sides[0].iter().zip(&partners[0]) {
            self.add(function, [Some(*base), *partner]);
        }
        for (new, partner) in of_sides[1].iter().zip(&partners[1]) {
            if partner.is_none() {
                self.add(function, [None, Some(*new)]);
            }
        }
    }

    fn add(&mut self, function: u32, instruction: [Option<u32>; 2]) {
        let number = u32::try_from(self.instructions.len()).unwrap_or(u32::MAX);
        self.instructions.push(instruction);
        for (numbers, in_path) in self.sides.iter_mut().zip(instruction) {
            if let Some(in_path) = in_path {
                numbers.instructions[in_path as usize] = number;
                numbers.functions[in_path as usize] = function;
            }
        }
    }

    /// Returns the name of a function.
    pub(super) fn function(&self, number: u32) -> &str {
        &self.functions[number as usize]
    }

    /// Returns the instruction of this number on both sides.
    pub(super) fn point(&self, number: u32, paths: [&ExecutedPath; 2]) -> Point {
        let in_paths = self.instructions[number as usize];
        let side = |side: usize| {
            let in_path = in_paths[side]?;
            Some(paths[side].instructions[in_path as usize].clone())
        };
        Point {
            sides: [side(0), side(1)],
        }
    }
}

/// Returns the numbers of the instructions that blocks have.
fn executed(path: &ExecutedPath) -> Vec<u32> {
    let mut numbers: Vec<u32> = path.blocks.iter().flatten().copied().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn shape(instruction: &PathInstruction) -> Shape<'_> {
    (
        &instruction.shape,
        instruction.target.as_deref().map(names::key),
    )
}
