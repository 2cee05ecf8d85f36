//! How QEMU executes guests on this host: by KVM if a tiny guest really runs with it, else by TCG.
//! `/dev/kvm` alone proves nothing: in nested guests it may be there and fail, or be slower than
//! TCG.

use std::fmt;
use std::path::Path;

use subprocess::{Program, Walls};

use crate::MachineError;
use crate::qemu::{Qemu, Scratch};

/// How guests are executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accelerator {
    /// By the host's processor.
    Kvm,
    /// By translation, a thread for each processor.
    Tcg,
}

/// Size of the tiny guest's ROM, which ends where the processor starts: 16 bytes below 4 GiB.
const ROM: usize = 64 << 10;
/// `mov al, 0x10; out 0xf4, al; hlt`.
const CODE: [u8; 5] = [0xb0, 0x10, 0xe6, 0xf4, 0xf4];
/// The exit status for it (hw/misc/debugexit.c of QEMU).
const EXIT: i32 = 0x10 << 1 | 1;

impl Accelerator {
    /// Finds out with which the tiny guest ends.
    pub(crate) fn find(qemu: &Qemu, folder: &Path) -> Result<Self, MachineError> {
        Ok(if Self::Kvm.works(qemu, folder)? {
            Self::Kvm
        } else {
            Self::Tcg
        })
    }

    fn works(self, qemu: &Qemu, folder: &Path) -> Result<bool, MachineError> {
        let scratch = Scratch::new(folder)?;
        let mut rom = vec![0xf4; ROM];
        rom[ROM - 16..][..CODE.len()].copy_from_slice(&CODE);
        scratch.write("rom", &rom)?;
        let options = "-nodefaults -no-user-config -display none -no-reboot -M pc -m 16 -bios rom \
                     -device isa-debug-exit,iobase=0xf4,iosize=1";
        let arguments = options
            .split(' ')
            .map(str::to_owned)
            .chain(self.arguments().split(' ').map(str::to_owned));
        let folders = qemu
            .folders()
            .into_iter()
            .fold(Walls::default(), |walls, path| walls.readable(&path));
        let command = qemu.command();
        let Some((program, first)) = command.split_first() else {
            return Ok(false);
        };
        let program = Program::new(program)
            .args(first)
            .args(arguments)
            .without_variables();
        let ended = program
            .walls(folders.writable(scratch.folder()))
            .folder(scratch.folder())
            .deadline_s(20)
            .run();
        Ok(ended.is_ok_and(|ended| ended.code == Some(EXIT)))
    }

    /// Returns QEMU's arguments for it.
    pub(crate) const fn arguments(self) -> &'static str {
        match self {
            Self::Kvm => "-accel kvm -cpu host",
            Self::Tcg => "-accel tcg,thread=multi -cpu max",
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Accelerator;
    use crate::qemu::Qemu;

    #[test]
    fn tiny_guest_ends_by_itself() {
        let qemu = Qemu::find(None, std::path::Path::new("/nonexistent")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        assert!(Accelerator::Tcg.works(&qemu, folder.path()).unwrap());
        // Either is a fact of the host; a probe that fails must not hang or fail the lab.
        Accelerator::Kvm.works(&qemu, folder.path()).unwrap();
    }
}
