//! Benchmarks of the kernel's own source: listed, chosen, and with `MARVIN_FULL` built and run.

use std::fs;

use crate::bisected::Tree;
use crate::fresh::fresh;
use crate::real_build::unpack;
use crate::{format_output, is_left_to_full, marvin, output_of};

/// A tree with one benchmark of each kind, with the layouts of real files.
const FILES: [(&str, &str); 10] = [
    ("Kbuild", "obj-y += lib/\n"),
    (
        "Kconfig",
        "config MODULES\n\tbool \"Modules\"\nsource \"lib/Kconfig\"\n",
    ),
    (
        "lib/Kconfig",
        "config FIND_BIT_BENCHMARK\n\ttristate \"Test find_bit functions\"\nconfig BOOT_TEST\n\tbool \"Boot\"\n\
         config KUNIT\n\ttristate \"KUnit\"\nconfig CRC_KUNIT_TEST\n\ttristate \"CRC tests\"\n\tdepends on KUNIT\n",
    ),
    (
        "lib/Makefile",
        "obj-$(CONFIG_FIND_BIT_BENCHMARK) += find_bit_benchmark.o\nobj-$(CONFIG_BOOT_TEST) += boot_test.o\n\
         obj-$(CONFIG_CRC_KUNIT_TEST) += crc_kunit.o\n",
    ),
    (
        "lib/boot_test.c",
        "pr_info(\"took %llu ns\\n\", t);\nlate_initcall(boot_test);\n",
    ),
    (
        "lib/crc_kunit.c",
        "kunit_info(test, \"len=%zu: %llu MB/s\\n\", len, speed);\nKUNIT_CASE(crc32_benchmark),\nkunit_test_suite(crc);\n",
    ),
    (
        "tools/perf/builtin-bench.c",
        "static struct bench syscall_benchmarks[] = {\n\t{ \"basic\", \"Benchmark for basic getppid(2) calls\", b },\n};\n\
         static struct collection collections[] = {\n\t{ \"syscall\", \"System call benchmarks\", syscall_benchmarks },\n};\n",
    ),
    (
        "tools/testing/selftests/seccomp/Makefile",
        "TEST_GEN_PROGS := seccomp_benchmark\n",
    ),
    (
        "tools/testing/selftests/seccomp/config",
        "CONFIG_SECCOMP=y\n",
    ),
    (
        "tools/testing/selftests/seccomp/seccomp_benchmark.c",
        "int main(void)\n",
    ),
];

fn small_tree(name: &str) -> Tree {
    let tree = Tree::new(name);
    for (path, text) in FILES {
        let file = tree.folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    tree.git(&["add", "-A"]);
    tree.git(&["commit", "-qm", "a source"]);
    tree.git(&["tag", "before"]);
    tree.commit(
        "lib/find_bit_benchmark.c",
        "pr_err(\"find_next_bit: %18llu ns, %6ld iterations\\n\", t, n);\nmodule_init(find_bit_test);\n",
    );
    tree
}

#[test]
fn benchmarks_of_a_tree_are_listed() {
    let home = fresh("tree-benchmarks-home");
    let tree = small_tree("tree-benchmarks-list");
    let name = tree.name();
    let list = |more: &[&str]| {
        let words = [&["workloads", "--tree", &name][..], more].concat();
        output_of(&home, &words).replace(&name, "TREE")
    };
    let text = list(&[]);
    let commit: String = tree.git(&["rev-parse", "HEAD"]).chars().take(12).collect();
    insta::assert_snapshot!("benchmarks-of-tree", text.replace(&commit, "COMMIT"));
    let before = list(&["--revision", "before"]);
    assert!(!before.contains("find_bit_benchmark"), "{before}");
    assert!(list(&["--revision", "none"]).starts_with("exit 2"));
    let json = list(&["--format", "json"]);
    assert!(json.contains("\"kind\": \"benchmarks\""), "{json}");
}

#[test]
fn unusable_benchmarks_are_named() {
    let home = fresh("tree-mistakes-home");
    // Outside any kernel tree.
    let elsewhere = tempfile::tempdir().unwrap();
    let tree = small_tree("tree-benchmarks-mistakes");
    let name = tree.name();
    let run = |word: &str| {
        let words = ["run", "git:HEAD", "--tree", &name, "--workload", word, "-q"];
        output_of(&home, &words).replace(&name, "TREE")
    };
    insta::assert_snapshot!("benchmark-unknown", run("tree:find_bit_benchmrk"));
    insta::assert_snapshot!("benchmark-built-in", run("tree:boot_test"));
    insta::assert_snapshot!("benchmark-parameter", run("tree:find_bit_benchmark:runs 3"));
    insta::assert_snapshot!("benchmark-program", run("tree:seccomp-benchmark:loops=3"));
    let output = marvin(&home)
        .args(["run", "deb:6.12", "--workload", "tree:crc_kunit"])
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    insta::assert_snapshot!("benchmark-without-tree", format_output(&output, &home));
}

#[test]
fn module_is_built_loaded_and_read() {
    if is_left_to_full("builds a kernel for four minutes") {
        return;
    }
    let home = fresh("tree-module-home");
    let tree = Tree::new("tree-module");
    unpack(&tree.folder);
    // Debian's .gitignore lists the upstream files.
    drop(fs::remove_file(tree.folder.join(".gitignore")));
    tree.git(&["add", "-A"]);
    tree.git(&["commit", "-qm", "Debian's source"]);
    let name = tree.name();
    let list = output_of(&home, &["workloads", "--tree", &name, "--format", "json"]);
    let usable = list.matches("\"cannot\": null").count();
    assert!(usable >= 15, "{usable} usable: {list}");
    let run = |kernel: &str| {
        let words = [
            "run",
            kernel,
            "--tree",
            &name,
            "--workload",
            "tree:find_bit_benchmark",
            "--config",
            "tiny",
        ];
        output_of(&home, &words)
    };
    let text = run("git:HEAD");
    // lib/find_bit_benchmark.c measures with a random and with a sparse bitmap.
    for expected in [
        "exit 0",
        "FIND_BIT_BENCHMARK=m in the config of each kernel",
        "instructions/op",
        "sparse.find_next_bit",
        " ns",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // A package of Debian has no such module.
    let without = run("deb:6.12");
    assert!(
        without.contains("no module find_bit_benchmark"),
        "{without}"
    );
}
