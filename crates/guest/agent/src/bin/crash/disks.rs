//! The guest's disks, found by the serial number that the host gave them: the order in which they
//! appear is nobody's promise.

use std::fs::{self, File, OpenOptions};
use std::io;

/// Opens the disk with a serial number, or tells that there is none.
pub(crate) fn open(serial: &str) -> io::Result<Option<File>> {
    for entry in fs::read_dir("/sys/block")? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        // Only virtio's block devices have this file.
        let found = fs::read_to_string(format!("/sys/block/{name}/serial")).unwrap_or_default();
        if found.trim_end() == serial {
            let device = format!("/dev/{name}");
            return OpenOptions::new()
                .read(true)
                .write(true)
                .open(device)
                .map(Some);
        }
    }
    Ok(None)
}
