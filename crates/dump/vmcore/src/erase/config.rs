//! Parser for the language of makedumpfile.conf(5): sections, `erase` and `for`. `evaluate`
//! resolves the names.

use std::path::Path;

use crate::error::DumpError;

/// A position in the file, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) column: usize,
}

/// An error in a file.
#[derive(Debug)]
pub(super) enum ConfigError {
    /// At a position.
    Wrong(Position, String),
    /// About the file as a whole.
    Other(DumpError),
}

impl ConfigError {
    /// Adds the file's name.
    pub(super) fn within(self, path: &Path) -> DumpError {
        match self {
            Self::Wrong(Position { line, column }, what) => {
                DumpError::Usage(format!("{}:{line}:{column}: {what}", path.display()))
            }
            Self::Other(error) => error,
        }
    }
}

/// A symbol or variable, and members of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expression {
    pub(super) at: Position,
    pub(super) names: Vec<String>,
}

impl Expression {
    /// Returns its source text.
    pub(super) fn text(&self) -> String {
        self.names.join(".")
    }
}

/// How much to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Amount {
    /// The whole object.
    Own,
    /// This many bytes.
    Bytes(u64),
    /// As many bytes as a number in memory.
    Of(Expression),
    /// The pointer itself.
    Nullify,
}

/// The object to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Erase {
    pub(super) what: Expression,
    pub(super) amount: Amount,
}

/// How a loop advances.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// Through an array, or a list by its member `next`.
    Plain,
    /// By this member.
    Via(Expression),
    /// By this member, which is a `list_head`, of a structure.
    Within(Expression, String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Erase one thing.
    Erase(Erase),
    /// Erase something of each element.
    For {
        variable: String,
        list: Expression,
        way: Way,
        body: Vec<Erase>,
    },
}

/// A word of the file.
#[derive(Debug, Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    at: Position,
}

const KEYWORDS: [&str; 8] = [
    "erase", "size", "nullify", "for", "in", "via", "within", "endfor",
];

pub(super) fn parse(text: &str) -> Result<Vec<Command>, ConfigError> {
    let mut words = Words {
        words: split(text),
        next: 0,
        end: end(text),
    };
    let mut commands = Vec::new();
    while let Some(word) = words.take() {
        match word.text {
            "erase" => commands.push(Command::Erase(words.erase()?)),
            "for" => commands.push(words.parse_loop()?),
            "[vmlinux]" => {}
            text if text.starts_with('[') && text.ends_with(']') => {
                let what = format!(
                    "{text}: only data of vmlinux is erased, not yet that of modules; take the section out"
                );
                return Err(ConfigError::Wrong(word.at, what));
            }
            other => {
                let what =
                    format!("`{other}` is no command: `erase`, `for` or [vmlinux] is expected");
                return Err(ConfigError::Wrong(word.at, what));
            }
        }
    }
    Ok(commands)
}

/// Splits a file into words; `#` begins a comment.
fn split(text: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.split('#').next().unwrap_or_default();
        for word in text
            .split([' ', '\t', '\r'])
            .filter(|word| !word.is_empty())
        {
            // A word is a part of its line.
            let bytes = word.as_ptr() as usize - text.as_ptr() as usize;
            let column = text.get(..bytes).map_or(0, |before| before.chars().count()) + 1;
            words.push(Word {
                text: word,
                at: Position { line, column },
            });
        }
    }
    words
}

fn end(text: &str) -> Position {
    Position {
        line: text.lines().count().max(1),
        column: text.lines().last().map_or(0, |line| line.chars().count()) + 1,
    }
}

struct Words<'t> {
    words: Vec<Word<'t>>,
    next: usize,
    end: Position,
}

