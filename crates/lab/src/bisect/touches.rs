//! What building each commit of a history takes: nothing, a few objects, or all that include a header.
//!
//! Objects are counted, not seconds: the same history is searched in the same order on any host.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use kernel::{Compiled, History};

/// Linking takes about as long as compiling so many objects of `micro`; fewer are not worth a detour.
const LINK: f64 = 20.0;

/// The files of each commit that the configuration may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touches {
    /// Of each commit, by their numbers.
    files: Vec<Vec<usize>>,
    /// Objects that are made from each file.
    objects: Vec<usize>,
    /// Objects of a whole build.
    whole: usize,
}

impl Touches {
    /// Takes it that each of so many commits changes what is built, by one object of its own.
    #[must_use]
    pub fn everything(commits: usize) -> Self {
        Self { files: (0..commits).map(|commit| vec![commit]).collect(), objects: vec![1; commits], whole: commits }
    }

    /// Goes by the files that each commit changed and by those that builds were made from.
    #[must_use]
    pub fn of(history: &History, changed: &BTreeMap<String, Vec<String>>, compiled: &Compiled) -> Self {
        let mut touches =
            Self { files: Vec::with_capacity(history.count()), objects: Vec::new(), whole: compiled.objects() };
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for commit in 0..history.count() {
            let id = history.id(commit);
            // A commit without files is one that git did not list: better looked at, as if its name were a file.
            let unlisted = !changed.contains_key(id);
            let files = changed.get(id).into_iter().flatten().map(String::as_str);
            let used = files.filter(|file| compiled.may_use(file)).chain(unlisted.then_some(id));
            let of_commit: BTreeSet<usize> = used
                .map(|file| {
                    *numbers.entry(file).or_insert_with(|| {
                        touches.objects.push(compiled.uses(file).max(1));
                        touches.objects.len() - 1
                    })
                })
                .collect();
            touches.files.push(of_commit.into_iter().collect());
        }
        touches
    }

    /// Tells whether a commit can change what is built.
    #[must_use]
    pub fn matters(&self, commit: usize) -> bool {
        self.files.get(commit).is_none_or(|files| !files.is_empty())
    }

    /// Returns what building at each place of a line costs if the place `built` was built last, in links; `brings` are the
    /// commits that are new at each place.
    #[must_use]
    pub fn costs(&self, brings: &[&[usize]], built: usize) -> Vec<f64> {
        let built = built.min(brings.len().saturating_sub(1));
        let mut costs = vec![1.0; brings.len()];
        let mut after = Objects::new(self);
        for place in built + 1..brings.len() {
            costs[place] = after.add(brings[place]);
        }
        let mut before = Objects::new(self);
        for place in (0..built).rev() {
            costs[place] = before.add(brings[place + 1]);
        }
        costs
    }
}

/// Objects that are to be made again, growing from place to place.
struct Objects<'a> {
    touches: &'a Touches,
    seen: Vec<bool>,
    count: usize,
}

impl<'a> Objects<'a> {
    fn new(touches: &'a Touches) -> Self {
        Self { touches, seen: vec![false; touches.objects.len()], count: 0 }
    }

    /// Adds commits and returns what the objects cost: at most, as one may be made from several files.
    fn add(&mut self, commits: &[usize]) -> f64 {
        for file in commits.iter().filter_map(|commit| self.touches.files.get(*commit)).flatten() {
            if !std::mem::replace(&mut self.seen[*file], true) {
                self.count += self.touches.objects[*file];
            }
        }
        (self.count.min(self.touches.whole) as f64 / LINK).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kernel::{Commit, Compiled, History};

    use super::{LINK, Touches};

    /// Fifty objects include a header, one of these is made from `a.c`.
    fn compiled() -> Compiled {
        let home = tempfile::tempdir().unwrap();
        for object in 0..50 {
            let file = if object == 0 { "a".to_owned() } else { format!("b{object}") };
            std::fs::write(home.path().join(format!(".{file}.o.cmd")), format!("/src/{file}.c /src/x.h")).unwrap();
        }
        Compiled::of_build(home.path(), "/src".as_ref()).unwrap()
    }

    fn touches() -> Touches {
        let files = ["a.c", "x.h", "unused.c", "a.c"];
        let name = |number: usize| format!("{number:040x}");
        let commit = |number: usize| Commit { id: name(number), parents: vec![name(number - 1)] };
        let history = History::new(&name(0), (1..=5).map(commit).collect()).unwrap();
        // The last one is not listed.
        let changed: BTreeMap<_, _> =
            files.iter().enumerate().map(|(at, file)| (name(at + 1), vec![(*file).to_owned()])).collect();
        Touches::of(&history, &changed, &compiled())
    }

    #[test]
    fn what_is_not_compiled_does_not_matter() {
        let matters: Vec<bool> = (0..6).map(|commit| touches().matters(commit)).collect();
        assert_eq!(matters, [true, true, false, true, true, true], "what is unknown may matter");
    }

    #[test]
    fn a_place_costs_the_objects_between_it_and_what_was_built_last() {
        let brings: [&[usize]; 6] = [&[], &[0], &[1], &[2], &[3], &[4]];
        let objects = |built| {
            let costs = touches().costs(&brings, built);
            costs.into_iter().map(|cost| (cost * LINK).round() as usize).collect::<Vec<_>>()
        };
        assert_eq!(objects(5), [50, 50, 20, 20, 20, 20], "a.c counts once, and the header for all");
        assert_eq!(objects(0), [20, 20, 50, 50, 50, 50], "no more than all there are");
        assert_eq!(objects(2), [50, 50, 20, 20, 20, 20]);
        assert_eq!(Touches::everything(3).costs(&[&[], &[0], &[1, 2]], 9), [1.0; 3]);
    }
}
