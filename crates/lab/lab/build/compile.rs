//! Compiles the guest programs and QEMU's plugins from the sources of this tree, with fixed flags
//! and without a path of this host: the same sources, compiler and libc give the same bytes.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What guests run.
const GUEST: &str = "x86_64-unknown-linux-gnu";

/// Builds the programs below `out`; returns their paths in the order of `carried::PROGRAMS`.
///
/// # Errors
/// A sentence: which package does not build.
pub(crate) fn compile(cargo: &Path, root: &Path, out: &Path) -> Result<Vec<PathBuf>, String> {
    // Without relocations at start, workloads that do not run touch no page.
    let flags = ["-Ctarget-feature=+crt-static", "-Crelocation-model=static"];
    build_package(cargo, root, out, "agent", "agent", GUEST, &flags)?;
    let plugins = compile_plugins(cargo, root, out, GUEST)?;
    let [guests @ .., _, _] = super::carried::PROGRAMS;
    let folder = out.join(GUEST).join("agent");
    let mut programs: Vec<PathBuf> = guests.iter().map(|name| folder.join(name)).collect();
    programs.extend(plugins);
    Ok(programs)
}

/// Builds the plugins for hosts of a target; QEMU loads them, so they have the host's processor.
///
/// # Errors
/// A sentence: which one does not build.
pub(crate) fn compile_plugins(
    cargo: &Path,
    root: &Path,
    out: &Path,
    target: &str,
) -> Result<[PathBuf; 2], String> {
    build_package(cargo, root, out, "tracer", "tracer", target, &[])?;
    build_package(cargo, root, out, "path-recorder", "tracer", target, &[])?;
    let folder = out.join(target).join("tracer");
    Ok(["libtracer.so", "libpath_recorder.so"].map(|name| folder.join(name)))
}

/// Builds a package with a profile.
fn build_package(
    cargo: &Path,
    root: &Path,
    out: &Path,
    package: &str,
    profile: &str,
    target: &str,
    flags: &[&str],
) -> Result<(), String> {
    // cargo finds its home in the same way: only rustup sets the variable.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.unwrap_or_else(|| root.join("no-cargo-home"));
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    flags.push(format!("--remap-path-prefix={}=/marvin", root.display()));
    flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    let mut command = Command::new(cargo);
    command
        .args(["build", "--quiet", "--locked", "--package", package])
        .args(["--profile", profile, "--target", target, "--target-dir"])
        .arg(out)
        .current_dir(root)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    // A caller's wrappers and flags, such as clippy's, must not change these builds.
    for name in [
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "RUSTFLAGS",
        "CARGO_TARGET_DIR",
        "CARGO_BUILD_TARGET",
    ] {
        command.env_remove(name);
    }
    let built = command.status().is_ok_and(|status| status.success());
    if built {
        Ok(())
    } else {
        Err(format!("the {package} does not build"))
    }
}
