//! `marvin notify`: tries the channels of marvin.toml, and sends what waits. `service` sends.

use clap::Subcommand;
use config::ConfigFile;
use model::Channel;
use service::machine_name;
use store::Notice;

use crate::exit::{Exit, WrongInput};
use crate::queue::{RegressionReporter, deliver};
use crate::select::did_you_mean;
use crate::session::{Session, now};

/// `marvin notify`.
#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test message through each [[notify]] of marvin.toml, or through one
    Test {
        /// Name of the [[notify]]
        channel: Option<String>,
    },
    /// Report new regressions once and the open ones once a week, and send what waits, as work and
    /// watch do
    Send,
}

pub(crate) fn notify(session: &Session, command: &NotifyCommand) -> anyhow::Result<Exit> {
    let site = session.read_existing_config()?;
    let NotifyCommand::Test { channel } = command else {
        return send(session, &site);
    };
    let channels = chosen(&site.settings.channels, channel.as_deref())?;
    let notice = Notice {
        subject: "test".to_owned(),
        headline: format!("test of the notifications of {}", machine_name()),
        body: "marvin notify test sent this; nothing has failed.\n".to_owned(),
        raised_unix: now(),
    };
    let mut text = String::new();
    let mut exit = Exit::Fine;
    for channel in channels {
        let line = match service::send_now(channel, &notice) {
            Ok(()) => format!("{}: sent\n", channel.name),
            Err(why) => {
                exit = Exit::Lab;
                format!("{}: cannot send: {why}\n", channel.name)
            }
        };
        text.push_str(&line);
    }
    session.answer(None)?.write(text)?;
    Ok(exit)
}

/// Reports regressions, and sends what waits.
fn send(session: &Session, site: &ConfigFile) -> anyhow::Result<Exit> {
    chosen(&site.settings.channels, None)?;
    let store = session.open_store()?;
    let now_unix = store.time(now())?;
    let raised = RegressionReporter::default().report(&store, site, session, now_unix)?;
    let delivered = deliver(&store, site, session)?;
    session.answer(None)?.write(format!(
        "new regressions {raised}, messages sent {}\n",
        delivered.made
    ))?;
    Ok(if delivered.failed.is_empty() {
        Exit::Fine
    } else {
        Exit::Lab
    })
}

/// Returns the named channel, or all.
fn chosen<'a>(all: &'a [Channel], name: Option<&str>) -> anyhow::Result<Vec<&'a Channel>> {
    if all.is_empty() {
        let text = "marvin.toml has no [[notify]] to test (docs/watch.md)";
        return Err(WrongInput(text.to_owned()).into());
    }
    let Some(name) = name else {
        return Ok(all.iter().collect());
    };
    let found = all.iter().find(|channel| channel.name == name);
    let found = found.ok_or_else(|| {
        let guess = did_you_mean(all.iter().map(|channel| channel.name.as_str()), name);
        WrongInput(format!("marvin.toml has no [[notify]] `{name}`{guess}"))
    })?;
    Ok(vec![found])
}
