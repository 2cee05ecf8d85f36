//! Rules of sockets with a peer: whom they wait for, what limits what is sent, and what is not read.

use std::collections::BTreeSet;

use crate::budget::{View, is_for_own};
use crate::facts::{Thread, Wait, WatchedKind};
use crate::finding::{Finding, percent};
use crate::waits::{
    NETWORK_CALLS, POLLS, SOCKETS, chain, is_call, is_file, is_held, is_in, own_path,
};

use super::blocked::{blocked, described};

/// Small writes that wait for the acknowledgement of earlier ones, which the receiver delays
/// (net/ipv4/tcp_output.c: tcp_nagle_check; include/net/tcp.h: TCP_DELACK_MIN).
pub(super) fn nagle(view: &View) -> Option<Finding> {
    let first = view.waits.iter().find(|wait| is_held(wait))?;
    let connection = first.connection?;
    let [own, peer] = connection.held;
    let writer = if own >= peer { "its" } else { "its peer's" };
    let at = described(first);
    let finding = blocked(view, is_held, "a slow peer, the network", |from| {
        format!(
            "{writer} small writes wait for the acknowledgement of earlier ones, about 40 ms each: Nagle's algorithm \
             and delayed acknowledgements{at}{}",
            from.unwrap_or_default()
        )
    })?;
    Some(
        finding
            .with(
                format!(
                    "less than a segment written and not sent at {} of {} looks",
                    own.max(peer),
                    connection.looks
                ),
                "NETLINK_SOCK_DIAG, tcp_info",
                "30 %",
                "",
            )
            .advise("Write a message with one call (writev, a buffer), or set TCP_NODELAY.")
            .look("ss -tinp"),
    )
}

/// The least part of the time with something to send in which a buffer limits it.
const LIMITED: f64 = 0.5;

/// A sender that its own buffer or the receiver's window limits.
pub(super) fn tcp_limits(view: &View) -> Option<Finding> {
    let part = |wait: &Wait, of: fn(&crate::facts::Tcp) -> u64| {
        let tcp = wait.connection.map(|connection| connection.tcp);
        tcp.map_or(0.0, |tcp| of(&tcp) as f64 / tcp.busy_us.max(1) as f64)
    };
    let by_buffer = |wait: &Wait| part(wait, |tcp| tcp.buffer_limited_us) >= LIMITED;
    let by_receiver = |wait: &Wait| part(wait, |tcp| tcp.receiver_limited_us) >= LIMITED;
    let is_limited = |wait: &Wait| by_buffer(wait) || by_receiver(wait);
    let first = view.waits.iter().find(|wait| is_limited(wait))?;
    let tcp = first.connection?.tcp;
    let at = described(first);
    let (what, parted, advice) = if by_buffer(first) {
        (
            format!(
                "its own send buffer (SO_SNDBUF, tcp_wmem) limits what it sends, with a round trip of {} µs{at}",
                tcp.round_trip_us
            ),
            tcp.buffer_limited_us,
            "Leave SO_SNDBUF alone, so that the kernel enlarges the buffer, or set more.",
        )
    } else {
        let behind = chain(view.facts, first);
        (
            format!("the receiver's window is full, because the peer reads too slowly{at}{behind}"),
            tcp.receiver_limited_us,
            "Explain the peer, or let it have a larger buffer (SO_RCVBUF, tcp_rmem).",
        )
    };
    let finding = blocked(view, is_limited, "", |from| {
        format!("{what}{}", from.unwrap_or_default())
    })?;
    let of_busy = percent(parted as f64 / tcp.busy_us.max(1) as f64);
    Some(
        finding
            .with(
                format!("limited for {of_busy} of the time with something to send"),
                "NETLINK_SOCK_DIAG, tcp_info",
                "50 %",
                "",
            )
            .advise(advice)
            .look("ss -tinp"),
    )
}

pub(super) fn network(view: &View) -> Option<Finding> {
    let is_socket = |wait: &Wait| {
        (is_in(wait, &SOCKETS)
            || is_call(wait, &NETWORK_CALLS)
            || (is_file(wait, "socket") && !is_call(wait, &POLLS))
            || is_one_socket(wait))
            && !is_call(wait, &["accept"])
            && !is_held(wait)
            && !is_for_own(view.facts, wait)
    };
    let first = view.waits.iter().find(|wait| is_socket(wait))?;
    let peer = match first.watched.as_slice() {
        [one] => format!(" ({})", one.file),
        _ => described(first),
    };
    let lookup = first.stack.iter().find(|function| is_name_lookup(function));
    let is_lookup = lookup.is_some() || peer.contains("udp") && peer.contains(":53");
    let behind = new_connections(view, is_socket) + &chain(view.facts, first);
    let is_connecting = first.call == "connect" && peer.contains("tcp");
    let what = match lookup.and_then(|function| function.split(" (").next()) {
        Some(function) => format!("a name server ({function})"),
        None if is_lookup => "a name server".into(),
        None if is_connecting => {
            "the answer to a connect, whose SYN is not answered: the peer's listen queue (its backlog) is full, or it is not reached".into()
        }
        None => "the peer of a socket".into(),
    };
    let unread = first
        .connection
        .filter(|connection| 2 * connection.unread > connection.looks);
    let finding = blocked(view, is_socket, "", |from| {
        format!(
            "it waits for {what}{peer}{}{behind}{}",
            from.unwrap_or_default(),
            other_reader(view, first)
        )
    })?;
    let finding = match unread {
        Some(connection) => finding.with(
            format!(
                "the peer had not read what had arrived at {} of {} looks",
                connection.unread, connection.looks
            ),
            "/proc/net/tcp, rx_queue",
            "50 %",
            "the network",
        ),
        None => finding,
    };
    let advice = if is_lookup {
        "Look at the name servers (/etc/resolv.conf), or keep addresses."
    } else if behind.is_empty() {
        "Look at the peer; it is on another host, or its process was not found."
    } else {
        "Explain the peer: marvin explain --pid PID."
    };
    Some(finding.advise(advice).look("ss -tunp"))
}

