//! Reads the order of instructions that `crates/guest/path-recorder` writes.

use model::{ExecutedPath, PathEntry, PathInstruction};

use crate::profile::NAMELESS;
use crate::{Symbols, machine_code};

/// Longest instruction (Intel SDM, volume 2, 2.3.11).
const INSTRUCTION_MAX: usize = 15;
/// Most bytes of the file's lines.
const TEXT_MAX: usize = 256 << 20;

/// Invalid files of the path recorder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// There is no file, or not all of it.
    #[error(
        "the order of instructions is cut: QEMU ended before it was written, or the disk is full"
    )]
    Cut,
    /// The iteration did not end.
    #[error("the iteration that was to be followed did not end")]
    Open,
    /// A line is not in the recorder's format.
    #[error("line {0} of the order of instructions makes no sense")]
    Malformed(usize),
    /// The steps name what is not there.
    #[error("the order of instructions names instructions that it does not have")]
    Stream,
}

/// Reads an executed path.
///
/// # Errors
/// If it is cut or garbled.
pub fn executed_path(bytes: &[u8], symbols: &Symbols) -> Result<ExecutedPath, PathError> {
    let mut path = ExecutedPath::default();
    let mut rest = bytes;
    for number in 1.. {
        let malformed = PathError::Malformed(number);
        let end = rest.iter().position(|byte| *byte == b'\n');
        let (line, behind) = rest.split_at(end.ok_or(PathError::Cut)?);
        let line = std::str::from_utf8(line).map_err(|_| malformed.clone())?;
        rest = &behind[1..];
        if bytes.len() - rest.len() > TEXT_MAX {
            return Err(malformed);
        }
        if number == 1 {
            if line != "marvin-path 1" {
                return Err(malformed);
            }
            continue;
        }
        let (word, value) = line.split_once(' ').ok_or(malformed.clone())?;
        let parsed = || value.parse::<u64>().map_err(|_| malformed.clone());
        match word {
            "instruction" => {
                let found = instruction(value, symbols).ok_or(malformed)?;
                path.instructions.push(found);
            }
            "block" => {
                let numbers = value.split(' ').map(str::parse);
                let block = numbers.collect::<Result<Vec<u32>, _>>();
                path.blocks.push(block.map_err(|_| malformed)?);
            }
            "returns" => path.returns = parsed()?,
            "cut" => path.cut = parsed()?,
            "stream" => {
                let length = usize::try_from(parsed()?).map_err(|_| malformed)?;
                let (stream, end) = rest.split_at_checked(length).ok_or(PathError::Cut)?;
                return match end {
                    b"end\n" => path.with_stream(stream.to_vec()).ok_or(PathError::Stream),
                    b"open\n" => Err(PathError::Open),
                    _ => Err(PathError::Cut),
                };
            }
            _ => return Err(malformed),
        }
    }
    Err(PathError::Cut)
}

fn instruction(text: &str, symbols: &Symbols) -> Option<PathInstruction> {
    let (address, digits) = text.split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let digits = digits.as_bytes();
    if digits.is_empty() || digits.len() > 2 * INSTRUCTION_MAX || digits.len() % 2 != 0 {
        return None;
    }
    let pairs = digits.chunks(2).map(|pair| {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        u8::try_from(high? << 4 | low?).ok()
    });
    let bytes = pairs.collect::<Option<Vec<u8>>>()?;
    let (symbol, offset) = function_at(symbols, address);
    let behind = address.wrapping_add(bytes.len() as u64);
    let target = machine_code::distance(&bytes)
        .map(|distance| function_at(symbols, behind.wrapping_add_signed(distance)).0)
        .filter(|target| *target != symbol);
    Some(PathInstruction {
        address,
        shape: machine_code::shape(&bytes),
        symbol: symbol.to_owned(),
        offset,
        target: target.map(str::to_owned),
        kind: machine_code::kind(&bytes),
        entry: entry(symbol).filter(|_| offset == 0),
        bytes,
    })
}

/// Returns the function at an address, and the bytes from its first.
fn function_at(symbols: &Symbols, address: u64) -> (&str, u64) {
    let place = symbols.place_of(address).filter(|place| place.is_function);
    match place {
        Some(place) if !place.name.is_empty() => (place.name, place.distance),
        // Padding belongs to the function behind it.
        Some(_) => (
            symbols
                .symbol_at(address)
                .map_or(NAMELESS, |(name, _)| name),
            0,
        ),
        None => (NAMELESS, 0),
    }
}

/// Returns what begins with a function.
fn entry(name: &str) -> Option<PathEntry> {
    match Symbols::mark_of(name) {
        Some("syscall") => Some(PathEntry::SystemCall),
        Some("exception") => Some(PathEntry::Exception),
        Some("fork") => Some(PathEntry::Fork),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::{PathEntry, PathKind, PathStep};
    use proptest::prelude::{any, proptest};

    use super::{PathError, executed_path};
    use crate::Symbols;

    const TEXT: &str = "marvin-path 1\ninstruction 1000 4883ec08\ninstruction 1004 e8f7000000\n\
        instruction 1100 c3\nblock 0 1\nblock 2\nreturns 3\ncut 0\nstream 4\n";

    fn symbols() -> Symbols {
        Symbols::parse("T1000 asm_exc_page_fault\nT100 handle_mm_fault\nT100 last\n").unwrap()
    }

    fn file(stream: &[u8], end: &str) -> Vec<u8> {
        [TEXT.as_bytes(), stream, end.as_bytes()].concat()
    }

    #[test]
    fn written_order_is_read() {
        let path = executed_path(&file(&[0, 0, 4, 5], "end\n"), &symbols()).unwrap();
        let [first, call, last] = path.instructions.as_slice() else {
            panic!("three instructions");
        };
        assert_eq!(first.entry, Some(PathEntry::Exception));
        assert_eq!(call.target.as_deref(), Some("handle_mm_fault"));
        assert_eq!((call.kind, call.offset), (PathKind::Call, 4));
        assert_eq!(last.symbol, "handle_mm_fault");
        assert_eq!((path.returns, path.cut), (3, 0));
        let steps: Vec<PathStep> = path.steps().collect();
        let expected = [PathStep::Process(0), PathStep::Block(0), PathStep::Block(1)];
        assert_eq!(steps, expected);
    }

    #[test]
    fn what_is_cut_is_refused() {
        let whole = file(&[0, 0, 4, 5], "end\n");
        for length in 0..whole.len() {
            let read = executed_path(&whole[..length], &symbols());
            assert_eq!(read, Err(PathError::Cut), "{length} bytes");
        }
        let open = executed_path(&file(&[0, 0, 4, 5], "open\n"), &symbols());
        assert_eq!(open, Err(PathError::Open));
        let unknown = executed_path(&file(&[0, 0, 4, 9], "end\n"), &symbols());
        assert_eq!(unknown, Err(PathError::Stream));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            drop(executed_path(&bytes, &symbols()));
            drop(executed_path(&[b"marvin-path 1\n", bytes.as_slice()].concat(), &symbols()));
        }
    }
}
