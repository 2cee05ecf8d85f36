//! Complete real sources, if `MARVIN_FULL` is set: imported, built, two planted regressions
//! bisected among 64 commits, four commits measured as a series, an incremental build compared with
//! a fresh one, and a comparison with another release. Prints durations; `MARVIN_FULL=bench` ends
//! after the series.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::bisected::Tree;
use crate::{folder, output_of};

/// Files that the build compiles, and files that it does not.
const PADDED: [&str; 7] = [
    "kernel/sys.c",
    "fs/open.c",
    "fs/pipe.c",
    "lib/string.c",
    "net/socket.c",
    "mm/mmap.c",
    "kernel/signal.c",
];
const NOT_COMPILED: [&str; 5] = [
    "Documentation/mm/index.rst",
    "fs/xfs/xfs_super.c",
    "arch/arm64/mm/fault.c",
    "net/sctp/socket.c",
    "drivers/net/tun.c",
];
/// The places of the regressions: page faults and forks.
pub(crate) const FAULT: (usize, &str, &str, usize) = (
    23,
    "mm/memory.c",
    "__set_current_state(TASK_RUNNING);\n\n\tret = sanitize_fault_flags",
    100,
);
const FORK: (usize, &str, &str, usize) = (
    41,
    "kernel/fork.c",
    "p = copy_process(NULL, trace, NUMA_NO_NODE, args);",
    2000,
);
const HEADER: (usize, &str) = (30, "include/linux/mm_inline.h");
const COMMITS: usize = 64;

/// Returns the processor seconds of all child processes that ended: fields 16 and 17 of stat
/// (proc(5)).
fn spent_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: f64 = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|field| field.parse::<f64>().unwrap())
        .sum();
    ticks / 100.0
}

struct Clock {
    spent: f64,
    begun: Instant,
}

impl Clock {
    fn start() -> Self {
        Self {
            spent: spent_s(),
            begun: Instant::now(),
        }
    }

    fn say(&self, what: &str) {
        let wall = self.begun.elapsed().as_secs_f64();
        let spent = spent_s() - self.spent;
        println!(
            "{what:<52} {:>12} {spent:>8.0} s CPU",
            format!("{wall:.1} s")
        );
    }
}

/// Makes 64 commits on the newest release of a series: most change files that are not compiled,
/// some only add a function, and two are guilty; returns those two.
fn history(series: &str, debian: &Path) -> (Tree, [String; 2]) {
    let tree = Tree::new(&format!("real-source-tree-{series}"));
    // Use its objects in place.
    fs::write(
        tree.folder.join(".git/objects/info/alternates"),
        format!("{}/objects\n", debian.display()),
    )
    .unwrap();
    tree.git(&["fetch", "-q", &debian.display().to_string(), series]);
    let files = [FAULT.1, FORK.1, HEADER.1]
        .into_iter()
        .chain(PADDED)
        .chain(NOT_COMPILED);
    let sparse: Vec<String> = files.map(|file| format!("/{file}")).collect();
    let set = ["sparse-checkout", "set", "--no-cone"];
    tree.git(
        &set.into_iter()
            .chain(sparse.iter().map(String::as_str))
            .collect::<Vec<_>>(),
    );
    tree.git(&["reset", "-q", "--hard", "FETCH_HEAD"]);
    tree.git(&["tag", "good"]);
    let mut guilty = [String::new(), String::new()];
    for n in 1..=COMMITS {
        let read = |file: &str| fs::read_to_string(tree.folder.join(file)).unwrap();
        let planted = [FAULT, FORK].iter().position(|(at, ..)| *at == n);
        if let Some(which) = planted {
            let (_, file, before, count) = [FAULT, FORK][which];
            let old = read(file);
            let at = old.find(before).unwrap();
            let slow = format!("asm volatile(\".rept {count}\\n\\tnop\\n\\t.endr\");\n\t");
            guilty[which] = tree.commit(file, &format!("{}{slow}{}", &old[..at], &old[at..]));
        } else if n == HEADER.0 {
            tree.commit(HEADER.1, &format!("{}/* a comment */\n", read(HEADER.1)));
        } else if n % 10 < 3 {
            let file = PADDED[n % PADDED.len()];
            let pad =
                format!("int marvin_pad_{n}(void);\nint marvin_pad_{n}(void) {{ return {n}; }}\n");
            tree.commit(file, &format!("{}{pad}", read(file)));
        } else {
            let file = NOT_COMPILED[n % NOT_COMPILED.len()];
            tree.commit(file, &format!("{}/* {n} */\n", read(file)));
        }
    }
    (tree, guilty)
}

/// Returns the number before some words.
pub(crate) fn number_before(text: &str, label: &str) -> f64 {
    let at = text.find(label).unwrap();
    text[..at]
        .split_whitespace()
        .next_back()
        .unwrap()
        .parse()
        .unwrap()
}

