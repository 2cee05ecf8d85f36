//! Each format that comes with Marvin, by files in its documented layout (`golden`), the manifests
//! of docs/import.md, and mistakes in manifests.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::manifest::keys;
use super::{
    Format, MMTESTS_FORMATS, Recognised, ResultFile, SHIPPED_FORMATS, describe_formats,
    describe_mmtests, format, read_result_file,
};

fn shipped() -> Vec<Format> {
    let formats = SHIPPED_FORMATS.iter();
    formats
        .map(|(name, text)| format(text).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect()
}

#[test]
fn manifests_of_mmtests_know_their_tests() {
    let formats: Vec<Format> = MMTESTS_FORMATS
        .iter()
        .map(|(name, text)| format(text).unwrap_or_else(|error| panic!("{name}: {error}")))
        .collect();
    let reader = |test: &str| {
        let known = formats
            .iter()
            .filter_map(|format| Some((format.known_of_test(test)?, format.name.as_str())));
        known.max().map(|(_, name)| name)
    };
    for (test, format) in [
        ("redis-memtier-small", Some("redis-memtier")),
        ("redis", Some("redis")),
        ("libmicro-memory", Some("libmicro")),
        ("io_uring", Some("io-uring")),
        ("gitsource", Some("time")),
        ("specjbb2015", Some("specjbb2015")),
        ("rediser", None),
    ] {
        assert_eq!(reader(test), format, "{test}");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("golden/formats")
}

fn show(recognised: &Recognised) -> String {
    let Recognised { format, content } = recognised;
    let mut shown = format!("{format} {:?}\n", content.facts);
    for row in &content.rows {
        let kernel = row.kernel.as_deref().map(|k| format!("{k}: "));
        let better = row.direction.map(|direction| format!("{direction:?}"));
        let line = format!(
            "  {}{} = {:?} {} {}\n",
            kernel.unwrap_or_default(),
            row.name,
            row.samples,
            row.unit,
            better.as_deref().unwrap_or("?")
        );
        shown.push_str(&line);
    }
    for (what, why) in &content.left_out {
        shown.extend(["  - ", what, ": ", why, "\n"]);
    }
    shown
}

#[test]
fn golden_files_give_their_rows() {
    let formats = shipped();
    let mut seen = BTreeSet::new();
    let mut shown = String::new();
    for path in files(&golden()) {
        let name = path.strip_prefix(golden()).unwrap().display().to_string();
        let bytes = std::fs::read(&path).unwrap();
        let file = ResultFile::new(&name, &bytes).unwrap();
        let recognised = read_result_file(&formats, &file)
            .unwrap_or_else(|why| panic!("{name}: {why}"))
            .unwrap_or_else(|| panic!("{name} is not recognised"));
        let is_named = name.starts_with(recognised.format.as_str());
        assert!(is_named, "{name} is read as {}", recognised.format);
        shown.extend([name.as_str(), ": ", &show(&recognised)]);
        seen.insert(recognised.format);
    }
    insta::assert_snapshot!("golden", shown);
    let all: BTreeSet<String> = formats.into_iter().map(|format| format.name).collect();
    assert_eq!(seen, all, "each format has a golden file");
}

#[test]
fn cut_files_are_named_as_damaged() {
    let formats = shipped();
    for (name, whole) in [
        ("hyperfine.json", false),
        ("phoronix.xml", false),
        ("junit.xml", true),
    ] {
        let bytes = std::fs::read(golden().join(name)).unwrap();
        let cut = &bytes[..bytes.len() - if whole { 20 } else { 60 }];
        let read = read_result_file(&formats, &ResultFile::new(name, cut).unwrap());
        let why = read.unwrap_err();
        assert!(why.contains("damaged or cut short"), "{name}: {why}");
    }
}

#[test]
fn page_has_the_tables_of_manifests() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/import.md");
    for (what, table) in [
        ("formats", describe_formats()),
        ("tests of MMTests", describe_mmtests()),
    ] {
        let text = std::fs::read_to_string(&page).unwrap();
        let begin =
            format!("<!-- {what}, written by `UPDATE=1 cargo test -p config page_has` -->\n\n");
        let (before, rest) = text.split_once(&begin).expect("the mark of the table");
        let (found, after) = rest
            .split_once("<!-- end -->")
            .expect("the end of the table");
        let expected = table.unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            let text = format!("{before}{begin}{expected}<!-- end -->{after}");
            std::fs::write(&page, text).unwrap();
        } else {
            assert_eq!(found, expected);
        }
    }
}

#[test]
fn page_has_every_key_and_its_manifests_work() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/import.md");
    let text = std::fs::read_to_string(page).unwrap();
    for key in keys() {
        assert!(text.contains(&format!("`{key}`")), "no `{key}`");
    }
    let examples: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(examples.len() >= 2);
    for example in examples {
        format(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}

#[test]
fn mistakes_in_manifests_are_named_with_place() {
    let refused = |text: &str| format(text).unwrap_err().to_string();
    let head = "name = 'x'\nabout = 'x'\nknown = ['x']\n";
    let metric = "[[metric]]\nname = 'a'\nline = '(?<value>.)'\n";
    assert!(format(&format!("layout = 'lines'\n{head}{metric}")).is_ok());
    insta::assert_snapshot!(refused(&format!("layout = 'line'\n{head}{metric}")), @"line 1, column 10: `layout` is one of lines, table, json, json-lines, xml, not `line`");
    insta::assert_snapshot!(refused(&format!("layout = 'json'\n{head}{metric}")), @"line 7, column 8: `line` has no meaning in this layout");
    insta::assert_snapshot!(refused(&format!("layout = 'lines'\n{head}[[metric]]\nname = '{{a'\nline = '(?<value>.)'")), @"line 6, column 8: `{` without `}` in `{a`");
    insta::assert_snapshot!(refused(&format!("layout = 'lines'\n{head}[[metric]]\nname = 'a'\nline = '.'")), @"line 7, column 8: the pattern has no group `(?<value>…)`");
    insta::assert_snapshot!(refused("layout = 'lines'\nname = 'x'\nabout = 'x'\n"), @"line 1, column 1: the manifest without `known` and `file`: Marvin could not recognise a file");
    insta::assert_snapshot!(refused(&format!("layout = 'lines'\n{head}{metric}units = 's'")), @"line 8, column 1: unknown key `units` in metric (did you mean `unit`?)");
}

proptest! {
    #[test]
    fn any_damage_leaves_rows_or_one_error(
        which in 0_usize..30,
        at in 0_usize..600,
        byte in any::<u8>(),
    ) {
        let formats = shipped();
        let files = files(&golden());
        let path = &files[which % files.len()];
        let mut bytes = std::fs::read(path).unwrap();
        let at = at % bytes.len();
        bytes[at] = byte;
        let name = path.strip_prefix(golden()).unwrap().display().to_string();
        if let Ok(file) = ResultFile::new(&name, &bytes)
            && let Ok(Some(recognised)) = read_result_file(&formats, &file)
        {
            for row in recognised.content.rows {
                prop_assert!(row.samples.iter().all(|value| value.is_finite() && *value >= 0.0));
            }
        }
    }
}
