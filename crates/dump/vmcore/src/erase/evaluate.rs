//! Finds the objects of erase commands in a dump's memory: symbols and types come from the vmlinux,
//! values from the dump.

use std::collections::HashSet;

use crate::dump::Dump;
use crate::erase::config::{Amount, Command, ConfigError, Erase, Expression, Way};
use crate::erase::{ERASED, Erasure, Piece};
use crate::error::{DumpError, MemoryError};
use crate::paging::{Walker, architecture};
use crate::reader::Reader;
use crate::variables::{Kind, Variables};
use crate::vmlinux::Vmlinux;

/// Most bytes of one object.
const SIZE_MAX: u64 = 1 << 30;
/// Most bytes of a `char *` text, as with makedumpfile.
const TEXT_MAX: u64 = 1024;
/// Most elements of a list or an array, and most objects in total.
const ELEMENTS_MAX: usize = 1 << 20;
const PIECES_MAX: usize = 1 << 22;

/// An object in memory.
#[derive(Debug, Clone)]
struct Value {
    address: u64,
    kind: Kind,
}

/// The sources of an evaluation.
struct Evaluation<'r, 'd, 'w> {
    reader: &'r mut Reader<'d>,
    walker: Walker<'w>,
    vmlinux: &'w Vmlinux,
    variables: Variables<'w>,
    /// Distance of addresses from those in the vmlinux.
    moved: u64,
    pieces: Vec<Piece>,
    text: String,
    warnings: Vec<String>,
}

pub(super) fn run(
    commands: &[Command],
    vmlinux: &Vmlinux,
    reader: &mut Reader<'_>,
) -> Result<Erasure, ConfigError> {
    let dump = reader.dump();
    let moved = find_relocation(dump, vmlinux).map_err(ConfigError::Other)?;
    let architecture = architecture(dump.machine(), dump.info()).map_err(ConfigError::Other)?;
    let types = vmlinux.types().map_err(ConfigError::Other)?;
    let mut evaluation = Evaluation {
        reader,
        walker: Walker::new(&*architecture),
        vmlinux,
        variables: Variables::new(vmlinux, &types),
        moved,
        pieces: Vec::new(),
        text: String::new(),
        warnings: Vec::new(),
    };
    for command in commands {
        evaluation.command(command)?;
    }
    let Evaluation {
        pieces,
        text,
        warnings,
        ..
    } = evaluation;
    let mut erasure = Erasure {
        text: text.into_bytes(),
        warnings,
        ..Erasure::default()
    };
    erasure.set(pieces);
    Ok(erasure)
}

/// Returns the kernel's relocation offset, if the vmlinux belongs to it.
fn find_relocation(dump: &Dump, vmlinux: &Vmlinux) -> Result<u64, DumpError> {
    let info = dump.info();
    if info.is_empty() {
        return Err(DumpError::NoNote);
    }
    let both = [
        ("BUILD-ID", info.text("BUILD-ID"), vmlinux.build_id()),
        ("OSRELEASE", info.text("OSRELEASE"), vmlinux.release()),
    ];
    for (key, note, own) in both {
        if let (Some(note), Some(own)) = (note, own)
            && note != own
        {
            return Err(DumpError::Usage(format!(
                "the vmlinux is not this dump's: {key} is {own} in it and {note} in the dump"
            )));
        }
    }
    let start = vmlinux
        .symbol("_stext")
        .ok_or_else(|| DumpError::Usage("the vmlinux has no symbol _stext".to_owned()))?;
    Ok(info.need_symbol("_stext")?.wrapping_sub(start.address))
}

