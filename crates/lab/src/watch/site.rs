//! What a site asks, read from its file; and the world outside as it is: git and apt.

use std::fs;
use std::path::{Path, PathBuf};

use model::{DebQuery, LabSettings, TreeOrigin};

use super::{Outside, Packages};
use crate::LabError;

/// What a site asks, and where it says so.
#[derive(Debug, Clone)]
pub struct Site {
    /// What it asks.
    pub settings: LabSettings,
    /// The file; nothing where there is none, and nothing is asked.
    pub file: Option<PathBuf>,
}

impl Site {
    /// Reads what a site asks from its file, or, where none is named, from `marvin.toml` in the home, which need not be there.
    /// Paths in it that are not absolute begin where the file is.
    ///
    /// # Errors
    /// When the file cannot be read, or says what makes no sense.
    pub fn read(home: &Path, named: Option<&Path>) -> Result<Self, LabError> {
        let usual = home.join("marvin.toml");
        let file = named.unwrap_or(&usual);
        let text = match fs::read_to_string(file) {
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(LabError::Settings { file: file.to_owned(), what: error.to_string() }),
            Ok(text) => Some(text),
        };
        let read = ingest::settings(text.as_deref().unwrap_or_default());
        let mut settings =
            read.map_err(|error| LabError::Settings { file: file.to_owned(), what: error.to_string() })?;
        let folder = file.parent().unwrap_or(Path::new("."));
        for tree in &mut settings.trees {
            if let TreeOrigin::Git { place, .. } = &mut tree.origin
                && !place.contains(':')
            {
                *place = folder.join(&*place).display().to_string();
            }
            if !["micro", "small"].contains(&tree.config.as_str()) {
                tree.config = folder.join(&tree.config).display().to_string();
            }
        }
        Ok(Self { settings, file: text.map(|_| file.to_owned()) })
    }
}

/// The world outside.
#[derive(Debug, Clone, Copy)]
pub struct Apt;

impl Outside for Apt {
    fn tags(&self, place: &str) -> Result<Vec<String>, String> {
        kernel::remote_tags(place).map_err(|error| error.to_string())
    }

    fn packages(&self, series: &str, flavour: &str) -> Result<Packages, String> {
        let query = DebQuery::Version { version: series.to_owned(), flavour: flavour.to_owned() };
        let offers = kernel::offers(&query).map_err(|error| error.to_string())?;
        Ok(offers.into_iter().map(|offer| (offer.package, offer.upstream)).collect())
    }
}
