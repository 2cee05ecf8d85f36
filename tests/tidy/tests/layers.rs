//! Compares the layers with cargo's metadata of the workspace.

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
