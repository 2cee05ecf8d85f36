//! Which files that a change touches a build did not compile: no measurement of its kernel says
//! anything about them.
//!
//! By files, not by lines: what a compiled file leaves out by `#ifdef` is not looked for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;

use model::KernelName;

use crate::folder;
use crate::source::{Compiled, WorkTree, compiler, config_options, options_of};
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

/// Returns whether Marvin builds a kernel of such a name.
fn is_built(name: &KernelName) -> bool {
    matches!(
        name,
        KernelName::Git(_) | KernelName::Patch { .. } | KernelName::Tree(_) | KernelName::DebSrc(_)
    )
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
        if !is_built(base) || !is_built(new) {
            return Ok(Vec::new());
        }
        let workshop = WorkTree::open(&self.home)?;
        let base = self.source(base, &workshop, &|_| {})?.tree;
        let new = self.source(new, &workshop, &|_| {})?.tree;
        self.not_compiled_between(&workshop, &base, &new, &compiler()?)
    }

    fn not_compiled_between(
        &self,
        workshop: &WorkTree,
        base: &str,
        new: &str,
        compiler: &str,
    ) -> Result<Vec<NotCompiled>, KernelError> {
        let changed: Vec<String> = workshop
            .changed_between(base, new)?
            .into_iter()
            .filter(|f| Compiled::is_code(f))
            .collect();
        let mut compiled = Compiled::default();
        let mut is_recorded = true;
        for tree in [base, new] {
            let file = self.recipe(tree, compiler).with_extension("compiled");
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
        let config = self.config_of(new, compiler)?;
        let options = config_options(&config);
        let is_on = |option: &str| options.get(option).map(String::as_str) == Some("y");
        let makefiles = RefCell::new(BTreeMap::new());
        let read = |path: &str| -> Option<String> {
            let mut known = makefiles.borrow_mut();
            known
                .entry(path.to_owned())
                .or_insert_with(|| workshop.file(new, path))
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

    /// Returns the kernel config of the build of a tree; empty if there is no such build.
    fn config_of(&self, tree: &str, compiler: &str) -> Result<String, KernelError> {
        let facts = folder::read_facts(&self.recipe(tree, compiler))?.unwrap_or_default();
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
        let base = workshop.tree_of(older)?;
        let new = workshop.tree_of(newer)?;
        self.cache()
            .not_compiled_between(&workshop, &base, &new, self.compiler())
    }
}
