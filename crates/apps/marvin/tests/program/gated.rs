//! `marvin gate`: changes that touch no budget, hold one, exceed one, edit one; and hostile trees.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::bisected::{Tree, regressed};
use crate::fresh::fresh;
use crate::{format_output, marvin};

/// A budget of the rows that the two kernels of the tests differ in.
const BUDGET: &str = r#"[[budget]]
name = "choice"
paths = ["choice", "mm/memory.c"]
rows = ["getppid", "fork-exit"]
limit = "1 %"
owners = ["Ada <ada@example.org>"]
"#;

/// Runs `marvin gate` in the tree, and removes what differs from run to run.
fn gate(home: &Path, tree: &Tree, arguments: &[&str]) -> String {
    let output = marvin(home)
        .arg("gate")
        .args(arguments)
        .args(["--quick", "-q"])
        .current_dir(&*tree.folder)
        .output();
    let mut text = format_output(&output.unwrap(), home).replace(&tree.name(), "TREE");
    for (revision, name) in [("HEAD", "HEAD........"), ("HEAD~1", "BASE........")] {
        text = text.replace(&tree.git(&["rev-parse", revision])[..12], name);
    }
    text
}

/// A tree on `work` whose last commit has the budgets and the fast kernel.
fn budgeted(name: &str) -> (Tree, String) {
    let (tree, _) = regressed(name);
    let slow = tree.git(&["show", "main:choice"]);
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    tree.commit(".marvin.toml", BUDGET);
    (tree, slow)
}

#[test]
fn change_outside_all_budgets_is_not_measured() {
    let home = fresh("untouched-home");
    let (tree, _) = budgeted("untouched-tree");
    tree.commit("drivers/x.c", "// another\n");
    // What lies in the work tree is no budget.
    tree.file(
        ".marvin.toml",
        &BUDGET.replace("\"choice\"]", "\"drivers/\"]"),
    );
    let began = Instant::now();
    insta::assert_snapshot!("untouched", gate(&home, &tree, &["1"]));
    // Five seconds on a host with nothing else to do.
    assert!(began.elapsed() < Duration::from_secs(30));
    assert!(!home.join("marvin.db").exists(), "nothing is measured");
}

#[test]
fn change_within_its_budget_is_one_line() {
    let home = fresh("held-home");
    let (tree, _) = budgeted("held-tree");
    tree.commit("mm/memory.c", "// the same image\n");
    insta::assert_snapshot!("same-image", gate(&home, &tree, &["1"]));
    // Another image with the same costs.
    let fast = tree.git(&["show", "HEAD:choice"]);
    let mut image = fs::read(tree.folder.join(&fast)).unwrap();
    image.extend_from_slice(&[0; 64]);
    fs::write(tree.folder.join("image-longer"), image).unwrap();
    tree.commit("choice", "image-longer");
    insta::assert_snapshot!("held", gate(&home, &tree, &["1"]));
}

#[test]
fn change_that_no_row_enters_is_undecided() {
    let home = fresh("unentered-home");
    let (tree, _) = budgeted("unentered-tree");
    let of = |value: u32| format!("int do_syslog(int a)\n{{\n\treturn a + {value};\n}}\n");
    tree.commit("mm/memory.c", &of(1));
    let image = tree.git(&["show", "HEAD:choice"]);
    let mut image = fs::read(tree.folder.join(image)).unwrap();
    image.extend_from_slice(&[0; 64]);
    fs::write(tree.folder.join("image-longer"), image).unwrap();
    tree.file("choice", "image-longer");
    tree.commit("mm/memory.c", &of(2));
    insta::assert_snapshot!("not-entered", gate(&home, &tree, &["1"]));
}

#[test]
fn change_over_its_budget_is_refused_unless_edited() {
    let home = fresh("exceeded-home");
    let (tree, slow) = budgeted("exceeded-tree");
    tree.commit("choice", &slow);
    let numbers = |text: String| -> String {
        // Counts of the kernels of the day.
        let words = text.split(' ').map(|word| {
            let is_number =
                word.contains('.') && word.trim_start_matches('-').parse::<f64>().is_ok();
            if is_number { "N" } else { word }
        });
        words
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    };
    let exceeded = gate(&home, &tree, &["1"]);
    assert!(exceeded.starts_with("exit 1"), "{exceeded}");
    insta::assert_snapshot!("exceeded", numbers(exceeded));
    // The same commit edits the budget.
    tree.file(".marvin.toml", &BUDGET.replace("1 %", "90 %"));
    tree.git(&["commit", "-qa", "--amend", "--no-edit"]);
    let edited = gate(&home, &tree, &["1"]);
    assert!(edited.starts_with("exit 0"), "{edited}");
    insta::assert_snapshot!("edited", numbers(edited));
    // A count is a bound on the value itself, whatever it was before.
    let limits = "\n[budget.limits]\nfork-exit = 1000\n";
    tree.file(".marvin.toml", &[BUDGET, limits].concat());
    tree.git(&["commit", "-qa", "--amend", "--no-edit"]);
    let counted = gate(&home, &tree, &["1"]);
    assert!(counted.starts_with("exit 1"), "{counted}");
    assert!(counted.contains("1 % -> 1000"), "{counted}");
    // A lifted budget is said.
    tree.git(&["rm", "-q", ".marvin.toml"]);
    tree.git(&["commit", "-qa", "--amend", "--no-edit"]);
    let lifted = gate(&home, &tree, &["1"]);
    assert!(lifted.starts_with("exit 0"), "{lifted}");
    insta::assert_snapshot!("lifted", numbers(lifted));
    let json = gate(&home, &tree, &["1", "--format", "json"]);
    let json = &json[json.find('{').unwrap()..json.find("-- err").unwrap()];
    let schemas = crate::documents::schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    let document = serde_json::from_str(json).unwrap();
    let mistakes = document::fixtures::mistakes(&schemas["gate"], &document);
    assert_eq!(mistakes, Vec::<String>::new());
}

