//! What makes an image one server's: the key that opens it, its own key, its name. It follows the image's root in what the server
//! boots, so that the image itself has no secret and no server.

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

/// Returns the seal of a server; makes its key if it has none.
pub(super) fn seal(server: &ServerSettings, home: &Path) -> Result<Vec<u8>, ServerProblem> {
    let failed = |step: &'static str| {
        let name = server.name.clone();
        move |said: String| ServerProblem::Step { name, step, said }
    };
    let key = host_key(home, &server.name);
    let public_file = with_ending(&key);
    if !public_file.exists() {
        make_key(&key, &server.name).map_err(failed("get a key"))?;
    }
    let read = |path: &Path| {
        fs::read(path).map_err(|error| failed("get a key")(format!("cannot read {}: {error}", path.display())))
    };
    let (secret, public) = (read(&key)?, read(&public_file)?);
    let place = known_hosts(home, &server.name);
    let line = String::from_utf8_lossy(&public).split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    fs::write(&place, format!("* {line}\n"))
        .map_err(|error| failed("get a key")(format!("cannot write {}: {error}", place.display())))?;
    let login = login_key(server).map_err(failed("be opened by a key"))?;
    // The same at each boot: services make one of their own for each boot else.
    let machine_id = hash(&[b"marvin", server.name.as_bytes(), &public])[..32].to_owned();
    let file = |path: &str, bytes: Vec<u8>| InitrdFile { path: path.to_owned(), bytes };
    let public = [
        file("etc/ssh/ssh_host_ed25519_key.pub", public),
        file("etc/hostname", format!("{}\n", server.name).into_bytes()),
        // Services that are not root's make their identity in the network of it.
        file("etc/machine-id", format!("{machine_id}\n").into_bytes()),
    ];
    let secret = [
        file("etc/ssh/ssh_host_ed25519_key", secret),
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

    use super::{known_hosts, read_public, seal};
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
    fn private_keys_are_no_public_ones() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("key");
        for wrong in ["", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "ssh-ed25519\n", "command=\"x\" y z"] {
            fs::write(&file, wrong).unwrap();
            assert!(read_public(&file).is_err(), "{wrong}");
        }
    }
}
