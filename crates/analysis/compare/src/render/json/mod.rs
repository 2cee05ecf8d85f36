//! A comparison as a JSON document. This crate guarantees the shape, independent of the model: see
//! [`SCHEMA_VERSION`](document::SCHEMA_VERSION).
//!
//! Two comparisons of the same kernels on the same machine differ only in `provenance`, which has
//! all run ids and dates, and in the command if it was another.

mod comparison_document;

pub(crate) use comparison_document::{Document, document};

use crate::comparison::Comparison;
use document::RenderError;

/// Returns the document's JSON schema.
#[must_use]
pub fn schema() -> schemars::Schema {
    document::schema_of::<Document<'_>>("marvin compare, marvin report")
}

/// Renders a comparison as a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn json(comparison: &Comparison) -> Result<String, RenderError> {
    document::write_json(&document(comparison))
}

#[cfg(test)]
mod tests {
    use model::UnixTime;
    use serde_json::Value;

    use super::json;
    use crate::compare::compare;
    use crate::fixtures::{
        Ending, Subject, WHEN, build, hostile, new, old, question, seeds, three,
    };

    fn parsed(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_small_document() {
        let seeds = seeds(2);
        let old = Subject::new(
            build("deb:6.1", "6.1.192"),
            &seeds,
            &[("getppid", Ending::Samples(vec![981.0, 326.3, 326.3]))],
        );
        let new = Subject::new(
            build("deb:6.12", "6.12.117"),
            &seeds,
            &[("getppid", Ending::Cost(340.8, 1.0))],
        );
        let mut question = question(&seeds);
        question.workloads.truncate(2);
        let comparison = compare(&old.side(), &[new.side()], &question).unwrap();
        insta::assert_snapshot!(json(&comparison).unwrap());
    }

    #[test]
    fn json_rows_have_unit_and_direction() {
        let document = parsed(&json(&three(&seeds(5))).unwrap());
        document::fixtures::assert_fits(&super::schema(), &json(&three(&seeds(5))).unwrap());
        document::fixtures::assert_fits(&super::schema(), &json(&hostile()).unwrap());
        assert_eq!(document["schema_version"], 1);
        assert_eq!(document["conclusion"], "failed");
        for row in document["rows"].as_array().unwrap() {
            assert_eq!(row["unit"], "guest ns/op", "the fixtures are not counted");
            assert_eq!(row["direction"], "lower is better");
            assert_eq!(row["others"].as_array().unwrap().len(), 2);
            assert_eq!(row["base"]["seeds"].as_array().unwrap().len(), 5);
        }
        let row = &document["rows"][0];
        assert_eq!(
            row["base"]["seeds"][0]["samples"].as_array().unwrap().len(),
            16
        );
        assert_eq!(
            row["others"][1]["measured"]["seeds"][0]["absent"]["word"],
            "failed"
        );
        assert_eq!(document["rows"][4]["others"][0]["seeds_worse"], 2);
    }

    #[test]
    fn equal_comparisons_differ_in_provenance_only() {
        let seeds = seeds(3);
        let old = old(&seeds);
        let new = new(&seeds);
        let mut question = question(&seeds);
        let first = json(&compare(&old.side(), &[new.side()], &question).unwrap()).unwrap();
        let mut old = old;
        let mut new = new;
        for (place, run) in old.runs.iter_mut().chain(&mut new.runs).enumerate() {
            run.id = model::RunId::from_hex(&format!("{place:012x}")).unwrap();
            run.started_unix = UnixTime::new(WHEN.seconds() * 2);
        }
        question.created_unix = None;
        let again = json(&compare(&old.side(), &[new.side()], &question).unwrap()).unwrap();
        assert_ne!(first, again);
        let body = |text: &str| text.split_once("\n \"provenance\"").unwrap().0.to_owned();
        assert_eq!(body(&first), body(&again));
    }

    #[test]
    fn hostile_words_come_back_as_they_were() {
        let text = json(&hostile()).unwrap();
        assert!(!text.contains('\x1b'));
        assert_eq!(parsed(&text)["command"], crate::fixtures::HOSTILE);
    }
}
