//! The command line: Marvin's own long options, and makedumpfile's options that scripts use, with
//! the same meaning.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use vmcore::Level;
use vmcore::memory_file::Part;

use crate::EXIT_CODES;

const EXAMPLES: &str = "Examples:
  marvin-dump --level 31 /proc/vmcore /var/crash/vmcore
  marvin-dump -d 17,31 --compress snappy --force vmcore smaller
  marvin-dump -d 31 --flattened /proc/vmcore | ssh host 'cat > vmcore.flat'
  marvin-dump info smaller

";

/// Filter and compress the memory dump of a crashed kernel
///
/// Reads /proc/vmcore, ELF vmcores (also QEMU's) and kdump-compressed files, flattened or not;
/// excludes pages by --level; writes a file that crash, drgn and makedumpfile read.
#[derive(Debug, Parser)]
#[command(
    name = "marvin-dump", version, disable_version_flag = true, max_term_width = 100,
    args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true,
    after_help = format!("{EXAMPLES}{EXIT_CODES}")
)]
pub struct Arguments {
    /// Command other than writing a dump
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options for writing a dump
    #[command(flatten)]
    pub save: Save,
    /// Print the version
    #[arg(short = 'v', long, short_alias = 'V', action = clap::ArgAction::Version)]
    version: Option<bool>,
}

/// Commands beside writing a dump.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a dump's format, kernel and completeness
    Info(Look),
    /// Print the kernel log
    Dmesg(Look),
    /// Read every page of a dump, and verify all checksums that it has
    Check(Look),
    /// Count pages by use, in a dump or in the running kernel's /proc/kcore
    Usage(Look),
    /// Estimate the size of the result for each level and compression, from a sample
    Estimate(Look),
}

/// A dump to read.
#[derive(Debug, Args)]
pub struct Look {
    /// Dump; several files for a split set
    #[arg(required_unless_present = "ram", value_name = "VMCORE")]
    pub files: Vec<PathBuf>,
    /// Read a file with guest memory instead of a dump, mapped at ADDRESS in the guest
    #[arg(
        long,
        value_name = "FILE[@ADDRESS[+SIZE][:OFFSET]]",
        conflicts_with = "files"
    )]
    pub ram: Vec<Part>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// File with the text of the VMCOREINFO note, for a dump without one
    #[arg(short = 'i', long, value_name = "FILE")]
    pub vmcoreinfo: Option<PathBuf>,
}

/// Page compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Compression {
    /// Best ratio for its time
    Zstd,
    /// For readers that support nothing else
    Zlib,
    /// Fastest
    Snappy,
    /// As fast, for readers without snappy
    Lzo,
    /// No compression
    None,
}

/// Method of reading the dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Access {
    /// The faster one on this host
    Auto,
    /// mmap(2)
    Mmap,
    /// read(2)
    Read,
}

/// What to write, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Writing a dump")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch on the command line"
)]
pub struct Save {
    /// Dump, or files of a split set, followed by the file to write unless the result goes to
    /// standard output
    #[arg(value_name = "VMCORE… OUT")]
    pub files: Vec<PathBuf>,

    /// Read a file with guest memory instead of a dump, mapped at ADDRESS in the guest
    #[arg(long, value_name = "FILE[@ADDRESS[+SIZE][:OFFSET]]", conflicts_with_all = ["rearrange", "reassemble"])]
    pub ram: Vec<Part>,
    /// QMP socket of a running guest: it is paused while marvin-dump scans its memory, and runs
    /// during the copy
    #[arg(long, value_name = "SOCKET", requires = "ram", conflicts_with_all = ["verify", "dump_dmesg", "generate", "mem_usage"])]
    pub qmp: Option<PathBuf>,

