//! Strict parsing of TOML: each table with its allowed keys, each error with its position.
//!
//! `manifest` interprets the keys.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest text that a value may be, in bytes.
const TEXT_MAX: usize = 2048;
/// Most elements of a list.
const LIST_MAX: usize = 64;

/// An error in a manifest, with its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ManifestError {
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    pub what: String,
}

/// A fault at a byte position of the text.
#[derive(Debug)]
pub(crate) struct Mistake {
    at: usize,
    what: String,
}

impl Mistake {
    pub(crate) fn new(span: &Range<usize>, what: impl Into<String>) -> Self {
        Self {
            at: span.start,
            what: what.into(),
        }
    }

    /// Returns the error, with line and column of the position.
    pub(crate) fn in_text(self, text: &str) -> ManifestError {
        let before = text.get(..self.at.min(text.len())).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        ManifestError {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            what: self.what,
        }
    }
}

/// A table whose keys are all known.
pub(crate) struct Section<'a> {
    table: &'a DeTable<'a>,
    span: Range<usize>,
    /// Its name in messages: `workload`.
    what: &'static str,
}

/// A table's name in messages, and its allowed keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape<'k> {
    pub(crate) what: &'static str,
    pub(crate) keys: &'k [&'k str],
}

/// A value with its position.
pub(crate) type Value<'a> = Spanned<DeValue<'a>>;

impl<'a> Section<'a> {
    /// Takes a table with these allowed keys.
    pub(crate) fn new(
        table: &'a DeTable<'a>,
        span: Range<usize>,
        shape: Shape<'_>,
    ) -> Result<Self, Mistake> {
        let Shape { what, keys } = shape;
        match table
            .keys()
            .filter(|key| !keys.contains(&&**key.get_ref()))
            .min_by_key(|key| key.span().start)
        {
            None => Ok(Self { table, span, what }),
            Some(key) => {
                let name = key.get_ref();
                let guess = did_you_mean(keys, name);
                let what = format!("unknown key `{}` in {what}{guess}", name.escape_debug());
                Err(Mistake::new(&key.span(), what))
            }
        }
    }

    /// Takes a value that is a table with these keys.
    pub(crate) fn from_value(value: &'a Value<'a>, shape: Shape<'_>) -> Result<Self, Mistake> {
        match value.get_ref().as_table() {
            Some(table) => Section::new(table, value.span(), shape),
            None => Err(other_type(value, "a table")),
        }
    }

    pub(crate) fn span(&self) -> &Range<usize> {
        &self.span
    }

    /// Returns the value of a key, if present.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        self.table.get(key)
    }

    /// Returns all keys with their values, in the order of the keys.
    pub(crate) fn all(
        table: &'a DeTable<'a>,
    ) -> impl Iterator<Item = (&'a str, Range<usize>, &'a Value<'a>)> {
        table
            .iter()
            .map(|(key, value)| (&**key.get_ref(), key.span(), value))
    }

    fn need(&self, key: &str) -> Result<&'a Value<'a>, Mistake> {
        self.get(key)
            .ok_or_else(|| Mistake::new(&self.span, format!("{} without `{key}`", self.what)))
    }

    /// Returns a required text.
    pub(crate) fn text(&self, key: &str) -> Result<&'a str, Mistake> {
        text(self.need(key)?)
    }

    /// Returns an optional text.
    pub(crate) fn text_if_any(&self, key: &str) -> Result<Option<&'a str>, Mistake> {
        self.get(key).map(text).transpose()
    }

    /// Returns a name: small letters, digits and hyphens.
    pub(crate) fn name(&self, key: &str, most: usize) -> Result<String, Mistake> {
        let value = self.need(key)?;
        let name = text(value)?;
        if name.len() <= most
            && name
                .chars()
                .all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !name.starts_with('-')
            && !name.ends_with('-')
        {
            return Ok(name.to_owned());
        }
        let what =
            format!("`{key}` must be small letters, digits and hyphens, at most {most} of them");
        Err(Mistake::new(&value.span(), what))
    }

    /// Returns the elements of a list; empty if the key is missing.
    pub(crate) fn list(&self, key: &str) -> Result<Vec<&'a Value<'a>>, Mistake> {
        self.get(key)
            .map_or_else(|| Ok(Vec::new()), |value| Ok(list(value)?.collect()))
    }

    /// Returns a whole number within a range, if present.
    pub(crate) fn integer(
        &self,
        key: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, Mistake> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let number = value
            .get_ref()
            .as_integer()
            .filter(|integer| integer.radix() == 10);
        match number
            .and_then(|integer| integer.as_str().parse().ok())
            .filter(|number| range.contains(number))
        {
            Some(number) => Ok(Some(number)),
            None => Err(expected(
                value,
                &format!("a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// Returns a finite number that is not negative, if present.
    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, Mistake> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let digits = match value.get_ref() {
            DeValue::Float(float) => Some(float.as_str()),
            DeValue::Integer(integer) if integer.radix() == 10 => Some(integer.as_str()),
            _ => None,
        };
        match digits
            .and_then(|digits| digits.parse::<f64>().ok())
            .filter(|n| n.is_finite() && *n >= 0.0)
        {
            Some(number) => Ok(Some(number)),
            None => Err(expected(value, "a number from 0 on")),
        }
    }

    /// Returns the choice that a word names; `None` if the key is missing.
    pub(crate) fn choice<T: Copy>(
        &self,
        key: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Mistake> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        let word = text(value)?;
        match choices.iter().find(|(known, _)| *known == word) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let known: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                let what = format!(
                    "`{key}` is one of {}, not `{}`",
                    known.join(", "),
                    word.escape_debug()
                );
                Err(Mistake::new(&value.span(), what))
            }
        }
    }
}

/// Returns a value as text: of one line, without control characters, not empty.
pub(crate) fn text<'a>(value: &'a Value<'a>) -> Result<&'a str, Mistake> {
    let text = value
        .get_ref()
        .as_str()
        .ok_or_else(|| other_type(value, "a text"))?;
    if text.is_empty() || text.len() > TEXT_MAX || text.chars().any(char::is_control) {
        return Err(expected(
            value,
            &format!("one line of text, at most {TEXT_MAX} bytes"),
        ));
    }
    Ok(text)
}

/// Returns the elements of a list.
pub(crate) fn list<'a>(
    value: &'a Value<'a>,
) -> Result<impl Iterator<Item = &'a Value<'a>>, Mistake> {
    let array = value
        .get_ref()
        .as_array()
        .ok_or_else(|| other_type(value, "a list"))?;
    if array.len() > LIST_MAX {
        return Err(expected(value, &format!("at most {LIST_MAX} elements")));
    }
    Ok(array.iter())
}

/// Makes the fault of a wrong value.
pub(crate) fn expected(value: &Value<'_>, what: &str) -> Mistake {
    Mistake::new(&value.span(), format!("expected {what}"))
}

/// Makes the fault of a wrong type.
fn other_type(value: &Value<'_>, what: &str) -> Mistake {
    Mistake::new(
        &value.span(),
        format!(
            "expected {what}, found TOML of type {}",
            value.get_ref().type_str()
        ),
    )
}

/// Returns a suggestion in parentheses, or an empty text.
pub(crate) fn did_you_mean(known: &[&str], word: &str) -> String {
    // A key may be long: the distance costs the product of both lengths.
    let word: String = word.chars().take(64).collect();
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(name, &word), name))
        .min()
        .filter(|(distance, name)| distance * 3 <= name.len().max(word.len()) + 2);
    nearest.map_or_else(String::new, |(_, name)| {
        format!(" (did you mean `{name}`?)")
    })
}
