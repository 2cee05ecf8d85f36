//! Figures of the tree for a reader: how dense the code is, and how much its comments explain.
//!
//! They are printed and not limits: a quota would breed the next dialect. Counts are those of a
//! scanner, good for comparing trees.

use crate::source::{code, code_and_comments, occurrences};
use crate::{Finding, Rule, Tree};

/// Longest line of code, in characters; a line with a literal may be longer.
const LINE_MAX: usize = 100;
/// Most words of a doc of one line that only repeats its item's name.
const ECHO_WORDS: usize = 3;
/// Names that say nothing of what a function returns or a variable holds.
const VAGUE_NAMES: &[&str] = &["of", "told", "said", "asked", "kept"];
/// Where a reader must think: the crates whose whys are counted.
const EXPLAINED: &[&str] = &["lab", "server", "stats", "vmcore"];

/// A figure: its name, its value and its unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// What was counted, in which source.
    pub name: String,
    /// The count, share or ratio.
    pub value: f64,
    /// The unit: `per kloc`, `%`, or empty for a count.
    pub unit: &'static str,
}

/// Counts over Rust source.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    code_lines: usize,
    closures: usize,
    tuple_lets: usize,
    why_lines: usize,
    doc_lines: usize,
    echo_lines: usize,
    vague_functions: usize,
    vague_variables: usize,
    long_lines: usize,
}

/// Returns the figures of all crates.
#[must_use]
pub fn figures(tree: &Tree) -> Vec<Figure> {
    let mut all = Counts::default();
    let mut explained = Vec::new();
    for file in tree.rust().filter(|file| file.path.starts_with("crates/")) {
        all.add(&file.text);
    }
    for name in EXPLAINED {
        let mut counts = Counts::default();
        for file in tree.production(name) {
            counts.add(without_tests(&file.text));
        }
        let name = format!("inner comment lines in {name}");
        explained.push(per_kloc(&name, counts.why_lines, counts.code_lines));
    }
    let mut figures = vec![
        count("code lines", all.code_lines),
        per_kloc("named closures", all.closures, all.code_lines),
        per_kloc("lets of two tuples", all.tuple_lets, all.code_lines),
        Figure {
            name: "doc lines that repeat a name".to_owned(),
            value: 100.0 * ratio(all.echo_lines, all.doc_lines),
            unit: "%",
        },
        count(
            "functions called of, told, said, asked or kept",
            all.vague_functions,
        ),
        count("variables with these names", all.vague_variables),
        count(
            "code lines over 100 columns without a literal",
            all.long_lines,
        ),
    ];
    figures.extend(explained);
    figures
}

const WIDTH: Rule = Rule {
    name: "a line of code has at most 100 columns, but for literals",
    remedy: "rustfmt does it; in a macro wrap the line as rustfmt would",
};

/// Finds lines of code that are too wide.
#[must_use]
pub fn wide_lines(file: &str, text: &str) -> Vec<Finding> {
    long_lines(text)
        .into_iter()
        .map(|line| WIDTH.at(file, line, "over 100 columns"))
        .collect()
}

/// Returns the lines of code over 100 columns that no literal excuses, from 1.
fn long_lines(text: &str) -> Vec<usize> {
    let code = code(text);
    text.lines()
        .zip(code.lines())
        .enumerate()
        .filter(|(_, (line, code))| is_long(line, code))
        .map(|(number, _)| number + 1)
        .collect()
}

/// rustfmt leaves alone whole expressions that have a long literal, so a literal excuses its line.
fn is_long(line: &str, code: &str) -> bool {
    let has_literal = line.contains('"') || code.trim().is_empty();
    line.chars().count() > LINE_MAX && !has_literal
}

impl Counts {
    fn add(&mut self, text: &str) {
        let code = code(text);
        let comments = code_and_comments(text);
        self.code_lines += code.lines().filter(|line| !line.trim().is_empty()).count();
        for line in code.lines().map(str::trim_start) {
            let named = line
                .strip_prefix("let ")
                .and_then(|rest| rest.split_once(" = "));
            let Some((name, value)) = named else {
                continue;
            };
            let is_closure = value.starts_with('|') || value.starts_with("move |");
            self.closures += usize::from(is_closure);
            let is_tuple = name.starts_with('(') && value.starts_with('(');
            self.tuple_lets += usize::from(is_tuple && value.trim_end().ends_with(");"));
        }
        let mut before = "";
        let mut lines = comments.lines().map(str::trim_start).peekable();
        while let Some(line) = lines.next() {
            if let Some(doc) = line.strip_prefix("/// ") {
                self.doc_lines += 1;
                let words = doc.split_whitespace().count();
                let goes_on = lines.peek().is_some_and(|next| next.starts_with("///"));
                let is_alone = !before.starts_with("///") && !goes_on;
                let is_short = words <= ECHO_WORDS && doc.ends_with('.');
                self.echo_lines += usize::from(is_alone && is_short);
            } else if line.starts_with("// ") && !line.starts_with("// SAFETY") {
                self.why_lines += 1;
            }
            before = line;
        }
        for name in VAGUE_NAMES {
            self.vague_functions += occurrences(&code, &format!("fn {name}")).len();
            for declared in [format!("let {name}"), format!("let mut {name}")] {
                self.vague_variables += occurrences(&code, &declared).len();
            }
        }
        self.long_lines += long_lines(text).len();
    }
}

/// Returns the text before the tests, which stand at the end of a file.
fn without_tests(text: &str) -> &str {
    text.split_once("\n#[cfg(test)]\nmod tests {")
        .map_or(text, |(production, _)| production)
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

fn per_kloc(name: &str, count: usize, lines: usize) -> Figure {
    Figure {
        name: name.to_owned(),
        value: 1000.0 * ratio(count, lines),
        unit: "per kloc",
    }
}

fn count(name: &str, count: usize) -> Figure {
    Figure {
        name: name.to_owned(),
        value: count as f64,
        unit: "",
    }
}

#[cfg(test)]
mod tests {
    use super::{figures, long_lines};
    use crate::{File, Tree};

    #[test]
    fn figures_count_what_they_name() {
        let text = "//! A crate.\n/// The kernel.\nconst K: u8 = 1;\n/// Returns the boots of one kernel and seed.\n\
                    fn of(x: u32) -> u32 {\n    // Twice, since the first one warms up.\n    \
                    let double = |y: u32| 2 * y;\n    let (a, b) = (x, x);\n    \
                    let (c, d) = double(a);\n    a + b\n}\n\
                    #[cfg(test)]\nmod tests {\n    // Not counted.\n    fn told() {}\n}\n";
        let file = File {
            path: "crates/base/stats/src/lib.rs".to_owned(),
            text: text.to_owned(),
        };
        let values: Vec<String> = figures(&Tree { files: vec![file] })
            .iter()
            .map(|figure| format!("{} {:.1} {}", figure.name, figure.value, figure.unit))
            .collect();
        assert_eq!(values[0], "code lines 11.0 ");
        assert_eq!(values[1], "named closures 90.9 per kloc");
        assert_eq!(values[2], "lets of two tuples 90.9 per kloc");
        assert_eq!(values[3], "doc lines that repeat a name 50.0 %");
        assert_eq!(
            values[4],
            "functions called of, told, said, asked or kept 2.0 "
        );
    }

    #[test]
    fn long_code_is_found_without_literals() {
        let long = format!("let x = {};\n", "a + ".repeat(30));
        let text = format!("{long}let y = \"{}\";\nlet z = 1;\n{long}", "b".repeat(120));
        assert_eq!(long_lines(&text), [1, 4]);
    }
}
