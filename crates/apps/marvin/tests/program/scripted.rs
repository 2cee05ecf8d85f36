//! `marvin explain` on scripts: their own functions are named, and what they ask a database for.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::fresh::fresh;
use crate::{folder, format_output, marvin};

/// A script, and what its sentence has.
struct Script {
    interpreter: &'static str,
    file: &'static str,
    source: &'static str,
    expected: &'static [&'static str],
}

const PYTHON: &str = "
import time
def churn_words(words):
    return sorted(''.join(reversed(word)) for word in words)
end = time.process_time() + 2
while time.process_time() < end:
    churn_words([str(number) for number in range(2000)])
";
const SQLITE: &str = "
import sqlite3, time
database = sqlite3.connect(':memory:')
database.execute('CREATE TABLE orders (id INTEGER, total INTEGER)')
database.executemany('INSERT INTO orders VALUES (?, ?)', ((n, n * 7 % 1000) for n in range(50000)))
def latest_orders():
    return database.execute('SELECT id FROM orders WHERE total > 4711 OR total = -1').fetchall()
end = time.process_time() + 2
while time.process_time() < end:
    latest_orders()
";
const PERL: &str = "
use strict;
use Time::HiRes;
sub churn_words { my $all = ''; $all = reverse($_) . lc($all) for @_; return length $all }
my $end = Time::HiRes::time + 2;
churn_words(1 .. 200) while Time::HiRes::time < $end;
";
const NODE: &str = "
function churnWords(words) {
    return words.map((word) => [...word].reverse().join('')).sort();
}
const end = Date.now() + 2000;
while (Date.now() < end) churnWords(Array.from({ length: 2000 }, (_, number) => String(number)));
";

const SCRIPTS: [Script; 4] = [
    Script {
        interpreter: "python3",
        file: "words.py",
        source: PYTHON,
        expected: &["in Python that is in", "churn_words"],
    },
    Script {
        interpreter: "python3",
        file: "orders.py",
        source: SQLITE,
        expected: &[
            "latest_orders",
            "the statement is SELECT id FROM orders WHERE total > ? OR total = -?",
        ],
    },
    Script {
        interpreter: "perl",
        file: "words.pl",
        source: PERL,
        expected: &["in Perl that is in churn_words words.pl"],
    },
    Script {
        interpreter: "node",
        file: "words.js",
        source: NODE,
        expected: &["in JavaScript that is in", "churnWords words.js:2"],
    },
];

const POLLING: &str = "
import os, time
end = time.time() + 3
while time.time() < end:
    try:
        os.stat('/srv/queue/next-job')
    except OSError:
        time.sleep(0.05)
";

/// Explains a script; returns its sentence, or `None` without its interpreter.
fn explain(home: &Path, script: &Script) -> Option<String> {
    let version = Command::new(script.interpreter).arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        let Script {
            file, interpreter, ..
        } = script;
        println!("skipped: {file} ({interpreter} is not installed)");
        return None;
    }
    let files = folder("scripted-files");
    fs::create_dir_all(&files).unwrap();
    let path = files.join(script.file);
    fs::write(&path, script.source).unwrap();
    let output = marvin(home)
        .args(["explain", "--format", "json", "--", script.interpreter])
        .arg(&path)
        .output()
        .unwrap();
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}", format_output(&output, home)));
    document["sentence"].as_str().map(str::to_owned)
}

#[test]
fn polling_script_has_its_failing_call() {
    if fs::read("/sys/kernel/tracing/events/raw_syscalls/sys_exit/id").is_err() {
        println!("skipped: no tracepoints of system calls (root, and tracefs mounted)");
        return;
    }
    let script = Script {
        interpreter: "python3",
        file: "polling.py",
        source: POLLING,
        expected: &["between that it calls newfstatat", "which fails (ENOENT"],
    };
    if let Some(sentence) = explain(&fresh("polling"), &script) {
        for expected in script.expected {
            assert!(sentence.contains(expected), "{sentence}");
        }
    }
}

#[test]
fn scripts_have_names_of_their_functions() {
    let home = fresh("scripted");
    for script in &SCRIPTS {
        let Some(sentence) = explain(&home, script) else {
            continue;
        };
        for expected in script.expected {
            assert!(sentence.contains(expected), "{}: {sentence}", script.file);
        }
    }
}
