//! HTTP/1.1: gets a file, directly or through the proxy of the environment, over TLS where the
//! address says so, and tries again what may pass.
//!
//! Only GET, with a deadline for each step and a limit for each answer; what an answer contains is
//! verified by its reader. `httparse` reads the head, `connection` has TLS, `proxy` the proxies.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::time::{Duration, SystemTime};

use crate::address::Address;
use crate::connection::{PATIENCE, connect, tls_failure};
use crate::proxy::Proxies;

/// Longest head of an answer (bytes).
const HEAD_MAX: usize = 1 << 16;
/// Most headers in it.
const HEADERS_MAX: usize = 100;
/// Most redirections.
const REDIRECTS_MAX: usize = 5;
/// Tries of a request that a passing fault ended.
const TRIES: u32 = 4;
/// Tries of a server that does not answer at all: it takes long to find that out.
const CONNECTING_TRIES: u32 = 2;
/// The first pause between two tries; each further one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// Longest pause, whatever a server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// The server says so, by its status.
    Status(u16),
    /// The server gets too many requests, of this host or at all.
    Throttled {
        status: u16,
        /// How long it asks to wait.
        wait: Option<Duration>,
    },
    /// A fault of the network, a proxy or the server that may pass.
    Passing(String),
    /// No connection comes about in time.
    Silent(String),
    /// Another fault of them, or a damaged answer.
    Network {
        detail: String,
        hint: Option<&'static str>,
    },
    /// The receiver of the content refused it.
    Receiver(io::Error),
}

impl HttpError {
    pub(crate) fn network(detail: String) -> Self {
        Self::Network { detail, hint: None }
    }

    /// Returns how long to wait before the next try, the `tries`th of which failed; `None` if the
    /// fault stays.
    fn pause(&self, tries: u32) -> Option<Duration> {
        let growing = PAUSE * 2_u32.pow(tries - 1);
        match self {
            Self::Silent(_) if tries >= CONNECTING_TRIES => None,
            Self::Silent(_) => Some(growing),
            Self::Throttled { wait, .. } => Some(wait.unwrap_or(growing).min(PAUSE_MAX)),
            Self::Passing(_) | Self::Status(500 | 502 | 504) => Some(growing),
            Self::Status(_) | Self::Network { .. } | Self::Receiver(_) => None,
        }
    }

    /// Returns the fault for the user, after so many tries.
    fn ended(self, tries: u32) -> Self {
        let tried = match tries {
            1 => String::new(),
            tries => format!(" (tried {tries} times)"),
        };
        match self {
            Self::Throttled { status, wait } => {
                let wait = wait.map_or_else(String::new, |wait| {
                    format!("; it asks to wait {} s", wait.as_secs())
                });
                Self::Network {
                    detail: format!("the server throttles with status {status}{tried}{wait}"),
                    hint: Some("try again later, or set another `mirror` in marvin.toml"),
                }
            }
            Self::Passing(detail) | Self::Silent(detail) => {
                Self::network(format!("{detail}{tried}"))
            }
            Self::Status(status @ (500 | 502 | 504)) => {
                Self::network(format!("the server answers with status {status}{tried}"))
            }
            other => other,
        }
    }
}

impl From<io::Error> for HttpError {
    fn from(error: io::Error) -> Self {
        if let Some(failure) = tls_failure(&error) {
            return failure;
        }
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                Self::Passing(format!("no answer within {} s", PATIENCE.as_secs()))
            }
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof => Self::Passing(error.to_string()),
            _ => Self::network(error.to_string()),
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

/// What to get.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) url: &'a str,
    /// A date as an answer gave it.
    pub(crate) since: Option<&'a str>,
    pub(crate) bytes_max: u64,
    /// Waits between tries.
    pub(crate) pause: fn(Duration),
}

/// Gets what is at an address and hands it to `receiver`, piece by piece. What a broken connection
/// leaves is continued where the server can do that, or begins again.
pub(crate) fn get(request: &Request<'_>, receiver: &mut dyn Receiver) -> Result<Answer, HttpError> {
    get_through(&Proxies::from_environment(), request, receiver)
}

