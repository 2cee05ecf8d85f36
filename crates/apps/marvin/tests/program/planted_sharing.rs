//! Sharing planted in Debian's kernel source, if `MARVIN_FULL` is set: false sharing in a
//! structure, a global counter, a global lock and a shared per-CPU counter. Each is named by its
//! function and its word, and one of them is bisected among decoys.

use std::fs;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::real_build::unpack;
use crate::{format_output, is_left_to_full, marvin};

/// What is planted: in a file, one text in place of another, everywhere in it.
struct Edit {
    file: &'static str,
    old: &'static str,
    new: &'static str,
}

struct Planted {
    edits: &'static [Edit],
    workload: &'static str,
    function: &'static str,
    /// The beginning of the word's name.
    word: &'static str,
    /// What share of the whole difference is of such words; the rest is others', whose turns come
    /// at other times.
    share: std::ops::RangeInclusive<f64>,
}

const ALONE: std::ops::RangeInclusive<f64> = 0.95..=1.05;

const PLANTED: [Planted; 4] = [
    Planted {
        edits: &[
            Edit {
                file: "include/linux/fdtable.h",
                old: "\tstruct fdtable fdtab;",
                new: "\tunsigned long marvin_used[2];\n\tstruct fdtable fdtab;",
            },
            Edit {
                file: "fs/file.c",
                old: "\tstruct file *file;\n\n\t/*\n\t * If another thread",
                new: "\tstruct file *file;\n\n\tfiles->marvin_used[raw_smp_processor_id() & 1]++;\n\t/*\n\t * If another thread",
            },
        ],
        workload: "share-pread-own",
        function: "fdget",
        word: "files_struct.",
        share: ALONE,
    },
    Planted {
        edits: &[
            Edit {
                file: "fs/open.c",
                old: "static long do_sys_openat2(",
                new: "static atomic_long_t marvin_opened;\n\nstatic long do_sys_openat2(",
            },
            Edit {
                file: "fs/open.c",
                old: "\ttmp = getname(filename);",
                new: "\tatomic_long_inc(&marvin_opened);\n\ttmp = getname(filename);",
            },
        ],
        workload: "share-open-folder",
        function: "do_sys_openat2",
        word: "marvin_opened",
        share: 0.02..=50.0,
    },
    Planted {
        edits: &[
            Edit {
                file: "fs/pipe.c",
                old: "lock(&pipe->mutex)",
                new: "lock(&marvin_pipes)",
            },
            Edit {
                file: "fs/pipe.c",
                old: "#include \"internal.h\"\n",
                new: "#include \"internal.h\"\n\nstatic DEFINE_MUTEX(marvin_pipes);\n",
            },
        ],
        workload: "share-pipe-own",
        function: "mutex_lock",
        word: "marvin_pipes",
        share: ALONE,
    },
    Planted {
        edits: &[
            Edit {
                file: "fs/file_table.c",
                old: "percpu_counter_dec(&nr_files)",
                new: "atomic_long_dec(&marvin_files)",
            },
            Edit {
                file: "fs/file_table.c",
                old: "percpu_counter_inc(&nr_files)",
                new: "atomic_long_inc(&marvin_files)",
            },
            Edit {
                file: "fs/file_table.c",
                old: "static struct percpu_counter nr_files",
                new: "static atomic_long_t marvin_files __cacheline_aligned_in_smp;\nstatic struct percpu_counter nr_files",
            },
        ],
        workload: "share-open-own",
        function: "__fput",
        word: "marvin_files",
        share: 0.02..=50.0,
    },
];

/// Decoys: functions that nothing calls, and files that are not compiled.
fn decoy(tree: &Tree, number: usize) {
    let read = |file: &str| fs::read_to_string(tree.folder.join(file)).unwrap();
    let pad = format!(
        "int marvin_pad_{number}(void);\nint marvin_pad_{number}(void) {{ return {number}; }}\n"
    );
    tree.commit("lib/string.c", &format!("{}{pad}", read("lib/string.c")));
    tree.commit(
        "Documentation/mm/index.rst",
        &format!("not compiled {number}\n"),
    );
}

