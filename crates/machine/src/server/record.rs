//! What a server was at the first contact: its identity, and the drivers of its own kernel. A server that is another one
//! later would mix two machines in one series.

use std::fs;
use std::path::{Path, PathBuf};

use model::{Belongs, described, drift, drift_text};

use super::problem::ServerProblem;
use super::reach::Facts;
use crate::MachineError;
use crate::backend::Driver;

/// The name of lines with a driver.
const DRIVER: &str = "driver";
/// What a kernel under test decides: how many processors it uses, and whether it loads microcode.
const OF_KERNEL: [&str; 2] = ["host.processors", "host.microcode"];

/// A server's record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Record {
    /// What identifies it, by name.
    pub(super) fingerprint: Vec<(String, String)>,
    /// The drivers that its own kernel had loaded.
    pub(super) drivers: Vec<Driver>,
}

impl Record {
    /// Returns what a server is now; the agent described it.
    pub(super) fn of(facts: &Facts, report: &str) -> Self {
        let mut fingerprint = of_machine(report);
        fingerprint.push(("host.id".to_owned(), facts.get("machine_id").to_owned()));
        Self { fingerprint, drivers: facts.drivers().to_vec() }
    }

    /// Returns the file with a server's record.
    pub(super) fn file(home: &Path, name: &str) -> PathBuf {
        home.join("machines").join(name)
    }

    /// Returns the record that the lab keeps of a server; the first contact makes it. Later ones must find the same
    /// machine.
    pub(super) fn kept(self, path: &Path, name: &str) -> Result<Self, MachineError> {
        let Ok(text) = fs::read_to_string(path) else {
            let folder = path.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(folder).map_err(MachineError::io("create", folder))?;
            let part = folder.join(format!("{name}.part"));
            fs::write(&part, self.to_text()).map_err(MachineError::io("write", &part))?;
            fs::rename(&part, path).map_err(MachineError::io("write", path))?;
            return Ok(self);
        };
        let known = Self::read(&text);
        known.compare(&self.fingerprint, path, name)?;
        Ok(known)
    }

    /// Fails if another machine booted a kernel under test; the agent described it.
    pub(super) fn check(&self, report: &str, path: &Path, name: &str) -> Result<(), ServerProblem> {
        let mut now = of_machine(report);
        now.retain(|(name, _)| !OF_KERNEL.contains(&&**name));
        self.compare(&now, path, name)
    }

    fn compare(&self, now: &[(String, String)], path: &Path, name: &str) -> Result<(), ServerProblem> {
        match drift_text(name, &drift(&self.fingerprint, now)) {
            None => Ok(()),
            Some(changes) => Err(ServerProblem::Drifted { changes, record: path.display().to_string() }),
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

/// Returns what belongs to the machine.
fn of_machine(report: &str) -> Vec<(String, String)> {
    let of_machine = described(report).into_iter().filter(|(name, _)| Belongs::of(name) == Belongs::Machine);
    of_machine.map(|(name, value)| (name, model::plain(&value))).collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Facts, Record};
    use crate::backend::Driver;

    fn lines(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
    }

    #[test]
    fn first_contact_makes_the_record() {
        let home = tempfile::tempdir().unwrap();
        let file = Record::file(home.path(), "testbox");
        let driver = |needed_by: &str| Driver { name: "ext4".into(), needed_by: needed_by.into() };
        let first = Record {
            fingerprint: lines(&[("host.bios", "1.2")]),
            drivers: vec![driver("the root file system"), driver("")],
        };
        assert_eq!(first.clone().kept(&file, "testbox").unwrap(), first);
        let later = Record { drivers: Vec::new(), ..first.clone() };
        assert_eq!(later.kept(&file, "testbox").unwrap(), first, "drivers are those of the first contact");
        let other = Record { fingerprint: lines(&[("host.bios", "2")]), ..first };
        let error = other.kept(&file, "testbox").unwrap_err().to_string();
        assert!(error.starts_with("machine testbox changed: host.bios 1.2 -> 2\nhint: "), "{error}");
    }

    #[test]
    fn kernels_decide_their_processors_and_microcode() {
        let own = "boot.id=1\nhost.memory=1024 MiB\nhost.microcode=0x2\nhost.processors=2\n";
        let record = Record::of(&Facts::read("machine_id=12\n"), own);
        let check = |report: &str| record.check(report, Path::new("record"), "testbox");
        check("boot.id=2\nhost.memory=1024 MiB\nhost.microcode=0x1\nhost.processors=1\n").unwrap();
        let error = check("host.memory=512 MiB\n").unwrap_err().to_string();
        assert!(error.starts_with("machine testbox changed: host.memory 1024 MiB -> 512 MiB\n"), "{error}");
    }
}
