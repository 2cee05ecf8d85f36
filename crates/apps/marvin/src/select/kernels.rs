//! Parses kernel names; inside a kernel tree a bare word is a revision.

use std::path::Path;

use model::{KernelName, KernelNameError};

use super::enclosing_tree;
use crate::exit::WrongInput;

/// Parses a kernel's name. Without a source, it is an existing file or, inside a kernel tree, a
/// revision.
pub(crate) fn kernel_name(text: &str) -> anyhow::Result<KernelName> {
    text.parse()
        .or_else(|error| match error {
            KernelNameError::Source(_) => bare(text).unwrap_or(Err(error)),
            _ => Err(error),
        })
        .map_err(|error| WrongInput(error.to_string()).into())
}

/// Returns the kernel of a name without a source; `None` if there is none.
fn bare(text: &str) -> Option<Result<KernelName, KernelNameError>> {
    let path = Path::new(text);
    if path.is_file() {
        return Some(Ok(KernelName::Path(path.to_owned())));
    }
    if format!("deb:{text}").parse::<KernelName>().is_ok() {
        return Some(Err(KernelNameError::Bare(text.to_owned())));
    }
    let is_tag = text
        .strip_prefix('v')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if is_tag && enclosing_tree().is_none() {
        return Some(Err(KernelNameError::Revision(text.to_owned())));
    }
    let is_path = text.contains('/') && !text.contains(':');
    (enclosing_tree().is_some() && !is_path).then(|| format!("git:{text}").parse())
}
