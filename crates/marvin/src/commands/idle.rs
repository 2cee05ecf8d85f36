//! Switches idle servers off while `marvin work` works.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control::{Power, PowerState};
use model::ServerSettings;
use site::{IdleServers, ServerPower, SiteError};
use store::{Location, Store};

use super::compare::now;
use crate::say;

/// Time between two looks at the servers, unless one is to be switched off sooner (s).
const LOOK_S: u64 = 60;
/// Interval between checks whether the worker has ended.
const END_LOOK: Duration = Duration::from_millis(100);

/// The power control of servers, and the lab that switches them off.
struct Switched<'a> {
    location: &'a Location,
    home: &'a Path,
}

impl ServerPower for Switched<'_> {
    fn state(&self, server: &ServerSettings) -> Result<PowerState, String> {
        let Some(settings) = &server.power else { return Ok(PowerState::Unknown) };
        Power::new(&server.name, settings).state().map_err(|error| error.to_string())
    }

    fn switch_off(&self, server: &ServerSettings) -> Result<(), String> {
        lab::switch_off(self.location.clone(), server, self.home).map_err(|error| error.to_string())
    }
}

/// Switches servers off that a worker of these machines may use, until the worker has ended.
pub(super) fn switch_idle_off(
    location: &Location,
    home: &Path,
    servers: &[ServerSettings],
    machines: &[String],
    ended: &AtomicBool,
) {
    if servers.iter().all(|server| server.idle_off_s.is_none()) {
        return;
    }
    let failed = |error: SiteError| say(&format!("cannot look for idle servers now: {error}"));
    let (power, store) = (
        Switched { location, home },
        loop {
            match Store::open(location) {
                Ok(store) => break store,
                Err(error) => failed(error.into()),
            }
            if !wait(LOOK_S, ended) {
                return;
            }
        },
    );
    let mut idle = IdleServers::new(servers, machines, &store, &power);
    let Some(shortest_s) = idle.shortest_s() else { return };
    while wait(shortest_s.min(LOOK_S), ended) {
        // On a server, its clock decides about reservations.
        let looked = store.time(now()).map_err(SiteError::from);
        let looked = looked.and_then(|now_unix| idle.look(now_unix, &|event| say(&site::format_idle_event(&event))));
        if let Err(error) = looked {
            failed(error);
        }
    }
}

/// Waits; returns whether the worker goes on.
fn wait(seconds: u64, ended: &AtomicBool) -> bool {
    let looks = u128::from(seconds) * 1000 / END_LOOK.as_millis();
    for _ in 0..looks {
        if ended.load(Ordering::Relaxed) {
            return false;
        }
        std::thread::sleep(END_LOOK);
    }
    !ended.load(Ordering::Relaxed)
}
