//! The contents of marvin.toml: the trees to watch, the plans to measure, the recipients of notices.
//!
//! `config` parses them from `marvin.toml`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{BatchSettings, ExactCpu, ImageSettings, MakeArgument, Release, ServerSettings, Suite};

/// The contents of marvin.toml.
#[derive(Debug, Clone, PartialEq)]
pub struct MarvinConfig {
    /// The git trees that `marvin watch` follows.
    pub trees: Vec<WatchedTree>,
    /// What is measured of new kernels.
    pub plans: Vec<StandingPlan>,
    /// The settings of workers.
    pub work: WorkSettings,
    /// The recipients of notices.
    pub channels: Vec<Channel>,
    /// What happens to regressions that are found.
    pub regressions: RegressionSettings,
    /// The servers that boot builds.
    pub servers: Vec<ServerSettings>,
    /// The images for them.
    pub images: Vec<ImageSettings>,
    /// The directory of builds that hosts share.
    pub builds: Option<PathBuf>,
    /// Variables for make, for kernels that Marvin builds.
    pub make_args: Vec<MakeArgument>,
    /// Where packages and sources come from.
    pub archives: ArchiveSettings,
    /// The batch system that jobs may go to.
    pub batch: Option<BatchSettings>,
    /// The CPU of exact machines.
    pub cpu: ExactCpu,
    /// The address of the dashboard.
    pub listen: Option<SocketAddr>,
}

/// Where packages and sources of kernels come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveSettings {
    /// Debian's packages.
    pub debian: DebianSettings,
    /// Ubuntu's packages.
    pub ubuntu: DebianSettings,
    /// Fedora's packages.
    pub fedora: FedoraSettings,
    /// Arch Linux's packages.
    pub arch: MirrorSettings,
    /// The tarballs of kernel.org.
    pub kernel_org: MirrorSettings,
}

impl Default for ArchiveSettings {
    fn default() -> Self {
        Self {
            debian: DebianSettings::default(),
            ubuntu: DebianSettings::ubuntu(),
            fedora: FedoraSettings {
                mirror: "https://dl.fedoraproject.org/pub/fedora/linux".to_owned(),
                keyring: None,
                release: "43".to_owned(),
            },
            arch: MirrorSettings {
                mirror: "https://geo.mirror.pkgbuild.com".to_owned(),
                keyring: None,
            },
            kernel_org: MirrorSettings {
                mirror: "https://cdn.kernel.org/pub/linux/kernel".to_owned(),
                keyring: None,
            },
        }
    }
}

/// Where packages of Debian, or of a distribution with archives in its layout, come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DebianSettings {
    /// The archive, an address with the folders `dists` and `pool`.
    pub mirror: String,
    /// The archive of security updates.
    pub security: String,
    /// The service that has each day's archive, for `SUITE@DATE`.
    pub snapshot: String,
    /// Public keys that may sign lists, as a binary keyring; the distribution's if it is `None`.
    pub keyring: Option<PathBuf>,
    /// The suite of names that have none.
    pub suite: String,
}

impl Default for DebianSettings {
    fn default() -> Self {
        Self {
            mirror: "http://deb.debian.org/debian".to_owned(),
            security: "http://deb.debian.org/debian-security".to_owned(),
            snapshot: "http://snapshot.debian.org".to_owned(),
            keyring: None,
            suite: "bookworm".to_owned(),
        }
    }
}

impl DebianSettings {
    /// Returns the defaults of Ubuntu's archive.
    #[must_use]
    pub fn ubuntu() -> Self {
        Self {
            mirror: "http://archive.ubuntu.com/ubuntu".to_owned(),
            security: "http://security.ubuntu.com/ubuntu".to_owned(),
            snapshot: "https://snapshot.ubuntu.com".to_owned(),
            keyring: None,
            suite: "noble".to_owned(),
        }
    }
}

/// Where Fedora's packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FedoraSettings {
    /// An address with the folders `releases`, `updates` and `development`.
    pub mirror: String,
    /// Public keys that may sign packages; without them no package is used.
    pub keyring: Option<PathBuf>,
    /// The release of names that have none.
    pub release: String,
}

/// A mirror and the keys that sign what it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSettings {
    /// An address.
    pub mirror: String,
    /// Public keys that may sign; without them nothing of it is used.
    pub keyring: Option<PathBuf>,
}

