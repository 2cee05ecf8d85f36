//! Who has the other end of a pipe or a socket on this host, and who holds a lock of a file.
//!
//! A host may have very many open files: they are listed once for all pipes and sockets, and again
//! only after a hundred times as long as that took.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use explain::facts::{Tcp, WatchedKind};
use rustix::process::geteuid;

use crate::diag::{self, UnixSocket};
use crate::proc::{self, FileLock, SocketRow};
use crate::tree::{entries, find_processes, read};

/// The time between two lists, as a multiple of what the last one took, and at least.
const PAUSE: u32 = 100;
/// The same if something is missing in the list.
const PAUSE_MISSING: u32 = 20;
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// Processes that are named for a file.
const NAMED: usize = 2;
/// Sockets of a process that are looked at for what is unread, and files among which they are.
const UNREAD_MAX: usize = 256;
const OPEN_MAX: usize = 1024;
/// Processes that are followed for a file.
const PEERS: usize = 4;

/// A process's open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenFile {
    process: u32,
    number: u32,
}

/// Something that is listed again from time to time.
#[derive(Debug, Default)]
struct Listed<T> {
    content: T,
    /// When it was listed, and how long that took.
    taken: Option<(Instant, Duration)>,
}

impl<T> Listed<T> {
    /// Lists anew if it is time, or earlier if what is wanted is not in the list.
    fn refresh(&mut self, list: impl FnOnce() -> T, has_wanted: impl FnOnce(&T) -> bool) {
        let is_fresh = |(at, took): (Instant, Duration)| {
            let pause = if has_wanted(&self.content) {
                PAUSE_MIN.max(took * PAUSE)
            } else {
                took * PAUSE_MISSING
            };
            at.elapsed() < pause
        };
        if !self.taken.is_some_and(is_fresh) {
            let begun = Instant::now();
            self.content = list();
            self.taken = Some((begun, begun.elapsed()));
        }
    }
}

/// A socket in the table of its kind.
#[derive(Debug, Clone, Copy)]
struct Socket {
    kind: &'static str,
    row: SocketRow,
}

/// The processes of the program: the first one, and those that the last round saw.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) root: u32,
    pub(crate) alive: &'a BTreeSet<u32>,
}

#[derive(Debug, Default)]
pub(crate) struct Ends {
    /// Open files of all processes, by the text of their links.
    files: Listed<BTreeMap<String, Vec<OpenFile>>>,
    /// Sockets by network namespace.
    sockets: BTreeMap<PathBuf, Listed<Vec<Socket>>>,
    unix: Listed<BTreeMap<u64, UnixSocket>>,
    tcp: Listed<BTreeMap<u64, Tcp>>,
    locks: Listed<Vec<FileLock>>,
    /// The processes of the program.
    own: Listed<BTreeSet<u32>>,
}

/// An open file and who has its other end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Described {
    pub(crate) text: String,
    pub(crate) kind: Option<WatchedKind>,
    /// Processes that have the other end.
    pub(crate) peers: Vec<u32>,
    /// The inodes of both ends of a connection; 0 for a peer on another host.
    pub(crate) connection: Option<(u64, u64)>,
}

impl Ends {
    /// Describes a file that is no pipe: a socket by its peer, beginning with `own` if a process of
    /// the program, of which `alive` has all, has the other end.
    pub(crate) fn describe(&mut self, process: u32, link: String, own: Own) -> Described {
        match socket_inode(&link) {
            Some(inode) => self.socket(process, inode, link, own),
            None => Described {
                kind: Some(kind_of(&link)),
                text: link,
                ..Described::default()
            },
        }
    }

