//! Attributes lines of source code to the functions that enclose them, as well as a diff shows it.
//!
//! A diff shows a few lines of a file. What git prints behind `@@` names the last function that
//! begins before them; the lines tell where it ends and the next one begins. Kernel code begins
//! functions and ends them in the first column.

use std::borrow::Cow;

/// How functions look in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    C,
    Rust,
    Assembler,
}

/// Most lines of a definition's arguments.
const ARGUMENT_LINES_MAX: usize = 30;

/// Longest line that may begin a function.
const LINE_BYTES_MAX: usize = 2000;

/// What looks like a call in front of a function's name.
const ATTRIBUTES: [&str; 13] = [
    "__attribute__",
    "__printf",
    "__scanf",
    "__section",
    "__aligned",
    "__must_hold",
    "__acquires",
    "__releases",
    "__alloc_size",
    "__cold_if",
    "__diagnose_as",
    "__typeof__",
    "typeof",
];

/// Words of C that stand in front of a parenthesis and name no function.
const NOT_FUNCTIONS: [&str; 10] = [
    "if",
    "for",
    "while",
    "switch",
    "return",
    "sizeof",
    "else",
    "do",
    "_Static_assert",
    "static_assert",
];

impl Language {
    /// Returns the language of a file by its name.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        match path.rsplit_once('.')?.1 {
            "c" | "h" | "cc" | "cpp" | "hpp" => Some(Self::C),
            "rs" => Some(Self::Rust),
            "S" | "s" => Some(Self::Assembler),
            _ => None,
        }
    }
}

/// Returns for each line the function that encloses it. `before` is what git prints behind `@@`.
pub(super) fn enclosing(language: Language, before: &str, lines: &[&str]) -> Vec<Option<String>> {
    match language {
        Language::C => in_c(before, lines),
        Language::Rust => in_rust(before, lines),
        Language::Assembler => in_assembler(before, lines),
    }
}

fn in_c(before: &str, lines: &[&str]) -> Vec<Option<String>> {
    let mut current = defined_function(before);
    let mut found = Vec::with_capacity(lines.len());
    for (number, line) in lines.iter().enumerate() {
        match line.bytes().next() {
            Some(b'}') => {
                found.push(current.take());
                continue;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                if !is_label(line) {
                    current = defined_function(line).filter(|_| has_body(&lines[number..]));
                }
                let is_whole = line.contains('{') && line.trim_end().ends_with('}');
                found.push(current.clone());
                if is_whole {
                    current = None;
                }
                continue;
            }
            // Comments within functions are indented.
            Some(b'/') => current = None,
            _ => {}
        }
        found.push(current.clone());
    }
    found
}

/// Returns the function that a line in the first column begins to define or declare.
pub(crate) fn defined_function(line: &str) -> Option<String> {
    let line = without_comments(line);
    let line = line.trim_end();
    if line.len() > LINE_BYTES_MAX
        || line.ends_with(';')
        || !line.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    {
        return None;
    }
    let mut from = 0;
    loop {
        let open = from + line[from..].find('(')?;
        let head = &line[..open];
        if head.contains('=') {
            return None;
        }
        let name = last_word(head);
        if ATTRIBUTES.contains(&name) {
            from = closing(line, open)?;
            continue;
        }
        if name.is_empty()
            || name.starts_with(|c: char| c.is_ascii_digit())
            || NOT_FUNCTIONS.contains(&name)
        {
            return None;
        }
        if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
            return defined_by_macro(name, &line[open + 1..]);
        }
        return Some(name.to_owned());
    }
}

/// Returns the function that a macro defines, by the name that it has in the kernel's symbols.
fn defined_by_macro(name: &str, arguments: &str) -> Option<String> {
    let first = arguments.split([',', ')']).next()?.trim();
    if first.is_empty()
        || !first.bytes().all(is_word)
        || first.starts_with(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    // include/linux/syscalls.h and include/linux/compat.h of the kernel.
    if name.starts_with("COMPAT_SYSCALL_DEFINE") {
        return Some(format!("__do_compat_sys_{first}"));
    }
    if name.starts_with("SYSCALL_DEFINE") {
        return Some(format!("__do_sys_{first}"));
    }
    let is_known = [
        "BPF_CALL_",
        "DEFINE_IDTENTRY",
        "__BPF_CALL_",
        "__SYSCALL_DEFINE",
    ];
    is_known
        .iter()
        .any(|known| name.starts_with(known))
        .then(|| first.to_owned())
}

/// Returns whether a definition follows, and no declaration.
fn has_body(lines: &[&str]) -> bool {
    for line in lines.iter().take(ARGUMENT_LINES_MAX) {
        let line = without_comments(line);
        if line.contains('{') {
            return true;
        }
        if line.trim_end().ends_with(';') {
            return false;
        }
    }
    true
}

fn is_label(line: &str) -> bool {
    let word = line.bytes().take_while(|byte| is_word(*byte)).count();
    let rest = line[word..].trim_start();
    rest.starts_with(':') && !rest.starts_with("::")
}

/// Returns a line without comments and the content of strings.
pub(super) fn without_comments(line: &str) -> Cow<'_, str> {
    if !line.contains(['/', '"', '\'']) {
        return Cow::Borrowed(line);
    }
    let mut code = String::with_capacity(line.len());
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('/', Some('/')) => break,
            ('/', Some('*')) => {
                rest.next();
                let mut last = ' ';
                for c in rest.by_ref() {
                    if last == '*' && c == '/' {
                        break;
                    }
                    last = c;
                }
                code.push(' ');
            }
            ('"' | '\'', _) => {
                while let Some(inner) = rest.next() {
                    match inner {
                        '\\' => drop(rest.next()),
                        end if end == c => break,
                        _ => {}
                    }
                }
                code.push(c);
                code.push(c);
            }
            _ => code.push(c),
        }
    }
    Cow::Owned(code)
}

