//! Proofs of series that are replayed in another data directory: built from another clone, from
//! their images, on another machine, tampered with, and hostile.

use std::fs;
use std::path::{Path, PathBuf};

use archives::PackedFile;
use serde_json::Value;

use crate::bisected::{Tree, regressed};
use crate::fresh::{Fresh, fresh};
use crate::{format_output, marvin};

/// Most bytes of a proof without images, which goes through mailing lists.
const SMALL: u64 = 50_000;

/// Three commits, the second of which has another image.
const RANGE: &str = "main~4..main~1";

/// A series with its proof, and a second data directory.
struct Proved {
    tree: Tree,
    author: Fresh,
    reader: Fresh,
    files: Fresh,
}

impl Proved {
    fn new(name: &str) -> Self {
        let (tree, _) = regressed(&format!("{name}-tree"));
        let files = fresh(&format!("{name}-files"));
        fs::create_dir_all(&files).unwrap();
        Self {
            tree,
            author: fresh(&format!("{name}-author")),
            reader: fresh(&format!("{name}-reader")),
            files,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.files.join(name)
    }

    /// Measures a series and writes its proof.
    fn prove(&self, range: &str, file: &str, options: &[&str]) -> String {
        let range = ["series", range, "--tree", &self.tree.name()];
        let choice = [
            "--workload",
            "getppid,fork-exit",
            "--quick",
            "-q",
            "--proof",
        ];
        let output = marvin(&self.author)
            .args(range)
            .args(choice)
            .arg(self.file(file))
            .args(options)
            .output();
        self.shown(&format_output(&output.unwrap(), &self.author))
    }

    /// Replays a proof in the other data directory.
    fn replay(&self, file: &str, options: &[&str]) -> String {
        let output = marvin(&self.reader)
            .args(["replay", "-q"])
            .arg(self.file(file))
            .args(options)
            .current_dir(&self.files)
            .output();
        self.shown(&format_output(&output.unwrap(), &self.reader))
    }

    /// Removes what differs from run to run.
    fn shown(&self, text: &str) -> String {
        let mut text = text
            .replace(&self.files.display().to_string(), "FILES")
            .replace(&self.tree.name(), "TREE");
        for (revision, name) in [
            ("main~4", "BASE........"),
            ("main~3", "EQUAL......."),
            ("main~2", "GUILTY......"),
            ("main~1", "AFTER......."),
        ] {
            let hash = self.tree.git(&["rev-parse", revision]);
            text = text.replace(&hash, name).replace(&hash[..12], name);
        }
        text
    }

    /// Has the files of a proof changed, and packs them again.
    fn repack(&self, from: &str, to: &str, change: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) {
        let file = self.file(from);
        let mut archive = archives::open_zstd(&file, 1 << 30).unwrap();
        let mut files = Vec::new();
        while let Some(entry) = archive.next_entry().unwrap() {
            files.push((entry.path, entry.content));
        }
        change(&mut files);
        let packed = files.iter().map(|(path, content)| PackedFile {
            path,
            is_program: false,
            content,
        });
        let packed = archives::pack_zstd(Vec::new(), packed).unwrap();
        fs::write(self.file(to), packed).unwrap();
    }

    /// Changes what a proof states.
    fn tamper(&self, from: &str, to: &str, change: impl FnOnce(&mut Value)) {
        self.repack(from, to, |files| {
            let mut value = serde_json::from_slice(&files[0].1).unwrap();
            change(&mut value);
            files[0].1 = value.to_string().into_bytes();
        });
    }

    fn document(&self, file: &str) -> Value {
        let mut found = Value::Null;
        self.tamper(file, "read.proof", |document| found = document.clone());
        found
    }
}

#[test]
fn proof_is_replayed_from_another_clone() {
    let proved = Proved::new("replayed");
    let series = proved.prove(RANGE, "v2.proof", &[]);
    assert!(series.starts_with("exit 1"), "{series}");
    let bytes = fs::read(proved.file("v2.proof")).unwrap();
    assert!((bytes.len() as u64) < SMALL, "{}", bytes.len());
    proved.prove(RANGE, "again.proof", &[]);
    assert!(
        fs::read(proved.file("again.proof")).unwrap() == bytes,
        "the same series gives the same bytes"
    );
    let schemas = crate::documents::schemas(Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/schemas"
    )));
    let document = proved.document("v2.proof");
    let mistakes = document::fixtures::mistakes(&schemas["proof"], &document);
    assert_eq!(mistakes, Vec::<String>::new());
    let text = document.to_string();
    assert!(
        !text.contains(&proved.author.display().to_string()),
        "{text}"
    );
    let clone = proved.file("clone");
    let clone = clone.to_str().unwrap();
    proved.tree.git(&["clone", "-q", ".", clone]);
    insta::assert_snapshot!("replayed", proved.replay("v2.proof", &["--tree", clone]));
    let row = [
        "--tree",
        clone,
        "--workload",
        "fork-exit",
        "--format",
        "json",
    ];
    let json = proved.replay("v2.proof", &row);
    assert!(json.starts_with("exit 0"), "{json}");
    let json = &json[json.find('{').unwrap()..json.find("-- err").unwrap()];
    let document = serde_json::from_str(json).unwrap();
    let mistakes = document::fixtures::mistakes(&schemas["replay"], &document);
    assert_eq!(mistakes, Vec::<String>::new());
    other_proofs_differ(&proved, clone);
}

