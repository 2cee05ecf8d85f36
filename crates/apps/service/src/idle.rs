//! Switches idle servers off, and sees which are off. Whatever measures on one of them switches it
//! on again.
//!
//! The queue, the reservations and the power control say whether a server is idle; the model
//! decides. The time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{ServerSettings, ServerUse, UnixTime};
use server::{Power, PowerState, is_off};
use store::{Listed, Location, Store};

use crate::ServiceError;
use crate::messages::format_idle_event;

/// Most time between two looks at the servers (s).
const LOOK_S: u64 = 60;
/// Interval between checks whether the worker has ended.
const END_LOOK: Duration = Duration::from_millis(100);

/// The power of servers.
pub trait ServerPower {
    /// Returns the state of a server's power.
    ///
    /// # Errors
    /// If it cannot be asked for: why.
    fn state(&self, server: &ServerSettings) -> Result<PowerState, String> {
        let Some(settings) = &server.power else {
            return Ok(PowerState::Unknown);
        };
        Power::new(&server.name, settings)
            .state()
            .map_err(|error| error.to_string())
    }

    /// Switches a server off that no user, worker or other lab has.
    ///
    /// # Errors
    /// If one has it, or it cannot be switched off: why.
    fn switch_off(&self, server: &ServerSettings) -> Result<(), String>;
}

/// An event of idle servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IdleEvent {
    /// A server was switched off.
    Off(String),
    /// A server stays on.
    StaysOn { name: String, why: String },
}

/// The servers that are switched off when they are idle.
struct IdleServers<'a> {
    servers: Vec<&'a ServerSettings>,
    /// Their jobs and reservations.
    store: &'a Store,
    power: &'a dyn ServerPower,
    /// Since when a server is seen on.
    on_since_unix: BTreeMap<&'a str, UnixTime>,
    /// Why the power of a server could not be asked for, as reported last.
    reported: BTreeMap<&'a str, String>,
}

impl std::fmt::Debug for IdleServers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdleServers")
            .field("servers", &self.servers)
            .finish_non_exhaustive()
    }
}

impl<'a> IdleServers<'a> {
    /// Takes those of `servers` that have `idle_off` and a name in `machines`.
    #[must_use]
    fn new(
        servers: &'a [ServerSettings],
        machines: &[String],
        store: &'a Store,
        power: &'a dyn ServerPower,
    ) -> Self {
        let servers = servers
            .iter()
            .filter(|server| server.idle_off_s.is_some() && machines.contains(&server.name))
            .collect();
        Self {
            servers,
            store,
            power,
            on_since_unix: BTreeMap::new(),
            reported: BTreeMap::new(),
        }
    }

    /// Returns the shortest time after which one of them is switched off (s); `None` without
    /// servers.
    #[must_use]
    fn shortest_s(&self) -> Option<u64> {
        self.servers
            .iter()
            .filter_map(|server| server.idle_off_s)
            .min()
    }

