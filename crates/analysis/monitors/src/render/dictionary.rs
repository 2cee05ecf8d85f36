//! The counter dictionary as markdown: `docs/counters.md`.

use crate::{DICTIONARY, Formula, Term, ZONES};

/// Returns the dictionary.
#[must_use]
pub fn dictionary() -> String {
    let mut lines = vec![
        "# Counters".to_owned(),
        String::new(),
        "What rows of reports are made of, and what can be compared. Generated from `crates/analysis/monitors/src/counter_dictionary/mod.rs`; do not \
         edit."
            .to_owned(),
        String::new(),
        format!(
            "A kernel's keys decide which form is used, the first whose keys are all there; its version does not. `_ZONE` \
             is the sum over those of {} that are there; `[+ key]` counts where it is there.",
            ZONES.map(|zone| format!("`{zone}`")).join(", ")
        ),
        String::new(),
        "Two kernels whose forms have different classes (in brackets), or of which one has a key of the column \"apart\" \
         and the other has not, are not compared; reports say so and show what can be compared instead."
            .to_owned(),
        String::new(),
        "| concept | unit | keys | apart | instead | source |".to_owned(),
        "|---|---|---|---|---|---|".to_owned(),
    ];
    for concept in DICTIONARY {
        let forms: Vec<String> = concept.forms.iter().map(form).collect();
        let apart: Vec<String> = concept.apart.iter().map(|key| format!("`{key}`")).collect();
        lines.push(format!(
            "| {} | {} | {} | {} | {} | {} |",
            concept.name,
            concept.unit,
            forms.join("; "),
            apart.join(", "),
            concept.coarser.unwrap_or_default(),
            concept.source
        ));
    }
    lines.join("\n") + "\n"
}

fn form(Formula(class, terms): &Formula) -> String {
    let mut text = String::new();
    for term in *terms {
        let term = match term {
            Term::Key(key) if text.is_empty() => format!("`{key}`"),
            Term::Key(key) => format!(" + `{key}`"),
            Term::Zones(prefix) => format!("`{prefix}_ZONE`"),
            Term::IfThere(key) => format!(" [+ `{key}`]"),
            Term::Less(key) => format!(" - `{key}`"),
        };
        text.push_str(&term);
    }
    if class.is_empty() {
        text
    } else {
        format!("{text} ({class})")
    }
}

#[cfg(test)]
mod tests {
    use super::dictionary;

    /// `MARVIN_WRITE_DOCS=1 cargo test -p monitors` writes it.
    #[test]
    fn the_document_is_the_dictionary() {
        const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/counters.md");
        if std::env::var_os("MARVIN_WRITE_DOCS").is_some() {
            std::fs::write(PATH, dictionary()).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(PATH).unwrap_or_default(),
            dictionary()
        );
    }
}
