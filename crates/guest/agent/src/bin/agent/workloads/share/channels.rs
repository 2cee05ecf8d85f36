//! Pipes, events and sockets.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::sync::Arc;

use super::{each, tasks};
use crate::sys::check;
use crate::workloads::Made;
use crate::workloads::scratch::Folder;
use crate::workloads::socket::bind;
use crate::workloads::split_work::TaskKind;

/// Descriptors that are asked for.
const ASKED: usize = 16;

/// Takes a new descriptor, or the error in its place.
pub(in crate::workloads) fn owned(descriptor: RawFd) -> io::Result<OwnedFd> {
    check(descriptor)?;
    // SAFETY: the kernel has just made it, so it has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

fn write(descriptor: &OwnedFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is as long as said.
    check(unsafe { libc::write(descriptor.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) } as i64)
        .map(|_| ())
}

fn read(descriptor: &OwnedFd, bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: the buffer is as long as said.
    check(unsafe {
        libc::read(
            descriptor.as_raw_fd(),
            bytes.as_mut_ptr().cast(),
            bytes.len(),
        )
    } as i64)
    .map(|_| ())
}

/// share-pipe: processes write a byte to one pipe and read one from it.
pub(super) fn pipe() -> Made {
    let (from, to) = io::pipe()?;
    let ends = Arc::new((from, to));
    each(TaskKind::Process, None, move |_| {
        let ends = Arc::clone(&ends);
        Ok(Box::new(move || {
            (&ends.1).write_all(&[1])?;
            (&ends.0).read_exact(&mut [0])
        }))
    })
}

/// share-pipe-own: each has a pipe of its own.
pub(super) fn pipe_own() -> Made {
    each(TaskKind::Process, None, |_| {
        let (mut from, mut to) = io::pipe()?;
        Ok(Box::new(move || {
            to.write_all(&[1])?;
            from.read_exact(&mut [0])
        }))
    })
}

/// share-pipe-turn: a byte goes from one process to its neighbour and back.
pub(super) fn pipe_turn() -> Made {
    let pairs = tasks()?.div_ceil(2);
    let pipes = (0..pairs)
        .map(|_| Ok([io::pipe()?, io::pipe()?]))
        .collect::<io::Result<Vec<_>>>()?;
    let pipes = Arc::new(pipes);
    each(TaskKind::Process, None, move |number| {
        let pipes = Arc::clone(&pipes);
        Ok(Box::new(move || {
            let [there, back] = &pipes[number / 2];
            if number % 2 == 0 {
                (&there.1).write_all(&[1])?;
                (&back.0).read_exact(&mut [0])
            } else {
                (&there.0).read_exact(&mut [0])?;
                (&back.1).write_all(&[1])
            }
        }))
    })
}

/// share-eventfd: threads add to one counter for events and take from it.
pub(super) fn eventfd() -> Made {
    // As a semaphore each read takes what one write gave, so none waits for long.
    // SAFETY: eventfd takes two numbers.
    let event = Arc::new(owned(unsafe { libc::eventfd(0, libc::EFD_SEMAPHORE) })?);
    each(TaskKind::Thread, None, move |_| {
        let event = Arc::clone(&event);
        Ok(Box::new(move || {
            write(&event, &1_u64.to_ne_bytes())?;
            read(&event, &mut [0; 8])
        }))
    })
}

/// share-epoll: threads ask one epoll instance, which has a descriptor that is ready.
pub(super) fn epoll() -> Made {
    // SAFETY: both take numbers.
    let (ready, epoll) = unsafe { (owned(libc::eventfd(1, 0))?, owned(libc::epoll_create1(0))?) };
    let mut wanted = libc::epoll_event {
        events: libc::EPOLLIN as u32,
        u64: 0,
    };
    // SAFETY: the struct is valid for the call.
    check(unsafe {
        libc::epoll_ctl(
            epoll.as_raw_fd(),
            libc::EPOLL_CTL_ADD,
            ready.as_raw_fd(),
            &raw mut wanted,
        )
    })?;
    let both = Arc::new((epoll, ready));
    each(TaskKind::Thread, None, move |_| {
        let both = Arc::clone(&both);
        Ok(Box::new(move || {
            let mut found = libc::epoll_event { events: 0, u64: 0 };
            // SAFETY: there is room for one event.
            check(unsafe { libc::epoll_wait(both.0.as_raw_fd(), &raw mut found, 1, 0) }).map(|_| ())
        }))
    })
}

/// share-unix: processes send a byte through one pair of unix sockets and receive one.
pub(super) fn unix() -> Made {
    let ends = Arc::new(UnixDatagram::pair()?);
    each(TaskKind::Process, None, move |_| {
        let ends = Arc::clone(&ends);
        Ok(Box::new(move || {
            ends.0.send(&[1])?;
            ends.1.recv(&mut [0]).map(|_| ())
        }))
    })
}

/// share-accept: processes connect to one listening TCP socket and accept from it.
pub(super) fn accept() -> Made {
    let listener = Arc::new(bind(TcpListener::bind)?);
    let address = listener.local_addr()?;
    each(TaskKind::Process, None, move |_| {
        let listener = Arc::clone(&listener);
        Ok(Box::new(move || {
            // Who accepts may get the other's connection, so none is reset.
            let _there = TcpStream::connect(address)?;
            listener.accept().map(drop)
        }))
    })
}

/// share-connect: processes connect to unix sockets that they listen on themselves, and accept.
pub(super) fn connect() -> Made {
    each(TaskKind::Process, None, move |_| {
        let folder = Folder::new()?;
        let path = folder.path("socket");
        let listener = UnixListener::bind(&path)?;
        Ok(Box::new(move || {
            let _keep = &folder;
            let own = UnixStream::connect(&path)?;
            let (other, _) = listener.accept()?;
            drop(own);
            drop(other);
            Ok(())
        }))
    })
}

/// share-udp: processes send a byte to one UDP socket and receive one from it.
pub(super) fn udp() -> Made {
    let receiver = Arc::new(bind(UdpSocket::bind)?);
    let address = receiver.local_addr()?;
    each(TaskKind::Process, None, move |_| {
        let (receiver, sender) = (Arc::clone(&receiver), bind(UdpSocket::bind)?);
        Ok(Box::new(move || {
            sender.send_to(&[1], address)?;
            receiver.recv(&mut [0]).map(|_| ())
        }))
    })
}

/// share-poll: threads ask for the same descriptors, of which none is ready, by poll(2).
pub(super) fn poll() -> Made {
    let asked = (0..ASKED)
        // SAFETY: eventfd takes two numbers.
        .map(|_| owned(unsafe { libc::eventfd(0, 0) }))
        .collect::<io::Result<Vec<_>>>()?;
    let asked = Arc::new(asked);
    each(TaskKind::Thread, None, move |_| {
        let asked = Arc::clone(&asked);
        Ok(Box::new(move || {
            let mut list = [libc::pollfd {
                fd: -1,
                events: libc::POLLIN,
                revents: 0,
            }; ASKED];
            for (entry, descriptor) in list.iter_mut().zip(asked.iter()) {
                entry.fd = descriptor.as_raw_fd();
            }
            // SAFETY: the list has the number of entries named.
            match check(unsafe { libc::poll(list.as_mut_ptr(), ASKED as libc::nfds_t, 0) })? {
                0 => Ok(()),
                ready => Err(io::Error::other(format!("{ready} are ready"))),
            }
        }))
    })
}

/// share-udp-turn: a datagram goes to the neighbour's socket and one comes back: each is allocated
/// on one processor and freed on the other.
pub(super) fn udp_turn() -> Made {
    let sockets = (0..tasks()?.next_multiple_of(2))
        .map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)))
        .collect::<io::Result<Vec<_>>>()?;
    for (number, socket) in sockets.iter().enumerate() {
        socket.connect(sockets[number ^ 1].local_addr()?)?;
    }
    let sockets = Arc::new(sockets);
    each(TaskKind::Process, None, move |number| {
        let sockets = Arc::clone(&sockets);
        Ok(Box::new(move || {
            let own = &sockets[number];
            if number % 2 == 0 {
                own.send(&[1])?;
                own.recv(&mut [0]).map(drop)
            } else {
                own.recv(&mut [0])?;
                own.send(&[1]).map(drop)
            }
        }))
    })
}
