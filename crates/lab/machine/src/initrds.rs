//! The initrds of one machine: what a guest config adds to the programs, and where the archives lie
//! until the lab closes.

use std::fs;
use std::path::{Path, PathBuf};

use model::{ExtraFiles, GuestConfig, GuestModule, Need};

use crate::backend::Guest;
use crate::initrd::{Programs, initrd, initrd_with_modules};
use crate::qemu::Scratch;
use crate::{MachineError, hash};

/// The initrds of a machine.
#[derive(Debug, Clone)]
pub(crate) struct Initrds {
    folder: PathBuf,
    programs: Programs,
    loader: Vec<u8>,
    guest_config: GuestConfig,
    /// The archive of files that guests carry.
    files: Option<PathBuf>,
    /// The initrd of guests without modules.
    plain: PathBuf,
    fingerprint: Vec<(String, String)>,
}

impl Initrds {
    /// Makes the initrd of guests without anything of their own, in a folder for temporary files.
    pub(crate) fn new(
        folder: &Path,
        programs: Programs,
        loader: Vec<u8>,
    ) -> Result<Self, MachineError> {
        let folder = folder.to_owned();
        let plain = PathBuf::new();
        let guest_config = GuestConfig::PLAIN;
        let fingerprint = Vec::new();
        let none = Self {
            folder,
            programs,
            loader,
            guest_config,
            files: None,
            plain,
            fingerprint,
        };
        none.with_guest_config(&GuestConfig::PLAIN, None)
    }

    /// Returns the initrds of another guest config with, if given, an archive of files.
    pub(crate) fn with_guest_config(
        &self,
        guest_config: &GuestConfig,
        files: Option<&Path>,
    ) -> Result<Self, MachineError> {
        let own = initrd(&self.programs);
        let mut fingerprint = vec![
            ("initrd.sha256".to_owned(), hash(&[&own])),
            ("memory_mib".to_owned(), guest_config.memory_mib.to_string()),
        ];
        let mut archive = read_files(files)?;
        if let Some(module) = &guest_config.own_module {
            fingerprint.push(("equipment.loader.sha256".to_owned(), hash(&[&self.loader])));
            fingerprint.push(("equipment.own_module".to_owned(), module.to_string()));
        }
        if !guest_config.modules.is_empty() {
            let modules = guest_config
                .modules
                .iter()
                .map(describe_module)
                .collect::<Vec<_>>()
                .join(", ");
            fingerprint.push(("equipment.loader.sha256".to_owned(), hash(&[&self.loader])));
            fingerprint.push(("equipment.modules".to_owned(), modules));
        }
        if files.is_some() {
            let name = match &guest_config.files {
                ExtraFiles::None => "",
                ExtraFiles::Image(name) => name,
            };
            fingerprint.push(("equipment.files.sha256".to_owned(), hash(&[&archive])));
            fingerprint.push(("equipment.files.of".to_owned(), name.to_owned()));
        }
        archive.extend(own);
        let guest_config = guest_config.clone();
        let files = files.map(Path::to_owned);
        Ok(Self {
            plain: self.keep(&archive)?,
            guest_config,
            files,
            fingerprint,
            ..self.clone()
        })
    }

    /// Returns the guest config.
    pub(crate) fn guest_config(&self) -> &GuestConfig {
        &self.guest_config
    }

    /// Returns what results depend on, for the machine's identity.
    pub(crate) fn fingerprint(&self) -> Vec<(String, String)> {
        self.fingerprint.clone()
    }

    /// Returns the initrd of a guest.
    pub(crate) fn path_for(&self, guest: &Guest<'_>) -> Result<PathBuf, MachineError> {
        if !self.guest_config.has_modules() {
            return Ok(self.plain.clone());
        }
        let mut archive = read_files(self.files.as_deref())?;
        archive.extend(initrd_with_modules(
            &self.programs,
            &self.loader,
            guest.modules,
        ));
        self.keep(&archive)
    }

    /// Writes an initrd under its content's hash.
    fn keep(&self, archive: &[u8]) -> Result<PathBuf, MachineError> {
        let path = self.folder.join(format!("initrd-{}", hash(&[archive])));
        if !path.exists() {
            let scratch = Scratch::new(&self.folder)?;
            scratch.write("initrd", archive)?;
            fs::rename(scratch.path("initrd"), &path).map_err(MachineError::io("keep", &path))?;
        }
        Ok(path)
    }
}

/// Reads an archive of files, if there is one.
fn read_files(path: Option<&Path>) -> Result<Vec<u8>, MachineError> {
    path.map_or(Ok(Vec::new()), |path| {
        fs::read(path).map_err(MachineError::io("read", path))
    })
}

fn describe_module(module: &GuestModule) -> String {
    let maybe = if module.need == Need::May { "?" } else { "" };
    format!("{}{maybe} {}", module.name, module.parameters)
        .trim_end()
        .to_owned()
}
