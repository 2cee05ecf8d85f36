//! The kernel's own list of its functions and data, made short enough for a serial line: each
//! address is the distance to the one before. A line is `TYPE DISTANCE NAME[ MODULE]`, as in `T1f0
//! do_sys_open`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};

/// Prefixes of the symbols of padding before a function.
const PADDING: [&str; 2] = ["__pfx_", "__cfi_"];

/// Returns the list. Addresses are 0 where the kernel hides them.
pub(crate) fn copy() -> io::Result<Vec<u8>> {
    show_addresses();
    let mut list = Vec::new();
    let mut last = 0_u64;
    for symbol in symbols(&["t", "T", "w", "W", "d", "D", "b", "B", "r", "R", "a", "A"])? {
        let (address, symbol) = symbol?;
        let (kind, name) = symbol.split_once(' ').unwrap_or(("t", &symbol));
        writeln!(list, "{kind}{:x} {name}", address.wrapping_sub(last))?;
        last = address;
    }
    Ok(list)
}

/// Returns functions by address: each a type and a name. Padding is left out.
pub(crate) fn list() -> io::Result<Vec<(u64, String)>> {
    if std::env::var_os(guest::IN_GUEST).is_some() {
        show_addresses();
    }
    let mut list = symbols(&["t", "T", "w", "W"])?.collect::<io::Result<Vec<_>>>()?;
    let is_padding = |symbol: &str| {
        let name = symbol.split_once(' ').map_or(symbol, |(_, name)| name);
        PADDING.iter().any(|start| name.starts_with(start))
    };
    list.retain(|(address, symbol)| *address != 0 && !is_padding(symbol));
    list.sort();
    Ok(list)
}

fn show_addresses() {
    // Kernels before 2.6.38 do not have it; whether it helped shows in the addresses.
    drop(fs::write("/proc/sys/kernel/kptr_restrict", "0"));
}

/// Returns the kernel's symbols of these types in its own order: address, type and name. None if it
/// has no list.
fn symbols(
    types: &'static [&'static str],
) -> io::Result<impl Iterator<Item = io::Result<(u64, String)>>> {
    let file = match File::open("/proc/kallsyms") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        file => Some(file?),
    };
    let lines = file
        .into_iter()
        .flat_map(|file| BufReader::new(file).lines());
    Ok(lines.filter_map(|line| match line {
        Ok(line) => symbol(&line, types).map(Ok),
        Err(error) => Some(Err(error)),
    }))
}

fn symbol(line: &str, types: &[&str]) -> Option<(u64, String)> {
    let (address, rest) = line.split_once(' ')?;
    let (kind, _) = rest.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    types
        .contains(&kind)
        .then(|| (address, rest.trim_end().to_owned()))
}