#[test]
fn patches_and_proposals_are_gated_too() {
    let home = fresh("gated-patches-home");
    let (tree, _) = regressed("gated-patches-tree");
    tree.git(&["checkout", "-q", "-b", "work", "good"]);
    tree.commit("mm/slub.c", "int one;\n");
    let patch = tree.git(&["format-patch", "--stdout", "-1"]) + "\n";
    let file = tree.folder.join("../gated-patches.mbox");
    fs::write(&file, &patch).unwrap();
    tree.git(&["reset", "-q", "--hard", "HEAD~1"]);
    tree.commit("other", "");
    let name = file.display().to_string();
    let held = gate(&home, &tree, &[&name, "--base", "HEAD"]);
    let held = held.replace("TREE/../gated-patches.mbox", "PATCH");
    // The fake tree compiles mm/memory.c alone.
    let expected =
        "undecided: 1 patch of PATCH on HEAD........: this config does not compile mm/slub.c ";
    assert!(
        held.starts_with("exit 3") && held.contains(expected),
        "{held}"
    );
    let refused = patch.replace("mm/slub.c", ".git/hooks/x");
    fs::write(&file, refused).unwrap();
    let refused = gate(&home, &tree, &[&name, "--base", "HEAD"]);
    assert!(refused.starts_with("exit 4"), "{refused}");
    fs::remove_file(&file).unwrap();

    let proposed = gate(&home, &tree, &["--propose"]);
    let proposed = proposed.split("-- out\n").nth(1).unwrap();
    let proposed = proposed.split("-- err").next().unwrap();
    assert_eq!(proposed.matches("[[budget]]").count(), 12, "{proposed}");
    tree.commit(".marvin.toml", proposed);
    let adding = gate(&home, &tree, &["1"]);
    assert!(adding.contains("which the change adds"), "{adding}");
}

#[test]
fn hostile_budgets_are_one_clear_error() {
    let home = fresh("hostile-budgets-home");
    let (tree, _) = budgeted("hostile-budgets-tree");
    let mut texts = Vec::new();
    for hostile in [
        "[[budget]]\nname = \"x\"\ncommand = \"touch pwned\"\n".to_owned(),
        BUDGET.replace("mm/memory.c", "../../etc/passwd"),
        BUDGET.replace("mm/memory.c", "/etc/passwd"),
        BUDGET.replace("Ada", "\\u001b[31mAda"),
        BUDGET.replace("owners", "notify"),
        BUDGET.replace("\"getppid\"", "\"tool:fio\""),
        BUDGET.replace("1 %", "-1 %"),
        "[[budget]]\n".repeat(65),
        format!("a={}\n", "[".repeat(60_000)),
        "x".repeat(70_000),
        "\u{0}".to_owned(),
    ] {
        tree.commit(".marvin.toml", &hostile);
        let text = gate(&home, &tree, &["1"]);
        assert!(text.starts_with("exit 2"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
        texts.push(text.split("-- err\n").nth(1).unwrap().to_owned());
    }
    fs::remove_file(tree.folder.join(".marvin.toml")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", tree.folder.join(".marvin.toml")).unwrap();
    tree.git(&["commit", "-qam", "a link"]);
    texts.push(gate(&home, &tree, &["1"]));
    insta::assert_snapshot!("hostile-budgets", texts.join(""));
    assert!(!tree.folder.join("pwned").exists());
    // A change that repairs the file is gated by what it writes.
    fs::remove_file(tree.folder.join(".marvin.toml")).unwrap();
    tree.commit(".marvin.toml", BUDGET);
    let repaired = gate(&home, &tree, &["1"]);
    assert!(repaired.starts_with("exit 0"), "{repaired}");
    // A name that git quotes belongs to its directory all the same.
    tree.commit("mm/\u{e9}\"\n.c", "");
    tree.commit(".marvin.toml", &BUDGET.replace("mm/memory.c", "mm/"));
    let quoted = gate(&home, &tree, &["2"]);
    assert!(!quoted.contains("not touched"), "{quoted}");
}
