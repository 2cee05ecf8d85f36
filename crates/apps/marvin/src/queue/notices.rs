//! Delivers notices of the queue, and reminds people of reservations that end.

use std::collections::BTreeMap;

use config::ConfigFile;
use service::{Delivered, ServiceError};
use store::{Location, Store};

use super::RegressionReporter;
use crate::servers::reserved;
use crate::session::{About, LastingState, LogLevel, Session, now};

/// Delivers notices again and again; does not repeat why it cannot.
#[derive(Debug, Default)]
pub(crate) struct Courier {
    regressions: RegressionReporter,
    trouble: LastingState,
    blind: LastingState,
    reminders: LastingState,
    channels: BTreeMap<String, LastingState>,
}

/// Delivers pending notices, and reports failures.
pub(crate) fn deliver(
    store: &Store,
    site: &ConfigFile,
    session: &Session,
) -> Result<Delivered, ServiceError> {
    Courier::default().deliver(store, site, session)
}

impl Courier {
    /// Looks for regressions, delivers what waits, and says what fails.
    pub(crate) fn work(&mut self, location: &Location, site: &ConfigFile, session: &Session) {
        let delivered = Store::open(location)
            .map_err(ServiceError::from)
            .and_then(|store| {
                self.look(&store, site, session)?;
                self.deliver(&store, site, session)
            });
        let about = About::default();
        match delivered {
            Ok(_) => self.trouble.end(about, "notices can be delivered again"),
            Err(error) => {
                let text = format!("cannot deliver notices now: {error}; Marvin retries");
                self.trouble.hold(LogLevel::Warn, about, &text);
            }
        }
    }

    fn look(
        &mut self,
        store: &Store,
        site: &ConfigFile,
        session: &Session,
    ) -> Result<(), ServiceError> {
        let now_unix = store.time(now())?;
        match self.regressions.report(store, site, session, now_unix) {
            Ok(_) => self
                .blind
                .end(About::default(), "regressions can be looked for again"),
            Err(error) => {
                let text = format!("cannot look for regressions now: {error:#}");
                self.blind.hold(LogLevel::Warn, About::default(), &text);
            }
        }
        Ok(())
    }

    /// Delivers what waits, and says which channels fail.
    pub(crate) fn deliver(
        &mut self,
        store: &Store,
        site: &ConfigFile,
        session: &Session,
    ) -> Result<Delivered, ServiceError> {
        match remind(store, site, session) {
            Ok(()) => self
                .reminders
                .end(About::default(), "reservations can be read again"),
            Err(error) => {
                let text = format!("cannot see now which reservations end: {error}");
                self.reminders.hold(LogLevel::Warn, About::default(), &text);
            }
        }
        let delivered = service::deliver(store, &site.settings, &|| {
            store.time(now()).unwrap_or_else(|_| now())
        })?;
        for (channel, why) in &delivered.failed {
            let text = format!("notify {channel}: {why}; Marvin will retry");
            let state = self.channels.entry(channel.clone()).or_default();
            state.hold(LogLevel::Warn, About::default(), &text);
        }
        if !self.channels.is_empty() {
            self.end_failures(store)?;
        }
        Ok(delivered)
    }

    /// Ends the trouble of channels that have taken what had failed.
    fn end_failures(&mut self, store: &Store) -> Result<(), ServiceError> {
        let waiting = store.list_undelivered()?;
        self.channels.retain(|channel, state| {
            let mut failed = waiting.iter().filter(|one| !one.failure.is_empty());
            let still = failed.any(|one| one.channel == *channel);
            if !still {
                state.end(
                    About::default(),
                    &format!("notify {channel}: delivers again"),
                );
            }
            still
        });
        Ok(())
    }
}

/// Reminds people of reservations that end soon; those of a store on a server are there.
fn remind(store: &Store, site: &ConfigFile, session: &Session) -> anyhow::Result<()> {
    let reservations = reserved(session)?;
    Ok(service::remind(
        store,
        &site.settings.channels,
        &reservations.all,
        reservations.now_unix,
    )?)
}
