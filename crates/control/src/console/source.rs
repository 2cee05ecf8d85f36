//! Connections to consoles: a program, a TCP address, serial-over-LAN of a BMC.

use std::io::{self, Read};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::process::{ChildStdout, Stdio};
use std::time::Duration;

use model::{ConsoleSettings, Ipmi, PowerSettings, ServerSettings};
use process::{Program, Running};
use rustix::net::sockopt;

use crate::Refusal;
use crate::ipmi::IpmiTool;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection on which nothing came for so long is asked whether it lives.
const IDLE: Duration = Duration::from_secs(60);
/// Deadline of the program that prints a console (s): a week. Then it is started again.
const PROGRAM_S: u64 = 7 * 86_400;

/// Ends a connection when it is dropped, so that reads end.
#[derive(Debug)]
pub(super) enum Connection {
    Program(Running),
    Tcp(TcpStream),
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self {
            Self::Program(running) => drop(running.kill()),
            Self::Tcp(stream) => drop(stream.shutdown(Shutdown::Both)),
        }
    }
}

/// An open console.
pub(super) struct Open {
    /// What it prints, until the connection ends.
    pub(super) bytes: Box<dyn Read + Send>,
    pub(super) connection: Connection,
}

/// Connects to the console of a server; why not, in a few words.
pub(super) fn open(server: &ServerSettings) -> Result<Open, String> {
    match &server.console {
        None => Err(format!("{} has no [machine.console]", server.name)),
        Some(ConsoleSettings::Command(words)) => {
            let (program, arguments) = words.split_first().ok_or("no program")?;
            start(&Program::new(program).args(arguments), Stdio::null())
        }
        Some(ConsoleSettings::Tcp(address)) => tcp(address).map_err(|error| format!("{address}: {error}")),
        Some(ConsoleSettings::Ipmi) => match &server.power {
            Some(PowerSettings::Ipmi(ipmi)) => sol(&server.name, ipmi),
            _ => Err("its [machine.power] is not by IPMI".to_owned()),
        },
    }
}

fn start(program: &Program, input: Stdio) -> Result<Open, String> {
    let started = program.clone().deadline_s(PROGRAM_S).start(input, Stdio::piped(), Stdio::null());
    let mut running = started.map_err(|error| format!("{}: {error}", program.command()))?;
    let output: Option<ChildStdout> = running.take_output();
    let output = output.ok_or("its output cannot be read")?;
    Ok(Open { bytes: Box::new(output), connection: Connection::Program(running) })
}

fn tcp(address: &str) -> io::Result<Open> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                // A terminal server that lost its power ends no connection.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, IDLE)?;
                let connection = Connection::Tcp(stream.try_clone()?);
                return Ok(Open { bytes: Box::new(stream), connection });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A BMC gives its console to one client: one that was killed is ended first. ipmitool wants a terminal, which script(1) is.
fn sol(name: &str, ipmi: &Ipmi) -> Result<Open, String> {
    let tool = IpmiTool { name: name.to_owned(), ipmi: ipmi.clone() };
    let program = |words: &[&str]| tool.program(words).map_err(Refusal::text);
    drop(program(&["sol", "deactivate"])?.deadline_s(60).run());
    let (words, password) = tool.arguments(&["sol", "activate"]).map_err(Refusal::text)?;
    let words: Vec<String> = words.iter().map(|word| format!("'{}'", word.replace('\'', r"'\''"))).collect();
    let script = format!("exec ipmitool {}", words.join(" "));
    let program = Program::new("script").args(["-qefc", &script, "/dev/null"]).variable("IPMI_PASSWORD", password);
    // Its input stays open: at the end of it script(1) ends.
    start(&program, Stdio::piped())
}
