//! How to open a lab.

use std::path::PathBuf;
use std::sync::Arc;

use kernel::SourceSettings;
use machine::{Backend, Limits, Programs, SnapshotUse};
use model::{ArchiveSettings, ExactCpu};
use store::Location;

use crate::open_machine::Wanted;
use crate::tools::Tools;
use crate::turn::Patience;
use crate::{AGENT, INIT};

/// How to open a lab; not marvin.toml, which is [`model::MarvinConfig`]. By default an exact machine
/// with cached snapshots.
#[derive(Debug, Clone)]
pub struct LabOptions {
    /// Location of the store; default: in the data directory.
    pub store: Option<Location>,
    /// The machine; default: opened with the settings below.
    pub machine: Option<Arc<dyn Backend>>,
    /// The kind of machine to open.
    pub wanted: Wanted,
    /// The QEMU program; default: the one in PATH.
    pub qemu: Option<PathBuf>,
    /// The CPU of exact machines.
    pub cpu: ExactCpu,
    /// The guest's programs; default: [`INIT`] and [`AGENT`].
    pub programs: Programs,
    /// Whether to use snapshots.
    pub snapshots: SnapshotUse,
    /// Limits of each machine.
    pub limits: Limits,
    /// External tools; default: [`Tools::default`].
    pub tools: Tools,
    /// How to build sources.
    pub sources: SourceSettings,
    /// Where packages and sources of kernels come from.
    pub archives: ArchiveSettings,
    /// How long to wait for another process that measures in the data directory.
    pub patience: Patience,
}

impl Default for LabOptions {
    fn default() -> Self {
        Self {
            store: None,
            machine: None,
            wanted: Wanted::Exact,
            qemu: None,
            cpu: ExactCpu::default(),
            programs: Programs {
                init: INIT.to_vec(),
                agent: AGENT.to_vec(),
            },
            snapshots: SnapshotUse::Cached,
            limits: Limits::default(),
            tools: Tools::default(),
            sources: SourceSettings::default(),
            archives: ArchiveSettings::default(),
            patience: Patience::default(),
        }
    }
}