impl<'t> Words<'t> {
    fn take(&mut self) -> Option<Word<'t>> {
        let word = self.words.get(self.next).copied();
        self.next += usize::from(word.is_some());
        word
    }

    /// Takes the next word if it is this one.
    fn takes(&mut self, text: &str) -> bool {
        let is = self
            .words
            .get(self.next)
            .is_some_and(|word| word.text == text);
        self.next += usize::from(is);
        is
    }

    /// Takes a word that is no keyword.
    fn name(&mut self, what: &str) -> Result<Word<'t>, ConfigError> {
        match self.take() {
            Some(word) if !KEYWORDS.contains(&word.text) && !word.text.starts_with('[') => Ok(word),
            Some(word) => Err(ConfigError::Wrong(
                word.at,
                format!("{what} is expected, not `{}`", word.text),
            )),
            None => Err(ConfigError::Wrong(
                self.end,
                format!("{what} is expected, not the end of the file"),
            )),
        }
    }

    fn erase(&mut self) -> Result<Erase, ConfigError> {
        let what = expression(self.name("a symbol")?)?;
        let amount = if self.takes("nullify") {
            Amount::Nullify
        } else if self.takes("size") {
            let word = self.name("a size")?;
            if word.text.starts_with(|first: char| first.is_ascii_digit()) {
                Amount::Bytes(number(word)?)
            } else {
                Amount::Of(expression(word)?)
            }
        } else {
            Amount::Own
        };
        Ok(Erase { what, amount })
    }

    fn parse_loop(&mut self) -> Result<Command, ConfigError> {
        let variable = self.name("a name for the elements")?;
        if variable.text.contains(['.', ':']) {
            return Err(ConfigError::Wrong(
                variable.at,
                format!("`{}` is no name for elements", variable.text),
            ));
        }
        if !self.takes("in") {
            let at = self.words.get(self.next).map_or(self.end, |word| word.at);
            return Err(ConfigError::Wrong(at, "`in` is expected".to_owned()));
        }
        let list = expression(self.name("an array or a list")?)?;
        let way = if self.takes("via") {
            Way::Via(expression(self.name("a member")?)?)
        } else if self.takes("within") {
            let word = self.name("a structure and a member of it")?;
            // The member of a list defaults to `list`.
            let (name, member) = word.text.split_once(':').unwrap_or((word.text, "list"));
            if name.is_empty() || member.is_empty() {
                return Err(ConfigError::Wrong(
                    word.at,
                    "STRUCTURE:MEMBER is expected".to_owned(),
                ));
            }
            Way::Within(
                Expression {
                    at: word.at,
                    names: vec![name.to_owned()],
                },
                member.to_owned(),
            )
        } else {
            Way::Plain
        };
        let mut body = Vec::new();
        while !self.takes("endfor") {
            let at = self.words.get(self.next).map_or(self.end, |word| word.at);
            if !self.takes("erase") {
                return Err(ConfigError::Wrong(
                    at,
                    "`erase` or `endfor` is expected".to_owned(),
                ));
            }
            let erase = self.erase()?;
            if erase
                .what
                .names
                .first()
                .is_none_or(|name| name != variable.text)
            {
                let what = format!("only data of `{}` is erased in this loop", variable.text);
                return Err(ConfigError::Wrong(erase.what.at, what));
            }
            body.push(erase);
        }
        Ok(Command::For {
            variable: variable.text.to_owned(),
            list,
            way,
            body,
        })
    }
}

fn expression(word: Word<'_>) -> Result<Expression, ConfigError> {
    let names: Vec<String> = word.text.split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) {
        return Err(ConfigError::Wrong(
            word.at,
            format!("`{}`: a name is missing beside a dot", word.text),
        ));
    }
    Ok(Expression { at: word.at, names })
}

/// Parses a number of bytes: `25`, `1K`, `2M`.
fn number(word: Word<'_>) -> Result<u64, ConfigError> {
    let digits = word.text.trim_end_matches(['k', 'K', 'm', 'M']);
    let shift = match &word.text[digits.len()..] {
        "" => Some(0),
        "k" | "K" => Some(10),
        "m" | "M" => Some(20),
        _ => None,
    };
    let number = shift
        .and_then(|shift| digits.parse::<u64>().ok()?.checked_mul(1 << shift))
        .filter(|number| *number > 0);
    number.ok_or_else(|| {
        ConfigError::Wrong(
            word.at,
            format!(
                "`{}` is no size: a number of bytes, or of K or M",
                word.text
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::proptest;

    use super::{Amount, Command, Way, parse};

    #[test]
    fn all_of_the_language_is_understood() {
        let text = "# keys\nerase key\n[vmlinux]\n erase a.b.c size 2K # comment\nerase\td\n  size e.f\nerase g nullify\n\
            for x in list.next within thing:links\n erase x.y\n erase x.z size x.size\nendfor\nfor x in array endfor\n\
            for x in first via next\nerase x nullify\nendfor";
        let commands = parse(text).unwrap();
        assert_eq!(commands.len(), 7);
        assert!(
            matches!(&commands[1], Command::Erase(erase) if erase.amount == Amount::Bytes(2048))
        );
        assert!(matches!(&commands[2], Command::Erase(erase) if erase.what.at.line == 5));
        assert!(matches!(
            &commands[4],
            Command::For { way: Way::Within(..), body, .. } if body.len() == 2
        ));
        assert!(parse("").unwrap().is_empty());
    }

    #[test]
    fn mistakes_name_line_and_column() {
        let mut all = String::new();
        for text in [
            "erase key\n  remove it",
            "erase",
            "erase size 3",
            "erase a..b",
            "erase a size 3G",
            "erase a size 0",
            "[dm_crypt]\nerase a",
            "for x list",
            "for x in list\nerase y",
            "for x in list\n  erase x\n",
            "for x in list within :a endfor",
            "for a.b in list endfor",
            "erase größe.x..y",
        ] {
            let error = parse(text).unwrap_err().within(Path::new("conf"));
            all.extend([format!("{error}\n")]);
        }
        insta::assert_snapshot!(all);
    }

    proptest! {
        #[test]
        fn no_file_is_too_strange(
            text in "([a-z. ]|erase|for|in|endfor|size|\\[|\\]|#|\n|ß|1|K){0,60}",
        ) {
            drop(parse(&text));
        }
    }
}
