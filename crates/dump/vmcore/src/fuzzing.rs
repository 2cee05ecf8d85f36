//! Fuzzing: one body for each reader, shared by the targets of `fuzz/` and a bounded run in the
//! tests.
//!
//! A body returns for any bytes: with an error, or with a result that it checks. It panics if the
//! result is wrong. Bodies for files write the bytes to `scratch` first.

use std::hint::black_box;
use std::path::Path;

use crate::btf;
use crate::bytes::array;
use crate::compress::Codec;
use crate::dump::Dump;
use crate::error::DumpError;
use crate::exclusion::Level;
use crate::filter::Filter;
use crate::layout::Layout;
use crate::log::{LogPart, log};
use crate::lzo;
use crate::machine::Machine;
use crate::note::{self, Info};
use crate::output::kdump::{Style, write};
use crate::output::sink::{FileSink, Flattened, Nowhere, Overwrite, Sink};
use crate::output::{elf, rearrange};
use crate::paging::architecture;
use crate::plan::{Plan, Work};
use crate::reader::{Io, Reader};
use crate::system;
use crate::variables::Variables;
use crate::vmlinux::Vmlinux;

/// Most visited pages: more would only take longer.
const PAGES_MAX: u64 = 1 << 14;

/// An ELF vmcore.
pub fn elf(bytes: &[u8], scratch: &Path) {
    file(b"\x7fELF\x02\x01\x01", bytes, scratch);
}

/// A kdump-compressed file.
pub fn kdump(bytes: &[u8], scratch: &Path) {
    file(b"KDUMP   ", bytes, scratch);
}

/// A flattened file, in place and as a stream.
pub fn flattened(bytes: &[u8], scratch: &Path) {
    file(b"makedumpfile\0\0\0\0", bytes, scratch);
    let size = rearrange::rearrange(&mut &*bytes, &Nowhere, rearrange::Cut::Kept)
        .map_or(0, |done| done.bytes);
    assert!(size <= i64::MAX as u64 * 2, "{size}");
}

/// Notes, and the text of VMCOREINFO.
pub fn note(bytes: &[u8]) {
    for note in note::notes(bytes) {
        assert!(bytes.get(note.content).is_some(), "a note is in the bytes");
    }
    assert!(note::processors(bytes) <= bytes.len() / 12);
    assert_eq!(note::vmcoreinfo(&note::without(bytes, "VMCOREINFO")), None);
    let info = Info::parse(bytes);
    drop(Layout::new(&info, false));
    for machine in [Machine::X86_64, Machine::Aarch64] {
        if let Ok(found) = architecture(machine, &info) {
            assert!((1..=5).contains(&found.levels().len()), "{found:?}");
        }
    }
}

/// BTF.
pub fn btf(bytes: &[u8]) {
    if let Some(size) = btf::size(bytes) {
        assert!(size <= 64 << 20);
    }
    if let Some(types) = btf::Types::new(bytes.to_vec()) {
        types.enumerator("PG_reserved");
        let lists = types
            .structure("per_cpu_pages")
            .and_then(|pages| types.member(pages, "lists"));
        lists.map(|lists| types.length(lists.kind));
    }
}

/// A vmlinux: its symbols, and the types and variables that BTF and DWARF describe.
pub fn vmlinux(bytes: &[u8], scratch: &Path) {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(..7) {
        place.copy_from_slice(b"\x7fELF\x02\x01\x01");
    }
    drop(std::fs::remove_file(scratch));
    if std::fs::write(scratch, &bytes).is_err() {
        return;
    }
    let Ok(vmlinux) = Vmlinux::open(scratch) else {
        return;
    };
    black_box((vmlinux.release(), vmlinux.build_id()));
    let Ok(types) = vmlinux.types() else { return };
    let variables = Variables::new(&vmlinux, &types);
    for name in ["init_task", "things", "other", "text"] {
        let place = vmlinux
            .symbol(name)
            .map_or(0xffff_ffff_8100_0010, |symbol| symbol.address);
        if let Some(kind) = variables.kind(name, place) {
            black_box(variables.size(&kind));
            black_box(
                variables
                    .member(&kind, "b")
                    .and_then(|(_, kind)| variables.size(&kind)),
            );
        }
    }
}

/// An LZO stream.
pub fn lzo(bytes: &[u8]) {
    let mut page = [0xa5; 4096 + 16];
    lzo::decode(bytes, &mut page[..4096]);
    assert_eq!(
        page[4096..],
        [0xa5; 16],
        "nothing is written behind the page"
    );
}

