//! Bytes of a result file as text, as rows of cells, or as a tree of values.

use serde_json::{Map, Value};

/// Most bytes of a file that is read into a tree or matched line by line.
pub(super) const TEXT_MAX: usize = 32 << 20;
/// Longest line, in bytes; longer ones are cut.
const LINE_MAX: usize = 64 << 10;
/// Deepest level of elements of an XML file.
const XML_DEPTH_MAX: usize = 100;
/// Most elements and texts of an XML file.
const XML_NODES_MAX: u32 = 2_000_000;

/// Decodes UTF-8 and UTF-16 with a byte order mark; other bytes are replaced.
pub(super) fn decode(bytes: &[u8]) -> String {
    let units = |bytes: &[u8], unit: fn([u8; 2]) -> u16| -> String {
        let pairs = bytes.as_chunks::<2>().0.iter();
        let units: Vec<u16> = pairs.map(|pair| unit(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Removes the colours that a program wrote for a terminal: `ESC [ NUMBERS m`.
pub(super) fn without_colours(text: String) -> String {
    const BEGIN: &str = "\u{1b}[";
    if !text.contains(BEGIN) {
        return text;
    }
    let mut plain = String::with_capacity(text.len());
    let mut parts = text.split(BEGIN);
    plain.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let end = part.find(|letter: char| !letter.is_ascii_digit() && letter != ';');
        match end {
            Some(end) if part[end..].starts_with('m') => plain.push_str(&part[end + 1..]),
            _ => plain.extend([BEGIN, part]),
        }
    }
    plain
}

/// Returns the lines of a text, cut to a limit, and there to whole words: a number that was cut
/// would be another number.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(|line| {
        if line.len() <= LINE_MAX {
            return line.trim_end();
        }
        let mut end = LINE_MAX;
        while !line.is_char_boundary(end) {
            end -= 1;
        }
        let whole = line[..end].rfind([' ', '\t', ',', ';', '|', '=', ':']);
        line[..whole.unwrap_or(end)].trim_end()
    })
}

/// Splits a line into cells. Quotes around a cell are removed, and `""` in it is `"`. A quote that
/// is never closed ends with its line, so that it cannot swallow a file.
pub(super) fn cells(line: &str, separator: Option<char>) -> Vec<String> {
    let Some(separator) = separator else {
        return line.split_whitespace().map(str::to_owned).collect();
    };
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut is_quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                cell.push('"');
                letters.next();
            }
            '"' if is_quoted || cell.trim().is_empty() => is_quoted = !is_quoted,
            letter if letter == separator && !is_quoted => {
                cells.push(std::mem::take(&mut cell).trim().to_owned());
            }
            letter => cell.push(letter),
        }
    }
    cells.push(cell.trim().to_owned());
    cells
}

/// Parses the first JSON document of a text. What stands before it is skipped: warnings, logs,
/// `window.BENCHMARK_DATA = `.
///
/// C programs print numbers that are none as `nan` and `inf`, which no JSON has: these become null.
pub(super) fn json(text: &str) -> Result<Value, String> {
    json_document(text).or_else(|fault| match without_nan(text) {
        Some(plain) => json_document(&plain),
        None => Err(fault),
    })
}

/// Returns a text with null for each `nan` and `inf` where a value stands; `None` if it has none.
fn without_nan(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let (mut is_quoted, mut is_escaped, mut is_value) = (false, false, false);
    let mut has_any = false;
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let word = rest.strip_prefix('-').unwrap_or(rest);
        let found = ["nan", "NaN", "infinity", "Infinity", "inf"]
            .into_iter()
            .find(|name| is_value && !is_quoted && word.starts_with(name));
        if let Some(name) = found {
            plain.push_str("null");
            rest = &word[name.len()..];
            (has_any, is_value) = (true, false);
            continue;
        }
        if is_quoted {
            is_quoted = letter != '"' || is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
        } else {
            is_quoted = letter == '"';
            is_escaped = false;
            is_value = ":[,".contains(letter) || (is_value && letter.is_whitespace());
        }
        plain.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    has_any.then_some(plain)
}

