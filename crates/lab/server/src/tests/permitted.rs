//! A server that another user takes meanwhile is touched no more.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use machine::Backend;

use super::{Does, Fake, boot_and_run_on};
use crate::permit::Permit;

/// A right that is lost after so many steps.
#[derive(Debug)]
struct Steps(Mutex<usize>);

impl Permit for Steps {
    fn renew(&self, _: u64) -> Result<(), String> {
        let mut left = self.0.lock().unwrap();
        *left = left
            .checked_sub(1)
            .ok_or("testbox is reserved: ben@lab has it for 1 h")?;
        Ok(())
    }
}

#[test]
fn server_that_others_took_is_not_touched() {
    let mut last = BTreeSet::new();
    for steps in 0..60 {
        let home = tempfile::tempdir().unwrap();
        let fake = Fake::new(Does::HangsInJob);
        fake.state().permit = Some(Arc::new(Steps(Mutex::new(steps))));
        if let Ok(server) = fake.open(&home) {
            drop(boot_and_run_on(server, &home).1.close());
        }
        // What is closed and dropped after the last permitted step does nothing either.
        let done = fake.state().log.len();
        assert!(done <= steps, "{steps}: {}", fake.log());
        last.extend(fake.state().log.last().cloned());
    }
    for step in [
        "describe", "install", "boot", "prepare", "job", "power", "leave",
    ] {
        assert!(
            last.contains(step),
            "{step} was never the last step: {last:?}"
        );
    }
}
