//! A build: the bootable result that a kernel name stands for.

use std::path::PathBuf;

use crate::{BuildId, KernelName, Origin};

/// One file of a build and the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFile {
    /// Where it lies in the build cache.
    pub path: PathBuf,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
}

/// What is booted, and what is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Hash of the image.
    pub id: BuildId,
    /// The name it was asked for by.
    pub name: KernelName,
    /// Upstream version with whatever makes it readable: `6.12.117`.
    pub version: String,
    /// Where it came from, exactly.
    pub origin: Origin,
    /// The image as it was given: bzImage or vmlinux.
    pub image: BuildFile,
    /// The ELF file that is booted (unpacked from a bzImage where it was one); absent when only the bzImage can be.
    pub vmlinux: Option<BuildFile>,
    /// The configuration, where one was found beside the image.
    pub config: Option<BuildFile>,
    /// The symbol table, where one with symbols was found beside the image.
    pub symbols: Option<BuildFile>,
    /// The folder of modules, where one was found beside the image.
    pub modules: Option<PathBuf>,
}

impl Build {
    /// Returns the name by which it is asked for again and stays the same: a package by its whole name.
    #[must_use]
    pub fn exact_name(&self) -> String {
        match &self.origin {
            Origin::Package { name, .. } => format!("deb:{name}"),
            Origin::Built { .. } | Origin::Described(_) => self.name.to_string(),
        }
    }

    /// Returns the file that a machine boots.
    #[must_use]
    pub fn boot_file(&self) -> &BuildFile {
        self.vmlinux.as_ref().unwrap_or(&self.image)
    }
}
