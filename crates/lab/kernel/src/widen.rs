//! A kernel config that reaches what a series changes: the options that its files hang on and that
//! the config lacks, switched on, with what they depend on.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use crate::benchmarks::Kconfig;
use crate::source::{Compiled, Objects, WorkTree, config_options, options_of};
use crate::{KernelError, Sources};

/// A series that hangs on more options than this changes too much for one config.
const OPTIONS_MAX: usize = 24;
/// What is not switched on for them: kernels without modules have all built in.
const MODULES: [&str; 2] = ["MODULES", "MODULE_UNLOAD"];
const PREFIX: &str = "CONFIG_";

/// What was done to a config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Widened {
    /// Options that were off and are on, without `CONFIG_`.
    pub switched_on: Vec<String>,
    /// Options that code hangs on and that stay off.
    pub left_off: Vec<String>,
}

/// The options of a tree's config, and where the tree's files are read.
struct Tree<'a> {
    workshop: &'a WorkTree,
    tree: String,
    files: RefCell<BTreeMap<String, Option<String>>>,
}

impl Tree<'_> {
    fn read(&self, path: &str) -> Option<String> {
        let mut files = self.files.borrow_mut();
        files
            .entry(path.to_owned())
            .or_insert_with(|| self.workshop.file(&self.tree, path))
            .clone()
    }

    /// Returns the options that these files hang on and that are off.
    fn needed(&self, files: &[String], on: &BTreeSet<String>) -> BTreeSet<String> {
        let is_on = |option: &str| on.contains(option);
        let read = |path: &str| self.read(path);
        files
            .iter()
            .filter_map(|file| options_of(file, &read, &is_on))
            .flatten()
            .filter(|option| !is_on(option))
            .collect()
    }
}

impl Sources {
    /// Returns these sources with a config in which the code is compiled that differs between two
    /// commits, as far as options decide it.
    ///
    /// # Errors
    /// If there is no such commit, git fails, or the config cannot be made.
    pub fn widened(&self, older: &str, newer: &str) -> Result<(Self, Widened), KernelError> {
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let commit = newer.to_owned();
        let [older, newer] = [workshop.tree_of(older)?, workshop.tree_of(newer)?];
        let changed: Vec<String> = workshop
            .changed_between(&older, &newer)?
            .into_iter()
            .filter(|file| Compiled::is_code(file) && !file.ends_with(".h"))
            .collect();
        if changed.is_empty() {
            return Ok((self.clone(), Widened::default()));
        }
        let tree = Tree {
            workshop: &workshop,
            tree: newer,
            files: RefCell::new(BTreeMap::new()),
        };
        let before = self.options_on(&tree)?;
        let needed = tree.needed(&changed, &before);
        if needed.is_empty() || needed.len() > OPTIONS_MAX {
            let widened = Widened {
                switched_on: Vec::new(),
                left_off: names(&needed),
            };
            return Ok((self.clone(), widened));
        }
        let kconfig = Kconfig::of_revision(&workshop.repository(), &commit)?;
        let mut asked = needed.clone();
        for option in names(&needed) {
            // What this architecture cannot have stays off, and is named below.
            let Ok((found, _)) = kconfig.requirements(std::slice::from_ref(&option)) else {
                continue;
            };
            let lines = found.lines();
            let options = lines.iter().filter_map(|line| line.split('=').next());
            asked.extend(
                options
                    .filter(|name| !MODULES.contains(name))
                    .map(|name| format!("{PREFIX}{name}")),
            );
        }
        let on = self.with_options(&asked)?.options_on(&tree)?;
        let added = &asked - &before;
        let widened = Widened {
            switched_on: names(&(&added & &on)),
            left_off: names(&(&needed - &on)),
        };
        // What make did not accept would be named at each build.
        let kept = &added & &on;
        Ok((self.with_options(&kept)?, widened))
    }

    fn with_options(&self, options: &BTreeSet<String>) -> Result<Self, KernelError> {
        let mut wider = self.clone();
        let mut configuration = wider.settings().configuration.clone();
        for option in names(options) {
            configuration = configuration.with(&format!("{option}=y"))?;
        }
        wider.set_configuration(configuration);
        Ok(wider)
    }

    /// Returns the options that are on after make has resolved the config, in this tree.
    fn options_on(&self, tree: &Tree<'_>) -> Result<BTreeSet<String>, KernelError> {
        let toolchain = self.cache().toolchain()?;
        tree.workshop.check_out(&tree.tree, "the series")?;
        let resolved = Objects::resolve(
            tree.workshop,
            self.settings(),
            &toolchain,
            &tree.tree,
            "the series",
        )?;
        Ok(config_options(&resolved)
            .into_iter()
            .filter(|(_, value)| matches!(value.as_str(), "y" | "m"))
            .map(|(option, _)| option)
            .collect())
    }
}

fn names(options: &BTreeSet<String>) -> Vec<String> {
    options
        .iter()
        .map(|option| option.strip_prefix(PREFIX).unwrap_or(option).to_owned())
        .collect()
}
