//! What the targets of text do with bytes: `wire` and `ingest`. Those of `vmcore` and `kernel` have
//! their own.

use std::cell::LazyCell;
use std::hint::black_box;
use std::sync::LazyLock;

use config::ToolOutput;
use ingest::Symbols;
use machine::{InitrdFile, initrd_of};
use model::{ToolRows, ToolWorkload};
use wire::{Frame, Stream};

/// The job whose streams are read.
pub(crate) const JOB: u64 = 42;

pub(crate) fn stream(bytes: &[u8]) {
    black_box(wire::find_hello(bytes));
    black_box(wire::find_last_words(bytes));
    if let Ok(stream) = wire::decode(bytes, JOB) {
        frames(&stream);
    }
}

/// Frames with any names and content: each line is the name of a file, and the lines before it are
/// the content.
pub(crate) fn files(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut all = vec![Frame::Hello {
        agent: "0".to_owned(),
    }];
    for (number, line) in text.lines().take(64).enumerate() {
        let (name, content) = line.split_once('=').unwrap_or((line, line));
        // The protocol does not escape colons in names.
        let name = name.replace(':', " ");
        all.push(Frame::File {
            name,
            bytes: content.replace("\\n", "\n").into_bytes(),
        });
        if number % 8 == 7 {
            all.push(Frame::Samples(content.bytes().map(u64::from).collect()));
        }
    }
    all.push(Frame::End);
    let sent: String = all
        .iter()
        .enumerate()
        .map(|(n, frame)| wire::encode(JOB, n, frame))
        .collect();
    if let Ok(stream) = wire::decode(sent.as_bytes(), JOB) {
        all.pop();
        assert!(stream.frames == all, "a stream is read as it was written");
        frames(&stream);
    }
}

fn frames(stream: &Stream) {
    drop(ingest::outcome(stream, 1, 3));
    black_box(ingest::rows(stream));
    black_box(ingest::environment(stream));
    black_box(ingest::observation(&ingest::copies(stream)));
    black_box(ingest::rmap(stream));
    drop(Symbols::parse(&ingest::symbols_text(stream)));
}

/// A job, as the agent gets it.
pub(crate) fn job(bytes: &[u8]) {
    if let Ok(job) = wire::Job::decode(bytes)
        && let Ok(again) = job.encode()
    {
        assert_eq!(
            wire::Job::decode(&again),
            Ok(job),
            "a job is read as it was written"
        );
    }
}

/// Symbols to look addresses up.
pub(crate) const SYMBOLS: &str =
    "T1000 entry_SYSCALL_64\nT100 __pfx_do_syscall_64\nT10 do_syscall_64\n";

thread_local! {
    static KNOWN: LazyCell<Option<Symbols>> = LazyCell::new(|| Symbols::parse(SYMBOLS).ok());
    static WORKLOADS: LazyCell<Vec<ToolWorkload>> = LazyCell::new(workloads);
}

/// The extract of /proc/kallsyms.
pub(crate) fn symbols(bytes: &[u8]) {
    if let Ok(mut symbols) = Symbols::parse(&String::from_utf8_lossy(bytes)) {
        black_box(
            (0..64)
                .filter(|n| symbols.symbol_at(n << 5).is_some())
                .count(),
        );
        black_box(symbols.marks());
        black_box(symbols.call_marks());
        symbols.tell_apart(|addresses| vec![Some("fs/inode.c".to_owned()); addresses.len()]);
    }
}

/// The tracer's counts, and the cost model's in them.
pub(crate) fn counts(bytes: &[u8]) {
    KNOWN.with(|known| {
        let Some(symbols) = known.as_ref() else {
            return;
        };
        if let Ok(profile) = ingest::profile(bytes, symbols, 1) {
            black_box(ingest::modelled(bytes, symbols, &profile));
            let text = ingest::profile_to_text(&profile);
            assert!(
                ingest::profile_from_text(&text).as_ref() == Some(&profile),
                "a profile is read as it was kept"
            );
        }
    });
}

/// The agent's samples, and sampled profiles from the store.
pub(crate) fn samples(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let check = |profile: &model::SampledProfile| {
        let again = ingest::sampled_from_text(&ingest::sampled_to_text(profile));
        assert!(
            again.as_ref() == Some(profile),
            "a sampled profile is read as it was kept"
        );
    };
    KNOWN.with(|known| {
        if let Some(profile) = known
            .as_ref()
            .and_then(|symbols| ingest::sampled(&text, symbols, 1).ok())
        {
            check(&profile);
        }
    });
    if let Some(profile) = ingest::sampled_from_text(&text) {
        check(&profile);
    }
}

/// The tracer's call tree, and the recorder's order of instructions.
pub(crate) fn calls(bytes: &[u8]) {
    KNOWN.with(|known| {
        let region = model::Region {
            user: 10,
            kernel: 61,
            interrupt: 7,
            other: 0,
            ..model::Region::default()
        };
        let profile = model::Profile {
            operations: 2,
            regions: vec![region],
            lines: vec![],
        };
        if let Some(symbols) = known.as_ref() {
            drop(ingest::call_tree(bytes, symbols, &profile));
            let path = [b"marvin-path 1\n".as_slice(), bytes].concat();
            drop(ingest::executed_path(&path, symbols));
        }
    });
}

/// Profiles and copies of monitors from the store.
pub(crate) fn kept(bytes: &[u8]) {
    drop(ingest::profile_from_text(&String::from_utf8_lossy(bytes)));
    if let Some(copies) = ingest::monitors_from_bytes(bytes) {
        assert!(
            ingest::monitors_to_bytes(&copies) == bytes,
            "copies are read as they were kept"
        );
        black_box(ingest::observation(&copies));
    }
}

