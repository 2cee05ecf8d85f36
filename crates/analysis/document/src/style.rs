//! The styles of tables: Marvin's, and those that readers of kernel mailing lists know.

use std::fmt;
use std::str::FromStr;

/// The style of tables. The numbers are the same in all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// As MMTests wrote them in 2013: `Ops name`, whole percents.
    Y2013,
    /// As current MMTests writes them: `Amean`, stars.
    Mmtests,
    /// Marvin's: units, and a dash for a missing value.
    #[default]
    Marvin,
}

/// The text that is no style.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no style is called `{0}`: there are `2013`, `mmtests` and `marvin`")]
pub struct StyleError(String);

impl Style {
    /// All styles, in the order of help.
    pub const ALL: [Self; 3] = [Self::Y2013, Self::Mmtests, Self::Marvin];
}

impl fmt::Display for Style {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Y2013 => "2013",
            Self::Mmtests => "mmtests",
            Self::Marvin => "marvin",
        })
    }
}

impl FromStr for Style {
    type Err = StyleError;

    fn from_str(word: &str) -> Result<Self, StyleError> {
        Self::ALL
            .into_iter()
            .find(|style| style.to_string() == word)
            .ok_or_else(|| StyleError(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use crate::Style;

    #[test]
    fn a_style_and_its_word_are_one() {
        for style in Style::ALL {
            assert_eq!(style.to_string().parse(), Ok(style));
        }
        let error = "mmtest".parse::<Style>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no style is called `mmtest`: there are `2013`, `mmtests` and `marvin`"
        );
    }
}
