//! The file of digests: what a history keeps of each run, so that `history`, `alerts` and `serve`
//! open a store of years without reading every sample again.
//!
//! It is a cache: deleting it costs one slow reading. It counts only for runs that the store still
//! has, by number and id, as a stored run never changes; and only whole, of this version of Marvin.
//! Who reads results writes it under another name and renames it, so that a kill leaves the old one.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use compare::Scale;
use history::{
    Absent, EstimatedCycles, MissingKind, ResultDigest, RunDigest, Shape, ShapeIx, WithinMean,
};
use model::{BuildId, Declared, Direction, MachineId, RunId, UnixTime};

/// Changes with the format, and with every change of what a digest says of a run.
pub(crate) const MAGIC: &str = concat!("marvin history ", env!("CARGO_PKG_VERSION"), " 4\n");
const FILE: &str = "history.summary";
/// A larger file is not read: at about 1 kB a run these are millions of runs.
const BYTES_MAX: u64 = 4 << 30;

/// The digests of a file, each run with its number in the store.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) shapes: Vec<Shape>,
    bytes: Vec<u8>,
    /// Where the runs begin.
    start: usize,
}

/// Returns the path of a data directory's summary.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join(FILE)
}

impl Summary {
    /// Reads the file; `None` if there is none that is whole.
    pub(crate) fn read(file: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(file).ok()?;
        if !found.is_file() || found.len() > BYTES_MAX {
            return None;
        }
        let bytes = fs::read(file).ok()?;
        let mut cursor = Cursor(bytes.strip_prefix(MAGIC.as_bytes())?);
        let checksum = cursor.u32()?;
        if crc32fast::hash(cursor.0) != checksum {
            return None;
        }
        let count = cursor.u32()?;
        let mut shapes = Vec::new();
        for _ in 0..count {
            shapes.push(cursor.shape()?);
        }
        let start = bytes.len() - cursor.0.len();
        Some(Self {
            shapes,
            bytes,
            start,
        })
    }

    /// Returns the runs with their numbers, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (i64, RunDigest)> + use<'_> {
        let mut cursor = Cursor(&self.bytes[self.start..]);
        std::iter::from_fn(move || cursor.run())
    }
}

/// Writes a summary.
#[derive(Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// Begins a summary whose runs refer to these shapes.
    pub(crate) fn new(shapes: &[Arc<Shape>]) -> Self {
        let mut writer = Self { bytes: Vec::new() };
        writer.u32(shapes.len());
        for shape in shapes {
            writer.shape(shape);
        }
        writer
    }

    pub(crate) fn add(&mut self, number: i64, run: &RunDigest) {
        self.bytes.extend(number.to_le_bytes());
        for text in [run.id.hex(), run.build.hex(), run.machine.hex()] {
            self.text(text);
        }
        self.bytes.extend(run.seed.to_le_bytes());
        self.bytes.extend(run.started_unix.seconds().to_le_bytes());
        self.u32(run.results.len());
        for result in &run.results {
            let ResultDigest {
                shape,
                value,
                mark,
                cycles,
                deferred,
                within,
            } = result;
            self.bytes.extend(shape.0.to_le_bytes());
            self.bytes.extend(value.to_bits().to_le_bytes());
            self.bytes.extend(mark.to_le_bytes());
            for one in cycles.iter().chain([deferred]) {
                self.bytes.extend(one.to_bits().to_le_bytes());
            }
            self.bytes.push(u8::from(within.is_some()));
            for one in within.iter().flat_map(|within| within.to_numbers()) {
                self.bytes.extend(one.to_bits().to_le_bytes());
            }
        }
    }

    /// Puts the summary into the place of the file.
    pub(crate) fn save(self, file: &Path) -> std::io::Result<()> {
        let new = file.with_extension("summary.new");
        self.write(&new)?;
        fs::rename(&new, file)
    }

    fn write(&self, new: &Path) -> std::io::Result<()> {
        // That of a killed process, or of one that writes now: then one of both is renamed, and
        // counts once it is whole.
        fs::remove_file(new).ok();
        let mut file = fs::File::create_new(new)?;
        file.write_all(MAGIC.as_bytes())?;
        file.write_all(&crc32fast::hash(&self.bytes).to_le_bytes())?;
        file.write_all(&self.bytes)
    }

    fn u32(&mut self, number: usize) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        self.bytes.extend(number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.u32(text.len());
        self.bytes.extend(text.as_bytes());
    }

    fn shape(&mut self, shape: &Shape) {
        for text in [shape.machine.hex(), &shape.suite, &shape.workload] {
            self.text(text);
        }
        self.bytes.extend(shape.operations.to_le_bytes());
        match &shape.declared {
            None => self.bytes.push(0),
            Some(declared) => {
                self.bytes.push(match declared.direction {
                    None => 1,
                    Some(Direction::LowerIsBetter) => 2,
                    Some(Direction::HigherIsBetter) => 3,
                });
                let margin = declared.margin_percent.to_bits();
                self.bytes.extend(margin.to_le_bytes());
                self.text(&declared.unit);
            }
        }
        match &shape.ended {
            Ok(Scale::Counted) => self.bytes.push(0),
            Ok(Scale::Reported) => self.bytes.push(1),
            Err(absent) => {
                self.bytes.push(match absent.missing {
                    MissingKind::Unsupported => 2,
                    MissingKind::NotBooted => 3,
                    MissingKind::Failed => 4,
                    MissingKind::NoValue => 5,
                });
                self.text(&absent.why);
            }
        }
    }
}

