//! What the guest is to do, from the kernel's command line: words such as `marvin.anon=64`.
//!
//! The kernel takes a word with a dot for a parameter of a module that is not there, and leaves it
//! alone.

use std::io;

/// What every word of ours begins with.
const PREFIX: &str = "marvin.";

/// How the guest ends when its memory is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum End {
    /// The watchdog stops it, and it can be dumped from outside.
    #[default]
    Stop,
    /// It panics, and nobody inside dumps it.
    Panic,
    /// It panics with a crash kernel loaded, which starts then.
    Kdump,
}

/// How much of each kind of memory there is to be. MiB, unless said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words {
    /// Anonymous memory in small pages.
    pub(crate) anon: usize,
    /// Anonymous memory of which every second page is given back.
    pub(crate) holes: usize,
    /// Anonymous memory in transparent huge pages.
    pub(crate) thp: usize,
    /// hugetlb pages of 2 MiB.
    pub(crate) huge: usize,
    /// Equal anonymous pages, for KSM to merge.
    pub(crate) same: usize,
    /// Shared anonymous memory in small pages.
    pub(crate) shm: usize,
    /// Shared anonymous memory in huge pages.
    pub(crate) shmhuge: usize,
    /// A file in the page cache, without private data.
    pub(crate) cache: usize,
    /// Blocks of the disk `scratch` in the page cache, with private data (buffers).
    pub(crate) disk: usize,
    /// Memory that is filled and freed.
    pub(crate) freed: usize,
    /// Number of small files, for slab memory.
    pub(crate) files: usize,
    /// Number of pages to be marked as broken.
    pub(crate) poison: usize,
    /// How it ends.
    pub(crate) end: End,
    /// The capture kernel's command of the filter, in words.
    pub(crate) filter: Vec<String>,
}

impl Words {
    /// Reads the words of ours among those of a command line.
    pub(crate) fn read(line: &str) -> io::Result<Self> {
        let mut words = Self::default();
        for word in line
            .split_whitespace()
            .filter_map(|word| word.strip_prefix(PREFIX))
        {
            let bad = || {
                io::Error::other(format!(
                    "the command line's `{PREFIX}{word}` means nothing here"
                ))
            };
            let (name, value) = word.split_once('=').ok_or_else(bad)?;
            match (name, value) {
                ("end", "stop") => words.end = End::Stop,
                ("end", "panic") => words.end = End::Panic,
                ("end", "kdump") => words.end = End::Kdump,
                ("filter", value) => words.filter = value.split(',').map(str::to_owned).collect(),
                (name, value) => {
                    *words.amount(name).ok_or_else(bad)? = value.parse().map_err(|_| bad())?;
                }
            }
        }
        Ok(words)
    }

    fn amount(&mut self, name: &str) -> Option<&mut usize> {
        Some(match name {
            "anon" => &mut self.anon,
            "holes" => &mut self.holes,
            "thp" => &mut self.thp,
            "huge" => &mut self.huge,
            "same" => &mut self.same,
            "shm" => &mut self.shm,
            "shmhuge" => &mut self.shmhuge,
            "cache" => &mut self.cache,
            "disk" => &mut self.disk,
            "freed" => &mut self.freed,
            "files" => &mut self.files,
            "poison" => &mut self.poison,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{End, Words};

    #[test]
    fn words_of_others_are_passed_over() {
        let words =
            Words::read("console=ttyS0 marvin.anon=64 marvin.end=kdump marvin.filter=-d,31\n")
                .unwrap();
        let filter = vec!["-d".to_owned(), "31".to_owned()];
        assert_eq!(
            words,
            Words {
                anon: 64,
                end: End::Kdump,
                filter,
                ..Words::default()
            }
        );
        assert_eq!(Words::read("").unwrap(), Words::default());
    }

    #[test]
    fn a_word_that_means_nothing_is_an_error() {
        for bad in [
            "marvin.anom=1",
            "marvin.anon=x",
            "marvin.anon",
            "marvin.end=never",
            "marvin.anon=-1",
        ] {
            let said = Words::read(bad).unwrap_err().to_string();
            assert_eq!(
                said,
                format!("the command line's `{bad}` means nothing here")
            );
        }
    }
}
