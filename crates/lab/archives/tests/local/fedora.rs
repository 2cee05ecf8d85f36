//! An archive in Fedora's layout, with rpm packages made and signed here.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use archives::{ArchiveError, Fedora, Package, sha256, unpack};
use model::FedoraSettings;

use crate::mirror::{Mirror, PORTAL, now};

const OS: &str = "releases/43/Everything/x86_64/os";
const UPDATES: &str = "updates/43/Everything/x86_64";

/// A package to make.
struct Rpm<'a> {
    name: &'a str,
    version: &'a str,
    release: &'a str,
    /// The program that packs the payload, with its arguments; empty for none.
    packer: &'a [&'a str],
    /// Paths and contents of its files.
    files: &'a [(&'a str, &'a str)],
}

/// Builds a header of texts and binary values.
fn header(values: &[(u32, u32, Vec<u8>, usize)]) -> Vec<u8> {
    let mut index = Vec::new();
    let mut store = Vec::new();
    for (tag, kind, value, count) in values {
        for number in [
            *tag,
            *kind,
            u32::try_from(store.len()).unwrap(),
            u32::try_from(*count).unwrap(),
        ] {
            index.extend(number.to_be_bytes());
        }
        store.extend(value);
    }
    let mut bytes = vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0];
    bytes.extend(u32::try_from(values.len()).unwrap().to_be_bytes());
    bytes.extend(u32::try_from(store.len()).unwrap().to_be_bytes());
    [bytes, index, store].concat()
}

fn text(tag: u32, text: &str) -> (u32, u32, Vec<u8>, usize) {
    (tag, 6, [text.as_bytes(), &[0]].concat(), 1)
}

fn cpio(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = Vec::new();
    let end = [("TRAILER!!!", "")];
    for (path, content) in files.iter().chain(&end) {
        let fields = [
            1,
            0o100_644,
            0,
            0,
            1,
            0,
            content.len(),
            0,
            0,
            0,
            0,
            path.len() + 1,
            0,
        ];
        let fields: String = fields.iter().map(|field| format!("{field:08x}")).collect();
        archive.extend(format!("070701{fields}{path}\0").bytes());
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend(content.bytes());
        archive.resize(archive.len().next_multiple_of(4), 0);
    }
    archive
}

fn packed(packer: &[&str], content: &[u8]) -> Vec<u8> {
    let Some((program, arguments)) = packer.split_first() else {
        return content.to_vec();
    };
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(content).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

impl Rpm<'_> {
    fn make(&self, mirror: &Mirror) -> Vec<u8> {
        let payload = packed(self.packer, &cpio(self.files));
        let main = header(&[
            text(1000, self.name),
            text(1001, self.version),
            text(1002, self.release),
            // The wrong compression, as in some packages.
            text(1125, "xz"),
            text(5092, &sha256(&payload)),
        ]);
        let signature = mirror.sign_bytes(&main);
        let count = signature.len();
        let mut signatures = header(&[(268, 7, signature, count)]);
        let store = u32::from_be_bytes(signatures[12..16].try_into().unwrap());
        let padding = (8 - store % 8) % 8;
        signatures.resize(signatures.len() + padding as usize, 0);
        let mut lead = vec![0; 96];
        lead[..4].copy_from_slice(&[0xed, 0xab, 0xee, 0xdb]);
        [lead, signatures, main, payload].concat()
    }
}

