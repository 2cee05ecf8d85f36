//! Chooses machines by name: Marvin's own, or servers of marvin.toml.

use lab::Wanted;
use machine::Smp;

use super::did_you_mean;
use crate::exit::WrongInput;
use crate::options::{MachineOptions, NoisyOptions, OWN_MACHINES, own_machine};
use crate::session::Session;

/// Returns the machines to open with their names: Marvin's own, or servers of marvin.toml.
pub(crate) fn choose_machines(
    session: &Session,
    on: &MachineOptions,
) -> anyhow::Result<Vec<(String, Wanted)>> {
    find_machines(session, &on.names(), &on.noisy)
}

/// Processors that exact-smp may have.
const SMP: std::ops::RangeInclusive<u32> = 2..=4;

/// Returns the machines of these names.
pub(crate) fn find_machines(
    session: &Session,
    names: &[&str],
    noisy: &NoisyOptions,
) -> anyhow::Result<Vec<(String, Wanted)>> {
    let servers = match names.iter().all(|name| own_machine(name, noisy).is_some()) {
        true => &[],
        false => &*session.config()?.settings.servers,
    };
    let wanted = |name: &str| match own_machine(name, noisy) {
        Some(Wanted::ExactSmp(Smp { cpus, .. })) if !SMP.contains(&cpus) => {
            let text = format!("exact-smp has 2 to 4 processors, not {cpus}: --cpus 2");
            Err(WrongInput(text).into())
        }
        Some(wanted) => Ok((name.to_owned(), wanted)),
        None => match servers.iter().find(|server| server.name == name) {
            Some(server) => Ok((name.to_owned(), Wanted::Server(Box::new(server.clone())))),
            None => {
                let known = OWN_MACHINES
                    .iter()
                    .map(|(name, _)| *name)
                    .chain(servers.iter().map(|server| &*server.name));
                let guess = did_you_mean(known, name);
                let text = format!(
                    "no machine `{name}`{guess}: Marvin has exact, exact-smp, vm and local, and those of [[machine]] in marvin.toml"
                );
                Err(WrongInput(text).into())
            }
        },
    };
    names.iter().map(|name| wanted(name)).collect()
}
