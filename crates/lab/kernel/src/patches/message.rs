//! Reads the words of a patch: the prefix of its subject, tags, and the commits that it names.
//!
//! Pure. `mailbox` has git decode mails before.

/// What the prefix of a subject says: `[PATCH v3 2/7]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Version of the series.
    pub version: u32,
    /// Number in the series; 0 for its cover letter.
    pub number: u32,
    /// Patches of the series.
    pub total: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fixes {
    /// The commit, as abbreviated there.
    pub commit: String,
    /// Its subject; empty if the tag names none.
    pub subject: String,
}

/// A subject without its prefixes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) text: String,
    pub(super) position: Option<Position>,
    pub(super) is_reply: bool,
}

/// What a message says beside its text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tags {
    pub(super) fixes: Vec<Fixes>,
    pub(super) reverts: Vec<String>,
    pub(super) upstream: Vec<String>,
    pub(super) stable: Option<String>,
}

/// Shortest hash that names a commit: git's shortest abbreviation in kernel mails.
const HASH_MIN: usize = 7;

/// Words about performance, in lower case; a word ends where these begin to differ, unless with
/// `*`.
const PERFORMANCE: [&str; 51] = [
    "aim7",
    "bandwidth",
    "benchmark*",
    "bottleneck*",
    "cache line*",
    "cache miss*",
    "cacheline*",
    "contend*",
    "contention",
    "cpu cycles",
    "cpu time",
    "cpu usage",
    "dbench",
    "ebizzy",
    "expensive",
    "false sharing",
    "fast path",
    "faster",
    "fastpath",
    "fio",
    "hackbench",
    "hot path*",
    "hotpath*",
    "iops",
    "iozone",
    "iperf*",
    "kernbench",
    "latencies",
    "latency",
    "lmbench",
    "memcached",
    "mmtests",
    "netperf",
    "ops/s*",
    "optimis*",
    "optimiz*",
    "overhead*",
    "perf",
    "performance",
    "pgbench",
    "phoronix",
    "regress*",
    "scalab*",
    "schbench",
    "slow*",
    "speed up",
    "speedup*",
    "stress-ng",
    "throughput",
    "unixbench",
    "will-it-scale",
];

/// Parses a subject with its prefixes.
pub(super) fn parse_subject(raw: &str) -> Subject {
    let joined = raw.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut subject = Subject::default();
    let mut rest = joined.as_str();
    // What stands in brackets and says nothing about patches: a list's name in front of [PATCH], or
    // part of the text.
    let mut other_brackets = String::new();
    loop {
        rest = rest.trim_start();
        let reply = ["re:", "aw:", "sv:", "antw:"].iter().find(|reply| {
            rest.get(..reply.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(reply))
        });
        if let Some(reply) =
            reply.filter(|_| other_brackets.is_empty() || subject.position.is_none())
        {
            subject.is_reply = true;
            rest = &rest[reply.len()..];
            continue;
        }
        let Some((inner, behind)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        else {
            break;
        };
        if let Some(position) = prefix(inner) {
            other_brackets.clear();
            subject.position = Some(
                subject
                    .position
                    .map_or(position, |known| merged(known, position)),
            );
        } else {
            other_brackets.push_str(&rest[..inner.len() + 2]);
            other_brackets.push_str(if behind.starts_with(' ') { " " } else { "" });
        }
        rest = behind;
    }
    // `[Patch]: a`.
    let rest = if other_brackets.is_empty() {
        rest.trim_start_matches([' ', ':'])
    } else {
        rest
    };
    subject.text = model::sanitize_line(format!("{other_brackets}{rest}").trim());
    subject
}

/// Joins what two prefixes say: `[PATCH] [2/7]`.
fn merged(first: Position, second: Position) -> Position {
    let version = first.version.max(second.version);
    if first.total > 1 {
        Position { version, ..first }
    } else {
        Position { version, ..second }
    }
}

/// Parses the inside of brackets; `None` if it is no prefix of a patch.
fn prefix(inner: &str) -> Option<Position> {
    let mut position = Position {
        version: 1,
        number: 1,
        total: 1,
    };
    let mut is_patch = false;
    let mut is_numbered = false;
    for word in inner.split([' ', ',', ';']).filter(|word| !word.is_empty()) {
        let upper = word.to_ascii_uppercase();
        // `PATCHv2` is usual, too.
        let version = upper
            .strip_prefix("PATCH")
            .unwrap_or(&upper)
            .trim_start_matches('-');
        let version = version.strip_prefix("RFC").unwrap_or(version);
        is_patch |= upper.contains("PATCH") || ["RFC", "RFT", "RESEND"].contains(&upper.as_str());
        if let Some(number) = version.strip_prefix('V').and_then(leading_number) {
            position.version = number;
            is_numbered |= upper.starts_with('V');
        }
        if let Some((number, total)) = word.split_once('/')
            && let Some((number, total)) = leading_number(number).zip(total.parse().ok())
        {
            (position.number, position.total) = (number, total);
            is_numbered = true;
        }
    }
    (is_patch || is_numbered).then_some(position)
}

fn leading_number(text: &str) -> Option<u32> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let is_number = digits == text.len() || text[digits..].starts_with('.');
    text[..digits].parse().ok().filter(|_| is_number)
}