/// Changes what a proof states, and replays it.
fn other_proofs_differ(proved: &Proved, tree: &str) {
    let row = ["--tree", tree, "--workload", "getppid"];
    let images = "/images/1/counts/0/counted/0/0";
    proved.tamper("v2.proof", "count.proof", |document| {
        let count = document.pointer_mut(images).unwrap();
        *count = (count.as_u64().unwrap() + 1).into();
        let facts = document["machines"][0]["fingerprint"]
            .as_array_mut()
            .unwrap();
        let version = facts.iter_mut().find(|fact| fact["name"] == "qemu.version");
        version.unwrap()["value"] = "8.2.1".into();
    });
    insta::assert_snapshot!("count-differs", proved.replay("count.proof", &row));
    proved.tamper("v2.proof", "image.proof", |document| {
        document["images"][1]["sha256"] = "0".repeat(64).into();
        document["kernels"][1]["compiler"] = "gcc 99\u{1b}[31m".into();
        document["kernels"][2]["source"] = "1".repeat(40).into();
    });
    insta::assert_snapshot!("image-differs", proved.replay("image.proof", &row));
    proved.tamper("v2.proof", "base.proof", |document| {
        document["base"] = "2".repeat(40).into();
    });
    insta::assert_snapshot!("base-is-unknown", proved.replay("base.proof", &row));
    insta::assert_snapshot!("tree-is-missing", proved.replay("v2.proof", &[]));
    let unknown = proved.replay("v2.proof", &["--tree", tree, "--workload", "fork-exi"]);
    insta::assert_snapshot!("workload-is-unknown", unknown);
}

#[test]
fn images_of_proofs_need_no_tree() {
    let proved = Proved::new("replayed-images");
    proved.prove(RANGE, "v2.proof", &["--proof-images"]);
    let replayed = proved.replay("v2.proof", &["--workload", "getppid"]);
    insta::assert_snapshot!("replayed-images", replayed);
    // A hash that lies.
    proved.repack("v2.proof", "lie.proof", |files| {
        let mut images = files.iter_mut();
        let image = images.find(|(path, _)| path.starts_with("images/"));
        image.unwrap().1 = b"another kernel".to_vec();
    });
    let lie = proved.replay("lie.proof", &[]);
    assert!(
        lie.starts_with("exit 2") && lie.contains("another content than its hash says"),
        "{lie}"
    );
}

#[test]
fn hostile_proofs_are_refused_in_a_line() {
    let proved = Proved::new("hostile-proofs");
    // Kernels with one image are not measured.
    proved.prove("main~4..main~3", "v2.proof", &[]);
    let refused = |name: &str, why: &str| {
        let text = proved.replay(name, &["--tree", &proved.tree.name()]);
        assert!(text.starts_with("exit 2"), "{name}: {text}");
        let error = text.split("-- err\n").nth(1).unwrap();
        assert!(error.lines().count() == 1 && error.contains(why), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    };
    let bytes = fs::read(proved.file("v2.proof")).unwrap();
    fs::write(proved.file("short.proof"), &bytes[..bytes.len() / 2]).unwrap();
    refused("short.proof", "damaged or cut short");
    fs::write(proved.file("text.proof"), "a cover letter\n").unwrap();
    refused("text.proof", "damaged or cut short");
    fs::write(proved.file("empty.proof"), "").unwrap();
    refused("empty.proof", "damaged or cut short");
    refused(".", "it is no file");
    refused("absent.proof", "No such file");
    let cases: [(&str, Value, &str); 9] = [
        ("/schema_version", 99.into(), "has version 99 of the schema"),
        ("/kind", "series\u{1b}[2J".into(), "its kind is series"),
        (
            "/base",
            "--upload-pack=touch pwned".into(),
            "is no hash of the base",
        ),
        (
            "/seeds",
            vec![1, 2_000_000].into(),
            "different numbers up to 1000",
        ),
        ("/machines/0/kind", "vm".into(), "only exact is replayed"),
        ("/kernels/1/image", 7.into(), "has no image"),
        (
            "/kernels/1/config",
            "../../../etc/passwd".into(),
            "is no hash of the kernel config",
        ),
        (
            "/kernels/1/patch/file",
            "../../../etc/passwd".into(),
            "is not in it",
        ),
        ("/workloads", Value::Null, "no document of this kind"),
    ];
    for (place, value, why) in cases {
        proved.tamper("v2.proof", "hostile.proof", |document| {
            *document.pointer_mut(place).unwrap() = value;
        });
        refused("hostile.proof", why);
    }
    let merge = proved.tree.git(&["rev-parse", "main"]);
    proved.tree.git(&["checkout", "-q", "-b", "side", "good"]);
    proved.tree.commit("mm/side.c", "// side\n");
    proved
        .tree
        .git(&["merge", "-q", "--no-ff", "-m", "merged", &merge]);
    let output = marvin(&proved.author)
        .args([
            "series",
            "1",
            "--tree",
            &proved.tree.name(),
            "--quick",
            "-q",
        ])
        .args(["--workload", "getppid", "--proof"])
        .arg(proved.file("merge.proof"))
        .output();
    let merged = proved.shown(&format_output(&output.unwrap(), &proved.author));
    assert!(
        merged.starts_with("exit 2") && merged.contains("is a merge"),
        "{merged}"
    );
    assert!(!proved.file("merge.proof").exists());
}
