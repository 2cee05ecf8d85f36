//! Benchmarks of a small tree with the layouts of real files, and of a real tree.

use std::fs;
use std::path::Path;

use super::{Benchmark, BenchmarkKind, SourceText, find_benchmarks};
use crate::source::run_git;

/// Files as in Linux 6.12 and 6.18, each cut to what is read of it.
const FILES: [(&str, &str); 29] = [
    ("Kbuild", "obj-y += lib/ mm/ kernel/ drivers/ crypto/\n"),
    (
        "Kconfig",
        "mainmenu \"Linux\"\nsource \"arch/$(SRCARCH)/Kconfig\"\nsource \"lib/Kconfig\"\nsource \"drivers/Kconfig\"\n",
    ),
    (
        "arch/x86/Kconfig",
        "config X86\n\tdef_bool y\n\tselect HAVE_FAST if X86\nconfig MODULES\n\tbool \"Modules\"\nconfig EXPERT\n\tbool \"Expert\"\n\
         config MMU\n\tdef_bool y\nconfig HAVE_FAST\n\tbool\n",
    ),
    (
        "lib/Kconfig",
        "config DEBUG_KERNEL\n\tbool \"Debug\"\n\thelp\n\t  config NOT_AN_OPTION\n\nmenuconfig RUNTIME_TESTING_MENU\n\tbool \"Testing\"\n\
         if RUNTIME_TESTING_MENU\nconfig FIND_BIT_BENCHMARK\n\ttristate \"Test find_bit functions\"\n\
         config TEST_VMALLOC\n\ttristate \"Test vmalloc\"\n\tdepends on MMU && HAVE_FAST\n\tdepends on m\nendif\n\
         config KUNIT\n\ttristate \"KUnit\"\nconfig CRC_KUNIT_TEST\n\ttristate \"CRC tests\" if !KUNIT_ALL_TESTS\n\tdepends on KUNIT && DEBUG_KERNEL\n\
         \tselect CRC32\nconfig CRC_BENCHMARK\n\tbool \"Benchmark\"\n\tdepends on CRC_KUNIT_TEST\nconfig CRC32\n\ttristate\n\
         config RAID6_PQ\n\ttristate\nconfig RAID6_PQ_BENCHMARK\n\tbool \"Choose fastest\"\n\tdepends on RAID6_PQ\nconfig BTRFS_FS\n\ttristate \"Btrfs\"\n\tselect RAID6_PQ\n\
         config LOCK_TORTURE_TEST\n\ttristate \"torture tests for locking\"\n\tdepends on (m || EXPERT)\nconfig BOOT_TEST\n\tbool \"Boot\"\n\
         config TRACEPOINT_BENCHMARK\n\tbool \"Add tracepoint that benchmarks tracepoints\"\n\
         config ARM_TEST\n\ttristate \"Other\"\n\tdepends on ARM\n",
    ),
    ("drivers/Kconfig", "config NVME\n\ttristate \"NVMe\"\n"),
    (
        "lib/Makefile",
        "obj-$(CONFIG_FIND_BIT_BENCHMARK) += find_bit_benchmark.o\nobj-$(CONFIG_TEST_VMALLOC) += test_vmalloc.o\n\
         obj-y += tests/\nobj-$(CONFIG_RAID6_PQ) += raid6/\nobj-$(CONFIG_BOOT_TEST) += boot_test.o\nobj-$(CONFIG_ARM_TEST) += arm_test.o\n",
    ),
    (
        "lib/raid6/Makefile",
        "obj-$(CONFIG_RAID6_PQ) += raid6_pq.o\nraid6_pq-y += algos.o \\\n  recov.o\n",
    ),
    (
        "lib/tests/Makefile",
        "obj-$(CONFIG_CRC_KUNIT_TEST) += crc_kunit.o\n",
    ),
    ("kernel/Makefile", "obj-y += locking/ trace/\n"),
    (
        "kernel/locking/Makefile",
        "obj-$(CONFIG_LOCK_TORTURE_TEST) += locktorture.o\n",
    ),
    ("drivers/Makefile", "obj-$(CONFIG_NVME) += nvme.o\n"),
    (
        "lib/find_bit_benchmark.c",
        "pr_err(\"find_next_bit:      %18llu ns, %6ld iterations\\n\", time, cnt);\nmodule_init(find_bit_test);\n",
    ),
    (
        "lib/test_vmalloc.c",
        "pr_info(\n\"Summary: %s passed: %d \"\n\"avg: %llu usec\\n\", x);\nmodule_init(vmalloc_test_init)\n",
    ),
    (
        "lib/tests/crc_kunit.c",
        "static void crc32_benchmark(struct kunit *test) { if (!IS_ENABLED(CONFIG_CRC_BENCHMARK)) return;\n\
         kunit_info(test, \"len=%zu: %llu MB/s\\n\", len, speed); }\n\tKUNIT_CASE(crc32_benchmark),\nkunit_test_suite(crc_test_suite);\n",
    ),
    (
        "lib/raid6/algos.c",
        "#ifdef CONFIG_RAID6_PQ_BENCHMARK\npr_info(\"raid6: %-8s gen() %5ld MB/s\\n\", n, p);\nsubsys_initcall(raid6_select_algo);\n",
    ),
    (
        "lib/boot_test.c",
        "pr_info(\"took %llu ns\\n\", t);\nlate_initcall(boot_test);\n",
    ),
    (
        "lib/arm_test.c",
        "pr_info(\"took %llu ns\\n\", t);\nmodule_init(arm_test);\n",
    ),
    (
        "kernel/locking/locktorture.c",
        "if (!torture_init_begin(torture_type, verbose))\nmodule_init(lock_torture_init);\n",
    ),
    (
        "kernel/trace/Makefile",
        "obj-$(CONFIG_TRACEPOINT_BENCHMARK) += trace_benchmark.o\n",
    ),
    (
        "kernel/trace/trace_benchmark.c",
        "early_initcall(ok_to_run_trace_benchmark);\n",
    ),
    // A driver that prints a time is no benchmark.
    (
        "drivers/nvme.c",
        "dev_info(dev, \"timeout %d ms\\n\", t);\nmodule_init(nvme_init);\n",
    ),
    (
        "tools/perf/builtin-bench.c",
        "static struct bench syscall_benchmarks[] = {\n\t{ \"basic\",\t\"Benchmark for basic getppid(2) calls\", bench_syscall_basic },\n\
         \t{ \"all\", \"Run all\", NULL },\n\t{ NULL, NULL, NULL }\n};\n\
         static struct collection collections[] = {\n\t{ \"syscall\", \"System call benchmarks\",\tsyscall_benchmarks\t},\n\t{ NULL, NULL, NULL }\n};\n",
    ),
    (
        "tools/testing/selftests/seccomp/Makefile",
        "TEST_GEN_PROGS := seccomp_bpf \\\n\tseccomp_benchmark\ninclude ../lib.mk\n",
    ),
    (
        "tools/testing/selftests/seccomp/config",
        "CONFIG_SECCOMP=y\n",
    ),
    (
        "tools/testing/selftests/mm/Makefile",
        "TEST_GEN_FILES += gup_test\n",
    ),
    (
        "tools/testing/selftests/mm/gup_test.c",
        "int main(int argc, char **argv)\n{\n",
    ),
    (
        "tools/testing/selftests/kvm/Makefile.kvm",
        "TEST_GEN_PROGS_x86 += dirty_log_perf_test\nTEST_GEN_PROGS_arm64 += other_perf_test\n",
    ),
    (
        "tools/testing/selftests/kvm/dirty_log_perf_test.c",
        "int main(int argc, char *argv[])\n{\n",
    ),
    (
        "tools/testing/selftests/kvm/other_perf_test.c",
        "int main(int argc, char *argv[])\n{\n",
    ),
];

