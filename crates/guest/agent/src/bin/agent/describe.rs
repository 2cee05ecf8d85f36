//! `marvin-agent describe`: what the machine and its boot are, a name and a value per line. Names
//! that begin with `host.` belong to the machine and stay the same whichever kernel it runs; those
//! with `boot.` belong to the boot.
//!
//! What cannot be read, as some of it without privileges, is left out.

use std::fs;

use crate::knobs::Tree;

const DMI: &str = "/sys/class/dmi/id";
const DIMMS: &str = "/sys/firmware/dmi/entries";
const MEMORY_MAP: &str = "/sys/firmware/memmap";
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
const MIB: u64 = 1 << 20;
/// Type of the notes that hold a build id, and who wrote them (include/uapi/linux/elf.h).
const NT_GNU_BUILD_ID: u32 = 3;

/// Names and the files whose first line is their value.
const LINES: [(&str, &str); 11] = [
    ("host.vendor", "/sys/class/dmi/id/sys_vendor"),
    ("host.product", "/sys/class/dmi/id/product_name"),
    ("host.board", "/sys/class/dmi/id/board_name"),
    ("boot.id", "/proc/sys/kernel/random/boot_id"),
    ("boot.release", "/proc/sys/kernel/osrelease"),
    ("boot.version", "/proc/sys/kernel/version"),
    ("boot.command_line", "/proc/cmdline"),
    (
        "boot.clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    (
        "boot.idle_driver",
        "/sys/devices/system/cpu/cpuidle/current_driver",
    ),
    (
        "boot.frequency_driver",
        "/sys/devices/system/cpu/cpufreq/policy0/scaling_driver",
    ),
    (
        "boot.transparent_hugepage",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ),
];

/// Returns names and values, sorted by name.
pub(crate) fn describe(tree: &Tree) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        pairs.extend(value.map(|value| (name.to_owned(), value)));
    };
    for (name, path) in LINES {
        add(name, tree.line(path));
    }
    let bios = ["bios_vendor", "bios_version", "bios_date"]
        .map(|name| tree.line(&format!("{DMI}/{name}")));
    add(
        "host.bios",
        Some(bios.into_iter().flatten().collect::<Vec<_>>().join(" "))
            .filter(|bios| !bios.is_empty()),
    );
    let processors = text(tree, "/proc/cpuinfo");
    add("host.processor", field(&processors, "model name"));
    add("host.microcode", field(&processors, "microcode"));
    let count = processors.lines().filter(|line| {
        line.split(':')
            .next()
            .is_some_and(|name| name.trim() == "processor")
    });
    add(
        "host.processors",
        Some(count.count())
            .filter(|&count| count > 0)
            .map(|count| count.to_string()),
    );
    add(
        "host.memory",
        memory_mib(tree).map(|mib| format!("{mib} MiB")),
    );
    add("host.dimms", dimms(tree));
    add(
        "boot.build_id",
        build_id(&fs::read(tree.place("/sys/kernel/notes")).unwrap_or_default()),
    );
    let nodes = tree.names("/sys/devices/system/node", "node").len();
    add(
        "boot.numa_nodes",
        Some(nodes)
            .filter(|&nodes| nodes > 0)
            .map(|nodes| nodes.to_string()),
    );
    for name in tree.names(VULNERABILITIES, "") {
        add(
            &format!("boot.mitigation.{name}"),
            tree.line(&format!("{VULNERABILITIES}/{name}")),
        );
    }
    pairs.sort();
    pairs
}

fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8_lossy(&fs::read(tree.place(path)).unwrap_or_default()).into_owned()
}

/// Returns the first value of a name in lines of `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs
        .find(|(known, _)| known.trim() == name)
        .map(|(_, value)| value.trim().to_owned())
}

/// Returns the memory that the firmware gave the kernel, as that does not depend on the kernel;
/// without privileges, what the kernel uses of it.
fn memory_mib(tree: &Tree) -> Option<u64> {
    let number =
        |path: String| u64::from_str_radix(tree.line(&path)?.trim_start_matches("0x"), 16).ok();
    let ranges = tree.names(MEMORY_MAP, "");
    let bytes = ranges.iter().filter_map(|range| {
        let range = format!("{MEMORY_MAP}/{range}");
        let kind = tree.line(&format!("{range}/type"))?;
        let is_memory = kind == "System RAM";
        is_memory.then(|| {
            Some(
                number(format!("{range}/end"))?.checked_sub(number(format!("{range}/start"))?)? + 1,
            )
        })?
    });
    let firmware = bytes.fold(0, u64::saturating_add) / MIB;
    let kernel = || {
        field(&text(tree, "/proc/meminfo"), "MemTotal")?
            .split(' ')
            .next()?
            .parse::<u64>()
            .ok()
    };
    if firmware > 0 {
        Some(firmware)
    } else {
        kernel().map(|kib| kib / 1024)
    }
}

/// Returns how many memory modules of each size and speed there are, from DMI's memory devices
/// (type 17).
fn dimms(tree: &Tree) -> Option<String> {
    let mut groups: Vec<(String, usize)> = Vec::new();
    for name in tree.names(DIMMS, "17-") {
        let Ok(raw) = fs::read(tree.place(&format!("{DIMMS}/{name}/raw"))) else {
            continue;
        };
        let Some(module) = dimm(&raw) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == module) {
            Some((_, count)) => *count += 1,
            None => groups.push((module, 1)),
        }
    }
    groups.sort();
    let groups: Vec<String> = groups
        .into_iter()
        .map(|(module, count)| format!("{count} x {module}"))
        .collect();
    Some(groups.join(", ")).filter(|text| !text.is_empty())
}

