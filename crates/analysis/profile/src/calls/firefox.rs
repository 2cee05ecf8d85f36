//! Call trees for Firefox's profiler: its processed format as JSON, a thread for each kernel and
//! workload, so that the viewer shows one or compares two.
//!
//! Version 55 (docs-developer/CHANGELOG-formats.md of firefox-devtools/profiler); the viewer brings
//! older versions up to date.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::CallDifference;
use super::export::each;

/// Versions of the format, and of Gecko's, which Marvin's profiles do not use.
const FORMAT_VERSION: u64 = 55;
const GECKO_VERSION: u64 = 31;

/// Returns the profile: samples are weighted by instructions, or costs, of the last function itself,
/// over all operations. The time of a sample is its number.
#[must_use]
pub fn firefox(differences: &[CallDifference], kernels: [&str; 2]) -> Value {
    let mut threads = Vec::new();
    for difference in differences {
        for (side, kernel) in kernels.iter().enumerate() {
            let name = format!("{}: {kernel}", difference.workload);
            let mut thread = Thread::default();
            each(difference, &mut |chain, node| {
                if node.own[side] > 0 {
                    thread.add(chain, node.own[side]);
                }
            });
            threads.push(thread.json(&name, threads.len()));
        }
    }
    json!({
        "meta": {
            "version": GECKO_VERSION,
            "preprocessedProfileVersion": FORMAT_VERSION,
            "product": "marvin",
            "importedFrom": "marvin",
            "interval": 1,
            "startTime": 0,
            "processType": 0,
            "stackwalk": 1,
            "symbolicated": true,
            "debug": false,
            "extensions": {"id": [], "name": [], "baseURL": [], "length": 0},
            "categories": [{"name": "Other", "color": "grey", "subcategories": ["Other"]}],
            "markerSchema": [],
            "usesOnlyOneStackType": true,
            "doesNotUseFrameImplementation": true,
            "sourceCodeIsNotOnSearchfox": true,
        },
        "libs": [],
        "threads": threads,
    })
}

/// The tables of one thread.
#[derive(Default)]
struct Thread {
    strings: Vec<String>,
    numbers: BTreeMap<String, usize>,
    /// Of each stack, what it is called from and its function.
    stacks: Vec<(Option<usize>, usize)>,
    known: BTreeMap<(Option<usize>, usize), usize>,
    /// Stack and weight of each sample.
    samples: Vec<(usize, u64)>,
}

impl Thread {
    fn add(&mut self, chain: &[&str], weight: u64) {
        let mut stack = None;
        for name in chain {
            let function = self.function(name);
            stack = Some(self.stack(stack, function));
        }
        if let Some(stack) = stack {
            self.samples.push((stack, weight));
        }
    }

    /// Returns the number of a function, which its name and its frame have, too.
    fn function(&mut self, name: &str) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.strings.len();
        self.strings.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }

    fn stack(&mut self, prefix: Option<usize>, function: usize) -> usize {
        let stacks = &mut self.stacks;
        *self.known.entry((prefix, function)).or_insert_with(|| {
            stacks.push((prefix, function));
            stacks.len() - 1
        })
    }

    fn json(&self, name: &str, number: usize) -> Value {
        let functions = self.strings.len();
        let all: Vec<usize> = (0..functions).collect();
        let fill = |value: Value| vec![value; functions];
        let none = || fill(Value::Null);
        let (prefixes, frames): (Vec<Option<usize>>, Vec<usize>) =
            self.stacks.iter().copied().unzip();
        let (stacks, weights): (Vec<usize>, Vec<u64>) = self.samples.iter().copied().unzip();
        let times: Vec<usize> = (0..stacks.len()).collect();
        json!({
            "name": name,
            "processType": "default",
            "processStartupTime": 0,
            "processShutdownTime": null,
            "registerTime": 0,
            "unregisterTime": null,
            "pausedRanges": [],
            "isMainThread": true,
            "pid": number.to_string(),
            "tid": number,
            "samples": {
                "stack": stacks,
                "time": times,
                "weight": weights,
                "weightType": "samples",
                "length": times.len(),
            },
            "markers": {"data": [], "name": [], "startTime": [], "endTime": [], "phase": [], "category": [], "length": 0},
            "stackTable": {"prefix": prefixes, "frame": frames, "length": frames.len()},
            "frameTable": {
                "address": fill(json!(-1)),
                "inlineDepth": fill(json!(0)),
                "category": fill(json!(0)),
                "subcategory": fill(json!(0)),
                "func": all,
                "nativeSymbol": none(),
                "innerWindowID": none(),
                "implementation": none(),
                "line": none(),
                "column": none(),
                "length": functions,
            },
            "funcTable": {
                "name": all,
                "isJS": fill(json!(false)),
                "relevantForJS": fill(json!(false)),
                "resource": fill(json!(-1)),
                "fileName": none(),
                "lineNumber": none(),
                "columnNumber": none(),
                "length": functions,
            },
            "resourceTable": {"lib": [], "name": [], "host": [], "type": [], "length": 0},
            "nativeSymbols": {"libIndex": [], "address": [], "name": [], "functionSize": [], "length": 0},
            "stringArray": self.strings,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::firefox;
    use crate::calls::tests::difference;

    #[test]
    fn each_kernel_is_a_thread_of_weighted_stacks() {
        let profile = firefox(&[difference()], ["6.1", "6.12"]);
        let threads = profile["threads"].as_array().unwrap();
        let mut shown = String::new();
        for thread in threads {
            let samples = &thread["samples"];
            let text = format!(
                "{}: {} of stacks {}; from {} in {} of {}\n",
                thread["name"],
                samples["weight"],
                samples["stack"],
                thread["stackTable"]["prefix"],
                thread["stackTable"]["frame"],
                thread["stringArray"],
            );
            shown.push_str(&text);
        }
        insta::assert_snapshot!(shown);
    }
}
