//! Call trees for other viewers: folded stacks, and pprof's format. `firefox.rs` has Firefox's.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{CallDifference, CallNode};

/// The kernels whose instructions folded stacks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldedSide {
    /// Two numbers a line, as difffolded.pl writes them and flamegraph.pl draws them.
    Both,
    /// One number a line, for viewers that know no differences: they take the first of two for a
    /// part of the function's name.
    Base,
    /// One number a line, of the new kernel.
    New,
}

/// Returns folded stacks: `workload;function;… NUMBERS`, instructions of the last function itself.
#[must_use]
pub fn folded(differences: &[CallDifference], side: FoldedSide) -> String {
    let mut text = String::new();
    for difference in differences {
        each(difference, &mut |chain, node| {
            let [base, new] = node.own;
            let numbers = match side {
                FoldedSide::Both => format!("{base} {new}"),
                FoldedSide::Base if base > 0 => base.to_string(),
                FoldedSide::New if new > 0 => new.to_string(),
                FoldedSide::Base | FoldedSide::New => return,
            };
            let stack = chain.join(";");
            writeln!(text, "{};{stack} {numbers}", difference.workload).unwrap_or_default();
        });
    }
    text
}

/// Calls a closure for each node with instructions of its own, with the names down to it.
pub(super) fn each(difference: &CallDifference, then: &mut dyn FnMut(&[&str], &CallNode)) {
    fn below<'a>(
        node: &'a CallNode,
        chain: &mut Vec<&'a str>,
        then: &mut dyn FnMut(&[&str], &CallNode),
    ) {
        if node.own != [0, 0] && !chain.is_empty() {
            then(chain, node);
        }
        for child in &node.children {
            chain.push(&child.function);
            below(child, chain, then);
            chain.pop();
        }
    }
    below(&difference.root, &mut Vec::new(), then);
}

/// Returns a profile in pprof's format (github.com/google/pprof, proto/profile.proto), not
/// compressed. Its samples have three values: instructions, or costs, of the base, of the new
/// kernel, and the difference, all per unit of the base's work. Viewers show those of the new kernel
/// first: speedscope refuses a profile whose first values are negative.
#[must_use]
pub fn pprof(differences: &[CallDifference]) -> Vec<u8> {
    let mut strings = Strings::default();
    let mut samples = Message::default();
    for difference in differences {
        each(difference, &mut |chain, node| {
            // The innermost location comes first.
            let names = chain
                .iter()
                .rev()
                .copied()
                .chain([difference.workload.as_str()]);
            let locations: Vec<u64> = names.map(|name| strings.number_of(name)).collect();
            let of_base = difference.operations[0] as f64;
            let added = (difference.added(node.own) * of_base).round() as i64;
            let [base, new] = difference
                .per_operation(node.own)
                .map(|each| (each * of_base).round() as i64);
            let mut sample = Message::default();
            sample.numbers(1, &locations);
            sample.numbers(2, &[base, new, added].map(i64::cast_unsigned));
            samples.message(2, &sample);
        });
    }
    let mut profile = Message::default();
    for name in ["base", "new", "added"] {
        let mut value_type = Message::default();
        value_type.number(1, strings.number_of(name));
        value_type.number(
            2,
            strings.number_of(
                differences
                    .first()
                    .map_or("instructions", |difference| difference.unit),
            ),
        );
        profile.message(1, &value_type);
    }
    profile.bytes.extend(samples.bytes);
    for (index, _) in strings.list.iter().enumerate() {
        let number = index as u64 + 1;
        let mut line = Message::default();
        line.number(1, number);
        let mut location = Message::default();
        location.number(1, number);
        location.message(4, &line);
        profile.message(4, &location);
        let mut function = Message::default();
        function.number(1, number);
        function.number(2, number);
        profile.message(5, &function);
    }
    profile.text(6, "");
    strings.list.iter().for_each(|name| profile.text(6, name));
    profile.number(14, strings.number_of("new"));
    profile.bytes
}

/// Strings numbered from 1; 0 is the empty one. A function, its location and its name have the same
/// number.
#[derive(Default)]
struct Strings {
    list: Vec<String>,
    numbers: BTreeMap<String, u64>,
}

