//! Builds as a user chooses them: compiler, variables of make, configs, modules; by a fake `make`.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::{Build, MakeArgument};

use super::tests::{Tree, is_building};
use crate::source::MakeOptions;
use crate::{BuildCache, BuildEvent, Configuration, KernelError};

/// A fake make whose image has the variables that it got, with modules and Rust.
const MAKEFILE: &str = r#"tinyconfig:
	@echo CONFIG_64BIT=y >$(O)/.config
defconfig:
	@echo CONFIG_DEFAULT=y >$(O)/.config
olddefconfig:
	@sed -i -e /CONFIG_RUST/d -e /CONFIG_DROPPED/d $(O)/.config
localmodconfig:
	@sed -i 's/=m/=n/' $(O)/.config; for m in $$(cat $(LSMOD)); do echo CONFIG_$$m=m >>$(O)/.config; done
rustavailable:
	@printf '***\n*** Rust bindings generator is too old.\n***\n' >&2; exit 1
vmlinux:
	@cp image $(O)/vmlinux
	@printf '%s' 'ARCH=$(ARCH) CC=$(CC) LLVM=$(LLVM) KCFLAGS=$(KCFLAGS)' >>$(O)/vmlinux
	@sort -u $(O)/.config >>$(O)/vmlinux
bzImage: vmlinux
	@mkdir -p $(O)/arch/x86/boot; cp $(O)/vmlinux $(O)/arch/x86/boot/bzImage
modules:
	@cp module $(O)/a.ko
modules_install:
	@mkdir -p $(INSTALL_MOD_PATH)/lib/modules/6.9.1-test/kernel
	@cp $(O)/a.ko $(INSTALL_MOD_PATH)/lib/modules/6.9.1-test/kernel
	@ln -s /etc $(INSTALL_MOD_PATH)/lib/modules/6.9.1-test/build
"#;

fn tree() -> Tree {
    let tree = Tree::new();
    tree.write("Makefile", MAKEFILE);
    tree.write("module", "one");
    tree.write("kernel/configs/kvm_guest.config", "CONFIG_KVM=y\n");
    tree.commit("v1");
    tree
}

fn arguments(words: &str) -> Vec<MakeArgument> {
    MakeArgument::parse_words(words).unwrap()
}

/// Returns a cache that builds this way.
fn cache(tree: &Tree, config: &str, make: MakeOptions) -> BuildCache {
    let mut cache = tree.cache();
    let mut settings = cache.settings.clone();
    settings.configuration = Configuration::named(config).unwrap();
    settings.make = make;
    cache.set_sources(settings);
    cache
}

fn resolve(cache: &BuildCache, name: &str) -> (Result<Build, KernelError>, Vec<BuildEvent>) {
    let steps = RefCell::new(vec![]);
    let build = cache.resolve(&name.parse().unwrap(), &|step| {
        steps.borrow_mut().push(step);
    });
    (build, steps.into_inner())
}

/// Returns what the fake make left in an image.
fn recorded(build: &Build) -> String {
    let bytes = fs::read(&build.image.path).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    text[text.find("ARCH=").unwrap()..].to_owned()
}

/// Makes a compiler that prints a version.
fn compiler(folder: &Path, name: &str, version: &str, target: &str) -> PathBuf {
    let file = folder.join(name);
    let script =
        format!("#!/bin/sh\ncase $1 in -dumpmachine) echo {target};; *) echo '{version}';; esac\n");
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file
}

#[test]
fn variables_reach_make_and_identify_the_build() {
    let tree = tree();
    let plain = cache(&tree, "tiny", MakeOptions::default());
    let usual = resolve(&plain, "git:v1").0.unwrap();
    let make = MakeOptions {
        cc: None,
        arguments: arguments("KCFLAGS=-O2 KCFLAGS=\"-O3 -g\" V=1"),
    };
    let chosen = cache(&tree, "tiny", make);
    let (build, steps) = resolve(&chosen, "git:v1");
    let build = build.unwrap();
    assert!(is_building(&steps));
    let text = recorded(&build);
    assert!(
        text.starts_with("ARCH=x86 CC=") && text.contains("KCFLAGS=-O3 -g"),
        "{text}"
    );
    assert_ne!(build.id, usual.id);
    let origin = build.origin.to_string();
    assert!(
        origin.contains(", tiny, gcc")
            && origin.contains(", make KCFLAGS=\"-O3 -g\" V=1, committed"),
        "{origin}"
    );
    assert!(!is_building(&resolve(&chosen, "git:v1").1));
    assert!(!is_building(&resolve(&plain, "git:v1").1));
    // The same by the kernel's name.
    let named = "git:v1@make:KCFLAGS=-O3 -g@make:V=1";
    let (same, steps) = resolve(&plain, named);
    assert!(!is_building(&steps));
    let same = same.unwrap();
    assert_eq!(
        (&same.id, same.name.to_string()),
        (&build.id, named.to_owned())
    );
}

