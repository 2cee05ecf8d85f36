//! Synthetic kernels in a store, for tests without QEMU: their machine, builds, results and runs.

use model::{
    Build, BuildFile, BuildId, Machine, MachineId, Origin, Outcome, Run, RunId, UnixTime,
    WorkloadResult,
};
use store::Store;

/// The start of the first run, in seconds since 1970-01-01 UTC.
pub(crate) const STARTED_UNIX: i64 = 1_795_000_000;

/// Returns the only machine, which is exact.
pub(crate) fn machine() -> Machine {
    Machine {
        id: MachineId::from_hex("aa00aa00aa00aa00").unwrap(),
        kind: "exact".parse().unwrap(),
        summary: "QEMU 7.2, 1 CPU".into(),
        fingerprint: Vec::new(),
    }
}

/// Returns the id of the build with this number.
fn build_id(number: u64) -> BuildId {
    BuildId::from_hex(&format!("{number:016x}")).unwrap()
}

/// Saves the Debian kernel with this number.
pub(crate) fn save_build(store: &Store, number: u64, version: &str) {
    let build = Build {
        id: build_id(number),
        name: "deb:6.12".parse().unwrap(),
        version: version.into(),
        origin: Origin::Package {
            name: format!("linux-image-{version}-cloud-amd64"),
            version: format!("{version}-1"),
        },
        image: BuildFile {
            path: "/cache/vmlinuz".into(),
            sha256: "00".into(),
        },
        vmlinux: None,
        config: None,
        symbols: None,
        modules: None,
    };
    store.save_build(&build).unwrap();
}

/// Returns a completed result of 1000 operations, without counts.
pub(crate) fn completed(workload: &str, samples: Vec<f64>) -> WorkloadResult {
    WorkloadResult {
        workload: workload.into(),
        operations: 1000,
        declared: None,
        outcome: Outcome::Completed,
        samples,
        counted: Vec::new(),
    }
}

/// Returns a run of the build with this number.
pub(crate) fn run(id: &str, build: u64, seed: u64, results: Vec<WorkloadResult>) -> Run {
    Run {
        id: RunId::from_hex(id).unwrap(),
        build: build_id(build),
        machine: machine().id,
        suite: "micro".into(),
        seed,
        started_unix: UnixTime::new(STARTED_UNIX),
        environment: Vec::new(),
        results,
    }
}
