//! Fuzzing: one body for each reader, for the crate `fuzz`. A body returns for any bytes.

use std::collections::HashSet;
use std::hint::black_box;

use crate::catalogue::Catalogue;
use crate::image::Image;
use crate::source::tar::Archive;
use crate::{beside, folder, payload, userland};

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
    let mut archive = Archive::new(bytes);
    while let Ok(Some(entry)) = archive.next() {
        assert!(!entry.path.split('/').any(|part| part == ".."), "{}", entry.path);
        assert!(entry.content.len() <= bytes.len());
    }
}

/// A program or library with its needs.
pub fn linked(bytes: &[u8]) {
    drop(userland::parse_linking(bytes));
}

/// The records that apt prints.
pub fn catalogue(bytes: &[u8]) {
    let found = Catalogue::read(&String::from_utf8_lossy(bytes));
    let packages: HashSet<&str> = found.images.iter().map(|offer| offer.package.as_str()).collect();
    assert!(packages.len() <= bytes.len());
}

/// The files beside an image, and the facts of a build.
pub fn beside(bytes: &[u8]) {
    black_box((beside::is_config(bytes), beside::is_symbols(bytes)));
    drop(folder::facts(&String::from_utf8_lossy(bytes)));
}
