//! What is sent to a server: the image, and the modules that it needs of those the build has.

use std::fs;

use machine::{Guest, InitrdFile, MachineError, archive_of};
use model::Build;

/// Lists that depmod(8) reads beside the modules.
const LISTS: [&str; 3] = [
    "modules.order",
    "modules.builtin",
    "modules.builtin.modinfo",
];

/// Returns the archive of a guest: `vmlinuz`, and `modules/` as below /lib/modules/RELEASE.
pub(super) fn pack(guest: &Guest<'_>) -> Result<Vec<u8>, MachineError> {
    // kexec and boot loaders start the image as it was built; the unpacked one has no setup code.
    let image = &guest.build.image.path;
    let mut files = vec![InitrdFile {
        path: "vmlinuz".into(),
        bytes: read_file(image)?,
    }];
    if let Some(folder) = &guest.build.modules {
        for list in LISTS
            .iter()
            .map(|name| folder.join(name))
            .filter(|list| list.is_file())
        {
            let name = list
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            files.push(InitrdFile {
                path: format!("modules/{name}"),
                bytes: read_file(&list)?,
            });
        }
        let modules = guest
            .modules
            .iter()
            .filter(|file| file.path.ends_with(".ko"));
        files.extend(modules.map(|file| {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            InitrdFile {
                path: format!("modules/kernel/{name}"),
                bytes: file.bytes.clone(),
            }
        }));
    }
    Ok(archive_of(&files))
}

fn read_file(path: &std::path::Path) -> Result<Vec<u8>, MachineError> {
    fs::read(path).map_err(MachineError::io("read", path))
}

/// Returns a build's release, which names its module directory; empty if it has none.
pub(super) fn release(build: &Build) -> &str {
    let name = build
        .modules
        .as_deref()
        .and_then(std::path::Path::file_name);
    name.and_then(std::ffi::OsStr::to_str).unwrap_or_default()
}
