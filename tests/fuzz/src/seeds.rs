//! Files to start from: golden and real data of the tree, this program itself, and small ones made
//! here.

use std::error::Error;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use synthetic_dumps::Synthetic;
use synthetic_dumps::damage::tiny;
use vmcore::fuzzing::{Form, What, converted};
use vmcore::{Codec, Dump};
use wire::{Clock, Frame, Job, Perturbation, Task};

use crate::bodies::{JOB, SYMBOLS, read_output, workloads};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;
type Seeds = Vec<Vec<u8>>;

/// Largest file that becomes a seed: larger ones would only be read more slowly.
const SEED_MAX: u64 = 64 << 10;

fn tree(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(path)
}

/// Returns the files below a directory, by path.
fn below(folder: &Path) -> Outcome<Vec<(PathBuf, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        if found.is_dir() {
            files.extend(below(&entry.path())?);
        } else if found.len() <= SEED_MAX {
            files.push((entry.path(), fs::read(entry.path())?));
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn streams() -> Seeds {
    let frames = [
        Frame::Hello {
            agent: "0.1.0".into(),
        },
        Frame::File {
            name: "/proc/version".into(),
            bytes: b"Linux: 100%\n".to_vec(),
        },
        Frame::Samples(vec![6_531_004, 6_530_001, 6_529_999]),
        Frame::Failed("open: ENOENT".into()),
        Frame::End,
    ];
    let lines: String = frames
        .iter()
        .enumerate()
        .map(|(n, frame)| wire::encode(JOB, n, frame))
        .collect();
    vec![
        lines.clone().into_bytes(),
        format!("[ 0.1] Linux\r\n{}", lines.replace('\n', "\r\n")).into_bytes(),
    ]
}

/// How many copies of /proc a stream to start from has: few, so that damage hits each of them as
/// often.
const COPIES_A_SEED: usize = 3;

/// Names of files with their content, as jobs send them.
pub(crate) fn files() -> Outcome<Seeds> {
    let escaped = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace('\n', "\\n");
    let mut lines =
        "row latency=1\\n2\\n3\nrmap=file 10 1000 123 456\nconfig=CONFIG_A=y\n/proc/kallsyms="
            .to_owned();
    lines += &escaped(SYMBOLS.as_bytes());
    let mut seeds = vec![lines.into_bytes()];
    let copies = below(&tree("crates/lab/ingest/corpus/6.12"))?;
    let small: Vec<_> = copies
        .iter()
        .filter(|(_, bytes)| bytes.len() < 4096)
        .collect();
    for group in small.chunks(COPIES_A_SEED) {
        let line = |(path, bytes): &&(PathBuf, Vec<u8>)| {
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .replace('_', "/");
            ["start 10 20 /proc/", &name, "=", &escaped(bytes)].concat()
        };
        seeds.push(
            group
                .iter()
                .map(line)
                .collect::<Vec<_>>()
                .join("\n")
                .into_bytes(),
        );
    }
    Ok(seeds)
}

pub(crate) fn jobs() -> Outcome<Seeds> {
    let name = "fault-anon".to_owned();
    let probes = vec!["do_anonymous_page".to_owned()];
    let monitors = Some(250);
    let sampling = Some(250_007);
    let workload = Task::Workload {
        name,
        operations: 2048,
        warm_up: 2,
        iterations: 16,
        tasks: 2,
        all_processors: true,
        probes,
        monitors,
        sampling,
    };
    let rmap = Task::Rmap {
        case: "file".into(),
        processes: 10,
        mappings: 1000,
    };
    let perturbation = Perturbation {
        delay_us: 17,
        spins: 2,
        child_pages: 1000,
        child_forks: 10,
        mappings_above: 3,
        mappings_below: 11,
        descriptors: 70,
    };
    let seed = |task| {
        Job {
            id: JOB,
            clock: Clock::Tsc,
            perturbation,
            task,
        }
        .encode()
    };
    Ok(vec![seed(workload)?, seed(rmap)?, seed(Task::Environment)?])
}

pub(crate) fn symbols() -> Seeds {
    let many: String = (0..200)
        .map(|n| format!("t{n:x} __pfx_f{n}\nT10 f{n}\tmodule\n"))
        .collect();
    vec![SYMBOLS.into(), many.into()]
}

pub(crate) fn counts() -> Seeds {
    let text = "region 1 10 61 7 0\nat 0 10 0 0\nat 1000 20 0 0\nat 1110 41 7 0\nrepeated 1110 5 0 0\nend 0 0\n";
    vec![text.into(), text.replace("region 1 10", "region 10").into()]
}

/// What the agent sampled, and its stored form.
pub(crate) fn samples() -> Seeds {
    let head = "marvin-samples 1\nevent cpu-clock\nscope system\nperiod 250007\nprocessors 2\nlost 1\nthrottled 0\nunkept 0\n";
    let stacks =
        "at 1000\nat 1110\nuser 5 0\nidle 2 0 1\nprocess 4 0 0 1\nprocess 3 1 1 1\nany 1 0 1\n";
    let stored = "marvin-sampled 1\nevent\tcycles\nscope\tprocesses\nperiod\t7\nprocessors\t2\noperations\t9\nidle\t0\n\
                  lost\t0\nthrottled\t0\nunkept\t0\nuser\t5\t[user]\nkernel\t4\tentry_SYSCALL_64;vfs_read\n";
    vec![(head.to_owned() + stacks).into(), stored.into()]
}

pub(crate) fn calls() -> Seeds {
    let nodes = "node 0 0 0 0 0 1 0 0\nnode 0 0 0 0 0 10 0 0\nnode 0 1000 2 0 0 20 0 0\n\
                 node 2 1110 4 1 0 40 7 0\nend\n";
    vec![nodes.into()]
}

pub(crate) fn kept() -> Outcome<Seeds> {
    let profile =
        "marvin-profile 1\noperations\t2\nregion\t10\t61\t7\t0\nkernel\t61\t0\t4\tdo_syscall_64\n";
    let mut copies = b"marvin-monitors 1\n".to_vec();
    for name in ["vmstat", "meminfo", "stat"] {
        let bytes = fs::read(tree("crates/lab/ingest/corpus/6.12").join(name))?;
        copies.extend(format!("start 1 2 {} /proc/{name}\n", bytes.len()).into_bytes());
        copies.extend(bytes);
    }
    Ok(vec![profile.into(), copies])
}

/// The copies of real kernels' /proc, each behind its path.
pub(crate) fn monitors() -> Outcome<Seeds> {
    let files = below(&tree("crates/lab/ingest/corpus"))?;
    let named = |(path, bytes): (PathBuf, Vec<u8>)| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        let paths = [
            name.clone(),
            name.replace('_', "/"),
            format!("1/{}", name.trim_start_matches("thread_")),
        ];
        let path = paths
            .iter()
            .map(|path| format!("/proc/{path}"))
            .find(|path| model::MonitorFile::of_path(path).is_some());
        Some([path?.into_bytes(), b"\n".to_vec(), bytes].concat())
    };
    Ok(files.into_iter().filter_map(named).collect())
}

pub(crate) fn settings() -> Outcome<Seeds> {
    Ok(below(&tree("docs/samples"))?
        .into_iter()
        .map(|(_, bytes)| bytes)
        .collect())
}

pub(crate) fn manifests() -> Seeds {
    config::SHIPPED
        .iter()
        .map(|(_, manifest)| manifest.as_bytes().to_vec())
        .collect()
}

/// What tools have written, behind the name of a workload that reads it.
pub(crate) fn outputs() -> Outcome<Seeds> {
    let is_output = |path: &Path| path.ends_with("output") || path.ends_with("written");
    let files = below(&tree("crates/lab/config/golden/tools"))?
        .into_iter()
        .filter(|(path, _)| is_output(path));
    let workloads = workloads();
    let named = |(_, bytes): (PathBuf, Vec<u8>)| {
        let workload = workloads
            .iter()
            .find(|workload| read_output(workload, &bytes))?;
        Some([workload.name.as_bytes(), b"\n", &bytes].concat())
    };
    Ok(files.filter_map(named).collect())
}

pub(crate) fn lkp() -> Seeds {
    let run = r#"{"vm-scalability.median": [1.5, 2, 3], "vm-scalability.throughput": 12.5, "kmsg.x": [null, "a\u00e9"]}"#;
    let matrix =
        r#"{"stats_source": ["/r/0/a.json", "/r/1/a.json"], "vm-scalability.median": [1, 2]}"#;
    vec![
        run.into(),
        matrix.into(),
        b"suite: vm-scalability\nstart_time: '1700000000'\nend_time: 1700000100\n".to_vec(),
    ]
}

pub(crate) fn mmtests() -> Outcome<Seeds> {
    let top = tree("crates/lab/results/golden/mmtests");
    let named = |(path, bytes): (PathBuf, Vec<u8>)| {
        let path = path.to_string_lossy().split_once("/iter-0/")?.1.to_owned();
        Some([path.into_bytes(), b"\n".to_vec(), bytes].concat())
    };
    Ok(below(&top)?.into_iter().filter_map(named).collect())
}

/// A vmlinux with the note of PVH.
fn vmlinux() -> Vec<u8> {
    let mut elf = b"\x7fELF\x02\x01".to_vec();
    elf.resize(120, 0);
    for (at, byte) in [(18, 62), (32, 64), (56, 1), (64, 4), (72, 120), (96, 20)] {
        elf[at] = byte;
    }
    for number in [4_u32, 4, 18] {
        elf.extend(number.to_le_bytes());
    }
    elf.extend(b"Xen\0\0\0\0\0Linux version 6.9.1-test (x) ");
    elf
}

/// The formats of kernels and modules, each around `content` and followed by its size.
fn packed(content: &[u8]) -> Outcome<Seeds> {
    let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    gzip.write_all(content)?;
    let mut xz = liblzma::write::XzEncoder::new(vec![], 1);
    xz.write_all(content)?;
    let size = (content.len() as u32).to_le_bytes();
    // Of lz4 a block of literals only.
    let mut block = vec![0xf0];
    let mut rest = content.len().saturating_sub(15);
    while rest >= 255 {
        block.push(255);
        rest -= 255;
    }
    block.push(rest as u8);
    block.extend(content);
    let lz4 = [
        &0x184C_2102_u32.to_le_bytes()[..],
        &(block.len() as u32).to_le_bytes(),
        &block,
    ]
    .concat();
    let sized = |bytes: Vec<u8>| [&bytes[..], &size].concat();
    Ok(vec![
        gzip.finish()?,
        sized(xz.finish()?),
        sized(zstd::encode_all(content, 1)?),
        sized(lz4),
    ])
}

pub(crate) fn images() -> Outcome<Seeds> {
    let mut all = vec![vmlinux()];
    for payload in packed(&vmlinux())? {
        let system = 16 + (payload.len() as u32).next_multiple_of(16);
        let mut image = vec![0_u8; 1024];
        let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
        put(0x1f1, &[1]);
        put(0x1f4, &(system / 16).to_le_bytes());
        put(0x202, b"HdrS\x0f\x02");
        put(0x20e, &[0, 1]);
        put(0x236, &[1]);
        put(0x248, &16_u32.to_le_bytes());
        put(0x24c, &(payload.len() as u32).to_le_bytes());
        put(0x300, b"6.9.1-test (a@b) #1 SMP\0");
        image.resize(1024 + 16, 0x90);
        image.extend(payload);
        image.resize(1024 + system as usize, 0);
        all.push(image);
    }
    Ok(all)
}

/// A module's text, and zeros that unpack to far more than they have.
pub(crate) fn payloads() -> Outcome<Seeds> {
    let module = vmlinux().repeat(8);
    Ok([packed(&module)?, packed(&vec![0; 256 << 10])?]
        .concat()
        .into_iter()
        .filter(|seed| seed.len() < 65536)
        .collect())
}

/// Archives of two files and a link, in ustar and with a long name of GNU.
pub(crate) fn archives() -> Seeds {
    let header = |name: &str, kind: u8, size: usize| {
        let mut block = [0_u8; 512];
        let mut put =
            |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
        put(0, name);
        put(100, "0000755");
        put(124, &format!("{size:011o}"));
        put(148, "        ");
        put(257, "ustar");
        block[156] = kind;
        let sum: u64 = block.iter().map(|byte| u64::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        block.to_vec()
    };
    let body = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize(text.len().next_multiple_of(512), 0);
        bytes
    };
    let long = format!("top/{}", "d/".repeat(80));
    let records = "30 path=top/of/pax/with/records\n";
    let file = [
        header("top/Kbuild", b'0', 6),
        body("obj-y\n"),
        header("top/link", b'2', 0),
    ]
    .concat();
    let gnu = [
        header("././@LongLink", b'L', long.len()),
        body(&long),
        header("top/x", b'0', 0),
    ]
    .concat();
    let pax = [
        header("pax", b'x', records.len()),
        body(records),
        header("top/x", b'0', 3),
        body("abc"),
    ]
    .concat();
    let end = vec![0; 1024];
    vec![
        [file.clone(), end.clone()].concat(),
        [gnu, file, end.clone()].concat(),
        [pax, end].concat(),
    ]
}

/// The beginning of this program, whose tables are there, and a small vmlinux.
pub(crate) fn programs() -> Outcome<Seeds> {
    let mut this = fs::read("/bin/true")?;
    this.truncate(SEED_MAX as usize);
    Ok(vec![this, vmlinux()])
}

pub(crate) fn records() -> Seeds {
    let record = |version: &str| {
        format!(
            "Package: linux-image-{version}-amd64\nSource: linux\nVersion: {version}-1\nArchitecture: amd64\nSize: 1234\n\
             SHA256: {}\nDepends: linux-base (>= 4.3~), linux-binary-{version}-amd64 (= {version}-1)\nFilename: pool/l.deb\n\
             Description: Linux\n more\n\nPackage: linux-image-amd64\nVersion: {version}-1\nSize: 1\nSHA256: 00\n\
             Depends: linux-image-{version}-amd64 (= {version}-1)\n",
            "ab".repeat(32)
        )
    };
    vec![
        record("6.1.0-9").into(),
        [record("6.12.9"), record("6.19~rc1")].join("\n").into(),
    ]
}

pub(crate) fn beside() -> Seeds {
    vec![
        "ffffffff81000000 T _text\n".repeat(110).into(),
        b"# x\nCONFIG_A=y\n# CONFIG_B is not set\n".to_vec(),
        b"name=deb:6.12\nimage=vmlinuz\nimage-sha256=00\n".to_vec(),
    ]
}

pub(crate) fn patches() -> Seeds {
    let hash = "ab".repeat(20);
    let hunk = "@@ -1,3 +1,4 @@ static int walk(struct mm *mm)\n {\n-\told(\"x\"); /* y */\n+\tnew(mm);\n+\treturn 0;\n }\n";
    vec![
        format!(
            "Re: [PATCH v3 2/7] mm: walk\n\ncommit {hash} upstream.\n\nFixes: {hash} (\"mm: a\")\nCc: stable@vger.kernel.org # 6.1\n\
             ---\n a.c | 3 +-\n\ndiff --git a/a.c b/b.c\nsimilarity index 90%\nrename from a.c\nrename to \"b\\303\\244.c\"\n\
             --- a/a.c\n+++ b/b.c\n{hunk}-- \n2.39\n"
        )
        .into(),
        format!("Subject: a\nGit-commit: {hash}\n\n--- x.orig/a.rs\t1970-01-01 00:00:00 +0000\n+++ x/a.rs\n{hunk}").into(),
        b"# order\nbugfix/all/a.patch -p1 # why\n+arm b.patch\n../c.patch\n".to_vec(),
        b"diff --git a/a.S b/a.S\n@@ -1 +1 @@ SYM_FUNC_START(a)\n-\tnop\n+SYM_FUNC_END(a)\n\\ No newline at end of file\n".to_vec(),
    ]
}

/// Memory dumps of five pages in every format, and notes.
pub(crate) struct Dumps {
    pub(crate) elf: Seeds,
    pub(crate) kdump: Seeds,
    pub(crate) flattened: Seeds,
    pub(crate) note: Seeds,
}

pub(crate) fn dumps(folder: &Path) -> Outcome<Dumps> {
    let small = folder.join("tiny");
    let scratch = folder.join("made");
    fs::write(&small, tiny())?;
    let made = |what, flattened| converted(&small, Form { what, flattened }, &scratch);
    let mapped = folder.join("mapped");
    Synthetic {
        groups: "0x010+40 anon\n 0x0c0 free 4".to_owned(),
        ..Synthetic::default()
    }
    .write(&mapped)?;
    let dump = Dump::open(&[mapped])?;
    let text: String = dump
        .info()
        .lines()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    let codecs = [Codec::Zstd, Codec::Zlib, Codec::Snappy, Codec::Lzo];
    let kdump = codecs
        .map(|codec| made(What::Kdump(codec), false))
        .into_iter()
        .collect::<Result<_, _>>()?;
    Ok(Dumps {
        elf: vec![tiny(), made(What::Elf, false)?],
        kdump,
        flattened: vec![
            made(What::Kdump(Codec::Zstd), true)?,
            made(What::Elf, true)?,
        ],
        note: vec![dump.notes().to_vec(), text.into_bytes()],
    })
}

pub(crate) fn modules() -> Seeds {
    let many: String = (0..100)
        .map(|n| format!("m{n}=\\0depends=m{},m{}\\0\n", n + 1, n * 7 % 100))
        .collect();
    let few = "virtio_blk=\\0depends=virtio,virtio_ring\\0\nvirtio=\\0depends=virtio_ring\\0\n\
               virtio_ring=\\0depends=virtio\\0\n";
    vec![few.into(), many.into()]
}

/// The archives of `archives`, compressed.
pub(crate) fn packages() -> Outcome<Seeds> {
    let packed = |archive: Vec<u8>| {
        let mut xz = liblzma::write::XzEncoder::new(vec![], 1);
        xz.write_all(&archive)?;
        Ok(xz.finish()?)
    };
    archives().into_iter().map(packed).collect()
}

/// Packed artifacts behind their sizes: text, zeros, and many small frames.
pub(crate) fn artifacts() -> Outcome<Seeds> {
    let text = fs::read(tree("crates/lab/ingest/corpus/6.12/vmstat"))?;
    let sized = |size: usize, packed: Vec<u8>| [&(size as u32).to_le_bytes()[..], &packed].concat();
    let frames = zstd::encode_all(&b"frame"[..], 3)?.repeat(400);
    Ok(vec![
        sized(text.len(), zstd::encode_all(&*text, 3)?),
        sized(256 << 10, zstd::encode_all(&*vec![0; 256 << 10], 3)?),
        sized(2000, frames),
    ])
}

/// Manifests of formats.
pub(crate) fn formats() -> Seeds {
    let all = config::SHIPPED_FORMATS.iter();
    all.map(|(_, text)| text.as_bytes().to_vec()).collect()
}

/// A file of each format, behind its path.
pub(crate) fn result_files() -> Outcome<Seeds> {
    let mut all = Vec::new();
    for entry in fs::read_dir(tree("crates/lab/config/golden/formats"))? {
        let path = entry?.path();
        if path.is_file() {
            let mut seed = path
                .file_name()
                .unwrap_or_default()
                .as_encoded_bytes()
                .to_vec();
            seed.push(b'\n');
            seed.extend(fs::read(path)?);
            all.push(seed);
        }
    }
    all.sort();
    Ok(all)
}

/// Results of LKP, compressed in the two ways.
pub(crate) fn imported() -> Outcome<Seeds> {
    let mut all = Vec::new();
    for content in [&lkp()[0], &vec![b'0'; 64 << 10]] {
        let mut gzip = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
        gzip.write_all(content)?;
        let mut xz = liblzma::write::XzEncoder::new(vec![], 1);
        xz.write_all(content)?;
        all.extend([gzip.finish()?, xz.finish()?]);
    }
    Ok(all)
}

pub(crate) fn initrds() -> Seeds {
    vec![
        b"init=#!/bin/sh\netc/passwd=root:x:0:0\nlib/modules/6.12/kernel/fs/ext4.ko=\x7fELF\nlib/modules/x=y\n"
            .to_vec(),
    ]
}

/// Functions inlined into one another, and variables; the program begins at `start`.
const SOURCE: &str = "struct thing { long a, b; }; struct thing things[3][2]; const char *text = \"x\"; int other;\n\
    static inline int add(int a) { return a + other; }\nstatic inline int twice(int a) { return add(a) * add(a + 1); }\n\
    int start(int a)\n{\n\tfor (int i = 0; i < a; i++)\n\t\tother += twice(i);\n\treturn (int)things[1][1].b;\n}\n";

/// Returns a small program with debug information in this version of DWARF, and BTF.
fn compiled(folder: &Path, dwarf: &str) -> Outcome<Vec<u8>> {
    let at = |name: &str| folder.join(name);
    fs::write(at("source.c"), SOURCE)?;
    let mut types = synthetic_dumps::vmlinux::Btf::default();
    let long = types.int("long", 8);
    types.record("thing", 16, &[("a", long, 0), ("b", long, 8)]);
    types.typedef("thing_t", 2);
    fs::write(at("types"), types.bytes())?;
    let flags = [
        "-O1",
        "-nostdlib",
        "-static",
        "-fno-pie",
        "-no-pie",
        "-Wl,-e,start,--build-id=none",
        "-o",
        "program",
    ];
    run(Command::new("cc")
        .arg(dwarf)
        .args(flags)
        .arg("source.c")
        .current_dir(folder))?;
    run(Command::new("objcopy")
        .args(["--add-section", ".BTF=types", "program"])
        .current_dir(folder))?;
    Ok(fs::read(at("program"))?)
}

fn run(command: &mut Command) -> Outcome<()> {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{command:?}: {status}").into())
    }
}

pub(crate) fn vmlinuxes(folder: &Path) -> Outcome<Seeds> {
    Ok(vec![
        compiled(folder, "-gdwarf-5")?,
        compiled(folder, "-gdwarf-4")?,
    ])
}

/// The same, each behind the address where it begins.
pub(crate) fn lines(folder: &Path) -> Outcome<Seeds> {
    let begun = |program: Vec<u8>| [&program[24..32], &program].concat();
    Ok(vmlinuxes(folder)?.into_iter().map(begun).collect())
}

pub(crate) fn btf() -> Seeds {
    let numbers: [u32; 11] = [0x0001_eb9f, 24, 0, 28, 28, 13, 1, 6 << 24 | 1, 4, 1, 12];
    let mut types: Vec<u8> = numbers
        .iter()
        .flat_map(|number| number.to_le_bytes())
        .collect();
    types.extend(b"\0PG_reserved\0");
    vec![types]
}

pub(crate) fn lzo() -> Seeds {
    vec![b"\x15abcd\x6e\x00XY\x20\x00\x00\x01\x00\x00\x11\x00\x00".to_vec()]
}
