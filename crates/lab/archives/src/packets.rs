//! Packets of OpenPGP (RFC 9580 and RFC 4880): their frames, numbers, armour and subpackets.

use base64::Engine as _;

pub(crate) struct Packet<'a> {
    pub(crate) tag: u8,
    pub(crate) body: &'a [u8],
}

pub(crate) fn packets(mut bytes: &[u8]) -> Result<Vec<Packet<'_>>, String> {
    let mut packets = Vec::new();
    while !bytes.is_empty() {
        let (packet, rest) = packet(bytes).ok_or("a packet of OpenPGP is damaged")?;
        packets.push(packet);
        bytes = rest;
    }
    Ok(packets)
}

/// Reads a packet in the new format or the old one; those in parts are for large data only.
fn packet(bytes: &[u8]) -> Option<(Packet<'_>, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    if first & 0x80 == 0 {
        return None;
    }
    let is_new = first & 0x40 != 0;
    let tag = if is_new {
        first & 0x3f
    } else {
        first >> 2 & 0xf
    };
    let (length, rest) = if is_new {
        new_length(rest)?
    } else {
        let octets = match first & 3 {
            0 => 1,
            1 => 2,
            2 => 4,
            _ => return None,
        };
        let (length, rest) = rest.split_at_checked(octets)?;
        (number(length), rest)
    };
    let (body, rest) = rest.split_at_checked(length)?;
    Some((Packet { tag, body }, rest))
}

/// Reads a length of one, two or five octets.
fn new_length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    match first {
        0..=191 => Some((usize::from(*first), rest)),
        192..=223 => two_octets(*first, rest),
        224..=254 => None,
        255 => {
            let (length, rest) = rest.split_at_checked(4)?;
            Some((number(length), rest))
        }
    }
}

fn two_octets(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let (second, rest) = rest.split_first()?;
    let length = ((usize::from(first) - 192) << 8) + usize::from(*second) + 192;
    Some((length, rest))
}

/// Returns the first subpacket of a kind in an area of a signature.
pub(crate) fn subpacket(mut area: &[u8], wanted: u8) -> Option<&[u8]> {
    while let Some((first, rest)) = area.split_first() {
        // Other than a packet's: two octets reach up to 254.
        let (length, rest) = match first {
            0..=191 => (usize::from(*first), rest),
            192..=254 => two_octets(*first, rest)?,
            255 => {
                let (length, rest) = rest.split_at_checked(4)?;
                (number(length), rest)
            }
        };
        let (subpacket, rest) = rest.split_at_checked(length)?;
        let (kind, content) = subpacket.split_first()?;
        // The highest bit says that a reader must know it.
        if kind & 0x7f == wanted {
            return Some(content);
        }
        area = rest;
    }
    None
}

pub(crate) fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Reads a number of many bits: their count, then the octets.
pub(crate) fn mpi(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bits, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(number(bits).div_ceil(8))
}

/// Decodes the lines of an armour, without its headers and checksum.
pub(crate) fn dearmour(armour: &str) -> Result<Vec<u8>, String> {
    let body = armour.split_once("\n\n").map_or(armour, |(_, body)| body);
    let digits: String = body
        .lines()
        .map(str::trim)
        .filter(|line| !line.starts_with('='))
        .collect();
    base64::engine::general_purpose::STANDARD
        .decode(digits)
        .map_err(|error| format!("its signature is damaged: {error}"))
}

/// Returns packets that may be armoured, also several armours in one file.
pub(crate) fn binary(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Ok(bytes.to_vec());
    };
    if !text.contains("-----BEGIN PGP ") {
        return Ok(bytes.to_vec());
    }
    let text = text.replace("\r\n", "\n");
    let mut packets = Vec::new();
    for part in text.split("-----BEGIN PGP ").skip(1) {
        let (_, part) = part.split_once("-----").ok_or("its armour is damaged")?;
        let (armour, _) = part
            .split_once("-----END PGP ")
            .ok_or("its armour is cut short")?;
        packets.extend(dearmour(armour)?);
    }
    Ok(packets)
}
