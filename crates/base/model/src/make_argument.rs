//! Variables that a user gives to the kernel's make: `LLVM=1`, `KCFLAGS="-O3 -g"`.
//!
//! make expands `$`, and the shell of its recipes reads the rest: a value with a character that
//! either interprets is refused, so that a value is never a command. This module only parses; the
//! `kernel` crate runs make.

use std::fmt;
use std::str::FromStr;

/// A variable of make with its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MakeArgument {
    name: String,
    value: String,
}

/// A word that is no argument for make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MakeArgumentError {
    /// A target, or an option of make.
    #[error(
        "`{0}` is no argument for make: expected VARIABLE=VALUE, such as KCFLAGS=-O3; Marvin chooses make's targets and options"
    )]
    NotAssignment(String),
    /// A variable that Marvin sets.
    #[error("cannot set make's {name}: {why}")]
    Reserved {
        /// The variable.
        name: String,
        /// Why Marvin sets it.
        why: &'static str,
    },
    /// A value that would be a program or another value.
    #[error(
        "cannot give make {name}={value}: make or its shell would interpret `{character}`; allowed are letters, digits, spaces and {}",
        ALLOWED
    )]
    Interpreted {
        /// The variable.
        name: String,
        /// The value.
        value: String,
        /// The first character that is not allowed.
        character: String,
    },
    /// A quote without its end.
    #[error("`{0}` has a quote without its end")]
    Quote(String),
}

/// The characters of values that neither make nor a shell interprets, besides letters, digits and
/// spaces.
const ALLOWED: &str = "_-+=.,/:%";

/// Variables that Marvin sets, and why.
const RESERVED: [(&str, &str); 22] = [
    ("O", OUTPUT),
    ("KBUILD_OUTPUT", OUTPUT),
    ("M", EXTERNAL),
    ("KBUILD_EXTMOD", EXTERNAL),
    ("KCONFIG_CONFIG", CONFIG),
    ("KCONFIG_ALLCONFIG", CONFIG),
    ("KCONFIG_DEFCONFIG_LIST", CONFIG),
    ("LSMOD", "--localmod names the list of modules"),
    ("KBUILD_BUILD_TIMESTAMP", EQUAL),
    ("KBUILD_BUILD_USER", EQUAL),
    ("KBUILD_BUILD_HOST", EQUAL),
    ("KBUILD_BUILD_VERSION", EQUAL),
    ("LOCALVERSION", EQUAL),
    ("INSTALL_PATH", INSTALL),
    ("INSTALL_MOD_PATH", INSTALL),
    ("INSTALL_MOD_DIR", INSTALL),
    ("SHELL", PROGRAMS),
    ("CONFIG_SHELL", PROGRAMS),
    ("MAKE", PROGRAMS),
    ("MAKEFLAGS", PROGRAMS),
    ("MAKEFILES", PROGRAMS),
    ("srctree", "the name of the kernel names its source"),
];
const OUTPUT: &str =
    "Marvin builds in a directory of its own; --build-dir DIR reads the config of yours";
const EXTERNAL: &str = "Marvin builds whole kernels and no external modules";
const CONFIG: &str = "--config names the kernel config";
const EQUAL: &str = "Marvin fixes it, so that equal sources give equal images";
const INSTALL: &str = "Marvin installs nothing on this host";
const PROGRAMS: &str = "Marvin chooses how make runs";

impl MakeArgument {
    /// Parses words as a shell splits them: quotes keep spaces together.
    ///
    /// # Errors
    /// If a quote has no end, or a word is no argument for make.
    pub fn parse_words(text: &str) -> Result<Vec<Self>, MakeArgumentError> {
        split_words(text)?.iter().map(|word| word.parse()).collect()
    }

    /// Returns the variable.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the variable's value.
    #[must_use]
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the word that make gets.
    #[must_use]
    pub fn word(&self) -> String {
        format!("{}={}", self.name, self.value)
    }

    /// Returns these arguments as a user writes them; the last of one variable counts.
    #[must_use]
    pub fn join(arguments: &[Self]) -> String {
        let words: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        words.join(" ")
    }
}

impl FromStr for MakeArgument {
    type Err = MakeArgumentError;

    fn from_str(text: &str) -> Result<Self, MakeArgumentError> {
        let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_variable(name)) else {
            return Err(MakeArgumentError::NotAssignment(shown(text)));
        };
        if let Some((_, why)) = RESERVED.iter().find(|(reserved, _)| *reserved == name) {
            return Err(MakeArgumentError::Reserved {
                name: name.to_owned(),
                why,
            });
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == ' ' || ALLOWED.contains(c);
        if let Some(character) = value.chars().find(|c| !is_allowed(*c)) {
            return Err(MakeArgumentError::Interpreted {
                name: name.to_owned(),
                value: shown(value),
                character: character.escape_debug().to_string(),
            });
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for MakeArgument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value } = self;
        if value.contains(' ') {
            write!(f, "{name}=\"{value}\"")
        } else {
            write!(f, "{name}={value}")
        }
    }
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Returns a word for an error: short, and without control characters.
fn shown(text: &str) -> String {
    text.chars()
        .take(80)
        .flat_map(char::escape_debug)
        .filter(|c| *c != '\\')
        .collect()
}

fn split_words(text: &str) -> Result<Vec<String>, MakeArgumentError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '"' || c == '\'' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err(MakeArgumentError::Quote(shown(text)));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::MakeArgument;

    fn words(text: &str) -> String {
        match MakeArgument::parse_words(text) {
            Ok(arguments) => MakeArgument::join(&arguments),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn words_are_split_like_a_shell_does() {
        for same in ["LLVM=1 KCFLAGS=-O3", "KCFLAGS=\"-O3 -g\"", "CC=", ""] {
            assert_eq!(words(same), same);
        }
        assert_eq!(words(" CC='gcc-12'\n\tV=1 "), "CC=gcc-12 V=1");
        assert_eq!(
            words("KCFLAGS='-O3"),
            "`KCFLAGS='-O3` has a quote without its end"
        );
    }

    #[test]
    fn targets_and_variables_of_marvin_are_refused() {
        assert_eq!(
            words("vmlinux"),
            "`vmlinux` is no argument for make: expected VARIABLE=VALUE, such as KCFLAGS=-O3; Marvin chooses make's targets and options"
        );
        for none in ["-j8", "A!=touch", "A:=1", "=1", "1A=2", "A B=1", "--eval=x"] {
            assert!(words(none).contains("is no argument for make"), "{none}");
        }
        assert_eq!(
            words("O=/tmp"),
            "cannot set make's O: Marvin builds in a directory of its own; --build-dir DIR reads the config of yours"
        );
        assert_eq!(
            words("LOCALVERSION=-mine"),
            "cannot set make's LOCALVERSION: Marvin fixes it, so that equal sources give equal images"
        );
    }

    #[test]
    fn values_are_never_commands() {
        assert_eq!(
            words("KCFLAGS=$(shell)"),
            "cannot give make KCFLAGS=$(shell): make or its shell would interpret `$`; allowed are letters, digits, spaces and _-+=.,/:%"
        );
        for hostile in [
            "`id`", "a;id", "a|id", "a&id", "a>x", "a<x", "a\\", "a#", "a*", "ä", "a~",
        ] {
            let text = format!("A='{hostile}'");
            assert!(words(&text).contains("would interpret"), "{text}");
        }
        let newline = "A=a\nid".parse::<MakeArgument>().unwrap_err().to_string();
        assert!(
            newline.contains("would interpret `\\n`") && !newline.contains('\n'),
            "{newline}"
        );
    }
}
