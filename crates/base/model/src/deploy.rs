//! Images of distributions, and how they come to servers. `config` parses both from `marvin.toml`.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::Release;

/// The command line of images, unless a site has another one: both usual consoles; a dead kernel
/// restarts the server.
const COMMAND_LINE: &str = "console=tty0 console=ttyS0,115200 panic=10";

/// Packages of Debian that make an image bootable from a disk, by BIOS or by EFI.
const FOR_DISK: [&str; 8] = [
    "dosfstools",
    "e2fsprogs",
    "fdisk",
    "grub-efi-amd64-bin",
    "grub-pc-bin",
    "grub2-common",
    "initramfs-tools",
    "util-linux",
];

/// An image: a distribution that a server runs from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageSettings {
    /// The server's name in marvin.toml.
    pub name: String,
    /// What it is made of.
    pub recipe: Recipe,
    /// The kernels that are measured on it; `None` for all.
    pub kernels: Option<KernelRange>,
}

impl ImageSettings {
    /// Returns the image that can be installed on a disk: with boot loaders, an initramfs and tools
    /// for disks besides.
    #[must_use]
    pub fn for_disk(&self) -> Self {
        let mut image = self.clone();
        if let Recipe::Debian { packages, .. } = &mut image.recipe {
            image.name += "-disk";
            packages.extend(FOR_DISK.map(str::to_owned));
        }
        image
    }
}

/// What an image is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recipe {
    /// Packages of Debian, or of a distribution that is made like it.
    Debian {
        /// Its code name: `trixie`.
        suite: String,
        /// Where its packages are; `None` for Debian's own servers.
        mirror: Option<String>,
        /// The package of its kernel.
        kernel: String,
        /// Packages besides what Marvin needs.
        packages: Vec<String>,
        /// A shell script that changes the root, whose directory is its argument.
        setup: Option<PathBuf>,
    },
    /// A program with its arguments that makes the image in its last argument, a directory.
    Command(Vec<String>),
}

/// A range of kernel series with both ends: `3.0..3.12`, `..3.12`, `4.0..`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelRange {
    first: Option<Release>,
    last: Option<Release>,
}

impl KernelRange {
    /// Returns whether a release belongs to it: 3.12.9 to `..3.12`.
    #[must_use]
    pub fn contains(&self, release: &str) -> bool {
        let series = Release::parse(release).series();
        self.first
            .as_ref()
            .is_none_or(|first| first.series() <= series)
            && self
                .last
                .as_ref()
                .is_none_or(|last| series <= last.series())
    }
}

impl FromStr for KernelRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || {
            format!(
                "expected kernels such as 3.0..3.12, ..3.12 or 4.0.., not `{}`",
                text.escape_debug()
            )
        };
        let (first, last) = text.split_once("..").ok_or_else(wrong)?;
        let range = Self {
            first: end_of_range(first).ok_or_else(wrong)?,
            last: end_of_range(last).ok_or_else(wrong)?,
        };
        match (&range.first, &range.last) {
            (None, None) => Err(wrong()),
            (Some(first), Some(last)) if first.series() > last.series() => Err(format!(
                "no kernel is from {first} to {last}: the older one comes first"
            )),
            _ => Ok(range),
        }
    }
}

impl fmt::Display for KernelRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            |end: &Option<Release>| end.as_ref().map_or_else(String::new, ToString::to_string);
        write!(f, "{}..{}", text(&self.first), text(&self.last))
    }
}

/// How a server comes to run an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeploySettings {
    /// What starts the kernel on it.
    pub by: DeployWay,
    /// The public key that opens it; `None` for the one that ssh uses for the server.
    pub key: Option<PathBuf>,
    /// The kernel's command line.
    pub command_line: String,
    /// The disk on which images may be installed, by its path on the server; it loses all that it
    /// has.
    pub disk: Option<String>,
}

impl Default for DeploySettings {
    fn default() -> Self {
        Self {
            by: DeployWay::Kexec,
            key: None,
            command_line: COMMAND_LINE.to_owned(),
            disk: None,
        }
    }
}

/// What starts an image on a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeployWay {
    /// The system that runs there: kexec(8).
    Kexec,
    /// Its firmware by iPXE, from Marvin by HTTP.
    Pxe {
        /// The address that Marvin's HTTP server listens on.
        listen: SocketAddr,
        /// The server's network card, as iPXE writes it: `52-54-00-12-34-56`.
        mac: String,
    },
    /// A program of the lab's host with its arguments.
    Command(Vec<String>),
}

/// Parses an end of a range of kernels: `3.12`, or nothing where it is open.
fn end_of_range(text: &str) -> Option<Option<Release>> {
    if text.is_empty() {
        return Some(None);
    }
    let mut parts = text.split('.');
    let is_version = parts.clone().count() == 2
        && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    is_version.then(|| Some(Release::parse(text)))
}

#[cfg(test)]
mod tests {
    use super::KernelRange;

    fn range(text: &str) -> Result<KernelRange, String> {
        text.parse()
    }

    #[test]
    fn range_has_both_ends() {
        let old = range("3.0..3.12").unwrap();
        let is_in = ["3.0", "3.0.101", "3.12.74-sle", "3.2"].map(|release| old.contains(release));
        assert_eq!(is_in, [true; 4]);
        assert!(!old.contains("2.6.32") && !old.contains("3.13") && !old.contains("4.0"));
        assert!(
            range("4.0..").unwrap().contains("6.12.1")
                && range("..3.12").unwrap().contains("2.6.32")
        );
        assert_eq!(range("4.0..").unwrap().to_string(), "4.0..");
    }

    #[test]
    fn wrong_ranges_say_what_is_expected() {
        for wrong in ["", "..", "3", "3..4", "v3.0..4.0"] {
            let expected =
                format!("expected kernels such as 3.0..3.12, ..3.12 or 4.0.., not `{wrong}`");
            assert_eq!(range(wrong), Err(expected));
        }
        assert_eq!(
            range("6.1..3.0"),
            Err("no kernel is from 6.1 to 3.0: the older one comes first".to_owned())
        );
    }
}
