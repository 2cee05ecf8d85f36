//! What a site asks of its lab, for good: which trees to watch, what to measure of their kernels, whom to tell.
//!
//! How it is written, in `marvin.toml`, is the business of `ingest`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Release, Suite};

/// What a site asks of its lab.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSettings {
    /// Where kernels come from.
    pub trees: Vec<WatchedTree>,
    /// What is measured of them.
    pub plans: Vec<StandingPlan>,
    /// How workers work.
    pub work: WorkSettings,
    /// Whom to tell.
    pub channels: Vec<Channel>,
    /// Where the dashboard listens.
    pub listen: Option<SocketAddr>,
}

/// A tree that is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedTree {
    /// Its name.
    pub name: String,
    /// Where its kernels come from.
    pub origin: TreeOrigin,
    /// Older releases are passed over.
    pub since: Option<Release>,
    /// Which stable updates are taken.
    pub points: Points,
    /// How its kernels are configured where they are built.
    pub config: String,
}

/// Where the kernels of a tree come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeOrigin {
    /// Tags of a git repository.
    Git {
        /// A folder, or what git can fetch from.
        place: String,
        /// A regular expression; its first group is the version.
        tags: String,
    },
    /// Packages of this host's distribution.
    Debian {
        /// What their versions begin with.
        series: Vec<String>,
        /// Their flavour.
        flavour: String,
    },
}

/// Which stable updates of a tree are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// Of each series the newest, at most one in a calendar month.
    Monthly,
    /// All.
    Every,
    /// None: releases of the mainline only.
    Never,
}

/// What is measured of each kernel of some trees.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingPlan {
    /// Its name.
    pub name: String,
    /// Names of the trees.
    pub trees: Vec<String>,
    /// The suite.
    pub suite: Arc<Suite>,
    /// Words for what is measured of it, one for each workload; `tool:` before those of external tools.
    pub workloads: Vec<String>,
    /// How many seeds.
    pub seeds: u64,
    /// Plans of higher priority are done first.
    pub priority: i64,
}

/// How workers work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkSettings {
    /// How long a job may take, in seconds.
    pub deadline_s: u64,
    /// How often a job is tried.
    pub attempts_max: u32,
}

/// Somebody who is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its name.
    pub name: String,
    /// How.
    pub kind: ChannelKind,
}

/// How somebody is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelKind {
    /// By a mail.
    Mail {
        /// Addresses.
        to: Vec<String>,
        /// Whose name is on it.
        from: String,
        /// Who takes it.
        by: MailTaker,
    },
    /// By a JSON document that is posted to an address.
    Webhook {
        /// The address.
        url: String,
    },
    /// By a program that reads the JSON document from its standard input.
    Command {
        /// The program with its arguments.
        command: Vec<String>,
    },
}

/// Who takes a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailTaker {
    /// A program with its arguments, which reads the mail, recipients included, from its standard input.
    Sendmail(Vec<String>),
    /// A mail server.
    Server(MailServer),
}

/// A mail server that is spoken to by SMTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    /// Its name, or its address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How what is said to it is kept from others.
    pub secrecy: Secrecy,
    /// Who we are to it; nobody where it does not ask.
    pub login: Option<Login>,
}

/// How what is said to a server is kept from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// Not at all: it is this host.
    Plain,
    /// By TLS that begins after some plain words (STARTTLS); without it nothing is sent.
    Upgraded,
    /// By TLS from the first byte on.
    Whole,
}

/// Who somebody is to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name.
    pub user: String,
    /// Where the password is.
    pub password: Secret,
}

/// Where a secret is. What it is stands in no settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In a file, of which it is the first line.
    File(PathBuf),
    /// In a variable of the environment.
    Variable(String),
}

/// The address as it is written: `smtps://mail.example.org:465`.
impl fmt::Display for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secrecy == Secrecy::Whole { "smtps" } else { "smtp" };
        let bracketed = self.host.contains(':');
        let (before, after) = if bracketed { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{before}{}{after}:{}", self.host, self.port)
    }
}
