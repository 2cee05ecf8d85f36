//! Verifies OpenPGP signatures of archives' lists (RFC 9580 and, for older keys, RFC 4880) by
//! ring, and before that by gpgv where the host has it.
//!
//! Only what archives use: version 4 keys and signatures, RSA and Ed25519, SHA-256 and longer.
//! A keyring is trusted as a whole, subkeys with their primary keys; keys that the keyring itself
//! revokes are not. Expiry of keys is left to the package that has the keyring.

use std::path::Path;

use base64::Engine as _;
use ring::digest::{SHA256, SHA384, SHA512, digest};
use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use subprocess::Program;

const BEGIN_MESSAGE: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const BEGIN_SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
const END_SIGNATURE: &str = "-----END PGP SIGNATURE-----";
/// The curve Ed25519 as older keys name it: its object identifier, after its length.
const ED25519_OID: &[u8] = &[9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1];

/// A key that may have signed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Key {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    Ed25519(Vec<u8>),
}

/// A signature of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Signature {
    /// Whether the document is a text, whose lines end with CR and LF whatever the file has.
    is_text: bool,
    hash: u8,
    /// What is hashed behind the document.
    trailer: Vec<u8>,
    value: SignatureValue,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SignatureValue {
    Rsa(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Returns the signed text of a file with its signature in it, if a key of the keyring signed it;
/// text outside the signature is refused.
pub(crate) fn signed_text(file: &Path, keyring: &Path) -> Result<String, String> {
    let read = |file: &Path| std::fs::read(file).map_err(|error| error.to_string());
    let document = String::from_utf8(read(file)?).map_err(|_| "it is no text".to_owned())?;
    let (text, armour) = split(&document)?;
    if let Some(result) = by_gpgv(file, keyring) {
        result?;
    }
    // Also after gpgv: of a strange file, it may take another part for the signed text.
    verify(text.as_bytes(), &dearmour(armour)?, &read(keyring)?)?;
    Ok(text)
}

/// Asks gpgv; `None` if this host has none.
fn by_gpgv(file: &Path, keyring: &Path) -> Option<Result<(), String>> {
    let ended = Program::new("gpgv")
        .args(["--keyring".as_ref(), keyring.as_os_str(), file.as_os_str()])
        .run()
        .ok()?;
    if ended.code == Some(0) {
        return Some(Ok(()));
    }
    Some(Err(ended.reason()))
}

/// Verifies a document by ring.
fn verify(document: &[u8], signatures: &[u8], keyring: &[u8]) -> Result<(), String> {
    let keys = keys(keyring)?;
    let signatures: Vec<Signature> = packets(signatures)?
        .into_iter()
        .filter(|packet| packet.tag == 2)
        .filter_map(|packet| signature(packet.body))
        .collect();
    if signatures.is_empty() {
        return Err("it has no signature of a known kind".to_owned());
    }
    let is_signed = signatures
        .iter()
        .any(|signature| keys.iter().any(|key| signature.is_by(key, document)));
    if is_signed {
        Ok(())
    } else {
        Err("no key of the keyring made its signature".to_owned())
    }
}

impl Signature {
    fn is_by(&self, key: &Key, document: &[u8]) -> bool {
        let mut message = if self.is_text {
            canonical(document)
        } else {
            document.to_vec()
        };
        message.extend(&self.trailer);
        match (key, &self.value) {
            (Key::Rsa { n, e }, SignatureValue::Rsa(value)) => {
                let parameters: &RsaParameters = match self.hash {
                    8 => &RSA_PKCS1_2048_8192_SHA256,
                    9 => &RSA_PKCS1_2048_8192_SHA384,
                    10 => &RSA_PKCS1_2048_8192_SHA512,
                    _ => return false,
                };
                let Some(padding) = n.len().checked_sub(value.len()) else {
                    return false;
                };
                let value = [vec![0; padding], value.clone()].concat();
                let key = RsaPublicKeyComponents { n, e };
                key.verify(parameters, &message, &value).is_ok()
            }
            (Key::Ed25519(point), SignatureValue::Ed25519(value)) => {
                let algorithm = match self.hash {
                    8 => &SHA256,
                    9 => &SHA384,
                    10 => &SHA512,
                    _ => return false,
                };
                let hash = digest(algorithm, &message);
                UnparsedPublicKey::new(&ED25519, point)
                    .verify(hash.as_ref(), value)
                    .is_ok()
            }
            _ => false,
        }
    }
}

/// Returns a text as it is signed: each line ends with CR and LF.
fn canonical(document: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(document.len() + document.len() / 32);
    for byte in document {
        if *byte == b'\n' && text.last() != Some(&b'\r') {
            text.push(b'\r');
        }
        text.push(*byte);
    }
    text
}

/// Splits a document into its text, without the marks in front of dashes, and the signature.
fn split(document: &str) -> Result<(String, &str), String> {
    let unsigned = || "it is not a signed text".to_owned();
    let inner = document.strip_prefix(BEGIN_MESSAGE).ok_or_else(unsigned)?;
    let (_, body) = inner.split_once("\n\n").ok_or_else(unsigned)?;
    let (body, armour) = body
        .split_once(&format!("\n{BEGIN_SIGNATURE}"))
        .ok_or_else(unsigned)?;
    let (armour, rest) = armour.split_once(END_SIGNATURE).ok_or_else(unsigned)?;
    if !rest.trim().is_empty() {
        return Err("it has text behind its signature".to_owned());
    }
    let lines: Vec<&str> = body
        .split('\n')
        .map(|line| line.strip_prefix("- ").unwrap_or(line))
        .map(|line| line.trim_end_matches([' ', '\t', '\r']))
        .collect();
    Ok((lines.join("\n"), armour))
}

/// Decodes the lines of an armour, without its headers and checksum.
fn dearmour(armour: &str) -> Result<Vec<u8>, String> {
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

struct Packet<'a> {
    tag: u8,
    body: &'a [u8],
}

fn packets(mut bytes: &[u8]) -> Result<Vec<Packet<'_>>, String> {
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
        192..=223 => {
            let (second, rest) = rest.split_first()?;
            let length = ((usize::from(*first) - 192) << 8) + usize::from(*second) + 192;
            Some((length, rest))
        }
        224..=254 => None,
        255 => {
            let (length, rest) = rest.split_at_checked(4)?;
            Some((number(length), rest))
        }
    }
}