fn get_through(
    proxies: &Proxies,
    request: &Request<'_>,
    receiver: &mut dyn Receiver,
) -> Result<Answer, HttpError> {
    let mut download = Download {
        receiver,
        received: 0,
        version: None,
    };
    let mut tries = 1;
    loop {
        let error = match get_once(proxies, request, &mut download) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        match error.pause(tries).filter(|_| tries < TRIES) {
            Some(pause) => (request.pause)(pause),
            None => return Err(error.ended(tries)),
        }
        tries += 1;
    }
}

/// What takes the content of an answer.
pub(crate) trait Receiver {
    /// Forgets what came before: another try begins.
    fn restart(&mut self) -> io::Result<()>;
    fn receive(&mut self, piece: &[u8]) -> io::Result<()>;
}

/// Content of which a part may have come.
struct Download<'a> {
    receiver: &'a mut dyn Receiver,
    /// Bytes that came.
    received: u64,
    /// What names this content at the server, its ETag or its date; without one it cannot be
    /// continued: it may have become another.
    version: Option<String>,
}

impl Download<'_> {
    /// Returns the headers that ask for the rest; empty to begin.
    fn continuing(&self) -> String {
        match &self.version {
            Some(version) if self.received > 0 => {
                format!("Range: bytes={}-\r\nIf-Range: {version}\r\n", self.received)
            }
            _ => String::new(),
        }
    }

    fn restart(&mut self) -> Result<(), HttpError> {
        self.received = 0;
        self.version = None;
        self.receiver.restart().map_err(HttpError::Receiver)
    }

    fn receive(&mut self, piece: &[u8]) -> Result<(), HttpError> {
        self.receiver.receive(piece).map_err(HttpError::Receiver)?;
        self.received += piece.len() as u64;
        Ok(())
    }
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
    proxies: &Proxies,
    request: &Request<'_>,
    download: &mut Download<'_>,
) -> Result<Answer, HttpError> {
    let mut address = Address::parse(request.url)?;
    for _ in 0..=REDIRECTS_MAX {
        let proxy = proxies.find(&address)?;
        let mut target = address.path.clone();
        let mut headers = String::new();
        if let Some(proxy) = proxy.as_ref().filter(|_| !address.secure) {
            target = address.url();
            headers = proxy.header();
        }
        match (download.continuing(), request.since) {
            (rest, _) if !rest.is_empty() => headers.push_str(&rest),
            (_, Some(date)) => {
                for part in ["If-Modified-Since: ", date, "\r\n"] {
                    headers.push_str(part);
                }
            }
            _ => {}
        }
        let text = format!(
            "GET {target} HTTP/1.1\r\nHost: {}\r\nUser-Agent: marvin\r\nAccept: */*\r\n{headers}Connection: close\r\n\r\n",
            address.authority()
        );
        let mut stream = BufReader::new(connect(&address, proxy.as_ref())?);
        stream.get_mut().write_all(text.as_bytes())?;
        let head = read_head(&mut stream)?;
        match head.status {
            200 => {
                download.restart()?;
                download.version.clone_from(&head.version);
            }
            206 if download.received > 0 && head.start == Some(download.received) => {}
            // A server that cannot continue after all: from the beginning, at the next try.
            206 | 416 => {
                download.restart()?;
                return Err(HttpError::Passing("it does not continue".to_owned()));
            }
            304 => return Ok(Answer::Unchanged),
            301 | 302 | 303 | 307 | 308 => {
                let location = head
                    .location
                    .ok_or_else(|| HttpError::network("a redirection to nowhere".to_owned()))?;
                address = address.redirected(&location)?;
                continue;
            }
            407 if let Some(proxy) = &proxy => return Err(proxy.refusal(&head.login_schemes)),
            429 | 503 => return Err(head.throttled()),
            status => return Err(HttpError::Status(status)),
        }
        read_body(&mut stream, &head, request.bytes_max, download)?;
        return Ok(Answer::Received {
            modified: head.modified,
        });
    }
    Err(HttpError::network(format!(
        "more than {REDIRECTS_MAX} redirections"
    )))
}

