//! Packet filters: what rules of nftables cost a datagram over loopback. The rules are made by
//! netlink (`include/uapi/linux/netfilter/nf_tables.h`). In a guest only: they hold for all.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::socket::bind;
use super::{Failure, Made, Workload, in_guest};
use crate::sys::check;

/// Rules that each datagram is compared with.
const RULES: u16 = 64;
/// Ports of the rules; none is ours.
const FIRST_PORT: u16 = 20_000;
const MESSAGE: [u8; 64] = [1; 64];

// include/uapi/linux/netfilter/nfnetlink.h and nf_tables.h.
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const TABLES: u16 = 10 << 8;
const NEW_TABLE: u16 = TABLES;
const DELETE_TABLE: u16 = TABLES | 2;
const NEW_CHAIN: u16 = TABLES | 3;
const NEW_RULE: u16 = TABLES | 6;
const NESTED: u16 = 1 << 15;
const IPV4: u8 = 2;
const LOCAL_IN: u32 = 1;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
/// The first register, and the one of the verdict.
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
const TRANSPORT_HEADER: u32 = 2;
const EQUAL: u32 = 0;
const CONNECTION_STATE: u32 = 0;

/// Appends an attribute: its length, its type, the value, and what fills it up to four bytes.
fn attribute(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (value.len() + 4) as u16;
    to.extend(length.to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn number(to: &mut Vec<u8>, kind: u16, value: u32) {
    attribute(to, kind, &value.to_be_bytes());
}

fn text(to: &mut Vec<u8>, kind: u16, value: &str) {
    attribute(to, kind, format!("{value}\0").as_bytes());
}

/// Appends an expression to a rule's list: its name and its attributes.
fn expression(list: &mut Vec<u8>, name: &str, attributes: &[u8]) {
    let mut content = Vec::new();
    text(&mut content, 1, name);
    attribute(&mut content, 2 | NESTED, attributes);
    attribute(list, 1 | NESTED, &content);
}

/// Expression: compares the register with a value; the rule ends if it is another one.
fn compare(list: &mut Vec<u8>, value: &[u8]) {
    let mut data = Vec::new();
    attribute(&mut data, 1, value);
    let mut attributes = Vec::new();
    number(&mut attributes, 1, REGISTER);
    number(&mut attributes, 2, EQUAL);
    attribute(&mut attributes, 3 | NESTED, &data);
    expression(list, "cmp", &attributes);
}

/// Expression: the end of the datagram's way.
fn verdict(list: &mut Vec<u8>, code: u32) {
    let mut value = Vec::new();
    number(&mut value, 1, code);
    let mut data = Vec::new();
    attribute(&mut data, 2 | NESTED, &value);
    let mut attributes = Vec::new();
    number(&mut attributes, 1, VERDICT);
    attribute(&mut attributes, 2 | NESTED, &data);
    expression(list, "immediate", &attributes);
}

/// A rule that drops what goes to a port.
fn port_rule(port: u16) -> Vec<u8> {
    let mut list = Vec::new();
    let mut load = Vec::new();
    for (kind, value) in [(1, REGISTER), (2, TRANSPORT_HEADER), (3, 2), (4, 2)] {
        number(&mut load, kind, value);
    }
    expression(&mut list, "payload", &load);
    compare(&mut list, &port.to_be_bytes());
    verdict(&mut list, DROP);
    list
}

/// A rule that drops what belongs to no state of a connection: nothing.
fn connection_rule() -> Vec<u8> {
    let mut list = Vec::new();
    let mut load = Vec::new();
    number(&mut load, 1, REGISTER);
    number(&mut load, 2, CONNECTION_STATE);
    expression(&mut list, "ct", &load);
    compare(&mut list, &0u32.to_ne_bytes());
    verdict(&mut list, DROP);
    list
}

/// Messages that take effect together.
struct Batch {
    bytes: Vec<u8>,
    sequence: u32,
}

impl Batch {
    fn new() -> Self {
        let mut batch = Self {
            bytes: Vec::new(),
            sequence: 0,
        };
        batch.message(BATCH_BEGIN, 0, &[]);
        batch
    }

    /// Appends a message: its header, the family and the subsystem of a batch, and attributes.
    fn message(&mut self, kind: u16, flags: i32, attributes: &[u8]) {
        let is_frame = matches!(kind, BATCH_BEGIN | BATCH_END);
        let flags = flags | libc::NLM_F_REQUEST;
        let length = (20 + attributes.len()) as u32;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((flags as u16).to_ne_bytes());
        self.bytes.extend(self.sequence.to_ne_bytes());
        self.bytes.extend(0u32.to_ne_bytes());
        self.bytes.extend([if is_frame { 0 } else { IPV4 }, 0]);
        let subsystem = if is_frame { TABLES >> 8 } else { 0 };
        self.bytes.extend(subsystem.to_be_bytes());
        self.bytes.extend(attributes);
        self.sequence += 1;
    }

    /// Sends it all; the last message before the end answers.
    fn send(mut self) -> io::Result<()> {
        let answering = self.sequence - 1;
        self.message(BATCH_END, 0, &[]);
        // SAFETY: takes no memory of ours.
        let raw = check(unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                libc::NETLINK_NETFILTER,
            )
        })?;
        // SAFETY: the call just opened it, and it is nowhere else.
        let socket = unsafe { OwnedFd::from_raw_fd(raw as i32) };
        // SAFETY: the bytes have the length named.
        check(unsafe {
            libc::send(
                socket.as_raw_fd(),
                self.bytes.as_ptr().cast(),
                self.bytes.len(),
                0,
            )
        } as i64)?;
        let mut answer = [0u8; 4096];
        loop {
            // SAFETY: the buffer has the length named.
            let length = check(unsafe {
                libc::recv(
                    socket.as_raw_fd(),
                    answer.as_mut_ptr().cast(),
                    answer.len(),
                    0,
                )
            } as i64)?;
            let Some(answer) = answer.get(..length as usize).filter(|all| all.len() >= 20) else {
                return Err(io::Error::other("netlink answers too short"));
            };
            // The header's sequence number, and behind the header the error.
            let sequence = u32::from_ne_bytes([answer[8], answer[9], answer[10], answer[11]]);
            let error = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
            if error != 0 {
                return Err(io::Error::from_raw_os_error(-error));
            }
            if sequence == answering {
                return Ok(());
            }
        }
    }
}

