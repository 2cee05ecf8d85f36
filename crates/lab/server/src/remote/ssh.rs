//! The way to a server by the system's ssh: one connection that all steps share, no password, keys
//! checked.
//!
//! The scripts in `scripts/` are POSIX shell. They come with the command, so that nothing of
//! Marvin's stays running there.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use machine::{hash, person};
use model::{BootOnce, ServerSettings};
use subprocess::Shared;
use subprocess::{Ended, Program, ProgramError, Running, quote_words};

use super::{AgentBoot, Capture, Facts, Kernel, ProgramFiles, RemoteHost};
use crate::deploy::seal;
use crate::problem::{LoginProblem, ServerProblem};

const FACTS: &str = include_str!("scripts/facts.sh");
const DRIVERS: &str = include_str!("scripts/drivers.sh");
const OWN: &str = include_str!("scripts/own.sh");
const LEAVE: &str = include_str!("scripts/leave.sh");
const INSTALL: &str = include_str!("scripts/install.sh");
const MODULES: &str = include_str!("scripts/modules.sh");
const ONCE: &str = include_str!("scripts/once.sh");
const KEXEC: &str = concat!(
    include_str!("scripts/kexec.sh"),
    include_str!("scripts/kexec_start.sh")
);
const GRUB: &str = include_str!("scripts/grub.sh");
const SYSTEMD_BOOT: &str = include_str!("scripts/systemd-boot.sh");
const COMMAND: &str = include_str!("scripts/command.sh");
pub(crate) const AGENT: &str = include_str!("scripts/agent.sh");
pub(crate) const PROGRAM: &str = include_str!("scripts/program.sh");
const CAPTURE: &str = include_str!("scripts/capture.sh");
const DUMP: &str = include_str!("scripts/dump.sh");
const REBOOT: &str = include_str!("scripts/reboot.sh");
const SHUT_DOWN: &str = include_str!("scripts/shut_down.sh");

/// Copies standard input to a path: renamed when it is whole and on the disk, as a kernel under test
/// may die at once.
const PUT: &str = "umask 077; mkdir -p \"${1%/*}\" && cat > \"$1.$$\" && chmod 700 \"$1.$$\" && sync && mv \"$1.$$\" \"$1\" || \
    { rm -f \"$1.$$\"; exit 1; }";
/// Marvin's directory on servers.
const HOME: &str = "/var/lib/marvin";
/// What a kernel under test reserves for a capture kernel, which is a distribution's with its
/// initramfs.
pub(crate) const RESERVED: &str = "crashkernel=512M-4G:256M,4G-:512M";
/// ssh's exit status if it is the connection that failed (ssh(1)).
const BROKEN: i32 = 255;
/// Deadlines of steps (s).
const FACTS_S: u64 = 60;
pub(crate) const COPY_S: u64 = 900;
const STEP_S: u64 = 120;

/// A server by ssh.
#[derive(Debug)]
pub(crate) struct Ssh {
    server: ServerSettings,
    /// Options and host, up to the command.
    fixed: Vec<String>,
    known_hosts: PathBuf,
    agent: Vec<u8>,
    /// Where the agent is on the server.
    agent_path: String,
    /// What other labs see: a token, and a name for people.
    holder: [String; 2],
    /// Whether the steps share a connection.
    shares: bool,
    master: Shared<Option<Running>>,
}

impl Ssh {
    /// Prepares the way; connects to nothing yet.
    pub(crate) fn new(
        server: ServerSettings,
        home: &Path,
        scratch: Option<&Path>,
        agent: &[u8],
    ) -> Self {
        let known_hosts = home.join("known_hosts");
        // A socket's path has at most 107 bytes, and ssh appends some while it opens it.
        let socket = scratch
            .map(|scratch| scratch.join("ssh"))
            .filter(|path| path.as_os_str().len() < 80);
        let shares = socket.is_some();
        let fixed = ssh_arguments(&server, home, socket);
        let agent_path = format!("{HOME}/agent-{}", &hash(&[agent])[..12]);
        let machine = std::fs::read("/etc/machine-id").unwrap_or_default();
        let token = hash(&[&machine, home.as_os_str().as_encoded_bytes()])[..16].to_owned();
        let holder = [token, person()];
        let agent = agent.to_owned();
        let master = Shared::default();
        Self {
            server,
            fixed,
            known_hosts,
            agent,
            agent_path,
            holder,
            shares,
            master,
        }
    }

    /// Opens the connection that the steps share, unless it is open. Without it each step connects
    /// by itself.
    fn connect(&self) {
        if !self.shares {
            return;
        }
        let mut master = self.master.lock();
        if master
            .as_mut()
            .is_some_and(|running| !running.try_wait().is_ok_and(|ended| ended.is_some()))
        {
            return;
        }
        // After a day it ends, and the next step opens another one.
        let program = self.ssh(&["-M", "-N"], &[]).deadline_s(86_400);
        *master = program
            .start(Stdio::null(), Stdio::null(), Stdio::null())
            .ok();
    }

