//! Kernel configs: Marvin's fragments and the user's own, and the options that the kernel's Kconfig
//! changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::SourceError;
use crate::KernelError;
use crate::folder::sha256;

const MICRO: &str = include_str!("../../configs/micro.fragment");
const SMP: &str = include_str!("../../configs/smp.fragment");
const SMALL: &str = include_str!("../../configs/small.fragment");
const BYTES_MAX: u64 = 4 << 20;
/// The first line of a complete kernel config.
const WHOLE: &str = "Automatically generated file; DO NOT EDIT.";

/// The basis of a kernel config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// Lines on top of `make tinyconfig`.
    Tiny,
    /// A complete kernel config.
    Whole,
}

/// A kernel config to build with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    name: String,
    pub(crate) text: String,
    pub(crate) base: Base,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            name: "micro".into(),
            text: MICRO.into(),
            base: Base::Tiny,
        }
    }
}

impl Configuration {
    /// Returns the kernel config with that name, micro, smp or small, or the one in a file: a
    /// complete `.config`, or else lines on top of `make tinyconfig`.
    ///
    /// # Errors
    /// If there is none, or the file is no kernel config.
    pub fn named(name: &str) -> Result<Self, KernelError> {
        let built_in = match name {
            "micro" => Some(MICRO.to_owned()),
            "smp" => Some(format!("{MICRO}{SMP}")),
            "small" => Some(SMALL.to_owned()),
            _ => None,
        };
        if let Some(text) = built_in {
            return Ok(Self {
                name: name.to_owned(),
                text,
                base: Base::Tiny,
            });
        }
        let unknown = || SourceError::UnknownConfiguration {
            name: name.to_owned(),
        };
        let file = Path::new(name);
        let found = fs::metadata(file)
            .ok()
            .filter(|found| found.is_file() && found.len() <= BYTES_MAX);
        found.ok_or_else(unknown)?;
        let text =
            String::from_utf8_lossy(&fs::read(file).map_err(KernelError::io(file))?).into_owned();
        if options(&text).is_empty() {
            return Err(unknown().into());
        }
        let base = if text.lines().take(10).any(|line| line.contains(WHOLE)) {
            Base::Whole
        } else {
            Base::Tiny
        };
        let name = file.file_name().map_or_else(
            || name.to_owned(),
            |name| name.to_string_lossy().into_owned(),
        );
        Ok(Self { name, text, base })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a text that identifies it: equal lines are an equal config.
    #[must_use]
    pub fn identity(&self) -> String {
        let kind = if self.base == Base::Tiny {
            "tiny"
        } else {
            "whole"
        };
        let lines: String = options(&self.text)
            .iter()
            .map(|(option, value)| format!("{option}={value}\n"))
            .collect();
        sha256(format!("{kind}\n{lines}").as_bytes())
    }

    /// Returns the requested options that differ in the result, each as `CONFIG_X=y`.
    pub(crate) fn not_kept(&self, resolved: &str) -> Vec<String> {
        let found = options(resolved);
        options(&self.text)
            .iter()
            .filter(|(option, value)| {
                found.get(*option).map_or("n", String::as_str) != value.as_str()
            })
            .map(|(option, value)| format!("{option}={value}"))
            .collect()
    }
}

/// Parses the options of a kernel config; the last line about an option counts, and one that is not
/// set is `n`.
#[must_use]
pub fn options(text: &str) -> BTreeMap<String, String> {
    text.lines()
        .filter_map(|line: &str| {
            let line = line.trim();
            if let Some(rest) = line.strip_prefix("# ") {
                let name = rest.strip_suffix(" is not set")?;
                return name
                    .starts_with("CONFIG_")
                    .then(|| (name.to_owned(), "n".to_owned()));
            }
            let (name, value) = line.split_once('=')?;
            name.starts_with("CONFIG_")
                .then(|| (name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Base, Configuration, options};

    #[test]
    fn every_line_of_ours_has_its_purpose() {
        for name in ["micro", "smp", "small"] {
            let configuration = Configuration::named(name).unwrap();
            let mut purpose = "";
            for line in configuration.text.lines() {
                if let Some(text) = line.strip_prefix("# ") {
                    purpose = text;
                } else {
                    assert!(
                        line.starts_with("CONFIG_") && purpose.ends_with('.'),
                        "{line}"
                    );
                }
            }
            assert!(configuration.not_kept(&configuration.text).is_empty());
            assert!(
                configuration.text.contains("CONFIG_X86_IOPL_IOPERM=y\n"),
                "the agent needs its ports"
            );
        }
    }

    #[test]
    fn dropped_config_options_are_listed() {
        let wanted = Configuration {
            text: "CONFIG_A=y\nCONFIG_B=n\nCONFIG_C=y\n".into(),
            ..Configuration::default()
        };
        let resolved = "CONFIG_A=y\n# CONFIG_C is not set\nCONFIG_B=y\n";
        assert_eq!(wanted.not_kept(resolved), ["CONFIG_B=n", "CONFIG_C=y"]);
        assert!(
            wanted.not_kept("CONFIG_A=y\nCONFIG_C=y\n").is_empty(),
            "what is absent is not set"
        );
    }

    #[test]
    fn a_file_is_whole_or_lines_on_top() {
        let home = tempfile::tempdir().unwrap();
        let named = |text: &str| {
            let file = home.path().join("my.config");
            std::fs::write(&file, text).unwrap();
            Configuration::named(file.to_str().unwrap())
        };
        let lines = named("CONFIG_A=y\n").unwrap();
        assert_eq!((lines.name(), lines.base), ("my.config", Base::Tiny));
        let whole = named("#\n# Automatically generated file; DO NOT EDIT.\nCONFIG_A=y\n").unwrap();
        assert_eq!(whole.base, Base::Whole);
        assert_ne!(lines.identity(), whole.identity());
        assert_eq!(
            named("# words\nCONFIG_A=y\n").unwrap().identity(),
            lines.identity()
        );
        assert!(named("no options").is_err());
        insta::assert_snapshot!(Configuration::named("mikro").unwrap_err(), @"unknown kernel config `mikro`: use micro, smp, small, or a file");
    }

    #[test]
    fn the_last_line_counts() {
        assert_eq!(
            options("CONFIG_A=y\n# CONFIG_A is not set\n# CONFIG\n")["CONFIG_A"],
            "n"
        );
    }
}