    /// Describes a pipe by who has its other end, beginning with `own` as for sockets.
    pub(crate) fn describe_pipe(
        &mut self,
        process: u32,
        number: u64,
        link: &str,
        own: Own,
    ) -> Described {
        let own_access = access(process, number);
        // The end that reads waits for those that write, and the other way round.
        let is_peer = |other: &OpenFile| {
            let theirs = access(other.process, other.number.into());
            other.process != process
                && other.process != std::process::id()
                && theirs.is_some()
                && theirs != own_access
        };
        let mut peers: Vec<u32> = distinct(self.open(link).iter().filter(|other| is_peer(other)));
        let is_self = peers.is_empty() && self.has_both_ends(process, link, own_access);
        if peers.is_empty() && !is_self {
            peers = self.young(process, link, own);
        }
        // A pipe without another end ends the wait. Root sees all processes: that of this one has
        // ended since, as children do that live shorter than a round.
        let is_of_ended = peers.is_empty() && !is_self && geteuid().is_root();
        let is_own = self.is_any_own(&peers, own) || is_of_ended;
        Described {
            text: if is_own || is_self {
                format!("own {link}")
            } else if peers.is_empty() {
                link.to_owned()
            } else {
                format!("{link} of process {}", named(&peers))
            },
            kind: Some(if is_self {
                WatchedKind::Own
            } else {
                WatchedKind::Pipe
            }),
            peers,
            connection: None,
        }
    }

    /// Whether the process itself has the other end, too.
    fn has_both_ends(&mut self, process: u32, link: &str, own: Option<u64>) -> bool {
        let mut ends = self.open(link).iter().filter(|end| end.process == process);
        ends.any(|end| {
            let access = access(process, end.number.into());
            access.is_some() && access != own
        })
    }

    fn socket(&mut self, process: u32, inode: u64, link: String, own: Own) -> Described {
        let sockets = self.sockets(process, inode);
        let Some(this) = sockets
            .iter()
            .find(|socket| socket.row.inode == inode)
            .copied()
        else {
            return self.unix_socket(process, inode, link, own);
        };
        if this.row.is_listening {
            return Described {
                text: format!("socket, {} at {}", this.kind, this.row.local),
                kind: Some(WatchedKind::Listening),
                ..Described::default()
            };
        }
        if !this.row.is_connected() {
            return Described {
                text: link,
                kind: Some(WatchedKind::Socket),
                ..Described::default()
            };
        }
        let other = sockets.iter().find(|socket| {
            socket.row.local == this.row.remote && socket.row.remote == this.row.local
        });
        let other = other.map(|socket| socket.row.inode);
        let remote = this.row.remote;
        let text = format!("socket, {} to {remote}", this.kind);
        let ends = other.map_or_else(Vec::new, |inode| self.socket_ends(process, inode, own));
        let is_own = ends.contains(&process) || self.is_any_own(&ends, own);
        Described {
            text: with_peers(text, &ends, is_own),
            kind: Some(WatchedKind::Socket),
            peers: ends.into_iter().filter(|peer| *peer != process).collect(),
            connection: Some((inode, other.unwrap_or_default())),
        }
    }

    /// Whether one of some processes belongs to the program.
    fn is_any_own(&mut self, processes: &[u32], own: Own) -> bool {
        let is_there = |known: &BTreeSet<u32>| processes.iter().any(|one| known.contains(one));
        if processes.is_empty() || is_there(own.alive) {
            return !processes.is_empty();
        }
        // It may be younger than the last round.
        self.own.refresh(|| find_processes(own.root), is_there);
        is_there(&self.own.content)
    }

    /// Returns the other processes of the program that have a file open: they may be younger than the
    /// list of files.
    fn young(&mut self, process: u32, link: &str, own: Own) -> Vec<u32> {
        self.own.refresh(|| find_processes(own.root), |_| false);
        let others = self.own.content.iter().filter(|other| **other != process);
        others
            .copied()
            .filter(|other| has_open(*other, link))
            .take(PEERS)
            .collect()
    }

    /// Returns the processes that have the other end of a socket.
    fn socket_ends(&mut self, process: u32, inode: u64, own: Own) -> Vec<u32> {
        let link = format!("socket:[{inode}]");
        let ends = distinct(self.open(&link).iter());
        if ends.is_empty() {
            self.young(process, &link, own)
        } else {
            ends
        }
    }

