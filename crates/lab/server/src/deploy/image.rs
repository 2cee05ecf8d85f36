//! Images: a kernel, and a root that it unpacks into memory. Made of a distribution's packages
//! without root's rights, kept in `distributions/ID` of the data directory, and verified before
//! each use. The id is the hash of both files.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::{ImageSettings, KernelRange, Recipe};
use sha2::{Digest, Sha256};
use subprocess::{NETWORK, Program, quote_words};

use super::DeployError;

/// What Marvin needs on a server, beside Debian's required packages: the way in, the way to builds,
/// and a network.
const NEEDED: &str =
    "systemd-sysv,udev,dbus,openssh-server,kexec-tools,kmod,cpio,iproute2,procps,zstd";
const SETUP: &str = include_str!("setup.sh");
/// What is left out of packages: a server that runs from memory needs none of it.
const LEFT_OUT: [&str; 4] = ["man", "locale", "doc", "info"];
/// The date of files that are made with the image (2025-01-01).
const EPOCH: &str = "1735689600";
/// Deadline of making an image (s): some mirrors are slow.
const MAKE_S: u64 = 3600;
/// Digits of an id.
pub(crate) const ID: usize = 16;
/// What the names of directories begin with in which images are made.
pub(crate) const MAKING: &str = "making-";

/// Where the script leaves them in the root.
const OUT: &str = "/marvin-out/vmlinuz /marvin-out/root /marvin-out/release";

/// Files of an image.
const KERNEL: &str = "vmlinuz";
const ROOT: &str = "root";
const RELEASE: &str = "release";
const FILES: [&str; 3] = [KERNEL, ROOT, RELEASE];
/// What its recipe was.
const RECIPE: &str = "recipe";

/// An image of this data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Its name in marvin.toml.
    pub name: String,
    /// The hash of its kernel and its root.
    pub id: String,
    /// The release of its kernel.
    pub release: String,
    /// The kernels that are measured on it.
    pub kernels: Option<KernelRange>,
    folder: PathBuf,
}

impl Image {
    /// Finds an image by its id.
    ///
    /// # Errors
    /// If there is none, or it cannot be read.
    pub fn find(
        home: &Path,
        name: &str,
        id: &str,
        kernels: Option<KernelRange>,
    ) -> Result<Self, DeployError> {
        let folder = distributions(home).join(id);
        let release = folder.join(RELEASE);
        let release = fs::read_to_string(&release).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => DeployError::Unknown {
                name: name.to_owned(),
            },
            _ => DeployError::io("read", &release)(error),
        })?;
        let release = model::sanitize_line(release.trim());
        Ok(Self {
            name: name.to_owned(),
            id: id.to_owned(),
            release,
            kernels,
            folder,
        })
    }

    /// Returns the file with its kernel.
    #[must_use]
    pub fn kernel(&self) -> PathBuf {
        self.folder.join(KERNEL)
    }

    /// Returns the file with its root, an initramfs.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join(ROOT)
    }

    /// Compares its files with its id.
    ///
    /// # Errors
    /// If one is damaged or cannot be read.
    pub fn verify(&self) -> Result<(), DeployError> {
        if id_of(&self.folder)? == self.id {
            return Ok(());
        }
        Err(DeployError::Damaged {
            name: self.name.clone(),
            path: self.folder.clone(),
        })
    }
}

/// Returns the directory of a data directory's images.
pub(crate) fn distributions(home: &Path) -> PathBuf {
    home.join("distributions")
}

