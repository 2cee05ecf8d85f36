//! Commits as mails, for others to apply: those of a tree, and those that exist only in the
//! workshop.

use std::fs;

use crate::scratch::Scratch;
use crate::{KernelError, Sources};

impl Sources {
    /// Returns a commit as a mail, as `git format-patch` writes it; `None` if `before` is not its
    /// only parent, as of merges.
    ///
    /// # Errors
    /// If git fails, or the data directory cannot be written.
    pub fn patch_mail(&self, before: &str, commit: &str) -> Result<Option<Vec<u8>>, KernelError> {
        let scratch = Scratch::new(self.cache().downloads())?;
        let files = self.format_patches(before, commit, scratch.path())?;
        let [file] = &files[..] else {
            return Ok(None);
        };
        let mail = fs::read(file).map_err(KernelError::io(file))?;
        // The only commit behind a merge's first parent may be that of the branch.
        let is_it = mail.starts_with(format!("From {commit} ").as_bytes());
        Ok(is_it.then_some(mail))
    }
}
