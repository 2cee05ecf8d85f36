//! A connection to a server of this host without TLS, which ends before a password is sent in
//! clear.
//!
//! Each user of a host may listen at the port of a server that is stopped, and ask for passwords.
//! With SCRAM such a listener learns none. The library of PostgreSQL's protocol answers every
//! question of a server, so the questions are read here.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use super::Failure;
use crate::location::PORT;

/// A message: its letter, its length without the letter, and for authentication the kind.
/// <https://www.postgresql.org/docs/current/protocol-message-formats.html>
const AUTHENTICATION: u8 = b'R';
const HEADER: usize = 5;
const SUCCESS: [u8; 4] = [0, 0, 0, 0];
const CLEARTEXT_PASSWORD: [u8; 4] = [0, 0, 0, 3];

/// The server asks for the password in clear.
#[derive(Debug)]
pub(super) struct InClear;

impl fmt::Display for InClear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the server asks for it in clear, without TLS")
    }
}

impl std::error::Error for InClear {}

/// A connection whose first messages are watched.
pub(super) struct Guarded {
    stream: Stream,
    watch: Option<Watch>,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The part of the current message that is known so far.
#[derive(Default)]
struct Watch {
    head: Vec<u8>,
    /// Bytes of the message that follow the known ones.
    left: usize,
}

impl Watch {
    /// Returns how many bytes of the message are looked at, by its letter.
    fn wanted(&self) -> usize {
        if self.head.first() == Some(&AUTHENTICATION) {
            HEADER + SUCCESS.len()
        } else {
            HEADER
        }
    }

    /// Reads further bytes; returns whether the server is content, after which no password is sent.
    fn read(&mut self, mut bytes: &[u8]) -> Result<bool, InClear> {
        while !bytes.is_empty() {
            let passed = self.left.min(bytes.len());
            self.left -= passed;
            bytes = &bytes[passed..];
            let taken = (self.wanted() - self.head.len()).min(bytes.len());
            self.head.extend_from_slice(&bytes[..taken]);
            bytes = &bytes[taken..];
            if self.head.len() < self.wanted() {
                continue;
            }
            let kind = self.head.get(HEADER..).unwrap_or_default();
            if kind == CLEARTEXT_PASSWORD {
                return Err(InClear);
            }
            if kind == SUCCESS {
                return Ok(true);
            }
            let length = self.head[1..HEADER]
                .iter()
                .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
            self.left = (length + 1).saturating_sub(self.head.len());
            self.head.clear();
        }
        Ok(false)
    }
}

/// Connects to the first server of an address that accepts it.
pub(super) async fn reach(config: &Config) -> Result<Guarded, Failure> {
    let mut refusal = "the address names no server".to_owned();
    let named = config.get_hosts().len().max(config.get_hostaddrs().len());
    for n in 0..named {
        let port = config
            .get_ports()
            .get(n)
            .or(config.get_ports().first())
            .copied()
            .unwrap_or(PORT);
        let reached = match (config.get_hostaddrs().get(n), config.get_hosts().get(n)) {
            (Some(address), _) => TcpStream::connect((*address, port)).await.map(Stream::Tcp),
            (None, Some(Host::Tcp(name))) => TcpStream::connect((name.as_str(), port))
                .await
                .map(Stream::Tcp),
            (None, Some(Host::Unix(folder))) => {
                UnixStream::connect(folder.join(format!(".s.PGSQL.{port}")))
                    .await
                    .map(Stream::Unix)
            }
            (None, None) => continue,
        };
        match reached {
            Ok(stream) => {
                return Ok(Guarded {
                    stream,
                    watch: Some(Watch::default()),
                });
            }
            Err(error) => refusal = format!("error connecting to server: {error}"),
        }
    }
    Err(Failure::Silent(refusal))
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
        })?;
        if let Some(watch) = &mut self.watch
            && watch
                .read(&buffer.filled()[before..])
                .map_err(io::Error::other)?
        {
            self.watch = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use super::Watch;
    use crate::{AccessError, Location, Store, StoreError};

    const SECRET: &str = "only-of-this-test";

    /// How a make-believe server answers a request for TLS.
    const HAS_NO_TLS: &[u8] = b"N";
    const ASKS_IN_CLEAR: &[u8] = b"R\0\0\0\x08\0\0\0\x03";

    /// Opens a store at a make-believe server without TLS that asks for the password in clear;
    /// returns the error and all that arrived.
    fn ask(address: &str) -> (StoreError, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let listening = std::thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            client
                .set_read_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let mut arrived = vec![];
            let mut buffer = [0; 4096];
            loop {
                match client.read(&mut buffer) {
                    Ok(0) => break,
                    Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                    Ok(read) => {
                        // SSLRequest has eight bytes, each later message another length.
                        let answer = if read == 8 { HAS_NO_TLS } else { ASKS_IN_CLEAR };
                        arrived.extend_from_slice(&buffer[..read]);
                        client.write_all(answer).ok();
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            String::from_utf8_lossy(&arrived).into_owned()
        });
        let address = address.replace("PORT", &port.to_string());
        let error =
            Store::open_read_only(Location::server(&address, Some(SECRET)).unwrap()).unwrap_err();
        (error, listening.join().unwrap())
    }

    #[test]
    fn password_never_reaches_a_server_without_tls() {
        // The library resolves the name and then takes the address, which is this host only in this
        // test.
        for address in [
            "postgres://me@db.lab:PORT/marvin?hostaddr=127.0.0.1",
            "postgres://me@db.lab:PORT/marvin?hostaddr=127.0.0.1&sslmode=prefer",
            "postgres://me@db.lab:PORT/marvin?hostaddr=127.0.0.1&sslmode=require",
            "postgres://me@127.0.0.1:PORT/marvin",
            "postgres://me@localhost:PORT/marvin?sslmode=prefer",
        ] {
            let (error, arrived) = ask(address);
            assert!(
                matches!(error, StoreError::Access(AccessError::Unprotected { .. })),
                "{address}: {error}"
            );
            assert!(
                !arrived.is_empty() && !arrived.contains(SECRET),
                "{address}: {arrived}"
            );
        }
        let (error, _) = ask("postgres://me@db.lab:PORT/marvin?hostaddr=127.0.0.1");
        let message = error.to_string();
        insta::assert_snapshot!(
            message.replace(
                message
                    .split(':')
                    .nth(2)
                    .unwrap()
                    .split('/')
                    .next()
                    .unwrap(),
                "PORT"
            )
        );
    }

    #[test]
    fn password_is_sent_where_the_address_allows() {
        let (error, arrived) = ask("postgres://me@127.0.0.1:PORT/marvin?sslmode=disable");
        assert!(
            arrived.contains(SECRET)
                && !matches!(error, StoreError::Access(AccessError::Unprotected { .. })),
            "{error}"
        );
    }

    #[test]
    fn question_is_found_in_any_pieces() {
        let mut packet = b"v\0\0\0\x0c\0\0\0\0\0\0\0\0".to_vec();
        packet.extend_from_slice(ASKS_IN_CLEAR);
        for size in 1..=packet.len() {
            let mut watch = Watch::default();
            assert!(
                packet.chunks(size).any(|piece| watch.read(piece).is_err()),
                "{size}"
            );
        }
        let mut watch = Watch::default();
        assert!(
            watch
                .read(b"R\0\0\0\x0c\0\0\0\x05salt")
                .is_ok_and(|is_content| !is_content)
        );
        assert!(
            watch
                .read(b"R\0\0\0\x08\0\0\0\0S")
                .is_ok_and(|is_content| is_content)
        );
    }
}
