//! What a server was at the first contact: its identity, and the drivers of its own kernel. A server that is another one
//! later would mix two machines in one series.

use std::fs;
use std::path::Path;

use super::problem::ServerProblem;
use super::reach::Facts;
use crate::MachineError;
use crate::backend::Driver;

/// The name of lines with a driver.
const DRIVER: &str = "driver";

/// A server's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// What identifies it, by name.
    pub(super) fingerprint: Vec<(String, String)>,
    /// The drivers that its own kernel had loaded.
    pub(super) drivers: Vec<Driver>,
}

impl Record {
    /// Returns what a server is now.
    pub(super) fn of(facts: &Facts) -> Self {
        Self { fingerprint: facts.fingerprint(), drivers: facts.drivers().to_vec() }
    }

    /// Returns the record that the lab keeps of a server; the first contact makes it. Later ones must find the same
    /// machine.
    pub(super) fn kept(self, home: &Path, name: &str) -> Result<Self, MachineError> {
        let folder = home.join("machines");
        let path = folder.join(name);
        let Ok(text) = fs::read_to_string(&path) else {
            fs::create_dir_all(&folder).map_err(MachineError::io("create", &folder))?;
            let part = folder.join(format!("{name}.part"));
            fs::write(&part, self.to_text()).map_err(MachineError::io("write", &part))?;
            fs::rename(&part, &path).map_err(MachineError::io("write", &path))?;
            return Ok(self);
        };
        let known = Self::read(&text);
        let drift = model::drift(&known.fingerprint, &self.fingerprint);
        match model::drift_text(name, &drift) {
            None => Ok(known),
            Some(changes) => Err(ServerProblem::Drifted { changes, record: path.display().to_string() }.into()),
        }
    }

    fn to_text(&self) -> String {
        let pairs = self.fingerprint.iter().map(|(name, value)| format!("{name}={value}\n"));
        let drivers = self.drivers.iter().map(|driver| format!("{DRIVER}={} {}\n", driver.name, driver.needed_by));
        pairs.chain(drivers).collect()
    }

    fn read(text: &str) -> Self {
        let mut record = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if name == DRIVER {
                let (name, needed_by) = value.split_once(' ').unwrap_or((value, ""));
                record.drivers.push(Driver { name: name.to_owned(), needed_by: needed_by.to_owned() });
            } else {
                record.fingerprint.push((name.to_owned(), value.to_owned()));
            }
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::Record;
    use crate::backend::Driver;

    fn lines(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn first_contact_makes_the_record() {
        let home = tempfile::tempdir().unwrap();
        let driver = |needed_by: &str| Driver { name: "ext4".into(), needed_by: needed_by.into() };
        let first = Record {
            fingerprint: lines(&[("host.bios", "1.2")]),
            drivers: vec![driver("the root file system"), driver("")],
        };
        assert_eq!(first.clone().kept(home.path(), "testbox").unwrap(), first);
        let later = Record { drivers: Vec::new(), ..first.clone() };
        assert_eq!(later.kept(home.path(), "testbox").unwrap(), first, "drivers are those of the first contact");
        let other = Record { fingerprint: lines(&[("host.bios", "2")]), ..first };
        let error = other.kept(home.path(), "testbox").unwrap_err().to_string();
        assert!(error.starts_with("machine testbox changed: host.bios 1.2 -> 2\nhint: "), "{error}");
    }
}
