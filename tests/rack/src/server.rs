//! One server: a QEMU that lives as long as the value, however often its guest is switched off and
//! on.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use subprocess::{Ended, Program, Qmp, QmpError};

use crate::control::{PATIENCE, connect, wait_while};
use crate::image::{DISK, Image, KEY, STATE, done};
use crate::{RackError, Ssh};

/// Memory of a server in MiB.
pub const MEMORY_MIB: u32 = 1024;
/// QEMU's arguments that are the same for all servers. The processor is the plainest, as an
/// emulated one is slower with every extension that the kernel uses.
pub(crate) const ARGUMENTS: &str = "-nodefaults -no-user-config -display none -no-shutdown -M q35 -cpu qemu64,-svm -smp 2 \
    -accel tcg,thread=multi,tb-size=256 -rtc base=utc -smbios type=1,manufacturer=Marvin,product=Rack,serial=1 -device virtio-blk-pci,drive=disk -device virtio-net-pci,netdev=net \
    -netdev user,id=net,hostfwd=tcp:127.0.0.1:0-:22 -device virtio-rng-pci -qmp unix:control.socket,server=on,wait=off \
    -qmp unix:power.socket,server=on,wait=off -device isa-serial,chardev=console \
    -chardev socket,id=console,host=127.0.0.1,port=0,server=on,wait=off,logfile=console.log,logappend=on";
/// What a server by UEFI has besides: firmware that keeps its variables, and the disk with
/// systemd-boot.
const EFI: &str = "-drive if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd \
    -drive if=pflash,format=raw,file=vars.fd -drive file=esp.raw,format=raw,if=none,id=esp,cache=unsafe \
    -device virtio-blk-pci,drive=esp,bootindex=0";
const ESP: &str = include_str!("esp.sh");
/// What a server that boots from its network has besides: devices whose order the power switch
/// changes, and a TFTP server.
const NETWORK: [(&str, &str); 3] = [
    ("virtio-blk-pci,drive=disk", ",id=boot-disk,bootindex=1"),
    ("virtio-net-pci,netdev=net", ",id=boot-net,bootindex=2"),
    ("user,id=net", ",tftp=tftp,bootfile=boot.ipxe"),
];
/// Its folder, and the script in it that the card's iPXE runs.
const TFTP: &str = "tftp";
const BOOT_SCRIPT: &str = "boot.ipxe";
/// The card of all servers, as iPXE writes it (QEMU's default).
pub const MAC: &str = "52-54-00-12-34-56";
/// This host as servers see it.
pub const HOST_SEEN: &str = "10.0.2.2";
const OVERLAY: &str = "overlay.qcow2";
const POWER: &str = include_str!("power.py");
/// QEMU ends with its test; this is for a test that never ends.
const LIFE_S: u64 = 4 * 3600;
/// Interval between attempts to reach a server.
const LOOK: Duration = Duration::from_millis(250);
/// How much of a console an error shows, in lines.
const TAIL: usize = 20;

/// How a server comes to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// It boots from the image itself, which it may change.
    First,
    /// It is a copy of the server that has booted.
    Copy,
    /// It boots from a copy of the disk.
    Boot,
    /// It does so by UEFI and systemd-boot.
    Efi,
    /// It is off; it boots from the disk, or from its network if its power switch says so.
    Network,
}

/// What the power switch does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Power {
    /// Switch on, if it is off.
    On,
    /// Switch off at once, without telling the operating system.
    Off,
    Cycle,
}

/// A server. It ends when it is dropped, and with the test.
#[derive(Debug)]
pub struct Server {
    name: String,
    qmp: Mutex<Qmp>,
    ssh: Ssh,
    console_port: u16,
    /// Before the directory, in which QEMU works.
    keeper: Keeper,
    folder: tempfile::TempDir,
    _place: Option<File>,
}

