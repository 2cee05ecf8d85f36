//! Commands on the servers of the lab: power, distributions, reservations.

use clap::{Args, ValueEnum};
use model::BootDevice;
use server::Signal;

/// `marvin power`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin power testbox
  marvin power testbox cycle
  marvin power testbox boot pxe && marvin power testbox cycle")]
pub(crate) struct Power {
    /// Its name: a [[machine]] of marvin.toml with a [machine.power]
    pub(crate) name: String,

    /// What to do
    #[arg(value_enum, default_value_t = Turn::Status)]
    pub(crate) turn: Turn,

    /// What to boot from, for boot: pxe, disk, or bios for the firmware's setup
    #[arg(required_if_eq("turn", "boot"), value_parser = boot_device)]
    pub(crate) device: Option<BootDevice>,

    /// Switch it though another user has it reserved
    #[arg(long)]
    pub(crate) force: bool,
}

/// `marvin deploy`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin deploy testbox debian-13
  marvin deploy testbox own        # back to the system of its disk")]
pub(crate) struct Deploy {
    /// Its name: a [[machine]] of marvin.toml
    pub(crate) name: String,

    /// Name of an image in marvin.toml, or own: the system that the server starts by itself
    pub(crate) image: String,

    /// Make the image of today's packages, though there is one of this recipe
    #[arg(long)]
    pub(crate) rebuild: bool,

    /// Erase the disk of its [machine.deploy], and install the image there
    #[arg(long)]
    pub(crate) disk: bool,
}

/// `marvin reserve`.
#[derive(Debug, Args)]
pub(crate) struct Reserve {
    /// Their names: all are reserved or none
    #[arg(required = true)]
    pub(crate) names: Vec<String>,

    /// How long: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = super::standing::seconds)]
    pub(crate) for_s: u64,

    /// What for; others see it
    #[arg(long)]
    pub(crate) why: String,
}

/// `marvin extend`.
#[derive(Debug, Args)]
pub(crate) struct Extend {
    /// A server that is reserved; those reserved with it are extended too
    pub(crate) name: String,

    /// How long from now on: 30m, 2h, 3d
    #[arg(long = "for", value_name = "TIME", value_parser = super::standing::seconds)]
    pub(crate) for_s: u64,
}

/// `marvin release`.
#[derive(Debug, Args)]
pub(crate) struct Release {
    /// A server that is reserved; those reserved with it are released too
    pub(crate) name: String,

    /// End the reservation of another user, whose measurement stops before the next step
    #[arg(long)]
    pub(crate) force: bool,
}

/// What to do with the power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Turn {
    /// Print whether it is on
    Status,
    /// Switch it on
    On,
    /// Switch it off at once; its kernel does not shut down
    Off,
    /// Switch it off, and on after 5 s
    Cycle,
    /// Set what the next boot starts from; no power is switched
    Boot,
}

fn sysrq(text: &str) -> Result<Signal, String> {
    Signal::sysrq(text).ok_or_else(|| "expected letters and digits, at most 16 of them".to_owned())
}

fn boot_device(text: &str) -> Result<BootDevice, String> {
    let known = BootDevice::ALL
        .into_iter()
        .find(|device| device.word() == text);
    known.ok_or_else(|| "expected pxe, disk or bios".to_owned())
}

/// `marvin console`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  marvin console --record &
  marvin console testbox --since 2h
  marvin console testbox --follow
  marvin console testbox --sysrq 8w")]
pub(crate) struct Console {
    /// Its name: a [[machine]] of marvin.toml with a [machine.console]
    #[arg(required_unless_present = "record")]
    pub(crate) name: Option<String>,

    /// Print what came within this time: 10m, 2h, 7d
    #[arg(long, value_name = "TIME", value_parser = super::standing::seconds, default_value = "10m")]
    pub(crate) since: u64,

    /// Go on with what comes, until killed
    #[arg(long)]
    pub(crate) follow: bool,

    /// Record the consoles of all servers, until killed; `marvin work` does so, too
    #[arg(long, conflicts_with_all = ["name", "follow", "sysrq", "sends_break"])]
    pub(crate) record: bool,

    /// Send sysrq keys to its kernel by the console: letters and digits, such as 8w for the
    /// blocked tasks (kernel documentation, admin-guide/sysrq)
    #[arg(long, value_name = "KEYS", value_parser = sysrq, conflicts_with_all = ["follow", "since"])]
    pub(crate) sysrq: Option<Signal>,

    /// Send a break
    #[arg(long = "break", conflicts_with_all = ["follow", "since", "sysrq"])]
    pub(crate) sends_break: bool,

    /// Send it though another user has the server reserved
    #[arg(long)]
    pub(crate) force: bool,
}
