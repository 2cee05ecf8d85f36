//! What makes an image one server's: the key that opens it, its own key, its name. It follows the image's root in what the server
//! boots, so that the image itself has no secret and no server. A boot by iPXE has a key of its own.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use model::ServerSettings;
use process::Program;

use super::problem::ServerProblem;
use crate::hash;
use crate::initrd::{InitrdFile, archive_of_settings};

/// The public half of a key has this ending.
const PUBLIC: &str = ".pub";

/// Returns the file with the key of a server that runs images; its `.pub` is beside it.
fn host_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.key"))
}

/// Returns the file in which ssh finds the key of a server that runs images.
pub(super) fn known_hosts(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.known_hosts"))
}

/// Returns the file with the key that a server has for one boot. Only its `.pub` stays.
fn boot_key(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.boot"))
}

/// A key of a server, both halves.
struct Key {
    secret: Vec<u8>,
    public: Vec<u8>,
}

/// Returns the seal of a server; makes its key if it has none. It goes to the server by an encrypted connection.
pub(super) fn seal(server: &ServerSettings, home: &Path) -> Result<Vec<u8>, ServerProblem> {
    let own = own_key(server, home)?;
    archive(server, home, &own, &own)
}

/// Returns a seal with a new key for one boot, as the network can read it: iPXE gets it unencrypted, and every client that knows
/// the server's network card may ask for it. [`seal`] gives the system that runs the server's own key, by ssh.
pub(super) fn seal_for_one_boot(server: &ServerSettings, home: &Path) -> Result<Vec<u8>, ServerProblem> {
    let own = own_key(server, home)?;
    let made = || -> Result<Key, String> {
        let path = boot_key(home, &server.name);
        make_key(&path, &server.name)?;
        let key = read_key(&path)?;
        fs::remove_file(&path).map_err(|error| format!("cannot remove {}: {error}", path.display()))?;
        Ok(key)
    };
    let key = made().map_err(failed(server, "get a key for one boot"))?;
    archive(server, home, &own, &key)
}

/// Forgets the key of the last boot: the server runs a system of its own.
pub(super) fn forget_boot_key(server: &ServerSettings, home: &Path) -> Result<(), ServerProblem> {
    match fs::remove_file(with_ending(&boot_key(home, &server.name))) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(server, "forget a key")(error.to_string())),
        Err(_) => Ok(()),
        Ok(()) => own_key(server, home).and_then(|own| write_known_hosts(server, home, &own)),
    }
}

fn failed(server: &ServerSettings, step: &'static str) -> impl FnOnce(String) -> ServerProblem + use<> {
    let name = server.name.clone();
    move |said| ServerProblem::Step { name, step, said }
}

/// Returns a server's own key, which stays the same; makes it if it has none.
fn own_key(server: &ServerSettings, home: &Path) -> Result<Key, ServerProblem> {
    let path = host_key(home, &server.name);
    let made = if with_ending(&path).exists() { Ok(()) } else { make_key(&path, &server.name) };
    made.and_then(|()| read_key(&path)).map_err(failed(server, "get a key"))
}

fn read_key(path: &Path) -> Result<Key, String> {
    let read = |path: &Path| fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
    Ok(Key { secret: read(path)?, public: read(&with_ending(path))? })
}

/// Writes the keys by which ssh knows a server that runs an image: its own, and that of its last boot.
fn write_known_hosts(server: &ServerSettings, home: &Path, own: &Key) -> Result<(), ServerProblem> {
    let place = known_hosts(home, &server.name);
    let boot = fs::read(with_ending(&boot_key(home, &server.name))).ok();
    let line = |public: &[u8]| {
        let words = String::from_utf8_lossy(public).split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        format!("* {words}\n")
    };
    let lines: String = [Some(&own.public), boot.as_ref()].into_iter().flatten().map(|public| line(public)).collect();
    fs::write(&place, lines)
        .map_err(|error| failed(server, "get a key")(format!("cannot write {}: {error}", place.display())))
}