/// The part of the observed time that another thread waits all along.
const LASTING: f64 = 0.5;
/// Wake-ups per second up to which a reader got nothing: it began, and it is looked at.
const SILENT: f64 = 10.0;
/// Calls that read of a socket.
const READS: [&str; 4] = ["recvfrom", "recvmsg", "read", "readv"];

/// Returns where another thread of the program waits all along for what the peer of another socket
/// sends, as the end of a sentence.
fn other_reader(view: &View, first: &Wait) -> String {
    let facts = view.facts;
    let is_other = |wait: &&Wait| {
        let is_socket = is_in(wait, &SOCKETS) || is_file(wait, "socket");
        let of_wait = facts
            .threads
            .iter()
            .filter(|one| wait.threads.contains(&one.id));
        // One that has something to read now and then wakes up.
        let wakeups: u64 = of_wait.map(|thread| thread.voluntary).sum();
        let mut threads = wait.threads.iter();
        is_call(wait, &READS)
            && is_socket
            && view.per_second(wakeups) <= SILENT
            && threads.all(|thread| !first.threads.contains(thread))
    };
    let others = facts.waits.iter().filter(is_other);
    let lasting = others.filter(|wait| wait.seconds >= LASTING * facts.seconds);
    let longest = lasting.max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let Some(wait) = longest else {
        return String::new();
    };
    let from = own_path(wait).map_or_else(String::new, |path| format!(" in {path}"));
    format!(
        "; another thread of it waits for a peer that sends nothing{}{from}",
        described(wait)
    )
}

/// Whether a function of the C library looks up a name (resolv/, nss/getXXbyYY.c).
fn is_name_lookup(function: &str) -> bool {
    let names = [
        "getnameinfo",
        "getaddrinfo",
        "gethostby",
        "res_query",
        "res_search",
        "res_send",
    ];
    names
        .iter()
        .any(|name| function.trim_start_matches('_').starts_with(name))
}

/// Sockets per second and thread from which on a program connects anew each time.
const CONNECTING: f64 = 1.0;
/// And at least so many.
const CONNECTIONS: usize = 5;

/// Returns that threads wait at ever new sockets, as the end of a sentence; empty if they do not.
fn new_connections(view: &View, is_socket: impl Fn(&Wait) -> bool) -> String {
    let waits = view.waits.iter().filter(|wait| is_socket(wait));
    let ids: BTreeSet<u32> = waits
        .flat_map(|wait| wait.threads.iter().copied())
        .collect();
    let threads = view.active.iter().filter(|thread| ids.contains(&thread.id));
    let most = threads.max_by_key(|thread| thread.sockets);
    let is_often = |one: &&&Thread| {
        one.sockets >= CONNECTIONS && one.sockets as f64 >= CONNECTING * one.total_s
    };
    let Some(thread) = most.filter(is_often) else {
        return String::new();
    };
    format!(
        "; it makes a new connection each time (at least {} in {:.1} s)",
        thread.sockets, thread.total_s
    )
}

/// The part of the kernel's samples in connecting that makes connections many.
const IN_CONNECT: f64 = 0.1;

/// Returns that a program connects again and again, by its samples in the kernel, as the end of a
/// sentence; empty if it does not.
pub(crate) fn connecting(view: &View) -> String {
    let of_kernel = super::system::of_kernel(view, |stack| stack.call() == Some("connect"));
    if of_kernel < IN_CONNECT {
        return String::new();
    }
    let part = percent(of_kernel);
    format!(
        "; it opens new connections again and again (connect has {part} of its work in the kernel)"
    )
}

/// Whether a thread polls one socket with a peer, as clients with a timeout do.
pub(super) fn is_one_socket(wait: &Wait) -> bool {
    is_call(wait, &POLLS)
        && matches!(wait.watched.as_slice(), [one] if one.kind == WatchedKind::Socket)
}

/// Returns that sockets have something that a waiting program does not read, as the end of a
/// sentence; empty if they do not.
pub(super) fn unread(view: &View) -> String {
    let Some(unread) = &view.facts.unread else {
        return String::new();
    };
    let file = &unread.file;
    match (unread.sockets, unread.bytes) {
        (1, bytes) => format!("; it does not read {bytes} bytes that lie in {file}"),
        (sockets, bytes) => {
            format!(
                "; it does not read {bytes} bytes that lie in {sockets} sockets, such as {file}"
            )
        }
    }
}
