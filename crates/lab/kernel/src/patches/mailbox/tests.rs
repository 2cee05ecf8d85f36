//! Tests of reading files, with git.

use std::fs;
use std::path::Path;

use super::{Kind, has_crs, kind, notes_without_statistics};
use crate::patches::{Patch, PatchesError, read_patches};

const DIFF: &str = "diff --git a/mm/walk.c b/mm/walk.c\n--- a/mm/walk.c\n+++ b/mm/walk.c\n@@ -1,3 +1,3 @@ int walk(void)\n \
                    {\n-\told();\n+\tnew();\n }\n";

/// A mail as git sends it.
fn mail(id: &str, subject: &str, body: &str) -> String {
    format!(
        "From mboxrd@z Thu Jan  1 00:00:00 1970\nFrom: Ä B <a@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 +0000\n\
         Message-ID: <{id}>\nSubject: {subject}\n\n{body}\n---\nv2: changed\n mm/walk.c | 2 +-\n\n{DIFF}-- \n2.39\n\n"
    )
}

fn read(path: &Path) -> Result<Vec<Patch>, PatchesError> {
    let scratch = tempfile::tempdir().unwrap();
    read_patches(path, scratch.path())
}

/// Reads bytes as a file with this name.
fn read_file(name: &str, bytes: impl AsRef<[u8]>) -> Result<Vec<Patch>, PatchesError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(name);
    fs::write(&file, bytes).unwrap();
    read(&file)
}

#[test]
fn mailbox_gives_patches_in_order() {
    let cover = mail("0", "[PATCH 0/2] walk", "Makes it faster.").replace(DIFF, "");
    let second = mail(
        "2",
        "[PATCH 2/2] mm: second",
        "Words.\n\nFixes: 0123456789ab (\"mm: a\")",
    );
    let text = [
        second,
        cover,
        mail("1", "[PATCH 1/2] mm: first\x07", "Hi."),
        mail("3", "Re: [PATCH 1/2] b", ""),
    ]
    .concat();
    let patches = read_file("t.mbox", &text).unwrap();
    let subjects: Vec<&str> = patches.iter().map(|patch| patch.subject.as_str()).collect();
    assert_eq!(subjects, ["mm: first\u{fffd}", "mm: second"]);
    let first = &patches[0];
    let second = &patches[1];
    assert_eq!(
        (first.author.as_str(), first.body.trim()),
        ("Ä B <a@example.com>", "Hi.")
    );
    assert_eq!(
        (first.notes.as_str(), first.message_id.as_deref()),
        ("v2: changed", Some("1"))
    );
    assert_eq!(
        (
            first.cover.as_ref().unwrap().subject.as_str(),
            &first.performance[..]
        ),
        ("walk", &["faster".to_owned()][..])
    );
    assert_eq!(
        (
            second.fixes.len(),
            second.files.len(),
            second.fault.is_none()
        ),
        (1, 1, true)
    );
    assert_eq!(second.functions().collect::<Vec<_>>(), ["walk"]);
}

#[test]
fn carriage_returns_of_transport_are_removed() {
    let text = mail("1", "[PATCH] a", "b");
    let expected = read_file("a.mbox", &text).unwrap();
    assert_eq!(
        read_file("a.mbox", text.replace('\n', "\r\n")).unwrap(),
        expected
    );
    // A file that has them keeps them.
    let patches = read_file("a.mbox", text.replace("old();", "old();\r")).unwrap();
    assert!(patches[0].diff.windows(2).any(|pair| pair == b";\r"));
    let diff = read_file("a.diff", DIFF.replace('\n', "\r\n")).unwrap();
    assert_eq!(
        (diff[0].diff.as_slice(), diff[0].subject.as_str()),
        (DIFF.as_bytes(), "a")
    );
}

#[test]
fn encodings_of_mails_are_decoded() {
    let encoded = "From: =?utf-8?b?w4Q=?= <a@example.com>\nSubject: [PATCH] =?utf-8?q?=C3=A4?=\n\
                   Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n=E4=3D\n---\n";
    let patches = read_file("a.eml", format!("{encoded}{}", DIFF.replace('=', "=3D"))).unwrap();
    assert_eq!(
        (patches[0].subject.as_str(), patches[0].body.trim()),
        ("ä", "ä=")
    );
    let unknown = encoded.replace("iso-8859-1", "nonesuch");
    assert_eq!(
        read_file("a.eml", format!("{unknown}{DIFF}"))
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn compressed_mailbox_is_unpacked() {
    use std::io::Write;
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed
        .write_all(mail("1", "[PATCH] a", "b").as_bytes())
        .unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(read_file("t.mbox.gz", &packed).unwrap()[0].subject, "a");
    let error = read_file("t.mbox.gz", &packed[..40])
        .unwrap_err()
        .to_string();
    assert!(error.contains("gzip says"), "{error}");
}

#[test]
fn words_before_a_diff_are_read() {
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let forms = [
        format!("commit {commit}\nAuthor: A <a@b>\nDate:   today\n\n    mm: a\n\n    Body.\n\n"),
        "Description: mm: a\n Body.\nAuthor: A <a@b>\nForwarded: no\n\n".to_owned(),
        "mm: a\n\nBody.\n\n---\n".to_owned(),
        "# HG changeset patch\n# User A <a@b>\n\nmm: a\n\nBody.\n".to_owned(),
    ];
    for form in forms {
        let patch = &read_file("x.patch", format!("{form}{DIFF}")).unwrap()[0];
        assert_eq!(
            (patch.subject.as_str(), patch.files.len()),
            ("mm: a", 1),
            "{form}"
        );
        assert!(patch.body.contains("Body."), "{form}");
        assert!(
            patch.author == "A <a@b>" || form.starts_with("mm"),
            "{form}"
        );
    }
    let log = format!("commit {commit}\n\n    a\n\n{DIFF}\ncommit {commit}\n\n    b\n\n{DIFF}");
    assert!(matches!(
        read_file("x.patch", log),
        Err(PatchesError::Log { .. })
    ));
}

#[test]
fn folder_follows_its_series() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    for name in ["c", "a", "b"] {
        write(&format!("{name}.patch"), &format!("{name}\n\n{DIFF}"));
    }
    write("README", "words");
    let subjects = || {
        let patches = read(folder.path()).unwrap();
        patches
            .into_iter()
            .map(|patch| patch.subject)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(subjects(), "a b c");
    write("series", "# order\nc.patch -p1\na.patch # why\n");
    assert_eq!(subjects(), "c a");
    write("series", "gone.patch\n");
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("line 1 of ")
            && error.ends_with("no file `gone.patch` in its folder; remove the line")
    );
}

#[test]
fn links_out_of_a_folder_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret.patch");
    fs::write(&secret, DIFF).unwrap();
    std::os::unix::fs::symlink(&secret, folder.path().join("a.patch")).unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("link out of its folder"), "{error}");
    fs::write(folder.path().join("series"), "a.patch\n").unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(
        error.contains("`a.patch` is a link out of its folder"),
        "{error}"
    );
}

