//! Reads rpm packages: verifies the signature of the header and the header's hash of the payload,
//! and unpacks the payload.
//!
//! The format is that of `docs/manual/format_v4.md` of rpm. Signatures over header and payload
//! together, of packages before 2018, are not read.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::cpio::{self, ListedFile};
use crate::error::damaged;
use crate::openpgp::{self, Validity};
use crate::packets::binary;
use crate::unpack::{UNPACKED_MAX, decoder_of, write};
use crate::{ArchiveError, Root, hashing};

const LEAD: usize = 96;
const LEAD_MAGIC: &[u8] = &[0xed, 0xab, 0xee, 0xdb];
const HEADER_MAGIC: &[u8] = &[0x8e, 0xad, 0xe8, 1];
/// Bytes before the index of a header, and of each of its entries.
const PREAMBLE: usize = 16;
const ENTRY: usize = 16;
/// Largest header: that of a kernel has 4 MB.
const HEADER_MAX: usize = 64 << 20;
/// Signatures of the header by RSA, and by any kind of key, as text.
const SIGNATURE_RSA: u32 = 268;
const SIGNATURE_DSA: u32 = 267;
const SIGNATURE_OPENPGP: u32 = 278;
const NAME: u32 = 1000;
const VERSION: u32 = 1001;
const RELEASE: u32 = 1002;
const FILE_BYTES: u32 = 1028;
const FILE_MODES: u32 = 1030;
const FOLDER_INDEXES: u32 = 1116;
const BASE_NAMES: u32 = 1117;
const FOLDERS: u32 = 1118;
const PAYLOAD_HASH: u32 = 5092;
const LONG_FILE_BYTES: u32 = 5008;

/// Returns whether a file begins as an rpm package.
pub(crate) fn is_rpm(start: &[u8]) -> bool {
    start.starts_with(LEAD_MAGIC)
}

/// One header: its bytes, index and values.
struct Header {
    bytes: Vec<u8>,
    entries: usize,
}

/// Reads a header; that of signatures is padded.
fn read_header(input: &mut impl Read, is_padded: bool) -> io::Result<Header> {
    let mut bytes = vec![0; PREAMBLE];
    input.read_exact(&mut bytes)?;
    if !bytes.starts_with(HEADER_MAGIC) {
        return Err(invalid("a header of it is none"));
    }
    let entries = number(&bytes[8..12]);
    let store = number(&bytes[12..16]);
    let length = entries
        .checked_mul(ENTRY)
        .and_then(|index| index.checked_add(store))
        .filter(|length| *length <= HEADER_MAX)
        .ok_or_else(|| invalid("a header of it is too large"))?;
    bytes.resize(PREAMBLE + length, 0);
    input.read_exact(&mut bytes[PREAMBLE..])?;
    if is_padded {
        let padding = (8 - store % 8) % 8;
        input.read_exact(&mut [0; 8][..padding])?;
    }
    Ok(Header { bytes, entries })
}

impl Header {
    /// Returns the bytes from where a value begins, with its count.
    fn find(&self, tag: u32) -> Option<(&[u8], usize)> {
        let index = self.bytes.get(PREAMBLE..PREAMBLE + self.entries * ENTRY)?;
        let store = self.bytes.get(PREAMBLE + self.entries * ENTRY..)?;
        let entry = index
            .chunks_exact(ENTRY)
            .find(|entry| entry[..4] == tag.to_be_bytes())?;
        Some((store.get(number(&entry[8..12])..)?, number(&entry[12..16])))
    }

    fn binary(&self, tag: u32) -> Option<&[u8]> {
        let (value, count) = self.find(tag)?;
        value.get(..count)
    }

    fn texts(&self, tag: u32) -> Vec<String> {
        let Some((value, count)) = self.find(tag) else {
            return Vec::new();
        };
        value
            .split(|byte| *byte == 0)
            .take(count)
            .map(|text| String::from_utf8_lossy(text).into_owned())
            .collect()
    }

    fn text(&self, tag: u32) -> String {
        self.texts(tag).into_iter().next().unwrap_or_default()
    }

    /// Returns numbers of so many octets.
    fn numbers(&self, tag: u32, octets: usize) -> Vec<usize> {
        let Some((value, count)) = self.find(tag) else {
            return Vec::new();
        };
        value.chunks_exact(octets).take(count).map(number).collect()
    }

