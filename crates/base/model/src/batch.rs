//! The batch system of a site, which gives jobs a host: Slurm, or another one by a program.
//! `config` parses its settings from `marvin.toml`; `service` speaks to it.

/// How jobs go to the batch system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchSettings {
    /// The batch system that runs the jobs.
    pub system: BatchKind,
    /// The most jobs that wait or run there at once.
    pub jobs_max: usize,
    /// The data directory on its hosts; `%N` means the host's name there. `None` for the directory
    /// of who sends the job.
    pub home: Option<String>,
    /// Marvin on its hosts; `None` for the program that sends the job.
    pub program: Option<String>,
}

/// A kind of batch system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchKind {
    /// Slurm, by its commands.
    Slurm(SlurmSettings),
    /// Another one, by a program with its arguments: `PROGRAM… submit|list|cancel`.
    Command(Vec<String>),
}

/// Options of sbatch for each job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlurmSettings {
    /// Options of sbatch(1) for all jobs.
    pub options: Vec<String>,
    /// Further options for jobs of the exact machine.
    pub exact: Vec<String>,
}