/// Parses the tags of a message. `headers` are those of its file.
pub(super) fn parse_tags(headers: &[(String, String)], body: &str) -> Tags {
    let mut tags = Tags::default();
    let from_headers = headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    let from_body = body
        .lines()
        .filter_map(|line| line.trim_start().split_once(':'));
    for (name, value) in from_headers.chain(from_body) {
        tag(&mut tags, name.trim(), value.trim());
    }
    let words: Vec<&str> = body.split_whitespace().collect();
    for at in 0..words.len() {
        reverted(&mut tags, &words[at..]);
        upstream(&mut tags, &words[at..]);
    }
    backported(&mut tags, body);
    tags
}

fn tag(tags: &mut Tags, name: &str, value: &str) {
    match name.to_ascii_lowercase().as_str() {
        "fixes" => tags.fixes.extend(fixes(value)),
        "git-commit" | "upstream-commit" | "upstream-commit-id" => {
            value
                .split([' ', ','])
                .filter_map(hash)
                .for_each(|found| push(&mut tags.upstream, found));
        }
        // Debian's DEP-3.
        "origin" | "applied-upstream" if is_of_upstream(value) => {
            let parts = value.split([' ', ',', '/', '=', ':', '?', ';', '&']);
            parts
                .filter_map(hash)
                .filter(|found| found.len() >= 12)
                .for_each(|found| push(&mut tags.upstream, found));
        }
        "cc" if value.contains("stable@") => {
            let comment = value
                .split_once('#')
                .map_or("", |(_, comment)| comment.trim());
            tags.stable = Some(model::sanitize_line(comment));
        }
        _ => {}
    }
}

/// Returns whether an origin is the kernel itself, and no other distribution.
fn is_of_upstream(origin: &str) -> bool {
    let origin = origin.to_ascii_lowercase();
    // Trees of developers are on kernel.org, too.
    let places = ["/linus/", "/torvalds/linux", "/stable/linux"];
    let is_known =
        origin.contains("git.kernel.org") && places.iter().any(|place| origin.contains(place));
    is_known
        || ["upstream", "backport", "commit"]
            .iter()
            .any(|word| origin.starts_with(word))
}

fn fixes(value: &str) -> Option<Fixes> {
    let value = value.strip_prefix("commit ").unwrap_or(value);
    let (word, rest) = value
        .split_once([' ', ':', '(', ','])
        .unwrap_or((value, ""));
    let commit = hash(word)?;
    let subject = rest
        .trim()
        .trim_start_matches(['(', ':', ' ', '\'', '"', '['])
        .trim_end_matches([')', ' ', '\'', '"', ']']);
    Some(Fixes {
        commit,
        subject: model::sanitize_line(subject),
    })
}

/// `This reverts commit HASH` and `commits HASH, HASH and HASH`.
fn reverted(tags: &mut Tags, words: &[&str]) {
    let [verb, what, rest @ ..] = words else {
        return;
    };
    let is_revert = ["reverts", "revert"].contains(&verb.to_ascii_lowercase().as_str());
    if !is_revert
        || !["commit", "commits", "upstream"].contains(&what.to_ascii_lowercase().as_str())
    {
        return;
    }
    let list = rest
        .iter()
        .filter(|word| !["and", "commit"].contains(*word))
        .map_while(|word| hash(word));
    list.for_each(|found| push(&mut tags.reverts, found));
}

