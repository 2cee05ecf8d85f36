//! Compares executions call by call, and lists where they part.

use std::collections::HashMap;
use std::rc::Rc;

use model::ExecutedPath;

use super::align::align_by;
use super::frames::{Item, Node, Nodes};
use super::numbering::Numbering;
use super::{Divergence, Next};

/// Equal steps in a row after which executions have met again: fewer are equal by chance.
const MEET: usize = 4;
/// Functions that are named of those that one side calls.
const CALLS_MAX: usize = 4;

/// What both sides can have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Own(u32),
    Again(u32),
    /// By the function.
    Call(u32),
}

/// Where executions part, by numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    function: u32,
    behind: Option<u32>,
    next: [Option<Key>; 2],
}

/// What was found at a place.
#[derive(Debug, Clone)]
struct Found {
    place: Place,
    meet: Option<Key>,
    calls: [Vec<u32>; 2],
    times: u64,
    instructions: [u64; 2],
}

/// How often executions part at a place of this index, and what each side executes then.
type Parts = Rc<Vec<(usize, u64, [u64; 2])>>;

/// The comparison.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    nodes: &'a Nodes,
    found: Vec<Found>,
    indices: HashMap<Place, usize>,
    /// Pairs of executions that were compared already.
    known: HashMap<(u32, u32), Parts>,
}

/// Elements of both sides between two places where they are the same.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from: [usize; 2],
    to: [usize; 2],
}

impl<'a> Compared<'a> {
    pub(super) fn new(nodes: &'a Nodes) -> Self {
        Self {
            nodes,
            found: Vec::new(),
            indices: HashMap::new(),
            known: HashMap::new(),
        }
    }

    /// Compares two executions, and returns the places in the order in which they come first.
    pub(super) fn compare(
        mut self,
        [base, new]: [u32; 2],
        numbering: &Numbering,
        paths: [&ExecutedPath; 2],
    ) -> Vec<Divergence> {
        let parts = self.parts(base, new);
        for (index, times, instructions) in parts.iter() {
            let found = &mut self.found[*index];
            found.times = *times;
            found.instructions = *instructions;
        }
        let name = |key: Option<Key>, side: usize| match key {
            None => Next::End,
            Some(Key::Again(_)) => Next::Again,
            Some(Key::Call(function)) => Next::Call(numbering.function(function).to_owned()),
            Some(Key::Own(number)) => {
                let point = numbering.point(number, paths);
                point.sides[side]
                    .clone()
                    .map_or(Next::End, Next::Instruction)
            }
        };
        let divergence = |found: &Found| Divergence {
            function: numbering.function(found.place.function).to_owned(),
            behind: found
                .place
                .behind
                .map(|number| numbering.point(number, paths)),
            next: [0, 1].map(|side| name(found.place.next[side], side)),
            meet: [0, 1].map(|side| name(found.meet, side)),
            times: found.times,
            instructions: found.instructions,
            calls: found.calls.each_ref().map(|calls| {
                let names = calls.iter().map(|call| numbering.function(*call));
                names.map(str::to_owned).collect()
            }),
        };
        let in_order = parts.iter().map(|(index, ..)| &self.found[*index]);
        in_order.map(divergence).collect()
    }

    /// Returns where two executions of a function part, in the order in which they come first.
    fn parts(&mut self, base: u32, new: u32) -> Parts {
        if base == new {
            return Parts::default();
        }
        if let Some(parts) = self.known.get(&(base, new)) {
            return Rc::clone(parts);
        }
        let nodes = [
            Rc::clone(self.nodes.get(base)),
            Rc::clone(self.nodes.get(new)),
        ];
        let keys = nodes.each_ref().map(|node| self.keys(node));
        let pairs = align_by(&keys[0], &keys[1], |key| matches!(key, Key::Call(_)));
        let gaps = gaps(&pairs, &keys);
        let mut sums = Sums::default();
        let mut next_pair = 0;
        for gap in gaps {
            while let Some((one, other)) = pairs.get(next_pair).filter(|pair| pair.0 < gap.from[0])
            {
                self.compare_calls(nodes[0].items[*one], nodes[1].items[*other], &mut sums);
                next_pair += 1;
            }
            while pairs.get(next_pair).is_some_and(|pair| pair.0 < gap.to[0]) {
                next_pair += 1;
            }
            if gap.from != gap.to {
                let index = self.add(&nodes, &keys, gap);
                let costs = [0, 1].map(|side| {
                    let items = &nodes[side].items[gap.from[side]..gap.to[side]];
                    items.iter().map(|item| self.cost(*item)).sum()
                });
                sums.add(index, 1, costs);
            }
        }
        let parts = Rc::new(sums.list);
        self.known.insert((base, new), Rc::clone(&parts));
        parts
    }

