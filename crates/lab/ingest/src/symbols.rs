//! The kernel's symbols, from the agent's extract of /proc/kallsyms.
//!
//! A line of the extract is the type, the distance to the line before in hexadecimal, and the name,
//! with the module after a tab: `T1f0 do_sys_open`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use wire::{Frame, Stream};

/// The kernel's symbols by address.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Symbols {
    /// Functions, sorted by address, one each. An unnamed one is the padding before the next
    /// function.
    entries: Vec<(u64, String)>,
    /// Data, sorted by address, one each; none if the kernel lists none (CONFIG_KALLSYMS_ALL).
    data: Vec<(u64, String)>,
    /// Other names that a System.map has for data.
    also: Vec<(u64, String)>,
}

/// What is at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place<'a> {
    /// The symbol before it; empty for the padding before a function.
    pub name: &'a str,
    /// Bytes from the symbol's first.
    pub distance: u64,
    pub is_function: bool,
}

/// Why symbols cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SymbolsError {
    #[error("/proc/kallsyms of the guest is empty: the kernel was built without CONFIG_KALLSYMS")]
    Empty,
    /// All addresses are 0.
    #[error("/proc/kallsyms of the guest hides its addresses (kernel.kptr_restrict)")]
    Hidden,
    /// The file is something else.
    #[error("line {0} of the guest's symbols makes no sense")]
    Malformed(usize),
}

/// Prefixes of the symbols of padding before a function: objtool's (scripts/kallsyms.c) and
/// clang's. Kernels with call depth tracking or FineIBT enter functions there.
const PADDING: [&str; 2] = ["__pfx_", "__cfi_"];
/// Functions that a kernel and its System.map have at the same address, for the map to be its own.
const AGREEING_LEAST: usize = 3;
/// The lowest rank of a name.
const RANK_OF_PADDING: u8 = u8::MAX;

/// Entries of interrupts (arch/x86/include/asm/idtentry.h).
const INTERRUPTS: [&str; 3] = ["asm_sysvec_", COMMON, "asm_spurious_interrupt"];
const COMMON: &str = "asm_common_interrupt";
/// The entries before Linux 5.8, which has none of those (arch/x86/entry/entry_64.S). Later
/// `common_interrupt` is what the entry calls.
const OLD_INTERRUPTS: [&str; 3] = [
    "apic_timer_interrupt",
    "common_interrupt",
    "reschedule_interrupt",
];
const EXCEPTIONS: &str = "asm_exc_";
const SYSTEM_CALL: &str = "entry_SYSCALL_64";
const SWITCH: &str = "__switch_to_asm";
/// The entries of a new task (arch/x86/entry/entry_64.S). Since 3aec4ecb3d1f ("x86: Rewrite
/// ret_from_fork() in C") the first calls a function that has the name of the second.
const FORKS: [&str; 2] = ["ret_from_fork_asm", "ret_from_fork"];

/// Returns the file that a symbols job sends.
#[must_use]
pub fn symbols_text(stream: &Stream) -> String {
    let pieces = stream.frames.iter().filter_map(|frame| match frame {
        Frame::File { bytes, .. } => Some(bytes.as_slice()),
        _ => None,
    });
    String::from_utf8_lossy(&pieces.collect::<Vec<_>>().concat()).into_owned()
}

