//! How one kernel is built otherwise than the settings say: what stands behind its name, as in
//! `git:HEAD@config:MEMCG=y,NUMA=n@cc:clang-14@make:KCFLAGS=-O3`.
//!
//! This module only parses; the `kernel` crate knows configs and compilers.

use std::fmt;

use crate::{KernelNameError, MakeArgument};

/// What begins a change, with the marker of its kind.
const CONFIG: &str = "@config:";
const CC: &str = "@cc:";
const MAKE: &str = "@make:";

/// Changes to the build of one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildChanges {
    /// Kernel configs, fragments and single options, on top of the config of the settings.
    pub config: Vec<String>,
    /// The compiler, instead of that of the settings.
    pub cc: Option<String>,
    /// Variables for make, after those of the settings.
    pub make_args: Vec<MakeArgument>,
}

impl BuildChanges {
    /// Splits a kernel's name from its changes; `None` if it has none.
    ///
    /// # Errors
    /// If a change is empty or no argument for make.
    pub fn split(text: &str) -> Result<Option<(&str, Self)>, KernelNameError> {
        let Some(start) = first_marker(text) else {
            return Ok(None);
        };
        let mut changes = Self::default();
        let mut rest = &text[start..];
        while !rest.is_empty() {
            let marker = [CONFIG, CC, MAKE]
                .into_iter()
                .find(|marker| rest.starts_with(marker))
                .unwrap_or(CONFIG);
            let end = first_marker(&rest[1..]).map_or(rest.len(), |next| next + 1);
            let change = &rest[marker.len()..end];
            changes
                .add(marker, change)
                .map_err(|detail| KernelNameError::Changes {
                    name: text.to_owned(),
                    detail,
                })?;
            rest = &rest[end..];
        }
        Ok(Some((&text[..start], changes)))
    }

    fn add(&mut self, marker: &str, change: &str) -> Result<(), String> {
        if change.is_empty() || change.chars().any(char::is_control) {
            return Err(format!("`{marker}` needs a value of one line"));
        }
        match marker {
            CC => self.cc = Some(change.to_owned()),
            MAKE => self.make_args.push(
                change
                    .parse()
                    .map_err(|error: crate::MakeArgumentError| error.to_string())?,
            ),
            _ => {
                for part in change.split(',') {
                    if part.is_empty() {
                        return Err(format!("`{marker}` has an empty option"));
                    }
                    self.config.push(part.to_owned());
                }
            }
        }
        Ok(())
    }
}

/// Returns where the first change begins.
fn first_marker(text: &str) -> Option<usize> {
    [CONFIG, CC, MAKE]
        .into_iter()
        .filter_map(|marker| text.find(marker))
        .min()
}

impl fmt::Display for BuildChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.config.is_empty() {
            write!(f, "{CONFIG}{}", self.config.join(","))?;
        }
        if let Some(cc) = &self.cc {
            write!(f, "{CC}{cc}")?;
        }
        for argument in &self.make_args {
            write!(f, "{MAKE}{}", argument.word())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::BuildChanges;
    use crate::KernelName;

    #[test]
    fn changes_stand_behind_the_name() {
        let text = "git:HEAD@config:memcg=y,NUMA=n@cc:clang-14@make:KCFLAGS=-O3 -g@make:V=1";
        let (name, changes) = BuildChanges::split(text).unwrap().unwrap();
        assert_eq!(name, "git:HEAD");
        assert_eq!(changes.config, ["memcg=y", "NUMA=n"]);
        assert_eq!(changes.cc.as_deref(), Some("clang-14"));
        assert_eq!(changes.make_args.len(), 2);
        assert_eq!(format!("{name}{changes}"), text);
        assert_eq!(BuildChanges::split("git:HEAD@{1}").unwrap(), None);
        assert_eq!(BuildChanges::split("deb:sid@20260101/6.12").unwrap(), None);
    }

    #[test]
    fn wrong_changes_are_errors() {
        let error = |text: &str| text.parse::<KernelName>().unwrap_err().to_string();
        assert_eq!(
            error("git:HEAD@config:"),
            "cannot build `git:HEAD@config:` that way: `@config:` needs a value of one line"
        );
        assert_eq!(
            error("git:HEAD@config:A=y,"),
            "cannot build `git:HEAD@config:A=y,` that way: `@config:` has an empty option"
        );
        assert_eq!(
            error("git:HEAD@make:vmlinux"),
            "cannot build `git:HEAD@make:vmlinux` that way: `vmlinux` is no argument for make: expected VARIABLE=VALUE, such as KCFLAGS=-O3; Marvin chooses make's targets and options"
        );
        assert_eq!(
            error("deb:6.12@config:A=y"),
            "`deb:6.12@config:A=y` is built already: @config:, @cc: and @make: are for kernels that Marvin builds (git:, patch:, tree:, deb-src:, kernel.org:)"
        );
        assert!(error("git:@config:A=y").contains("needs a revision"));
    }
}
