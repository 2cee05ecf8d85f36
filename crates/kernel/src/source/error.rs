//! What can go wrong between a source tree and a kernel built from it.

use std::path::PathBuf;

use model::Guilt;

/// Why a source did not become an image.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A program is missing.
    #[error("cannot build kernels: no `{program}` on this host; run `sudo apt-get install {package}`")]
    NoProgram {
        /// The program.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// A `git:` name without a tree.
    #[error("git:{0} needs a tree: name its directory with --tree FOLDER")]
    NoTree(String),
    /// Not a git repository, or one that git refuses.
    #[error("{} is not a git repository: {said}", folder.display())]
    NotARepository {
        /// The folder.
        folder: PathBuf,
        /// What git said.
        said: String,
    },
    /// A tree that is somewhere else and does not answer, or not with what was asked for.
    #[error("the tree {place} does not answer: {said}")]
    NoAnswer {
        /// Where it is.
        place: String,
        /// What git said.
        said: String,
    },
    /// Not a kernel's source.
    #[error("{what} is not a Linux source tree: no Kbuild at its top; name a kernel tree")]
    NotLinux {
        /// The folder or the revision.
        what: String,
    },
    /// A revision that is not there.
    #[error("`{revision}` is no commit of {}: see `git -C {} log --oneline`", folder.display(), folder.display())]
    UnknownRevision {
        /// As it was asked for.
        revision: String,
        /// The tree.
        folder: PathBuf,
    },
    /// GOOD and BAD are the same commit.
    #[error("{good} and {bad} are the same commit: no commits to search")]
    SameCommit {
        /// As it was asked for.
        good: String,
        /// As it was asked for.
        bad: String,
    },
    /// GOOD comes after BAD.
    #[error(
        "{good} comes after {bad}: the ends are swapped; name the older one first (it does not matter which is faster)"
    )]
    Swapped {
        /// As it was asked for.
        good: String,
        /// As it was asked for.
        bad: String,
    },
    /// GOOD is not an ancestor of BAD.
    #[error(
        "{good} is not an ancestor of {bad}; they parted at {base}: bisect {base} {bad}, and {base} {good} if {good} is the odd one"
    )]
    NotAncestor {
        /// As it was asked for.
        good: String,
        /// As it was asked for.
        bad: String,
        /// Their merge base.
        base: String,
    },
    /// GOOD and BAD have no history in common.
    #[error("{good} and {bad} have no history in common")]
    Unrelated {
        /// As it was asked for.
        good: String,
        /// As it was asked for.
        bad: String,
    },
    /// The history ends within the range.
    #[error("{} is a shallow clone and its history ends within this range: run `git -C {} fetch --unshallow`", folder.display(), folder.display())]
    Shallow {
        /// The tree.
        folder: PathBuf,
    },
    /// A commit that was there before.
    #[error("{commit} is no longer in {}: the tree was changed meanwhile; run the same command again", folder.display())]
    Gone {
        /// The commit.
        commit: String,
        /// The tree, or the workshop that borrows from it.
        folder: PathBuf,
    },
    /// Another compiler than before.
    #[error(
        "the compiler changed from {before} to {after}: run the same command again to build everything with the new one"
    )]
    CompilerChanged {
        /// What it was.
        before: String,
        /// What it is.
        after: String,
    },
    /// A patch that is none, or does not apply.
    #[error("{} does not apply to {what}: {said}", file.display())]
    Patch {
        /// The file.
        file: PathBuf,
        /// What it was to go on top of.
        what: String,
        /// What is wrong.
        said: String,
    },
    /// A range that is none.
    #[error("`{0}` is not a range of commits: expected OLDER..NEWER, for example v6.12..HEAD")]
    NoRange(String),
    /// A configuration that is not there.
    #[error("unknown kernel config `{name}`: use micro, small, or a file")]
    UnknownConfiguration {
        /// As it was asked for.
        name: String,
    },
    /// The kernel does not build: a result.
    #[error("{what} does not build: {first_error} (all of it: {})", log.display())]
    DoesNotBuild {
        /// The commit or the folder.
        what: String,
        /// The first error of the compiler or of make.
        first_error: String,
        /// What the build printed.
        log: PathBuf,
    },
    /// A program took too long.
    #[error("`{command}` did not end within {seconds} s: the host is too busy, or the limit too low")]
    Deadline {
        /// The program.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Program {
        /// The program.
        command: String,
        /// What it said.
        said: String,
    },
    /// Apt has no such source package.
    #[error("apt offers no source `{asked}`; {instead}")]
    NoSourcePackage {
        /// As it was asked for.
        asked: String,
        /// What there is.
        instead: String,
    },
    /// An archive that cannot be read.
    #[error("{what} is damaged: {said}; remove it and try again")]
    Archive {
        /// The package.
        what: String,
        /// What is wrong.
        said: String,
    },
}

impl SourceError {
    /// Returns who has to do something about it.
    #[must_use]
    pub fn guilt(&self) -> Guilt {
        match self {
            Self::Deadline { .. }
            | Self::Program { .. }
            | Self::Archive { .. }
            | Self::NoProgram { .. }
            | Self::NoAnswer { .. } => Guilt::Infra,
            _ => Guilt::User,
        }
    }
}
