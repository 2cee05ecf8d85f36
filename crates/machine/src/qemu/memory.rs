//! Having QEMU write down the memory of a guest that stands still, with its processors' registers.
//!
//! What QEMU writes is not filtered, and holds VMCOREINFO only where the guest's kernel handed it over (device
//! `vmcoreinfo`, driver qemu_fw_cfg). Filtering is the work of whoever reads it.

use std::time::Duration;

use serde_json::json;

use super::Process;
use crate::MachineError;

/// How a vmcore is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmcoreFormat {
    /// ELF, with program headers behind section headers.
    Elf,
    /// kdump-compressed with zlib; flattened, as the QEMUs of which some write nothing else have it in common.
    KdumpZlib,
}

impl VmcoreFormat {
    fn word(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::KdumpZlib => "kdump-zlib",
        }
    }
}

/// How long QEMU may take for each MiB: many times what it needs where it has a processor for itself.
const PATIENCE_PER_MIB: Duration = Duration::from_millis(200);
const PATIENCE_LEAST: Duration = Duration::from_secs(60);

impl Process {
    /// Writes the memory of a guest that stands still to a file of QEMU's folder.
    ///
    /// # Errors
    /// When QEMU refuses, or has died.
    pub fn write_memory(&mut self, format: VmcoreFormat, file: &str, memory_mib: u32) -> Result<(), MachineError> {
        // Not paging: the addresses are the machine's. Not detached, although it takes long: such a dump is called completed
        // before QEMU has cleaned up behind it (dump_process in dump/dump.c), and the next one meets what is left.
        let arguments = json!({ "paging": false, "protocol": format!("file:{file}"), "format": format.word() });
        self.command_within(PATIENCE_LEAST + PATIENCE_PER_MIB * memory_mib, "dump-guest-memory", arguments).map(drop)
    }
}
