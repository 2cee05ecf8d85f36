//! The MAINTAINERS file of a kernel tree: who is to hear of a change to its files.
//!
//! Marvin reads the file itself. `scripts/get_maintainer.pl` is a program of the tree, which may be
//! hostile, and is not run; with its defaults it also names all who touched a file.
//! The format is in the head of MAINTAINERS: sections with `M:`, `L:`, `F:`, `N:` and `X:` lines.

use regex_lite::RegexBuilder;

use crate::KernelError;
use crate::source::{Repository, program as git};

/// Most addresses of each kind: who is in charge, not who is interested.
const ADDRESSES_MAX: usize = 6;
/// Largest MAINTAINERS that is read (bytes).
const MAINTAINERS_MAX: usize = 8 << 20;
/// Largest compiled pattern of an `N:` line (bytes).
const PATTERN_MAX: usize = 1 << 16;

/// Who is to hear of a change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Addressees {
    /// Maintainers, each a plain address.
    pub people: Vec<String>,
    /// Mailing lists.
    pub lists: Vec<String>,
}

impl Repository {
    /// Returns who maintains the files that a commit changes, by its own MAINTAINERS; none if it has
    /// no such file.
    ///
    /// # Errors
    /// If git fails, or there is no such commit.
    pub fn addressees(&self, commit: &str) -> Result<Addressees, KernelError> {
        let commit = self.commit(commit)?;
        let tree = [
            "diff-tree",
            "--root",
            "--no-commit-id",
            "--name-only",
            "-r",
            "-z",
        ];
        let changed = git(self.folder()).args(tree).args([&commit]).run()?;
        let files: Vec<String> = changed
            .split('\0')
            .filter(|file| !file.is_empty())
            .map(str::to_owned)
            .collect();
        let file = format!("{commit}:MAINTAINERS");
        let ended = git(self.folder()).args(["cat-file", "blob", &file]).end()?;
        if ended.code != Some(0) {
            return Ok(Addressees::default());
        }
        let text = ended.text();
        let end = text.floor_char_boundary(MAINTAINERS_MAX);
        Ok(addressees_of(&text[..end], &files))
    }
}

/// One section of the file.
#[derive(Debug, Default)]
struct Section<'a> {
    people: Vec<&'a str>,
    lists: Vec<&'a str>,
    files: Vec<&'a str>,
    names: Vec<&'a str>,
    excluded: Vec<&'a str>,
}

/// Returns who maintains these files: of each file, the sections with the longest matching path,
/// and of each kind of address a few. Files that only a pattern for everything matches (`F: *`) have
/// none.
#[must_use]
pub fn addressees_of(maintainers: &str, files: &[String]) -> Addressees {
    let sections = sections(maintainers);
    let mut found = Addressees::default();
    for file in files {
        let depths: Vec<usize> = sections
            .iter()
            .map(|section| section.depth(file).unwrap_or(0))
            .collect();
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let best = sections.iter().zip(&depths);
        for (section, _) in best.filter(|(_, depth)| deepest > 0 && **depth == deepest) {
            add(&mut found.people, &section.people);
            add(&mut found.lists, &section.lists);
        }
    }
    found
}

/// Adds the plain addresses of some lines, up to the limit.
fn add(all: &mut Vec<String>, lines: &[&str]) {
    for address in lines.iter().copied().filter_map(plain_address) {
        if all.len() < ADDRESSES_MAX && !all.contains(&address) {
            all.push(address);
        }
    }
}

/// Returns the address of `Name <address>`, or of `address (moderated)`; `None` if it is none that a
/// header may have.
#[must_use]
pub fn plain_address(line: &str) -> Option<String> {
    let address = match line.rsplit_once('<') {
        Some((_, rest)) => rest.split_once('>')?.0,
        None => line.split_whitespace().next()?,
    };
    let (user, host) = address.split_once('@')?;
    let is_plain = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
    };
    (is_plain(user) && is_plain(host)).then(|| address.to_owned())
}

