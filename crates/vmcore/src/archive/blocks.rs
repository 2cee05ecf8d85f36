//! Reads pages of an archive: unpacks blocks, and caches recent ones.

use crate::archive::table::{Entry, Slot};
use crate::archive::{Archive, HEAD, Head, sum};
use crate::compress::Decompressor;
use crate::error::MemoryError;

/// Blocks in a reader's cache: a few MiB.
const KEPT: usize = 4;

/// Reads pages of an archive.
#[derive(Debug, Default)]
pub(crate) struct BlockReader {
    kept: Vec<Block>,
    /// Counts uses.
    now: u64,
    packed: Vec<u8>,
    decompressor: Decompressor,
}

/// A cached block.
#[derive(Debug)]
struct Block {
    number: usize,
    head: Head,
    entries: Vec<Entry>,
    /// Empty until a page of it is read.
    data: Vec<u8>,
    /// The count at its last use.
    used: u64,
}

impl BlockReader {
    /// Reads a page into `buffer`, which is one page long.
    pub(crate) fn read(&mut self, archive: &Archive, page: u64, buffer: &mut [u8]) -> Result<(), MemoryError> {
        let (n, slot) = self.find(archive, page)?;
        let (n, slot) = match slot {
            Slot::Zero => {
                buffer.fill(0);
                return Ok(());
            }
            Slot::Data(_) => (n, slot),
            Slot::Twin(other) => self.find(archive, other).map_err(|error| {
                let what = format!("it equals page {other:#x}, and that cannot be read: {error}");
                unreadable(archive, page, n, what)
            })?,
        };
        let Slot::Data(slot) = slot else {
            return Err(unreadable(archive, page, n, "it equals a page that has no data of its own".to_owned()));
        };
        let data = self.data(archive, n).map_err(|what| unreadable(archive, page, n, what))?;
        let bytes = data.chunks_exact(buffer.len()).nth(slot as usize);
        let bytes = bytes.ok_or_else(|| unreadable(archive, page, n, format!("block {n} is wrong: it ends early")))?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    /// Returns the number of the block with a page, and the page's table entry.
    fn find(&mut self, archive: &Archive, page: u64) -> Result<(usize, Slot), MemoryError> {
        let absent = || MemoryError::Absent(page.saturating_mul(archive.header.page));
        let (n, _) = archive.place(page).ok_or_else(absent)?;
        let at = self.block(archive, n).map_err(|what| unreadable(archive, page, n, what))?;
        let block = &self.kept[at];
        let at = block.entries.binary_search_by_key(&page, |entry| entry.page).map_err(|_| absent())?;
        Ok((n, block.entries[at].slot))
    }

    /// Caches a block's table instead of the least recently used block; returns its slot.
    fn block(&mut self, archive: &Archive, number: usize) -> Result<usize, String> {
        self.now += 1;
        let kept = self.kept.iter().position(|block| block.number == number);
        let at = match kept {
            Some(at) => at,
            None => self.load(archive, number)?,
        };
        self.kept[at].used = self.now;
        Ok(at)
    }

    fn load(&mut self, archive: &Archive, number: usize) -> Result<usize, String> {
        let (head, entries) = archive.table(number)?;
        let mut block = Block { number, head, entries, data: Vec::new(), used: 0 };
        let oldest = (0..self.kept.len()).min_by_key(|at| self.kept[*at].used);
        if let Some(at) = oldest.filter(|_| self.kept.len() >= KEPT) {
            std::mem::swap(&mut block.data, &mut self.kept[at].data);
            block.data.clear();
            self.kept[at] = block;
            return Ok(at);
        }
        self.kept.push(block);
        Ok(self.kept.len() - 1)
    }

    /// Returns the unpacked data of a block.
    fn data(&mut self, archive: &Archive, number: usize) -> Result<&[u8], String> {
        let at = self.block(archive, number)?;
        let block = &mut self.kept[at];
        if block.data.is_empty() {
            block.unpack(archive, &mut self.packed, &mut self.decompressor)?;
        }
        Ok(&self.kept[at].data)
    }
}

impl Block {
    fn unpack(&mut self, archive: &Archive, packed: &mut Vec<u8>, unpacker: &mut Decompressor) -> Result<(), String> {
        let (n, head) = (self.number, self.head);
        let place = archive.places.get(n).ok_or("no such block")?;
        // The block was checked to be within the file, and to have no more pages than its header allows.
        let size = head.data as usize * archive.header.page as usize;
        if head.packed as usize > size {
            return Err(format!("block {n} is wrong: {} bytes of data for {} pages", head.packed, head.data));
        }
        packed.resize(head.packed as usize, 0);
        let at = place.offset + HEAD as u64 + u64::from(head.table);
        archive.storage.fill(at, packed).map_err(|error| error.to_string())?;
        if sum(&[packed]) != head.sum {
            return Err(format!("block {n} is damaged: the checksum of its data is wrong"));
        }
        self.data.resize(size, 0);
        let unpacked = unpacker.decompress(head.codec, packed, &mut self.data);
        unpacked.ok_or_else(|| {
            self.data.clear();
            format!("block {n} is wrong: {} cannot unpack it to {size} bytes", head.codec.name())
        })
    }
}

fn unreadable(archive: &Archive, page: u64, n: usize, what: String) -> MemoryError {
    let offset = archive.places.get(n).map_or(0, |place| place.offset);
    MemoryError::Unreadable { address: page.saturating_mul(archive.header.page), offset, what }
}
