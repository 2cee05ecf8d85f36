//! Sockets in which something lies all the time that the program does not read: an answer that it
//! does not want any more, or a connection that it forgot.

use std::collections::{BTreeMap, BTreeSet};

use explain::facts::UnreadSockets;

use super::Rounds;

/// Processes that are looked at, and looks from which on a socket is said to be left unread.
const PROCESSES_MAX: usize = 16;
const LOOKS: u32 = 3;
/// The least part of the looks since the first one that found something in the socket.
const ALWAYS: f64 = 0.9;

/// A socket in which something was found.
#[derive(Debug, Clone, PartialEq)]
struct Found {
    first_look: u32,
    looks: u32,
    bytes: u64,
    /// What it is, as of an open file.
    text: String,
}

/// Sockets in which something was found, by their inodes.
#[derive(Debug, Default)]
pub(super) struct Unread {
    looks: u32,
    found: BTreeMap<u64, Found>,
}

impl Unread {
    /// Returns those that were never empty.
    fn lasting(&self) -> impl Iterator<Item = &Found> {
        self.found.values().filter(|found| {
            let since = self.looks - found.first_look;
            found.looks >= LOOKS && f64::from(found.looks) >= ALWAYS * f64::from(since)
        })
    }
}

impl Rounds {
    /// Looks into the sockets of the program's processes.
    pub(super) fn look_at_unread(&mut self, alive: &BTreeSet<u32>) {
        for process in alive.iter().take(PROCESSES_MAX) {
            for (number, inode, bytes) in self.ends.unread(*process) {
                if let Some(found) = self.unread.found.get_mut(&inode) {
                    found.looks += 1;
                    found.bytes = bytes;
                    continue;
                }
                let found = Found {
                    first_look: self.unread.looks,
                    looks: 1,
                    bytes,
                    text: self.describe_file(*process, number),
                };
                self.unread.found.insert(inode, found);
            }
        }
        self.unread.looks += 1;
    }

    /// Returns the sockets that were left unread; `None` without one.
    pub(crate) fn unread_sockets(&self) -> Option<UnreadSockets> {
        let most = self.unread.lasting().max_by_key(|found| found.bytes)?;
        Some(UnreadSockets {
            sockets: self.unread.lasting().count(),
            bytes: self.unread.lasting().map(|found| found.bytes).sum(),
            file: most.text.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(first_look: u32, looks: u32) -> Found {
        Found {
            first_look,
            looks,
            bytes: 100,
            text: String::new(),
        }
    }

    #[test]
    fn socket_that_is_read_is_none() {
        let unread = Unread {
            looks: 20,
            found: BTreeMap::from([(1, found(0, 20)), (2, found(0, 12)), (3, found(18, 2))]),
        };
        assert_eq!(unread.lasting().count(), 1);
    }
}
