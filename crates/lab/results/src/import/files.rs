//! Imports result files of any program whose format has a manifest, and tables: decides which file
//! is a run of which kernel on which machine.
//!
//! A file is a run. Its number is a hash of its content, so that two files are two runs and a copy
//! of one is the same. Formats that write a file for each of their rows are one run for each
//! kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config::{
    FileContent, FileRow, Format, Recognised, ResultFile, describe_unread, read_result_file,
};
use model::{Declared, FILES, IMPORTED_MARGIN_PERCENT, Outcome, UnixTime, WorkloadResult};

use super::foreign::{Foreign, LeftOut};
use super::times::parse_time;
use super::tree::{FILE_MAX, Found, Walk, modified_unix, uncompressed, unpack, wrong};
use super::{ForeignRun, ImportError, ImportOptions, Keep, Part, hash};

/// Most values of an import: all of its files are in memory.
const VALUES_MAX: usize = 5_000_000;
/// Most reasons that are named for a file without a value.
const NAMED_MAX: usize = 4;
/// Words before the number of a repeat in a file's name.
const REPEATS: [&str; 6] = ["run", "iter", "rep", "repeat", "boot", "try"];
/// Longest name of a kernel.
const KERNEL_MAX: usize = 80;

/// A recognised file.
struct Parsed {
    path: PathBuf,
    /// Its path below the given one, for messages.
    shown: String,
    /// The directory that names the kernel, if the file does not.
    folder: Option<String>,
    format: String,
    content: FileContent,
}

/// A result file that was found: the given path that it is in, and whether that is one of several.
pub(super) struct Candidate {
    found: Found,
    /// The name of the given directory, if several paths were given.
    given: Option<String>,
}

/// Finds all files.
pub(super) fn find(paths: &[PathBuf], walk: &mut Walk) -> Result<Vec<Candidate>, ImportError> {
    let mut candidates = Vec::new();
    for path in paths {
        let path = std::path::absolute(path).map_err(|error| wrong(path, error.to_string()))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let given = (paths.len() > 1).then(|| name.into_owned());
            let found = walk.files(&path, |_| true)?;
            candidates.extend(found.into_iter().map(|found| Candidate {
                found,
                given: given.clone(),
            }));
        } else if path.exists() {
            let name = uncompressed(&name).to_owned();
            let found = Found {
                path,
                name,
                fault: None,
            };
            candidates.push(Candidate { found, given: None });
        } else {
            return Err(wrong(&path, "there is no such file or directory"));
        }
    }
    Ok(candidates)
}

/// Reads all files, and hands on their runs.
pub(super) fn read(
    candidates: Vec<Candidate>,
    options: &ImportOptions<'_>,
    keep: &mut Keep<'_>,
) -> Result<(), ImportError> {
    let mut parsed = Vec::new();
    let mut values = 0;
    for candidate in candidates {
        let shown = candidate.found.name.escape_debug().to_string();
        match parse(candidate, options.formats) {
            Ok(file) => {
                values += count_values(&file.content.rows);
                if values > VALUES_MAX {
                    let why = format!("more than {VALUES_MAX} values in this import");
                    keep(Part::LeftOut(shown, "file", why))?;
                    break;
                }
                parsed.push(file);
            }
            Err(why) => keep(Part::LeftOut(shown, "file", why))?,
        }
    }
    let hosts: BTreeSet<&String> = parsed
        .iter()
        .filter_map(|file| file.content.facts.get("host"))
        .filter(|host| is_machine(host))
        .collect();
    // The files of one import that name no host are those of the only host that is named.
    let host = match (options.host, hosts.len()) {
        (Some(host), _) => Some(host.to_owned()),
        (None, 1) => hosts.first().map(|host| (*host).clone()),
        _ => None,
    };
    let stems = shared_stems(&parsed);
    let mut joined: BTreeMap<(String, String), ForeignRun> = BTreeMap::new();
    for file in parsed {
        let is_joined = options
            .formats
            .iter()
            .any(|format| format.name == file.format && format.is_joined());
        for run in runs(file, options, host.as_deref(), &stems, is_joined) {
            if !is_joined {
                keep(Part::Run(Box::new(run)))?;
                continue;
            }
            let key = (run.kernel.clone(), run.origin.clone());
            match joined.get_mut(&key) {
                None => drop(joined.insert(key, run)),
                Some(known) => join(known, run),
            }
        }
    }
    for (_, mut run) in joined {
        run.number = number(&run.foreign, None);
        keep(Part::Run(Box::new(run)))?;
    }
    Ok(())
}