/// The head of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    length: Option<u64>,
    chunked: bool,
    modified: Option<String>,
    location: Option<String>,
    /// What names this content, to continue it: a strong ETag, else the date.
    version: Option<String>,
    /// Where the content begins, of a part.
    start: Option<u64>,
    wait: Option<Duration>,
    /// The ways to log in at a proxy.
    pub(crate) login_schemes: String,
}

impl Head {
    pub(crate) fn throttled(&self) -> HttpError {
        HttpError::Throttled {
            status: self.status,
            wait: self.wait,
        }
    }
}

pub(crate) fn read_head(stream: &mut impl BufRead) -> Result<Head, HttpError> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let before = bytes.len();
        let room = (HEAD_MAX - before) as u64;
        stream.by_ref().take(room).read_until(b'\n', &mut bytes)?;
        if bytes.is_empty() {
            return Err(HttpError::Passing(
                "the connection ended without an answer".to_owned(),
            ));
        }
        if bytes.len() == before {
            return Err(damaged_head());
        }
    }
    parse_head(&bytes)
}

fn damaged_head() -> HttpError {
    HttpError::network("its answer is no HTTP".to_owned())
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
    let mut date = None;
    let mut wait = None;
    for header in response.headers.iter() {
        let value = String::from_utf8_lossy(header.value).trim().to_owned();
        match header.name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = Some(value.parse().map_err(|_| damaged_head())?),
            "transfer-encoding" => head.chunked = value.eq_ignore_ascii_case("chunked"),
            "last-modified" => head.modified = Some(value),
            "location" => head.location = Some(value),
            "etag" if value.starts_with('"') => head.version = Some(value),
            "content-range" => head.start = range_start(&value),
            "date" => date = httpdate::parse_http_date(&value).ok(),
            "retry-after" => wait = Some(value),
            "proxy-authenticate" => {
                head.login_schemes.push_str(&value);
                head.login_schemes.push(' ');
            }
            _ => {}
        }
    }
    head.version = head.version.or_else(|| head.modified.clone());
    head.wait = wait.and_then(|wait| parse_wait(&wait, date));
    Ok(head)
}

/// Reads where the content of `bytes 5-9/10` begins.
fn range_start(value: &str) -> Option<u64> {
    let (start, _) = value.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}

/// Reads how long to wait: seconds, or a date, which the server's own clock, `now`, says how far
/// away it is.
fn parse_wait(value: &str, now: Option<SystemTime>) -> Option<Duration> {
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now?).unwrap_or_default())
}

