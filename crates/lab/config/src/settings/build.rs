//! Parses how Marvin builds kernels: `[build]`.

use model::MakeArgument;

use super::check::Record;
use crate::toml_document::Mistake;

/// Parses variables for make, each a text of its own: `KCFLAGS=-O3 -g`.
pub(super) fn make_args(record: &Record) -> Result<Vec<MakeArgument>, Mistake> {
    let words = record.texts("make_args").unwrap_or_default();
    let parsed = words.iter().map(|(span, word)| {
        word.parse()
            .map_err(|error: model::MakeArgumentError| Mistake::new(span, error.to_string()))
    });
    parsed.collect()
}
