//! A build: the bootable result that a kernel name stands for.

use std::path::PathBuf;

use crate::{BuildId, Distribution, KernelName, Origin, PackageSelection, SourceOrigin};

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
    /// name, for a revision the commit.
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
            Origin::Built { source, .. } => self.exact_source(source),
            Origin::Described(_) => self.name.to_string(),
        }
    }

    /// Returns the name with the commit that a revision meant: `HEAD` moves on.
    fn exact_source(&self, source: &SourceOrigin) -> String {
        let Some(commit) = source.commit() else {
            return self.name.to_string();
        };
        let exact = |name: &KernelName| match name {
            KernelName::Git(_) => KernelName::Git(commit.to_owned()),
            KernelName::Patch { file, .. } => KernelName::Patch {
                file: file.clone(),
                revision: commit.to_owned(),
            },
            other => other.clone(),
        };
        match &self.name {
            KernelName::Changed { kernel, changes } => format!("{}{changes}", exact(kernel)),
            name => exact(name).to_string(),
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

#[cfg(test)]
mod tests {
    use crate::fixtures::build;
    use crate::{KernelName, Origin};

    #[test]
    fn exact_name_has_the_commit() {
        let exact = |name: &str, line: &str| {
            let name = name.parse::<KernelName>().unwrap();
            let built = crate::Build {
                origin: Origin::of_line(line, &name),
                name,
                ..build("deb:6.12", "6.12.117")
            };
            built.exact_name()
        };
        let commit = "commit 0123456789ab of /src/linux, default, gcc 12";
        assert_eq!(exact("git:HEAD~1", commit), "git:0123456789ab");
        assert_eq!(
            exact("git:HEAD@config:MEMCG=y", commit),
            "git:0123456789ab@config:MEMCG=y"
        );
        let patch = "/a/x.patch on commit 0123456789ab of /src/linux, default, gcc 12";
        assert_eq!(
            exact("patch:/a/x.patch@HEAD", patch),
            "patch:/a/x.patch@0123456789ab"
        );
        let tree = "/src/linux as it stands, default, gcc 12";
        assert_eq!(exact("tree:/src/linux", tree), "tree:/src/linux");
    }
}
