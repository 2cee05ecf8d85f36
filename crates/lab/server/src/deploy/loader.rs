//! The image that a server runs from memory as its own system, and what has the server start it:
//! the system that runs there (kexec), its firmware (iPXE, from this host), or a program of the
//! site. The lab keeps in `machines/NAME.image` which one it is.

use std::fmt::Debug;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use machine::MachineError;
use model::{BootDevice, DeployWay, ServerSettings};
use subprocess::{Program, Shared, replace_file};

use super::seal;
use super::{Answers, Image, Offer};
use crate::permit::Permit;
use crate::power::Power;
use crate::problem::ServerProblem;
use crate::remote::{IMAGE, ssh};

const START: &str = concat!(
    include_str!("../remote/scripts/image.sh"),
    include_str!("../remote/scripts/kexec_start.sh")
);
const COMPLETE: &str = include_str!("../remote/scripts/complete.sh");
const TO_DISK: &str = include_str!("../remote/scripts/to_disk.sh");
/// The step that fails if a server does not run its image.
pub(crate) const RUN_IMAGE: &str = "run its image";
/// How long writing a disk may take (s), with the initramfs, which is made there.
const DISK_S: u64 = 1800;
/// How long the site's program may take (s).
const COMMAND_S: u64 = 1800;

/// What has a server start its image.
pub(crate) trait ImageLoader: Debug + Send + Sync {
    fn image(&self) -> &Image;

    /// Returns whether a system has to run on the server, which starts the image.
    fn needs_system(&self) -> bool;

    /// Has the server start the image. Returns before it runs.
    fn start(&self) -> Result<(), ServerProblem>;

    /// Says that the image runs since the last start.
    fn confirm_started(&self) -> Result<(), ServerProblem>;

    /// Gives the image that runs its own root, which builds get, too.
    fn add_root(&self) -> Result<(), ServerProblem>;
}

/// Returns the file that says which image a server runs.
fn file(home: &Path, name: &str) -> PathBuf {
    home.join("machines").join(format!("{name}.image"))
}

/// Returns the image that was deployed on a server; `None` if it runs a system of its own.
pub(crate) fn deployed_image(home: &Path, name: &str) -> Result<Option<Image>, ServerProblem> {
    let path = file(home, name);
    let text = match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|error| unreadable(name, &path, &error.to_string()))?,
    };
    let mut fields = text.split_whitespace();
    let (Some(id), Some(image)) = (fields.next(), fields.next()) else {
        return Err(unreadable(name, &path, "expected ID NAME"));
    };
    let kernels = fields
        .next()
        .map(str::parse)
        .transpose()
        .map_err(|why: String| unreadable(name, &path, &why))?;
    Ok(Some(
        Image::find(home, image, id, kernels).map_err(|error| failed(name)(error.to_string()))?,
    ))
}

/// Returns the ids of the images that servers run.
///
/// # Errors
/// If a file that names one cannot be read.
pub fn images_in_use(home: &Path) -> Result<Vec<String>, MachineError> {
    let folder = home.join("machines");
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(MachineError::io("read", &folder))?,
    };
    let mut ids = Vec::new();
    for entry in entries {
        let path = entry.map_err(MachineError::io("read", &folder))?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "image")
        {
            let text = fs::read_to_string(&path).map_err(MachineError::io("read", &path))?;
            ids.extend(text.split_whitespace().next().map(str::to_owned));
        }
    }
    Ok(ids)
}

fn unreadable(name: &str, path: &Path, why: &str) -> ServerProblem {
    failed(name)(format!("{}: {why}", path.display()))
}

fn failed(name: &str) -> impl Fn(String) -> ServerProblem + use<> {
    let name = name.to_owned();
    move |answer| ServerProblem::Step {
        name: name.clone(),
        step: RUN_IMAGE,
        answer,
    }
}

