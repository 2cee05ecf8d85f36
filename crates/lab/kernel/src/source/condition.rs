//! What an `#if` of the preprocessor says with a kernel config: yes, no, or nothing that options
//! alone decide.
//!
//! Pure. Of the C language what conditions of the kernel's sources have: names, numbers, `defined`,
//! the macros of `include/linux/kconfig.h`, comparisons and `! && ||`; all else is unknown.

use std::collections::BTreeMap;

/// Most levels of brackets.
const DEPTH_MAX: usize = 64;

/// Why a condition is as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// This option is off.
    IsOff(String),
    IsOn(String),
    HasValue(String),
}

/// What is known of a condition, with the first option that decides it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decided {
    Yes(Option<Cause>),
    No(Option<Cause>),
    Unknown,
}

impl Decided {
    pub(super) fn not(self) -> Self {
        match self {
            Self::Yes(cause) => Self::No(cause),
            Self::No(cause) => Self::Yes(cause),
            Self::Unknown => Self::Unknown,
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (no @ Self::No(_), _) | (_, no @ Self::No(_)) => no,
            (Self::Yes(one), Self::Yes(other)) => Self::Yes(one.or(other)),
            _ => Self::Unknown,
        }
    }

    pub(super) fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }
}

/// The value of a part of a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Value {
    Number(i64, Option<Cause>),
    Unknown,
}

impl Value {
    fn decided(self) -> Decided {
        match self {
            Self::Number(0, cause) => Decided::No(cause),
            Self::Number(_, cause) => Decided::Yes(cause),
            Self::Unknown => Decided::Unknown,
        }
    }

    fn of(decided: Decided) -> Self {
        match decided {
            Decided::Yes(cause) => Self::Number(1, cause),
            Decided::No(cause) => Self::Number(0, cause),
            Decided::Unknown => Self::Unknown,
        }
    }
}

/// Decides a condition by the options of a config.
pub(super) fn decide(text: &str, options: &BTreeMap<String, String>) -> Decided {
    let mut parser = Parser {
        words: words(text),
        at: 0,
        options,
    };
    match parser.either(DEPTH_MAX) {
        Some(value) if parser.at == parser.words.len() => value.decided(),
        _ => Decided::Unknown,
    }
}

/// Splits a condition into names, numbers and signs.
fn words(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let two = rest.get(..2).unwrap_or("");
        let length = if is_name(first) {
            rest.find(|c| !is_name(c)).unwrap_or(rest.len())
        } else if ["&&", "||", "==", "!=", "<=", ">=", "<<", ">>"].contains(&two) {
            2
        } else {
            first.len_utf8()
        };
        found.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    found
}

/// Reads a condition word by word; `None` where it is no condition that is understood.
struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    options: &'a BTreeMap<String, String>,
}

impl<'a> Parser<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = *self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    fn accept(&mut self, word: &str) -> bool {
        let is_next = self.words.get(self.at) == Some(&word);
        self.at += usize::from(is_next);
        is_next
    }

    /// Parts joined by `||`.
    fn either(&mut self, depth: usize) -> Option<Value> {
        let mut value = self.all(depth)?;
        while self.accept("||") {
            let other = self.all(depth)?;
            value = Value::of(value.decided().or(other.decided()));
        }
        Some(value)
    }

    /// Parts joined by `&&`.
    fn all(&mut self, depth: usize) -> Option<Value> {
        let mut value = self.comparison(depth)?;
        while self.accept("&&") {
            let other = self.comparison(depth)?;
            value = Value::of(value.decided().and(other.decided()));
        }
        Some(value)
    }

    fn comparison(&mut self, depth: usize) -> Option<Value> {
        let value = self.part(depth)?;
        let Some(&sign) = self.words.get(self.at) else {
            return Some(value);
        };
        if !["==", "!=", "<", "<=", ">", ">="].contains(&sign) {
            return Some(value);
        }
        self.at += 1;
        let other = self.part(depth)?;
        let (Value::Number(left, cause), Value::Number(right, of_right)) = (value, other) else {
            return Some(Value::Unknown);
        };
        let holds = match sign {
            "==" => left == right,
            "!=" => left != right,
            "<" => left < right,
            "<=" => left <= right,
            ">" => left > right,
            _ => left >= right,
        };
        Some(Value::Number(i64::from(holds), cause.or(of_right)))
    }

    /// A part without `&&` and comparisons.
    fn part(&mut self, depth: usize) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let word = self.next()?;
        match word {
            "!" => Some(Value::of(self.part(depth)?.decided().not())),
            "(" => {
                let value = self.either(depth)?;
                self.accept(")").then_some(value)
            }
            "defined" => {
                let is_bracketed = self.accept("(");
                let name = self.next()?;
                if is_bracketed && !self.accept(")") {
                    return None;
                }
                Some(self.switch(name.strip_prefix("CONFIG_").map(|_| name), true, false))
            }
            // Whether built-in code reaches a module hangs on the object.
            "IS_ENABLED" | "IS_REACHABLE" => self.macro_of_option(true, true),
            "IS_BUILTIN" => self.macro_of_option(true, false),
            "IS_MODULE" => self.macro_of_option(false, true),
            _ if word.starts_with(|c: char| c.is_ascii_digit()) => Some(number(word)),
            _ if word.starts_with("CONFIG_") => Some(self.option(word)),
            _ if word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                self.skip_arguments()?;
                Some(Value::Unknown)
            }
            _ => None,
        }
    }

    fn macro_of_option(&mut self, built_in: bool, module: bool) -> Option<Value> {
        if !self.accept("(") {
            return None;
        }
        let name = self.next()?;
        if !self.accept(")") {
            return None;
        }
        Some(self.switch(Some(name), built_in, module))
    }

    /// Skips the arguments of a macro, if there are any.
    fn skip_arguments(&mut self) -> Option<()> {
        if !self.accept("(") {
            return Some(());
        }
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()? {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
        }
        Some(())
    }

    /// Returns whether an option is on, as the preprocessor knows it: one that is a module has
    /// another name there.
    fn switch(&self, option: Option<&str>, built_in: bool, module: bool) -> Value {
        let Some(option) = option else {
            return Value::Unknown;
        };
        let of_module = option.strip_suffix("_MODULE");
        let plain = of_module.filter(|_| !self.options.contains_key(option));
        let value = self.options.get(plain.unwrap_or(option));
        let is_on = match value.map_or("n", String::as_str) {
            "n" => false,
            "m" => module || plain.is_some(),
            _ => built_in && plain.is_none(),
        };
        let option = plain.unwrap_or(option).to_owned();
        let cause = if is_on {
            Cause::IsOn(option)
        } else {
            Cause::IsOff(option)
        };
        Value::Number(i64::from(is_on), Some(cause))
    }

    /// Returns an option's number; 0 if it is off, as for each name that is not defined.
    fn option(&self, name: &str) -> Value {
        match self.options.get(name).map(String::as_str) {
            None | Some("n" | "m") => Value::Number(0, Some(Cause::IsOff(name.to_owned()))),
            Some("y") => Value::Number(1, Some(Cause::IsOn(name.to_owned()))),
            Some(value) => match number(value) {
                Value::Number(number, _) => {
                    Value::Number(number, Some(Cause::HasValue(name.to_owned())))
                }
                Value::Unknown => Value::Unknown,
            },
        }
    }
}

