//! Sockets beyond requests and streams: descriptors as messages, datagrams, raw packets, SCTP, and
//! a table of ports that is nearly full. One process has both ends.

use std::fs;
use std::io;
use std::mem::zeroed;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

use super::repeat::{repeat, whole};
use super::scratch::Folder;
use super::share::owned;
use super::socket::{bind, close_with_reset};
use super::{Failure, Made, in_guest};
use crate::sys::check;

/// Bytes of a datagram and of a packet.
const DATAGRAM: usize = 512;
/// A message of SCTP: several packets.
const SCTP_MESSAGE: usize = 10 * 1024;
/// A protocol that no other socket takes: one for experiments (RFC 3692).
const PROTOCOL: i32 = 253;
/// Bytes before a packet's content: the header of IPv4 without options.
const IP_HEADER: usize = 20;
/// Ports that connections may come from, and how many of them are taken: so few are left that the
/// kernel looks at many.
const FIRST_PORT: u16 = 40_000;
const PORTS: u16 = 256;
const TAKEN: usize = 240;

/// A control message with one descriptor, aligned as its head.
#[repr(C, align(8))]
struct Control([u8; 24]);

/// Calls `action` with a message of one byte and room for a descriptor.
fn with_message<T>(action: impl FnOnce(&mut libc::msghdr) -> io::Result<T>) -> io::Result<T> {
    let mut byte = [1u8];
    let mut control = Control([0; 24]);
    let mut part = libc::iovec {
        iov_base: byte.as_mut_ptr().cast(),
        iov_len: 1,
    };
    // SAFETY: a header of zeroes is a valid value of the C struct.
    let mut header: libc::msghdr = unsafe { zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = control.0.as_mut_ptr().cast();
    header.msg_controllen = size_of::<Control>() as _;
    action(&mut header)
}

fn send_descriptor(socket: &UnixStream, descriptor: i32) -> io::Result<()> {
    with_message(|header| {
        // SAFETY: the header has room for a control message with one descriptor.
        unsafe {
            let control = libc::CMSG_FIRSTHDR(header);
            (*control).cmsg_level = libc::SOL_SOCKET;
            (*control).cmsg_type = libc::SCM_RIGHTS;
            (*control).cmsg_len = libc::CMSG_LEN(size_of::<i32>() as u32) as _;
            libc::CMSG_DATA(control)
                .cast::<i32>()
                .write_unaligned(descriptor);
            whole(
                check(libc::sendmsg(socket.as_raw_fd(), header, 0) as i64)?,
                1,
            )
        }
    })
}

fn receive_descriptor(socket: &UnixStream) -> io::Result<OwnedFd> {
    with_message(|header| {
        // SAFETY: the header has room for a control message with one descriptor, which the kernel
        // has written if there is one.
        let raw = unsafe {
            whole(
                check(libc::recvmsg(socket.as_raw_fd(), header, 0) as i64)?,
                1,
            )?;
            let control = libc::CMSG_FIRSTHDR(header);
            if control.is_null() {
                return Err(io::Error::other("no descriptor came"));
            }
            libc::CMSG_DATA(control).cast::<i32>().read_unaligned()
        };
        owned(raw)
    })
}

/// sock-fd: a descriptor goes through a unix socket, and its copy is closed.
pub(super) fn descriptor() -> Made {
    let (from, to) = UnixStream::pair()?;
    let sent = fs::File::open("/dev/null")?;
    repeat(move |_| {
        send_descriptor(&from, sent.as_raw_fd())?;
        receive_descriptor(&to).map(drop)
    })
}

/// sock-dgram: a datagram goes through a pair of unix sockets.
pub(super) fn datagram() -> Made {
    let (from, to) = UnixDatagram::pair()?;
    let mut buffer = [1u8; DATAGRAM];
    repeat(move |_| {
        from.send(&buffer)?;
        whole(to.recv(&mut buffer)? as i64, DATAGRAM)
    })
}

/// sock-connect: connect to a unix socket that is listened on, accept, close both ends.
pub(super) fn connect() -> Made {
    let folder = Folder::new()?;
    let path = folder.path("socket");
    let listener = UnixListener::bind(&path)?;
    repeat(move |_| {
        let _keep = &folder;
        let own = UnixStream::connect(&path)?;
        let (other, _) = listener.accept()?;
        drop(own);
        drop(other);
        Ok(())
    })
}

fn loopback() -> libc::sockaddr_in {
    // SAFETY: an address of zeroes is a valid value of the C struct.
    let mut address: libc::sockaddr_in = unsafe { zeroed() };
    address.sin_family = libc::AF_INET as _;
    address.sin_addr.s_addr = u32::from(Ipv4Addr::LOCALHOST).to_be();
    address
}

const ADDRESS_BYTES: libc::socklen_t = size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// Makes a socket of SCTP that is connected, and its other end.
fn sctp_pair() -> io::Result<[OwnedFd; 2]> {
    // SAFETY: takes numbers only.
    let socket =
        || owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_SCTP) });
    let listener = socket()?;
    let own = socket()?;
    let mut address = loopback();
    let mut length = ADDRESS_BYTES;
    // SAFETY: the address and its length are valid for the calls, which write no more than fits.
    unsafe {
        let [listener, own] = [listener.as_raw_fd(), own.as_raw_fd()];
        check(libc::bind(listener, (&raw const address).cast(), length))?;
        check(libc::listen(listener, 1))?;
        let named = libc::getsockname(listener, (&raw mut address).cast(), &raw mut length);
        check(named)?;
        check(libc::connect(own, (&raw const address).cast(), length))?;
    }
    // SAFETY: no address of the other end is asked for.
    let other = owned(unsafe {
        libc::accept(
            listener.as_raw_fd(),
            std::ptr::null_mut(),
            std::ptr::null_mut(),
        )
    })?;
    Ok([own, other])
}