/// Reads a memory device (DMTF DSP0134, 7.18): its size, and its speed in transfers per
/// microsecond.
fn dimm(raw: &[u8]) -> Option<String> {
    // The strings begin after the structure's own length.
    let raw = raw.get(..usize::from(*raw.get(1)?))?;
    let word = |at: usize| Some(u16::from_le_bytes([*raw.get(at)?, *raw.get(at + 1)?]));
    let mib = match word(0x0c)? {
        // An empty slot; an unknown size.
        0 | 0xffff => return None,
        0x7fff => (u64::from(word(0x1e)?) << 16 | u64::from(word(0x1c)?)) & 0x7fff_ffff,
        kib if kib & 0x8000 != 0 => u64::from(kib & 0x7fff) / 1024,
        mib => u64::from(mib),
    };
    let speed = word(0x20)
        .or_else(|| word(0x15))
        .filter(|speed| ![0, 0xffff].contains(speed));
    Some(speed.map_or_else(
        || format!("{mib} MiB"),
        |speed| format!("{mib} MiB {speed} MT/s"),
    ))
}

/// Finds the build id in ELF notes.
fn build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let word = |at: usize| Some(u32::from_le_bytes(notes.get(at..at + 4)?.try_into().ok()?));
        let (name, size) = (word(0)? as usize, word(4)? as usize);
        let start = 12_usize.checked_add(name.checked_next_multiple_of(4)?)?;
        let content = notes.get(start..start.checked_add(size)?)?;
        if word(8)? == NT_GNU_BUILD_ID && notes.get(12..12 + name)? == b"GNU\0" {
            return Some(content.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        notes = notes.get(start.checked_add(size.checked_next_multiple_of(4)?)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::{build_id, describe, dimm};
    use crate::knobs::Tree;
    use crate::knobs::tests::MakeBelieve;

    fn module(size: u16, speed: u16) -> Vec<u8> {
        let mut raw = vec![0; 0x28];
        (raw[0], raw[1]) = (17, 0x28);
        raw[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        raw[0x1c..0x20].copy_from_slice(&65536_u32.to_le_bytes());
        raw[0x20..0x22].copy_from_slice(&speed.to_le_bytes());
        raw.extend(b"DIMM 0\0\0");
        raw
    }

    #[test]
    fn memory_modules_are_read() {
        assert_eq!(
            dimm(&module(16384, 3200)).as_deref(),
            Some("16384 MiB 3200 MT/s")
        );
        assert_eq!(dimm(&module(0x7fff, 0)).as_deref(), Some("65536 MiB"));
        assert_eq!(dimm(&module(0x8000 | 2048, 0)).as_deref(), Some("2 MiB"));
        assert_eq!(dimm(&module(0, 3200)), None, "an empty slot");
        for end in 0..0x28 {
            assert_eq!(dimm(&module(16384, 3200)[..end]), None);
        }
    }

    #[test]
    fn build_ids_are_found_among_notes() {
        let note = |kind: u32, name: &[u8], content: &[u8]| {
            let mut bytes: Vec<u8> = [name.len() as u32, content.len() as u32, kind]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect();
            for part in [name, content] {
                bytes.extend(part);
                bytes.resize(bytes.len().next_multiple_of(4), 0);
            }
            bytes
        };
        let notes = [
            note(6, b"Xen\0", b"12345"),
            note(3, b"Xen\0", b"1"),
            note(3, b"GNU\0", &[0xab, 0xcd]),
        ]
        .concat();
        assert_eq!(build_id(&notes).as_deref(), Some("abcd"));
        for end in 0..notes.len() - 4 {
            assert_eq!(build_id(&notes[..end]), None);
        }
        assert_eq!(build_id(&[0xff; 32]), None);
    }

    #[test]
    fn machine_and_boot_are_described() {
        let tree = MakeBelieve::new(&[
            ("/sys/class/dmi/id/sys_vendor", "Acme"),
            ("/sys/class/dmi/id/bios_version", "1.2"),
            ("/sys/class/dmi/id/bios_date", "01/02/2026"),
            (
                "/proc/cpuinfo",
                "processor\t: 0\nmodel name\t: Fast\nmicrocode\t: 0x7\n\nprocessor\t: 1\n",
            ),
            ("/proc/meminfo", "MemTotal:       16000000 kB\n"),
            ("/sys/firmware/memmap/0/start", "0x0"),
            ("/sys/firmware/memmap/0/end", "0x3fffffff"),
            ("/sys/firmware/memmap/0/type", "System RAM"),
            ("/sys/firmware/memmap/1/start", "0xf0000000"),
            ("/sys/firmware/memmap/1/end", "0xffffffff"),
            ("/sys/firmware/memmap/1/type", "Reserved"),
            (
                "/sys/devices/system/cpu/vulnerabilities/meltdown",
                "Mitigation: PTI",
            ),
            ("/sys/devices/system/node/node0/cpulist", "0-1"),
            ("/proc/cmdline", "quiet mitigations=off"),
        ]);
        let lines: Vec<String> = describe(&tree.tree())
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let expected = [
            "boot.command_line=quiet mitigations=off",
            "boot.mitigation.meltdown=Mitigation: PTI",
            "boot.numa_nodes=1",
            "host.bios=1.2 01/02/2026",
            "host.memory=1024 MiB",
            "host.microcode=0x7",
            "host.processor=Fast",
            "host.processors=2",
            "host.vendor=Acme",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn this_machine_has_a_boot_id() {
        let pairs = describe(&Tree::below(std::path::Path::new("/")));
        assert!(
            pairs
                .iter()
                .any(|(name, value)| name == "boot.id" && value.len() == 36),
            "{pairs:?}"
        );
        assert!(
            pairs
                .iter()
                .all(|(_, value)| !value.is_empty() && !value.contains('\n')),
            "{pairs:?}"
        );
    }
}