impl Evaluation<'_, '_, '_> {
    fn command(&mut self, command: &Command) -> Result<(), ConfigError> {
        match command {
            Command::Erase(erase) => self.erase(erase, None),
            Command::For {
                variable,
                list,
                way,
                body,
            } => {
                for element in self.elements(list, way)? {
                    for erase in body {
                        self.erase(erase, Some((variable, &element)))?;
                    }
                }
                Ok(())
            }
        }
    }

    fn warn(&mut self, at: &Expression, what: &str) {
        /// Enough text to identify the mismatch.
        const WARNINGS_MAX: usize = 10;
        if self.warnings.len() < WARNINGS_MAX {
            self.warnings
                .push(format!("line {}: `{}` {what}", at.at.line, at.text()));
        }
    }

    /// Finds an object; `None` if a pointer on the way is null.
    fn find(
        &mut self,
        what: &Expression,
        own: Option<(&String, &Value)>,
    ) -> Result<Option<Value>, ConfigError> {
        let Some((name, members)) = what.names.split_first() else {
            return Ok(None);
        };
        let mut value = match own.filter(|own| own.0 == name) {
            Some((_, value)) => value.clone(),
            None => {
                let symbol = self.vmlinux.symbol(name).ok_or_else(|| {
                    ConfigError::Wrong(what.at, format!("the kernel has no symbol `{name}`"))
                })?;
                let kind = self.variables.kind(name, symbol.address);
                let kind = kind.ok_or_else(|| {
                    let text = format!("the type of `{name}` is not known: the vmlinux has no DWARF for it (.debug_info)");
                    ConfigError::Wrong(what.at, text)
                })?;
                Value {
                    address: symbol.address.wrapping_add(self.moved),
                    kind,
                }
            }
        };
        for member in members {
            if let Kind::Pointer(target) = &value.kind {
                let kind = self.variables.expand(target);
                match self.pointer(value.address) {
                    Ok(0) => return Ok(None),
                    Ok(address) => value = Value { address, kind },
                    Err(error) => {
                        self.warn(what, &format!("cannot be followed: {error}"));
                        return Ok(None);
                    }
                }
            }
            let found = self.variables.member(&value.kind, member);
            let (offset, kind) = found.ok_or_else(|| {
                let text = format!("there is no member `{member}` in `{}`", what.text());
                ConfigError::Wrong(what.at, text)
            })?;
            value = Value {
                address: value.address.wrapping_add(offset),
                kind,
            };
        }
        Ok(Some(value))
    }

    fn erase(&mut self, erase: &Erase, own: Option<(&String, &Value)>) -> Result<(), ConfigError> {
        let Some(value) = self.find(&erase.what, own)? else {
            return Ok(());
        };
        let target = match &value.kind {
            Kind::Pointer(target) => Some(self.variables.expand(target)),
            _ => None,
        };
        if erase.amount == Amount::Nullify {
            if target.is_none() {
                return Err(wrong(
                    &erase.what,
                    "is no pointer: `nullify` is for these only",
                ));
            }
            return self.add(&erase.what, value.address, 8, 0);
        }
        let (address, kind) = match target {
            None => (value.address, value.kind),
            Some(target) => match self.pointer(value.address) {
                Ok(0) => return Ok(()),
                Ok(address) => (address, target),
                Err(error) => {
                    self.warn(&erase.what, &format!("cannot be followed: {error}"));
                    return Ok(());
                }
            },
        };
        let is_text = address != value.address && kind == Kind::Char;
        let size = match &erase.amount {
            Amount::Bytes(size) => *size,
            Amount::Of(size) => match self.find(size, own)? {
                Some(value) => self.number(size, &value)?,
                None => 0,
            },
            _ if is_text => self.text_length(address),
            _ => self.variables.size(&kind).ok_or_else(|| {
                wrong(&erase.what, "has no size of its own: say how much with `size`, or erase the pointer with `nullify`")
            })?,
        };
        self.add(&erase.what, address, size, ERASED)
    }

    /// Records the replacement of bytes at a virtual address.
    fn add(
        &mut self,
        what: &Expression,
        address: u64,
        size: u64,
        byte: u8,
    ) -> Result<(), ConfigError> {
        if size > SIZE_MAX || self.pieces.len() > PIECES_MAX {
            let text = format!(
                "`{}`: {size:#x} bytes more are more than can be erased",
                what.text()
            );
            return Err(ConfigError::Wrong(what.at, text));
        }
        let mut done = 0;
        while done < size {
            let at = address.wrapping_add(done);
            match self.walker.walk(self.reader, at) {
                Ok(mapping) => {
                    let length = mapping.length.min(size - done);
                    self.pieces.push(Piece {
                        range: mapping.physical..mapping.physical + length,
                        byte,
                    });
                    done += length;
                }
                Err(error) => {
                    self.warn(what, &format!("is not all there: {error}"));
                    // All mappings are at least 4 KiB large.
                    done += 4096 - at % 4096;
                }
            }
        }
        if size > 0 {
            let amount = if byte == ERASED {
                format!("size {size}")
            } else {
                "nullify".to_owned()
            };
            self.text
                .extend([format!("erase {} {amount}\n", what.text())]);
        }
        Ok(())
    }

    /// Returns the elements of a list or an array.
    fn elements(&mut self, list: &Expression, way: &Way) -> Result<Vec<Value>, ConfigError> {
        if let Way::Within(record, member) = way {
            return self.follow_list(list, record, member);
        }
        let Some(value) = self.find(list, None)? else {
            return Ok(Vec::new());
        };
        match (way, &value.kind) {
            (_, Kind::Array(element, count)) => self.array(list, &value, element, *count),
            (Way::Via(member), _) => self.chain(list, value, member),
            (_, kind) if self.variables.is_named(kind, "list_head") => {
                let text = "is a list_head: say of what, with `within STRUCTURE:MEMBER`";
                Err(ConfigError::Wrong(
                    list.at,
                    format!("`{}` {text}", list.text()),
                ))
            }
            _ => self.chain(
                list,
                value,
                &Expression {
                    at: list.at,
                    names: vec!["next".to_owned()],
                },
            ),
        }
    }

    fn array(
        &mut self,
        list: &Expression,
        value: &Value,
        element: &Kind,
        count: u64,
    ) -> Result<Vec<Value>, ConfigError> {
        let kind = self.variables.expand(element);
        let size = self.variables.size(&kind).unwrap_or_default();
        if count > ELEMENTS_MAX as u64 {
            return Err(ConfigError::Wrong(
                list.at,
                format!("`{}` has {count} elements, too many", list.text()),
            ));
        }
        Ok((0..count)
            .map(|n| Value {
                address: value.address.wrapping_add(n * size),
                kind: kind.clone(),
            })
            .collect())
    }

    /// Follows a member from structure to structure, to the first one or to null.
    fn chain(
        &mut self,
        list: &Expression,
        first: Value,
        member: &Expression,
    ) -> Result<Vec<Value>, ConfigError> {
        let mut value = match &first.kind {
            Kind::Pointer(target) => Value {
                address: self.follow(list, first.address),
                kind: self.variables.expand(target),
            },
            _ => first,
        };
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        while value.address != 0 && seen.insert(value.address) {
            self.check_count(list, found.len())?;
            let mut next = Some(value.clone());
            for name in &member.names {
                let Some(value) = next.take() else { break };
                let (offset, kind) = self.variables.member(&value.kind, name).ok_or_else(|| {
                    ConfigError::Wrong(
                        member.at,
                        format!(
                            "there is no member `{name}` in elements of `{}`",
                            list.text()
                        ),
                    )
                })?;
                next = Some(Value {
                    address: value.address.wrapping_add(offset),
                    kind,
                });
            }
            let Some(next) = next.filter(|next| match &next.kind {
                Kind::Pointer(target) => self.variables.expand(target) == value.kind,
                _ => false,
            }) else {
                return Err(ConfigError::Wrong(
                    member.at,
                    format!("`{}` is no pointer to the next element", member.text()),
                ));
            };
            let address = self.follow(list, next.address);
            let kind = value.kind.clone();
            found.push(value);
            value = Value { address, kind };
        }
        Ok(found)
    }

    /// Follows a `list_head` around; the head itself is no element.
    fn follow_list(
        &mut self,
        list: &Expression,
        record: &Expression,
        member: &String,
    ) -> Result<Vec<Value>, ConfigError> {
        let name = record.text();
        let kind = self.variables.named(&name).ok_or_else(|| {
            let text = format!("the kernel has no structure `{name}`");
            ConfigError::Wrong(record.at, text)
        })?;
        let Some((offset, link)) = self.variables.member(&kind, member) else {
            let text = format!("there is no member `{member}` in `{name}`");
            return Err(ConfigError::Wrong(record.at, text));
        };
        if !self.variables.is_named(&link, "list_head") {
            let text = format!("`{name}.{member}` is no list_head");
            return Err(ConfigError::Wrong(record.at, text));
        }
        // `head.next` means the list of `head`, as with makedumpfile; `head.prev` the same
        // backwards.
        let mut head = list.clone();
        let mut backwards = false;
        if let Some(last @ ("next" | "prev")) = list.names.last().map(String::as_str) {
            backwards = last == "prev";
            head.names.pop();
        }
        let Some(value) = self.find(&head, None)? else {
            return Ok(Vec::new());
        };
        let value = match &value.kind {
            Kind::Pointer(target) => Value {
                address: self.follow(list, value.address),
                kind: self.variables.expand(target),
            },
            _ => value,
        };
        if !self.variables.is_named(&value.kind, "list_head") {
            return Err(ConfigError::Wrong(
                list.at,
                format!("`{}` is no list_head", list.text()),
            ));
        }
        let place = if backwards { 8 } else { 0 };
        let mut found = Vec::new();
        let mut seen = HashSet::from([value.address, 0]);
        let mut at = self.follow(list, value.address.wrapping_add(place));
        while seen.insert(at) {
            self.check_count(list, found.len())?;
            found.push(Value {
                address: at.wrapping_sub(offset),
                kind: kind.clone(),
            });
            at = self.follow(list, at.wrapping_add(place));
        }
        if at != value.address {
            self.warn(list, "does not lead back to its head");
        }
        Ok(found)
    }

    fn check_count(&self, list: &Expression, count: usize) -> Result<(), ConfigError> {
        if count < ELEMENTS_MAX {
            return Ok(());
        }
        Err(ConfigError::Wrong(
            list.at,
            format!("`{}` has more than {ELEMENTS_MAX} elements", list.text()),
        ))
    }

    /// Reads a pointer; an unreadable one ends a list, with a warning.
    fn follow(&mut self, list: &Expression, address: u64) -> u64 {
        match self.pointer(address) {
            Ok(next) => next,
            Err(error) => {
                self.warn(list, &format!("ends early: {error}"));
                0
            }
        }
    }

    fn pointer(&mut self, address: u64) -> Result<u64, MemoryError> {
        self.read(address, 8)
            .map(|bytes| bytes.try_into().map_or(0, u64::from_le_bytes))
    }

    /// Reads the number of bytes to erase.
    fn number(&mut self, what: &Expression, value: &Value) -> Result<u64, ConfigError> {
        let size = match value.kind {
            Kind::Number(size @ (1 | 2 | 4 | 8)) => size,
            Kind::Char => 1,
            _ => {
                return Err(ConfigError::Wrong(
                    what.at,
                    format!("`{}` is no number", what.text()),
                ));
            }
        };
        match self.read(value.address, size as usize) {
            Ok(bytes) => {
                let mut wide = [0; 8];
                wide[..bytes.len()].copy_from_slice(&bytes);
                Ok(u64::from_le_bytes(wide))
            }
            Err(error) => {
                self.warn(what, &format!("cannot be read: {error}"));
                Ok(0)
            }
        }
    }

    fn text_length(&mut self, address: u64) -> u64 {
        // It ends with a zero, or where it cannot be read any further.
        (0..TEXT_MAX)
            .find(|length| {
                let byte = self.read(address.wrapping_add(*length), 1);
                byte.map_or(true, |byte| byte == [0])
            })
            .unwrap_or(TEXT_MAX)
    }

    fn read(&mut self, address: u64, length: usize) -> Result<Vec<u8>, MemoryError> {
        let mut bytes = Vec::with_capacity(length);
        while bytes.len() < length {
            let mapping = self
                .walker
                .walk(self.reader, address.wrapping_add(bytes.len() as u64))?;
            let rest =
                (length - bytes.len()).min(usize::try_from(mapping.length).unwrap_or(length));
            bytes.extend_from_slice(self.reader.bytes(mapping.physical, rest)?);
        }
        Ok(bytes)
    }
}

fn wrong(object: &Expression, text: &str) -> ConfigError {
    ConfigError::Wrong(object.at, format!("`{}` {text}", object.text()))
}
