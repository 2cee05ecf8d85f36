//! Connections to consoles: a program, a TCP address, serial-over-LAN of a BMC.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread::sleep;
use std::time::Duration;

use model::{ConsoleSettings, Ipmi, PowerSettings, ServerSettings};
use rustix::net::sockopt;
use subprocess::{Program, Running, quote_words};

use super::telnet::{self, Telnet};
use crate::power::IpmiTool;
use crate::power::Refusal;

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(10);
/// A connection on which nothing came for so long is asked whether it lives.
const IDLE: Duration = Duration::from_secs(60);
/// Deadline of the program that prints a console (s): a week. Then it is started again.
const PROGRAM_S: u64 = 7 * 86_400;
/// Deadline of the program that sends a break (s).
const BREAK_S: u64 = 20;
/// Time between a break and its key. ipmitool sends the break when it reads the escape, and text
/// after all that it read: both in one read would arrive in the wrong order. The kernel waits five
/// seconds for the key.
const PAUSE: Duration = Duration::from_millis(300);
/// What has ipmitool send a break: its escape, which it knows at the beginning of a line.
const SOL_BREAK: &str = "~B";

/// Ends a connection when it is dropped, so that reads end.
#[derive(Debug)]
pub(super) enum Connection {
    /// A program that prints the console.
    Program {
        running: Running,
        /// The program that sends a break.
        sends_break: Vec<String>,
    },
    Tcp {
        stream: TcpStream,
        is_telnet: bool,
    },
    Sol {
        running: Running,
        input: ChildStdin,
        /// Whether ipmitool is at the beginning of a line.
        is_fresh: bool,
    },
}

impl Drop for Connection {
    fn drop(&mut self) {
        match self {
            Self::Program { running, .. } | Self::Sol { running, .. } => drop(running.kill()),
            Self::Tcp { stream, .. } => drop(stream.shutdown(Shutdown::Both)),
        }
    }
}

impl Connection {
    /// Sends a break and then a key, if there is one; why not, in a few words.
    pub(super) fn send_break(&mut self, key: Option<char>) -> Result<(), String> {
        match self {
            Self::Program { sends_break, .. } => {
                let (program, arguments) = sends_break
                    .split_first()
                    .ok_or("no program sends a break")?;
                let key = key.map(String::from);
                let ended = Program::new(program)
                    .args(arguments)
                    .args(key)
                    .deadline_s(BREAK_S)
                    .run();
                let ended = ended.map_err(|error| error.to_string())?;
                if ended.code == Some(0) {
                    Ok(())
                } else {
                    Err(format!("{program}: {}", ended.reason()))
                }
            }
            Self::Tcp {
                is_telnet: false, ..
            } => Err("raw TCP has no break".to_owned()),
            Self::Tcp { stream, .. } => {
                stream
                    .write_all(&telnet::BREAK)
                    .map_err(|error| error.to_string())?;
                sleep(PAUSE);
                key.map_or(Ok(()), |key| {
                    stream
                        .write_all(&[u8::try_from(key).unwrap_or_default()])
                        .map_err(|error| error.to_string())
                })
            }
            Self::Sol {
                input, is_fresh, ..
            } => {
                // The key of a former break, or a break: no line began since.
                let mut write = |text: &str| {
                    input
                        .write_all(text.as_bytes())
                        .and_then(|()| input.flush())
                        .map_err(|error| error.to_string())?;
                    sleep(PAUSE);
                    Ok::<(), String>(())
                };
                if !*is_fresh {
                    write("\r")?;
                }
                write(SOL_BREAK)?;
                *is_fresh = false;
                key.map_or(Ok(()), |key| write(&key.to_string()))
            }
        }
    }
}

pub(super) struct Open {
    /// What it prints, until the connection ends.
    pub(super) bytes: Box<dyn Read + Send>,
    pub(super) connection: Connection,
}

/// Connects to the console of a server; why not, in a few words.
pub(super) fn open(server: &ServerSettings) -> Result<Open, String> {
    match &server.console {
        None => Err(format!("{} has no [machine.console]", server.name)),
        Some(ConsoleSettings::Command {
            command,
            sends_break,
        }) => {
            let (program, arguments) = command.split_first().ok_or("no program")?;
            let (output, running) = start(&Program::new(program).args(arguments), Stdio::null())?;
            let connection = Connection::Program {
                running,
                sends_break: sends_break.clone(),
            };
            Ok(Open {
                bytes: Box::new(output),
                connection,
            })
        }
        Some(ConsoleSettings::Tcp { address, is_telnet }) => {
            tcp(address, *is_telnet).map_err(|error| format!("{address}: {error}"))
        }
        Some(ConsoleSettings::Ipmi) => match &server.power {
            Some(PowerSettings::Ipmi(ipmi)) => sol(&server.name, ipmi),
            _ => Err("its [machine.power] is not by IPMI".to_owned()),
        },
    }
}

fn start(program: &Program, input: Stdio) -> Result<(ChildStdout, Running), String> {
    let started = program
        .clone()
        .deadline_s(PROGRAM_S)
        .start(input, Stdio::piped(), Stdio::null());
    let mut running = started.map_err(|error| format!("{}: {error}", program.command()))?;
    let output = running.take_output().ok_or("its output cannot be read")?;
    Ok((output, running))
}

fn tcp(address: &str, is_telnet: bool) -> io::Result<Open> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT) {
            Ok(stream) => {
                // A terminal server that lost its power ends no connection.
                sockopt::set_socket_keepalive(&stream, true)?;
                sockopt::set_tcp_keepidle(&stream, IDLE)?;
                // The break is a packet of its own, and its key the next one.
                stream.set_nodelay(true)?;
                let connection = Connection::Tcp {
                    stream: stream.try_clone()?,
                    is_telnet,
                };
                let bytes: Box<dyn Read + Send> = if is_telnet {
                    Box::new(Telnet::new(stream))
                } else {
                    Box::new(stream)
                };
                return Ok(Open { bytes, connection });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A BMC gives its console to one client: one that was killed is ended first. ipmitool wants a
/// terminal, which script(1) is.
fn sol(name: &str, ipmi: &Ipmi) -> Result<Open, String> {
    let tool = IpmiTool {
        name: name.to_owned(),
        ipmi: ipmi.clone(),
    };
    let program = |options: &[&str]| tool.program(options).map_err(Refusal::text);
    drop(program(&["sol", "deactivate"])?.deadline_s(60).run());
    let (options, password) = tool
        .arguments(&["sol", "activate"])
        .map_err(Refusal::text)?;
    let script = format!("exec ipmitool {}", quote_words(options));
    let program = Program::new("script")
        .args(["-qefc", &script, "/dev/null"])
        .variable("IPMI_PASSWORD", password);
    // Its input stays open: at the end of it script(1) ends.
    let (output, mut running) = start(&program, Stdio::piped())?;
    let input = running.take_input().ok_or("its input cannot be written")?;
    Ok(Open {
        bytes: Box::new(output),
        connection: Connection::Sol {
            running,
            input,
            is_fresh: true,
        },
    })
}
