//! What makes an image one server's: the key that opens it, its own key, its name. It follows the
//! image's root in what the server boots, so that the image itself has no secret and no server. A
//! boot by iPXE has a key of its own.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use machine::{InitrdFile, archive_of_settings, hash};
use model::ServerSettings;
use subprocess::Program;

use crate::problem::ServerProblem;

/// The public half of a key has this ending.
const PUBLIC: &str = ".pub";

/// Returns the file with the key of a server that runs images; its `.pub` is beside it.
fn host_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.key"))
}

/// Returns the file in which ssh finds the key of a server that runs images.
pub(crate) fn known_hosts(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.known_hosts"))
}

/// Returns the file with the key that a server has since its last start by iPXE, until the next.
fn boot_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.boot"))
}

/// Returns the file with the public key of the start before, which may still run: it is known until
/// the last one is reached.
fn former_boot_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.former.pub"))
}

/// Returns the file with the public key of the image that was started by iPXE and then installed on
/// the server's disk.
fn disk_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.disk.pub"))
}

/// A key of a server, both halves.
struct Key {
    secret: Vec<u8>,
    public: Vec<u8>,
}

/// Returns the seal of a server; makes its key if it has none. It goes to the server by an
/// encrypted connection.
pub(crate) fn seal(server: &ServerSettings, home: &Path) -> Result<Vec<u8>, ServerProblem> {
    let own = own_key(server, home)?;
    archive(server, home, &own, &own)
}

/// Returns a seal with a new key for one boot, as the network can read it: iPXE gets it
/// unencrypted, and every client that knows the server's network card may ask for it. So a client
/// that answers with that key gets no other ([`seal_of_boot`]).
pub(crate) fn seal_for_one_boot(
    server: &ServerSettings,
    home: &Path,
) -> Result<Vec<u8>, ServerProblem> {
    let own = own_key(server, home)?;
    let path = boot_key(home, &server.name);
    let made = keep_former(server, home)
        .and_then(|()| make_key(&path, &server.name))
        .and_then(|()| read_key(&path));
    let key = made.map_err(failed(server, "get a key for one boot"))?;
    archive(server, home, &own, &key)
}

/// Returns the seal with the key of the last start by iPXE: the server's own key never goes to who
/// took the seal of that start.
pub(crate) fn seal_of_boot(server: &ServerSettings, home: &Path) -> Result<Vec<u8>, ServerProblem> {
    let own = own_key(server, home)?;
    let key = read_key(&boot_key(home, &server.name)).map_err(|why| {
        let hint = "hint: reboot the server: Marvin starts its image again";
        failed(server, "get the key of its last start")(format!("{why}\n{hint}"))
    })?;
    archive(server, home, &own, &key)
}

/// Keeps the key of the boot that was last reached: a start that fails may leave it running.
fn keep_former(server: &ServerSettings, home: &Path) -> Result<(), String> {
    let last = with_ending(&boot_key(home, &server.name));
    let former = former_boot_key(home, &server.name);
    if former.exists() || !last.exists() {
        return Ok(());
    }
    fs::rename(&last, &former)
        .map_err(|error| format!("cannot write {}: {error}", former.display()))
}

/// Forgets the key of the start before the last one, which was reached.
pub(crate) fn forget_former_boot_key(
    server: &ServerSettings,
    home: &Path,
) -> Result<(), ServerProblem> {
    if !remove(&former_boot_key(home, &server.name)).map_err(failed(server, "forget a key"))? {
        return Ok(());
    }
    own_key(server, home).and_then(|own| write_known_hosts(server, home, &own))
}

/// Keeps the key of the last start for good: the system that was installed on the disk has it.
pub(crate) fn keep_boot_key_of_disk(
    server: &ServerSettings,
    home: &Path,
) -> Result<(), ServerProblem> {
    let last = with_ending(&boot_key(home, &server.name));
    let disk = disk_key(home, &server.name);
    let stored = match fs::copy(&last, &disk) {
        // It was started in another way, with its own key.
        Err(error) if error.kind() == ErrorKind::NotFound => remove(&disk).map(drop),
        copied => copied
            .map(drop)
            .map_err(|error| format!("cannot write {}: {error}", disk.display())),
    };
    stored.map_err(failed(server, "keep the key of its disk"))?;
    own_key(server, home).and_then(|own| write_known_hosts(server, home, &own))
}

/// Forgets the keys of starts by iPXE: the server runs a system of its own.
pub(crate) fn forget_boot_key(server: &ServerSettings, home: &Path) -> Result<(), ServerProblem> {
    let last = boot_key(home, &server.name);
    let mut are_forgotten = false;
    for path in [
        with_ending(&last),
        last,
        former_boot_key(home, &server.name),
    ] {
        are_forgotten |= remove(&path).map_err(failed(server, "forget a key"))?;
    }
    if are_forgotten {
        own_key(server, home).and_then(|own| write_known_hosts(server, home, &own))
    } else {
        Ok(())
    }
}