/// Bytes that are still to be read.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        std::str::from_utf8(self.bytes(length as usize)?).ok()
    }

    fn run(&mut self) -> Option<(i64, RunDigest)> {
        let number = self.u64()?.cast_signed();
        let mut run = RunDigest {
            id: RunId::from_hex(self.text()?).ok()?,
            build: BuildId::from_hex(self.text()?).ok()?,
            machine: MachineId::from_hex(self.text()?).ok()?,
            seed: self.u64()?,
            started_unix: UnixTime::new(self.u64()?.cast_signed()),
            results: Vec::new(),
        };
        for _ in 0..self.u32()? {
            let mut result = ResultDigest {
                shape: ShapeIx(self.u32()?),
                value: f64::from_bits(self.u64()?),
                mark: self.u64()?,
                cycles: EstimatedCycles::default(),
                deferred: 0.0,
                within: None,
            };
            for one in result.cycles.iter_mut().chain([&mut result.deferred]) {
                *one = f32::from_bits(self.u32()?);
            }
            result.within = self.within()?;
            run.results.push(result);
        }
        Some((number, run))
    }

    /// Returns what samples say or that there is nothing; `None` for a file that ends too early.
    fn within(&mut self) -> Option<Option<Arc<WithinMean>>> {
        match self.u8()? {
            0 => return Some(None),
            1 => {}
            _ => return None,
        }
        let mut numbers = [0.0; WithinMean::NUMBERS];
        for one in &mut numbers {
            *one = f64::from_bits(self.u64()?);
        }
        Some(Some(Arc::new(WithinMean::from_numbers(numbers))))
    }

    fn shape(&mut self) -> Option<Shape> {
        Some(Shape {
            machine: MachineId::from_hex(self.text()?).ok()?,
            suite: self.text()?.to_owned(),
            workload: self.text()?.to_owned(),
            operations: self.u64()?,
            declared: self.declared()?,
            ended: self.ended()?,
        })
    }

    /// Returns a declaration or that there is none; `None` for a file that ends too early.
    fn declared(&mut self) -> Option<Option<Declared>> {
        let direction = match self.u8()? {
            0 => return Some(None),
            1 => None,
            2 => Some(Direction::LowerIsBetter),
            3 => Some(Direction::HigherIsBetter),
            _ => return None,
        };
        let margin_percent = f64::from_bits(self.u64()?);
        Some(Some(Declared {
            unit: self.text()?.to_owned().into(),
            direction,
            margin_percent,
        }))
    }

    fn ended(&mut self) -> Option<Result<Scale, Absent>> {
        let missing = match self.u8()? {
            0 => return Some(Ok(Scale::Counted)),
            1 => return Some(Ok(Scale::Reported)),
            2 => MissingKind::Unsupported,
            3 => MissingKind::NotBooted,
            4 => MissingKind::Failed,
            5 => MissingKind::NoValue,
            _ => return None,
        };
        let why = Arc::from(self.text()?);
        Some(Err(Absent { missing, why }))
    }
}
