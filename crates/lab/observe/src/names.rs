//! Names of functions as their programmers write them: demangled, and of code that a runtime
//! compiled while it ran (`perf-PID.map`, tools/perf/Documentation/jit-interface.txt in
//! Linux).

use std::collections::BTreeMap;

use cpp_demangle::{DemangleOptions, Symbol};

/// Letters of a demangled name from which on the arguments of templates are left out.
const LONG: usize = 64;
/// Names of a map that are kept.
const NAMES_MAX: usize = 1 << 20;

/// Demangles names of Rust and C++; others stay as they are.
pub(crate) fn demangle(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        // Without the hash.
        return format!("{name:#}");
    }
    // glibc and GCC add versions and the like to a name.
    let (base, _) = name.split_once('.').unwrap_or((name, ""));
    let plain = base.split_once('@').map_or(base, |(base, _)| base);
    if !plain.starts_with("_Z") {
        return name.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let demangled = Symbol::new(plain)
        .ok()
        .and_then(|symbol| symbol.demangle_with_options(&options).ok());
    demangled.map_or_else(|| name.to_owned(), |demangled| shorten(&demangled))
}

/// Leaves out the arguments of templates where the name is long.
fn shorten(name: &str) -> String {
    // In these the brackets are no template's.
    let operators = ["operator<", "operator>", "operator-"];
    if name.len() <= LONG || operators.iter().any(|operator| name.contains(operator)) {
        return name.to_owned();
    }
    let mut short = String::new();
    let mut depth = 0_u32;
    for letter in name.chars() {
        match letter {
            '<' => {
                if depth == 0 {
                    short.push_str("<…>");
                }
                depth += 1;
            }
            '>' if depth > 0 => depth -= 1,
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    short
}

/// The functions that a runtime compiled, by address.
#[derive(Debug, Default)]
pub(crate) struct PerfMap(BTreeMap<u64, (u64, String)>);

impl PerfMap {
    /// Parses lines of start, size and name; others are left out. Of two functions at one address
    /// the later one counts.
    pub(crate) fn parse(text: &str) -> Self {
        // The JVM writes numbers with 0x.
        let number = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).ok();
        let line = |line: &str| {
            let mut fields = line.splitn(3, ' ');
            let start = number(fields.next()?)?;
            let size = number(fields.next()?)?;
            let name = script_name(fields.next()?.trim());
            Some((start, (start.saturating_add(size), name)))
        };
        Self(text.lines().take(NAMES_MAX).filter_map(line).collect())
    }

    /// Names the function at an address.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let (_, (end, name)) = self.0.range(..=address).next_back()?;
        (address < *end).then_some(name.as_str())
    }
}

/// Shortens what V8 writes, as `JS:*handle file:///srv/app/server.js:10:3`, to `handle
/// server.js:10:3`.
fn script_name(name: &str) -> String {
    let kinds = ["JS:", "LazyCompile:", "Function:", "Eval:", "Script:"];
    let Some(rest) = kinds.iter().find_map(|kind| name.strip_prefix(kind)) else {
        return java_name(name);
    };
    let rest = rest.trim_start_matches(['*', '~', '^', '+', '\'']);
    match rest.split_once(' ') {
        Some((function, place)) => {
            let place = place.rsplit('/').next().unwrap_or(place);
            format!("{function} {place}").trim_start().to_owned()
        }
        None => rest.to_owned(),
    }
}

/// Shortens what the JVM writes, as `void java.util.HashMap.put(int, java.lang.Object)`, to the class
/// and the method.
fn java_name(name: &str) -> String {
    // src/hotspot/share/runtime/stubRoutines.cpp: what copies arrays is in the second of these.
    if name == "StubRoutines (2)" {
        return "StubRoutines (arraycopy and the like)".into();
    }
    match name.split_once('(') {
        Some((method, _)) if name.ends_with(')') && method.contains('.') => {
            method.rsplit(' ').next().unwrap_or(method).to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_demangled() {
        let cases = [
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy@@GLIBC_2.14"),
            ("_ZN5space3fooEibc", "space::foo"),
            ("_ZN5space3fooEibc.isra.0", "space::foo"),
            (
                "_ZNKSt6vectorIiSaIiEE4sizeEv",
                "std::vector<int, std::allocator<int> >::size",
            ),
            ("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write"),
            ("_Znonsense", "_Znonsense"),
        ];
        for (name, expected) in cases {
            assert_eq!(demangle(name), expected);
        }
        let long =
            "std::map<std::basic_string<char>, std::vector<int, std::allocator<int> > >::find";
        assert_eq!(shorten(long), "std::map<…>::find");
    }

    #[test]
    fn compiled_functions_have_names() {
        let map = PerfMap::parse(
            "1000 20 RegExp:a+\n2000 10 JS:*handle file:///srv/app/server.js:10:3\nnonsense\n2000 40 JS:~ /x/b.js:1:1\n",
        );
        assert_eq!(map.name(0x101f), Some("RegExp:a+"));
        assert_eq!(
            (map.name(0x1020), map.name(0x2030)),
            (None, Some("b.js:1:1"))
        );
        let of_jvm = PerfMap::parse("0x00007f00 0x0000000000000020 int java.util.List.size()\n");
        assert_eq!(of_jvm.name(0x7f1f), Some("java.util.List.size"));
        let copies = "StubRoutines (arraycopy and the like)";
        assert_eq!(script_name("StubRoutines (2)"), copies);
        assert_eq!(
            script_name("void java.util.HashMap.put(int, java.lang.Object)"),
            "java.util.HashMap.put"
        );
        assert_eq!(
            script_name("JS:*handle file:///srv/app/server.js:10:3"),
            "handle server.js:10:3"
        );
    }

    proptest! {
        #[test]
        fn any_name_is_parsed(name in "\\PC{0,80}", text in "\\PC{0,200}") {
            let _ = (demangle(&name), demangle(&format!("_ZN{name}")), PerfMap::parse(&text));
        }
    }
}