impl Symbols {
    /// Reads the extract.
    ///
    /// # Errors
    /// If there are no symbols, no addresses, or it is another file.
    pub fn parse(text: &str) -> Result<Self, SymbolsError> {
        let mut all: Vec<(u64, u8, String)> = Vec::new();
        let mut data: Vec<(u64, String)> = Vec::new();
        let mut address = 0_u64;
        for (number, line) in text.lines().enumerate() {
            let malformed = SymbolsError::Malformed(number + 1);
            let (head, name) = line.split_once(' ').ok_or(malformed.clone())?;
            let (kind, distance) = head.split_at_checked(1).ok_or(malformed.clone())?;
            let distance = u64::from_str_radix(distance, 16).map_err(|_| malformed)?;
            address = address.wrapping_add(distance);
            if matches!(kind, "d" | "D" | "b" | "B" | "r" | "R" | "a" | "A") {
                data.push((
                    address,
                    name.chars().filter(|c| !c.is_control()).take(200).collect(),
                ));
            } else if PADDING.iter().any(|start| name.starts_with(start)) {
                all.push((address, RANK_OF_PADDING, String::new()));
            } else {
                let name: String = name
                    .replace('\t', " ")
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(200)
                    .collect();
                all.push((address, rank(kind, &name), name));
            }
        }
        if all.is_empty() {
            return Err(SymbolsError::Empty);
        }
        if all.iter().all(|(address, ..)| *address == 0) {
            return Err(SymbolsError::Hidden);
        }
        all.sort();
        all.dedup_by_key(|(address, ..)| *address);
        let mut entries: Vec<(u64, String)> = all
            .into_iter()
            .map(|(address, _, name)| (address, name))
            .collect();
        // Of padding in pieces the first is enough; `at` would pass over each of the others.
        entries.dedup_by(|(_, name), (_, before)| name.is_empty() && before.is_empty());
        while entries.pop_if(|(_, name)| name.is_empty()).is_some() {}
        data.sort();
        data.dedup_by_key(|(address, _)| *address);
        Ok(Self {
            entries,
            data,
            also: Vec::new(),
        })
    }

    /// Adds the data that a kernel's System.map names, as /proc/kallsyms lists functions alone
    /// without CONFIG_KALLSYMS_ALL. A map whose functions are elsewhere, as those of a kernel that
    /// moved itself or of another build, adds nothing.
    pub fn add_data_of_map(&mut self, map: &str) {
        let mut addresses = BTreeMap::new();
        for (address, name) in &self.entries {
            addresses.insert(name.as_str(), *address);
        }
        let mut data = Vec::new();
        let mut agreeing = 0;
        for line in map.lines() {
            let mut words = line.split(' ');
            let (Some(address), Some(kind), Some(name)) =
                (words.next(), words.next(), words.next())
            else {
                return;
            };
            let Ok(address) = u64::from_str_radix(address, 16) else {
                return;
            };
            match kind {
                "d" | "D" | "b" | "B" | "r" | "R" => data.push((address, name.to_owned())),
                "T" => match addresses.get(name) {
                    Some(known) if *known == address => agreeing += 1,
                    Some(_) => return,
                    None => {}
                },
                _ => {}
            }
        }
        if agreeing < AGREEING_LEAST {
            return;
        }
        self.data.extend(data);
        // Of one address the name that the kernel itself gave comes first.
        self.data.sort_by_key(|(address, _)| *address);
        let also = &mut self.also;
        self.data.dedup_by(|other, first| {
            let is_same = other.0 == first.0;
            if is_same {
                also.push(std::mem::take(other));
            }
            is_same
        });
    }

    /// Returns what data is in so many bytes from an address: names, and how far into the first one
    /// the address is. Nothing outside the kernel's image.
    #[must_use]
    pub fn data_in(&self, address: u64, bytes: u64) -> Option<(Vec<&str>, u64)> {
        let after = self.data.partition_point(|(start, _)| *start <= address);
        // Behind the last one there may be anything.
        self.data.get(after)?;
        let first = after.checked_sub(1)?;
        let inside = self.data[first..]
            .iter()
            .take_while(|(start, _)| *start < address + bytes);
        Some((
            inside.map(|(_, name)| name.as_str()).collect(),
            address - self.data[first].0,
        ))
    }

    /// Returns the symbol of an address, and whether it is the symbol's first. Padding belongs to
    /// the function behind it.
    #[must_use]
    pub fn symbol_at(&self, address: u64) -> Option<(&str, bool)> {
        let after = self.entries.partition_point(|(start, _)| *start <= address);
        let (start, name) = self.entries[after.checked_sub(1)?..]
            .iter()
            .find(|(_, name)| !name.is_empty())?;
        Some((name, *start == address))
    }

    /// Returns the functions with a name: where they begin and end, with the padding behind them.
    pub fn functions(&self) -> impl Iterator<Item = (u64, u64, &str)> {
        self.entries.windows(2).filter_map(|pair| {
            let [(start, name), (end, _)] = pair else {
                return None;
            };
            (!name.is_empty()).then_some((*start, *end, name.as_str()))
        })
    }

