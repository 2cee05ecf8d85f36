//! The command line. Beside our own long names stand those options of makedumpfile that people have in scripts, with the
//! same meaning.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use vmcore::Level;
use vmcore::ram::Part;

use crate::EXIT_CODES;
use crate::experiment::Experiment;

const EXAMPLES: &str = "Examples:
  marvin-dump --level 31 /proc/vmcore /var/crash/vmcore
  marvin-dump -d 17,31 --compress snappy --force vmcore smaller
  marvin-dump -d 31 --flattened /proc/vmcore | ssh host 'cat > vmcore.flat'
  marvin-dump info smaller

";

/// Filter and compress the memory dump of a crashed kernel
///
/// Reads /proc/vmcore, ELF vmcores (also QEMU's), kdump-compressed files and both flattened; leaves out the pages that the level
/// names; writes a file that crash, drgn and makedumpfile read.
#[derive(Debug, Parser)]
#[command(
    name = "marvin-dump", version, disable_version_flag = true, max_term_width = 100,
    args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true,
    after_help = format!("{EXAMPLES}{EXIT_CODES}")
)]
pub struct Arguments {
    /// What to do other than to write a dump
    #[command(subcommand)]
    pub command: Option<Command>,
    /// What to write
    #[command(flatten)]
    pub save: Save,
    /// Print the version
    #[arg(short = 'v', long, short_alias = 'V', action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Commands beside writing a dump.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what a file is, of which kernel, and how complete
    Info(Look),
    /// Print the kernel's log
    Dmesg(Look),
    /// Count pages by what they were used for, in a dump or the running kernel's /proc/kcore
    Usage(Look),
    /// Say how large the result would be, at each level and compression, from a sample
    Estimate(Look),
    /// Measure how a dump is filtered fastest, and print a table
    Experiment(Experiment),
}

/// A dump to look at.
#[derive(Debug, Args)]
pub struct Look {
    /// The dump; several files for a split set
    #[arg(required_unless_present = "ram", value_name = "VMCORE")]
    pub files: Vec<PathBuf>,
    /// In place of a dump, the file of a guest's memory, and where it is in the guest
    #[arg(long, value_name = "FILE[@ADDRESS[+SIZE][:OFFSET]]", conflicts_with = "files")]
    pub ram: Vec<Part>,
    /// The answer as JSON
    #[arg(long)]
    pub json: bool,
    /// Text of the VMCOREINFO note, for a dump that lacks it
    #[arg(short = 'i', long, value_name = "FILE")]
    pub vmcoreinfo: Option<PathBuf>,
}

/// How pages are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Smallest for its time
    Zstd,
    /// For readers that know nothing else
    Zlib,
    /// Fastest
    Snappy,
    /// As fast, for readers that know no snappy
    Lzo,
    /// As it is
    None,
}

/// How the dump is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// Whichever is faster here
    Auto,
    /// Mapped
    Mmap,
    /// By read calls
    Read,
}

/// What to write, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Writing a dump")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch on the command line")]
pub struct Save {
    /// The dump, or several files of a split set, and then the file to write, unless it goes to standard output
    #[arg(value_name = "VMCORE… OUT")]
    pub files: Vec<PathBuf>,

    /// In place of a dump, the file of a guest's memory, and where it is in the guest
    #[arg(long, value_name = "FILE[@ADDRESS[+SIZE][:OFFSET]]", conflicts_with_all = ["rearrange", "reassemble"])]
    pub ram: Vec<Part>,
    /// Control socket (QMP) of the guest, which runs: it stands still while its memory is scanned, and not while it is copied
    #[arg(long, value_name = "SOCKET", requires = "ram", conflicts_with_all = ["verify", "dump_dmesg", "generate", "mem_usage"])]
    pub qmp: Option<PathBuf>,

