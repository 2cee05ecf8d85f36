//! Line breaks in JSON documents: after each key's value, but not within a list of numbers, so that
//! hundreds of samples are one line and a `diff` of two documents is readable.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

use crate::RenderError;

/// Writes a JSON document with a final newline.
///
/// # Errors
/// Never in practice: everything is in memory and every key is a string.
pub fn write_json(value: &impl Serialize) -> Result<String, RenderError> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(
        &mut bytes,
        Lines::default(),
    ))?;
    bytes.push(b'\n');
    // The output is UTF-8, as it came from strings.
    let text = String::from_utf8(bytes).map_err(|e| serde_json::Error::io(io::Error::other(e)))?;
    Ok(model::escape_json(&text))
}

/// Breaks lines in objects, and in lists before each object.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    empty: bool,
}

impl Lines {
    fn line<W: ?Sized + io::Write>(&self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| writer.write_all(b" "))
    }
}

impl Formatter for Lines {
    fn begin_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.empty = true;
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.depth -= 1;
        if !self.empty {
            self.line(writer)?;
        }
        self.empty = false;
        writer.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        self.line(writer)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.empty = false;
        Ok(())
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first {
            Ok(())
        } else {
            writer.write_all(b", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write_json;

    #[test]
    fn lists_of_numbers_are_one_line() {
        let value = serde_json::json!({"a": [1, 2.5, 3], "b": {}, "c": [{"d": null}, {"e": []}]});
        let text = write_json(&value).unwrap();
        assert_eq!(
            text,
            "{\n \"a\": [1, 2.5, 3],\n \"b\": {},\n \"c\": [{\n  \"d\": null\n }, {\n  \"e\": []\n }]\n}\n"
        );
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
    }
}
