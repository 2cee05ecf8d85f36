//! Parses the guest's raw files about itself into named values.
//!
//! A file that a kernel lacks gives no value, so that the comparison shows its absence as a
//! difference.

use std::collections::BTreeMap;

use model::Environment;
use wire::{Frame, Stream};

const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities/";
const SYSCTLS: &str = "/proc/sys/";
/// What the machine adds about itself and what was set on it: a name and a value per line.
const MACHINE: &str = "marvin/machine";
/// Longest value, in characters: a CPU of today has a hundred flags.
const VALUE_MAX: usize = 2000;

/// The words of the kernel's command line that it did not know: what it gave its first process.
pub const UNKNOWN_PARAMETERS: &str = "unknown boot parameters";

/// Returns the environment in the stream of an environment job, in a fixed order.
#[must_use]
pub fn environment(stream: &Stream) -> Environment {
    let mut files: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
    for frame in &stream.frames {
        if let Frame::File { name, bytes } = frame {
            files.entry(name).or_default().extend(bytes);
        }
    }
    let text = |name: &str| {
        files
            .get(name)
            .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
    };
    let mut values = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            values.push((
                name.to_owned(),
                value
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(VALUE_MAX)
                    .collect(),
            ));
        }
    };
    let version = text("/proc/version");
    add(
        "kernel release",
        version
            .as_ref()
            .and_then(|line| line.split_whitespace().nth(2).map(str::to_owned)),
    );
    add("kernel version", version);
    let unknown = unknown_parameters(
        &text("/proc/cmdline").unwrap_or_default(),
        ["/proc/1/cmdline", "/proc/1/environ"].map(|name| text(name).unwrap_or_default()),
    );
    add("command line", text("/proc/cmdline"));
    add(UNKNOWN_PARAMETERS, unknown);
    add(
        "CPU model",
        text("/proc/cpuinfo").and_then(|cpus| field(&cpus, "model name")),
    );
    let cpus = text("/proc/cpuinfo").unwrap_or_default();
    let numbers = ["cpu family", "model", "stepping"].map(|name| field(&cpus, name));
    if let [Some(family), Some(model), Some(stepping)] = numbers {
        let numbers = format!("{family}, model {model}, stepping {stepping}");
        add("CPU family", Some(numbers));
    }
    let flags = field(&cpus, "flags");
    add("CPU string loops", flags.as_deref().map(string_loops));
    add("CPU bugs", field(&cpus, "bugs"));
    add("CPU flags", flags);
    // Of one processor there is nothing to say: the exact machine has no more.
    let processors = text("/proc/cpuinfo").map(|cpus| {
        cpus.lines()
            .filter(|line| line.starts_with("processor"))
            .count()
    });
    add(
        "processors",
        processors
            .filter(|count| *count > 1)
            .map(|count| count.to_string()),
    );
    add(
        "memory",
        text("/proc/meminfo").and_then(|memory| field(&memory, "MemTotal")),
    );
    add(
        "clocksource",
        text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    );
    add(
        "transparent huge pages",
        text("/sys/kernel/mm/transparent_hugepage/enabled").map(|s| read_choice(&s)),
    );
    add(
        "huge page defrag",
        text("/sys/kernel/mm/transparent_hugepage/defrag").map(|s| read_choice(&s)),
    );
    add("multi-gen LRU", text("/sys/kernel/mm/lru_gen/enabled"));
    add("security modules", text("/sys/kernel/security/lsm"));
    for name in files.keys() {
        if let Some(weakness) = name.strip_prefix(VULNERABILITIES) {
            add(&format!("mitigation {weakness}"), text(name));
        } else if let Some(path) = name.strip_prefix(SYSCTLS) {
            add(
                &path.replace('/', "."),
                text(name).map(|value| value.replace('\t', " ")),
            );
        }
    }
    for (name, value) in text(MACHINE)
        .iter()
        .flat_map(|lines| lines.lines())
        .filter_map(|line| line.split_once('='))
    {
        add(name, Some(value.to_owned()));
    }
    values
}

