//! Factors of a kernel's boot, priced alone and in pairs on the exact machine.

use crate::fresh::fresh;
use crate::{format_output, images, marvin, output_of};

#[test]
fn factors_are_priced_alone_and_in_pairs() {
    let home = fresh("priced");
    let kernel = format!("path:{}", images().1[1].display());
    let wide = "sysfs:kernel/mm/transparent_hugepage/enabled=always";
    let text = output_of(
        &home,
        &[
            "price",
            &kernel,
            "sysctl:vm.overcommit_memory=2",
            wide,
            "--suite",
            "mm",
            "--workload",
            "aim9-page",
            "--quick",
            "-q",
        ],
    );
    assert!(
        text.contains("  A  sysctl:vm.overcommit_memory=2\n"),
        "{text}"
    );
    assert!(text.contains(&format!("  B  {wide}\n")), "{text}");
    let row = |name: &str| {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(str::to_owned).next().unwrap_or_default()
    };
    let page = row("aim9-page");
    assert!(
        page.ends_with('B') || page.ends_with('W'),
        "with huge pages it is another path: {text}"
    );
    assert!(
        text.contains("as a sum") || text.contains("the whole is the sum"),
        "{text}"
    );
}

#[test]
fn impossible_prices_fail_clearly() {
    let home = fresh("priced-wrong");
    let many: Vec<String> = (0..9).map(|n| format!("cmdline:a={n}")).collect();
    let mut arguments = vec!["price", "deb:6.12"];
    arguments.extend(many.iter().map(String::as_str));
    let ask = |arguments: &[&str]| {
        let output = marvin(&home).args(arguments).output().unwrap();
        format_output(&output, &home)
    };
    let text = ask(&arguments);
    assert!(
        text.starts_with("exit 2") && text.contains("at most 8"),
        "{text}"
    );
    let text = ask(&["price", "deb:6.12", "mitigations=off"]);
    assert!(
        text.starts_with("exit 2") && text.contains("expected cmdline:PARAMETER"),
        "{text}"
    );
}
