//! The keys of marvin.toml: one definition for the check of the file and its schema.

mod archives;

use model::ExactCpu;

/// A table of the file.
#[derive(Debug)]
pub(crate) struct Table {
    /// Its name in messages: `[[tree]]`.
    pub(crate) what: &'static str,
    pub(crate) about: &'static str,
    pub(crate) keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) kind: Kind,
    pub(crate) presence: Presence,
}

/// The kind of a key's value.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Small letters, digits, hyphens.
    Name,
    Text,
    /// A list of lines, not empty.
    Texts,
    /// A number with its unit: 90s, 30m, 2h, 1d.
    Span,
    Flag,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// One of these words.
    Choice(&'static [&'static str]),
    One(&'static Table),
    /// A list of tables.
    Many(&'static Table),
}

/// Whether a key is required.
#[derive(Debug)]
pub(crate) enum Presence {
    Needed,
    Optional,
    Preset(Preset),
}

/// The value of a missing key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Preset {
    Text(&'static str),
    Flag(bool),
    Whole(u64),
    /// Seconds, and their form for people.
    Span(u64, &'static str),
}

use Presence::{Needed, Optional, Preset as Without};
use archives::{ARCH, DEBIAN, FEDORA, KERNEL_ORG, UBUNTU};

const fn key(name: &'static str, kind: Kind, presence: Presence, about: &'static str) -> Key {
    Key {
        name,
        about,
        kind,
        presence,
    }
}

pub(crate) static FILE: Table = Table {
    what: "the file",
    about: "The settings of a lab: marvin.toml in the data directory, or the file of --config-file.",
    keys: &[
        key(
            "tree",
            Kind::Many(&TREE),
            Optional,
            "Where kernels come from; `marvin watch` looks there.",
        ),
        key(
            "plan",
            Kind::Many(&PLAN),
            Optional,
            "Workloads to measure on each kernel of some trees.",
        ),
        key(
            "work",
            Kind::One(&WORK),
            Optional,
            "How `marvin work` works.",
        ),
        key(
            "build",
            Kind::One(&BUILD),
            Optional,
            "How Marvin builds kernels; docs/building.md.",
        ),
        key(
            "exact",
            Kind::One(&EXACT),
            Optional,
            "The exact machine; docs/exact-machine.md.",
        ),
        key(
            "debian",
            Kind::One(&DEBIAN),
            Optional,
            "Where deb: kernels, deb-src: sources and packages of tools come from.",
        ),
        key(
            "ubuntu",
            Kind::One(&UBUNTU),
            Optional,
            "Where ubuntu: kernels come from.",
        ),
        key(
            "fedora",
            Kind::One(&FEDORA),
            Optional,
            "Where fedora: kernels come from.",
        ),
        key(
            "arch",
            Kind::One(&ARCH),
            Optional,
            "Where arch: kernels come from.",
        ),
        key(
            "kernel_org",
            Kind::One(&KERNEL_ORG),
            Optional,
            "Where kernel.org: sources come from.",
        ),
        key(
            "notify",
            Kind::Many(&NOTIFY),
            Optional,
            "Recipients of failure notices, each by mail, webhook or command.",
        ),
        key(
            "regressions",
            Kind::One(&REGRESSIONS),
            Optional,
            "What happens to regressions that are found; docs/watch.md.",
        ),
        key(
            "track",
            Kind::Many(&TRACK),
            Optional,
            "Who hears of regressions in a track.",
        ),
        key(
            "machine",
            Kind::Many(&MACHINE),
            Optional,
            "The servers that boot builds; docs/machines.md.",
        ),
        key(
            "image",
            Kind::Many(&IMAGE),
            Optional,
            "Distributions for `marvin deploy`; docs/deploy.md.",
        ),
        key(
            "slurm",
            Kind::One(&SLURM),
            Optional,
            "Slurm, for `marvin work --via slurm`.",
        ),
        key(
            "batch",
            Kind::One(&BATCH),
            Optional,
            "Another batch system, for `marvin work --via batch`.",
        ),
        key("serve", Kind::One(&SERVE), Optional, "The dashboard."),
    ],
};

static TREE: Table = Table {
    what: "[[tree]]",
    about: "A tree that is watched: tags of a git repository, or packages of Debian.",
    keys: &[
        key("name", Kind::Name, Needed, "Its name."),
        key(
            "git",
            Kind::Text,
            Optional,
            "A folder (from the folder of this file), or what git can fetch from.",
        ),
        key(
            "debian",
            Kind::Texts,
            Optional,
            "Or Debian packages whose versions begin with one of these: 6.1, 6.12.",
        ),
        key(
            "flavour",
            Kind::Text,
            Without(Preset::Text("cloud-amd64")),
            "Flavour of the packages.",
        ),
        key(
            "tags",
            Kind::Text,
            Optional,
            "A regular expression for the tags that are releases; its first group is the version. Without it, v6.12 and v6.12.3.",
        ),
        key(
            "branches",
            Kind::Texts,
            Optional,
            "Branches whose heads are taken: master, mm-unstable. Without `tags`, tags are not taken then.",
        ),
        key(
            "every",
            Kind::Span,
            Without(Preset::Span(86_400, "1d")),
            "Least time between two heads of one branch.",
        ),
        key(
            "candidates",
            Kind::Flag,
            Without(Preset::Flag(false)),
            "Take release candidates as well: v6.12-rc3.",
        ),
        key(
            "points",
            Kind::Choice(&["monthly", "every", "never"]),
            Without(Preset::Text("monthly")),
            "Stable updates to take: the newest of each series, at most one in a calendar month (monthly); all (every); none (never).",
        ),
        key(
            "since",
            Kind::Text,
            Optional,
            "Releases before this one are passed over: 6.1.",
        ),
        key(
            "config",
            Kind::Text,
            Without(Preset::Text("default")),
            "Kernel config for kernels that Marvin builds: default, tiny, smp, small, defconfig, running, or a file; more on top with +.",
        ),
    ],
};

static PLAN: Table = Table {
    what: "[[plan]]",
    about: "Workloads to measure on each kernel of some trees. Marvin measures later additions on older kernels too.",
    keys: &[
        key("name", Kind::Name, Needed, "Its name."),
        key(
            "trees",
            Kind::Texts,
            Optional,
            "Names of the trees. Without it, all.",
        ),
        key(
            "suite",
            Kind::Name,
            Without(Preset::Text("micro")),
            "The suite; `marvin workloads` lists them.",
        ),
        key(
            "workloads",
            Kind::Texts,
            Optional,
            "Names of workloads, or groups of them. Without it, the whole suite.",
        ),
        key(
            "seeds",
            Kind::Whole(1, 1000),
            Without(Preset::Whole(5)),
            "How many seeds, or boots of a server; one run each.",
        ),
        key(
            "on",
            Kind::Name,
            Without(Preset::Text("exact")),
            "The machine: exact, or the name of a [[machine]].",
        ),
        key(
            "priority",
            Kind::Whole(0, 1000),
            Without(Preset::Whole(100)),
            "Plans of higher priority are done first.",
        ),
    ],
};

static WORK: Table = Table {
    what: "[work]",
    about: "How `marvin work` works.",
    keys: &[
        key(
            "deadline",
            Kind::Span,
            Without(Preset::Span(14_400, "4h")),
            "How long a job may take, its build included.",
        ),
        key(
            "attempts",
            Kind::Whole(1, 20),
            Without(Preset::Whole(3)),
            "How often a job is tried when the lab fails.",
        ),
        key(
            "builds",
            Kind::Text,
            Optional,
            "Folder that all hosts share: what one host builds, the others fetch there by its hash.",
        ),
        key(
            "only_named_trees",
            Kind::Flag,
            Without(Preset::Flag(false)),
            "Refuse jobs with a file or folder of the worker's host: path:, tree: and patch: names.",
        ),
    ],
};

static BUILD: Table = Table {
    what: "[build]",
    about: "How Marvin builds kernels from source; options of commands come on top.",
    keys: &[key(
        "make_args",
        Kind::Texts,
        Optional,
        "Variables for make, each VARIABLE=VALUE: LLVM=1, CC=gcc-12, KCFLAGS=-O3 -g.",
    )],
};

static EXACT: Table = Table {
    what: "[exact]",
    about: "The exact machine.",
    keys: &[key(
        "cpu",
        Kind::Choice(ExactCpu::NAMES),
        Without(Preset::Text("generic")),
        "The CPU of exact and exact-smp, unless --cpu names another. Each is a machine of its own.",
    )],
};

static NOTIFY: Table = Table {
    what: "[[notify]]",
    about: "A recipient of notices about overdue jobs, kernels that do not build or boot, and trees that do not answer, by \
            exactly one of mail, webhook and command.",
    keys: &[
        key("name", Kind::Name, Needed, "Its name."),
        key(
            "mail",
            Kind::Texts,
            Optional,
            "Addresses that a mail is sent to.",
        ),
        key(
            "from",
            Kind::Text,
            Without(Preset::Text("marvin")),
            "The sender of the mail; for a server, an address.",
        ),
        key(
            "sendmail",
            Kind::Texts,
            Optional,
            "The program that takes the mail: sendmail of any mail server, or msmtp -t. Without it and smtp: sendmail -t -oi.",
        ),
        key(
            "smtp",
            Kind::Text,
            Optional,
            "Or the mail server: smtp://HOST (port 25; another host than this one has to offer STARTTLS), smtps://HOST (port \
             465), with :PORT for another port.",
        ),
        key(
            "user",
            Kind::Text,
            Optional,
            "User name at the mail server, if it requires a login.",
        ),
        key(
            "password",
            Kind::Text,
            Optional,
            "Where the password is: file:PATH (from the folder of this file; the first line) or env:VARIABLE.",
        ),
        key(
            "webhook",
            Kind::Text,
            Optional,
            "Address (http or https) that a JSON document is posted to, by curl.",
        ),
        key(
            "command",
            Kind::Texts,
            Optional,
            "Program with arguments that reads the JSON document from standard input.",
        ),
    ],
};

static REGRESSIONS: Table = Table {
    what: "[regressions]",
    about: "What happens to regressions that are found: each [[notify]] gets a draft, once.",
    keys: &[
        key(
            "send",
            Kind::Flag,
            Without(Preset::Flag(false)),
            "Also mail those without doubts to the maintainers and lists, through the first [[notify]] with `mail`.",
        ),
        key(
            "digest",
            Kind::Flag,
            Without(Preset::Flag(true)),
            "Send each [[notify]] the open alerts once a week.",
        ),
    ],
};

static TRACK: Table = Table {
    what: "[[track]]",
    about: "Addresses that hear of regressions in a track, beside the maintainers.",
    keys: &[
        key(
            "name",
            Kind::Text,
            Needed,
            "The track's name, as `marvin alerts` shows it before the @.",
        ),
        key("mail", Kind::Texts, Needed, "Addresses of mail."),
    ],
};

static MACHINE: Table = Table {
    what: "[[machine]]",
    about: "A server that boots builds, for --on NAME. Its own kernel is the default of each start.",
    keys: &[
        key("name", Kind::Name, Needed, "Its name."),
        key(
            "kind",
            Kind::Choice(&["ssh"]),
            Without(Preset::Text("ssh")),
            "How it is reached: by the system's ssh.",
        ),
        key(
            "host",
            Kind::Text,
            Needed,
            "Where ssh finds it: root@testbox.lab, or a host of the ssh configuration.",
        ),
        key(
            "ssh_config",
            Kind::Text,
            Optional,
            "A configuration file of ssh, from the folder of this file.",
        ),
        key(
            "boot",
            Kind::Choice(&model::BootOnce::NAMES),
            Without(Preset::Text("kexec")),
            "How a build is booted once; with command, by the program in boot_command.",
        ),
        key(
            "boot_command",
            Kind::Texts,
            Optional,
            "Program on the server that sets MARVIN_KERNEL, with MARVIN_INITRD and MARVIN_COMMAND_LINE, for \
             one boot, and restarts the server.",
        ),
        key(
            "boot_deadline",
            Kind::Span,
            Without(Preset::Span(600, "10m")),
            "How long a boot may take.",
        ),
        key(
            "idle_off",
            Kind::Span,
            Optional,
            "`marvin work` switches the server off after this time without a job or a reservation; a measurement switches it on. \
             Needs a [machine.power].",
        ),
        key(
            "check_every",
            Kind::Span,
            Optional,
            "`marvin work` measures a known kernel on the server after this time without a completed job.",
        ),
        key(
            "cpus",
            Kind::Text,
            Optional,
            "Processors for workloads, as taskset writes them: 2-7. Without it, the last one.",
        ),
        key(
            "power",
            Kind::One(&POWER),
            Optional,
            "The server's power control. Without it, Marvin loses the server when a kernel hangs.",
        ),
        key(
            "console",
            Kind::One(&CONSOLE),
            Optional,
            "Its serial console. Without it, Marvin does not record why a kernel died.",
        ),
        key(
            "slurm_node",
            Kind::Text,
            Optional,
            "The Slurm node that stands for it: its jobs run there.",
        ),
        key(
            "deploy",
            Kind::One(&DEPLOY),
            Optional,
            "How Marvin starts an image on the server. Without it, by kexec.",
        ),
    ],
};

static DEPLOY: Table = Table {
    what: "[machine.deploy]",
    about: "How `marvin deploy` has the server run an image: by kexec from the system that runs, by iPXE, or by a program.",
    keys: &[
        key(
            "pxe",
            Kind::Text,
            Optional,
            "Where Marvin listens for the server's iPXE: 0.0.0.0:8069. Needs `mac` and a [machine.power].",
        ),
        key(
            "mac",
            Kind::Text,
            Optional,
            "The server's network card, as iPXE's ${net0/mac:hexhyp}: 52-54-00-12-34-56.",
        ),
        key(
            "command",
            Kind::Texts,
            Optional,
            "Or a program of this host that has the server start MARVIN_KERNEL with MARVIN_INITRD and MARVIN_COMMAND_LINE; its \
             last arguments are the names of the server and the image.",
        ),
        key(
            "key",
            Kind::Text,
            Optional,
            "The public key that opens the server. Without it, the one that ssh uses for it.",
        ),
        key(
            "command_line",
            Kind::Text,
            Optional,
            "Command line of the image's kernel. Without it: console=tty0 console=ttyS0,115200 panic=10.",
        ),
        key(
            "disk",
            Kind::Text,
            Optional,
            "The disk that `marvin deploy --disk` erases and installs an image on: /dev/disk/by-id/NAME.",
        ),
    ],
};

static IMAGE: Table = Table {
    what: "[[image]]",
    about: "A distribution that servers run from memory: made of Debian's packages, or by a program.",
    keys: &[
        key("name", Kind::Name, Needed, "Its name."),
        key(
            "debian",
            Kind::Text,
            Optional,
            "Code name of the distribution: bookworm, trixie.",
        ),
        key(
            "mirror",
            Kind::Text,
            Optional,
            "Where its packages are, or a line for sources.list. Without it, Debian's servers.",
        ),
        key(
            "kernel",
            Kind::Text,
            Without(Preset::Text("linux-image-amd64")),
            "The package of its kernel.",
        ),
        key(
            "packages",
            Kind::Texts,
            Optional,
            "Packages besides what Marvin needs: linux-perf.",
        ),
        key(
            "setup",
            Kind::Text,
            Optional,
            "A shell script that changes the root, whose directory is its argument; from the folder of this file.",
        ),
        key(
            "command",
            Kind::Texts,
            Optional,
            "Or a program of this host that makes vmlinuz, root (an initramfs) and release in its last argument, a directory.",
        ),
        key(
            "kernels",
            Kind::Text,
            Optional,
            "The kernels that are measured on it: 3.0..3.12, ..3.12, 4.0... Without it, all.",
        ),
    ],
};

/// Keys of all batch systems.
const JOBS: Key = key(
    "jobs",
    Kind::Whole(1, 10_000),
    Without(Preset::Whole(50)),
    "Limit on Marvin's jobs that wait or run there at once; the others wait in Marvin's queue.",
);
const ITS_HOME: Key = key(
    "home",
    Kind::Text,
    Optional,
    "Data directory on its hosts; %N is the host's name there. Without it, the same as here.",
);
const ITS_PROGRAM: Key = key(
    "program",
    Kind::Text,
    Optional,
    "Marvin on its hosts. Without it, the path of the program here.",
);

static SLURM: Table = Table {
    what: "[slurm]",
    about: "How jobs go to Slurm: by sbatch, squeue and scancel of this host.",
    keys: &[
        key(
            "options",
            Kind::Texts,
            Optional,
            "Options of sbatch for all jobs: --partition=lab, --nice=100.",
        ),
        key(
            "exact",
            Kind::Texts,
            Optional,
            "Further options for jobs of the exact machine: --constraint=amd.",
        ),
        JOBS,
        ITS_HOME,
        ITS_PROGRAM,
    ],
};

static BATCH: Table = Table {
    what: "[batch]",
    about: "How jobs go to a batch system other than Slurm: by a program; docs/slurm.md.",
    keys: &[
        key(
            "command",
            Kind::Texts,
            Optional,
            "The program with arguments; it gets submit, list or cancel.",
        ),
        JOBS,
        ITS_HOME,
        ITS_PROGRAM,
    ],
};

static CONSOLE: Table = Table {
    what: "[machine.console]",
    about: "Where the server's serial console is: a program, an address, or its BMC.",
    keys: &[
        key(
            "command",
            Kind::Texts,
            Optional,
            "Program of this host that prints it until it is killed.",
        ),
        key(
            "tcp",
            Kind::Text,
            Optional,
            "Or an address that sends it: HOST:PORT, as of ser2net or a terminal server.",
        ),
        key(
            "break",
            Kind::Texts,
            Optional,
            "Program of this host that sends a break to the console of `command`; its last argument is the sysrq key that it \
             sends next, if there is one.",
        ),
        key(
            "telnet",
            Kind::Flag,
            Optional,
            "The address of `tcp` speaks telnet, so that Marvin can send breaks.",
        ),
        key(
            "ipmi",
            Kind::Flag,
            Optional,
            "Or serial-over-LAN of the BMC in [machine.power], by ipmitool.",
        ),
    ],
};

static POWER: Table = Table {
    what: "[machine.power]",
    about: "What switches the server's power: a BMC, QEMU, or a program.",
    keys: &[
        key(
            "ipmi",
            Kind::Text,
            Optional,
            "Host of its BMC that speaks IPMI 2.0, by ipmitool; with :PORT for another port.",
        ),
        key(
            "redfish",
            Kind::Text,
            Optional,
            "Or address of its BMC that speaks Redfish: https://testbox-bmc.lab.",
        ),
        key(
            "qmp",
            Kind::Text,
            Optional,
            "Or the QMP socket of the QEMU that emulates it.",
        ),
        key(
            "command",
            Kind::Texts,
            Optional,
            "Or a program of this host; its last argument is on, off or status, which prints on or off. For the next boot it gets \
             boot, and pxe, disk or bios.",
        ),
        key("user", Kind::Text, Optional, "User name at the BMC."),
        key(
            "password",
            Kind::Text,
            Optional,
            "Where the password is: file:PATH (from the folder of this file; the first line) or env:VARIABLE.",
        ),
        key(
            "cipher",
            Kind::Whole(0, 17),
            Optional,
            "Cipher suite of IPMI; the same as ipmitool -C. A fixed one saves some BMCs 10 s for each command.",
        ),
        key(
            "system",
            Kind::Text,
            Optional,
            "Path of the Redfish system: /redfish/v1/Systems/1. Without it, the only one.",
        ),
        key(
            "insecure",
            Kind::Flag,
            Optional,
            "Accept any certificate of a Redfish BMC.",
        ),
    ],
};

static SERVE: Table = Table {
    what: "[serve]",
    about: "The dashboard.",
    keys: &[key(
        "listen",
        Kind::Text,
        Optional,
        "Address that `marvin serve` listens on without --listen: 127.0.0.1:8080.",
    )],
};
