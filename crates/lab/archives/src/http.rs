//! HTTP/1.1: gets a file, directly or through the proxy of the environment, over TLS where the
//! address says so.
//!
//! Only GET, with a deadline for each step and a limit for each answer; what an answer contains is
//! verified by its reader. `httparse` reads the head, rustls speaks TLS and trusts whom the host
//! trusts.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// How long connecting and each read may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long connecting to one of several addresses may take before the next is tried.
const QUICK: Duration = Duration::from_secs(3);
/// Longest head of an answer (bytes).
const HEAD_MAX: usize = 1 << 16;
/// Most headers in it.
const HEADERS_MAX: usize = 100;
/// Most redirections.
const REDIRECTS_MAX: usize = 5;
/// Tries of a request that the network ended.
const TRIES: usize = 3;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// The server says so, by its status.
    Status(u16),
    /// The network, a proxy or a damaged answer.
    Network(String),
    /// The receiver of the content refused it.
    Receiver(io::Error),
}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> Self {
        let timed_out = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        if timed_out.contains(&error.kind()) {
            Self::Network(format!("no answer within {} s", PATIENCE.as_secs()))
        } else {
            Self::Network(error.to_string())
        }
    }
}

/// What a server answered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The content went to the receiver.
    Received { modified: Option<String> },
    /// It has not changed since the date that was given.
    Unchanged,
}

/// An address, in parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    secure: bool,
    host: String,
    port: u16,
    path: String,
}

impl Address {
    fn parse(url: &str) -> Result<Self, HttpError> {
        let bad = || {
            HttpError::Network("it is no address http://HOST/PATH or https://HOST/PATH".to_owned())
        };
        let (secure, rest) = match (url.strip_prefix("http://"), url.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (None, Some(rest)) => (true, rest),
            (None, None) => return Err(bad()),
        };
        if url
            .bytes()
            .any(|byte| byte.is_ascii_control() || byte == b' ')
        {
            return Err(bad());
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, "/"),
        };
        let default_port = if secure { 443 } else { 80 };
        // An IPv6 address stands in brackets.
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port.parse().map_err(|_| bad())?),
            _ => (authority, default_port),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || host.contains('@') {
            return Err(bad());
        }
        Ok(Self {
            secure,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        format!("{host}:{}", self.port)
    }

    fn url(&self) -> String {
        let scheme = if self.secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.authority(), self.path)
    }

    /// Returns the address that a redirection names.
    fn redirected(&self, location: &str) -> Result<Self, HttpError> {
        if location.starts_with('/') {
            let path = location.to_owned();
            return Ok(Self {
                path,
                ..self.clone()
            });
        }
        let next = Self::parse(location)?;
        if self.secure && !next.secure {
            return Err(HttpError::Network(format!(
                "it leads from TLS to {location}"
            )));
        }
        Ok(next)
    }
}

/// Gets what is at an address and hands it to `receive`, piece by piece; a piece of another try
/// begins after `restart`. `since` is a date as an answer gave it.
pub(crate) fn get(
    url: &str,
    since: Option<&str>,
    bytes_max: u64,
    receiver: &mut dyn Receiver,
) -> Result<Answer, HttpError> {
    let mut tries = 0;
    loop {
        tries += 1;
        receiver.restart().map_err(HttpError::Receiver)?;
        match get_once(url, since, bytes_max, receiver) {
            Err(HttpError::Network(_) | HttpError::Status(500..)) if tries < TRIES => {}
            result => return result,
        }
    }
}

/// What takes the content of an answer.
pub(crate) trait Receiver {
    /// Forgets what came before: another try begins.
    fn restart(&mut self) -> io::Result<()>;
    fn receive(&mut self, piece: &[u8]) -> io::Result<()>;
}

impl Receiver for Vec<u8> {
    fn restart(&mut self) -> io::Result<()> {
        self.clear();
        Ok(())
    }

    fn receive(&mut self, piece: &[u8]) -> io::Result<()> {
        self.extend_from_slice(piece);
        Ok(())
    }
}

