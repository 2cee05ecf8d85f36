//! Prints the figures of the tree: `cargo run -q -p tidy --bin figures`.
#![expect(clippy::print_stdout, reason = "it prints figures")]

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let tree = tidy::Tree::read()?;
    for figure in tidy::figures(&tree) {
        println!("{:>9.1} {:<8} {}", figure.value, figure.unit, figure.name);
    }
    println!(
        "{:>9.1} {:<8} arrows between crates",
        tidy::arrows() as f64,
        ""
    );
    Ok(())
}