/// Returns the data directory with only the source packages of an earlier time: all builds are
/// fresh.
fn home() -> PathBuf {
    let home = folder("real-source-home");
    let entries = |folder: &Path| {
        fs::read_dir(folder)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
    };
    let imported = home.join("workshop/debian");
    for path in entries(&home)
        .chain(entries(&home.join("workshop")))
        .filter(|path| !imported.starts_with(path))
    {
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    home
}

/// Builds a kernel and returns the line that names the image.
fn image(home: &Path, name: &str, tree: Option<&str>) -> String {
    let clock = Clock::start();
    let of_tree = tree.map_or(vec![], |tree| vec!["--tree", tree]);
    let output = output_of(home, &[&["build", name], &of_tree[..]].concat());
    assert!(
        output.starts_with("exit 0") && output.contains(": building "),
        "{output}"
    );
    clock.say(name);
    output
        .lines()
        .find(|line| line.starts_with("build "))
        .unwrap()
        .to_owned()
}

/// Bisects a planted regression, and again with the culprit reverted.
fn bisect(home: &Path, tree: &str, workload: &str, guilty: &str) {
    let clock = Clock::start();
    let range = [
        "bisect",
        "good",
        "main",
        "--tree",
        tree,
        "--workload",
        workload,
    ];
    let output = output_of(home, &[&range[..], &["--no-revert"]].concat());
    assert!(output.starts_with("exit 0"), "{output}");
    let builds = output.matches(": building commit ").count();
    let left = number_before(&output, " of which can change");
    let builds_max = left.log2().ceil() + 2.0;
    clock.say(&format!(
        "{workload} found among {COMMITS} commits (goal 60 s)"
    ));
    println!(
        "{:<52} {builds:>5} builds    goal {builds_max}",
        format!("  of which {left} can change what is built")
    );
    assert!(
        output.contains(&format!("worse   {} (", &guilty[..12])),
        "{output}"
    );
    let explained = number_before(&output, " % of the whole difference");
    assert!((explained - 100.0).abs() < 1.0, "{output}");
    assert!(builds as f64 <= builds_max, "{output}");
    let clock = Clock::start();
    let again = output_of(home, &[&range[..], &["-q"]].concat());
    clock.say(&format!("{workload} taken back on top of BAD"));
    assert!(again.contains("confirmed: BAD without it"), "{again}");
}

/// Measures the four commits that end with the first guilty one, three of which only add functions:
/// each is an image of its own, and the tree is warm.
fn measure_four(home: &Path, tree: &str, guilty: &str) {
    let workloads =
        "getppid,signal,switch-yield,pipe-pingpong,fault-anon,fork-exit,mem-mmap,file-open";
    let range = format!("{guilty}~4..{guilty}");
    let chosen = ["--workload", workloads, "--seeds", "1"];
    let clock = Clock::start();
    let series = output_of(
        home,
        &[&["series", &range, "--tree", tree], &chosen[..]].concat(),
    );
    clock.say("a series of four commits, 8 rows (goal 120 s)");
    assert!(
        series.starts_with("exit 1") && series.contains("fault-anon"),
        "{series}"
    );
    let took = series.lines().find(|line| line.starts_with("took "));
    println!("  {}", took.unwrap());
}

#[test]
fn planted_regressions_are_bisected_in_real_sources() {
    let Some(full) = std::env::var_os("MARVIN_FULL") else {
        println!("skipped: real kernels are built only with MARVIN_FULL=1");
        return;
    };
    let home = home();
    let from_nothing = image(&home, "deb-src:6.12", None);
    let (tree, guilty) = history("6.12", &home.join("workshop/debian"));
    let name = tree.name();
    for (workload, guilty) in ["fault-anon", "fork-exit"].into_iter().zip(&guilty) {
        bisect(&home, &name, workload, guilty);
    }
    measure_four(&home, &name, &guilty[0]);
    if full == "bench" {
        return;
    }
    // Delete the index of builds by source; the object files are those of other commits.
    fs::remove_dir_all(home.join("builds/by-recipe")).unwrap();
    let upon_others = image(&home, "git:good", Some(&name));
    assert_eq!(upon_others, from_nothing);

    let clock = Clock::start();
    let range = format!("{0}~2..{0}", guilty[0]);
    let few = ["--seeds", "1", "--workload", "fault-anon,fork-exit", "-q"];
    let series = output_of(
        &home,
        &[&["series", &range, "--tree", &name], &few[..]].concat(),
    );
    clock.say("a series of two commits");
    assert!(
        series.starts_with("exit 1") && series.contains("1 of 2 workloads changed"),
        "{series}"
    );
    image(&home, "deb-src:6.1", None);
    let compared = output_of(
        &home,
        &[&["compare", "deb-src:6.1", "deb-src:6.12"], &few[..]].concat(),
    );
    assert!(
        ["exit 0", "exit 1", "exit 3"]
            .iter()
            .any(|exit| compared.starts_with(exit)),
        "{compared}"
    );
}
