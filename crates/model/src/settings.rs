//! What a site asks of its lab, for good: which trees to watch, what to measure of their kernels, whom to tell.
//!
//! How it is written, in `marvin.toml`, is the business of `ingest`.

use std::net::SocketAddr;

use crate::{Release, Suite, Workload};

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
    pub suite: &'static Suite,
    /// Which of its workloads.
    pub workloads: Vec<&'static Workload>,
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
    /// By a mail that a sendmail program takes.
    Mail {
        /// Addresses.
        to: Vec<String>,
        /// Whose name is on it.
        from: String,
        /// The program with its arguments; it reads the mail, recipients included, from its standard input.
        sendmail: Vec<String>,
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
