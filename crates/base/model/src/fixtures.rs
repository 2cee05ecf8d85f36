//! Synthetic builds and machines, for tests of this crate and, with the feature `fixtures`, of
//! higher ones; no program contains them.
#![expect(clippy::unwrap_used, reason = "only tests call this")]

use crate::{Build, BuildFile, BuildId, Machine, MachineId, Origin};

/// Returns 48 hexadecimal digits that stand for the hash of a text.
pub fn hex(text: &str) -> String {
    // FNV-1a, three times: a stand-in for a hash, without a dependency.
    let rounds = (0..3_u64).map(|round| {
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64 ^ round, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        format!("{hash:016x}")
    });
    rounds.collect()
}

/// Returns a build of a name and a version.
pub fn build(name: &str, version: &str) -> Build {
    let file = |part: &str| BuildFile {
        path: format!("/cache/{part}").into(),
        sha256: hex(&format!("{part}{name}{version}")),
    };
    let origin = match name.strip_prefix("path:") {
        Some(file) => file.to_owned(),
        None => format!("linux-image-{version}+deb12-cloud-amd64 {version}-1~bpo12+1 (bookworm)"),
    };
    Build {
        id: BuildId::from_hex(&hex(&format!("{name}{version}"))).unwrap(),
        name: name.parse().unwrap(),
        version: version.to_owned(),
        origin: Origin::of_line(&origin, &name.parse().unwrap()),
        image: file("bzImage"),
        vmlinux: Some(file("vmlinux")),
        config: Some(file("config")),
        symbols: None,
        modules: None,
    }
}

fn some_machine(summary: &str, fingerprint: &[(&str, &str)]) -> Machine {
    Machine {
        id: MachineId::from_hex(&hex(&format!("{fingerprint:?}"))).unwrap(),
        kind: "exact".parse().unwrap(),
        summary: summary.to_owned(),
        fingerprint: fingerprint
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
    }
}

/// Returns the machine of most tests.
pub fn machine() -> Machine {
    some_machine(
        "QEMU 7.2.22 (Debian 1:7.2+dfsg-7), 1 CPU of model max, 512 MiB, icount shift 0",
        &[
            ("agent", "0badcafe"),
            ("cpu", "max"),
            ("memory", "512 MiB"),
            ("qemu", "7.2.22"),
        ],
    )
}

/// Returns a machine with another id than [`machine`]'s.
pub fn other_machine() -> Machine {
    some_machine(
        "QEMU 9.1.0, 1 CPU of model qemu64, 512 MiB, icount shift 0",
        &[
            ("agent", "0badcafe"),
            ("cpu", "qemu64"),
            ("memory", "512 MiB"),
            ("qemu", "9.1.0"),
        ],
    )
}
