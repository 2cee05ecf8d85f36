//! `marvin config`: checks and shows marvin.toml.

use anyhow::Context;
use config::ConfigFile;
use kernel::Configuration;
use model::{Channel, ChannelKind, LabSettings, MailTaker, Points, TreeOrigin, WatchedTree};

use super::tools::known_tools;
use crate::answer::Answer;
use crate::cli::{Arguments, Config};
use crate::exit::{Exit, WrongInput};
use crate::home::home;
use lab::bisection::add;

pub(crate) fn config(arguments: &Arguments, command: &Config) -> anyhow::Result<Exit> {
    let answer = Answer::open(None)?;
    match command {
        Config::Schema => answer.write(config::settings_schema())?,
        Config::Show => answer.write(format_site(&site(arguments)?))?,
        Config::Check => {
            let site = needed(arguments)?;
            for tree in &site.settings.trees {
                let named = Configuration::named(&tree.config);
                named.with_context(|| {
                    format!("cannot read the kernel config of the tree {}", tree.name)
                })?;
            }
            for channel in &site.settings.channels {
                password(channel)?;
            }
            let file = site
                .file
                .as_deref()
                .unwrap_or(std::path::Path::new("marvin.toml"));
            let LabSettings {
                servers,
                trees,
                plans,
                channels,
                ..
            } = &site.settings;
            let [machines, trees, plans, channels] =
                [servers.len(), trees.len(), plans.len(), channels.len()];
            let counts =
                format!("machines {machines}, trees {trees}, plans {plans}, notify {channels}");
            answer.write(format!("{}: fine: {counts}\n", file.display()))?;
        }
    }
    Ok(Exit::Fine)
}

/// Reads marvin.toml; returns an empty configuration if there is no file.
pub(crate) fn site(arguments: &Arguments) -> anyhow::Result<ConfigFile> {
    let tools = known_tools(arguments, &[])?;
    Ok(ConfigFile::read(
        &home(arguments.home.as_deref())?,
        arguments.config_file.as_deref(),
        &tools.rows(),
    )?)
}

/// Reads marvin.toml; an error if there is no file.
pub(crate) fn needed(arguments: &Arguments) -> anyhow::Result<ConfigFile> {
    let site = site(arguments)?;
    if site.file.is_none() {
        let home = home(arguments.home.as_deref())?;
        let text = format!(
            "there is no marvin.toml in {}: write one (docs/watch.md), or name one with --config-file FILE",
            home.display()
        );
        return Err(WrongInput(text).into());
    }
    Ok(site)
}

/// Checks that the password of a channel is where the channel says.
fn password(channel: &Channel) -> anyhow::Result<()> {
    if let ChannelKind::Mail {
        by: MailTaker::Server(server),
        ..
    } = &channel.kind
        && let Some(login) = &server.login
    {
        server::password(login)
            .map_err(|why| WrongInput(format!("notify {}: {why}", channel.name)))?;
    }
    Ok(())
}

fn format_site(site: &ConfigFile) -> String {
    let settings = &site.settings;
    let file = site
        .file
        .as_ref()
        .map_or_else(|| "none".to_owned(), |file| file.display().to_string());
    let mut text = format!("file    {file}\n");
    let mut line = |word: &str, what: String| add(&mut text, format_args!("{word:<7} {what}\n"));
    for tree in &settings.trees {
        line("tree", tree_shown(tree));
    }
    for plan in &settings.plans {
        let (seeds, priority) = (plan.seeds, plan.priority);
        line(
            "plan",
            format!(
                "{}: of {}; suite {}; seeds {seeds}; priority {priority}; {}",
                plan.name,
                plan.trees.join(", "),
                plan.suite.name,
                plan.workloads.join(",")
            ),
        );
    }
    let work = settings.work;
    line(
        "work",
        format!(
            "job limits: {} s, {} attempts",
            work.deadline_s, work.attempts_max
        ),
    );
    for channel in &settings.channels {
        let how = match &channel.kind {
            ChannelKind::Mail {
                to,
                by: MailTaker::Sendmail(program),
                ..
            } => {
                format!("mail to {} by {}", to.join(", "), program.join(" "))
            }
            ChannelKind::Mail {
                to,
                by: MailTaker::Server(server),
                ..
            } => {
                let user = server
                    .login
                    .as_ref()
                    .map_or_else(String::new, |login| format!(" as {}", login.user));
                format!("mail to {} by {server}{user}", to.join(", "))
            }
            // A path behind the host may contain a secret.
            ChannelKind::Webhook { url } => {
                format!(
                    "webhook {}",
                    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
                )
            }
            ChannelKind::Command { command } => format!("command {}", command.join(" ")),
        };
        line("notify", format!("{}: {how}", channel.name));
    }
    if let Some(listen) = settings.listen {
        line("serve", format!("on {listen}"));
    }
    text
}

fn tree_shown(tree: &WatchedTree) -> String {
    let from = match &tree.origin {
        TreeOrigin::Git { place, tags } => {
            format!("git {place}; tags {tags}; kernel config {}", tree.config)
        }
        TreeOrigin::Debian { series, flavour } => {
            format!("packages of {}, {flavour}", series.join(", "))
        }
    };
    let points = match tree.points {
        Points::Monthly => "once a month",
        Points::Every => "all",
        Points::Never => "none",
    };
    let since = tree
        .since
        .as_ref()
        .map_or_else(String::new, |since| format!("; since {since}"));
    format!("{}: {from}; stable updates: {points}{since}", tree.name)
}