/// Returns the commits of what is planted, each with a tag `planted-N` and one for the commit
/// before it.
fn history(tree: &Tree) -> Vec<String> {
    unpack(&tree.folder);
    // Debian's .gitignore lists the upstream files.
    drop(fs::remove_file(tree.folder.join(".gitignore")));
    tree.git(&["add", "-A"]);
    tree.git(&["commit", "-qm", "Debian's source"]);
    tree.git(&["tag", "good"]);
    let plant = |(number, planted): (usize, &Planted)| {
        decoy(tree, number);
        tree.git(&["tag", &format!("before-{number}")]);
        for Edit { file, old, new } in planted.edits {
            let path = tree.folder.join(file);
            let text = fs::read_to_string(&path).unwrap();
            assert!(text.contains(old), "{file}: {old}");
            fs::write(path, text.replace(old, new)).unwrap();
        }
        tree.git(&["commit", "-qam", &format!("planted {number}")]);
        tree.git(&["tag", &format!("planted-{number}")]);
        tree.git(&["rev-parse", "HEAD"])
    };
    let commits = PLANTED.iter().enumerate().map(plant).collect();
    decoy(tree, PLANTED.len());
    commits
}

#[test]
fn planted_sharing_is_named_and_bisected() {
    if is_left_to_full("builds kernels for ten minutes") {
        return;
    }
    let tree = Tree::new("planted-sharing-tree");
    let commits = history(&tree);
    let home = fresh("planted-sharing-home");
    let name = tree.name();
    let of_tree = ["--tree", &name, "--config", "smp", "--on", "exact-smp"];
    let run = |arguments: &[&str]| {
        // Shims of other Pythons lead out of the walls around builds.
        let path = "/usr/sbin:/usr/bin:/sbin:/bin";
        format_output(
            &marvin(&home)
                .env("PATH", path)
                .args(arguments)
                .args(of_tree)
                .output()
                .unwrap(),
            &home,
        )
    };
    for (number, planted) in PLANTED.iter().enumerate() {
        let sides = [
            format!("git:before-{number}"),
            format!("git:planted-{number}"),
        ];
        let workloads = format!("{},share-no-syscall", planted.workload);
        let output = run(&[
            "profile",
            &sides[0],
            &sides[1],
            "--workload",
            &workloads,
            "--format",
            "json",
            "-q",
        ]);
        let json = output
            .split_once("-- out\n")
            .and_then(|(_, rest)| rest.rsplit_once("-- err"))
            .unwrap()
            .0;
        let document: serde_json::Value = serde_json::from_str(json).unwrap();
        for of_workload in document["workloads"].as_array().unwrap() {
            check(planted, of_workload);
        }
    }
    let bisected = run(&["bisect", "good", "main", "--workload", PLANTED[2].workload]);
    assert!(bisected.starts_with("exit 0"), "{bisected}");
    assert!(
        bisected.contains(&format!("worse   {} (\"planted 2\")", &commits[2][..12])),
        "{bisected}"
    );
    assert!(bisected.contains("confirmed: BAD without it"), "{bisected}");
    assert!(bisected.contains("marvin_pipes"), "{bisected}");
}

/// Compares the ledger of a workload with what was planted; the control does not differ.
fn check(planted: &Planted, of_workload: &serde_json::Value) {
    let difference = |sides: &serde_json::Value| {
        sides["new"].as_f64().unwrap() - sides["base"].as_f64().unwrap()
    };
    let total = difference(&of_workload["total"]);
    if of_workload["workload"] != planted.workload {
        assert!(total.abs() < 0.01, "the control differs by {total}");
        return;
    }
    let sum_of = |list: &str, wanted: &dyn Fn(&str) -> bool| -> f64 {
        let all = of_workload[list].as_array().unwrap().iter();
        all.filter(|named| wanted(named["name"].as_str().unwrap()))
            .map(difference)
            .sum()
    };
    let of_word = sum_of("words", &|name| name.starts_with(planted.word));
    let of_function = sum_of("functions", &|name| name == planted.function);
    println!(
        "{}: {total:+.3} transfers/op, {of_word:+.3} of {}, {of_function:+.3} in {}",
        planted.workload, planted.word, planted.function
    );
    assert!(of_word > 0.9 && of_function > 0.5, "{}", planted.word);
    assert!(
        planted.share.contains(&(of_word / total.abs())),
        "{}: {of_word} of {total}",
        planted.word
    );
}
