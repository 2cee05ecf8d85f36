//! Clients that ask servers over TCP in the sizes of a file server's protocol, after tbench.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::partner::Partner;
use super::socket::tcp_pair;
use super::split_work::{Act, SplitWork, Step, TaskKind};
use super::{Made, Workload};
use crate::sys;

/// Requests and their answers in bytes, in about the proportions that dbench's client.txt has:
/// mostly names and attributes, of which 6 read and 2 write data.
const EXCHANGES: [(u32, u32); 24] = [
    (160, 107),  // open
    (120, 4160), // read
    (45, 39),    // close
    (120, 90),   // path information
    (160, 107),  // open
    (120, 4160), // read
    (120, 4160), // read
    (45, 39),    // close
    (120, 90),   // path information
    (140, 1200), // find
    (160, 107),  // open
    (4160, 47),  // write
    (76, 64),    // file information
    (45, 39),    // close
    (120, 90),   // path information
    (160, 107),  // open
    (120, 4160), // read
    (120, 4160), // read
    (45, 39),    // close
    (120, 90),   // path information
    (120, 39),   // unlink
    (4160, 47),  // write
    (120, 4160), // read
    (72, 53),    // file system information
];
/// Length of both at the head of a request.
const HEAD: usize = 8;
const LARGEST: usize = 8192;

struct Tbench {
    clients: SplitWork,
    _servers: Vec<Partner>,
}

impl Workload for Tbench {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        self.clients.share(Step::Run, operations)
    }
}

fn serve(mut stream: &TcpStream) -> io::Result<()> {
    let mut buffer = [0; LARGEST];
    loop {
        stream.read_exact(&mut buffer[..HEAD])?;
        let length = |at: usize| {
            let bytes = [buffer[at], buffer[at + 1], buffer[at + 2], buffer[at + 3]];
            (u32::from_le_bytes(bytes) as usize).min(LARGEST)
        };
        let (request, answer) = (length(0).max(HEAD), length(4));
        stream.read_exact(&mut buffer[HEAD..request])?;
        stream.write_all(&buffer[..answer])?;
    }
}

fn ask(mut stream: &TcpStream, buffer: &mut [u8; LARGEST]) -> io::Result<()> {
    for (request, answer) in EXCHANGES {
        buffer[..4].copy_from_slice(&request.to_le_bytes());
        buffer[4..HEAD].copy_from_slice(&answer.to_le_bytes());
        stream.write_all(&buffer[..request as usize])?;
        stream.read_exact(&mut buffer[..answer as usize])?;
    }
    Ok(())
}

/// tbench-like-N: so many clients, each with a server of its own.
pub(super) fn tbench(clients: usize) -> Made {
    sys::wake_up_politely()?;
    let mut servers = Vec::new();
    let mut acts: Vec<Act> = Vec::new();
    for _ in 0..clients {
        let (own, other) = tcp_pair()?;
        servers.push(Partner::start(move || serve(&other))?);
        let mut buffer = [0; LARGEST];
        acts.push(Box::new(move |_, operations| {
            (0..operations).try_for_each(|_| ask(&own, &mut buffer))
        }));
    }
    Ok(Box::new(Tbench {
        clients: SplitWork::start(TaskKind::Process, acts)?,
        _servers: servers,
    }))
}
