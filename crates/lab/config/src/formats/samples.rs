//! The samples that `perf script` prints: for each a line with command, time and event, and its
//! stack below, the innermost function first. A row is the number of samples of a function itself,
//! by event and command; it has no direction.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use model::Pick;
use regex_lite::Regex;

use super::PERF_SCRIPT;
use super::collect::{Collector, Conversion, FileContent, RowHead};
use super::document::lines;
use super::read::ResultFile;

/// Lines in which the first sample is sought.
const BEGIN_WITHIN: usize = 200;

/// `COMMAND PID/TID [CPU] TIME: PERIOD EVENT: FRAME`. The command may have blanks.
static HEAD: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^ *(?<command>\S.*?) +-?[0-9]+(?:/-?[0-9]+)? +(?:\[[0-9]+\] +)?[0-9]+\.[0-9]+: +(?:(?<period>[0-9]+) +)?(?<event>[^ ]*[^ :]): *(?<frame>.*)$").ok()
});
/// `ADDRESS FUNCTION+OFFSET (FILE)`. The function may have blanks.
static FRAME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*[0-9a-f]+ (?<function>.+?)(?:\+0x[0-9a-f]+)? \([^()]*(?:\([^()]*\))?[^()]*\)$")
        .ok()
});

/// A function without a name, as perf calls it.
pub(super) const UNKNOWN: &str = "[unknown]";

struct Sample<'a> {
    period: Option<u64>,
    command: &'a str,
    event: &'a str,
    frame: &'a str,
}

fn head(line: &str) -> Option<Sample<'_>> {
    // A frame begins with a tab.
    if line.starts_with(['\t', '#']) {
        return None;
    }
    let groups = HEAD.as_ref()?.captures(line)?;
    let text = |name| groups.name(name).map(|group| group.as_str());
    Some(Sample {
        period: text("period").and_then(|period| period.parse().ok()),
        command: text("command")?,
        event: text("event")?,
        frame: text("frame")?,
    })
}

fn function(frame: &str) -> Option<&str> {
    let groups = FRAME.as_ref()?.captures(frame)?;
    Some(groups.name("function")?.as_str())
}

