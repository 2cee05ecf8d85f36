//! How commands of `marvin explain` end, and what a verification of other work is worth. `observe`
//! has tests of what it sees.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::compiled::compile_text;
use crate::fresh::fresh;
use crate::{format_output, is_full, marvin};

/// Runs `marvin explain` and returns its exit code and its document.
fn explain(home: &Path, arguments: &[&str]) -> (i32, Value) {
    let output = marvin(home)
        .args(["explain", "--format", "json"])
        .args(arguments)
        .output()
        .unwrap();
    let document = serde_json::from_slice(&output.stdout);
    (
        output.status.code().unwrap(),
        document.unwrap_or_else(|_| panic!("{}", format_output(&output, home))),
    )
}

fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let program = folder.join(name);
    compile_text(source, &program, &["-O0", "-g"]);
    program
}

#[test]
fn end_of_the_command_is_told() {
    let home = fresh("ends-home");
    std::fs::create_dir_all(&*home).unwrap();
    let end = |script: &str, arguments: &[&str]| {
        let (code, document) = explain(&home, &[arguments, &["--", "sh", "-c", script]].concat());
        let end = &document["end"];
        (
            code,
            end["exit_code"].clone(),
            end["signal"].clone(),
            end["text"].as_str().unwrap().to_owned(),
        )
    };
    let none = Value::Null;
    assert_eq!(
        end("sleep 1", &[]),
        (0, 0.into(), none.clone(), "exit status 0".into())
    );
    let failed = "the command failed: exit status 137".to_owned();
    assert_eq!(
        end("sleep 1; exit 137", &[]),
        (4, 137.into(), none.clone(), failed)
    );
    let killed = "the command was ended by signal 9; nothing was verified".to_owned();
    assert_eq!(
        end("sleep 1; kill -9 $$", &["--verify"]),
        (4, none.clone(), 9.into(), killed)
    );
    let ended = "Marvin ended the command after 1 s".to_owned();
    assert_eq!(
        end("sleep 60", &["--seconds", "1"]),
        (0, none.clone(), none, ended)
    );
    if is_full() {
        assert_eq!(end("sleep 35", &[]).0, 0);
    }
}

#[test]
fn observed_command_has_the_permissions_of_its_user() {
    let home = fresh("umask-home");
    std::fs::create_dir_all(&*home).unwrap();
    let mode = |name: &str| {
        std::fs::metadata(home.join(name))
            .unwrap()
            .permissions()
            .mode()
    };
    std::fs::write(home.join("own"), "").unwrap();
    let script = format!("sleep 2; : >{}", home.join("observed").display());
    assert_eq!(explain(&home, &["--", "sh", "-c", &script]).0, 0);
    assert_eq!(mode("observed"), mode("own"));
}

#[test]
fn other_work_without_the_suspect_shows_nothing() {
    let home = fresh("other-work-home");
    std::fs::create_dir_all(&*home).unwrap();
    let source = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\
        int main(void) { if (!getenv(\"MALLOC_TRIM_THRESHOLD_\")) { puts(\"not configured\"); return 0; }\n\
        time_t end = time(0) + 2; long n = 0; while (time(0) < end) { char *x = malloc(1 << 20); memset(x, 1, 1 << 20); free(x); n++; }\n\
        printf(\"%ld rounds\\n\", n); return 0; }\n";
    let program = compile(&home, "configured", source);
    let mut command = marvin(&home);
    command
        .env("MALLOC_TRIM_THRESHOLD_", "0")
        .args(["-q", "explain", "--verify", "--format", "json", "--"]);
    let output = command.arg(&program).output().unwrap();
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    if document["cause"]["rule"] != "allocator-trimming" {
        println!("skipped: {}", document["sentence"]);
        return;
    }
    let evidence = document["cause"]["evidence"].to_string();
    let text = "not verified: without MALLOC_TRIM_THRESHOLD_, the command does something else: it does not print `# rounds`";
    assert!(evidence.contains(text), "{evidence}");
    assert_eq!(
        (output.status.code(), &document["cause"]["certainty"]),
        (Some(3), &Value::from("likely"))
    );
}
