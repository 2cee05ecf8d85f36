//! Checks the file to boot, and extracts its vmlinux.
//!
//! `bzimage`, `payload` and `elf` parse the formats.

use std::fs;
use std::io;
use std::path::Path;

use crate::bounded::{self, ReadFault};
use crate::{bzimage, elf, payload, unified};

/// Largest kernel, debug information included.
const MOST: u64 = 1 << 30;

/// Why a file cannot be booted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageFault {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// It is a directory.
    #[error("it is a folder; name the image in it, for example bzImage or vmlinuz")]
    Folder,
    /// It is a build directory of make without an image.
    #[error("it is a build directory without an image: run make there first")]
    NotBuilt,
    /// It is a device, a pipe or a socket.
    #[error("it is not a regular file")]
    Special,
    /// It is not readable.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is too large for a kernel.
    #[error("it is larger than 1 GiB, which no kernel is")]
    Large,
    #[error("it is empty")]
    Empty,
    /// It ends within its own header.
    #[error("it has only {0} bytes, too few for a kernel")]
    Small(usize),
    /// It is something else.
    #[error("it is not a Linux kernel: expected a bzImage or a vmlinux")]
    NotKernel,
    /// It is for another processor architecture.
    #[error("it is not for x86-64")]
    OtherMachine,
    /// It is an image for another architecture, in a form that says so.
    #[error("it is {0}, not a kernel for x86-64")]
    OtherImage(String),
    #[error("it is cut short: it has {has} bytes of {needed}; copy or build it again")]
    Truncated {
        /// Its size in bytes.
        has: usize,
        /// Its size according to its header.
        needed: u64,
    },
    /// Its compressed kernel is damaged.
    #[error("the compressed kernel in it is damaged: {0}; copy or build it again")]
    Payload(String),
    /// Its compressed kernel is too large.
    #[error("the compressed kernel in it unpacks to more than 256 MiB, which no kernel does")]
    PayloadTooLarge,
    /// Its notes are too large.
    #[error("it has more than 1 MiB of notes, which no kernel has")]
    Notes,
    /// QEMU cannot boot it.
    #[error(
        "QEMU cannot boot this vmlinux, for it has no PVH entry: name the bzImage, or build with CONFIG_PVH=y"
    )]
    NoPvh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    pub(crate) release: Option<&'a str>,
    kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind<'a> {
    Vmlinux,
    BzImage(Option<&'a [u8]>),
}

/// The ELF file to boot instead of an image.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Vmlinux {
    /// None: the image itself is booted.
    Absent,
    /// The image is an ELF file.
    Itself,
    Unpacked(Vec<u8>),
}

/// Reads an image file into memory, once; of a unified kernel image the kernel in it.
pub(crate) fn load(file: &Path) -> Result<Vec<u8>, ImageFault> {
    if fs::metadata(file).map_err(fault_of)?.is_dir() {
        return Err(ImageFault::Folder);
    }
    match bounded::open(file, MOST).and_then(|opened| opened.read()) {
        Ok(bytes) if bytes.is_empty() => Err(ImageFault::Empty),
        Ok(bytes) => match unified::kernel(&bytes) {
            Some(kernel) => Ok(kernel.to_vec()),
            None => Ok(bytes),
        },
        Err(ReadFault::Special) => Err(ImageFault::Special),
        Err(ReadFault::Large) => Err(ImageFault::Large),
        Err(ReadFault::Io(error)) => Err(fault_of(error)),
    }
}

fn fault_of(error: io::Error) -> ImageFault {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ImageFault::Missing,
        _ => ImageFault::Unreadable(error.to_string()),
    }
}

impl<'a> Image<'a> {
    /// Checks the bytes of a file by their headers.
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, ImageFault> {
        if let Some(found) = bzimage::read(bytes)? {
            return Ok(Self {
                release: found.release,
                kind: Kind::BzImage(found.payload),
            });
        }
        if !elf::is_elf(bytes) {
            return Err(match unified::other_machine(bytes) {
                Some(what) => ImageFault::OtherImage(what),
                None => ImageFault::NotKernel,
            });
        }
        let pvh = elf::has_pvh(bytes)?;
        let release = elf::release(bytes);
        match (pvh, release) {
            (true, release) => Ok(Self {
                release,
                kind: Kind::Vmlinux,
            }),
            (false, Some(_)) => Err(ImageFault::NoPvh),
            (false, None) => Err(ImageFault::NotKernel),
        }
    }

