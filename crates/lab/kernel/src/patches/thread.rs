//! Chooses among the mails of a mailbox: the newest version of each series, in its order, without
//! replies.
//!
//! Pure: `mailbox` decodes the mails.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Patch;

#[derive(Debug, Clone)]
pub(super) struct Mail {
    /// Message-Ids that it answers, the nearest first.
    pub(super) parents: Vec<String>,
    pub(super) is_reply: bool,
    /// A patch without files, if the mail has no diff.
    pub(super) patch: Patch,
}

impl Mail {
    fn has_diff(&self) -> bool {
        !self.patch.files.is_empty()
    }

    fn number(&self) -> u32 {
        self.patch.position.map_or(1, |position| position.number)
    }

    fn is_cover(&self) -> bool {
        !self.has_diff()
            && self
                .patch
                .position
                .is_some_and(|position| position.number == 0)
    }

    /// Returns version and size of its series; `None` if it is in none.
    fn posting(&self) -> Option<(u32, u32)> {
        let position = self.patch.position?;
        Some((position.version, position.total))
    }
}

/// Mails that were sent together: a version of a series. Numbers of mails, by their numbers in the
/// series.
#[derive(Debug, Clone)]
struct Posting {
    first: usize,
    version: u32,
    total: u32,
    members: BTreeMap<u32, usize>,
}

/// Returns the patches to apply, in order; a cover letter comes before its first patch.
pub(super) fn select(mails: Vec<Mail>) -> Vec<Patch> {
    let mut mails = relevant(mails);
    version_by_covers(&mut mails);
    // Files of `git format-patch` in a row: they are no thread, and their order is the one meant.
    if !mails.iter().any(|mail| mail.patch.message_id.is_some()) {
        return mails.into_iter().map(|mail| mail.patch).collect();
    }
    let postings = postings(&mails);
    let mut chosen: Vec<Posting> = Vec::new();
    for series in series(&mails, &postings) {
        chosen.extend(newest(&mails, &series));
    }
    chosen.sort_by_key(|posting| posting.first);
    let order: Vec<usize> = chosen
        .iter()
        .flat_map(|posting| posting.members.values().copied())
        .collect();
    let mut mails: Vec<Option<Mail>> = mails.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|number| mails[number].take())
        .map(|mail| mail.patch)
        .collect()
}

/// Returns the mails with patches and the cover letters, each once.
fn relevant(mut mails: Vec<Mail>) -> Vec<Mail> {
    let mut seen = BTreeSet::new();
    let mut is_new = |mail: &Mail| {
        mail.patch
            .message_id
            .clone()
            .is_none_or(|id| seen.insert(id))
    };
    mails.retain(|mail| is_new(mail) && (mail.has_diff() || mail.is_cover()));
    // A reply with a diff is a proposal beside the patches; alone, it is what the user means.
    if mails.iter().any(|mail| mail.has_diff() && !mail.is_reply) {
        mails.retain(|mail| !mail.is_reply);
    }
    // The kernel's tip tree answers with the commit that it made of a patch.
    if mails
        .iter()
        .any(|mail| mail.has_diff() && mail.patch.position.is_some())
    {
        mails.retain(|mail| mail.patch.position.is_some() || mail.parents.is_empty());
    }
    mails
}

/// Gives patches the version of the cover letter that they answer, if they state none: some state it
/// there only.
fn version_by_covers(mails: &mut [Mail]) {
    let covers: HashMap<String, (u32, u32)> = mails
        .iter()
        .filter(|mail| mail.is_cover())
        .filter_map(|mail| Some((mail.patch.message_id.clone()?, mail.posting()?)))
        .collect();
    for mail in mails.iter_mut().filter(|mail| mail.has_diff()) {
        let answered = mail.parents.iter().find_map(|parent| covers.get(parent));
        if let Some((version, total)) = answered
            && let Some(position) = &mut mail.patch.position
            && (position.version, position.total) == (1, *total)
        {
            position.version = *version;
        }
    }
}

