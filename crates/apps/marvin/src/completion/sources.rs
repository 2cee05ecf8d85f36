//! Completes what kernels are made of: packages of distributions, revisions of git trees, and kernel
//! configs. Nothing is fetched: packages are those of lists that lie in the data directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use kernel::Repository;
use model::{Distribution, TreeOrigin};

use super::{LISTS_DEADLINE, beginning, candidate, distinct, typed, within, within_time};
use crate::select::enclosing_tree;
use crate::session::Session;

/// Most revisions that are listed.
const REVISIONS_MAX: usize = 400;
/// Kernel configs by name.
const CONFIGS: [(&str, &str); 7] = [
    ("default", "what people change"),
    ("tiny", "small and fast"),
    ("smp", "tiny with several processors"),
    ("small", "tiny with PCI, ACPI and virtio"),
    ("defconfig", "of the kernel's tree"),
    ("running", "that of the kernel that runs here"),
    ("tinyconfig", "of the kernel's tree"),
];
/// Folders of a kernel's tree with fragments for --config.
const FRAGMENTS: [&str; 2] = ["kernel/configs", "arch/x86/configs"];

/// Completes a kernel config: a name, or a file; behind a `+` a file or a fragment of the tree.
pub(crate) fn configuration() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let text = word.to_string_lossy();
        let (before, last) = match text.rsplit_once('+') {
            Some((before, last)) => (format!("{before}+"), last.to_owned()),
            None => (String::new(), text.into_owned()),
        };
        let mut found = if before.is_empty() {
            CONFIGS
                .iter()
                .map(|(name, about)| candidate(name, about))
                .collect()
        } else {
            fragments()
        };
        found = beginning(OsStr::new(&last), found.into_iter());
        found.extend(PathCompleter::file().complete(OsStr::new(&last)));
        found
            .into_iter()
            .map(|candidate| candidate.add_prefix(before.clone()))
            .collect()
    })
}

/// Returns the fragments of the tree.
fn fragments() -> Vec<CompletionCandidate> {
    let Some(tree) = tree() else {
        return Vec::new();
    };
    let mut names: Vec<String> = FRAGMENTS
        .iter()
        .filter_map(|folder| std::fs::read_dir(tree.join(folder)).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".config"))
        .collect();
    names.sort();
    names
        .iter()
        .map(|name| candidate(name, "fragment of the tree"))
        .collect()
}

/// Completes a directory, or a [[tree]] of marvin.toml.
pub(crate) fn tree_name() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let named = within(|session| {
            let trees = &session.config()?.settings.trees;
            Ok(trees
                .iter()
                .map(|tree| candidate(&tree.name, "[[tree]] of marvin.toml"))
                .collect::<Vec<_>>())
        });
        let mut found = beginning(word, named.unwrap_or_default().into_iter());
        found.extend(PathCompleter::dir().complete(word));
        found
    })
}

/// Completes a revision of the tree; behind `..` the newer end of a range.
pub(crate) fn revision() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| revisions(&word.to_string_lossy()))
}

/// Returns the tags and branches that a text begins, newest first.
pub(super) fn revisions(text: &str) -> Vec<CompletionCandidate> {
    let (before, last) = match text.rsplit_once("..") {
        Some((before, last)) => (format!("{before}.."), last),
        None => (String::new(), text),
    };
    let Some(tree) = tree() else {
        return Vec::new();
    };
    let begin = last.to_owned();
    let names =
        within(move |_: &Session| Ok(Repository::open(&tree)?.references(&begin, REVISIONS_MAX)?));
    let names = names.unwrap_or_default();
    let all = std::iter::once("HEAD".to_owned())
        .chain(names)
        .filter(|name| name.starts_with(last))
        .map(|name| CompletionCandidate::new(format!("{before}{name}")));
    distinct(all.collect())
}

/// Returns the tree of the command line that is typed: that of --tree, or the one around the
/// current directory.
fn tree() -> Option<PathBuf> {
    match typed("--tree") {
        None => enclosing_tree(),
        Some(named) if Path::new(&named).is_dir() => Some(named.into()),
        Some(named) => {
            let name = named.to_string_lossy().into_owned();
            within(move |session| {
                let trees = &session.config()?.settings.trees;
                let tree = trees.iter().find(|tree| tree.name == name);
                Ok(tree.and_then(|tree| match &tree.origin {
                    TreeOrigin::Git { place, .. } => Some(PathBuf::from(place)),
                    TreeOrigin::Debian { .. } => None,
                }))
            })
            .flatten()
        }
    }
}

/// Returns kernels of a distribution that a name such as `deb:6.1` begins: the series, and the
/// versions of the flavour that the name means; behind a `+` all flavours.
pub(super) fn packages(text: &str) -> Option<Vec<CompletionCandidate>> {
    let (scheme, rest) = text.split_once(':')?;
    let distribution = Distribution::ALL
        .into_iter()
        .filter(|one| matches!(one, Distribution::Debian | Distribution::Ubuntu))
        .find(|one| one.scheme() == scheme)?;
    let suite = rest.split_once('/').map(|(suite, _)| suite.to_owned());
    let prefix = match &suite {
        Some(suite) => format!("{scheme}:{suite}/"),
        None => format!("{scheme}:"),
    };
    let has_flavour = rest.contains('+');
    let offers = within_time(LISTS_DEADLINE, move |session| {
        // Completing a word makes no data directory.
        anyhow::ensure!(session.home()?.join("archives").is_dir(), "no lists");
        let archives = session.archives()?.offline();
        Ok(kernel::all_offers(
            &archives,
            distribution,
            suite.as_deref(),
        )?)
    })?;
    let mut found = Vec::new();
    for offer in &offers {
        let is_default = offer.flavour == distribution.default_flavour();
        let version = offer.shown_version();
        if has_flavour {
            found.push(format!("{prefix}{version}+{}", offer.flavour));
            found.push(format!("{prefix}{}+{}", series(version), offer.flavour));
        } else if is_default {
            found.push(format!("{prefix}{}", series(version)));
            found.push(format!("{prefix}{version}"));
        }
    }
    let found = found.into_iter().filter(|name| name.starts_with(text));
    let found = found.map(CompletionCandidate::new).collect();
    Some(distinct(found))
}

/// Returns the first two numbers of a version.
fn series(version: &str) -> String {
    version.split('.').take(2).collect::<Vec<_>>().join(".")
}
