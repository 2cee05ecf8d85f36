//! What interpreters open while they run: their own answer, for those that are known. Others get
//! what the user names with `--with`.

use std::path::{Path, PathBuf};

use subprocess::Program;

/// How long an interpreter may take to answer (s).
const ANSWER_S: u64 = 20;

/// An interpreter's own answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The program itself: what PATH names may be a script that chooses a version (pyenv, rbenv).
    pub(super) executable: Option<PathBuf>,
    /// Directories and files that it opens.
    pub(super) library: Vec<String>,
}

/// A question to an interpreter for its program and the directories of its library, one a line.
struct Known {
    /// How names of the program begin: `python3`, `python3.11`.
    name: &'static str,
    question: &'static [&'static str],
}

/// Perl's and Ruby's own search paths; Python's standard library with its compiled modules (see
/// `sysconfig`), not what pip installed.
const KNOWN: [Known; 5] = [
    Known {
        name: "python",
        question: &[
            "-I",
            "-c",
            "import sys, sysconfig\nprint(sys.executable)\nfor name in ('stdlib', 'platstdlib'): print(sysconfig.get_path(name))",
        ],
    },
    Known {
        name: "perl",
        question: &[
            "-e",
            "print join(\"\\n\", $^X, grep { !/site|local|^\\.$/ } @INC), \"\\n\"",
        ],
    },
    Known {
        name: "ruby",
        question: &["-e", "puts RbConfig.ruby, $LOAD_PATH.grep_v(/site|vendor/)"],
    },
    Known {
        name: "php",
        question: &[
            "-r",
            "echo ini_get('extension_dir'), \"\\n\", php_ini_loaded_file(), \"\\n\", php_ini_scanned_files(), \"\\n\";",
        ],
    },
    Known {
        name: "java",
        question: &["-XshowSettings:properties", "-version"],
    },
];
/// Parts of a library that no program runs: tests, documentation and a window system.
const LEFT_OUT: [&str; 6] = [
    "/test/",
    "/tests/",
    "/idlelib/",
    "/ensurepip/",
    "/pydoc_data/",
    "/site-packages/",
];

/// Returns whether a file of an interpreter's library stays out of a guest.
pub(super) fn is_left_out(path: &str) -> bool {
    // Static libraries are for a linker.
    LEFT_OUT.iter().any(|part| path.contains(part)) || path.ends_with(".a")
}

/// Asks an interpreter; an empty answer for any other program, and for one that does not answer.
pub(super) fn ask(program: &Path) -> Answer {
    let name = program.file_name().and_then(|name| name.to_str());
    let known = name.and_then(|name| KNOWN.iter().find(|known| is_named(name, known.name)));
    let Some(known) = known else {
        return Answer::default();
    };
    let answer = Program::new(program)
        .args(known.question)
        .deadline_s(ANSWER_S)
        .run();
    let Ok(ended) = answer else {
        return Answer::default();
    };
    let text = ended.text() + &ended.stderr;
    let parts = text.lines().flat_map(|line| line.split(','));
    let mut found = Answer::default();
    for part in parts {
        // Java says it as a property: `java.home = /usr/lib/jvm/…`.
        let path = part.trim().trim_start_matches("java.home = ");
        let is_path = path.len() > 1 && path.starts_with('/') && !path.contains(':');
        if !is_path || !Path::new(path).exists() {
            continue;
        }
        let is_program = Path::new(path)
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| is_named(name, known.name));
        if is_program && Path::new(path).is_file() {
            found.executable = Some(PathBuf::from(path));
        } else {
            found.library.push(path.to_owned());
        }
    }
    found
}

/// Returns whether a program's name is this one, or this one with a version.
fn is_named(name: &str, known: &str) -> bool {
    name.strip_prefix(known)
        .is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ask, is_left_out, is_named};

    #[test]
    fn versions_belong_to_the_interpreter() {
        assert!(is_named("python3.11", "python") && is_named("perl", "perl"));
        assert!(!is_named("python3-config", "python") && !is_named("perldoc", "perl"));
    }

    #[test]
    fn interpreter_names_its_library() {
        let found = ask(Path::new("/usr/bin/perl"));
        assert_eq!(found.executable, Some("/usr/bin/perl".into()));
        assert!(
            found.library.iter().any(|folder| folder.contains("perl")),
            "{found:?}"
        );
        assert!(ask(Path::new("/usr/bin/env")).library.is_empty());
        assert!(is_left_out("/usr/lib/python3.11/test/x.py"));
    }
}