/// Groups the mails that were sent together.
fn postings(mails: &[Mail]) -> Vec<Posting> {
    let known: HashMap<&str, usize> = mails
        .iter()
        .enumerate()
        .filter_map(|(number, mail)| Some((mail.patch.message_id.as_deref()?, number)))
        .collect();
    let mut by_root: BTreeMap<usize, Posting> = BTreeMap::new();
    let mut unplaced = Vec::new();
    for (number, mail) in mails.iter().enumerate() {
        let root = root(mails, &known, number);
        let (version, total) = mail.posting().unwrap_or((1, 1));
        let posting = by_root.entry(root).or_insert_with(|| Posting {
            first: root,
            version,
            total,
            members: BTreeMap::new(),
        });
        match posting.members.entry(mail.number()) {
            Entry::Vacant(place) => drop(place.insert(number)),
            Entry::Occupied(_) => unplaced.push(number),
        }
    }
    let alone = unplaced.into_iter().map(|number| {
        let (version, total) = mails[number].posting().unwrap_or((1, 1));
        Posting {
            first: number,
            version,
            total,
            members: BTreeMap::from([(mails[number].number(), number)]),
        }
    });
    joined(mails, by_root.into_values().chain(alone).collect())
}

/// Returns the first mail of the posting that a mail belongs to.
fn root(mails: &[Mail], known: &HashMap<&str, usize>, number: usize) -> usize {
    let mut index = number;
    // Loops among identifiers end here.
    for _ in 0..mails.len() {
        let mail = &mails[index];
        let Some((version, total)) = mail.posting().filter(|_| mail.number() > 0) else {
            break;
        };
        let parents = mail
            .parents
            .iter()
            .filter_map(|parent| known.get(parent.as_str()).copied());
        match parents.into_iter().find(|parent: &usize| {
            let same = mails[*parent].posting() == Some((version, total));
            same && *parent != index && (mails[*parent].number() < mail.number())
        }) {
            Some(parent) => index = parent,
            None => break,
        }
    }
    index
}

/// Joins what was sent without references: same author, version and size, and other numbers.
fn joined(mails: &[Mail], mut postings: Vec<Posting>) -> Vec<Posting> {
    postings.sort_by_key(|posting| posting.first);
    let mut distinct: Vec<Posting> = Vec::new();
    for posting in postings {
        let author = &mails[posting.first].patch.author;
        match distinct.iter_mut().find(|other: &&mut Posting| {
            let is_same = (other.version, other.total) == (posting.version, posting.total)
                && posting.total > 1;
            let is_apart = posting
                .members
                .keys()
                .all(|number| !other.members.contains_key(number));
            is_same && is_apart && mails[other.first].patch.author == *author
        }) {
            Some(other) => other.members.extend(posting.members),
            None => distinct.push(posting),
        }
    }
    distinct
}

/// Groups postings that are versions of one series: with a subject in common, or one in answer to
/// the other.
fn series(mails: &[Mail], postings: &[Posting]) -> Vec<Vec<Posting>> {
    let mut group: Vec<usize> = (0..postings.len()).collect();
    let mut by_subject: HashMap<&str, usize> = HashMap::new();
    let mut by_id: HashMap<&str, usize> = HashMap::new();
    for (number, posting) in postings.iter().enumerate() {
        for mail in posting.members.values().map(|mail| &mails[*mail]) {
            if let Some(id) = &mail.patch.message_id {
                by_id.insert(id, number);
            }
            let other = *by_subject.entry(&mail.patch.subject).or_insert(number);
            unite(&mut group, number, other);
        }
    }
    for (number, posting) in postings.iter().enumerate() {
        let parents = posting
            .members
            .values()
            .flat_map(|mail| &mails[*mail].parents);
        for other in parents.filter_map(|parent| by_id.get(parent.as_str())) {
            if postings[*other].version != posting.version {
                unite(&mut group, number, *other);
            }
        }
    }
    let mut found: BTreeMap<usize, Vec<Posting>> = BTreeMap::new();
    for (number, posting) in postings.iter().enumerate() {
        found
            .entry(top(&group, number))
            .or_default()
            .push(posting.clone());
    }
    found.into_values().collect()
}

