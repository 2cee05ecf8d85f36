//! Whether the kernel can start a file, by its first bytes. A shell starts more: it runs a text
//! without `#!` itself.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::error::OwnProgramError;

/// Longest first line of a script, as the kernel reads it (`BINPRM_BUF_SIZE` of
/// include/uapi/linux/binfmts.h).
const FIRST_LINE_MAX: u64 = 256;
const ELF: &[u8] = b"\x7fELF";

/// Returns the first bytes of a file.
fn read_head(file: &Path) -> Result<Vec<u8>, OwnProgramError> {
    let mut head = Vec::new();
    File::open(file)
        .and_then(|open| open.take(FIRST_LINE_MAX).read_to_end(&mut head))
        .map_err(OwnProgramError::read(file))?;
    Ok(head)
}

/// Returns the text behind `#!` of a script; `None` for other files.
pub(super) fn first_line(file: &Path) -> Result<Option<String>, OwnProgramError> {
    Ok(split_first_line(&read_head(file)?).map(|line| line.trim().to_owned()))
}

fn split_first_line(head: &[u8]) -> Option<String> {
    let rest = head.strip_prefix(b"#!")?;
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Some(String::from_utf8_lossy(line).into_owned())
}

/// Returns the programs that a first line starts, the last of which reads the script: the
/// interpreter, and what `env` looks for.
pub(super) fn name_interpreters(line: &str) -> Vec<&str> {
    let mut words = line.split_whitespace();
    let mut found: Vec<&str> = words.next().into_iter().collect();
    if found.first().is_some_and(|name| name.ends_with("/env")) {
        found.extend(words.find(|word| !word.starts_with('-') && !word.contains('=')));
    }
    found
}

/// Errors if the kernel would not start a file. Other kinds than ELF files and scripts are left to
/// it: binfmt_misc may know them.
pub(super) fn check(file: &Path) -> Result<(), OwnProgramError> {
    let head = read_head(file)?;
    let path = file.to_owned();
    if head.starts_with(ELF) {
        return Ok(());
    }
    match split_first_line(&head) {
        Some(line) if line.ends_with('\r') => Err(OwnProgramError::CarriageReturn { path }),
        Some(line) if line.trim().is_empty() => Err(OwnProgramError::NoInterpreterName { path }),
        Some(_) => Ok(()),
        None if head.is_empty() => Err(OwnProgramError::Empty { path }),
        None if is_text(&head) => Err(OwnProgramError::NoFirstLine { path }),
        None => Ok(()),
    }
}

/// Returns whether bytes look like a text. The last character may be cut.
fn is_text(head: &[u8]) -> bool {
    let is_utf8 = match std::str::from_utf8(head) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    is_utf8 && !head.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::name_interpreters;

    #[test]
    fn env_starts_another_program() {
        assert_eq!(name_interpreters("/bin/sh -e"), ["/bin/sh"]);
        assert_eq!(
            name_interpreters("/usr/bin/env -S A=1 python3 -u"),
            ["/usr/bin/env", "python3"]
        );
        assert!(name_interpreters("").is_empty());
    }
}
