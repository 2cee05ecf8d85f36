//! The modules of a guest config: a directory of files, and a list that says how to load them.

use std::fs;

/// Where modules lie.
pub const FOLDER: &str = "/modules";
/// The list: a line for each module, in the order of loading.
pub const LIST: &str = "/modules/load";
/// Why modules could not be loaded; `marvin-modload` writes it.
pub const FAILED: &str = "/modules/failed";

/// One line of the list: `00-zram.ko must num_devices=1`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModuleLine<'a> {
    /// The file within the folder.
    pub file: &'a str,
    /// Whether the workloads need it.
    pub must: bool,
    /// Its parameters.
    pub parameters: &'a str,
}

impl<'a> ModuleLine<'a> {
    /// Parses a line; `None` if it is malformed.
    #[must_use]
    pub fn parse(line: &'a str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let (file, need) = (words.next()?, words.next()?);
        let must = match need {
            "must" => true,
            "may" => false,
            _ => return None,
        };
        Some(Self {
            file,
            must,
            parameters: words.next().unwrap_or_default(),
        })
    }

    /// Returns the module's name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        let name = self
            .file
            .split_once('-')
            .map_or(self.file, |(_, name)| name);
        name.strip_suffix(".ko").unwrap_or(name)
    }
}

/// Returns why a module that the workloads need could not be loaded; `None` if all are loaded.
#[must_use]
pub fn failure() -> Option<String> {
    fs::read_to_string(FAILED).ok()
}

#[cfg(test)]
mod tests {
    use super::ModuleLine;

    #[test]
    fn lines_are_read() {
        let line = ModuleLine::parse("03-scsi_debug.ko must delay=0 dev_size_mb=64").unwrap();
        assert_eq!(
            (line.name(), line.must, line.parameters),
            ("scsi_debug", true, "delay=0 dev_size_mb=64")
        );
        assert_eq!(
            ModuleLine::parse("00-lzo.ko may").map(|line| (line.must, line.parameters)),
            Some((false, ""))
        );
        assert_eq!(
            (
                ModuleLine::parse("00-lzo.ko"),
                ModuleLine::parse("a.ko perhaps")
            ),
            (None, None)
        );
    }
}
