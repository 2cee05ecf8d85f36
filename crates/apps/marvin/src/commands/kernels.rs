//! `marvin kernels`: lists the kernels that match a name.

use std::path::Path;

use archives::Archives;
use clap::Args;
use kernel::Offer;
use model::{Distribution, InstalledQuery, KernelName};

use crate::completion;
use crate::exit::{Exit, WrongInput};
use crate::options::KERNELS;
use crate::select::kernel_name;
use crate::session::{Output, Session};
use crate::views::{KernelsDocument, ListedKernel};

/// `marvin kernels`.
#[derive(Debug, Args)]
#[command(after_help = KERNELS.trim_end())]
pub(crate) struct KernelsArguments {
    /// Kernel name to look up, such as deb:6.1, ubuntu:noble/6.8 or installed:; without it all kernels of
    /// Debian's suite
    #[arg(add = completion::kernel())]
    pub(crate) name: Option<String>,

    /// Ask the archive for new lists, also when those of the data directory are fresh
    #[arg(long)]
    pub(crate) refresh: bool,

    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn kernels(session: &Session, command: &KernelsArguments) -> anyhow::Result<Exit> {
    let name = command.name.as_deref().map(query).transpose()?;
    let kernels = match name {
        Some(KernelName::Installed(query)) => installed(&query)?,
        Some(KernelName::Package(query)) => {
            let archives = archives(session, command.refresh)?;
            let offers = kernel::offers(&archives, &query);
            session.say_notices(&archives);
            let offers = offers?;
            offers
                .iter()
                .map(|offer| offered(offer, query.suite.as_deref()))
                .collect()
        }
        Some(other) => return Err(WrongInput(one_kernel(&other)).into()),
        None => {
            let archives = archives(session, command.refresh)?;
            let offers = kernel::all_offers(&archives, Distribution::Debian, None);
            session.say_notices(&archives);
            let offers = offers?;
            offers.iter().map(|offer| offered(offer, None)).collect()
        }
    };
    session
        .answer(None)?
        .list(&KernelsDocument::new(kernels), command.output)?;
    Ok(Exit::Fine)
}

/// Parses a name that may select several kernels: a file that does not exist is none of them
/// either.
fn query(text: &str) -> anyhow::Result<KernelName> {
    match text.parse() {
        Ok(name) => Ok(name),
        Err(_) => kernel_name(text),
    }
}

fn archives(session: &Session, refresh: bool) -> anyhow::Result<Archives> {
    let archives = session.archives()?;
    if refresh {
        archives.forget_lists()?;
    }
    Ok(archives)
}

fn offered(offer: &Offer, suite: Option<&str>) -> ListedKernel {
    ListedKernel {
        name: offer.name(suite).to_string(),
        version: offer.shown_version().to_owned(),
        flavour: offer.flavour.clone(),
        bytes: offer.bytes(),
    }
}

/// Returns the images of this host that a name selects.
fn installed(query: &InstalledQuery) -> anyhow::Result<Vec<ListedKernel>> {
    let images = kernel::find_installed(Path::new("/"), query)?;
    let listed = images.into_iter().map(|image| ListedKernel {
        name: format!("installed:{}", image.release),
        version: image.release,
        flavour: match image.trouble {
            None => image.pkgbase.unwrap_or_default(),
            Some(_) => "not readable".to_owned(),
        },
        bytes: image.bytes,
    });
    Ok(listed.collect())
}

/// Describes why a name does not match several kernels.
fn one_kernel(name: &KernelName) -> String {
    const SEVERAL: &str = "only names of packages match several kernels, and installed:";
    match name {
        KernelName::Imported(_) => format!("{name} was imported: {SEVERAL}"),
        KernelName::Path(path) => format!("path:{} is one file: {SEVERAL}", path.display()),
        KernelName::Running => format!("running: is the kernel of this host: {SEVERAL}"),
        name => format!("{name} is one source: {SEVERAL}"),
    }
}
