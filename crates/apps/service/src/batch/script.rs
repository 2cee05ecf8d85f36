//! The shell script that a batch job runs.

use std::ffi::OsString;

use subprocess::quote_words;

/// The name of the node, or that of the host, in a script.
const NODE: &str = "'\"${SLURMD_NODENAME:-$(uname -n)}\"'";

/// Returns a script that becomes a command. `%N` in an argument means the name of the host: Slurm's
/// name for the node, as several nodes may be one host.
#[must_use]
pub(super) fn script(command: &[OsString]) -> String {
    let quoted = quote_words(command.iter().map(|word| word.to_string_lossy()));
    format!("#!/bin/sh\nexec {}\n", quoted.replace("%N", NODE))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::script;

    fn output_of(command: &mut Command) -> String {
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }

    #[test]
    fn script_passes_words_unchanged_but_the_node() {
        let arguments = ["printf", "%s|", "a b", "it's", "$HOME", "/var/%N/x"].map(Into::into);
        let mut shell = Command::new("sh");
        shell.args(["-c", &script(&arguments)]);
        assert_eq!(
            output_of(shell.env("SLURMD_NODENAME", "bm1")),
            "a b|it's|$HOME|/var/bm1/x|"
        );
        let host = output_of(Command::new("uname").arg("-n"));
        assert_eq!(
            output_of(shell.env_remove("SLURMD_NODENAME")),
            format!("a b|it's|$HOME|/var/{}/x|", host.trim())
        );
    }
}