/// The table of this workload; removed when dropped.
struct Table;

impl Table {
    fn new(rules: &[Vec<u8>]) -> Result<Self, Failure> {
        let mut batch = Batch::new();
        let mut table = Vec::new();
        text(&mut table, 1, "marvin");
        batch.message(NEW_TABLE, libc::NLM_F_CREATE, &table);
        let mut hook = Vec::new();
        number(&mut hook, 1, LOCAL_IN);
        number(&mut hook, 2, 0);
        let mut chain = Vec::new();
        text(&mut chain, 1, "marvin");
        text(&mut chain, 3, "input");
        attribute(&mut chain, 4 | NESTED, &hook);
        number(&mut chain, 5, ACCEPT);
        text(&mut chain, 7, "filter");
        batch.message(NEW_CHAIN, libc::NLM_F_CREATE, &chain);
        for (list, left) in rules.iter().zip((0..rules.len()).rev()) {
            let mut rule = Vec::new();
            text(&mut rule, 1, "marvin");
            text(&mut rule, 2, "input");
            attribute(&mut rule, 4 | NESTED, list);
            let answers = if left == 0 { libc::NLM_F_ACK } else { 0 };
            let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND | answers;
            batch.message(NEW_RULE, flags, &rule);
        }
        match batch.send() {
            Ok(()) => Ok(Self),
            // No such subsystem of netlink, no such expression.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOENT)) => {
                Err(Failure::Unsupported(format!(
                    "the kernel has no nftables, or not all of it: {error}"
                )))
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let mut batch = Batch::new();
        let mut table = Vec::new();
        text(&mut table, 1, "marvin");
        batch.message(DELETE_TABLE, libc::NLM_F_ACK, &table);
        // The guest ends anyway.
        batch.send().ok();
    }
}

struct Datagrams {
    from: UdpSocket,
    to: UdpSocket,
    _table: Table,
}

impl Workload for Datagrams {
    fn run(&mut self, operations: u64) -> io::Result<()> {
        let mut message = MESSAGE;
        for _ in 0..operations {
            self.from.send(&message)?;
            self.to.recv(&mut message)?;
        }
        Ok(())
    }
}

fn datagrams(rules: &[Vec<u8>]) -> Made {
    if !in_guest() {
        return Err(Failure::Unsupported(
            "needs a guest: its rules hold for all".to_owned(),
        ));
    }
    let to = bind(UdpSocket::bind)?;
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    from.connect(to.local_addr()?)?;
    Ok(Box::new(Datagrams {
        _table: Table::new(rules)?,
        from,
        to,
    }))
}

/// netfilter-rules: a datagram passes rules about other ports.
pub(super) fn rules() -> Made {
    let rules: Vec<Vec<u8>> = (0..RULES).map(|n| port_rule(FIRST_PORT + n)).collect();
    datagrams(&rules)
}

/// netfilter-ct: the connection of a datagram is looked up.
pub(super) fn conntrack() -> Made {
    datagrams(&[connection_rule()])
}

#[cfg(test)]
mod tests {
    use super::{Batch, NEW_TABLE, attribute, text};

    #[test]
    fn attributes_fill_four_bytes() {
        let mut bytes = Vec::new();
        text(&mut bytes, 1, "abc");
        attribute(&mut bytes, 2, &[9; 5]);
        assert_eq!(bytes.len(), 8 + 12);
        assert_eq!(&bytes[..8], &[8, 0, 1, 0, b'a', b'b', b'c', 0]);
        assert_eq!(&bytes[8..12], &[9, 0, 2, 0], "the length without the fill");
    }

    #[test]
    fn messages_name_their_length() {
        let mut batch = Batch::new();
        batch.message(NEW_TABLE, 0, &[0; 12]);
        assert_eq!(batch.bytes.len(), 20 + 32);
        assert_eq!(batch.bytes[0], 20);
        assert_eq!(batch.bytes[20], 32);
        assert_eq!(batch.bytes[18..20], [0, 10], "the batch is of nf_tables");
    }
}