/// A copy of a file of /proc, whose path is in the first line.
pub(crate) fn monitor(bytes: &[u8]) {
    let at = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let path = String::from_utf8_lossy(&bytes[..at]);
    black_box(ingest::reading(
        &path,
        bytes.get(at + 1..).unwrap_or_default(),
    ));
}

/// An initrd with any names and contents, each line `PATH=CONTENT`: what is written can be read
/// again.
pub(crate) fn cpio(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let files: Vec<InitrdFile> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(path, _)| !path.is_empty() && !path.contains('\0'))
        .map(|(path, content)| InitrdFile {
            path: path.to_owned(),
            bytes: content.as_bytes().to_vec(),
        })
        .collect();
    let archive = initrd_of(&files);
    assert!(archive.len().is_multiple_of(4));
    let mut rest = archive.as_slice();
    let mut found = Vec::new();
    // Documentation/driver-api/early-userspace/buffer-format.rst: six letters, thirteen numbers,
    // name, content.
    while let Some((header, after)) = rest.split_at_checked(110) {
        assert!(header.starts_with(b"070701"));
        let number = |n: usize| {
            let digits = std::str::from_utf8(&header[6 + n * 8..14 + n * 8]).unwrap_or_default();
            usize::from_str_radix(digits, 16).unwrap_or(usize::MAX)
        };
        let name = number(11);
        let size = number(6);
        let content = (110 + name).next_multiple_of(4) - 110;
        if number(1) == 0o100_755 {
            let path = String::from_utf8_lossy(&after[..name - 1]).into_owned();
            found.push(InitrdFile {
                path,
                bytes: after[content..content + size].to_vec(),
            });
        }
        rest = &after[content + size.next_multiple_of(4)..];
    }
    assert!(found == files, "an initrd is read as it was written");
}

pub(crate) fn settings(bytes: &[u8]) {
    drop(config::settings(
        &String::from_utf8_lossy(bytes),
        &ToolRows::default(),
    ));
}

pub(crate) fn manifest(bytes: &[u8]) {
    drop(config::tool(&String::from_utf8_lossy(bytes)));
}

/// The output of a workload of a tool, whose name is in the first line; of any if there is none of
/// that name.
pub(crate) fn output(bytes: &[u8]) {
    let at = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let name = &bytes[..at];
    let written = bytes.get(at + 1..).unwrap_or_default();
    WORKLOADS.with(|workloads| {
        let named = workloads
            .iter()
            .find(|workload| workload.name.as_bytes() == name);
        let any = || workloads.get(bytes.len() % workloads.len().max(1));
        if let Some(workload) = named.or_else(any) {
            read_output(workload, written);
        }
    });
}

/// Returns whether a workload's metrics are in what its tool has written.
pub(crate) fn read_output(workload: &ToolWorkload, written: &[u8]) -> bool {
    let files = [("/run/stress-ng.yaml".to_owned(), written.to_vec())];
    let output = ToolOutput {
        stdout: written,
        stderr: b"",
        files: &files,
    };
    let samples = config::tool_samples(workload, &output);
    samples.as_ref().is_ok_and(|samples| {
        assert_eq!(samples.len(), workload.metrics.len());
        true
    })
}

/// Returns the workloads of all tools.
pub(crate) fn workloads() -> Vec<ToolWorkload> {
    config::SHIPPED
        .iter()
        .filter_map(|(_, manifest)| config::tool(manifest).ok())
        .flat_map(|tool| tool.workloads)
        .collect()
}

/// A job file of LKP, and results of one and of several runs.
pub(crate) fn lkp(bytes: &[u8]) {
    black_box(results::import::foreign::lkp_started(bytes));
    if let Some(place) = results::import::foreign::LkpResultPath::parse(PLACE) {
        drop(results::import::foreign::lkp_run(&place, bytes));
        drop(results::import::foreign::lkp_columns(&place, bytes));
    }
}

/// A result of LKP by its path.
const PLACE: &str = "vm-scalability/300s/box/debian-12/x86_64-rhel-9.4/gcc-12/v6.12";

/// A file of MMTests, whose path is in the first line.
pub(crate) fn mmtests(bytes: &[u8]) {
    let at = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let path = String::from_utf8_lossy(&bytes[..at]).into_owned();
    black_box(results::import::foreign::mmtests(
        &[path],
        &FORMATS,
        &mut |_| Ok(bytes.get(at + 1..).unwrap_or_default().to_vec()),
    ));
}

/// The formats of files and of tests of MMTests that come with Marvin.
static FORMATS: LazyLock<Vec<config::Format>> = LazyLock::new(|| {
    let all = [config::SHIPPED_FORMATS, config::MMTESTS_FORMATS];
    let all = all.into_iter().flatten();
    all.filter_map(|(_, text)| config::format(text).ok())
        .collect()
});

/// A result file of another program, whose path is in the first line.
pub(crate) fn result_file(bytes: &[u8]) {
    let at = bytes
        .iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(bytes.len());
    let path = String::from_utf8_lossy(&bytes[..at]);
    let content = bytes.get(at + 1..).unwrap_or_default();
    if let Ok(file) = config::ResultFile::new(&path, content) {
        drop(black_box(config::read_result_file(&FORMATS, &file)));
    }
}

/// The manifest of a format.
pub(crate) fn format(bytes: &[u8]) {
    drop(black_box(config::format(&String::from_utf8_lossy(bytes))));
}