#[test]
fn what_is_no_patch_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let errors = [
        read(folder.path()).unwrap_err(),
        read(&folder.path().join("gone")).unwrap_err(),
        read_file("a.patch", "words").unwrap_err(),
        read_file("a.mbox", mail("1", "[PATCH] a", "").replace(DIFF, "")).unwrap_err(),
    ];
    let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert!(
        messages[0].contains("it has no series and no *.patch"),
        "{messages:?}"
    );
    assert!(messages[1].contains("No such file"), "{messages:?}");
    assert!(
        messages[2].contains("it has no diff") && messages[3].contains("it has no diff"),
        "{messages:?}"
    );
}

#[test]
fn kinds_of_files_are_told_apart() {
    assert_eq!(kind(b"\nFrom 1 Mon Sep 17 00:00:00 2001\n"), Kind::Mails);
    assert_eq!(kind(b"Date: a\nFrom: b\n\n"), Kind::Mails);
    assert_eq!(kind(b"Description: a\nAuthor: b\n\n"), Kind::Diff);
    assert_eq!(kind(DIFF.as_bytes()), Kind::Diff);
    assert!(has_crs(b"From a\nSubject: b\r\n") && !has_crs(b"a\nb\nc\r\n"));
    assert_eq!(
        notes_without_statistics(
            "---\nv2: a | b\n a.c | 3 +++\n 1 file changed, 3 insertions(+)\n"
        ),
        "v2: a | b"
    );
}

#[test]
fn separators_without_date_begin_mails() {
    let text = ["1", "2"].map(|number| {
        let subject = format!("[PATCH {number}/2] mm: {number}");
        let text = mail(number, &subject, "From the beginning: words.");
        text.replacen("From mboxrd@z Thu Jan  1 00:00:00 1970", "From A", 1)
    });
    let patches = read_file("t.mbox", text.concat()).unwrap();
    let subjects: Vec<&str> = patches.iter().map(|patch| patch.subject.as_str()).collect();
    assert_eq!(subjects, ["mm: 1", "mm: 2"]);
}

#[test]
fn tar_archive_is_no_patch() {
    let mut tar = vec![0; 512];
    tar[..7].copy_from_slice(b"a.patch");
    tar[257..262].copy_from_slice(b"ustar");
    let error = read_file("a.tar", tar).unwrap_err().to_string();
    assert!(error.contains("unpack it and name the folder"), "{error}");
}

#[test]
fn trailer_states_the_base() {
    let hash = "0123456789abcdef0123456789abcdef01234567";
    let text = mail("1", "[PATCH] mm: first", "Hi.");
    let text = format!("{}\nbase-commit: {hash}\n", text.trim_end());
    assert_eq!(
        read_file("a.mbox", text).unwrap()[0].base.as_deref(),
        Some(hash)
    );
    let cover = mail("0", "[PATCH 0/2] mm: first", "Hi.").replace(DIFF, "");
    let cover = cover.replace("-- \n", &format!("base-commit: {hash}\n-- \n"));
    let text = [cover, mail("1", "[PATCH 1/2] mm: first", "Hi.")].concat();
    assert_eq!(
        read_file("a.mbox", text).unwrap()[0].base.as_deref(),
        Some(hash)
    );
}

#[test]
fn encoded_subject_of_several_lines_is_one() {
    // `[PATCH 3/6] mm: count at cgroup`, an empty line, ` level`.
    let subject = "=?UTF-8?B?W1BBVENIIDMvNl0gbW06IGNvdW50IGF0IGNncm91cAoKIGxldmVs?=";
    let text = mail("1", subject, "Hi.");
    let patch = read_file("a.mbox", text).unwrap().remove(0);
    assert_eq!(patch.subject, "mm: count at cgroup level");
    assert_eq!(patch.position.map(|position| position.number), Some(3));
}
