//! What building a kernel needs of this host, beyond its compiler, and one command that installs all
//! that is missing (`Documentation/process/changes.rst` of the kernel).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::program::Program;
use super::toolchain::find_program;

/// How long the compiler may take to look for a header (s).
const HEADER_S: u64 = 60;

/// How something is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Probe {
    Program(&'static str),
    /// A header that the host's compiler finds.
    Header(&'static str),
}

/// Something that a build may need.
#[derive(Debug, Clone, Copy)]
struct Need {
    probe: Probe,
    /// Its name for people.
    what: &'static str,
    /// The options that need it; none: every kernel.
    options: &'static [&'static str],
    /// Packages of Debian, Fedora and Arch Linux.
    packages: [&'static str; 3],
}

/// Programs of every build; the compiler and the linker may be others.
const PROGRAMS: [Need; 7] = [
    program("git", &[], ["git", "git", "git"]),
    program("make", &[], ["make", "make", "make"]),
    program("gcc", &[], ["gcc", "gcc", "gcc"]),
    program("ld", &[], ["binutils", "binutils", "binutils"]),
    program("flex", &[], ["flex", "flex", "flex"]),
    program("bison", &[], ["bison", "bison", "bison"]),
    program("bc", &[], ["bc", "bc", "bc"]),
];

/// The C library's headers, which programs of the build itself (scripts/) include.
const LIBC: Need = Need {
    probe: Probe::Header("stdlib.h"),
    what: "the C library's headers",
    options: &[],
    packages: ["libc6-dev", "glibc-devel", "glibc"],
};

/// What some options need. The names of options are without CONFIG_.
const OF_OPTIONS: [Need; 12] = [
    // tools/objtool/Makefile; older kernels have STACK_VALIDATION instead of OBJTOOL.
    Need {
        probe: Probe::Header("gelf.h"),
        what: "libelf's headers",
        options: &["OBJTOOL", "STACK_VALIDATION", "UNWINDER_ORC"],
        packages: ["libelf-dev", "elfutils-libelf-devel", "libelf"],
    },
    // scripts/sign-file.c and certs/extract-cert.c.
    Need {
        probe: Probe::Header("openssl/opensslv.h"),
        what: "OpenSSL's headers",
        options: &["MODULE_SIG", "SYSTEM_TRUSTED_KEYRING"],
        packages: ["libssl-dev", "openssl-devel", "openssl"],
    },
    // certs/Makefile makes a key with it.
    program(
        "openssl",
        &["MODULE_SIG"],
        ["openssl", "openssl", "openssl"],
    ),
    // scripts/link-vmlinux.sh.
    program(
        "pahole",
        &["DEBUG_INFO_BTF"],
        ["pahole", "dwarves", "pahole"],
    ),
    // Compressors of images (scripts/Makefile.lib) and of modules (scripts/Makefile.modinst).
    program(
        "xz",
        &["KERNEL_XZ", "MODULE_COMPRESS_XZ"],
        ["xz-utils", "xz", "xz"],
    ),
    program(
        "zstd",
        &["KERNEL_ZSTD", "MODULE_COMPRESS_ZSTD"],
        ["zstd", "zstd", "zstd"],
    ),
    program("lz4", &["KERNEL_LZ4"], ["lz4", "lz4", "lz4"]),
    program("lzop", &["KERNEL_LZO"], ["lzop", "lzop", "lzop"]),
    program("bzip2", &["KERNEL_BZIP2"], ["bzip2", "bzip2", "bzip2"]),
    program("lzma", &["KERNEL_LZMA"], ["xz-utils", "xz", "xz"]),
    // kernel/gen_kheaders.sh.
    program("cpio", &["IKHEADERS"], ["cpio", "cpio", "cpio"]),
    program("tar", &["IKHEADERS"], ["tar", "tar", "tar"]),
];

const fn program(
    name: &'static str,
    options: &'static [&'static str],
    packages: [&'static str; 3],
) -> Need {
    Need {
        probe: Probe::Program(name),
        what: name,
        options,
        packages,
    }
}

/// The programs that install packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Installer {
    Apt,
    Dnf,
    Pacman,
    /// Its packages have other names, perhaps.
    Other,
}

impl Installer {
    /// Returns that of this host (os-release(5)).
    fn of_host() -> Self {
        let text = ["/etc/os-release", "/usr/lib/os-release"]
            .iter()
            .find_map(|file| fs::read_to_string(file).ok())
            .unwrap_or_default();
        Self::of_release(&text)
    }

