//! Embeds the guest programs and QEMU's plugins in the lab: one program to install, no version
//! mismatch. They are the carried ones; where their sources were changed, what these give.

#![expect(
    clippy::expect_used,
    reason = "a build script can report only to cargo"
)]

use std::path::{Path, PathBuf};

#[path = "build/carried.rs"]
#[expect(dead_code, reason = "the test of the programs writes them")]
mod carried;
#[path = "build/compile.rs"]
mod compile;

/// Names by which `lib.rs` includes the programs, in the order of `carried::PROGRAMS`.
const VARIABLES: [&str; 7] = [
    "MARVIN_AGENT",
    "MARVIN_INIT",
    "MARVIN_SERVE",
    "MARVIN_MODLOAD",
    "MARVIN_CRASH",
    "MARVIN_TRACER",
    "MARVIN_PATH_RECORDER",
];

fn main() {
    // Read at run time: a moved directory keeps its compiled build script.
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = here
        .join("../../..")
        .canonicalize()
        .expect("the workspace is there");
    println!("cargo::rerun-if-changed=build");
    for input in carried::inputs(&root) {
        println!("cargo::rerun-if-changed={}", input.display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let cargo = PathBuf::from(std::env::var_os("CARGO").expect("cargo sets it"));
    let mut files = place_carried(&root, &out).unwrap_or_else(|| {
        println!("cargo::warning=guest programs were changed: built here, another exact machine");
        compile::compile(&cargo, &root, &out.join("agent")).expect("the guest programs build")
    });
    // Guests are of one architecture, hosts of several.
    if std::env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it") != "x86_64" {
        // A QEMU is linked dynamically, whatever the program is.
        let target = std::env::var("TARGET")
            .expect("cargo sets it")
            .replace("musl", "gnu");
        let plugins = compile::compile_plugins(&cargo, &root, &out.join("tracer"), &target);
        files.truncate(files.len() - 2);
        files.extend(plugins.expect("the plugins build for this host"));
    }
    for (variable, file) in VARIABLES.iter().zip(files) {
        println!("cargo::rustc-env={variable}={}", file.display());
    }
}

/// Writes the carried programs to `out`; none where they are not those of the tree's sources.
fn place_carried(root: &Path, out: &Path) -> Option<Vec<PathBuf>> {
    let manifest = carried::read_manifest(root)?;
    if manifest.sources != carried::sources_hash(root).expect("the sources can be read") {
        return None;
    }
    let programs = carried::unpack(root, &manifest).expect("the carried programs are whole");
    let mut files = Vec::new();
    for (name, bytes) in carried::PROGRAMS.iter().zip(programs) {
        let file = out.join(name);
        std::fs::write(&file, bytes).expect("cargo's directory can be written");
        files.push(file);
    }
    Some(files)
}
