//! Writes a dump.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use vmcore::live::{self, Guest, PATIENCE, Stopped};
use vmcore::memory_file::{self, Part};
use vmcore::{
    Codec, Compressor, Cut, Dump, DumpError, Erasure, Fault, FileSink, Filter, Flattened, Io,
    Level, Log, LogPart, Overwrite, Plan, Progress, Reader, Sink, Style, Vmlinux, Watched, Work,
    Written, names, vmcoreinfo, write_elf, write_kdump,
};

use crate::arguments::{Access, Compression, Look, Save};
use crate::info::report_missing;
use crate::limits::{self, Share};
use crate::progress_printer::{ProgressPrinter, Screen, locked};
use crate::report::{self, Facts, Report};
use crate::{Exit, Host, files, usage};

/// Executes the options for writing a dump.
pub(crate) fn run(wish: &Save, screen: Screen, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    if wish.check_params {
        // They were understood.
        return Ok(Exit::Fine);
    }
    if wish.rearrange {
        return rearrange(wish, host);
    }
    if wish.dump_dmesg {
        return dmesg(wish, host);
    }
    if let Some(path) = &wish.generate {
        return generate(wish, path);
    }
    if wish.mem_usage {
        if wish.files.is_empty() && wish.ram.is_empty() {
            return Err(DumpError::Usage(
                "--mem-usage needs a dump, or /proc/kcore".to_owned(),
            ));
        }
        let look = Look {
            files: wish.files.clone(),
            ram: wish.ram.clone(),
            json: wish.json,
            vmcoreinfo: wish.vmcoreinfo.clone(),
        };
        return usage::run(
            &look,
            if wish.message_level & 1 == 0 {
                Screen::Off
            } else {
                screen
            },
            host,
        );
    }
    let task = Task::new(wish, screen)?;
    let (guest, dump) = open_input(&task, host)?;
    let task = Task {
        guest: Mutex::new(guest),
        // Again: the dump's headers and notes are in memory now.
        work: Task::work(wish, &task.output)?,
        ..task
    };
    if let (true, Some(pages)) = (wish.reassemble, dump.missing()) {
        return Err(DumpError::Usage(format!(
            "pages {:#x} to {:#x} are in none of these files: name all files of the set, or omit --reassemble to write the rest",
            pages.start, pages.end
        )));
    }
    let mut levels = wish.level.iter().peekable();
    while let Some(level) = levels.next() {
        match task.save(&dump, *level, host) {
            Err(DumpError::NoSpace { path, offset }) if levels.peek().is_some() => {
                let path = path.display();
                task.make_room()?;
                host.say(&format!(
                    "no space left for {path} at offset {offset:#x}: trying the next level"
                ));
            }
            result => return result,
        }
    }
    Err(DumpError::Usage("no level given".to_owned()))
}

/// Opens the input, and connects to the guest if its memory is the input.
fn open_input(task: &Task<'_>, host: &mut Host<'_>) -> Result<(Option<Guest>, Dump), DumpError> {
    let wish = task.wish;
    let mut guest = wish
        .qmp
        .as_deref()
        .map(|socket| Guest::connect(socket, PATIENCE, host.clock))
        .transpose()?;
    let mut dump = open(&task.input, &wish.ram, wish.vmcoreinfo.as_deref())?;
    if let Some(guest) = &mut guest {
        guest.check_memory(host.clock)?;
        if guest.runs(host.clock)? {
            if wish.erase.is_some() {
                // Data that moves between scan and copy would escape the erasure.
                return Err(DumpError::Usage(
                    "--erase: data may move while a running guest's pages are copied: pause the guest first (QMP `stop`)".to_owned(),
                ));
            }
            dump = live::mark_live(dump);
        } else {
            host.say("the guest is already paused, and stays paused");
        }
    }
    if let Some(path) = &wish.erase {
        let erasure = erasure(path, &dump, wish)?;
        for warning in &erasure.warnings {
            host.say(&format!("warning: {}: {warning}", path.display()));
        }
        dump = dump.with_erased(erasure);
    }
    Ok((guest, dump))
}

