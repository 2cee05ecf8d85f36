//! `marvin kernels`: lists the kernels that match a name.

use clap::Args;
use model::{DebQuery, KernelName};

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
    /// Kernel name to look up, such as deb:6.1 or deb:trixie/6.12; without it all kernels of
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
    let debian = session.debian()?;
    if command.refresh {
        debian.forget_lists()?;
    }
    let asked = command.name.as_deref().map(query).transpose()?;
    let offers = match &asked {
        Some(query) => kernel::offers(&debian, query)?,
        None => kernel::all_offers(&debian, None)?,
    };
    let suite = asked.and_then(|query| query.suite);
    let kernels = offers.iter().map(|offer| ListedKernel {
        name: match &suite {
            Some(suite) => format!("deb:{suite}/{}", offer.package),
            None => format!("deb:{}", offer.package),
        },
        version: offer.upstream.to_string(),
        flavour: offer.flavour.to_string(),
        bytes: offer.bytes(),
    });
    session
        .answer(None)?
        .list(&KernelsDocument::new(kernels.collect()), command.output)?;
    Ok(Exit::Fine)
}

/// Returns the query for the archive.
fn query(name: &str) -> anyhow::Result<DebQuery> {
    Ok(match kernel_name(name)? {
        KernelName::Deb(query) => query,
        name @ KernelName::Imported(_) => {
            return Err(WrongInput(format!(
                "{name} was imported: only deb: names match several kernels"
            ))
            .into());
        }
        KernelName::Path(path) => {
            let text = format!(
                "path:{} is one file: only deb: names match several kernels",
                path.display()
            );
            return Err(WrongInput(text).into());
        }
        KernelName::Running => {
            let text = "running: is the kernel of this host: only deb: names match several kernels";
            return Err(WrongInput(text.to_owned()).into());
        }
        name @ (KernelName::Git(_)
        | KernelName::Patch { .. }
        | KernelName::Tree(_)
        | KernelName::DebSrc(_)) => {
            let text = format!("{name} is one source: only deb: names match several kernels");
            return Err(WrongInput(text).into());
        }
    })
}