/// Returns the words of the command line that the first process got, as an argument or, with a
/// value, in its environment (`unknown_bootoption()` in init/main.c).
fn unknown_parameters(command_line: &str, lists: [String; 2]) -> Option<String> {
    let [arguments, environment] = lists;
    let got: Vec<&str> = arguments
        .split('\0')
        .skip(1)
        .chain(environment.split('\0'))
        .filter(|word| !word.is_empty())
        .collect();
    let unknown: Vec<&str> = command_line
        .split_whitespace()
        .filter(|word| got.contains(word))
        .collect();
    (!unknown.is_empty()).then(|| unknown.join(" "))
}

/// The value of a `name : value` line.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Returns what the flags say of how a kernel copies and clears: its alternatives
/// (arch/x86/lib/clear_page_64.S, memset_64.S and copy_user_64.S).
fn string_loops(flags: &str) -> String {
    let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
    let names = ["rep_good", "erms", "fsrm", "fsrs", "fzrm", "fsrc"];
    let found: Vec<&str> = names.into_iter().filter(|name| has(name)).collect();
    if found.is_empty() {
        "none of rep_good, erms, fsrm, fsrs".to_owned()
    } else {
        found.join(" ")
    }
}

/// The word in brackets of a sysfs choice such as `always [madvise] never`.
fn read_choice(text: &str) -> String {
    let word = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    word.map_or(text, |(word, _)| word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{environment, unknown_parameters};
    use wire::{Frame, Stream};

    fn file(name: &str, text: &str) -> Frame {
        Frame::File {
            name: name.into(),
            bytes: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn unknown_boot_parameters_are_those_of_init() {
        let lists =
            |arguments: &str, environment: &str| [arguments.to_owned(), environment.to_owned()];
        let line = "console=ttyS0 mitigatoins=off quiet nosuch swiotlb=force";
        let got = lists("/init\0nosuch\0", "HOME=/\0TERM=linux\0mitigatoins=off\0");
        assert_eq!(
            unknown_parameters(line, got).as_deref(),
            Some("mitigatoins=off nosuch")
        );
        let other = lists("/sbin/init\0splash\0", "");
        assert_eq!(unknown_parameters(line, other), None, "another system's");
    }

    #[test]
    fn files_become_named_values_in_a_fixed_order() {
        let stream = Stream {
            frames: vec![
                file("/proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n"),
                file(
                    "/sys/kernel/mm/transparent_hugepage/enabled",
                    "always [madvise] never\n",
                ),
                file(
                    "/proc/cpuinfo",
                    "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nstepping\t: 1\nflags\t\t: fpu rep_good\nbugs\t\t: srso\nmodel name\t: QEMU Virtual",
                ),
                file("/proc/cpuinfo", " CPU\n"),
                file(
                    "/proc/version",
                    "Linux version 6.12.117+deb12 (x@y) #1 SMP\n",
                ),
                file(
                    "/sys/devices/system/cpu/vulnerabilities/meltdown",
                    "Not affected\n",
                ),
                file(
                    "marvin/machine",
                    "knob governor=powersave -> performance\nhost.bios=1.2\nno pair\n",
                ),
            ],
        };
        let lines: Vec<String> = environment(&stream)
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        kernel release = 6.12.117+deb12
        kernel version = Linux version 6.12.117+deb12 (x@y) #1 SMP
        CPU model = QEMU Virtual CPU
        CPU family = 25, model 1, stepping 1
        CPU string loops = rep_good
        CPU bugs = srso
        CPU flags = fpu rep_good
        transparent huge pages = madvise
        net.ipv4.tcp_rmem = 4096 131072 6291456
        mitigation meltdown = Not affected
        knob governor = powersave -> performance
        host.bios = 1.2
        ");
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(name: String, bytes: Vec<u8>) {
            let _values = environment(&Stream { frames: vec![Frame::File { name, bytes }] });
        }
    }
}
