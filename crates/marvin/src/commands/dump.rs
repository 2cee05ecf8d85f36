//! `marvin dump`: what `marvin-dump` does, for whoever has this program at hand.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::time::Instant;

use clap::Parser;
use vmcore::Screen;
use vmcore::command::{Arguments, Host, run_on, tell_of_bus_errors};

use crate::exit::Exit;

pub(crate) fn dump(words: &[OsString]) -> Exit {
    let name = OsString::from("marvin dump");
    let arguments = Arguments::parse_from(std::iter::once(&name).chain(words));
    tell_of_bus_errors();
    let start = Instant::now();
    let (mut input, mut answers, mut messages) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
    let clock = || start.elapsed();
    let mut host = Host { input: &mut input, answers: &mut answers, messages: &mut messages, clock: &clock };
    let screen = if std::io::stderr().is_terminal() { Screen::Terminal } else { Screen::Plain };
    match run_on(screen, &arguments, &mut host) {
        vmcore::command::Exit::Fine => Exit::Fine,
        vmcore::command::Exit::Differs => Exit::Worse,
        vmcore::command::Exit::Usage => Exit::Usage,
        vmcore::command::Exit::Incomplete => Exit::Unclear,
        vmcore::command::Exit::Host => Exit::Lab,
    }
}