/// Returns the image of this recipe, and makes it unless it is there. With `again`, it is made of
/// today's packages.
///
/// # Errors
/// If a program is missing or fails, or a file cannot be written.
pub fn make(settings: &ImageSettings, home: &Path, again: bool) -> Result<Image, DeployError> {
    let folder = distributions(home);
    let recipe = recipe(&settings.recipe)?;
    fs::create_dir_all(&folder).map_err(DeployError::io("create", &folder))?;
    // Others may make images, too, but delete none meanwhile.
    let lock = File::open(&folder).and_then(|folder| folder.lock_shared().map(|()| folder));
    let _lock = lock.map_err(DeployError::io("lock", &folder))?;
    let known = folder.join(&settings.name);
    if !again
        && let Some((made_of, id)) = newest(&known)
        && made_of == recipe
        && let Ok(image) = Image::find(home, &settings.name, &id, settings.kernels.clone())
    {
        image.verify()?;
        return Ok(image);
    }
    let scratch = tempfile::Builder::new().prefix(MAKING).tempdir_in(&folder);
    let scratch = scratch.map_err(DeployError::io("create a directory in", &folder))?;
    fs::create_dir_all(&known).map_err(DeployError::io("create", &known))?;
    let log = known.join("log");
    let program = match &settings.recipe {
        Recipe::Debian { .. } => debian(&settings.recipe, scratch.path())?,
        Recipe::Command(command) => {
            let (name, rest) = command
                .split_first()
                .map_or(("", &[][..]), |(name, rest)| (name.as_str(), rest));
            Program::new(name).args(rest).args([scratch.path()])
        }
    };
    let ended = program
        .inherit(&NETWORK)
        .deadline_s(MAKE_S)
        .log(&log)
        .run()?;
    if ended.code != Some(0) {
        let printed = fs::read_to_string(&log).unwrap_or_default();
        let answer = printed
            .lines()
            .rfind(|line| !line.trim().is_empty())
            .unwrap_or("it printed nothing");
        // What mmdebstrap says as another user than root, without the means to be root in a
        // namespace.
        if answer.contains("unable to pick chroot mode") {
            return Err(DeployError::Missing {
                program: "newuidmap",
                package: "uidmap",
            });
        }
        return Err(DeployError::Failed {
            name: settings.name.clone(),
            answer: model::sanitize_line(answer),
            log,
        });
    }
    if let Some(file) = FILES
        .into_iter()
        .find(|file| !scratch.path().join(file).is_file())
    {
        return Err(DeployError::Incomplete {
            name: settings.name.clone(),
            file,
        });
    }
    let id = id_of(scratch.path())?;
    let place = folder.join(&id);
    if place.exists() {
        // The same image; or a damaged one, which is made good.
        fs::remove_dir_all(&place).map_err(DeployError::io("remove", &place))?;
    }
    fs::rename(scratch.path(), &place).map_err(DeployError::io("create", &place))?;
    // Last: what a killed process leaves before this is named by no recipe, and so is garbage.
    let file = known.join(RECIPE);
    fs::write(&file, format!("{recipe} {id}\n")).map_err(DeployError::io("write", &file))?;
    Image::find(home, &settings.name, &id, settings.kernels.clone())
}

/// Returns what the newest image of a recipe was made of, and its id, from the recipe's directory;
/// `None` if none was made.
pub(crate) fn newest(known: &Path) -> Option<(String, String)> {
    let text = fs::read_to_string(known.join(RECIPE)).ok()?;
    text.trim_end()
        .split_once(' ')
        .map(|(made_of, id)| (made_of.to_owned(), id.to_owned()))
}

/// Returns the hash of what an image is made of.
fn recipe(recipe: &Recipe) -> Result<String, DeployError> {
    let mut text = format!("{recipe:?}\n");
    if let Recipe::Debian { setup, .. } = recipe {
        text.extend([NEEDED, SETUP]);
        if let Some(file) = setup {
            text += &fs::read_to_string(file).map_err(DeployError::io("read", file))?;
        }
    }
    Ok(model::hexadecimal(&Sha256::digest(text)))
}

/// Returns the program that makes an image of packages in this directory.
fn debian(recipe: &Recipe, folder: &Path) -> Result<Program, DeployError> {
    let Recipe::Debian {
        suite,
        mirror,
        kernel,
        packages,
        setup,
    } = recipe
    else {
        return Ok(Program::new("true"));
    };
    for (program, package) in [
        ("mmdebstrap", "mmdebstrap"),
        ("cpio", "cpio"),
        ("zstd", "zstd"),
    ] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        if !std::env::split_paths(&path).any(|folder| folder.join(program).exists()) {
            return Err(DeployError::Missing { program, package });
        }
    }
    let include = [NEEDED, kernel]
        .into_iter()
        .chain(packages.iter().map(String::as_str))
        .collect::<Vec<_>>()
        .join(",");
    let left_out = LEFT_OUT.map(|name| format!("--dpkgopt=path-exclude=/usr/share/{name}/*"));
    // As root it uses chroot, else namespaces or fakechroot, whichever the host allows. There, the
    // hooks are no user of this host: they get scripts as text, and mmdebstrap itself copies
    // the files out.
    let arguments = [
        "--quiet",
        "--variant=minbase",
        "--format=null",
        "--aptopt=APT::Install-Recommends \"false\"",
    ];
    let of_site = setup
        .as_ref()
        .map(|file| fs::read_to_string(file).map_err(DeployError::io("read", file)));
    let copy = format!("copy-out {OUT} {}", quote_words([folder.to_string_lossy()]));
    let hooks = of_site
        .transpose()?
        .into_iter()
        .chain([SETUP.to_owned(), copy]);
    let hooks = hooks.map(|hook| format!("--customize-hook={hook}"));
    let program = Program::new("mmdebstrap")
        .args(arguments)
        .args(left_out)
        .args(hooks);
    // `-`: mmdebstrap would otherwise take the mirror as its target.
    let program = program
        .args([&format!("--include={include}"), suite, "-"])
        .args(mirror);
    Ok(program.variable("SOURCE_DATE_EPOCH", EPOCH))
}

