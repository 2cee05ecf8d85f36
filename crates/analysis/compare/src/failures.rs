//! Failures of kernels, grouped: a kernel that does not boot fails alike in every workload.

use std::collections::BTreeMap;

use model::{Stage, SubjectFailure};

use crate::comparison::{Failure, Occurrence};

#[derive(Debug, Default)]
pub(crate) struct Failures {
    pub(crate) all: Vec<Failure>,
    found: BTreeMap<(usize, Stage, String), usize>,
}

impl Failures {
    /// Adds a failure and returns its index in the list.
    pub(crate) fn note(
        &mut self,
        kernel: usize,
        failure: &SubjectFailure,
        occurrence: Occurrence,
    ) -> usize {
        let key = (kernel, failure.stage, failure.reason.to_string());
        let place = *self.found.entry(key).or_insert_with(|| {
            self.all.push(Failure {
                kernel,
                stage: failure.stage,
                reason: failure.reason.clone(),
                console_tail: failure.console_tail.clone(),
                occurrences: Vec::new(),
            });
            self.all.len() - 1
        });
        self.all[place].occurrences.push(occurrence);
        place
    }
}
