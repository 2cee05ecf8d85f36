//! What a real compiler says of the functions of small files, built by a fake `make`.

use super::Sources;
use super::tests::Tree;

/// Compiles one file and records the command as Kbuild does.
const MAKEFILE: &str = "command = gcc -O2 -I$(CURDIR) -c -o mm/memory.o $(CURDIR)/mm/memory.c\n\
    tinyconfig:\n\t@echo CONFIG_64BIT=y >$(O)/.config\n\
    olddefconfig:\n\t@sed -i /CONFIG_PVH/d $(O)/.config\n\
    vmlinux:\n\t@mkdir -p $(O)/mm && cd $(O) && $(command)\n\
    \t@echo 'savedcmd_mm/memory.o := $(command) ; true' >$(O)/mm/.memory.o.cmd\n\
    \t@echo 'deps := $(CURDIR)/mm/memory.c $(CURDIR)/mm/inner.h' >>$(O)/mm/.memory.o.cmd\n\
    \t@cp image $(O)/vmlinux\n";
const MEMORY: &str = "#include \"inner.h\"\n#define TIMES 3\n\nint beside(int a)\n{\n\treturn a * TIMES + __LINE__;\n}\n\n\
    int outer(int a)\n{\n\treturn inner(a) + 1;\n}\n\n#ifdef NEVER\nint left_out(int a)\n{\n\treturn a;\n}\n#endif\n";
const INNER: &str = "static inline int inner(int a)\n{\n\treturn a ^ 5;\n}\n";

#[test]
fn compiler_says_which_functions_differ() {
    let tree = Tree::new();
    tree.write("Makefile", MAKEFILE);
    tree.write("mm/memory.c", MEMORY);
    tree.write("mm/inner.h", INNER);
    tree.commit("base");
    tree.write("mm/inner.h", INNER.replace("^ 5", "^ 6"));
    tree.image("two");
    tree.commit("inlined");
    // Lines move, and a macro changes.
    tree.write("mm/memory.c", MEMORY.replace("TIMES 3", "TIMES \\\n\t4"));
    tree.image("three");
    tree.commit("macro");
    let sources = Sources::open(&tree.cache()).unwrap();
    let quiet = |_| {};
    let commit = |tag: &str| sources.repository().commit(tag).unwrap();
    let [base, second, third] = ["base", "inlined", "macro"].map(commit);
    for commit in [&base, &second, &third] {
        sources.build(commit, &quiet).unwrap();
    }
    let inlined = sources.function_changes(&base, &second, &quiet).unwrap();
    let differing = |changes: &crate::FunctionChanges| {
        ["outer", "beside", "elsewhere"].map(|function| changes.differs(function))
    };
    // The image of the fake is a file of which nothing is known.
    assert_eq!(differing(&inlined), [Some(true), Some(false), None]);
    assert_eq!(inlined.hosts("inner"), ["outer"]);
    let changed = sources.function_changes(&second, &third, &quiet).unwrap();
    assert_eq!(differing(&changed), [Some(false), Some(true), None]);
    assert_eq!(changed.is_compiled("left_out"), None);
    // The second time nothing is built and no compiler is asked.
    let silent = |_| panic!("it is known");
    assert_eq!(
        sources.function_changes(&second, &third, &silent).unwrap(),
        changed
    );
}

#[test]
fn files_named_in_debug_information_stay_closed() {
    let tree = Tree::new();
    tree.write("Makefile", MAKEFILE);
    tree.write("mm/inner.h", INNER);
    tree.write("mm/memory.c", MEMORY);
    tree.commit("base");
    // A reader would follow it, and /dev/zero has no end.
    let link =
        "asm(\".section .gnu_debugaltlink\\n.string \\\"/dev/zero\\\"\\n.quad 1\\n.text\");\n";
    tree.write("mm/memory.c", format!("{MEMORY}{link}"));
    tree.image("two");
    tree.commit("hostile");
    let sources = Sources::open(&tree.cache()).unwrap();
    let quiet = |_| {};
    let commit = |tag: &str| sources.repository().commit(tag).unwrap();
    let [base, hostile] = ["base", "hostile"].map(commit);
    for commit in [&base, &hostile] {
        sources.build(commit, &quiet).unwrap();
    }
    sources.function_changes(&base, &hostile, &quiet).unwrap();
    let records = std::fs::read_dir(tree.home.path().join("builds/by-recipe")).unwrap();
    let files = records.map(|entry| entry.unwrap().path());
    let described = files.filter(|file| file.extension().is_some_and(|end| end == "functions"));
    let texts: Vec<String> = described
        .map(|file| std::fs::read_to_string(file).unwrap())
        .collect();
    let refused = "unknown\tmm/memory.c\tits debug information cannot be read";
    let count = texts.iter().filter(|text| text.contains(refused)).count();
    assert_eq!(count, 1, "{texts:?}");
}

#[test]
fn lines_left_out_by_the_config_name_options() {
    let source = "int always;\n#ifdef CONFIG_HIGHMEM\nint nodes;\n#else\nint one_node;\n#endif\n";
    let tree = Tree::new();
    // A second file is part of the first one, as kernel/sched/build_policy.c has it.
    let policy = "#ifdef CONFIG_UCLAMP_TASK\n# include \"psi.c\"\n#endif\n";
    tree.write("mm/memory.c", source);
    tree.write("mm/policy.c", policy);
    tree.write("mm/psi.c", "int psi;\n");
    tree.commit("base");
    tree.write("mm/memory.c", source.replace("int nodes", "long nodes"));
    tree.commit("left-out");
    tree.write("mm/memory.c", source.replace("int ", "short "));
    tree.commit("both-branches");
    let third = source
        .replace("int always", "char always")
        .replace("int nodes;\n", "");
    tree.write("mm/memory.c", third.replace("int one", "short one"));
    tree.commit("partly");
    tree.write("mm/psi.c", "long psi;\n");
    tree.commit("included");
    tree.write("mm/psi.c", "long psi;\n/* words */\n");
    tree.write(
        "mm/memory.c",
        third.replace("int one", "short one") + "/* words */\n",
    );
    tree.commit("words");
    let sources = Sources::open(&tree.cache()).unwrap();
    let commit = |tag: &str| sources.repository().commit(tag).unwrap();
    let tags = [
        "base",
        "left-out",
        "both-branches",
        "partly",
        "included",
        "words",
    ];
    for tag in tags {
        sources.build(&commit(tag), &|_| {}).unwrap();
    }
    let coverage = |number: usize| {
        let [older, newer] = [tags[number - 1], tags[number]].map(commit);
        let found = sources.coverage(&older, &newer).unwrap();
        let not_compiled = found.not_compiled.iter().map(ToString::to_string);
        (not_compiled.collect::<Vec<_>>(), found.has_compiled)
    };
    let named = |text: &str| vec![text.to_owned()];
    let left_out = named("mm/memory.c (needs CONFIG_HIGHMEM)");
    assert_eq!(coverage(1), (left_out, false));
    assert_eq!(
        coverage(2),
        (Vec::new(), true),
        "the other branch is compiled"
    );
    let removed = named("mm/memory.c removed line 3 (needs CONFIG_HIGHMEM)");
    assert_eq!(coverage(3), (removed, true));
    let included = named("mm/psi.c (needs CONFIG_UCLAMP_TASK)");
    assert_eq!(coverage(4), (included, false));
    assert_eq!(coverage(5), (Vec::new(), false), "words are no code");
}
