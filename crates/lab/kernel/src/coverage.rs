//! Which files that a change touches a build did not compile: no measurement of its kernel says
//! anything about them.
//!
//! By files, not by lines: what a compiled file leaves out by `#ifdef` is not looked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use model::KernelName;

use crate::folder;
use crate::source::{Compiled, WorkTree, config_options, options_of};
use crate::{BuildCache, KernelError, Sources};

/// A changed file that a build did not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled {
    /// Its path in the source.
    pub file: String,
    pub why: WhyNot,
}

/// Why a build did not compile a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// The first option that it hangs on and that is off.
    Needs(String),
    /// A header that no compiled file includes.
    NotIncluded,
    /// The Makefiles above it name no option that is off.
    NotListed,
    /// What the build compiled is not recorded.
    NoRecord,
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = &self.file;
        match &self.why {
            WhyNot::Needs(option) => write!(f, "{file} (needs {option})"),
            WhyNot::NotIncluded => write!(f, "{file} (no compiled file includes it)"),
            WhyNot::NotListed => write!(f, "{file} (in no list of objects for this config)"),
            WhyNot::NoRecord => write!(f, "{file} (no record of what the build compiled)"),
        }
    }
}

/// A source tree, and the recipe of its build.
struct BuiltTree {
    tree: String,
    recipe: PathBuf,
}

impl BuildCache {
    /// Returns the code that differs between two built sources and that the build of neither
    /// compiled; empty for kernels that Marvin did not build.
    ///
    /// # Errors
    /// If git fails, or the cache cannot be read.
    pub fn not_compiled(
        &self,
        base: &KernelName,
        new: &KernelName,
    ) -> Result<Vec<NotCompiled>, KernelError> {
        if !base.is_built() || !new.is_built() {
            return Ok(Vec::new());
        }
        let workshop = WorkTree::open(&self.home)?;
        let base = self.built_tree(base, &workshop)?;
        let new = self.built_tree(new, &workshop)?;
        self.not_compiled_between(&workshop, &base, &new)
    }

    /// Returns the tree of a kernel's source, and the recipe of its build.
    fn built_tree(&self, name: &KernelName, workshop: &WorkTree) -> Result<BuiltTree, KernelError> {
        let cache = self.for_kernel(name)?;
        let tree = cache.source(name.source(), workshop, &|_| {})?.tree;
        let recipe = cache.recipe(&tree, &cache.toolchain()?.identity());
        Ok(BuiltTree { tree, recipe })
    }

    fn not_compiled_between(
        &self,
        workshop: &WorkTree,
        base: &BuiltTree,
        new: &BuiltTree,
    ) -> Result<Vec<NotCompiled>, KernelError> {
        let changed: Vec<String> = workshop
            .changed_between(&base.tree, &new.tree)?
            .into_iter()
            .filter(|f| Compiled::is_code(f))
            .collect();
        let mut compiled = Compiled::default();
        let mut is_recorded = true;
        for built in [base, new] {
            let file = built.recipe.with_extension("compiled");
            match fs::read(&file) {
                Ok(text) => compiled.join(Compiled::from_text(&String::from_utf8_lossy(&text))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => is_recorded = false,
                Err(error) => return Err(KernelError::io(&file)(error)),
            }
        }
        if !is_recorded {
            return Ok(changed
                .into_iter()
                .map(|file| NotCompiled {
                    file,
                    why: WhyNot::NoRecord,
                })
                .collect());
        }
        let config = self.config_of(&new.recipe)?;
        let options = config_options(&config);
        let is_on = |option: &str| options.get(option).map(String::as_str) == Some("y");
        let makefiles = RefCell::new(BTreeMap::new());
        let read = |path: &str| -> Option<String> {
            let mut known = makefiles.borrow_mut();
            known
                .entry(path.to_owned())
                .or_insert_with(|| workshop.file(&new.tree, path))
                .clone()
        };
        let mut found = Vec::new();
        for file in changed.into_iter().filter(|file| !compiled.may_use(file)) {
            let hangs_on = options_of(&file, &read, &is_on).unwrap_or_default();
            let why = match hangs_on.into_iter().find(|option| !is_on(option)) {
                Some(option) => WhyNot::Needs(option),
                None if file.ends_with(".h") => WhyNot::NotIncluded,
                None => WhyNot::NotListed,
            };
            found.push(NotCompiled { file, why });
        }
        Ok(found)
    }

    /// Returns the kernel config of the build of a recipe; empty if there is no such build.
    fn config_of(&self, recipe: &Path) -> Result<String, KernelError> {
        let facts = folder::read_facts(recipe)?.unwrap_or_default();
        let Some(build) = facts.get("build") else {
            return Ok(String::new());
        };
        Ok(fs::read_to_string(self.builds.join(build).join("config")).unwrap_or_default())
    }
}

impl Sources {
    /// Returns the code that differs between two commits and that the build of neither compiled.
    ///
    /// # Errors
    /// If there is no such commit, git fails, or the cache cannot be read.
    pub fn not_compiled(&self, older: &str, newer: &str) -> Result<Vec<NotCompiled>, KernelError> {
        let workshop = WorkTree::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let [base, new] = [workshop.tree_of(older)?, workshop.tree_of(newer)?].map(|tree| {
            let recipe = self.cache().recipe(&tree, self.compiler());
            BuiltTree { tree, recipe }
        });
        self.cache().not_compiled_between(&workshop, &base, &new)
    }
}
