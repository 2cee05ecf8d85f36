//! What a server was at the first contact: its identity, and the drivers of its own kernel. A
//! server that is another one later would mix two machines in one series.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use machine::{Driver, MachineError};
use model::{Belongs, described, drift, drift_text};
use subprocess::replace_file;

use crate::problem::ServerProblem;
use crate::remote::Facts;

/// The name of lines with a driver.
const DRIVER: &str = "driver";
/// The file with a server's trouble, and its first line.
const STATE: &str = "state";
const LOST: &str = "lost";
const QUARANTINED: &str = "quarantined";
/// What a kernel under test decides: how many processors it uses, and whether it loads microcode.
const OF_KERNEL: [&str; 2] = ["host.processors", "host.microcode"];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// What identifies it, by name.
    pub(crate) fingerprint: Vec<(String, String)>,
    /// The drivers that its own kernel had loaded.
    pub(crate) drivers: Vec<Driver>,
}

impl Record {
    /// Returns what a server is now; the agent described it.
    pub(crate) fn from_facts(facts: &Facts, report: &str) -> Self {
        let mut fingerprint = of_machine(report);
        fingerprint.push(("host.id".to_owned(), facts.get("machine_id").to_owned()));
        fingerprint.extend(
            facts
                .image()
                .or(facts.on_disk())
                .map(|image| ("host.image".to_owned(), image.to_owned())),
        );
        Self {
            fingerprint,
            drivers: facts.drivers().to_vec(),
        }
    }

    /// Returns the file with a server's record.
    pub(crate) fn file(home: &Path, name: &str) -> PathBuf {
        home.join("machines").join(name)
    }

    /// Returns the record that the lab keeps of a server; the first contact makes it. Later ones
    /// must find the same machine, which ends any trouble with it.
    pub(crate) fn confirm_or_create(self, path: &Path, name: &str) -> Result<Self, MachineError> {
        let known = match Self::load(path) {
            Some(known) => {
                known
                    .compare(&self.fingerprint, name)
                    .map_err(|problem| record_problem(problem, path))?;
                known
            }
            None => {
                self.write(path)?;
                self
            }
        };
        clear(path)?;
        Ok(known)
    }

    /// Returns the record in a file; `None` before the first contact.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        fs::read_to_string(path).ok().map(|text| Self::read(&text))
    }

    /// Makes this the record of a server, whatever it was before.
    pub(crate) fn accept(&self, path: &Path) -> Result<(), MachineError> {
        self.write(path)?;
        clear(path)
    }

    fn write(&self, path: &Path) -> Result<(), MachineError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder).map_err(MachineError::io("create", folder))?;
        let part = beside(path, "part");
        replace_file(path, &part, self.to_text()).map_err(MachineError::io("write", path))
    }

    /// Fails if another machine booted a kernel under test; the agent described it.
    pub(crate) fn check(&self, report: &str, name: &str) -> Result<(), ServerProblem> {
        let mut now = of_machine(report);
        now.retain(|(name, _)| !OF_KERNEL.contains(&&**name));
        self.compare(&now, name)
    }

    fn compare(&self, now: &[(String, String)], name: &str) -> Result<(), ServerProblem> {
        match self.changes(now, name) {
            None => Ok(()),
            Some(changes) => Err(ServerProblem::Drifted {
                name: name.to_owned(),
                changes,
            }),
        }
    }

    /// Says how a server differs from its record; `None` if it does not.
    pub(crate) fn changes(&self, now: &[(String, String)], name: &str) -> Option<String> {
        drift_text(name, &drift(&self.fingerprint, now))
    }

    fn to_text(&self) -> String {
        let pairs = self
            .fingerprint
            .iter()
            .map(|(name, value)| format!("{name}={value}\n"));
        let drivers = self
            .drivers
            .iter()
            .map(|driver| format!("{DRIVER}={} {}\n", driver.name, driver.needed_by));
        pairs.chain(drivers).collect()
    }

    fn read(text: &str) -> Self {
        let mut record = Self::default();
        for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
            if name == DRIVER {
                let (name, needed_by) = value.split_once(' ').unwrap_or((value, ""));
                record.drivers.push(Driver {
                    name: name.to_owned(),
                    needed_by: needed_by.to_owned(),
                });
            } else {
                record.fingerprint.push((name.to_owned(), value.to_owned()));
            }
        }
        record
    }
}

/// Why Marvin does not measure on a server, until that is mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerState {
    /// It did not come back; why. The next contact ends this.
    Lost(String),
    /// It is another machine than its record says; the difference. This ends when it is accepted,
    /// or undone.
    Quarantined(String),
}

/// Returns the state that a lab keeps of a server; `None` if it had no trouble at the last contact.
/// `home` is the lab's data directory.
#[must_use]
pub fn server_state(name: &str, home: &Path) -> Option<ServerState> {
    let text = fs::read_to_string(beside(&Record::file(home, name), STATE)).ok()?;
    let (word, why) = text.split_once('\n')?;
    let why = why.trim_end().to_owned();
    match word {
        LOST => Some(ServerState::Lost(why)),
        QUARANTINED => Some(ServerState::Quarantined(why)),
        _ => None,
    }
}

