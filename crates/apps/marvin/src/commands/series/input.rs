//! What `marvin series` is given: a range of commits, or patches of a mailbox, a folder, standard
//! input or a public-inbox.
//!
//! It names commits and patches. `kernel` reads mails and applies them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use history::commit_checks::CommitSource;
use history::commit_mail::AnsweredMail;
use kernel::{
    BaseHow, LinePoint, Patch, PatchesError, Picked, Repository, SeriesBase, Sources, read_patches,
};
use lab::bisection::short;

use super::mailbox::{Mailbox, Thread};
use crate::exit::WrongInput;
use crate::session::Session;

/// Limit on commits, patches and hunks of a series.
const ENTRIES_MAX: usize = 500;

/// Characters of a commit in front of the number of its hunk.
const LABEL_MAX: usize = 8;

/// Files that do not fit a patch and are named.
const FILES_SHOWN: usize = 4;

/// Most digits of a number of commits: more are the beginning of a hash.
const DIGITS_MAX: usize = 4;

const FORMS: &str = "name OLDER..NEWER, a revision (HEAD~4), a number of commits, a mailbox or a folder of patches, - for standard input, or lore:MESSAGE-ID";

/// What is measured.
#[derive(Debug)]
pub(super) enum Input {
    /// The commits after one up to another one, which are both hashes.
    Range {
        older: String,
        newer: String,
        /// The revisions, as they were typed.
        named: String,
    },
    Patches {
        base: SeriesBase,
        /// Whether `--base` named it.
        is_base_named: bool,
        patches: Vec<Patch>,
        /// Their place, as it was typed.
        place: String,
    },
    /// The hunks of commits or patches, one after the other.
    Hunks {
        base: String,
        /// What was named.
        title: String,
        /// How each is called, and its change.
        hunks: Vec<(String, Patch)>,
        /// What is named to get the same again.
        words: Vec<String>,
    },
}

/// A commit or a patch of the series.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// How its row is called: the abbreviated hash, or the number of the patch.
    pub(super) label: String,
    pub(super) subject: String,
    pub(super) made: Made,
    /// The functions that its diff names.
    pub(super) functions: Vec<String>,
    pub(super) source: CommitSource,
    /// Whether it does not build, and those behind it are applied without it.
    pub(super) is_left_out: bool,
}

/// What became of an entry in the tree.
#[derive(Debug, Clone)]
pub(super) enum Made {
    Commit(String),
    /// The tree has its change already.
    Nothing,
    /// It does not apply, for this reason.
    Refused(String),
}

/// The base of a series and its entries.
#[derive(Debug)]
pub(super) struct Entries {
    pub(super) title: String,
    pub(super) base: Entry,
    pub(super) entries: Vec<Entry>,
}

impl Input {
    /// Finds out what was named. Nothing is what the branch has beyond its upstream.
    pub(super) fn read(
        session: &Session,
        repository: &Repository,
        named: Option<&str>,
        base: Option<&str>,
    ) -> anyhow::Result<Self> {
        let input = match named {
            None => beyond_upstream(repository)?,
            Some("-") => {
                let mailbox = Mailbox::of_standard_input(session)?;
                Self::patches(session, repository, mailbox.file(), "standard input", base)?
            }
            Some(named) => match Thread::named(named)? {
                Some(thread) => {
                    let mailbox = Mailbox::fetch(session, &thread)?;
                    Self::patches(session, repository, mailbox.file(), named, base)?
                }
                None => Self::of_name(session, repository, named, base)?,
            },
        };
        if base.is_some() && matches!(input, Self::Range { .. }) {
            let text = "--base is where patches are applied; a range of commits has its own";
            return Err(WrongInput(text.into()).into());
        }
        Ok(input)
    }

