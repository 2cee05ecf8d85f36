//! Kernels in files for EFI: the kernel of a unified kernel image (UKI), and images for other
//! architectures, which are recognised to be named.
//!
//! The formats are those of the UAPI group's `unified_kernel_image` and of
//! `drivers/firmware/efi/libstub/zboot-header.S` and `Documentation/arch/arm64/booting.rst` of the
//! kernel.

use object::read::pe::PeFile64;
use object::{Object, ObjectSection};

use crate::bytes::{range, u16_at, u32_at};

/// Where a file for EFI says where its header is.
const PE_OFFSET: u64 = 0x3c;
const MACHINE_ARM64: u16 = 0xaa64;
/// The name of a compression in the header of zboot, longer than any.
const COMPRESSION: u64 = 0x18;
const COMPRESSION_MOST: u64 = 32;

/// Returns the kernel of a unified kernel image; `None` if the file is something else.
pub(crate) fn kernel(bytes: &[u8]) -> Option<&[u8]> {
    section(bytes, ".linux")
}

fn section<'a>(bytes: &'a [u8], name: &str) -> Option<&'a [u8]> {
    if !bytes.starts_with(b"MZ") {
        return None;
    }
    let file = PeFile64::parse(bytes).ok()?;
    file.section_by_name(name)?.data().ok()
}

/// Describes an image for another architecture than x86-64.
pub(crate) fn other_machine(bytes: &[u8]) -> Option<String> {
    if !bytes.starts_with(b"MZ") {
        return None;
    }
    if range(bytes, 0x38, 4) == Some(b"ARM\x64") {
        return Some("an image for arm64".to_owned());
    }
    let is_arm64 = u32_at(bytes, PE_OFFSET)
        .and_then(|header| u16_at(bytes, u64::from(header) + 4))
        .is_some_and(|machine| machine == MACHINE_ARM64);
    let machine = if is_arm64 {
        "arm64"
    } else {
        "another architecture"
    };
    if range(bytes, 4, 4) == Some(b"zimg") {
        let name = range(bytes, COMPRESSION, COMPRESSION_MOST)?;
        let name = name.split(|byte| *byte == 0).next()?;
        let name: String = name
            .iter()
            .map(|byte| char::from(*byte))
            .filter(char::is_ascii_alphanumeric)
            .collect();
        return Some(format!("an EFI zboot image ({name}) for {machine}"));
    }
    is_arm64.then(|| "a program for EFI on arm64".to_owned())
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::{kernel, other_machine};

    /// Writes a unified kernel image with these sections.
    pub(crate) fn write(sections: &[(&str, &[u8])]) -> Vec<u8> {
        let mut image = vec![0_u8; 0x1000];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"MZ");
        put(0x3c, &0x80_u32.to_le_bytes());
        put(0x80, b"PE\0\0");
        put(0x84, &0x8664_u16.to_le_bytes());
        put(0x86, &u16::try_from(sections.len()).unwrap().to_le_bytes());
        put(0x94, &240_u16.to_le_bytes());
        put(0x98, &0x20b_u16.to_le_bytes());
        put(0x98 + 108, &16_u32.to_le_bytes());
        let mut content = Vec::new();
        for (number, (name, bytes)) in sections.iter().enumerate() {
            let at = 0x98 + 240 + 40 * number;
            let size = u32::try_from(bytes.len()).unwrap();
            let raw = u32::try_from(0x1000 + content.len()).unwrap();
            put(at, name.as_bytes());
            put(at + 8, &size.to_le_bytes());
            put(at + 12, &(0x10_0000 + raw).to_le_bytes());
            put(at + 16, &size.next_multiple_of(512).to_le_bytes());
            put(at + 20, &raw.to_le_bytes());
            content.extend_from_slice(bytes);
            content.resize(content.len().next_multiple_of(512), 0);
        }
        image.extend(content);
        image
    }

    #[test]
    fn unified_image_has_its_kernel() {
        let image = write(&[
            (".osrel", b"ID=x"),
            (".cmdline", b"quiet"),
            (".linux", b"the kernel"),
            (".initrd", b"files"),
        ]);
        assert_eq!(kernel(&image), Some(&b"the kernel"[..]));
        assert_eq!(kernel(&write(&[(".text", b"x")])), None);
        assert_eq!(kernel(b"MZ"), None);
    }

    #[test]
    fn images_of_other_architectures_are_named() {
        let mut zboot = vec![0; 0x100];
        zboot[..8].copy_from_slice(b"MZ\0\0zimg");
        zboot[0x18..0x1e].copy_from_slice(b"zstd22");
        zboot[0x3c] = 0x80;
        zboot[0x84..0x86].copy_from_slice(&0xaa64_u16.to_le_bytes());
        assert_eq!(
            other_machine(&zboot).unwrap(),
            "an EFI zboot image (zstd22) for arm64"
        );
        let mut image = vec![0; 0x40];
        image[..2].copy_from_slice(b"MZ");
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        assert_eq!(other_machine(&image).unwrap(), "an image for arm64");
        assert_eq!(other_machine(b"MZ"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            at in 0..0x300_usize,
        ) {
            let mut image = write(&[(".linux", b"x")]);
            image[at..at + bytes.len()].copy_from_slice(&bytes);
            prop_assert!(kernel(&image).is_none_or(|kernel| kernel.len() <= image.len()));
            let _ = other_machine(&image);
        }
    }
}
