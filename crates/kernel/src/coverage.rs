//! Which files that a change touches a build did not compile: no measurement of its kernel says anything about them.
//!
//! By files, not by lines: what a compiled file leaves out by `#ifdef` is not looked for.

use std::fmt;
use std::fs;

use model::KernelName;

use crate::folder;
use crate::source::{Compiled, Workshop, compiler, config_options, options_of};
use crate::{BuildCache, KernelError, Sources};

/// A changed file that a build did not compile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotCompiled {
    /// Its path in the source.
    pub file: String,
    /// The first option that it hangs on and that is off; `None` if the Makefiles above it name none.
    pub option: Option<String>,
}

impl fmt::Display for NotCompiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.option {
            Some(option) => write!(f, "{} (needs {option})", self.file),
            None if self.file.ends_with(".h") => write!(f, "{} (no compiled file includes it)", self.file),
            None => write!(f, "{} (in no list of objects for this config)", self.file),
        }
    }
}

impl BuildCache {
    /// Returns the code that differs between two built sources and that the build of neither compiled; empty for kernels that
    /// Marvin did not build.
    ///
    /// # Errors
    /// If git fails, or the cache cannot be read.
    pub fn not_compiled(&self, base: &KernelName, new: &KernelName) -> Result<Vec<NotCompiled>, KernelError> {
        let is_built = |name: &KernelName| {
            matches!(name, KernelName::Git(_) | KernelName::Patch { .. } | KernelName::Tree(_) | KernelName::DebSrc(_))
        };
        if !is_built(base) || !is_built(new) {
            return Ok(Vec::new());
        }
        let workshop = Workshop::open(&self.home)?;
        let tree = |name| Ok::<_, KernelError>(self.source(name, &workshop, &|_| {})?.tree);
        self.not_compiled_between(&workshop, &tree(base)?, &tree(new)?, &compiler()?)
    }

    fn not_compiled_between(
        &self,
        workshop: &Workshop,
        base: &str,
        new: &str,
        compiler: &str,
    ) -> Result<Vec<NotCompiled>, KernelError> {
        let mut compiled = Compiled::default();
        for tree in [base, new] {
            let file = self.recipe(tree, compiler).with_extension("compiled");
            match fs::read(&file) {
                Ok(text) => compiled.join(Compiled::from_text(&String::from_utf8_lossy(&text))),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(KernelError::at(&file)(error)),
            }
        }
        let config = self.config_of(new, compiler)?;
        let options = config_options(&config);
        let is_off = |option: &String| options.get(option).map(String::as_str) != Some("y");
        let mut found = Vec::new();
        for file in workshop.changed_between(base, new)? {
            if Compiled::is_code(&file) && !compiled.may_use(&file) {
                let read = |path: &str| workshop.file(new, path);
                let hangs_on = options_of(&file, &read).unwrap_or_default();
                found.push(NotCompiled { option: hangs_on.into_iter().find(is_off), file });
            }
        }
        Ok(found)
    }

    /// Returns the kernel config of the build of a tree; empty if there is no such build.
    fn config_of(&self, tree: &str, compiler: &str) -> Result<String, KernelError> {
        let facts = folder::read_facts(&self.recipe(tree, compiler))?.unwrap_or_default();
        let Some(build) = facts.get("build") else { return Ok(String::new()) };
        Ok(fs::read_to_string(self.builds.join(build).join("config")).unwrap_or_default())
    }
}

impl Sources {
    /// Returns the code that differs between two commits and that the build of neither compiled.
    ///
    /// # Errors
    /// If there is no such commit, git fails, or the cache cannot be read.
    pub fn not_compiled(&self, older: &str, newer: &str) -> Result<Vec<NotCompiled>, KernelError> {
        let workshop = Workshop::open(&self.cache().home)?;
        workshop.borrow(self.repository())?;
        let (base, new) = (workshop.tree_of(older)?, workshop.tree_of(newer)?);
        self.cache().not_compiled_between(&workshop, &base, &new, self.compiler())
    }
}