fn count_values(rows: &[FileRow]) -> usize {
    rows.iter().map(|row| row.samples.len()).sum()
}

fn parse(candidate: Candidate, formats: &[Format]) -> Result<Parsed, String> {
    let Candidate { found, given } = candidate;
    if let Some(fault) = found.fault {
        return Err(fault.to_owned());
    }
    let is_estimates = found
        .path
        .file_name()
        .is_some_and(|name| name == "estimates.json");
    if is_estimates && found.path.with_file_name("sample.json").exists() {
        return Err("sample.json beside it has the values".to_owned());
    }
    let bytes = unpack(&found.path, FILE_MAX)?;
    let whole = found.path.to_string_lossy();
    let file = ResultFile::new(uncompressed(&whole), &bytes)?;
    let Recognised { format, content } =
        read_result_file(formats, &file)?.ok_or_else(|| describe_unread(&file))?;
    if content.rows.is_empty() {
        let all = content.left_out.iter();
        let mut named: Vec<String> = all.map(|(what, why)| format!("{what} {why}")).collect();
        let more = named.len().saturating_sub(NAMED_MAX);
        named.truncate(NAMED_MAX);
        if more > 0 {
            named.push(format!("{more} more"));
        }
        return Err(format!("{format} without a value {}", named.join("; "))
            .trim()
            .to_owned());
    }
    let below = found
        .name
        .split_once('/')
        .map(|(first, _)| first.to_owned());
    Ok(Parsed {
        folder: given.or(below),
        shown: found.name.escape_debug().to_string(),
        path: found.path,
        format,
        content,
    })
}

/// Returns the runs of a file: one for each kernel and run that it names.
fn runs(
    file: Parsed,
    options: &ImportOptions<'_>,
    host: Option<&str>,
    stems: &BTreeSet<String>,
    is_joined: bool,
) -> Vec<ForeignRun> {
    let Parsed {
        path,
        shown,
        folder,
        format,
        content,
    } = file;
    let FileContent {
        facts,
        rows,
        left_out,
    } = content;
    let mut groups: BTreeMap<(Option<String>, Option<String>), Vec<FileRow>> = BTreeMap::new();
    for row in rows {
        let key = (row.kernel.clone(), row.run.clone());
        groups.entry(key).or_default().push(row);
    }
    let kernels: BTreeSet<&Option<String>> = groups.keys().map(|(kernel, _)| kernel).collect();
    // The first start is not that of each kernel.
    let started = facts.get("started").filter(|_| kernels.len() == 1);
    let (stored, start_time) = find_start(started, &format, options.formats);
    let of_file = facts.get("host").map(String::as_str);
    let own_host = options
        .host
        .or(of_file.filter(|host| is_machine(host)))
        .or(host);
    let mut runs = Vec::new();
    for ((of_rows, run), rows) in groups {
        let (kernel, by) = if let Some(kernel) = options.kernel {
            (kernel.to_owned(), "--kernel")
        } else if let Some(kernel) = of_rows.or_else(|| facts.get("kernel").cloned()) {
            (kernel, "as the file says")
        } else {
            let (kernel, by) = kernel_of_place(&path, folder.as_deref(), stems, is_joined);
            match facts.get("commit") {
                Some(commit) => (with_commit(kernel, commit), "by its place and its commit"),
                None => (kernel, by),
            }
        };
        let kernel = kernel_name(&kernel);
        let mut foreign = Foreign {
            started_unix: stored.or_else(|| modified_unix(&path)),
            ..Foreign::default()
        };
        foreign
            .environment
            .push(("kernel".to_owned(), kernel.clone()));
        if let Some(host) = own_host {
            foreign
                .environment
                .push(("host".to_owned(), printable(host)));
        }
        let sums = rows.iter().filter(|row| row.is_sum);
        let sums = sums.map(|row| row.name.clone()).collect();
        let means = rows.iter().filter(|row| row.mean_of > 0);
        let means = means.map(|row| (row.name.clone(), row.mean_of)).collect();
        foreign.results = rows.into_iter().map(result).collect();
        if let Some(host) = of_file.filter(|host| options.host.is_none() && !is_machine(host)) {
            let why = format!(
                "{} is the name of no machine; --as names it",
                printable(host)
            );
            foreign.left_out.push(LeftOut {
                what: "host".to_owned(),
                why,
            });
        }
        if runs.is_empty() {
            let left = left_out.iter();
            foreign.left_out.extend(left.map(|(what, why)| LeftOut {
                what: what.clone(),
                why: why.clone(),
            }));
        }
        let number = number(&foreign, stored);
        let of_run = run.map(|run| format!(" run {}", printable(&run)));
        runs.push(ForeignRun {
            suite: FILES,
            origin: format!("{kernel}, {by}"),
            number,
            name: format!("{kernel} {shown}{} ({format})", of_run.unwrap_or_default()),
            kernel,
            folder: shown.clone(),
            start_time: start_time.clone(),
            foreign,
            sums,
            means,
        });
    }
    runs
}