    fn of_release(text: &str) -> Self {
        let words: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")))
            .flat_map(|value| value.trim_matches(['"', '\'']).split(' '))
            .collect();
        let is = |names: &[&str]| words.iter().any(|word| names.contains(word));
        if is(&["debian", "ubuntu"]) {
            Self::Apt
        } else if is(&["fedora", "rhel", "centos"]) {
            Self::Dnf
        } else if is(&["arch"]) {
            Self::Pacman
        } else {
            Self::Other
        }
    }

    /// Returns the package of a need.
    fn package(self, need: &Need) -> &'static str {
        let [debian, fedora, arch] = need.packages;
        match self {
            Self::Apt | Self::Other => debian,
            Self::Dnf => fedora,
            Self::Pacman => arch,
        }
    }

    /// Returns the command that installs packages.
    fn command(self, packages: &[&str]) -> String {
        let packages = packages.join(" ");
        match self {
            Self::Apt => format!("sudo apt-get install {packages}"),
            Self::Dnf => format!("sudo dnf install {packages}"),
            Self::Pacman => format!("sudo pacman -S --needed {packages}"),
            Self::Other => {
                format!("install these packages (their names in Debian): {packages}")
            }
        }
    }
}

/// What is missing of this host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingNeeds {
    /// The missing programs and headers, for people: `flex, bison and libelf's headers`.
    pub what: String,
    /// One command that installs all of it.
    pub install: String,
}

impl MissingNeeds {
    /// `None` if all is there.
    fn of(missing: &[&Need], installer: Installer) -> Option<Self> {
        let names: Vec<&str> = missing.iter().map(|need| need.what).collect();
        let what = match names.as_slice() {
            [] => return None,
            [one] => (*one).to_owned(),
            [first @ .., last] => format!("{} and {last}", first.join(", ")),
        };
        let mut packages: Vec<&str> = Vec::new();
        for package in missing.iter().map(|need| installer.package(need)) {
            if !packages.contains(&package) {
                packages.push(package);
            }
        }
        Some(Self {
            what,
            install: installer.command(&packages),
        })
    }
}

/// The needs of this host's own compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compiler {
    /// gcc and ld of PATH.
    Usual,
    /// The user named others.
    Named,
}

/// Returns what is missing before a build, whose config is not resolved yet. If a program of every
/// build is missing, these are all that a usual kernel needs, so that one command installs them.
pub(crate) fn missing_before(
    compiler: Compiler,
    requests: impl Fn(&str) -> bool,
) -> Option<MissingNeeds> {
    let is_chosen =
        |need: &&Need| compiler == Compiler::Usual || !["gcc", "ld"].contains(&need.what);
    let missing: Vec<&Need> = PROGRAMS
        .iter()
        .filter(is_chosen)
        .filter(|need| is_missing(need.probe, "gcc"))
        .collect();
    if missing.is_empty() {
        return None;
    }
    let usual = OF_OPTIONS.iter().filter(|need| {
        need.options.contains(&"OBJTOOL") || need.options.iter().any(|option| requests(option))
    });
    let more = std::iter::once(&LIBC)
        .chain(usual)
        .filter(|need| is_missing(need.probe, "gcc"));
    let all: Vec<&Need> = missing.iter().copied().chain(more).collect();
    MissingNeeds::of(&all, Installer::of_host())
}

/// Returns what is missing for a resolved config, with the compiler of the build's own programs.
/// Compressors of the image count only if a bzImage is built.
pub(crate) fn missing_for(
    options: &BTreeMap<String, String>,
    host_cc: &str,
    makes_bzimage: bool,
) -> Option<MissingNeeds> {
    let is_on = |option: &&str| {
        let counts = makes_bzimage || !option.starts_with("KERNEL_");
        counts
            && options
                .get(&format!("CONFIG_{option}"))
                .is_some_and(|value| value == "y")
    };
    let of_options = OF_OPTIONS
        .iter()
        .filter(|need| need.options.iter().any(is_on));
    let missing: Vec<&Need> = std::iter::once(&LIBC)
        .chain(of_options)
        .filter(|need| is_missing(need.probe, host_cc))
        .collect();
    MissingNeeds::of(&missing, Installer::of_host())
}

/// What this host lacks for builds of kernels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostNeeds {
    /// Without these no kernel is built; the command installs what some configs need, too.
    pub needed: Option<MissingNeeds>,
    /// Configs of distributions need these.
    pub by_config: Option<MissingNeeds>,
}

