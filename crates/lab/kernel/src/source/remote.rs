//! Remote trees: lists their tags and heads, and fetches one tag or commit without history.

use std::fs;
use std::path::{Path, PathBuf};

use super::SourceError;
use super::git::git;
use super::program::{Ended, Program};
use crate::KernelError;

/// Deadline for listing tags, in seconds.
const ANSWER_S: u64 = 120;
/// Deadline for fetching a commit without history, in seconds.
const FETCH_S: u64 = 3600;
/// Variables for trees behind ssh.
const SSH: [&str; 3] = ["SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND"];
/// Most tags of a tree; more are cut off.
const TAGS_MAX: usize = 100_000;

/// Returns the tags of a repository: a directory or any address that git can fetch from.
///
/// # Errors
/// If it does not answer, or is no repository.
pub fn remote_tags(place: &str) -> Result<Vec<String>, KernelError> {
    tags_within(place, ANSWER_S)
}

fn tags_within(place: &str, deadline_s: u64) -> Result<Vec<String>, KernelError> {
    let place = check_address(place)?;
    let list = ["ls-remote", "--tags", "--refs", "--quiet", "--", &place];
    let ended = run_remote(
        git(Path::new("/")).args(list).deadline_s(deadline_s),
        &place,
    )?;
    let text = ended.text();
    let tags = text
        .lines()
        .filter_map(|line| line.split_once('\t')?.1.strip_prefix("refs/tags/"));
    Ok(tags.take(TAGS_MAX).map(str::to_owned).collect())
}

/// Returns those of these branches that a repository has, each with its head, a full hash.
///
/// # Errors
/// If it does not answer, or is no repository.
pub fn remote_heads(
    place: &str,
    branches: &[String],
) -> Result<Vec<(String, String)>, KernelError> {
    let place = check_address(place)?;
    let mut list = vec![
        "ls-remote".to_owned(),
        "--heads".to_owned(),
        "--quiet".to_owned(),
    ];
    list.extend(["--".to_owned(), place.clone()]);
    list.extend(branches.iter().map(|branch| format!("refs/heads/{branch}")));
    let ended = run_remote(git(Path::new("/")).args(&list).deadline_s(ANSWER_S), &place)?;
    let text = ended.text();
    let heads = text.lines().filter_map(|line| {
        let (head, name) = line.split_once('\t')?;
        let branch = name.strip_prefix("refs/heads/")?;
        (is_commit_hash(head) && branches.iter().any(|one| one == branch))
            .then(|| (branch.to_owned(), head.to_owned()))
    });
    Ok(heads.collect())
}