    /// Extracts the ELF file, if there is one that QEMU can boot.
    pub(crate) fn vmlinux(&self) -> Result<Vmlinux, ImageFault> {
        let payload = match self.kind {
            Kind::Vmlinux => return Ok(Vmlinux::Itself),
            Kind::BzImage(None) => return Ok(Vmlinux::Absent),
            Kind::BzImage(Some(payload)) => payload,
        };
        let Some(unpacked) = payload::unpack(payload)? else {
            return Ok(Vmlinux::Absent);
        };
        if !elf::is_elf(&unpacked) {
            let fault = "it is not an ELF file".to_owned();
            return Err(ImageFault::Payload(fault));
        }
        match elf::has_pvh(&unpacked) {
            Ok(true) => Ok(Vmlinux::Unpacked(unpacked)),
            Ok(false) => Ok(Vmlinux::Absent),
            Err(ImageFault::OtherMachine) => Err(ImageFault::OtherMachine),
            // Not the image itself is truncated.
            Err(fault) => Err(ImageFault::Payload(fault.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Image, ImageFault, Vmlinux, load};
    use crate::payload::tests::{FORMATS, pack};
    use crate::{bzimage, elf};

    #[test]
    fn vmlinux_is_unpacked_from_every_bzimage_format() {
        let vmlinux = elf::tests::write(18, "");
        for format in FORMATS {
            let bytes = bzimage::tests::write(&pack(format, &vmlinux));
            let image = Image::read(&bytes).unwrap();
            assert_eq!(image.release, Some("6.9.1-test"));
            assert_eq!(image.vmlinux(), Ok(Vmlinux::Unpacked(vmlinux.clone())));
        }
    }

    #[test]
    fn bzimage_is_booted_where_vmlinux_cannot_be() {
        let without_note = pack("zstd", &elf::tests::write(1, ""));
        for payload in [&without_note[..], b"BZh9", b""] {
            let bytes = bzimage::tests::write(payload);
            assert_eq!(Image::read(&bytes).unwrap().vmlinux(), Ok(Vmlinux::Absent));
        }
    }

    #[test]
    fn a_vmlinux_is_booted_itself() {
        let bytes = elf::tests::write(18, "Linux version 6.9.1-test (x)");
        let image = Image::read(&bytes).unwrap();
        assert_eq!(image.release, Some("6.9.1-test"));
        assert_eq!(image.vmlinux(), Ok(Vmlinux::Itself));
    }

    fn fault_of(bytes: &[u8]) -> String {
        let fault = Image::read(bytes).and_then(|image| image.vmlinux());
        fault.unwrap_err().to_string()
    }

    #[test]
    fn every_fault_of_content_is_reported() {
        let vmlinux = elf::tests::write(18, "");
        let packed = pack("lz4", &vmlinux);
        let mut damaged = packed.clone();
        damaged[7] = 0xff;
        let mut huge = packed.clone();
        *huge.last_mut().unwrap() = 0x7f;
        let bzimage = |payload: &[u8]| bzimage::tests::write(payload);
        let messages = [
            b"#!/bin/sh".to_vec(),
            elf::tests::write(1, ""),
            elf::tests::write(1, "Linux version 6.9 "),
            vmlinux[..150].to_vec(),
            vmlinux[..20].to_vec(),
            bzimage(&packed)[..1100].to_vec(),
            bzimage(&packed)[..0x220].to_vec(),
            bzimage(&damaged),
            bzimage(&huge),
            bzimage(&pack("gzip", b"no ELF file")),
            bzimage(&pack("gzip", b"\x7fELF\x01\x01")),
        ]
        .map(|bytes| fault_of(&bytes))
        .join("\n");
        insta::assert_snapshot!(messages, @"
        it is not a Linux kernel: expected a bzImage or a vmlinux
        it is not a Linux kernel: expected a bzImage or a vmlinux
        QEMU cannot boot this vmlinux, for it has no PVH entry: name the bzImage, or build with CONFIG_PVH=y
        it is cut short: it has 150 bytes of 160; copy or build it again
        it has only 20 bytes, too few for a kernel
        it is cut short: it has 1100 bytes of 1136; copy or build it again
        it has only 544 bytes, too few for a kernel
        the compressed kernel in it is damaged: a block is cut short; copy or build it again
        the compressed kernel in it unpacks to more than 256 MiB, which no kernel does
        the compressed kernel in it is damaged: it is not an ELF file; copy or build it again
        it is not for x86-64
        ");
    }

    #[test]
    fn every_fault_of_a_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty");
        std::fs::write(&empty, "").unwrap();
        let large = folder.path().join("large");
        // A sparse file, which takes no disk space.
        std::fs::File::create(&large)
            .unwrap()
            .set_len(super::MOST + 5)
            .unwrap();
        for (file, fault) in [
            (folder.path(), ImageFault::Folder),
            (Path::new("/dev/zero"), ImageFault::Special),
            (&folder.path().join("none"), ImageFault::Missing),
            (&empty.join("below"), ImageFault::Missing),
            (&empty, ImageFault::Empty),
            (&large, ImageFault::Large),
        ] {
            assert_eq!(load(file), Err(fault));
        }
    }
}
