//! Writes the dump of a machine of 2 TB, for trying programs by hand:
//! `cargo run -p synthetic-dumps --example large -- FILE busy|free SECTIONS`, where so many sections
//! of 128 MiB have separate records (512 in `make bench-dump`: 1 GiB of records).
#![expect(
    clippy::unwrap_used,
    reason = "a development program: what fails is printed"
)]

use std::path::Path;

use synthetic_dumps::large::{Large, Mix};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, mix, sections] = words.as_slice() else {
        panic!("usage: large FILE busy|free SECTIONS")
    };
    let large = Large {
        memory: 2 << 40,
        distinct: sections.parse().unwrap(),
        mix: if mix == "free" { Mix::Free } else { Mix::Busy },
    };
    large.write(Path::new(file)).unwrap();
}
