//! Kinds of machines: only code that declares or makes machines asks for their kind; other code
//! asks for capabilities.

use crate::source::{code, line_at, occurrences};
use crate::{Finding, Rule};

const KINDS: Rule = Rule {
    name: "only `model`, `machine` and `server` name a kind of machine",
    remedy: "ask for its capabilities; a stored kind is read from its word",
};
/// The crates that may.
const MAKERS: &[&str] = &[
    "crates/base/model/",
    "crates/lab/machine/",
    "crates/lab/server/",
];

/// Finds kinds of machines in code of other crates.
#[must_use]
pub fn machine_kinds(file: &str, text: &str) -> Vec<Finding> {
    if !file.starts_with("crates/") || MAKERS.iter().any(|maker| file.starts_with(maker)) {
        return Vec::new();
    }
    let code = code(text);
    let found = |at| KINDS.at(file, line_at(&code, at), "`MachineKind::…`");
    occurrences(&code, "MachineKind::")
        .into_iter()
        .map(found)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::machine_kinds;

    #[test]
    fn kinds_are_found_above_the_machine() {
        let text = "// MachineKind::Exact\nfn f(kind: MachineKind) -> bool {\n    kind == MachineKind::Exact\n}\n";
        let lines = |file: &str| {
            machine_kinds(file, text)
                .iter()
                .map(|found| found.line)
                .collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/analysis/compare/src/a.rs"), [3]);
        assert!(
            lines("crates/lab/machine/src/a.rs").is_empty() && lines("benches/src/a.rs").is_empty()
        );
    }
}