    /// Looks at all servers, and switches off those that have been idle for long enough.
    ///
    /// # Errors
    /// If the store fails.
    fn look(&mut self, now_unix: UnixTime, notify: &dyn Fn(IdleEvent)) -> Result<(), ServiceError> {
        let jobs = self.store.queued_jobs(Listed::Open)?;
        for server in self.servers.clone() {
            let Some(idle_off_s) = server.idle_off_s else {
                continue;
            };
            let Some(on_since_unix) = self.on_since(server, now_unix, notify) else {
                continue;
            };
            let has_job = jobs.iter().any(|job| job.new.work.machine == server.name);
            let latest = self.store.latest_reservation(&server.name)?;
            let use_now = ServerUse {
                on_since_unix,
                has_job,
                reservation: latest.as_ref(),
            };
            if !use_now.is_over(idle_off_s, now_unix) {
                continue;
            }
            match self.power.switch_off(server) {
                Ok(()) => {
                    self.on_since_unix.remove(&*server.name);
                    notify(IdleEvent::Off(server.name.clone()));
                }
                Err(why) => {
                    // It is tried again when it has been idle for as long once more.
                    self.on_since_unix.insert(&server.name, now_unix);
                    notify(IdleEvent::StaysOn {
                        name: server.name.clone(),
                        why,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns since when a server is on, as far as is known; `None` if it is off, or that is not
    /// known.
    fn on_since(
        &mut self,
        server: &'a ServerSettings,
        now_unix: UnixTime,
        notify: &dyn Fn(IdleEvent),
    ) -> Option<UnixTime> {
        let why = match self.power.state(server) {
            Ok(PowerState::On) => {
                self.reported.remove(&*server.name);
                return Some(*self.on_since_unix.entry(&server.name).or_insert(now_unix));
            }
            Ok(PowerState::Off) => {
                self.on_since_unix.remove(&*server.name);
                return None;
            }
            Ok(PowerState::Changing) => return None,
            Ok(PowerState::Unknown) => {
                "what switches its power cannot say whether it is on".to_owned()
            }
            Err(why) => why,
        };
        if self.reported.get(&*server.name) != Some(&why) {
            notify(IdleEvent::StaysOn {
                name: server.name.clone(),
                why: why.clone(),
            });
            self.reported.insert(&server.name, why);
        }
        None
    }
}

/// What a look at idle servers gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IdleReport {
    /// Something happened to a server, or its power cannot be asked for.
    Server { name: String, text: String },
    /// All servers were looked at.
    Looked,
    /// They could not be looked at: why.
    Failed(String),
}

/// Switches servers off that a worker of these machines may use, until the worker has ended.
/// `clock` reads this host's time.
pub fn switch_idle_off(
    location: &Location,
    servers: &[ServerSettings],
    machines: &[String],
    power: &dyn ServerPower,
    ended: &AtomicBool,
    clock: fn() -> UnixTime,
    report: &dyn Fn(IdleReport),
) {
    if servers.iter().all(|server| server.idle_off_s.is_none()) {
        return;
    }
    let store = loop {
        match Store::open(location) {
            Ok(store) => break store,
            Err(error) => report(failed(&error.into())),
        }
        if !wait(LOOK_S, ended) {
            return;
        }
    };
    let mut idle = IdleServers::new(servers, machines, &store, power);
    let Some(shortest_s) = idle.shortest_s() else {
        return;
    };
    while wait(shortest_s.min(LOOK_S), ended) {
        // On a server, its clock decides about reservations.
        let looked = store.time(clock()).map_err(ServiceError::from);
        let looked =
            looked.and_then(|now_unix| idle.look(now_unix, &|event| report(report_of(&event))));
        report(match looked {
            Ok(()) => IdleReport::Looked,
            Err(error) => failed(&error),
        });
    }
}

fn report_of(event: &IdleEvent) -> IdleReport {
    let (IdleEvent::Off(name) | IdleEvent::StaysOn { name, .. }) = event;
    IdleReport::Server {
        name: name.clone(),
        text: format_idle_event(event),
    }
}

fn failed(error: &ServiceError) -> IdleReport {
    IdleReport::Failed(format!("cannot look for idle servers now: {error}"))
}

/// Reports again and again which servers are off, of those that are switched off when they are
/// idle. Returns only if none is.
pub fn watch_power(servers: &[ServerSettings], report: &dyn Fn(BTreeSet<String>)) {
    let servers: Vec<&ServerSettings> = servers
        .iter()
        .filter(|server| server.idle_off_s.is_some())
        .collect();
    while !servers.is_empty() {
        report(find_off(&servers));
        std::thread::sleep(Duration::from_secs(LOOK_S));
    }
}

/// Returns the servers that are off. A power control that does not answer takes seconds: all are
/// asked at once.
fn find_off(servers: &[&ServerSettings]) -> BTreeSet<String> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = servers
            .iter()
            .map(|server| scope.spawn(move || is_off(server)))
            .collect();
        servers
            .iter()
            .zip(threads)
            .filter_map(|(server, thread)| {
                let is_off = thread.join().unwrap_or_default();
                is_off.then(|| server.name.clone())
            })
            .collect()
    })
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

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use model::{NewJob, PowerSettings, Reservation, ServerSettings, UnixTime, Work};
    use server::PowerState;
    use store::Store;

    use super::{IdleEvent, IdleServers, ServerPower};

    struct Bmc {
        state: Cell<Option<PowerState>>,
        refuses: Cell<bool>,
    }

    impl ServerPower for Bmc {
        fn state(&self, _: &ServerSettings) -> Result<PowerState, String> {
            self.state.get().ok_or_else(|| "no answer".to_owned())
        }

        fn switch_off(&self, _: &ServerSettings) -> Result<(), String> {
            if self.refuses.get() {
                return Err("testbox is held by ben@lab".to_owned());
            }
            self.state.set(Some(PowerState::Off));
            Ok(())
        }
    }

    /// A server that is on.
    fn on() -> Bmc {
        Bmc {
            state: Cell::new(Some(PowerState::On)),
            refuses: Cell::new(false),
        }
    }

    fn servers() -> Vec<ServerSettings> {
        let idle = "idle_off = \"10m\"\n";
        let text = [("testbox", idle), ("other", idle), ("always", "")]
            .map(|(name, more)| {
                format!(
                    "[[machine]]\nname = \"{name}\"\nhost = \"{name}\"\n{more}[machine.power]\nqmp = \"socket\"\n"
                )
            })
            .concat();
        config::settings(&text, &model::ToolRows::default())
            .unwrap()
            .servers
    }

    /// Looks at these times, in seconds, and returns what happened.
    fn looked(store: &Store, bmc: &Bmc, times: &[i64]) -> String {
        let servers = servers();
        let events = RefCell::new(Vec::new());
        let mut idle = IdleServers::new(
            &servers,
            &["testbox".to_owned(), "always".to_owned()],
            store,
            bmc,
        );
        assert_eq!(idle.shortest_s(), Some(600));
        for now in times {
            idle.look(UnixTime::new(*now), &|event| {
                let text = match event {
                    IdleEvent::Off(name) => format!("{now} {name} off"),
                    IdleEvent::StaysOn { name, why } => format!("{now} {name} on: {why}"),
                };
                events.borrow_mut().push(text);
            })
            .unwrap();
        }
        events.into_inner().join("\n")
    }

    fn open() -> (tempfile::TempDir, Store) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::open(home.path()).unwrap();
        (home, store)
    }

    #[test]
    fn idle_server_of_this_worker_is_switched_off() {
        let (_home, store) = open();
        assert_eq!(
            looked(&store, &on(), &[0, 60, 599, 600, 660]),
            "600 testbox off"
        );
    }

    #[test]
    fn used_server_stays_on_until_it_is_idle() {
        let (_home, store) = open();
        let mine = Reservation {
            machines: vec!["testbox".into()],
            holder: "anna@lab".into(),
            ..Reservation::default()
        };
        store.reserve(&mine, 1_000, UnixTime::new(0)).unwrap();
        assert_eq!(
            looked(&store, &on(), &[0, 600, 999, 1_599, 1_600]),
            "1600 testbox off"
        );
        let work = Work {
            kernel: "deb:6.12".parse().unwrap(),
            tree: String::new(),
            config: "micro".into(),
            suite: "micro".into(),
            workloads: vec!["getppid".into()],
            seeds: 1,
            machine: "testbox".to_owned(),
        };
        let new = NewJob {
            work,
            plan: String::new(),
            priority: 0,
            rank: 0,
            attempts_max: 2,
            deadline_s: 100,
        };
        store.queue_job(&new, UnixTime::new(2_000)).unwrap();
        assert_eq!(
            looked(&store, &on(), &[2_000, 9_000]),
            "",
            "a job waits for it"
        );
    }

    #[test]
    fn servers_of_unknown_power_are_not_off() {
        let all =
            [("down", "echo off"), ("up", "echo on"), ("mute", "exit 1")].map(|(name, command)| {
                ServerSettings {
                    power: Some(PowerSettings::Command(
                        ["sh", "-c", command].map(str::to_owned).to_vec(),
                    )),
                    name: name.into(),
                    ..servers().remove(0)
                }
            });
        assert_eq!(super::find_off(&all.each_ref()), ["down".to_owned()].into());
    }

    #[test]
    fn server_of_others_is_tried_again_later() {
        let (_home, store) = open();
        let held = Bmc {
            refuses: Cell::new(true),
            ..on()
        };
        let events = looked(&store, &held, &[0, 600, 660, 1_199, 1_200]);
        assert_eq!(
            events,
            "600 testbox on: testbox is held by ben@lab\n1200 testbox on: testbox is held by ben@lab"
        );
    }

    #[test]
    fn server_of_unknown_power_stays_on() {
        let (_home, store) = open();
        let mute = Bmc {
            state: Cell::new(Some(PowerState::Unknown)),
            ..on()
        };
        let events = looked(&store, &mute, &[0, 600, 9_000]);
        assert_eq!(
            events,
            "0 testbox on: what switches its power cannot say whether it is on"
        );
        let silent = Bmc {
            state: Cell::new(None),
            ..on()
        };
        assert_eq!(
            looked(&store, &silent, &[0, 9_000]),
            "0 testbox on: no answer"
        );
    }
}