fn number(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Reads a number of many bits: their count, then the octets.
fn mpi(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (bits, rest) = bytes.split_at_checked(2)?;
    rest.split_at_checked(number(bits).div_ceil(8))
}

/// Returns the keys of a keyring, except those that it revokes.
fn keys(keyring: &[u8]) -> Result<Vec<Key>, String> {
    const REVOKES_KEY: u8 = 0x20;
    const REVOKES_SUBKEY: u8 = 0x28;
    let mut keys: Vec<Key> = Vec::new();
    // Where the keys of the last primary key begin.
    let mut primary = 0;
    for packet in packets(keyring)? {
        match packet.tag {
            6 | 14 => {
                if packet.tag == 6 {
                    primary = keys.len();
                }
                keys.extend(key(packet.body));
            }
            2 if packet.body.first() == Some(&4) => match packet.body.get(1) {
                Some(&REVOKES_KEY) => keys.truncate(primary),
                Some(&REVOKES_SUBKEY) => drop(keys.pop()),
                _ => {}
            },
            _ => {}
        }
    }
    if keys.is_empty() {
        return Err("the keyring has no key of a known kind".to_owned());
    }
    Ok(keys)
}

/// Reads a key of version 4.
fn key(body: &[u8]) -> Option<Key> {
    let (head, material) = body.split_at_checked(6)?;
    match (head[0], head[5]) {
        (4, 1 | 3) => {
            let (n, rest) = mpi(material)?;
            let (e, _) = mpi(rest)?;
            Some(Key::Rsa {
                n: n.to_vec(),
                e: e.to_vec(),
            })
        }
        (4, 22) => {
            let (point, _) = mpi(material.strip_prefix(ED25519_OID)?)?;
            // 0x40 says that the point is as it comes.
            Some(Key::Ed25519(point.strip_prefix(&[0x40])?.to_vec()))
        }
        (4, 27) => Some(Key::Ed25519(material.get(..32)?.to_vec())),
        _ => None,
    }
}

/// Reads a signature of version 4 over a document.
fn signature(body: &[u8]) -> Option<Signature> {
    let head = body.get(..6)?;
    let is_text = match (head[0], head[1]) {
        (4, 0) => false,
        (4, 1) => true,
        _ => return None,
    };
    let hashed_end = 6 + number(&head[4..]);
    let hashed = body.get(..hashed_end)?;
    let length = u32::try_from(hashed_end).ok()?;
    let mut trailer = hashed.to_vec();
    trailer.extend([4, 0xff]);
    trailer.extend(length.to_be_bytes());
    let unhashed = number(body.get(hashed_end..hashed_end + 2)?);
    // Two octets of the hash follow, which only tell sooner that a signature is wrong.
    let value = body.get(hashed_end + 2 + unhashed + 2..)?;
    let value = match head[2] {
        1 | 3 => SignatureValue::Rsa(mpi(value)?.0.to_vec()),
        22 => {
            let (r, rest) = mpi(value)?;
            let (s, _) = mpi(rest)?;
            let mut whole = vec![0; 64];
            whole
                .get_mut(32_usize.checked_sub(r.len())?..32)?
                .copy_from_slice(r);
            whole
                .get_mut(64_usize.checked_sub(s.len())?..)?
                .copy_from_slice(s);
            SignatureValue::Ed25519(whole)
        }
        27 => SignatureValue::Ed25519(value.get(..64)?.to_vec()),
        _ => return None,
    };
    Some(Signature {
        is_text,
        hash: head[3],
        trailer,
        value,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use proptest::prelude::*;

    use super::{by_gpgv, dearmour, key, keys, packets, signature, signed_text, split, verify};

    /// Makes a key of a kind and signs a text with it, by the host's gpg.
    fn signed(folder: &Path, kind: &str, text: &str) -> (PathBuf, PathBuf) {
        let home = folder.join(kind);
        fs::create_dir(&home).unwrap();
        let gpg = |arguments: &[&str]| {
            let ended = Command::new("gpg")
                .env("GNUPGHOME", &home)
                .args([
                    "--batch",
                    "--quiet",
                    "--passphrase",
                    "",
                    "--pinentry-mode",
                    "loopback",
                ])
                .args(arguments)
                .current_dir(&home)
                .output()
                .unwrap();
            assert!(ended.status.success(), "{ended:?}");
        };
        gpg(&[
            "--quick-generate-key",
            "archive <archive@localhost>",
            kind,
            "sign",
            "never",
        ]);
        gpg(&["--output", "keyring", "--export"]);
        fs::write(home.join("text"), text).unwrap();
        gpg(&[
            "--digest-algo",
            "SHA512",
            "--output",
            "signed",
            "--clearsign",
            "text",
        ]);
        drop(
            Command::new("gpgconf")
                .env("GNUPGHOME", &home)
                .args(["--kill", "all"])
                .status(),
        );
        (home.join("signed"), home.join("keyring"))
    }

    fn verified(file: &Path, keyring: &Path) -> Result<String, String> {
        let document = fs::read_to_string(file).unwrap();
        let (text, armour) = split(&document)?;
        verify(
            text.as_bytes(),
            &dearmour(armour)?,
            &fs::read(keyring).unwrap(),
        )?;
        Ok(text)
    }

    #[test]
    fn signatures_are_judged_as_by_gpgv() {
        let folder = tempfile::tempdir().unwrap();
        let text = "Suite: x\n- dashed\nblank at end  \n\nlast";
        let (_, other) = signed(folder.path(), "rsa3072", "other");
        for kind in ["rsa2048", "ed25519"] {
            let (file, keyring) = signed(folder.path(), kind, text);
            let ours = verified(&file, &keyring).unwrap();
            assert_eq!(ours, "Suite: x\n- dashed\nblank at end\n\nlast", "{kind}");
            assert_eq!(signed_text(&file, &keyring).unwrap(), ours);
            assert!(by_gpgv(&file, &keyring).unwrap().is_ok());
            assert!(by_gpgv(&file, &other).unwrap().is_err());
            assert!(
                verified(&file, &other)
                    .unwrap_err()
                    .contains("no key of the keyring")
            );
            let changed = fs::read_to_string(&file)
                .unwrap()
                .replace("Suite: x", "Suite: y");
            let forged = file.with_extension("forged");
            fs::write(&forged, &changed).unwrap();
            assert!(verified(&forged, &keyring).is_err());
            assert!(signed_text(&forged, &keyring).is_err());
        }
    }

    #[test]
    fn text_outside_the_signature_is_refused() {
        let message = "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nx\n-----BEGIN PGP SIGNATURE-----\n\nAAAA\n-----END PGP SIGNATURE-----\n";
        assert_eq!(split(message).unwrap().0, "x");
        for other in [
            format!("y\n{message}"),
            format!("{message}y"),
            "x".to_owned(),
        ] {
            split(&other).unwrap_err();
        }
    }

    /// Debian's keyring, of the package debian-archive-keyring 2023.3+deb12u2.
    const DEBIAN: &[u8] = include_bytes!("../keys/debian.gpg");

    #[test]
    fn debians_keys_are_read_and_revoked_ones_not() {
        // Two keys of each release but the one that signs stable, which has no subkey.
        assert_eq!(keys(DEBIAN).unwrap().len(), 15);
        // A primary key that a signature of kind 0x20 behind it revokes.
        let primary = packets(DEBIAN).unwrap().remove(0).body.to_vec();
        let length = u16::try_from(primary.len()).unwrap().to_be_bytes();
        let mut keyring = vec![0x99];
        keyring.extend(length);
        keyring.extend(&primary);
        assert_eq!(keys(&keyring).unwrap().len(), 1);
        keyring.extend([0x88, 2, 4, 0x20]);
        keys(&keyring).unwrap_err();
    }

    proptest! {
        #[test]
        fn any_bytes_are_refused_or_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            at in 0..50_000_usize,
        ) {
            drop(packets(&bytes));
            drop(key(&bytes));
            drop(signature(&bytes));
            let mut keyring = DEBIAN.to_vec();
            keyring.splice(at..(at + bytes.len()).min(DEBIAN.len()), bytes.iter().copied());
            drop(keys(&keyring));
            drop(verify(&bytes, &bytes, &keyring));
        }
    }
}
