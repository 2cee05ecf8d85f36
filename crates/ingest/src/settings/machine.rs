//! Servers: the keys of `[[machine]]`.

use std::path::PathBuf;

use model::{BootOnce, ServerSettings};

use super::check::Record;
use super::owned;
use super::power::power;
use crate::tools::Fault;

/// Names of machines that need no settings.
const TAKEN: [&str; 3] = ["exact", "vm", "local"];

/// Parses a server.
pub(super) fn server(record: &Record) -> Result<ServerSettings, Fault> {
    let name = owned(record, "name");
    if TAKEN.contains(&name.as_str()) {
        let what = format!("`{name}` is a machine of Marvin: give the server another name");
        return Err(Fault::new(record.span_of("name"), what));
    }
    let host = owned(record, "host");
    // ssh would read it as an option, and a shell as several words.
    if host.is_empty() || host.starts_with('-') || !host.chars().all(|c| c.is_ascii_graphic() && !"'\"`$\\".contains(c))
    {
        let what = format!("expected a host for ssh, such as root@testbox.lab, not `{}`", host.escape_debug());
        return Err(Fault::new(record.span_of("host"), what));
    }
    let cpus = record.text("cpus").map(str::to_owned);
    if let Some(wrong) = cpus.as_deref().filter(|cpus| !is_list(cpus)) {
        let what = format!("expected processors such as 2-7 or 1,3, not `{}`", wrong.escape_debug());
        return Err(Fault::new(record.span_of("cpus"), what));
    }
    let power = power(record.one("power"))?;
    let console = record.has("console").then(|| record.words("console"));
    let ssh_config = record.text("ssh_config").map(PathBuf::from);
    Ok(ServerSettings {
        name,
        host,
        ssh_config,
        boot: boot(record)?,
        cpus,
        boot_s: record.whole("boot_deadline"),
        collector: None,
        power,
        console,
    })
}

fn boot(record: &Record) -> Result<BootOnce, Fault> {
    let command = record.has("boot_command");
    Ok(match (record.text("boot"), command) {
        (Some("command"), true) => BootOnce::Command(record.words("boot_command")),
        (Some("command"), false) => {
            return Err(Fault::new(record.span_of("boot"), "boot = \"command\" without `boot_command`"));
        }
        (_, true) => {
            return Err(Fault::new(record.span_of("boot_command"), "`boot_command` without boot = \"command\""));
        }
        (Some("grub-once"), _) => BootOnce::Grub,
        (Some("systemd-boot-once"), _) => BootOnce::SystemdBoot,
        _ => BootOnce::Kexec,
    })
}

/// Returns whether a text is a list of processors: `2-7,9`.
fn is_list(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.split(',').all(|part| part.split_once('-').map_or(is_number(part), |(a, b)| is_number(a) && is_number(b)))
}
