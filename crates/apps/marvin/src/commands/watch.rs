//! `marvin watch`: checks the trees of marvin.toml, and queues kernels without results.

use config::ConfigFile;
use std::time::Duration;

use service::{Apt, ServiceError, WatchEvent};
use store::Store;

use super::compare::now;
use super::config::needed;
use super::reserve::reserved;
use crate::answer::Answer;
use crate::cli::{Arguments, Watch};
use crate::exit::{Exit, WrongInput};
use crate::home::store;
use crate::say;
use lab::bisection::add;

/// Limit on tags listed that are not versions.
const NAMED_MAX: usize = 8;

pub(crate) fn watch(arguments: &Arguments, command: &Watch) -> anyhow::Result<Exit> {
    loop {
        // Read at each pass, so that changes apply from the next one on.
        let exit = match needed(arguments).and_then(|site| pass(arguments, &site)) {
            Ok(exit) => exit,
            // With `--every`, continue after an error that may pass, such as a full disk.
            Err(error) if command.every.is_some() => crate::exit::explain(&error),
            Err(error) => return Err(error),
        };
        match command.every {
            None => return Ok(exit),
            Some(seconds) => std::thread::sleep(Duration::from_secs(seconds)),
        }
    }
}

fn pass(arguments: &Arguments, site: &ConfigFile) -> anyhow::Result<Exit> {
    if site.settings.trees.is_empty() || site.settings.plans.is_empty() {
        let text = "marvin.toml needs a [[tree]] and a [[plan]] to watch (docs/watch.md)";
        return Err(WrongInput(text.into()).into());
    }
    let store = Store::open(store(arguments)?)?;
    let notify = |event: WatchEvent| {
        if !arguments.quiet {
            say(&format_event(&event));
        }
    };
    let watched = service::watch(&site.settings, &store, &Apt, store.time(now())?, &notify)?;
    deliver(&store, site, arguments)?;
    let service::Watched {
        kernels,
        queued,
        replaced,
        silent,
    } = watched;
    let mut text = format!("kernels {kernels}, queued {queued}");
    if replaced > 0 {
        add(&mut text, format_args!(", replaced {replaced}"));
    }
    if silent > 0 {
        add(&mut text, format_args!(", silent trees {silent}"));
    }
    Answer::open(None)?.write(text + "\n")?;
    Ok(if silent > 0 { Exit::Lab } else { Exit::Fine })
}

/// Delivers pending notices, and reports failures.
pub(crate) fn deliver(
    store: &Store,
    site: &ConfigFile,
    arguments: &Arguments,
) -> Result<(), ServiceError> {
    if let Err(error) = remind(store, site, arguments) {
        say(&format!("cannot see now which reservations end: {error}"));
    }
    let clock = || store.time(now()).unwrap_or_else(|_| now());
    for (channel, why) in service::deliver(store, &site.settings, &clock)?.failed {
        say(&format!("notify {channel}: {why}; Marvin will retry"));
    }
    Ok(())
}

/// Reminds people of reservations that end soon; those of a store on a server are there.
fn remind(store: &Store, site: &ConfigFile, arguments: &Arguments) -> anyhow::Result<()> {
    let reservations = reserved(arguments)?;
    Ok(service::remind(
        store,
        &site.settings.channels,
        &reservations.all,
        reservations.now_unix,
    )?)
}

fn format_event(event: &WatchEvent) -> String {
    match event {
        WatchEvent::Queued(number, work) => format!("job {number}: {work}"),
        WatchEvent::Replaced(number, work) => {
            format!("job {number} replaced: no plan asks for {work} any more")
        }
        WatchEvent::Silent { tree, why } => format!("{tree}: {why}"),
        WatchEvent::Answers(tree) => format!("the tree {tree} answers again"),
        WatchEvent::NoVersions(tree, tags) => {
            let named = tags
                .iter()
                .take(NAMED_MAX)
                .map(|tag| tag.escape_debug().to_string())
                .collect::<Vec<_>>();
            let more = if tags.len() > NAMED_MAX { ", …" } else { "" };
            format!(
                "{tree}: ignored tags that are not versions, {}: {}{more}",
                tags.len(),
                named.join(", ")
            )
        }
    }
}