/// Removes a file; returns whether it was there.
fn remove(path: &Path) -> Result<bool, String> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(format!("cannot remove {}: {error}", path.display())),
    }
}

fn failed(
    server: &ServerSettings,
    step: &'static str,
) -> impl FnOnce(String) -> ServerProblem + use<> {
    let name = server.name.clone();
    move |answer| ServerProblem::Step { name, step, answer }
}

/// Returns a server's own key, which stays the same; makes it if it has none.
fn own_key(server: &ServerSettings, home: &Path) -> Result<Key, ServerProblem> {
    let path = host_key(home, &server.name);
    let made = if with_ending(&path).exists() {
        Ok(())
    } else {
        make_key(&path, &server.name)
    };
    made.and_then(|()| read_key(&path))
        .map_err(failed(server, "get a key"))
}

fn read_key(path: &Path) -> Result<Key, String> {
    Ok(Key {
        secret: read_file(path)?,
        public: read_file(&with_ending(path))?,
    })
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Writes the keys by which ssh knows a server that runs an image: its own, and those of its last
/// starts and of its disk.
fn write_known_hosts(server: &ServerSettings, home: &Path, own: &Key) -> Result<(), ServerProblem> {
    let place = known_hosts(home, &server.name);
    let name = &server.name;
    let others = [
        disk_key(home, name),
        former_boot_key(home, name),
        with_ending(&boot_key(home, name)),
    ];
    let others: Vec<Vec<u8>> = others
        .into_iter()
        .filter_map(|path| fs::read(path).ok())
        .collect();
    let line = |public: &[u8]| {
        let key = String::from_utf8_lossy(public)
            .split_whitespace()
            .take(2)
            .collect::<Vec<_>>()
            .join(" ");
        format!("* {key}\n")
    };
    let lines: String = std::iter::once(&own.public)
        .chain(&others)
        .map(|public| line(public))
        .collect();
    fs::write(&place, lines).map_err(|error| {
        failed(server, "get a key")(format!("cannot write {}: {error}", place.display()))
    })
}

/// Packs what a server needs, with the key that its sshd has.
fn archive(
    server: &ServerSettings,
    home: &Path,
    own: &Key,
    key: &Key,
) -> Result<Vec<u8>, ServerProblem> {
    write_known_hosts(server, home, own)?;
    let login = login_key(server).map_err(failed(server, "be opened by a key"))?;
    // The same at each boot: services make one of their own for each boot else.
    let machine_id = hash(&[b"marvin", server.name.as_bytes(), &own.public])[..32].to_owned();
    let public = [
        initrd_file("etc/ssh/ssh_host_ed25519_key.pub", key.public.clone()),
        initrd_file("etc/hostname", format!("{}\n", server.name).into_bytes()),
        // Services that are not root's make their identity in the network of it.
        initrd_file("etc/machine-id", format!("{machine_id}\n").into_bytes()),
    ];
    let secret = [
        initrd_file("etc/ssh/ssh_host_ed25519_key", key.secret.clone()),
        initrd_file(
            "root/.ssh/authorized_keys",
            format!("{login}\n").into_bytes(),
        ),
    ];
    Ok(archive_of_settings(&public, &secret))
}

fn initrd_file(path: &str, bytes: Vec<u8>) -> InitrdFile {
    InitrdFile {
        path: path.to_owned(),
        bytes,
    }
}

fn with_ending(path: &Path) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(PUBLIC);
    text.into()
}

fn make_key(path: &Path, name: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)
        .map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    // Half of one, of a Marvin that was killed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"];
    let ended = Program::new("ssh-keygen")
        .args(arguments)
        .args([path])
        .run()
        .map_err(|error| error.to_string())?;
    if ended.code == Some(0) {
        Ok(())
    } else {
        Err(format!("ssh-keygen: {}", ended.reason()))
    }
}

/// Returns the public key that opens a server: the one that its settings name, or the first that
/// ssh would try.
fn login_key(server: &ServerSettings) -> Result<String, String> {
    if let Some(file) = &server.deploy.key {
        return read_public(file).map_err(|why| format!("{}: {why}", file.display()));
    }
    let config = server
        .ssh_config
        .iter()
        .flat_map(|file| ["-F".into(), file.clone().into_os_string()]);
    let requested = Program::new("ssh")
        .args(["-G"])
        .args(config)
        .args(["--", &server.host])
        .run();
    let text = requested.map_err(|error| error.to_string())?.text();
    let files = text
        .lines()
        .filter_map(|line| line.strip_prefix("identityfile "));
    let home = std::env::var("HOME").unwrap_or_default();
    let files = files.map(|file| with_ending(Path::new(&file.replacen('~', &home, 1))));
    files.filter_map(|file| read_public(&file).ok()).next().ok_or_else(|| {
        let host = &server.host;
        format!("ssh has no public key for {host}\nhint: set key = \"FILE.pub\" in its [machine.deploy]")
    })
}