    fn ssh(&self, options: &[&str], command: &[&str]) -> Program {
        let (host, rest) = self
            .fixed
            .split_last()
            .map_or(("", &[][..]), |(host, rest)| (host.as_str(), rest));
        let ssh_options = options
            .iter()
            .copied()
            .chain(rest.iter().map(String::as_str));
        let command = (!command.is_empty()).then(|| quote_words(command));
        Program::new("ssh")
            .args(ssh_options.chain(["--", host]))
            .args(command)
            .inherit(&["SSH_AUTH_SOCK"])
    }

    /// Runs a script there with arguments and standard input. The step is for people: `testbox
    /// cannot STEP`.
    fn run(
        &self,
        step: &'static str,
        script: &str,
        arguments: &[&str],
        input: &[u8],
        deadline_s: u64,
    ) -> Result<Ended, ServerProblem> {
        self.connect();
        let command: Vec<&str> = ["sh", "-c", script, "marvin"]
            .into_iter()
            .chain(arguments.iter().copied())
            .collect();
        let program = self.ssh(&[], &command).deadline_s(deadline_s);
        // A server that stops reading says why on standard error.
        match program.fed(|to| to.write_all(input)) {
            Ok((ended, _)) if ended.code == Some(BROKEN) => Err(self.broken(&ended)),
            Ok((ended, _)) => Ok(ended),
            Err(ProgramError::Deadline { seconds, .. }) => Err(ServerProblem::Overdue {
                name: self.server.name.clone(),
                step,
                seconds,
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs a script that must succeed.
    pub(crate) fn step(
        &self,
        step: &'static str,
        script: &str,
        arguments: &[&str],
        input: &[u8],
        deadline_s: u64,
    ) -> Result<(), ServerProblem> {
        let ended = self.run(step, script, arguments, input, deadline_s)?;
        if ended.code == Some(0) {
            return Ok(());
        }
        let answer = model::sanitize_line(&ended.reason());
        Err(ServerProblem::Step {
            name: self.server.name.clone(),
            step,
            answer,
        })
    }

    /// Copies a program there, unless it is there: its path has its hash.
    fn put(&self, step: &'static str, path: &str, bytes: &[u8]) -> Result<(), ServerProblem> {
        let there = self.run(step, "test -x \"$1\"", &[path], &[], STEP_S)?;
        if there.code == Some(0) {
            return Ok(());
        }
        // Renamed when it is whole: a copy that was cut would pass the test above.
        self.step(step, PUT, &[path], bytes, COPY_S)
    }

    /// Copies the files of a program there, unless they are there; returns their path.
    fn put_files(&self, files: &ProgramFiles) -> Result<String, ServerProblem> {
        let step = "take the files of the program";
        let path = format!("{HOME}/programs/{}", files.sha256);
        let there = self.run(step, "test -x \"$1\"", &[&path], &[], STEP_S)?;
        if there.code == Some(0) {
            return Ok(path);
        }
        let bytes = std::fs::read(&files.archive).map_err(|error| error.to_string());
        let intact = bytes.and_then(|bytes| {
            if hash(&[&bytes]) == files.sha256 {
                Ok(bytes)
            } else {
                Err("it was changed: remove it, Marvin makes it again".to_owned())
            }
        });
        let bytes = intact.map_err(|why| ServerProblem::Step {
            name: self.server.name.clone(),
            step,
            answer: format!("{}: {why}", files.archive.display()),
        })?;
        self.step(step, PUT, &[&path], &bytes, COPY_S)?;
        Ok(path)
    }

    /// Says why a connection failed.
    fn broken(&self, ended: &Ended) -> ServerProblem {
        let name = self.server.name.clone();
        let answer = model::sanitize_line(&ended.reason());
        // ssh has one exit status for all of these: only its messages tell them apart.
        let has = |text: &str| ended.stderr.contains(text);
        if has("Host key verification failed") || has("REMOTE HOST IDENTIFICATION HAS CHANGED") {
            let answer = ended
                .stderr
                .lines()
                .find(|line| line.contains("host key") || line.contains("HOST ID"));
            let answer = answer.map_or_else(
                || ended.reason(),
                |line| line.trim_matches(['@', ' ']).to_owned(),
            );
            let known_hosts = self.known_hosts.display().to_string();
            return LoginProblem::HostKey {
                name,
                answer: model::sanitize_line(&answer),
                known_hosts,
            }
            .into();
        }
        if has("Permission denied") || has("Too many authentication failures") {
            return LoginProblem::Refused {
                name,
                host: self.server.host.clone(),
                answer,
            }
            .into();
        }
        ServerProblem::Unreachable { name, answer }
    }
}

impl Ssh {
    /// Asks the server what it is, and does not hold it.
    pub(crate) fn look(&self) -> Result<Facts, ServerProblem> {
        self.ask(&self.holder[0], "")
    }

    fn ask(&self, token: &str, who: &str) -> Result<Facts, ServerProblem> {
        let step = "say what it is";
        let script = [FACTS, DRIVERS, OWN].concat();
        let ended = self.run(
            step,
            &script,
            &[token, who, self.server.boot.name()],
            &[],
            FACTS_S,
        )?;
        let facts = Facts::read(&ended.text());
        if !facts.get("held_by").is_empty() && !who.is_empty() {
            return Err(held(&self.server.name, &facts));
        }
        // The script prints that last: without it, facts are missing.
        if facts.get("done") == "yes" {
            return Ok(facts);
        }
        let answer = model::sanitize_line(&ended.reason());
        Err(ServerProblem::Step {
            name: self.server.name.clone(),
            step,
            answer,
        })
    }
}

impl RemoteHost for Ssh {
    fn facts(&self) -> Result<Facts, ServerProblem> {
        let [token, who] = &self.holder;
        self.ask(token, who)
    }

    fn install(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        self.step(
            "install the kernel",
            INSTALL,
            &[kernel.tag, kernel.release],
            kernel.archive,
            COPY_S,
        )
    }

    fn boot_once(&self, kernel: &Kernel<'_>) -> Result<(), ServerProblem> {
        if !kernel.release.is_empty() {
            self.step(
                "install the modules",
                MODULES,
                &[kernel.tag, kernel.release],
                &[],
                STEP_S,
            )?;
        }
        let (body, arguments) = match &self.server.boot {
            BootOnce::Kexec => (KEXEC, &[][..]),
            BootOnce::Grub => (GRUB, &[][..]),
            BootOnce::SystemdBoot => (SYSTEMD_BOOT, &[][..]),
            BootOnce::Command(command) => (COMMAND, &command[..]),
        };
        let crash = if self.server.collector.is_some() {
            RESERVED
        } else {
            ""
        };
        let script = format!("crash='{crash}'\n{ONCE}{body}");
        let arguments: Vec<&str> = [kernel.tag]
            .into_iter()
            .chain(arguments.iter().map(String::as_str))
            .collect();
        self.step("boot the kernel", &script, &arguments, &[], STEP_S)
    }

    fn reboot(&self) -> Result<(), ServerProblem> {
        self.step("restart", REBOOT, &[], &[], STEP_S)
    }

    fn shut_down(&self) -> Result<(), ServerProblem> {
        self.step("shut down", SHUT_DOWN, &[&self.holder[0]], &[], STEP_S)
    }

    fn run_agent(
        &self,
        on: &AgentBoot<'_>,
        own: &[&str],
        input: &[u8],
    ) -> Result<Ended, ServerProblem> {
        self.put("take the agent", &self.agent_path, &self.agent)?;
        let deadline = on.deadline_s.to_string();
        let cpus = self.server.cpus.as_deref().unwrap_or_default();
        let archive = on.files.map(|files| self.put_files(files)).transpose()?;
        let archive = archive.as_deref().unwrap_or_default();
        let fixed = [on.id, &self.agent_path, &deadline, cpus, archive, PROGRAM];
        let arguments: Vec<&str> = fixed.into_iter().chain(own.iter().copied()).collect();
        self.run(
            "end the agent",
            AGENT,
            &arguments,
            input,
            // After the script's own deadline: it ends the agent there, which a cut connection
            // would leave running.
            on.deadline_s + STEP_S,
        )
    }

    fn leave(&self) -> Result<(), ServerProblem> {
        self.step(
            "be released",
            LEAVE,
            &[&self.holder[0], self.server.boot.name()],
            &[],
            STEP_S,
        )
    }
}

impl Capture for Ssh {
    fn load(&self) -> Result<(), ServerProblem> {
        let name = self.server.name.clone();
        let step = "be ready to save its memory";
        let Some(collector) = &self.server.collector else {
            return Ok(());
        };
        let bytes = std::fs::read(collector).map_err(|error| ServerProblem::Step {
            name,
            step,
            answer: format!("{}: {error}", collector.display()),
        })?;
        let path = format!("{HOME}/marvin-dump-{}", &hash(&[&bytes])[..12]);
        self.put(step, &path, &bytes)?;
        self.step(step, CAPTURE, &[&path], &[], STEP_S)
    }

    fn take(&self) -> Result<Vec<u8>, ServerProblem> {
        let step = "save the memory of the kernel";
        let ended = self.run(step, DUMP, &[], &[], COPY_S)?;
        if ended.code == Some(0) {
            return Ok(ended.output);
        }
        let name = self.server.name.clone();
        let answer = model::sanitize_line(&ended.reason());
        Err(ServerProblem::Step { name, step, answer })
    }
}

/// Says who holds a server, and for how long.
pub(crate) fn held(name: &str, facts: &Facts) -> ServerProblem {
    let holder = facts.get("held_by");
    let minutes = facts.get("held_minutes");
    let until = if minutes.is_empty() {
        String::new()
    } else {
        format!(", {minutes} min more unless renewed")
    };
    ServerProblem::Held {
        name: name.to_owned(),
        holder: format!("{holder}{until}"),
    }
}

/// Returns ssh's options and the host, which is last.
fn ssh_arguments(server: &ServerSettings, home: &Path, socket: Option<PathBuf>) -> Vec<String> {
    let mut arguments = Vec::new();
    if let Some(file) = &server.ssh_config {
        arguments.extend(["-F".to_owned(), file.display().to_string()]);
    }
    let options = [
        "BatchMode=yes".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        "ConnectTimeout=10".to_owned(),
        // A server that is gone is noticed after 15 s.
        "ServerAliveInterval=5".to_owned(),
        "ServerAliveCountMax=3".to_owned(),
        "ControlPersist=no".to_owned(),
        format!(
            "ControlPath={}",
            socket.map_or_else(|| "none".to_owned(), |socket| socket.display().to_string())
        ),
    ];
    arguments.extend(
        options
            .into_iter()
            .flat_map(|option| ["-o".to_owned(), option]),
    );
    // The key of a server that runs an image.
    let of_image = seal::known_hosts(home, &server.name);
    if of_image.exists() {
        let files = format!(
            "GlobalKnownHostsFile=/etc/ssh/ssh_known_hosts {}",
            quote_option(&of_image)
        );
        arguments.extend(["-o".to_owned(), files]);
    }
    if server.ssh_config.is_none() {
        let known_hosts = &home.join("known_hosts");
        let files = format!(
            "UserKnownHostsFile=~/.ssh/known_hosts {}",
            quote_option(known_hosts)
        );
        arguments.extend(["-o".to_owned(), files]);
    }
    arguments.push(server.host.clone());
    arguments
}

/// Quotes a path for an option of ssh.
fn quote_option(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

#[cfg(test)]
mod tests {
    #[test]
    fn scripts_are_posix_shell() {
        let facts = [super::FACTS, super::DRIVERS, super::OWN].concat();
        let others = [
            super::INSTALL,
            super::MODULES,
            super::AGENT,
            super::PROGRAM,
            super::PUT,
            super::REBOOT,
            super::LEAVE,
        ];
        for script in others
            .into_iter()
            .chain([&*facts, super::CAPTURE, super::DUMP])
        {
            check(script);
        }
        for body in [
            super::KEXEC,
            super::GRUB,
            super::SYSTEMD_BOOT,
            super::COMMAND,
        ] {
            check(&format!("{}{body}", super::ONCE));
        }
    }

    #[test]
    fn hold_ends_by_uptime() {
        let server = tempfile::tempdir().unwrap();
        let place = |name: &str| server.path().join(name).display().to_string();
        let script = [
            ("/var/lib/marvin", place("home")),
            ("/proc/uptime", place("uptime")),
            ("/proc/sys/kernel/random/boot_id", place("boot")),
            ("$(id -u)", "0".to_owned()),
        ];
        let script = script
            .iter()
            .fold(super::FACTS.to_owned(), |script, (from, to)| {
                script.replace(from, to)
            });
        let is_at = |boot: &str, uptime: &str| {
            std::fs::write(place("boot"), boot).unwrap();
            std::fs::write(place("uptime"), format!("{uptime}.07 9.50\n")).unwrap();
        };
        let holder = |token: &str, who: &str| {
            let ended = subprocess::Program::new("sh")
                .args(["-c", &script, "marvin", token, who])
                .run()
                .unwrap();
            super::Facts::read(&ended.text()).get("held_by").to_owned()
        };
        is_at("first", "100");
        assert_eq!(holder("a", "ann@lab"), "", "no lab held it");
        is_at("first", "7299");
        assert_eq!(holder("b", "bob@lab"), "ann@lab");
        assert_eq!(holder("c", ""), "ann@lab", "a look says so, too");
        assert_eq!(holder("a", "ann@lab"), "", "a contact begins anew");
        is_at("first", "14499");
        assert_eq!(holder("b", "bob@lab"), "");
        is_at("second", "7199");
        assert_eq!(
            holder("a", "ann@lab"),
            "bob@lab",
            "a reboot begins anew, whatever the time of day"
        );
        is_at("second", "7200");
        assert_eq!(holder("a", "ann@lab"), "");
    }

    fn check(script: &str) {
        let ended = subprocess::Program::new("sh")
            .args(["-n", "-c", script])
            .run()
            .unwrap();
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{script}");
    }
}