#[test]
fn files_that_variables_name_identify_the_build() {
    let tree = tree();
    let profile = tree.home.path().join("a.afdo");
    fs::write(&profile, "one").unwrap();
    let words = format!("CLANG_AUTOFDO_PROFILE={}", profile.display());
    let make = MakeOptions {
        cc: None,
        arguments: arguments(&words),
    };
    let cache = cache(&tree, "tiny", make);
    assert!(is_building(&resolve(&cache, "git:v1").1));
    assert!(!is_building(&resolve(&cache, "git:v1").1));
    fs::write(&profile, "two").unwrap();
    assert!(is_building(&resolve(&cache, "git:v1").1));
}

#[test]
fn compiler_is_known_by_its_program() {
    let tree = tree();
    let tools = tempfile::tempdir().unwrap();
    let gcc = compiler(
        tools.path(),
        "gcc-99",
        "gcc-99 (Own) 99.1",
        "x86_64-linux-gnu",
    );
    let options = |cc: &Path| MakeOptions {
        cc: Some(cc.display().to_string()),
        arguments: Vec::new(),
    };
    let own = cache(&tree, "tiny", options(&gcc));
    let build = resolve(&own, "git:v1").0.unwrap();
    let compiler_text = build.origin.compiler().unwrap().to_owned();
    assert!(
        compiler_text.starts_with("gcc-99 (Own) 99.1 [") && compiler_text.contains("make CC=/"),
        "{compiler_text}"
    );
    assert!(recorded(&build).contains("gcc-99"), "{}", recorded(&build));
    compiler(
        tools.path(),
        "gcc-99",
        "gcc-99 (Own) 99.1",
        "x86_64-pc-linux-gnu",
    );
    let again = resolve(&own, "git:v1");
    assert!(is_building(&again.1), "another program of the same version");
    assert_ne!(again.0.unwrap().origin.compiler().unwrap(), compiler_text);
    let error = |cc: &str| {
        let cache = cache(&tree, "tiny", options(Path::new(cc)));
        let text = resolve(&cache, "git:v1").0.unwrap_err().to_string();
        text.replace(tools.path().to_str().unwrap(), "TOOLS")
    };
    let unknown = error("gcc-98");
    assert!(
        unknown.starts_with("cannot find the compiler `gcc-98`: this host has ")
            && unknown.ends_with("a distribution may have it (`sudo apt-get install gcc-98`)"),
        "{unknown}"
    );
    insta::assert_snapshot!(error("/bin/true"), @"cannot use the compiler `/bin/true`: `-dumpmachine` says nothing: it is no C compiler");
    insta::assert_snapshot!(error("gcc; id"), @"cannot use the compiler `gcc; id`: cannot give make CC=gcc; id: make or its shell would interpret `;`; allowed are letters, digits, spaces and _-+=.,/:%");
    insta::assert_snapshot!(error("ccache gcc"), @"cannot use the compiler `ccache gcc`: it is not one program: name one, such as gcc-12, clang-19 or /opt/gcc/bin/gcc");
    let arm = compiler(tools.path(), "gcc-arm", "gcc (GNU) 12", "aarch64-linux-gnu");
    insta::assert_snapshot!(error(arm.to_str().unwrap()), @"cannot use the compiler `TOOLS/gcc-arm`: it compiles for aarch64-linux-gnu and not for x86-64");
}

#[test]
fn llvm_needs_all_of_its_programs() {
    let tree = tree();
    let folder = tempfile::tempdir().unwrap();
    compiler(folder.path(), "clang", "clang version 99.0", "x86_64");
    let words = format!("LLVM={}/", folder.path().display());
    let make = MakeOptions {
        cc: None,
        arguments: arguments(&words),
    };
    let error = resolve(&cache(&tree, "tiny", make), "git:v1")
        .0
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/ld.lld, ")
            && error.ends_with("name the directory of a whole LLVM toolchain"),
        "{error}"
    );
    // What a variable names is not missing.
    let words = format!("{words} LD=ld AR=ar");
    let make = MakeOptions {
        cc: None,
        arguments: arguments(&words),
    };
    let error = resolve(&cache(&tree, "tiny", make), "git:v1").0;
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("/llvm-nm, ") && !error.contains("/ld.lld"),
        "{error}"
    );
    let tools = [
        "ld.lld",
        "llvm-ar",
        "llvm-nm",
        "llvm-strip",
        "llvm-objcopy",
        "llvm-objdump",
        "llvm-readelf",
    ];
    let clang = |cc: PathBuf| MakeOptions {
        cc: Some(cc.display().to_string()),
        arguments: Vec::new(),
    };
    let only_cc = cache(&tree, "tiny", clang(folder.path().join("clang")));
    let build = resolve(&only_cc, "git:v1").0.unwrap();
    assert!(
        recorded(&build).contains(" LLVM= "),
        "clang with GNU's binutils"
    );
    for tool in tools {
        compiler(folder.path(), tool, "LLD 99.0", "x86_64");
    }
    let build = resolve(&only_cc, "git:v1").0.unwrap();
    let text = recorded(&build);
    assert!(
        text.contains("/clang LLVM=/"),
        "the whole toolchain: {text}"
    );
}

