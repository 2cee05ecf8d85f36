//! How many connections each client of a server may have at once. Pure: the servers accept and
//! close them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

/// Limits on connections at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientLimits {
    /// Most connections of all clients together.
    pub all: usize,
    /// Most connections of one client.
    pub of_one: usize,
    /// Of all clients on other hosts: the rest is for this one, so that it can see what is wrong.
    pub of_others: usize,
}

/// Counts connections by client.
#[derive(Debug)]
pub struct ClientCounts {
    limits: ClientLimits,
    counts: HashMap<IpAddr, usize>,
}

impl ClientCounts {
    /// Begins with no connection.
    #[must_use]
    pub fn new(limits: ClientLimits) -> Self {
        Self {
            limits,
            counts: HashMap::new(),
        }
    }

    /// Returns whether no client has a connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Counts a connection of a client; returns false, and does not count it, if it would be one
    /// too many.
    pub fn admit(&mut self, address: IpAddr) -> bool {
        let client = client_of(address);
        let all: usize = self.counts.values().sum();
        let others: usize = self
            .counts
            .iter()
            .filter(|(client, _)| !client.is_loopback())
            .map(|(_, count)| count)
            .sum();
        let own = self.counts.get(&client).copied().unwrap_or_default();
        let ClientLimits {
            all: all_max,
            of_one,
            of_others,
        } = self.limits;
        let is_admitted =
            all < all_max && own < of_one && (client.is_loopback() || others < of_others);
        if is_admitted {
            self.counts.insert(client, own + 1);
        }
        is_admitted
    }

    /// Counts the end of an admitted connection.
    pub fn release(&mut self, address: IpAddr) {
        let client = client_of(address);
        match self.counts.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.counts.remove(&client)),
        }
    }
}

/// Returns what stands for a client: its address; of IPv6 the network, in which a host has as many
/// addresses as it likes.
fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{ClientCounts, ClientLimits};

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_client_leaves_room_for_others() {
        let mut counts = ClientCounts::new(ClientLimits {
            all: 6,
            of_one: 2,
            of_others: 5,
        });
        let mut admit = |text: &str| counts.admit(address(text));
        assert_eq!(
            [
                admit("10.0.0.1"),
                admit("::ffff:10.0.0.1"),
                admit("10.0.0.1")
            ],
            [true, true, false]
        );
        // All addresses of a network are one client.
        assert_eq!(
            [admit("fd00::1"), admit("fd00::2"), admit("fd00::3")],
            [true, true, false]
        );
        assert!(admit("10.0.0.2"));
        assert!(!admit("10.0.0.3"), "the rest is for this host");
        assert_eq!([admit("127.0.0.1"), admit("::1")], [true, false]);
    }

    #[test]
    fn ended_connections_make_room() {
        let mut counts = ClientCounts::new(ClientLimits {
            all: 2,
            of_one: 1,
            of_others: 2,
        });
        assert!(counts.admit(address("10.0.0.1")) && !counts.admit(address("10.0.0.1")));
        counts.release(address("10.0.0.1"));
        assert!(counts.admit(address("10.0.0.1")));
    }
}
