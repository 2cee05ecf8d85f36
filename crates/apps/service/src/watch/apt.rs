//! The real sources of kernel names: git and apt.

use model::DebQuery;

use super::{KernelSource, Packages};

/// The remote repositories and package lists that this host reaches.
#[derive(Debug, Clone, Copy)]
pub struct Apt;

impl KernelSource for Apt {
    fn tags(&self, place: &str) -> Result<Vec<String>, String> {
        kernel::remote_tags(place).map_err(|error| error.to_string())
    }

    fn packages(&self, series: &str, flavour: &str) -> Result<Packages, String> {
        let query = DebQuery::Version {
            version: series.to_owned(),
            flavour: flavour.to_owned(),
        };
        let offers = kernel::offers(&query).map_err(|error| error.to_string())?;
        Ok(offers
            .into_iter()
            .map(|offer| (offer.package, offer.upstream))
            .collect())
    }
}
