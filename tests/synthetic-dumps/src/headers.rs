//! Dumps with very many program headers: one for every other page of memory, of which each is the
//! same page of the file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::{DIRECT, ELF, PAGE, PROGRAM_HEADER};

/// Writes a dump with `count` program headers, more than `e_phnum` can say: a section header has
/// the number. A `step` other than 1 has no factor in common with the count, and puts them out of
/// order.
///
/// # Errors
/// If the file cannot be written.
pub fn write(path: &Path, count: u64, step: u64) -> io::Result<()> {
    let table = 2 * ELF;
    let data = (table + count * PROGRAM_HEADER).next_multiple_of(PAGE);
    let mut start = b"\x7fELF\x02\x01\x01".to_vec();
    start.resize(table as usize, 0);
    start[16..20].copy_from_slice(&[4, 0, 62, 0]);
    start[32..48].copy_from_slice(&[table.to_le_bytes(), ELF.to_le_bytes()].concat());
    start[54..58].copy_from_slice(&[56, 0, 0xff, 0xff]);
    let number = ELF as usize + 44;
    start[number..number + 4].copy_from_slice(&(count as u32).to_le_bytes());
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(&start)?;
    for n in (0..count).map(|n| n * step % count) {
        let address = n * 2 * PAGE;
        let numbers = [1, data, DIRECT + address, address, PAGE, PAGE, 0];
        for number in numbers {
            file.write_all(&number.to_le_bytes())?;
        }
    }
    let size = table + count * PROGRAM_HEADER;
    file.write_all(&vec![0; (data - size) as usize])?;
    file.write_all(&[7; PAGE as usize])?;
    file.flush()
}