impl Server {
    pub(crate) fn start(
        name: &str,
        image: &Image,
        start: Start,
        memory_mib: u32,
        place: Option<File>,
    ) -> Result<Self, RackError> {
        // A path to a socket has at most 107 bytes: the target directory's may be longer.
        let folder = tempfile::Builder::new().prefix("rack-").tempdir();
        let folder = folder.map_err(RackError::io(
            "create a directory in",
            &std::env::temp_dir(),
        ))?;
        let path = folder.path();
        let drive = match start {
            Start::First => format!("file={},format=raw", image.file(DISK).display()),
            Start::Copy | Start::Boot | Start::Efi | Start::Network => {
                let words = ["create", "-q", "-f", "qcow2", "-F", "raw", "-b"].map(Into::into);
                let words = words
                    .into_iter()
                    .chain([image.file(DISK).into_os_string(), OVERLAY.into()]);
                done(&Program::new("qemu-img").args(words).folder(path))?;
                format!("file={OVERLAY},format=qcow2")
            }
        };
        let mut words: Vec<String> = ARGUMENTS.split_whitespace().map(Into::into).collect();
        if start == Start::Network {
            words.push("-S".into());
            let tftp = path.join(TFTP);
            fs::create_dir(&tftp).map_err(RackError::io("create", &tftp))?;
            for word in &mut words {
                let found = NETWORK.iter().find(|(plain, _)| word.starts_with(plain));
                word.push_str(found.map_or("", |(_, more)| more));
            }
        }
        words.extend([
            "-m".into(),
            memory_mib.to_string(),
            "-name".into(),
            name.into(),
        ]);
        words.extend([
            "-drive".into(),
            format!("{drive},if=none,id=disk,cache=unsafe"),
        ]);
        if start == Start::Efi {
            let words_of_esp = ["-c", ESP, "esp"]
                .map(OsString::from)
                .into_iter()
                .chain([image.file(DISK).into_os_string()]);
            done(&Program::new("sh").args(words_of_esp).folder(path))?;
            words.extend(EFI.split_whitespace().map(Into::into));
        }
        if start == Start::Copy {
            words.extend([
                "-incoming".into(),
                format!("exec:cat '{}'", image.file(STATE).display()),
            ]);
        }
        write_power(path)?;
        let keeper = Keeper::start(
            Program::new("qemu-system-x86_64")
                .args(words)
                .folder(path)
                .deadline_s(LIFE_S),
            path,
        )?;
        let mut qmp = connect(&path.join("control.socket"))
            .map_err(|error| qemu_error(name, path, error.to_string()))?;
        let ports = find_ports(&mut qmp, start)
            .map_err(|error| qemu_error(name, path, error.to_string()))?;
        let (Some(port), Some(console_port)) = ports else {
            let what = "no port for ssh or the console".to_owned();
            return Err(qemu_error(name, path, what));
        };
        let ssh = Ssh::write(path, name, port, &image.file(KEY), &image.host_key()?)?;
        Ok(Self {
            name: name.to_owned(),
            qmp: Mutex::new(qmp),
            ssh,
            console_port,
            keeper,
            folder,
            _place: place,
        })
    }

    /// Returns how ssh reaches it.
    #[must_use]
    pub fn ssh(&self) -> &Ssh {
        &self.ssh
    }

    /// Runs a command line as root and returns its output.
    ///
    /// # Errors
    /// If the server cannot be reached, or the command fails.
    pub fn run(&self, command: &str) -> Result<String, RackError> {
        self.succeeded(command, self.ssh.run(command)?)
    }

    /// Copies a file to the server.
    ///
    /// # Errors
    /// If the file cannot be read, the server cannot be reached, or its disk is full.
    pub fn copy(&self, file: &Path, to: &str) -> Result<(), RackError> {
        let bytes = fs::read(file).map_err(RackError::io("read", file))?;
        let command = format!("cat >'{to}'");
        let ended = self.ssh.run_with(&command, &bytes)?;
        self.succeeded(&command, ended).map(drop)
    }

    fn succeeded(&self, command: &str, ended: Ended) -> Result<String, RackError> {
        if ended.code == Some(0) {
            return Ok(ended.text());
        }
        let reason = format!("{}{}", ended.stderr, ended.reason());
        Err(RackError::Failed {
            command: format!("{}: {command}", self.name),
            reason,
        })
    }

    /// Waits until the server answers.
    ///
    /// # Errors
    /// If it does not within the deadline.
    pub fn wait_for_ssh(&self, deadline: Duration) -> Result<(), RackError> {
        let begun = Instant::now();
        while begun.elapsed() < deadline {
            if self.ssh.answers() {
                return Ok(());
            }
            sleep(LOOK);
        }
        let console = tail(&self.console());
        Err(RackError::NoSsh {
            server: self.name.clone(),
            seconds: deadline.as_secs(),
            console,
        })
    }