/// Returns whether a text is the full hash of a commit, by SHA-1 or SHA-256.
#[must_use]
pub fn is_commit_hash(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns the directory of a repository with a tag or commit of a tree: the tree itself if it is local, else
/// a repository in the data directory with the requested tags and no history.
///
/// # Errors
/// If it does not answer or has no such tag, or the data directory is not writable.
pub fn tree_with_tag(
    home: &Path,
    name: &str,
    place: &str,
    tag: &str,
) -> Result<PathBuf, KernelError> {
    let place = check_address(place)?;
    if Path::new(&place).is_dir() {
        return Ok(PathBuf::from(place));
    }
    let folder = home.join("trees").join(name);
    if !folder.join("HEAD").is_file() {
        fs::create_dir_all(&folder).map_err(KernelError::io(&folder))?;
        git(&folder)
            .args(["init", "--quiet", "--bare", "."])
            .run()?;
    }
    // A commit that a branch had when it was queued.
    let (from, reference) = if is_commit_hash(tag) {
        (tag.to_owned(), format!("refs/heads/marvin-{tag}"))
    } else {
        let reference = format!("refs/tags/{tag}");
        (reference.clone(), reference)
    };
    let known = git(&folder).args([
        "rev-parse",
        "--verify",
        "--quiet",
        "--end-of-options",
        &format!("{reference}^{{tree}}"),
    ]);
    if known.end()?.code != Some(0) {
        let refspec = format!("+{from}:{reference}");
        let fetch = [
            "fetch",
            "--quiet",
            "--depth=1",
            "--no-tags",
            "--no-write-fetch-head",
            "--",
            &place,
            &refspec,
        ];
        let fetched = run_remote(git(&folder).args(fetch).deadline_s(FETCH_S), &place);
        fetched.map_err(|error| match error {
            KernelError::Source(SourceError::NoAnswer { place, detail }) if is_commit_hash(tag) => {
                let detail = format!("{detail} (if its branch was rewritten, the commit is gone)");
                SourceError::NoAnswer { place, detail }.into()
            }
            other => other,
        })?;
    }
    Ok(folder)
}

/// Asks a remote; a refusal or silence is no answer.
fn run_remote(git: Program, place: &str) -> Result<Ended, KernelError> {
    let git = git
        .inherit(&subprocess::NETWORK)
        .inherit(&SSH)
        .variable("GIT_ALLOW_PROTOCOL", "file:git:http:https:ssh");
    let detail = match git.end() {
        Ok(ended) if ended.code == Some(0) => return Ok(ended),
        Ok(ended) => describe_failure(&ended),
        Err(KernelError::Source(SourceError::Deadline { seconds, .. })) => {
            format!("it was silent for {seconds} s")
        }
        Err(error) => return Err(error),
    };
    let place = place.to_owned();
    Err(SourceError::NoAnswer { place, detail }.into())
}

/// Returns git's first error message, with the following line if it ends with a colon; the rest is
/// generic advice.
fn describe_failure(ended: &Ended) -> String {
    let mut lines = ended
        .stderr
        .lines()
        .map(str::trim)
        .skip_while(|line| !line.starts_with("fatal: "));
    let Some(fatal) = lines.next().and_then(|line| line.strip_prefix("fatal: ")) else {
        return ended.reason();
    };
    match lines.next() {
        Some(announced) if fatal.ends_with(':') => format!("{fatal} {announced}"),
        _ => fatal.to_owned(),
    }
}

/// Checks that git takes an address as such: no option, and no helper that runs a program.
fn check_address(place: &str) -> Result<String, KernelError> {
    let wrong = place.is_empty()
        || place.starts_with('-')
        || place.contains("::")
        || place.contains(char::is_control);
    if wrong {
        let detail = "expected a folder or an address that git can fetch from".to_owned();
        return Err(SourceError::NoAnswer {
            place: place.escape_debug().to_string(),
            detail,
        }
        .into());
    }
    Ok(place.to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{remote_heads, remote_tags, tags_within, tree_with_tag};
    use crate::source::{Repository, run_git};

    fn repository(folder: &Path) {
        run_git(folder, &["init", "-q", "-b", "main"]);
        for tag in ["v6.1", "v6.2"] {
            std::fs::write(folder.join("file"), tag).unwrap();
            run_git(folder, &["add", "file"]);
            run_git(folder, &["commit", "-qm", tag]);
            run_git(folder, &["tag", "-a", "-m", tag, tag]);
        }
    }

    #[test]
    fn tags_are_listed_and_fetched_without_history() {
        let there = tempfile::tempdir().unwrap();
        repository(there.path());
        let place = format!("file://{}", there.path().display());
        assert_eq!(remote_tags(&place).unwrap(), ["v6.1", "v6.2"]);
        assert_eq!(
            remote_tags(there.path().to_str().unwrap()).unwrap(),
            ["v6.1", "v6.2"]
        );
        let home = tempfile::tempdir().unwrap();
        for tag in ["v6.2", "v6.1", "v6.1"] {
            let folder = tree_with_tag(home.path(), "stable", &place, tag).unwrap();
            let repository = Repository::open(&folder).unwrap();
            assert_eq!(
                repository.tree(tag).unwrap(),
                Repository::open(there.path()).unwrap().tree(tag).unwrap()
            );
            assert!(repository.commit("v6.2~1").is_err(), "no history");
        }
        let local =
            tree_with_tag(home.path(), "ours", there.path().to_str().unwrap(), "v6.1").unwrap();
        assert_eq!(local, there.path());
        let error = tree_with_tag(home.path(), "stable", &place, "v7.0")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("does not answer") && error.contains("v7.0"),
            "{error}"
        );
    }

    #[test]
    fn heads_are_listed_and_fetched_by_hash() {
        let there = tempfile::tempdir().unwrap();
        repository(there.path());
        let place = format!("file://{}", there.path().display());
        let branches = ["main".to_owned(), "gone".to_owned()];
        let heads = remote_heads(&place, &branches).unwrap();
        let [(branch, head)] = heads.as_slice() else {
            panic!("{heads:?}")
        };
        assert_eq!(branch, "main");
        let home = tempfile::tempdir().unwrap();
        let folder = tree_with_tag(home.path(), "next", &place, head).unwrap();
        assert_eq!(
            Repository::open(&folder).unwrap().commit(head).unwrap(),
            *head
        );
        // A forced push, and the commit it lost.
        let lost = "0123456789".repeat(4);
        let error = tree_with_tag(home.path(), "next", &place, &lost).unwrap_err();
        assert!(error.to_string().contains("rewritten"), "{error}");
    }

    #[test]
    fn unreachable_remote_fails_and_runs_no_program() {
        insta::assert_snapshot!(error_of("/nonexistent/linux"), @"the tree /nonexistent/linux does not answer: '/nonexistent/linux' does not appear to be a git repository");
        let down = error_of("git://127.0.0.1:1/linux");
        assert!(
            down.contains("unable to connect") && down.contains("errno=Connection refused"),
            "{down}"
        );
        // It accepts the connection and stays silent.
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let place = format!("git://{}/linux", server.local_addr().unwrap());
        let silent = tags_within(&place, 1)
            .unwrap_err()
            .to_string()
            .replace(&place, "PLACE");
        insta::assert_snapshot!(silent, @"the tree PLACE does not answer: it was silent for 1 s");
        for place in ["", "-x", "ext::sh -c true", "a\nb"] {
            assert!(
                error_of(place).contains("expected a folder or an address"),
                "{place}"
            );
        }
    }

    fn error_of(place: &str) -> String {
        remote_tags(place).unwrap_err().to_string()
    }
}