    fn of_name(
        session: &Session,
        repository: &Repository,
        named: &str,
        base: Option<&str>,
    ) -> anyhow::Result<Self> {
        if let Some((older, newer)) = named.split_once("...") {
            let [older, newer] = [older, newer].map(or_head);
            let newer = repository.commit(newer)?;
            let older = repository.fork_point(&repository.commit(older)?, &newer)?;
            let named = named.to_owned();
            return Ok(Self::Range {
                older,
                newer,
                named,
            });
        }
        if named.contains("..") && !Path::new(named).exists() {
            let (older, newer) = repository.range(named)?;
            let named = named.to_owned();
            return Ok(Self::Range {
                older,
                newer,
                named,
            });
        }
        let is_count = named.len() <= DIGITS_MAX && named.bytes().all(|byte| byte.is_ascii_digit());
        let revision = if is_count {
            format!("HEAD~{named}")
        } else {
            named.to_owned()
        };
        if let Ok(older) = repository.commit(&revision) {
            let newer = repository.commit("HEAD")?;
            if older == newer {
                let text = format!("no commits after {named}: it is checked out; {FORMS}");
                return Err(WrongInput(text).into());
            }
            let named = format!("{revision}..");
            return Ok(Self::Range {
                older,
                newer,
                named,
            });
        }
        let path = Path::new(named);
        if path.exists() {
            return Self::patches(session, repository, path, named, base);
        }
        let text = format!(
            "`{named}` is no revision of {} and no file; {FORMS}",
            repository.folder().display()
        );
        Err(WrongInput(text).into())
    }

    fn patches(
        session: &Session,
        repository: &Repository,
        path: &Path,
        place: &str,
        base: Option<&str>,
    ) -> anyhow::Result<Self> {
        let scratch = session.home()?.join("scratch");
        let patches = read_patches(path, &scratch).map_err(|error| match error {
            // The file of what was fetched is gone when this is read.
            PatchesError::NoPatch { detail, .. } => {
                anyhow::Error::from(WrongInput(format!("no patch in {place}: {detail}")))
            }
            PatchesError::Kernel(error) => error.into(),
            mistake => WrongInput(mistake.to_string()).into(),
        })?;
        let is_base_named = base.is_some();
        let base = match base {
            Some(revision) => SeriesBase {
                commit: repository.commit(revision)?,
                how: BaseHow::Stated,
                stated_elsewhere: None,
            },
            None => repository.find_base(&patches)?,
        };
        let place = place.to_owned();
        Ok(Self::Patches {
            base,
            is_base_named,
            patches,
            place,
        })
    }

    /// Returns the revisions whose source may have benchmarks that are named.
    pub(super) fn revisions(&self) -> Vec<String> {
        match self {
            Self::Range { older, newer, .. } => vec![older.clone(), newer.clone()],
            Self::Patches { base, .. } => vec![base.commit.clone()],
            Self::Hunks { base, .. } => vec![base.clone()],
        }
    }

    /// Returns the words that name the same series again, with commits by hash. `named` is what was
    /// typed.
    pub(super) fn words(&self, named: Option<&str>) -> Vec<String> {
        match self {
            Self::Range { older, newer, .. } => {
                vec![format!("{}..{}", short(older), short(newer))]
            }
            Self::Patches { base, place, .. } => {
                let place = named.filter(|named| *named == "-").unwrap_or(place);
                vec![place.to_owned(), "--base".to_owned(), short(&base.commit)]
            }
            Self::Hunks { words, .. } => words.clone(),
        }
    }

    /// Returns the mail that an answer answers: the cover letter, else the first patch; `None` of
    /// commits and of files that were not sent.
    pub(super) fn answered(&self) -> Option<AnsweredMail> {
        let patch = match self {
            Self::Range { .. } => return None,
            Self::Patches { patches, .. } => patches.first(),
            Self::Hunks { hunks, .. } => hunks.first().map(|(_, patch)| patch),
        }?;
        let cover = patch.cover.as_ref().and_then(|cover| cover.mail.as_ref());
        let head = cover.or(patch.mail.as_ref())?;
        Some(AnsweredMail {
            message_id: head.message_id.clone(),
            subject: head.subject.clone(),
            from: head.from.clone(),
            to: head.to.clone(),
            cc: head.cc.clone(),
        })
    }

    /// Takes commits or patches apart into their hunks.
    pub(super) fn into_hunks(
        self,
        repository: &Repository,
        named: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mut words = self.words(named);
        words.push("--hunks".to_owned());
        let (base, of, changes) = match self {
            Self::Hunks { .. } => return Ok(self),
            Self::Range {
                older,
                newer,
                named,
            } => {
                let history = repository.history(&older, &newer)?;
                if history.trunk().iter().any(LinePoint::is_merge) {
                    let text =
                        "--hunks needs a series without merges: name the commits of one branch";
                    return Err(WrongInput(text.into()).into());
                }
                let patches = repository.patches(&older, &newer)?;
                let labelled = patches
                    .into_iter()
                    .map(|(commit, patch)| (short(&commit), patch));
                let of = describe_range(&named, &older, &newer);
                (older, of, labelled.collect::<Vec<_>>())
            }
            Self::Patches {
                base,
                patches,
                place,
                ..
            } => {
                let labelled = patches.into_iter().enumerate();
                let labelled = labelled.map(|(index, patch)| ((index + 1).to_string(), patch));
                let of = format!("{place} on {}", short(&base.commit));
                (base.commit, of, labelled.collect())
            }
        };
        let mut hunks = Vec::new();
        for (label, patch) in changes {
            for (index, hunk) in patch.hunks().into_iter().enumerate() {
                let label: String = label.chars().take(LABEL_MAX).collect();
                hunks.push((format!("{label}.{}", index + 1), hunk));
            }
        }
        let plural = if hunks.len() == 1 { "" } else { "s" };
        let title = format!("{} hunk{plural} of {of}", hunks.len());
        Ok(Self::Hunks {
            base,
            title,
            hunks,
            words,
        })
    }