/// Turns a flattened stream into a file.
fn rearrange(wish: &Save, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let [path] = wish.files.as_slice() else {
        return Err(DumpError::Usage(
            "--rearrange reads standard input: name only the file to write".to_owned(),
        ));
    };
    files::check_stream(path)?;
    // The file that was there before is kept on failure, and half a dump does not replace it.
    let cut = match path.exists() {
        true => Cut::Refused,
        false => Cut::Kept,
    };
    let sink = FileSink::replacing(path, overwrite(wish))?;
    let done = vmcore::rearrange(host.input, &sink, cut)?;
    if wish.message_level & 2 != 0 {
        host.say(&format!("{} written", report::size(done.bytes)));
    }
    let Some(error) = done.cut else {
        return Ok(Exit::Fine);
    };
    host.say(&format!("warning: the dump is not complete: {error}"));
    Ok(Exit::Incomplete)
}

/// Finds the data to erase.
fn erasure(path: &Path, dump: &Dump, wish: &Save) -> Result<Erasure, DumpError> {
    let text = files::text(path)?;
    let Some(vmlinux) = &wish.vmlinux else {
        return Err(DumpError::Usage(
            "--erase needs the kernel's vmlinux: name it with -x".to_owned(),
        ));
    };
    Erasure::find(
        path,
        &text,
        &Vmlinux::open(vmlinux)?,
        &mut Reader::new(dump, Io::Read),
    )
}

/// Writes a VMCOREINFO text to a file.
fn generate(wish: &Save, path: &Path) -> Result<Exit, DumpError> {
    let is_dump = !wish.files.is_empty() || !wish.ram.is_empty();
    let text = match (&wish.vmlinux, is_dump) {
        (Some(vmlinux), false) => {
            files::check(&[vmlinux], &[path.to_owned()])?;
            vmcoreinfo::of_vmlinux(&Vmlinux::open(vmlinux)?)?.into_bytes()
        }
        (None, true) => {
            files::check(&inputs(&wish.files, wish), &[path.to_owned()])?;
            vmcoreinfo::of_dump(&open(&wish.files, &wish.ram, wish.vmcoreinfo.as_deref())?)?
        }
        _ => {
            return Err(DumpError::Usage(
                "--generate FILE needs either -x VMLINUX or a dump to take the text from"
                    .to_owned(),
            ));
        }
    };
    let sink = FileSink::create(path, overwrite(wish))?;
    sink.write(0, &text)?;
    sink.finish(text.len() as u64)?;
    Ok(Exit::Fine)
}

/// Writes the kernel log to a file.
fn dmesg(wish: &Save, host: &mut Host<'_>) -> Result<Exit, DumpError> {
    let (input, path) = match wish.files.as_slice() {
        [input, path] if wish.ram.is_empty() => (std::slice::from_ref(input), path),
        [path] if !wish.ram.is_empty() => (&[][..], path),
        _ => {
            return Err(DumpError::Usage(
                "--dump-dmesg needs a dump and the file to write".to_owned(),
            ));
        }
    };
    files::check(&inputs(input, wish), std::slice::from_ref(path))?;
    let dump = open(input, &wish.ram, wish.vmcoreinfo.as_deref())?;
    let part = if wish.partial_dmesg {
        LogPart::SinceClear
    } else {
        LogPart::All
    };
    let Log { text, missing } = Log::read(&mut Reader::new(&dump, Io::Read), part)?;
    let sink = FileSink::create(path, overwrite(wish))?;
    sink.write(0, text.as_bytes())?;
    sink.finish(text.len() as u64)?;
    Ok(report_missing(&missing, host))
}

fn overwrite(wish: &Save) -> Overwrite {
    if wish.force {
        Overwrite::Yes
    } else {
        Overwrite::No
    }
}

/// Returns all input files.
fn inputs<'w>(dump: &'w [PathBuf], wish: &'w Save) -> Vec<&'w Path> {
    let ram = wish.ram.iter().map(|part| part.path.as_path());
    let others = [&wish.vmcoreinfo, &wish.vmlinux, &wish.erase]
        .into_iter()
        .flatten();
    dump.iter()
        .chain(others)
        .map(PathBuf::as_path)
        .chain(ram)
        .collect()
}

