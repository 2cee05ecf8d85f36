//! Checks a document against its tables: the result has only known keys with values of their kinds.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeTable;

use super::keys::{Key, Kind, Presence, Preset, Table};
use crate::toml_document::{Mistake, Section, Shape, Value, did_you_mean, expected, list, text};

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) span: Range<usize>,
    values: BTreeMap<&'static str, (Range<usize>, Checked)>,
}

#[derive(Debug)]
enum Checked {
    Text(String),
    Texts(Vec<(Range<usize>, String)>),
    Whole(u64),
    Flag(bool),
    Records(Vec<Record>),
}

impl Record {
    /// Checks a table against its definition.
    pub(crate) fn read(
        found: &DeTable<'_>,
        span: Range<usize>,
        table: &'static Table,
    ) -> Result<Self, Mistake> {
        let names: Vec<&str> = table.keys.iter().map(|key| key.name).collect();
        let section = Section::new(
            found,
            span.clone(),
            Shape {
                what: table.what,
                keys: &names,
            },
        )?;
        let mut values = BTreeMap::new();
        for key in table.keys {
            if let Some(value) = section.get(key.name) {
                values.insert(key.name, (value.span(), check_value(value, key)?));
                continue;
            }
            match key.presence {
                Presence::Needed => {
                    return Err(Mistake::new(
                        &span,
                        format!("{} without `{}`", table.what, key.name),
                    ));
                }
                Presence::Preset(preset) => {
                    drop(values.insert(key.name, (span.clone(), of_preset(preset))));
                }
                Presence::Optional => {
                    if let Kind::One(table) = key.kind {
                        // A missing table has the defaults of its keys.
                        let record = Self::read(&DeTable::new(), span.clone(), table)?;
                        values.insert(key.name, (span.clone(), Checked::Records(vec![record])));
                    }
                }
            }
        }
        Ok(Self { span, values })
    }

    /// Returns the position of a key's value or, if it has none, of the table.
    pub(crate) fn span_of(&self, key: &str) -> &Range<usize> {
        self.values.get(key).map_or(&self.span, |(span, _)| span)
    }

    /// Returns whether a key has a value, written or default.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// Returns whether a table has this key itself, and not its default.
    pub(crate) fn is_written(&self, key: &str) -> bool {
        self.values
            .get(key)
            .is_some_and(|(span, _)| *span != self.span)
    }

    /// Returns a text or a name, if present.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.values.get(key) {
            Some((_, Checked::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// Returns texts with their positions, if present.
    pub(crate) fn texts(&self, key: &str) -> Option<&[(Range<usize>, String)]> {
        match self.values.get(key) {
            Some((_, Checked::Texts(texts))) => Some(texts),
            _ => None,
        }
    }

    /// Returns texts; empty if there are none.
    pub(crate) fn strings(&self, key: &str) -> Vec<String> {
        self.texts(key)
            .unwrap_or_default()
            .iter()
            .map(|(_, text)| text.clone())
            .collect()
    }

    /// Returns a whole number, or seconds, of a key with a default.
    pub(crate) fn whole(&self, key: &str) -> u64 {
        match self.values.get(key) {
            Some((_, Checked::Whole(number))) => *number,
            _ => 0,
        }
    }

    /// Returns whether a flag is set.
    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some((_, Checked::Flag(true))))
    }

    /// Returns the only table of a key, which always exists.
    pub(crate) fn one(&self, key: &str) -> &Record {
        self.records(key).first().unwrap_or(self)
    }

    /// Returns the tables of a key.
    pub(crate) fn records(&self, key: &str) -> &[Record] {
        match self.values.get(key) {
            Some((_, Checked::Records(records))) => records,
            _ => &[],
        }
    }
}

fn of_preset(preset: Preset) -> Checked {
    match preset {
        Preset::Text(text) => Checked::Text(text.to_owned()),
        Preset::Flag(flag) => Checked::Flag(flag),
        Preset::Whole(number) | Preset::Span(number, _) => Checked::Whole(number),
    }
}

fn check_value(value: &Value<'_>, key: &Key) -> Result<Checked, Mistake> {
    Ok(match key.kind {
        Kind::Name => Checked::Text(name(value)?),
        Kind::Text => Checked::Text(text(value)?.to_owned()),
        Kind::Texts => {
            let texts: Vec<_> = list(value)?
                .map(|one| Ok((one.span(), text(one)?.to_owned())))
                .collect::<Result<_, Mistake>>()?;
            if texts.is_empty() {
                return Err(expected(value, "a list with something in it"));
            }
            Checked::Texts(texts)
        }
        Kind::Span => {
            let written = text(value)?;
            Checked::Whole(
                seconds(written)
                    .ok_or_else(|| expected(value, "a time such as 90s, 30m, 2h or 1d"))?,
            )
        }
        Kind::Flag => Checked::Flag(
            value
                .get_ref()
                .as_bool()
                .ok_or_else(|| expected(value, "true or false"))?,
        ),
        Kind::Whole(least, most) => {
            let number = value
                .get_ref()
                .as_integer()
                .filter(|integer| integer.radix() == 10);
            let number = number.and_then(|integer| integer.as_str().parse().ok());
            let number = number.filter(|number| (least..=most).contains(number));
            Checked::Whole(number.ok_or_else(|| {
                expected(value, &format!("a whole number from {least} to {most}"))
            })?)
        }
        Kind::Choice(choices) => {
            let word = text(value)?;
            if !choices.contains(&word) {
                let what = format!(
                    "`{}` is one of {}, not `{word}`",
                    key.name,
                    choices.join(", ")
                );
                return Err(Mistake::new(
                    &value.span(),
                    format!("{what}{}", did_you_mean(choices, word)),
                ));
            }
            Checked::Text(word.to_owned())
        }
        Kind::One(table) => Checked::Records(vec![record(value, table)?]),
        Kind::Many(table) => Checked::Records(
            list(value)?
                .map(|one| record(one, table))
                .collect::<Result<_, Mistake>>()?,
        ),
    })
}

fn record(value: &Value<'_>, table: &'static Table) -> Result<Record, Mistake> {
    let found = value
        .get_ref()
        .as_table()
        .ok_or_else(|| expected(value, &format!("a table: {}", table.what)))?;
    Record::read(found, value.span(), table)
}

fn name(value: &Value<'_>) -> Result<String, Mistake> {
    let name = text(value)?;
    if name.len() <= 32
        && name
            .chars()
            .all(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.starts_with('-')
    {
        Ok(name.to_owned())
    } else {
        Err(expected(
            value,
            "a name of small letters, digits and hyphens, at most 32 of them",
        ))
    }
}

/// Parses a duration with its unit, in seconds; at most a year, and not zero.
pub fn seconds(text: &str) -> Option<u64> {
    const YEAR_S: u64 = 366 * 86_400;
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(at);
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    digits
        .parse::<u64>()
        .ok()?
        .checked_mul(factor)
        .filter(|seconds| (1..=YEAR_S).contains(seconds))
}