    fn compare_calls(&mut self, base: Item, new: Item, sums: &mut Sums) {
        if let (Item::Call(base), Item::Call(new)) = (base, new) {
            for (index, times, costs) in self.parts(base, new).iter() {
                sums.add(*index, *times, *costs);
            }
        }
    }

    fn keys(&self, node: &Node) -> Vec<Key> {
        let key = |item: &Item| match *item {
            Item::Own(number) => Key::Own(number),
            Item::Again(times) => Key::Again(times),
            Item::Call(node) => Key::Call(self.nodes.get(node).function),
        };
        node.items.iter().map(key).collect()
    }

    fn cost(&self, item: Item) -> u64 {
        match item {
            Item::Own(_) => 1,
            Item::Again(times) => u64::from(times),
            Item::Call(node) => self.nodes.get(node).total,
        }
    }

    /// Returns the index of the place where a gap begins.
    fn add(&mut self, nodes: &[Rc<Node>; 2], keys: &[Vec<Key>; 2], gap: Gap) -> usize {
        let behind = keys[0][..gap.from[0]]
            .iter()
            .rev()
            .find_map(|key| match key {
                Key::Own(number) => Some(*number),
                _ => None,
            });
        let next = [0, 1].map(|side| keys[side].get(gap.from[side]).copied());
        let place = Place {
            function: nodes[0].function,
            behind,
            next,
        };
        if let Some(index) = self.indices.get(&place) {
            return *index;
        }
        let called = [0, 1].map(|side| called(&keys[side][gap.from[side]..gap.to[side]]));
        let calls = [0, 1].map(|side: usize| {
            let own = &called[side];
            let only = own.iter().filter(|call| !called[1 - side].contains(call));
            only.copied().take(CALLS_MAX).collect()
        });
        let index = self.found.len();
        self.found.push(Found {
            place,
            meet: keys[1].get(gap.to[1]).copied(),
            calls,
            times: 0,
            instructions: [0; 2],
        });
        self.indices.insert(place, index);
        index
    }
}

/// The functions that are called, each once.
fn called(keys: &[Key]) -> Vec<u32> {
    let mut calls = Vec::new();
    for key in keys {
        if let Key::Call(function) = key
            && !calls.contains(function)
        {
            calls.push(*function);
        }
    }
    calls
}

/// What was found below one execution, by place.
#[derive(Debug, Default)]
struct Sums {
    list: Vec<(usize, u64, [u64; 2])>,
    places: HashMap<usize, usize>,
}

impl Sums {
    fn add(&mut self, index: usize, times: u64, costs: [u64; 2]) {
        let next = self.list.len();
        let at = *self.places.entry(index).or_insert(next);
        if at == next {
            self.list.push((index, 0, [0; 2]));
        }
        let (_, all, sums) = &mut self.list[at];
        *all += times;
        sums[0] += costs[0];
        sums[1] += costs[1];
    }
}

/// Returns what is between equal elements, and the end. Runs of equal elements that are too short
/// to be a meeting belong to the gap.
fn gaps(pairs: &[(usize, usize)], keys: &[Vec<Key>; 2]) -> Vec<Gap> {
    let ends = [keys[0].len(), keys[1].len()];
    let mut gaps: Vec<Gap> = Vec::new();
    let mut at = [0, 0];
    // Equal elements behind the last gap, and whether a call is among them.
    let mut run = 0;
    let mut met = true;
    for &(base, new) in pairs.iter().chain(std::iter::once(&(ends[0], ends[1]))) {
        if at != [base, new] {
            match gaps.last_mut() {
                Some(last) if !met => last.to = [base, new],
                _ => gaps.push(Gap {
                    from: at,
                    to: [base, new],
                }),
            }
            run = 0;
            met = false;
        }
        if base < ends[0] {
            run += 1;
            met |= run >= MEET || matches!(keys[0][base], Key::Call(_));
        }
        at = [base + 1, new + 1];
    }
    // So that what is behind the last gap is compared as well.
    gaps.push(Gap {
        from: ends,
        to: ends,
    });
    gaps
}