/// Returns the start that a file says, or what stands in for it and why.
fn find_start(
    started: Option<&String>,
    format: &str,
    formats: &[Format],
) -> (Option<UnixTime>, Option<String>) {
    let stored = started.and_then(|text| parse_time(text));
    let mut known = formats.iter().filter(|known| known.name == format);
    let why = match started {
        _ if known.any(|known| !known.has_start()) => {
            format!("Marvin reads no start time of {format}")
        }
        Some(_) => "its start time is written in no way that Marvin reads".to_owned(),
        None => "no start time in it".to_owned(),
    };
    let instead = format!("{why}; Marvin takes the modification time of the file");
    (stored, stored.is_none().then_some(instead))
}

/// Returns the kernel that the place of a file names, and how.
fn kernel_of_place(
    path: &Path,
    folder: Option<&str>,
    stems: &BTreeSet<String>,
    is_joined: bool,
) -> (String, &'static str) {
    const BY_DIRECTORY: &str = "by the directory";
    if let Some(folder) = folder {
        return (folder.to_owned(), BY_DIRECTORY);
    }
    let stem = stem(path, stems);
    // `fio.output.1` and `fio.output.2` are parts of one run.
    let is_part = |number: &str| is_joined && !number.is_empty() && is_digits(number);
    let is_part = stem.rsplit_once('.').is_some_and(|(_, end)| is_part(end));
    let parent = path.parent().and_then(Path::file_name);
    match parent {
        Some(parent) if is_part || is_only_repeat(&stem) => {
            (parent.to_string_lossy().into_owned(), BY_DIRECTORY)
        }
        _ => (stem, "by the file's name"),
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a file's name is only the number of a repeat: `run1`, `r2`, `iter-3`, `1`.
fn is_only_repeat(stem: &str) -> bool {
    let word = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let word_only = word.trim_end_matches(['-', '_']).to_ascii_lowercase();
    let is_word = word_only.is_empty() && word.is_empty()
        || word_only == "r"
        || REPEATS.contains(&word_only.as_str());
    is_word && (1..=3).contains(&(stem.len() - word.len()))
}

/// Adds the beginning of a commit to a kernel's name that does not have it.
fn with_commit(kernel: String, commit: &str) -> String {
    let commit: String = commit.chars().take(12).collect();
    let short: String = commit.chars().take(7).collect();
    if kernel.contains(&short) {
        kernel
    } else {
        format!("{kernel}-{commit}")
    }
}

/// Returns whether a name of a host may be that of a machine: `localhost` and the ids of containers,
/// of 12 or 64 hexadecimal digits, are those of any.
fn is_machine(host: &str) -> bool {
    let is_hex = host.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_id =
        is_hex && [12, 64].contains(&host.len()) && host.bytes().any(|byte| byte.is_ascii_digit());
    !is_id && !["localhost", "localhost.localdomain"].contains(&host)
}

fn result(row: FileRow) -> WorkloadResult {
    WorkloadResult {
        workload: row.name,
        operations: 1,
        declared: Some(Declared {
            unit: row.unit.into(),
            direction: row.direction,
            margin_percent: IMPORTED_MARGIN_PERCENT,
        }),
        outcome: Outcome::Completed,
        samples: row.samples,
        counted: Vec::new(),
    }
}

/// Adds the rows of a run to another one of the same kernel.
fn join(known: &mut ForeignRun, run: ForeignRun) {
    let begin = known
        .foreign
        .started_unix
        .into_iter()
        .chain(run.foreign.started_unix);
    known.foreign.started_unix = begin.min();
    for result in run.foreign.results {
        let mut rows = known.foreign.results.iter_mut();
        let Some(row) = rows.find(|row| row.workload == result.workload) else {
            known.foreign.results.push(result);
            continue;
        };
        match (row.samples.as_mut_slice(), &result.samples[..]) {
            ([sum], [value]) if known.sums.contains(&row.workload) => *sum += value,
            ([mean], [value]) if known.means.contains_key(&row.workload) => {
                let count = known.means.entry(row.workload.clone()).or_default();
                let added = run.means.get(&row.workload).copied().unwrap_or(1);
                let [before, added] = [*count, added].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
                let whole = f64::from(before) + f64::from(added);
                *mean += (value - *mean) * f64::from(added) / whole;
                *count += usize::try_from(added).unwrap_or_default();
            }
            _ => row.samples.extend(result.samples),
        }
    }
    known.sums.extend(run.sums);
    for (row, count) in run.means {
        known.means.entry(row).or_insert(count);
    }
    known.foreign.left_out.extend(run.foreign.left_out);
}

/// Returns a number of the content, and of the start if the file has it. The time of a file's
/// modification is not part of it: a copy of a file is no other run.
fn number(foreign: &Foreign, stored: Option<UnixTime>) -> u64 {
    let mut text = stored.map(|time| time.date()).unwrap_or_default();
    for result in &foreign.results {
        text.extend(["\n", result.workload.as_str()]);
        for sample in &result.samples {
            text.extend([" ", &format!("{:016x}", sample.to_bits())]);
        }
    }
    u64::from_str_radix(&hash(&text)[..8], 16).unwrap_or_default()
}

/// Returns a file's name without its last suffix and, if there are several of these, without the
/// number of a repeat.
fn stem(path: &Path, shared: &BTreeSet<String>) -> String {
    let whole = whole_stem(path);
    match split_repeat(&whole) {
        Some((stem, _)) if shared.contains(stem) => stem.to_owned(),
        _ => whole,
    }
}

fn whole_stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = uncompressed(&name);
    let suffix = name.rsplit_once('.');
    // `6.1` has no suffix.
    let is_suffix = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic());
    match suffix {
        Some((stem, suffix)) if !stem.is_empty() && is_suffix(suffix) => stem.to_owned(),
        _ => name.to_owned(),
    }
}

