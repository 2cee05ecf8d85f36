//! Identifiers: hexadecimal, typed, printed with a prefix (`run_7f3a…`). The callers create them.

use std::fmt;
use std::str::FromStr;

/// A text that is no identifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {noun} id: expected hexadecimal digits, with or without `{noun}_`")]
pub struct IdError {
    noun: &'static str,
    text: String,
}

/// Returns bytes, such as a digest, as lower-case hexadecimal digits, two a byte.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

macro_rules! id {
    ($name:ident, $noun:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The prefix before the underscore.
            pub const NOUN: &'static str = $noun;

            /// Makes an id from lower-case hexadecimal digits, as hash functions print them.
            ///
            /// # Errors
            /// If `hex` is empty or holds anything but hexadecimal digits.
            pub fn from_hex(hex: &str) -> Result<Self, IdError> {
                let fine = !hex.is_empty()
                    && hex.len() <= 64
                    && hex.bytes().all(|b| b.is_ascii_hexdigit());
                if fine {
                    Ok(Self(hex.to_ascii_lowercase()))
                } else {
                    Err(IdError {
                        noun: $noun,
                        text: hex.to_owned(),
                    })
                }
            }

            /// Returns the digits without the prefix.
            #[must_use]
            pub fn hex(&self) -> &str {
                &self.0
            }

            /// Returns the first twelve digits with the prefix: enough for people.
            #[must_use]
            pub fn short(&self) -> String {
                format!("{}_{}", $noun, &self.0[..self.0.len().min(12)])
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}_{}", $noun, self.0)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            /// Reads an id or the beginning of one, with or without its prefix.
            fn from_str(text: &str) -> Result<Self, IdError> {
                let hex = text.strip_prefix(concat!($noun, "_")).unwrap_or(text);
                Self::from_hex(hex).map_err(|_| IdError {
                    noun: $noun,
                    text: text.to_owned(),
                })
            }
        }
    };
}

id!(
    BuildId,
    "build",
    "Names a build: the hash of its image and of the modules it uses."
);
id!(
    MachineId,
    "machine",
    "Names a machine: the hash of everything in its fingerprint."
);
id!(
    RunId,
    "run",
    "Names a run: one boot of one build on one machine for one suite and one seed."
);

#[cfg(test)]
mod tests {
    use super::{BuildId, RunId};

    #[test]
    fn id_is_read_with_or_without_its_prefix() {
        let id = RunId::from_hex("7F3A00112233445566").unwrap();
        assert_eq!(id.to_string(), "run_7f3a00112233445566");
        assert_eq!(id.short(), "run_7f3a00112233");
        assert_eq!("run_7f3a00112233445566".parse(), Ok(id.clone()));
        assert_eq!("7f3a00112233445566".parse(), Ok(id));
    }

    #[test]
    fn other_words_and_other_characters_are_refused() {
        let error = "build_xyz".parse::<BuildId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`build_xyz` is not a build id: expected hexadecimal digits, with or without `build_`"
        );
        assert!("run_00".parse::<BuildId>().is_err());
        assert!(BuildId::from_hex("").is_err());
    }
}