    fn unix_socket(&mut self, process: u32, inode: u64, link: String, own: Own) -> Described {
        let list = || diag::unix_sockets().unwrap_or_default();
        self.unix
            .refresh(list, |sockets| sockets.contains_key(&inode));
        let other = match self.unix.content.get(&inode) {
            Some(UnixSocket::Connected(other)) => *other,
            Some(UnixSocket::Listening) => {
                return Described {
                    text: "socket, unix, for clients".into(),
                    kind: Some(WatchedKind::Listening),
                    ..Described::default()
                };
            }
            None => {
                return Described {
                    text: link,
                    kind: Some(WatchedKind::Socket),
                    ..Described::default()
                };
            }
        };
        let ends = self.socket_ends(process, other, own);
        let is_own = ends.contains(&process) || self.is_any_own(&ends, own);
        let text = with_peers("socket, unix".into(), &ends, is_own);
        let peers: Vec<u32> = ends.iter().copied().filter(|one| *one != process).collect();
        // By such a pair a loop of events is woken by threads of its own, as by a pipe.
        let is_self = ends.contains(&process) && peers.is_empty();
        Described {
            text,
            kind: Some(if is_self {
                WatchedKind::Own
            } else {
                WatchedKind::Socket
            }),
            peers,
            connection: None,
        }
    }

    /// Returns what the kernel has of both ends of a connection, by the inodes of their sockets, and
    /// whether the peer left bytes unread.
    pub(crate) fn tcp(&mut self, process: u32, own: u64, other: u64) -> (Option<[Tcp; 2]>, bool) {
        let list = || diag::tcp().unwrap_or_default();
        self.tcp.refresh(list, |known| known.contains_key(&own));
        let of = |inode| self.tcp.content.get(&inode).copied();
        let both = of(own).map(|own| [own, of(other).unwrap_or_default()]);
        let peer = self
            .sockets(process, own)
            .iter()
            .find(|socket| socket.row.inode == other);
        (both, peer.is_some_and(|socket| socket.row.unread > 0))
    }

    /// Returns a process's sockets in which something has arrived that it has not read: their
    /// descriptors and inodes, with how many bytes.
    pub(crate) fn unread(&mut self, process: u32) -> Vec<(u64, u64, u64)> {
        let folder = format!("/proc/{process}/fd");
        let open: Vec<(u64, u64)> = entries(&folder)
            .into_iter()
            .take(OPEN_MAX)
            .filter_map(|number| {
                let link = fs::read_link(format!("{folder}/{number}")).ok()?;
                Some((number.into(), socket_inode(&link.to_string_lossy())?))
            })
            .take(UNREAD_MAX)
            .collect();
        let Some((_, first)) = open.first() else {
            return Vec::new();
        };
        let sockets = self.sockets(process, *first);
        let unread_of = |inode: u64| {
            let row = sockets.iter().map(|socket| &socket.row);
            let mut row = row.filter(|row| row.inode == inode && !row.is_listening);
            row.next().map_or(0, |row| row.unread)
        };
        open.into_iter()
            .map(|(number, inode)| (number, inode, unread_of(inode)))
            .filter(|(_, _, bytes)| *bytes > 0)
            .collect()
    }

    /// Returns the processes that hold the lock of a file for which a process waits with an open file.
    pub(crate) fn lock_holders(&mut self, process: u32, number: u64) -> Vec<u32> {
        let locks = self.locks();
        let Some(waiting) = locks
            .iter()
            .find(|lock| lock.is_waiting && lock.process == process)
        else {
            return self.heirs(process, number);
        };
        let holders = locks
            .iter()
            .filter(|lock| lock.number == waiting.number && !lock.is_waiting && lock.process != 0);
        let is_there = |process: &u32| PathBuf::from(format!("/proc/{process}")).exists();
        let holders: Vec<u32> = holders.map(|lock| lock.process).filter(is_there).collect();
        match holders.is_empty() {
            true => self.heirs(process, number),
            false => holders,
        }
    }

