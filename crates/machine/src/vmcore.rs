//! Having QEMU write down the memory of a guest that stands still, with its processors' registers.
//!
//! What QEMU writes is not filtered, and holds VMCOREINFO only where the guest's kernel handed it over (device
//! `vmcoreinfo`, driver qemu_fw_cfg). Filtering is the work of whoever reads it.

use std::time::Duration;

use serde_json::json;

use crate::MachineError;
use crate::process::Process;

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

/// How long QEMU may take for each MiB; one of compressing 2 GiB took 16 s of 2 GHz while others wanted to run.
const PATIENCE_PER_MIB: Duration = Duration::from_millis(200);
const PATIENCE_LEAST: Duration = Duration::from_secs(60);

/// Writes the guest's memory to a file of QEMU's folder.
pub(crate) fn write_vmcore(
    process: &mut Process,
    format: VmcoreFormat,
    file: &str,
    memory_mib: u32,
) -> Result<(), MachineError> {
    let command = "dump-guest-memory";
    // Not paging: the addresses are the machine's. Detached: no answer of QEMU's may take as long as this does.
    let protocol = format!("file:{file}");
    process
        .command(command, json!({ "paging": false, "protocol": protocol, "format": format.word(), "detach": true }))?;
    let patience = PATIENCE_LEAST + PATIENCE_PER_MIB * memory_mib;
    match process.until_not_within(patience, "query-dump", &["active"])?.as_str() {
        "completed" => Ok(()),
        status => Err(MachineError::Refused { command: command.into(), answer: status.to_owned() }),
    }
}