/// A git tree whose new kernels are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedTree {
    /// The tree's name in marvin.toml.
    pub name: String,
    /// Where its kernels come from.
    pub origin: TreeOrigin,
    /// The oldest release to take.
    pub since: Option<Release>,
    /// Which stable updates to take.
    pub points: Points,
    /// Branches whose heads are taken.
    pub branches: Vec<String>,
    /// Least time between two heads of one branch, in seconds.
    pub every_s: u64,
    /// The kernel config of its builds.
    pub config: String,
}

/// Where the kernels of a tree come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeOrigin {
    /// Tags of a git repository.
    Git {
        /// A directory, or an address that git can fetch from.
        place: String,
        /// A regular expression; its first group is the version. Empty: no tags.
        tags: String,
    },
    /// Packages of this host's distribution.
    Debian {
        /// The prefix of their versions.
        series: Vec<String>,
        /// The flavour of the packages: `cloud-amd64`.
        flavour: String,
    },
}

/// Which stable updates of a tree to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Points {
    /// The newest of each series, at most one per calendar month.
    Monthly,
    /// Each new kernel.
    Every,
    /// None: only mainline releases.
    Never,
}

/// What to measure of each kernel of some trees.
#[derive(Debug, Clone, PartialEq)]
pub struct StandingPlan {
    /// The plan's name in marvin.toml.
    pub name: String,
    /// Names of the trees.
    pub trees: Vec<String>,
    /// The suite that it measures.
    pub suite: Arc<Suite>,
    /// Selected workloads, one word each; `tool:` marks external tools.
    pub workloads: Vec<String>,
    /// Number of seeds, or boots on a server.
    pub seeds: u64,
    /// The machine: exact, or a server.
    pub machine: String,
    /// Plans with higher priority run first.
    pub priority: i64,
}

/// The settings of workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkSettings {
    /// The time limit of a job, in seconds.
    pub deadline_s: u64,
    /// How often a job is attempted.
    pub attempts_max: u32,
    /// Whether kernels of the queue come from archives and the trees of marvin.toml only, and not
    /// from any file or folder of the worker's host.
    pub is_of_named_trees: bool,
}

/// What happens to regressions that are found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegressionSettings {
    /// Whether they are sent to those in charge of the code, without a person who looks first.
    pub is_sent: bool,
    /// Whether the recipients of notices get a list of the open ones each week.
    pub has_digest: bool,
    /// Lists that hear of regressions in some tracks.
    pub tracks: Vec<TrackAddresses>,
}

/// Who hears of regressions in a track.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackAddresses {
    /// The track's name, as `marvin alerts` shows it.
    pub track: String,
    /// Addresses of mail.
    pub mail: Vec<String>,
}

/// A recipient of notices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The channel's name in marvin.toml.
    pub name: String,
    /// The way to it.
    pub kind: ChannelKind,
}

/// A way to deliver a notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelKind {
    /// One mail for each notice.
    Mail {
        /// The addresses of the recipients.
        to: Vec<String>,
        /// The address of the sender.
        from: String,
        /// What takes the mail: a server or a program.
        by: MailTaker,
    },
    /// By posting a JSON document.
    Webhook {
        /// The URL that each notice is posted to.
        url: String,
    },
    /// By a program that reads the JSON document from its standard input.
    Command {
        /// The program with its arguments.
        command: Vec<String>,
    },
}

/// The transport of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MailTaker {
    /// A program with its arguments, which reads the mail with its recipients from standard input.
    Sendmail(Vec<String>),
    /// A mail server takes it.
    Server(MailServer),
}

/// An SMTP server, and how to talk to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailServer {
    /// Its name or address.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// Whether the connection is encrypted, and from when on.
    pub secrecy: Secrecy,
    /// The login; `None` if the server needs none.
    pub login: Option<Login>,
}

/// The encryption of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrecy {
    /// None: the server is this host.
    Plain,
    /// TLS after STARTTLS; without it Marvin sends nothing.
    Upgraded,
    /// TLS from the first byte.
    Whole,
}

/// The login at a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    /// The name to log in with.
    pub user: String,
    /// Where the password is stored.
    pub password: Secret,
}

/// Where a secret is stored; the settings never contain one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Secret {
    /// In the first line of a file.
    File(PathBuf),
    /// In an environment variable.
    Variable(String),
}

/// The address in URL form: `smtps://mail.example.org:465`.
impl fmt::Display for MailServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secrecy == Secrecy::Whole {
            "smtps"
        } else {
            "smtp"
        };
        let bracketed = self.host.contains(':');
        let (before, after) = if bracketed { ("[", "]") } else { ("", "") };
        write!(f, "{scheme}://{before}{}{after}:{}", self.host, self.port)
    }
}