/// Notes which image a server runs; none for a system of its own.
pub(crate) fn write_deployed_image(
    home: &Path,
    name: &str,
    image: Option<&Image>,
) -> Result<(), MachineError> {
    let path = file(home, name);
    let Some(image) = image else {
        return match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(MachineError::io("remove", &path)(error))
            }
            _ => Ok(()),
        };
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(MachineError::io("create", folder))?;
    let kernels = image
        .kernels
        .as_ref()
        .map(|range| format!(" {range}"))
        .unwrap_or_default();
    // No `.image` until it is whole: `images_in_use` reads all of these.
    let part = path.with_extension("image.part");
    let text = format!("{} {}{kernels}\n", image.id, image.name);
    replace_file(&path, &part, text).map_err(MachineError::io("write", &path))
}

/// An image for a server.
#[derive(Debug)]
pub(crate) struct DeployedImage {
    image: Image,
    server: ServerSettings,
    home: PathBuf,
    ssh: ssh::Ssh,
    permit: Option<std::sync::Arc<dyn Permit>>,
    /// While it is there, the server's iPXE gets answers.
    answers: Shared<Option<Answers>>,
}

impl DeployedImage {
    pub(crate) fn new(
        image: Image,
        server: &ServerSettings,
        home: &Path,
        permit: Option<std::sync::Arc<dyn Permit>>,
    ) -> Self {
        let ssh = ssh::Ssh::new(server.clone(), home, None, &[]);
        let server = server.clone();
        let home = home.to_owned();
        let answers = Shared::default();
        Self {
            image,
            server,
            home,
            ssh,
            permit,
            answers,
        }
    }

    /// Has the image that runs install itself on a disk, and the firmware boot that next. What the
    /// disk has is lost.
    pub(crate) fn install(&self, disk: &str) -> Result<(), ServerProblem> {
        self.permitted()?;
        let arguments = [disk, &self.server.deploy.command_line, &self.image.id];
        self.ssh
            .step("install its image", TO_DISK, &arguments, &[], DISK_S)?;
        // The copy has the key of the system that was copied.
        seal::keep_boot_key_of_disk(&self.server, &self.home)?;
        // Firmware that has just booted the network may do so again.
        if let (DeployWay::Pxe { .. }, Some(settings)) =
            (&self.server.deploy.by, &self.server.power)
        {
            Power::new(&self.server.name, settings).boot_next(BootDevice::Disk)?;
        }
        Ok(())
    }

    fn failed(&self, answer: impl ToString) -> ServerProblem {
        failed(&self.server.name)(answer.to_string())
    }

    /// The right to have the server do that.
    fn permitted(&self) -> Result<(), ServerProblem> {
        let renewed = self.permit.as_ref().map_or(Ok(()), |permit| {
            permit.renew(self.server.boot_s + COMMAND_S)
        });
        renewed.map_err(ServerProblem::NotOurs)
    }

    fn command_line(&self) -> String {
        format!(
            "{} {IMAGE}{}",
            self.server.deploy.command_line, self.image.id
        )
    }

    /// Returns the root with the seal.
    fn sealed(&self) -> Result<Vec<u8>, ServerProblem> {
        let mut root = fs::read(self.image.root()).map_err(|error| self.failed(error))?;
        // An archive that is not compressed begins at a multiple of four bytes (init/initramfs.c of
        // the kernel).
        root.resize(root.len().next_multiple_of(4), 0);
        // Who answers after a start by iPXE may be a client that took the seal of that start: it
        // gets no other key.
        root.extend(match &self.server.deploy.by {
            DeployWay::Pxe { .. } => seal::seal_of_boot(&self.server, &self.home)?,
            DeployWay::Kexec | DeployWay::Command(_) => seal::seal(&self.server, &self.home)?,
        });
        Ok(root)
    }

    fn by_kexec(&self) -> Result<(), ServerProblem> {
        let mut bytes = fs::read(self.image.kernel()).map_err(|error| self.failed(error))?;
        // One stream has both files: the script cuts the kernel off by its size.
        let size = bytes.len().to_string();
        bytes.extend(self.sealed()?);
        self.ssh.step(
            "start its image",
            START,
            &[&size, &self.command_line()],
            &bytes,
            ssh::COPY_S,
        )
    }