/// Splits the file: a section begins with a line without a tag.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut all = Vec::new();
    let mut section = Section::default();
    for line in text.lines() {
        let tag = line
            .split_once(':')
            .filter(|(tag, _)| tag.len() == 1 && tag.as_bytes()[0].is_ascii_uppercase());
        let Some((tag, value)) = tag else {
            if !section.people.is_empty() || !section.lists.is_empty() {
                all.push(std::mem::take(&mut section));
            } else {
                section = Section::default();
            }
            continue;
        };
        let value = value.trim();
        match tag {
            "M" => section.people.push(value),
            "L" => section.lists.push(value),
            "F" => section.files.push(value),
            "N" => section.names.push(value),
            "X" => section.excluded.push(value),
            _ => {}
        }
    }
    all.push(section);
    all
}

impl Section<'_> {
    /// Returns how exactly the section names a file: the number of directories in the longest
    /// pattern, and one more; `None` if it does not.
    fn depth(&self, file: &str) -> Option<usize> {
        if self.excluded.iter().any(|pattern| matches(pattern, file)) {
            return None;
        }
        let named = self
            .files
            .iter()
            .filter(|pattern| matches(pattern, file))
            .map(|pattern| depth_of(pattern))
            .max();
        let by_name = self.names.iter().any(|pattern| is_like(pattern, file));
        // A pattern of names says less than any directory.
        named.or(by_name.then_some(1))
    }
}

/// Returns the number of directories of a pattern, and one more; 0 for one of everything.
fn depth_of(pattern: &str) -> usize {
    let parts = pattern.split('/').filter(|part| !part.is_empty());
    let named = parts.filter(|part| part.bytes().any(|byte| byte != b'*'));
    match named.count() {
        0 => 0,
        count => count + 1,
    }
}

/// Returns whether a pattern of an `F:` or `X:` line matches a file: a directory with all below it
/// if it ends in `/`, and else as many directories as it has, where `*` and `?` match within one.
fn matches(pattern: &str, file: &str) -> bool {
    match pattern.strip_suffix('/') {
        Some(folder) => {
            let parts = folder.split('/').count();
            let above: Vec<&str> = file.split('/').collect();
            above.len() > parts && matches_parts(folder, &above[..parts])
        }
        None => {
            let parts: Vec<&str> = file.split('/').collect();
            let is_whole = pattern.split('/').count() == parts.len();
            // A directory may be named without its slash.
            (is_whole && matches_parts(pattern, &parts))
                || (!pattern.contains(['*', '?'])
                    && file
                        .strip_prefix(pattern)
                        .is_some_and(|rest| rest.starts_with('/')))
        }
    }
}

fn matches_parts(pattern: &str, parts: &[&str]) -> bool {
    let patterns = pattern.split('/');
    patterns
        .zip(parts)
        .all(|(pattern, part)| is_glob(pattern.as_bytes(), part.as_bytes()))
}

