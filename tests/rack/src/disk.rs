//! The disk of a server: one partition with ext4 and GRUB before it, written without root and
//! without devices.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use subprocess::Program;

use crate::RackError;
use crate::image::done;

/// Size of the disk in MiB: full within seconds, and yet with room for several kernels.
const DISK_MIB: u64 = 3072;
/// Where the partition begins, in sectors.
const START: u32 = 2048;
const SECTOR: u64 = 512;
/// Folder of GRUB in the unpacked root.
const GRUB: &str = "boot/grub/i386-pc";

/// Unpacks the root's archive and writes the disk. As another user than root, fakeroot keeps the
/// owners.
pub(crate) fn write(folder: &Path, archive: &str, disk: &str) -> Result<(), RackError> {
    let blocks = DISK_MIB * 1024 - u64::from(START) / 2;
    let offset = u64::from(START) * SECTOR;
    // `dev` stays empty: devtmpfs fills it.
    let script = format!(
        "set -e; mkdir root; tar -x -f {archive} -C root --exclude='./dev/*'; truncate -s {DISK_MIB}M {disk}; \
         PATH=$PATH:/sbin:/usr/sbin; mke2fs -q -t ext4 -L root -E offset={offset},root_owner=0:0 -d root {disk} {blocks}k"
    );
    done(
        &Program::new("fakeroot")
            .args(["sh", "-c", &script])
            .folder(folder),
    )?;
    boot_loader(&folder.join("root").join(GRUB), &folder.join(disk))
}

/// Writes GRUB and the partition table. `grub-mkimage` leaves the defaults of both images: the boot
/// sector loads sector 1, and that the following ones.
fn boot_loader(grub: &Path, disk: &Path) -> Result<(), RackError> {
    let read =
        |name: &str| fs::read(grub.join(name)).map_err(RackError::io("read", &grub.join(name)));
    let boot = read("boot.img")?;
    let core = read("core.img")?;
    let sectors = u32::try_from(DISK_MIB * 1024 * 1024 / SECTOR).unwrap_or(u32::MAX);
    if core.len() as u64 > u64::from(START - 1) * SECTOR {
        let reason = format!("{} bytes do not fit before the partition", core.len());
        return Err(RackError::Failed {
            command: "grub-mkimage".to_owned(),
            reason,
        });
    }
    let file = File::options()
        .write(true)
        .open(disk)
        .map_err(RackError::io("open", disk))?;
    let write = |bytes: &[u8], at| {
        file.write_all_at(bytes, at)
            .map_err(RackError::io("write", disk))
    };
    write(&boot_sector(&boot, START, sectors - START), 0)?;
    write(&core, SECTOR)
}

/// Returns a boot sector with one active Linux partition.
fn boot_sector(code: &[u8], start: u32, length: u32) -> [u8; 512] {
    let mut sector = [0; 512];
    let kept = code.len().min(0x1b8);
    sector[..kept].copy_from_slice(&code[..kept]);
    sector[0x1b8..0x1bc].copy_from_slice(b"rack");
    // Addresses beyond cylinders, heads and sectors.
    let unused = [0xfe, 0xff, 0xff];
    sector[0x1be] = 0x80;
    sector[0x1bf..0x1c2].copy_from_slice(&unused);
    sector[0x1c2] = 0x83;
    sector[0x1c3..0x1c6].copy_from_slice(&unused);
    sector[0x1c6..0x1ca].copy_from_slice(&start.to_le_bytes());
    sector[0x1ca..0x1ce].copy_from_slice(&length.to_le_bytes());
    sector[0x1fe..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

#[cfg(test)]
mod tests {
    use super::boot_sector;

    #[test]
    fn boot_sector_has_one_partition() {
        let sector = boot_sector(&[0xeb; 512], 2048, 4096);
        assert_eq!(
            (sector[0], sector[0x1b7], sector[0x1be], sector[0x1c2]),
            (0xeb, 0xeb, 0x80, 0x83)
        );
        assert_eq!(sector[0x1c6..0x1ce], [0, 8, 0, 0, 0, 16, 0, 0]);
        assert_eq!(
            (
                sector[0x1ce..0x1fe].iter().any(|byte| *byte != 0),
                &sector[0x1fe..]
            ),
            (false, &[0x55, 0xaa][..])
        );
    }
}