/// sock-sctp: a message goes over an association of SCTP by loopback.
pub(super) fn sctp() -> Made {
    let pair = sctp_pair().map_err(|error| match error.raw_os_error() {
        Some(libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT) => {
            Failure::Unsupported("the kernel has no SCTP (CONFIG_IP_SCTP)".to_owned())
        }
        _ => Failure::Error(error),
    })?;
    let message = vec![1u8; SCTP_MESSAGE];
    let mut received = vec![0u8; SCTP_MESSAGE];
    repeat(move |_| {
        let [own, other] = [pair[0].as_raw_fd(), pair[1].as_raw_fd()];
        // SAFETY: the message is as long as said.
        let sent = unsafe { libc::send(own, message.as_ptr().cast(), SCTP_MESSAGE, 0) };
        whole(check(sent as i64)?, SCTP_MESSAGE)?;
        let mut there = 0;
        while there < SCTP_MESSAGE {
            let rest = &mut received[there..];
            // SAFETY: the rest is as long as said.
            let got = unsafe { libc::recv(other, rest.as_mut_ptr().cast(), rest.len(), 0) };
            match usize::try_from(check(got as i64)?) {
                Ok(count) if count > 0 => there += count,
                _ => return Err(io::Error::other("the association ended")),
            }
        }
        Ok(())
    })
}

/// sock-raw: a packet of an own protocol over loopback.
pub(super) fn raw() -> Made {
    // SAFETY: takes numbers only.
    let socket = owned(unsafe { libc::socket(libc::AF_INET, libc::SOCK_RAW, PROTOCOL) })?;
    let address = loopback();
    // SAFETY: the address is valid for the call and of the size given.
    check(unsafe {
        libc::connect(
            socket.as_raw_fd(),
            (&raw const address).cast(),
            ADDRESS_BYTES,
        )
    })?;
    repeat(move |_| {
        let mut buffer = [1u8; IP_HEADER + DATAGRAM];
        // SAFETY: the buffer is longer than said.
        let sent = unsafe { libc::send(socket.as_raw_fd(), buffer.as_ptr().cast(), DATAGRAM, 0) };
        whole(check(sent as i64)?, DATAGRAM)?;
        // SAFETY: the buffer is as long as said.
        let got = unsafe {
            libc::recv(
                socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                0,
            )
        };
        whole(check(got as i64)?, buffer.len())
    })
}

/// sock-ports: connect over loopback, accept, close both ends, where other connections to the same
/// port have taken most ports that there are.
pub(super) fn ports() -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: it limits the ports of all connections".to_owned(),
        ));
    }
    let last = FIRST_PORT + PORTS - 1;
    fs::write(
        "/proc/sys/net/ipv4/ip_local_port_range",
        format!("{FIRST_PORT} {last}"),
    )?;
    let listener = bind(TcpListener::bind)?;
    let address = listener.local_addr()?;
    let mut taken = Vec::new();
    for _ in 0..TAKEN {
        taken.push((TcpStream::connect(address)?, listener.accept()?));
    }
    repeat(move |_| {
        let _keep = &taken;
        let own = TcpStream::connect(address)?;
        let other = listener.accept()?;
        close_with_reset(&own)?;
        drop(own);
        drop(other);
        Ok(())
    })
}
