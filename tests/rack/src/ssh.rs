//! How a server is reached: files for ssh(1), and one way of running commands.

use std::fs;
use std::io::Read;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use subprocess::{Ended, Program};

use crate::RackError;

/// Longest a command may take.
const COMMAND_S: u64 = 900;
/// Longest wait for the first words of sshd.
const BANNER: Duration = Duration::from_secs(5);

/// What ssh(1) needs to reach a server.
#[derive(Debug, Clone)]
pub struct Ssh {
    /// The name that the configuration knows.
    pub name: String,
    pub host: String,
    /// The port on this host.
    pub port: u16,
    /// The private key of its root, and of its user `lab`, who has no privileges.
    pub key: PathBuf,
    /// The file with the server's public key.
    pub known_hosts: PathBuf,
    /// A configuration: `ssh -F CONFIG NAME` asks no questions and checks the server's key.
    pub config: PathBuf,
}

impl Ssh {
    pub(crate) fn write(
        folder: &Path,
        name: &str,
        port: u16,
        key: &Path,
        host_key: &str,
    ) -> Result<Self, RackError> {
        let host = "127.0.0.1";
        let known_hosts = folder.join("known_hosts");
        let config = folder.join("ssh_config");
        let known = format!("[{host}]:{port} {host_key}\n{name} {host_key}\n");
        fs::write(&known_hosts, known).map_err(RackError::io("write", &known_hosts))?;
        let text = format!(
            "Host {name}\n  HostName {host}\n  Port {port}\n  User root\n  HostKeyAlias {name}\n  IdentityFile \"{}\"\n  \
             UserKnownHostsFile \"{}\"\n  GlobalKnownHostsFile /dev/null\n  StrictHostKeyChecking yes\n  \
             IdentitiesOnly yes\n  BatchMode yes\n  ConnectTimeout 30\n  ServerAliveInterval 15\n  ServerAliveCountMax 4\n",
            key.display(),
            known_hosts.display(),
        );
        fs::write(&config, text).map_err(RackError::io("write", &config))?;
        Ok(Self {
            name: name.to_owned(),
            host: host.to_owned(),
            port,
            key: key.to_owned(),
            known_hosts,
            config,
        })
    }

    /// Runs a command line of the server's shell.
    pub(crate) fn run(&self, command: &str) -> Result<Ended, RackError> {
        Ok(self.program(command).run()?)
    }

    /// Runs a command line of the server's shell with bytes as its input.
    pub(crate) fn run_with(&self, command: &str, input: &[u8]) -> Result<Ended, RackError> {
        // A command that does not read to the end fails by its status.
        Ok(self
            .program(command)
            .fed(|to| to.write_all(input).is_ok())?
            .0)
    }

    fn program(&self, command: &str) -> Program {
        let words = ["-o", "LogLevel=ERROR", "-F"].map(Into::into);
        let config = self.config.clone().into_os_string();
        let words = words
            .into_iter()
            .chain([config, (&self.name).into(), command.into()]);
        Program::new("ssh").args(words).deadline_s(COMMAND_S)
    }

    /// Returns whether sshd answers: first its greeting, which costs the server least.
    pub(crate) fn answers(&self) -> bool {
        self.greets() && self.run("true").is_ok_and(|ended| ended.code == Some(0))
    }

    fn greets(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect((&*self.host, self.port)) else {
            return false;
        };
        let mut greeting = [0; 4];
        stream.set_read_timeout(Some(BANNER)).is_ok()
            && stream.read_exact(&mut greeting).is_ok()
            && &greeting == b"SSH-"
    }
}