fn json_document(text: &str) -> Result<Value, String> {
    let is_begin = |line: &str| line.trim_start().starts_with(['{', '[']);
    let mut at = 0;
    let mut begins = Vec::new();
    for line in text.split_inclusive('\n') {
        if is_begin(line) {
            begins.push(at);
        }
        at += line.len();
        if begins.len() == 3 {
            break;
        }
    }
    // The first `{` may stand behind other text.
    begins.extend(text.find('{'));
    begins.sort_unstable();
    if text.trim_start().starts_with('{') {
        begins.truncate(1);
    }
    let mut fault = "it has no JSON document".to_owned();
    for begin in begins {
        let mut documents = serde_json::Deserializer::from_str(&text[begin..]).into_iter::<Value>();
        match documents.next() {
            // `[12] a line of a log` is no document.
            Some(Ok(document)) if has_members(&document) => return Ok(document),
            Some(Err(error)) => fault = format!("its JSON is damaged or cut short: {error}"),
            _ => {}
        }
    }
    Err(fault)
}

fn has_members(document: &Value) -> bool {
    let is_inner = |value: &Value| value.is_object() || value.is_array();
    document
        .as_object()
        .is_some_and(|members| !members.is_empty())
        || document
            .as_array()
            .is_some_and(|list| list.iter().any(is_inner))
}

/// Parses each line that is a JSON document; also returns how many are none.
pub(super) fn json_lines(text: &str) -> (Value, usize) {
    let mut documents = Vec::new();
    let mut others = 0;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // perf up to 6.12 leaves a comma behind the last member.
        let whole = line.strip_suffix(", }").map(|head| format!("{head}}}"));
        match serde_json::from_str::<Value>(whole.as_deref().unwrap_or(line)) {
            Ok(document @ Value::Object(_)) => documents.push(document),
            _ => others += 1,
        }
    }
    (Value::Array(documents), others)
}

/// Parses XML into a tree: an element is an object with its attributes as `@NAME`, its text as
/// `#text`, and the elements in it as lists by their names.
pub(super) fn xml(text: &str) -> Result<Value, String> {
    let options = roxmltree::ParsingOptions {
        nodes_limit: XML_NODES_MAX,
        ..roxmltree::ParsingOptions::default()
    };
    let document = roxmltree::Document::parse_with_options(text.trim_start(), options)
        .map_err(|error| format!("its XML is damaged or cut short: {error}"))?;
    let root = document.root_element();
    let mut top = Map::new();
    top.insert(root.tag_name().name().to_owned(), element(root, 0)?);
    Ok(Value::Object(top))
}

fn element(node: roxmltree::Node<'_, '_>, depth: usize) -> Result<Value, String> {
    if depth > XML_DEPTH_MAX {
        return Err(format!("its XML has more than {XML_DEPTH_MAX} levels"));
    }
    let mut members = Map::new();
    for attribute in node.attributes() {
        members.insert(
            format!("@{}", attribute.name()),
            Value::String(attribute.value().to_owned()),
        );
    }
    let text: String = node
        .children()
        .filter_map(|child| if child.is_text() { child.text() } else { None })
        .collect();
    if !text.trim().is_empty() {
        members.insert("#text".to_owned(), Value::String(text.trim().to_owned()));
    }
    for child in node.children().filter(roxmltree::Node::is_element) {
        let value = element(child, depth + 1)?;
        let list = members
            .entry(child.tag_name().name())
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        }
    }
    Ok(Value::Object(members))
}

