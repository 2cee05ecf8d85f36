//! Verifies OpenPGP signatures of archives' lists and packages (RFC 9580 and, for older keys,
//! RFC 4880) by ring, and before that by gpgv where the host has it.
//!
//! Only what archives use: version 4 keys and signatures, RSA and Ed25519, SHA-256 and longer. Of
//! several signatures one has to be good, and none may be bad; those of unknown keys do not count.
//! `keyring` says which keys are valid until when.

use std::path::Path;

use model::UnixTime;
use ring::digest::{SHA256, SHA384, SHA512, digest};
use ring::signature::{
    ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512,
    RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey,
};
use subprocess::Program;

use crate::keyring::{KeyId, Material, PublicKey, created, issuer, keys};
use crate::packets::{binary, dearmour, mpi, number, packets};

const BEGIN_MESSAGE: &str = "-----BEGIN PGP SIGNED MESSAGE-----";
const BEGIN_SIGNATURE: &str = "-----BEGIN PGP SIGNATURE-----";
const END_SIGNATURE: &str = "-----END PGP SIGNATURE-----";

/// Why a document is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignatureFault {
    /// Its signature is good, but the key is no longer valid.
    Expired { key: String, ended: UnixTime },
    /// It has no good signature, or a bad one.
    Untrusted(String),
}

impl From<String> for SignatureFault {
    fn from(detail: String) -> Self {
        Self::Untrusted(detail)
    }
}

