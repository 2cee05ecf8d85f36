//! Builds in the store.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use model::{Build, BuildFile, BuildId, KernelName, Origin, PackageQuery, PackageSelection};
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::columns::{Id, PathColumn, UnknownCode, text_or_blob};
use crate::database::{Failure, Row};
use crate::lookup::{IdTable, unknown};
use crate::{Store, StoreError};

const PLACE: IdTable = IdTable {
    noun: "build",
    select: "SELECT id FROM builds WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT ?3",
};

const SAVE: &str = "\
    INSERT INTO builds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, version = excluded.version, origin = excluded.origin,
        image_path = excluded.image_path, image_sha256 = excluded.image_sha256,
        vmlinux_path = excluded.vmlinux_path, vmlinux_sha256 = excluded.vmlinux_sha256,
        config_path = excluded.config_path, config_sha256 = excluded.config_sha256,
        symbols_path = excluded.symbols_path, symbols_sha256 = excluded.symbols_sha256,
        modules_path = excluded.modules_path";

impl Store {
    /// Saves a build. A stored build keeps its id and its runs; its other facts are renewed,
    /// because the same build may have another name or location now.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn save_build(&self, build: &Build) -> Result<(), StoreError> {
        let name = name_bytes(&build.name);
        self.with(|database| {
            let transaction = database.write()?;
            database.execute(
                SAVE,
                &[
                    &build.id.hex(),
                    &text_or_blob(&name),
                    &build.version,
                    &build.origin.to_string(),
                    &PathColumn::new(&build.image.path),
                    &build.image.sha256,
                    &path_of(&build.vmlinux),
                    &sha256_of(&build.vmlinux),
                    &path_of(&build.config),
                    &sha256_of(&build.config),
                    &path_of(&build.symbols),
                    &sha256_of(&build.symbols),
                    &build.modules.as_deref().map(PathColumn::new),
                ],
            )?;
            transaction.commit()
        })
    }

    /// Returns a build.
    ///
    /// # Errors
    /// If there is none of that id, or the database cannot be read.
    pub fn build(&self, id: &BuildId) -> Result<Build, StoreError> {
        self.with(|database| {
            database.row("SELECT * FROM builds WHERE id = ?1", &[&id.hex()], build)
        })?
        .ok_or_else(|| unknown(&PLACE, id))
    }

    /// Returns the id of the one build whose id begins with `prefix`: digits, with or without
    /// `build_`.
    ///
    /// # Errors
    /// If it is no beginning of an id, or that of none or of several.
    pub fn find_build(&self, prefix: &str) -> Result<BuildId, StoreError> {
        self.find(&PLACE, &prefix.parse::<BuildId>()?)
    }
}

fn sha256_of(file: &Option<BuildFile>) -> Option<String> {
    file.as_ref().map(|f| f.sha256.clone())
}

fn path_of(file: &Option<BuildFile>) -> Option<PathColumn> {
    file.as_ref().map(|f| PathColumn::new(&f.path))
}

fn build(row: &Row<'_>) -> Result<Build, Failure> {
    let name = row.get::<Name>(1)?.0;
    Ok(Build {
        id: row.get::<Id<BuildId>>(0)?.0,
        version: row.get(2)?,
        origin: Origin::of_line(&row.get::<String>(3)?, &name),
        name,
        image: BuildFile {
            path: row.get::<PathColumn>(4)?.0,
            sha256: row.get(5)?,
        },
        vmlinux: file(row, 6)?,
        config: file(row, 8)?,
        symbols: file(row, 10)?,
        modules: row.get::<Option<PathColumn>>(12)?.map(|path| path.0),
    })
}

fn file(row: &Row<'_>, first: usize) -> Result<Option<BuildFile>, Failure> {
    let Some(PathColumn(path)) = row.get(first)? else {
        return Ok(None);
    };
    Ok(Some(BuildFile {
        path,
        sha256: row.get(first + 1)?,
    }))
}

/// Returns the stored form of a kernel's name. Unlike the printed one it always includes the
/// flavour, since the default flavour may change, and it keeps paths that are not UTF-8.
fn name_bytes(name: &KernelName) -> Vec<u8> {
    match name {
        KernelName::Path(path) => [b"path:", path.as_os_str().as_bytes()].concat(),
        KernelName::Tree(folder) => [b"tree:", folder.as_os_str().as_bytes()].concat(),
        KernelName::Patch { file, revision } => [
            b"patch:",
            file.as_os_str().as_bytes(),
            b"@",
            revision.as_bytes(),
        ]
        .concat(),
        KernelName::Changed { kernel, changes } => {
            [name_bytes(kernel), changes.to_string().into_bytes()].concat()
        }
        KernelName::Git(_)
        | KernelName::DebSrc(_)
        | KernelName::KernelOrg(_)
        | KernelName::Installed(_)
        | KernelName::Running => name.to_string().into_bytes(),
        KernelName::Package(PackageQuery {
            distribution,
            suite,
            selection: PackageSelection::Version { version, flavour },
        }) => {
            // With its flavour always: which one is the default may change.
            let suite = suite
                .as_ref()
                .map_or_else(String::new, |suite| format!("{suite}/"));
            format!("{}:{suite}{version}+{flavour}", distribution.scheme()).into_bytes()
        }
        KernelName::Package(_) | KernelName::Imported(_) => name.to_string().into_bytes(),
    }
}