/// Returns the hash of an image's files, with their sizes.
fn id_of(folder: &Path) -> Result<String, DeployError> {
    let mut hash = Sha256::new();
    for name in FILES {
        let path = folder.join(name);
        let read = DeployError::io("read", &path);
        let feed = |hash: &mut Sha256| -> io::Result<()> {
            let mut file = File::open(&path)?;
            // Else bytes that move from one file to the next would leave the hash as it is.
            hash.update(file.metadata()?.len().to_le_bytes());
            let mut buffer = vec![0; 1 << 20];
            loop {
                match file.read(&mut buffer)? {
                    0 => return Ok(()),
                    length => hash.update(&buffer[..length]),
                }
            }
        };
        feed(&mut hash).map_err(read)?;
    }
    Ok(model::hexadecimal(&hash.finalize())[..ID].to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use model::{ImageSettings, Recipe};

    use super::{Image, make};

    /// Returns an image that a program makes, which counts how often it ran.
    fn by_program(folder: &Path, body: &str) -> ImageSettings {
        let path = folder.join("make-image");
        fs::write(
            &path,
            format!(
                "#!/bin/sh\nset -e\necho run >> {}/runs\n{body}\n",
                folder.display()
            ),
        )
        .unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let recipe = Recipe::Command(vec![path.display().to_string()]);
        ImageSettings {
            name: "own".into(),
            recipe,
            kernels: None,
        }
    }

    const WHOLE: &str = "cd $1; echo kernel > vmlinuz; echo root > root; echo 6.1-own > release";

    #[test]
    fn same_content_has_the_same_id() {
        let home = tempfile::tempdir().unwrap();
        let settings = by_program(home.path(), WHOLE);
        let image = make(&settings, home.path(), false).unwrap();
        assert_eq!((image.release.as_str(), image.id.len()), ("6.1-own", 16));
        assert_eq!(
            make(&settings, home.path(), false).unwrap(),
            image,
            "it is there"
        );
        assert_eq!(
            make(&settings, home.path(), true).unwrap(),
            image,
            "it is made again"
        );
        assert_eq!(
            fs::read_to_string(home.path().join("runs"))
                .unwrap()
                .lines()
                .count(),
            2
        );
    }

    #[test]
    fn damaged_image_is_refused_and_made_again() {
        let home = tempfile::tempdir().unwrap();
        let settings = by_program(home.path(), WHOLE);
        let image = make(&settings, home.path(), false).unwrap();
        fs::write(image.root(), "toor\n").unwrap();
        let error = image
            .verify()
            .unwrap_err()
            .to_string()
            .replace(&home.path().display().to_string(), "HOME");
        insta::assert_snapshot!(error.replace(&image.id, "ID"), @r"
        image own is damaged: HOME/distributions/ID has another hash
        hint: marvin deploy MACHINE own --rebuild makes it again
        ");
        assert!(
            make(&settings, home.path(), false).is_err(),
            "a repeated command says so, too"
        );
        make(&settings, home.path(), true)
            .unwrap()
            .verify()
            .unwrap();
    }

    #[test]
    fn program_without_image_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        let failed = |body: &str| {
            let error = make(&by_program(home.path(), body), home.path(), false)
                .unwrap_err()
                .to_string();
            error.replace(&home.path().display().to_string(), "HOME")
        };
        insta::assert_snapshot!(failed("echo no mirror >&2; exit 3"), @r"
        cannot make image own: no mirror
        hint: the whole log is in HOME/distributions/own/log
        ");
        insta::assert_snapshot!(failed("echo 1 > $1/vmlinuz"), @"cannot make image own: its program left no root in its directory");
        assert!(Image::find(home.path(), "own", "0123", None).is_err());
    }
}
