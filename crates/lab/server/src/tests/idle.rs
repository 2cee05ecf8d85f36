//! Idle servers are switched off, and on again when they are needed.

use std::sync::Arc;
use std::time::Duration;

use super::{Does, Fake};
use crate::idle::stop;
use crate::permit::{Permit, Permitted};

/// A right that another user has taken.
#[derive(Debug)]
struct Lost;

impl Permit for Lost {
    fn renew(&self, _: u64) -> Result<(), String> {
        Err("testbox is reserved: ben@lab has it for 1 h".to_owned())
    }
}

#[test]
fn idle_server_is_shut_down_then_off() {
    let fake = Fake::new(Does::Boots);
    stop(&fake, &fake, Duration::ZERO).unwrap();
    assert_eq!(
        (fake.log().as_str(), fake.state().is_off),
        ("shut down", true)
    );
    let stubborn = Fake::new(Does::Boots);
    stubborn.state().shuts_down = false;
    stop(&stubborn, &stubborn, Duration::ZERO).unwrap();
    assert_eq!(
        (stubborn.log().as_str(), stubborn.state().is_off),
        ("shut down, off", true)
    );
}

#[test]
fn server_of_others_stays_on() {
    let fake = Fake::new(Does::Boots);
    let permitted = || Permitted::new(fake.clone(), Some(Arc::new(Lost)));
    let refused = stop(&permitted(), &permitted(), Duration::ZERO)
        .unwrap_err()
        .to_string();
    assert_eq!(refused, "testbox is reserved: ben@lab has it for 1 h");
    let silent = Fake::new(Does::Boots);
    silent.state().answers = false;
    assert!(
        stop(&silent, &silent, Duration::ZERO).is_err(),
        "whether another lab holds it is not known"
    );
    assert_eq!((fake.log(), silent.log()), (String::new(), String::new()));
}

#[test]
fn measurement_switches_a_server_on() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Boots);
    (fake.state().is_off, fake.state().answers) = (true, false);
    drop(fake.open(&home).unwrap());
    assert_eq!(fake.log(), "on, describe, leave");
    // It is silent, and not off: its power is left alone.
    let silent = Fake::new(Does::Boots);
    silent.state().answers = false;
    assert!(silent.open(&home).is_err());
    assert_eq!(silent.log(), "");
}

#[test]
fn server_that_stays_silent_is_lost() {
    let home = tempfile::tempdir().unwrap();
    let fake = Fake::new(Does::Hangs);
    (fake.state().is_off, fake.state().answers) = (true, false);
    insta::assert_snapshot!(fake.open(&home).unwrap_err(), @"testbox is lost: after it was switched on it did not answer for 30 s; its own kernel is the default of the next start");
    assert_eq!(fake.log(), "on");
}
