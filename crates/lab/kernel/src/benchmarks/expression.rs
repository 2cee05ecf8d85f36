//! The conditions of Kconfig: options joined by `&&`, `||`, `!` and comparisons
//! (Documentation/kbuild/kconfig-language.rst, "Menu dependencies").

/// Most levels of brackets.
const DEPTH_MAX: usize = 64;

/// A condition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    /// `y`, or what a macro computes.
    Yes,
    No,
    /// `m`: modules are on, and the option can be a module only.
    Module,
    Symbol(String),
    Not(Box<Expression>),
    And(Vec<Expression>),
    Or(Vec<Expression>),
    /// `A = y`.
    Equal(String, String),
    /// `A != y`.
    Unequal(String, String),
}

impl Expression {
    /// Parses a condition; what is no condition counts as given.
    pub(crate) fn parse(text: &str) -> Self {
        let words = words(text);
        let mut rest = words.as_slice();
        let parsed = or(&mut rest, DEPTH_MAX);
        parsed.unwrap_or(Self::Yes)
    }
}

/// Splits a condition into options, signs and quoted texts.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '#' => break,
            '"' | '\'' => rest[1..].find(first).map_or(rest.len(), |end| end + 2),
            '$' => macro_length(rest),
            '&' | '|' => rest.len().min(2),
            '!' if rest.starts_with("!=") => 2,
            '<' | '>' if rest[1..].starts_with('=') => 2,
            '!' | '(' | ')' | '=' | '<' | '>' => 1,
            _ => rest
                .find(|c: char| !(c.is_alphanumeric() || "_-./".contains(c)))
                .filter(|end| *end > 0)
                .unwrap_or(if first.is_alphanumeric() || "_-./".contains(first) {
                    rest.len()
                } else {
                    first.len_utf8()
                }),
        };
        let end = (length..=rest.len())
            .find(|end| rest.is_char_boundary(*end))
            .unwrap_or(rest.len());
        words.push(rest[..end].to_owned());
        rest = rest[end..].trim_start();
    }
    words
}

/// Returns the bytes of `$(NAME,…)` with the brackets in it.
fn macro_length(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at + 1;
                }
            }
            c if c.is_whitespace() && depth == 0 => return at.max(1),
            _ => {}
        }
    }
    text.len()
}

fn or(words: &mut &[String], depth: usize) -> Option<Expression> {
    let mut parts = vec![and(words, depth)?];
    while take(words, "||") {
        parts.push(and(words, depth)?);
    }
    Some(match parts.len() {
        1 => parts.remove(0),
        _ => Expression::Or(parts),
    })
}

fn and(words: &mut &[String], depth: usize) -> Option<Expression> {
    let mut parts = vec![unit(words, depth)?];
    while take(words, "&&") {
        parts.push(unit(words, depth)?);
    }
    Some(match parts.len() {
        1 => parts.remove(0),
        _ => Expression::And(parts),
    })
}

fn unit(words: &mut &[String], depth: usize) -> Option<Expression> {
    let left = depth.checked_sub(1)?;
    if take(words, "!") {
        return Some(Expression::Not(Box::new(unit(words, left)?)));
    }
    if take(words, "(") {
        let inner = or(words, left)?;
        take(words, ")");
        return Some(inner);
    }
    let (first, rest) = words.split_first()?;
    *words = rest;
    for sign in ["=", "!=", "<", ">", "<=", ">="] {
        if take(words, sign) {
            let (second, rest) = words.split_first()?;
            *words = rest;
            let is_computed = first.contains("$(") || second.contains("$(");
            return Some(match sign {
                _ if is_computed => Expression::Yes,
                "=" => Expression::Equal(bare(first), bare(second)),
                "!=" => Expression::Unequal(bare(first), bare(second)),
                // Versions of compilers, which `make` checks.
                _ => Expression::Yes,
            });
        }
    }
    Some(match first.as_str() {
        "y" | "\"y\"" => Expression::Yes,
        "n" | "\"n\"" => Expression::No,
        "m" | "\"m\"" => Expression::Module,
        computed if computed.contains("$(") => Expression::Yes,
        name => Expression::Symbol(bare(name)),
    })
}

fn take(words: &mut &[String], sign: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if first == sign => {
            *words = rest;
            true
        }
        _ => false,
    }
}

fn bare(word: &str) -> String {
    word.trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Expression::{self, And, Equal, Module, Not, Or, Symbol, Unequal, Yes};

    fn symbol(name: &str) -> Expression {
        Symbol(name.to_owned())
    }

    #[test]
    fn conditions_bind_as_kconfig_does() {
        assert_eq!(
            Expression::parse("MMU && (m || EXPERT) && !UML # text"),
            And(vec![
                symbol("MMU"),
                Or(vec![Module, symbol("EXPERT")]),
                Not(Box::new(symbol("UML"))),
            ])
        );
        assert_eq!(
            Expression::parse("A || B && C"),
            Or(vec![symbol("A"), And(vec![symbol("B"), symbol("C")])])
        );
        assert_eq!(
            Expression::parse("NET=y"),
            Equal("NET".to_owned(), "y".to_owned())
        );
        assert_eq!(
            Expression::parse("USB!=n"),
            Unequal("USB".to_owned(), "n".to_owned())
        );
    }

    #[test]
    fn macros_and_versions_count_as_given() {
        for text in [
            "$(cc-option,-fsanitize=x $(y))",
            "GCC_VERSION >= 90100",
            "\"$(ARCH)\" = \"x86\"",
        ] {
            assert_eq!(Expression::parse(text), Yes, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed(text in "\\PC{0,60}") {
            drop(Expression::parse(&text));
        }
    }
}