/// Opens a dump or a guest's memory, with the given note, or with one found in memory if it has
/// none.
pub(crate) fn open(
    files: &[PathBuf],
    ram: &[Part],
    note: Option<&Path>,
) -> Result<Dump, DumpError> {
    if !ram.is_empty() {
        let note = note.map(files::note).transpose()?;
        return memory_file::open(ram, note.as_deref());
    }
    let dump = Dump::open(files)?;
    match note {
        None if dump.info().is_empty() => Ok(dump.with_found_info()),
        None => Ok(dump),
        Some(path) => Ok(dump.with_given_info(&files::note(path)?)),
    }
}

struct Task<'w> {
    wish: &'w Save,
    input: Vec<PathBuf>,
    /// Empty for standard output.
    output: Vec<PathBuf>,
    codec: Codec,
    work: Work,
    /// Files created for this level or an earlier one.
    made: Mutex<Vec<PathBuf>>,
    /// The destination of progress.
    screen: Screen,
    /// The guest whose memory is the input.
    guest: Mutex<Option<Guest>>,
}

/// The result of scanning the memory map.
struct Scan<'d> {
    filter: Option<Filter>,
    plan: Plan<'d>,
    /// The level that was possible.
    level: Level,
    /// Which pages of the wanted level are not excluded, and why.
    shortfalls: Vec<String>,
}

impl<'w> Task<'w> {
    fn new(wish: &'w Save, screen: Screen) -> Result<Self, DumpError> {
        let (input, output) = match (wish.files.len(), wish.flattened, wish.dry_run) {
            _ if !wish.ram.is_empty() => (Vec::new(), Self::outputs(wish)?),
            (0, ..) => {
                let what =
                    "name the dump to read, and the file to write: marvin-dump -d 31 VMCORE OUT";
                return Err(DumpError::Usage(what.to_owned()));
            }
            (1, true, _) | (1, _, true) => (wish.files.clone(), Vec::new()),
            (1, ..) => {
                let what = "name the file to write after the dump, or use --flattened to write to standard output";
                return Err(DumpError::Usage(what.to_owned()));
            }
            (2.., ..) if wish.split => (wish.files[..1].to_vec(), wish.files[1..].to_vec()),
            (2.., true, _) => {
                let what = "--flattened writes to standard output: name the dump only";
                return Err(DumpError::Usage(what.to_owned()));
            }
            (count, ..) => {
                let (input, output) = wish.files.split_at(count - 1);
                (input.to_vec(), output.to_vec())
            }
        };
        files::check(&inputs(&input, wish), &output)?;
        // Before a file is touched, and before long work.
        let codec = codec(wish);
        drop(Compressor::new(codec, wish.effort, 4096)?);
        let existing = output
            .iter()
            .find(|path| std::fs::metadata(path).is_ok_and(|data| data.is_file()));
        if let (false, Some(path)) = (wish.force, existing) {
            return Err(DumpError::Exists(path.clone()));
        }
        let work = Self::work(wish, &output)?;
        let screen = if wish.message_level & 1 == 0 {
            Screen::Off
        } else {
            screen
        };
        Ok(Self {
            wish,
            input,
            output,
            codec,
            work,
            screen,
            made: Mutex::default(),
            guest: Mutex::default(),
        })
    }

    /// Returns how to work, within what is left of the address space.
    fn work(wish: &Save, output: &[PathBuf]) -> Result<Work, DumpError> {
        let threads = match wish.threads {
            Some(threads) if threads > 0 => usize::from(threads),
            _ => std::thread::available_parallelism().map_or(1, usize::from),
        };
        let memory = wish
            .cyclic_buffer
            .map_or(wish.memory, |kib| kib.saturating_mul(1024).max(wish.memory));
        let wanted = Share { memory, threads };
        let Share { memory, threads } = limits::fit(wanted, limits::room())?;
        let read = wish.non_mmap || wish.io == Access::Read;
        let io = if read {
            Io::Read
        } else {
            Io::within(memory, threads)
        };
        // Data that exceeds the memory limit goes beside the output, which needs more space than
        // that.
        let beside = output
            .first()
            .and_then(|path| path.parent())
            .map(|folder| folder.join(""));
        let folder = wish
            .work_dir
            .clone()
            .or(beside)
            .or_else(|| wish.dry_run.then(std::env::temp_dir));
        Ok(Work {
            threads,
            io,
            memory,
            folder,
        })
    }