    /// Returns the function or data that begins last before an address.
    #[must_use]
    pub fn place_of(&self, address: u64) -> Option<Place<'_>> {
        let last = |all: &[(u64, String)]| {
            let after = all.partition_point(|(start, _)| *start <= address);
            after.checked_sub(1)
        };
        let function = last(&self.entries).map(|at| (&self.entries[at], true));
        let data = last(&self.data).map(|at| (&self.data[at], false));
        let ((start, name), is_function) = function
            .into_iter()
            .chain(data)
            .max_by_key(|((start, _), _)| *start)?;
        Some(Place {
            name,
            distance: address - start,
            is_function,
        })
    }

    /// Makes names unique that several static functions share, by appending the file in round
    /// brackets: `init_once (fs/inode.c)`. `file` gets all their addresses, in order, and
    /// returns the files.
    pub fn tell_apart(&mut self, files: impl FnOnce(&[u64]) -> Vec<Option<String>>) {
        let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, (_, name)) in self
            .entries
            .iter()
            .enumerate()
            .filter(|(_, (_, name))| !name.is_empty())
        {
            places.entry(name).or_default().push(index);
        }
        let shared: Vec<usize> = places
            .into_values()
            .filter(|places| places.len() > 1)
            .flatten()
            .collect();
        if shared.is_empty() {
            return;
        }
        let addresses: Vec<u64> = shared.iter().map(|index| self.entries[*index].0).collect();
        for (index, file) in shared.into_iter().zip(files(&addresses)) {
            if let Some(file) = file {
                write!(self.entries[index].1, " ({file})").unwrap_or_default();
            }
        }
    }

    /// Returns where a symbol begins; `None` if there is none of that name, or several.
    #[must_use]
    pub fn address(&self, name: &str) -> Option<u64> {
        let mut found = self.entries.iter().filter(|(_, known)| known == name);
        let (address, _) = found.next()?;
        found.next().is_none().then_some(*address)
    }

    /// Returns where data begins; `None` if there is none of that name.
    #[must_use]
    pub fn data_address(&self, name: &str) -> Option<u64> {
        let all = self.data.iter().chain(&self.also);
        all.into_iter()
            .find_map(|(address, known)| (known == name).then_some(*address))
    }

    /// Returns the marks by which the tracer sees who executes: lines as in
    /// `crates/guest/tracer/src/lib.rs`.
    #[must_use]
    pub fn marks(&self) -> String {
        let interrupts = self.interrupts();
        let fork = self.fork();
        self.lines(|name| {
            (Some(name) == fork)
                .then_some("fork")
                .or_else(|| mark(name, interrupts))
        })
    }

    /// Returns the function in which a new task begins.
    fn fork(&self) -> Option<&'static str> {
        FORKS
            .into_iter()
            .find(|fork| self.entries.iter().any(|(_, name)| name == fork))
    }

    /// Returns the marks by which it also follows calls.
    #[must_use]
    pub fn call_marks(&self) -> String {
        // The part that the compiler split off a function is jumped to, and belongs to that
        // function.
        let other = |name: &str| {
            if name.contains(".cold") {
                None
            } else {
                Some("function")
            }
        };
        let interrupts = self.interrupts();
        let fork = self.fork();
        self.lines(|name| match mark(name, interrupts) {
            _ if Some(name) == fork => Some("fork"),
            None => other(name),
            mark => mark,
        }) + &self.lines(|name| (name == SWITCH).then_some("function"))
    }

    /// Returns the marks by which the tracer counts the functions of [`model::WATCHED`], and knows
    /// those that take locks.
    #[must_use]
    pub fn watched(&self) -> String {
        let mut lines = String::new();
        for pair in self.entries.windows(2) {
            let [(start, name), (end, _)] = pair else {
                continue;
            };
            if is_watched(name) {
                writeln!(lines, "watched {start:x} {end:x}").unwrap_or_default();
            }
            if let Some(kind) = model::taken_by(name) {
                let kind = kind.name();
                writeln!(lines, "takes {kind} {start:x} {end:x}").unwrap_or_default();
            }
        }
        lines
    }

    /// Returns the mark of a function's first instruction, for paths, which have no interrupts.
    pub(crate) fn mark_of(name: &str) -> Option<&'static str> {
        if FORKS.contains(&name) {
            return Some("fork");
        }
        mark(name, &[])
    }

    fn interrupts(&self) -> &'static [&'static str] {
        if self.entries.iter().any(|(_, name)| name == COMMON) {
            &INTERRUPTS
        } else {
            &OLD_INTERRUPTS
        }
    }

    fn lines(&self, mark: impl Fn(&str) -> Option<&'static str>) -> String {
        let mut lines = String::new();
        for (address, name) in self.entries.iter().filter(|(_, name)| !name.is_empty()) {
            if let Some(word) = mark(name) {
                writeln!(lines, "{word} {address:x}").unwrap_or_default();
            }
        }
        lines
    }
}

