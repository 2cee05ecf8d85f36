//! Delivers notices of the queue, and reminds people of reservations that end.

use config::ConfigFile;
use service::{Delivered, ServiceError};
use store::Store;

use crate::say;
use crate::servers::reserved;
use crate::session::{Session, now};

/// Delivers pending notices, and reports failures.
pub(crate) fn deliver(
    store: &Store,
    site: &ConfigFile,
    session: &Session,
) -> Result<Delivered, ServiceError> {
    if let Err(error) = remind(store, site, session) {
        say(&format!("cannot see now which reservations end: {error}"));
    }
    let delivered = service::deliver(store, &site.settings, &|| {
        store.time(now()).unwrap_or_else(|_| now())
    })?;
    for (channel, why) in &delivered.failed {
        say(&format!("notify {channel}: {why}; Marvin will retry"));
    }
    Ok(delivered)
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
