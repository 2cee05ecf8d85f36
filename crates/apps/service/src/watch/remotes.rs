//! The real sources of kernel names: git repositories and Debian's archive.

use std::path::Path;

use archives::Archives;
use kernel::Repository;
use model::{Distribution, PackageQuery, PackageSelection};

use super::{Heads, KernelSource, Packages};

/// The remote repositories and archives that this host reaches.
#[derive(Debug, Clone)]
pub struct Remotes {
    pub archives: Archives,
}

impl KernelSource for Remotes {
    fn tags(&self, place: &str) -> Result<Vec<String>, String> {
        kernel::remote_tags(place).map_err(|error| error.to_string())
    }

    fn heads(&self, place: &str, branches: &[String]) -> Result<Heads, String> {
        kernel::remote_heads(place, branches).map_err(|error| error.to_string())
    }

    fn is_rewritten(&self, place: &str, former: &str, head: &str) -> Option<bool> {
        // Only of a tree on this host is the history at hand.
        let tree = Some(Path::new(place)).filter(|place| place.is_dir())?;
        let tree = Repository::open(tree).ok()?;
        tree.is_ancestor(former, head).ok().map(|is| !is)
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