fn top(group: &[usize], number: usize) -> usize {
    let mut index = number;
    while group[index] != index {
        index = group[index];
    }
    index
}

fn unite(group: &mut [usize], one: usize, other: usize) {
    let one = top(group, one);
    let other = top(group, other);
    group[one.max(other)] = one.min(other);
}

fn subjects(mails: &[Mail], posting: &Posting) -> BTreeSet<String> {
    let members = posting.members.values();
    members
        .map(|mail| mails[*mail].patch.subject.clone())
        .collect()
}

/// Returns the postings of the highest version; of those that were sent again, the last.
fn newest(mails: &[Mail], series: &[Posting]) -> Vec<Posting> {
    let postings: Vec<&Posting> = series
        .iter()
        .filter(|posting| posting.members.values().any(|mail| mails[*mail].has_diff()))
        .collect();
    let version = postings.iter().map(|posting| posting.version).max();
    let Some(version) = version else {
        return Vec::new();
    };
    let mut newest: Vec<Posting> = Vec::new();
    for posting in postings
        .into_iter()
        .filter(|posting| posting.version == version)
    {
        // Some of a version, sent again within it: in place of those with their numbers.
        if let Some(whole) = newest.iter_mut().find(|other: &&mut Posting| {
            posting.total == other.total
                && posting.members.len() < other.members.len()
                && posting
                    .members
                    .keys()
                    .all(|number| other.members.contains_key(number))
        }) {
            whole.members.extend(posting.members.clone());
            continue;
        }
        let own = subjects(mails, posting);
        newest.retain(|other| subjects(mails, other).is_disjoint(&own));
        newest.push(completed(mails, posting, series));
    }
    newest
}

