//! uname's names of the crashed system.

use crate::paging::{Walker, architecture};
use crate::reader::Reader;

/// Bytes of one name (`include/uapi/linux/utsname.h`).
const NAME: usize = 65;

/// Returns system, node, release, version, machine and domain; unreadable ones are taken from the
/// note, or empty.
#[must_use]
pub fn names(reader: &mut Reader<'_>) -> [String; 6] {
    let dump = reader.dump();
    let mut names = <[String; 6]>::default();
    names[0] = "Linux".to_owned();
    names[2] = dump
        .info()
        .text("OSRELEASE")
        .unwrap_or_default()
        .escape_debug()
        .to_string();
    names[4] = dump.machine().name().to_owned();
    read(reader).unwrap_or(names)
}

fn read(reader: &mut Reader<'_>) -> Option<[String; 6]> {
    let dump = reader.dump();
    let info = dump.info();
    let architecture = architecture(dump.machine(), info).ok()?;
    let at = Walker::new(&*architecture)
        .walk(reader, info.symbol("init_uts_ns")?)
        .ok()?;
    let bytes = reader.bytes(at.physical, 16 + 6 * NAME).ok()?;
    // The names are first, or after a reference count.
    let offset = info
        .size("OFFSET", "uts_namespace.name")
        .filter(|offset| *offset <= 16);
    let offset = offset.or_else(|| {
        [0, 4]
            .into_iter()
            .find(|at| bytes[*at..].starts_with(b"Linux\0"))
    })?;
    let mut names = <[String; 6]>::default();
    for (name, bytes) in names.iter_mut().zip(bytes[offset..].chunks(NAME)) {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        *name = text.escape_ascii().to_string();
    }
    (names[0] == "Linux").then_some(names)
}