/// Publishes packages in a repository.
fn publish(mirror: &Mirror, repository: &str, rpms: &[Rpm<'_>], packer: &[&str]) {
    let mut list = String::from("<metadata>\n");
    for rpm in rpms {
        let Rpm {
            name,
            version,
            release,
            ..
        } = rpm;
        let content = rpm.make(mirror);
        let path = format!("Packages/k/{name}-{version}-{release}.x86_64.rpm");
        let place = mirror.path(&format!("fedora/{repository}/{path}"));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, &content).unwrap();
        writeln!(
            list,
            "<package type=\"rpm\"><name>{name}</name><arch>x86_64</arch><version epoch=\"0\" ver=\"{version}\" rel=\"{release}\"/><checksum type=\"sha256\" pkgid=\"YES\">{}</checksum><size package=\"{}\" installed=\"1\" archive=\"1\"/><location href=\"{path}\"/></package>",
            sha256(&content),
            content.len()
        )
        .unwrap();
    }
    list += "</metadata>";
    let primary = packed(packer, list.as_bytes());
    let hash = sha256(&primary);
    let folder = mirror.path(&format!("fedora/{repository}/repodata"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{hash}-primary.xml.zst")), &primary).unwrap();
    let repomd = format!(
        "<repomd><data type=\"primary\"><checksum type=\"sha256\">{hash}</checksum><location href=\"repodata/{hash}-primary.xml.zst\"/><size>{}</size></data></repomd>",
        primary.len()
    );
    fs::write(folder.join("repomd.xml"), repomd).unwrap();
}

fn fedora(mirror: &Mirror, home: &Path, keyring: Option<PathBuf>) -> Fedora {
    let settings = FedoraSettings {
        mirror: format!("{}/fedora", mirror.url),
        keyring,
        release: "43".to_owned(),
    };
    Fedora::new(home, settings, now)
}

const FILES: &[(&str, &str)] = &[
    ("./lib/modules/6.17.1/vmlinuz", "image"),
    ("./lib/modules/6.17.1/config", "CONFIG_X=y\n"),
];

const CORE: Rpm<'_> = Rpm {
    name: "kernel-core",
    version: "6.17.1",
    release: "300.fc43",
    packer: &["zstd", "-q", "-c"],
    files: FILES,
};

/// Returns the package of a name in the lists.
fn listed(fedora: &Fedora, name: &str) -> Package {
    let stanzas = fedora.kernels("43").unwrap();
    stanzas
        .iter()
        .flat_map(|list| {
            list.text
                .split("\n\n")
                .filter_map(|text| Package::parse(&list.archive, text))
        })
        .find(|package| package.package == name)
        .unwrap()
}

#[test]
fn packages_of_every_packer_are_verified_and_unpacked() {
    let packers: [&[&str]; 4] = [&["zstd", "-q", "-c"], &["xz", "-c"], &["gzip", "-c"], &[]];
    for packer in packers {
        let mirror = Mirror::start();
        publish(&mirror, OS, &[Rpm { packer, ..CORE }], packer);
        publish(&mirror, UPDATES, &[], packer);
        let home = tempfile::tempdir().unwrap();
        let fedora = fedora(&mirror, home.path(), Some(mirror.path("keyring.gpg")));
        let package = listed(&fedora, "kernel-core");
        assert_eq!(mirror.take_asked().len(), 4);
        let again = listed(&fedora, "kernel-core");
        assert_eq!((again == package, mirror.take_asked().len()), (true, 0));
        let file = fedora.download(&package, home.path()).unwrap();
        let root = home.path().join("root");
        unpack(&file, &root).unwrap();
        for (path, content) in FILES {
            assert_eq!(fs::read_to_string(root.join(path)).unwrap(), *content);
        }
    }
}

#[test]
fn packages_that_no_trusted_key_signed_leave_nothing() {
    let (mirror, other) = (Mirror::start(), Mirror::start());
    publish(&mirror, OS, &[CORE], &[]);
    publish(&mirror, UPDATES, &[], &[]);
    let home = tempfile::tempdir().unwrap();
    let into = tempfile::tempdir().unwrap();
    let refusal = |keyring: Option<PathBuf>| {
        let fedora = fedora(&mirror, home.path(), keyring);
        let package = listed(&fedora, "kernel-core");
        let error = fedora.download(&package, into.path()).unwrap_err();
        assert_eq!(fs::read_dir(into.path()).unwrap().count(), 0);
        error
    };
    let error = refusal(None).to_string();
    assert!(error.contains("set `keyring` below [fedora]"), "{error}");
    let error = refusal(Some(other.path("keyring.gpg")));
    assert!(matches!(error, ArchiveError::Signature { .. }), "{error}");
    // An armoured keyring does as well.
    crate::mirror::gpg(
        mirror.folder.path(),
        &["--armor", "--output", "keyring.asc", "--export"],
    );
    let armoured = fedora(&mirror, home.path(), Some(mirror.path("keyring.asc")));
    let package = listed(&armoured, "kernel-core");
    armoured.download(&package, home.path()).unwrap();
}

#[test]
fn old_package_under_a_new_name_is_refused() {
    let mirror = Mirror::start();
    publish(&mirror, OS, &[CORE], &[]);
    publish(&mirror, UPDATES, &[], &[]);
    let home = tempfile::tempdir().unwrap();
    let fedora = fedora(&mirror, home.path(), Some(mirror.path("keyring.gpg")));
    let mut package = listed(&fedora, "kernel-core");
    let old = mirror.path(
        package
            .url
            .strip_prefix(&format!("{}/", mirror.url))
            .unwrap(),
    );
    let new = old.with_file_name("kernel-core-6.17.9-300.fc43.x86_64.rpm");
    fs::copy(&old, &new).unwrap();
    package.url = package.url.replace("6.17.1", "6.17.9");
    let error = fedora.download(&package, home.path()).unwrap_err();
    let error = error.to_string();
    assert!(
        error.contains("the list says kernel-core-6.17.9-300.fc43, and its signed content kernel-core-6.17.1-300.fc43"),
        "{error}"
    );
    // A payload that the signed header does not know.
    let mut content = fs::read(&old).unwrap();
    *content.last_mut().unwrap() ^= 1;
    fs::write(&old, &content).unwrap();
    package.url = package.url.replace("6.17.9", "6.17.1");
    package.sha256 = sha256(&content);
    let error = fedora.download(&package, home.path()).unwrap_err();
    assert!(matches!(error, ArchiveError::Checksum { .. }), "{error}");
}

#[test]
fn empty_package_and_damage_are_named() {
    let mirror = Mirror::start();
    let home = tempfile::tempdir().unwrap();
    let empty = Rpm { files: &[], ..CORE }.make(&mirror);
    let file = home.path().join("kernel.rpm");
    fs::write(&file, &empty).unwrap();
    unpack(&file, &home.path().join("empty")).unwrap();
    let whole = CORE.make(&mirror);
    for length in [50, 120, 200, whole.len() - 8] {
        fs::write(&file, &whole[..length]).unwrap();
        let error = unpack(&file, &home.path().join("cut")).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("kernel.rpm is damaged"), "{error}");
    }
    let fedora = fedora(&mirror, home.path(), None);
    let error = fedora.kernels("99").unwrap_err().to_string();
    assert!(
        error.contains("no suite `99`: name one of Fedora's"),
        "{error}"
    );
    assert!(fedora.kernels("../x").is_err());
}