#[test]
fn configs_are_stacked_per_kernel() {
    let tree = tree();
    let plain = cache(&tree, "tiny", MakeOptions::default());
    let usual = resolve(&plain, "git:v1").0.unwrap();
    let (build, steps) = resolve(&plain, "git:v1@config:memcg=y,DROPPED=y");
    let build = build.unwrap();
    assert_ne!(build.id, usual.id);
    assert!(recorded(&build).contains("CONFIG_MEMCG=y\n"));
    assert!(
        build
            .origin
            .to_string()
            .contains(", tiny+memcg=y+DROPPED=y, gcc"),
        "{}",
        build.origin
    );
    assert!(steps.iter().any(|step: &BuildEvent| matches!(step, BuildEvent::NotKept { options, .. } if options == &["CONFIG_DROPPED=y"])), "{steps:?}");
    let (guest, _) = resolve(&plain, "git:v1@config:defconfig,kvm_guest.config,PVH=y");
    let text = recorded(&guest.unwrap());
    assert!(
        text.contains("CONFIG_DEFAULT=y\nCONFIG_KVM=y\nCONFIG_PVH=y\n"),
        "{text}"
    );
    let error = resolve(&plain, "git:v1@config:none.config")
        .0
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("with the config fragment none.config: no such file here, and none in kernel/configs and arch/x86/configs of the source"),
        "{error}"
    );
    let same = plain.not_compiled(
        &"git:v1".parse().unwrap(),
        &"git:v1@config:memcg=y,DROPPED=y".parse().unwrap(),
    );
    assert_eq!(same.unwrap(), []);
}

#[test]
fn modules_are_built_and_kept_with_the_image() {
    let tree = tree();
    let with = cache(&tree, "tiny+MODULES=y+EXT4_FS=m", MakeOptions::default());
    let build = resolve(&with, "git:v1").0.unwrap();
    let modules = build.modules.clone().unwrap();
    assert!(modules.ends_with("6.9.1-test") && modules.starts_with(tree.home.path()));
    assert_eq!(
        fs::read_to_string(modules.join("kernel/a.ko")).unwrap(),
        "one"
    );
    assert!(
        fs::symlink_metadata(modules.join("build")).is_err(),
        "no link leaves the build"
    );
    assert_eq!(resolve(&with, "git:v1").0.unwrap().modules, Some(modules));
    tree.write("module", "two");
    tree.commit("v2");
    let changed = resolve(&with, "git:v2").0.unwrap();
    assert_ne!(
        changed.id, build.id,
        "a change of a module is another build"
    );
    assert_eq!(changed.image.sha256, build.image.sha256);
    let without = cache(&tree, "tiny", MakeOptions::default());
    assert_eq!(resolve(&without, "git:v1").0.unwrap().modules, None);
    // As `make localmodconfig` selects them.
    let mut settings = with.settings.clone();
    settings.configuration = settings
        .configuration
        .with_modules(vec!["XFS_FS".to_owned()]);
    let mut local = with.clone();
    local.set_sources(settings);
    let text = recorded(&resolve(&local, "git:v1").0.unwrap());
    assert!(
        text.contains("CONFIG_EXT4_FS=n") && text.contains("CONFIG_XFS_FS=m"),
        "{text}"
    );
}

#[test]
fn missing_rust_is_named_before_the_build() {
    let tree = tree();
    let rust = cache(&tree, "tiny+RUST=y", MakeOptions::default());
    let error = resolve(&rust, "git:v1").0.unwrap_err().to_string();
    let start = "cannot build commit ";
    assert!(
        error.starts_with(start) && error.contains(" with CONFIG_RUST=y: "),
        "{error}"
    );
    assert!(
        error.contains("on this host; run `sudo apt-get install rustc")
            || error.ends_with("`make rustavailable` fails: Rust bindings generator is too old."),
        "{error}"
    );
}

#[test]
fn other_architectures_are_built_and_never_booted() {
    let tree = tree();
    let make = MakeOptions {
        cc: None,
        arguments: arguments("ARCH=riscv LLVM="),
    };
    let tools = tempfile::tempdir().unwrap();
    let gcc = compiler(tools.path(), "gcc", "gcc (GNU) 12", "riscv64-linux-gnu");
    let make = MakeOptions {
        cc: Some(gcc.display().to_string()),
        ..make
    };
    let mut cache = cache(&tree, "tiny", make);
    let error = resolve(&cache, "git:v1").0.unwrap_err();
    insta::assert_snapshot!(error, @"no machine here boots a kernel for riscv: Marvin's machines are x86-64; `marvin build` only builds it");
    let mut settings = cache.settings.clone();
    settings.is_only_built = true;
    cache.set_sources(settings);
    let build = resolve(&cache, "git:v1").0.unwrap();
    assert!(recorded(&build).starts_with("ARCH=riscv "));
    assert!(build.version.starts_with("6.9.1-g"), "{}", build.version);
}
