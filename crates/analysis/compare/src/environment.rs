//! Differences between the environments of several kernels; equal values are omitted.

use std::collections::{HashMap, HashSet};

/// The placeholder for a missing value.
const NONE: &str = "(none)";
/// Digits of a hash that are shown.
const HASH: usize = 12;

/// One differing property of the environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The key, as in the run's environment: `kernel.tainted`.
    pub name: String,
    /// Its value for each kernel, base first; `None` if the kernel does not have it or its
    /// environment is unknown.
    pub values: Vec<Option<String>>,
}

/// The differences between the environments of a comparison.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Differing {
    /// The differences, in the order of the first kernel that has them.
    pub differences: Vec<Difference>,
    /// Kernels, by position with the base at 0, with an unknown environment: no run got that far.
    pub silent: Vec<usize>,
}

/// Name and value pairs of one kernel; a name may occur several times, once per run.
pub(crate) type Pairs<'a> = Vec<(&'a str, &'a str)>;

/// Returns the differences between the known environments.
pub(crate) fn differing(kernels: &[Pairs<'_>]) -> Differing {
    let mut names: Vec<&str> = Vec::new();
    let mut values: HashMap<&str, Vec<Vec<&str>>> = HashMap::new();
    for (position, pairs) in kernels.iter().enumerate() {
        for (name, value) in pairs {
            let of_all = values.entry(name).or_insert_with(|| {
                names.push(name);
                vec![Vec::new(); kernels.len()]
            });
            // A kernel has few values of one name: one, or one per seed.
            if !of_all[position].contains(value) {
                of_all[position].push(value);
            }
        }
    }
    let silent: Vec<usize> = (0..kernels.len())
        .filter(|k| kernels[*k].is_empty())
        .collect();
    let differences = names
        .into_iter()
        .filter_map(|name| difference(name, &values[name], &silent))
        .collect();
    Differing {
        differences,
        silent,
    }
}

fn difference(name: &str, values: &[Vec<&str>], silent: &[usize]) -> Option<Difference> {
    let mut speaking = (0..values.len()).filter(|k| !silent.contains(k));
    let first = &values[speaking.next()?];
    if speaking.all(|k| values[k] == *first) {
        return None;
    }
    Some(Difference {
        name: name.to_owned(),
        values: values
            .iter()
            .map(|v| (!v.is_empty()).then(|| v.join(", ")))
            .collect(),
    })
}

impl Difference {
    /// Shortens values to `width` characters: long ones first lose their common prefix, then as
    /// much as necessary, so that the difference stays visible.
    #[must_use]
    pub fn short_values(&self, width: usize) -> Vec<String> {
        if let Some(values) = self.short_hashes() {
            return values;
        }
        let given: Vec<&str> = self.values.iter().flatten().map(String::as_str).collect();
        let longest = given.iter().map(|v| v.chars().count()).max().unwrap_or(0);
        let skipped = if longest > width {
            common_words(&given)
        } else {
            0
        };
        self.values
            .iter()
            .map(|value| match value {
                None => NONE.to_owned(),
                Some(value) if skipped > 0 => {
                    cut_end(&format!("… {}", value[skipped..].trim_start()), width)
                }
                Some(value) => cut_end(value, width),
            })
            .collect()
    }

    /// Shortens hashes like git, if all values are hashes and still differ then.
    fn short_hashes(&self) -> Option<Vec<String>> {
        let is_hash = |text: &&str| text.len() >= 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let given: HashSet<&str> = self.values.iter().flatten().map(String::as_str).collect();
        if given.is_empty() || !given.iter().all(is_hash) {
            return None;
        }
        let short: HashSet<&str> = given.iter().map(|text| &text[..HASH]).collect();
        (short.len() == given.len()).then(|| {
            self.values
                .iter()
                .map(|value| value.as_ref().map_or(NONE, |text| &text[..HASH]).to_owned())
                .collect()
        })
    }
}

/// Returns the length of the common prefix of whole words, in bytes.
fn common_words(values: &[&str]) -> usize {
    let Some((first, rest)) = values.split_first() else {
        return 0;
    };
    let same = rest
        .iter()
        .map(|other| {
            first
                .char_indices()
                .zip(other.chars())
                .find(|((_, a), b)| a != b)
                .map_or(first.len().min(other.len()), |((at, _), _)| at)
        })
        .min()
        .unwrap_or(0);
    first[..same].rfind(' ').unwrap_or(0)
}

fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars()
        .take(width.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Difference, differing};

    fn value(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn equal_rows_are_omitted() {
        let found = differing(&[
            vec![("release", "6.1"), ("cpus", "1"), ("old", "yes")],
            vec![("release", "6.12"), ("cpus", "1"), ("new", "yes")],
        ]);
        let names: Vec<&str> = found.differences.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["release", "old", "new"]);
        assert_eq!(found.differences[1].values, [value("yes"), None]);
        assert!(found.silent.is_empty());
    }

    #[test]
    fn kernel_without_environment_has_no_differences() {
        let found = differing(&[vec![("release", "6.1")], vec![]]);
        assert!(found.differences.is_empty());
        assert_eq!(found.silent, [1]);
        assert_eq!(differing(&[vec![], vec![]]).silent, [0, 1]);
    }

    #[test]
    fn several_values_of_one_kernel_are_one_text() {
        let found = differing(&[
            vec![("layout", "a"), ("layout", "b"), ("layout", "a")],
            vec![("layout", "a"), ("layout", "b")],
        ]);
        assert!(found.differences.is_empty());
        let found = differing(&[
            vec![("layout", "a"), ("layout", "b")],
            vec![("layout", "a")],
        ]);
        assert_eq!(found.differences[0].values, [value("a, b"), value("a")]);
    }

    #[test]
    fn long_values_show_where_they_part() {
        let line = "console=ttyS0 quiet root=/dev/ram0 rdinit=/agent";
        let difference = Difference {
            name: "command line".to_owned(),
            values: vec![
                value(&format!("{line} mitigations=off")),
                value(&format!(
                    "{line} mitigations=auto,nosmt and many more words"
                )),
                None,
            ],
        };
        assert_eq!(
            difference.short_values(30),
            [
                "… mitigations=off",
                "… mitigations=auto,nosmt and …",
                "(none)"
            ]
        );
    }

    #[test]
    fn hashes_are_shortened_unless_only_their_ends_differ() {
        let a = "ab".repeat(32);
        let b = format!("{}ff", "ab".repeat(31));
        let different = difference(&[&a, &"cd".repeat(20)]);
        assert_eq!(different.short_values(80)[0], "abababababab");
        assert_eq!(difference(&[&a, &b]).short_values(80)[1], b);
    }

    /// Returns a difference of these values, and a kernel without one.
    fn difference(values: &[&String]) -> Difference {
        let given = values.iter().map(|value| Some((*value).clone()));
        Difference {
            name: "config".to_owned(),
            values: given.chain([None]).collect(),
        }
    }

    #[test]
    fn cutting_keeps_to_characters() {
        let difference = Difference {
            name: "x".to_owned(),
            values: vec![value("ääääää ö"), value("ääääää ü"), value("ä")],
        };
        assert_eq!(difference.short_values(4), ["äää…", "äää…", "ä"]);
        assert_eq!(difference.short_values(0), ["…", "…", "…"]);
    }
}