fn is_watched(name: &str) -> bool {
    model::WATCHED
        .iter()
        .any(|(watched, ..)| *watched == model::without_suffix(name))
}

/// Returns who executes after a function's first instruction, if that changes.
fn mark(name: &str, interrupts: &[&str]) -> Option<&'static str> {
    match name {
        SYSTEM_CALL => Some("syscall"),
        SWITCH => Some("switch"),
        name if name.starts_with(EXCEPTIONS) => Some("exception"),
        name if interrupts.iter().any(|known| name.starts_with(known)) => Some("interrupt"),
        _ => None,
    }
}

/// Returns the rank of a name; 0 is best. The best name of an address is used.
fn rank(kind: &str, name: &str) -> u8 {
    // A system call without arguments has one body for both ABIs (SYSCALL_DEFINE0 in
    // arch/x86/include/asm/syscall_wrapper.h); here it is called by the 64-bit one.
    let other_abi = name.starts_with("__ia32_") || name.starts_with("__x32_");
    // A global name is better known than a local or a weak one.
    let linkage = match kind {
        "T" => 0,
        "t" => 1,
        _ => 2,
    };
    // Ends of sections are no functions.
    let is_border = name.ends_with("_text_start") || name.ends_with("_text_end");
    linkage + if other_abi { 4 } else { 0 } + if is_border { 3 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::{Symbols, SymbolsError};

    const TEXT: &str = "Tffffffff81000000 _stext\nt10 __pfx_do_one\nt10 do_one\nW0 weak_one\nT0 global_one\n\
                        T100 asm_sysvec_apic_timer_interrupt\nt20 crypt\tsome_module\nT20 asm_common_interrupt\n";

    #[test]
    fn addresses_have_names() {
        let symbols = Symbols::parse(TEXT).unwrap();
        assert_eq!(
            symbols.symbol_at(0xffff_ffff_8100_0020),
            Some(("global_one", true))
        );
        assert_eq!(
            symbols.symbol_at(0xffff_ffff_8100_0031),
            Some(("global_one", false))
        );
        assert_eq!(
            symbols.symbol_at(0xffff_ffff_8100_000f),
            Some(("_stext", false))
        );
        assert_eq!(
            symbols.symbol_at(0xffff_ffff_8100_0141),
            Some(("crypt some_module", false))
        );
        assert_eq!(symbols.symbol_at(5), None);
        assert_eq!(symbols.address("global_one"), Some(0xffff_ffff_8100_0020));
        assert_eq!(symbols.address("nothing"), None);
        let place = symbols.place_of(0xffff_ffff_8100_0031).unwrap();
        assert_eq!((place.name, place.distance), ("global_one", 0x11));
        assert_eq!(symbols.place_of(5), None);
        let first = symbols.functions().next().unwrap();
        assert_eq!(
            first,
            (0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010, "_stext")
        );
        assert_eq!(
            symbols.marks(),
            "interrupt ffffffff81000120\ninterrupt ffffffff81000160\n"
        );
        assert!(
            symbols
                .call_marks()
                .contains("interrupt ffffffff81000120\nfunction ffffffff81000140\n")
        );
    }

    #[test]
    fn padding_belongs_to_the_function_behind() {
        let text = "t1000 anon_pipe_buf_try_steal\nt40 __pfx_pipe_write\nt10 pipe_write\nt40 __cfi_pipe_poll\nt10 pipe_poll\n\
                    t40 __pfx_nothing\n";
        let symbols = Symbols::parse(text).unwrap();
        let names = [0x103f, 0x1040, 0x104f, 0x1050, 0x1090, 0x10a0, 0x10e0]
            .map(|at| symbols.symbol_at(at).unwrap());
        let write = "pipe_write";
        let poll = "pipe_poll";
        let expected = [
            ("anon_pipe_buf_try_steal", false),
            (write, false),
            (write, false),
            (write, true),
            (poll, false),
            (poll, true),
            (poll, false),
        ];
        assert_eq!(names, expected);
        assert_eq!(
            symbols.call_marks().lines().count(),
            3,
            "padding is no function"
        );
    }

    #[test]
    fn padding_in_pieces_is_passed_over_at_once() {
        let text = "t1000 first\n".to_owned() + &"t1 __pfx_last\n".repeat(100_000) + "t1 last\n";
        let symbols = Symbols::parse(&text).unwrap();
        assert_eq!(symbols.entries.len(), 3);
        assert_eq!(
            [0x1000, 0x1001, 0x8000].map(|at| symbols.symbol_at(at).unwrap().0),
            ["first", "last", "last"]
        );
    }

    #[test]
    fn functions_of_one_name_get_their_files() {
        let mut symbols =
            Symbols::parse("t1000 init_once\nT100 other\nt100 init_once\nt100 init_once\n")
                .unwrap();
        symbols.tell_apart(|addresses| {
            assert_eq!(addresses, [0x1000, 0x1200, 0x1300]);
            vec![
                Some("fs/inode.c".to_owned()),
                Some("mm/shmem.c".to_owned()),
                None,
            ]
        });
        let names = [0x1000, 0x1100, 0x1200, 0x1300]
            .map(|address| symbols.symbol_at(address).unwrap().0.to_owned());
        assert_eq!(
            names,
            [
                "init_once (fs/inode.c)",
                "other",
                "init_once (mm/shmem.c)",
                "init_once"
            ]
        );
        assert_eq!(symbols.address("init_once (mm/shmem.c)"), Some(0x1200));
    }

    #[test]
    fn map_adds_data_where_functions_agree() {
        let mut symbols =
            Symbols::parse("Tffffffff81000000 one\nT100 two\nT100 three\nT100 four\n").unwrap();
        let functions =
            "ffffffff81000000 T one\nffffffff81000100 T two\nffffffff81000200 T three\n";
        let data = "ffffffff82000000 D tasklist_lock\nffffffff82000040 d pidmap_lock\n\
             ffffffff82000080 B last\n";
        let elsewhere = functions.replace("000100", "000180");
        symbols.add_data_of_map(&format!("{elsewhere}{data}"));
        assert_eq!(symbols.data_address("pidmap_lock"), None);
        symbols.add_data_of_map(&format!("{functions}{data}"));
        let found = symbols.data_in(0xffff_ffff_8200_0044, 1);
        assert_eq!(found, Some((vec!["pidmap_lock"], 4)));
    }

    #[test]
    fn only_entries_begin_interrupts() {
        let marks = |text: &str| Symbols::parse(text).unwrap().marks();
        let entry = "T1000 asm_common_interrupt\nT100 common_interrupt\nT100 __irqentry_text_end\nT0 common_interrupt_return\n";
        assert_eq!(marks(entry), "interrupt 1000\n");
        assert_eq!(
            Symbols::parse(entry).unwrap().symbol_at(0x1200),
            Some(("common_interrupt_return", true))
        );
        assert_eq!(
            marks("T1000 apic_timer_interrupt\nT100 common_interrupt\n"),
            "interrupt 1000\ninterrupt 1100\n"
        );
    }

    #[test]
    fn system_call_takes_its_64_bit_name() {
        let symbols = Symbols::parse("T1000 __ia32_sys_getppid\nT0 __x64_sys_getppid\n").unwrap();
        assert_eq!(
            symbols.symbol_at(0x1004),
            Some(("__x64_sys_getppid", false))
        );
    }

    #[test]
    fn useless_symbols_are_errors() {
        assert_eq!(Symbols::parse(""), Err(SymbolsError::Empty));
        assert_eq!(Symbols::parse("T0 a\nT0 b\n"), Err(SymbolsError::Hidden));
        assert_eq!(
            Symbols::parse("T0 a\nwhat\n"),
            Err(SymbolsError::Malformed(2))
        );
    }

    proptest::proptest! {
        #[test]
        fn garbage_never_panics(text: String) {
            let _symbols = Symbols::parse(&text);
        }
    }
}
