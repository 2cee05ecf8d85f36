//! pprof's format (github.com/google/pprof, proto/profile.proto), unpacked: messages of protocol
//! buffers.

use std::collections::HashMap;

use super::leaves::LeafProfile;

/// A field of a message.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Reads the fields of a message one after the other.
struct Fields<'a> {
    rest: &'a [u8],
}

const CUT: &str = "no profile of pprof, or cut short";

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.rest.split_first().ok_or(CUT)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(CUT.to_owned())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(CUT)?;
        self.rest = rest;
        Ok(bytes)
    }

    fn next(&mut self) -> Result<Option<(u64, Field<'a>)>, String> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Number(self.varint()?),
            1 => Field::Bytes(self.take(8)?),
            2 => {
                let count = usize::try_from(self.varint()?).map_err(|_| CUT)?;
                Field::Bytes(self.take(count)?)
            }
            5 => Field::Bytes(self.take(4)?),
            _ => return Err(CUT.to_owned()),
        };
        Ok(Some((tag >> 3, field)))
    }
}

/// Calls a closure for each field of a message.
fn each<'a>(
    bytes: &'a [u8],
    mut then: impl FnMut(u64, Field<'a>) -> Result<(), String>,
) -> Result<(), String> {
    let mut fields = Fields { rest: bytes };
    while let Some((number, field)) = fields.next()? {
        then(number, field)?;
    }
    Ok(())
}

/// Adds the numbers of a repeated field, packed or not.
fn numbers(field: &Field<'_>, all: &mut Vec<u64>) -> Result<(), String> {
    match field {
        Field::Number(number) => all.push(*number),
        Field::Bytes(bytes) => {
            let mut packed = Fields { rest: bytes };
            while !packed.rest.is_empty() {
                all.push(packed.varint()?);
            }
        }
    }
    Ok(())
}

/// Returns numbered fields of a message, of those that are numbers.
fn numbered(bytes: &[u8]) -> Result<HashMap<u64, u64>, String> {
    let mut found = HashMap::new();
    each(bytes, |number, field| {
        if let Field::Number(value) = field {
            found.insert(number, value);
        }
        Ok(())
    })?;
    Ok(found)
}

/// The parts of a profile that samples of functions need.
#[derive(Default)]
struct Parts<'a> {
    /// Names of types of values, and of their units.
    types: Vec<[u64; 2]>,
    samples: Vec<&'a [u8]>,
    /// The innermost function of each location.
    locations: HashMap<u64, u64>,
    /// The name of each function.
    functions: HashMap<u64, u64>,
    strings: Vec<&'a [u8]>,
    default_type: u64,
}

impl Parts<'_> {
    fn text(&self, number: u64) -> String {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let bytes = self.strings.get(index).copied().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }

    /// Returns the place of the values that are compared: the number of samples, else the usual
    /// one, else the last.
    fn place(&self) -> Option<usize> {
        let is_samples = |[name, unit]: &[u64; 2]| {
            self.text(*unit) == "count" && ["samples", "sample"].contains(&&*self.text(*name))
        };
        let is_usual = |[name, _]: &[u64; 2]| *name == self.default_type && *name > 0;
        self.types
            .iter()
            .position(is_samples)
            .or_else(|| self.types.iter().position(is_usual))
            .or_else(|| self.types.len().checked_sub(1))
    }

    /// Returns the name of a location's innermost function.
    fn name(&self, location: u64) -> String {
        let function = self.locations.get(&location);
        let name = function.and_then(|function| self.functions.get(function));
        match name.map(|name| self.text(*name)) {
            Some(name) if !name.is_empty() => name,
            _ => "[unknown]".to_owned(),
        }
    }
}

fn read_parts(bytes: &[u8]) -> Result<Parts<'_>, String> {
    let mut parts = Parts::default();
    each(bytes, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => {
                let of = numbered(bytes)?;
                let text = |field| of.get(&field).copied().unwrap_or_default();
                parts.types.push([text(1), text(2)]);
            }
            (2, Field::Bytes(bytes)) => parts.samples.push(bytes),
            (4, Field::Bytes(bytes)) => {
                let mut first = None;
                each(bytes, |number, field| {
                    // The first line is the innermost of inlined functions.
                    if let (4, Field::Bytes(line), None) = (number, field, first) {
                        first = numbered(line)?.get(&1).copied();
                    }
                    Ok(())
                })?;
                let id = numbered(bytes)?.get(&1).copied().unwrap_or_default();
                parts.locations.insert(id, first.unwrap_or_default());
            }
            (5, Field::Bytes(bytes)) => {
                let of = numbered(bytes)?;
                let number = |field| of.get(&field).copied().unwrap_or_default();
                parts.functions.insert(number(1), number(2));
            }
            (6, Field::Bytes(bytes)) => parts.strings.push(bytes),
            (14, Field::Number(number)) => parts.default_type = number,
            _ => {}
        }
        Ok(())
    })?;
    Ok(parts)
}

