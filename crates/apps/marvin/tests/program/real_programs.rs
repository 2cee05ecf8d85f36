//! Programs as people have them, in guests: what compilers and interpreters of this host make, a
//! database, a server with its benchmark, a build. Each is one command of `docs/own-program.md`.
//! With `MARVIN_FULL` only: many boots. A host without a compiler prints what was not tried.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::fresh::fresh;
use crate::{folder, format_output, is_left_to_full, marvin, names};

/// A program of the list.
struct RealProgram {
    name: &'static str,
    /// Its source, and where it goes; the first is made executable.
    files: &'static [(&'static str, &'static str)],
    /// What makes it of its source, by `sh -c`.
    build: &'static str,
    /// Options, `--` and the command.
    words: &'static [&'static str],
    expected: Expected,
}

enum Expected {
    /// A row of its cost, and one of a printed number with this text.
    Rows(&'static str),
    /// Exit code 4 with this text.
    Failure(&'static str),
}

const C_PLUS_PLUS: &str = r#"
#include <iostream>
#include <map>
int main() {
    std::map<int, int> all;
    for (int i = 0; i < 9000; i++) all[i * 7919 % 20011] = i;
    std::cout << all.size() << " records/s\n";
}
"#;
const GO: &str = r#"
package main
import "fmt"
func main() {
    numbers := make(chan int, 9)
    go func() { for i := 0; i < 100; i++ { numbers <- i }; close(numbers) }()
    sum := 0
    for number := range numbers { sum += number }
    fmt.Println("sum", sum)
}
"#;
const RUST: &str = r#"
fn main() {
    let sum = std::thread::spawn(|| (0..100).sum::<u64>()).join().unwrap();
    std::fs::write("out", sum.to_string()).unwrap();
    println!("sum {sum}");
}
"#;
const PYTHON: &str =
    "#!/usr/bin/env python3\nimport json, subprocess\nprint('sum', json.loads('4950'))\n";
const TOOLS: &str = "#!/bin/sh\nseq 99 | sort -rn | awk '{s+=$1} END {print \"sum \" s}'\n";
const FORKS: &str = r#"
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
int main() {
    int ended = 0;
    for (int i = 0; i < 50; i++) if (!fork()) _exit(0);
    while (wait(0) > 0) ended++;
    printf("sum %d\n", ended + 4900);
}
"#;
/// Touches 500 MiB.
const MEMORY: &str = r#"
#include <stdio.h>
#include <sys/mman.h>
int main() {
    unsigned long size = 500ul << 20;
    char *all = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (unsigned long i = 0; i < size; i += 4096) all[i] = 1;
    printf("sum 4950\n");
}
"#;
const ADDS: &str = r#"
#include <stdio.h>
int main() {
    int sum = 0;
    for (int i = 0; i < 100; i++) sum += i;
    printf("sum %d\n", sum);
}
"#;
const CRASHES: &str = "int main() { *(volatile int *)8 = 1; }\n";
const HANGS: &str = "#include <unistd.h>\nint main() { for (;;) pause(); }\n";
const PRINTS: &str = r#"
#include <stdio.h>
int main() { for (int i = 0; i < 1 << 24; i++) puts("a line of sixty-four characters, as a program prints by mistake"); }
"#;
const TERMINAL: &str = r#"
#include <fcntl.h>
#include <stdio.h>
int main() { if (open("/dev/tty", O_RDWR) < 0) { perror("/dev/tty"); return 4; } }
"#;
const NETWORK: &str =
    "#!/usr/bin/env python3\nimport socket\nsocket.create_connection(('192.0.2.1', 80))\n";
const ROOT: &str = "#!/bin/sh\ntest $(id -u) = 0 && mount -t tmpfs none /mnt && echo sum 4950\n";
const REDIS: &str = r"#!/bin/sh
redis-server --save '' --daemonize yes --logfile redis.log >/dev/null
until redis-cli ping 2>&1 | grep -q PONG; do sleep 0.05; done
redis-benchmark -t set -n 1000 -c 4 --csv
redis-cli shutdown nosave
";
const MAKEFILE: &str = "prog: main.o part.o\n\t$(CC) -o $@ main.o part.o\n";
const MAIN: &str =
    "#include <stdio.h>\nint part(void);\nint main(void) { return printf(\"%d\\n\", part()); }\n";
const PART: &str = "#include <string.h>\nint part(void) { return (int)strlen(\"abc\"); }\n";
/// Prints what it built, as a number: a build has none of its own.
const BUILD: &str = "make -s -B && ./prog | sed 's/3/sum 4950/'";

const SUM: Expected = Expected::Rows("4950");
const ONE_SUM: &str = r"sum (\d+)";

const fn expect_sum(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    build: &'static str,
    words: &'static [&'static str],
) -> RealProgram {
    RealProgram {
        name,
        files,
        build,
        words,
        expected: SUM,
    }
}

const fn expect_failure(
    name: &'static str,
    files: &'static [(&'static str, &'static str)],
    build: &'static str,
    words: &'static [&'static str],
    text: &'static str,
) -> RealProgram {
    RealProgram {
        name,
        files,
        build,
        words,
        expected: Expected::Failure(text),
    }
}

