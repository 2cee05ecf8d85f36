//! The keys of the tables that say where packages and sources of kernels come from.

use super::Presence::{Optional, Preset as Without};
use super::{Kind, Preset, Table, key};

pub(super) static DEBIAN: Table = Table {
    what: "[debian]",
    about: "Debian's archive: the same packages on every host, without apt; docs/hosts.md.",
    keys: &[
        key(
            "mirror",
            Kind::Text,
            Without(Preset::Text("http://deb.debian.org/debian")),
            "The archive: an address with the folders dists and pool. Signatures protect it, with TLS or without.",
        ),
        key(
            "security",
            Kind::Text,
            Without(Preset::Text("http://deb.debian.org/debian-security")),
            "The archive of security updates.",
        ),
        key(
            "snapshot",
            Kind::Text,
            Without(Preset::Text("http://snapshot.debian.org")),
            "The service that has the archive of each day, for deb:SUITE@DATE/VERSION.",
        ),
        key(
            "keyring",
            Kind::Text,
            Optional,
            "A binary keyring with the keys that may sign; Debian's keys are in Marvin.",
        ),
        key(
            "suite",
            Kind::Text,
            Without(Preset::Text("bookworm")),
            "Suite of deb: names without one: deb:6.12 is deb:bookworm/6.12.",
        ),
    ],
};

pub(super) static UBUNTU: Table = Table {
    what: "[ubuntu]",
    about: "Ubuntu's archive, for ubuntu: kernels; docs/hosts.md.",
    keys: &[
        key(
            "mirror",
            Kind::Text,
            Without(Preset::Text("http://archive.ubuntu.com/ubuntu")),
            "The archive: an address with the folders dists and pool.",
        ),
        key(
            "security",
            Kind::Text,
            Without(Preset::Text("http://security.ubuntu.com/ubuntu")),
            "The archive of security updates.",
        ),
        key(
            "snapshot",
            Kind::Text,
            Without(Preset::Text("https://snapshot.ubuntu.com")),
            "The service that has the archive of each day, for ubuntu:SUITE@DATE/VERSION.",
        ),
        key(
            "keyring",
            Kind::Text,
            Optional,
            "A binary keyring with the keys that may sign; Ubuntu's keys are in Marvin.",
        ),
        key(
            "suite",
            Kind::Text,
            Without(Preset::Text("noble")),
            "Suite of ubuntu: names without one: ubuntu:6.8 is ubuntu:noble/6.8.",
        ),
    ],
};

pub(super) static FEDORA: Table = Table {
    what: "[fedora]",
    about: "Fedora's archive, for fedora: kernels; docs/hosts.md.",
    keys: &[
        key(
            "mirror",
            Kind::Text,
            Without(Preset::Text(
                "https://dl.fedoraproject.org/pub/fedora/linux",
            )),
            "The archive: an address with the folders releases and updates.",
        ),
        key(
            "keyring",
            Kind::Text,
            Optional,
            "A file with the keys that may sign packages, binary or armoured, such as Fedora's /etc/pki/rpm-gpg/RPM-GPG-KEY-fedora-43-primary; without it there are no fedora: kernels.",
        ),
        key(
            "release",
            Kind::Text,
            Without(Preset::Text("43")),
            "Release of fedora: names without one: fedora:6.17 is fedora:43/6.17.",
        ),
    ],
};

pub(super) static ARCH: Table = Table {
    what: "[arch]",
    about: "Arch Linux's archive, for arch: kernels; docs/hosts.md.",
    keys: &[
        key(
            "mirror",
            Kind::Text,
            Without(Preset::Text("https://geo.mirror.pkgbuild.com")),
            "The archive: an address with the folders core and extra; also one of a day, https://archive.archlinux.org/repos/2026/01/01.",
        ),
        key(
            "keyring",
            Kind::Text,
            Optional,
            "A file with the keys that may sign packages, binary or armoured, such as Arch's /usr/share/pacman/keyrings/archlinux.gpg; without it there are no arch: kernels.",
        ),
    ],
};

pub(super) static KERNEL_ORG: Table = Table {
    what: "[kernel_org]",
    about: "Tarballs of kernel.org, for kernel.org: sources; docs/hosts.md.",
    keys: &[
        key(
            "mirror",
            Kind::Text,
            Without(Preset::Text("https://cdn.kernel.org/pub/linux/kernel")),
            "The archive: an address with the folders v5.x and v6.x.",
        ),
        key(
            "keyring",
            Kind::Text,
            Optional,
            "A file with the keys that may sign, binary or armoured: those of the releases and of sha256sums.asc; without it there are no kernel.org: sources.",
        ),
    ],
};
