//! The home folder: where builds, snapshots and results live.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::exit::WrongInput;

/// Returns the home: the given one, or `marvin` below `$XDG_DATA_HOME`, or below `~/.local/share`. Always absolute.
pub(crate) fn home(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = match given {
        Some(home) => home.to_owned(),
        None => variable("XDG_DATA_HOME")
            // The XDG base directory specification has relative paths ignored.
            .filter(|data| data.is_absolute())
            .or_else(|| Some(variable("HOME")?.join(".local/share")))
            .ok_or_else(|| WrongInput("neither XDG_DATA_HOME nor HOME is set: give --home FOLDER".into()))?
            .join("marvin"),
    };
    std::path::absolute(&home).with_context(|| format!("the home folder {} has no absolute path", home.display()))
}
