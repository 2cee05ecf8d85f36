//! `marvin build`: fetches a kernel by its name or builds it from source, without measuring.

use anyhow::Context;
use kernel::BuildCache;

use super::measure::kernel_name;
use super::tree::settings;
use crate::answer::Answer;
use crate::cli::{Arguments, Build};
use crate::exit::Exit;
use crate::home::home;
use crate::progress::Progress;
use lists::BuildDocument;

pub(crate) fn build(arguments: &Arguments, command: &Build) -> anyhow::Result<Exit> {
    let name = kernel_name(&command.kernel)?;
    let mut settings = settings(arguments, &command.sources)?;
    settings.jobs = command.jobs.map_or(settings.jobs, usize::from);
    let mut cache = BuildCache::open(&home(arguments.home.as_deref())?)?;
    cache.set_sources(settings);
    let progress = Progress::new(arguments.quiet);
    let shown = name.to_string();
    let built = cache.resolve(&name, &|step| progress.step(&shown, &step));
    progress.end();
    let build = built.with_context(|| format!("cannot get the kernel {name}"))?;
    Answer::open(None)?.list(&BuildDocument::new(&build), command.output, arguments)?;
    Ok(Exit::Fine)
}