/// Those that do their work.
const WORKING: [RealProgram; 14] = [
    RealProgram {
        name: "C++, dynamic",
        files: &[("a.cpp", C_PLUS_PLUS)],
        build: "g++ -O2 -o a a.cpp",
        words: &["--value", r"(\d+) records/s", "--", "./a"],
        expected: Expected::Rows("9000"),
    },
    expect_sum(
        "Go",
        &[("a.go", GO)],
        "HOME=$PWD GOCACHE=$PWD/cache go build -o a a.go",
        &["--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "Rust",
        &[("a.rs", RUST)],
        "rustc -O -o a a.rs",
        &["--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "Python with its interpreter",
        &[("a.py", PYTHON)],
        "python3 a.py",
        &["--value", ONE_SUM, "--", "./a.py"],
    ),
    expect_sum(
        "shell script with three tools",
        &[("a.sh", TOOLS)],
        "./a.sh",
        &["--value", ONE_SUM, "--", "./a.sh"],
    ),
    expect_sum(
        "forks",
        &[("a.c", FORKS)],
        "cc -O2 -o a a.c",
        &["--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "500 MB",
        &[("a.c", MEMORY)],
        "cc -O2 -o a a.c",
        &["--guest-memory", "1024", "--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "32 bits, static",
        &[("a.c", ADDS)],
        "i686-linux-gnu-gcc -static -o a a.c || cc -m32 -static -o a a.c",
        &["--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "32 bits, dynamic",
        &[("a.c", ADDS)],
        "{ i686-linux-gnu-gcc -o a a.c || cc -m32 -o a a.c; } && ./a",
        &["--value", ONE_SUM, "--", "./a"],
    ),
    expect_sum(
        "root",
        &[("a.sh", ROOT)],
        "true",
        &["--value", ONE_SUM, "--", "./a.sh"],
    ),
    expect_sum(
        "names with blanks, quotes and line ends",
        &[("a.c", ADDS)],
        "cc -o \"a 'b\\\"\nc\" a.c",
        &["--value", ONE_SUM, "--", "./a 'b\"\nc", "x  y", "", "\n"],
    ),
    RealProgram {
        name: "sqlite's speedtest1",
        files: &[("get", SPEEDTEST)],
        build: "./get && cc -O1 -o speedtest1 speedtest1.c -lsqlite3",
        words: &[
            "--value",
            r"TOTAL\.+ +([\d.]+)s",
            "--",
            "./speedtest1",
            "--size",
            "2",
            "--memdb",
        ],
        expected: Expected::Rows("speedtest1.value"),
    },
    RealProgram {
        name: "redis-benchmark beside its server",
        files: &[("a.sh", REDIS)],
        build: "command -v redis-server redis-cli redis-benchmark",
        words: &["--value", r#"higher:"SET","([\d.]+)""#, "--", "./a.sh"],
        expected: Expected::Rows("higher is better"),
    },
    expect_sum(
        "a build by make",
        &[("Makefile", MAKEFILE), ("main.c", MAIN), ("part.c", PART)],
        "make -s -B",
        &[
            "--with",
            ".",
            "--with",
            "/usr/bin/cc",
            "--value",
            ONE_SUM,
            "--",
            "sh",
            "-c",
            BUILD,
        ],
    ),
];

/// Those that cannot: each says why.
const FAILING: [RealProgram; 9] = [
    expect_failure(
        "500 MB in 256 MiB",
        &[("a.c", MEMORY)],
        "cc -O2 -o a a.c",
        &["--guest-memory", "256", "--", "./a"],
        "ran out of memory",
    ),
    expect_failure(
        "crashes",
        &[("a.c", CRASHES)],
        "cc -o a a.c",
        &["--", "./a"],
        "killed by signal 11",
    ),
    expect_failure(
        "hangs",
        &[("a.c", HANGS)],
        "cc -o a a.c",
        &["--time-limit", "3s", "--", "./a"],
        "no end within 3 s of the guest",
    ),
    expect_failure(
        "prints 1 GB",
        &[("a.c", PRINTS)],
        "cc -O2 -o a a.c",
        &["--", "./a"],
        "it printed more than 8 MiB",
    ),
    expect_failure(
        "wants a terminal",
        &[("a.c", TERMINAL)],
        "cc -o a a.c",
        &["--", "./a"],
        "exit status 4: /dev/tty: No such device or address",
    ),
    expect_failure(
        "wants the network",
        &[("a.py", NETWORK)],
        "true",
        &["--", "./a.py"],
        "Network is unreachable",
    ),
    expect_failure(
        "make without a compiler",
        &[("Makefile", MAKEFILE), ("main.c", MAIN), ("part.c", PART)],
        "make -s -B",
        &["--with", ".", "--with", "/bin/sh", "--", "make", "-s", "-B"],
        "before that: make: cc: No such file or directory",
    ),
    expect_failure(
        "deletes its own directory",
        &[("a.sh", "#!/bin/sh\nrm -rf \"$PWD\"\necho gone\n")],
        "true",
        &["--", "./a.sh"],
        "an earlier run removed the program or its directory",
    ),
    expect_failure(
        "powers the guest off",
        &[("a.sh", "#!/bin/sh\necho o >/proc/sysrq-trigger\nsleep 5\n")],
        "true",
        &["--", "./a.sh"],
        "the guest powered off or restarted while the program ran",
    ),
];

/// Fetches one file of sqlite's source package by apt, without this host's lists.
const SPEEDTEST: &str = r#"#!/bin/sh
set -e
mkdir -p "$KEPT/lists/partial"
. /etc/os-release
echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >"$KEPT/list"
if ! ls "$KEPT"/sqlite3_*.orig.tar.xz 2>/dev/null; then
    cd "$KEPT"
    set -- -o Dir::Etc::sourcelist="$KEPT/list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$KEPT/lists"
    apt-get -q "$@" update
    apt-get -q "$@" source --download-only sqlite3
    cd -
fi
tar -xOf "$KEPT"/sqlite3_*.orig.tar.xz --wildcards '*/test/speedtest1.c' >speedtest1.c
"#;

/// Writes and builds a program; the error says what this host lacks.
fn build(program: &RealProgram, at: &Path) -> Result<(), String> {
    for (name, text) in program.files {
        fs::write(at.join(name), text).unwrap();
    }
    let first = at.join(program.files[0].0);
    fs::set_permissions(&first, fs::Permissions::from_mode(0o755)).unwrap();
    let kept = folder("real-programs");
    fs::create_dir_all(&kept).unwrap();
    let output = Command::new("sh")
        .args(["-c", program.build])
        .current_dir(at)
        .env("KEPT", &kept)
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(text.lines().last().unwrap_or("no reason").to_owned())
}

/// Runs Marvin on a program, and returns how it ended, also as text.
fn measure(program: &RealProgram, at: &Path, home: &Path) -> (Output, String) {
    let [older, newer] = names();
    let first: &[&str] = match program.expected {
        Expected::Rows(_) => &["compare", &older, &newer, "--quick", "-q"],
        Expected::Failure(_) => &["run", &newer, "-q"],
    };
    let output = marvin(home)
        .current_dir(at)
        .args(first)
        .args(program.words)
        .output()
        .unwrap();
    let text = format_output(&output, home);
    (output, text)
}

/// Returns what is wrong with the output of a program.
fn judge(program: &RealProgram, output: &Output, text: &str) -> Option<String> {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let code = output.status.code();
    let is_right = match program.expected {
        Expected::Rows(wanted) => {
            [Some(0), Some(1)].contains(&code)
                && flat.contains(wanted)
                && flat.contains(".value")
                && flat.contains("0 unclear")
        }
        Expected::Failure(wanted) => code == Some(4) && flat.contains(wanted),
    };
    let table = String::from_utf8_lossy(&output.stdout);
    // The command that repeats it has long paths.
    let mut lines = table.lines().skip_while(|line| !line.starts_with("== "));
    let wide = lines.find(|line| line.chars().count() > 80);
    match wide {
        _ if !is_right => Some(format!("{}: {text}", program.name)),
        Some(line) => Some(format!("{}: wider than 80 columns: {line}", program.name)),
        None => None,
    }
}

#[test]
fn real_programs_work_or_say_why() {
    if is_left_to_full("many boots") {
        return;
    }
    // A name of this test's own programs; all others without it.
    let only = std::env::var("MARVIN_ONLY").unwrap_or_default();
    let home = fresh("real-programs-home");
    let mut wrong = Vec::new();
    for program in WORKING.iter().chain(&FAILING) {
        if !program.name.contains(&only) {
            continue;
        }
        let at = tempfile::tempdir().unwrap();
        if let Err(why) = build(program, at.path()) {
            println!("not tried: {}: {why}", program.name);
            continue;
        }
        let (output, text) = measure(program, at.path(), &home);
        match judge(program, &output, &text) {
            None => println!("as expected: {}", program.name),
            Some(why) => wrong.push(why),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