/// Returns whether a line begins as a frame does: with blanks and an address.
fn is_frame(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    line.starts_with(char::is_whitespace)
        && !word.is_empty()
        && word.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Event and command of a sample.
pub(super) struct SampleHead {
    pub(super) event: String,
    pub(super) command: String,
    period: Option<u64>,
}

/// The shortest and the longest period of each event's samples.
#[derive(Default)]
pub(super) struct Periods(BTreeMap<String, (u64, u64)>);

impl Periods {
    pub(super) fn add(&mut self, sample: &SampleHead) {
        if let Some(period) = sample.period {
            let known = self.0.entry(sample.event.clone());
            let (least, most) = known.or_insert((period, period));
            *least = period.min(*least);
            *most = period.max(*most);
        }
    }

    /// Returns the events whose samples stand for different numbers, and what is said of that.
    pub(super) fn uneven(self) -> impl Iterator<Item = (String, String)> {
        let uneven = self.0.into_iter().filter(|(_, (least, most))| least < most);
        uneven.map(|(event, (least, most))| {
            let why = format!("periods from {least} to {most}, but each sample counts as one");
            (event, why)
        })
    }
}

/// Calls a closure for each sample, with its innermost function if its stack has one; `None` if this
/// is no such text.
pub(super) fn each_sample(
    file: &ResultFile<'_>,
    then: &mut dyn FnMut(&SampleHead, Option<&str>),
) -> Option<()> {
    let first = |line: &str| head(line).is_some();
    if !lines(file.text()).take(BEGIN_WITHIN).any(first) {
        return None;
    }
    let mut open: Option<SampleHead> = None;
    let mut close = |open: Option<SampleHead>, function: Option<&str>| {
        if let Some(head) = open {
            then(&head, function);
        }
    };
    for line in lines(file.text()) {
        let frame = if let Some(sample) = head(line) {
            close(open.take(), None);
            open = Some(SampleHead {
                event: sample.event.to_owned(),
                command: sample.command.to_owned(),
                period: sample.period,
            });
            sample.frame
        } else {
            line
        };
        if line.trim().is_empty() {
            close(open.take(), None);
        } else if let Some(function) = function(frame) {
            close(open.take(), Some(function));
        } else if is_frame(frame) {
            // Its caller is not where the sample was taken.
            close(open.take(), Some(UNKNOWN));
        }
    }
    close(open, None);
    Some(())
}

/// Returns the content of such a file; `None` if it is none.
pub(super) fn read_samples(file: &ResultFile<'_>) -> Option<FileContent> {
    let mut rows = Collector::default();
    let mut periods = Periods::default();
    each_sample(file, &mut |sample, function| {
        periods.add(sample);
        let SampleHead { event, command, .. } = sample;
        if let Some(function) = function {
            put(event, command, function, &mut rows);
        } else {
            let what = format!("{PERF_SCRIPT}/{event}/{command}");
            rows.leave_out(&what, "a sample without a frame");
        }
    })?;
    for (event, why) in periods.uneven() {
        rows.leave_out(&format!("{PERF_SCRIPT}/{event}"), why);
    }
    let mut facts = BTreeMap::new();
    for line in lines(file.text()) {
        for (mark, fact) in [("# hostname : ", "host"), ("# os release : ", "kernel")] {
            if let Some(text) = line.strip_prefix(mark) {
                facts.insert(fact.to_owned(), text.to_owned());
            }
        }
        if let Some(text) = line.strip_prefix("# captured on") {
            let text = text.trim_start_matches([' ', ':']);
            facts.insert("started".to_owned(), text.to_owned());
        }
    }
    Some(rows.finish(facts))
}

fn put(event: &str, command: &str, function: &str, rows: &mut Collector) {
    // A slash separates parts of a row's name.
    let [event, command] = [event, command].map(|text| text.replace('/', "-"));
    let head = RowHead {
        kernel: None,
        run: None,
        name: format!("{PERF_SCRIPT}/{event}/{command}/{function}"),
        unit: "samples".to_owned(),
        direction: None,
        are_units_rows: false,
        part: None,
    };
    let sum = Conversion {
        pick: Pick::Sum,
        ..Conversion::PLAIN
    };
    rows.put(&head, "1", sum);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::collect::FileContent;
    use super::{ResultFile, read_samples};

    fn read(text: &str) -> Option<FileContent> {
        read_samples(&ResultFile::new("a.txt", text.as_bytes()).unwrap())
    }

    #[test]
    fn samples_are_counted_by_innermost_function() {
        let text = "# captured on: Thu Aug 17 14:14:43 2017\n# hostname : lab3\n# os release : 6.1.0-13-amd64\n\
            forks     9 [002] 203265.377019:    1001001 cpu-clock: \n\
            \tffffffff8104f45a native_safe_halt+0xa ([kernel.kallsyms])\n\t 6ce258 [unknown] ([unknown])\n\n\
            my prog 12/13 19115.4:   1 cycles:u: \n\
            \t7f3 <std::HashMap<K,V> as gc::Trace>::trace+0xbf (/usr/lib/x (deleted))\n\n\
            false 39654 19115.489713:          1 cycles:u:  ffffffff9b201293 [unknown] ([unknown])\n\
            false 39654 19115.489714:          7 cycles:u:  7f _dl_start+0x4 (/lib/ld.so)\n\
            odd 1 2.5: cycles: \nTHIS_IS_A_WEIRD_LINE\n\n\
            forks     9 [002] 203265.378019:    1001001 cpu-clock: \n\tff native_safe_halt+0x10 ([kernel.kallsyms])";
        let content = read(text).unwrap();
        let rows: Vec<String> = content
            .rows
            .iter()
            .map(|row| format!("{} {:?}", row.name, row.samples))
            .collect();
        insta::assert_snapshot!(rows.join("\n"), @r#"
        perf-script/cpu-clock/forks/native_safe_halt [2.0]
        perf-script/cycles:u/my-prog/std::HashMap-K-V-as-gc::Trace-::trace [1.0]
        perf-script/cycles:u/false/[unknown] [1.0]
        perf-script/cycles:u/false/_dl_start [1.0]
        "#);
        assert_eq!(
            content.left_out,
            [
                (
                    "perf-script/cycles/odd".to_owned(),
                    "a sample without a frame".to_owned()
                ),
                (
                    "perf-script/cycles:u".to_owned(),
                    "periods from 1 to 7, but each sample counts as one".to_owned()
                )
            ]
        );
        assert_eq!(content.facts["kernel"], "6.1.0-13-amd64");
        assert_eq!(content.facts["started"], "Thu Aug 17 14:14:43 2017");
    }

    #[test]
    fn other_texts_are_none() {
        for text in ["a b c\n", "ls 12 said: no\n", "[ 12.5: x\n"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_samples_or_none(text in "[a-z0-9:./() \\t\\n\\[\\]+-]{1,120}") {
            if !text.trim().is_empty() {
                let rows = read(&text).map_or(0, |content| content.rows.len());
                prop_assert!(rows <= text.len());
            }
        }
    }
}
