//! A dashboard's server that ends with its test, whether that passes or fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};

pub(crate) struct Server {
    process: Child,
    stderr: BufReader<ChildStderr>,
    first: String,
    /// Its address and port.
    pub(crate) address: String,
}

impl Server {
    /// Starts `marvin serve` on a free port.
    pub(crate) fn start(mut marvin: Command) -> Self {
        let command = marvin
            .args(["serve", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut stderr = BufReader::new(process.stderr.take().unwrap());
        let mut first = String::new();
        // Before that it may say that it waits for the store's server.
        while !first.contains("http://") {
            first.clear();
            assert!(stderr.read_line(&mut first).unwrap() > 0, "it ended");
        }
        let address = first
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split('/').next());
        let address = address
            .unwrap_or_else(|| panic!("no address: {first}"))
            .to_owned();
        Self {
            process,
            stderr,
            first,
            address,
        }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Asks for a page, and returns the answer with its head.
    pub(crate) fn ask(&self, path: &str) -> String {
        self.try_to_ask(path).unwrap()
    }

    /// The same; fails if the server closes the connection, as it has too many.
    pub(crate) fn try_to_ask(&self, path: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        let question =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(question.as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Returns a field of its status in kB: `VmRSS` is its memory, `VmHWM` the largest so far.
    pub(crate) fn memory_kb(&self, field: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// Ends it, and returns all that it printed.
    pub(crate) fn end(mut self) -> String {
        self.kill();
        let mut stderr = std::mem::take(&mut self.first);
        self.stderr.read_to_string(&mut stderr).unwrap();
        stderr
    }

    fn kill(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
