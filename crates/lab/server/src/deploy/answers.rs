//! Answers to the iPXE of one server, by HTTP: the script that starts the image, its kernel, and
//! its root with the seal. All other cards get a script that goes on with their next boot device.
//!
//! Every client that knows a card's address can ask in its name, and HTTP is not encrypted. So the
//! seal has a key that is for one boot only, and is given once: if another client took it, the
//! server does not come up, which is seen. Files are at addresses with a token of random digits,
//! which only the script has. Format of scripts: <https://ipxe.org/scripting>.

use std::fmt::{self, Debug};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use model::{ClientCounts, ClientLimits};
use subprocess::Shared;

use super::DeployError;

/// Limit on a request (bytes).
const REQUEST_MAX: u64 = 8 << 10;
/// How long a request may take to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long a client may take no byte of its answer.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long an answer may take at least, and for each megabyte more: 128 kB/s.
const ANSWER_TIME: Duration = Duration::from_secs(60);
const MEGABYTE_TIME: Duration = Duration::from_secs(8);
/// How many connections there are at once. iPXE opens one after another.
const CLIENTS: ClientLimits = ClientLimits {
    all: 64,
    of_one: 4,
    of_others: 64,
};
/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;
/// How many addresses are kept that were asked for.
const ASKED_MAX: usize = 50;
/// A script for other cards.
const OTHERS: &str = "#!ipxe\nexit\n";

/// What a server gets.
#[derive(Clone)]
pub struct Offer {
    /// Its network card, as in `52-54-00-12-34-56`.
    pub mac: String,
    /// The file with the kernel.
    pub kernel: PathBuf,
    /// The file with the root.
    pub root: PathBuf,
    /// An archive that follows the root.
    pub seal: Vec<u8>,
    /// The kernel's command line.
    pub command_line: String,
}

impl Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("mac", &self.mac)
            .field("kernel", &self.kernel)
            .finish_non_exhaustive()
    }
}

enum Body {
    Text(String),
    File(PathBuf),
    Bytes(Vec<u8>),
}

/// What all connections share.
struct Offering {
    offer: Offer,
    token: String,
    state: Shared<State>,
    ended: AtomicBool,
}

struct State {
    clients: ClientCounts,
    requests: Vec<String>,
    /// Who has got the seal.
    seal_of: Option<IpAddr>,
}

impl Offering {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns what a client gets at a path; `None` if there is nothing.
    fn body_at(&self, path: &str, client: IpAddr, method: Method) -> Option<Body> {
        let offer = &self.offer;
        let is_of = |given: &str| given == self.token;
        match path.strip_prefix('/')?.split_once('/') {
            Some((given, "vmlinuz")) if is_of(given) => Some(Body::File(offer.kernel.clone())),
            Some((given, "root")) if is_of(given) => Some(Body::File(offer.root.clone())),
            Some((given, "seal")) if is_of(given) => {
                let mut state = self.state();
                let is_first = state.seal_of.is_none();
                if method == Method::Get {
                    state.seal_of.get_or_insert(client);
                }
                is_first.then(|| Body::Bytes(offer.seal.clone()))
            }
            Some(_) => None,
            None if path[1..].to_lowercase().replace(':', "-") == offer.mac => {
                Some(Body::Text(offer.script(&self.token)))
            }
            None => Some(Body::Text(OTHERS.to_owned())),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Get,
    Head,
}

impl Offer {
    fn script(&self, token: &str) -> String {
        // By EFI the kernel asks for its initramfs by this name; by BIOS it is of no consequence.
        let line = &self.command_line;
        format!(
            "#!ipxe\nkernel /{token}/vmlinuz initrd=initrd.magic {line}\ninitrd /{token}/root\ninitrd /{token}/seal\nboot\n"
        )
    }
}

/// A server of HTTP that lives as long as the value.
pub struct Answers {
    address: SocketAddr,
    shared: Arc<Offering>,
    thread: Option<JoinHandle<()>>,
}

impl Debug for Answers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answers")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Answers {
    /// Begins to answer.
    ///
    /// # Errors
    /// If the address cannot be listened at.
    pub fn open(listen: SocketAddr, offer: Offer) -> Result<Self, DeployError> {
        let wrong = |source| DeployError::Listen {
            address: listen,
            source,
        };
        let token = random_token().map_err(wrong)?;
        let listener = TcpListener::bind(listen).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let state = State {
            clients: ClientCounts::new(CLIENTS),
            requests: Vec::new(),
            seal_of: None,
        };
        let shared = Arc::new(Offering {
            offer,
            token,
            state: Shared::new(state),
            ended: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let Ok(client) = stream.peer_addr().map(|peer| peer.ip()) else {
                    continue;
                };
                // Any host of the network may connect: one that opens many connections gets no
                // threads for them.
                if !accepting.state().clients.admit(client) {
                    continue;
                }
                let shared = Arc::clone(&accepting);
                thread::spawn(move || {
                    // A client that goes away asks again.
                    drop(answer(&stream, client, &shared));
                    drop(stream);
                    shared.state().clients.release(client);
                });
            }
        });
        Ok(Self {
            address,
            shared,
            thread: Some(thread),
        })
    }

