//! Labels of kernels in a report: the version, and as much more as makes it unique.

use std::collections::BTreeSet;

use model::{Build, KernelName, Machine, PackageSelection};

use crate::cut_middle;
use model::sanitize_line;

/// The widest first or second line of a column's head.
const HEAD_WIDTH: usize = 21;
/// The widest title in a sentence.
const TITLE_WIDTH: usize = 48;

/// The labels of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// In a sentence: `6.12.117`, or `6.12.117 (rt-amd64)` if another kernel has the version
    /// 6.12.117.
    pub title: String,
    /// Above a column, in two lines; the second is often empty.
    pub head: [String; 2],
}

/// What distinguishes two builds of one version, the most readable first.
const DETAILS: [fn(&Build, &Machine) -> String; 4] = [
    |build, _| format_request(&build.name),
    |build, _| build.origin.to_string(),
    |build, _| build.id.short(),
    |_, machine| machine.id.short(),
];

/// Returns unique labels of several kernels.
#[must_use]
pub fn labels(kernels: &[(&Build, &Machine)]) -> Vec<Label> {
    let versions: Vec<String> = kernels
        .iter()
        .map(|(b, _)| sanitize_line(&b.version))
        .collect();
    versions
        .iter()
        .enumerate()
        .map(|(position, version)| {
            let alike: Vec<usize> = (0..versions.len())
                .filter(|other| versions[*other] == *version)
                .collect();
            label(version, &detail(kernels, &alike, position))
        })
        .collect()
}

/// Returns the labels of kernels that a command names: a revision is called as it was typed, with
/// its version behind.
#[must_use]
pub fn labels_as_typed(kernels: &[(&Build, &Machine)]) -> Vec<Label> {
    labels(kernels)
        .into_iter()
        .zip(kernels)
        .map(|(label, (build, _))| {
            let version = sanitize_line(&build.version);
            match typed_revision(&build.name) {
                // Another kernel has the version: the label has the name already.
                Some(revision) if label.title == cut_middle(&version, TITLE_WIDTH) => {
                    let revision = sanitize_line(&revision);
                    Label {
                        title: cut_middle(&format!("{revision} ({version})"), TITLE_WIDTH),
                        head: [&revision, &version].map(|line| cut_middle(line, HEAD_WIDTH)),
                    }
                }
                _ => label,
            }
        })
        .collect()
}

/// Returns the revision of a kernel's name; `None` of other sources, and of a hash, which the
/// version has.
#[must_use]
pub fn typed_revision(name: &KernelName) -> Option<String> {
    let KernelName::Git(revision) = name.source() else {
        return None;
    };
    let is_hash = revision.len() >= 7 && revision.bytes().all(|byte| byte.is_ascii_hexdigit());
    (!is_hash).then(|| format_request(name))
}

/// Returns what distinguishes the kernel at `position` from others of the same version; empty if
/// there are none.
fn detail(kernels: &[(&Build, &Machine)], alike: &[usize], position: usize) -> String {
    if alike.len() < 2 {
        return String::new();
    }
    let telling = DETAILS.iter().find_map(|detail| {
        let of_kernel = |n: usize| detail(kernels[n].0, kernels[n].1);
        let distinct: BTreeSet<String> = alike.iter().map(|n| of_kernel(*n)).collect();
        (distinct.len() == alike.len()).then(|| sanitize_line(&of_kernel(position)))
    });
    // The same image on the same machine, named twice: only the position on the command line
    // differs.
    telling.unwrap_or_else(|| format!("#{}", position + 1))
}

fn label(version: &str, detail: &str) -> Label {
    let title = if detail.is_empty() {
        version.to_owned()
    } else {
        format!("{version} ({detail})")
    };
    Label {
        title: cut_middle(&title, TITLE_WIDTH),
        head: head(version, detail),
    }
}

fn head(version: &str, detail: &str) -> [String; 2] {
    let (first, second) = if detail.is_empty() && version.chars().count() > HEAD_WIDTH {
        split_version(version)
    } else {
        (version, detail)
    };
    [
        cut_middle(first, HEAD_WIDTH),
        cut_middle(second, HEAD_WIDTH),
    ]
}

/// Splits at the first hyphen that `rc` does not follow, like MMTests: `6.12.0-rc4` and
/// `next-20241105-dirty`.
fn split_version(version: &str) -> (&str, &str) {
    version
        .match_indices(['-', '+'])
        .map(|(at, _)| version.split_at(at))
        .find(|(_, rest)| !rest.starts_with("-rc"))
        .map_or((version, ""), |(first, rest)| {
            (first, rest.trim_start_matches(['-', '+']))
        })
}

