//! What switches the power of a server: the keys of `[machine.power]`.

use std::path::PathBuf;

use model::{Ipmi, PowerSettings, Redfish};

use super::check::Record;
use super::login::login;
use super::owned;
use crate::toml_document::Mistake;

/// The keys of which a table has one.
const WAYS: [&str; 4] = ["ipmi", "redfish", "qmp", "command"];
/// Further keys, each with the ways that it belongs to.
const OF_WAYS: [(&str, &[&str]); 5] = [
    ("user", &["ipmi", "redfish"]),
    ("password", &["ipmi", "redfish"]),
    ("cipher", &["ipmi"]),
    ("system", &["redfish"]),
    ("insecure", &["redfish"]),
];
/// The port of IPMI (IPMI 2.0, 13.1.2).
const IPMI_PORT: u16 = 623;

/// Parses the table, if it has anything in it.
pub(super) fn power(record: &Record) -> Result<Option<PowerSettings>, Mistake> {
    let ways: Vec<&str> = WAYS.into_iter().filter(|way| record.has(way)).collect();
    let way = match ways.as_slice() {
        [way] => *way,
        [] if OF_WAYS.iter().all(|(key, _)| !record.has(key)) => return Ok(None),
        _ => {
            let what = "a [machine.power] has one of `ipmi`, `redfish`, `qmp` and `command`";
            return Err(Mistake::new(
                record.span_of(ways.get(1).copied().unwrap_or("user")),
                what,
            ));
        }
    };
    if let Some((key, ways)) = OF_WAYS
        .iter()
        .find(|(key, ways)| record.has(key) && !ways.contains(&way))
    {
        return Err(Mistake::new(
            record.span_of(key),
            format!("`{key}` belongs to {}, not to {way}", ways.join(" and ")),
        ));
    }
    Ok(Some(match way {
        "ipmi" => ipmi(record)?,
        "redfish" => redfish(record)?,
        "qmp" => PowerSettings::Qmp(PathBuf::from(owned(record, "qmp"))),
        _ => PowerSettings::Command(record.strings("command")),
    }))
}

fn ipmi(record: &Record) -> Result<PowerSettings, Mistake> {
    let written = owned(record, "ipmi");
    let wrong = || {
        let what = format!(
            "expected HOST or HOST:PORT of a BMC, not `{}`",
            written.escape_debug()
        );
        Mistake::new(record.span_of("ipmi"), what)
    };
    // An IPv6 address has more than one colon, and no port here.
    let (host, port) = match written.split_once(':') {
        Some((host, port)) if !port.contains(':') => (host, port.parse().map_err(|_| wrong())?),
        _ => (&*written, IPMI_PORT),
    };
    // ipmitool would read it as an option.
    if host.is_empty()
        || host.starts_with('-')
        || !host
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c))
    {
        return Err(wrong());
    }
    let cipher = record.has("cipher").then(|| record.whole("cipher"));
    Ok(PowerSettings::Ipmi(Ipmi {
        host: host.to_owned(),
        port,
        login: login(record)?,
        cipher,
    }))
}

fn redfish(record: &Record) -> Result<PowerSettings, Mistake> {
    let address = owned(record, "redfish");
    let wrong = |key, what: &str| Err(Mistake::new(record.span_of(key), what.to_owned()));
    if !["http://", "https://"]
        .iter()
        .any(|scheme| address.starts_with(scheme))
    {
        return wrong(
            "redfish",
            "expected an address that begins with http:// or https://",
        );
    }
    if address.contains('@') {
        return wrong(
            "redfish",
            "a login does not stand in the address: use `user` and `password`",
        );
    }
    let system = record.text("system").map(str::to_owned);
    if system.as_ref().is_some_and(|path| !path.starts_with('/')) {
        return wrong("system", "expected a path such as /redfish/v1/Systems/1");
    }
    Ok(PowerSettings::Redfish(Redfish {
        address,
        system,
        login: login(record)?,
        insecure: record.flag("insecure"),
    }))
}