/// A dump with corrupt memory map, page tables or log: `bytes` are positions in `image`, an ELF
/// vmcore, each with its new eight bytes. Positions count bytes that are not zero.
pub fn image(image: &[u8], bytes: &[u8], scratch: &Path) {
    let full: Vec<usize> = image
        .chunks_exact(8)
        .enumerate()
        .filter(|(_, chunk)| chunk.iter().any(|byte| *byte != 0))
        .map(|(n, _)| n * 8)
        .collect();
    let mut lying = image.to_vec();
    for change in bytes.chunks_exact(12) {
        let place = array(change, 0).map_or(0, u32::from_le_bytes) as usize % full.len().max(1);
        if let Some(at) = full.get(place) {
            lying[*at..*at + 8].copy_from_slice(&change[4..]);
        }
    }
    elf(&lying, scratch);
}

/// Opens a file that begins with `start`, followed by any bytes, and uses it in every way.
fn file(start: &[u8], bytes: &[u8], scratch: &Path) {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(..start.len()) {
        place.copy_from_slice(start);
    }
    // Some file systems sync to disk when a file is replaced.
    drop(std::fs::remove_file(scratch));
    if std::fs::write(scratch, &bytes).is_err() {
        return;
    }
    let Ok(dump) = Dump::open(&[scratch.to_owned()]) else {
        return;
    };
    let io = if bytes.len().is_multiple_of(2) {
        Io::Map
    } else {
        Io::Read
    };
    let mut reader = Reader::new(&dump, io);
    drop((
        log(&mut reader, LogPart::All),
        log(&mut reader, LogPart::SinceClear),
    ));
    let names = system::names(&mut reader);
    let filter = Filter::new(&mut reader, Level::MAX).ok();
    if dump.pages() > PAGES_MAX {
        return;
    }
    let work = Work {
        threads: 1,
        io,
        memory: 1 << 20,
        folder: None,
    };
    let Ok(plan) = Plan::make(&dump, filter.as_ref(), &work) else {
        return;
    };
    let style = Style {
        codec: Codec::Snappy,
        effort: None,
        level: Level::MAX,
        part: None,
        limit: None,
        names,
    };
    if let Ok(written) = write(&plan, &style, &work, &Nowhere) {
        assert_eq!(
            written.pages + written.unreadable,
            plan.kept_count(),
            "each page is written, or said to be missing"
        );
    }
    if let Ok(written) = elf::write(&plan, &work, &Nowhere) {
        assert_eq!(
            written.pages + written.unreadable,
            plan.kept_count(),
            "each page is written, or said to be missing"
        );
    }
}

/// The formats to write.
#[derive(Debug, Clone, Copy)]
pub enum What {
    /// An ELF vmcore.
    Elf,
    /// A kdump-compressed file.
    Kdump(Codec),
}

/// A format, flattened or not.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The format.
    pub what: What,
    /// Whether it is flattened.
    pub flattened: bool,
}

/// Returns a dump in another format. `scratch` is the path of a file to write.
///
/// # Errors
/// If the dump cannot be read or written.
pub fn converted(dump: &Path, form: Form, scratch: &Path) -> Result<Vec<u8>, DumpError> {
    let dump = Dump::open(&[dump.to_owned()])?;
    let filter = Filter::for_level(&mut Reader::new(&dump, Io::Map), Level::default())?;
    let work = Work {
        threads: 1,
        io: Io::Map,
        memory: 64 << 20,
        folder: None,
    };
    let plan = Plan::make(&dump, filter.as_ref(), &work)?;
    let mut flat = Vec::new();
    let sink: Box<dyn Sink + '_> = match form.flattened {
        true => Box::new(Flattened::begin(&mut flat)?),
        false => Box::new(FileSink::create(scratch, Overwrite::Yes)?),
    };
    let codec = if let What::Kdump(codec) = form.what {
        codec
    } else {
        Codec::Zstd
    };
    let names = system::names(&mut Reader::new(&dump, Io::Map));
    let style = Style {
        codec,
        effort: None,
        level: Level::default(),
        part: None,
        limit: None,
        names,
    };
    match form.what {
        What::Elf => elf::write(&plan, &work, &*sink)?,
        What::Kdump(_) => write(&plan, &style, &work, &*sink)?,
    };
    drop(sink);
    if form.flattened {
        Ok(flat)
    } else {
        std::fs::read(scratch).map_err(DumpError::reading(scratch, 0))
    }
}