    /// Returns the processes that have the open file with a lock of flock(2) for which a process waits:
    /// they have it from one that took the lock and ended, which /proc/locks names or leaves out
    /// (fs/locks.c: locks_show).
    fn heirs(&mut self, process: u32, number: u64) -> Vec<u32> {
        let Ok(link) = fs::read_link(format!("/proc/{process}/fd/{number}")) else {
            return Vec::new();
        };
        let open = self.open(&link.to_string_lossy()).to_vec();
        let is_locked = |file: &&OpenFile| {
            let OpenFile { process, number } = file;
            let text = read(&format!("/proc/{process}/fdinfo/{number}")).unwrap_or_default();
            let mut lines = text.lines();
            lines.any(|line| line.starts_with("lock:") && line.contains("FLOCK"))
        };
        let others = open.iter().filter(|file| file.process != process);
        others.filter(is_locked).map(|file| file.process).collect()
    }

    /// Returns a regular file that a process has open and another one has locked for writing, with
    /// that other one.
    pub(crate) fn locked_file(&mut self, process: u32) -> Option<(String, u32)> {
        let locked: BTreeMap<u64, u32> = self
            .locks()
            .iter()
            .filter(|lock| lock.is_write && !lock.is_waiting && lock.process != 0)
            .filter(|lock| lock.process != process)
            .map(|lock| (lock.inode, lock.process))
            .collect();
        if locked.is_empty() {
            return None;
        }
        let folder = format!("/proc/{process}/fd");
        entries(&folder).into_iter().find_map(|number| {
            let path = format!("{folder}/{number}");
            let inode = std::os::unix::fs::MetadataExt::ino(&fs::metadata(&path).ok()?);
            let holder = locked.get(&inode)?;
            let link = fs::read_link(&path).ok()?;
            let link = link.to_string_lossy().into_owned();
            link.starts_with('/').then_some((link, *holder))
        })
    }

    fn locks(&mut self) -> &[FileLock] {
        let list = || proc::file_locks(&read("/proc/locks").unwrap_or_default());
        self.locks.refresh(list, |_| true);
        &self.locks.content
    }

    /// Returns the sockets that a process sees, of which it has the one with an inode.
    fn sockets(&mut self, process: u32, inode: u64) -> &[Socket] {
        // A process that is gone has none.
        let namespace = fs::read_link(format!("/proc/{process}/ns/net")).unwrap_or_default();
        let listed = self.sockets.entry(namespace).or_default();
        let list = || {
            let of = |kind| {
                let text = read(&format!("/proc/{process}/net/{kind}")).unwrap_or_default();
                proc::sockets(&text)
                    .into_iter()
                    .map(move |row| Socket { kind, row })
            };
            let kinds = ["tcp", "tcp6", "udp", "udp6"];
            kinds.into_iter().flat_map(of).collect::<Vec<Socket>>()
        };
        listed.refresh(list, |sockets: &Vec<Socket>| {
            sockets.iter().any(|socket| socket.row.inode == inode)
        });
        &listed.content
    }

    fn open(&mut self, link: &str) -> &[OpenFile] {
        self.files
            .refresh(list_files, |files| files.contains_key(link));
        self.files.content.get(link).map_or(&[], Vec::as_slice)
    }
}

/// Lists the open files of all processes: pipes, sockets, and paths, which pipes may have, too.
fn list_files() -> BTreeMap<String, Vec<OpenFile>> {
    let mut files: BTreeMap<String, Vec<OpenFile>> = BTreeMap::new();
    for process in entries("/proc") {
        let folder = format!("/proc/{process}/fd");
        for number in entries(&folder) {
            let link = fs::read_link(format!("{folder}/{number}")).unwrap_or_default();
            let link = link.to_string_lossy();
            if !link.is_empty() && !link.starts_with("anon_inode:") && link != "/dev/null" {
                let open = OpenFile { process, number };
                files.entry(link.into_owned()).or_default().push(open);
            }
        }
    }
    files
}

