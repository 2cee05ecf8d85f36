//! Compares the layers with cargo's metadata of the workspace, and ARCHITECTURE.md with the layers.

use std::error::Error;
use std::process::Command;

#[test]
fn arrows_point_down() -> Result<(), Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = [
        "metadata",
        "--no-deps",
        "--format-version",
        "1",
        "--locked",
        "--offline",
    ];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(tidy::root())
        .output()?;
    assert!(
        output.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    tidy::none(&tidy::layers(&String::from_utf8(output.stdout)?, read)?);
    Ok(())
}

const BEGIN: &str = "<!-- written by `UPDATE=1 cargo test -p tidy --test layers` -->\n";
const END: &str = "<!-- end -->";

#[test]
fn architecture_has_the_table_of_layers() -> Result<(), Box<dyn Error>> {
    let path = tidy::root().join("ARCHITECTURE.md");
    let text = std::fs::read_to_string(&path)?;
    let start = text.find(BEGIN).ok_or("ARCHITECTURE.md has no table")? + BEGIN.len();
    let end = start + text[start..].find(END).ok_or("the table has no end")?;
    let table = tidy::layers_table();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, format!("{}{table}{}", &text[..start], &text[end..]))?;
        return Ok(());
    }
    assert!(
        text[start..end] == table,
        "ARCHITECTURE.md has another table than tests/tidy/src/layers.rs: \
         UPDATE=1 cargo test -p tidy --test layers"
    );
    Ok(())
}