/// Publishes a list of packages packed so, and returns what Marvin says of it.
fn list_refusal(packer: &[&str], change: fn(String) -> String) -> String {
    let mirror = Mirror::start();
    publish(&mirror, OS, &[CORE], packer);
    publish(&mirror, UPDATES, &[], &[]);
    let repomd = mirror.path(&format!("fedora/{OS}/repodata/repomd.xml"));
    let text = fs::read_to_string(&repomd).unwrap();
    fs::write(&repomd, change(text)).unwrap();
    let home = tempfile::tempdir().unwrap();
    let fedora = fedora(&mirror, home.path(), None);
    let error = fedora.kernels("43").unwrap_err().to_string();
    // Nothing of it is kept, so that the next one is read.
    let lists = fs::read_dir(home.path().join("archives")).unwrap();
    for entry in lists {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.ends_with(".list") || name.ends_with(".seen"), "{name}");
    }
    error
}

#[test]
fn other_forms_of_lists_are_not_kept() {
    let same: fn(String) -> String = |text| text;
    for (packer, expected) in [
        (
            &["sed", "1s/^/BZh/"][..],
            "it is packed by bzip2, which Marvin does not read",
        ),
        (&["sed", "1s/^/\\x00ZCK1/"], "it is packed by zchunk"),
        (
            &["sed", "s/./&&/g"],
            "it is no list of packages of createrepo",
        ),
        (
            &["head", "-c", "60"],
            "it is no list of packages of createrepo, or cut short",
        ),
    ] {
        let error = list_refusal(packer, same);
        assert!(
            error.contains(expected) && error.contains("-primary.xml.zst"),
            "{error}"
        );
    }
    let error = list_refusal(&[], |text| text.replace("\"primary\"", "\"primary_zck\""));
    assert!(error.contains("names no list `primary`"), "{error}");
    let error = list_refusal(&[], |text| {
        let open = format!("<open-checksum type=\"sha256\">{}<", "a".repeat(64));
        text.replace("<location", &format!("{open}/open-checksum><location"))
    });
    assert!(error.contains("unpacked, has SHA-256"), "{error}");
}

#[test]
fn web_page_is_no_list_of_fedora() {
    let mirror = Mirror::start();
    publish(&mirror, OS, &[CORE], &[]);
    publish(&mirror, UPDATES, &[], &[]);
    let home = tempfile::tempdir().unwrap();
    let fedora = fedora(&mirror, home.path(), None);
    mirror.answer("repomd.xml", PORTAL);
    let error = fedora.kernels("43").unwrap_err().to_string();
    assert!(error.contains("repomd.xml is a web page"), "{error}");
    mirror.answer_with_files();
    assert!(
        fedora.kernels("43").unwrap()[0]
            .text
            .contains("kernel-core")
    );
}
