//! A private PostgreSQL server for tests and benches: in a scratch directory, on a socket there,
//! gone with its process.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Location, Store, StoreError};

/// Where Debian and its derivatives install programs outside of PATH.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The user `nobody`, which runs the programs for root, as they refuse root.
const NOBODY: u32 = 65_534;

/// The password of its only user. It protects nothing.
pub const PASSWORD: &str = "secret-of-a-test";

/// How often to ask a starting server whether it answers, and the pause in between.
const START_TRIES: u32 = 600;
const START_WAIT: Duration = Duration::from_millis(100);

/// Runs the server until its input ends, however the process that feeds it ends; then removes the
/// directory unless asked to keep it. `$0` is the directory, the rest starts the server.
const KEEPER: &str = r#""$@" & server=$!; read -r word; kill -INT $server; wait $server; [ "$word" = keep ] || rm -rf "$0""#;

/// Whether a commit waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// As on a production server: for benches.
    Durable,
    Hasty,
}

#[derive(Debug)]
pub struct Cluster {
    programs: PathBuf,
    folder: PathBuf,
    durability: Durability,
    /// The TCP port, once there is one.
    port: Option<u16>,
    keeper: Option<(Child, ChildStdin)>,
}

impl Cluster {
    /// Starts a server in a new directory; `None` if its programs are not installed (Debian:
    /// postgresql).
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(durability: Durability) -> io::Result<Option<Self>> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let Some(programs) = programs() else {
            return Ok(None);
        };
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("marvin-postgres-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder)?;
        if is_root()? {
            chown(&folder, Some(NOBODY), Some(NOBODY))?;
        }
        let mut cluster = Self {
            programs,
            folder,
            durability,
            port: None,
            keeper: None,
        };
        cluster.initialise()?;
        cluster.resume()?;
        Ok(Some(cluster))
    }

    /// Returns an address in it; each schema is a separate store.
    #[must_use]
    pub fn address(&self, schema: &str) -> String {
        let folder = self.folder.display().to_string().replace('/', "%2F");
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        format!(
            "postgres://marvin:{PASSWORD}@{folder}{port}/postgres?options=-csearch_path%3D{schema}"
        )
    }

    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a new schema, and returns its address.
    ///
    /// # Errors
    /// If the server does not do it.
    pub fn place(&self) -> Result<String, StoreError> {
        static PLACES: AtomicU32 = AtomicU32::new(0);
        let schema = format!("place{}", PLACES.fetch_add(1, Ordering::Relaxed));
        let location = Location::server(&self.address(&schema), None)?;
        Store::make_schema(&location, &schema)?;
        Ok(self.address(&schema))
    }

    /// Starts it again with TLS on a port of 127.0.0.1, and returns the address of a store there,
    /// at `localhost`.
    ///
    /// # Errors
    /// If it does not start.
    pub fn serve_tls(&mut self, certificate: &[u8], key: &[u8]) -> io::Result<String> {
        self.pause()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let data = self.folder.join("data");
        for (name, bytes) in [("server.crt", certificate), ("server.key", key)] {
            let file = data.join(name);
            fs::write(&file, bytes)?;
            fs::set_permissions(&file, Permissions::from_mode(0o600))?;
            if is_root()? {
                chown(&file, Some(NOBODY), Some(NOBODY))?;
            }
        }
        let mut settings = fs::OpenOptions::new()
            .append(true)
            .open(data.join("postgresql.conf"))?;
        writeln!(settings, "ssl = on")?;
        self.port = Some(port);
        self.resume()?;
        Ok(format!(
            "postgres://marvin:{PASSWORD}@localhost:{port}/postgres"
        ))
    }

    /// Stops the server; its data stays.
    ///
    /// # Errors
    /// If the command fails.
    pub fn pause(&mut self) -> io::Result<()> {
        if let Some((mut child, mut input)) = self.keeper.take() {
            input.write_all(b"keep\n")?;
            child.wait()?;
        }
        Ok(())
    }

    /// Starts it again.
    ///
    /// # Errors
    /// If it does not start.
    pub fn resume(&mut self) -> io::Result<()> {
        let log = File::create(self.folder.join("log")).or_else(|_| File::open("/dev/null"))?;
        let hasty = if self.durability == Durability::Hasty {
            "off"
        } else {
            "on"
        };
        let mut command = self.command("sh")?;
        command
            .args(["-c", KEEPER])
            .arg(&self.folder)
            .arg(self.programs.join("postgres"));
        command
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg("-k")
            .arg(&self.folder);
        command.args(["-c", &format!("fsync={hasty}")]);
        match self.port {
            Some(port) => command.args(["-h", "127.0.0.1", "-p", &port.to_string()]),
            None => command.args(["-c", "listen_addresses="]),
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let input = child
            .stdin
            .take()
            .ok_or_else(|| io::Error::other("no input"))?;
        self.keeper = Some((child, input));
        for _ in 0..START_TRIES {
            match Location::server(&self.address("public"), None)
                .and_then(|location| Store::greet(&location))
            {
                Ok(()) => return Ok(()),
                Err(_) => std::thread::sleep(START_WAIT),
            }
        }
        Err(io::Error::other("the server of PostgreSQL did not start"))
    }

    /// Sends a signal to all its processes: to its children first, so that it starts none in
    /// between.
    ///
    /// # Errors
    /// If it has no process, or a command fails.
    pub fn signal(&self, signal: &str) -> io::Result<()> {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let main = file.lines().next().unwrap_or_default();
        for (program, arguments) in [("pkill", &["-P", main][..]), ("kill", &[main])] {
            if !Command::new(program)
                .arg(format!("-{signal}"))
                .args(arguments)
                .status()?
                .success()
            {
                return Err(io::Error::other(format!("{program} {arguments:?}")));
            }
        }
        Ok(())
    }

    fn initialise(&self) -> io::Result<()> {
        let password = self.folder.join("password");
        fs::write(&password, PASSWORD)?;
        let mut command = self.command(&self.programs.join("initdb").display().to_string())?;
        command
            .arg("-D")
            .arg(self.folder.join("data"))
            .arg(format!("--pwfile={}", password.display()));
        command.args([
            "-U",
            "marvin",
            "--auth=scram-sha-256",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]);
        let done = command.output()?;
        if done.status.success() {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "initdb: {}",
            String::from_utf8_lossy(&done.stderr)
        )))
    }

    fn command(&self, program: &str) -> io::Result<Command> {
        let mut command = Command::new(program);
        // The user `nobody` may have no access to the current directory.
        command.current_dir(&self.folder);
        if is_root()? {
            command.uid(NOBODY).gid(NOBODY);
        }
        Ok(command)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((mut child, input)) = self.keeper.take() {
            drop(input);
            child.wait().ok();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn is_root() -> io::Result<bool> {
    Ok(fs::metadata("/proc/self")?.uid() == 0)
}

/// Returns the directory of the newest programs.
fn programs() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir(VERSIONS).into_iter().flatten().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                entry.path().join("bin"),
            ))
        })
        .collect();
    versions.sort();
    std::env::split_paths(&path)
        .chain(versions.into_iter().rev().map(|(_, folder)| folder))
        .find(|folder| has_programs(folder))
}

fn has_programs(folder: &Path) -> bool {
    ["postgres", "initdb"]
        .iter()
        .all(|program| folder.join(program).is_file())
}
