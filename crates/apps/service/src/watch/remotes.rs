//! The real sources of kernel names: git repositories and Debian's archive.

use archives::Archives;
use model::{Distribution, PackageQuery, PackageSelection};

use super::{KernelSource, Packages};

/// The remote repositories and archives that this host reaches.
#[derive(Debug, Clone)]
pub struct Remotes {
    pub archives: Archives,
}

impl KernelSource for Remotes {
    fn tags(&self, place: &str) -> Result<Vec<String>, String> {
        kernel::remote_tags(place).map_err(|error| error.to_string())
    }

    fn packages(&self, series: &str, flavour: &str) -> Result<Packages, String> {
        let query = PackageQuery {
            distribution: Distribution::Debian,
            suite: None,
            selection: PackageSelection::Version {
                version: series.to_owned(),
                flavour: flavour.to_owned(),
            },
        };
        let offers = kernel::offers(&self.archives, &query).map_err(|error| error.to_string())?;
        Ok(offers
            .into_iter()
            .map(|offer| (offer.package, offer.upstream))
            .collect())
    }
}