fn number(word: &str) -> Value {
    let digits = word.trim_end_matches(['u', 'U', 'l', 'L']);
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    let parsed = match hexadecimal {
        Some(digits) => i64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    parsed.map_or(Value::Unknown, |number| Value::Number(number, None))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Cause, Decided, decide};

    fn options() -> BTreeMap<String, String> {
        let on = [
            ("CONFIG_SMP", "y"),
            ("CONFIG_E1000", "m"),
            ("CONFIG_HZ", "250"),
            ("CONFIG_BASE", "0x1000"),
            ("CONFIG_NAME", "\"x\""),
        ];
        on.map(|(option, value)| (option.to_owned(), value.to_owned()))
            .into()
    }

    #[test]
    fn options_decide_conditions() {
        let options = options();
        for yes in [
            "CONFIG_SMP",
            "defined(CONFIG_SMP) && !defined CONFIG_NUMA",
            "IS_ENABLED(CONFIG_E1000) && IS_MODULE(CONFIG_E1000)",
            "defined(CONFIG_E1000_MODULE)",
            "MODULE || CONFIG_HZ >= 250",
            "(CONFIG_HZ > 0xf0U) == 1",
            "CONFIG_BASE == 4096",
        ] {
            let decided = decide(yes, &options);
            assert!(matches!(decided, Decided::Yes(_)), "{yes}: {decided:?}");
        }
        for no in [
            "0",
            "defined(CONFIG_E1000)",
            "IS_BUILTIN(CONFIG_E1000)",
            "CONFIG_NUMA && UNKNOWN(a, (b)) > 3",
            "UNKNOWN && IS_ENABLED(CONFIG_NUMA)",
            "!(CONFIG_SMP || MODULE)",
        ] {
            let decided = decide(no, &options);
            assert!(matches!(decided, Decided::No(_)), "{no}: {decided:?}");
        }
        for unknown in [
            "",
            "MODULE",
            "defined(MODULE)",
            "CONFIG_NAME == 1",
            "CONFIG_HZ + 1 > 0",
            "CONFIG_SMP ? 0 : 1",
            "GCC_VERSION >= 50000",
            "__has_builtin(__builtin_x) && CONFIG_SMP",
            "(CONFIG_SMP",
            "\"",
        ] {
            assert_eq!(decide(unknown, &options), Decided::Unknown, "{unknown}");
        }
    }

    #[test]
    fn the_first_option_that_decides_is_the_cause() {
        let cause = |text: &str| match decide(text, &options()) {
            Decided::No(cause) => cause,
            other => panic!("{text}: {other:?}"),
        };
        let off = |name: &str| Some(Cause::IsOff(name.to_owned()));
        assert_eq!(
            cause("CONFIG_SMP && CONFIG_NUMA && CONFIG_PSI"),
            off("CONFIG_NUMA")
        );
        assert_eq!(cause("CONFIG_NUMA || CONFIG_PSI"), off("CONFIG_NUMA"));
        assert_eq!(
            cause("!CONFIG_SMP"),
            Some(Cause::IsOn("CONFIG_SMP".to_owned()))
        );
        assert_eq!(
            cause("CONFIG_HZ < 100"),
            Some(Cause::HasValue("CONFIG_HZ".to_owned()))
        );
        assert_eq!(cause("0"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_condition_is_decided(text in "(CONFIG_SMP|CONFIG_X|MODULE|defined|IS_ENABLED|[()!&|<>=0-9 \"é]){0,24}") {
            let once = decide(&text, &options());
            let turned = decide(&["!(", &text, ")"].concat(), &options());
            if once != Decided::Unknown {
                proptest::prop_assert_eq!(once.not(), turned);
            }
        }
    }
}
