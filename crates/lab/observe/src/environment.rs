//! Variables of a process that change its speed. An environment has passwords, too: only the values
//! of known variables are kept, and of those only what is no secret by its name.

use std::collections::BTreeMap;
use std::fs;

/// Variables whose values are numbers, names or paths of libraries.
const KNOWN: [&str; 38] = [
    "GODEBUG",
    "GOGC",
    "GOMAXPROCS",
    "GOMEMLIMIT",
    "GLIBC_TUNABLES",
    "G_DEBUG",
    "G_SLICE",
    "ASAN_OPTIONS",
    "TSAN_OPTIONS",
    "UBSAN_OPTIONS",
    "LD_AUDIT",
    "LD_BIND_NOW",
    "LD_DEBUG",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "MALLOC_ARENA_TEST",
    "MALLOC_CHECK_",
    "MALLOC_CONF",
    "MALLOC_MMAP_MAX_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_PERTURB_",
    "MALLOC_TOP_PAD_",
    "MALLOC_TRIM_THRESHOLD_",
    "OMP_DYNAMIC",
    "OMP_NESTED",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_SCHEDULE",
    "OMP_STACKSIZE",
    "OMP_THREAD_LIMIT",
    "OMP_WAIT_POLICY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "PYTHONMALLOC",
    "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
    "TCMALLOC_RELEASE_RATE",
    "TCMALLOC_SAMPLE_PARAMETER",
];
/// Beginnings of further ones: only their names are kept.
const NAMED: [&str; 5] = ["LD_", "MALLOC_", "OMP_", "KMP_", "TCMALLOC_"];
/// Options of the Java virtual machine, and how those for its own speed begin.
const JAVA: &str = "JAVA_TOOL_OPTIONS";
const JAVA_SPEED: &str = "-X";
/// What stands for a value that is not kept.
const HIDDEN: &str = "(hidden)";
/// Parts of the names of secrets.
const SECRETS: [&str; 6] = ["pass", "pwd", "secret", "token", "apikey", "credential"];
/// Variables with paths of libraries, whose names may look like those of secrets.
const PATHS: [&str; 2] = ["LD_AUDIT", "LD_PRELOAD"];

/// Returns the variables of a process that change its speed, with what may be shown of their
/// values.
pub(crate) fn environment(process: u32) -> BTreeMap<String, String> {
    parse(&fs::read(format!("/proc/{process}/environ")).unwrap_or_default())
}

fn parse(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    pairs
        .filter_map(|(name, value)| Some((name.to_owned(), shown(name, value)?)))
        .collect()
}

/// Returns what is kept of a value; `None` for a variable that does not change speed.
fn shown(name: &str, value: &str) -> Option<String> {
    if name == JAVA {
        return Some(
            value
                .split_whitespace()
                .map(java_option)
                .collect::<Vec<_>>()
                .join(" "),
        );
    }
    if KNOWN.contains(&name) {
        return Some(if has_secret(value) && !PATHS.contains(&name) {
            HIDDEN.to_owned()
        } else {
            value.to_owned()
        });
    }
    NAMED
        .iter()
        .any(|wanted| name.starts_with(wanted))
        .then(|| HIDDEN.to_owned())
}

/// Returns an option of the virtual machine: its own as it is, of a property only the name, of
/// anything else nothing.
fn java_option(word: &str) -> String {
    let is_speed = word.starts_with(JAVA_SPEED);
    match word.split_once('=') {
        _ if is_speed && !has_secret(word) => word.to_owned(),
        Some((name, _)) if name.starts_with('-') => format!("{name}={HIDDEN}"),
        _ => HIDDEN.to_owned(),
    }
}

/// Whether a text names a secret, or has an address with a password.
fn has_secret(text: &str) -> bool {
    let lower = text.to_lowercase();
    SECRETS.iter().any(|secret| lower.contains(secret)) || text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(pair: &str) -> Option<String> {
        parse(format!("A=b\0{pair}\0").as_bytes())
            .into_values()
            .next()
    }

    #[test]
    fn secrets_of_environment_are_not_kept() {
        let secret = "hunter2";
        for pair in [
            "PGPASSWORD=hunter2",
            "MALLOC_PASSWORD=hunter2",
            "G_DEBUG_TOKEN=hunter2",
            "JAVA_TOOL_OPTIONS=-Dpassword=hunter2 -Djavax.net.ssl.keyStorePassword=hunter2 -Dx='a hunter2'",
            "JAVA_TOOL_OPTIONS=-javaagent:/a.jar=hunter2 -Xlog:token=hunter2 @hunter2",
            "GLIBC_TUNABLES=password=hunter2",
            "MALLOC_CONF=stats_url:https://a:hunter2@b",
        ] {
            assert!(
                recorded(pair).is_none_or(|value| !value.contains(secret)),
                "{pair}"
            );
        }
    }

    #[test]
    fn values_of_tuning_variables_are_kept() {
        for value in ["libc_malloc_debug.so.0", "/usr/lib/a.so:/opt/bypass/b.so"] {
            assert_eq!(
                recorded(&format!("LD_PRELOAD={value}")).as_deref(),
                Some(value)
            );
        }
        assert_eq!(recorded("MALLOC_TRIM_THRESHOLD_=0").as_deref(), Some("0"));
        let java = recorded("JAVA_TOOL_OPTIONS=-Xmx4g -XX:+UseSerialGC -Dname=value");
        assert_eq!(
            java.as_deref(),
            Some("-Xmx4g -XX:+UseSerialGC -Dname=(hidden)")
        );
        assert_eq!(recorded("OMP_NEW=1").as_deref(), Some("(hidden)"));
        assert_eq!(recorded("HOME=/root"), None);
    }
}
