//! The kernel's table of kprobe hits: lines of event, hits and misses
//! (Documentation/trace/kprobetrace.rst).

/// A probed function and how often it was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeHits {
    pub function: String,
    pub count: u64,
}

/// Returns the hits by function; skips lines of another format.
#[must_use]
pub fn probe_hits(table: &[u8]) -> Vec<ProbeHits> {
    String::from_utf8_lossy(table)
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some(ProbeHits {
                function: words.next()?.to_owned(),
                count: words.next()?.parse().ok()?,
            })
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
        let hits: Vec<(String, u64)> = probe_hits(table)
            .into_iter()
            .map(|hits| (hits.function, hits.count))
            .collect();
        assert_eq!(
            hits,
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
