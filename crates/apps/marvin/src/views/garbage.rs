//! Runs, artifacts and images that `marvin gc` deletes.

use std::collections::BTreeMap;

use model::RunId;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use document::Styles;

/// Garbage of the store.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct GarbageDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// Superseded runs, oldest first.
    superseded_runs: Vec<String>,
    /// Older runs that lose their artifacts, oldest first; the runs stay.
    artifacts_of_runs: Vec<String>,
    /// Size of all these artifacts (bytes).
    artifact_bytes: u64,
    /// Number of superseded runs that stay because they are referenced.
    referenced_runs: usize,
    /// Unused images of distributions, by their directories: sizes (bytes).
    images: BTreeMap<String, u64>,
    /// Jobs, notices and logs that are older than asked for.
    expired: ExpiredRecords,
    /// Size of the store before and after; null for a dry run.
    store: Option<Sizes>,
}

/// Jobs, notices and logs that are older than asked for; null where none were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ExpiredRecords {
    /// Number of jobs that are over.
    pub(crate) jobs: Option<u64>,
    /// Number of notices that were delivered and stand no more.
    pub(crate) notices: Option<u64>,
    /// Number of logs of jobs and files of consoles.
    pub(crate) logs: Option<usize>,
    /// Size of these logs (bytes).
    pub(crate) log_bytes: Option<u64>,
}

/// Size of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Sizes {
    /// Before (bytes).
    pub(crate) bytes_before: u64,
    /// After (bytes).
    pub(crate) bytes_after: u64,
}

impl GarbageDocument {
    /// Returns the document of superseded runs and of runs that lose their artifacts.
    pub(crate) fn new(
        superseded: &[RunId],
        artifacts_of: &[RunId],
        artifact_bytes: u64,
        referenced_runs: usize,
    ) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            kind: "gc",
            superseded_runs: superseded.iter().map(ToString::to_string).collect(),
            artifacts_of_runs: artifacts_of.iter().map(ToString::to_string).collect(),
            artifact_bytes,
            referenced_runs,
            images: BTreeMap::new(),
            expired: ExpiredRecords::default(),
            store: None,
        }
    }

    pub(crate) fn with_images(self, sizes: &BTreeMap<String, u64>) -> Self {
        Self {
            images: sizes.clone(),
            ..self
        }
    }

    pub(crate) fn with_expired(self, expired: ExpiredRecords) -> Self {
        Self { expired, ..self }
    }

    /// Adds the sizes of the store after the deletion.
    pub(crate) fn deleted(self, sizes: Sizes) -> Self {
        Self {
            store: Some(sizes),
            ..self
        }
    }
}

impl Listing for GarbageDocument {
    fn text(&self, _: &Styles) -> String {
        let end = match self.store {
            None => "nothing deleted (dry run)".to_owned(),
            Some(Sizes {
                bytes_before,
                bytes_after,
            }) => {
                format!(
                    "the store took {} and takes {}",
                    mib(bytes_before),
                    mib(bytes_after)
                )
            }
        };
        let image =
            |(name, bytes): (&String, &u64)| format!("unused image {name}: {}\n", mib(*bytes));
        let images: String = self.images.iter().map(image).collect();
        let mut expired = String::new();
        if let Some(jobs) = self.expired.jobs {
            expired.extend(["jobs: ", &jobs.to_string(), "\n"]);
        }
        if let Some(notices) = self.expired.notices {
            expired.extend(["notices: ", &notices.to_string(), "\n"]);
        }
        if let (Some(logs), Some(bytes)) = (self.expired.logs, self.expired.log_bytes) {
            expired.extend(["logs: ", &logs.to_string(), ", ", &mib(bytes), "\n"]);
        }
        format!(
            "superseded runs: {}\nolder runs with artifacts to delete: {}\nartifacts of both: {}\nkept because they are \
             referenced: {}\n{images}{expired}{end}\n",
            self.superseded_runs.len(),
            self.artifacts_of_runs.len(),
            mib(self.artifact_bytes),
            self.referenced_runs,
        )
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use model::RunId;

    use super::{ExpiredRecords, GarbageDocument, Sizes};
    use crate::views::Listing as _;
    use document::Styles;

    #[test]
    fn garbage_is_counted() {
        let run = RunId::from_hex("7f3a").unwrap();
        let images = [
            ("52b2f0261c00063f".to_owned(), 180 << 20),
            ("making-x1".to_owned(), 0),
        ]
        .into();
        let document =
            GarbageDocument::new(&[run.clone(), run], &[], 3 << 20, 4).with_images(&images);
        insta::assert_snapshot!(document.text(&Styles::plain()));
        let expired = ExpiredRecords {
            jobs: Some(3),
            notices: Some(0),
            logs: Some(2),
            log_bytes: Some(1 << 20),
        };
        let document = document.with_expired(expired);
        let text = document.text(&Styles::plain());
        assert!(
            text.contains("\njobs: 3\nnotices: 0\nlogs: 2, 1.0 MiB\n"),
            "{text}"
        );
        let deleted = document.deleted(Sizes {
            bytes_before: 9 << 20,
            bytes_after: 6 << 20,
        });
        assert!(
            deleted
                .text(&Styles::plain())
                .ends_with("the store took 9.0 MiB and takes 6.0 MiB\n")
        );
    }
}
