//! A build: the bootable result that a kernel name stands for.

use std::path::PathBuf;

use crate::{BuildId, Distribution, KernelName, Origin, PackageSelection};

/// One file of a build and the hash of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildFile {
    /// Path in the build cache.
    pub path: PathBuf,
    /// SHA-256 of the content, hexadecimal.
    pub sha256: String,
}

/// A bootable kernel with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// Hash of the image.
    pub id: BuildId,
    /// The name that the user gave.
    pub name: KernelName,
    /// Upstream version, made readable: `6.12.117`.
    pub version: String,
    /// Where its image comes from.
    pub origin: Origin,
    /// The image that the user gave: bzImage or vmlinux.
    pub image: BuildFile,
    /// The ELF file to boot, unpacked from the bzImage if necessary; absent if Marvin can only
    /// boot the bzImage.
    pub vmlinux: Option<BuildFile>,
    /// The kernel config, if one lies beside the image.
    pub config: Option<BuildFile>,
    /// The symbol table, if one with symbols lies beside the image.
    pub symbols: Option<BuildFile>,
    /// The module directory, if one lies beside the image.
    pub modules: Option<PathBuf>,
}

impl Build {
    /// Returns the name that selects exactly this build again: for a package, the whole package
    /// name.
    #[must_use]
    pub fn exact_name(&self) -> String {
        match &self.origin {
            Origin::Package { name, .. } => match &self.name {
                KernelName::Changed { kernel, changes } => {
                    let plain = Self {
                        name: (**kernel).clone(),
                        ..self.clone()
                    };
                    format!("{}{changes}", plain.package_name(name))
                }
                _ => self.package_name(name),
            },
            Origin::Built { .. } | Origin::Described(_) => self.name.to_string(),
        }
    }

    fn package_name(&self, package: &str) -> String {
        let KernelName::Package(query) = &self.name else {
            return format!("deb:{package}");
        };
        let mut exact = query.clone();
        match (query.distribution, &mut exact.selection) {
            (Distribution::Debian | Distribution::Ubuntu, selection) => {
                *selection = PackageSelection::Package(package.to_owned());
            }
            // Their packages have the same name in every version.
            (_, PackageSelection::Version { version, .. }) => version.clone_from(&self.version),
            (_, PackageSelection::Package(_)) => {}
        }
        KernelName::Package(exact).to_string()
    }

    /// Returns the file that a machine boots.
    #[must_use]
    pub fn boot_file(&self) -> &BuildFile {
        self.vmlinux.as_ref().unwrap_or(&self.image)
    }
}
