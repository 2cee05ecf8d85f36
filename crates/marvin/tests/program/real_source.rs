//! A real source to its end where `MARVIN_FULL` is set: imported, built, compared, two planted regressions bisected among 64
//! commits, and a build upon others held against one from nothing.

use std::fs;
use std::time::Instant;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::{folder, told};

/// Files that are compiled, and such that are not.
const PADDED: [&str; 7] =
    ["kernel/sys.c", "fs/open.c", "fs/pipe.c", "lib/string.c", "net/socket.c", "mm/mmap.c", "kernel/signal.c"];
const NOT_COMPILED: [&str; 5] = [
    "Documentation/mm/index.rst",
    "fs/xfs/xfs_super.c",
    "arch/arm64/mm/fault.c",
    "net/sctp/socket.c",
    "drivers/net/tun.c",
];
/// Where the regressions are: in page faults, and in forks.
const FAULT: (usize, &str, &str, usize) =
    (23, "mm/memory.c", "__set_current_state(TASK_RUNNING);\n\n\tret = sanitize_fault_flags", 100);
const FORK: (usize, &str, &str, usize) =
    (41, "kernel/fork.c", "p = copy_process(NULL, trace, NUMA_NO_NODE, args);", 2000);
const HEADER: (usize, &str) = (30, "include/linux/mm_inline.h");
const COMMITS: usize = 64;

/// Returns the processor seconds of all programs that this one ran and waited for: fields 16 and 17 of stat (proc(5)).
fn spent_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks: f64 = fields.split_whitespace().skip(13).take(2).map(|field| field.parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

/// Makes 64 commits on the newest release of a series: most in files that are not compiled, some that only add a function, and
/// the two that are guilty, which are returned.
fn history(series: &str, debian: &str) -> (Tree, [String; 2]) {
    let tree = Tree::new(&format!("real-source-tree-{series}"));
    tree.git(&["fetch", "-q", debian, series]);
    let files = [FAULT.1, FORK.1, HEADER.1].into_iter().chain(PADDED).chain(NOT_COMPILED);
    let sparse: Vec<String> = files.map(|file| format!("/{file}")).collect();
    let set = ["sparse-checkout", "set", "--no-cone"];
    tree.git(&set.into_iter().chain(sparse.iter().map(String::as_str)).collect::<Vec<_>>());
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
            let pad = format!("int marvin_pad_{n}(void);\nint marvin_pad_{n}(void) {{ return {n}; }}\n");
            tree.commit(file, &format!("{}{pad}", read(file)));
        } else {
            let file = NOT_COMPILED[n % NOT_COMPILED.len()];
            tree.commit(file, &format!("{}/* {n} */\n", read(file)));
        }
    }
    (tree, guilty)
}

/// Returns the number before some words.
fn number_before(text: &str, words: &str) -> f64 {
    let at = text.find(words).unwrap();
    text[..at].split_whitespace().next_back().unwrap().parse().unwrap()
}

#[test]
fn planted_regressions_are_bisected_in_real_sources() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!("skipped: real kernels are built only with MARVIN_FULL=1");
        return;
    }
    let home = folder("real-source-home");
    let debian = home.join("workshop/debian").display().to_string();
    for series in ["6.1", "6.12"] {
        let source = format!("deb-src:{series}");
        let built = told(&home, &["build", &source, "-q"]);
        assert!(built.starts_with("exit 0"), "{built}");
        let (tree, guilty) = history(series, &debian);
        for (workload, guilty) in ["fault-anon", "fork-exit"].into_iter().zip(&guilty) {
            let (spent, begun) = (spent_s(), Instant::now());
            let range = ["bisect", "good", "main", "--tree", &tree.name(), "--workload", workload, "--no-revert"];
            let said = told(&home, &range);
            let builds = said.matches(": building commit ").count();
            let left = number_before(&said, " of which can change");
            println!(
                "{series} {workload}: {builds} builds, {left} of {COMMITS} commits left, {:.0} s, {:.0} s CPU",
                begun.elapsed().as_secs_f64(),
                spent_s() - spent
            );
            assert!(said.starts_with("exit 0"), "{said}");
            assert!(said.contains(&format!("worse   {} (", &guilty[..12])), "{said}");
            assert!(said.contains("explained: 100.0 %") || said.contains("explained: 99.9 %"), "{said}");
            assert!(builds as f64 <= left.log2().ceil() + 2.0, "{said}");
            let again = told(&home, &[&range[..7], &["-q"]].concat());
            assert!(again.contains("confirmed: BAD without it"), "{again}");
        }
    }
    let compared =
        told(&home, &["compare", "deb-src:6.1", "deb-src:6.12", "--quick", "--workload", "fault,fork", "-q"]);
    assert!(["exit 0", "exit 1", "exit 3"].iter().any(|exit| compared.starts_with(exit)), "{compared}");
}

/// What `marvin build` says of the image.
fn image(said: &str) -> String {
    assert!(said.starts_with("exit 0"), "{said}");
    said.lines().find(|line| line.starts_with("build ")).unwrap().to_owned()
}

#[test]
fn a_build_upon_others_is_the_one_from_nothing() {
    if std::env::var_os("MARVIN_FULL").is_none() {
        println!("skipped: real kernels are built only with MARVIN_FULL=1");
        return;
    }
    let home = folder("real-source-home");
    assert!(told(&home, &["build", "deb-src:6.12", "-q"]).starts_with("exit 0"));
    let (tree, guilty) = history("6.12", &home.join("workshop/debian").display().to_string());
    let name = tree.name();
    let last = ["build", "git:main", "--tree", &name];
    let of = |home: &std::path::Path| image(&told(home, &last));
    // After another commit, and again after its own objects were those of the commit after it.
    told(&home, &["build", &format!("git:{}", guilty[0]), "--tree", &name, "-q"]);
    let upon_others = of(&home);
    let clean = fresh("clean-build-home");
    assert_eq!(of(&clean), upon_others);
    fs::remove_dir_all(clean).unwrap();
}
