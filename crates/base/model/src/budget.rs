//! Budgets: how much workloads may cost after a change to some files of the kernel.

use std::collections::BTreeMap;
use std::fmt;

/// The limit of a row without one of its own, in percent: that of most metrics' margins.
pub const USUAL_LIMIT_PERCENT: f64 = 1.0;

/// How much a workload may cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// At most so many percent worse than before the change.
    Percent(f64),
    /// At most this value, in the workload's unit.
    Count(f64),
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(percent) => write!(f, "{percent} %"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

/// The budget of a part of the kernel.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    /// Its name.
    pub name: String,
    /// The files that it is about, see [`is_path_within`].
    pub paths: Vec<String>,
    /// The workloads, in the suite's order.
    pub rows: Vec<String>,
    /// The limit of rows without one of their own.
    pub limit: Limit,
    /// The limits of single rows.
    pub limits: BTreeMap<String, Limit>,
    /// Who answers for it: names or addresses, to be shown.
    pub owners: Vec<String>,
}

impl Budget {
    /// Returns whether it is about a file.
    #[must_use]
    pub fn is_about(&self, file: &str) -> bool {
        self.paths.iter().any(|path| is_path_within(path, file))
    }

    /// Returns the limit of a row.
    #[must_use]
    pub fn limit_of(&self, row: &str) -> Limit {
        self.limits.get(row).copied().unwrap_or(self.limit)
    }
}

/// Returns whether a file belongs to a path: `mm/` means all below that directory, another path the
/// file itself, and `*` any characters but `/`, as in MAINTAINERS of Linux.
#[must_use]
pub fn is_path_within(path: &str, file: &str) -> bool {
    let is_directory = path.ends_with('/');
    let mut of_file = file.split('/');
    for of_path in path.trim_end_matches('/').split('/') {
        match of_file.next() {
            Some(name) if matches_name(of_path.as_bytes(), name.as_bytes()) => {}
            _ => return false,
        }
    }
    // A directory has files below it, a file has not.
    of_file.next().is_some() == is_directory
}

/// Returns whether a name matches a pattern with `*`. Takes at most the product of their lengths.
fn matches_name(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut in_name) = (0, 0);
    // Where the last star was, and where the name goes on if it takes one character more.
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(character) if *character == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match &mut star {
                Some((of_star, taken)) => {
                    *taken += 1;
                    at = *of_star + 1;
                    in_name = *taken;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|character| *character == b'*')
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::is_path_within;

    #[test]
    fn directories_files_and_stars_match() {
        for (path, file, expected) in [
            ("mm/", "mm/memory.c", true),
            ("mm/", "mm/kasan/init.c", true),
            ("mm/", "mm", false),
            ("mm/", "arch/x86/mm/init.c", false),
            ("mm/memory.c", "mm/memory.c", true),
            ("mm/memory", "mm/memory.c", false),
            ("mm", "mm/memory.c", false),
            ("include/linux/mm*.h", "include/linux/mm.h", true),
            ("include/linux/mm*.h", "include/linux/mm_types.h", true),
            ("include/linux/mm*.h", "include/linux/mm/x.h", false),
            ("*/mm/", "arch/mm/init.c", true),
            ("*/mm/", "arch/x86/mm/init.c", false),
            ("arch/*/mm/", "arch/x86/mm/init.c", true),
            ("kernel/*", "kernel/fork.c", true),
            ("kernel/*", "kernel/time/timer.c", false),
            ("a*b*c", "axbxxbc", true),
            ("a*b*c", "axbxxb", false),
        ] {
            assert_eq!(is_path_within(path, file), expected, "{path} {file}");
        }
    }

    #[test]
    fn many_stars_take_no_time() {
        let path = "a*".repeat(120);
        let file = "a".repeat(4000) + "b";
        let began = Instant::now();
        assert!(!is_path_within(&format!("{path}c"), &file));
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
