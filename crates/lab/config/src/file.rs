//! The file marvin.toml: where it is, and its relative paths made absolute.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use model::{
    ChannelKind, Fault, Login, MailServer, MailTaker, MarvinConfig, PowerSettings, Recipe, Secret,
    ToolRows, TreeOrigin,
};

use crate::{SETTINGS_MAX, settings};

/// marvin.toml and its file.
#[derive(Debug, Clone)]
pub struct ConfigFile {
    pub settings: MarvinConfig,
    /// The file; `None` if there is none, with empty settings.
    pub file: Option<PathBuf>,
}

/// Why marvin.toml cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", file.display())]
pub struct ConfigError {
    pub file: PathBuf,
    /// The mistake, with its line.
    pub what: String,
}

impl ConfigError {
    /// Returns whose fault the error is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        Fault::User
    }
}

impl ConfigFile {
    /// Reads the settings from a file; without a name from `marvin.toml` in the data directory,
    /// which is optional. Relative paths start at the file's directory; plans may name these
    /// tools.
    ///
    /// # Errors
    /// If the file cannot be read or is invalid.
    pub fn read(home: &Path, named: Option<&Path>, tools: &ToolRows) -> Result<Self, ConfigError> {
        let usual = home.join("marvin.toml");
        let file = named.unwrap_or(&usual);
        let wrong = |what: String| ConfigError {
            file: file.to_owned(),
            what,
        };
        let text = match File::open(file) {
            // A home that is no directory has no file; opening the home says so.
            Err(error)
                if named.is_none()
                    && matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                None
            }
            opened => Some(
                opened
                    .and_then(text_of)
                    .map_err(|error| wrong(format!("cannot read it: {error}")))?,
            ),
        };
        let read = settings(text.as_deref().unwrap_or_default(), tools);
        let mut settings = read.map_err(|error| wrong(error.to_string()))?;
        let folder = file.parent().unwrap_or(Path::new("."));
        for tree in &mut settings.trees {
            if let TreeOrigin::Git { place, .. } = &mut tree.origin
                && !place.contains(':')
            {
                *place = folder.join(&*place).display().to_string();
            }
            let parts = tree.config.split('+').map(|part| {
                let file = folder.join(part);
                match file.is_file() {
                    true => file.display().to_string(),
                    false => part.to_owned(),
                }
            });
            tree.config = parts.collect::<Vec<_>>().join("+");
        }
        settings.builds = settings.builds.map(|shared| folder.join(shared));
        for server in &mut settings.servers {
            if let Some(file) = &mut server.ssh_config {
                *file = folder.join(&*file);
            }
            if let Some(file) = &mut server.deploy.key {
                *file = folder.join(&*file);
            }
            if let Some(PowerSettings::Qmp(socket)) = &mut server.power {
                *socket = folder.join(&*socket);
            }
        }
        for image in &mut settings.images {
            if let Recipe::Debian {
                setup: Some(script),
                ..
            } = &mut image.recipe
            {
                *script = folder.join(&*script);
            }
        }
        let of_servers = settings
            .servers
            .iter_mut()
            .filter_map(|server| server.power.as_mut()?.login_mut());
        let of_channels = settings
            .channels
            .iter_mut()
            .filter_map(|channel| login(&mut channel.kind));
        for login in of_servers.chain(of_channels) {
            if let Secret::File(path) = &mut login.password {
                *path = folder.join(&*path);
            }
        }
        Ok(Self {
            settings,
            file: text.map(|_| file.to_owned()),
        })
    }
}

/// Reads a file as text, up to one byte above the size limit: a larger file is refused and not
/// truncated. One that every user may change is refused: it names programs that Marvin runs.
fn text_of(file: File) -> io::Result<String> {
    let found = file.metadata()?;
    if found.is_file() && found.mode() & 0o002 != 0 {
        return Err(io::Error::other(
            "every user may write to it, and it names programs that Marvin runs: `chmod o-w` it",
        ));
    }
    let mut bytes = Vec::new();
    file.take(SETTINGS_MAX as u64 + 1).read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Returns the login of a channel, if it has one.
fn login(kind: &mut ChannelKind) -> Option<&mut Login> {
    match kind {
        ChannelKind::Mail {
            by: MailTaker::Server(MailServer { login, .. }),
            ..
        } => login.as_mut(),
        _ => None,
    }
}