/// `commit HASH upstream`, `[ Upstream commit HASH ]` and `(cherry picked from commit HASH)`.
fn upstream(tags: &mut Tags, words: &[&str]) {
    // A sentence ends: "commit A upstream. Commit B did".
    if words[0].ends_with('.') {
        return;
    }
    let [first, second, third, fourth] = [0, 1, 2, 3].map(|at| bare_word(words, at));
    let found = match first.as_str() {
        "commit" if third == "upstream" || fourth == "upstream" && third.len() < 5 => second,
        "upstream" if second == "commit" && third == "id" => fourth,
        "upstream" if second == "commit" => third,
        // Ubuntu's "backported from commit", too.
        "picked" | "backported" | "ported" if second == "from" && third == "commit" => fourth,
        "picked" | "backported" if second == "from" => third,
        _ => return,
    };
    // A sentence such as "commit 1234567 upstream" has its hash abbreviated; a shorter word is
    // none.
    if let Some(found) = hash(&found) {
        push(&mut tags.upstream, found);
    }
}

/// Returns a word in lower case without the punctuation around it; an empty one behind the end.
fn bare_word(words: &[&str], at: usize) -> String {
    let word: &str = words.get(at).copied().unwrap_or_default();
    word.trim_matches(|c: char| !c.is_ascii_alphanumeric())
        .to_ascii_lowercase()
}

/// `commit HASH` in a line of its own, with `Author:` below: what Red Hat's backports quote of
/// upstream's log.
fn backported(tags: &mut Tags, body: &str) {
    let mut before = "";
    for pair in body
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .windows(2)
    {
        // "This follows:" quotes another commit.
        let is_quoted = before.ends_with([':', ',']);
        before = pair[0];
        let found = pair[0]
            .strip_prefix("commit ")
            .and_then(hash)
            .filter(|found| found.len() >= 40 && !is_quoted);
        if let Some(found) = found
            && pair[1].starts_with("Author:")
        {
            push(&mut tags.upstream, found);
        }
    }
}

/// Returns a word that is a hash, without punctuation.
fn hash(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let is_hash =
        (HASH_MIN..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| word.to_ascii_lowercase())
}

fn push(list: &mut Vec<String>, found: String) {
    if !list.contains(&found) {
        list.push(found);
    }
}

/// Returns the commit of a line `base-commit: HASH`, which `git format-patch --base` writes behind
/// the diff. No line of a hunk begins so.
pub(super) fn stated_base(text: &[u8]) -> Option<String> {
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let word = line.strip_prefix(b"base-commit:")?.trim_ascii();
        let is_hash = (12..=64).contains(&word.len()) && word.iter().all(u8::is_ascii_hexdigit);
        is_hash.then(|| String::from_utf8_lossy(word).to_ascii_lowercase())
    })
}

/// Returns the words about performance in a text, each once, as in the list of them without the
/// star.
pub(super) fn performance_words(text: &str) -> Vec<String> {
    let text = text
        .to_ascii_lowercase()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    PERFORMANCE
        .iter()
        .filter(|entry: &&&str| {
            let (word, is_open) = entry
                .strip_suffix('*')
                .map_or((**entry, false), |word| (word, true));
            text.match_indices(word).any(|(at, _)| {
                let begins = !text[..at].ends_with(is_word_char);
                begins && (is_open || !text[at + word.len()..].starts_with(is_word_char))
            })
        })
        .map(|entry| entry.trim_end_matches('*').to_owned())
        .collect()
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Reads the headers at the beginning of a text, with continued lines joined.
pub(super) fn headers(text: &[u8]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end();
        if line.is_empty() {
            if found.is_empty() {
                continue;
            }
            break;
        }
        if line.starts_with([' ', '\t']) {
            if let Some((_, value)) = found.last_mut() {
                value.push('\n');
                value.push_str(line.trim());
            }
            continue;
        }
        match line.split_once(':') {
            Some((name, value)) if is_header_name(name) => {
                found.push((name.to_owned(), value.trim().to_owned()));
            }
            _ if found.is_empty() && (line.starts_with("From ") || line.starts_with(">From ")) => {}
            _ => break,
        }
    }
    found
}

/// Returns whether a word may name a header: as `git am` decides.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| (b'!'..=b'~').contains(&byte))
}

