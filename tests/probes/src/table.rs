//! The kernel's table of kprobe hits: lines of event, hits and misses
//! (Documentation/trace/kprobetrace.rst).

/// A probe and its number of entries.
pub type ProbeHits = (String, u64);

/// Returns the hits by function; skips lines of another format.
#[must_use]
pub fn probe_hits(table: &[u8]) -> Vec<ProbeHits> {
    String::from_utf8_lossy(table)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::probe_hits;

    #[test]
    fn a_table_of_a_real_kernel_is_read() {
        let table =
            b"  do_anonymous_page                                        36864               0\n  x 1 0\n\nnonsense\n";
        assert_eq!(
            probe_hits(table),
            [("do_anonymous_page".to_owned(), 36864), ("x".to_owned(), 1)]
        );
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(bytes: Vec<u8>) {
            let _hits = probe_hits(&bytes);
        }
    }
}