/// Compressors that few configs need.
const RARE: [&str; 5] = ["lz4", "lzop", "bzip2", "lzma", "tar"];

/// Returns what this host lacks for builds with its own compiler.
#[must_use]
pub fn find_missing_needs() -> HostNeeds {
    let is_of_all = |need: &&Need| need.options.is_empty() || need.options.contains(&"OBJTOOL");
    let all = PROGRAMS.iter().chain([&LIBC]).chain(&OF_OPTIONS);
    let missing: Vec<&Need> = all
        .filter(|need| !RARE.contains(&need.what) && is_missing(need.probe, "gcc"))
        .collect();
    let installer = Installer::of_host();
    let whole = MissingNeeds::of(&missing, installer);
    let (needed, by_config): (Vec<&Need>, Vec<&Need>) = missing.into_iter().partition(is_of_all);
    let needed = MissingNeeds::of(&needed, installer);
    HostNeeds {
        needed: needed.zip(whole).map(|(needed, whole)| MissingNeeds {
            what: needed.what,
            install: whole.install,
        }),
        by_config: MissingNeeds::of(&by_config, installer),
    }
}

/// Returns what this host lacks for options that Kconfig switched off for that: types need pahole
/// (lib/Kconfig.debug: DEBUG_INFO_BTF).
pub(crate) fn missing_for_options(not_kept: &[String]) -> Option<MissingNeeds> {
    if !not_kept
        .iter()
        .any(|option| option == "CONFIG_DEBUG_INFO_BTF=y")
    {
        return None;
    }
    let pahole = OF_OPTIONS
        .iter()
        .find(|need| need.probe == Probe::Program("pahole"))
        .filter(|need| is_missing(need.probe, "gcc"))?;
    MissingNeeds::of(&[pahole], Installer::of_host())
}

fn is_missing(probe: Probe, host_cc: &str) -> bool {
    match probe {
        Probe::Program(name) => find_program(name).is_none(),
        Probe::Header(header) => !has_header(header, host_cc),
    }
}

/// Returns whether the compiler finds a header; without a compiler, whether it is where headers are.
fn has_header(header: &str, host_cc: &str) -> bool {
    let asked = Program::new(host_cc, Path::new("/"))
        .args(["-fsyntax-only", "-include", header, "-x", "c", "/dev/null"])
        .deadline_s(HEADER_S)
        .end();
    match asked {
        Ok(ended) => ended.code == Some(0),
        Err(_) => {
            let below = ["", "x86_64-linux-gnu", "aarch64-linux-gnu"];
            below
                .iter()
                .any(|folder| Path::new("/usr/include").join(folder).join(header).exists())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Installer, LIBC, MissingNeeds, Need, OF_OPTIONS, PROGRAMS, has_header};

    #[test]
    fn one_command_installs_all_that_is_missing() {
        let missing: Vec<&Need> = PROGRAMS[4..]
            .iter()
            .chain([&LIBC])
            .chain(&OF_OPTIONS[..4])
            .collect();
        let of = |release: &str| {
            MissingNeeds::of(&missing, Installer::of_release(release))
                .unwrap()
                .install
        };
        let commands = [
            "ID=debian",
            "ID=linuxmint\nID_LIKE=\"ubuntu debian\"",
            "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"",
            "ID=arch",
            "ID=void",
        ]
        .map(of)
        .join("\n");
        insta::assert_snapshot!(commands, @"
        sudo apt-get install flex bison bc libc6-dev libelf-dev libssl-dev openssl pahole
        sudo apt-get install flex bison bc libc6-dev libelf-dev libssl-dev openssl pahole
        sudo dnf install flex bison bc glibc-devel elfutils-libelf-devel openssl-devel openssl dwarves
        sudo pacman -S --needed flex bison bc glibc libelf openssl pahole
        install these packages (their names in Debian): flex bison bc libc6-dev libelf-dev libssl-dev openssl pahole
        ");
        let needs = MissingNeeds::of(&missing, Installer::Apt).unwrap();
        insta::assert_snapshot!(needs.what, @"flex, bison, bc, the C library's headers, libelf's headers, OpenSSL's headers, openssl and pahole");
        assert_eq!(MissingNeeds::of(&[], Installer::Apt), None);
    }

    #[test]
    fn headers_are_found_by_the_compiler() {
        assert!(has_header("stdlib.h", "gcc"));
        assert!(!has_header("marvin/none-such.h", "gcc"));
    }
}