    /// Returns where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the paths that were asked for, without tokens, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.shared.state().requests.clone()
    }

    /// Returns who has got the seal.
    #[must_use]
    pub fn seal_of(&self) -> Option<IpAddr> {
        self.shared.state().seal_of
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.shared.ended.store(true, Ordering::Relaxed);
        // The thread waits for a client: this one.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            drop(thread.join());
        }
    }
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(model::hexadecimal(&bytes))
}

/// A connection with a deadline for all that is read, or written, from now on.
struct Timed<'a> {
    stream: &'a TcpStream,
    until: Instant,
}

impl Timed<'_> {
    /// Returns how long the next step may take.
    fn left(&self) -> io::Result<Duration> {
        let left = self
            .until
            .saturating_duration_since(Instant::now())
            .min(PATIENCE);
        if left.is_zero() {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(left)
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// Reads the first line of a request, and the rest of its head.
fn read_request(stream: &TcpStream, time: Duration) -> io::Result<String> {
    let mut request = String::new();
    let mut from = BufReader::new(
        Timed {
            stream,
            until: Instant::now() + time,
        }
        .take(REQUEST_MAX),
    );
    from.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            return Ok(request);
        }
    }
}

fn answer(stream: &TcpStream, client: IpAddr, shared: &Offering) -> io::Result<()> {
    let request = read_request(stream, REQUEST_TIME)?;
    let mut to = Timed {
        stream,
        until: Instant::now() + ANSWER_TIME,
    };
    let mut parts = request.split_whitespace();
    let method = parts.next().unwrap_or_default();
    let path = parts.next().unwrap_or_default();
    let method = match method {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        _ => return to.write_all(
            b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
    };
    let path = path.split('?').next().unwrap_or_default();
    let Some(body) = shared.body_at(path, client, method) else {
        return to.write_all(
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
    };
    let mut state = shared.state();
    if state.requests.len() < ASKED_MAX {
        state.requests.push(model::sanitize_line(
            path.rsplit('/').next().unwrap_or_default(),
        ));
    }
    drop(state);
    let (length, mut body): (u64, Box<dyn Read>) = match body {
        Body::Text(text) => (text.len() as u64, Box::new(io::Cursor::new(text))),
        Body::Bytes(bytes) => (bytes.len() as u64, Box::new(io::Cursor::new(bytes))),
        Body::File(path) => {
            let file = File::open(path)?;
            (file.metadata()?.len(), Box::new(file))
        }
    };
    to.until += MEGABYTE_TIME * u32::try_from(length >> 20).unwrap_or(u32::MAX);
    write!(
        to,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    if method == Method::Get {
        io::copy(&mut body, &mut to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::{Duration, Instant};

    use super::{Answers, Offer, read_request};

    fn ask(answers: &Answers, request: &str) -> String {
        let mut stream = TcpStream::connect(answers.address()).unwrap();
        write!(stream, "{request}\r\nHost: x\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    fn open(folder: &tempfile::TempDir) -> Answers {
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        };
        let offer = Offer {
            mac: "52-54-00-12-34-56".into(),
            kernel: file("vmlinuz", "kernel"),
            root: file("root", "root"),
            seal: b"secret".to_vec(),
            command_line: "console=ttyS0".into(),
        };
        Answers::open("127.0.0.1:0".parse().unwrap(), offer).unwrap()
    }

    #[test]
    fn server_gets_script_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let answers = open(&folder);
        let script = ask(&answers, "GET /52-54-00-12-34-56 HTTP/1.1");
        let token = script.split('/').nth(2).unwrap().to_owned();
        insta::assert_snapshot!(script.replace(&token, "TOKEN").replace('\r', ""));
        for (name, content) in [("vmlinuz", "kernel"), ("root", "root"), ("seal", "secret")] {
            assert!(
                ask(&answers, &format!("GET /{token}/{name} HTTP/1.1"))
                    .ends_with(&format!("\r\n\r\n{content}"))
            );
        }
        assert_eq!(
            answers.requests(),
            ["52-54-00-12-34-56", "vmlinuz", "root", "seal"]
        );
    }

    #[test]
    fn seal_is_given_once() {
        let folder = tempfile::tempdir().unwrap();
        let answers = open(&folder);
        let token = || {
            let script = ask(&answers, "GET /52-54-00-12-34-56 HTTP/1.1");
            script.split('/').nth(2).unwrap().to_owned()
        };
        let first = token();
        assert!(ask(&answers, &format!("HEAD /{first}/seal HTTP/1.1")).starts_with("HTTP/1.1 200"));
        assert_eq!(answers.seal_of(), None);
        assert!(ask(&answers, &format!("GET /{first}/seal HTTP/1.1")).ends_with("secret"));
        assert_eq!(answers.seal_of(), Some("127.0.0.1".parse().unwrap()));
        // The second client sees that another one was first.
        let second = ask(&answers, &format!("GET /{}/seal HTTP/1.1", token()));
        assert!(
            second.starts_with("HTTP/1.1 404") && !second.contains("secret"),
            "{second}"
        );
        drop(answers);
        let answers = open(&folder);
        assert!(
            ask(&answers, &format!("GET /{first}/seal HTTP/1.1")).starts_with("HTTP/1.1 404"),
            "the token is new"
        );
    }

    #[test]
    fn silent_client_shuts_no_other_out() {
        let folder = tempfile::tempdir().unwrap();
        let answers = open(&folder);
        let silent: Vec<TcpStream> = (0..80)
            .map(|_| TcpStream::connect(answers.address()).unwrap())
            .collect();
        // Another address of this host.
        let from = ["--interface", "127.0.0.2"];
        let url = format!("http://{}/x", answers.address());
        let requests = std::process::Command::new("curl")
            .args(["-si", "-m", "5"])
            .args(from)
            .arg(url)
            .output()
            .unwrap();
        let reply = String::from_utf8_lossy(&requests.stdout).into_owned();
        assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
        drop(silent);
    }

    #[test]
    fn request_that_trickles_in_has_a_deadline() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        let begun = Instant::now();
        let time = Duration::from_millis(500);
        let trickle = std::thread::spawn(move || {
            while client.write_all(b"G").is_ok() && begun.elapsed() < time * 20 {
                std::thread::sleep(time / 10);
            }
        });
        assert!(read_request(&server, time).is_err());
        assert!(begun.elapsed() < time * 10, "{:?}", begun.elapsed());
        drop(server);
        trickle.join().unwrap();
    }

    #[test]
    fn others_get_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let answers = open(&folder);
        assert!(ask(&answers, "GET /52-54-00-12-34-57 HTTP/1.1").ends_with("#!ipxe\nexit\n"));
        let refused = [
            "GET /token/seal HTTP/1.1",
            "GET /../../etc/passwd HTTP/1.1",
            "GET nothing HTTP/1.1",
            "",
        ];
        for request in refused {
            let answer = ask(&answers, request);
            assert!(
                answer.starts_with("HTTP/1.1 40") && answer.ends_with("\r\n\r\n"),
                "{request}: {answer}"
            );
        }
    }
}