fn get_once(
    url: &str,
    since: Option<&str>,
    bytes_max: u64,
    receiver: &mut dyn Receiver,
) -> Result<Answer, HttpError> {
    let mut address = Address::parse(url)?;
    for _ in 0..=REDIRECTS_MAX {
        let proxy = proxy(&address)?;
        let target = match &proxy {
            Some(_) if !address.secure => address.url(),
            _ => address.path.clone(),
        };
        let since = since.map_or_else(String::new, |date| format!("If-Modified-Since: {date}\r\n"));
        let request = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: marvin\r\nAccept: */*\r\n{since}Connection: close\r\n\r\n",
            address.authority()
        );
        let mut stream = BufReader::new(connect(&address, proxy.as_ref())?);
        stream.get_mut().write_all(request.as_bytes())?;
        let head = read_head(&mut stream)?;
        match head.status {
            200 => {
                read_body(&mut stream, &head, bytes_max, receiver)?;
                return Ok(Answer::Received {
                    modified: head.modified,
                });
            }
            304 => return Ok(Answer::Unchanged),
            301 | 302 | 303 | 307 | 308 => {
                let location = head
                    .location
                    .ok_or_else(|| HttpError::Network("a redirection to nowhere".to_owned()))?;
                address = address.redirected(&location)?;
            }
            status => return Err(HttpError::Status(status)),
        }
    }
    Err(HttpError::Network(format!(
        "more than {REDIRECTS_MAX} redirections"
    )))
}

/// Returns the proxy that the environment names for an address, as curl and apt read it.
fn proxy(address: &Address) -> Result<Option<Address>, HttpError> {
    let variable = |name: &str| {
        [name.to_owned(), name.to_ascii_uppercase()]
            .iter()
            .find_map(|name| std::env::var(name).ok())
            .filter(|value| !value.is_empty())
    };
    let without = variable("no_proxy").unwrap_or_default();
    let is_without = without.split(',').map(str::trim).any(|name| {
        let name = name.trim_start_matches('.');
        name == "*"
            || (!name.is_empty()
                && (address.host == name || address.host.ends_with(&format!(".{name}"))))
    });
    if is_without {
        return Ok(None);
    }
    // HTTP_PROXY is what a web server calls a header of its client.
    let value = if address.secure {
        variable("https_proxy")
    } else {
        std::env::var("http_proxy")
            .ok()
            .filter(|value| !value.is_empty())
    }
    .or_else(|| variable("all_proxy"));
    let Some(value) = value else {
        return Ok(None);
    };
    let value = if value.contains("://") {
        value
    } else {
        format!("http://{value}")
    };
    // Without it, the servers would be asked although the user forbids it. The address may have a
    // password: it is not shown.
    Address::parse(&value).map(Some).map_err(|_| {
        HttpError::Network(
            "the proxy in http_proxy, https_proxy or all_proxy cannot be used: Marvin knows proxies http://HOST:PORT without a login".to_owned(),
        )
    })
}

/// A connection, with TLS or without.
trait Connection: Read + Write {}
impl<T: Read + Write> Connection for T {}

fn connect(address: &Address, proxy: Option<&Address>) -> Result<Box<dyn Connection>, HttpError> {
    let first = proxy.unwrap_or(address);
    let mut stream = tcp(first)?;
    if !address.secure {
        return Ok(Box::new(stream));
    }
    if proxy.is_some() {
        let authority = address.authority();
        let request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        // The answer has no content, and no byte behind it may be lost: TLS begins there.
        let mut one_byte_each = BufReader::with_capacity(1, &mut stream);
        let head = read_head(&mut one_byte_each)?;
        if head.status != 200 {
            let status = head.status;
            return Err(HttpError::Network(format!(
                "the proxy refuses {authority} with status {status}"
            )));
        }
    }
    let name = ServerName::try_from(address.host.clone())
        .map_err(|error| HttpError::Network(error.to_string()))?;
    let client = ClientConnection::new(trusting_the_hosts_list()?, name)
        .map_err(|error| HttpError::Network(error.to_string()))?;
    Ok(Box::new(StreamOwned::new(client, stream)))
}

fn tcp(address: &Address) -> Result<TcpStream, HttpError> {
    let found = (address.host.as_str(), address.port).to_socket_addrs()?;
    let places: Vec<SocketAddr> = found.collect();
    if places.is_empty() {
        let text = format!("{} has no address", address.host);
        return Err(HttpError::Network(text));
    }
    // One of several may be of a network that leads nowhere, such as IPv6 without a route.
    let quick = (places.len() > 1).then_some(QUICK);
    let mut failures = Vec::new();
    for patience in quick.into_iter().chain([PATIENCE]) {
        failures.clear();
        for place in &places {
            match TcpStream::connect_timeout(place, patience) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    return Ok(stream);
                }
                Err(error) => failures.push(format!("{place}: {error}")),
            }
        }
    }
    Err(HttpError::Network(failures.join("; ")))
}

/// Returns the settings that trust whom the host trusts; `SSL_CERT_FILE` names another list.
fn trusting_the_hosts_list() -> Result<Arc<ClientConfig>, HttpError> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| HttpError::Network(error.to_string()))?;
    Ok(Arc::new(
        builder.with_root_certificates(roots).with_no_client_auth(),
    ))
}

/// The head of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    status: u16,
    length: Option<u64>,
    chunked: bool,
    modified: Option<String>,
    location: Option<String>,
}

fn read_head(stream: &mut impl BufRead) -> Result<Head, HttpError> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let before = bytes.len();
        let room = (HEAD_MAX - before) as u64;
        stream.by_ref().take(room).read_until(b'\n', &mut bytes)?;
        if bytes.len() == before {
            return Err(damaged_head());
        }
    }
    parse_head(&bytes)
}

fn damaged_head() -> HttpError {
    HttpError::Network("its answer is no HTTP".to_owned())
}

fn parse_head(bytes: &[u8]) -> Result<Head, HttpError> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes).map_err(|_| damaged_head())?;
    if parsed.is_partial() {
        return Err(damaged_head());
    }
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        ..Head::default()
    };
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = Some(value.parse().map_err(|_| damaged_head())?),
            "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
            "last-modified" => head.modified = Some(value),
            "location" => head.location = Some(value),
            _ => {}
        }
    }
    Ok(head)
}

fn read_body(
    stream: &mut impl BufRead,
    head: &Head,
    bytes_max: u64,
    receiver: &mut dyn Receiver,
) -> Result<(), HttpError> {
    let mut room = bytes_max;
    if head.chunked {
        loop {
            let length = chunk_length(stream)?;
            if length == 0 {
                return Ok(());
            }
            read_piece(stream, Some(length), &mut room, receiver)?;
            let mut end = [0; 2];
            stream.read_exact(&mut end)?;
            if end != *b"\r\n" {
                return Err(damaged_head());
            }
        }
    }
    read_piece(stream, head.length, &mut room, receiver)
}

fn chunk_length(stream: &mut impl BufRead) -> Result<u64, HttpError> {
    let mut line = Vec::new();
    stream
        .by_ref()
        .take(HEAD_MAX as u64)
        .read_until(b'\n', &mut line)?;
    let text = String::from_utf8_lossy(&line);
    let digits = text.trim().split(';').next().unwrap_or_default();
    u64::from_str_radix(digits, 16).map_err(|_| damaged_head())
}

/// Reads so many bytes, or to the end of the connection.
fn read_piece(
    stream: &mut impl BufRead,
    length: Option<u64>,
    room: &mut u64,
    receiver: &mut dyn Receiver,
) -> Result<(), HttpError> {
    let mut left = length;
    loop {
        if left == Some(0) {
            return Ok(());
        }
        let piece = stream.fill_buf()?;
        if piece.is_empty() {
            return match left {
                Some(left) => Err(HttpError::Network(format!("it ends {left} bytes too soon"))),
                None => Ok(()),
            };
        }
        let taken = (piece.len() as u64).min(left.unwrap_or(u64::MAX));
        *room = room
            .checked_sub(taken)
            .ok_or_else(|| HttpError::Network("its answer is larger than expected".to_owned()))?;
        let bytes = usize::try_from(taken).unwrap_or(piece.len());
        receiver
            .receive(&piece[..bytes])
            .map_err(HttpError::Receiver)?;
        stream.consume(bytes);
        left = left.map(|left| left - taken);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use proptest::prelude::*;

    use super::{Address, Answer, HttpError, get, parse_head, read_body, read_head};

    /// Answers each connection with the next text, and returns the address and the requests.
    fn server(answers: Vec<Vec<u8>>) -> (String, std::thread::JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let served = std::thread::spawn(move || {
            let mut requests = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.push(byte[0]);
                }
                requests.push(String::from_utf8(request).unwrap());
                stream.write_all(&answer).unwrap();
            }
            requests
        });
        (url, served)
    }

    fn fetch(answers: &[&str]) -> (Result<Answer, String>, Vec<u8>, Vec<String>) {
        let (url, served) = server(
            answers
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
        );
        let mut body = Vec::new();
        let since = "Sat, 01 Jan 2000 00:00:00 GMT";
        let answer = get(&format!("{url}/x"), Some(since), 10, &mut body)
            .map_err(|error| format!("{error:?}"));
        (answer, body, served.join().unwrap())
    }

    #[test]
    fn content_of_known_and_unknown_length_is_received() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLast-Modified: D\r\n\r\nhello more",
            "HTTP/1.1 200 OK\r\nlast-modified: D\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLast-Modified: D\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ] {
            let (answer, body, requests) = fetch(&[answer]);
            let modified = Some("D".to_owned());
            assert_eq!(answer, Ok(Answer::Received { modified }));
            assert_eq!(body, b"hello");
            assert!(requests[0].starts_with("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
            assert!(requests[0].contains("If-Modified-Since: Sat, 01 Jan 2000"));
        }
    }

    #[test]
    fn redirections_are_followed() {
        let (answer, body, requests) = fetch(&[
            "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\n\r\n",
        ]);
        assert_eq!(answer, Ok(Answer::Unchanged));
        assert!(body.is_empty() && requests[1].starts_with("GET /elsewhere "));
    }

    #[test]
    fn short_content_is_asked_for_again() {
        let (answer, body, requests) = fetch(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            "HTTP/1.1 503 Later\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ]);
        answer.unwrap();
        assert_eq!((body.as_slice(), requests.len()), (&b"hello"[..], 3));
    }

    #[test]
    fn refusals_name_their_reason() {
        let (answer, _, _) = fetch(&["HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!"]);
        assert_eq!(answer.unwrap_err(), "Status(404)");
        let long = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
        let (answer, _, _) = fetch(&[long, long, long]);
        assert!(answer.unwrap_err().contains("larger than expected"));
        let closed = get("http://127.0.0.1:1/", None, 1, &mut Vec::new()).unwrap_err();
        assert!(
            matches!(&closed, HttpError::Network(why) if why.contains("refused")),
            "{closed:?}"
        );
    }

    #[test]
    fn addresses_are_parsed() {
        let parsed = Address::parse("https://[::1]:8443/a?b").unwrap();
        assert_eq!(parsed.authority(), "[::1]:8443");
        assert_eq!(Address::parse("http://x").unwrap().url(), "http://x:80/");
        for bad in [
            "ftp://x",
            "http://",
            "http://a@b/",
            "http://x/\r\nHost: y",
            "http://x:y/",
        ] {
            assert!(Address::parse(bad).is_err(), "{bad}");
        }
        let down = parsed.redirected("http://x/");
        assert!(down.is_err(), "TLS is not given up");
    }

    proptest! {
        #[test]
        fn any_answer_ends(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            chunked in any::<bool>(),
        ) {
            drop(parse_head(&bytes));
            let mut stream = bytes.as_slice();
            drop(read_head(&mut stream));
            let head = super::Head { chunked, ..super::Head::default() };
            let mut body = Vec::new();
            drop(read_body(&mut bytes.as_slice(), &head, 50, &mut body));
            prop_assert!(body.len() <= 50);
        }
    }
}
