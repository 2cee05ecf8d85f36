//! `marvin kernels`: lists the kernels that match a name.

use model::{DebQuery, KernelName};

use super::measure::kernel_name;
use crate::answer::Answer;
use crate::cli::Kernels;
use crate::exit::{Exit, WrongInput};

pub(crate) fn kernels(command: &Kernels) -> anyhow::Result<Exit> {
    let offers = match &command.name {
        Some(name) => kernel::offers(&query(name)?)?,
        None => kernel::all_offers()?,
    };
    let lines = offers.iter().map(|offer| {
        let size = offer.bytes() as f64 / 1e6;
        format!("{:<12} {:<12} {:>6.1} MB  deb:{}\n", offer.upstream, offer.flavour, size, offer.package)
    });
    Answer::open(None)?.write(lines.collect::<String>())?;
    Ok(Exit::Fine)
}

/// Returns the query for apt.
fn query(name: &str) -> anyhow::Result<DebQuery> {
    Ok(match kernel_name(name)? {
        KernelName::Deb(query) => query,
        name @ KernelName::Imported(_) => {
            return Err(WrongInput(format!("{name} was imported: only deb: names match several kernels")).into());
        }
        KernelName::Path(path) => {
            let text = format!("path:{} is one file: only deb: names match several kernels", path.display());
            return Err(WrongInput(text).into());
        }
        name @ (KernelName::Git(_) | KernelName::Patch { .. } | KernelName::Tree(_) | KernelName::DebSrc(_)) => {
            let text = format!("{name} is one source: only deb: names match several kernels");
            return Err(WrongInput(text).into());
        }
    })
}