    /// Pages to exclude, a sum: 1 zero pages, 2 page cache, 4 page cache with private data, 8 user
    /// data, 16 free pages; with several levels, marvin-dump tries the next one when the disk
    /// is full
    #[arg(
        short = 'd', long, value_name = "LEVELS", value_delimiter = ',', default_value = "0", value_parser = level
    )]
    pub level: Vec<Level>,

    /// Shrink the parts of vmemmap that describe only excluded pages; readers still find records
    /// there
    #[arg(short = 'e', long, conflicts_with = "elf")]
    pub exclude_vmemmap: bool,
    /// Whether pages are stored as they are unless a compression is named: as makedumpfile does
    #[arg(skip)]
    pub is_raw: bool,
    /// Page compression [default: zstd]
    #[arg(long, value_name = "HOW", value_enum)]
    pub compress: Option<Compression>,
    /// Compression level: zlib 1 to 9, zstd -7 to 19 [default: 1]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub effort: Option<i32>,
    /// Same as --compress zlib
    #[arg(short = 'c', conflicts_with = "compress")]
    pub zlib: bool,
    /// Same as --compress lzo
    #[arg(short = 'l', conflicts_with = "compress")]
    pub lzo: bool,
    /// Same as --compress snappy
    #[arg(short = 'p', conflicts_with = "compress")]
    pub snappy: bool,
    /// Same as --compress zstd
    #[arg(short = 'z', conflicts_with = "compress")]
    pub zstd: bool,

    /// Write uncompressed ELF
    #[arg(short = 'E', long)]
    pub elf: bool,
    /// Write the flattened format to standard output, for a pipe
    #[arg(short = 'F', long, conflicts_with_all = ["json", "verify"])]
    pub flattened: bool,
    /// Convert a flattened dump on standard input to a dump file
    #[arg(short = 'R', long)]
    pub rearrange: bool,
    /// Write several files, each with a part of the pages: all names after the first
    #[arg(long, conflicts_with_all = ["elf", "flattened", "reassemble"])]
    pub split: bool,
    /// Join the files of a split set into the file named last
    #[arg(long)]
    pub reassemble: bool,
    /// Overwrite an existing file
    #[arg(short = 'f', long)]
    pub force: bool,
    /// Stop before the file exceeds SIZE; the dump is incomplete then, and says so
    #[arg(short = 'L', long, value_name = "SIZE", value_parser = bytes, conflicts_with = "elf")]
    pub size_limit: Option<u64>,

    /// File with the text of the VMCOREINFO note, for a dump without one
    #[arg(short = 'i', long, value_name = "FILE")]
    pub vmcoreinfo: Option<PathBuf>,
    /// Ignored, for makedumpfile compatibility
    #[arg(short = 'D', hide = true)]
    pub debug: bool,
    /// Write the text of VMCOREINFO to FILE, from the vmlinux of -x or the note of a dump
    #[arg(short = 'g', long, value_name = "FILE")]
    pub generate: Option<PathBuf>,
    /// Erase the data that FILE lists in the syntax of makedumpfile.conf(5); needs -x
    #[arg(
        long, alias = "config", value_name = "FILE", requires = "vmlinux",
        conflicts_with_all = ["rearrange", "dump_dmesg", "generate", "mem_usage"]
    )]
    pub erase: Option<PathBuf>,
    /// vmlinux of the kernel; only --generate and --erase need it
    #[arg(short = 'x', long, value_name = "VMLINUX")]
    pub vmlinux: Option<PathBuf>,

    /// Read method
    #[arg(long, value_enum, default_value_t = Access::Auto)]
    pub io: Access,
    /// Same as --io read
    #[arg(long, conflicts_with = "io")]
    pub non_mmap: bool,
    /// Number of threads [default: one per processor]
    #[arg(long, alias = "num-threads", value_name = "N", value_parser = value_parser!(u16).range(0..=1024))]
    pub threads: Option<u16>,
    /// Memory limit
    #[arg(long, value_name = "SIZE", default_value = "64M", value_parser = bytes)]
    pub memory: u64,
    /// Same as --memory, in KiB; marvin-dump scans the memory map once for any value
    #[arg(long, value_name = "KIB", hide = true)]
    pub cyclic_buffer: Option<u64>,
    /// Directory for temporary data that exceeds --memory
    #[arg(long, value_name = "FOLDER")]
    pub work_dir: Option<PathBuf>,

    /// Write the kernel log to a file
    #[arg(long)]
    pub dump_dmesg: bool,
    /// With --dump-dmesg: only what was logged since the log was cleared
    #[arg(long, requires = "dump_dmesg")]
    pub partial_dmesg: bool,
    /// Check the options, and read and write no file
    #[arg(long)]
    pub check_params: bool,
    /// Ignored, for makedumpfile compatibility: parts are equal without it
    #[arg(long, value_name = "KIB", hide = true)]
    pub splitblock_size: Option<u64>,
    /// Ignored, for makedumpfile compatibility: pages are written in large pieces anyway
    #[arg(short = 'b', value_name = "ORDER", hide = true)]
    pub block_order: Option<u8>,
    /// Count pages by use: same as `marvin-dump usage`
    #[arg(long)]
    pub mem_usage: bool,
    /// Do everything except writing
    #[arg(long, conflicts_with_all = ["rearrange", "generate", "dump_dmesg"])]
    pub dry_run: bool,
    /// Read the written dump back and compare
    #[arg(long)]
    pub verify: bool,
    /// Print the number of excluded pages of each kind
    #[arg(long)]
    pub show_stats: bool,
    /// Print the statistics as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Messages to print, a sum: 1 progress, 2 common, 4 errors, 8 debugging, 16 report
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = value_parser!(u8).range(0..=31))]
    pub message_level: u8,
}

pub(crate) fn level(text: &str) -> Result<Level, String> {
    text.parse()
        .ok()
        .and_then(Level::new)
        .ok_or_else(|| "levels are 0 to 31".to_owned())
}

/// Parses a number of bytes: `64M`.
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
        for line in super::EXAMPLES
            .lines()
            .filter_map(|line| line.trim().strip_prefix("marvin-dump "))
        {
            let words = line.split(" | ").next().unwrap_or_default();
            let parsed =
                Arguments::try_parse_from(std::iter::once("marvin-dump").chain(words.split(' ')));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn makedumpfile_options_are_understood() {
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
            "--check-params -l -d 31 --message-level 1 /proc/vmcore vmcore",
            "--split --splitblock-size 1024 -b 4 -d 31 in a b",
        ] {
            let parsed =
                Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }

    #[test]
    fn conflicting_options_fail_clearly() {
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
            let parsed =
                Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(
                parsed
                    .unwrap_err()
                    .to_string()
                    .contains("cannot be used with"),
                "{line}"
            );
        }
    }

    #[test]
    fn wrong_numbers_fail_clearly() {
        for (line, mistake) in [
            ("-d 32 in out", "levels are 0 to 31"),
            ("--memory 1T in out", "a size is a number"),
        ] {
            let parsed =
                Arguments::try_parse_from(std::iter::once("marvin-dump").chain(line.split(' ')));
            assert!(parsed.unwrap_err().to_string().contains(mistake), "{line}");
        }
    }
}