    /// Returns the kernel's number of this boot.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn boot_id(&self) -> Result<String, RackError> {
        Ok(self
            .run("cat /proc/sys/kernel/random/boot_id")?
            .trim()
            .to_owned())
    }

    /// Waits until the server answers with another boot_id than this.
    ///
    /// # Errors
    /// If it does not within the deadline.
    pub fn wait_for_reboot(&self, former: &str, deadline: Duration) -> Result<(), RackError> {
        let begun = Instant::now();
        while begun.elapsed() < deadline {
            if self.ssh.answers() && self.boot_id().is_ok_and(|now| now != former) {
                return Ok(());
            }
            sleep(LOOK);
        }
        let console = tail(&self.console());
        Err(RackError::NoSsh {
            server: self.name.clone(),
            seconds: deadline.as_secs(),
            console,
        })
    }

    /// Returns what its serial console showed so far. A copy's begins when it was copied.
    #[must_use]
    pub fn console(&self) -> String {
        // Before its first byte there is no file.
        let bytes = fs::read(self.folder.path().join("console.log")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the address of its serial console, for one client at a time: host and port of a TCP
    /// connection.
    #[must_use]
    pub fn console_address(&self) -> (&str, u16) {
        ("127.0.0.1", self.console_port)
    }

    /// Sends a break on the serial console and then a key: a magic SysRq, if the kernel allows it.
    ///
    /// # Errors
    /// If QEMU refuses, or another client holds the console.
    pub fn press_sysrq(&self, key: char) -> Result<(), RackError> {
        let mut stream = std::net::TcpStream::connect(self.console_address())
            .map_err(|error| self.console_failed(&error))?;
        self.command("chardev-send-break", json!({ "id": "console" }))?;
        stream
            .write_all(key.to_string().as_bytes())
            .map_err(|error| self.console_failed(&error))?;
        // QEMU hands bytes on while the client is connected.
        sleep(Duration::from_secs(1));
        Ok(())
    }

    /// Presses the power switch.
    ///
    /// # Errors
    /// If QEMU refuses.
    pub fn power(&self, power: Power) -> Result<(), RackError> {
        match power {
            Power::On if self.is_on()? => Ok(()),
            Power::On => self
                .command("system_reset", json!({}))
                .and_then(|_| self.command("cont", json!({})))
                .map(drop),
            Power::Off => self
                .command("stop", json!({}))
                .and_then(|_| self.command("system_reset", json!({})))
                .map(drop),
            Power::Cycle => self.power(Power::Off).and_then(|()| self.power(Power::On)),
        }
    }

    /// Stops its processors, as a hang does that no watchdog ends; the power switch goes on
    /// working.
    ///
    /// # Errors
    /// If QEMU refuses.
    pub fn freeze(&self) -> Result<(), RackError> {
        self.command("stop", json!({})).map(drop)
    }

    /// Returns whether it is on. A server that shut itself down is off.
    ///
    /// # Errors
    /// If QEMU does not answer.
    pub fn is_on(&self) -> Result<bool, RackError> {
        let answer = self.command("query-status", json!({}))?;
        let status = answer["status"].as_str().unwrap_or_default();
        Ok(status == "running")
    }

    /// Returns the program that is its power switch: `on`, `off`, `cycle`, `reset`, `status`, and
    /// `boot` with `pxe` or `disk` are its commands.
    #[must_use]
    pub fn power_command(&self) -> PathBuf {
        self.folder.path().join("power")
    }

    /// Sets the script that the card's iPXE runs when the server boots from its network.
    ///
    /// # Errors
    /// If the server was not started for that.
    pub fn set_boot_script(&self, script: &str) -> Result<(), RackError> {
        let path = self.folder.path().join(TFTP).join(BOOT_SCRIPT);
        fs::write(&path, script).map_err(RackError::io("write", &path))
    }

    /// Pulls the network cable.
    ///
    /// # Errors
    /// If QEMU refuses.
    pub fn unplug_network(&self) -> Result<(), RackError> {
        self.set_link(false)
    }

    /// Plugs it in again.
    ///
    /// # Errors
    /// If QEMU refuses.
    pub fn plug_network(&self) -> Result<(), RackError> {
        self.set_link(true)
    }

    fn set_link(&self, is_up: bool) -> Result<(), RackError> {
        self.command("set_link", json!({ "name": "net", "up": is_up }))
            .map(drop)
    }

    /// Fills its disk until not even root can write to it.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn fill_disk(&self) -> Result<(), RackError> {
        // A large file takes a moment, and what is too small for it is written until the disk is
        // full.
        let script = "fallocate -l $(($(stat -fc %f /) * $(stat -fc %S /) - (64 << 20))) /var/filler && \
            ! dd if=/dev/zero of=/var/filler.rest bs=64k status=none && sync";
        self.run(script).map(drop)
    }

    /// Empties it again.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn empty_disk(&self) -> Result<(), RackError> {
        self.run("rm -f /var/filler /var/filler.rest").map(drop)
    }

    /// Makes a copy a server of its own: its name, and the time of day.
    pub(crate) fn settle(&self) -> Result<(), RackError> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let name = &self.name;
        self.run(&format!(
            "date -s @{:.3} >&2; hostname {name}; echo {name} >/etc/hostname",
            now.as_secs_f64()
        ))
        .map(drop)
    }

    /// Saves the state of memory and devices, and ends the server's work.
    pub(crate) fn save(&self, state: &Path) -> Result<(), RackError> {
        self.command("stop", json!({}))?;
        self.command(
            "migrate-set-parameters",
            json!({ "max-bandwidth": 1_u64 << 40 }),
        )?;
        self.command(
            "migrate",
            json!({ "uri": format!("exec:cat > '{}'", state.display()) }),
        )?;
        let passing = ["none", "setup", "active", "device"];
        let status = wait_while(&mut self.control(), "query-migrate", &passing)
            .map_err(|error| self.failed(error.to_string()))?;
        match &*status {
            "completed" => Ok(()),
            status => Err(self.failed(format!("saving its state ends as {status}"))),
        }
    }

    fn command(&self, name: &str, arguments: Value) -> Result<Value, RackError> {
        self.control()
            .command(name, arguments, PATIENCE)
            .map_err(|error| self.failed(error.to_string()))
    }

    fn control(&self) -> MutexGuard<'_, Qmp> {
        self.qmp.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, reason: String) -> RackError {
        qemu_error(&self.name, self.folder.path(), reason)
    }

    fn console_failed(&self, error: &std::io::Error) -> RackError {
        self.failed(format!("console: {error}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.keeper.end();
    }
}

/// The thread that started QEMU: the kernel ends QEMU when that thread ends, and the one of a test
/// may end before others.
#[derive(Debug)]
struct Keeper {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Keeper {
    fn start(program: Program, folder: &Path) -> Result<Self, RackError> {
        let log = folder.join("qemu.log");
        let errors = File::create(&log).map_err(RackError::io("create", &log))?;
        let (stop, stopped) = channel();
        let (started, has_started) = channel();
        let thread = thread::spawn(move || {
            match program.start(Stdio::null(), Stdio::null(), errors.into()) {
                Ok(running) => {
                    // Both ends of these channels are in one process: a closed one says what a
                    // message would.
                    started.send(Ok(())).ok();
                    stopped.recv().ok();
                    drop(running);
                }
                Err(error) => started.send(Err(error)).unwrap_or_default(),
            }
        });
        let result = has_started
            .recv()
            .unwrap_or_else(|_| Err(std::io::Error::other("its thread ended")));
        result.map_err(RackError::io("start QEMU in", folder))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end();
    }
}

fn write_power(folder: &Path) -> Result<(), RackError> {
    let path = folder.join("power");
    fs::write(&path, POWER)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(RackError::io("write", &path))
}

fn qemu_error(server: &str, folder: &Path, reason: String) -> RackError {
    let log = fs::read_to_string(folder.join("qemu.log")).unwrap_or_default();
    RackError::Qemu {
        server: server.to_owned(),
        reason: format!("{reason}\n{}", log.trim_end())
            .trim_end()
            .to_owned(),
    }
}

/// Has a copy go on where it was saved, and returns its ports of ssh and of the console.
fn find_ports(qmp: &mut Qmp, start: Start) -> Result<(Option<u16>, Option<u16>), QmpError> {
    if start == Start::Copy {
        wait_while(qmp, "query-status", &["inmigrate"])?;
        qmp.command("cont", json!({}), PATIENCE)?;
    }
    let usernet = qmp.human("info usernet", PATIENCE)?;
    let chardevs = qmp.command("query-chardev", json!({}), PATIENCE)?;
    Ok((ssh_port(&usernet), console_port(&chardevs)))
}

/// Finds the port of this host that leads to sshd: `TCP[HOST_FORWARD] FD ADDRESS PORT ADDRESS 22
/// …`.
fn ssh_port(usernet: &str) -> Option<u16> {
    let line = usernet.lines().find(|line| line.contains("HOST_FORWARD"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

/// Finds the console's port: `disconnected:tcp:127.0.0.1:PORT,server=on`.
fn console_port(chardevs: &Value) -> Option<u16> {
    let console = chardevs
        .as_array()?
        .iter()
        .find(|chardev| chardev["label"] == "console")?;
    console["filename"]
        .as_str()?
        .split_once("127.0.0.1:")?
        .1
        .split(',')
        .next()?
        .parse()
        .ok()
}

fn tail(console: &str) -> String {
    let lines: Vec<&str> = console.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{console_port, ssh_port, tail};

    #[test]
    fn ports_are_found_in_answers_of_qemu() {
        let usernet = "Hub -1 (net):\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\n  \
            TCP[HOST_FORWARD]  14       127.0.0.1 43211       10.0.2.15    22     0     0\n";
        assert_eq!(
            (ssh_port(usernet), ssh_port("no network")),
            (Some(43211), None)
        );
        let chardevs = json!([{ "label": "x", "filename": "vc" },
            { "label": "console", "filename": "disconnected:tcp:127.0.0.1:40001,server=on" }]);
        assert_eq!(
            (console_port(&chardevs), console_port(&json!([]))),
            (Some(40001), None)
        );
    }

    #[test]
    fn end_of_a_console_is_short() {
        let console: String = (0..50).map(|line| format!("{line}\n")).collect();
        assert!(tail(&console).starts_with("30\n") && tail("").is_empty());
    }
}
