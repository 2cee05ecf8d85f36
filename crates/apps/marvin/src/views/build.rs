//! A build: `marvin build`.

use model::Build;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;

/// A build and its files.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct BuildDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// Build id.
    build: String,
    /// Kernel name.
    name: String,
    /// Version.
    version: String,
    /// Origin: package, or commit and compiler.
    origin: String,
    /// File that boots.
    image: String,
    /// Kernel config; null if there is none beside the image.
    config: Option<String>,
    /// Build id for texts.
    #[serde(skip)]
    short: String,
}

impl BuildDocument {
    /// Returns the document of a build.
    pub(crate) fn new(build: &Build) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "build",
            build: build.id.to_string(),
            name: build.name.to_string(),
            version: build.version.clone(),
            origin: build.origin.to_string(),
            image: build.boot_file().path.display().to_string(),
            config: build
                .config
                .as_ref()
                .map(|file| file.path.display().to_string()),
            short: build.id.short(),
        }
    }
}

impl Listing for BuildDocument {
    fn text(&self, _: &Styles) -> String {
        let Self {
            version,
            origin,
            image,
            config,
            short,
            ..
        } = self;
        let config = config
            .as_ref()
            .map_or_else(String::new, |file| format!("config   {file}\n"));
        format!(
            "build    {short}\nversion  {version}\norigin   {origin}\nimage    {image}\n{config}"
        )
    }
}
