//! A cache of pages, valid while they show the newest state of the store: a repeated request gets
//! the same bytes.

use std::sync::{Arc, MutexGuard};
use subprocess::Shared;

use crate::site::Reply;

/// Limit on cached pages.
const PAGES_MAX: usize = 64;
/// Size limit of a cached answer (bytes).
const BYTES_MAX: usize = 256 << 10;

/// The pages, most recently requested first.
#[derive(Debug, Default)]
pub(crate) struct PageCache {
    pages: Shared<Vec<Page>>,
}

#[derive(Debug)]
struct Page {
    generation: u64,
    path: String,
    question: String,
    reply: Arc<Reply>,
}

impl Page {
    fn is_at(&self, path: &str, question: &str) -> bool {
        self.path == path && self.question == question
    }
}

impl PageCache {
    fn pages(&self) -> MutexGuard<'_, Vec<Page>> {
        self.pages.lock()
    }

    /// Returns the cached page of an address in a state of the store.
    pub(crate) fn get(&self, generation: u64, path: &str, question: &str) -> Option<Arc<Reply>> {
        let mut pages = self.pages();
        let place = pages
            .iter()
            .position(|page| page.generation == generation && page.is_at(path, question))?;
        pages[..=place].rotate_right(1);
        Some(Arc::clone(&pages[0].reply))
    }

    /// Stores a page; other answers and large pages are not cached.
    pub(crate) fn put(&self, generation: u64, path: &str, question: &str, reply: &Arc<Reply>) {
        if reply.status != 200 || reply.body.len() > BYTES_MAX {
            return;
        }
        let mut pages = self.pages();
        pages.retain(|page| !(page.generation == generation && page.is_at(path, question)));
        pages.truncate(PAGES_MAX - 1);
        let path = path.to_owned();
        let question = question.to_owned();
        pages.insert(
            0,
            Page {
                generation,
                path,
                question,
                reply: Arc::clone(reply),
            },
        );
    }

    /// Returns the most recently requested addresses, the latest last.
    pub(crate) fn latest(&self, count: usize) -> Vec<(String, String)> {
        let pages = self.pages();
        let mut found: Vec<_> = pages
            .iter()
            .take(count)
            .map(|page| (page.path.clone(), page.question.clone()))
            .collect();
        found.reverse();
        found
    }

    /// Drops pages of older states of the store.
    pub(crate) fn forget(&self, before: u64) {
        self.pages().retain(|page| page.generation >= before);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{BYTES_MAX, PAGES_MAX, PageCache};
    use crate::site::{ContentKind, Reply};

    fn reply(status: u16, bytes: usize) -> Arc<Reply> {
        Arc::new(Reply {
            status,
            kind: ContentKind::Html,
            body: vec![b'x'; bytes],
        })
    }

    #[test]
    fn cache_keeps_one_state_and_evicts_oldest() {
        let cache = PageCache::default();
        cache.put(1, "/", "", &reply(200, 1));
        assert!(cache.get(1, "/", "").is_some());
        assert!(cache.get(2, "/", "").is_none() && cache.get(1, "/", "base=a").is_none());
        for n in 0..PAGES_MAX - 1 {
            cache.put(1, "/", &n.to_string(), &reply(200, 1));
            assert!(cache.get(1, "/", "").is_some(), "who is asked for stays");
        }
        cache.put(1, "/", "more", &reply(200, 1));
        assert!(cache.get(1, "/", "0").is_none());
        let latest = cache
            .latest(2)
            .into_iter()
            .map(|(_, question)| question)
            .collect::<Vec<_>>();
        assert_eq!(latest, ["", "more"]);
        cache.forget(2);
        assert!(cache.latest(9).is_empty());
    }

    #[test]
    fn errors_and_large_pages_are_not_cached() {
        let cache = PageCache::default();
        cache.put(1, "/", "", &reply(404, 1));
        cache.put(1, "/a", "", &reply(200, BYTES_MAX + 1));
        assert!(cache.latest(9).is_empty());
    }
}