/// Whether a process has a file open, by the text of its link.
fn has_open(process: u32, link: &str) -> bool {
    let folder = format!("/proc/{process}/fd");
    entries(&folder).iter().any(|file| {
        fs::read_link(format!("{folder}/{file}")).is_ok_and(|to| to.as_os_str() == link)
    })
}

/// Whether a process has a file open whose link begins so.
pub(crate) fn has_open_below(process: u32, begin: &str) -> bool {
    let folder = format!("/proc/{process}/fd");
    entries(&folder).iter().any(|file| {
        fs::read_link(format!("{folder}/{file}"))
            .is_ok_and(|to| to.to_string_lossy().starts_with(begin))
    })
}

/// Returns how a file is open: for reading (0), writing (1) or both (2), as open(2) has it.
fn access(process: u32, number: u64) -> Option<u64> {
    let text = read(&format!("/proc/{process}/fdinfo/{number}")).ok()?;
    Some(proc::octal(&text, "flags")? & 3)
}

/// Returns the inode of a socket, by the text of its link.
fn socket_inode(link: &str) -> Option<u64> {
    let inode = link.strip_prefix("socket:[")?.strip_suffix(']')?;
    inode.parse().ok()
}

fn kind_of(link: &str) -> WatchedKind {
    let own = [
        "eventfd",
        "timerfd",
        "signalfd",
        "eventpoll",
        "io_uring",
        "pidfd",
    ];
    match link.strip_prefix("anon_inode:") {
        Some(name) if own.iter().any(|own| name.contains(own)) => WatchedKind::Own,
        _ => WatchedKind::Other,
    }
}

fn distinct<'a>(files: impl Iterator<Item = &'a OpenFile>) -> Vec<u32> {
    let processes: BTreeSet<u32> = files.map(|file| file.process).collect();
    processes.into_iter().take(PEERS).collect()
}

/// Adds to a socket's description whose the other end is.
fn with_peers(text: String, ends: &[u32], is_own: bool) -> String {
    if is_own {
        format!("own {text}")
    } else if ends.is_empty() {
        text
    } else {
        format!("{text} of process {}", named(ends))
    }
}

fn named(processes: &[u32]) -> String {
    let name = |process: &u32| format!("{process} {}", name_of(*process));
    let names: Vec<String> = processes.iter().take(NAMED).map(name).collect();
    names.join(", ")
}

/// Returns the name of a process; empty if it is gone.
pub(crate) fn name_of(process: u32) -> String {
    plain(&read(&format!("/proc/{process}/comm")).unwrap_or_default())
}

/// Returns a name on one line: a process may give itself any, and a line of it would look like one of
/// the answer.
fn plain(name: &str) -> String {
    name.trim().replace(char::is_control, "?")
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::process::Command;

    use super::*;

    #[test]
    fn name_of_a_process_is_one_line() {
        assert_eq!(plain("cc1\n"), "cc1");
        assert_eq!(plain("\x1b[31mx\ny\n"), "?[31mx?y");
    }

    #[test]
    fn heir_of_an_ended_holder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let file = fs::File::create(&path).unwrap();
        file.lock().unwrap();
        // It inherits the locked file, and is who has it when this process has closed it.
        let mut heir = Command::new("sleep").arg("60").stdin(file).spawn().unwrap();
        let again = fs::File::open(&path).unwrap();
        let number = u64::try_from(again.as_raw_fd()).unwrap();
        let found = Ends::default().heirs(std::process::id(), number);
        heir.kill().unwrap();
        heir.wait().unwrap();
        assert_eq!(found, [heir.id()]);
    }
}
