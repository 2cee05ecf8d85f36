//! Who creates processes, and which programs those execute, by the kernel's records of forks and
//! of new names (include/uapi/linux/perf_event.h: `PERF_RECORD_FORK`, `PERF_RECORD_COMM`).

use std::collections::{BTreeMap, BTreeSet};

use explain::facts::{Created, Started};

use crate::rounds::Process;

/// Pairs of creator and program that are counted.
const PAIRS_MAX: usize = 256;
/// Processes whose creators and names are kept.
const PROCESSES_MAX: usize = 65_536;
/// Letters of a command line that are kept.
const COMMAND: usize = 100;

/// A creator, by its name or, where no record has it, by its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Name(String),
    Number(u32),
}

/// What the program's processes created.
#[derive(Debug, Default)]
pub(crate) struct Creations {
    /// The processes of the program.
    pub(crate) processes: BTreeSet<u32>,
    pub(crate) created: Created,
    creators: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
    /// By program, which is empty for the creation itself, and creator.
    counts: BTreeMap<(String, By), Counted>,
    /// Rounds so far.
    rounds: u64,
}

/// How often a program was started, and the first and the last round in which it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    count: u64,
    first: u64,
    last: u64,
}

impl Creations {
    /// Begins with the processes that are there.
    pub(crate) fn of(processes: BTreeSet<u32>) -> Self {
        Self {
            processes,
            ..Self::default()
        }
    }

    /// Begins with what the next look at the records has.
    pub(crate) fn begin_round(&mut self) {
        self.rounds += 1;
    }

    /// Adds the processes that processes of the program created, as creator and created; a thread
    /// has its creator's number. Others use the host, too: theirs do not count. Each processor has
    /// a buffer, so that a process may be read before its creator.
    pub(crate) fn add_forks(&mut self, mut forks: Vec<(u32, u32)>) {
        loop {
            let before = forks.len();
            forks.retain(|(creator, process)| {
                let is_own = self.processes.contains(creator);
                if is_own && creator == process {
                    self.created.threads += 1;
                } else if is_own {
                    self.created.processes += 1;
                    self.add(*creator, *process);
                }
                !is_own
            });
            if forks.len() == before {
                break;
            }
        }
        // A number of the program's that is now another's.
        for (_, process) in forks {
            self.processes.remove(&process);
        }
    }

    fn add(&mut self, creator: u32, process: u32) {
        self.processes.insert(process);
        self.names.remove(&process);
        if self.creators.len() < PROCESSES_MAX {
            self.creators.insert(process, creator);
            // Until it executes a program it has the name of its creator.
            if let Some(name) = self.names.get(&creator).cloned() {
                self.names.insert(process, name);
            }
        }
        self.count(String::new(), creator);
    }

    /// Adds a program that a process executed, by its name.
    pub(crate) fn add_program(&mut self, process: u32, name: String) {
        if !self.processes.contains(&process) {
            return;
        }
        if let Some(creator) = self.creators.get(&process) {
            self.count(name.clone(), *creator);
        }
        if self.names.len() < PROCESSES_MAX {
            self.names.insert(process, name);
        }
    }

    /// Returns the name of the program that a process executed.
    pub(crate) fn program(&self, process: u32) -> Option<&str> {
        self.names.get(&process).map(String::as_str)
    }

    fn count(&mut self, program: String, creator: u32) {
        let named = self.names.get(&creator).cloned();
        let key = (program, named.map_or(By::Number(creator), By::Name));
        if self.counts.len() < PAIRS_MAX || self.counts.contains_key(&key) {
            let counted = self.counts.entry(key).or_insert(Counted {
                count: 0,
                first: self.rounds,
                last: self.rounds,
            });
            counted.count += 1;
            counted.last = self.rounds;
        }
    }

    /// Returns who started what how often, most often first; `processes` are those that rounds saw.
    pub(crate) fn started(&self, processes: &BTreeMap<u32, Process>) -> Vec<Started> {
        let command_of = |name: &str| {
            let named = processes.values().filter(|process| process.name() == name);
            let longest = named.max_by_key(|process| process.reaped());
            longest.map_or_else(String::new, |process| shorten(&process.command))
        };
        let mut all: BTreeMap<(String, String), Started> = BTreeMap::new();
        for ((program, by), counted) in &self.counts {
            let (by, by_command) = match by {
                By::Name(name) => (name.clone(), command_of(name)),
                By::Number(number) => match processes.get(number) {
                    Some(process) => (process.name().to_owned(), shorten(&process.command)),
                    None => continue,
                },
            };
            let started = all
                .entry((program.clone(), by.clone()))
                .or_insert_with(|| Started {
                    command: command_of(program),
                    program: program.clone(),
                    by,
                    by_command,
                    count: 0,
                    span: 0.0,
                });
            let rounds = (counted.last - counted.first) as f64;
            started.count += counted.count;
            started.span = started.span.max(rounds / self.rounds.max(1) as f64);
        }
        let mut all: Vec<Started> = all.into_values().collect();
        all.sort_by_key(|started| std::cmp::Reverse(started.count));
        all
    }
}

/// Shortens a command line, and leaves out one that may have a secret.
pub(crate) fn shorten(command: &str) -> String {
    let lower = command.to_lowercase();
    let secrets = ["passw", "token", "secret", "credential", "key="];
    if secrets.iter().any(|secret| lower.contains(secret)) {
        return command.split(' ').next().unwrap_or_default().to_owned();
    }
    if command.chars().count() <= COMMAND {
        return command.to_owned();
    }
    let begin: String = command.chars().take(COMMAND).collect();
    format!("{begin}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_forks_are_counted() {
        let mut creations = Creations::of(BTreeSet::from([10, 11]));
        // The creator of 13 is read after it; 1 and 2 are others', and 2 creates a process with an
        // old number of the program's.
        let forks = vec![(12, 13), (10, 12), (10, 10), (1, 99), (1, 1), (2, 11)];
        creations.add_forks(forks);
        assert_eq!(
            creations.created,
            Created {
                processes: 2,
                threads: 1
            }
        );
        assert_eq!(creations.processes, BTreeSet::from([10, 12, 13]));
    }

    #[test]
    fn starters_are_named_with_programs() {
        let mut creations = Creations::of(BTreeSet::from([10, 11]));
        for number in 0..3 {
            creations.begin_round();
            let [shell, tool] = [20 + 2 * number, 21 + 2 * number];
            creations.add_forks(vec![(shell, tool), (10, shell)]);
            creations.add_program(shell, "sh".into());
            creations.add_program(tool, "mkdir".into());
        }
        creations.add_program(99, "other".into());
        creations.begin_round();
        let mut make = Process::named("make");
        make.command = "make all".into();
        let started = creations.started(&BTreeMap::from([(10, make)]));
        let programs: Vec<(&str, &str, u64)> = started
            .iter()
            .map(|one| (&*one.program, &*one.by, one.count))
            .collect();
        assert!(programs.contains(&("sh", "make", 3)), "{programs:?}");
        assert!(started.iter().all(|one| one.span.total_cmp(&0.5).is_eq()));
        assert!(!programs.iter().any(|(program, ..)| *program == "other"));
    }

    #[test]
    fn secrets_of_command_lines_are_hidden() {
        assert_eq!(shorten("curl --token 4711"), "curl");
        assert_eq!(shorten("mkdir pip.lock"), "mkdir pip.lock");
        assert_eq!(shorten(&"x".repeat(200)).chars().count(), COMMAND + 1);
    }
}