/// Returns the text of a value: of a list that of its first element, of an element its text.
pub(super) fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Array(list) => text_of(list.first()?),
        Value::Object(members) => members.get("#text").and_then(text_of),
        Value::Null => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{cells, decode, json, without_colours, xml};

    #[test]
    fn numbers_that_are_none_become_null() {
        // As iperf and memtier print them: github.com/esnet/iperf issue 370.
        let text = r#"{"jitter": -nan, "b": [nan, inf, 2], "text \" nan": "a, nan", "c": 3}"#;
        let document = json(text).unwrap();
        assert_eq!(
            document.to_string(),
            r#"{"b":[null,null,2],"c":3,"jitter":null,"text \" nan":"a, nan"}"#
        );
        assert!(json("{\"a\": nano}").is_err());
    }

    #[test]
    fn colours_of_terminals_are_removed() {
        // As the Phoronix Test Suite prints them: lkp-tests, spec/fixtures/stats/pts/2.
        for (text, plain) in [
            (
                "Average: \u{1b}[1;34m0.07 Frames / Sec\u{1b}[0m\n",
                "Average: 0.07 Frames / Sec\n",
            ),
            ("a \u{1b}[2Jb", "a \u{1b}[2Jb"),
            ("\u{1b}[", "\u{1b}["),
        ] {
            assert_eq!(without_colours(text.to_owned()), plain);
        }
    }

    #[test]
    fn marks_of_byte_order_are_followed() {
        for bytes in [
            &b"a 1"[..],
            b"\xef\xbb\xbfa 1",
            b"\xff\xfea\0 \x001\0",
            b"\xfe\xff\0a\0 \x001",
        ] {
            assert_eq!(decode(bytes), "a 1");
        }
    }

    #[test]
    fn open_quote_ends_with_its_line() {
        assert_eq!(cells(r#""a ""b"", c",2"#, Some(',')), ["a \"b\", c", "2"]);
        assert_eq!(cells(r#""mappings, 3"#, Some(',')), ["mappings, 3"]);
        assert_eq!(cells("a  b\tc", None), ["a", "b", "c"]);
    }

    #[test]
    fn text_before_a_document_is_skipped() {
        for text in [
            "{\"a\": 1}",
            "fio: a warning\n{\"a\": 1}\nmore",
            "window.DATA = {\"a\": 1};",
            "[12] log\n{\"a\": 1}",
        ] {
            assert_eq!(json(text).unwrap()["a"], 1, "{text}");
        }
        assert!(json("{\"a\": 1").unwrap_err().contains("cut short"));
        assert!(json("a").is_err());
    }

    #[test]
    fn elements_are_lists_by_name() {
        let tree = xml("<a x='1'><b>t &amp; u</b><b/><c><d>2</d></c></a>").unwrap();
        insta::assert_snapshot!(tree, @r##"{"a":{"@x":"1","b":[{"#text":"t & u"},{}],"c":[{"d":[{"#text":"2"}]}]}}"##);
        let bomb = "<!DOCTYPE a [<!ENTITY b 'x'><!ENTITY c '&b;&b;'>]><a>&c;</a>";
        assert!(xml(bomb).is_err());
        let deep = format!("{}{}", "<a>".repeat(300), "</a>".repeat(300));
        assert!(xml(&deep).unwrap_err().contains("levels"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_documents_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let text = decode(&bytes);
            prop_assert!(!cells(&text, Some(',')).is_empty());
            prop_assert!(json(&text).is_ok() || json(&text).is_err_and(|why| !why.is_empty()));
            prop_assert!(xml(&text).is_ok() || xml(&text).is_err_and(|why| !why.is_empty()));
        }
    }

    #[test]
    fn long_line_is_cut_to_words() {
        let stack = "a;".repeat(super::LINE_MAX / 2 - 2);
        let text = format!("{stack} 1234567\nb 1\n");
        let all: Vec<&str> = super::lines(&text).collect();
        assert!(!all[0].contains('1'), "no part of the number");
        assert_eq!(all[1], "b 1");
    }
}
