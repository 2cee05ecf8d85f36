//! Parses the files of /proc that tell of threads, processes and cgroups. Any bytes are fine: what
//! is not understood is `None`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Ticks per second in stat files: USER_HZ (include/asm-generic/param.h).
pub(crate) const TICKS: f64 = 100.0;

/// What `/proc/PID/stat` and `/proc/PID/task/TID/stat` tell (Documentation/filesystems/proc.rst).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    /// In ticks of 1/100 s, as all times here.
    pub(crate) user: u64,
    pub(crate) system: u64,
    /// Of children that it waited for.
    pub(crate) reaped_user: u64,
    pub(crate) reaped_system: u64,
}

/// Parses a line of stat. A name may contain blanks and parentheses: the last one ends it.
pub(crate) fn stat(text: &str) -> Option<Stat> {
    let (before, after) = text.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_whitespace().collect();
    // Field 3 of the documentation is the first here.
    let number = |field: usize| fields.get(field - 3)?.parse().ok();
    Some(Stat {
        name,
        state: fields.first()?.chars().next()?,
        minor_faults: number(10)?,
        major_faults: number(12)?,
        user: number(14)?,
        system: number(15)?,
        reaped_user: number(16)?,
        reaped_system: number(17)?,
    })
}

/// Returns a command line as it would be typed, without quotes, of the words of `cmdline`.
pub(crate) fn command(text: &str) -> String {
    let words = text
        .split('\0')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    words.join(" ").replace(char::is_control, " ")
}

/// Parses schedstat: time on a processor and runnable without one (ns).
pub(crate) fn schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

/// Where a blocked thread is, as `/proc/TID/syscall` tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its number; `None` if it is blocked outside of system calls.
    pub(crate) number: Option<u64>,
    /// Its first four arguments.
    pub(crate) arguments: [u64; 4],
    pub(crate) stack_pointer: u64,
    pub(crate) program_counter: u64,
}

/// Parses it; `None` while the thread runs.
pub(crate) fn syscall(text: &str) -> Option<Call> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let number: i64 = fields.first()?.parse().ok()?;
    let [.., stack_pointer, program_counter] = fields.as_slice() else {
        return None;
    };
    let mut arguments = [0; 4];
    if let Some(given) = fields.get(1..5).filter(|_| fields.len() > 5) {
        for (argument, field) in arguments.iter_mut().zip(given) {
            *argument = parse_address(field)?;
        }
    }
    Some(Call {
        number: u64::try_from(number).ok(),
        arguments,
        stack_pointer: parse_address(stack_pointer)?,
        program_counter: parse_address(program_counter)?,
    })
}

fn parse_address(field: &str) -> Option<u64> {
    u64::from_str_radix(field.trim_start_matches("0x"), 16).ok()
}

/// Returns the number behind a key of a file with a pair in each line, as in status, io, vmstat,
/// cpu.stat.
pub(crate) fn value(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?.strip_prefix([':', ' ', '\t'])?;
        rest.split_whitespace().next()?.parse().ok()
    })
}

/// Returns a value in octal digits, as `fdinfo` has the flags of an open file.
pub(crate) fn octal(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let rest = line.strip_prefix(key)?.strip_prefix(':')?;
        u64::from_str_radix(rest.trim(), 8).ok()
    })
}

/// Counts the processors in a list such as `0-3,8`.
pub(crate) fn processors(list: &str) -> usize {
    list.trim()
        .split(',')
        .filter_map(|part: &str| -> Option<usize> {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (usize, usize) =
                (first.trim().parse().ok()?, last.trim().parse().ok()?);
            Some((last + 1).saturating_sub(first))
        })
        .sum()
}

/// The time of the host's processors, in ticks: the first line of `/proc/stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct HostTimes {
    pub(crate) busy: u64,
    pub(crate) idle: u64,
    pub(crate) interrupts: u64,
    pub(crate) steal: u64,
}

pub(crate) fn host_times(text: &str) -> Option<HostTimes> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = fields[..] else {
        return None;
    };
    Some(HostTimes {
        busy: user + nice + system,
        idle: idle + iowait,
        interrupts: irq + softirq,
        steal,
    })
}

/// Returns the total of the line `some` of a file of `/proc/pressure` (µs).
pub(crate) fn pressure(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("some"))?;
    line.split_whitespace()
        .find_map(|field| field.strip_prefix("total=")?.parse().ok())
}

/// A socket of `/proc/net/tcp` and its like (Documentation/networking/proc_net_tcp.rst).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SocketRow {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
    /// Whether clients connect to it.
    pub(crate) is_listening: bool,
    /// Bytes that were written and not acknowledged.
    pub(crate) unsent: u64,
    /// Bytes that arrived and were not read.
    pub(crate) unread: u64,
    pub(crate) inode: u64,
}

