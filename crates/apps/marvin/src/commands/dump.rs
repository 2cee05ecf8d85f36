//! `marvin dump`: the same as `marvin-dump`, for users who have only this program.

use std::ffi::OsString;

use clap::Parser;
use marvin_dump::{Arguments, run_here};

use crate::exit::Exit;

pub(crate) fn dump(arguments: &[OsString]) -> Exit {
    let name = OsString::from("marvin dump");
    match run_here(&Arguments::parse_from(
        std::iter::once(&name).chain(arguments),
    )) {
        marvin_dump::Exit::Fine => Exit::Fine,
        marvin_dump::Exit::Differs => Exit::Worse,
        marvin_dump::Exit::Usage => Exit::Usage,
        marvin_dump::Exit::Incomplete => Exit::Unclear,
        marvin_dump::Exit::Host => Exit::Lab,
    }
}