/// Splits `6.1-run2` or `6.1_2` into the stem and the number.
fn split_repeat(stem: &str) -> Option<(&str, u32)> {
    let head = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = stem[head.len()..].parse().ok()?;
    let lower = head.to_ascii_lowercase();
    let word = REPEATS
        .into_iter()
        .find(|word| lower.ends_with(word))
        .map_or(0, str::len);
    let head = &head[..head.len() - word];
    let name = head.strip_suffix(['-', '_'])?;
    (!name.is_empty()).then_some((name, number))
}

/// Returns the stems whose files are numbered from 0 or 1 without a gap, at least two.
fn shared_stems(files: &[Parsed]) -> BTreeSet<String> {
    let mut numbers: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for file in files {
        if let Some((stem, number)) = split_repeat(&whole_stem(&file.path)) {
            numbers.entry(stem.to_owned()).or_default().insert(number);
        }
    }
    let is_counted = |numbers: &BTreeSet<u32>| {
        let first = numbers.first().copied().unwrap_or(2);
        let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        first <= 1 && count >= 2 && numbers.last() == Some(&(first + count - 1))
    };
    numbers
        .into_iter()
        .filter(|(_, numbers)| is_counted(numbers))
        .map(|(stem, _)| stem)
        .collect()
}

/// Returns a kernel's name of letters, digits and `.+-_~`. Where letters of other scripts or an end
/// are lost, digits of a hash tell it from others that have lost the same.
fn kernel_name(written: &str) -> String {
    let mut name = String::new();
    for letter in written.trim().chars() {
        let is_fit = letter.is_ascii_alphanumeric() || ".+-_~".contains(letter);
        if is_fit {
            name.push(letter);
        } else if !name.ends_with('-') {
            name.push('-');
        }
    }
    let name = name.trim_matches('-');
    let is_whole = written.is_ascii() && !name.is_empty() && name.len() <= KERNEL_MAX;
    if is_whole {
        return name.to_owned();
    }
    let name: String = name.chars().take(KERNEL_MAX).collect();
    let begin = if name.is_empty() { "unnamed" } else { &name };
    format!("{begin}-{}", &hash(written)[..6])
}