impl SocketRow {
    /// Returns whether it has a peer.
    pub(crate) fn is_connected(&self) -> bool {
        self.remote.port() != 0
    }
}

/// TCP_LISTEN (include/net/tcp_states.h).
const LISTENING: &str = "0A";

/// Parses such a file; lines that it does not understand are left out.
pub(crate) fn sockets(text: &str) -> Vec<SocketRow> {
    text.lines().filter_map(socket).collect()
}

fn socket(line: &str) -> Option<SocketRow> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (unsent, unread) = fields.get(4)?.split_once(':')?;
    Some(SocketRow {
        local: socket_address(fields.get(1)?)?,
        remote: socket_address(fields.get(2)?)?,
        is_listening: *fields.get(3)? == LISTENING,
        unsent: parse_hex(unsent)?,
        unread: parse_hex(unread)?,
        inode: fields.get(9)?.parse().ok()?,
    })
}

/// Parses `0100007F:0050`. An IPv4 address in IPv6 becomes an IPv4 address: of two ends of a
/// connection one may have the one form and one the other.
fn socket_address(field: &str) -> Option<SocketAddr> {
    let (address, port) = field.split_once(':')?;
    // Words of 32 bits in the host's order; the host is little-endian.
    let words: Option<Vec<u32>> = (0..address.len() / 8)
        .map(|n| {
            let word = u32::from_str_radix(address.get(8 * n..8 * n + 8)?, 16);
            Some(word.ok()?.swap_bytes())
        })
        .collect();
    let ip: IpAddr = match words?.as_slice() {
        [one] => Ipv4Addr::from(*one).into(),
        [a, b, c, d] => {
            let all = [a, b, c, d]
                .iter()
                .fold(0_u128, |all, word| all << 32 | u128::from(**word));
            Ipv6Addr::from(all).into()
        }
        _ => return None,
    };
    Some(SocketAddr::new(
        ip.to_canonical(),
        u16::from_str_radix(port, 16).ok()?,
    ))
}

/// A lock of a file in `/proc/locks` (Documentation/filesystems/locks.rst).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileLock {
    /// The lock that it belongs to: that of a holder and of those who wait for it.
    pub(crate) number: u64,
    /// Whether the process waits for it.
    pub(crate) is_waiting: bool,
    pub(crate) is_write: bool,
    /// The process; 0 if it belongs to an open file, or to another namespace.
    pub(crate) process: u32,
    /// The inode of the file.
    pub(crate) inode: u64,
}

/// Parses it; lines that it does not understand are left out.
pub(crate) fn file_locks(text: &str) -> Vec<FileLock> {
    text.lines().filter_map(file_lock).collect()
}

fn file_lock(line: &str) -> Option<FileLock> {
    let (number, rest) = line.split_once(':')?;
    let rest = rest.trim_start();
    let waiting = rest.strip_prefix("->");
    let fields: Vec<&str> = waiting.unwrap_or(rest).split_whitespace().collect();
    let [_, _, access, process, file, ..] = fields[..] else {
        return None;
    };
    Some(FileLock {
        number: number.trim().parse().ok()?,
        is_waiting: waiting.is_some(),
        is_write: access == "WRITE",
        process: process.parse().unwrap_or_default(),
        inode: file.rsplit(':').next()?.parse().ok()?,
    })
}

/// Returns the files that an epoll file watches, of the text of its fdinfo
/// (Documentation/filesystems/proc.rst).
pub(crate) fn watched_files(text: &str) -> Vec<u64> {
    let files = text.lines().filter_map(|line| line.strip_prefix("tfd:"));
    files
        .filter_map(|rest| rest.split_whitespace().next()?.parse().ok())
        .collect()
}

/// A mapping of `/proc/PID/maps`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) is_executable: bool,
    pub(crate) offset: u64,
    /// The device of the file: major and minor number.
    pub(crate) device: (u32, u32),
    /// Its inode; 0 without a file.
    pub(crate) inode: u64,
    /// A file, `[heap]`, `[stack]` or empty, as the kernel shows it.
    pub(crate) raw_path: String,
    /// The same without the note that the file was deleted.
    pub(crate) path: String,
}