/// Completes a version that was sent in part, each patch in answer to the one that it replaces.
fn completed(mails: &[Mail], posting: &Posting, series: &[Posting]) -> Posting {
    let mut whole = posting.clone();
    let older = series
        .iter()
        .filter(|older| older.version < posting.version && older.total == posting.total);
    let Some(older) = older.max_by_key(|older| older.version) else {
        return whole;
    };
    if posting
        .members
        .iter()
        .all(|(number, mail): (&u32, &usize)| {
            let replaced = older
                .members
                .get(number)
                .and_then(|mail| mails[*mail].patch.message_id.as_ref());
            replaced.is_some_and(|replaced| mails[*mail].parents.first() == Some(replaced))
        })
    {
        for (number, mail) in &older.members {
            whole.members.entry(*number).or_insert(*mail);
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::{Mail, Patch, select};
    use crate::patches::{RawMessage, message};

    /// A mail with subject, identifier and the identifiers that it answers; with a diff, unless its
    /// number is 0.
    fn mail(subject: &str, id: &str, parents: &str) -> Mail {
        let headers = vec![("Message-ID".to_owned(), format!("<{id}>"))];
        let read = message::parse_subject(subject);
        let raw = RawMessage {
            subject: subject.to_owned(),
            author: "a".to_owned(),
            headers,
            ..RawMessage::default()
        };
        let is_cover =
            read.position.is_some_and(|position| position.number == 0) || subject.contains("talk");
        let diff = if is_cover {
            ""
        } else {
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
        };
        let parents = parents
            .split(' ')
            .filter(|parent| !parent.is_empty())
            .map(str::to_owned)
            .collect();
        Mail {
            parents,
            is_reply: read.is_reply,
            patch: Patch::new(raw, diff.as_bytes().to_vec()),
        }
    }

    fn chosen(mails: &[(&str, &str, &str)]) -> String {
        let mails = mails
            .iter()
            .map(|(subject, id, parents)| mail(subject, id, parents))
            .collect();
        let ids = select(mails)
            .into_iter()
            .filter_map(|patch| patch.message_id);
        ids.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn newest_version_is_chosen_in_order() {
        let thread = [
            ("[PATCH 0/2] walk", "a0", ""),
            ("[PATCH 2/2] second", "a2", "a0"),
            ("[PATCH 1/2] first", "a1", "a0"),
            ("Re: [PATCH 1/2] first", "r1", "a1 a0"),
            ("Re: [PATCH 1/2] talk", "r2", "r1 a1 a0"),
            ("[PATCH v2 2/2] second", "b2", "b0 a0"),
            ("[PATCH v2 0/2] walk", "b0", "a0"),
            ("[PATCH v2 1/2] another first", "b1", "b0 a0"),
            ("[PATCH v2 1/2] another first", "b1", "b0 a0"),
            ("[tip: mm/core] second", "t2", "b2"),
        ];
        assert_eq!(chosen(&thread), "b0 b1 b2");
        assert_eq!(chosen(&thread[..5]), "a0 a1 a2");
        assert_eq!(chosen(&thread[3..4]), "r1");
    }

    #[test]
    fn series_without_references_are_joined() {
        let mails = [
            ("[PATCH 2/2] b", "2", ""),
            ("[PATCH 1/2] a", "1", ""),
            ("[PATCH] c", "3", ""),
        ];
        assert_eq!(chosen(&mails), "1 2 3");
    }

    #[test]
    fn single_new_version_replaces_one_patch() {
        let mails = [
            ("[PATCH 1/3] a", "1", ""),
            ("[PATCH 2/3] b", "2", "1"),
            ("[PATCH 3/3] c", "3", "2"),
            ("[PATCH v2 2/3] b", "4", "2 1"),
        ];
        assert_eq!(chosen(&mails), "1 4 3");
    }

    #[test]
    fn cover_of_one_patch_is_kept() {
        let mails = [("[PATCH 0/1] walk", "0", ""), ("[PATCH 1/1] a", "1", "0")];
        assert_eq!(chosen(&mails), "0 1");
    }

    #[test]
    fn cover_states_the_version_of_its_patches() {
        let mails = [
            ("[PATCH 0/2] walk", "a0", ""),
            ("[PATCH 1/2] first", "a1", "a0"),
            ("[PATCH 2/2] second", "a2", "a0"),
            ("[PATCH v2 0/2] walk", "b0", ""),
            ("[PATCH 1/2] first", "b1", "b0"),
            ("[PATCH 2/2] second", "b2", "b0"),
        ];
        assert_eq!(chosen(&mails), "b0 b1 b2");
    }

    #[test]
    fn patch_sent_again_within_a_version_replaces_one() {
        let mails = [
            ("[PATCH v2 0/3] walk", "0", ""),
            ("[PATCH v2 1/3] a", "1", "0"),
            ("[PATCH v2 2/3] b", "2", "0"),
            ("[PATCH v2 3/3] c", "3", "0"),
            ("[PATCH v2.1 2/3] b", "4", "2"),
            ("[PATCH v2.1 1/3] renamed", "5", "1"),
        ];
        assert_eq!(chosen(&mails), "0 5 4 3");
    }

    #[test]
    fn patches_sent_again_are_chosen_once() {
        let mails = [
            ("[PATCH] a", "1", ""),
            ("[PATCH RESEND] a", "2", ""),
            ("[PATCH] b", "3", ""),
        ];
        assert_eq!(chosen(&mails), "2 3");
    }

    #[test]
    fn loops_of_references_end() {
        let mails = [("[PATCH 1/2] a", "1", "2"), ("[PATCH 2/2] b", "2", "1 2")];
        assert_eq!(chosen(&mails), "1 2");
    }
}
