//! Builds the static agent and the QEMU plugin, and embeds their bytes in the lab: one program to
//! install, no version mismatch.
//!
//! Both are built with fixed flags, whatever the lab's profile, and contain no path of this host:
//! the same sources and compiler give the same files, and so the same numbers.

#![expect(
    clippy::expect_used,
    reason = "a build script can report only to cargo"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";

fn main() {
    // Read at run time: a moved directory keeps its compiled build script.
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here
        .join("../../..")
        .canonicalize()
        .expect("the workspace is there");
    for input in [
        "crates/guest/agent",
        "crates/guest/tracer",
        "crates/base/wire",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(input).display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("agent");
    // Without relocations at start, workloads that do not run touch no page.
    build(
        &root,
        &out,
        "agent",
        &["-Ctarget-feature=+crt-static", "-Crelocation-model=static"],
    );
    build(&root, &out, "tracer", &[]);
    let built = [
        ("MARVIN_AGENT", "agent/marvin-agent"),
        ("MARVIN_INIT", "agent/marvin-init"),
        ("MARVIN_SERVE", "agent/marvin-serve"),
        ("MARVIN_MODLOAD", "agent/marvin-modload"),
        ("MARVIN_CRASH", "agent/marvin-crash"),
        ("MARVIN_TRACER", "tracer/libtracer.so"),
    ];
    for (variable, file) in built {
        println!(
            "cargo::rustc-env={variable}={}",
            out.join(TARGET).join(file).display()
        );
    }
}

/// Builds a package with the profile of the same name.
fn build(root: &Path, out: &Path, package: &str, flags: &[&str]) {
    // cargo finds its home in the same way: only rustup sets the variable.
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.unwrap_or_else(|| root.join("no-cargo-home"));
    let mut flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
    flags.push(format!("--remap-path-prefix={}=/marvin", root.display()));
    flags.push(format!("--remap-path-prefix={}=/cargo", home.display()));
    let mut cargo = Command::new(std::env::var_os("CARGO").expect("cargo sets it"));
    cargo.args([
        "build",
        "--quiet",
        "--package",
        package,
        "--profile",
        package,
        "--target",
        TARGET,
        "--target-dir",
    ]);
    cargo
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
        cargo.env_remove(name);
    }
    let status = cargo.status().expect("cargo can be started");
    assert!(status.success(), "the {package} does not build");
}
