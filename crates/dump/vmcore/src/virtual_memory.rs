//! Reads kernel memory by virtual address, through the page tables in the dump.

use crate::dump::Dump;
use crate::error::{DumpError, MemoryError};
use crate::paging::{Architecture, Walker, architecture};
use crate::reader::Reader;

/// The kernel's address space in a dump.
#[derive(Debug)]
pub struct VirtualMemory {
    architecture: Box<dyn Architecture>,
}

impl VirtualMemory {
    /// Finds the kernel's page tables by the dump's VMCOREINFO.
    ///
    /// # Errors
    /// If the note does not tell where they are, or this crate does not know the architecture.
    pub fn new(dump: &Dump) -> Result<Self, DumpError> {
        Ok(Self {
            architecture: architecture(dump.machine(), dump.info())?,
        })
    }

    /// Reads `length` bytes at a virtual address.
    ///
    /// # Errors
    /// If the address is not mapped, or the dump lacks its page or a page table.
    pub fn read(
        &self,
        reader: &mut Reader<'_>,
        address: u64,
        length: usize,
    ) -> Result<Vec<u8>, MemoryError> {
        Walker::new(&*self.architecture).read(reader, address, length)
    }

    /// Returns the physical address of a virtual one.
    ///
    /// # Errors
    /// If it is not mapped, or the dump lacks a page table.
    pub fn translate(&self, reader: &mut Reader<'_>, address: u64) -> Result<u64, MemoryError> {
        Ok(Walker::new(&*self.architecture)
            .walk(reader, address)?
            .physical)
    }
}

#[cfg(test)]
mod tests {
    use super::VirtualMemory;
    use crate::reader::{Io, Reader};

    #[test]
    fn virtual_bytes_are_those_of_their_page() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vmcore");
        synthetic_dumps::Synthetic::default().write(&path).unwrap();
        let dump = crate::Dump::open(&[path]).unwrap();
        let mut reader = Reader::new(&dump, Io::Read);
        let memory = VirtualMemory::new(&dump).unwrap();
        let address = dump.info().symbol("init_top_pgt").unwrap();
        let physical = memory.translate(&mut reader, address).unwrap();
        let expected = reader.bytes(physical, 4096).unwrap().to_vec();
        assert_eq!(memory.read(&mut reader, address, 4096).unwrap(), expected);
        assert!(memory.read(&mut reader, 0xffff_ffff_ffff_0000, 1).is_err());
    }
}
