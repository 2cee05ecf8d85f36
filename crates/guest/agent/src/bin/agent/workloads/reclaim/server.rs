//! A key-value server in anonymous memory, after memcached: a hash table of values of one size,
//! asked over TCP.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use crate::workloads::ebizzy::next_random;
use crate::workloads::partner::Partner;
use crate::workloads::region::{PAGE, Region};
use crate::workloads::socket::tcp_pair;

/// Size of a value.
pub(super) const VALUE: usize = 16 * 1024;
/// What a request begins with: a word for what is wanted, and the key.
const REQUEST: usize = 9;
const GET: u8 = b'g';
const SET: u8 = b's';

/// A table of values, by keys that are numbers: buckets of slots, searched one after the other.
struct Table {
    /// Key and slot, in a power of two of places of which at most half are taken.
    places: Vec<Option<(u64, u32)>>,
    values: Region,
    taken: u32,
    most: u32,
}

impl Table {
    fn new(values: u32) -> io::Result<Self> {
        let places = vec![None; (values as usize * 2).next_power_of_two()];
        Ok(Self {
            places,
            values: Region::small_pages(u64::from(values), VALUE)?,
            taken: 0,
            most: values,
        })
    }

    fn place(&self, key: u64) -> usize {
        let mask = self.places.len() - 1;
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.places[at].is_some_and(|(known, _)| known != key) {
            at = (at + 1) & mask;
        }
        at
    }

    /// Returns a key's value, to be read or written; a new key has one as long as there is room.
    fn value(&mut self, key: u64) -> Option<&mut [u8]> {
        let at = self.place(key);
        let slot = match self.places[at] {
            Some((_, slot)) => slot,
            None if self.taken < self.most => {
                self.taken += 1;
                self.places[at] = Some((key, self.taken - 1));
                self.taken - 1
            }
            None => return None,
        };
        // SAFETY: the slot lies within the region, which is ours, and nobody else has a reference
        // to it.
        Some(unsafe {
            std::slice::from_raw_parts_mut(self.values.start().add(slot as usize * VALUE), VALUE)
        })
    }
}

fn serve(mut stream: TcpStream, values: u32) -> io::Result<()> {
    let mut table = Table::new(values)?;
    let mut request = [0; REQUEST];
    loop {
        stream.read_exact(&mut request)?;
        let [word, key @ ..] = request;
        let value = table
            .value(u64::from_le_bytes(key))
            .ok_or_else(|| io::Error::other("the table is full"))?;
        match word {
            SET => {
                stream.read_exact(value)?;
                stream.write_all(&[SET])?;
            }
            _ => stream.write_all(value)?,
        }
    }
}

/// The client of a server of its own.
pub(super) struct Client {
    stream: TcpStream,
    values: u32,
    state: u64,
    buffer: Vec<u8>,
    _server: Partner,
}

impl Client {
    /// Starts a server with a pool of so many bytes and fills it. Each value takes a page beside it
    /// in the account, as memcachetest reckons.
    pub(super) fn start(pool: usize) -> io::Result<Self> {
        let values = u32::try_from(pool / (VALUE + PAGE))
            .map_err(io::Error::other)?
            .max(1);
        let (stream, other) = tcp_pair()?;
        let own = stream.try_clone()?;
        let server = Partner::start(move || {
            // The other end must be this one's alone, for its end to show.
            drop(own);
            serve(other, values)
        })?;
        let mut client = Self {
            stream,
            values,
            state: 1,
            buffer: vec![0; VALUE],
            _server: server,
        };
        for key in 0..values {
            client.set(u64::from(key))?;
        }
        Ok(client)
    }

    /// Asks for one value, or brings one: each third time.
    pub(super) fn ask(&mut self, number: u64) -> io::Result<()> {
        let key = (next_random(&mut self.state) % self.values as usize) as u64;
        if number % 3 == 2 {
            self.set(key)
        } else {
            self.get(key)
        }
    }

    fn request(&mut self, word: u8, key: u64) -> io::Result<()> {
        let mut request = [word; REQUEST];
        request[1..].copy_from_slice(&key.to_le_bytes());
        self.stream.write_all(&request)
    }

    fn get(&mut self, key: u64) -> io::Result<()> {
        self.request(GET, key)?;
        self.stream.read_exact(&mut self.buffer)
    }

    fn set(&mut self, key: u64) -> io::Result<()> {
        scribble(&mut self.buffer, &mut self.state);
        self.request(SET, key)?;
        self.stream.write_all(&self.buffer)?;
        self.stream.read_exact(&mut [0])
    }
}

/// Writes what compresses to about a quarter: the beginning of each page is noise.
pub(super) fn scribble(bytes: &mut [u8], state: &mut u64) {
    for page in bytes.chunks_mut(PAGE) {
        for word in page[..PAGE / 4].chunks_exact_mut(8) {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            word.copy_from_slice(&state.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Client, Table, VALUE};
    use crate::workloads::region::PAGE;

    #[test]
    fn keys_keep_their_values_until_there_is_no_room() {
        let mut table = Table::new(3).unwrap();
        for key in [7, 1 << 40, 9] {
            table.value(key).unwrap()[VALUE - 1] = key as u8 + 1;
        }
        assert_eq!(table.value(1 << 40).unwrap()[VALUE - 1], 1);
        assert_eq!(table.value(9).unwrap()[VALUE - 1], 10);
        assert!(table.value(10).is_none());
    }

    #[test]
    fn a_client_asks_a_server() {
        let mut client = Client::start(4 * (VALUE + PAGE)).unwrap();
        (0..9).try_for_each(|number| client.ask(number)).unwrap();
        client.set(0).unwrap();
        let sent = client.buffer.clone();
        client.get(0).unwrap();
        assert!(client.buffer == sent && sent.iter().any(|byte| *byte != 0));
    }
}
