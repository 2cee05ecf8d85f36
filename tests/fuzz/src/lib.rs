//! Every reader of bytes from outside, each as a target: a name, what it does with bytes, and files
//! to start from.
//!
//! An input follows from its number: a seed, damaged at positions of a pseudorandom sequence. So a
//! number repeats it. `targets.rs` lists the readers; the program in `main.rs` runs them for some
//! minutes, the tests for a second.

mod bodies;
mod seeds;
mod targets;

use std::path::Path;

use synthetic_dumps::damage::{Numbers, changed};

pub use targets::targets;

/// Largest input in bytes: damage grows no file, and seeds are smaller.
pub const INPUT_MAX: usize = 1 << 20;

#[derive(Debug)]
pub struct Target {
    pub name: &'static str,
    body: Body,
    seeds: Vec<Vec<u8>>,
}

/// What a target does with bytes; it panics if the result is wrong.
#[derive(Debug, Clone, Copy)]
enum Body {
    Bytes(fn(&[u8])),
    /// In a scratch file.
    File(fn(&[u8], &Path)),
}

impl Target {
    /// Returns the input of this number: the first ones are the seeds themselves.
    #[must_use]
    pub fn input(&self, number: u64) -> Vec<u8> {
        let count = self.seeds.len() as u64;
        let seed = &self.seeds[(number % count) as usize];
        if number < count {
            return seed.clone();
        }
        let mut numbers = Numbers::new(number);
        let bytes = changed(seed, &mut numbers);
        // Lines and fields of texts are what readers repeat and skip.
        match numbers.below(4) {
            0 => spliced(&bytes, &mut numbers),
            _ => bytes,
        }
    }

    pub fn run(&self, bytes: &[u8], scratch: &Path) {
        match self.body {
            Body::Bytes(body) => body(bytes),
            Body::File(body) => body(bytes, scratch),
        }
    }
}

/// Repeats or removes a part of a file.
fn spliced(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let from = numbers.below(bytes.len());
    let to = (from + 1 + numbers.below(256)).min(bytes.len());
    let times = [0, 2, 3, 40][numbers.below(4)];
    let all = [&bytes[..from], &bytes[from..to].repeat(times), &bytes[to..]].concat();
    if all.len() > INPUT_MAX {
        bytes.to_vec()
    } else {
        all
    }
}
