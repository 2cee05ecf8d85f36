//! `marvin kernels`: lists the kernels that match a name.

use model::{DebQuery, KernelName};

use super::measure::kernel_name;
use crate::answer::Answer;
use crate::cli::{Arguments, Kernels};
use crate::exit::{Exit, WrongInput};
use lists::{KernelsDocument, ListedKernel};

pub(crate) fn kernels(arguments: &Arguments, command: &Kernels) -> anyhow::Result<Exit> {
    let offers = match &command.name {
        Some(name) => kernel::offers(&query(name)?)?,
        None => kernel::all_offers()?,
    };
    let kernels = offers.iter().map(|offer| ListedKernel {
        name: format!("deb:{}", offer.package),
        version: offer.upstream.to_string(),
        flavour: offer.flavour.to_string(),
        bytes: offer.bytes(),
    });
    Answer::open(None)?.list(
        &KernelsDocument::new(kernels.collect()),
        command.output,
        arguments,
    )?;
    Ok(Exit::Fine)
}

/// Returns the query for apt.
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
