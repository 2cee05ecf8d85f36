//! Asks the kernel for its sockets by netlink (NETLINK_SOCK_DIAG): peers of unix sockets, and what
//! holds TCP connections up. Any bytes are fine: what is not understood is left out.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use explain::facts::Tcp;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// Kinds of messages (include/uapi/linux/netlink.h, sock_diag.h).
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_DONE: u16 = 3;
const NLMSG_ERROR: u16 = 2;
/// NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;
/// Sizes of headers (bytes): of a message, and of what it has of a unix and of a TCP socket
/// (include/uapi/linux/unix_diag.h, inet_diag.h).
const HEADER: usize = 16;
const UNIX: usize = 16;
const INET: usize = 72;
/// Attributes: UNIX_DIAG_PEER and INET_DIAG_INFO.
const PEER: u16 = 2;
const INFO: u16 = 2;
/// What is taken of an answer at once (bytes), and how often.
const BUFFER: usize = 64 << 10;
const PIECES_MAX: usize = 1024;
/// How long the kernel may take for a piece.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a unix socket is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnixSocket {
    /// Clients connect to it.
    Listening,
    /// It is connected with the socket of this inode.
    Connected(u64),
}

/// The state of a socket that listens: TCP_LISTEN of include/net/tcp_states.h, of unix sockets too.
const LISTENING: u8 = 10;

/// Returns the unix sockets that have a peer or wait for one, by inode.
pub(crate) fn unix_sockets() -> io::Result<BTreeMap<u64, UnixSocket>> {
    // Family, protocol, padding, states, inode, what to show (UDIAG_SHOW_PEER), cookie.
    let mut request = vec![1, 0, 0, 0];
    for word in [u32::MAX, 0, 4, 0, 0] {
        request.extend(word.to_ne_bytes());
    }
    let mut sockets = BTreeMap::new();
    dump(&request, |message| sockets.extend(unix_socket(message)))?;
    Ok(sockets)
}

/// Reads `struct unix_diag_msg` (include/uapi/linux/unix_diag.h) and its attributes.
fn unix_socket(message: &[u8]) -> Option<(u64, UnixSocket)> {
    let inode = word(message, 4)?;
    let socket = if message.get(2) == Some(&LISTENING) {
        UnixSocket::Listening
    } else {
        let peer = attribute(message.get(UNIX..)?, PEER)?;
        UnixSocket::Connected(word(peer, 0)?.into())
    };
    Some((inode.into(), socket))
}

/// Returns what the kernel knows of TCP connections, by inode.
pub(crate) fn tcp() -> io::Result<BTreeMap<u64, Tcp>> {
    let mut found = BTreeMap::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        // Family, TCP, what to add (INET_DIAG_INFO), padding, states (established to closing), id.
        let mut request = vec![family.as_raw() as u8, 6, 1 << (INFO - 1), 0];
        request.extend(0b1011_0011_0010_u32.to_ne_bytes());
        request.extend([0; 48]);
        dump(&request, |message| found.extend(connection(message)))?;
    }
    Ok(found)
}

/// Reads a connection; the offsets are those of struct tcp_info (include/uapi/linux/tcp.h).
fn connection(message: &[u8]) -> Option<(u64, Tcp)> {
    let inode = word(message, INET - 4)?;
    let info = attribute(message.get(INET..)?, INFO)?;
    let long = |at: usize| {
        let bytes = info.get(at..at + 8)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    };
    let tcp = Tcp {
        segment: word(info, 16)?,
        unacknowledged: word(info, 24)?,
        round_trip_us: word(info, 68)?,
        window: word(info, 80)?,
        retransmitted: word(info, 100)?,
        unsent: word(info, 144).unwrap_or_default(),
        busy_us: long(168).unwrap_or_default(),
        receiver_limited_us: long(176).unwrap_or_default(),
        buffer_limited_us: long(184).unwrap_or_default(),
    };
    Some((inode.into(), tcp))
}

/// Asks for all sockets and hands each message's content to `take`.
fn dump(request: &[u8], mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE))?;
    let mut message = Vec::new();
    let length = u32::try_from(HEADER + request.len()).map_err(io::Error::other)?;
    message.extend(length.to_ne_bytes());
    message.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    message.extend([0; 8]);
    message.extend(request);
    send(&socket, &message, SendFlags::empty())?;
    let mut buffer = vec![0; BUFFER];
    for _ in 0..PIECES_MAX {
        let (size, _) = recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if size == 0 || messages(&buffer[..size.min(BUFFER)], &mut take) {
            break;
        }
    }
    Ok(())
}

/// Hands on the messages of a piece. Returns whether it was the last one.
fn messages(mut piece: &[u8], take: &mut impl FnMut(&[u8])) -> bool {
    while let (Some(length), Some(kind)) = (word(piece, 0), half(piece, 4)) {
        let length = length as usize;
        if matches!(kind, NLMSG_DONE | NLMSG_ERROR) {
            return true;
        }
        let Some(content) = piece.get(HEADER..length) else {
            return true;
        };
        take(content);
        piece = piece.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    false
}

/// Returns the value of an attribute.
fn attribute(mut list: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(half(list, 0)?);
        let value = list.get(4..length)?;
        if half(list, 2)? == wanted {
            return Some(value);
        }
        list = list.get(length.next_multiple_of(4)..)?;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..at.checked_add(2)?)?;
    Some(u16::from_ne_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::{UnixListener, UnixStream};

    use proptest::prelude::*;
    use rustix::fs::fstat;

    use super::*;

    fn inode(file: BorrowedFd) -> u64 {
        fstat(file).unwrap().st_ino
    }

    #[test]
    fn unix_sockets_have_their_peers_or_listen() {
        let (one, other) = UnixStream::pair().unwrap();
        let path = std::env::temp_dir().join(format!("marvin-diag-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let Ok(sockets) = unix_sockets() else {
            return;
        };
        let [one, other, listener] = [one.as_fd(), other.as_fd(), listener.as_fd()].map(inode);
        // A kernel without CONFIG_UNIX_DIAG answers with an error.
        if !sockets.is_empty() {
            assert_eq!(sockets.get(&one), Some(&UnixSocket::Connected(other)));
            assert_eq!(sockets.get(&other), Some(&UnixSocket::Connected(one)));
            assert_eq!(sockets.get(&listener), Some(&UnixSocket::Listening));
        }
    }

    #[test]
    fn tcp_connection_is_described() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let Ok(found) = tcp() else {
            return;
        };
        if !found.is_empty() {
            let of = found[&inode(client.as_fd())];
            assert!(
                of.segment > 500 && of.window > 0 && of.unsent == 0,
                "{of:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_parsed(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut count = 0;
            messages(&bytes, &mut |message| {
                count += 1;
                let _ = (unix_socket(message), connection(message));
            });
            let _ = (unix_socket(&bytes), connection(&bytes));
            prop_assert!(count <= bytes.len() / HEADER);
        }
    }
}