/// Keeps a problem that lasts beside the record in this file, and returns it.
pub(crate) fn record_problem(problem: ServerProblem, path: &Path) -> ServerProblem {
    let (word, why) = match &problem {
        ServerProblem::Lost { .. } => (LOST, problem.to_string()),
        ServerProblem::Drifted { changes, .. } => (QUARANTINED, changes.clone()),
        _ => return problem,
    };
    let part = beside(path, "part");
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        replace_file(&beside(path, STATE), &part, format!("{word}\n{why}\n"))
    };
    // The problem itself is what to report; on a full disk the list of machines does not have it.
    drop(write());
    problem
}

/// Ends the trouble with a server.
fn clear(path: &Path) -> Result<(), MachineError> {
    let state = beside(path, STATE);
    match fs::remove_file(&state) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(MachineError::io("remove", &state)(error))
        }
        _ => Ok(()),
    }
}

/// Returns a file beside a record: `testbox.state`.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}.{ending}"))
}

/// Returns what belongs to the machine.
pub(crate) fn of_machine(report: &str) -> Vec<(String, String)> {
    let of_machine = described(report)
        .into_iter()
        .filter(|(name, _)| Belongs::from_name(name) == Belongs::Machine);
    of_machine
        .map(|(name, value)| (name, model::sanitize_line(&value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Facts, Record, ServerProblem, ServerState, record_problem, server_state};
    use machine::Driver;

    fn lines(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect()
    }

    #[test]
    fn image_belongs_to_the_record_wherever_it_is() {
        let images_of = |facts: &str| {
            let pairs = Record::from_facts(&Facts::read(facts), "")
                .fingerprint
                .into_iter();
            pairs
                .filter(|(name, _)| name == "host.image")
                .map(|(_, id)| id)
                .collect::<Vec<_>>()
        };
        assert!(images_of("disk_image=\ncmdline=root=/dev/sda1\n").is_empty());
        assert_eq!(
            images_of("disk_image=\ncmdline=marvin.image=01 quiet\n"),
            ["01"]
        );
        assert_eq!(images_of("disk_image=23\ncmdline=root=/dev/sda1\n"), ["23"]);
    }

    #[test]
    fn first_contact_makes_the_record() {
        let home = tempfile::tempdir().unwrap();
        let file = Record::file(home.path(), "testbox");
        let driver = |needed_by: &str| Driver {
            name: "ext4".into(),
            needed_by: needed_by.into(),
        };
        let first = Record {
            fingerprint: lines(&[("host.bios", "1.2")]),
            drivers: vec![driver("the root file system"), driver("")],
        };
        assert_eq!(
            first.clone().confirm_or_create(&file, "testbox").unwrap(),
            first
        );
        let later = Record {
            drivers: Vec::new(),
            ..first.clone()
        };
        assert_eq!(
            later.confirm_or_create(&file, "testbox").unwrap(),
            first,
            "drivers are those of the first contact"
        );
        let other = Record {
            fingerprint: lines(&[("host.bios", "2")]),
            ..first
        };
        let error = other
            .confirm_or_create(&file, "testbox")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("machine testbox changed: host.bios 1.2 -> 2\nhint: "),
            "{error}"
        );
    }

    #[test]
    fn kernels_decide_their_processors_and_microcode() {
        let own = "boot.id=1\nhost.memory=1024 MiB\nhost.microcode=0x2\nhost.processors=2\n";
        let record = Record::from_facts(&Facts::read("machine_id=12\n"), own);
        let check = |report: &str| record.check(report, "testbox");
        check("boot.id=2\nhost.memory=1024 MiB\nhost.microcode=0x1\nhost.processors=1\n").unwrap();
        let error = check("host.memory=512 MiB\n").unwrap_err().to_string();
        assert!(
            error.starts_with("machine testbox changed: host.memory 1024 MiB -> 512 MiB\n"),
            "{error}"
        );
    }

    #[test]
    fn trouble_with_a_server_is_kept() {
        let home = tempfile::tempdir().unwrap();
        let file = Record::file(home.path(), "testbox");
        let state = || server_state("testbox", home.path());
        let record = |bios: &str| Record {
            fingerprint: lines(&[("host.bios", bios)]),
            drivers: Vec::new(),
        };
        let lost = ServerProblem::Lost {
            name: "testbox".into(),
            stage: "a job".into(),
            seconds: 9,
            power: "",
        };
        let text = record_problem(lost, &file).to_string();
        assert_eq!(state(), Some(ServerState::Lost(text)));
        record("1").confirm_or_create(&file, "testbox").unwrap();
        assert_eq!(state(), None, "it answered");
        let changed = ServerState::Quarantined("machine testbox changed: host.bios 1 -> 2".into());
        record("2").confirm_or_create(&file, "testbox").unwrap_err();
        assert_eq!(state(), Some(changed.clone()));
        record("1").confirm_or_create(&file, "testbox").unwrap();
        assert_eq!(state(), None, "the change is undone");
        record("2").confirm_or_create(&file, "testbox").unwrap_err();
        record("2").accept(&file).unwrap();
        assert_eq!(state(), None, "the change is accepted");
        record("2").confirm_or_create(&file, "testbox").unwrap();
        let unreachable = ServerProblem::Unreachable {
            name: "testbox".into(),
            answer: String::new(),
        };
        record_problem(unreachable, &file);
        assert_eq!(state(), None, "a server that is off is no trouble");
    }
}
