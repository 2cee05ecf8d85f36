//! The list of kernels that a suite offers: `marvin kernels`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;

/// Kernels that a suite of Debian offers, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct KernelsDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The kernels.
    kernels: Vec<ListedKernel>,
}

/// One kernel.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ListedKernel {
    /// Kernel name for Marvin's commands.
    pub(crate) name: String,
    /// Upstream version.
    pub(crate) version: String,
    /// Flavour.
    pub(crate) flavour: String,
    /// Size of the packages (bytes).
    pub(crate) bytes: u64,
}

impl KernelsDocument {
    /// Returns the document of kernels, in the order given.
    pub(crate) fn new(kernels: Vec<ListedKernel>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "kernels",
            kernels,
        }
    }
}

impl Listing for KernelsDocument {
    fn text(&self, _: &Styles) -> String {
        let lines = self.kernels.iter().map(|kernel| {
            let ListedKernel {
                name,
                version,
                flavour,
                bytes,
            } = kernel;
            format!(
                "{version:<12} {flavour:<12} {:>6.1} MB  {name}\n",
                *bytes as f64 / 1e6
            )
        });
        lines.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{KernelsDocument, ListedKernel};
    use crate::views::Listing as _;
    use document::Styles;

    #[test]
    fn kernels_have_one_line_each() {
        let kernel = ListedKernel {
            name: "deb:linux-image-6.1.0-56-cloud-amd64".to_owned(),
            version: "6.1.192".to_owned(),
            flavour: "cloud-amd64".to_owned(),
            bytes: 26_700_000,
        };
        let document = KernelsDocument::new(vec![kernel]);
        insta::assert_snapshot!(document.text(&Styles::plain()), @"6.1.192      cloud-amd64    26.7 MB  deb:linux-image-6.1.0-56-cloud-amd64");
    }
}