    /// Returns the output files if there is no input file.
    fn outputs(wish: &Save) -> Result<Vec<PathBuf>, DumpError> {
        let stream = wish.flattened || wish.dry_run;
        let mistake = match wish.files.len() {
            0 if !stream => "name the file to write: marvin-dump --ram FILE -d 31 OUT",
            1.. if wish.flattened => {
                "--flattened writes to standard output: name no file beside that of --ram"
            }
            2.. if !wish.split => "--ram is the only input: name only the file to write",
            _ => return Ok(wish.files.clone()),
        };
        Err(DumpError::Usage(mistake.to_owned()))
    }

    fn save(&self, dump: &Dump, level: Level, host: &mut Host<'_>) -> Result<Exit, DumpError> {
        let start = (host.clock)();
        let mut reader = Reader::new(dump, self.work.io);
        let (scan, stood_still) = self.scan(&mut reader, level, host)?;
        let Scan {
            filter,
            plan,
            level,
            shortfalls,
        } = scan;
        if plan.memory() == 0 {
            return Err(DumpError::malformed(dump.path(), 0, "it has no memory"));
        }
        let filtered = (host.clock)();
        let codec = self.codec_for(dump);
        let style = Style {
            codec,
            effort: self.wish.effort,
            level,
            part: None,
            limit: self.wish.size_limit,
            names: names(&mut reader),
        };
        let progress = Progress::default();
        progress.expect(plan.kept_count() * dump.page_size());
        let answers = &mut *host.answers;
        let written = self.progress_printer(host.messages, host.clock).during(
            "writing",
            &progress,
            || self.write(&plan, &style, answers, &progress),
        )?;
        let mut warnings = warnings(dump, filter.as_ref(), &plan, &written);
        if self.wish.exclude_vmemmap && !shortfalls.is_empty() {
            warnings.push("--exclude-vmemmap is left out".to_owned());
        }
        warnings.extend(shortfalls);
        for warning in &warnings {
            host.say(&format!("warning: {warning}"));
        }
        let complete = written.unreadable == 0 && !written.full && !dump.incomplete();
        let report = Report::new(Facts {
            level,
            codec,
            page: dump.page_size(),
            plan: &plan,
            written: &written,
            complete,
            filter: filtered - start,
            write: (host.clock)() - filtered,
            stood_still,
            warnings,
        });
        if self.wish.json {
            host.answer(&report.json())?;
        }
        if self.wish.show_stats || self.wish.message_level & 16 != 0 {
            host.say(report.table().trim_end());
        } else if self.wish.message_level & 2 != 0 {
            host.say(&report.line());
        }
        if self.wish.verify && written.full {
            host.say("not verified: the size limit cut pages");
        } else if self.wish.verify && !self.output.is_empty() && !self.wish.dry_run {
            let verified = self.verify(&plan, host)?;
            if verified != Exit::Fine {
                return Ok(verified);
            }
        }
        Ok(if complete {
            Exit::Fine
        } else {
            Exit::Incomplete
        })
    }

    /// Returns the compression: that of the input's files if they are only joined, and the user
    /// names none.
    fn codec_for(&self, dump: &Dump) -> Codec {
        let wish = self.wish;
        let is_named = wish.compress.is_some() || wish.zlib || wish.lzo || wish.snappy || wish.zstd;
        let of_input = (wish.reassemble && !is_named)
            .then(|| dump.codec())
            .flatten();
        of_input.unwrap_or(self.codec)
    }

