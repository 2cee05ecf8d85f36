//! Makes QEMU write the memory of a paused guest, with its processors' registers.
//!
//! QEMU does not filter the memory, and adds VMCOREINFO only if the guest's kernel provided it
//! (device `vmcoreinfo`, driver qemu_fw_cfg). The reader has to filter.

use std::time::Duration;

use serde_json::json;

use super::Process;
use crate::MachineError;

/// The format of a vmcore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VmcoreFormat {
    /// ELF, with program headers behind section headers.
    Elf,
    /// kdump-compressed with zlib, flattened: the variant that all QEMU versions can write.
    KdumpZlib,
}

impl VmcoreFormat {
    fn name(self) -> &'static str {
        match self {
            Self::Elf => "elf",
            Self::KdumpZlib => "kdump-zlib",
        }
    }
}

/// Deadline per MiB of memory: many times what QEMU needs with a processor of its own.
const PATIENCE_PER_MIB: Duration = Duration::from_millis(200);
const PATIENCE_LEAST: Duration = Duration::from_secs(60);

impl Process {
    /// Writes the memory of a paused guest to a file in QEMU's directory.
    ///
    /// # Errors
    /// If QEMU refuses, or has died.
    pub fn write_memory(
        &mut self,
        format: VmcoreFormat,
        file: &str,
        memory_mib: u32,
    ) -> Result<(), MachineError> {
        // Not paging: physical addresses. Not detached, although it takes long: QEMU reports a
        // detached dump as completed before its cleanup (dump_process in dump/dump.c), and
        // the next dump fails on the rest.
        let arguments =
            json!({ "paging": false, "protocol": format!("file:{file}"), "format": format.name() });
        self.command_within(
            PATIENCE_LEAST + PATIENCE_PER_MIB * memory_mib,
            "dump-guest-memory",
            arguments,
        )
        .map(drop)
    }
}
