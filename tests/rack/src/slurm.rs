//! A Slurm on this host, as any user: a controller and nodes, with a munged of their own. A node is
//! a slurmd of this host.
//!
//! Debian's slurmd allows several on one host. Jobs get the name of their node: SLURMD_NODENAME.

use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::Read;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use subprocess::{Program, Running};
use tempfile::TempDir;

use crate::RackError;
use crate::image::done;

/// How long nodes may take until they are idle.
const READY: Duration = Duration::from_secs(60);
/// How long a daemon may run (s).
const DAEMON_S: u64 = 7200;
/// How long jobs may take to end.
const CANCEL: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(200);

/// A Slurm. Its jobs and daemons end when it is dropped.
#[derive(Debug)]
pub struct Slurm {
    folder: TempDir,
    nodes: Vec<String>,
    munged: Running,
    controller: Option<Running>,
    slurmds: Vec<(String, Running)>,
}

impl Slurm {
    /// Starts a Slurm with these nodes; `None` if it is not installed.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(nodes: &[&str]) -> Result<Option<Self>, RackError> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_there =
            |name: &str| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
        if !["slurmctld", "slurmd", "munged", "sbatch"]
            .iter()
            .all(|name| is_there(name))
        {
            return Ok(None);
        }
        let folder = TempDir::new().map_err(RackError::io("create", Path::new("a directory")))?;
        let at = folder.path();
        write_key(&at.join("key"))?;
        let file = at.join("slurm.conf");
        fs::write(&file, configuration(at, nodes)?).map_err(RackError::io("write", &file))?;
        for name in ["state", "spool"].iter().chain(nodes) {
            fs::create_dir_all(at.join(name)).map_err(RackError::io("create", &at.join(name)))?;
        }
        let option = |name: &str, file: &str| format!("--{name}={}", at.join(file).display());
        let munged = start(
            "munged",
            &[
                "--foreground".to_owned(),
                "--force".to_owned(),
                option("key-file", "key"),
                option("socket", "munge.socket"),
                option("pid-file", "munged.pid"),
                option("log-file", "munged.log"),
                option("seed-file", "munged.seed"),
            ],
        )?;
        let nodes = nodes.iter().map(|&node| node.to_owned()).collect();
        let mut slurm = Self {
            folder,
            nodes,
            munged,
            controller: None,
            slurmds: Vec::new(),
        };
        slurm.wait_for("munged to listen", |slurm| {
            slurm.folder.path().join("munge.socket").exists()
        })?;
        slurm.start_controller()?;
        for node in slurm.nodes.clone() {
            slurm.start_node(&node)?;
        }
        slurm.wait_for("all nodes to be idle", |slurm| {
            let idle = slurm.run("sinfo", &["-N", "-h", "-o", "%T"]);
            idle.is_ok_and(|text| {
                text.lines().filter(|line| *line == "idle").count() == slurm.nodes.len()
            })
        })?;
        Ok(Some(slurm))
    }

    /// Returns its configuration, for SLURM_CONF.
    #[must_use]
    pub fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    /// Runs one of its commands, and returns its output.
    ///
    /// # Errors
    /// If the command fails.
    pub fn run(&self, command: &str, arguments: &[&str]) -> Result<String, RackError> {
        done(
            &Program::new(command)
                .args(arguments)
                .variable("SLURM_CONF", self.configuration())
                .deadline_s(60),
        )
    }

    /// Kills the controller.
    ///
    /// # Errors
    /// If there is none.
    pub fn kill_controller(&mut self) -> Result<(), RackError> {
        self.kill("controller.pid")?;
        self.controller = None;
        Ok(())
    }

    /// Starts the controller with what it knew.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_controller(&mut self) -> Result<(), RackError> {
        let file = self.configuration().display().to_string();
        self.controller = Some(start(
            "slurmctld",
            &["-D".to_owned(), "-f".to_owned(), file],
        )?);
        Ok(())
    }

    /// Kills a node's slurmd and the processes of its jobs, as a power failure does.
    ///
    /// # Errors
    /// If there is none.
    pub fn kill_node(&mut self, node: &str) -> Result<(), RackError> {
        self.kill(&format!("slurmd-{node}.pid"))?;
        self.slurmds.retain(|(name, _)| name != node);
        // A job's processes have the node in their environment, slurmstepd has the node's log open.
        let at = self.folder.path().display();
        let script = format!(
            "for one in /proc/[0-9]*; do
                 has() {{ tr '\\0' '\\n' < $one/environ | grep -qx \"$1\"; }}
                 if {{ has SLURMD_NODENAME={node} && has SLURM_CONF={at}/slurm.conf; }} ||
                    ls -l $one/fd | grep -q {at}/slurmd-{node}.log; then
                     kill -9 ${{one#/proc/}}
                 fi
             done 2> /dev/null
             true"
        );
        done(&Program::new("sh").args(["-c", &script])).map(drop)
    }

    /// Starts a node's slurmd.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start_node(&mut self, node: &str) -> Result<(), RackError> {
        let file = self.configuration().display().to_string();
        let words = [
            "-D".to_owned(),
            "-f".to_owned(),
            file,
            "-N".to_owned(),
            node.to_owned(),
        ];
        self.slurmds
            .push((node.to_owned(), start("slurmd", &words)?));
        Ok(())
    }

    fn kill(&self, pid_file: &str) -> Result<(), RackError> {
        let path = self.folder.path().join(pid_file);
        let pid = fs::read_to_string(&path).map_err(RackError::io("read", &path))?;
        done(&Program::new("kill").args(["-9", pid.trim()])).map(drop)
    }

    fn wait_for(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) -> Result<(), RackError> {
        let begun = Instant::now();
        while begun.elapsed() < READY {
            if is_so(self) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.munged.try_wait() {
                return Err(RackError::Failed {
                    command: "munged".to_owned(),
                    reason: status.to_string(),
                });
            }
            sleep(LOOK);
        }
        let log = fs::read_to_string(self.folder.path().join("controller.log")).unwrap_or_default();
        let tail: Vec<&str> = log.lines().rev().take(10).collect();
        let reason = format!(
            "no {what} within {} s\n{}",
            READY.as_secs(),
            tail.join("\n")
        );
        Err(RackError::Failed {
            command: "slurmctld".to_owned(),
            reason,
        })
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        if self.controller.is_some() && self.run("scancel", &["--me"]).is_ok() {
            let begun = Instant::now();
            let is_empty = || {
                self.run("squeue", &["-h"])
                    .is_ok_and(|text| text.trim().is_empty())
            };
            while begun.elapsed() < CANCEL && !is_empty() {
                sleep(LOOK);
            }
        }
    }
}

fn write_key(path: &Path) -> Result<(), RackError> {
    let mut key = [0; 64];
    let random = Path::new("/dev/urandom");
    File::open(random)
        .and_then(|mut file| file.read_exact(&mut key))
        .map_err(RackError::io("read", random))?;
    fs::write(path, key).map_err(RackError::io("write", path))?;
    fs::set_permissions(path, Permissions::from_mode(0o400))
        .map_err(RackError::io("set the mode of", path))
}

fn start(name: &str, arguments: &[String]) -> Result<Running, RackError> {
    let program = Program::new(name).args(arguments).deadline_s(DAEMON_S);
    let started = program.start(Stdio::null(), Stdio::null(), Stdio::null());
    started.map_err(RackError::io("start", Path::new(name)))
}

/// Returns a configuration without cgroups, accounting and mail; a node that is silent for 20 s is
/// down.
fn configuration(at: &Path, nodes: &[&str]) -> Result<String, RackError> {
    let user = done(&Program::new("id").args(["-un"]))?;
    let user = user.trim();
    let at = at.display();
    let listeners = (0..=nodes.len()).map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let listeners = listeners
        .collect::<Result<Vec<_>, _>>()
        .map_err(RackError::io("find", Path::new("a free port")))?;
    let ports: Vec<u16> = listeners
        .iter()
        .filter_map(|one| Some(one.local_addr().ok()?.port()))
        .collect();
    let mut text = format!(
        "ClusterName=rack\nSlurmctldHost=localhost(127.0.0.1)\nSlurmctldPort={}\nSlurmUser={user}\nSlurmdUser={user}\n\
         AuthType=auth/munge\nAuthInfo=socket={at}/munge.socket\nCredType=cred/munge\nStateSaveLocation={at}/state\n\
         SlurmdSpoolDir={at}/%n\nSlurmctldPidFile={at}/controller.pid\nSlurmdPidFile={at}/slurmd-%n.pid\n\
         SlurmctldLogFile={at}/controller.log\nSlurmdLogFile={at}/slurmd-%n.log\nProctrackType=proctrack/linuxproc\n\
         TaskPlugin=task/none\nMpiDefault=none\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         ReturnToService=2\nSlurmdTimeout=20\nMinJobAge=300\nMailProg=/bin/true\n",
        ports[0]
    );
    for (node, port) in nodes.iter().zip(&ports[1..]) {
        // A write to a string cannot fail.
        writeln!(
            text,
            "NodeName={node} NodeHostname=localhost NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=1000 State=UNKNOWN"
        )
        .ok();
    }
    text.push_str("PartitionName=lab Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n");
    Ok(text)
}
