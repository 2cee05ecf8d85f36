//! External tools: their list, the user's own, and mistakes in naming and declaring them.

use crate::fresh::fresh;
use crate::{format_output, marvin, output_of};

const MINE: &str = "name = 'mine'\nabout = 'a tool of mine'\npackages = ['mine']\n\n[[workload]]\nname = 'mine-fast'\n\
    stresses = 'patience'\ncommand = ['/usr/bin/mine']\n\n[[workload.metric]]\nname = 'time'\nunit = 's'\n\
    better = 'lower'\nkey = 'Time'\n";

#[test]
fn user_tools_are_listed_beside_marvins() {
    let home = fresh("tools-home");
    let none = output_of(&home, &["tools"]);
    assert!(
        none.starts_with("exit 0") && none.contains("sysbench-cpu ") && !none.contains("mine"),
        "{none}"
    );
    assert!(!home.exists(), "nothing was worth making a home for");
    std::fs::create_dir_all(home.join("manifests")).unwrap();
    std::fs::write(home.join("manifests/mine.toml"), MINE).unwrap();
    let listed = output_of(&home, &["tools"]);
    let own = listed
        .split("\n\n")
        .position(|part| part.contains("mine: a tool of mine"))
        .unwrap();
    let own: Vec<&str> = listed.split("\n\n").skip(own).collect();
    insta::assert_snapshot!(own.join("\n\n"));
}

#[test]
fn mistakes_in_tools_are_named() {
    let home = fresh("wrong-tools-home");
    insta::assert_snapshot!(
        "misspelled-tool",
        output_of(
            &home,
            &["run", "deb:6.12", "--workload", "tool:sysbnch-cpu"]
        )
    );
    insta::assert_snapshot!(
        "tool-without-name",
        output_of(
            &home,
            &["compare", "deb:6.1", "deb:6.12", "--workload", "tool:"]
        )
    );
    let file = fresh("manifest.toml");
    let path = file.display().to_string();
    insta::assert_snapshot!(
        "manifest-does-not-exist",
        output_of(&home, &["tools", "--manifest", &path]).replace(&path, "FILE")
    );
    std::fs::write(&file, MINE.replace("stresses", "streses")).unwrap();
    insta::assert_snapshot!(
        "misspelled-key",
        output_of(&home, &["tools", "--manifest", &path]).replace(&path, "FILE")
    );
    std::fs::write(&file, MINE.replace("mine-fast", "getppid")).unwrap();
    let output = marvin(&home)
        .args(["run", "deb:6.12", "--manifest", &path])
        .output()
        .unwrap();
    insta::assert_snapshot!(
        "workload-name-is-taken",
        format_output(&output, &home).replace(&path, "FILE")
    );
    assert!(!home.exists(), "nothing was worth making a home for");
}