/// Returns the part of the requested name that a version does not contain: the flavour, the
/// package, the file.
fn format_request(name: &KernelName) -> String {
    match name {
        KernelName::Package(query) => match &query.selection {
            PackageSelection::Version { flavour, .. } => flavour.clone(),
            PackageSelection::Package(package) => {
                package.trim_start_matches("linux-image-").to_owned()
            }
        },
        KernelName::Imported(name) => name.clone(),
        KernelName::Running => "running".to_owned(),
        KernelName::Path(file) | KernelName::Tree(file) | KernelName::Patch { file, .. } => {
            file.file_name().map_or_else(
                || file.display().to_string(),
                |name| name.to_string_lossy().into_owned(),
            )
        }
        KernelName::Installed(query) => query.to_string(),
        KernelName::Changed { kernel, changes } => format!("{}{changes}", format_request(kernel)),
        KernelName::Git(text) | KernelName::DebSrc(text) | KernelName::KernelOrg(text) => {
            text.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Label, labels, split_version};
    use model::fixtures::{build, machine};

    fn titles(builds: &[model::Build]) -> Vec<Label> {
        let machine = machine();
        let kernels: Vec<_> = builds.iter().map(|b| (b, &machine)).collect();
        labels(&kernels)
    }

    #[test]
    fn label_is_the_version_where_unique() {
        let labels = titles(&[build("deb:6.1", "6.1.192"), build("deb:6.12", "6.12.117")]);
        assert_eq!(labels[0].title, "6.1.192");
        assert_eq!(labels[1].head, ["6.12.117", ""]);
    }

    #[test]
    fn equal_versions_get_flavour_file_or_id() {
        let labels = titles(&[
            build("deb:6.12", "6.12.117"),
            build("deb:6.12+rt-amd64", "6.12.117"),
            build("path:/boot/vmlinuz-mine", "6.12.117"),
            build("deb:6.1", "6.1.192"),
        ]);
        let titles: Vec<&str> = labels.iter().map(|l| l.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "6.12.117 (cloud-amd64)",
                "6.12.117 (rt-amd64)",
                "6.12.117 (vmlinuz-mine)",
                "6.1.192"
            ]
        );
        assert_eq!(labels[1].head, ["6.12.117", "rt-amd64"]);
    }

    #[test]
    fn revisions_are_called_as_typed() {
        let builds = [
            build("git:HEAD~1", "6.12.117-g0123456789ab"),
            build("git:my-branch@config:MEMCG=y", "6.12.117-gabcdef012345"),
            build("git:fedcba987654", "6.12.117-gfedcba987654"),
            build("deb:6.1", "6.1.192"),
        ];
        let machine = machine();
        let kernels: Vec<_> = builds.iter().map(|b| (b, &machine)).collect();
        let labels = super::labels_as_typed(&kernels);
        let titles: Vec<&str> = labels.iter().map(|l| l.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "HEAD~1 (6.12.117-g0123456789ab)",
                "my-branch@config:MEMCG=…(6.12.117-gabcdef012345)",
                "6.12.117-gfedcba987654",
                "6.1.192"
            ]
        );
        assert_eq!(labels[0].head, ["HEAD~1", "6.12.117-g…23456789ab"]);
    }

    #[test]
    fn files_of_one_name_are_labelled_by_origin() {
        let labels = titles(&[
            build("path:/a/bzImage", "6.12.0"),
            build("path:/b/bzImage", "6.12.0"),
        ]);
        assert_eq!(labels[0].title, "6.12.0 (/a/bzImage)");
        assert_eq!(labels[1].title, "6.12.0 (/b/bzImage)");
    }

    #[test]
    fn same_kernel_twice_is_labelled_by_position() {
        let one = build("deb:6.1", "6.1.192");
        let labels = titles(&[one.clone(), one]);
        assert_eq!(labels[0].title, "6.1.192 (#1)");
        assert_eq!(labels[1].title, "6.1.192 (#2)");
    }

    #[test]
    fn long_versions_are_split_like_mmtests_and_cut() {
        assert_eq!(
            split_version("6.12.0-rc4-next-2024"),
            ("6.12.0-rc4", "next-2024")
        );
        assert_eq!(split_version("6.12.0+mine"), ("6.12.0", "mine"));
        assert_eq!(split_version("6.12"), ("6.12", ""));
        let long = "6.12.0-rc4-next-20241105-00123-gabcdef123456-dirty";
        let labels = titles(&[build("path:/x", long)]);
        assert_eq!(labels[0].head, ["6.12.0-rc4", "next-20241…3456-dirty"]);
        assert_eq!(
            labels[0].title,
            "6.12.0-rc4-next-2024110…0123-gabcdef123456-dirty"
        );
    }

    #[test]
    fn terminal_control_characters_are_removed() {
        let labels = titles(&[build("path:/x", "6.1\x1b[2J\n")]);
        assert_eq!(labels[0].title, "6.1\u{fffd}[2J ");
    }
}
