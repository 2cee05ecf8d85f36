//! Servers of marvin.toml, for the commands that act on them.

mod consoles;
mod reservations;

pub(crate) use consoles::record_consoles;
use model::ServerSettings;
pub(crate) use reservations::{Reserved, check_ours, describe_reservation, reserved};

use crate::exit::WrongInput;
use crate::select::did_you_mean;
use crate::session::Session;

/// Returns a server of marvin.toml.
pub(crate) fn find_server(session: &Session, name: &str) -> anyhow::Result<ServerSettings> {
    let servers = &session.config()?.settings.servers;
    let guess = did_you_mean(servers.iter().map(|server| &*server.name), name);
    Ok(servers
        .iter()
        .find(|server| server.name == name)
        .cloned()
        .ok_or_else(|| {
            WrongInput(format!(
                "no server `{}`{guess}: it needs a [[machine]] in marvin.toml",
                name.escape_debug()
            ))
        })?)
}
