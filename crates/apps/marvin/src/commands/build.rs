//! `marvin build`: fetches a kernel by its name or builds it from source, without measuring.

use anyhow::Context;
use clap::Args;
use kernel::BuildCache;

use crate::completion;
use crate::exit::Exit;
use crate::options::{KERNELS, SourceOptions, whole};
use crate::select::{kernel_name, source_settings};
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

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn build(session: &Session, command: &BuildArguments) -> anyhow::Result<Exit> {
    let name = kernel_name(&command.kernel)?;
    let mut settings = source_settings(session, &command.sources)?;
    settings.jobs = command.jobs.map_or(settings.jobs, usize::from);
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