/// Returns whether `*` and `?` of a pattern can stand for what a name has. In the time of their
/// product: the file is of others.
fn is_glob(pattern: &[u8], name: &[u8]) -> bool {
    let mut at = 0;
    let mut of_name = 0;
    // Where to go on if what follows the last star does not fit.
    let mut star: Option<(usize, usize)> = None;
    while of_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, of_name));
                at += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[of_name] => {
                at += 1;
                of_name += 1;
            }
            _ => {
                let Some((of_star, begun)) = star else {
                    return false;
                };
                star = Some((of_star, begun + 1));
                at = of_star + 1;
                of_name = begun + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Returns whether the regular expression of an `N:` line matches; one that Marvin does not
/// understand matches nothing.
fn is_like(pattern: &str, file: &str) -> bool {
    let pattern = RegexBuilder::new(pattern).size_limit(PATTERN_MAX).build();
    pattern.is_ok_and(|pattern| pattern.is_match(file))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::{ADDRESSES_MAX, addressees_of, is_glob, matches};
    use crate::source::{Repository, run_git};

    const FILE: &str = "List of maintainers\n\n\
        MEMORY MANAGEMENT\nM:\tAndrew Morton <akpm@linux-foundation.org>\nL:\tlinux-mm@kvack.org\n\
        F:\tmm/\nF:\tinclude/linux/mm.h\nX:\tmm/slub.c\n\n\
        SLAB ALLOCATOR\nM:\tVlastimil Babka <vbabka@suse.cz>\nL:\tlinux-mm@kvack.org (open list)\nF:\tmm/sl?b*\n\n\
        TEGRA\nM:\tThierry Reding <thierry.reding@gmail.com>\nL:\tlinux-tegra@vger.kernel.org\nN:\t[^a-z]tegra\n\n\
        DRIVERS\nM:\tA <a@b.org>\nF:\tdrivers/net/*\n\n\
        THE REST\nM:\tLinus Torvalds <torvalds@linux-foundation.org>\nL:\tlinux-kernel@vger.kernel.org\nF:\t*\nF:\t*/\n";

    fn all(file: &str) -> String {
        let found = addressees_of(FILE, &[file.to_owned()]);
        format!("{} | {}", found.people.join(" "), found.lists.join(" "))
    }

    #[test]
    fn file_has_its_nearest_maintainers() {
        assert_eq!(
            all("mm/memory.c"),
            "akpm@linux-foundation.org | linux-mm@kvack.org"
        );
        assert_eq!(
            all("include/linux/mm.h"),
            "akpm@linux-foundation.org | linux-mm@kvack.org"
        );
        assert_eq!(all("mm/slub.c"), "vbabka@suse.cz | linux-mm@kvack.org");
        assert_eq!(
            all("drivers/soc/tegra/pmc.c"),
            "thierry.reding@gmail.com | linux-tegra@vger.kernel.org"
        );
        assert_eq!(all("drivers/net/tun.c"), "a@b.org | ");
        assert_eq!(all("drivers/net/wan/hdlc.c"), " | ", "not below it");
        assert_eq!(all("kernel/fork.c"), " | ", "the rest is everything");
    }

    #[test]
    fn commit_has_the_maintainers_of_its_files() {
        let tree = tempfile::tempdir().unwrap();
        run_git(tree.path(), &["init", "-q", "-b", "main"]);
        std::fs::create_dir(tree.path().join("mm")).unwrap();
        std::fs::write(tree.path().join("MAINTAINERS"), FILE).unwrap();
        run_git(tree.path(), &["add", "."]);
        run_git(tree.path(), &["commit", "-qm", "one"]);
        std::fs::write(tree.path().join("mm/slub.c"), "int a;\n").unwrap();
        run_git(tree.path(), &["add", "."]);
        run_git(tree.path(), &["commit", "-qm", "two"]);
        let found = Repository::open(tree.path()).unwrap().addressees("HEAD");
        assert_eq!(found.unwrap().people, ["vbabka@suse.cz"]);
    }

    #[test]
    fn many_matches_have_few_addressees() {
        let mut text = String::new();
        for number in 0..50 {
            write!(text, "S{number}\nM:\tN <n{number}@x.org>\nF:\tmm/\n\n").unwrap();
        }
        let found = addressees_of(&text, &["mm/memory.c".to_owned()]);
        assert_eq!(found.people.len(), ADDRESSES_MAX);
    }

    #[test]
    fn hostile_addresses_and_patterns_do_nothing() {
        let text = "X\nM:\tA <a@b.org\nBcc: c@d.org>\nM:\t<a b@c.org>\nM:\tx\nM:\t<a@b,c@d.org>\nL:\tl@x.org\nF:\tmm/\nN:\t(((\nN:\t(a{1000}){1000}\n";
        let found = addressees_of(text, &["mm/a.c".to_owned()]);
        assert!(found.people.is_empty(), "{found:?}");
        let stars = "*a".repeat(50);
        assert!(!is_glob(stars.as_bytes(), "a".repeat(49).as_bytes()));
    }

    #[test]
    fn patterns_match_within_directories() {
        assert!(matches("drivers/*/tegra/", "drivers/soc/tegra/a/b.c"));
        assert!(!matches("drivers/*/tegra/", "drivers/a/b/tegra/c.c"));
        assert!(matches("kernel/sched", "kernel/sched/fair.c"));
        assert!(!matches("kernel/sched", "kernel/scheduler.c"));
        assert!(matches("fs/ext?/", "fs/ext4/inode.c"));
    }
}
