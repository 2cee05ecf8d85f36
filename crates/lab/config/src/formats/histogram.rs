//! The histogram of `cyclictest -h`: percentiles over all threads, with the samples behind its end,
//! and the longest latency. A percentile behind the end is only known to be at least that long.

use std::collections::BTreeMap;

use model::Direction;

use super::CYCLICTEST_HISTOGRAM;
use super::collect::{Collector, Conversion, FileContent, RowHead};
use super::document::lines;
use super::read::ResultFile;

/// Percentiles in thousandths.
const PERCENTILES: [(&str, u64); 3] = [("p50", 50_000), ("p99", 99_000), ("p99.9", 99_900)];

/// Returns the content of such a file; `None` if it is none.
pub(super) fn read_histogram(file: &ResultFile<'_>) -> Option<FileContent> {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut is_begun, mut beyond, mut longest) = (false, None, None);
    let mut rows = Collector::default();
    for line in lines(file.text()) {
        if line.trim() == "# Histogram" {
            if is_begun {
                rows.leave_out("histograms", "more than one: the first is read");
                break;
            }
            is_begun = true;
        } else if let Some(list) = line.strip_prefix("# Histogram Overflows:") {
            beyond = numbers(list).map(sum);
        } else if let Some(list) = line.strip_prefix("# Max Latencies:") {
            longest = numbers(list).and_then(|all| all.into_iter().max());
        } else if is_begun && !line.starts_with('#') && !line.trim().is_empty() {
            match numbers(line).as_deref() {
                Some([at, of_threads @ ..]) if !of_threads.is_empty() => {
                    let count = counts.entry(*at).or_default();
                    *count = count.saturating_add(sum(of_threads.to_vec()));
                }
                _ => rows.leave_out(line.trim(), "no line of a histogram"),
            }
        }
    }
    // Without the overflows no percentile is known.
    let beyond = beyond.filter(|_| is_begun && !counts.is_empty())?;
    let samples = counts
        .values()
        .fold(beyond, |sum, count| sum.saturating_add(*count));
    let end = counts.keys().next_back().copied().unwrap_or_default();
    for (name, thousandths) in PERCENTILES {
        let head = head(name);
        let rank = u128::from(samples) * u128::from(thousandths);
        let mut until = 0_u128;
        let found = counts.iter().find(|(_, count)| {
            until += u128::from(**count);
            until * 100_000 >= rank
        });
        match found {
            Some((at, _)) if samples > 0 => rows.put(&head, &at.to_string(), Conversion::PLAIN),
            _ => rows.leave_out(
                &head.name,
                format!("more than {end} us, where the histogram ends"),
            ),
        }
    }
    if let Some(longest) = longest {
        rows.put(&head("max"), &longest.to_string(), Conversion::PLAIN);
    }
    if beyond > 0 {
        let why = format!("{beyond} of {samples} are longer than the histogram, and counted so");
        rows.leave_out("samples", why);
    }
    Some(rows.finish(BTreeMap::new()))
}

fn numbers(list: &str) -> Option<Vec<u64>> {
    list.split_whitespace()
        .map(|word| word.parse().ok())
        .collect()
}

fn sum(numbers: Vec<u64>) -> u64 {
    numbers.into_iter().fold(0, u64::saturating_add)
}

fn head(name: &str) -> RowHead {
    RowHead {
        kernel: None,
        run: None,
        name: format!("{CYCLICTEST_HISTOGRAM}/{name}"),
        unit: "us".to_owned(),
        direction: Some(Direction::LowerIsBetter),
        are_units_rows: false,
        part: None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{ResultFile, read_histogram};

    #[test]
    fn percentiles_count_samples_behind_the_end() {
        let text = "# Histogram\n000001 000003\t000003\n000002 000980\t000004\n000005 000002\t000000\n\
            # Min Latencies: 00001 00001\n# Max Latencies: 03785 03679\n\
            # Histogram Overflows: 00006 00002\n# Thread 0: 00051\n";
        let file = ResultFile::new("a.hist", text.as_bytes()).unwrap();
        let content = read_histogram(&file).unwrap();
        let rows = content
            .rows
            .iter()
            .map(|row| (row.name.as_str(), row.samples[0]));
        let rows: Vec<_> = rows.collect();
        let name = "cyclictest-histogram";
        assert_eq!(
            rows,
            [
                (format!("{name}/p50").as_str(), 2.0),
                (format!("{name}/p99").as_str(), 2.0),
                (format!("{name}/max").as_str(), 3785.0),
            ]
        );
        let left = content
            .left_out
            .iter()
            .map(|(what, why)| format!("{what}: {why}"));
        let left: Vec<_> = left.collect();
        assert_eq!(
            left,
            [
                "cyclictest-histogram/p99.9: more than 5 us, where the histogram ends",
                "samples: 8 of 1000 are longer than the histogram, and counted so",
            ]
        );
        let without = text.replace("# Histogram Overflows", "# Others");
        let file = ResultFile::new("a.hist", without.as_bytes()).unwrap();
        assert_eq!(read_histogram(&file), None);
    }

    proptest! {
        #[test]
        fn any_histogram_has_ordered_percentiles(
            counts in prop::collection::vec(0_u64..1000, 1..20),
            beyond in 0_u64..50,
        ) {
            let lines = counts.iter().enumerate().map(|(at, count)| format!("{at} {count}\n"));
            let lines: String = lines.collect();
            let text = format!("# Histogram\n{lines}# Histogram Overflows: {beyond}\n");
            let file = ResultFile::new("a", text.as_bytes()).unwrap();
            let rows = read_histogram(&file).unwrap().rows;
            let values: Vec<f64> = rows.iter().map(|row| row.samples[0]).collect();
            prop_assert!(values.is_sorted());
        }
    }
}
