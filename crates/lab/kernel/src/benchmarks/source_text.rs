//! Reads many files of a source at once and without a checkout: of a revision of a git tree, or of a
//! directory as it stands.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::KernelError;
use crate::source::{Repository, SourceError, TreeError, program as git};

/// Most bytes that are read of a source at once: all Makefiles and Kconfig files have ten million.
const BYTES_MAX: u64 = 256 << 20;
/// Most files that one command names.
const NAMED_MAX: usize = 400;

/// A source whose text is read.
#[derive(Debug, Clone)]
pub struct SourceText {
    folder: PathBuf,
    /// The commit; `None` for the directory as it stands.
    commit: Option<String>,
    /// What a user calls it.
    name: String,
}

impl SourceText {
    /// Opens a revision of a git tree.
    ///
    /// # Errors
    /// If there is no such tree or revision, or it is no kernel source.
    pub fn of_revision(folder: &Path, revision: &str) -> Result<Self, KernelError> {
        let repository = Repository::open(folder)?;
        repository.check_linux(revision)?;
        Ok(Self {
            folder: repository.folder().to_owned(),
            commit: Some(repository.commit(revision)?),
            name: revision.to_owned(),
        })
    }

    /// Opens a directory as it stands.
    ///
    /// # Errors
    /// If it is no kernel source.
    pub fn of_directory(folder: &Path) -> Result<Self, KernelError> {
        let no_source = |what: String| SourceError::Tree(TreeError::NotLinux { what });
        let name = folder.display().to_string();
        let folder =
            fs::canonicalize(folder).map_err(|error| no_source(format!("{name} ({error})")))?;
        if !folder.join("Kbuild").is_file() {
            return Err(no_source(name).into());
        }
        Ok(Self {
            folder,
            commit: None,
            name,
        })
    }

    /// Returns what a user calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether it has a file.
    ///
    /// # Errors
    /// If git fails.
    pub fn has_file(&self, path: &str) -> Result<bool, KernelError> {
        let Some(commit) = &self.commit else {
            return Ok(self.folder.join(path).is_file());
        };
        let object = format!("{commit}:{path}");
        let ended = git(&self.folder).args(["cat-file", "-e", &object]).end()?;
        Ok(ended.code == Some(0))
    }

    /// Returns the commit that brought a file, among those that an older source lacks; `None` if
    /// that is not known.
    #[must_use]
    pub fn added_by(&self, path: &str, older: &Self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        let range = format!("{}..{commit}", older.commit.as_ref()?);
        let log = ["log", "--no-color", "--diff-filter=A", "--format=%h", "-1"];
        let ended = git(&self.folder)
            .args(log)
            .args([range.as_str(), "--", path])
            .end()
            .ok()?;
        let text = ended.text();
        let short = text.lines().next()?;
        (!short.is_empty()).then(|| short.to_owned())
    }

    /// Returns the tree's directory, and the commit if it is a revision.
    #[must_use]
    pub fn place(&self) -> (&Path, Option<&str>) {
        (&self.folder, self.commit.as_deref())
    }

    /// Returns the files that have a line with a pattern (POSIX extended), among these paths.
    pub(crate) fn files_with(
        &self,
        pattern: &str,
        paths: &[&str],
    ) -> Result<Vec<String>, KernelError> {
        let options = ["-l", "-E", "-e", pattern];
        let output = self.grep(&options, paths)?;
        let prefix = self.prefix();
        let files = output
            .split('\0')
            .map(|file| file.strip_prefix(&prefix).unwrap_or(file));
        Ok(files
            .filter(|file| !file.is_empty())
            .map(str::to_owned)
            .collect())
    }

    /// Returns the content of all files of these paths.
    pub(crate) fn contents(&self, paths: &[&str]) -> Result<BTreeMap<String, String>, KernelError> {
        let mut files: BTreeMap<String, String> = BTreeMap::new();
        let prefix = self.prefix();
        for paths in paths.chunks(NAMED_MAX) {
            let output = self.grep(&["-e", ""], paths)?;
            for line in output.split_terminator('\n') {
                let Some((file, text)) = line.split_once('\0') else {
                    continue;
                };
                let file = file.strip_prefix(&prefix).unwrap_or(file);
                let content = match files.get_mut(file) {
                    Some(content) => content,
                    None => files.entry(file.to_owned()).or_default(),
                };
                content.push_str(text);
                content.push('\n');
            }
        }
        Ok(files)
    }

    /// Returns what git prints before a file's name.
    fn prefix(&self) -> String {
        self.commit
            .as_ref()
            .map_or_else(String::new, |commit| format!("{commit}:"))
    }

    fn grep(&self, options: &[&str], paths: &[&str]) -> Result<String, KernelError> {
        let mut arguments = vec!["grep", "-z", "-I", "--no-color"];
        if self.commit.is_none() {
            arguments.push("--no-index");
        }
        arguments.extend(options);
        arguments.extend(self.commit.as_deref());
        arguments.push("--");
        arguments.extend(paths);
        let ended = git(&self.folder)
            .args(arguments)
            .output_max(BYTES_MAX)
            .end()?;
        match ended.code {
            // 1: no file has it.
            Some(0 | 1) => Ok(ended.text()),
            _ => Err(SourceError::Program {
                command: "git grep".to_owned(),
                detail: ended.reason(),
            }
            .into()),
        }
    }
}
