//! Images and how they come to servers: the keys of `[[image]]` and `[machine.deploy]`.

use std::path::PathBuf;

use model::{DeploySettings, DeployWay, ImageSettings, Recipe};

use super::check::Record;
use super::owned;
use crate::toml_document::Mistake;

/// What stands for no image.
const OWN: &str = "own";

pub(super) fn image(record: &Record) -> Result<ImageSettings, Mistake> {
    let of_debian = ["mirror", "kernel", "packages", "setup"];
    let recipe = match (record.text("debian"), record.has("command")) {
        (Some(suite), false) => {
            for word in [suite]
                .into_iter()
                .map(str::to_owned)
                .chain(record.strings("packages"))
                .chain([owned(record, "kernel")])
            {
                if !is_package(&word) {
                    let what = format!("expected names of Debian, not `{}`", word.escape_debug());
                    return Err(Mistake::new(&record.span, what));
                }
            }
            let text = |key: &str| record.text(key).map(str::to_owned);
            if text("mirror").is_some_and(|mirror| mirror.starts_with('-')) {
                return Err(Mistake::new(
                    record.span_of("mirror"),
                    "expected an address, or a line for sources.list",
                ));
            }
            Recipe::Debian {
                suite: suite.to_owned(),
                mirror: text("mirror"),
                kernel: owned(record, "kernel"),
                packages: record.strings("packages"),
                setup: record.text("setup").map(PathBuf::from),
            }
        }
        (None, true) => match of_debian.iter().find(|key| record.is_written(key)) {
            Some(key) => {
                return Err(Mistake::new(
                    record.span_of(key),
                    format!("`{key}` belongs to `debian`"),
                ));
            }
            None => Recipe::Command(record.strings("command")),
        },
        _ => {
            return Err(Mistake::new(
                &record.span,
                "an [[image]] has either `debian` or `command`",
            ));
        }
    };
    let kernels = record.text("kernels").map(str::parse).transpose();
    let kernels = kernels.map_err(|what: String| Mistake::new(record.span_of("kernels"), what))?;
    if record.text("name") == Some(OWN) {
        let what = format!(
            "`{OWN}` is the system that a server starts by itself: give the image another name"
        );
        return Err(Mistake::new(record.span_of("name"), what));
    }
    Ok(ImageSettings {
        name: owned(record, "name"),
        recipe,
        kernels,
    })
}

/// Parses how a server comes to run an image; `has_power` says whether Marvin can switch its power.
pub(super) fn settings(record: &Record, has_power: bool) -> Result<DeploySettings, Mistake> {
    let by = match (record.text("pxe"), record.has("command")) {
        (Some(_), true) => {
            return Err(Mistake::new(
                record.span_of("command"),
                "a [machine.deploy] has one of `pxe` and `command`",
            ));
        }
        (Some(text), false) => pxe(record, text, has_power)?,
        (None, _) if record.has("mac") => {
            return Err(Mistake::new(
                record.span_of("mac"),
                "`mac` belongs to `pxe`",
            ));
        }
        (None, true) => DeployWay::Command(record.strings("command")),
        (None, false) => DeployWay::Kexec,
    };
    let usual = DeploySettings::default();
    let command_line = record
        .text("command_line")
        .map_or(usual.command_line, str::to_owned);
    // Both would be quoted differently by each loader, and a root file system is not what an image
    // has.
    if command_line.contains(['"', '\'', '\\'])
        || command_line
            .split(' ')
            .any(|word| word.starts_with("root="))
    {
        let what = "the command line of an image has no quotes and no root=: its root is in memory";
        return Err(Mistake::new(record.span_of("command_line"), what));
    }
    let disk = record.text("disk").map(str::to_owned);
    if disk.as_ref().is_some_and(|disk| !is_device(disk)) {
        let what = "expected a whole disk such as /dev/disk/by-id/NAME or /dev/sda";
        return Err(Mistake::new(record.span_of("disk"), what));
    }
    Ok(DeploySettings {
        by,
        key: record.text("key").map(PathBuf::from),
        command_line,
        disk,
    })
}

fn pxe(record: &Record, text: &str, has_power: bool) -> Result<DeployWay, Mistake> {
    let listen = text.parse();
    let listen = listen.map_err(|_| {
        Mistake::new(
            record.span_of("pxe"),
            "expected an address with a port such as 0.0.0.0:8069",
        )
    })?;
    let mac = owned(record, "mac").to_lowercase().replace(':', "-");
    let parts: Vec<&str> = mac.split('-').collect();
    if parts.len() != 6
        || !parts
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        let what = "`pxe` needs the server's network card: mac = \"52-54-00-12-34-56\"";
        return Err(Mistake::new(
            record.span_of(if record.has("mac") { "mac" } else { "pxe" }),
            what,
        ));
    }
    if !has_power {
        let what = "`pxe` needs a [machine.power] that has the server boot from its network";
        return Err(Mistake::new(record.span_of("pxe"), what));
    }
    Ok(DeployWay::Pxe { listen, mac })
}

fn is_device(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|rest| {
        !rest.is_empty()
            && !rest.contains("..")
            && rest
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.:/+".contains(c))
    })
}

/// Returns whether a text may be the name of a package or a distribution: mmdebstrap reads other
/// signs as options and lists.
fn is_package(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-._".contains(c))
}
