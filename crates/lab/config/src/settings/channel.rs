//! Recipients of notices: the keys of `[[notify]]`, `[regressions]` and `[[track]]`.

use std::net::{IpAddr, Ipv6Addr};

use model::{
    Channel, ChannelKind, MailServer, MailTaker, RegressionSettings, Secrecy, TrackAddresses,
};

use super::check::Record;
use super::login::login;
use super::owned;
use crate::toml_document::Mistake;

/// The default mail program.
const SENDMAIL: [&str; 3] = ["sendmail", "-t", "-oi"];
/// Default ports of servers.
const SMTP_PORT: u16 = 25;
const SMTPS_PORT: u16 = 465;
/// Keys of mails, and among these, keys of mails to a server.
const OF_MAIL: [&str; 2] = ["sendmail", "smtp"];
const OF_SERVER: [&str; 2] = ["user", "password"];

/// Parses a recipient and its channel.
pub(crate) fn channel(record: &Record) -> Result<Channel, Mistake> {
    let kind = match (
        record.texts("mail"),
        record.text("webhook"),
        record.texts("command"),
    ) {
        (Some(_), None, None) => mail(record)?,
        (None, Some(url), None) => {
            if !["http://", "https://"]
                .iter()
                .any(|scheme| url.starts_with(scheme))
            {
                let what = "expected an address that begins with http:// or https://";
                return Err(Mistake::new(record.span_of("webhook"), what));
            }
            ChannelKind::Webhook {
                url: url.to_owned(),
            }
        }
        (None, None, Some(_)) => ChannelKind::Command {
            command: record.strings("command"),
        },
        _ => {
            return Err(Mistake::new(
                &record.span,
                "a [[notify]] has exactly one of `mail`, `webhook` and `command`",
            ));
        }
    };
    if !matches!(kind, ChannelKind::Mail { .. }) {
        none_of(record, &[OF_MAIL, OF_SERVER].concat(), "mail")?;
    }
    Ok(Channel {
        name: owned(record, "name"),
        kind,
    })
}

/// Parses what happens to regressions.
pub(crate) fn regressions(file: &Record) -> Result<RegressionSettings, Mistake> {
    let of_table = file.one("regressions");
    let mut tracks = Vec::new();
    for record in file.records("track") {
        check_addresses(record)?;
        tracks.push(TrackAddresses {
            track: owned(record, "name"),
            mail: record.strings("mail"),
        });
    }
    Ok(RegressionSettings {
        is_sent: of_table.flag("send"),
        has_digest: of_table.flag("digest"),
        tracks,
    })
}

/// Checks the addresses of `mail`.
fn check_addresses(record: &Record) -> Result<(), Mistake> {
    let addresses = record.texts("mail").unwrap_or_default();
    match addresses.iter().find(|(_, address)| !is_address(address)) {
        None => Ok(()),
        Some((span, wrong)) => Err(Mistake::new(
            span,
            format!(
                "expected an address of mail, not `{}`",
                wrong.escape_debug()
            ),
        )),
    }
}

/// Refuses keys that need another key.
fn none_of(record: &Record, keys: &[&str], without: &str) -> Result<(), Mistake> {
    match keys.iter().find(|key| record.has(key)) {
        None => Ok(()),
        Some(key) => Err(Mistake::new(
            record.span_of(key),
            format!("`{key}` without `{without}`"),
        )),
    }
}

fn mail(record: &Record) -> Result<ChannelKind, Mistake> {
    check_addresses(record)?;
    let addresses = record.texts("mail").unwrap_or_default();
    let from = owned(record, "from");
    let by = match (record.text("smtp"), record.texts("sendmail")) {
        (None, None) => MailTaker::Sendmail(SENDMAIL.map(str::to_owned).to_vec()),
        (None, Some(_)) => MailTaker::Sendmail(record.strings("sendmail")),
        (Some(address), None) => {
            if let Some((span, local)) = addresses.iter().find(|(_, address)| !has_host(address)) {
                let what = format!(
                    "a mail server wants whole addresses, NAME@HOST, not `{}`",
                    local.escape_debug()
                );
                return Err(Mistake::new(span, what));
            }
            if !has_host(&from) || !is_address(&from) {
                let what = format!(
                    "a mail server wants a whole address in `from`, NAME@HOST, not `{}`",
                    from.escape_debug()
                );
                return Err(Mistake::new(record.span_of("from"), what));
            }
            MailTaker::Server(MailServer {
                login: login(record)?,
                ..server(address)
                    .map_err(|what: String| Mistake::new(record.span_of("smtp"), what))?
            })
        }
        (Some(_), Some(_)) => {
            return Err(Mistake::new(
                record.span_of("sendmail"),
                "a mail goes by either `smtp` or `sendmail`",
            ));
        }
    };
    if matches!(by, MailTaker::Sendmail(_)) {
        none_of(record, &OF_SERVER, "smtp")?;
    }
    Ok(ChannelKind::Mail {
        to: record.strings("mail"),
        from,
        by,
    })
}

/// Returns whether a text can be an address in a mail header.
fn is_address(text: &str) -> bool {
    !text.starts_with('-')
        && text
            .chars()
            .all(|c| c.is_ascii_graphic() && !",;<>\"".contains(c))
}

fn has_host(address: &str) -> bool {
    address
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && !host.contains('@'))
}

/// Parses the address of a mail server.
fn server(address: &str) -> Result<MailServer, String> {
    let wrong = || {
        let shown = address.escape_debug();
        format!("expected a mail server, smtp://HOST:PORT or smtps://HOST:PORT, not `{shown}`")
    };
    let (scheme, place) = address.split_once("://").ok_or_else(wrong)?;
    if place.contains('@') {
        // The message does not quote it: it may contain a password.
        return Err(
            "a mail server is smtp://HOST:PORT: who Marvin is to it are keys of their own, `user` and `password`"
                .into(),
        );
    }
    let port = match scheme {
        "smtp" => SMTP_PORT,
        "smtps" => SMTPS_PORT,
        _ => return Err(wrong()),
    };
    let (host, digits) = match place
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        Some((host, rest)) if host.parse::<Ipv6Addr>().is_ok() => (
            host,
            rest.strip_prefix(':').or(rest.is_empty().then_some("")),
        ),
        Some(_) => return Err(wrong()),
        None => place
            .split_once(':')
            .map_or((place, Some("")), |(host, port)| {
                (host, Some(port).filter(|p| !p.is_empty()))
            }),
    };
    let port = match digits.ok_or_else(wrong)? {
        "" => port,
        digits => digits
            .parse()
            .ok()
            .filter(|port| *port > 0)
            .ok_or_else(wrong)?,
    };
    let is_ip = host.parse::<IpAddr>();
    if is_ip.is_err()
        && (host.is_empty()
            || host.starts_with('-')
            || !host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._".contains(c)))
    {
        return Err(wrong());
    }
    let is_here = host == "localhost" || is_ip.is_ok_and(|ip| ip.is_loopback());
    let secrecy = match scheme {
        "smtps" => Secrecy::Whole,
        _ if is_here => Secrecy::Plain,
        _ => Secrecy::Upgraded,
    };
    Ok(MailServer {
        host: host.to_owned(),
        port,
        secrecy,
        login: None,
    })
}