    fn by_pxe(&self, listen: std::net::SocketAddr, mac: &str) -> Result<(), ServerProblem> {
        let Some(settings) = &self.server.power else {
            return Err(self.failed("iPXE needs a [machine.power]"));
        };
        let offer = Offer {
            mac: mac.to_owned(),
            kernel: self.image.kernel(),
            root: self.image.root(),
            seal: seal::seal_for_one_boot(&self.server, &self.home)?,
            command_line: self.command_line(),
        };
        // Kept in the handle: the server asks some time after this step, when its firmware has
        // started iPXE.
        let mut answers = self.answers.lock();
        // Two cannot listen there.
        *answers = None;
        *answers = Some(Answers::open(listen, offer).map_err(|error| self.failed(error))?);
        let power = Power::new(&self.server.name, settings);
        power.boot_next(BootDevice::Pxe)?;
        power.cycle()?;
        Ok(())
    }

    fn by_command(&self, command: &[String]) -> Result<(), ServerProblem> {
        let Some((program, rest)) = command.split_first() else {
            return Ok(());
        };
        let initrd = file(&self.home, &self.server.name).with_extension("initrd");
        fs::write(&initrd, self.sealed()?).map_err(|error| self.failed(error))?;
        let program = Program::new(program)
            .args(rest)
            .args([&self.server.name, &self.image.name]);
        let program = program
            .variable("MARVIN_KERNEL", self.image.kernel())
            .variable("MARVIN_INITRD", &initrd);
        let ended = program
            .variable("MARVIN_COMMAND_LINE", self.command_line())
            .deadline_s(COMMAND_S)
            .run();
        // It has the key with which the server proves itself.
        drop(fs::remove_file(&initrd));
        match ended? {
            ended if ended.code == Some(0) => Ok(()),
            ended => Err(self.failed(format!(
                "{}: {}",
                command[0],
                model::sanitize_line(&ended.reason())
            ))),
        }
    }
}

impl ImageLoader for DeployedImage {
    fn image(&self) -> &Image {
        &self.image
    }

    fn needs_system(&self) -> bool {
        self.server.deploy.by == DeployWay::Kexec
    }

    fn start(&self) -> Result<(), ServerProblem> {
        // It is checked each time: a file that was damaged since would make a server that does not
        // come back.
        self.image.verify().map_err(|error| self.failed(error))?;
        self.permitted()?;
        match &self.server.deploy.by {
            DeployWay::Kexec => self.by_kexec(),
            DeployWay::Pxe { listen, mac } => self.by_pxe(*listen, mac),
            DeployWay::Command(command) => self.by_command(command),
        }
    }

    fn confirm_started(&self) -> Result<(), ServerProblem> {
        seal::forget_former_boot_key(&self.server, &self.home)
    }

    fn add_root(&self) -> Result<(), ServerProblem> {
        self.permitted()?;
        self.ssh.step(
            "take its own root",
            COMPLETE,
            &[&self.image.release],
            &self.sealed()?,
            ssh::COPY_S,
        )
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::DeployWay;

    use super::{DeployedImage, Image, seal};
    use crate::tests::settings_of;

    #[test]
    fn who_answers_after_ipxe_gets_no_lasting_key() {
        let home = tempfile::tempdir().unwrap();
        let id = "0123456789abcdef";
        let folder = home.path().join("distributions").join(id);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("release"), "6.1-image\n").unwrap();
        let image = Image::find(home.path(), "debian-12", id, None).unwrap();
        fs::write(image.root(), "root").unwrap();
        let mut server = settings_of("testbox");
        let mine = home.path().join("mine.pub");
        fs::write(&mine, "ssh-ed25519 AAAAmine me@here\n").unwrap();
        server.deploy.key = Some(mine);
        let listen = "127.0.0.1:0".parse().unwrap();
        server.deploy.by = DeployWay::Pxe {
            listen,
            mac: "00-00-00-00-00-01".to_owned(),
        };
        let carried = DeployedImage::new(image, &server, home.path(), None);
        assert!(carried.sealed().is_err(), "it was never started by iPXE");
        let sent = seal::seal_for_one_boot(&server, home.path()).unwrap();
        assert_eq!(
            carried.sealed().unwrap(),
            [b"root".as_slice(), &sent].concat()
        );
    }
}