fn read_body(
    stream: &mut impl BufRead,
    head: &Head,
    bytes_max: u64,
    download: &mut Download<'_>,
) -> Result<(), HttpError> {
    let mut room = bytes_max.saturating_sub(download.received);
    if head.chunked {
        loop {
            let length = chunk_length(stream)?;
            if length == 0 {
                return Ok(());
            }
            read_piece(stream, Some(length), &mut room, download)?;
            let mut end = [0; 2];
            stream.read_exact(&mut end)?;
            if end != *b"\r\n" {
                return Err(damaged_head());
            }
        }
    }
    read_piece(stream, head.length, &mut room, download)
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
    download: &mut Download<'_>,
) -> Result<(), HttpError> {
    let mut left = length;
    loop {
        if left == Some(0) {
            return Ok(());
        }
        let piece = stream.fill_buf()?;
        if piece.is_empty() {
            return match left {
                Some(left) => Err(HttpError::Passing(format!("it ends {left} bytes too soon"))),
                None => Ok(()),
            };
        }
        let taken = (piece.len() as u64).min(left.unwrap_or(u64::MAX));
        *room = room
            .checked_sub(taken)
            .ok_or_else(|| HttpError::network("its answer is larger than expected".to_owned()))?;
        let bytes = usize::try_from(taken).unwrap_or(piece.len());
        download.receive(&piece[..bytes])?;
        stream.consume(bytes);
        left = left.map(|left| left - taken);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::{
        Answer, Download, HttpError, Request, get_through, parse_head, read_body, read_head,
    };
    use crate::proxy::Proxies;

    thread_local! {
        /// The pauses of this thread, noted and not waited for (s).
        static PAUSES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }

    fn note(pause: Duration) {
        PAUSES.with_borrow_mut(|pauses| pauses.push(pause.as_secs()));
    }

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

    /// What came of a request.
    struct Fetched {
        answer: Result<Answer, String>,
        body: Vec<u8>,
        requests: Vec<String>,
        /// The pauses between tries (s).
        pauses: Vec<u64>,
    }

    /// Gets a file from a server with these answers, through no proxy.
    fn fetch(answers: &[&str]) -> Fetched {
        let (url, served) = server(
            answers
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .collect(),
        );
        fetch_from(&Proxies::default(), &format!("{url}/x"), served)
    }

    fn fetch_from(
        proxies: &Proxies,
        url: &str,
        served: std::thread::JoinHandle<Vec<String>>,
    ) -> Fetched {
        let mut body = Vec::new();
        let request = Request {
            url,
            since: Some("Sat, 01 Jan 2000 00:00:00 GMT"),
            bytes_max: 10,
            pause: note,
        };
        let answer =
            get_through(proxies, &request, &mut body).map_err(|error| format!("{error:?}"));
        Fetched {
            answer,
            body,
            requests: served.join().unwrap(),
            pauses: PAUSES.take(),
        }
    }

    #[test]
    fn content_of_known_and_unknown_length_is_received() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nLast-Modified: D\r\n\r\nhello more",
            "HTTP/1.1 200 OK\r\nlast-modified: D\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nLast-Modified: D\r\n\r\n2;x\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
        ] {
            let got = fetch(&[answer]);
            let modified = Some("D".to_owned());
            assert_eq!(got.answer, Ok(Answer::Received { modified }));
            assert_eq!(got.body, b"hello");
            assert!(got.requests[0].starts_with("GET /x HTTP/1.1\r\nHost: 127.0.0.1:"));
            assert!(got.requests[0].contains("If-Modified-Since: Sat, 01 Jan 2000"));
        }
    }

    #[test]
    fn redirections_are_followed() {
        let got = fetch(&[
            "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\n\r\n",
        ]);
        assert_eq!(got.answer, Ok(Answer::Unchanged));
        assert!(got.body.is_empty() && got.requests[1].starts_with("GET /elsewhere "));
    }

    #[test]
    fn passing_faults_are_tried_again_with_growing_pauses() {
        let got = fetch(&[
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
            "",
            "HTTP/1.1 502 Bad Gateway\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ]);
        got.answer.unwrap();
        assert_eq!(got.body, b"hello");
        assert_eq!(got.pauses, [1, 2, 4]);
        assert!(!got.requests[1].contains("Range"), "it has no version");
        let got = fetch(&["HTTP/1.1 504 Late\r\n\r\n"; 4]);
        let error = got.answer.unwrap_err();
        assert!(error.contains("status 504 (tried 4 times)"), "{error}");
    }

    #[test]
    fn throttling_server_says_how_long_to_wait() {
        let now = "Date: Sat, 01 Jan 2000 00:00:00 GMT";
        let dated = format!(
            "HTTP/1.1 503 Later\r\nRetry-After: Sat, 01 Jan 2000 00:00:20 GMT\r\n{now}\r\n\r\n"
        );
        let got = fetch(&[
            "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\n\r\n",
            &dated,
            "HTTP/1.1 503 Later\r\nRetry-After: soon\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        ]);
        got.answer.unwrap();
        assert_eq!(got.pauses, [7, 20, 4]);
        let got = fetch(&["HTTP/1.1 429 Slow\r\nRetry-After: 3600\r\n\r\n"; 4]);
        assert_eq!(got.pauses, [60, 60, 60]);
        let error = got.answer.unwrap_err();
        assert!(
            error.contains("throttles with status 429 (tried 4 times); it asks to wait 3600 s"),
            "{error}"
        );
    }

    #[test]
    fn silent_server_is_tried_twice() {
        let silent = HttpError::Silent("x".to_owned());
        assert_eq!(silent.pause(1), Some(Duration::from_secs(1)));
        assert_eq!(silent.pause(2), None);
    }

    #[test]
    fn broken_connection_is_continued() {
        for version in [
            "ETag: \"v1\"",
            "Last-Modified: Fri, 31 Dec 1999 00:00:00 GMT",
        ] {
            let first = format!("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n{version}\r\n\r\nhel");
            let rest =
                "HTTP/1.1 206 Part\r\nContent-Length: 2\r\nContent-Range: bytes 3-4/5\r\n\r\nlo";
            let got = fetch(&[&first, rest]);
            got.answer.unwrap();
            assert_eq!(got.body, b"hello");
            let (_, value) = version.split_once(": ").unwrap();
            let asked = format!("Range: bytes=3-\r\nIf-Range: {value}\r\n");
            assert!(got.requests[1].contains(&asked), "{}", got.requests[1]);
            assert!(!got.requests[1].contains("If-Modified-Since"));
            // Another content, a server that gives the whole, and one that gives another part.
            let whole = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nworld";
            let other = "HTTP/1.1 206 Part\r\nContent-Range: bytes 1-4/5\r\n\r\nello";
            for answers in [
                vec![first.as_str(), whole],
                vec![&first, other, whole],
                vec![&first, "HTTP/1.1 416 No\r\n\r\n", whole],
            ] {
                let got = fetch(&answers);
                got.answer.unwrap();
                assert_eq!(got.body, b"world");
            }
        }
    }

    #[test]
    fn refusals_name_their_reason_and_stay() {
        for status in [400, 401, 403, 404, 408, 410, 501] {
            let answer = format!("HTTP/1.1 {status} No\r\nContent-Length: 3\r\n\r\nno!");
            let got = fetch(&[&answer]);
            assert_eq!(got.answer.unwrap_err(), format!("Status({status})"));
        }
        let got = fetch(&["HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world"]);
        assert!(got.answer.unwrap_err().contains("larger than expected"));
        let served = std::thread::spawn(Vec::new);
        let closed = fetch_from(&Proxies::default(), "http://127.0.0.1:1/", served);
        assert!(closed.answer.unwrap_err().contains("refused"));
        assert!(
            closed.pauses.is_empty(),
            "a host without a network waits for nothing"
        );
    }

    #[test]
    fn proxy_gets_the_login_and_servers_do_not() {
        let refused = "HTTP/1.1 407 Login\r\nProxy-Authenticate: Negotiate\r\nProxy-Authenticate: Basic realm=x\r\n\r\n";
        for (login, said) in [
            ("", "asks for a login"),
            ("me:s3%20cret@", "refuses the login"),
        ] {
            for scheme in ["http", "https"] {
                let (proxy, served) = server(vec![refused.as_bytes().to_vec()]);
                let proxy = Some(proxy.replace("http://", &format!("http://{login}")));
                let proxies = Proxies {
                    all: proxy,
                    ..Proxies::default()
                };
                let url = format!("{scheme}://archive.invalid/x");
                let got = fetch_from(&proxies, &url, served);
                let error = got.answer.unwrap_err();
                assert!(
                    error.contains(said) && error.contains("USER:PASSWORD"),
                    "{error}"
                );
                assert!(!error.contains("cret"), "{error}");
                // me:s3 cret
                let header = "Proxy-Authorization: Basic bWU6czMgY3JldA==\r\n";
                assert_eq!(got.requests[0].contains(header), !login.is_empty());
                let method = if scheme == "http" {
                    "GET http"
                } else {
                    "CONNECT "
                };
                assert!(got.requests[0].starts_with(method));
            }
        }
        let other = "HTTP/1.1 407 Login\r\nProxy-Authenticate: NTLM\r\n\r\n";
        let (proxy, served) = server(vec![other.as_bytes().to_vec()]);
        let proxies = Proxies {
            http: Some(proxy),
            ..Proxies::default()
        };
        let got = fetch_from(&proxies, "http://archive.invalid/x", served);
        assert!(got.answer.unwrap_err().contains("a login by NTLM"));
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
            let mut download = Download {
                receiver: &mut body,
                received: 0,
                version: None,
            };
            drop(read_body(&mut bytes.as_slice(), &head, 50, &mut download));
            prop_assert!(body.len() <= 50);
        }
    }
}
