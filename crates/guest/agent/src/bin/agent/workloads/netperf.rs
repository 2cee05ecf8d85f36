//! Streams of TCP and UDP over loopback in messages of one size, after netperf.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream, UdpSocket};

use super::socket::{bind, fix_buffers, set_option, tcp_pair};
use super::{Failure, Made, Workload};

/// Messages that are under way at a time over TCP.
const UNDER_WAY: u64 = 4;
/// Bytes that the receiver's queue of UDP holds, the kernel's accounts of them included.
const QUEUE: libc::c_int = 64 << 20;

struct Stream {
    own: TcpStream,
    other: TcpStream,
    message: Vec<u8>,
}

impl Workload for Stream {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut left = operations;
        while left > 0 {
            let batch = left.min(UNDER_WAY);
            for _ in 0..batch {
                self.own.write_all(&self.message)?;
            }
            for _ in 0..batch {
                self.other.read_exact(&mut self.message)?;
            }
            left -= batch;
        }
        Ok(())
    }
}

/// tcp-stream-SIZE: messages over TCP, a few under way at a time.
pub(super) fn tcp_stream(size: usize) -> Made {
    let (own, other) = tcp_pair()?;
    fix_buffers(&own)?;
    fix_buffers(&other)?;
    Ok(Box::new(Stream {
        own,
        other,
        message: vec![1; size],
    }))
}

/// Two ends of UDP, the second of which keeps all that the first sends.
struct Datagrams {
    from: UdpSocket,
    to: UdpSocket,
    message: Vec<u8>,
}

impl Datagrams {
    fn new(size: usize) -> Result<Self, Failure> {
        let to = bind(UdpSocket::bind)?;
        let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        from.connect(to.local_addr()?)?;
        // What was lost would be waited for in vain.
        to.set_nonblocking(true)?;
        match set_option(&to, libc::SO_RCVBUFFORCE, &QUEUE) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(
                Failure::Unsupported(format!("needs the right to have a long queue: {error}")),
            ),
            Err(error) => Err(error.into()),
            Ok(()) => Ok(Self {
                from,
                to,
                message: vec![1; size],
            }),
        }
    }

    fn send(&self, datagrams: u64) -> io::Result<()> {
        (0..datagrams).try_for_each(|_| self.from.send(&self.message).map(|_| ()))
    }

    fn receive(&mut self, datagrams: u64) -> io::Result<()> {
        (0..datagrams).try_for_each(|_| self.to.recv(&mut self.message).map(|_| ()))
    }
}

struct Send(Datagrams);

impl Workload for Send {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.send(operations)
    }

    fn clear(&mut self, operations: u64) -> io::Result<()> {
        self.0.receive(operations)
    }
}

struct Receive(Datagrams);

impl Workload for Receive {
    fn prepare(&mut self, operations: u64) -> io::Result<()> {
        self.0.send(operations)
    }

    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.0.receive(operations)
    }
}

/// udp-send-SIZE: datagrams into the queue of a socket that receives them later.
pub(super) fn udp_send(size: usize) -> Made {
    Ok(Box::new(Send(Datagrams::new(size)?)))
}

/// udp-recv-SIZE: datagrams that are in the queue already.
pub(super) fn udp_receive(size: usize) -> Made {
    Ok(Box::new(Receive(Datagrams::new(size)?)))
}
