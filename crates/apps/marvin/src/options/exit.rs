//! The option for programs that read exit codes in another way.

use clap::Args;

/// The option's name, which also usage errors obey.
const BISECT_RUN: &str = "--bisect-run";

/// Options for exit codes.
#[derive(Debug, Args)]
pub(crate) struct ExitOptions {
    /// Exit as `git bisect run` expects: 0 good, 1 bad, 125 for all else, such as unclear rows and
    /// kernels that do not build
    // Read from the words themselves: a usage error, too, must not make a commit bad.
    #[arg(long)]
    bisect_run: bool,
}

/// Returns whether `git bisect run` reads the exit code: the option is among the words before `--`,
/// behind which a program of the user's own has its words.
pub(crate) fn is_bisect_run(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let mut own = words.take_while(|word| word != "--");
    own.any(|word| word == BISECT_RUN)
}

#[cfg(test)]
mod tests {
    use super::is_bisect_run;

    #[test]
    fn words_of_a_program_are_its_own() {
        let is_asked = |line: &str| is_bisect_run(line.split(' ').map(Into::into));
        assert!(is_asked("marvin compare A B --bisect-run -- ./bench"));
        assert!(is_asked("marvin compare --bisect-run --nonesuch"));
        assert!(!is_asked("marvin compare A B -- ./bench --bisect-run"));
    }
}