fn write_tree(folder: &Path) {
    let selftest = (
        "tools/testing/selftests/seccomp/seccomp_benchmark.c",
        "int main(int argc, char *argv[])\n{\n",
    );
    for (path, text) in FILES.iter().chain([&selftest]) {
        let file = folder.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

fn show(benchmarks: &[Benchmark]) -> String {
    let lines = benchmarks.iter().map(|of| {
        let mut parts = vec![
            of.name.clone(),
            of.kind.to_string(),
            of.file.clone(),
            of.about.clone(),
        ];
        if let Some(module) = &of.module {
            let parameters = module.parameters.join(" ");
            parts.push(format!("{} {parameters} {}", module.name, module.seconds));
        }
        parts.push(of.options.join(","));
        parts.push(of.formats.join("; "));
        parts.extend(of.cannot.iter().map(|why| format!("NOT: {why}")));
        parts.join(" | ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn benchmarks_of_a_directory_are_found() {
    let tree = tempfile::tempdir().unwrap();
    write_tree(tree.path());
    let source = SourceText::of_directory(tree.path()).unwrap();
    insta::assert_snapshot!(
        "benchmarks_of_a_small_tree",
        show(&find_benchmarks(&source).unwrap())
    );
}

#[test]
fn revisions_are_read_without_a_checkout() {
    let tree = tempfile::tempdir().unwrap();
    write_tree(tree.path());
    let git = |words: &[&str]| run_git(tree.path(), words);
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "all"]);
    let of_directory = find_benchmarks(&SourceText::of_directory(tree.path()).unwrap()).unwrap();
    fs::remove_file(tree.path().join("lib/find_bit_benchmark.c")).unwrap();
    git(&["commit", "-q", "-a", "-m", "less"]);
    let at = |revision: &str| SourceText::of_revision(tree.path(), revision).unwrap();
    assert_eq!(find_benchmarks(&at("HEAD~1")).unwrap(), of_directory);
    let less = find_benchmarks(&at("HEAD")).unwrap();
    assert_eq!(less.len(), of_directory.len() - 1);
    let file = "lib/find_bit_benchmark.c";
    assert!(at("HEAD~1").has_file(file).unwrap() && !at("HEAD").has_file(file).unwrap());
}

/// `MARVIN_TREE` names a kernel tree; without it the test has nothing to look at.
#[test]
fn real_tree_has_its_known_benchmarks() {
    let Some(tree) = std::env::var_os("MARVIN_TREE") else {
        return;
    };
    let source = SourceText::of_revision(Path::new(&tree), "HEAD").unwrap();
    let found = find_benchmarks(&source).unwrap();
    let of_kind = |kind| found.iter().filter(|of| of.kind == kind).count();
    assert!(of_kind(BenchmarkKind::Module) >= 15 && of_kind(BenchmarkKind::Perf) >= 15);
    for name in [
        "find_bit_benchmark",
        "test_vmalloc",
        "rcuscale",
        "tcrypt",
        "perf-syscall-basic",
    ] {
        let one = found.iter().find(|of| of.name == name);
        assert!(one.is_some_and(|of| of.cannot.is_none()), "{name}");
    }
}
