//! The carried guest programs: bytes built once on the pinned toolchain, so that no builder's
//! libc or compiler changes the exact machine. Read by `build.rs` and by the test that builds them
//! again; building is `compile.rs`.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The programs in the order in which they lie in the archive.
pub(crate) const PROGRAMS: [&str; 7] = [
    "marvin-agent",
    "marvin-init",
    "marvin-serve",
    "marvin-modload",
    "marvin-crash",
    "libtracer.so",
    "libpath_recorder.so",
];

/// Folders whose Rust sources and manifests end up in the programs.
const SOURCES: [&str; 4] = [
    "crates/guest/agent",
    "crates/guest/tracer",
    "crates/guest/path-recorder",
    "crates/base/wire",
];

/// Packages of others that end up in the programs; `Cargo.lock` names their versions.
const DEPENDENCIES: [&str; 3] = ["libc", "thiserror", "thiserror-impl"];

/// Profiles of the root manifest that the programs are built with.
const PROFILES: [&str; 3] = ["[profile.release]", "[profile.agent]", "[profile.tracer]"];

/// What the manifest beside the archive says.
pub(crate) struct Manifest {
    /// SHA-256 of the sources.
    pub(crate) sources: String,
    /// What built them: `rustc --version`.
    pub(crate) rustc: String,
    /// SHA-256 of the static libc that is in them.
    pub(crate) libc: String,
    /// Bytes and SHA-256 of each program, in the order of [`PROGRAMS`].
    pub(crate) programs: Vec<Program>,
}

/// One program of the archive.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) bytes: usize,
    pub(crate) sha256: String,
}

/// The folder of the carried programs.
pub(crate) fn folder(root: &Path) -> PathBuf {
    root.join("crates/lab/lab/programs/x86_64")
}

/// Files and folders a change of which can change [`sources_hash`].
pub(crate) fn inputs(root: &Path) -> Vec<PathBuf> {
    let mut inputs: Vec<PathBuf> = SOURCES.iter().map(|folder| root.join(folder)).collect();
    inputs.push(root.join("Cargo.toml"));
    inputs.push(root.join("Cargo.lock"));
    inputs.push(folder(root));
    inputs
}

/// SHA-256 of everything in the tree that decides the programs' bytes.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn sources_hash(root: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    for folder in SOURCES {
        files.push(root.join(folder).join("Cargo.toml"));
        list_files(&root.join(folder).join("src"), &mut files)?;
    }
    // The flags of the compiler.
    files.push(root.join("crates/lab/lab/build/compile.rs"));
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        hash.update(name.to_string_lossy().as_bytes());
        hash.update([0]);
        hash.update(std::fs::read(&file)?);
        hash.update([0]);
    }
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    for profile in PROFILES {
        hash.update(section(&manifest, profile).as_bytes());
    }
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    for package in DEPENDENCIES {
        let name = format!("name = \"{package}\"\n");
        let entry = lock
            .split("[[package]]\n")
            .find(|entry| entry.starts_with(&name));
        hash.update(entry.unwrap_or_default().as_bytes());
    }
    Ok(hexadecimal(&hash.finalize()))
}

/// The lines from `heading` to the next section.
fn section<'text>(manifest: &'text str, heading: &str) -> &'text str {
    let Some(start) = manifest.find(heading) else {
        return "";
    };
    let end = manifest[start + 1..].find("\n[");
    end.map_or(&manifest[start..], |end| &manifest[start..start + 1 + end])
}

fn list_files(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// Reads the manifest; none if there is none or it is not complete.
pub(crate) fn read_manifest(root: &Path) -> Option<Manifest> {
    let text = std::fs::read_to_string(folder(root).join("manifest")).ok()?;
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let value = field(&text, &format!("{name} "))?;
        let (bytes, sha256) = value.split_once(' ')?;
        programs.push(Program {
            name: name.to_owned(),
            bytes: bytes.parse().ok()?,
            sha256: sha256.trim().to_owned(),
        });
    }
    Some(Manifest {
        sources: field(&text, "sources ")?,
        rustc: field(&text, "rustc ")?,
        libc: field(&text, "libc.a ")?,
        programs,
    })
}

/// What follows `name` on its line.
fn field(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    Some(value.trim().to_owned())
}

/// Writes the programs, in the order of [`PROGRAMS`], and what they were built from.
///
/// # Errors
/// A file that cannot be read or written.
pub(crate) fn write(
    root: &Path,
    built: &[Vec<u8>],
    rustc: &str,
    libc: &str,
) -> std::io::Result<()> {
    let mut text = String::from(
        "# The programs of the guests and QEMU's plugins, carried so that every build of Marvin has\n\
         # the same exact machine. Written by: UPDATE=1 cargo test -p lab --test guest_programs\n\
         # The static ones contain parts of the GNU C library (LGPL-2.1) and of Rust's standard\n\
         # library (MIT or Apache-2.0).\n",
    );
    for (name, value) in [
        ("sources", sources_hash(root)?.as_str()),
        ("rustc", rustc),
        ("libc.a", libc),
    ] {
        writeln!(text, "{name} {value}").map_err(std::io::Error::other)?;
    }
    let mut all = Vec::new();
    for (name, bytes) in PROGRAMS.iter().zip(built) {
        let sha256 = hexadecimal(&Sha256::digest(bytes));
        writeln!(text, "{name} {} {sha256}", bytes.len()).map_err(std::io::Error::other)?;
        all.extend_from_slice(bytes);
    }
    let folder = folder(root);
    std::fs::create_dir_all(&folder)?;
    let mut packed = Vec::new();
    // 9 with the slower search: written once an epoch.
    liblzma::read::XzEncoder::new(all.as_slice(), 9).read_to_end(&mut packed)?;
    std::fs::write(folder.join("programs.xz"), packed)?;
    std::fs::write(folder.join("manifest"), text)
}

/// The bytes of the carried programs, each of which has the SHA-256 of the manifest.
///
/// # Errors
/// An archive that cannot be read or is not what the manifest says.
pub(crate) fn unpack(root: &Path, manifest: &Manifest) -> std::io::Result<Vec<Vec<u8>>> {
    let packed = std::fs::read(folder(root).join("programs.xz"))?;
    let mut all = Vec::new();
    liblzma::read::XzDecoder::new(packed.as_slice()).read_to_end(&mut all)?;
    let mut rest = all.as_slice();
    let mut programs = Vec::new();
    for program in &manifest.programs {
        let differs = || std::io::Error::other(format!("{} is not the manifest's", program.name));
        let (bytes, after) = rest.split_at_checked(program.bytes).ok_or_else(differs)?;
        if hexadecimal(&Sha256::digest(bytes)) != program.sha256 {
            return Err(differs());
        }
        programs.push(bytes.to_vec());
        rest = after;
    }
    Ok(programs)
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}
