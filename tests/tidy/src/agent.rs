//! The agent's file: it is static, holds no path of the host, and has the declared workloads.

use crate::{Finding, Rule};

const LEAKS: Rule = Rule {
    name: "the agent holds no path of the host it was built on",
    remedy: "have the compiler map it, in crates/lab/lab/build.rs: the same sources must give the same file everywhere",
};
const WORKLOADS: Rule = Rule {
    name: "declarations and programs of the workloads are the same, in the same order",
    remedy: "declare it in crates/base/model/src/suites and write it in crates/guest/agent/src/bin/agent/workloads/, in the same place",
};
const DECLARATIONS: &str = "crates/base/model/src/suites/micro.rs";
const PROGRAMS: &str = "crates/guest/agent/src/bin/agent/workloads/mod.rs";

/// Type of the program header that names a dynamic linker (elf(5)).
const PT_INTERP: u64 = 3;

/// Returns whether a program asks for a dynamic linker.
///
/// # Errors
/// If it is no 64-bit little-endian ELF file, or its headers lie outside it.
pub fn interpreter(program: &[u8]) -> Result<bool, String> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err("no 64-bit little-endian ELF file".into());
    }
    // e_phoff, e_phentsize and e_phnum of elf(5).
    let table = number(program, 32, 8)?;
    let size = number(program, 54, 2)?;
    let count = number(program, 56, 2)?;
    if count == 0 {
        return Err("no program headers".into());
    }
    let kinds = (0..count)
        .map(|n| number(program, table.saturating_add(n * size), 4))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(kinds.contains(&PT_INTERP))
}

fn number(bytes: &[u8], at: u64, size: usize) -> Result<u64, String> {
    let field = usize::try_from(at)
        .ok()
        .and_then(|at| bytes.get(at..at.checked_add(size)?));
    let field = field.ok_or_else(|| format!("cut: nothing at {at}"))?;
    Ok(field
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

/// Finds paths of the host in a program.
#[must_use]
pub fn leaks(program: &[u8], paths: &[String]) -> Vec<Finding> {
    let holds = |path: &str| {
        !path.is_empty()
            && program
                .windows(path.len())
                .any(|window| window == path.as_bytes())
    };
    paths
        .iter()
        .filter(|path| holds(path))
        .map(|path| LEAKS.at("the agent", 1, format!("holds `{path}`")))
        .collect()
}

/// Finds differences between the declared workloads and the agent's.
#[must_use]
pub fn unlike(declared: &[&str], programs: &[&str]) -> Vec<Finding> {
    let lacking = |these: &[&str], those: &[&str], file: &str, verb: &str| -> Vec<Finding> {
        let absent = those.iter().filter(|name| !these.contains(name));
        absent
            .map(|name| WORKLOADS.at(file, 1, format!("`{name}` is not {verb}")))
            .collect()
    };
    let mut found = lacking(declared, programs, DECLARATIONS, "declared");
    found.extend(lacking(programs, declared, PROGRAMS, "written"));
    let differs = declared
        .iter()
        .zip(programs)
        .find(|(one, other)| one != other);
    if let (true, Some((one, other))) = (found.is_empty(), differs) {
        found.push(WORKLOADS.at(
            PROGRAMS,
            1,
            format!("`{other}` stands where `{one}` is declared"),
        ));
    }
    if found.is_empty() && declared.len() != programs.len() {
        found.push(WORKLOADS.at(PROGRAMS, 1, "a name twice"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{interpreter, leaks, unlike};

    /// An ELF file with one program header of a kind.
    fn elf(kind: u8) -> Vec<u8> {
        let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
        bytes.resize(64 + 56, 0);
        (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, kind);
        bytes
    }

    #[test]
    fn a_program_that_needs_a_linker_is_found() {
        assert_eq!(interpreter(&elf(1)), Ok(false));
        assert_eq!(interpreter(&elf(3)), Ok(true));
    }

    #[test]
    fn non_program_is_an_error() {
        assert!(interpreter(b"#!/bin/sh").is_err());
        assert!(interpreter(&elf(3)[..60]).is_err());
        let mut endless = elf(3);
        endless[32..40].fill(0xff);
        assert!(interpreter(&endless).is_err());
        let mut empty = elf(3);
        empty[56] = 0;
        assert!(interpreter(&empty).is_err());
    }

    #[test]
    fn a_path_in_a_program_is_found() {
        let paths = ["/here/src".to_owned(), "/there".to_owned(), String::new()];
        let found = leaks(b"\0\x7f/here/src/main.rs\0", &paths);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "holds `/here/src`");
    }

    #[test]
    fn workloads_that_part_are_found() {
        let what = |declared: &[&str], programs: &[&str]| {
            unlike(declared, programs)
                .into_iter()
                .map(|found| found.what)
                .collect::<Vec<_>>()
        };
        assert!(what(&["a", "b"], &["a", "b"]).is_empty());
        assert_eq!(what(&["a"], &["a", "b"]), ["`b` is not declared"]);
        assert_eq!(what(&["a", "b"], &["b"]), ["`a` is not written"]);
        assert_eq!(
            what(&["a", "b"], &["b", "a"]),
            ["`b` stands where `a` is declared"]
        );
        assert_eq!(what(&["a"], &["a", "a"]), ["a name twice"]);
    }
}