fn printable(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::{is_machine, is_only_repeat, kernel_name, split_repeat, whole_stem, with_commit};

    #[test]
    fn names_of_repeats_and_containers_name_nothing() {
        for stem in ["run1", "R2", "iter-3", "1", "try_10"] {
            assert!(is_only_repeat(stem), "{stem}");
        }
        for stem in ["6.1", "run", "20240501", "rc1", "-1", "before1"] {
            assert!(!is_only_repeat(stem), "{stem}");
        }
        assert!(!is_machine("0f61d52966d1") && !is_machine("localhost"));
        assert!(is_machine("lab3") && is_machine("deadbeefdead"));
        assert_eq!(with_commit("clang".to_owned(), "fea9315"), "clang-fea9315");
        assert_eq!(with_commit("005d041".to_owned(), "005d041aa"), "005d041");
    }

    #[test]
    fn numbers_of_repeats_are_split_off() {
        for (stem, expected) in [
            ("6.1-run2", Some(("6.1", 2))),
            ("6.1_2", Some(("6.1", 2))),
            ("6.12", None),
            ("6.1-rc2", None),
            ("before-iter-3", Some(("before-iter", 3))),
            ("7", None),
        ] {
            assert_eq!(split_repeat(stem), expected, "{stem}");
        }
    }

    #[test]
    fn versions_are_no_suffixes() {
        for (file, stem) in [
            ("6.1", "6.1"),
            ("6.1.json", "6.1"),
            ("a.tar.gz", "a"),
            (".x", ".x"),
        ] {
            assert_eq!(whole_stem(file.as_ref()), stem, "{file}");
        }
        assert_eq!(kernel_name(" 6.1 (x86_64)/a\u{1b}"), "6.1-x86_64-a");
        for [one, other] in [["é", "ü"], ["\u{1b}", ""], ["6.1-é", "6.1"]] {
            assert_ne!(kernel_name(one), kernel_name(other));
        }
        let long = "x".repeat(super::KERNEL_MAX);
        assert_eq!(kernel_name(&long), long);
        assert_ne!(
            kernel_name(&format!("{long}y")),
            kernel_name(&format!("{long}z"))
        );
    }
}
