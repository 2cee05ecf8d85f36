//! A C compiler is many files: the compiler proper, an assembler, a linker, the objects that each
//! program starts and ends with, headers. The compiler's own answer names them.

use std::path::Path;

use subprocess::Program;

/// How long a compiler may take to answer (s).
const ANSWER_S: u64 = 10;
/// How names of compilers begin or end: `gcc-12`, `x86_64-linux-gnu-g++`.
const COMPILERS: [&str; 4] = ["cc", "gcc", "c++", "g++"];
/// Programs that a compiler starts, and one more that a compiler of C++ starts.
const PROGRAMS: [&str; 5] = ["cc1", "collect2", "lto-wrapper", "as", "ld"];
const PROGRAM_OF_CXX: &str = "cc1plus";
/// Files that it links to each program, and libraries that programs often name. Scripts of the
/// linker name those below them.
const FILES: [&str; 20] = [
    "crt1.o",
    "Scrt1.o",
    "crti.o",
    "crtn.o",
    "crtbegin.o",
    "crtbeginS.o",
    "crtend.o",
    "crtendS.o",
    "libgcc.a",
    "libgcc_s.so",
    "libgcc_s.so.1",
    "libc.so",
    "libc_nonshared.a",
    "libm.so",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.a",
    "libstdc++.so",
    "liblto_plugin.so",
    "libc.so.6",
];

/// Returns whether a program's name is that of a compiler of C or C++.
pub(super) fn is_compiler(name: &str) -> bool {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || "-.".contains(c));
    let last = plain.rsplit('-').next().unwrap_or(plain);
    COMPILERS.contains(&last)
}

/// Asks a compiler for its programs, its files and its directories of headers; none from one that
/// does not answer.
pub(super) fn ask(compiler: &Path) -> Vec<String> {
    let name = compiler.file_name().and_then(|name| name.to_str());
    let is_cxx = name.is_some_and(|name| name.contains("++"));
    let language = if is_cxx { "c++" } else { "c" };
    let mut questions: Vec<String> = Vec::new();
    if is_cxx {
        questions.push(format!("-print-prog-name={PROGRAM_OF_CXX}"));
    }
    questions.extend(PROGRAMS.map(|name| format!("-print-prog-name={name}")));
    questions.extend(FILES.map(|name| format!("-print-file-name={name}")));
    let mut paths: Vec<String> = Vec::new();
    for question in questions {
        let Some(answer) = ask_one(compiler, &[&question]) else {
            return Vec::new();
        };
        // What it does not find it repeats without a directory.
        paths.push(answer.trim().to_owned());
    }
    // It writes them to standard error, each on a line that begins with a blank.
    let headers = ask_one(compiler, &["-E", "-v", "-x", language, "/dev/null"]).unwrap_or_default();
    let lines = headers.lines().filter_map(|line| line.strip_prefix(" /"));
    paths.extend(lines.map(|line| format!("/{line}")));
    paths.retain(|path| path.starts_with('/') && Path::new(path).exists());
    paths
}

fn ask_one(compiler: &Path, words: &[&str]) -> Option<String> {
    let ended = Program::new(compiler)
        .args(words)
        .deadline_s(ANSWER_S)
        .run()
        .ok()?;
    Some(ended.text() + &ended.stderr)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{ask, is_compiler};

    #[test]
    fn compilers_have_versions_and_targets() {
        for name in ["cc", "gcc-12", "x86_64-linux-gnu-g++-12"] {
            assert!(is_compiler(name), "{name}");
        }
        for name in ["gcc-ar", "ccache", "rustc", "distcc-x"] {
            assert!(!is_compiler(name), "{name}");
        }
    }

    #[test]
    fn compiler_names_its_parts() {
        let found = ask(Path::new("/usr/bin/cc"));
        for end in ["/cc1", "crt1.o", "/include"] {
            assert!(found.iter().any(|path| path.ends_with(end)), "{found:?}");
        }
    }
}
