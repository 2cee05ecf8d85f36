//! Errors between a source tree and a kernel built from it.

use std::path::PathBuf;

use model::Fault;

/// Why a source did not become an image.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A program is missing.
    #[error(
        "cannot build kernels: no `{program}` on this host; run `sudo apt-get install {package}`"
    )]
    NoProgram {
        program: String,
        /// The package that contains it.
        package: String,
    },
    /// Programs or headers of builds are missing.
    #[error("cannot build kernels: this host lacks {what}\nhint: {install}")]
    Needs {
        what: String,
        /// One command that installs all of it.
        install: String,
    },
    /// The tree or the revision in it is not usable.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A remote tree does not answer, or not properly.
    #[error("the tree {place} does not answer: {detail}")]
    NoAnswer { place: String, detail: String },
    /// The range of commits is not searchable.
    #[error(transparent)]
    Range(#[from] RangeError),
    #[error(
        "the compiler changed from {before} to {after}: run the same command again to build everything with the new one"
    )]
    CompilerChanged { before: String, after: String },
    /// The patch is invalid or does not apply.
    #[error("{} does not apply to {what}: {detail}", file.display())]
    Patch {
        file: PathBuf,
        /// The revision to patch.
        what: String,
        detail: String,
    },
    /// There is no such kernel config.
    #[error(
        "unknown kernel config `{name}`: use default, tiny, smp, small, defconfig, running, or a file, and +FRAGMENT or +OPTION=VALUE"
    )]
    UnknownConfiguration { name: String },
    /// A single option that is none.
    #[error(
        "`{0}` is no option of a kernel config: expected OPTION=VALUE, such as MEMCG=y, NR_CPUS=4 or LOCALVERSION=\"-x\""
    )]
    NoOption(String),
    /// The kernel that runs has its config nowhere.
    #[error(
        "this host has no config of the kernel {release} that runs: neither /proc/config.gz nor /boot/config-{release}; name a file with --config FILE"
    )]
    NoRunningConfiguration { release: String },
    /// A fragment that the source does not have.
    #[error(
        "cannot build {what} with the config fragment {name}: no such file here, and none in kernel/configs and arch/{architecture}/configs of the source"
    )]
    NoFragment {
        /// The commit or the directory.
        what: String,
        name: String,
        architecture: String,
    },
    /// A complete config for another architecture.
    #[error(
        "{name} is a kernel config for {own}, and this build is for {architecture}: name one for {architecture}, or build with --make-args ARCH={own}"
    )]
    OtherArchitecture {
        name: String,
        own: String,
        architecture: String,
    },
    /// No machine boots kernels of this architecture.
    #[error(
        "no machine here boots a kernel for {0}: Marvin's machines are x86-64; `marvin build` only builds it"
    )]
    NoMachine(String),
    /// A directory that is no build directory.
    #[error(
        "{} is no build directory of a kernel: no .config in it; name the directory of make's O=, or of a tree that was built",
        folder.display()
    )]
    NoBuildDir { folder: PathBuf },
    /// A compiler that does not exist.
    #[error("cannot find the compiler `{name}`: {instead}")]
    UnknownCompiler { name: String, instead: String },
    /// A compiler that cannot be used.
    #[error("cannot use the compiler `{name}`: {why}")]
    Compiler { name: String, why: String },
    /// Programs of a toolchain are missing.
    #[error("cannot build with {toolchain}: no {missing} on this host; {fix}")]
    NoTools {
        /// The make argument that needs them.
        toolchain: String,
        missing: String,
        fix: String,
    },
    /// The kernel config has rust, and this host cannot build it.
    #[error("cannot build {what} with CONFIG_RUST=y: {detail}")]
    NoRust { what: String, detail: String },
    /// The kernel does not build: a result.
    #[error("{what} does not build: {first_error} (all of it: {})", log.display())]
    DoesNotBuild {
        /// The commit or the directory.
        what: String,
        /// The first error of the compiler or of make.
        first_error: String,
        log: PathBuf,
    },
    /// A program exceeded its deadline.
    #[error(
        "`{command}` did not end within {seconds} s: the host is too busy, or the limit too low"
    )]
    Deadline { command: String, seconds: u64 },
    #[error("`{command}` failed: {detail}")]
    Program { command: String, detail: String },
    /// The archive has no such source package.
    #[error("Debian's archive has no source `{requested}`; {instead}")]
    NoSourcePackage { requested: String, instead: String },
    /// An archive is unreadable.
    #[error("{what} is damaged: {detail}; remove it and try again")]
    Archive { what: String, detail: String },
}

/// A range of commits that cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum RangeError {
    /// GOOD and BAD are the same commit.
    #[error("{good} and {bad} are the same commit: no commits to search")]
    SameCommit { good: String, bad: String },
    /// GOOD is newer than BAD.
    #[error(
        "{good} comes after {bad}: the ends are swapped; name the older one first (it does not matter which is faster)"
    )]
    Swapped { good: String, bad: String },
    /// GOOD is not an ancestor of BAD.
    #[error(
        "{good} is not an ancestor of {bad}; they parted at {base}: bisect {base} {bad}, and {base} {good} if {good} is the odd one"
    )]
    NotAncestor {
        good: String,
        bad: String,
        base: String,
    },
    /// GOOD and BAD have no common history.
    #[error("{good} and {bad} have no history in common")]
    Unrelated { good: String, bad: String },
    /// The history ends within the range: a shallow clone.
    #[error("{} is a shallow clone and its history ends within this range: run `git -C {} fetch --unshallow`", folder.display(), folder.display())]
    Shallow { folder: PathBuf },
    /// The range is invalid.
    #[error("`{0}` is not a range of commits: expected OLDER..NEWER, for example v6.12..HEAD")]
    NoRange(String),
}

/// A tree, or a revision in it, that cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A `git:` name without a configured tree.
    #[error("git:{0} needs a tree: name its directory with --tree FOLDER")]
    NoTree(String),
    /// The directory is no git repository, or one that git refuses.
    #[error("{} is not a git repository: {detail}", folder.display())]
    NotARepository { folder: PathBuf, detail: String },
    /// A directory in a tree is a repository with a configuration of its own, which may name
    /// programs.
    #[error("{} is a repository inside the tree: move it elsewhere, or name a commit with git:REVISION", folder.display())]
    NestedRepository { folder: PathBuf },
    /// The source is no kernel.
    #[error("{what} is not a Linux source tree: no Kbuild at its top; name a kernel tree")]
    NotLinux {
        /// The directory or the revision.
        what: String,
    },
    /// There is no such revision.
    #[error("`{revision}` is no commit of {}: see `git -C {} log --oneline --all`", folder.display(), folder.display())]
    UnknownRevision { revision: String, folder: PathBuf },
    /// A commit that existed is gone.
    #[error("{commit} is no longer in {}: the tree was changed meanwhile; run the same command again", folder.display())]
    Gone {
        commit: String,
        /// The tree, or the workshop that uses its objects.
        folder: PathBuf,
    },
}

impl SourceError {
    /// Returns who has to act on it.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Deadline { .. }
            | Self::Program { .. }
            | Self::Archive { .. }
            | Self::NoProgram { .. }
            | Self::Needs { .. }
            | Self::NoAnswer { .. } => Fault::Lab,
            _ => Fault::User,
        }
    }
}
