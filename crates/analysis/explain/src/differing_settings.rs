//! What a difference between two kernels may come from: settings that differ, and commits that
//! touch the same functions.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

/// Options of the kernel config that change how fast it is, by their beginning.
const OPTIONS: [&str; 21] = [
    "CONFIG_ARCH_SUPPORTS_PER_VMA_LOCK",
    "CONFIG_CC_OPTIMIZE",
    "CONFIG_DEBUG_LIST",
    "CONFIG_FORTIFY_SOURCE",
    "CONFIG_HARDENED_USERCOPY",
    "CONFIG_HZ",
    "CONFIG_INIT_ON_",
    "CONFIG_INIT_STACK",
    "CONFIG_KASAN",
    "CONFIG_LRU_GEN",
    "CONFIG_LTO",
    "CONFIG_PER_VMA_LOCK",
    "CONFIG_PREEMPT",
    "CONFIG_PROVE_LOCKING",
    "CONFIG_RANDOM_KMALLOC_CACHES",
    "CONFIG_SCHED_CORE",
    "CONFIG_SECURITY_",
    "CONFIG_SLAB_",
    "CONFIG_SLUB",
    "CONFIG_TRANSPARENT_HUGEPAGE",
    "CONFIG_ZSWAP",
];

/// A setting in which two kernels differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Setting {
    /// Its name: an option of the kernel config, or a part of the environment.
    pub name: String,
    /// On the base.
    pub base: String,
    /// On the new kernel.
    pub new: String,
}

/// Commits that touch functions whose counts differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Touching {
    /// The functions.
    pub functions: Vec<String>,
    /// The commits, newest first: abbreviated hash and subject.
    pub commits: Vec<String>,
}

impl Touching {
    /// Puts the commits that touch all functions first, if there are any.
    #[must_use]
    pub fn common_first(of_functions: Vec<Self>) -> Vec<Self> {
        let Some((first, rest)) = of_functions.split_first() else {
            return Vec::new();
        };
        let mut shared = first.commits.clone();
        shared.retain(|commit| rest.iter().all(|other| other.commits.contains(commit)));
        let functions = of_functions
            .iter()
            .flat_map(|touching| touching.functions.clone())
            .collect();
        let mut all = Vec::new();
        if !rest.is_empty() && !shared.is_empty() {
            all.push(Self {
                functions,
                commits: shared,
            });
        }
        all.extend(of_functions);
        all
    }

    pub(crate) fn sentence(&self) -> String {
        let number = self.commits.len();
        let commits = if number == 1 {
            "1 commit".to_owned()
        } else {
            format!("{number} commits")
        };
        match self.functions.as_slice() {
            [one] => {
                format!("{commits} between both kernels touch {one} (hypotheses for a bisection):")
            }
            more => {
                format!(
                    "{commits} between both kernels touch all of {} (hypotheses for a bisection):",
                    more.join(", ")
                )
            }
        }
    }
}

/// Options of a kernel config, and their values.
pub type Options = BTreeMap<String, String>;

/// Returns the settings in which two kernels differ, of their runs' environments and of their
/// configs, and how many options of the config differ beside those that change speed. An option
/// that is off and one that a kernel does not know are the same.
#[must_use]
pub fn differing_settings(
    environments: [&[(String, String)]; 2],
    options: [Options; 2],
) -> (Vec<Setting>, usize) {
    let environments = environments.map(|pairs| {
        pairs
            .iter()
            .filter(|(name, _)| is_setting(name))
            .cloned()
            .collect::<Options>()
    });
    let options = options.map(|mut options| {
        options.retain(|_, value| value != "n");
        options
    });
    let mut settings = changed(&environments, |_| true).0;
    let (of_config, other) = changed(&options, |name| {
        OPTIONS.iter().any(|begin| name.starts_with(begin))
    });
    settings.extend(of_config);
    (settings, other)
}

/// Whether a pair of an environment is a setting, and neither a name of the kernel nor how one run
/// went.
fn is_setting(name: &str) -> bool {
    !model::is_of_one_run(name)
        && !["config sha256", "kernel release", "kernel version"].contains(&name)
}

/// Returns what differs between two maps, of the names that are wanted, and how many others do.
fn changed([base, new]: &[Options; 2], is_wanted: impl Fn(&str) -> bool) -> (Vec<Setting>, usize) {
    let names: BTreeSet<&String> = base.keys().chain(new.keys()).collect();
    let different: Vec<&String> = names
        .into_iter()
        .filter(|name| base.get(*name) != new.get(*name))
        .collect();
    let (wanted, other): (Vec<&String>, Vec<&String>) =
        different.into_iter().partition(|name| is_wanted(name));
    let mut settings = Vec::new();
    for name in wanted {
        let [base, new] = [base, new].map(|options| {
            options
                .get(name)
                .cloned()
                .unwrap_or_else(|| "(none)".into())
        });
        settings.push(Setting {
            name: name.clone(),
            base,
            new,
        });
    }
    (settings, other.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_commits_come_first() {
        let touching = |name: &str, commits: &[&str]| Touching {
            functions: vec![name.into()],
            commits: commits.iter().map(|commit| (*commit).to_owned()).collect(),
        };
        let all = Touching::common_first(vec![
            touching("f", &["1 a", "2 b"]),
            touching("g", &["2 b", "3 c"]),
        ]);
        assert_eq!(
            all[0],
            Touching {
                functions: vec!["f".into(), "g".into()],
                commits: vec!["2 b".into()]
            }
        );
        assert_eq!(all.len(), 3);
    }

    #[test]
    fn options_outside_the_list_are_counted() {
        let map = |pairs: &[(&str, &str)]| -> Options {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let base = map(&[
            ("CONFIG_HZ", "250"),
            ("CONFIG_A", "y"),
            ("CONFIG_PER_VMA_LOCK", "n"),
            ("CONFIG_C", "n"),
        ]);
        let new = map(&[
            ("CONFIG_HZ", "250"),
            ("CONFIG_B", "y"),
            ("CONFIG_PER_VMA_LOCK", "y"),
        ]);
        let environment = [
            ("kernel release".to_owned(), "6.1".to_owned()),
            ("thp".to_owned(), "madvise".to_owned()),
        ];
        let (settings, other) = differing_settings([&environment, &[]], [base, new]);
        let found: Vec<String> = settings
            .iter()
            .map(|setting| format!("{} {} {}", setting.name, setting.base, setting.new))
            .collect();
        assert_eq!(
            found,
            ["thp madvise (none)", "CONFIG_PER_VMA_LOCK (none) y"]
        );
        assert_eq!(other, 2);
    }
}