    /// What to leave out, a sum: 1 zero pages, 2 page cache, 4 page cache with private data, 8 data of processes, 16 free
    /// pages; with several, the next is tried where the disk is full
    #[arg(
        short = 'd', long, value_name = "LEVELS", value_delimiter = ',', default_value = "0", value_parser = level
    )]
    pub level: Vec<Level>,

    /// Keep next to nothing of the memory map where it speaks of dropped pages only; readers find records all the same
    #[arg(short = 'e', long, conflicts_with = "elf")]
    pub exclude_vmemmap: bool,
    /// How pages are compressed [default: zstd]
    #[arg(long, value_name = "HOW", value_enum)]
    pub compress: Option<Compression>,
    /// How hard: zlib 1 to 9, zstd -7 to 19 [default: 1 and -1; 3 in archives]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub effort: Option<i32>,
    /// As --compress zlib
    #[arg(short = 'c', conflicts_with = "compress")]
    pub zlib: bool,
    /// As --compress lzo
    #[arg(short = 'l', conflicts_with = "compress")]
    pub lzo: bool,
    /// As --compress snappy
    #[arg(short = 'p', conflicts_with = "compress")]
    pub snappy: bool,
    /// As --compress zstd
    #[arg(short = 'z', conflicts_with = "compress")]
    pub zstd: bool,

    /// Write ELF, which has no compression
    #[arg(short = 'E', long)]
    pub elf: bool,
    /// Write flattened to standard output, for a pipe
    #[arg(short = 'F', long, conflicts_with_all = ["json", "verify"])]
    pub flattened: bool,
    /// Write an archive: smaller, only for this program to read; without a file to write, to standard output
    #[arg(long, conflicts_with_all = ["compress", "zlib", "lzo", "snappy", "elf", "flattened", "split", "rearrange"])]
    pub archive: bool,
    /// Turn a flattened dump on standard input into the file it stands for
    #[arg(short = 'R', long)]
    pub rearrange: bool,
    /// Write several files, each with a part of the pages: all names but the first are such files
    #[arg(long, conflicts_with_all = ["elf", "flattened", "reassemble"])]
    pub split: bool,
    /// Put the files of a split set together: the last name is the new file
    #[arg(long)]
    pub reassemble: bool,
    /// Overwrite a file that exists
    #[arg(short = 'f', long)]
    pub force: bool,
    /// Stop before the file is larger; what was written can be used
    #[arg(short = 'L', long, value_name = "SIZE", value_parser = bytes, conflicts_with = "elf")]
    pub size_limit: Option<u64>,

    /// Text of the VMCOREINFO note, for a dump that lacks it
    #[arg(short = 'i', long, value_name = "FILE")]
    pub vmcoreinfo: Option<PathBuf>,
    /// As with makedumpfile; without effect
    #[arg(short = 'D', hide = true)]
    pub debug: bool,
    /// Write a VMCOREINFO text to the file: out of the vmlinux that -x names, or the note of a dump
    #[arg(short = 'g', long, value_name = "FILE")]
    pub generate: Option<PathBuf>,
    /// Erase the data that this file names, in the language of makedumpfile.conf(5); needs -x
    #[arg(
        long, alias = "config", value_name = "FILE", requires = "vmlinux",
        conflicts_with_all = ["rearrange", "dump_dmesg", "generate", "mem_usage"]
    )]
    pub erase: Option<PathBuf>,
    /// The kernel's vmlinux; only --generate and --erase need it
    #[arg(short = 'x', long, value_name = "VMLINUX")]
    pub vmlinux: Option<PathBuf>,

    /// How the dump is read
    #[arg(long, value_enum, default_value_t = Access::Auto)]
    pub io: Access,
    /// As --io read
    #[arg(long, conflicts_with = "io")]
    pub non_mmap: bool,
    /// Threads at the same time [default: one for each processor]
    #[arg(long, alias = "num-threads", value_name = "N", value_parser = value_parser!(u16).range(0..=1024))]
    pub threads: Option<u16>,
    /// Memory to stay within
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = bytes)]
    pub memory: u64,
    /// As --memory, in KiB; the memory map is gone through once whatever it is
    #[arg(long, value_name = "KIB", hide = true)]
    pub cyclic_buffer: Option<u64>,
    /// Folder for what does not fit into the memory
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,

    /// Write the kernel's log to the file
    #[arg(long)]
    pub dump_dmesg: bool,
    /// Count pages by what they were used for: as `marvin-dump usage`
    #[arg(long)]
    pub mem_usage: bool,
    /// Do everything but write
    #[arg(long, conflicts_with_all = ["rearrange", "generate", "dump_dmesg"])]
    pub dry_run: bool,
    /// Read what was written again, and compare
    #[arg(long)]
    pub verify: bool,
    /// Say how many pages of which kind were left out
    #[arg(long)]
    pub show_stats: bool,
    /// Say it as JSON, on standard output
    #[arg(long)]
    pub json: bool,
    /// What is said, a sum: 1 progress, 2 common, 4 errors, 8 debugging, 16 report
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u8).range(0..=31))]
    pub message_level: u8,
}

pub(crate) fn level(text: &str) -> Result<Level, String> {
    text.parse().ok().and_then(Level::new).ok_or_else(|| "levels are 0 to 31".to_owned())
}

/// Reads a number of bytes: `64M`.
fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "a size is a number of bytes, or of K, M or G: 64M".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::Arguments;

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn examples_are_understood() {
        for line in super::EXAMPLES.lines().filter_map(|line| line.trim().strip_prefix("marvin-dump ")) {
            let words = line.split(" | ").next().unwrap_or_default();
            let parsed = Arguments::try_parse_from(std::iter::once("marvin-dump").chain(words.split(' ')));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn habits_of_makedumpfile_are_understood() {
        for line in [
            "-d 31 -z /proc/vmcore out",
            "-c -d31 /proc/vmcore out",
            "-F -p --message-level 7 -D -d 31 /proc/vmcore",
            "--split -d 17 in a b c",
            "--reassemble a b c out",
            "-R out",
            "--dump-dmesg in out",
            "-E -d 1,31 -f in out",
            "-L 1G --cyclic-buffer 1024 --non-mmap --work-dir / --num-threads 2 --show-stats --dry-run in out",
            "-i info -x vmlinux -d 31 in out",
            "-e -d 31 --work-dir / in out",
            "-g info -x vmlinux",
            "-d 31 --config makedumpfile.conf -x vmlinux in out",
            "--mem-usage /proc/kcore",
            "-f --mem-usage --message-level 31 /proc/kcore",
        ] {
            let parsed = Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn what_cannot_be_done_together_is_told() {
        for line in [
            "-E -L 2M in out",
            "-R --erase a -x b out",
            "-F --json in",
            "-F --verify in",
            "--dry-run -R out",
            "--dry-run --dump-dmesg in out",
            "--split --reassemble a b c",
            "--mem-usage --qmp s --ram r",
        ] {
            let parsed = Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(parsed.unwrap_err().to_string().contains("cannot be used with"), "{line}");
        }
    }

    #[test]
    fn wrong_numbers_are_told() {
        for (line, told) in [("-d 32 in out", "levels are 0 to 31"), ("--memory 1T in out", "a size is a number")] {
            let parsed = Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(parsed.unwrap_err().to_string().contains(told), "{line}");
        }
    }
}
