//! An idle server is shut down and switched off.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::ServerSettings;

use crate::POLL_INTERVAL;
use crate::permit::{Permit, Permitted};
use crate::power_and_console::{Control, PowerAndConsole};
use crate::problem::ServerProblem;
use crate::remote::RemoteHost;
use crate::remote::ssh;

/// How long a server may take to shut down by itself (s): systemd waits 90 s for a service. Then
/// its power is switched off.
const SHUT_DOWN_S: u64 = 180;

/// Shuts a server down and switches it off, verified, if no other lab holds it. `home` is the lab's
/// data directory, and the permit keeps users of the same store away.
///
/// # Errors
/// If another lab holds it, it does not answer, the permit is lost, or the power does not follow:
/// it stays on then, unless only the verification failed.
pub fn switch_off(
    server: &ServerSettings,
    home: &Path,
    agent: &[u8],
    permit: Arc<dyn Permit>,
) -> Result<(), ServerProblem> {
    let permit = Some(permit);
    let remote = Permitted::new(
        ssh::Ssh::new(server.clone(), home, None, agent),
        permit.clone(),
    );
    stop(
        &remote,
        &Permitted::new(PowerAndConsole::without_console(server, home), permit),
        POLL_INTERVAL,
    )
}

/// Shuts a server down and switches it off; `look` is the time between two looks at its power.
pub(crate) fn stop(
    remote: &dyn RemoteHost,
    control: &dyn Control,
    look: Duration,
) -> Result<(), ServerProblem> {
    // Takes the hold on its disk, or is refused.
    remote.facts()?;
    let begun = remote.shut_down();
    if begun.as_ref().is_err_and(|problem| !problem.is_silence()) {
        // It stays on: others may use it.
        drop(remote.leave());
        return begun;
    }
    // Counted and not timed: tests look more often, and wait no three minutes.
    for _ in 0..SHUT_DOWN_S / POLL_INTERVAL.as_secs() {
        std::thread::sleep(look);
        if control.is_off()? {
            return Ok(());
        }
    }
    // Whether it took the command is not known if the connection was cut: then it may be in use.
    begun?;
    control.switch_power(false)
}
