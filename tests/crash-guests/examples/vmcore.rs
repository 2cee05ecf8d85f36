//! Writes a dump of a guest with memory of every kind, for trying programs by hand:
//! `cargo run -p crash-guests --example vmcore -- HOME KERNEL MIB FILE`.
#![expect(
    clippy::unwrap_used,
    reason = "a development program: what fails is printed"
)]

use std::path::Path;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [home, kernel, mib, file] = words.as_slice() else {
        panic!("usage: vmcore HOME KERNEL MIB FILE")
    };
    crash_guests::capture(
        Path::new(home),
        kernel,
        mib.parse().unwrap(),
        Path::new(file),
    )
    .unwrap();
}