fn read_public(file: &Path) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let line = text
        .lines()
        .find(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .unwrap_or_default();
    let is_key = line.split_whitespace().count() >= 2
        && ["ssh-", "ecdsa-", "sk-"]
            .iter()
            .any(|kind| line.starts_with(kind))
        && line.chars().all(|c| !c.is_control());
    if is_key {
        Ok(line.to_owned())
    } else {
        Err("no public key of ssh: expected a line such as ssh-ed25519 AAAA".into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        ServerSettings, forget_boot_key, forget_former_boot_key, keep_boot_key_of_disk,
        known_hosts, read_public, seal, seal_for_one_boot, seal_of_boot,
    };
    use crate::tests::settings_of;

    #[test]
    fn seal_is_the_same_each_time() {
        let home = tempfile::tempdir().unwrap();
        let mut server = settings_of("testbox");
        let key = home.path().join("mine.pub");
        fs::write(&key, "# mine\nssh-ed25519 AAAAmine me@here\n").unwrap();
        server.deploy.key = Some(key);
        let first = seal(&server, home.path()).unwrap();
        assert_eq!(first, seal(&server, home.path()).unwrap());
        let text = String::from_utf8_lossy(&first);
        assert!(
            text.contains("ssh-ed25519 AAAAmine me@here\n") && text.contains("OPENSSH PRIVATE KEY")
        );
        let known = fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
        assert!(known.starts_with("* ssh-ed25519 AAAA"), "{known}");
        server.deploy.key = Some(home.path().join("none.pub"));
        assert!(seal(&server, home.path()).is_err());
    }

    #[test]
    fn seal_of_one_boot_has_another_key() {
        let (home, server) = opened_by_a_key();
        let own = seal(&server, home.path()).unwrap();
        let secret = fs::read_to_string(super::host_key(home.path(), "testbox")).unwrap();
        // Any line of it would do.
        let line = secret.lines().nth(3).unwrap();
        let has = |seal: &[u8]| String::from_utf8_lossy(seal).contains(line);
        let known = || fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
        let first = seal_for_one_boot(&server, home.path()).unwrap();
        assert_eq!(known().lines().count(), 2, "{}", known());
        assert_eq!(
            first,
            seal_of_boot(&server, home.path()).unwrap(),
            "builds and disks get the same key"
        );
        let second = seal_for_one_boot(&server, home.path()).unwrap();
        assert!(
            has(&own) && !has(&first) && !has(&second),
            "the server's own key does not leave by iPXE"
        );
        assert_ne!(first, second);
        let both = known();
        assert_eq!(own, seal(&server, home.path()).unwrap());
        assert_eq!(known(), both, "ssh still knows the system that runs");
        forget_boot_key(&server, home.path()).unwrap();
        assert_eq!(known(), format!("{}\n", both.lines().next().unwrap()));
        let error = seal_of_boot(&server, home.path()).unwrap_err().to_string();
        assert!(error.contains("hint: reboot the server"), "{error}");
    }

    #[test]
    fn failed_start_leaves_the_former_boot_known() {
        let (home, server) = opened_by_a_key();
        let known = || -> Vec<String> {
            let text = fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        seal_for_one_boot(&server, home.path()).unwrap();
        forget_former_boot_key(&server, home.path()).unwrap();
        let reached = known();
        // Two starts that fail: what was reached before still runs.
        for _ in 0..2 {
            seal_for_one_boot(&server, home.path()).unwrap();
            assert_eq!((known().len(), &known()[..2]), (3, &reached[..]));
        }
        forget_former_boot_key(&server, home.path()).unwrap();
        assert!(known().len() == 2 && known()[1] != reached[1]);
    }

    #[test]
    fn key_of_an_installed_disk_stays_known() {
        let (home, server) = opened_by_a_key();
        let known = || fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
        seal_for_one_boot(&server, home.path()).unwrap();
        let installed = known();
        keep_boot_key_of_disk(&server, home.path()).unwrap();
        seal_for_one_boot(&server, home.path()).unwrap();
        forget_boot_key(&server, home.path()).unwrap();
        assert_eq!(known(), installed);
    }

    /// Returns a home, and settings of a server that a key opens.
    fn opened_by_a_key() -> (tempfile::TempDir, ServerSettings) {
        let home = tempfile::tempdir().unwrap();
        let mut server = settings_of("testbox");
        let mine = home.path().join("mine.pub");
        fs::write(&mine, "ssh-ed25519 AAAAmine me@here\n").unwrap();
        server.deploy.key = Some(mine);
        (home, server)
    }

    #[test]
    fn private_keys_are_no_public_ones() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("key");
        for wrong in [
            "",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
            "ssh-ed25519\n",
            "command=\"x\" y z",
        ] {
            fs::write(&file, wrong).unwrap();
            assert!(read_public(&file).is_err(), "{wrong}");
        }
    }
}
