//! All archives that kernels come from.

use std::path::{Path, PathBuf};

use model::{ArchiveSettings, Distribution, UnixTime};

use crate::{Arch, ArchiveError, Debian, Fedora, KernelOrg, ListNotice, Package};

/// All archives, with their lists in one data directory.
#[derive(Debug, Clone)]
pub struct Archives {
    pub debian: Debian,
    pub ubuntu: Debian,
    pub fedora: Fedora,
    pub arch: Arch,
    pub kernel_org: KernelOrg,
}

impl Archives {
    /// Returns the archives with their lists below `home`; fetches nothing yet.
    #[must_use]
    pub fn new(home: &Path, settings: ArchiveSettings, clock: fn() -> UnixTime) -> Self {
        Self {
            debian: Debian::new(home, settings.debian, clock),
            ubuntu: Debian::ubuntu(home, settings.ubuntu, clock),
            fedora: Fedora::new(home, settings.fedora, clock),
            arch: Arch::new(home, settings.arch, clock),
            kernel_org: KernelOrg::new(home, settings.kernel_org, clock),
        }
    }

    /// Returns the same archives; Debian and Ubuntu as far as their lists are in the data directory,
    /// however old.
    #[must_use]
    pub fn offline(self) -> Self {
        Self {
            debian: self.debian.offline(),
            ubuntu: self.ubuntu.offline(),
            ..self
        }
    }

    /// Downloads a package of a distribution into a directory and verifies it; returns its file.
    ///
    /// # Errors
    /// If it cannot be fetched or is not trusted: then nothing is left.
    pub fn download(
        &self,
        distribution: Distribution,
        package: &Package,
        into: &Path,
    ) -> Result<PathBuf, ArchiveError> {
        match distribution {
            Distribution::Debian => self.debian.download(package, into),
            Distribution::Ubuntu => self.ubuntu.download(package, into),
            Distribution::Fedora => self.fedora.download(package, into),
            Distribution::Arch => self.arch.download(package, into),
        }
    }

    /// Returns the notices about lists that came up, once each.
    #[must_use]
    pub fn take_notices(&self) -> Vec<ListNotice> {
        let mut notices = self.debian.take_notices();
        notices.extend(self.ubuntu.take_notices());
        notices
    }

    /// Returns the suites of a distribution that are left out now.
    #[must_use]
    pub fn left_out(&self, distribution: Distribution) -> Vec<ListNotice> {
        match distribution {
            Distribution::Debian => self.debian.left_out(),
            Distribution::Ubuntu => self.ubuntu.left_out(),
            Distribution::Fedora | Distribution::Arch => Vec::new(),
        }
    }

    /// Forgets when lists were seen: the next use asks for them.
    ///
    /// # Errors
    /// If the data directory cannot be written.
    pub fn forget_lists(&self) -> Result<(), ArchiveError> {
        // All lists lie in one directory.
        self.debian.forget_lists()
    }
}
