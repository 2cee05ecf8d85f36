//! Cuts names to a width.

use std::collections::BTreeSet;

/// Shortens to `width` characters by omitting the middle: beginnings and ends distinguish kernels.
#[must_use]
pub fn cut_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let front = kept / 2;
    let back = kept - front;
    text.chars()
        .take(front)
        .chain(['…'])
        .chain(text.chars().skip(length - back))
        .collect()
}

/// Returns the least width, at least `width`, at which cutting keeps different texts different.
#[must_use]
pub fn distinct_width<'a>(texts: impl IntoIterator<Item = &'a str>, width: usize) -> usize {
    let all: BTreeSet<&str> = texts.into_iter().collect();
    let longest = all
        .iter()
        .map(|text| text.chars().count())
        .max()
        .unwrap_or(0);
    let is_distinct = |width: &usize| {
        let cut: BTreeSet<String> = all.iter().map(|text| cut_middle(text, *width)).collect();
        cut.len() == all.len()
    };
    (width..longest)
        .find(is_distinct)
        .unwrap_or(longest.max(width))
}

#[cfg(test)]
mod tests {
    use super::{cut_middle, distinct_width};

    #[test]
    fn cut_names_stay_different() {
        let names: Vec<String> = (1..=64)
            .map(|jobs| format!("Hmean     sockperf-tcp-size-{jobs}-under-load"))
            .collect();
        let width = distinct_width(names.iter().map(String::as_str), 20);
        let cut: std::collections::BTreeSet<String> =
            names.iter().map(|name| cut_middle(name, width)).collect();
        assert_eq!(cut.len(), names.len());
        assert!((20..41).contains(&width), "{width}");
        assert_eq!(distinct_width(["short", "same", "same"], 20), 20);
    }

    #[test]
    fn cutting_never_makes_longer() {
        for width in 0..12 {
            assert!(cut_middle("abcdefghij", width).chars().count() <= width.max(1));
        }
    }
}