    /// Returns the commits of the series; those of patches are made in the workshop.
    pub(super) fn entries(&self, sources: &Sources, three_way: bool) -> anyhow::Result<Entries> {
        match self {
            Self::Range {
                older,
                newer,
                named,
            } => {
                let title = describe_range(named, older, newer);
                range_entries(sources, older, newer, &title)
            }
            Self::Hunks {
                base, title, hunks, ..
            } => {
                let (labels, patches): (Vec<String>, Vec<Patch>) = hunks.iter().cloned().unzip();
                Ok(Entries {
                    title: title.clone(),
                    base: entry_of(sources, base)?,
                    entries: applied_entries(sources, base, labels, &patches, three_way)?,
                })
            }
            Self::Patches {
                base,
                is_base_named,
                patches,
                place,
            } => {
                let digits = patches.len().to_string().len();
                let labels = (1..=patches.len())
                    .map(|number| format!("{number:0>digits$}/{}", patches.len()))
                    .collect();
                let plural = if patches.len() == 1 { "" } else { "es" };
                Ok(Entries {
                    title: format!(
                        "{} patch{plural} of {place} on {}{}",
                        patches.len(),
                        short(&base.commit),
                        describe_base(base, *is_base_named)
                    ),
                    base: entry_of(sources, &base.commit)?,
                    entries: applied_entries(sources, &base.commit, labels, patches, three_way)?,
                })
            }
        }
    }
}

impl Input {
    /// Returns the entries from one on, applied to `onto`, without what was before them; `None` for
    /// hunks, which belong together, and for merges.
    pub(super) fn entries_without(
        &self,
        sources: &Sources,
        entries: &[Entry],
        onto: &str,
        three_way: bool,
    ) -> anyhow::Result<Option<Vec<Entry>>> {
        let all = match self {
            Self::Patches { patches, .. } => patches.clone(),
            Self::Range { older, newer, .. } => {
                let history = sources.repository().history(older, newer)?;
                if history.trunk().iter().any(LinePoint::is_merge) {
                    return Ok(None);
                }
                let patches = sources.repository().patches(older, newer)?;
                patches.into_iter().map(|(_, patch)| patch).collect()
            }
            Self::Hunks { .. } => return Ok(None),
        };
        let Some(first) = all.len().checked_sub(entries.len()) else {
            return Ok(None);
        };
        let labels = entries.iter().map(|entry| entry.label.clone()).collect();
        applied_entries(sources, onto, labels, &all[first..], three_way).map(Some)
    }
}

/// Applies patches one after the other, and calls them by these labels.
fn applied_entries(
    sources: &Sources,
    base: &str,
    labels: Vec<String>,
    patches: &[Patch],
    three_way: bool,
) -> anyhow::Result<Vec<Entry>> {
    check_count(patches.len())?;
    let results = sources.apply_series(base, patches, three_way)?;
    let entries = labels.into_iter().zip(patches).zip(results);
    let entries = entries.map(|((label, patch), picked)| Entry {
        label,
        subject: patch.subject.clone(),
        made: match picked {
            Picked::Commit(commit) => Made::Commit(commit),
            Picked::Nothing => Made::Nothing,
            Picked::Conflict(files) => Made::Refused(describe_refusal(patch, &files)),
        },
        functions: functions_of(patch),
        source: source_of(patch),
        is_left_out: false,
    });
    Ok(entries.collect())
}

fn check_count(count: usize) -> Result<(), WrongInput> {
    if count <= ENTRIES_MAX {
        return Ok(());
    }
    let text = format!("{count} commits, patches or hunks; a series has at most {ENTRIES_MAX}");
    Err(WrongInput(text))
}

