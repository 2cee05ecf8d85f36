//! Keyrings: which public keys they have, until when each is valid, and which ones they revoke.
//!
//! A keyring is trusted as a whole, subkeys with their primary keys: the signatures in it are read
//! for expiry and revocation, not verified. `openpgp` verifies signatures by these keys.

use model::UnixTime;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};

use crate::packets::{binary, mpi, number, packets, subpacket};

/// The curve Ed25519 as older keys name it: its object identifier, after its length.
const ED25519_OID: &[u8] = &[9, 0x2b, 6, 1, 4, 1, 0xda, 0x47, 0x0f, 1];
/// Kinds of signatures in a keyring.
const CERTIFIES: std::ops::RangeInclusive<u8> = 0x10..=0x13;
const BINDS_SUBKEY: u8 = 0x18;
const SIGNS_KEY: u8 = 0x1f;
const REVOKES_KEY: u8 = 0x20;
const REVOKES_SUBKEY: u8 = 0x28;
/// Kinds of subpackets.
const CREATED: u8 = 2;
const KEY_EXPIRES: u8 = 9;
const ISSUER: u8 = 16;
const FINGERPRINT: u8 = 33;

/// The id of a key: the last octets of its fingerprint.
pub(crate) type KeyId = [u8; 8];

/// A key that may sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PublicKey {
    pub(crate) id: KeyId,
    pub(crate) material: Material,
    created: UnixTime,
    /// When its validity ends; `None` if it never does.
    pub(crate) expires: Option<UnixTime>,
    /// When the signature that says so was made: the newest one counts.
    stated: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Material {
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
    Ed25519(Vec<u8>),
    /// A key of another kind, which keeps its place.
    Other,
}

/// Returns the keys of a keyring, binary or armoured, except those that it revokes.
pub(crate) fn keys(keyring: &[u8]) -> Result<Vec<PublicKey>, String> {
    let keyring = binary(keyring)?;
    let mut keys: Vec<PublicKey> = Vec::new();
    // Where the keys of the last primary key begin.
    let mut primary = 0;
    for packet in packets(&keyring)? {
        match packet.tag {
            6 | 14 => {
                if packet.tag == 6 {
                    limit_subkeys(&mut keys, primary);
                    primary = keys.len();
                }
                keys.extend(key(packet.body));
            }
            2 if packet.body.first() == Some(&4) => match packet.body.get(1) {
                Some(&REVOKES_KEY) => keys.truncate(primary),
                Some(&REVOKES_SUBKEY) => drop(keys.pop()),
                Some(&BINDS_SUBKEY) => {
                    if let Some(subkey) = keys.last_mut() {
                        read_expiry(packet.body, subkey);
                    }
                }
                Some(kind) if CERTIFIES.contains(kind) || *kind == SIGNS_KEY => {
                    if let Some(key) = keys.get_mut(primary)
                        && issuer(packet.body).is_none_or(|by| by == key.id)
                    {
                        read_expiry(packet.body, key);
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }
    limit_subkeys(&mut keys, primary);
    keys.retain(|key| key.material != Material::Other);
    if keys.is_empty() {
        return Err("the keyring has no key of a known kind".to_owned());
    }
    Ok(keys)
}

/// Ends subkeys with their primary key.
fn limit_subkeys(keys: &mut [PublicKey], primary: usize) {
    let Some(end) = keys.get(primary).and_then(|key| key.expires) else {
        return;
    };
    for subkey in &mut keys[primary..] {
        subkey.expires = Some(subkey.expires.map_or(end, |own| own.min(end)));
    }
}

/// Reads a key of version 4.
pub(crate) fn key(body: &[u8]) -> Option<PublicKey> {
    let (head, material) = body.split_at_checked(6)?;
    if head[0] != 4 {
        return None;
    }
    let length = u16::try_from(body.len()).ok()?;
    let hashed = [&[0x99][..], &length.to_be_bytes(), body].concat();
    let fingerprint = digest(&SHA1_FOR_LEGACY_USE_ONLY, &hashed);
    Some(PublicKey {
        id: *fingerprint.as_ref().last_chunk()?,
        material: read_material(head[5], material).unwrap_or(Material::Other),
        created: seconds(&head[1..5]),
        expires: None,
        stated: 0,
    })
}

fn read_material(algorithm: u8, material: &[u8]) -> Option<Material> {
    match algorithm {
        1 | 3 => {
            let (n, rest) = mpi(material)?;
            let (e, _) = mpi(rest)?;
            Some(Material::Rsa {
                n: n.to_vec(),
                e: e.to_vec(),
            })
        }
        22 => {
            let (point, _) = mpi(material.strip_prefix(ED25519_OID)?)?;
            // 0x40 says that the point is as it comes.
            Some(Material::Ed25519(point.strip_prefix(&[0x40])?.to_vec()))
        }
        27 => Some(Material::Ed25519(material.get(..32)?.to_vec())),
        _ => None,
    }
}

/// Reads from a signature of version 4 until when a key is valid.
fn read_expiry(signature: &[u8], key: &mut PublicKey) {
    let Some(hashed) = hashed_area(signature) else {
        return;
    };
    let made = subpacket(hashed, CREATED).map_or(0, number);
    let made = u32::try_from(made).unwrap_or(u32::MAX);
    if made < key.stated {
        return;
    }
    key.stated = made;
    let lasts_s = subpacket(hashed, KEY_EXPIRES).map_or(0, number);
    key.expires = (lasts_s > 0).then(|| key.created.plus_seconds(lasts_s as u64));
}

/// Returns the subpackets of a signature of version 4 that it covers itself.
pub(crate) fn hashed_area(signature: &[u8]) -> Option<&[u8]> {
    signature.get(6..6 + number(signature.get(4..6)?))
}

/// Returns the key that a signature of version 4 names.
pub(crate) fn issuer(signature: &[u8]) -> Option<KeyId> {
    let hashed = hashed_area(signature)?;
    let rest = signature.get(6 + hashed.len()..)?;
    let unhashed = rest.get(2..2 + number(rest.get(..2)?))?;
    [hashed, unhashed].iter().find_map(|area| {
        let id = subpacket(area, FINGERPRINT).or_else(|| subpacket(area, ISSUER))?;
        id.last_chunk().copied()
    })
}

/// Returns when a signature of version 4 was made.
pub(crate) fn created(signature: &[u8]) -> Option<UnixTime> {
    hashed_area(signature)
        .and_then(|area| subpacket(area, CREATED))
        .map(seconds)
}

fn seconds(bytes: &[u8]) -> UnixTime {
    UnixTime::new(i64::try_from(number(bytes)).unwrap_or(i64::MAX))
}
