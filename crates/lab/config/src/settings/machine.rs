//! Servers: the keys of `[[machine]]`.

use std::path::PathBuf;

use model::{BootOnce, ConsoleSettings, PowerSettings, ServerSettings};

use super::check::Record;
use super::power::power;
use super::{deploy, owned};
use crate::toml_document::Mistake;

/// Names of machines that need no settings.
const TAKEN: [&str; 4] = ["exact", "exact-smp", "vm", "local"];

pub(super) fn server(record: &Record) -> Result<ServerSettings, Mistake> {
    let name = owned(record, "name");
    if TAKEN.contains(&name.as_str()) {
        let what = format!("`{name}` is a machine of Marvin: give the server another name");
        return Err(Mistake::new(record.span_of("name"), what));
    }
    let host = owned(record, "host");
    // ssh would read it as an option, and a shell as several words.
    if host.is_empty()
        || host.starts_with('-')
        || !host
            .chars()
            .all(|c| c.is_ascii_graphic() && !"'\"`$\\".contains(c))
    {
        let what = format!(
            "expected a host for ssh, such as root@testbox.lab, not `{}`",
            host.escape_debug()
        );
        return Err(Mistake::new(record.span_of("host"), what));
    }
    let cpus = record.text("cpus").map(str::to_owned);
    if let Some(wrong) = cpus.as_deref().filter(|cpus| !is_list(cpus)) {
        let what = format!(
            "expected processors such as 2-7 or 1,3, not `{}`",
            wrong.escape_debug()
        );
        return Err(Mistake::new(record.span_of("cpus"), what));
    }
    let power = power(record.one("power"))?;
    let console = console(record.one("console"), power.as_ref())?;
    let slurm_node = record.text("slurm_node").map(str::to_owned);
    if let Some(wrong) = slurm_node.as_deref().filter(|node| !is_node(node)) {
        let what = format!(
            "expected the name of a Slurm node, not `{}`",
            wrong.escape_debug()
        );
        return Err(Mistake::new(record.span_of("slurm_node"), what));
    }
    let ssh_config = record.text("ssh_config").map(PathBuf::from);
    let has_power = power.is_some();
    Ok(ServerSettings {
        name,
        host,
        ssh_config,
        boot: boot(record)?,
        cpus,
        boot_s: record.whole("boot_deadline"),
        check_every_s: record
            .has("check_every")
            .then(|| record.whole("check_every")),
        idle_off_s: idle_off(record, power.as_ref())?,
        collector: None,
        power,
        console,
        slurm_node,
        deploy: deploy::settings(record.one("deploy"), has_power)?,
    })
}

/// Returns how long it may be idle until it is switched off (s).
fn idle_off(record: &Record, power: Option<&PowerSettings>) -> Result<Option<u64>, Mistake> {
    if !record.has("idle_off") {
        return Ok(None);
    }
    if power.is_none() {
        let what = "`idle_off` needs a [machine.power] that switches the server on again";
        return Err(Mistake::new(record.span_of("idle_off"), what));
    }
    Ok(Some(record.whole("idle_off")))
}

/// Parses the table, if it has anything in it.
fn console(
    record: &Record,
    power: Option<&PowerSettings>,
) -> Result<Option<ConsoleSettings>, Mistake> {
    let ways: Vec<&str> = ["command", "tcp", "ipmi"]
        .into_iter()
        .filter(|way| record.has(way))
        .collect();
    let is_lost = |(key, way): &(&str, &str)| record.has(key) && ways.as_slice() != [*way];
    if let Some((key, way)) = [("break", "command"), ("telnet", "tcp")]
        .into_iter()
        .find(is_lost)
    {
        return Err(Mistake::new(
            record.span_of(key),
            format!("`{key}` belongs to `{way}`"),
        ));
    }
    Ok(match ways.as_slice() {
        [] => None,
        ["command"] => {
            let command = record.strings("command");
            let sends_break = record.strings("break");
            Some(ConsoleSettings::Command {
                command,
                sends_break,
            })
        }
        ["tcp"] => {
            let address = owned(record, "tcp");
            let port = address
                .rsplit_once(':')
                .and_then(|(_, port)| port.parse::<u16>().ok());
            if port.is_none() {
                let what = format!("expected HOST:PORT, not `{}`", address.escape_debug());
                return Err(Mistake::new(record.span_of("tcp"), what));
            }
            Some(ConsoleSettings::Tcp {
                address,
                is_telnet: record.flag("telnet"),
            })
        }
        ["ipmi"] if !record.flag("ipmi") => None,
        ["ipmi"] if matches!(power, Some(PowerSettings::Ipmi(_))) => Some(ConsoleSettings::Ipmi),
        ["ipmi"] => {
            let what = "the console by IPMI needs the BMC of [machine.power]: give that an `ipmi`";
            return Err(Mistake::new(record.span_of("ipmi"), what));
        }
        [_, second, ..] => {
            return Err(Mistake::new(
                record.span_of(second),
                "a [machine.console] has one of `command`, `tcp` and `ipmi`",
            ));
        }
        [_] => None,
    })
}

fn boot(record: &Record) -> Result<BootOnce, Mistake> {
    let command = record.has("boot_command");
    Ok(match (record.text("boot"), command) {
        (Some("command"), true) => BootOnce::Command(record.strings("boot_command")),
        (Some("command"), false) => {
            return Err(Mistake::new(
                record.span_of("boot"),
                "boot = \"command\" without `boot_command`",
            ));
        }
        (_, true) => {
            return Err(Mistake::new(
                record.span_of("boot_command"),
                "`boot_command` without boot = \"command\"",
            ));
        }
        (Some("grub-once"), _) => BootOnce::Grub,
        (Some("systemd-boot-once"), _) => BootOnce::SystemdBoot,
        _ => BootOnce::Kexec,
    })
}

/// Returns whether a text names one host: sbatch reads other signs as options and lists.
fn is_node(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

/// Returns whether a text is a list of processors: `2-7,9`.
fn is_list(text: &str) -> bool {
    text.split(',').all(|part| {
        part.split_once('-')
            .map_or(is_short_number(part), |(a, b)| {
                is_short_number(a) && is_short_number(b)
            })
    })
}

fn is_short_number(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}