    /// Decides which pages to keep; pauses a running guest meanwhile, and returns for how long.
    fn scan<'d>(
        &self,
        reader: &mut Reader<'d>,
        level: Level,
        host: &mut Host<'_>,
    ) -> Result<(Scan<'d>, Option<Duration>), DumpError> {
        let mut guest = locked(&self.guest);
        let running = guest.as_mut().filter(|_| live::is_live(reader.dump()));
        let stopped = running.map(|guest| guest.stop(host.clock)).transpose()?;
        let scan = self.filter(reader, level, host);
        // A guest that cannot continue is a worse failure than that of the scan.
        let stood_still = stopped.map(Stopped::go_on).transpose()?;
        Ok((scan?, stood_still))
    }

    fn filter<'d>(
        &self,
        reader: &mut Reader<'d>,
        level: Level,
        host: &mut Host<'_>,
    ) -> Result<Scan<'d>, DumpError> {
        let dump = reader.dump();
        let (filter, level, shortfalls) = self.find_filter(reader, level)?;
        let mut work = self.work.clone();
        if let (Access::Auto, false, true, Some(filter)) =
            (self.wish.io, self.wish.non_mmap, reader.maps(), &filter)
        {
            work.io = Plan::faster(dump, work.io, filter, host.clock)?;
        }
        let progress = Progress::default();
        let plan = self.progress_printer(host.messages, host.clock).during(
            "filtering",
            &progress,
            || Plan::make_watched(dump, filter.as_ref(), &work, &progress),
        )?;
        let plan = match (&filter, self.wish.exclude_vmemmap) {
            (Some(filter), true) if filter.shortfalls().is_empty() => {
                plan.with_thin_map(reader, filter)?
            }
            _ => plan,
        };
        let plan = plan.with_mark(&shortfalls);
        Ok(Scan {
            filter,
            plan,
            level,
            shortfalls,
        })
    }

    /// Finds the filter for a level, and what it does not exclude. A dump is written in any case:
    /// the panic may not come again, but a running guest can be dumped again.
    fn find_filter(
        &self,
        reader: &mut Reader<'_>,
        level: Level,
    ) -> Result<(Option<Filter>, Level, Vec<String>), DumpError> {
        match Filter::for_level(reader, level) {
            Ok(Some(filter)) => {
                let shortfalls = filter
                    .shortfalls()
                    .iter()
                    .map(ToString::to_string)
                    .collect();
                let level = filter.level();
                Ok((Some(filter), level, shortfalls))
            }
            Ok(None) => Ok((None, level, Vec::new())),
            Err(error) if live::is_live(reader.dump()) || error.fault() == Fault::Lab => Err(error),
            Err(error) => {
                let why = format!("no page is excluded by its kind: {error}");
                Ok((None, level.without_records(), vec![why]))
            }
        }
    }

    /// Returns a progress printer.
    fn progress_printer<'h>(
        &self,
        messages: &'h mut (dyn Write + Send),
        clock: &'h dyn Fn() -> Duration,
    ) -> ProgressPrinter<'h> {
        ProgressPrinter {
            screen: self.screen,
            messages,
            clock,
        }
    }

    fn write(
        &self,
        plan: &Plan<'_>,
        style: &Style,
        answers: &mut (dyn Write + Send),
        progress: &Progress,
    ) -> Result<Written, DumpError> {
        if self.wish.dry_run {
            return Ok(Written {
                pages: plan.kept_count(),
                ..Written::default()
            });
        }
        if self.wish.split {
            return self.split(plan, style, progress);
        }
        let sink: Box<dyn Sink + '_> = match self.output.first() {
            None => Box::new(Flattened::begin(answers)?),
            Some(path) => self.create(path)?,
        };
        let sink = Watched { sink, progress };
        if self.wish.elf {
            return write_elf(plan, &self.work, &sink);
        }
        write_kdump(plan, style, &self.work, &sink)
    }

    /// Empties the files of the earlier level: the bitmaps of the next one may need the same disk.
    fn make_room(&self) -> Result<(), DumpError> {
        locked(&self.made)
            .iter()
            .try_for_each(|path| FileSink::create(path, Overwrite::Yes).map(drop))
    }

    /// Creates an output file; may overwrite those of an earlier level that ran out of space.
    fn create(&self, path: &Path) -> Result<Box<dyn Sink>, DumpError> {
        let mut made = locked(&self.made);
        if made.iter().any(|other| other == path) {
            return Ok(Box::new(FileSink::create(path, Overwrite::Yes)?));
        }
        let sink = FileSink::create(path, overwrite(self.wish))?;
        made.push(path.to_owned());
        Ok(Box::new(sink))
    }

    /// Writes several files with about the same number of pages each.
    fn split(
        &self,
        plan: &Plan<'_>,
        style: &Style,
        progress: &Progress,
    ) -> Result<Written, DumpError> {
        let count = self.output.len() as u64;
        let mut all = Written::default();
        let mut start = 0;
        for (n, path) in (1..).zip(&self.output) {
            let end = if n == count {
                plan.dump().pages()
            } else {
                plan.page_at(plan.kept_count() * n / count)?
            };
            let style = Style {
                part: Some(start..end),
                ..style.clone()
            };
            let sink = self.create(path)?;
            let written = write_kdump(plan, &style, &self.work, &Watched { sink, progress })?;
            all.add(written);
            start = end;
        }
        Ok(all)
    }

    /// Reads the written dump back and compares.
    fn verify(&self, plan: &Plan<'_>, host: &mut Host<'_>) -> Result<Exit, DumpError> {
        let copy = Dump::open(&self.output)?;
        let differences = vmcore::verify(plan, &copy, &self.work)?;
        match differences.first {
            None => {
                host.say(&format!("verified: {} pages are equal", plan.kept_count()));
                Ok(Exit::Fine)
            }
            Some(first) => {
                let count = differences.pages;
                host.say(&format!(
                    "error: {count} pages differ from the input, first page {first:#x}"
                ));
                Ok(Exit::Differs)
            }
        }
    }
}

