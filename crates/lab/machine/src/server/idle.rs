//! An idle server is shut down and switched off.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use model::ServerSettings;

use super::control::{Control, Outside};
use super::permit::{Permit, Permitted};
use super::problem::ServerProblem;
use super::reach::Reach;
use super::{LOOK, ssh};

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
    let reach = Permitted::new(
        ssh::Ssh::new(server.clone(), home, None, agent),
        permit.clone(),
    );
    stop(
        &reach,
        &Permitted::new(Outside::without_console(server, home), permit),
        LOOK,
    )
}

/// Shuts a server down and switches it off; `look` is the time between two looks at its power.
pub(super) fn stop(
    reach: &dyn Reach,
    control: &dyn Control,
    look: Duration,
) -> Result<(), ServerProblem> {
    // Takes the hold on its disk, or is refused.
    reach.facts()?;
    let begun = reach.shut_down();
    if begun.as_ref().is_err_and(|problem| !problem.is_silence()) {
        // It stays on: others may use it.
        drop(reach.leave());
        return begun;
    }
    for _ in 0..SHUT_DOWN_S / LOOK.as_secs() {
        std::thread::sleep(look);
        if control.is_off()? {
            return Ok(());
        }
    }
    // Whether it took the command is not known if the connection was cut: then it may be in use.
    begun?;
    control.switch_power(false)
}
