//! `kill -9` at all moments of the commands that start processes: no process is left after two
//! seconds, no job is lost, none is executed twice, and the next call completes the work. `process`
//! kills at the moment of the fork.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::{images, is_full, marvin, output_of};

/// Copies an image that the tree has.
const MAKEFILE: &str = "tinyconfig olddefconfig:\n\t@touch $(O)/.config\n\
    vmlinux:\n\t@cp \"$$(cat choice)\" $(O)/vmlinux\n\t@echo $(CURDIR)/mm/memory.c >$(O)/.memory.o.cmd\n";
/// How long processes may live on after their Marvin.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns the command lines of processes that name a directory below one of these, work there, or
/// have a file open there.
pub(crate) fn processes_of(folders: &[&Path]) -> Vec<String> {
    let is_ours = |path: &Path| folders.iter().any(|folder| path.starts_with(folder));
    let belongs = |process: &PathBuf| {
        let command_line = fs::read(process.join("cmdline")).unwrap_or_default();
        let command_line = String::from_utf8_lossy(&command_line).into_owned();
        let names = folders
            .iter()
            .any(|folder| command_line.contains(&folder.display().to_string()));
        let files = fs::read_dir(process.join("fd"))
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.path());
        let mut links = files
            .chain([process.join("cwd")])
            .filter_map(|link| fs::read_link(link).ok());
        (names || links.any(|target| is_ours(&target))).then(|| command_line.replace('\0', " "))
    };
    let own = format!("/proc/{}", std::process::id());
    let processes = fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path());
    let processes =
        processes.filter(|process| process != Path::new(&own) && process.join("exe").exists());
    // A process that has ended has no command line.
    processes
        .filter_map(|process| belongs(&process))
        .filter(|command_line| !command_line.is_empty())
        .collect()
}

/// Kills a command after these milliseconds, if it still runs then, and waits for the end of its
/// processes.
fn kill_after(delay_ms: u64, home: &Path, command: &[&str], folders: &[&Path]) -> Duration {
    let mut process = marvin(home)
        .args(command)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(delay_ms));
    process.kill().unwrap();
    process.wait().unwrap();
    let begun = Instant::now();
    while !processes_of(folders).is_empty() {
        let left = processes_of(folders);
        assert!(
            begun.elapsed() < PATIENCE || left.is_empty(),
            "killed after {delay_ms} ms, {command:?} left {left:#?}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    begun.elapsed()
}

#[test]
fn killed_commands_leave_no_process_and_lose_nothing() {
    let (_, images) = images();
    let home = fresh("killed-often-home");
    let tree = Tree::new("killed-often-tree");
    fs::create_dir_all(&home).unwrap();
    tree.file("Makefile", MAKEFILE);
    for file in ["Kbuild", "mm/memory.c"] {
        tree.file(file, "");
    }
    for (tag, image) in ["v6.12", "v6.13"].iter().zip(&images) {
        let name = tree.image(image);
        tree.commit("choice", &name);
        tree.git(&["tag", tag]);
    }
    let place = tree.name();
    let text = format!(
        "[[tree]]\nname = \"linux\"\ngit = \"{place}\"\n\n[[plan]]\nname = \"quick\"\nworkloads = [\"getppid\"]\nseeds = 1\n"
    );
    fs::write(home.join("marvin.toml"), text).unwrap();
    let [old, new] = [0, 1].map(|n| format!("path:{}", images[n].display()));
    let measure = ["--workload", "signal", "--seeds", "1"];
    let commands: [Vec<&str>; 5] = [
        vec!["watch"],
        vec!["work", "--once"],
        [&["compare", &old, &new][..], &measure].concat(),
        vec!["run", &new, "--workload", "fork", "--seeds", "1"],
        [
            &["bisect", "v6.12", "v6.13", "--tree", &place][..],
            &measure,
        ]
        .concat(),
    ];
    let (commands, kills, runs_at_end) = if is_full() {
        (&commands[..], 200, 5)
    } else {
        (&commands[..2], 6, 2)
    };
    let folders: [&Path; 2] = [&home, &tree.folder];
    let mut slowest = Duration::ZERO;
    for (number, command) in commands.iter().enumerate() {
        // After so many killed workers the jobs would let others pass for an hour.
        let hurry = || {
            for job in ["1", "2"].iter().filter(|_| command[0] == "work") {
                output_of(&home, &["queue", "move", job, "first"]);
            }
        };
        for kill in 0..kills {
            hurry();
            // Spread over the first three seconds, other moments for each command.
            let delay_ms = (kill * 787 + number as u64 * 331 + 5) % 3_000;
            slowest = slowest.max(kill_after(delay_ms, &home, command, &folders));
        }
        hurry();
        let end = output_of(&home, command);
        let code = end.split_whitespace().nth(1).unwrap_or_default();
        assert!(["0", "1", "3"].contains(&code), "{command:?}: {end}");
    }
    println!(
        "{} kills, at most {slowest:?} until the last process had ended",
        kills * commands.len() as u64
    );
    let jobs = output_of(&home, &["queue", "list", "--all"]);
    assert_eq!(
        (
            jobs.matches(" done ").count(),
            jobs.matches("git:v6.1").count()
        ),
        (2, 2),
        "{jobs}"
    );
    let runs = output_of(&home, &["runs"]);
    // Of the two jobs, of the two sides of `compare`, of `run`; bisections keep no runs.
    assert_eq!(runs.matches("run_").count(), runs_at_end, "{runs}");
}
