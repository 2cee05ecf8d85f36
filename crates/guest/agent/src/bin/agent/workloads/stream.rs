//! Arithmetic over arrays, after STREAM: user code that leaves the kernel alone.

use std::hint::black_box;
use std::io;

use super::{Made, Workload};

/// Elements that an operation passes over in each array.
const PIECE: usize = 512;
const ARRAYS: usize = 3;
/// What scale multiplies by, and triad: with these the arrays keep their values.
const SCALE: f64 = 0.5;
const TRIAD: f64 = 1.0 / 3.0;

struct Stream {
    arrays: [Vec<f64>; ARRAYS],
    at: usize,
}

fn pass(a: &mut [f64], b: &mut [f64], c: &mut [f64]) {
    for (c, a) in c.iter_mut().zip(&*a) {
        *c = *a;
    }
    for (b, c) in black_box(&mut *b).iter_mut().zip(&*black_box(&mut *c)) {
        *b = SCALE * *c;
    }
    for ((c, a), b) in black_box(&mut *c).iter_mut().zip(&*a).zip(&*b) {
        *c = *a + *b;
    }
    for ((a, b), c) in black_box(a).iter_mut().zip(&*b).zip(&*c) {
        *a = *b + TRIAD * *c;
    }
}

impl Workload for Stream {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let [a, b, c] = &mut self.arrays;
        for _ in 0..operations {
            let piece = self.at..self.at + PIECE;
            pass(
                &mut a[piece.clone()],
                &mut b[piece.clone()],
                black_box(&mut c[piece]),
            );
            self.at = if self.at + 2 * PIECE > a.len() {
                0
            } else {
                self.at + PIECE
            };
        }
        Ok(())
    }
}

/// stream-2-POWER: copy, scale, add and triad over arrays that together have 2 to that power bytes.
pub(super) fn stream(power: u32) -> Made {
    let elements = (1_usize << power) / ARRAYS / size_of::<f64>();
    // Written once, so that all of it is there.
    Ok(Box::new(Stream {
        arrays: [
            vec![1.0; elements],
            vec![2.0; elements],
            vec![3.0; elements],
        ],
        at: 0,
    }))
}