impl Strings {
    fn number_of(&mut self, name: &str) -> u64 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.list.push(name.to_owned());
        let number = self.list.len() as u64;
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// A message of protocol buffers (protobuf.dev/programming-guides/encoding).
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn number(&mut self, field: u64, value: u64) {
        self.varint(field << 3);
        self.varint(value);
    }

    fn block(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.block(field, text.as_bytes());
    }

    fn message(&mut self, field: u64, message: &Self) {
        self.block(field, &message.bytes);
    }

    fn numbers(&mut self, field: u64, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|&value| packed.varint(value));
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use super::{FoldedSide, Message, folded, pprof};
    use crate::calls::tests::difference;

    #[test]
    fn folded_stacks_have_both_sides() {
        assert_eq!(
            folded(&[difference()], FoldedSide::Both),
            "w;[user] 3 0\nw;entry;f 10 300\nw;entry;g 0 1\n"
        );
    }

    #[test]
    fn folded_stacks_of_one_side_have_one_number() {
        let of = |side| folded(&[difference()], side);
        assert_eq!(of(FoldedSide::Base), "w;[user] 3\nw;entry;f 10\n");
        assert_eq!(of(FoldedSide::New), "w;entry;f 300\nw;entry;g 1\n");
    }

    #[test]
    fn viewers_begin_with_values_that_are_positive() {
        let bytes = pprof(&[difference()]);
        let (mut at, mut strings, mut first) = (0, Vec::new(), 0);
        let varint = |at: &mut usize| {
            let begin = *at;
            *at += 1 + bytes[begin..]
                .iter()
                .position(|byte| byte & 0x80 == 0)
                .unwrap();
            let parts = bytes[begin..*at].iter().rev();
            parts.fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f))
        };
        while at < bytes.len() {
            let tag = varint(&mut at);
            let value = varint(&mut at);
            match (tag >> 3, tag & 7) {
                // The names, and the number of the name of the values that viewers show first.
                (6, 2) => strings.push(&bytes[at..at + value]),
                (14, 0) => first = value,
                _ => {}
            }
            at += if tag & 7 == 2 { value } else { 0 };
        }
        assert_eq!(strings[first], b"new");
    }

    #[test]
    #[expect(clippy::print_stdout, reason = "says why it is skipped")]
    fn pprof_shows_both_sides_of_profiles() {
        if std::env::var_os("MARVIN_FULL").is_none() {
            println!("skipped: go compiles its pprof for a minute: make test-full runs it");
            return;
        }
        let file = std::env::temp_dir().join(format!("marvin-pprof-{}", std::process::id()));
        std::fs::write(&file, pprof(&[difference()])).unwrap();
        let show = |value: &str| {
            let mut go = std::process::Command::new("go");
            go.args(["tool", "pprof", "-top", "-unit=minimum", "-sample_index"]);
            go.arg(value).arg(&file).output()
        };
        if let Err(error) = show("new") {
            println!("skipped: no go: {error}");
            return;
        }
        for (value, total, rows) in [
            (
                "base",
                13,
                &["10instructions 76.92% f", "3instructions 23.08% [user]"][..],
            ),
            (
                "new",
                301,
                &["300instructions 99.67% f", "1instructions 0.33% g"],
            ),
        ] {
            let output = show(value).unwrap();
            assert!(output.status.success(), "{output:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                text.contains(&format!("of {total}instructions total")),
                "{text}"
            );
            for row in rows {
                let has = |line: &str| {
                    let words: Vec<&str> = line.split_whitespace().collect();
                    let wanted: Vec<&str> = row.split(' ').collect();
                    words.len() > 5 && [words[0], words[1], words[5]] == wanted[..]
                };
                assert!(text.lines().any(has), "{row}: {text}");
            }
        }
        std::fs::remove_file(&file).unwrap();
    }

    #[test]
    fn numbers_are_written_as_protocol_buffers_write_them() {
        let mut message = Message::default();
        message.number(1, 150);
        message.text(2, "testing");
        assert_eq!(
            message.bytes,
            [
                0x08, 0x96, 0x01, 0x12, 7, b't', b'e', b's', b't', b'i', b'n', b'g'
            ]
        );
        assert!(pprof(&[difference()]).starts_with(&[0x0a]));
    }
}