/// Packs what a server needs, with the key that its sshd has.
fn archive(server: &ServerSettings, home: &Path, own: &Key, key: &Key) -> Result<Vec<u8>, ServerProblem> {
    write_known_hosts(server, home, own)?;
    let login = login_key(server).map_err(failed(server, "be opened by a key"))?;
    // The same at each boot: services make one of their own for each boot else.
    let machine_id = hash(&[b"marvin", server.name.as_bytes(), &own.public])[..32].to_owned();
    let file = |path: &str, bytes: Vec<u8>| InitrdFile { path: path.to_owned(), bytes };
    let public = [
        file("etc/ssh/ssh_host_ed25519_key.pub", key.public.clone()),
        file("etc/hostname", format!("{}\n", server.name).into_bytes()),
        // Services that are not root's make their identity in the network of it.
        file("etc/machine-id", format!("{machine_id}\n").into_bytes()),
    ];
    let secret = [
        file("etc/ssh/ssh_host_ed25519_key", key.secret.clone()),
        file("root/.ssh/authorized_keys", format!("{login}\n").into_bytes()),
    ];
    Ok(archive_of_settings(&public, &secret))
}

fn with_ending(path: &Path) -> PathBuf {
    let mut text = path.as_os_str().to_owned();
    text.push(PUBLIC);
    text.into()
}

fn make_key(path: &Path, name: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    // Half of one, of a Marvin that was killed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    let words = ["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"];
    let ended = Program::new("ssh-keygen").args(words).args([path]).run().map_err(|error| error.to_string())?;
    if ended.code == Some(0) { Ok(()) } else { Err(format!("ssh-keygen: {}", ended.reason())) }
}

/// Returns the public key that opens a server: the one that its settings name, or the first that ssh would try.
fn login_key(server: &ServerSettings) -> Result<String, String> {
    if let Some(file) = &server.deploy.key {
        return read_public(file).map_err(|why| format!("{}: {why}", file.display()));
    }
    let config = server.ssh_config.iter().flat_map(|file| ["-F".into(), file.clone().into_os_string()]);
    let asked = Program::new("ssh").args(["-G"]).args(config).args(["--", &server.host]).run();
    let text = asked.map_err(|error| error.to_string())?.text();
    let files = text.lines().filter_map(|line| line.strip_prefix("identityfile "));
    let home = std::env::var("HOME").unwrap_or_default();
    let files = files.map(|file| with_ending(Path::new(&file.replacen('~', &home, 1))));
    files.filter_map(|file| read_public(&file).ok()).next().ok_or_else(|| {
        let host = &server.host;
        format!("ssh has no public key for {host}\nhint: set key = \"FILE.pub\" in its [machine.deploy]")
    })
}

fn read_public(file: &Path) -> Result<String, String> {
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let line = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or_default();
    let is_key = line.split_whitespace().count() >= 2
        && ["ssh-", "ecdsa-", "sk-"].iter().any(|kind| line.starts_with(kind))
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

    use super::{forget_boot_key, known_hosts, read_public, seal, seal_for_one_boot};
    use crate::server::tests::settings_of;

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
        assert!(text.contains("ssh-ed25519 AAAAmine me@here\n") && text.contains("OPENSSH PRIVATE KEY"));
        let known = fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
        assert!(known.starts_with("* ssh-ed25519 AAAA"), "{known}");
        server.deploy.key = Some(home.path().join("none.pub"));
        assert!(seal(&server, home.path()).is_err());
    }

    #[test]
    fn seal_of_one_boot_has_another_key() {
        let home = tempfile::tempdir().unwrap();
        let mut server = settings_of("testbox");
        let mine = home.path().join("mine.pub");
        fs::write(&mine, "ssh-ed25519 AAAAmine me@here\n").unwrap();
        server.deploy.key = Some(mine);
        let own = seal(&server, home.path()).unwrap();
        let secret = fs::read_to_string(super::host_key(home.path(), "testbox")).unwrap();
        // Any line of it would do.
        let line = secret.lines().nth(3).unwrap();
        let has = |seal: &[u8]| String::from_utf8_lossy(seal).contains(line);
        let [first, second] = [0, 1].map(|_| seal_for_one_boot(&server, home.path()).unwrap());
        assert!(has(&own) && !has(&first) && !has(&second), "the server's own key does not leave by iPXE");
        assert_ne!(first, second);
        let known = || fs::read_to_string(known_hosts(home.path(), "testbox")).unwrap();
        let both = known();
        assert_eq!(both.lines().count(), 2, "{both}");
        assert_eq!(own, seal(&server, home.path()).unwrap());
        assert_eq!(known(), both, "ssh still knows the system that runs");
        forget_boot_key(&server, home.path()).unwrap();
        assert_eq!(known(), format!("{}\n", both.lines().next().unwrap()));
    }

    #[test]
    fn private_keys_are_no_public_ones() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("key");
        for wrong in ["", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "ssh-ed25519\n", "command=\"x\" y z"] {
            fs::write(&file, wrong).unwrap();
            assert!(read_public(&file).is_err(), "{wrong}");
        }
    }
}