/// Says why a patch does not apply: it is damaged, or files are not as it expects them.
fn describe_refusal(patch: &Patch, files: &[String]) -> String {
    if let Some(fault) = &patch.fault {
        return format!("line {} of its diff is {}", fault.line, fault.what);
    }
    if files.is_empty() {
        return "git says nothing about files".to_owned();
    }
    let shown = files[..files.len().min(FILES_SHOWN)].join(", ");
    match files.len().saturating_sub(FILES_SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Names a range as it was typed, and its commits, which the words may not mean tomorrow.
fn describe_range(named: &str, older: &str, newer: &str) -> String {
    let commits = format!("{}..{}", short(older), short(newer));
    if named == commits {
        commits
    } else {
        format!("{} ({commits})", model::sanitize_line(named))
    }
}

fn range_entries(
    sources: &Sources,
    older: &str,
    newer: &str,
    title: &str,
) -> anyhow::Result<Entries> {
    let history = sources.repository().history(older, newer)?;
    check_count(history.trunk().len())?;
    // Too many commits to read are measured all the same.
    let patches = sources.repository().patches(older, newer);
    let patches: BTreeMap<String, Patch> = patches.unwrap_or_default().into_iter().collect();
    let mut entries = Vec::new();
    for place in history.trunk() {
        let commit = history.id(place.commit);
        entries.push(Entry {
            functions: patches.get(commit).map(functions_of).unwrap_or_default(),
            source: patches.get(commit).map(source_of).unwrap_or_default(),
            ..entry_of(sources, commit)?
        });
    }
    let plural = if entries.len() == 1 { "" } else { "s" };
    let title = format!("{title}, {} commit{plural}", entries.len());
    Ok(Entries {
        title,
        base: entry_of(sources, older)?,
        entries,
    })
}

fn entry_of(sources: &Sources, commit: &str) -> anyhow::Result<Entry> {
    Ok(Entry {
        label: short(commit),
        subject: sources.headline(commit)?.subject,
        made: Made::Commit(commit.to_owned()),
        functions: Vec::new(),
        source: CommitSource::default(),
        is_left_out: false,
    })
}

/// Returns where a patch comes from, for those who check it.
fn source_of(patch: &Patch) -> CommitSource {
    CommitSource {
        message_id: patch.mail.as_ref().map(|mail| mail.message_id.clone()),
        place: patch.first_change(),
    }
}

/// Returns the functions of kernel code that a patch touches, each once.
fn functions_of(patch: &Patch) -> Vec<String> {
    let names: BTreeSet<&str> = patch.functions().collect();
    names.into_iter().map(str::to_owned).collect()
}

/// Says how the base was found, behind its name.
fn describe_base(base: &SeriesBase, is_named: bool) -> String {
    let elsewhere = base
        .stated_elsewhere
        .as_ref()
        .map(|commit| format!(", for the tree lacks {}, which it states", short(commit)))
        .unwrap_or_default();
    let how = match base.how {
        BaseHow::Stated if is_named => return String::new(),
        BaseHow::Stated => "which it states",
        BaseHow::CheckedOutFits => "which is checked out and has its files",
        BaseHow::FilesFit => "the newest that left its files so",
        BaseHow::CheckedOut => "which is checked out; no commit is known to have its files",
    };
    format!(", {how}{elsewhere}")
}

/// Returns the commits that the branch has beyond b4's cover letter, else beyond its upstream.
fn beyond_upstream(repository: &Repository) -> anyhow::Result<Input> {
    let newer = repository.commit("HEAD")?;
    if let Some(older) = repository.b4_cover(&newer)? {
        return Ok(Input::Range {
            older,
            newer,
            named: "b4's branch".to_owned(),
        });
    }
    for upstream in ["@{upstream}", "origin/HEAD"] {
        let Ok(other) = repository.commit(upstream) else {
            continue;
        };
        let older = repository.fork_point(&other, &newer)?;
        if older == newer {
            let text = format!("no commits beyond {upstream}; {FORMS}");
            return Err(WrongInput(text).into());
        }
        let named = format!("{upstream}..");
        return Ok(Input::Range {
            older,
            newer,
            named,
        });
    }
    let text = format!("this branch has no upstream to compare with; {FORMS}");
    Err(WrongInput(text).into())
}

fn or_head(revision: &str) -> &str {
    if revision.is_empty() {
        "HEAD"
    } else {
        revision
    }
}