    /// Returns the files that it lists.
    fn files(&self) -> Vec<ListedFile> {
        let folders = self.texts(FOLDERS);
        let folder_of = self.numbers(FOLDER_INDEXES, 4);
        let modes = self.numbers(FILE_MODES, 2);
        let mut sizes = self.numbers(LONG_FILE_BYTES, 8);
        if sizes.is_empty() {
            sizes = self.numbers(FILE_BYTES, 4);
        }
        self.texts(BASE_NAMES)
            .into_iter()
            .enumerate()
            .filter_map(|(place, name)| {
                let folder = folders.get(*folder_of.get(place)?)?;
                Some(ListedFile {
                    path: format!("{folder}{name}"),
                    mode: *modes.get(place)? as u64,
                    bytes: *sizes.get(place)? as u64,
                })
            })
            .collect()
    }

    /// Returns the signatures of the other header that this one has.
    fn signatures(&self) -> Result<Vec<u8>, String> {
        let mut signatures = Vec::new();
        for tag in [SIGNATURE_RSA, SIGNATURE_DSA] {
            signatures.extend(self.binary(tag).unwrap_or_default());
        }
        for text in self.texts(SIGNATURE_OPENPGP) {
            let armour =
                format!("-----BEGIN PGP SIGNATURE-----\n\n{text}\n-----END PGP SIGNATURE-----\n");
            signatures.extend(binary(armour.as_bytes())?);
        }
        Ok(signatures)
    }
}

/// An open package.
struct Opened {
    signatures: Header,
    header: Header,
    payload: BufReader<File>,
}

/// Reads the headers of a package; what follows is the payload.
fn open(package: &Path) -> Result<Opened, ArchiveError> {
    let file = File::open(package).map_err(ArchiveError::io(package))?;
    read_headers(BufReader::new(file)).map_err(|error| damaged(package, &error))
}

fn read_headers(mut payload: BufReader<File>) -> io::Result<Opened> {
    let mut lead = [0; LEAD];
    payload.read_exact(&mut lead)?;
    if !is_rpm(&lead) {
        return Err(invalid("it is no rpm package"));
    }
    Ok(Opened {
        signatures: read_header(&mut payload, true)?,
        header: read_header(&mut payload, false)?,
        payload,
    })
}

/// Verifies a package: a key of the keyring signed its header, the header has the payload's hash,
/// and it is the expected package, `NAME-VERSION-RELEASE`.
pub(crate) fn verify(
    package: &Path,
    url: &str,
    expected: &str,
    keyring: &Path,
    validity: Validity,
) -> Result<(), ArchiveError> {
    let Opened {
        signatures,
        header,
        mut payload,
    } = open(package)?;
    let keys = fs::read(keyring).map_err(ArchiveError::io(keyring))?;
    let signatures = signatures
        .signatures()
        .map_err(|detail| ArchiveError::signature(url, keyring, detail.into()))?;
    openpgp::verify(header.bytes.clone(), &signatures, &keys, validity)
        .map_err(|fault| ArchiveError::signature(url, keyring, fault))?;
    let found = [NAME, VERSION, RELEASE]
        .map(|tag| header.text(tag))
        .join("-");
    if found != expected {
        return Err(ArchiveError::OtherPackage {
            url: url.to_owned(),
            expected: expected.to_owned(),
            found,
        });
    }
    let hash = hashing::sha256_of(&mut payload).map_err(ArchiveError::io(package))?;
    if header.text(PAYLOAD_HASH) != hash {
        return Err(ArchiveError::Checksum {
            url: url.to_owned(),
            expected: header.text(PAYLOAD_HASH),
            got: hash,
        });
    }
    Ok(())
}

/// Unpacks the payload of a package below a directory. Its first bytes show how it is
/// packed, whatever name and header say.
pub(crate) fn unpack(package: &Path, into: &Path) -> Result<(), ArchiveError> {
    let Opened {
        header, payload, ..
    } = open(package)?;
    let unpacked = decoder_of(payload).map_err(|error| damaged(package, &error))?;
    fs::create_dir_all(into).map_err(ArchiveError::io(into))?;
    let files = header.files();
    let mut entries = cpio::Archive::new(unpacked.take(UNPACKED_MAX), &files);
    while let Some(entry) = entries
        .next_entry()
        .map_err(|error| damaged(package, &error))?
    {
        write(&Root(into), &entry).map_err(ArchiveError::io(&into.join(&entry.path)))?;
    }
    Ok(())
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
