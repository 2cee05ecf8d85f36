//! Sockets: between two ends on this machine, by unix, TCP and UDP.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use super::partner::{Partner, PingPong, echo};
use super::{Between, Made, Workload};
use crate::sys::{self, check};

/// The port that is listened on. Fixed, as it goes into the kernel's hashes.
const PORT: u16 = 5001;
/// What one operation of the stream sends.
const PIECE: usize = 64 * 1024;
/// Size that is asked for of the stream's buffers: a whole piece fits, so that sending one never
/// waits.
const BUFFER: i32 = 128 * 1024;

/// unix-pingpong: a byte goes to a child process and comes back over a unix stream socket.
pub(super) fn unix_pingpong() -> Made {
    sys::wake_up_politely()?;
    let (own, other) = UnixStream::pair()?;
    let _partner = Partner::start(move || echo(&other, &other))?;
    let from = own.try_clone()?;
    Ok(Box::new(PingPong {
        from,
        to: own,
        _partner,
    }))
}

/// Binds to the fixed port, or to any when the port is taken, which never happens in the guest.
pub(super) fn bind<T>(bind: impl Fn((Ipv4Addr, u16)) -> io::Result<T>) -> io::Result<T> {
    bind((Ipv4Addr::LOCALHOST, PORT)).or_else(|error| match error.kind() {
        io::ErrorKind::AddrInUse => bind((Ipv4Addr::LOCALHOST, 0)),
        _ => Err(error),
    })
}

pub(super) fn tcp_pair() -> io::Result<(TcpStream, TcpStream)> {
    let listener = bind(TcpListener::bind)?;
    let own = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    for stream in [&own, &other] {
        stream.set_nodelay(true)?;
        close_with_reset(stream)?;
    }
    Ok((own, other))
}

/// Makes a connection end at once, leaving no port waiting behind.
pub(super) fn close_with_reset(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set_option(stream, libc::SO_LINGER, &linger)
}

/// Gives a connection buffers of a fixed size, which otherwise grow with what was sent so far.
pub(super) fn fix_buffers(stream: &TcpStream) -> io::Result<()> {
    set_option(stream, libc::SO_SNDBUF, &BUFFER)?;
    set_option(stream, libc::SO_RCVBUF, &BUFFER)
}

/// Sets an option of a socket; the type must be the one that the option has in C.
pub(super) fn set_option<T>(socket: &impl AsRawFd, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the value is valid for the call and of the size given, so the kernel reads nothing
    // else.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw const *value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })
    .map(|_| ())
}

struct Connect(TcpListener);

impl Workload for Connect {
    /// What it frees, RCU frees later.
    fn between(&self) -> Between {
        Between::GoOn
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        let address = self.0.local_addr()?;
        for _ in 0..operations {
            let own = TcpStream::connect(address)?;
            let other = self.0.accept()?;
            close_with_reset(&own)?;
            drop(own);
            drop(other);
        }
        Ok(())
    }
}

/// tcp-connect: connect over loopback, accept, close both ends.
///
/// The end is a reset: after a proper one the port would be taken for a minute, and searching for a
/// free one would cost more from operation to operation.
pub(super) fn tcp_connect() -> Made {
    Ok(Box::new(Connect(bind(TcpListener::bind)?)))
}

/// tcp-rr: a byte goes to a child process and comes back over TCP.
pub(super) fn tcp_rr() -> Made {
    sys::wake_up_politely()?;
    let (own, other) = tcp_pair()?;
    let _partner = Partner::start(move || echo(&other, &other))?;
    let from = own.try_clone()?;
    Ok(Box::new(PingPong {
        from,
        to: own,
        _partner,
    }))
}

struct Stream {
    own: TcpStream,
    other: TcpStream,
    buffer: Vec<u8>,
}

impl Workload for Stream {
    /// One process does both: with two, it depends on the scheduler how much is under way at a
    /// time, and that goes on changing for many iterations.
    fn run(&mut self, operations: u64) -> io::Result<()> {
        for _ in 0..operations {
            self.own.write_all(&self.buffer)?;
            self.other.read_exact(&mut self.buffer)?;
        }
        Ok(())
    }
}

/// tcp-stream: 64 KiB go over TCP from one socket to the other.
pub(super) fn tcp_stream() -> Made {
    let (own, other) = tcp_pair()?;
    fix_buffers(&own)?;
    fix_buffers(&other)?;
    Ok(Box::new(Stream {
        own,
        other,
        buffer: vec![0; PIECE],
    }))
}

struct Udp {
    socket: UdpSocket,
    _partner: Partner,
}

impl Workload for Udp {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut byte = [0];
        for _ in 0..operations {
            self.socket.send(&byte)?;
            self.socket.recv(&mut byte)?;
        }
        Ok(())
    }
}

/// udp-rr: a byte goes to a child process and comes back over UDP.
pub(super) fn udp_rr() -> Made {
    sys::wake_up_politely()?;
    let socket = bind(UdpSocket::bind)?;
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(other.local_addr()?)?;
    other.connect(socket.local_addr()?)?;
    let _partner = Partner::start(move || {
        let mut byte = [0];
        loop {
            other.recv(&mut byte)?;
            other.send(&byte)?;
        }
    })?;
    Ok(Box::new(Udp { socket, _partner }))
}