/// The time at which keys have to be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validity {
    At(UnixTime),
    /// When the signature was made: for the archive of a day in the past.
    WhenSigned,
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
    /// The key that it names.
    issuer: Option<KeyId>,
    created: Option<UnixTime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum SignatureValue {
    Rsa(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Returns the signed text of a file with its signature in it, if a key of the keyring signed it;
/// text outside the signature is refused.
pub(crate) fn signed_text(
    file: &Path,
    keyring: &Path,
    validity: Validity,
) -> Result<String, SignatureFault> {
    let document = String::from_utf8(read(file)?).map_err(|_| "it is no text".to_owned())?;
    let (text, armour) = split(&document)?;
    if let Some(result) = by_gpgv(&[file], keyring) {
        result?;
    }
    // Also after gpgv: of a strange file, it may take another part for the signed text.
    let signatures = dearmour(armour)?;
    verify(
        text.clone().into_bytes(),
        &signatures,
        &read(keyring)?,
        validity,
    )?;
    Ok(text)
}

/// Returns the text of a file that a signature beside it covers.
pub(crate) fn text_signed_beside(
    file: &Path,
    signature: &Path,
    keyring: &Path,
    validity: Validity,
) -> Result<String, SignatureFault> {
    let document = read(file)?;
    if let Some(result) = by_gpgv(&[signature, file], keyring) {
        result?;
    }
    verify(
        document.clone(),
        &binary(&read(signature)?)?,
        &read(keyring)?,
        validity,
    )?;
    String::from_utf8(document).map_err(|_| "it is no text".to_owned().into())
}

fn read(file: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Asks gpgv; `None` if this host has none, or does not read the keyring.
fn by_gpgv(files: &[&Path], keyring: &Path) -> Option<Result<(), String>> {
    if std::fs::read(keyring).ok()?.starts_with(b"-----") {
        return None;
    }
    let ended = Program::new("gpgv")
        .args(["--status-fd", "1", "--keyring"])
        .args([keyring])
        .args(files)
        .run()
        .ok()?;
    Some(judge(&ended.text(), &ended.reason()))
}

/// Judges by what gpgv says of each signature: it ends with an error for a good one beside one of
/// an unknown key. Whether an expired key does is left to [`verify`].
fn judge(status: &str, reason: &str) -> Result<(), String> {
    let says = |word: &str| {
        let mut words = status
            .lines()
            .filter_map(|line| line.strip_prefix("[GNUPG:] "));
        words.any(|line| line.split(' ').next() == Some(word))
    };
    if says("BADSIG") || says("REVKEYSIG") {
        return Err(reason.to_owned());
    }
    if says("VALIDSIG") {
        return Ok(());
    }
    Err(reason.to_owned())
}

/// Verifies a document by ring; returns the key.
pub(crate) fn verify(
    document: Vec<u8>,
    signatures: &[u8],
    keyring: &[u8],
    validity: Validity,
) -> Result<(), SignatureFault> {
    let keys = keys(keyring)?;
    let signatures: Vec<Signature> = packets(signatures)?
        .into_iter()
        .filter(|packet| packet.tag == 2)
        .filter_map(|packet| signature(packet.body))
        .collect();
    if signatures.is_empty() {
        return Err("it has no signature of a known kind".to_owned().into());
    }
    let mut message = document;
    let mut expired = None;
    let mut is_signed = false;
    for signature in &signatures {
        let Some(key) = signature.find_key(&keys, &mut message)? else {
            continue;
        };
        let moment = match validity {
            Validity::At(time) => Some(time),
            Validity::WhenSigned => signature.created,
        };
        match key.expires {
            Some(ended) if moment.is_none_or(|moment| moment >= ended) => {
                expired = Some(SignatureFault::Expired {
                    key: hexadecimal(&key.id),
                    ended,
                });
            }
            _ => is_signed = true,
        }
    }
    if is_signed {
        return Ok(());
    }
    Err(expired.unwrap_or_else(|| SignatureFault::Untrusted(unknown(&signatures))))
}

/// Describes signatures of which no key is known.
fn unknown(signatures: &[Signature]) -> String {
    let signers: Vec<String> = signatures
        .iter()
        .filter_map(|signature| signature.issuer.as_ref())
        .map(hexadecimal)
        .collect();
    if signers.is_empty() {
        "no key of the keyring made its signature".to_owned()
    } else {
        let signers = signers.join(", ");
        format!("no key of the keyring made its signature, which is by {signers}")
    }
}

fn hexadecimal(id: &KeyId) -> String {
    model::hexadecimal(id).to_ascii_uppercase()
}

impl Signature {
    /// Returns the key that made it; `None` if that is not in the keyring.
    ///
    /// # Errors
    /// If it is bad: the key that it names did not make it.
    fn find_key<'a>(
        &self,
        keys: &'a [PublicKey],
        document: &mut Vec<u8>,
    ) -> Result<Option<&'a PublicKey>, String> {
        let found = keys.iter().find(|key| {
            self.issuer.is_none_or(|id| id == key.id) && self.is_by(&key.material, document)
        });
        match (found, self.issuer) {
            (None, Some(id)) if keys.iter().any(|key| key.id == id) => Err(format!(
                "its signature by {} is bad: the text was changed",
                hexadecimal(&id)
            )),
            (found, _) => Ok(found),
        }
    }

    /// Returns whether a key made it. The document is unchanged afterwards; a copy of it may be too
    /// large for the memory.
    fn is_by(&self, key: &Material, document: &mut Vec<u8>) -> bool {
        if self.is_text {
            let mut message = canonical(document);
            message.extend(&self.trailer);
            return self.is_valid_for(key, &message);
        }
        let length = document.len();
        document.extend(&self.trailer);
        let is_valid = self.is_valid_for(key, document);
        document.truncate(length);
        is_valid
    }

    fn is_valid_for(&self, key: &Material, message: &[u8]) -> bool {
        match (key, &self.value) {
            (Material::Rsa { n, e }, SignatureValue::Rsa(value)) => {
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
                key.verify(parameters, message, &value).is_ok()
            }
            (Material::Ed25519(point), SignatureValue::Ed25519(value)) => {
                let algorithm = match self.hash {
                    8 => &SHA256,
                    9 => &SHA384,
                    10 => &SHA512,
                    _ => return false,
                };
                let hash = digest(algorithm, message);
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

/// Reads a signature of version 4 over a document.
fn signature(body: &[u8]) -> Option<Signature> {
    let head = body.get(..6)?;
    let is_text = match (head[0], head[1]) {
        (4, 0) => false,
        (4, 1) => true,
        _ => return None,
    };
    // SHA-1 and older are no proof any more.
    if ![8, 9, 10].contains(&head[3]) {
        return None;
    }
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
        issuer: issuer(body),
        created: created(body),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use proptest::prelude::*;

    use super::{
        SignatureFault, Validity, by_gpgv, dearmour, keys, packets, signature, signed_text, split,
        verify,
    };
    use crate::keyring::key;

    const ANY_TIME: Validity = Validity::WhenSigned;

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

    fn verified(file: &Path, keyring: &Path) -> Result<String, SignatureFault> {
        let document = fs::read_to_string(file).unwrap();
        let (text, armour) = split(&document)?;
        verify(
            text.clone().into_bytes(),
            &dearmour(armour)?,
            &fs::read(keyring).unwrap(),
            ANY_TIME,
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
            assert_eq!(signed_text(&file, &keyring, ANY_TIME).unwrap(), ours);
            assert!(by_gpgv(&[&file], &keyring).unwrap().is_ok());
            assert!(by_gpgv(&[&file], &other).unwrap().is_err());
            let refused = format!("{:?}", verified(&file, &other).unwrap_err());
            assert!(refused.contains("no key of the keyring"), "{refused}");
            let changed = fs::read_to_string(&file)
                .unwrap()
                .replace("Suite: x", "Suite: y");
            let forged = file.with_extension("forged");
            fs::write(&forged, &changed).unwrap();
            assert!(verified(&forged, &keyring).is_err());
            assert!(signed_text(&forged, &keyring, ANY_TIME).is_err());
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
            drop(verify(bytes.clone(), &bytes, &keyring, ANY_TIME));
        }
    }
}