/// Parses `/proc/PID/maps`; lines that it does not understand are left out.
pub(crate) fn maps(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let offset = parse_hex(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let device = (number(major)?, number(minor)?);
    let inode = fields.next()?.parse().ok()?;
    let path = fields.next().unwrap_or_default().trim();
    Some(Mapping {
        start: parse_hex(start)?,
        end: parse_hex(end)?,
        is_executable: rights.contains('x'),
        offset,
        device,
        inode,
        raw_path: path.to_owned(),
        path: path.trim_end_matches(" (deleted)").to_owned(),
    })
}

fn parse_hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_may_contain_parentheses() {
        let line = "7 (a) b) S 1 7 7 0 -1 4194304 125 0 3 0 11 12 13 14 20 0 1 0 39086 2990080 445 18446744073709551615";
        let stat = stat(line).unwrap();
        assert_eq!((stat.name.as_str(), stat.state), ("a) b", 'S'));
        assert_eq!(
            (
                stat.minor_faults,
                stat.major_faults,
                stat.user,
                stat.reaped_system
            ),
            (125, 3, 11, 14)
        );
    }

    #[test]
    fn blocked_thread_tells_call_and_stack() {
        let call = syscall("202 0x7f0f8582e220 0x80 0x2 0x0 0x0 0x0 0x7ffc40f68248 0x7f18bb76b2ad")
            .unwrap();
        assert_eq!(
            (call.number, call.arguments[0], call.program_counter),
            (Some(202), 0x7f0f_8582_e220, 0x7f18_bb76_b2ad)
        );
        assert_eq!(syscall("running\n"), None);
        assert_eq!(
            syscall("-1 0x7ffc40f68248 0x7f18bb76b2ad").unwrap().number,
            None
        );
    }

    #[test]
    fn sockets_have_both_addresses() {
        let tcp = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                   0: 0100007F:C350 0100007F:0050 01 0000003C:00000007 00:00000000 00000000     0        0 4242 1 0\n\
                   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1 0\n";
        let rows = sockets(tcp);
        let [one, listening] = &rows[..] else {
            panic!("{rows:?}")
        };
        assert_eq!(
            (one.local.to_string(), one.remote.to_string()),
            ("127.0.0.1:50000".to_owned(), "127.0.0.1:80".to_owned())
        );
        assert_eq!((one.unsent, one.unread, one.inode), (60, 7, 4242));
        assert!(one.is_connected() && listening.is_listening && !listening.is_connected());
        let six = sockets(
            "0: 0000000000000000FFFF00000100007F:0035 B80D0120000000000000000001000000:0035 01 0:0 0:0 0 0 0 9 1\n",
        );
        assert_eq!(six[0].remote.to_string(), "[2001:db8::1]:53");
        assert_eq!(six[0].local.to_string(), "127.0.0.1:53");
    }

    #[test]
    fn waiters_have_the_number_of_their_lock() {
        let text = "1: FLOCK  ADVISORY  WRITE 100 08:01:4242 0 EOF\n\
                    1: -> FLOCK  ADVISORY  WRITE 101 08:01:4242 0 EOF\n\
                    2: OFDLCK ADVISORY  READ -1 00:2f:7 0 EOF\n";
        let locks = file_locks(text);
        let seen: Vec<_> = locks
            .iter()
            .map(|lock| (lock.number, lock.is_waiting, lock.process, lock.inode))
            .collect();
        assert_eq!(
            seen,
            [
                (1, false, 100, 4242),
                (1, true, 101, 4242),
                (2, false, 0, 7)
            ]
        );
        assert!(locks[0].is_write && !locks[2].is_write);
    }

    #[test]
    fn epoll_names_what_it_watches() {
        let text = "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5\ntfd:       12 events: 1\n";
        assert_eq!(watched_files(text), [5, 12]);
    }

    #[test]
    fn processors_are_counted_in_lists() {
        assert_eq!(["0-1", "0", "0-3,8", ""].map(processors), [2, 1, 5, 0]);
    }

    #[test]
    fn deleted_file_keeps_its_path() {
        let mapping = &maps(
            "7f00-7f10 r-xp 00001000 08:01 42                         /usr/lib/a b.so (deleted)\n",
        )[0];
        assert_eq!(
            (mapping.path.as_str(), mapping.offset, mapping.is_executable),
            ("/usr/lib/a b.so", 0x1000, true)
        );
        assert_eq!(
            (mapping.raw_path.as_str(), mapping.device),
            ("/usr/lib/a b.so (deleted)", (8, 1))
        );
        assert_eq!(mapping.inode, 42);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,200}") {
            let _ = (
                stat(&text),
                schedstat(&text),
                syscall(&text),
                host_times(&text),
                pressure(&text),
                maps(&text),
            );
            let _ = (value(&text, "a"), processors(&text), sockets(&text));
            let _ = (file_locks(&text), watched_files(&text));
        }
    }
}