/// Reads a kernel's name from a column.
pub(crate) struct Name(pub(crate) KernelName);

impl FromSql for Name {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        if let Some(path) = value.as_bytes()?.strip_prefix(b"path:") {
            return Ok(Self(KernelName::Path(OsStr::from_bytes(path).into())));
        }
        if let Some(folder) = value.as_bytes()?.strip_prefix(b"tree:") {
            return Ok(Self(KernelName::Tree(OsStr::from_bytes(folder).into())));
        }
        if let Some(patch) = value.as_bytes()?.strip_prefix(b"patch:")
            && let Some(at) = patch.iter().rposition(|byte| *byte == b'@')
            && let Ok(revision) = str::from_utf8(&patch[at + 1..])
        {
            return Ok(Self(KernelName::Patch {
                file: OsStr::from_bytes(&patch[..at]).into(),
                revision: revision.to_owned(),
            }));
        }
        let text = str::from_utf8(value.as_bytes()?)
            .map_err(|error| FromSqlError::Other(Box::new(error)))?;
        text.parse()
            .map(Self)
            .map_err(|_| UnknownCode::error("kernel name", text))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use model::{BuildFile, BuildId, Fault, KernelName, Origin};

    use crate::testing::{New, build, contract, sqlite, store};

    contract!(
        a_build_comes_back_as_it_was,
        builds_are_found_by_a_beginning_of_their_id,
    );

    fn a_build_comes_back_as_it_was(new: New<'_>) {
        let (_home, store) = new();
        let mut with_all = build("aa");
        with_all.vmlinux = Some(BuildFile {
            path: OsStr::from_bytes(b"/cache/\xff\xfe/vmlinux").into(),
            sha256: "77".into(),
        });
        with_all.modules = Some("/cache/aa/modules".into());
        let mut of_a_path = build("bb");
        of_a_path.name = KernelName::Path(OsStr::from_bytes(b"/boot/\xff").into());
        let mut of_a_package = build("cc");
        of_a_package.name = "deb:linux-image-6.12.117+deb12-cloud-amd64"
            .parse()
            .unwrap();
        let mut of_a_tree = build("dd");
        of_a_tree.name = KernelName::Tree(OsStr::from_bytes(b"/linux/\xff").into());
        let mut of_a_commit = build("ee");
        of_a_commit.name = "git:v6.12~3".parse().unwrap();
        for other in [&mut of_a_path, &mut of_a_tree, &mut of_a_commit] {
            other.origin = Origin::Described("said of it".into());
        }
        for build in [with_all, of_a_path, of_a_package, of_a_tree, of_a_commit] {
            store.save_build(&build).unwrap();
            assert_eq!(store.build(&build.id).unwrap(), build);
        }
    }

    #[test]
    fn a_build_met_again_is_renewed() {
        let (_home, store) = store();
        store.save_build(&build("aa")).unwrap();
        let mut moved = build("aa");
        moved.name = "deb:6.12+rt-amd64".parse().unwrap();
        moved.image.path = "/elsewhere/vmlinuz".into();
        store.save_build(&moved).unwrap();
        assert_eq!(store.build(&moved.id).unwrap(), moved);
    }

    #[test]
    fn default_flavour_is_stored() {
        let (_home, store) = store();
        store.save_build(&build("aa")).unwrap();
        let name: String = sqlite(&store)
            .query_row("SELECT name FROM builds", [], |row| row.get(0))
            .unwrap();
        assert_eq!(name, "deb:6.12+cloud-amd64");
    }

    fn builds_are_found_by_a_beginning_of_their_id(new: New<'_>) {
        let (_home, store) = new();
        for id in ["a1b2", "a1c3", "ff"] {
            store.save_build(&build(id)).unwrap();
        }
        assert_eq!(store.find_build("build_F").unwrap().hex(), "ff");
        assert_eq!(store.find_build("a1c").unwrap().hex(), "a1c3");
        let error_of = |text: &str| {
            let error = store.find_build(text).unwrap_err();
            assert_eq!(error.fault(), Fault::User);
            error.to_string()
        };
        insta::assert_snapshot!(error_of("a1"), @"`build_a1` matches several ids, add digits: build_a1b2, build_a1c3");
        insta::assert_snapshot!(error_of("0"), @"no build `build_0`: `marvin runs` lists stored runs");
        insta::assert_snapshot!(error_of("deb:6.12"), @"`deb:6.12` is not a build id: expected hexadecimal digits, with or without `build_`");
        let missing = BuildId::from_hex("a1").unwrap();
        assert!(store.build(&missing).is_err());
    }
}
