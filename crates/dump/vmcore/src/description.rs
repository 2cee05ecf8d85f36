//! What a dump says about its kernel: the note, the symbol table, and the types in the image, which
//! complete the note.

use std::ops::Range;

use crate::btf::Types;
use crate::completion;
use crate::error::DumpError;
use crate::image;
use crate::note::Info;
use crate::paging::{Walker, architecture};
use crate::reader::Reader;
use crate::symbols::Symbols;

/// A flag that notes do not have; types without it belong to another kernel.
const RESERVED: &str = "PG_reserved";

/// The description of a kernel.
#[derive(Debug)]
pub(crate) struct Description {
    /// The note, completed.
    pub(crate) info: Info,
    /// The pages of the kernel's image.
    pub(crate) image: Vec<Range<u64>>,
    pub(crate) symbols: Symbols,
    pub(crate) types: Option<Types>,
}

impl Description {
    /// Finds all of it.
    ///
    /// # Errors
    /// If the note does not lead to the page tables.
    pub(crate) fn find(reader: &mut Reader<'_>) -> Result<Self, DumpError> {
        let dump = reader.dump();
        let note = dump.info();
        // First: what a damaged note lacks is no fault of the kernel.
        if dump.are_notes_damaged() {
            return Err(DumpError::NotesDamaged);
        }
        if note.is_empty() {
            return Err(DumpError::NoNote);
        }
        let architecture = architecture(dump.machine(), note)?;
        let image = image::pages(reader, &*architecture);
        let mut walker = Walker::new(&*architecture);
        let symbols = Symbols::find(reader, &mut walker);
        let types = image::types(reader, &*architecture, &image, symbols.types, RESERVED);
        let info = completion::complete(note, dump.machine(), types.as_ref(), symbols.mem_section);
        Ok(Self {
            info,
            image,
            symbols,
            types,
        })
    }
}