/// Returns the word at the end of a text.
fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let length = text.bytes().rev().take_while(|byte| is_word(*byte)).count();
    &text[text.len() - length..]
}

/// Returns the position behind the parenthesis that closes the one at `open`.
fn closing(line: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in line.bytes().enumerate().skip(open) {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 1 => return Some(at + 1),
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn in_rust(before: &str, lines: &[&str]) -> Vec<Option<String>> {
    // git prints the function without its indentation: one level, if it is a method.
    let mut current = rust_function(before).map(|name| (name, 4));
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let indentation = line.len() - line.trim_start().len();
        if let Some(name) = rust_function(line) {
            current = Some((name, indentation));
        }
        found.push(current.as_ref().map(|(name, _)| name.clone()));
        let is_end = line.trim_end() == line[..indentation].to_owned() + "}";
        if is_end && current.as_ref().is_some_and(|(_, own)| indentation <= *own) {
            current = None;
        }
    }
    found
}

/// Returns the function that a line of Rust begins to define.
fn rust_function(line: &str) -> Option<String> {
    let line = line.trim_start();
    if line.starts_with("//") || line.trim_end().ends_with(';') {
        return None;
    }
    let at = if line.starts_with("fn ") {
        0
    } else {
        line.find(" fn ")? + 1
    };
    let is_definition = line[..at]
        .bytes()
        .all(|byte| is_word(byte) || b" ()\":".contains(&byte));
    let name: String = line[at + 3..]
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    (is_definition && !name.is_empty()).then_some(name)
}

fn in_assembler(before: &str, lines: &[&str]) -> Vec<Option<String>> {
    let mut current = assembler_function(before);
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        if let Some(name) = assembler_function(line) {
            current = Some(name);
        }
        found.push(current.clone());
        // include/linux/linkage.h of the kernel.
        let is_end = ["SYM_FUNC_END", "SYM_CODE_END", "ENDPROC(", "END("]
            .iter()
            .any(|end| line.starts_with(end));
        if is_end {
            current = None;
        }
    }
    found
}

fn assembler_function(line: &str) -> Option<String> {
    let (head, rest) = line.split_once('(')?;
    let is_start =
        head == "ENTRY" || head == "WEAK" || head.starts_with("SYM_") && head.contains("_START");
    let (name, _) = rest.split_once([')', ','])?;
    (is_start && !name.is_empty() && name.bytes().all(is_word)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert_eq, proptest};

    use super::{Language, defined_function, enclosing};

    #[test]
    fn definitions_in_c_are_recognised() {
        let names = [
            ("static int walk(struct mm_struct *mm)", Some("walk")),
            (
                "static __printf(1, 2) void say(const char *text, ...)",
                Some("say"),
            ),
            (
                "struct page *__attribute__((cold)) alloc(gfp_t mask,",
                Some("alloc"),
            ),
            (
                "SYSCALL_DEFINE3(read, unsigned int, fd, char __user *, buf, size_t, count)",
                Some("__do_sys_read"),
            ),
            (
                "COMPAT_SYSCALL_DEFINE1(sysinfo, struct x *, info)",
                Some("__do_compat_sys_sysinfo"),
            ),
            (
                "BPF_CALL_2(bpf_map_lookup_elem, struct bpf_map *, map, void *, key)",
                Some("bpf_map_lookup_elem"),
            ),
            ("walk(void) /* if (x) */", Some("walk")),
            ("EXPORT_SYMBOL_GPL(walk);", None),
            ("TRACE_EVENT(walk,", None),
            ("static const struct x table[] = { ENTRY(1),", None),
            ("struct walk {", None),
            ("\twalk(mm);", None),
            ("out:", None),
            ("", None),
        ];
        for (line, name) in names {
            assert_eq!(defined_function(line).as_deref(), name, "{line}");
        }
    }

    #[test]
    fn lines_between_functions_belong_to_none() {
        let text = "\treturn 0;\nout:\n\tx();\n}\n\n/* About b. */\nstatic int a;\nint b(int c,\n\tint d)\n{\n\tx();\n}\n\
                    int later(int a,\n\tint b);\nstatic inline int e(void) { return 0; }\n#define X";
        let lines: Vec<&str> = text.lines().collect();
        let found = enclosing(Language::C, "static int first(void)", &lines);
        let names: Vec<&str> = found
            .iter()
            .map(|name| name.as_deref().unwrap_or("-"))
            .collect();
        let expected = "first first first first - - - b b b b b - - e -";
        assert_eq!(names.join(" "), expected);
    }

    #[test]
    fn rust_and_assembler_have_functions_too() {
        let lines: Vec<&str> = "    pub fn a(&self) -> u32 {\n        1\n    }\n\n    b: u32,"
            .lines()
            .collect();
        let found = enclosing(Language::Rust, "", &lines);
        assert_eq!(found.iter().flatten().count(), 3);
        let lines = [
            "SYM_FUNC_START(memcpy)",
            "\tret",
            "SYM_FUNC_END(memcpy)",
            "\tnop",
        ];
        let found = enclosing(Language::Assembler, "", &lines);
        assert_eq!(found.iter().flatten().count(), 3);
    }

    proptest! {
        #[test]
        fn any_lines_are_accepted(before in any::<String>(), text in "[ -~\n\t\u{e9}]{0,200}") {
            let lines: Vec<&str> = text.split('\n').collect();
            for language in [Language::C, Language::Rust, Language::Assembler] {
                prop_assert_eq!(enclosing(language, &before, &lines).len(), lines.len());
            }
        }
    }
}
