//! Checks of the host: `marvin doctor`.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Listing, SCHEMA_VERSION};
use report::render::Styles;

/// Checks of the host.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct DoctorDocument {
    /// Version of the schema.
    schema_version: u32,
    /// Kind of the document.
    kind: &'static str,
    /// The machine that was checked: `this host`, or the name of a server.
    subject: String,
    /// Whether all checks passed.
    fit: bool,
    /// The checks.
    checks: Vec<Check>,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Check {
    /// What is checked.
    pub(crate) what: &'static str,
    /// What Marvin found; null if the check failed.
    pub(crate) found: Option<String>,
    /// The problem; null if the check passed.
    pub(crate) problem: Option<Problem>,
}

/// A problem and its fix.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Problem {
    /// What is wrong.
    pub(crate) wrong: String,
    /// How to fix it.
    pub(crate) fix: String,
}

impl Check {
    /// Returns a check with its result.
    pub(crate) fn new(what: &'static str, result: Result<String, Problem>) -> Self {
        match result {
            Ok(found) => Self { what, found: Some(found), problem: None },
            Err(problem) => Self { what, found: None, problem: Some(problem) },
        }
    }
}

impl DoctorDocument {
    /// Returns the document of checks.
    pub(crate) fn new(subject: &str, checks: Vec<Check>) -> Self {
        let subject = subject.to_owned();
        let fit = checks.iter().all(|check| check.problem.is_none());
        Self { schema_version: SCHEMA_VERSION, kind: "doctor", subject, fit, checks }
    }

    /// Tells whether all checks passed.
    pub(crate) fn is_fit(&self) -> bool {
        self.fit
    }
}

impl Listing for DoctorDocument {
    fn text(&self, _: &Styles) -> String {
        let line = |check: &Check| match &check.problem {
            None => format!("ok    {:<11} {}\n", check.what, check.found.as_deref().unwrap_or_default()),
            Some(Problem { wrong, fix }) => {
                format!("WRONG {:<11} {wrong}\n      {:<11} fix: {fix}\n", check.what, "")
            }
        };
        let end = if self.fit { "is fit" } else { "is not fit yet" };
        self.checks.iter().map(line).chain([format!("{} {end}\n", self.subject)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Check, DoctorDocument, Problem};
    use crate::lists::Listing as _;
    use report::render::Styles;

    #[test]
    fn failed_checks_have_their_fix() {
        let problem = Problem { wrong: "not found".to_owned(), fix: "sudo apt-get install dpkg".to_owned() };
        let checks = vec![Check::new("disk", Ok("9000 MB free".to_owned())), Check::new("dpkg-deb", Err(problem))];
        let document = DoctorDocument::new("this host", checks);
        assert!(!document.is_fit());
        insta::assert_snapshot!(document.text(&Styles::plain()));
    }
}
