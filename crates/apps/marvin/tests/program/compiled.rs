//! C programs that tests compile on this host.

use std::path::Path;
use std::process::Command;

/// Compiles a file to a program with these options of `cc`, and shows what it says if it cannot.
pub(crate) fn compile_file(source: &Path, program: &Path, options: &[&str]) {
    let ended = Command::new("cc")
        .args(options)
        .arg("-o")
        .args([program, source])
        .args(["-lpthread", "-lm"])
        .output()
        .unwrap();
    assert!(
        ended.status.success(),
        "{}",
        String::from_utf8_lossy(&ended.stderr)
    );
}

/// Compiles a text to a program, beside which its source stays.
pub(crate) fn compile_text(text: &str, program: &Path, options: &[&str]) {
    let source = program.with_extension("c");
    std::fs::write(&source, text).unwrap();
    compile_file(&source, program, options);
}
