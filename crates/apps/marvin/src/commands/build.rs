//! `marvin build`: fetches a kernel by its name or builds it from source, without measuring.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use kernel::BuildCache;

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::{KERNELS, SourceOptions, whole};
use crate::select::{kernel_name_in, source_settings};
use crate::session::{Output, Session};
use crate::views::BuildDocument;

/// `marvin build`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct BuildArguments {
    /// Kernel to build or fetch
    #[arg(add = completion::kernel())]
    pub(crate) kernel: String,

    #[command(flatten)]
    pub(crate) sources: SourceOptions,

    /// Run up to N compilers in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1, 1024))]
    pub(crate) jobs: Option<u16>,

    /// Build only the modules that this host has loaded, or those that FILE lists as lsmod does,
    /// as `make localmodconfig` selects them
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = LOADED)]
    pub(crate) localmod: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) output: Output,
}

/// The modules that this host has loaded (Documentation/filesystems/proc.rst of the kernel).
const LOADED: &str = "/proc/modules";
/// Largest list of modules: thousands of them.
const LIST_MAX: u64 = 4 << 20;

pub(crate) fn build(session: &Session, command: &BuildArguments) -> anyhow::Result<Exit> {
    let name = kernel_name_in(&command.kernel, command.sources.tree.as_deref())?;
    let mut settings = source_settings(session, &command.sources)?;
    settings.jobs = command.jobs.map_or(settings.jobs, usize::from);
    // Kernels for other architectures are built here, and booted elsewhere.
    settings.is_only_built = true;
    if let Some(list) = &command.localmod {
        let modules = loaded_modules(list)?;
        settings.configuration = settings.configuration.with_modules(modules);
    }
    if let (Some(folder), None) = (
        std::env::var_os("KBUILD_OUTPUT"),
        &command.sources.build_dir,
    ) && name.is_built()
    {
        let folder = Path::new(&folder).display();
        session.progress().say(&format!(
            "KBUILD_OUTPUT is not used: --build-dir {folder} takes the .config there"
        ));
    }
    let mut cache = BuildCache::open(session.home()?, session.archives()?)?;
    cache.set_sources(settings);
    let progress = session.progress();
    let shown = name.to_string();
    let built = cache.resolve(&name, &|step| progress.step(&shown, &step));
    progress.end();
    let build = built.with_context(|| format!("cannot get the kernel {name}"))?;
    session
        .answer(None)?
        .list(&BuildDocument::new(&build), command.output)?;
    Ok(Exit::Fine)
}

/// Returns the names of modules, sorted, of a list in the format of lsmod or /proc/modules.
fn loaded_modules(list: &Path) -> anyhow::Result<Vec<String>> {
    let mut text = String::new();
    File::open(list)
        .and_then(|file| file.take(LIST_MAX).read_to_string(&mut text))
        .map_err(|error| {
            WrongInput(format!(
                "cannot read the modules of {}: {error}\nhint: --localmod FILE names a file with the output of lsmod",
                list.display()
            ))
        })?;
    let modules = parse_modules(&text).ok_or_else(|| {
        WrongInput(format!(
            "{} lists no modules: expected the output of lsmod",
            list.display()
        ))
    })?;
    Ok(modules)
}

/// Parses the output of lsmod; `None` if a line is none, or there is no module.
fn parse_modules(text: &str) -> Option<Vec<String>> {
    let mut modules = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with("Module ")) {
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else { continue };
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if !is_name || words.next().is_none_or(|size| size.parse::<u64>().is_err()) {
            return None;
        }
        modules.push(name.to_owned());
    }
    modules.sort();
    modules.dedup();
    (!modules.is_empty()).then_some(modules)
}

#[cfg(test)]
mod tests {
    use super::parse_modules;

    #[test]
    fn modules_of_lsmod_are_read() {
        let lsmod = "Module                  Size  Used by\nxfs                  2097152  1\next4 983040 1 - Live 0x0000000000000000\n";
        assert_eq!(parse_modules(lsmod).unwrap(), ["ext4", "xfs"]);
        for none in [
            "",
            "Module Size Used by\n",
            "CONFIG_A=y\n",
            "a;b 1\n",
            "just words here\n",
        ] {
            assert_eq!(parse_modules(none), None, "{none}");
        }
    }
}