fn codec(wish: &Save) -> Codec {
    match wish.compress {
        _ if wish.zlib => Codec::Zlib,
        _ if wish.lzo => Codec::Lzo,
        _ if wish.snappy => Codec::Snappy,
        None if wish.is_raw => Codec::None,
        None | Some(Compression::Zstd) => Codec::Zstd,
        Some(Compression::Zlib) => Codec::Zlib,
        Some(Compression::Snappy) => Codec::Snappy,
        Some(Compression::Lzo) => Codec::Lzo,
        Some(Compression::None) => Codec::None,
    }
}

/// Collects warnings about a written dump.
fn warnings(
    dump: &Dump,
    filter: Option<&Filter>,
    plan: &Plan<'_>,
    written: &Written,
) -> Vec<String> {
    let mut all = Vec::new();
    if dump.incomplete() {
        all.push("the input is incomplete, and so is the result".to_owned());
    }
    if dump.are_headers_damaged() {
        let what = "the input's headers are damaged: their checksum is wrong; copy the file again";
        all.push(what.to_owned());
    }
    if live::is_live(dump) {
        all.push(
            "the guest ran during the copy: pages are not of one moment, and the dump is marked so"
                .to_owned(),
        );
    }
    if filter.is_none() {
        all.push("broken and offline pages are unknown: none are excluded".to_owned());
    }
    if filter.is_some_and(|filter| !filter.knows_reserved()) {
        all.push(
            "neither note nor BTF has PG_reserved: only pages of the kernel image are certain to be kept".to_owned(),
        );
    }
    if let Some(why) = filter.and_then(Filter::why_without_lists) {
        all.push(format!(
            "free pages on per-CPU lists are not recognised, and kept: {why}"
        ));
    }
    if let Some(why) = &plan.counts().why {
        all.push(format!(
            "{} pages are kept because their records cannot be read: {why}",
            plan.counts().unknown
        ));
    }
    if let Some(why) = &written.why {
        all.push(format!(
            "{} pages cannot be read and are missing: {why}",
            written.unreadable
        ));
    }
    if written.full {
        all.push("size limit reached: the last pages are missing".to_owned());
    }
    all
}
