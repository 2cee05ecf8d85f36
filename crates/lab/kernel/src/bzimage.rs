//! Parses the setup header of a bzImage: `Documentation/arch/x86/boot.rst` of the kernel.
//!
//! `payload` unpacks the payload and `elf` checks it.

use crate::ImageFault;
use crate::bytes::{range, u16_at, u32_at};

const SETUP_SECTS: u64 = 0x1f1;
const SYSSIZE: u64 = 0x1f4;
const MAGIC: u64 = 0x202;
const PROTOCOL: u64 = 0x206;
const KERNEL_VERSION: u64 = 0x20e;
const XLOADFLAGS: u64 = 0x236;
const PAYLOAD_OFFSET: u64 = 0x248;
const PAYLOAD_LENGTH: u64 = 0x24c;

const SECTOR: u64 = 512;
/// The protocol version that introduced the payload's offset.
const HAS_PAYLOAD: u16 = 0x0208;
/// The protocol version that introduced `xloadflags`.
const HAS_XLOADFLAGS: u16 = 0x020c;
const XLF_KERNEL_64: u16 = 1;

/// A complete bzImage for x86-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BzImage<'a> {
    pub(crate) release: Option<&'a str>,
    pub(crate) payload: Option<&'a [u8]>,
}

/// Parses a bzImage; `None` if the file is something else.
pub(crate) fn read(bytes: &[u8]) -> Result<Option<BzImage<'_>>, ImageFault> {
    if range(bytes, MAGIC, 4) != Some(b"HdrS") {
        return Ok(None);
    }
    let too_small = ImageFault::Small(bytes.len());
    header(bytes).unwrap_or(Err(too_small)).map(Some)
}

/// `None` if the file ends within the header.
fn header(bytes: &[u8]) -> Option<Result<BzImage<'_>, ImageFault>> {
    let protocol = u16_at(bytes, PROTOCOL)?;
    // "For backwards compatibility, if the setup_sects field contains 0, the real value is 4."
    let sectors = match range(bytes, SETUP_SECTS, 1)?[0] {
        0 => 4,
        sectors => u64::from(sectors),
    };
    let kernel = (sectors + 1) * SECTOR;
    let place = u64::from(u32_at(bytes, PAYLOAD_OFFSET)?);
    let length = u64::from(u32_at(bytes, PAYLOAD_LENGTH)?);
    if protocol >= HAS_XLOADFLAGS && u16_at(bytes, XLOADFLAGS)? & XLF_KERNEL_64 == 0 {
        return Some(Err(ImageFault::OtherMachine));
    }
    let has_payload = protocol >= HAS_PAYLOAD && length > 0;
    let system = kernel + u64::from(u32_at(bytes, SYSSIZE)?) * 16;
    let needed = if has_payload {
        system.max(kernel + place + length)
    } else {
        system
    };
    if (bytes.len() as u64) < needed {
        return Some(Err(ImageFault::Truncated {
            has: bytes.len(),
            needed,
        }));
    }
    Some(Ok(BzImage {
        release: release(bytes, kernel),
        payload: range(bytes, kernel + place, length).filter(|_| has_payload),
    }))
}

/// Reads the version text, which lies within the setup sectors.
fn release(bytes: &[u8], setup: u64) -> Option<&str> {
    let offset = match u16_at(bytes, KERNEL_VERSION)? {
        0 => return None,
        offset => u64::from(offset) + 0x200,
    };
    let text = range(bytes, offset, setup.checked_sub(offset)?)?;
    let text = text.split(|byte| *byte == 0).next()?;
    std::str::from_utf8(text).ok()?.split_whitespace().next()
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::read;
    use crate::ImageFault;

    /// Writes a bzImage of one setup sector around a payload.
    pub(crate) fn write(payload: &[u8]) -> Vec<u8> {
        let mut image = vec![0_u8; 2 * 512];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        let system = 16 + u32::try_from(payload.len()).unwrap().next_multiple_of(16);
        put(0x1f1, &[1]);
        put(0x1f4, &(system / 16).to_le_bytes());
        put(0x202, b"HdrS");
        put(0x206, &0x20f_u16.to_le_bytes());
        put(0x20e, &0x100_u16.to_le_bytes());
        put(0x236, &1_u16.to_le_bytes());
        put(0x248, &16_u32.to_le_bytes());
        put(0x24c, &u32::try_from(payload.len()).unwrap().to_le_bytes());
        put(0x300, b"6.9.1-test (someone@somewhere) #1 SMP\0");
        image.resize(2 * 512 + 16, 0x90);
        image.extend(payload);
        image.resize(2 * 512 + system as usize, 0);
        image
    }

    #[test]
    fn the_header_is_read() {
        let image = write(b"payload");
        let read = read(&image).unwrap().unwrap();
        assert_eq!(read.release, Some("6.9.1-test"));
        assert_eq!(read.payload, Some(&b"payload"[..]));
    }

    #[test]
    fn missing_byte_is_an_error_but_signature_not() {
        let mut image = write(b"payload");
        let whole = image.len();
        assert_eq!(
            read(&image[..whole - 1]),
            Err(ImageFault::Truncated {
                has: whole - 1,
                needed: whole as u64
            })
        );
        assert_eq!(read(&image[..0x210]), Err(ImageFault::Small(0x210)));
        assert_eq!(read(&image[..0x204]), Ok(None));
        image.extend([7; 100]);
        assert!(read(&image).unwrap().is_some());
    }

    #[test]
    fn old_protocols_and_other_machines_are_refused() {
        let mut image = write(b"payload");
        image[0x236] = 0;
        assert_eq!(read(&image), Err(ImageFault::OtherMachine));
        image[0x206] = 7;
        assert_eq!(read(&image).unwrap().unwrap().payload, None);
    }

    proptest! {
        #[test]
        fn any_header_can_be_read(header in prop::collection::vec(any::<u8>(), 0x1f1..0x300)) {
            let mut image = write(b"payload");
            image[0x1f1..0x202].copy_from_slice(&header[..0x11]);
            image[0x206..0x260].copy_from_slice(&header[0x11..0x6b]);
            if let Ok(Some(read)) = read(&image) {
                prop_assert!(
                    read.payload
                        .is_none_or(|payload| payload.len() < image.len())
                );
            }
            let _ignored = super::read(&header).is_ok();
        }
    }
}
