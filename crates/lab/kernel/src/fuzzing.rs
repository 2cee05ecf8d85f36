//! Fuzzing: one body for each reader, for the crate `fuzz`. A body returns for any bytes.

use std::collections::HashSet;
use std::hint::black_box;
use std::path::Path;

use archives::{Archive, Paths, Stanzas};

use crate::catalogue::Catalogue;
use crate::image::Image;
use crate::modules::order;
use crate::source::deb_src;
use crate::{Inlines, companion_files, folder, patches, payload, source_places};

/// Most bytes that are read of an unpacked archive: more would only take longer.
const UNPACKED_MAX: usize = 64 << 20;

/// An image to boot: a bzImage or a vmlinux.
pub fn image(bytes: &[u8]) {
    if let Ok(image) = Image::read(bytes) {
        assert!(image.release.is_none_or(|release| !release.is_empty()));
        drop(image.vmlinux());
    }
}

/// A compressed file, such as a module.
pub fn payload(bytes: &[u8]) {
    drop(payload::unpack_file(bytes));
}

/// A source package's archive.
pub fn tar(bytes: &[u8]) {
    let mut archive = Archive::new(bytes, Paths::BelowTop);
    while let Ok(Some(entry)) = archive.next_entry() {
        assert!(
            !entry.path.split('/').any(|part| part == ".."),
            "{}",
            entry.path
        );
        assert!(entry.content.len() <= bytes.len());
    }
}

/// The compressed archive of a source package.
pub fn source_package(bytes: &[u8]) {
    let Ok(unpacked) = deb_src::unpacked(bytes) else {
        return;
    };
    let mut archive = Archive::new(unpacked, Paths::BelowTop);
    let mut size = 0;
    while let Ok(Some(entry)) = archive.next_entry() {
        size += entry.content.len() + 512;
        if size > UNPACKED_MAX {
            return;
        }
    }
}

/// Modules that need one another: each line is the name of a module and its content.
pub fn modules(bytes: &[u8]) {
    order(&String::from_utf8_lossy(bytes));
}

/// The debug information of a vmlinux, at an address that is in the first eight bytes.
pub fn lines(bytes: &[u8], scratch: &Path) {
    let Some((address, vmlinux)) = bytes.split_first_chunk() else {
        return;
    };
    let address = u64::from_le_bytes(*address);
    drop(std::fs::remove_file(scratch));
    if std::fs::write(scratch, vmlinux).is_err() {
        return;
    }
    assert_eq!(source_places(scratch, &[address, 0]).len(), 2);
    if let Some(inlines) = Inlines::open(scratch, address) {
        black_box(
            (0..64)
                .filter(|n| inlines.function(address.wrapping_add(*n)).is_some())
                .count(),
        );
    }
}

/// A program or library with its needs.
pub fn linked(bytes: &[u8]) {
    drop(archives::parse_linking(bytes));
}

/// The stanzas of an archive's list.
pub fn catalogue(bytes: &[u8]) {
    let stanzas = Stanzas {
        archive: String::new(),
        text: String::from_utf8_lossy(bytes).into_owned(),
    };
    let found = Catalogue::read(model::Distribution::Debian, "suite", &[stanzas]);
    let packages: HashSet<&str> = found
        .images
        .iter()
        .map(|offer| offer.package.as_str())
        .collect();
    assert!(packages.len() <= bytes.len());
}

/// The files beside an image, and the facts of a build.
pub fn beside(bytes: &[u8]) {
    black_box((
        companion_files::is_config(bytes),
        companion_files::is_symbols(bytes),
    ));
    drop(folder::facts(&String::from_utf8_lossy(bytes)));
}

/// A patch with words before its diff, the headers of a mail, and a line of a quilt series.
pub fn patch(bytes: &[u8]) {
    let (files, start) = patches::fuzz(bytes);
    assert!(start <= bytes.len() && files <= bytes.len());
}
