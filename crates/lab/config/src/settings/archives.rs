//! Parses where packages and sources of kernels come from: `[debian]`, `[ubuntu]`, `[fedora]`,
//! `[arch]` and `[kernel_org]`.

use model::{ArchiveSettings, DebianSettings, FedoraSettings, MirrorSettings};

use super::check::Record;
use super::owned;
use crate::toml_document::Mistake;

pub(super) fn archives(file: &Record) -> Result<ArchiveSettings, Mistake> {
    let fedora = mirror(file.one("fedora"))?;
    Ok(ArchiveSettings {
        debian: debian(file.one("debian"))?,
        ubuntu: debian(file.one("ubuntu"))?,
        fedora: FedoraSettings {
            mirror: fedora.mirror,
            keyring: fedora.keyring,
            release: owned(file.one("fedora"), "release"),
        },
        arch: mirror(file.one("arch"))?,
        kernel_org: mirror(file.one("kernel_org"))?,
    })
}

fn debian(record: &Record) -> Result<DebianSettings, Mistake> {
    let MirrorSettings { mirror, keyring } = mirror(record)?;
    Ok(DebianSettings {
        mirror,
        security: address(record, "security")?,
        snapshot: address(record, "snapshot")?,
        keyring,
        suite: owned(record, "suite"),
    })
}

fn mirror(record: &Record) -> Result<MirrorSettings, Mistake> {
    Ok(MirrorSettings {
        mirror: address(record, "mirror")?,
        keyring: record.text("keyring").map(Into::into),
    })
}

fn address(record: &Record, key: &str) -> Result<String, Mistake> {
    let address = owned(record, key);
    if address.starts_with("http://") || address.starts_with("https://") {
        return Ok(address);
    }
    Err(Mistake::new(
        record.span_of(key),
        "expected an address such as http://deb.debian.org/debian",
    ))
}