/// Returns the value of a header.
pub(super) fn header<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, proptest};

    use super::{Position, headers, parse_subject, parse_tags, performance_words};

    #[test]
    fn prefixes_of_subjects_are_parsed() {
        let cases = [
            ("[PATCH v3 2/7] mm: walk", "mm: walk", Some((3, 2, 7))),
            (
                "[PATCH] [media] foo: bar",
                "[media] foo: bar",
                Some((1, 1, 1)),
            ),
            ("[Qemu-devel] [PATCHv2 01/10] a", "a", Some((2, 1, 10))),
            ("[PATCH net-next v4 0/3] a", "a", Some((4, 0, 3))),
            ("[RFC,v2,3/4] a", "a", Some((2, 3, 4))),
            ("[PATCH RFC v2.1 3/4] a", "a", Some((2, 3, 4))),
            ("[PATCH 6.12 007/123] a", "a", Some((1, 7, 123))),
            ("[Patch]: a", "a", Some((1, 1, 1))),
            ("[tip: x86/mm] a", "[tip: x86/mm] a", None),
            ("mm: a\x1b[2J\n b", "mm: a\u{fffd}[2J b", None),
            ("", "", None),
        ];
        for (raw, text, position) in cases {
            let subject = parse_subject(raw);
            let position = position.map(|(version, number, total)| Position {
                version,
                number,
                total,
            });
            assert_eq!(
                (subject.text.as_str(), subject.position),
                (text, position),
                "{raw}"
            );
            assert!(!subject.is_reply);
        }
        assert!(parse_subject("Re: [PATCH] a").is_reply && parse_subject("[list] RE: a").is_reply);
    }

    #[test]
    fn named_commits_are_found() {
        let a = "a".repeat(40);
        let b = "b".repeat(40);
        let forms = [
            format!("commit {a} upstream.\n\nCommit {b} did."),
            format!("[ Upstream commit {a} ]"),
            format!("(cherry picked from commit {a})"),
            format!("(backported from commit {a} linux-next)"),
            format!("Git-commit: {a}"),
            format!("Origin: https://git.kernel.org/linus/{a}"),
            format!("Upstream commit: {a}"),
            format!("commit {a}\nAuthor: A <a@b>"),
        ];
        for form in forms {
            assert_eq!(parse_tags(&[], &form).upstream, [a.as_str()], "{form}");
        }
        let quoted = format!("This follows:\n\ncommit {a}\nAuthor: A <a@b>");
        assert!(parse_tags(&[], &quoted).upstream.is_empty());
        let other =
            format!("Origin: http://kernel.ubuntu.com/git?a=commit;h={a}\nApplied-Upstream: 6.1");
        assert!(parse_tags(&[], &other).upstream.is_empty());
        let headers = [("Git-commit".to_owned(), b.clone())];
        assert_eq!(
            parse_tags(&headers, "In commit 1234567 (\"x\") a.").upstream,
            [b.as_str()]
        );
        assert_eq!(
            parse_tags(&[], &format!("This reverts\ncommit {a}.")).reverts,
            [a.as_str()]
        );
    }

    #[test]
    fn fixes_and_stable_tags_are_read() {
        let body = "Words.\n\nFixes: 0123456789ab (\"mm: walk\")\nFixes: https://bugs.example.com/1\n\
                    Cc: <stable@vger.kernel.org> # v6.1+\n";
        let tags = parse_tags(&[], body);
        assert_eq!(
            (
                tags.fixes.len(),
                &*tags.fixes[0].commit,
                &*tags.fixes[0].subject
            ),
            (1, "0123456789ab", "mm: walk")
        );
        assert_eq!(tags.stable.as_deref(), Some("v6.1+"));
    }

    #[test]
    fn performance_words_are_found_once() {
        assert_eq!(
            performance_words("Hackbench is 3% faster;\nfaster on will-it-scale."),
            ["faster", "hackbench", "will-it-scale"]
        );
        assert!(performance_words("perform a superfluous step in fiona").is_empty());
    }

    #[test]
    fn continued_headers_are_joined() {
        let found =
            headers(b"From a Mon Sep 17 00:00:00 2001\nSubject: a\n b\nX-Y: c\n\nbody: d\n");
        assert_eq!(
            found,
            [
                ("Subject".into(), "a\nb".into()),
                ("X-Y".into(), "c".to_owned())
            ]
        );
    }

    proptest! {
        #[test]
        fn any_text_is_accepted(text in any::<String>(), bytes in vec(any::<u8>(), 0..200)) {
            let subject = parse_subject(&text);
            prop_assert!(!subject.text.chars().any(model::is_hostile));
            parse_tags(&headers(&bytes), &text);
            performance_words(&text);
        }
    }
}
