//! `marvin man`: writes man pages.

use std::path::Path;

use anyhow::Context;

use crate::exit::Exit;

pub(crate) fn man(command: clap::Command, folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot make the directory {}", folder.display()))?;
    clap_mangen::generate_to(command, folder)
        .with_context(|| format!("cannot write man pages into {}", folder.display()))?;
    Ok(Exit::Fine)
}
