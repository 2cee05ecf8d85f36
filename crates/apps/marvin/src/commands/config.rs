//! `marvin config`: checks and shows marvin.toml.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use anyhow::Context;
use clap::Subcommand;
use config::ConfigFile;
use kernel::Configuration;
use lab::bisection::add;
use model::{Channel, ChannelKind, MailTaker, MarvinConfig, Points, TreeOrigin, WatchedTree};

use crate::exit::{Exit, WrongInput};
use crate::session::Session;

/// The part of the sample that is in effect, and every other setting.
const SMALL: &str = include_str!("../../../../../docs/samples/small.toml");
const FULL: &str = include_str!("../../../../../docs/samples/full.toml");

/// `marvin config`.
#[derive(Debug, Clone, Copy, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a sample marvin.toml with comments; an existing file is not overwritten
    Init,
    /// Check marvin.toml; print line and column of each mistake
    Check,
    /// Show the settings of marvin.toml
    Show,
    /// Print the JSON schema of marvin.toml, for editors
    Schema,
}

pub(crate) fn config(session: &Session, command: &ConfigCommand) -> anyhow::Result<Exit> {
    let answer = session.answer(None)?;
    match command {
        ConfigCommand::Init => answer.write(init(session)?)?,
        ConfigCommand::Schema => answer.write(config::settings_schema())?,
        ConfigCommand::Show => answer.write(format_site(session.config()?))?,
        ConfigCommand::Check => {
            let site = session.read_existing_config()?;
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
            let MarvinConfig {
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

/// Writes the sample to the place of marvin.toml, unless there is a file.
fn init(session: &Session) -> anyhow::Result<String> {
    let file = session.config_file()?;
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the directory {}", folder.display()))?;
    }
    let mut opened = match OpenOptions::new().write(true).create_new(true).open(&file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = format!(
                "cannot write a sample to {0}: the file exists\nhint: edit it (`marvin config show` lists its settings), or \
                 write the sample elsewhere with --config-file FILE",
                file.display()
            );
            return Err(WrongInput(text).into());
        }
        opened => opened.with_context(|| format!("cannot write {}", file.display()))?,
    };
    opened
        .write_all(sample().as_bytes())
        .with_context(|| format!("cannot write {}", file.display()))?;
    Ok(format!(
        "wrote {}: edit it, then run `marvin config check`, `marvin watch` and `marvin work`\n",
        file.display()
    ))
}

/// Returns the sample: a small lab that works, and every other setting as a comment.
fn sample() -> String {
    let mut text = format!(
        "# marvin.toml: what Marvin measures by itself, where, and whom it tells. docs/watch.md explains\n\
         # each setting; `marvin config schema` prints the schema for editors.\n\n{SMALL}\n\
         # All other settings, as examples: remove the `#` directly before a setting to use it.\n"
    );
    // Its first line is about the file in docs/.
    for line in FULL.lines().skip(1) {
        let mark = if line.is_empty() || line.starts_with('#') {
            ""
        } else {
            "#"
        };
        text.extend([mark, line, "\n"]);
    }
    text
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
        let seeds = plan.seeds;
        let priority = plan.priority;
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
    line("exact", format!("CPU {}", settings.cpu.name()));
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
            let tags = if tags.is_empty() { "none" } else { tags };
            let branches = if tree.branches.is_empty() {
                String::new()
            } else {
                format!("; branches {}", tree.branches.join(", "))
            };
            format!(
                "git {place}; tags {tags}{branches}; kernel config {}",
                tree.config
            )
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

#[cfg(test)]
mod tests {
    use super::{FULL, sample};

    #[test]
    fn sample_has_every_setting_as_comment() {
        let sample = sample();
        let (_, examples) = sample.split_once("to use it.\n").unwrap();
        let restored: Vec<&str> = examples
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => rest,
                _ => line,
            })
            .collect();
        let full: Vec<&str> = FULL.lines().skip(1).collect();
        assert_eq!(restored, full);
    }
}
