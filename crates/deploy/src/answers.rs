//! Answers to the iPXE of one server, by HTTP: the script that starts the image, its kernel, and its root with the seal. All other
//! cards get a script that goes on with their next boot device.
//!
//! The seal has the server's private host key: its address contains a hash of it, which only the script has. Format of scripts:
//! <https://ipxe.org/scripting>.

use std::fmt::{self, Debug};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::DeployError;
use crate::image::hex;

/// Limit on a request (bytes).
const REQUEST_MAX: u64 = 8 << 10;
/// How long a client may be silent.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many clients there are at once.
const CLIENTS_MAX: u32 = 16;
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
        f.debug_struct("Offer").field("mac", &self.mac).field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

/// What is sent.
enum Body {
    Text(String),
    File(PathBuf),
    Bytes(Vec<u8>),
}

impl Offer {
    fn token(&self) -> String {
        hex(&Sha256::digest(&self.seal))[..32].to_owned()
    }

    /// Returns what is at a path; `None` if there is nothing.
    fn at(&self, path: &str) -> Option<Body> {
        let token = self.token();
        match path.strip_prefix('/')?.split_once('/') {
            Some((given, "vmlinuz")) if given == token => Some(Body::File(self.kernel.clone())),
            Some((given, "root")) if given == token => Some(Body::File(self.root.clone())),
            Some((given, "seal")) if given == token => Some(Body::Bytes(self.seal.clone())),
            Some(_) => None,
            None if path[1..].to_lowercase().replace(':', "-") == self.mac => Some(Body::Text(self.script(&token))),
            None => Some(Body::Text(OTHERS.to_owned())),
        }
    }

    fn script(&self, token: &str) -> String {
        // By EFI the kernel asks for its initramfs by this name; by BIOS it is of no consequence.
        let line = &self.command_line;
        format!(
            "#!ipxe\nkernel /{token}/vmlinuz initrd=initrd.magic {line}\ninitrd /{token}/root\ninitrd /{token}/seal\nboot\n"
        )
    }
}

/// A server of HTTP that lives as long as the value.
#[derive(Debug)]
pub struct Answers {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
}

impl Answers {
    /// Begins to answer.
    ///
    /// # Errors
    /// If the address cannot be listened at.
    pub fn open(listen: SocketAddr, offer: Offer) -> Result<Self, DeployError> {
        let wrong = |source| DeployError::Listen { address: listen, source };
        let listener = TcpListener::bind(listen).map_err(wrong)?;
        let address = listener.local_addr().map_err(wrong)?;
        let (ended, asked, offer) = (Arc::new(AtomicBool::new(false)), Arc::default(), Arc::new(offer));
        let (is_over, log) = (Arc::clone(&ended), Arc::clone(&asked));
        let thread = thread::spawn(move || {
            let clients = Arc::new(AtomicU32::new(0));
            for stream in listener.incoming() {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
                    clients.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let (offer, log, clients) = (Arc::clone(&offer), Arc::clone(&log), Arc::clone(&clients));
                thread::spawn(move || {
                    // A client that goes away asks again.
                    drop(answer(stream, &offer, &log));
                    clients.fetch_sub(1, Ordering::Relaxed);
                });
            }
        });
        Ok(Self { address, ended, asked, thread: Some(thread) })
    }

    /// Returns where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the paths that were asked for, without tokens, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // The thread waits for a client: this one.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            drop(thread.join());
        }
    }
}

fn answer(stream: TcpStream, offer: &Offer, asked: &Mutex<Vec<String>>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut to = stream.try_clone()?;
    let mut request = String::new();
    let mut from = BufReader::new(stream.take(REQUEST_MAX));
    from.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 || line.trim_end().is_empty() {
            break;
        }
    }
    let mut words = request.split_whitespace();
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if !matches!(method, "GET" | "HEAD") {
        return to.write_all(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
    let path = path.split('?').next().unwrap_or_default();
    let Some(body) = offer.at(path) else {
        return to.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let mut log = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if log.len() < ASKED_MAX {
        log.push(model::plain(path.rsplit('/').next().unwrap_or_default()));
    }
    drop(log);
    let (length, mut body): (u64, Box<dyn Read>) = match body {
        Body::Text(text) => (text.len() as u64, Box::new(io::Cursor::new(text))),
        Body::Bytes(bytes) => (bytes.len() as u64, Box::new(io::Cursor::new(bytes))),
        Body::File(path) => {
            let file = File::open(path)?;
            (file.metadata()?.len(), Box::new(file))
        }
    };
    write!(to, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")?;
    if method == "GET" {
        io::copy(&mut body, &mut to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use super::{Answers, Offer};

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
            assert!(ask(&answers, &format!("GET /{token}/{name} HTTP/1.1")).ends_with(&format!("\r\n\r\n{content}")));
        }
        assert_eq!(answers.asked(), ["52-54-00-12-34-56", "vmlinuz", "root", "seal"]);
    }

    #[test]
    fn others_get_nothing_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let answers = open(&folder);
        assert!(ask(&answers, "GET /52-54-00-12-34-57 HTTP/1.1").ends_with("#!ipxe\nexit\n"));
        let refused = ["GET /token/seal HTTP/1.1", "GET /../../etc/passwd HTTP/1.1", "GET nothing HTTP/1.1", ""];
        for request in refused {
            let answer = ask(&answers, request);
            assert!(answer.starts_with("HTTP/1.1 40") && answer.ends_with("\r\n\r\n"), "{request}: {answer}");
        }
    }
}
