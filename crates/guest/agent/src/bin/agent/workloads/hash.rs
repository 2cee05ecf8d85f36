//! The kernel's hashes as a program asks for them: a socket of the family `AF_ALG`
//! (Documentation/crypto/userspace-if.rst).

use std::io;
use std::mem::zeroed;
use std::os::fd::AsRawFd;

use super::repeat::{repeat, whole};
use super::share::owned;
use super::{Failure, Made};
use crate::sys::check;

const KIND: &[u8] = b"hash";
const NAME: &[u8] = b"sha256";
/// What is hashed at a time, and what comes of it (bytes).
const PIECE: usize = 4096;
const DIGEST: usize = 32;

fn put(field: &mut [u8], text: &[u8]) {
    field[..text.len()].copy_from_slice(text);
}

/// alg-hash: 4 KiB are sent to a socket, and their hash is received.
pub(super) fn hash() -> Made {
    // SAFETY: takes numbers only.
    let family = owned(unsafe { libc::socket(libc::AF_ALG, libc::SOCK_SEQPACKET, 0) });
    let family = family.map_err(|error| {
        Failure::Unsupported(format!("the kernel has no sockets for hashes: {error}"))
    })?;
    // SAFETY: an address of zeroes is a valid value of the C struct.
    let mut address: libc::sockaddr_alg = unsafe { zeroed() };
    address.salg_family = libc::AF_ALG as _;
    put(&mut address.salg_type, KIND);
    put(&mut address.salg_name, NAME);
    let length = size_of::<libc::sockaddr_alg>() as libc::socklen_t;
    // SAFETY: the address is valid for the call and of the size given.
    check(unsafe { libc::bind(family.as_raw_fd(), (&raw const address).cast(), length) })?;
    // SAFETY: no address of the other end is asked for.
    let socket = owned(unsafe {
        libc::accept(
            family.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    })?;
    let content = vec![1u8; PIECE];
    repeat(move |_| {
        let _keep = &family;
        let mut digest = [0u8; DIGEST];
        // SAFETY: the content is as long as said.
        let sent = unsafe { libc::send(socket.as_raw_fd(), content.as_ptr().cast(), PIECE, 0) };
        whole(check(sent as i64)?, PIECE)?;
        // SAFETY: the buffer is as long as said.
        let got = unsafe { libc::recv(socket.as_raw_fd(), digest.as_mut_ptr().cast(), DIGEST, 0) };
        whole(check(got as i64)?, DIGEST)?;
        if digest == [0; DIGEST] {
            return Err(io::Error::other("a hash of zeroes"));
        }
        Ok(())
    })
}