/// Reads a profile.
///
/// # Errors
/// If it is none, or damaged.
pub(super) fn read_pprof(bytes: &[u8]) -> Result<LeafProfile, String> {
    let parts = read_parts(bytes)?;
    // The first string is the empty one, in every profile.
    if parts.strings.first() != Some(&&b""[..]) {
        return Err(CUT.to_owned());
    }
    let place = parts.place().ok_or("it names no type of samples")?;
    let [name, unit] = parts.types[place].map(|number| parts.text(number));
    let mut profile = LeafProfile {
        event: format!("{name} ({unit})"),
        ..LeafProfile::default()
    };
    let mut negative = 0_u64;
    for sample in &parts.samples {
        let (mut locations, mut values) = (Vec::new(), Vec::new());
        each(sample, |number, field| match number {
            1 => numbers(&field, &mut locations),
            2 => numbers(&field, &mut values),
            _ => Ok(()),
        })?;
        let value = values.get(place).copied().unwrap_or_default();
        // Two's complement: a profile of differences has negative numbers.
        if value.cast_signed() < 0 {
            negative += 1;
            continue;
        }
        let name = locations.first().map(|location| parts.name(*location));
        profile.add(name.as_deref().unwrap_or("[unknown]"), value);
    }
    if negative > 0 {
        let what = format!("{negative} samples");
        profile.left_out.push((what, "less than zero".to_owned()));
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::read_pprof;

    /// Writes a message: fields of bytes and numbers.
    #[derive(Default)]
    struct Written(Vec<u8>);

    impl Written {
        fn number(mut self, field: u8, value: u8) -> Self {
            self.0.extend([field << 3, value]);
            self
        }

        fn bytes(mut self, field: u8, bytes: &[u8]) -> Self {
            self.0.extend([field << 3 | 2, bytes.len() as u8]);
            self.0.extend_from_slice(bytes);
            self
        }
    }

    /// Two types of values; function 1 inlined into function 2; strings from `names`.
    fn profile(names: &[&str], default_type: u8) -> Vec<u8> {
        let kind = |name, unit| Written::default().number(1, name).number(2, unit).0;
        let line = |function| Written::default().number(1, function).0;
        let location = Written::default()
            .number(1, 7)
            .bytes(4, &line(1))
            .bytes(4, &line(2));
        let function = |id, name| Written::default().number(1, id).number(2, name).0;
        let packed = Written::default().bytes(1, &[7]).bytes(2, &[3, 30]);
        // Not packed, as old writers do.
        let plain = Written::default().number(1, 7).number(2, 2).number(2, 20);
        let mut all = Written::default()
            .bytes(1, &kind(1, 2))
            .bytes(1, &kind(3, 4))
            .bytes(2, &packed.0)
            .bytes(2, &plain.0)
            .bytes(4, &location.0)
            .bytes(5, &function(1, 5))
            .bytes(5, &function(2, 6))
            .bytes(6, b"");
        for name in names {
            all = all.bytes(6, name.as_bytes());
        }
        all.number(14, default_type).0
    }

    #[test]
    fn samples_are_preferred_and_inlined_functions_named() {
        let names = ["samples", "count", "cpu", "nanoseconds", "inlined", "main"];
        let found = read_pprof(&profile(&names, 3)).unwrap();
        assert_eq!(found.event, "samples (count)");
        assert_eq!(found.functions["inlined"], 5);
        let names = ["contentions", "count", "delay", "nanoseconds", "f", "main"];
        let found = read_pprof(&profile(&names, 1)).unwrap();
        assert_eq!(
            (found.event.as_str(), found.total()),
            ("contentions (count)", 5)
        );
        let found = read_pprof(&profile(&names, 0)).unwrap();
        assert_eq!(
            (found.event.as_str(), found.total()),
            ("delay (nanoseconds)", 50)
        );
    }

    #[test]
    fn cut_profiles_are_refused_or_shorter() {
        let whole = profile(&["samples", "count", "cpu", "ns", "f", "g"], 0);
        for end in 0..whole.len() {
            let found = read_pprof(&whole[..end]);
            assert!(found.is_err() || found.is_ok_and(|found| found.total() <= 50));
        }
        assert!(read_pprof(b"\x01\x02\x03binary").is_err());
    }
}
