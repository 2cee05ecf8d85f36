//! Bringing the program itself into memory before anything is measured, so that no iteration meets
//! a page fault of the agent's own, whose number depends on how its code is laid out.

use std::fs;
use std::io;

const PAGE: usize = 4096;

/// Reads a byte of each page that is mapped from the program's file.
pub(crate) fn touch_program() -> io::Result<()> {
    let program = fs::read_link("/proc/self/exe")?.display().to_string();
    for line in fs::read_to_string("/proc/self/maps")?
        .lines()
        .filter(|line| line.ends_with(&program))
    {
        let mut words = line.split_whitespace();
        let (Some(range), Some(permissions)) = (words.next(), words.next()) else {
            continue;
        };
        let Some((start, end)) = range.split_once('-') else {
            continue;
        };
        let (Ok(start), Ok(end)) = (
            usize::from_str_radix(start, 16),
            usize::from_str_radix(end, 16),
        ) else {
            continue;
        };
        if permissions.starts_with('r') {
            for page in (start..end).step_by(PAGE) {
                // SAFETY: the kernel has just said that this range is mapped and readable, and
                // nobody unmaps the program.
                unsafe { std::ptr::with_exposed_provenance::<u8>(page).read_volatile() };
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_program_can_be_touched() {
        super::touch_program().unwrap();
    }
}
